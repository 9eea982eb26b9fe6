"""Drift: the test (monitor), the reaction (guard) and the cause (fingerprint)."""

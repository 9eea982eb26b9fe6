"""Readers of what providers return, one optional dependency per file."""

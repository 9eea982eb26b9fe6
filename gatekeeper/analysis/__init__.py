"""Analyses of records and logs: replays, estimates, plans, diagnoses."""

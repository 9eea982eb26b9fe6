"""What is found out from records and logs: replays, estimates, plans, diagnoses."""

"""What the adapters of eval harnesses share."""

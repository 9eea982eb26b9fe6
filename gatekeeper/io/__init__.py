"""What comes in and goes out: records, tasks, data sets, responses of providers."""

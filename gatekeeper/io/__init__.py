"""Input and output: records, tasks, data sets, responses of providers."""

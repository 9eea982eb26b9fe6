"""The report: one HTML page about records or a log, and its figures."""

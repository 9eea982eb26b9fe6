"""Shared parts of the commands of `gatekeeper` and of the examples: options, progress, reports."""

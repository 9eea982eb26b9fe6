"""Adapters of providers and of eval harnesses, each with its own optional dependency."""

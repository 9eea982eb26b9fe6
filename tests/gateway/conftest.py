"""The PostgreSQL server of these tests."""

from postgres_fixture import postgres

__all__ = ["postgres"]

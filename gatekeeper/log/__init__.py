"""The log: what a gate decided, what came of it and what its policy learned, in order."""

from gatekeeper.log.log import Event, Log, MemoryLog, SQLiteLog

__all__ = ["Event", "Log", "MemoryLog", "SQLiteLog"]

"""The log: decisions, outcomes and learned labels of a gate, in order."""

from gatekeeper.log.events import (
    Decided,
    Event,
    ExternalVerdict,
    FingerprintChanged,
    HealthChanged,
    Learned,
    Released,
    ReservedAgain,
    Row,
    Settled,
    WarmupRepeated,
)
from gatekeeper.log.memory import MemoryLog
from gatekeeper.log.opening import open_log
from gatekeeper.log.place import PostgresRun
from gatekeeper.log.protocol import FollowedLog, JointLog, Log, SnapshotLog, StampedEvent
from gatekeeper.log.sqlite import SQLiteLog

__all__ = [
    "Decided",
    "Event",
    "ExternalVerdict",
    "FingerprintChanged",
    "FollowedLog",
    "HealthChanged",
    "JointLog",
    "Learned",
    "Log",
    "MemoryLog",
    "PostgresRun",
    "Released",
    "ReservedAgain",
    "Row",
    "SQLiteLog",
    "Settled",
    "SnapshotLog",
    "StampedEvent",
    "WarmupRepeated",
    "open_log",
]

"""When a process that shares a budget is taken for dead: it wrote nothing during `LOOKS` checks.

Every `BEAT` seconds, each process reads how often each other one has written, and counts the checks
without a change. No clocks are compared, and time without checks does not count: while the table
could not be reached, or while the checking process itself was stopped. So processes are not taken
for dead because the database was away or a host was suspended.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["BEAT", "LOOKS", "Silence"]

BEAT = 2.0  # seconds between two looks, and between two writes of an idle process
LOOKS = 8


class Silence:
    """The observations of one process about the others."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int]] = {}  # beat, and checks without a change

    def look(self, beats: Mapping[int, int]) -> list[tuple[int, int]]:
        """Processes that are taken for dead, with their beats.

        Parameters
        ----------
        beats
            Writes of each other live process so far, by its number.
        """
        seen = {}
        for writer, beat in beats.items():
            before, looks = self._seen.get(writer, (beat, -1))
            seen[writer] = (beat, looks + 1 if beat == before else 0)
        self._seen = seen
        return [(writer, beat) for writer, (beat, looks) in seen.items() if looks >= LOOKS]

    def forget(self) -> None:
        """Start again, because the table could not be reached."""
        self._seen = {}

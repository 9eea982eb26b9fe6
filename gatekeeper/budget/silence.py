"""When a process that shares a budget is taken for dead: it wrote nothing during `LOOKS` looks.

Every process looks at how often each other one has written, once in `BEAT` seconds, and counts the
looks that found no change. No clock is compared with another, and time that passed unseen does not
count: while the table could not be reached, or while the process that looks was stopped itself. So
a database that comes back, or a host that was suspended, is no reason to take all for dead.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["BEAT", "LOOKS", "Silence"]

BEAT = 2.0  # seconds between two looks, and between two writes of an idle process
LOOKS = 8


class Silence:
    """What one process has seen of the others."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int]] = {}  # beat, and looks that found no other

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
        """Begin anew: the table could not be reached."""
        self._seen = {}

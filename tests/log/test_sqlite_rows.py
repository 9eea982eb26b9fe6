"""The rows of a file are those of a log in memory, and a damaged one is an error in its place."""

from __future__ import annotations

import random
import sqlite3
import subprocess
from itertools import islice
from pathlib import Path

import pytest

from gatekeeper.errors import LogError
from gatekeeper.log import Learned, MemoryLog, Released, SQLiteLog

LENGTHS = (0, 3, 900, 20_000)  # characters


def text(rng: random.Random) -> str:
    return "".join(rng.choices('a,[]{}":\\\n\0é\ud800', k=rng.choice(LENGTHS)))


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_a_file_are_those_of_memory(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    events = [Released(f"{i % 7}", text(rng), None) for i in range(40)] + [Learned("x")] * 900
    memory = MemoryLog()
    memory.append(events)
    with SQLiteLog(tmp_path / "run.db") as log:
        assert list(log.rows()) == []
        log.append(events)
        assert list(log.rows()) == list(memory.rows())
        assert list(log.events("3")) == list(memory.events("3"))
        assert list(log.events_after(17)) == events[17:]


@pytest.mark.parametrize("data", ["{", "", "{},{}", "{}]", "[" * 100_000])
def test_events_before_a_damaged_row_are_read(data: str, tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    events = [Learned(str(i)) for i in range(100)]
    with SQLiteLog(path) as log:
        log.append(events)
    db = sqlite3.connect(path)
    db.execute("UPDATE events SET data = ? WHERE seq = 51", (data,))
    db.commit()
    db.close()
    with SQLiteLog(path, read_only=True) as log:
        read = log.events()
        assert list(islice(read, 50)) == events[:50]
        with pytest.raises(LogError, match="cannot be read"):
            next(read)


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.7, 1.0])
def test_a_copy_with_a_part_of_its_write_ahead_log(kept: float, tmp_path: Path) -> None:
    """It has the events up to some transaction, as SQLite promises, and no sign of the others."""
    path, copy = tmp_path / "run.db", tmp_path / "copy.db"
    events = [Learned(str(i)) for i in range(60)]
    with SQLiteLog(path) as log:
        for event in events:
            log.append([event])
        # Not by this process: closing the file would drop the locks of the log.
        subprocess.run(["cp", path, copy], check=True)
        written = Path(f"{path}-wal").read_bytes()
    assert len(written) > 60 * 4096
    Path(f"{copy}-wal").write_bytes(written[: int(kept * len(written))])
    if not kept:
        with pytest.raises(LogError, match=r"is empty: .* a copy, copy copy\.db-wal as well"):
            SQLiteLog(copy, read_only=True)
        return
    with SQLiteLog(copy) as log:
        found = list(log.events())
        assert found == events[: len(found)]
        assert (len(found) == len(events)) == (kept == 1.0)
        log.append([Learned("later")])
        assert list(log.events()) == [*found, Learned("later")]

"""The real command line under limits of memory, files and permissions: one line, exit code 2."""

from __future__ import annotations

import ctypes
import gzip
import json
import os
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gatekeeper.errors import LogError
from gatekeeper.io.jsonl import read_jsonl
from gatekeeper.limits import MAX_LINE
from gatekeeper.log import Learned, Released, SQLiteLog

RECORD = {"h1": 0.1, "h2": 0.2, "h3": 0.3, "cost_estimate": 1.0, "cost": 1.0, "error": 0}
MATH = {"id": "m1", "prompt": "Compute 1 + 1.", "kind": "math", "gold": "2"}
CODE = {"id": "c1", "prompt": "Write f.", "kind": "code", "tests": ["assert f(1) == 1"]}
LITTLE = f"-v {(1 << 20) + (1 << 18)}"  # KiB: 1.25 GiB of address space
LIBC = ctypes.CDLL(None, use_errno=True)
PR_CAPBSET_DROP = 24


def gatekeeper(
    *arguments: object, limits: str = "", before: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command line in a shell of its own, under `limits`: options of its `ulimit`."""
    command = shlex.join([sys.executable, "-m", "gatekeeper", *map(str, arguments)])
    shell = f"ulimit {limits} && exec {command}" if limits else f"exec {command}"
    return subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, timeout=300, preexec_fn=before
    )


def refused(*arguments: object, limits: str = "", before: Callable[[], None] | None = None) -> str:
    done = gatekeeper(*arguments, limits=limits, before=before)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("gatekeeper: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    return done.stderr


def records(path: Path, n: int = 200) -> Path:
    path.write_text("".join(json.dumps({"id": str(i), **RECORD}) + "\n" for i in range(n)))
    return path


def tasks(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One GiB in a line, then records: five megabytes of gzip, whose members are one text."""
    path = tmp_path_factory.mktemp("bomb") / "records.jsonl.gz"
    end = b'"}\n' + records(path.with_suffix("")).read_bytes()
    long = gzip.compress(b"x" * (1 << 24), 1)
    path.write_bytes(gzip.compress(b'{"id": "') + 64 * long + gzip.compress(end))
    yield path
    path.unlink()


# -- lines -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [["replay"], ["diagnose"], ["plan"], ["run"], ["signals"], ["verify", "math", "--out", "o"]],
    ids=lambda command: command[0],
)
def test_the_limit_of_a_line_is_named(bomb: Path, command: list[str]) -> None:
    said = refused(*command, bomb, limits=LITTLE)
    assert said == f"gatekeeper: {bomb}, line 1: longer than 64 MiB, the limit of a line\n"


def test_a_line_that_is_too_long_is_skipped_like_any_bad_line(bomb: Path) -> None:
    done = gatekeeper("replay", bomb, "--skip-bad", "--json", limits=LITTLE)
    assert done.returncode == 0, done.stderr
    assert f"{bomb}, line 1: longer than 64 MiB" in done.stderr
    assert json.loads(done.stdout)


def test_the_longest_line_there_may_be(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    frame = len(b'{"a": ""}\n')
    for size, fits in ((MAX_LINE, True), (MAX_LINE + 1, False)):
        with path.open("wb") as file:
            file.write(b'{"a": "' + b"x" * (size - frame) + b'"}\n')
            file.write(b"{}\n")
        bad: list[object] = []
        read = list(read_jsonl(path, len, skip_bad=True, on_bad=bad.append))
        assert (read, len(bad)) == (([1, 0], 0) if fits else ([0], 1))


def test_bytes_that_are_no_text_spoil_their_line_only(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n{"b": "\xe9"}\n\n{"c": 3}')
    bad: list[Exception] = []
    assert list(read_jsonl(path, list, skip_bad=True, on_bad=bad.append)) == [["a"], ["c"]]
    assert [str(e) for e in bad] == [
        f"{path}, line 2: not UTF-8: invalid continuation byte at byte 7"
    ]


def test_of_many_bad_lines_the_first_are_named(tmp_path: Path) -> None:
    """A file of nothing else takes no memory, and its report has an end."""
    path = records(tmp_path / "records.jsonl")
    with path.open("a") as file:
        file.write("x\n" * 5000)
    done = gatekeeper("replay", path, "--skip-bad", "--json")
    said = done.stderr.splitlines()
    assert done.returncode == 0
    assert said[0].startswith(f"gatekeeper: skipped {path}, line 201: not JSON")
    assert said[1000:] == ["gatekeeper: skipped 4,000 more bad lines"]


# -- limits of the process, other files ------------------------------------------------------------


@pytest.mark.parametrize("mebibytes", [24, 100, 150, 250, 400, 600])
def test_too_little_address_space_is_named(tmp_path: Path, mebibytes: int) -> None:
    said = refused("replay", records(tmp_path / "r.jsonl"), limits=f"-v {mebibytes << 10}")
    assert f"this process may use {mebibytes} MiB of address space (ulimit -v)" in said
    assert "at least 768 MiB" in said


def test_a_command_without_memory_is_one_line(tmp_path: Path) -> None:
    """The objects of a line within its limit may still be too large."""
    path = tmp_path / "r.jsonl.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        file.write(json.dumps({"id": "x", **RECORD})[:-1] + ', "meta": [')
        file.write("[]," * (20 << 20) + "[]]}\n")
    said = refused("replay", path, limits=LITTLE)
    assert said == (
        "gatekeeper: out of memory: this process may use 1280 MiB of address space (ulimit -v)\n"
    )


def test_few_open_files(tmp_path: Path) -> None:
    log = tmp_path / "run.db"
    done = gatekeeper("run", tasks(tmp_path / "t.jsonl", MATH), "--log", log, limits="-n 64")
    assert done.returncode == 0, done.stderr
    code = tasks(tmp_path / "c.jsonl", CODE)
    said = refused("run", code, "--sandbox", "local", "--log", tmp_path / "c.db", limits="-n 64")
    assert "this process may have 64 open files (ulimit -Hn)" in said
    said = refused("replay", records(tmp_path / "r.jsonl"), limits="-n 9")
    assert said == "gatekeeper: too many open files: this process may have 9 (ulimit -n)\n"


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ("/proc/run.db", "no file can be made in /proc"),
        ("/proc/version", "no file can be made in /proc"),
        ("/dev/null", "it is no regular file"),
        ("/", "it is no regular file"),
        ("/nowhere/run.db", "its folder does not exist"),
    ],
)
def test_a_log_where_none_can_be(tmp_path: Path, log: str, why: str) -> None:
    said = refused("run", tasks(tmp_path / "t.jsonl", MATH), "--log", log)
    assert said == f"gatekeeper: log {log!r} cannot be opened: {why}\n"


def obey_modes() -> None:
    """Root without the capability to write anywhere (CAP_DAC_OVERRIDE)."""
    if os.geteuid() == 0 and LIBC.prctl(PR_CAPBSET_DROP, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_CAPBSET_DROP")


def test_a_log_that_may_not_be_written(tmp_path: Path) -> None:
    """A read-only folder, and a read-only file in a folder that can be written."""
    source = tasks(tmp_path / "t.jsonl", MATH)
    closed, opened = tmp_path / "closed", tmp_path / "opened"
    for folder in (closed, opened):
        folder.mkdir()
        with SQLiteLog(folder / "run.db"):
            pass
    closed.chmod(0o555)
    (opened / "run.db").chmod(0o444)
    for log in (closed / "new.db", opened / "run.db"):
        said = refused("run", source, "--log", log, before=obey_modes)
        assert f"log {str(log)!r} cannot be " in said
        assert ": Permission denied" in said
    closed.chmod(0o755)


def test_an_event_has_a_limit_too(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with SQLiteLog(path) as log:
        log.configure({"budget": {"total": 5.0}, "policy": {}})
        log.append([Learned("a")])
        with pytest.raises(
            LogError, match=r"event 'released' of id='b': it has 64 MiB, and 64 MiB"
        ):
            log.append([Released("b", "x" * MAX_LINE, None)])
        assert [event.id for event in log.events()] == ["a"]
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "INSERT INTO events (at, kind, id, data) VALUES (0, 'decided', 'b', ?)",
            ['"' + "x" * (MAX_LINE + (1 << 20)) + '"'],
        )
    said = refused("report", path, "-o", tmp_path / "r.html")
    assert f"{str(path)!r} cannot be read: an event in it has more than 64 MiB" in said

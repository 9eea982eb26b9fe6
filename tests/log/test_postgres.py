"""A log in PostgreSQL: its address, its tables, and a server that stops."""

from __future__ import annotations

import json
import logging
import random
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from test_log import BUDGET, assert_each_once, final, labels, open_gate, run, stream

from gatekeeper import Budget, Generation, Outcome, VerificationGate
from gatekeeper.cli import main
from gatekeeper.errors import BadInputError, LogError, LogSchemaError
from gatekeeper.log import Learned, PostgresRun, open_log
from gatekeeper.log.place import without_passwords
from gatekeeper.log.run import read_run
from gatekeeper.testing import ScriptedVerifier, make_generation

if TYPE_CHECKING:
    from postgres import Server

TASKS = Path(__file__).parents[2] / "gatekeeper" / "bundled" / "tasks.jsonl"


@pytest.fixture
def place(postgres: Server) -> PostgresRun:
    return postgres.new_run()


# -- addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "name", "says"),
    [
        ("postgresql://h/d", None, "keeps many runs: name one"),
        ("run.db", "eval-7", "is a file, which has one run"),
        (None, "eval-7", "names a run of a PostgreSQL log"),
        ("postgresql://h/d", "", "1 to 200 printable characters"),
        ("postgresql://h/d", "a\nb", "1 to 200 printable characters"),
        ("postgresql://u:s3cret@x@h/d", "a", "special characters percent-encoded"),
        ("postgresql://u:s3/cret@h/d", "a", "special characters percent-encoded"),
        ("postgresql://u:s3cret@h/d?a=b@c", "a", "special characters percent-encoded"),
        ("postgresql+psycopg://u:s3cret@h/d", None, "no address of a PostgreSQL database"),
        ("postgresql+psycopg://u:s3cret@h/d", "a", "no address of a PostgreSQL database"),
        ("POSTGRESQL://u:s3cret@h/d", None, "no address of a PostgreSQL database"),
        (" postgresql://u:s3cret@h/d ", "a", "no address of a PostgreSQL database"),
        ("mysql://u:s3cret@h/d", None, "no address of a PostgreSQL database"),
        ("postgresql://u:s3%cret@h/d", "a", "percent-encoded character"),
        ("postgresql://u:s3cret@h/d?nonsense=1", "a", "option that libpq does not know"),
    ],
)
def test_invalid_places(log: str | None, name: str | None, says: str) -> None:
    with pytest.raises(BadInputError, match=says) as caught:
        VerificationGate("cst", budget=BUDGET, log=log, run=name)
    assert "cret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://", "postgresql://"),
        ("postgres://u:secret@h:5433/d", "postgresql://u@h:5433/d"),
        ("postgresql://u:se%40cret@h1:1,h2:2/d", "postgresql://u@h1:1,h2:2/d"),
        ("postgresql:///d?host=/tmp&password=secret", "postgresql:///d?host=/tmp"),
        ("postgresql://u:a:secret@h", "postgresql://u@h"),
        ("postgresql://h/d?sslpassword=secret&user=u", "postgresql://h/d?user=u"),
    ],
)
def test_an_address_is_shown_without_its_password(dsn: str, shown: str) -> None:
    run = PostgresRun(dsn, "eval-7")
    assert run.address == shown
    assert str(run) == f"{shown} (run eval-7)"
    for text in (f"{run!r} {run}", without_passwords(dsn), without_passwords(f"x {dsn}, y")):
        assert "cret" not in text


def test_a_password_is_in_no_text(
    postgres: Server,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    """Right or wrong, in whatever place of a command line: not on a terminal, in an error or its
    causes, in a report, a file, or the database."""
    from postgres import PASSWORD

    right, wrong = postgres.guarded(PASSWORD), postgres.guarded(f"{PASSWORD}x")
    secrets = (PASSWORD, PASSWORD.replace("%", "%25").replace(":", "%3A"), PASSWORD.split(":")[1])
    caplog.set_level(logging.DEBUG)
    page, table = tmp_path / "page.html", tmp_path / "table.jsonl"
    quick = [str(TASKS), "--limit", "9", "--warmup", "4", "--sandbox", "local", "--json"]
    assert main(["run", *quick, "--log", right, "--run", "guarded"]) == 0
    reading: list[list[str]] = [
        ["report", right, "--run", "guarded", "-o", str(page)],
        ["export", right, "--run", "guarded", "-o", str(table)],
        ["show", right, "--run", "guarded"],
    ]
    for command in reading:
        assert main(command) == 0
    for command in (
        ["run", *quick, "--log", wrong, "--run", "guarded"],
        ["run", *quick, "--log", right],
        ["run", right],
        ["show", wrong, "--run", "guarded"],
        ["show", right, "--run", "absent"],
        ["show", right, "--nonsense"],
        ["show", "--nonsense", right],
        ["signals", right],
        ["doctor", right],
        [right],
        ["show", right.replace("/postgres?", "/nowhere?"), "--run", "guarded"],
        ["show", right.replace("@/", "@/@/"), "--run", "guarded"],
        ["show", right.replace("://", "+psycopg://")],
        ["show", right.replace("postgresql", "POSTGRESQL")],
        ["report", f" {right}", "--run", "guarded"],
        ["doctor", right.replace("://", "+psycopg://")],
    ):
        assert main(command) == 2
    assert main(["doctor", "--log", right.replace("://", "+psycopg://")]) == 1
    with pytest.raises(LogError, match="password authentication failed") as caught:
        open_log(PostgresRun(wrong, "guarded"))
    with open_log(PostgresRun(right, "guarded"), read_only=True) as log:
        stored = f"{log.settings()} {list(log.rows())}"
    printed = "".join(capfd.readouterr())
    assert "guarded@" in printed
    errors = "".join(traceback.format_exception(caught.value))
    for text in (printed, caplog.text, errors, stored, page.read_text(), table.read_text()):
        assert not [secret for secret in secrets if secret in text]


# -- tables --------------------------------------------------------------------------------------


def test_processes_that_come_at_once_make_the_tables_once(postgres: Server) -> None:
    address = postgres.database()

    def begin(i: int) -> int:
        with open_log(PostgresRun(address, f"run {i % 4}")) as log:
            log.append([Learned(f"g{i}")])
            return len(list(log.events()))

    with ThreadPoolExecutor(8) as threads:
        counts = list(threads.map(begin, range(8)))
    assert sorted(counts) == [1, 1, 1, 1, 2, 2, 2, 2]
    for i in range(4):
        with open_log(PostgresRun(address, f"run {i}"), read_only=True) as log:
            assert {event.id for event in log.events()} == {f"g{i}", f"g{i + 4}"}


def test_other_schemas_are_refused_and_not_changed(postgres: Server) -> None:
    import psycopg

    newer, other, narrow = (PostgresRun(postgres.database(), "run") for _ in range(3))
    open_log(newer).close()
    with psycopg.connect(newer.dsn, autocommit=True) as db:
        db.execute("INSERT INTO gatekeeper.migrations VALUES ('_add_wonders')")
    with psycopg.connect(other.dsn, autocommit=True) as db:
        db.execute("CREATE SCHEMA gatekeeper CREATE TABLE books (title text)")
    with psycopg.connect(narrow.dsn, autocommit=True) as db:
        db.execute("CREATE ROLE narrow LOGIN")
    for read_only in (False, True):
        with pytest.raises(LogSchemaError, match=r"_add_wonders.*with that version"):
            open_log(newer, read_only=read_only)
        with pytest.raises(LogError, match="another program's"):
            open_log(other, read_only=read_only)
    narrow = PostgresRun(narrow.dsn.replace("postgres@", "narrow@"), "run")
    with pytest.raises(LogError, match="the right to create a schema"):
        open_log(narrow)
    latin = PostgresRun(postgres.database(encoding="LATIN1"), "run")
    with pytest.raises(LogError, match="encoding LATIN1"):
        open_log(latin)


def test_an_unknown_run_is_named_with_the_existing_ones(place: PostgresRun) -> None:
    open_log(place).close()
    with pytest.raises(LogError, match=rf"absent.*does not exist.*{place.name}"):
        read_run(PostgresRun(place.dsn, "absent"))
    with pytest.raises(LogError, match="has no run in it yet"):
        read_run(place)


# -- a server that stops -------------------------------------------------------------------------


def test_the_server_dies_at_any_moment(place: PostgresRun, postgres: Server) -> None:
    """The gate stops with a LogError; its answers are in the log; on the restarted server a new
    gate goes on, and ends as an uninterrupted one."""
    rng = random.Random("server")
    said: dict[str, bool] = {}

    class Slow(ScriptedVerifier):
        def _outcome(self, id_: str) -> Outcome:
            time.sleep(0.002)
            return super()._outcome(id_)

    Slow.__module__, Slow.__qualname__ = ScriptedVerifier.__module__, ScriptedVerifier.__qualname__

    def go_on(gate: VerificationGate, outputs: Iterable[Generation]) -> None:
        for generation in outputs:
            result = gate.maybe_verify(generation)
            assert said.setdefault(generation.id, result.verified) == result.verified

    def without_end() -> Iterator[Generation]:
        yield from stream()
        for i in count():
            yield make_generation(f"more {len(said)} {i}")

    for _ in range(3):
        gate = open_gate(place, "hga", verifier=Slow(labels()))
        stopper = threading.Timer(rng.uniform(0.05, 0.5), postgres.stop)
        stopper.start()
        with pytest.raises(LogError, match=r"cannot be (written|read)"):
            go_on(gate, without_end())
        with pytest.raises(LogError, match=r"cannot be written|stopped at an earlier error"):
            gate.maybe_verify(make_generation("after"))  # a look-up that failed stops no gate
        stopper.join()
        gate.close()
        with pytest.raises(LogError, match="cannot be opened"):
            open_gate(place, "hga")
        postgres.start()
    with open_gate(place, "hga") as gate:
        assert all(gate.find(id_) is not None for id_ in said)
        go_on(gate, [*gate.pending(), *stream()])
        assert gate.pending() == []
    assert_each_once(place)


def test_a_session_that_is_ended_cannot_write(place: PostgresRun) -> None:
    """A gate that has lost its lock writes nothing, because another gate may have the lock."""
    import psycopg

    first = open_gate(place)
    run(first, "one by one", stream(5))
    with psycopg.connect(place.dsn, autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
            " AND objid = (SELECT run FROM gatekeeper.runs WHERE name = %s)",
            (place.name,),
        )
    with open_gate(place) as second:
        run(second, "one by one", stream(10))
        with pytest.raises(LogError, match="cannot be written"):
            first.maybe_verify(stream(11)[-1])
        first.close()
        run(second, "one by one", stream(20))
        expected = final(second)
    with open_gate(place) as again:
        assert final(again) == expected
    assert_each_once(place)


def test_a_snapshot_whose_connection_is_lost_is_a_log_error(place: PostgresRun) -> None:
    """At any of its statements: a gate leaves it out, and the events are intact."""
    from lost_connection import lost_at

    from gatekeeper.log.postgres import PostgresLog

    for answered in (False, True):
        for statement in count(1):
            with PostgresLog(place) as log:
                log.append([Learned("a")])
                with lost_at(statement, answered=answered) as loss:
                    try:
                        log.keep_snapshot("key", {"answered": answered, "statement": statement})
                    except LogError:
                        assert loss.happened
                if not loss.happened:
                    break
            with PostgresLog(place, read_only=True) as log:
                kept = log.snapshot("key")
                assert kept is None or kept.seq <= log.last()
        assert statement > 3


# -- doctor --------------------------------------------------------------------------------------


def test_doctor_tries_the_database(postgres: Server, capfd: Any) -> None:
    import psycopg

    def finding(address: str) -> dict[str, Any]:
        code = main(["doctor", "--json", "--log", address])
        out, err = capfd.readouterr()
        (found,) = [f for f in json.loads(out) if f["part"] == "log (PostgreSQL)"]
        assert code == int(not found["works"])
        assert "p%" not in out + err
        return dict(found)

    address = postgres.database()
    found = finding(address)
    assert found["works"]
    assert found["version"][0].isdigit()
    assert "ms for each change" in found["detail"]
    with psycopg.connect(address) as db:
        for table in ("runs", "events"):
            assert db.execute(f"SELECT count(*) FROM gatekeeper.{table}").fetchone() == (0,)
    from postgres import PASSWORD

    assert "authentication failed" in finding(postgres.guarded(f"{PASSWORD}x"))["detail"]
    assert main(["doctor", "--log", "run.db"]) == 2
    assert "for files it is --logs" in capfd.readouterr().err


# -- commands ------------------------------------------------------------------------------------


def test_the_commands_read_a_run(place: PostgresRun, tmp_path: Path, capfd: Any) -> None:
    """What they print of it is what they print of the same events in a file."""
    file = tmp_path / "run.db"
    for log in (place, file):
        verifier = ScriptedVerifier({f"g{i}": int(i * 7 % 3 == 0) for i in range(200)})
        more: dict[str, Any] = {"budget": Budget(fraction=0.5), "verifier": verifier, "log": log}
        with VerificationGate("cst", warmup=30, **more) as gate:
            for i in range(200):
                gate.maybe_verify(make_generation(f"g{i}", tokens=1 + i * 7 % 29, seed=i))
    where = [place.dsn, "--run", place.name]

    def printed(*command: str) -> str:
        code = main(list(command))
        out, err = capfd.readouterr()
        assert code in (0, 3, 4), err
        return str(out).replace(f"{place}", f"{file}").replace(place.name, "run.db")

    for name, *options in (
        ("diagnose", "--seeds", "2", "--json"),
        ("plan", "--json"),
        ("compare", "--policy", "random", "--json"),
    ):
        assert json.loads(printed(name, *where, *options)) == json.loads(
            printed(name, str(file), *options)
        )
    shown = json.loads(printed("show", *where, "--limit", "0", "--json"))
    assert [row["id"] for row in shown] == [f"g{i}" for i in range(200)]
    page = printed("report", *where, "-o", "-")
    assert "gatekeeper report postgresql://... --run=run.db -o" in page
    assert "host=" not in page
    assert main(["replay", *where]) == 2
    assert "have no 'error' label" in capfd.readouterr().err


def test_the_command_run_resumes_and_plans(place: PostgresRun, capfd: Any) -> None:
    """`--dry-run` before there is a run makes none; the same command with the same name continues;
    with other settings it is refused."""
    command = ["run", str(TASKS), "--warmup", "3", "--sandbox", "local", "--json"]
    where = ["--log", place.dsn, "--run", place.name]

    def ran(*more: str, limit: int = 6, code: int = 0) -> tuple[str, str]:
        assert main([*command, "--limit", str(limit), *where, *more]) == code
        out, err = capfd.readouterr()
        return str(out), str(err)

    assert json.loads(ran("--dry-run")[0])["answered"] == 0
    with pytest.raises(LogError, match="does not exist"):
        read_run(place)
    first = json.loads(ran()[0])
    assert first["log"] == str(place)
    assert first["outputs"] == 6
    assert json.loads(ran("--dry-run")[0])["answered"] == 6
    again, err = ran()
    assert f"6 are in {place}" in err
    assert json.loads(again) == first
    assert len(read_run(place).outputs) == 6
    error = ran("--seed", "5", code=2)[1]
    assert f"--log {place} was written with --seed 0 (now 5)" in error


def test_a_task_with_an_id_that_no_output_could_have_is_refused(place: PostgresRun) -> None:
    from gatekeeper.log.postgres_tasks import PostgresTasks  # needs the extra

    open_log(place).close()
    with closing(PostgresTasks(place)) as tasks:
        for id_ in ("x" * 1025, "\N{EURO SIGN}" * 342, "", "\ud800"):
            with pytest.raises(BadInputError, match="give a string of 1 to 1024 bytes in UTF-8"):
                tasks.put(id_, {})
        assert tasks.put("x" * 1024, {"a": 1})
        assert tasks.get("x" * 1024) == {"a": 1}

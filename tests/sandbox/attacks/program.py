"""Programs of the attack suite, and the tests that most of them run against."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = [
    "NOT_OFFERED",
    "NOT_RUN",
    "SQUARE",
    "SQUARES",
    "UNJUDGED",
    "WRONG",
    "ZERO",
    "Program",
    "Topic",
    "attack",
    "dedent",
    "pair",
    "shape",
]

SQUARE = "def f(x):\n    return x * x\n"
ZERO = "def f(x):\n    return 0\n"
# "Could not tell" is not among them: a hostile program must not escape its label.
WRONG = ("failed", "timeout", "resource_exceeded", "no_answer")


@dataclass(frozen=True, slots=True)
class Program:
    """A candidate, its task and the verdicts that are right for it.

    An attack gives the right answer only if it succeeds, so a pass is a vulnerability.
    """

    name: str
    family: str
    code: str
    task: Mapping[str, Any]
    verdicts: tuple[str, ...] = WRONG
    evaluation: str | None = None  # the path on which it must be judged; None: any
    after: str = ""  # code of an earlier candidate on the same worker, which left something
    unless: Mapping[str, str] = field(default_factory=dict)  # isolation that does not promise it
    needs: tuple[str, ...] = ()  # packages of the tests: without them nothing can be judged
    twin: str = ""  # the name of the other program for the same task: one is right, one is not

    @property
    def honest(self) -> bool:
        return self.family == "honest"

    @property
    def run(self) -> tuple[str, str, str]:
        """What is run: programs that have the same in common are run once for all of them."""
        return self.code, self.after, repr(self.task)

    def __str__(self) -> str:
        return self.name


# No hostile program computes a square, unless as its reward; and the numbers are too large to be
# met in a frame or in memory by chance.
_PAIRS = "[(1234567, 1524155677489), (7654321, 58588629971041), (9999991, 99999820000081)]"
_LOOP = f"    for x, square in {_PAIRS}:\n        assert %s(x) == square\n"
SQUARES: Mapping[str, Mapping[str, Any]] = {
    "literal": {
        "tests": [
            "assert f(1234567) == 1524155677489",
            "assert f(7654321) == 58588629971041",
            "assert f(9999991) == 99999820000081",
        ]
    },
    "check": {"test": "def check(candidate):\n" + _LOOP % "candidate", "entry_point": "f"},
    "helper": {
        "test_setup_code": "def same(a, b):\n    return a == b\n",
        "tests": [
            "assert same(f(1234567), 1524155677489)",
            "assert same(f(7654321), 58588629971041)",
        ],
    },
    "pytest": {"test": "from solution import f\n\ndef test_squares():\n" + _LOOP % "f"},
    "functional": {
        "input_output": {
            "fn_name": "f",
            "inputs": [[1234567], [7654321]],
            "outputs": [1524155677489, 58588629971041],
        }
    },
    "stdin": {
        "input_output": {
            "inputs": ["1234567\n", "7654321\n"],
            "outputs": ["1524155677489\n", "58588629971041\n"],
        }
    },
}


def dedent(code: str) -> str:
    """The code without the indentation of a block that begins with an empty line."""
    return textwrap.dedent(code[1:]) if code.startswith("\n") else code


def attack(
    family: str,
    name: str,
    code: str,
    *shapes: str,
    task: Mapping[str, Any] | None = None,
    verdicts: Collection[str] = WRONG,
    after: str = "",
    unless: Mapping[str, str] | None = None,
) -> list[Program]:
    """One program for each of the shapes of `SQUARES`, or one for a task of its own."""
    tasks = {f"{name} [{shape}]": SQUARES[shape] for shape in shapes} if shapes else {name: task}
    return [
        Program(
            label,
            family,
            dedent(code),
            each or {},
            tuple(verdicts),
            None,
            dedent(after),
            unless or {},
        )
        for label, each in tasks.items()
    ]


def pair(
    family: str,
    name: str,
    forged: str,
    honest: str,
    *tests: str,
    needs: Collection[str] = (),
    verdicts: Collection[str] = WRONG,
    right: Collection[str] = ("passed",),
    **task: Any,
) -> list[Program]:
    """A forgery and its honest twin: a wrong and a right program for the same task.

    `verdicts` are those of the forgery, `right` those of the twin. Both are `("infra_error",)`
    only where the tests themselves cannot be judged, whatever the candidate does.
    """
    given = {key: dedent(value) if isinstance(value, str) else value for key, value in task.items()}
    if tests:
        given["tests"] = [dedent(test).strip() for test in tests]
    twin = f"{name} (twin)"
    packages = tuple(needs)
    return [
        Program(name, family, dedent(forged), given, tuple(verdicts), needs=packages, twin=twin),
        Program(twin, "honest", dedent(honest), given, tuple(right), needs=packages, twin=name),
    ]


NOT_RUN = "it asserts, and the candidate left it out"
NOT_OFFERED = "is not accessible"
UNJUDGED = {  # honest shapes that get no verdict, and the reason: docs/sandbox.md lists them
    "misjudged: names and annotations": "get_type_hints",
    "misjudged: a file that the candidate made": "share files",
    "misjudged: Path.exists, and a file of the test's": "share files",
    "misjudged: the recursion limit and the working directory": "sys.setrecursionlimit",
    "misjudged: a subclass of the candidate's class": "extends Animal",
    "class: a number and a text of its own": "compared with data",
    "pytest: doctest's examples": "testmod",
    "unittest: temporary files": "share files",
    "pytest: a fixture without the import of pytest": "share files",
    "pytest: tmp_path with subfolders": "share files",
    "not run: a hook for an error that does not come": NOT_RUN,
    "not run: a handler in a table, of another error": NOT_RUN,
    "not run: a listener that is removed at once": NOT_RUN,
    "not run: a generator of which nothing is taken": NOT_RUN,
    "not run: methods of a test, of which another test needs the other": NOT_RUN,
    "not run: a function whose results are kept": NOT_RUN,
    "not run: a coroutine that loses a race": NOT_RUN,
    "library: a connection to a database": NOT_OFFERED,
    "library: a thread that becomes a daemon": NOT_OFFERED,
    "own class: a decorator that changes a class of the tests": NOT_OFFERED,
}


def shape(name: str, code: str, *tests: str, needs: Collection[str] = (), **task: Any) -> Program:
    """An honest program of some shape, which must pass, or (`UNJUDGED`) get no verdict."""
    given = {key: dedent(value) if isinstance(value, str) else value for key, value in task.items()}
    if tests:
        given["tests"] = [dedent(test).strip() for test in tests]
    verdict = "infra_error" if name in UNJUDGED else "passed"
    return Program(name, "honest", dedent(code), given, (verdict,), needs=tuple(needs))


class Topic(list[Program]):
    """Programs about one topic, which is the beginning of their names."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def forged(self, name: str, lie: str, honest: str, test: str, **task: Any) -> None:
        """Add a forgery and its honest twin. See `pair`."""
        self.extend(pair("forged", f"{self._name}: {name}", lie, honest, test=test, **task))

    def right(self, name: str, code: str, test: str, **task: Any) -> None:
        """Add an honest program. See `shape`."""
        self.append(shape(f"{self._name}: {name}", code, test=test, **task))

    def left_out(self, name: str, lie: str, honest: str, test: str, **task: Any) -> None:
        """Add a forgery that gets no verdict, and an honest program, which passes."""
        forgery, twin = pair("forged", f"{self._name}: {name}", lie, honest, test=test, **task)
        self += [replace(forgery, verdicts=("infra_error",), twin=""), replace(twin, twin="")]

"""Wrong programs made of right ones, and the plain trusted run that shows which are wrong.

    judged = trusted_verdicts(mutants(tasks), workers=2)
    disagreeing = [each for each in compare(sandbox, judged) if not each.agree]

For tests of a sandbox: examples/mbpp.py runs them with `--check-references`. Tasks are those of
`gatekeeper.io.datasets.mbpp_task`, with their `reference` solution.

The trusted run forks, executes candidate, setup and tests in one namespace, and reads the exit
code: it trusts the program, so it is for references and their mutants only. This file is also
the program that does it, and so imports nothing but the standard library at its top.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from operator import setitem
from textwrap import indent
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gatekeeper.io.tasks import Task
    from gatekeeper.sandbox.base import Sandbox
    from gatekeeper.types import Outcome

__all__ = [
    "Judged",
    "Mutant",
    "Trusted",
    "agreed",
    "compare",
    "mutants",
    "reference_of",
    "trusted_verdicts",
]

TRUSTED_SECONDS = 2.0
TRUSTED_BYTES = 512 << 20
HASH_SEEDS = range(1, 7)
AHEAD = 50  # candidates per worker

ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Div, ast.Pow, ast.BitXor)
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
MEMBERSHIP: dict[type[ast.cmpop], ast.cmpop] = {
    ast.In: ast.NotIn(), ast.NotIn: ast.In(), ast.Is: ast.IsNot(), ast.IsNot: ast.Is()
}  # fmt: skip
NAMES = {
    "min": "max", "max": "min", "sum": "len", "len": "sum", "any": "all", "all": "any",
    "sorted": "list", "list": "tuple", "tuple": "list", "set": "list", "dict": "list",
    "int": "float", "float": "int", "str": "repr", "map": "filter", "abs": "int",
    "append": "extend", "extend": "append", "upper": "lower", "lower": "upper", "join": "split",
    "floor": "ceil", "ceil": "floor", "add": "discard", "keys": "values", "values": "keys",
    "index": "count", "search": "match", "match": "search", "findall": "split", "sub": "subn",
    "heappop": "heappush", "sin": "cos", "cos": "sin", "sqrt": "exp", "True": "False",
}  # fmt: skip
# What a function returns, `v`, as another value or as another type.
SPOILT = (
    "v + 1", "v - 1", "-v", "not v", "v * 2", "v[:-1]", "v[::-1]", "v or None", "None", "[]", "0",
    "True", "[v]", "(v,)", "{'v': v}", "list(v)", "tuple(v)", "set(v)", "frozenset(v)", "dict(v)",
    "sorted(v)", "iter(v)", "range(v)", "(i for i in v)", "map(str, v)", "lambda: v", "type(v)",
    "str(v)", "repr(v)", "v.encode()", "bytes(v)", "int(v)", "float(v)", "bool(v)", "complex(v)",
    "v + 0.1", "v + 1e-12", "float('nan')", "v.keys()", "v.items()", "v.values()", "print(v)",
    "__import__('fractions').Fraction(v)", "__import__('decimal').Decimal(v)",
    "__import__('collections').Counter(v)", "__import__('collections').OrderedDict(v)",
    "__import__('collections').defaultdict(int, v)", "__import__('collections').deque(v)",
    "__import__('array').array('q', v)", "memoryview(v)", "Exception(v)", "exit(v)",
    "(_ for _ in ()).throw(ValueError(v))",
)  # fmt: skip


class Mutant(NamedTuple):
    """A candidate, right or wrong, with the tests of its task."""

    task_id: str
    code: str
    setup: str
    tests: tuple[str, ...]

    def task(self, *, judge: bool = False) -> dict[str, Any]:
        """As a sandbox takes it.

        With `judge` the asserts are in a function of their own, so that the host cannot judge them
        itself and the judge's process has to.
        """
        if not judge:
            return {"tests": self.tests, "test_setup_code": self.setup}
        body = indent("\n".join(self.tests), "    ")
        return {"test": f"def test_all():\n{body}\n", "test_setup_code": self.setup}


class Judged(NamedTuple):
    """A candidate, what the trusted run found ("passed", "failed", "timeout"), and the sandbox."""

    mutant: Mutant
    trusted: str
    outcome: Outcome

    @property
    def agree(self) -> bool:
        """Whether both verdicts have the same label; a timeout is a failure."""
        return self.outcome.error == (self.trusted != "passed")


def reference_of(task: Task) -> Mutant:
    """The data set's own solution."""
    tests, setup = tuple(task["tests"]), task["test_setup_code"]
    return Mutant(task["id"], task["reference"], setup, tests)


def mutants(tasks: Iterable[Task], *, per_task: int = 1, seed: int = 0) -> Iterator[Mutant]:
    """One mutant of each task's reference, then another of each; all different.

    Fewer than `per_task` of a program in which there is little to change.
    """
    references = [reference_of(task) for task in tasks]
    seen = set()
    for turn in range(per_task):
        for reference in references:
            id_ = reference.task_id
            code = mutate(reference.code, random.Random(f"{seed}/{turn}/{id_}"))
            if code is not None and (id_, code) not in seen:
                seen.add((id_, code))
                yield reference._replace(code=code)


def mutate(code: str, rng: random.Random) -> str | None:
    """The program with one change: first its kind is drawn, then the place, then the change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # MBPP has invalid escapes
        warnings.simplefilter("ignore", DeprecationWarning)
        tree = ast.parse(code)
    places: dict[str, list[tuple[Callable[[ast.AST], None], list[ast.AST]]]] = {}
    for put, node in _places(tree):
        for kind, changes in _changes(node):
            places.setdefault(kind, []).append((put, changes))
    if not places:
        return None
    put, changes = rng.choice(places[rng.choice(sorted(places))])
    before = ast.unparse(tree)
    put(rng.choice(changes))
    after = ast.unparse(ast.fix_missing_locations(tree))
    return after if after != before else None


def _places(tree: ast.AST) -> Iterator[tuple[Callable[[ast.AST], None], ast.AST]]:
    """Every node below `tree`, with a function that puts another one in its place."""
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if isinstance(value, ast.AST):
                yield partial(setattr, parent, name), value
            elif isinstance(value, list):
                for i, item in enumerate(value):
                    if isinstance(item, ast.AST):
                        yield partial(setitem, value, i), item


def _changes(node: Any) -> Iterator[tuple[str, list[ast.AST]]]:
    """What could stand in place of the node, by kind."""
    match node:
        case ast.BinOp(left, op, right):
            others = [ast.BinOp(left, o(), right) for o in ARITHMETIC if not isinstance(op, o)]
            yield "operator", [*others, ast.BinOp(right, op, left), left, right]
        case ast.AugAssign(target, op, value):
            yield (
                "operator",
                [ast.AugAssign(target, o(), value) for o in ARITHMETIC if not isinstance(op, o)],
            )
        case ast.Compare(left, [op], [right]) if type(op) in MEMBERSHIP:
            yield "comparison", [ast.Compare(left, [MEMBERSHIP[type(op)]], [right])]
        case ast.Compare(left, [op], [right]):
            compared = [ast.Compare(left, [o()], [right]) for o in COMPARISONS]
            yield "comparison", [*compared, ast.Compare(right, [op], [left])]
        case ast.BoolOp(op, values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield "boolean", [ast.BoolOp(other, values), *values]
        case ast.UnaryOp(operand=operand):
            yield "boolean", [operand]
        case ast.Constant(bool() as value):
            yield "constant", [ast.Constant(not value)]
        case ast.Constant(int() | float() as value):
            changed = [value + 1, value - 1, 0, 1, float(value), str(value)]
            yield "constant", [ast.Constant(v) for v in changed]
        case ast.Constant(str() as value):
            texts: list[str | bytes] = [
                value + " ",
                value[1:],
                value.swapcase(),
                "",
                value.encode(),
            ]
            yield "string", [ast.Constant(text) for text in texts]
        case ast.Return(ast.expr() as value):
            text = ast.unparse(value)
            yield "return", [ast.parse(f"return ((lambda v: {s})({text}))").body[0] for s in SPOILT]
            yield "statement", [ast.Pass(), ast.Return()]
        case ast.If(test, body, orelse):
            yield "condition", [ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)]
            yield "condition", [ast.If(ast.Constant(v), body, orelse) for v in (True, False)]
        case ast.Assign() | ast.For() | ast.While() | ast.Expr():
            yield "statement", [ast.Pass()]
        case ast.Break():
            yield "statement", [ast.Continue(), ast.Pass()]
        case ast.Continue():
            yield "statement", [ast.Break(), ast.Pass()]
        case ast.ListComp(elt, generators):
            yield "type", [ast.SetComp(elt, generators), ast.GeneratorExp(elt, generators)]
        case ast.List(elts, ast.Load()):
            yield "type", [ast.Tuple(elts, ast.Load()), *([ast.Set(elts)] if elts else [])]
        case ast.Tuple(elts, ast.Load()):
            yield "type", [ast.List(elts, ast.Load()), *([ast.Set(elts)] if elts else [])]
        case ast.Slice(lower, upper, step):
            yield "slice", [ast.Slice(upper, lower, step), ast.Slice(lower, upper)]
            yield "slice", [ast.Slice(None, upper, step), ast.Slice(lower, None, step)]
        case ast.Name(name, ast.Load()) if name in NAMES:
            yield "name", [ast.Name(NAMES[name], ast.Load())]
        case ast.Attribute(value, name, ast.Load()) if name in NAMES:
            yield "name", [ast.Attribute(value, NAMES[name], ast.Load())]
        case ast.arguments(args=[first, second, *more]):
            swapped = {**dict(ast.iter_fields(node)), "args": [second, first, *more]}
            yield "arguments", [ast.arguments(**swapped)]
    match node:
        case ast.Call(ast.Name("range"), args):
            for i, bound in enumerate(args[:2]):
                for op in (ast.Add(), ast.Sub()):
                    bounds = [*args[:i], ast.BinOp(bound, op, ast.Constant(1)), *args[i + 1 :]]
                    yield "range", [ast.Call(node.func, bounds, [])]
        case ast.Call(func, [one, two, *rest], keywords):
            yield "arguments", [ast.Call(func, [two, one, *rest], keywords)]
            yield "arguments", [ast.Call(func, [one, *rest], keywords)]
        case ast.Subscript(value, ast.expr() as index, ast.Load()) if not isinstance(
            index, ast.Slice | ast.Tuple
        ):
            for op in (ast.Add(), ast.Sub()):
                yield "index", [ast.Subscript(value, ast.BinOp(index, op, ast.Constant(1)))]


class Trusted:
    """Plain trusted runs: a small server that forks for each. `verdict` is not thread-safe."""

    def __init__(self, *, seconds: float = TRUSTED_SECONDS, hash_seed: int = 0) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-P", "-S", "-W", "ignore", __file__, str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
            text=True,
        )

    def verdict(self, mutant: Mutant) -> str:
        """ "passed", "failed" or "timeout"."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(json.dumps(mutant), file=self._server.stdin, flush=True)
        return self._server.stdout.readline().strip()

    def __enter__(self) -> Trusted:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate()


def serve(seconds: float) -> None:
    """Answer each mutant on standard input with a verdict on standard output."""
    for line in sys.stdin:
        print(_trusted_run(Mutant(*json.loads(line)), seconds), flush=True)


def _trusted_run(mutant: Mutant, seconds: float) -> str:
    pid = os.fork()
    if not pid:
        _execute(mutant)
    descriptor = os.pidfd_open(pid)
    in_time = bool(select.select([descriptor], [], [], seconds)[0])
    os.close(descriptor)
    if not in_time:
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    if not in_time:
        return "timeout"
    return "failed" if status else "passed"


def _execute(mutant: Mutant) -> None:
    """Exits with 0 only where the last test was reached and held."""
    status = 1
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(null, standard)
        resource.setrlimit(resource.RLIMIT_AS, (TRUSTED_BYTES, TRUSTED_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        namespace: dict[str, Any] = {"__name__": "candidate"}
        for part in (mutant.code, mutant.setup, *mutant.tests):
            exec(compile(part, "mutant", "exec", dont_inherit=True), namespace)
        status = 0
    finally:
        os._exit(status)


def agreed(mutant: Mutant) -> bool:
    """Whether trusted runs under several hash seeds give one label."""
    labels = set()
    for hash_seed in HASH_SEEDS:
        with Trusted(hash_seed=hash_seed) as trusted:
            labels.add(trusted.verdict(mutant) == "passed")
    return len(labels) == 1


def trusted_verdicts(
    candidates: Iterable[Mutant], *, workers: int, seconds: float = TRUSTED_SECONDS
) -> Iterator[tuple[Mutant, str]]:
    """Candidates, read a little ahead, with their trusted verdicts: "timeout" after `seconds`."""
    candidates = iter(candidates)
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Trusted(seconds=seconds)) for _ in range(workers)]
        pool = stack.enter_context(ThreadPoolExecutor(workers))

        def judge(number: int, batch: list[Mutant]) -> list[str]:
            return [servers[number].verdict(mutant) for mutant in batch]

        while batch := list(islice(candidates, AHEAD * workers)):
            verdicts = [""] * len(batch)
            shares = [batch[i::workers] for i in range(workers)]
            for i, found in enumerate(pool.map(judge, range(workers), shares)):
                verdicts[i::workers] = found
            yield from zip(batch, verdicts, strict=True)


def compare(
    sandbox: Sandbox, judged: Iterable[tuple[Mutant, str]], *, judge: bool = False
) -> Iterator[Judged]:
    """Have the sandbox judge what the trusted run has judged, in order.

    Where the two differ, `agreed` shows whether the trusted runs agree with each other.
    """
    import numpy as np

    from gatekeeper.types import Generation

    judged = list(judged)
    pairs = (
        (
            Generation(f"{mutant.task_id}#{n}", mutant.code, *np.empty((3, 0))),
            mutant.task(judge=judge),
        )
        for n, (mutant, _) in enumerate(judged)
    )
    for (mutant, trusted), outcome in zip(judged, sandbox.verify_many(pairs), strict=True):
        yield Judged(mutant, trusted, outcome)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=serve.__doc__)
    parser.add_argument("seconds", type=float, help="time limit of each")
    serve(parser.parse_args().seconds)

"""Wrong programs made of right ones, and the plain trusted run that says which are wrong.

    python tests/sandbox/mutate.py [--count 5000] [--sandbox docker|local] [--judge] [--seed 0]

spoils MBPP's reference solutions until `count` of them fail in the trusted run, has the sandbox
judge those and every one that still passes, and prints how far the two agree: by label, a timeout
being a failure. `--judge` puts the asserts into a function, so that the host cannot judge them
itself and the judge's process has to. Exits 1 where the two do not agree. A program on which
trusted runs under other hash seeds disagree among themselves decides nothing; they are counted.

The trusted run forks, executes candidate, setup and tests in one namespace, and reads the exit
code: it believes the program, so it is for these mutants only.
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
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from operator import setitem
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

__all__ = ["MBPP", "SLOW", "Mutant", "Trusted", "agreed", "mutants", "read_mbpp"]

MBPP = Path(__file__).resolve().parents[2] / "../shared/data/mbpp.jsonl"
SLOW = {123, 765, 922}  # their own solutions take a second and more
TRUSTED_SECONDS = 2.0
TRUSTED_BYTES = 512 << 20
HASH_SEEDS = range(1, 7)

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
    task_id: int
    code: str
    setup: str
    tests: tuple[str, ...]

    def task(self, *, judge: bool = False) -> dict[str, Any]:
        """As a sandbox takes it; with `judge` the asserts are in a function of their own."""
        if not judge:
            return {"tests": self.tests, "test_setup_code": self.setup}
        body = indent("\n".join(self.tests), "    ")
        return {"test": f"def test_all():\n{body}\n", "test_setup_code": self.setup}


def read_mbpp() -> list[dict[str, Any]]:
    with MBPP.open() as lines:
        return [json.loads(line) for line in lines]


def mutants(tasks: Iterable[dict[str, Any]], seed: int = 0) -> Iterator[Mutant]:
    """One mutant of each task, then another of each, for ever; all different."""
    tasks = list(tasks)
    seen = set()
    for turn in count():
        for task in tasks:
            code = mutate(task["code"], random.Random(f"{seed}/{turn}/{task['task_id']}"))
            if code is not None and (task["task_id"], code) not in seen:
                seen.add((task["task_id"], code))
                setup = task["test_setup_code"]
                yield Mutant(task["task_id"], code, setup, tuple(task["test_list"]))


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


def _changes(node: ast.AST) -> Iterator[tuple[str, list[ast.AST]]]:
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
            others = [ast.Compare(left, [o()], [right]) for o in COMPARISONS]
            yield "comparison", [*others, ast.Compare(right, [op], [left])]
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
            changed = [value + " ", value[1:], value.swapcase(), "", value.encode()]
            yield "string", [ast.Constant(v) for v in changed]
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
            one = ast.Constant(1)
            for i, bound in enumerate(args[:2]):
                for op in (ast.Add(), ast.Sub()):
                    changed = [*args[:i], ast.BinOp(bound, op, one), *args[i + 1 :]]
                    yield "range", [ast.Call(node.func, changed, [])]
        case ast.Call(func, [first, second, *more], keywords):
            yield "arguments", [ast.Call(func, [second, first, *more], keywords)]
            yield "arguments", [ast.Call(func, [first, *more], keywords)]
        case ast.Subscript(value, ast.expr() as index, ast.Load()) if not isinstance(
            index, ast.Slice | ast.Tuple
        ):
            for op in (ast.Add(), ast.Sub()):
                yield "index", [ast.Subscript(value, ast.BinOp(index, op, ast.Constant(1)))]


class Trusted:
    """Plain trusted runs: a small server that forks for each. `verdict` is not thread-safe."""

    def __init__(self, *, seconds: float = TRUSTED_SECONDS, hash_seed: int = 0) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-S", "-W", "ignore", __file__, "--serve", str(seconds)],
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
    candidates: Iterator[Mutant], wrong: int, workers: int
) -> list[tuple[Mutant, str]]:
    """Mutants with their trusted verdicts, until `wrong` of them fail."""
    found: list[tuple[Mutant, str]] = []
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Trusted()) for _ in range(workers)]
        pool = stack.enter_context(ThreadPoolExecutor(workers))

        def judge(number: int, batch: list[Mutant]) -> list[tuple[Mutant, str]]:
            return [(mutant, servers[number].verdict(mutant)) for mutant in batch]

        missing = wrong
        while missing > 0:
            batches = [[next(candidates) for _ in range(50)] for _ in range(workers)]
            for batch in pool.map(judge, range(workers), batches):
                found += batch
            missing = wrong - sum(verdict != "passed" for _, verdict in found)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--sandbox", choices=("docker", "local"), default="docker")
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    import numpy as np

    from gatekeeper.sandbox import DockerSandbox, LocalSandbox
    from gatekeeper.types import Generation

    tasks = [task for task in read_mbpp() if task["task_id"] not in SLOW]
    started = time.monotonic()
    judged = trusted_verdicts(mutants(tasks, args.seed), args.count, args.workers)
    trusted_seconds = time.monotonic() - started
    pairs = [
        (
            Generation(f"{mutant.task_id}/{n}", mutant.code, *np.empty((3, 0))),
            mutant.task(judge=args.judge),
        )
        for n, (mutant, _) in enumerate(judged)
    ]
    kind = {"docker": DockerSandbox, "local": LocalSandbox}[args.sandbox]
    with kind(timeout=TRUSTED_SECONDS, workers=args.workers) as sandbox:
        started = time.monotonic()
        outcomes = list(sandbox.verify_many(pairs))
        seconds = time.monotonic() - started

    disagreeing = [
        (mutant, verdict, outcome)
        for (mutant, verdict), outcome in zip(judged, outcomes, strict=True)
        if outcome.error != (verdict != "passed")
    ]
    real = [entry for entry in disagreeing if agreed(entry[0])]
    cells = Counter((t, o.verdict) for (_, t), o in zip(judged, outcomes, strict=True))
    ways = Counter(outcome.meta.get("evaluation") for outcome in outcomes)
    print(f"{len(judged)} mutants of {len(tasks)} solutions, seed {args.seed}")
    print(f"trusted run {trusted_seconds:.0f} s; {args.sandbox} sandbox {seconds:.0f} s")
    print(f"evaluation: {dict(ways)}")
    for (trusted, verdict), number in sorted(cells.items()):
        print(f"  {trusted:8} in the trusted run, {verdict:18} in the sandbox: {number}")
    print(f"not the same under every hash seed, left out: {len(disagreeing) - len(real)}")
    wrong = sum(verdict != "passed" for _, verdict in judged)
    print(f"wrong ones: {wrong}; disagreements: {len(real)}")
    for mutant, verdict, outcome in real:
        print(f"\n--- task {mutant.task_id}: trusted {verdict}, sandbox {outcome}")
        print(mutant.code, *mutant.tests, sep="\n")
    sys.exit(bool(real))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(float(sys.argv[2]))
    else:
        main()

"""Reads a task: which tests run, in which form, and which results they expect."""

from __future__ import annotations

import ast
import builtins
import contextlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.io.syntax import dedent, parse_python
from gatekeeper.sandbox.apart import ApartError, apart
from gatekeeper.sandbox.extract import binds, extract_code
from gatekeeper.sandbox.inside.assertions import asserts
from gatekeeper.sandbox.inside.nodes import FUNCTIONS
from gatekeeper.sandbox.json_values import same_or_wrapped, same_value, test_of_call
from gatekeeper.sandbox.literal import LiteralTest, parse
from gatekeeper.sandbox.reading import RESERVED, Reading, imported, parsed, read_tests

__all__ = ["Case", "Suite", "read_suite"]

_MODULES = frozenset({"solution", "candidate", "submission", "answer", "main"})
_TESTS = ("tests", "test", "test_setup_code", "input_output")  # the fields of a task that are read
_FUTURE = re.compile(r"^from[ \t]+__future__[ \t].*\n", re.MULTILINE)  # first in a program
_READ = (*_TESTS, "prompt", "entry_point", "fn_name", "module")


@dataclass(frozen=True, slots=True)
class Case:
    """A run of the candidate as a program: standard input, and the output it should give."""

    stdin: str
    expected: str


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of one task.

    Attributes
    ----------
    setup
        Code that goes before the tests.
    imports
        The import statements of `setup`, its only part that a candidate's process gets.
    tests
        Programs, or statements.
    literal
        The tests that the host judges by itself; empty if it cannot judge them all.
    cases
        Inputs and outputs, for candidates that read and print.
    entry
        The name under test, where the task states it.
    prompt
        The text before a completion.
    provided
        Code of the prompt that candidates without it are given: imports, helpers.
    usual
        Whether candidates may use the names that LiveCodeBench imports for them.
    reading
        The result of the analysis of the tests.
    """

    setup: str = ""
    imports: str = ""
    tests: tuple[str, ...] = ()
    literal: tuple[LiteralTest, ...] = ()
    cases: tuple[Case, ...] = ()
    entry: str | None = None
    prompt: str = ""
    provided: str = ""
    usual: bool = False
    reading: Reading = field(default_factory=Reading)

    def where(self, modules: Collection[str]) -> Suite:
        """The same tests, read for a place where only these modules can be imported.

        A module that cannot be imported is the candidate, if nothing else can be.
        """
        missing = self.reading.needs - set(modules)
        if len(missing) != 1 or not self.reading.alone:
            return self
        known = self.reading.modules | missing
        given = (self.setup, self.tests, self.entry, known)
        return replace(self, reading=apart(read_tests, *given, texts=[self.setup, *self.tests]))

    def __len__(self) -> int:
        return len(self.cases or self.literal or self.tests)

    def candidate(self, answer: str) -> str:
        """The program to run: the code of a model's answer, after the prompt that it completes.

        "" if the answer has no code.
        """
        names = self.reading.theirs.union(*(test.names for test in self.literal))
        text = extract_code(answer, names, reads=bool(self.cases))
        if not text.strip():
            return ""
        if not self.prompt or self.entry is None:
            return text
        if not binds(text, [self.entry]):
            return self.prompt + extract_code(answer, names, as_written=True)
        if not self.provided:
            return text
        begin = max((found.end() for found in _FUTURE.finditer(text)), default=0)
        return f"{text[:begin]}{self.provided}\n{text[begin:]}"


def read_suite(identity: str, task: object) -> Suite:
    """Read a task.

    Parameters
    ----------
    identity
        The id of the candidate, for messages.
    task
        The tests, in one of the shapes of docs/sandbox.md.

    Returns
    -------
    Suite
        The tests, their form, and the results that they expect.

    Raises
    ------
    BadInputError
        The task has no usable tests.
    """
    if not isinstance(task, Mapping):
        raise BadInputError(f"id={identity!r}: task={task!r:.80}: give a mapping with 'tests'")
    read, tests = {name: task.get(name) for name in _READ}, task.get("tests")
    texts = tests if isinstance(tests, list | tuple) else [task.get("test"), task.get("prompt")]
    try:
        return apart(_read, read, texts=[task.get("test_setup_code"), *texts])
    except BadInputError as error:
        raise BadInputError(f"id={identity!r}: {error}") from None
    except ApartError as error:
        return Suite(reading=Reading(void=str(error)))


def _read(task: Mapping[str, Any]) -> Suite:
    setup = task.get("test_setup_code") or ""
    if not isinstance(setup, str):
        raise BadInputError(f"test_setup_code={setup!r:.80}: give a string")
    if task.get("input_output") is not None:
        return _input_output(task, setup)
    tests = task.get("tests")
    if tests is None and isinstance(task.get("test"), str):
        return _program(task, setup)
    if not isinstance(tests, Sequence) or isinstance(tests, str) or not tests:
        raise BadInputError(
            f"tests={tests!r:.80}: give a list of assert statements, or 'test', a program, or "
            "'input_output'"
        )
    if all(isinstance(test, Mapping) for test in tests):
        return _mappings(task, tests, setup)
    return _statements(tests, setup, task.get("entry_point"))


def _statements(tests: Sequence[str], setup: str, entry: str | None) -> Suite:
    """MBPP's form: statements that call the candidate's functions."""
    if entry is not None and not isinstance(entry, str):
        raise BadInputError(f"entry_point={entry!r:.80}: give a string")
    imports = _imports(setup)
    helpers = RESERVED | _bound(imports) if imports else RESERVED
    dedented: list[str] = []
    found: list[LiteralTest | None] = []
    for test in tests:
        with _readable("test", test):
            dedented.append(dedent(test).strip())
            found.append(parse(test, helpers))
    literal = tuple(test for test in found if test is not None)
    simple = "*" not in imports and _only_imports(setup, imports)
    # The case of nearly all of MBPP.
    if len(literal) == len(tests) and simple and not _names_python(literal, entry):
        return Suite(setup, imports, tuple(dedented), literal, reading=_reading_of(imports))
    texts = tuple(dedented)
    reading = read_tests(setup, texts, entry=entry, modules=_MODULES)
    return Suite(
        setup=setup,
        imports=imports,
        tests=texts,
        literal=_literal(dedented, setup, imports, reading, entry),
        entry=entry,
        reading=reading,
    )


def _literal(
    tests: Sequence[str], setup: str, imports: str, reading: Reading, entry: str | None
) -> tuple[LiteralTest, ...]:
    """The tests, each split into call and expected value; empty if one cannot be split."""
    helpers = _bound(imports) | {name for name, _ in reading.real}
    if not _only_imports(setup, imports) or "*" in helpers:
        return ()
    found = [parse(test, helpers) for test in tests]
    cut = tuple(test for test in found if test is not None)
    return cut if len(cut) == len(tests) and not _names_python(cut, entry) else ()


def _names_python(tests: Sequence[LiteralTest], entry: str | None) -> bool:
    """Whether a built-in name is under test. The candidate has to define it: the judge looks."""
    if entry is not None:
        return hasattr(builtins, entry)
    return all(hasattr(builtins, name) for test in tests for name in test.names)


def _reading_of(imports: str) -> Reading:
    """The reading of tests that the host judges by itself: only the modules that they need."""
    return Reading(needs=frozenset(imported(parse_python(imports))) if imports else frozenset())


def _only_imports(setup: str, imports: str) -> bool:
    """Whether setup code does nothing but import. A candidate must not see any other code of it."""
    return not setup.strip() or len(parse_python(setup).body) == len(imports.splitlines())


def _bound(imports: str) -> frozenset[str]:
    """Names that import statements bind; "*" where that is unknown."""
    aliases = (node for node in ast.walk(parse_python(imports)) if isinstance(node, ast.alias))
    return frozenset((alias.asname or alias.name).partition(".")[0] for alias in aliases)


def _program(task: Mapping[str, Any], setup: str) -> Suite:
    """HumanEval's form, `check(candidate)`; or test functions, classes, or plain statements."""
    test, prompt, entry = task["test"], task.get("prompt") or "", task.get("entry_point")
    for name, value in (("prompt", prompt), ("entry_point", entry or "")):
        if not isinstance(value, str):
            raise BadInputError(f"{name}={value!r:.80}: give a string")
    with _readable("test", test):
        program, nodes = parsed(test)
    defined = (node.name for node in nodes if isinstance(node, FUNCTIONS))
    on_top = [node.name for node in program.body if isinstance(node, FUNCTIONS)]
    if "check" in on_top and not entry:
        raise BadInputError("test defines check(candidate): give the function's name, entry_point")
    if not (
        any(name == "check" or name.startswith("test") for name in defined)
        or any(map(asserts, nodes))
    ):
        raise BadInputError(f"test={test!r:.80}: it defines no test and asserts nothing")
    provided = _part(prompt, entry)
    imports = _imports(setup)
    module = task.get("module")
    modules = _MODULES | {module} if isinstance(module, str) else _MODULES
    setup = f"{provided}\n{setup}"
    reading = read_tests(setup, (test,), entry=entry, modules=modules)
    # Parsed again, because its names are changed.
    checks = _check_statements(parse_python(test), entry) if entry and "check" in on_top else None
    return Suite(
        setup=setup,
        imports=imports,
        tests=(test,),
        literal=_literal(checks, setup, imports, reading, entry) if checks else (),
        entry=entry,
        prompt=prompt,
        provided=provided,
        reading=reading,
    )


def _check_statements(program: ast.Module, entry: str) -> list[str] | None:
    """The assertions of a `check(candidate)` that has no other statements; else None.

    Nor if they use a constant of the program, which a candidate's process does not have.
    """
    functions = [node for node in program.body if isinstance(node, ast.FunctionDef)]
    others = [node for node in program.body if not isinstance(node, ast.FunctionDef | ast.Assign)]
    if others or [f.name for f in functions] != ["check"] or len(functions[0].args.args) != 1:
        return None
    candidate = functions[0].args.args[0].arg
    constants = {
        name.id
        for statement in program.body
        if isinstance(statement, ast.Assign)
        for name in ast.walk(statement)
        if isinstance(name, ast.Name)
    }
    if any(isinstance(n, ast.Name) and n.id in constants for n in ast.walk(functions[0])):
        return None
    statements = []
    for node in functions[0].body:
        if not isinstance(node, ast.Assert):
            return None
        if isinstance(node.test, ast.Constant) and node.test.value:
            continue  # HumanEval's `assert True, "This prints if this assert fails"`
        for name in ast.walk(node):
            if isinstance(name, ast.Name) and name.id == candidate:
                name.id = entry
        statements.append(ast.unparse(ast.Assert(node.test)))
    return statements or None


def _input_output(task: Mapping[str, Any], setup: str) -> Suite:
    """APPS's form: {"inputs": […], "outputs": […], "fn_name": optional}, or that as JSON."""
    data = task["input_output"]
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except ValueError as error:
            raise BadInputError(f"input_output={data!r:.80}: not JSON: {error}") from None
    if not isinstance(data, Mapping):
        raise BadInputError(f"input_output={data!r:.80}: give a mapping with inputs and outputs")
    inputs, outputs = data.get("inputs"), data.get("outputs")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise BadInputError(f"inputs={inputs!r:.40}, outputs={outputs!r:.40}: give two lists")
    if not inputs or len(inputs) != len(outputs):
        raise BadInputError(f"{len(inputs)} inputs and {len(outputs)} outputs: give a pair each")
    name = data.get("fn_name") or task.get("fn_name")
    if name is None:
        return Suite(cases=tuple(map(_case, inputs, outputs)))
    for arguments in inputs:
        if not isinstance(arguments, list):
            raise BadInputError(f"inputs={arguments!r:.80}: with fn_name, give lists of arguments")
    pairs = [(i, o) for i, o in zip(inputs, outputs, strict=True)]
    return _calls(str(name), pairs, setup, same_or_wrapped)


def _mappings(task: Mapping[str, Any], tests: Sequence[Mapping[str, Any]], setup: str) -> Suite:
    """LiveCodeBench's form: {"input", "output", "testtype": "stdin" | "functional"}."""
    for test in tests:
        if not isinstance(test.get("input"), str) or not isinstance(test.get("output"), str):
            raise BadInputError(f"test={test!r:.80}: give texts, 'input' and 'output'")
    kinds = [test.get("testtype", "stdin") for test in tests]
    for kind in kinds:
        if kind not in ("stdin", "functional"):
            raise BadInputError(f"testtype={kind!r:.80}: give 'stdin' or 'functional'")
    if "functional" not in kinds:
        return Suite(cases=tuple(_case(test["input"], test["output"]) for test in tests))
    name = task.get("fn_name") or task.get("entry_point")
    if not isinstance(name, str):
        raise BadInputError("functional tests: give the function's name, fn_name")
    try:
        pairs = [
            (
                [json.loads(line) for line in test["input"].split("\n") if line.strip()],
                json.loads(test["output"]),
            )
            for test in tests
        ]
    except ValueError as error:
        raise BadInputError(f"functional tests hold JSON, a line per argument: {error}") from None
    return _calls(name, pairs, setup, same_value)


def _case(stdin: object, expected: object) -> Case:
    """A case from an input and an output; lists are lines."""
    texts = ["\n".join(map(str, t)) if isinstance(t, list) else t for t in (stdin, expected)]
    if not all(isinstance(text, str) for text in texts):
        raise BadInputError(f"input={stdin!r:.40}, output={expected!r:.40}: give texts")
    try:
        str(texts[0]).encode("utf-8", "surrogateescape")  # as evaluate.py does
    except UnicodeEncodeError as error:
        raise BadInputError(f"input={stdin!r:.40}: it has no bytes: {error}") from None
    return Case(*map(str, texts))


def _calls(
    name: str,
    pairs: Iterable[tuple[list[Any], Any]],
    setup: str,
    same: Callable[[Any, object], bool],
) -> Suite:
    """Calls of one function; a method of `Solution` if the candidate has that class."""
    if not name.isidentifier():
        raise BadInputError(f"fn_name={name!r}: give the name of a function")
    tests = tuple(test_of_call(name, arguments, expected, same) for arguments, expected in pairs)
    sources, imports = tuple(test.source for test in tests), _imports(setup)
    return Suite(setup, imports, sources, tests, usual=True, reading=_reading_of(imports))


@contextlib.contextmanager
def _readable(name: str, source: object) -> Iterator[None]:
    """Raise BadInputError if the code inside fails to parse `source`."""
    try:
        if not isinstance(source, str):
            raise TypeError(f"a string is needed, not {type(source).__name__}")
        yield
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise BadInputError(f"{name}={source!r:.200}: not a Python statement: {error}") from error


def _part(source: str, entry: str | None) -> str:
    """The statements of `source`, without the definition of `entry` and what else uses that."""
    body: list[ast.stmt] = []
    for ending in ("", "\n    pass"):  # `source` may end with the first line of a function
        with contextlib.suppress(SyntaxError, ValueError):
            body = body or parse_python(source + ending).body

    def is_kept(node: ast.stmt) -> bool:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            return node.name != entry
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        return not text and entry not in {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}

    return "\n".join(map(ast.unparse, filter(is_kept, body)))


def _imports(setup: str) -> str:
    """The import statements of setup code, one a line."""
    if not setup.strip():
        return ""
    with _readable("test_setup_code", setup):
        program = parse_python(setup)
    imports = [node for node in program.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return "\n".join(map(ast.unparse, imports))

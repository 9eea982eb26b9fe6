"""Stops names by which a candidate would choose an object in the process of the tests.

A library finds the object that a dotted name means: `mock.patch(name)` replaces it, and YAML may
hold it as a value, or call it. No code runs for that, so no audit hook sees it. A name is the
tests' own if each of its parts is in a text of theirs, or in a module's name that they import.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import operator
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

__all__ = ["Words", "followed"]

# What finds an object by its name: how tests that use it mention it, its module, its place there.
_FINDERS = (
    (("mock",), "unittest.mock", "_get_target"),
    (("mock",), "unittest.mock", "_importer"),  # of Python 3.10; later ones use the next
    (("mock", "resolve_name"), "pkgutil", "resolve_name"),
    (("pydoc",), "pydoc", "locate"),
    (("monkeypatch", "MonkeyPatch"), "_pytest.monkeypatch", "derive_importpath"),
    (("ImportString",), "pydantic._internal._validators", "import_string"),
    (("jsonpickle",), "jsonpickle.unpickler", "loadclass"),
    (("yaml",), "yaml.constructor", "FullConstructor.find_python_name"),
    (("yaml",), "yaml.constructor", "FullConstructor.find_python_module"),
)
_USES = re.compile("|".join({mention for mentions, _, _ in _FINDERS for mention in mentions}))
_WORD = re.compile(r"\w+")


def followed(source: str, check: Callable[[str], None], modules: Collection[str]) -> None:
    """Let `check` see each name by which a library finds an object; it raises an exception.

    Parameters
    ----------
    source
        The tests, which show what they use.
    check
        Is called with a name.
    modules
        Names of modules that are the candidate.
    """
    found = {*_USES.findall(source)}
    for mentions, module, place in _FINDERS if found else ():
        if found.isdisjoint(mentions) or module.partition(".")[0] in modules:
            continue
        with contextlib.suppress(ImportError):
            owner, _, name = place.rpartition(".")
            holder: Any = importlib.import_module(module)
            holder = operator.attrgetter(owner)(holder) if owner else holder
            if hasattr(holder, name):
                setattr(holder, name, _checked(getattr(holder, name), check))


def _checked(find: Callable[..., Any], check: Callable[[str], None]) -> Callable[..., Any]:
    @functools.wraps(find)
    def checked(*arguments: Any, **keywords: Any) -> Any:
        for argument in (*arguments, *keywords.values()):
            if isinstance(argument, str):
                check(str.__str__(argument))
        return find(*arguments, **keywords)

    return checked


class Words:
    """The words that the tests have, in their texts and in the names of modules that they import.

    Attributes
    ----------
    modules
        Names of modules that are the candidate.
    """

    def __init__(self) -> None:
        self.modules: Collection[str] = ()
        self._unread: list[Sequence[ast.AST]] = []  # most runs ask for no name
        self._words, self._imported = {"tests"}, set[str]()

    def add(self, nodes: Sequence[ast.AST]) -> None:
        """The nodes of a program of the tests."""
        self._unread.append(nodes)

    def have(self, name: str) -> bool:
        """Whether a dotted name is the tests' own, or one that they import of the candidate."""
        while self._unread:
            for node in self._unread.pop():
                self._read(node)
        parts = _WORD.findall(name)
        theirs = parts and parts[0] in self.modules  # `f"{Client.__module__}.{Client.__name__}"`
        known = (self._words, self.modules, self._imported if theirs else ())
        return all(any(part in words for words in known) for part in parts)

    def _read(self, node: ast.AST) -> None:
        texts: Collection[object] = ()
        if isinstance(node, ast.Constant):
            texts = [node.value]
        elif isinstance(node, ast.Import):
            texts = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            texts = [node.module]
            self._imported.update(alias.name for alias in node.names)
        for text in texts:
            if isinstance(text, str):
                self._words.update(_WORD.findall(text))

"""What tests change around a candidate: standard streams, the environment, seeds, mocks.

In one process a candidate sees such a change by itself. Here the tests' side notices it and sends
it along with each question; the candidate's side has it in force while it answers. Nothing of it
is a secret: it is input that the tests prepared.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import io
import os
import sys
import time
from collections.abc import Iterator
from typing import Any

__all__ = ["REPLACEABLE", "Watch", "applied"]

REPLACEABLE = {  # functions that a test may put a mock in the place of, by module
    "builtins": ("input", "print", "open"),
    "time": ("sleep", "time", "perf_counter", "monotonic"),
    "random": ("random", "randint", "randrange", "choice", "choices", "uniform", "shuffle", "sample"),
}
_OUTPUTS = ("stdout", "stderr")
_WORDS = ("patch", "environ", "setenv", "setattr", "seed", "redirect", "capsys", "sys.std", "input")


class Watch:
    """The tests' side: what differs from how it was found."""

    def __init__(self, source: str) -> None:
        self.active = any(word in source for word in _WORDS)
        if not self.active:
            return
        self._environ = dict(os.environ)
        self._streams = {name: getattr(sys, name) for name in ("stdin", *_OUTPUTS)}
        self._originals = {
            (module.__name__, name): getattr(module, name)
            for module in (builtins, time)
            for name in REPLACEABLE[module.__name__]
        }
        self._seeds: list[tuple[Any, ...]] = []
        if "seed" in source:
            self._notice_seeds()

    def _notice_seeds(self) -> None:
        random = importlib.import_module("random")
        seed = random.seed

        def noticed(*arguments: Any) -> None:
            self._seeds.append(arguments)
            seed(*arguments)

        random.seed = noticed  # type: ignore[attr-defined]

    def changes(self) -> dict[str, Any] | None:
        """What a question has to take along; None where nothing differs."""
        if not self.active:
            return None
        found: dict[str, Any] = {}
        environ = dict(os.environ)
        if environ != self._environ:
            gone = dict.fromkeys(self._environ.keys() - environ.keys())
            found["environ"] = {**gone, **dict(environ.items() - self._environ.items())}
            self._environ = environ
        if self._seeds:
            found["seed"] = self._seeds[-1]
            self._seeds.clear()
        replaced = {
            f"{module}.{name}": item
            for (module, name), original in self._originals.items()
            if (item := getattr(sys.modules[module], name)) is not original
        }
        if (random := sys.modules.get("random")) is not None:
            for name in REPLACEABLE["random"]:
                item = getattr(random, name)
                if item != getattr(random._inst, name):
                    replaced[f"random.{name}"] = item
        if replaced:
            found["replaced"] = replaced
        if sys.stdin is not self._streams["stdin"]:
            found["stdin"] = sys.stdin
        if streams := [n for n in _OUTPUTS if getattr(sys, n) is not self._streams[n]]:
            found["outputs"] = streams
        return found or None


@contextlib.contextmanager
def applied(around: dict[str, Any]) -> Iterator[list[tuple[str, str]]]:
    """The candidate's side: have that in force.

    Yields what is printed, where it is to be told: names of streams, and texts.
    """
    for name, value in around.get("environ", {}).items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if "seed" in around:
        importlib.import_module("random").seed(*around["seed"])
    printed: list[tuple[str, str]] = []
    with contextlib.ExitStack() as stack:
        for path, item in around.get("replaced", {}).items():
            module, _, name = path.partition(".")
            stack.enter_context(_set(importlib.import_module(module), name, item))
        if "stdin" in around:
            stack.enter_context(_set(sys, "stdin", around["stdin"]))
        for stream in around.get("outputs", ()):
            text = io.StringIO()
            stack.callback(lambda s=stream, t=text: printed.append((s, t.getvalue())))
            stack.enter_context(_set(sys, stream, text))
        yield printed


@contextlib.contextmanager
def _set(target: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(target, name)
    setattr(target, name, value)
    try:
        yield
    finally:
        setattr(target, name, before)

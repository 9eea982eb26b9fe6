"""The argument parser of every program: short errors, each with its remedy.

It adds to argparse the usage of the subcommand, "did you mean", and the default of each option in
its help.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from gatekeeper.errors import BadInputError
from gatekeeper.programs.config_file import CONFIG, Config, read_config
from gatekeeper.programs.values import named_file
from gatekeeper.wording import choose, nearest

__all__ = ["Parser"]

NEGATIVE = re.compile(r"-\.?\d")


class Parser(argparse.ArgumentParser):
    """Raises BadInputError for what it cannot parse, and prints its usage before where that helps.

    Options are written in full: what an abbreviation means could change with the next release.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**(kwargs | {"formatter_class": _Help, "allow_abbrev": False}))
        self.register("type", Path, named_file)

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """argparse calls it for a subcommand, and would report the rest with the main usage."""
        args = sys.argv[1:] if args is None else list(args)
        below = [a for a in self._actions if isinstance(a, argparse._SubParsersAction)]
        if below and not args:
            choices = ", ".join(below[0].choices)
            self.error(f"{below[0].metavar} is missing: choose one of {choices}")
        self._refuse_unknown(args[:1] if below else args)
        config = read_config(self, args) if CONFIG in self._option_string_actions else Config()
        parse = super().parse_known_args
        found, rest = parse([*config.arguments, *args], namespace)
        if rest:
            self.error(f"{' '.join(rest)!r}: more arguments than this command takes")
        if config.routes:
            found.routes = [
                (route, parse([*config.arguments, *route.arguments, *args])[0])
                for route in config.routes
            ]
        return found, rest

    def format_usage(self) -> str:
        """The required arguments; the options are in the help."""
        formatter = self._get_formatter()
        needed = [a for a in self._actions if a.required or not a.option_strings]
        formatter.add_usage(self.usage, needed, [])
        return formatter.format_help()

    def error(self, message: str) -> NoReturn:
        """Raise BadInputError. A message on one argument names it, others need the usage."""
        if message.startswith("argument "):
            name, _, text = message.removeprefix("argument ").partition(": ")
            raise BadInputError(f"{name} {text}" if text.startswith(("'", '"')) else message[9:])
        self.print_usage(sys.stderr)
        raise BadInputError(f"{message} ({self.prog} --help lists all)")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        """Refuse what no option means: an empty name, as of an unset variable, and NUL."""
        for text in arg_strings:
            if not text and action.type is None and action.choices is None:
                raise argparse.ArgumentError(action, "'' is empty: give a value, or leave it out")
            if "\0" in text:
                raise argparse.ArgumentError(action, f"{text!r}: give a value without NUL")
        return super()._get_values(action, arg_strings)

    def _refuse_unknown(self, args: Iterable[str]) -> None:
        """Name an unknown option before its value is taken for something else."""
        known = self._option_string_actions
        for arg in args:
            if arg == "--":
                return
            if not arg.startswith("-") or arg == "-" or NEGATIVE.match(arg):
                continue
            name = arg.split("=")[0]
            short = arg[:2] in known and not arg.startswith("--")  # as in -oFILE
            if name not in known and not short:
                self.error(f"option {name!r} is unknown{_did_you_mean(name, known)}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        text = f"{value!r} is unknown"
        if isinstance(action, argparse._SubParsersAction):
            self.error(f"{action.metavar} {text}{_did_you_mean(str(value), choices)}")
        raise argparse.ArgumentError(action, f"{text}: {choose(value, choices)}")


class _Help(argparse.HelpFormatter):
    """Adds its default to the help of an option that does not name it."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        # `in` would take 0 for False.
        absent = action.default is None or action.default is False
        absent = absent or action.default in (argparse.SUPPRESS, "", [])
        if absent or not action.option_strings or "default" in text:
            return text
        return f"{text} (default: %(default)s)".strip()


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    near = nearest(word, known)
    return f": {near}" if near else ""

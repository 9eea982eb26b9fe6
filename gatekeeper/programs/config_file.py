"""Options from a TOML file: its keys are the names of the command's options, without the dashes.

The command line has precedence. An error names the file, the line and the key. A file may serve
several commands: the keys of the others are checked, too, and left out.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.programs.log_argument import log_file
from gatekeeper.programs.values import base_url, input_file

__all__ = ["CONFIG", "add_config_option", "with_config"]

CONFIG = "--config"


AddOptions = Callable[[argparse.ArgumentParser], None]


class _Config(argparse.Action):
    """The option, with what adds the options of other commands that read the same file."""

    def __init__(self, *args: Any, others: Sequence[AddOptions], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.others = others

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        setattr(namespace, self.dest, values)


def add_config_option(
    parser: argparse.ArgumentParser, *, others: Sequence[AddOptions] = ()
) -> None:
    """Add `--config`, which the parser then reads before anything else: see `with_config`.

    Parameters
    ----------
    others : sequence of callable
        Each adds the options of another command, whose keys may be in the file, too.
    """
    parser.add_argument(
        CONFIG,
        action=_Config,
        others=others,
        type=Path,
        metavar="FILE",
        help="TOML file with any of these options, without their dashes: budget = 0.2",
    )


def with_config(parser: argparse.ArgumentParser, args: Sequence[str]) -> list[str]:
    """The arguments of a command, with those of its file before them.

    What the command takes by its place, such as a file of tasks, becomes the default of that place.

    Raises
    ------
    BadInputError
        For a file that cannot be read, is not TOML, or has a key or a value that the command does
        not take.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    finder.add_argument(CONFIG, type=Path)
    try:
        path = finder.parse_known_args(list(args))[0].config
    except argparse.ArgumentError:  # without a value: the command's own parser says so
        path = None
    return list(args) if path is None else [*_arguments(parser, path), *args]


def _arguments(parser: argparse.ArgumentParser, path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
        found = tomllib.loads(text)
    except OSError as e:
        raise BadInputError(f"{CONFIG} {path} cannot be read: {e.strerror}") from e
    except ValueError as e:  # of TOML or UTF-8; TOML's names the line
        raise BadInputError(f"{CONFIG} {path} is not TOML: {e}") from None
    known = _keys(parser)
    also: dict[str, argparse.Action] = {}
    for add in parser._option_string_actions[CONFIG].others:  # type: ignore[attr-defined]
        other = type(parser)(add_help=False)
        add(other)
        also |= _keys(other)
    arguments = []
    for key, value in found.items():
        try:
            action = known.get(key) or also.get(key)
            if action is None:
                close = get_close_matches(key, [*known, *also], n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"choose of {', '.join(known)}"
                raise BadInputError(f"unknown: {hint}")
            argument = _argument(parser, action, key, value)
            if key in known and action.option_strings:
                arguments += argument
            elif key in known:
                action.nargs, action.required, action.default = "?", False, value
        except BadInputError as e:
            raise BadInputError(f"{path}, line {line_of(text, key)}: {key}: {e}") from None
    return arguments


def _keys(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """What a file may set: options by their names, and what is given by its place."""
    found = {
        option.removeprefix("--"): action
        for action in parser._actions
        for option in action.option_strings
        if option.startswith("--") and option not in (CONFIG, "--help")
    }
    return found | {a.dest: a for a in parser._actions if not a.option_strings}


def _argument(
    parser: argparse.ArgumentParser, action: argparse.Action, key: str, value: Any
) -> list[str]:
    """One option with its value, as on the command line."""
    if action.nargs == 0:  # a flag
        if not isinstance(value, bool):
            raise BadInputError(f"{value!r:.80}: give true or false")
        return [f"--{key}"] if value else []
    is_text = action.type in (None, Path, base_url, input_file, log_file)
    wanted = str if is_text else (int, float)
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise BadInputError(f"{value!r:.80}: give a {'string' if is_text else 'number'}")
    try:
        parser._get_values(action, [str(value)])
    except argparse.ArgumentError as e:
        raise BadInputError(e.message) from None
    return [f"--{key}={value}"]


def line_of(text: str, key: str) -> int:
    """The line, counted from 1, in which a top-level key of a TOML text begins.

    `tomllib` does not tell. The lines up to the one before parse without the key; those up to the
    end of its value parse with it.
    """
    lines = text.splitlines(keepends=True)
    before = 0
    for count in range(1, len(lines) + 1):
        try:
            found = tomllib.loads("".join(lines[:count]))
        except ValueError:  # in the middle of a value of several lines
            continue
        if key in found:
            break
        before = count
    return before + 1

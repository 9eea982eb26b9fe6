"""Options from a TOML file: its keys are the names of the command's options, without the dashes.

The command line has precedence. An error names the file, the line and the key. A file may serve
several commands: the keys of the others are checked, too, and left out.

A table `[route.NAME]` has the options of a gateway's calls for some models, which it names.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from bisect import bisect_left
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gatekeeper.errors import BadInputError
from gatekeeper.programs.log_argument import log_file
from gatekeeper.programs.values import base_url, input_file, named_file
from gatekeeper.wording import nearest

__all__ = ["CONFIG", "Config", "RouteTable", "add_config_option", "read_config"]

CONFIG = "--config"
ROUTE, MODELS = "route", "models"
NAME = re.compile("[A-Za-z0-9_-]{1,50}")
LONGEST = 1 << 20  # bytes of a file
LARGEST = 1 << 63  # TOML's whole numbers have 64 bits, of which one is the sign

AddOptions = Callable[[argparse.ArgumentParser], None]


@dataclass(frozen=True, slots=True)
class RouteTable:
    """A table `[route.NAME]`: the models, and the options as arguments.

    `elsewhere` has where the route's other options stand, from the option, such as `--warmup`.
    """

    name: str
    models: Sequence[str]
    arguments: Sequence[str]
    elsewhere: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """The content of a file: arguments that come before those of the command line, and routes."""

    arguments: Sequence[str] = ()
    routes: Sequence[RouteTable] = ()


class _Config(argparse.Action):
    """The option, with what adds the options of other commands that read the same file."""

    def __init__(
        self, *args: Any, others: Sequence[AddOptions], of_route: Collection[str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.others, self.of_route = others, of_route

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        setattr(namespace, self.dest, values)


def add_config_option(
    parser: argparse.ArgumentParser, *, others: Sequence[AddOptions], of_route: Collection[str]
) -> None:
    """Add `--config`, which the parser then reads before anything else: see `read_config`.

    Parameters
    ----------
    others : sequence of callable
        Each adds the options of another command, whose keys may be in the file, too.
    of_route : collection of str
        Those that a route may have.
    """
    parser.add_argument(
        CONFIG,
        action=_Config,
        others=others,
        of_route=of_route,
        type=Path,
        metavar="FILE",
        help="TOML file with any of these options, without their dashes: budget = 0.2",
    )


def read_config(parser: argparse.ArgumentParser, args: Sequence[str]) -> Config:
    """The file that a command's arguments name; nothing where they name none.

    What the command takes by its place, such as a file of tasks, becomes the default of that place.

    Raises
    ------
    BadInputError
        For a file that cannot be read, is not TOML, or has a key or a value that the command does
        not take.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    finder.add_argument(CONFIG, type=named_file)
    try:
        path = finder.parse_known_args(list(args))[0].config
    except argparse.ArgumentError:  # no value, or no name: the command's own parser reports it
        path = None
    return Config() if path is None else _read(parser, path, args)


def _read(parser: argparse.ArgumentParser, path: Path, args: Sequence[str]) -> Config:
    text, found = _loaded(path)
    known = _keys(parser)
    also: dict[str, argparse.Action] = {}
    option: Any = parser._option_string_actions[CONFIG]
    for add in option.others:
        other = type(parser)(add_help=False)
        add(other)
        also |= _keys(other)
    arguments = []
    for key, value in found.items():
        if key == ROUTE:
            continue
        try:
            action = known.get(key) or also.get(key)
            if action is None:
                raise _unknown(key, [*known, *also, ROUTE], known)
            argument = _argument(parser, action, key, value)
            if key in known and action.option_strings:
                arguments += argument
            elif key in known:
                action.nargs, action.required, action.default = "?", False, value
        except BadInputError as e:
            raise BadInputError(f"{path}, line {line_of(text, key)}: {key:.80}: {e}") from None
    reader = _RouteReader(parser, also | known, option.of_route)
    try:
        routes = reader.read(found.get(ROUTE, {}))
    except _AtKeyError as e:
        at = ".".join(e.keys)
        raise BadInputError(f"{path}, line {line_of(text, *e.keys)}: {at:.200}: {e}") from None
    top = dict.fromkeys(_names(arguments), f"at the top of {path}")
    line = dict.fromkeys(_names(args), "on the command line")
    for i, route in enumerate(routes):
        own = set(_names(route.arguments))
        others = {name: where for name, where in top.items() if name not in own}
        routes[i] = replace(route, elsewhere=others | line)
    return Config(arguments, routes)


def _loaded(path: Path) -> tuple[str, dict[str, Any]]:
    """A file's text and its content. Raises BadInputError for what is not TOML."""
    try:
        with path.open("rb") as file:  # a device may have no end
            data = file.read(LONGEST + 1)
        if len(data) > LONGEST:
            raise ValueError(f"it has more than {LONGEST >> 20} MiB")
        text = data.removeprefix(BOM_UTF8).decode()
        found = tomllib.loads(text)
        _check_numbers(found)
    except OSError as e:
        raise BadInputError(f"{CONFIG} {path} cannot be read: {e.strerror}") from e
    except RecursionError:
        raise BadInputError(
            f"{CONFIG} {path} is not TOML: its values are nested too deeply"
        ) from None
    except UnicodeDecodeError as e:
        why = f"it is not UTF-8: {e.reason} at byte {e.start}"
        raise BadInputError(f"{CONFIG} {path} is not TOML: {why}") from None
    except ValueError as e:  # of TOML; it names the line
        raise BadInputError(f"{CONFIG} {path} is not TOML: {e}") from None
    return text, found


def _check_numbers(value: Any) -> None:
    """Raise ValueError for a whole number that TOML does not have; Python may not show it."""
    if isinstance(value, int) and not -LARGEST <= value < LARGEST:
        raise ValueError(f"a whole number of {value.bit_length()} bits, and 63 are the limit")
    if isinstance(value, dict):
        value = list(value.values())
    for each in value if isinstance(value, list) else ():
        _check_numbers(each)


def _names(arguments: Sequence[str]) -> list[str]:
    return [given.partition("=")[0] for given in arguments if given.startswith("--")]


def _unknown(key: str, known: Collection[str], suggested: Collection[str]) -> BadInputError:
    hint = nearest(key.lower(), known) or f"choose one of {', '.join(suggested)}"
    return BadInputError(f"unknown: {hint}")


class _AtKeyError(Exception):
    """An error, and its key."""

    def __init__(self, why: object, *keys: str) -> None:
        super().__init__(str(why))
        self.keys = keys


@dataclass(slots=True)
class _RouteReader:
    """Reads the tables of routes, whose options are checked as those of the whole file are."""

    parser: argparse.ArgumentParser
    known: Mapping[str, argparse.Action]
    keys: Collection[str]
    _taken: dict[str, str] = field(default_factory=dict)  # from a model to its route

    def read(self, tables: Any) -> list[RouteTable]:
        if not isinstance(tables, dict) or not all(isinstance(t, dict) for t in tables.values()):
            raise _AtKeyError("give tables, such as [route.small] with models = ['gpt-*']", ROUTE)
        return [self._route(name, table) for name, table in tables.items()]

    def _route(self, name: str, table: Mapping[str, Any]) -> RouteTable:
        if not NAME.fullmatch(name):
            why = f"{name!r:.80}: a name has 1 to 50 letters, digits, - and _"
            raise _AtKeyError(why, ROUTE, name)
        if MODELS not in table:
            raise _AtKeyError("models is missing: name some, such as ['gpt-*']", ROUTE, name)
        arguments = []
        for key, value in table.items():
            try:
                if key == MODELS:
                    self._check_models(name, value)
                elif key in self.keys:
                    arguments += _argument(self.parser, self.known[key], key, value)
                elif key in self.known:
                    own = ", ".join([MODELS, *self.keys])
                    raise BadInputError(f"of all routes: move it to the top; a route has {own}")
                else:
                    raise _unknown(key, [MODELS, *self.keys], [MODELS, *self.keys])
            except BadInputError as e:
                raise _AtKeyError(e, ROUTE, name, key) from None
        return RouteTable(name, table[MODELS], arguments)

    def _check_models(self, name: str, models: Any) -> None:
        is_list = isinstance(models, list) and models
        if not is_list or not all(isinstance(model, str) and model for model in models):
            raise BadInputError(f"{models!r:.80}: give a list of names, such as ['gpt-*']")
        for model in models:
            if model in self._taken:
                raise BadInputError(f"{model!r} is in route {self._taken[model]!r}, too")
            self._taken[model] = name


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


def line_of(text: str, *keys: str) -> int:
    """The line, counted from 1, in which a key of a TOML text begins, or a key inside its table.

    `tomllib` does not report it. The lines up to the one before parse without the key; those up to
    the end of its value parse with it.
    """
    lines = text.splitlines(keepends=True)

    def is_in(count: int) -> bool:
        """Whether the first lines have the key, with what ends the value that they begin."""
        for end in range(count, len(lines)):
            with suppress(ValueError):  # in the middle of a value of several lines
                return _has(tomllib.loads("".join(lines[:end])), keys)
        return True

    return bisect_left(range(len(lines)), True, key=is_in)


def _has(found: Any, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(found, dict) or key not in found:
            return False
        found = found[key]
    return True

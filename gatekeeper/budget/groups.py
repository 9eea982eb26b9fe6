"""The accounts of groups: caps for a tenant, a model or a day under the budget's cap.

A name such as "tenant" divides the outputs into groups; an output is in one group of each name. The
account of a group is called "tenant=a".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import Any, TypeGuard

from gatekeeper.errors import BadInputError
from gatekeeper.types import GroupAccount
from gatekeeper.types.values import as_number

__all__ = ["MODEL", "GroupAccounts", "checked_caps", "groups_of"]

MODEL = "model"  # the name whose groups are the models that outputs are from
LONGEST = 200  # characters of a group: an account's name is a key of a database
GROUP = f"a printable string of 1 to {LONGEST} characters"


def checked_caps(groups: Any, most: float) -> dict[str, float | dict[str, float]]:
    """The caps as floats.

    Parameters
    ----------
    most
        Units: no cap is above.

    Raises
    ------
    BadInputError
        For what is no mapping of names to caps.
    """
    example = "give caps by name, such as {'tenant': {'a': 50, 'b': 100}, 'day': 200}"
    if not isinstance(groups, Mapping):
        raise BadInputError(f"groups={groups!r:.80}: {example}")
    found: dict[str, float | dict[str, float]] = {}
    for name, caps in groups.items():
        if not _is_group(name) or "=" in name:
            raise BadInputError(f"groups has the name {name!r:.80}: {example}, each {GROUP}")
        if not isinstance(caps, Mapping):
            found[name] = _cap(name, caps, most)
            continue
        for group in caps:
            if not _is_group(group):
                raise BadInputError(f"groups[{name!r}] has the group {group!r:.80}: give {GROUP}")
        found[name] = {group: _cap(f"{name}={group}", cap, most) for group, cap in caps.items()}
    return found


def _cap(account: str, cap: object, most: float) -> float:
    if isinstance(cap, Real) and not isinstance(cap, bool):
        value = as_number(account, cap)
        if 0 <= value <= most:
            return value
    raise BadInputError(
        f"groups: the cap of {account!r} is {cap!r:.80}: give a number from 0 to {most:g}"
    )


def groups_of(names: Collection[str], task: object, model: str | None) -> dict[str, str]:
    """The group of each name that an output is in.

    Parameters
    ----------
    names
        Names of the budget's groups.
    task
        Task of the output: a mapping with these keys. "model" is not one of them.
    model
        That the output is from; None: unknown.

    Raises
    ------
    BadInputError
        If one is missing, because the output would not count under any cap.
    """
    found = {}
    for name in names:
        group = model if name == MODEL else task.get(name) if isinstance(task, Mapping) else None
        if type(group) is int:
            group = str(group)
        if not _is_group(group):
            where = "the output's model" if name == MODEL else f"the task's field {name!r}"
            raise BadInputError(
                f"{where} is {group!r:.80}, and the budget has a cap by {name}: give {GROUP}"
            )
        found[name] = group
    return found


def _is_group(group: object) -> TypeGuard[str]:
    return isinstance(group, str) and 0 < len(group) <= LONGEST and group.isprintable()


@dataclass(slots=True)
class _Account:
    """Amounts in ticks."""

    cap: int
    spent: int = 0
    held: int = 0


class GroupAccounts:
    """Spent and held amounts of each group with a cap, in ticks.

    Parameters
    ----------
    caps
        As `Budget.groups`, in units.
    ticks
        Ticks of a unit.
    """

    def __init__(self, caps: Mapping[str, float | Mapping[str, float]], ticks: int) -> None:
        self._caps, self._ticks = caps, ticks
        self._accounts: dict[str, _Account] = {}
        for name, each in caps.items():
            for group in each if isinstance(each, Mapping) else ():
                self.of({name: group})

    def of(self, groups: Mapping[str, str]) -> tuple[str, ...]:
        """The accounts that cap an output in these groups."""
        names = []
        for name, group in groups.items():
            caps = self._caps.get(name)
            cap = caps.get(group) if isinstance(caps, Mapping) else caps
            if cap is not None:
                account = f"{name}={group}"
                self._accounts.setdefault(account, _Account(round(cap * self._ticks)))
                names.append(account)
        return tuple(names)

    def caps(self, names: Iterable[str]) -> dict[str, int]:
        return {name: self._accounts[name].cap for name in names}

    def left(self, names: Iterable[str]) -> float:
        """The amount left in the fullest of these accounts; infinite if there are none."""
        left = inf
        for name in names:
            account = self._accounts[name]
            left = min(left, account.cap - account.spent - account.held)
        return left

    def hold(self, names: Iterable[str], amount: int) -> None:
        """Below 0: give back."""
        for name in names:
            self._accounts[name].held += amount

    def charge(self, names: Iterable[str], amount: int) -> None:
        for name in names:
            self._accounts[name].spent += amount

    def status(self) -> dict[str, GroupAccount]:
        """Each account by its name, in units, including listed groups without an output."""
        ticks = self._ticks
        return {
            name: GroupAccount(a.cap / ticks, a.spent / ticks, a.held / ticks)
            for name, a in sorted(self._accounts.items())
        }

    def state(self) -> dict[str, list[int]]:
        """A snapshot of values that `json` takes."""
        return {name: [a.cap, a.spent, a.held] for name, a in self._accounts.items()}

    def restore(self, state: Mapping[str, list[int]]) -> None:
        self._accounts = {name: _Account(*amounts) for name, amounts in state.items()}

"""The account of a budget: what is reserved, spent and left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import ceil, floor, inf, sqrt
from typing import Any, NamedTuple

from gatekeeper.budget.budget import MOST, TICKS, Budget
from gatekeeper.budget.groups import GroupAccounts

__all__ = ["Hold", "Ledger", "is_chargeable"]

SAFE = 3.0  # standard deviations of the number of draws to come
IN_A_ROW = 10.0  # draws kept for per share of the cap's growth that draws take, of unknown many


class Hold(NamedTuple):
    """The amount of a candidate's reservation, in whole billionths of the unit."""

    amount: int
    accrued: int  # what the candidate added to the running cap's base
    cost_estimate: float
    warmup: bool
    groups: tuple[str, ...] = ()  # accounts of groups, which are held together with the budget's


class Ledger:
    """Reserve before a verification, settle or release after it: overshoot is zero.

    Two accounts: the warm-up, which only `Budget.total` caps, and the rest, which both cap. After
    every call `spent + held <= cap`, and no verification is charged more than its reservation:
    costs beyond are summed in `overrun`. The groups of `Budget.groups` have accounts beside these,
    for which the same holds. Not thread-safe: the gate locks.

    Why the running cap never falls below the committed amount: a candidate adds an estimate e <= r,
    its reservation, later replaced by the true cost c <= r. This moves the cap by β (c - e) and
    what is committed by c - r, and c - r <= β (c - e) for all β <= 1. At β = 1 it adds e = r, so
    that every candidate fits, whatever is in progress.

    With `explore` > 0 every candidate after the warm-up is verified with at least that probability,
    to the end. So a policy's proposal is admitted if its `room` covers the draws to come, `spare`;
    a draw needs room for itself only.

    Parameters
    ----------
    budget
        The budget to enforce.
    max_cost
        The reservation for one verification, in the budget's unit.
    explore
        Probability, in [0, 1], with which a candidate is drawn whatever the policy proposes.

    Attributes
    ----------
    holds
        The reservations, by id.
    released
        Those that were released, which may be made again.
    """

    reachable = True  # whether the shared budget could be reached; see `SharedLedger`
    logs_expected_cost = False  # whether a log must have it, see `SharedLedger`

    def __init__(self, budget: Budget, max_cost: float, *, explore: float = 0.0) -> None:
        self.budget = budget
        self.explore = explore
        self.seen = 0
        self._max_cost = _ticks(max_cost)
        self._total = None if budget.total is None else _ticks(budget.total)
        startup = budget.startup
        if startup is None:
            exact = budget.unit == "verifications" and budget.horizon is not None
            startup = 0.0 if exact else max_cost
        self._startup = _ticks(startup)
        self._is_fixed_price = budget.unit == "verifications" or budget.fraction == 1.0
        self.holds: dict[str, Hold] = {}
        self.released: dict[str, Hold] = {}
        self._spent = {False: 0, True: 0}  # by account: of the warm-up?
        self._held = {False: 0, True: 0}
        self.groups = GroupAccounts(budget.groups, TICKS)
        self._overrun = 0
        self._warmup_seen = 0
        self._base = 0  # Σ cost of the candidates seen after the warm-up
        self._projected: int | None = None  # the same for the whole stream, by `horizon`
        # As soon as that can be estimated.
        self._to_project = budget.horizon is not None and budget.fraction is not None
        self._settled = 0  # verifications, with their Σ c and Σ ĉ
        self._settled_cost = 0
        self._settled_estimate = 0.0
        self._costliest = 0

    @property
    def spent(self) -> float:
        """Charged after the warm-up."""
        return self._spent[False] / TICKS

    @property
    def held(self) -> float:
        """Reserved after the warm-up, not yet settled."""
        return self._held[False] / TICKS

    @property
    def warmup_spent(self) -> float:
        return self._spent[True] / TICKS

    @property
    def warmup_held(self) -> float:
        return self._held[True] / TICKS

    @property
    def reserved(self) -> int:
        """Reservations held, of both accounts."""
        return len(self.holds)

    @property
    def overrun(self) -> float:
        """Costs of verifications beyond their reservations. 0 if `max_cost` is right."""
        return self._overrun / TICKS

    @property
    def cap(self) -> float:
        """The amount that may be spent and held now, after the warm-up."""
        caps = [inf]
        if self.budget.fraction is not None:
            caps.append(self._fraction_cap(0, self._projected) / TICKS)
        if self._total is not None:
            caps.append((self._total - self._spent[True] - self._held[True]) / TICKS)
        return min(caps)

    @property
    def allowed(self) -> float | None:
        """The part of the cap for the candidates seen so far after the warm-up: all of it, or with
        a horizon their share of the stream. None for a budget that has no rate.
        """
        after, horizon = self.seen - self._warmup_seen, self.budget.horizon
        if horizon is None:
            return None if self.budget.fraction is None else self.cap
        return self.cap * min(after / max(horizon - self._warmup_seen, 1), 1.0)

    def behind(self) -> float:
        """How many verifications, at the mean cost so far, are allowed by now beyond those made.

        Below 0 where more were made; 0 for a budget that has no rate.
        """
        allowed = self.allowed
        mean = self._settled_cost / self._settled if self._settled else self._max_cost
        if allowed is None or not mean:
            return 0.0
        return (allowed - self.spent - self.held) * TICKS / mean

    def room(self, cost_estimate: float, *, warmup: bool) -> float:
        """Ticks that the caps would leave beside the verification of a candidate not yet seen.

        Below 0 there is no room for it. Changes nothing: after `see` of the same candidate,
        `left` returns the same.
        """
        if warmup:
            return self.left(warmup=True)
        projected = self._projection() if self._to_project else self._projected
        return self._left(self.expected_cost(cost_estimate), projected)

    def group_room(self, accounts: Iterable[str]) -> float:
        """Ticks that the fullest of these accounts of `groups` leaves beside one more verification;
        below 0: no room for it."""
        return self.groups.left(accounts) - self._max_cost

    def expected_cost(self, cost_estimate: float) -> int:
        """Ticks: the unit's price for verifications, else ĉ times the mean true cost per ĉ so far;
        0 while no true cost is known."""
        if self._is_fixed_price:
            return self._max_cost
        if not self._settled_estimate:
            return 0
        return min(
            round(self._settled_cost * cost_estimate / self._settled_estimate), self._max_cost
        )

    def see(
        self,
        cost_estimate: float,
        *,
        warmup: bool,
        groups: Mapping[str, str] | None = None,
        accrued: int | None = None,
    ) -> Hold:
        """Count a candidate; returns what `reserve` would hold for it.

        Its expected cost counts towards the cap, verified or not.

        Parameters
        ----------
        accrued
            That cost in ticks, where it does not follow from the calls before.
        """
        self.seen += 1
        if warmup:
            self._warmup_seen += 1
            accrued = 0
        else:
            if accrued is None:
                accrued = self.expected_cost(cost_estimate)
            self._base += accrued
            if self._to_project:
                self._projected = self._projection()
                # A warm-up's outputs are like those to come. Without one the first cost may be like
                # no other, so that the projection follows their mean.
                counted = self.budget.unit == "verifications"
                self._to_project = self._projected is None or not (counted or self._warmup_seen)
        accounts = self.groups.of(groups) if groups else ()
        values = self._max_cost, accrued, cost_estimate, warmup, accounts
        return tuple.__new__(Hold, values)  # in half the time of a call: every output has one

    def reserve(self, id_: str, hold: Hold) -> bool:
        """Whether there was room; then it is held."""
        if self.left(warmup=hold.warmup) < 0:
            return False
        if hold.groups:
            if self.group_room(hold.groups) < 0:
                return False
            self.groups.hold(hold.groups, hold.amount)
        self.holds[id_] = hold
        self._held[hold.warmup] += hold.amount
        return True

    def has_beside(self, ticks: int) -> bool:
        """Whether other processes leave so much room beside one more verification. There are none
        here.
        """
        return False

    def can_reserve_again(self, id_: str) -> bool:
        """The result that `reserve_again` would have. Changes nothing."""
        hold = self.released[id_]
        return self.left(warmup=hold.warmup) >= 0 and self.group_room(hold.groups) >= 0

    def reserve_again(self, id_: str) -> bool:
        """Reserve for a candidate whose reservation was released."""
        if not self.reserve(id_, self.released[id_]):
            return False
        del self.released[id_]
        return True

    def charge(self, id_: str, cost: float) -> float:
        """The charge that `settle` would make for a verification of this cost. Changes nothing."""
        hold = self.holds[id_]
        return min(_cost_ticks(cost, hold), hold.amount) / TICKS

    def settle(self, id_: str, cost: float) -> float:
        """Charge a finished verification; returns the charge.

        A cost that cannot be charged is charged as the whole reservation.
        """
        hold = self.holds.pop(id_)
        ticks = _cost_ticks(cost, hold)
        charge = min(ticks, hold.amount)
        self._overrun += ticks - charge
        self._held[hold.warmup] -= hold.amount
        self._spent[hold.warmup] += charge
        if hold.groups:
            self.groups.hold(hold.groups, -hold.amount)
            self.groups.charge(hold.groups, charge)
        self._settled += 1
        self._settled_cost += charge
        self._settled_estimate += hold.cost_estimate
        self._costliest = max(self._costliest, charge)
        if not hold.warmup:
            self._base += charge - hold.accrued
        return charge / TICKS

    def release(self, id_: str) -> None:
        """Give a reservation back."""
        hold = self.released[id_] = self.holds.pop(id_)
        self._held[hold.warmup] -= hold.amount
        self.groups.hold(hold.groups, -hold.amount)

    def left(self, *, warmup: bool) -> float:
        """Ticks that the caps leave beside one more verification; below 0: no room for it."""
        if warmup:
            committed = self._spent[False] + self._held[False] + self._max_cost
            if self._total is None:
                return inf
            return self._total - committed - self._spent[True] - self._held[True]
        return self._left(0, self._projected)

    def state(self) -> dict[str, Any]:
        """A snapshot of values that `json` takes."""
        return {
            "seen": [self.seen, self._warmup_seen],
            "holds": dict(self.holds),
            "released": dict(self.released),
            "spent": [self._spent[False], self._spent[True]],
            "held": [self._held[False], self._held[True]],
            "groups": self.groups.state(),
            "overrun": self._overrun,
            "base": self._base,
            "projected": [self._projected, self._to_project],
            "settled": [self._settled, self._settled_cost, self._settled_estimate],
            "costliest": self._costliest,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot that `state` of an equal ledger returned."""
        self.seen, self._warmup_seen = state["seen"]
        self.holds = {id_: _hold_of(hold) for id_, hold in state["holds"].items()}
        self.released = {id_: _hold_of(hold) for id_, hold in state["released"].items()}
        self.groups.restore(state["groups"])
        self._spent = dict(zip((False, True), state["spent"], strict=True))
        self._held = dict(zip((False, True), state["held"], strict=True))
        self._overrun, self._base = state["overrun"], state["base"]
        self._projected, self._to_project = state["projected"]
        self._settled, self._settled_cost, self._settled_estimate = state["settled"]
        self._costliest = state["costliest"]

    def _left(self, accrued: int, projected: int | None) -> float:
        """`left` after the warm-up, if the running cap's base were `accrued` ticks larger."""
        left = inf
        committed = self._spent[False] + self._held[False] + self._max_cost
        if self.budget.fraction is not None:
            left = self._fraction_cap(accrued, projected) - committed
        if self._total is not None:
            left = min(left, self._total - committed - self._spent[True] - self._held[True])
        return left

    def spare(self) -> int:
        """Ticks that the draws after the current candidate, which is not yet counted, rarely
        exceed.

        At the mean cost so far, except that one of them, and the policy's own verification, may be
        as expensive as the costliest so far. Without a horizon the cap grows as candidates come: a
        few draws are enough, more where they take a larger share of what it grows by.
        """
        if self.explore in (0.0, 1.0):  # no draws, or nothing else
            return 0
        if self.budget.horizon is None:
            draws = 1.0 + IN_A_ROW * self.explore / (self.budget.fraction or 1.0)
        else:
            to_come = max(self.budget.horizon - self.seen - 1, 0)
            expected = self.explore * to_come
            draws = min(expected + SAFE * sqrt(expected * (1.0 - self.explore)), to_come)
        if not draws:
            return 0
        mean = self._settled_cost / self._settled if self._settled else self._max_cost
        costliest = self._costliest if self._settled else self._max_cost
        return round((draws - 1.0) * mean) + costliest

    def _projection(self) -> int | None:
        """The expected cost of the whole stream of a known length; None while it cannot be
        estimated.
        """
        assert self.budget.horizon is not None
        to_come = max(self.budget.horizon - self._warmup_seen, 0)
        if self.budget.unit == "verifications":
            return to_come * self._max_cost
        if not self._settled or self._held[True]:  # the whole warm-up's mean, not the first's
            return None
        assert self.budget.fraction is not None
        committed = self._spent[False] + self._held[False] - self._startup
        mean_of_all = to_come * self._settled_cost // self._settled
        # Rounded up, so that the cap stays above what is committed.
        least = ceil(committed * (1.0 + 2.0**-50) / self.budget.fraction)
        return max(mean_of_all, least)

    def _fraction_cap(self, accrued: int, projected: int | None) -> int:
        """Ticks, rounded half up: unlike `round`, this shifts by whole ticks with its argument."""
        assert self.budget.fraction is not None
        base = max(self._base + accrued, projected or 0)
        if self.budget.fraction == 1.0:
            return self._startup + base  # to the tick, also where floats no longer are
        return self._startup + floor(self.budget.fraction * base + 0.5)


def is_chargeable(cost: float) -> bool:
    """Whether a cost is a number of at least 0."""
    return 0.0 <= cost < inf


def _ticks(amount: float) -> int:
    return round(amount * TICKS)


def _hold_of(values: list[Any]) -> Hold:
    amount, accrued, cost_estimate, warmup, groups = values
    return Hold(amount, accrued, cost_estimate, warmup, tuple(groups))


def _cost_ticks(cost: float, hold: Hold) -> int:
    """The whole reservation for a cost that cannot be charged."""
    return _ticks(min(cost, MOST)) if is_chargeable(cost) else hold.amount

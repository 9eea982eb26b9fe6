"""The budget and its ledger: in any order of events, nothing is overspent."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf, isinf, nan
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gatekeeper import BadInputError, Budget, VerificationGate
from gatekeeper.budget import Ledger
from gatekeeper.testing import ScriptedVerifier, make_generation

SETTINGS = settings(
    derandomize=True, deadline=None, database=None, max_examples=80, stateful_step_count=40
)
TICK = 10**9  # the ledger is exact in billionths of the unit


def ticks(amount: float) -> int:
    """A figure the ledger shows, as the whole number of ticks that it is."""
    assert amount >= 0.0
    whole = round(amount * TICK)
    assert whole / TICK == amount, f"{amount!r} is not a whole number of ticks"
    return whole


def see(ledger: Ledger, id_: str, estimate: float, *, warmup: bool, verify: bool) -> bool:
    """See a candidate, and reserve its verification if it is proposed and there is room."""
    room = ledger.room(estimate, warmup=warmup)
    hold = ledger.see(estimate, warmup=warmup)
    assert ledger.left(warmup=warmup) == room
    return verify and ledger.reserve(id_, hold)


@dataclass
class Seen:
    """The model's state of a candidate."""

    warmup: bool
    estimate: float
    accrued: Fraction = Fraction(0)
    charge: int | None = None


def budgets() -> st.SearchStrategy[Budget]:
    """All units; fraction, total or both; with and without a horizon and a start-up allowance."""

    @st.composite
    def build(draw: Any) -> Budget:
        unit = draw(st.sampled_from(["verifications", "seconds", "usd"]))
        which = draw(st.sampled_from(["fraction", "total", "both"]))
        fraction = draw(
            st.sampled_from([0.1, 0.2, 0.3, 1 / 3, 0.5, 0.9, 0.999, 1.0]) | st.floats(0.001, 0.999)
        )
        total = draw(st.integers(1, 12).map(float) | st.floats(0.5, 12.0))
        return Budget(
            unit=unit,
            fraction=fraction if which != "total" else None,
            total=total if which != "fraction" else None,
            horizon=draw(st.none() | st.integers(1, 30)),
            startup=draw(st.none() | st.sampled_from([0.0, 0.5, 1.0, 3.0])),
            max_cost=None
            if unit == "verifications"
            else draw(st.sampled_from([0.001, 0.3, 1.0, 2.5])),
        )

    return build()


class AnyOrder(RuleBasedStateMachine):
    """See, settle, release and reserve again in any order, against a plain model.

    Charges and holds are compared to the tick. The cap, which rests on means of floats, is
    worked out in fractions and compared to a few ticks; what was admitted must fit the cap that
    the ledger itself shows, to the tick, and what was refused must not.
    """

    @initialize(budget=budgets(), warmup=st.integers(0, 6))
    def start(self, budget: Budget, warmup: int) -> None:
        self.budget = budget
        self.reserve = 1.0 if budget.max_cost is None else budget.max_cost
        self.ledger = Ledger(budget, self.reserve)
        self.warmup = warmup
        self.seen: dict[str, Seen] = {}
        self.held: list[str] = []
        self.released: list[str] = []
        self.overrun = 0
        self.projected: Fraction | None = None

    # -- the model

    def amount(self, *, warmup: bool) -> tuple[int, int]:
        """Spent and held of an account, in ticks."""
        spent = sum(s.charge or 0 for s in self.seen.values() if s.warmup == warmup)
        held = sum(self.seen[i].warmup == warmup for i in self.held)
        return spent, held * round(self.reserve * TICK)

    def cost_per_estimate(self) -> Fraction | None:
        known = [s for s in self.seen.values() if s.charge is not None]
        estimates = sum(Fraction(s.estimate) for s in known)
        return sum(Fraction(s.charge or 0) for s in known) / estimates if known else None

    def expected_cap(self) -> Fraction | float:
        caps: list[Fraction | float] = [inf]
        if self.budget.fraction is not None:
            base = sum(
                (s.accrued if s.charge is None else s.charge)
                for s in self.seen.values()
                if not s.warmup
            )
            startup = self.budget.startup
            if startup is None:
                exact = self.budget.unit == "verifications" and self.budget.horizon is not None
                startup = 0.0 if exact else self.reserve
            base = max(base, self.projected or 0)
            caps.append(Fraction(startup) * TICK + Fraction(self.budget.fraction) * base)
        if self.budget.total is not None:
            caps.append(round(self.budget.total * TICK) - sum(self.amount(warmup=True)))
        return min(caps)

    def room(self, *, warmup: bool) -> bool:
        """Whether one more reservation fits the caps that the ledger shows."""
        one = round(self.reserve * TICK)
        mine, others = self.amount(warmup=False), self.amount(warmup=True)
        fits_total = self.budget.total is None or sum(mine) + sum(others) + one <= round(
            self.budget.total * TICK
        )
        if warmup:
            return fits_total
        return fits_total and (
            isinf(self.ledger.cap) or sum(mine) + one <= round(self.ledger.cap * TICK)
        )

    # -- events

    @rule(estimate=st.floats(0.01, 100.0), verify=st.sampled_from([True, True, False]))
    def see(self, estimate: float, verify: bool) -> None:
        id_ = f"c{len(self.seen)}"
        seen = Seen(len(self.seen) < self.warmup, estimate)
        rate = self.cost_per_estimate()
        if not seen.warmup:
            if self.budget.unit == "verifications":
                seen.accrued = Fraction(TICK)
            elif self.budget.fraction == 1.0:
                seen.accrued = Fraction(round(self.reserve * TICK))
            elif rate is not None:
                seen.accrued = min(rate * Fraction(estimate), Fraction(round(self.reserve * TICK)))
            if self.budget.horizon is not None and self.projected is None:
                to_come = max(self.budget.horizon - min(self.warmup, len(self.seen)), 0)
                known = [s.charge for s in self.seen.values() if s.charge is not None]
                if self.budget.unit == "verifications":
                    self.projected = Fraction(to_come * TICK)
                elif known and not self.amount(warmup=True)[1]:
                    self.projected = Fraction(to_come * sum(known), len(known))
        admitted = see(self.ledger, id_, estimate, warmup=seen.warmup, verify=verify)
        self.seen[id_] = seen
        assert admitted == (verify and self.room(warmup=seen.warmup))
        if self.budget.fraction == 1.0 and self.budget.total is None:
            assert admitted == verify  # a fraction of 1 never refuses
        if admitted:
            self.held.append(id_)

    @precondition(lambda self: self.held)
    @rule(
        data=st.data(),
        share=st.sampled_from([0.0, 1e-10, 0.1, 0.5, 1.0, 1.0, 1.5, 40.0]) | st.floats(0.0, 2.0),
    )
    def settle(self, data: st.DataObject, share: float) -> None:
        id_ = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        cost = 1.0 if self.budget.unit == "verifications" else share * self.reserve
        reserve = round(self.reserve * TICK)
        charge = min(round(cost * TICK), reserve)
        self.overrun += round(cost * TICK) - charge
        self.seen[id_].charge = charge
        assert ticks(self.ledger.charge(id_, cost)) == charge
        assert ticks(self.ledger.settle(id_, cost)) == charge

    @precondition(lambda self: self.held)
    @rule(data=st.data(), cost=st.sampled_from([nan, inf, -inf, -1.0]))
    def settle_at_no_number(self, data: st.DataObject, cost: float) -> None:
        """An invalid cost is charged as the reservation."""
        id_ = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.seen[id_].charge = round(self.reserve * TICK)
        assert ticks(self.ledger.charge(id_, cost)) == self.seen[id_].charge
        assert ticks(self.ledger.settle(id_, cost)) == self.seen[id_].charge

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        id_ = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.ledger.release(id_)
        self.released.append(id_)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def release_and_take_back(self, data: st.DataObject) -> None:
        """A released amount can be reserved again, and nothing else has changed."""
        id_ = data.draw(st.sampled_from(self.held))
        before = self.figures()
        self.ledger.release(id_)
        assert self.figures() != before
        assert self.ledger.reserve_again(id_)
        assert self.figures() == before

    @precondition(lambda self: self.released)
    @rule(data=st.data())
    def reserve_again(self, data: st.DataObject) -> None:
        id_ = data.draw(st.sampled_from(self.released))
        room, before = self.room(warmup=self.seen[id_].warmup), self.figures()
        assert self.ledger.can_reserve_again(id_) == room
        assert self.ledger.reserve_again(id_) == room
        assert room or self.budget.fraction != 1.0 or self.budget.total is not None
        if room:
            self.released.remove(id_)
            self.held.append(id_)
        else:
            assert self.figures() == before

    def figures(self) -> tuple[float, ...]:
        one = self.ledger
        return one.spent, one.held, one.warmup_spent, one.warmup_held, one.cap, one.overrun

    # -- invariants after every step

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "ledger"):
            return
        ledger = self.ledger
        mine = ticks(ledger.spent), ticks(ledger.held)
        warmup = ticks(ledger.warmup_spent), ticks(ledger.warmup_held)
        assert mine == self.amount(warmup=False)
        assert warmup == self.amount(warmup=True)
        assert ticks(ledger.overrun) == self.overrun
        assert ledger.seen == len(self.seen)
        assert ledger.reserved == len(self.held)
        assert isinf(ledger.cap) or sum(mine) <= ticks(ledger.cap)
        if self.budget.total is not None:
            assert sum(mine) + sum(warmup) <= round(self.budget.total * TICK)
        expected = self.expected_cap()
        if isinf(expected):
            assert isinf(ledger.cap)
        else:
            assert abs(ticks(ledger.cap) - expected) <= 2 + len(self.seen) / 2


AnyOrder.TestCase.settings = SETTINGS
TestAnyOrder = AnyOrder.TestCase


class Verifications(RuleBasedStateMachine):
    """unit="verifications", as a user would check it on paper: exact fractions, no ticks."""

    @initialize(
        percent=st.integers(1, 99),
        total=st.none() | st.integers(1, 15),
        horizon=st.none() | st.integers(1, 40),
        warmup=st.integers(0, 5),
    )
    def start(self, percent: int, total: int | None, horizon: int | None, warmup: int) -> None:
        self.ledger = Ledger(Budget(fraction=percent / 100, total=total, horizon=horizon), 1.0)
        self.fraction, self.total, self.horizon = Fraction(percent, 100), total, horizon
        self.warmup, self.seen = warmup, 0
        self.state: dict[str, str] = {}
        self.account: dict[str, bool] = {}

    def committed(self, *, warmup: bool | None = None) -> int:
        return sum(
            state in ("held", "spent") and warmup in (None, self.account[i])
            for i, state in self.state.items()
        )

    def may(self, *, warmup: bool) -> bool:
        if self.total is not None and self.committed() + 1 > self.total:
            return False
        after = max(self.seen - self.warmup, 0)
        startup = 1 if self.horizon is None else 0
        stream = max(after, (self.horizon or 0) - self.warmup)
        return warmup or self.committed(warmup=False) + 1 <= startup + self.fraction * stream

    @rule(verify=st.sampled_from([True, True, True, False]))
    def see(self, verify: bool) -> None:
        id_, warmup = f"c{self.seen}", self.seen < self.warmup
        self.seen += 1
        self.account[id_] = warmup
        expected = verify and self.may(warmup=warmup)
        assert see(self.ledger, id_, 2.5, warmup=warmup, verify=verify) == expected
        self.state[id_] = "held" if expected else "out"

    @rule(count=st.integers(5, 25))
    def see_many(self, count: int) -> None:
        for _ in range(count):
            self.see(True)

    @rule(data=st.data(), to=st.sampled_from(["spent", "spent", "released"]))
    def finish(self, data: st.DataObject, to: str) -> None:
        held = [i for i, state in self.state.items() if state == "held"]
        if held:
            id_ = data.draw(st.sampled_from(held))
            if to == "spent":
                assert self.ledger.settle(id_, 1.0) == 1.0
            else:
                self.ledger.release(id_)
            self.state[id_] = to

    @rule(data=st.data())
    def again(self, data: st.DataObject) -> None:
        released = [i for i, state in self.state.items() if state == "released"]
        if released:
            id_ = data.draw(st.sampled_from(released))
            expected = self.may(warmup=self.account[id_])
            assert self.ledger.reserve_again(id_) == expected
            self.state[id_] = "held" if expected else "released"

    @invariant()
    def counts(self) -> None:
        if hasattr(self, "ledger"):
            assert self.ledger.spent + self.ledger.held == self.committed(warmup=False)
            assert self.ledger.warmup_spent + self.ledger.warmup_held == self.committed(warmup=True)


Verifications.TestCase.settings = SETTINGS
TestVerifications = Verifications.TestCase


@pytest.mark.parametrize("fraction", [0.05, 0.1, 0.2, 0.3, 1 / 3, 0.5])
@pytest.mark.parametrize("unit", ["verifications", "seconds"])
def test_a_fraction_is_never_exceeded_and_nearly_used(unit: str, fraction: float) -> None:
    """Everything wanted, a third of it lost on the way, many under way at once: at every moment
    what was spent is at most fraction × what all candidates so far would have cost, plus the
    allowance for one; and in the end at most one verification's worth short of it."""
    rng = np.random.default_rng(3)
    budget = Budget(fraction=fraction, unit=unit, max_cost=None if unit == "verifications" else 1.0)
    ledger = Ledger(budget, 1.0)
    for i in range(20):  # a warm-up, from which seconds learn what a verification costs
        assert see(ledger, f"w{i}", 1.0, warmup=True, verify=True)
        ledger.settle(f"w{i}", 1.0)
    held: list[str] = []
    for n in range(1, 1501):
        if see(ledger, f"c{n}", 1.0, warmup=False, verify=True):
            held.append(f"c{n}")
        while len(held) > 5:
            id_ = held.pop(int(rng.integers(len(held))))
            if rng.random() < 1 / 3:
                ledger.release(id_)
            else:
                ledger.settle(id_, 1.0)
        assert ledger.spent + ledger.held <= fraction * n + 1.0 + 1 / TICK
    assert ledger.spent + ledger.held >= floor(fraction * 1500)


@pytest.mark.parametrize("percent", range(1, 100))
def test_per_cents_are_exact(percent: int) -> None:
    """0.29 × 100 is 28.999999999999996 in floats; of 100 candidates 29 % are still 29 (and the
    first, which the start-up allowance lets through)."""
    ledger = Ledger(Budget(fraction=percent / 100), 1.0)
    admitted = sum(see(ledger, f"c{i}", 1.0, warmup=False, verify=True) for i in range(100))
    assert admitted == min(percent + 1, 100)
    assert ledger.cap == percent + 1


def test_more_and_less_expensive_verifications_never_exceed_the_cap() -> None:
    """In seconds the cap follows what verifications turn out to cost, up and down."""
    rng = np.random.default_rng(5)
    ledger = Ledger(Budget(fraction=0.9, unit="seconds", max_cost=1.0), 1.0)
    held: list[str] = []
    for n in range(3000):
        if see(ledger, f"c{n}", float(rng.lognormal()), warmup=n < 5, verify=True):
            held.append(f"c{n}")
        while held and rng.random() < 0.6:
            cost = float(rng.choice([0.0, 1e-9, 0.2, 0.999999999, 1.0, 3.0]))
            ledger.settle(held.pop(int(rng.integers(len(held)))), cost)
            assert ticks(ledger.spent) + ticks(ledger.held) <= ticks(ledger.cap)
    assert ledger.overrun > 0.0


@pytest.mark.parametrize("cost", [1.5, 1e6, 1e300])
def test_what_a_verification_takes_beyond_its_reservation_shows_as_overrun(cost: float) -> None:
    """It is charged the reservation, however absurd the figure, and nothing stays held."""
    ledger = Ledger(Budget(total=5.0, unit="usd", max_cost=1.0), 1.0)
    assert see(ledger, "a", 1.0, warmup=False, verify=True)
    assert ledger.settle("a", cost) == 1.0
    assert (ledger.spent, ledger.held) == (1.0, 0.0)
    assert min(ledger.overrun, 1e9) == pytest.approx(min(cost - 1.0, 1e9))


def test_a_total_is_used_up_to_the_last_unit_and_no_further() -> None:
    """0.1 + 0.2 is 0.3 here: no verification is lost, and none gained, to binary fractions."""
    ledger = Ledger(Budget(total=0.3, unit="usd", max_cost=0.1), 0.1)
    admitted = [see(ledger, f"c{i}", 1.0, warmup=i == 0, verify=True) for i in range(5)]
    assert admitted == [True, True, True, False, False]
    for i in range(3):
        ledger.settle(f"c{i}", 0.1)
    assert (ledger.warmup_spent, ledger.spent, ledger.held) == (0.1, 0.2, 0.0)
    assert ledger.cap == pytest.approx(0.2)


@pytest.mark.parametrize("first", [6.0, 0.6, 0.01])
def test_the_first_cost_alone_is_no_plan(first: float) -> None:
    """Without a warm-up the plan for a stream of known length follows the mean cost."""
    budget = Budget(fraction=0.2, unit="usd", max_cost=6.0, horizon=600)
    ledger = Ledger(budget, 6.0)
    for i in range(200):
        if see(ledger, str(i), 1.0, warmup=False, verify=i % 5 == 0):
            assert ledger.settle(str(i), 0.6 if i else first) == (0.6 if i else first)
        assert ledger.spent + ledger.held <= ledger.cap
    assert ledger.cap == pytest.approx(6.0 + 0.2 * 600 * 0.6, rel=0.25)  # 1 + 9 / 40 at most


def test_with_a_horizon_the_whole_streams_budget_is_there_from_the_start() -> None:
    """fraction × (horizon - warm-up), no start-up allowance on top."""
    ledger = Ledger(Budget(fraction=0.2, horizon=60), 1.0)
    for i in range(10):
        assert see(ledger, f"w{i}", 1.0, warmup=True, verify=True)
    admitted = [see(ledger, f"c{i}", 1.0, warmup=False, verify=True) for i in range(50)]
    assert admitted == [True] * 10 + [False] * 40


@pytest.mark.parametrize("horizon", [None, 1500])
@pytest.mark.parametrize("explore", [0.01, 0.02])
def test_a_policy_leaves_room_for_the_draws_to_come(explore: float, horizon: int | None) -> None:
    """A policy that wants everything, draws in between, expensive and cheap: the draws have room
    on practically every candidate to the last, and little of the budget is left."""
    rng = np.random.default_rng(11)
    budget = Budget(fraction=0.2, unit="usd", max_cost=3.0, horizon=horizon)
    ledger = Ledger(budget, 3.0, explore=explore)
    none = 0
    for n in range(1500):
        room, spare = ledger.room(1.0, warmup=n < 50), ledger.spare()
        hold = ledger.see(1.0, warmup=n < 50)
        assert ledger.left(warmup=n < 50) == room
        none += room < 0
        admitted = room >= spare
        assert not admitted or room >= 0
        if (admitted or rng.random() < explore) and ledger.reserve(f"c{n}", hold):
            ledger.settle(f"c{n}", float(rng.uniform(0.2, 1.8)))
        assert ticks(ledger.spent) + ticks(ledger.held) <= ticks(ledger.cap)
    assert none <= 1
    assert ledger.spent >= 0.96 * ledger.cap - 3.0


BAD = [
    ({}, "caps nothing"),
    ({"fraction": 0.0}, "fraction=0.0"),
    ({"fraction": 1.01}, "fraction=1.01"),
    ({"fraction": -0.2}, "fraction=-0.2"),
    ({"fraction": 20}, "fraction=20"),
    ({"fraction": nan}, "fraction=nan"),
    ({"fraction": "0.2"}, "fraction='0.2'"),
    ({"total": 0}, "total=0"),
    ({"total": -5.0}, "total=-5.0"),
    ({"total": inf}, "total=inf"),
    ({"total": nan}, "total=nan"),
    ({"total": "300"}, "total='300'"),
    ({"total": 1e300}, "total=1e.300: .* 1e.18"),
    ({"total": 10**400}, "total=1000*.*1e.18"),
    ({"fraction": -(10**400)}, "fraction=-1000*"),
    ({"fraction": 0.2, "startup": 1e300}, "startup=1e.300"),
    ({"fraction": 0.2, "unit": "usd", "max_cost": 1e19}, "max_cost=1e.19"),
    ({"total": 1, "horizon": 10**400}, "horizon=1000*"),
    ({"total": 1, "groups": {"day": 10**400}}, "'day' is 1000*.* 1e.18"),
    ({"total": 1, "groups": {"day": {"mo": 1e19}}}, "'day=mo' is 1e.19: .* 1e.18"),
    ({"fraction": 0.2, "unit": "tokens"}, "unit='tokens'.*verifications, seconds, usd"),
    ({"fraction": 0.2, "horizon": 0}, "horizon=0"),
    ({"fraction": 0.2, "horizon": -3}, "horizon=-3"),
    ({"fraction": 0.2, "horizon": 10.5}, "horizon=10.5"),
    ({"fraction": 0.2, "horizon": inf}, "horizon=inf"),
    ({"fraction": 0.2, "startup": -1.0}, "startup=-1.0"),
    ({"fraction": 0.2, "startup": nan}, "startup=nan"),
    ({"fraction": 0.2, "startup": "1"}, "startup='1'"),
    ({"fraction": 0.2, "max_cost": 2.0}, "max_cost=2.0"),
    ({"fraction": 0.2, "unit": "usd", "max_cost": 0.0}, "max_cost=0.0"),
    ({"fraction": 0.2, "unit": "usd", "max_cost": inf}, "max_cost=inf"),
    # less than the ledger can count: would be reserved, and charged, as nothing
    ({"total": 1.0, "unit": "usd", "max_cost": 1e-10}, "max_cost=1e-10"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_an_invalid_budget_is_refused_by_name_and_value(
    arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInputError, match=message):
        Budget(**arguments)


def test_the_largest_budget_is_one_that_a_gate_takes() -> None:
    budget = Budget(fraction=1.0, total=1e18, startup=1e18, groups={"day": 1e18})
    gate = VerificationGate("random", budget=budget, verifier=ScriptedVerifier())
    assert gate.maybe_verify(make_generation("a"), {"day": "mo"}).verified


def test_a_verifiers_own_limit_is_checked_like_a_budgets() -> None:
    verifier = ScriptedVerifier()
    verifier.max_seconds = 1e300  # type: ignore[attr-defined]
    with pytest.raises(BadInputError, match=r"max_cost=1e.300"):
        VerificationGate("random", budget=Budget(fraction=0.2, unit="seconds"), verifier=verifier)

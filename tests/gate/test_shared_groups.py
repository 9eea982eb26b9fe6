"""Caps of groups in several processes on one run: none is exceeded, and all can be used up."""

from __future__ import annotations

import multiprocessing
import random
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from shared_runs import accounts, check_every_moment, reclaim
from ticks import ticks

from gatekeeper import Budget, Generation, Outcome, Random, Reason, Verdict, VerificationGate
from gatekeeper.errors import BadInputError
from gatekeeper.log import PostgresRun
from gatekeeper.testing import make_generation

if TYPE_CHECKING:
    from postgres import Server

FORK = multiprocessing.get_context("fork")
CAPS = {"tenant": {"a": 9, "b": 17}, "day": 30}


@pytest.fixture
def place(postgres: Server) -> PostgresRun:
    return postgres.new_run()


def verifier(generation: Generation, task: object) -> Outcome:
    return Outcome(Verdict.PASSED, cost=random.Random(generation.id).uniform(0.0, 2.0))


def open_gate(place: PostgresRun, budget: Budget) -> VerificationGate:
    return VerificationGate(
        Random(0.8, warmup=5), budget=budget, verifier=verifier, log=place, shared=True
    )


def output(number: int, i: int) -> tuple[Generation, dict[str, str]]:
    task = {"tenant": "abc"[i % 3], "day": "mo" if i < 60 else "tu"}
    return make_generation(f"p{number}-{i}", seed=i), task


def work(place: PostgresRun, budget: Budget, number: int, tasks: int) -> None:
    with open_gate(place, budget) as gate:
        for i in range(tasks):
            gate.maybe_verify(*output(number, i))


@pytest.mark.parametrize(
    "budget",
    [
        Budget(fraction=0.9, groups=CAPS),
        Budget(fraction=0.9, total=80, unit="usd", max_cost=2.0, groups=CAPS),
    ],
    ids=("fraction", "usd"),
)
def test_kill_9_of_processes_with_groups(budget: Budget, place: PostgresRun) -> None:
    """Overshoot 0 of every account at every event, and in the database."""
    rng = random.Random(str(budget))
    open_gate(place, budget).close()
    running = [FORK.Process(target=work, args=(place, budget, i, 120)) for i in range(3)]
    for process in running:
        process.start()
    for number in (3, 4):
        time.sleep(rng.uniform(0.1, 0.3))
        process = running.pop(rng.randrange(len(running)))
        process.kill()
        process.join()
        assert process.pid is not None
        reclaim(place, process.pid)
        running.append(FORK.Process(target=work, args=(place, budget, number, 60)))
        running[-1].start()
    for process in running:
        process.join(60)
        assert process.exitcode == 0
    with open_gate(place, budget) as gate:
        for generation in gate.pending():
            gate.maybe_verify(generation)
        groups = gate.status().groups
    state = check_every_moment(place)
    assert state.ledger.groups.status() == groups
    granted = accounts(place)
    for name, group in groups.items():
        assert group.held == 0
        assert ticks(group.spent) <= granted[name] <= ticks(group.cap)


def test_a_full_group_is_full_in_all_processes_and_blocks_no_other(place: PostgresRun) -> None:
    """Without kills each cap is spent to the last unit; others go on in every process."""
    budget = Budget(fraction=0.9, groups=CAPS)
    gates = [open_gate(place, budget) for _ in range(3)]
    decisions: dict[str, list[Any]] = {"a": [], "b": [], "c": []}
    for i in range(60):
        for number, gate in enumerate(gates):
            generation, task = output(number, i)
            task["day"] = f"d{i // 4}"
            decisions[task["tenant"]].append(gate.maybe_verify(generation, task).decision)
    for gate in gates:
        gate.close()
    groups = check_every_moment(place).ledger.groups.status()
    assert (groups["tenant=a"].spent, groups["tenant=b"].spent) == (9, 17)
    granted = accounts(place)
    assert (granted["tenant=a"], granted["tenant=b"]) == (ticks(9), ticks(17))
    assert not any(d.reason is Reason.GROUP_EXHAUSTED for d in decisions["c"])
    assert sum(d.verify for d in decisions["c"]) > 30
    assert decisions["a"][-1].reason in (Reason.GROUP_EXHAUSTED, Reason.POLICY)
    assert not decisions["a"][-1].verify


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"groups": {"day": 1e10}}, "groups['day']=10000000000.0"),
        ({"groups": {"tenant": {"a": 1e10}}}, "groups['tenant']['a']=10000000000.0"),
        ({"total": 1e10}, "total=10000000000.0"),
        ({"startup": 1e18}, "startup=1e+18"),
        ({"unit": "usd", "max_cost": 1e10}, "max_cost=10000000000.0"),
    ],
)
def test_amounts_that_no_database_counts(
    more: dict[str, Any], named: str, place: PostgresRun
) -> None:
    with pytest.raises(BadInputError, match=re.escape(f"{named}: several processes can share at")):
        open_gate(place, Budget(fraction=0.9, **more))


def test_the_largest_amounts(place: PostgresRun) -> None:
    caps = {"tenant": dict.fromkeys("abc", 1e9), "day": 1e9}
    with open_gate(place, Budget(fraction=0.9, total=1e9, startup=1e9, groups=caps)) as gate:
        for i in range(8):
            gate.maybe_verify(*output(1, i))
        assert gate.status().spent + gate.status().warmup_spent > 0

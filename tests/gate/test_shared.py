"""One budget in several gates on a run: kills, a fenced gate, a database that stops."""

from __future__ import annotations

import multiprocessing
import os
import random
import time
from itertools import count
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest
from shared_runs import (
    FULL,
    HISTORIES,
    PATIENCE,
    accounts,
    asked,
    check_every_moment,
    reclaim,
    until,
)
from ticks import ticks

from gatekeeper import (
    BadInputError,
    Budget,
    Generation,
    LogError,
    Outcome,
    Random,
    Reason,
    Verdict,
    VerificationGate,
)
from gatekeeper.budget.leases import Leases
from gatekeeper.errors import LogLockedError, LogMismatchError
from gatekeeper.log import PostgresRun, postgres_shared
from gatekeeper.log.run import read_run
from gatekeeper.testing import make_generation

if TYPE_CHECKING:
    from postgres import Server

FORK = multiprocessing.get_context("fork")
PROCESSES, TASKS = (8, 1000) if FULL else (4, 150)  # of each
BUDGETS = (
    Budget(fraction=0.3),
    Budget(fraction=0.4, total=PROCESSES * TASKS / 8),
    Budget(total=PROCESSES * TASKS / 10, horizon=PROCESSES * TASKS),
    Budget(fraction=0.25, unit="usd", max_cost=2.0, startup=6.0),
)


@pytest.fixture
def place(postgres: Server) -> PostgresRun:
    return postgres.new_run()


def verifier(generation: Generation, task: object) -> Outcome:
    rng = random.Random(generation.id)
    verdict = rng.choice(("passed", "passed", "failed"))
    return Outcome(Verdict(verdict), cost=rng.uniform(0.0, 2.0))


def open_gate(place: PostgresRun, **given: Any) -> VerificationGate:
    given = {"policy": "cst", "budget": Budget(fraction=0.3), "verifier": verifier} | given
    return VerificationGate(**given, warmup=5, log=place, shared=True)


def output(id_: str) -> Generation:
    return make_generation(id_, tokens=20, seed=sum(id_.encode()))


def work(place: PostgresRun, budget: Budget, number: int, tasks: int) -> None:
    with open_gate(place, budget=budget) as gate:
        for i in range(tasks):
            gate.maybe_verify(output(f"p{number}-{i}"))


def bound(place: PostgresRun) -> int:
    """What the only gate may have used of the total."""
    ((found,),) = asked(
        place,
        "SELECT bound FROM gatekeeper.leases JOIN gatekeeper.runs USING (run) WHERE name = %s",
    )
    return int(found)


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_kill_9_of_random_gates(seed: int, place: PostgresRun) -> None:
    """Overshoot 0 at every event; what was under way is finished once, by another gate; and then
    less than a unit of a total is left unused."""
    budget = BUDGETS[seed % len(BUDGETS)]
    rng = random.Random(f"gates {seed}")
    open_gate(place, budget=budget).close()
    running = [FORK.Process(target=work, args=(place, budget, i, TASKS)) for i in range(PROCESSES)]
    for process in running:
        process.start()
    for number in range(PROCESSES, PROCESSES + 3):
        time.sleep(rng.uniform(0.0003, 0.002) * TASKS)
        process = running.pop(rng.randrange(len(running)))
        process.kill()
        process.join()
        assert process.pid is not None
        reclaim(place, process.pid)
        running.append(FORK.Process(target=work, args=(place, budget, number, TASKS // 4)))
        running[-1].start()
    for process in running:
        process.join(PATIENCE)
        assert process.exitcode == 0
    with open_gate(place, budget=budget) as gate:
        for generation in gate.pending():
            gate.maybe_verify(generation)
        assert not gate.pending()
        if budget.fraction is None:
            left = (gate.maybe_verify(output(f"last-{i}"), force=True) for i in count())
            assert any(not result.decision.verify for result in left)
    state = check_every_moment(place)
    assert state.ledger.held == state.ledger.warmup_held == 0
    if budget.total is not None:
        spent = ticks(state.ledger.spent) + ticks(state.ledger.warmup_spent)
        assert spent <= accounts(place)["total"] <= ticks(budget.total)
        if budget.fraction is None:
            assert accounts(place)["total"] > ticks(budget.total - 1)


def test_a_cap_in_costs_is_what_the_deciding_gates_knew(
    place: PostgresRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an output adds to the cap depends on the mean cost. One gate's verifications cost
    nothing, and another, which has not read of them, has a cap that grows by what its own cost."""
    monkeypatch.setattr(postgres_shared, "FOLLOW", 1e9)

    def priced(generation: Generation, task: object) -> Outcome:
        return Outcome(Verdict.PASSED, cost=0.0 if generation.id.startswith("free") else 2.0)

    given: dict[str, Any] = {"policy": Random(0.9, warmup=5), "verifier": priced, "explore": 0.0}
    given |= {"budget": Budget(fraction=0.25, unit="usd", max_cost=2.0, startup=6.0)}
    with open_gate(place, **given) as gate, open_gate(place, **given) as other:
        for i in range(60):
            other.maybe_verify(output(f"free-{i}"))
        for i in range(60):
            gate.maybe_verify(output(f"costly-{i}"))
    ledger = check_every_moment(place).ledger
    assert read_run(place).ledger.state() == ledger.state()


def test_a_budget_goes_to_the_gates_that_need_it(place: PostgresRun) -> None:
    """Without kills all of a total is spent, to the last unit, and no more."""
    budget = Budget(total=90)
    given: dict[str, Any] = {"policy": None, "budget": budget, "explore": 0.0}
    gates = [open_gate(place, **given | {"policy": Random(0.9, warmup=5)}) for _ in range(4)]
    for i in range(45):
        for number, gate in enumerate(gates):
            gate.maybe_verify(output(f"p{number}-{i}"))
    assert sum(gate.status().budget_exhausted for gate in gates) > 0
    for gate in gates:
        gate.close()
    ledger = check_every_moment(place).ledger
    assert ledger.spent + ledger.warmup_spent == 90
    assert accounts(place) == {"total": ticks(90)}


def test_room_that_a_gate_does_not_need_is_soon_free(
    place: PostgresRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only by the next sign of life: a short stream would be over by then."""
    monkeypatch.setattr(postgres_shared, "BEAT", 1e9)
    with open_gate(place, policy=Random(0.01, warmup=5), explore=0.0) as gate:
        for i in range(105):
            gate.maybe_verify(output(f"g{i}"))
        log: Any = gate._life._log._log
        until(lambda: log.leases.free()["rate"] >= ticks(15.0))


def test_propensities_do_not_depend_on_the_draw(place: PostgresRun) -> None:
    """For a policy that draws, where a gate's own lease has no room beside the draws to come, but
    the amount that others leave has."""
    given: dict[str, Any] = {
        "policy": Random(0.1, warmup=5),
        "budget": Budget(total=100, horizon=800),
    }
    with open_gate(place, **given) as gate, open_gate(place, **given):
        decisions = [gate.maybe_verify(output(f"g{i}")).decision for i in range(200)][5:]
    assert {decision.verify for decision in decisions} == {True, False}
    assert len({decision.propensity for decision in decisions}) == 1


def test_a_fenced_gate_neither_spends_nor_writes(place: PostgresRun) -> None:
    calls = []

    def reclaimed(generation: Generation, task: object) -> bool:
        calls.append(generation.id)
        if generation.id == "late":  # it is taken for dead while its verifier runs
            reclaim(place, os.getpid())
        return True

    gate = open_gate(place, verifier=reclaimed)
    for i in range(20):
        gate.maybe_verify(output(f"g{i}"))
    with pytest.raises(LogError, match="taken for dead"):
        gate.maybe_verify(output("late"), force=True)
    before, logged = len(calls), len(read_run(place).outputs)
    for i in range(20):
        with pytest.raises(LogError, match="taken for dead"):
            gate.maybe_verify(output(f"h{i}"), force=True)
    gate.close()
    assert (len(calls), len(read_run(place).outputs)) == (before, logged)
    charged = accounts(place)["rate"]
    with open_gate(place) as other:  # goes on with what the fenced gate left
        assert [generation.id for generation in other.pending()] == ["late"]
        assert other.maybe_verify(output("late")).outcome is not None
    assert accounts(place)["rate"] == charged
    check_every_moment(place)


def test_a_database_that_is_gone_for_a_while(
    postgres: Server, place: PostgresRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decided on the leases held, then `budget_unavailable`; no exception, nothing is lost."""
    # A sign of life returns all but one of the verifications written ahead; only one comes here.
    beat, has_beaten = Leases.beat, Event()
    monkeypatch.setattr("gatekeeper.log.postgres_shared.BEAT", 600.0)
    monkeypatch.setattr(Leases, "beat", lambda leases: (beat(leases), has_beaten.set()))
    gate = open_gate(place, budget=Budget(total=200), policy=Random(0.5, warmup=5), explore=0.0)
    assert has_beaten.wait(60)
    for used in count(1):
        gate.maybe_verify(output(f"g{used}"), force=True)
        time.sleep(0.1)
        if used >= 20 and bound(place) == ticks(used + 4):  # the next four are written ahead
            break
        assert used < 60
    postgres.stop()
    try:
        reasons = [
            gate.maybe_verify(output(f"h{i}"), force=True).decision.reason for i in range(50)
        ]
    finally:
        postgres.start()
    held = reasons.count(Reason.FORCED)
    assert held == 4
    assert reasons == [Reason.FORCED] * held + [Reason.BUDGET_UNAVAILABLE] * (50 - held)
    deadline = time.monotonic() + 60
    for i in count():
        if gate.maybe_verify(output(f"i{i}"), force=True).decision.verify:
            break
        assert time.monotonic() < deadline
        time.sleep(0.05)
    status = gate.status()
    gate.close()
    run = read_run(place)
    assert len(run.outputs) == status.seen
    assert run.ledger.spent == status.spent
    assert accounts(place)["total"] == ticks(status.spent + 5)
    check_every_moment(place)


def processes(gate: VerificationGate) -> list[tuple[int, int]]:
    shared = gate.status().shared
    assert shared is not None
    assert shared.reachable
    return [(process.number, process.behind) for process in shared.processes]


def test_each_gate_learns_what_the_others_do(place: PostgresRun) -> None:
    """Candidates, verdicts, warm-up and account are those of all; as for one that reads the log."""
    with open_gate(place) as one, open_gate(place) as two:
        for i in range(40):
            one.maybe_verify(output(f"a{i}"))
        until(lambda: two.status().seen == 40)
        for i in range(40):
            two.maybe_verify(output(f"b{i}"))
        until(lambda: one.status().seen == 80)
        until(lambda: one.status().verdicts == two.status().verdicts)
        found = one.status()
        until(lambda: processes(two) == [(1, 0), (2, 0)])  # number, and events not applied
        with open_gate(place) as three:
            gates = (one, two, three)
            learned = [gate.policy.state() for gate in gates]
            for state in learned:
                del state["missing"]  # draws, which are each process's own
            assert learned[0] == learned[1] == learned[2]
            for gate in gates:
                status = gate.status()
                assert status.warmup_seen == 5
                for name in ("seen", "verified", "errors_found", "spent", "cap", "decisions"):
                    assert getattr(status, name) == getattr(found, name), name


def test_each_gate_gets_back_what_a_verification_without_a_verdict_would_cost(
    place: PostgresRun,
) -> None:
    def broken(generation: Generation, task: object) -> Outcome:
        return Outcome(Verdict.PASSED if sum(generation.id.encode()) % 2 else Verdict.INFRA_ERROR)

    def account(gate: VerificationGate) -> Any:
        return gate.policy.state()["pacer"]

    given = {"policy": "calibrated", "verifier": broken, "on_unavailable": "pass"}
    with open_gate(place, **given) as one, open_gate(place, **given) as two:
        i = 0
        while not account(one)["without"][0]:  # how soon depends on what `two` has leased
            one.maybe_verify(output(f"a{i}"))
            i += 1
            assert i < 1000
        until(lambda: processes(two) == [(1, 0), (2, 0)])
        assert account(two) == account(one)


def test_one_id_in_two_gates_is_two_outputs(
    place: PostgresRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If neither gate has seen the other's event yet."""
    monkeypatch.setattr("gatekeeper.log.postgres_shared.FOLLOW", 3600.0)
    with open_gate(place) as one, open_gate(place) as two:
        for gate in (one, two):
            gate.maybe_verify(output("same"))
            result = gate.find("same")
            assert result is not None
            assert result.outcome is not None
    run = read_run(place)
    assert sorted(run.outputs) == ["same", "same (process 2)"]
    assert run.ledger.warmup_spent == 2
    with open_gate(place) as gate:
        assert gate.find("same (process 2)") is not None


def test_a_verdict_from_outside_on_one_of_two_outputs_with_one_id(
    place: PostgresRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A third gate knows the later output by its new id, and stores the verdict with that."""
    monkeypatch.setattr("gatekeeper.log.postgres_shared.FOLLOW", 3600.0)
    with open_gate(place) as one, open_gate(place) as two:
        for i in range(20):
            for gate in (one, two):
                gate.maybe_verify(output(f"a{i}"))
    later = {id_: found for id_, found in read_run(place).results.items() if "(process " in id_}
    id_ = next(id_ for id_, found in later.items() if not found.decision.verify)
    with open_gate(place) as gate:
        gate.report_outcome(id_, Outcome(Verdict.FAILED))
        found = gate.find(id_)
    assert found is not None
    assert found.verified
    run = read_run(place)
    assert run.external == {id_}
    assert run.results[id_] == found


def test_an_id_of_another_gate_is_known(place: PostgresRun) -> None:
    """Also where this gate had decided on the same one: then it has two."""
    with open_gate(place) as one, open_gate(place) as two:
        for gate, name in ((one, "x"), (two, "x"), (one, "y")):
            gate.maybe_verify(output(name))
        until(lambda: two.find("y"))
        assert two.maybe_verify(output("y")).outcome == one.maybe_verify(output("y")).outcome
        until(lambda: one.status().seen == two.status().seen)


def test_only_the_gate_that_decided_verifies(place: PostgresRun) -> None:
    with open_gate(place, verifier=None) as one:
        one.maybe_verify(output("g"))
        with open_gate(place) as two:
            assert two.pending() == []
            with pytest.raises(BadInputError, match="decided on by another process"):
                two.maybe_verify(output("g"))
            with pytest.raises(BadInputError, match="decided on by another process"):
                two.report_outcome("g", "passed")
        assert one.report_outcome("g", "passed").outcome is not None


def test_runs_that_cannot_be_shared(postgres: Server, place: PostgresRun) -> None:
    with pytest.raises(BadInputError, match="in a PostgreSQL database"):
        VerificationGate("cst", budget=Budget(fraction=0.3), log="run.db", shared=True)
    with pytest.raises(BadInputError, match="horizon=100 cannot be shared"):
        open_gate(place, budget=Budget(fraction=0.3, horizon=100))
    with open_gate(place) as gate:
        with pytest.raises(LogLockedError, match="give shared=True"):
            VerificationGate("cst", budget=gate.budget, log=place)
        with pytest.raises(LogMismatchError, match=r"fraction=0\.3"):
            open_gate(place, budget=Budget(fraction=0.5))
    alone = postgres.new_run()
    with VerificationGate("cst", budget=Budget(fraction=0.3), log=alone) as gate:
        gate.maybe_verify(output("g"))
        with pytest.raises(LogLockedError, match="begun by one gate"):
            open_gate(alone)

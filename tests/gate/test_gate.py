"""The gate, one call at a time."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from breaking_log import Breaking

from gatekeeper import (
    CST,
    HGA,
    BadInputError,
    Budget,
    Candidate,
    Decision,
    GateResult,
    Generation,
    LogError,
    Outcome,
    Random,
    Reason,
    Threshold,
    Verdict,
    VerificationGate,
    VerifierUnavailableError,
)
from gatekeeper.errors import GatekeeperError, LogLockedError
from gatekeeper.gate import transaction
from gatekeeper.log import Event, MemoryLog, SQLiteLog
from gatekeeper.policies import policy_names
from gatekeeper.testing import AsyncScriptedVerifier, ScriptedVerifier, make_generation

SECONDS = Budget(total=10.0, unit="seconds", max_cost=1.0)
PATIENCE = 60.0


class Spy:
    """A policy that observes outputs, and keeps what it learns."""

    def __init__(self, wants: Callable[[str], bool] = lambda id_: True, *, warmup: int = 0) -> None:
        self._wants = wants
        self.warmup = warmup
        self._learned: list[tuple[str, int | None]] = []
        self._known: list[int] = []  # labels known at each decision
        self._seen = 0

    @property
    def phase(self) -> str:
        return "warmup" if self._seen < self.warmup else "steady"

    def decide(self, candidate: Candidate) -> Decision:
        self._known.append(len(self._learned))
        warmup = self.phase == "warmup"
        self._seen += 1
        if warmup:
            return Decision(True, Reason.WARMUP, 0.5, 0.1)
        return Decision(self._wants(candidate.id), Reason.POLICY, 0.5, 0.1, propensity=0.25)

    def update(self, candidate: Candidate, decision: Decision, outcome: Outcome) -> None:
        self._learned.append((candidate.id, outcome.error))

    def state(self) -> dict[str, Any]:
        return {"taught": self._learned, "seen": self._seen}

    def restore(self, state: dict[str, Any]) -> None:
        raise NotImplementedError


def gate_of(
    verifier: Any = None, *, wants: Callable[[str], bool] = lambda id_: True, **more: Any
) -> VerificationGate:
    settings: dict[str, Any] = {"budget": Budget(total=10), "on_unavailable": "pass"} | more
    return VerificationGate(Spy(wants), verifier=verifier, **settings)


def out(id_: str, **more: Any) -> Generation:
    return make_generation(id_, **more)


def stream(n: int, *, seed: int = 0) -> list[Generation]:
    rng = np.random.default_rng(seed)
    return [
        out(f"g{i}", seed=i, tokens=int(t), prompt_tokens=int(p))
        for i, (t, p) in enumerate(rng.integers((1, 5), (40, 200), size=(n, 2)))
    ]


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


# -- results -----------------------------------------------------------------------------------


def test_an_unselected_output_says_so() -> None:
    """Nothing verified: no outcome, and the reason; the verifier was not called."""
    verifier = ScriptedVerifier()
    gate = gate_of(verifier, wants=lambda id_: False)
    result = gate.maybe_verify(out("a"))
    assert result.id == "a"
    assert result.outcome is None
    assert not result.verified
    assert not result.decision.verify
    assert result.decision.reason is Reason.POLICY
    assert result.decision.propensity == 0.25
    assert result.signals.state == "ok"
    assert verifier.calls == []
    assert gate.find("a") == result
    assert gate.find("b") is None


@pytest.mark.parametrize("verdict", [v for v in Verdict if v.error is not None])
def test_every_verdict_with_a_label_is_charged_and_learned(verdict: Verdict) -> None:
    """A timeout, no answer, too much memory: wrong, like a failed test, and paid for."""

    class Says:
        def verify(self, generation: Generation, task: Any) -> Outcome:
            return Outcome(verdict, detail=f"task {task}", meta={"k": [1, None]})

    gate = gate_of(Says())
    result = gate.maybe_verify(out("a"), "T")
    assert result.verified
    assert result.outcome is not None
    assert (result.outcome.verdict, result.outcome.cost) == (verdict, 1.0)
    assert (result.outcome.detail, result.outcome.meta) == ("task T", {"k": [1, None]})
    assert result.outcome.seconds > 0.0
    assert gate.policy.state()["taught"] == [("a", verdict.error)]
    status = gate.status()
    assert (status.spent, status.verified, status.errors_found) == (1.0, 1, verdict.error)
    assert gate.pending() == []


def test_the_warm_up_has_an_account_of_its_own() -> None:
    """The warm-up does not use the fraction, has its own figures, and counts towards the total."""
    labels = {f"g{i}": i % 2 for i in range(60)}
    verifier = ScriptedVerifier(labels)
    gate = VerificationGate(
        Random(0.9, warmup=10), budget=Budget(fraction=0.2), verifier=verifier, explore=0
    )
    for g in stream(10):
        assert gate.maybe_verify(g).decision.reason is Reason.WARMUP
    status = gate.status()
    assert (status.warmup_seen, status.warmup_verified, status.warmup_errors) == (10, 10, 5)
    assert (status.warmup_spent, status.spent, status.verified, status.errors_found) == (
        10,
        0,
        0,
        0,
    )
    for g in stream(60)[10:]:
        gate.maybe_verify(g)
    status = gate.status()
    assert (status.seen, status.warmup_seen, status.warmup_spent) == (60, 10, 10.0)
    assert status.cap == pytest.approx(0.2 * 50 + 1)  # the allowance for the start is one
    assert status.spent == status.verified == 11  # Random(0.9) takes all that it may
    assert status.budget_exhausted > 20

    gate = VerificationGate(Random(0.9, warmup=10), budget=Budget(total=4), verifier=verifier)
    reasons = [gate.maybe_verify(g).decision.reason for g in stream(12)]
    assert reasons[:4] == [Reason.WARMUP] * 4
    assert set(reasons[4:10]) == {Reason.BUDGET_EXHAUSTED}
    status = gate.status()
    assert (status.warmup_spent, status.spent, status.cap) == (4.0, 0.0, 0.0)


def test_force_verifies_within_the_budget() -> None:
    """`force=True` overrides the policy, never the budget."""
    gate = gate_of(ScriptedVerifier(), wants=lambda id_: False, budget=Budget(total=2))
    first = gate.maybe_verify(out("a"), force=True)
    assert first.verified
    assert (first.decision.reason, first.decision.propensity) == (Reason.FORCED, 1.0)
    assert not gate.maybe_verify(out("b")).verified
    assert asyncio.run(gate.amaybe_verify(out("c"), force=True)).verified
    last = gate.maybe_verify(out("d"), force=True)
    assert (last.verified, last.decision.reason) == (False, Reason.BUDGET_EXHAUSTED)
    assert gate.status().spent == 2.0

    wanted = gate_of(ScriptedVerifier()).maybe_verify(out("a"), force=True)
    assert wanted.decision.reason is Reason.FORCED  # wanted anyway, but certain all the same


@pytest.mark.parametrize("reason", ["error", "abort", "failed", "cancelled"])
def test_an_output_that_the_server_broke_off_is_not_decided_on(reason: str) -> None:
    verifier = ScriptedVerifier()
    gate = gate_of(verifier)
    broken = replace(out("a"), finish_reason=reason)
    with pytest.raises(BadInputError, match=rf"id='a': the server broke .*'{reason}'"):
        gate.maybe_verify(broken)
    with pytest.raises(BadInputError, match="id='a'"):
        gate.verify_batch([(out("b"), None), (broken, None)])
    assert (gate.status().seen, verifier.calls) == (0, [])
    assert gate.maybe_verify(replace(broken, finish_reason="length")).verified


def test_a_policy_by_name_takes_its_rate_from_the_budget() -> None:
    """The fraction; else what a total leaves for the candidates after the warm-up."""

    def beta(budget: Budget) -> float:
        policy = VerificationGate("threshold", budget=budget, explore=0).policy
        assert isinstance(policy, Threshold)
        return policy.beta

    assert beta(Budget(fraction=0.2, total=5, horizon=10)) == 0.2
    assert beta(Budget(total=100, horizon=300)) == 50 / 250
    for total, horizon in ((30, 300), (50, 300), (300, 300), (400, 300), (100, 40)):
        with pytest.raises(BadInputError, match=f"total={total}.0 with horizon={horizon}"):
            beta(Budget(total=total, horizon=horizon))
    for budget in (Budget(total=30), Budget(total=9, horizon=99, unit="seconds", max_cost=1)):
        with pytest.raises(BadInputError, match="needs a rate"):
            beta(budget)


@pytest.mark.parametrize("proposed", [True, False])
def test_without_room_the_propensity_is_0(proposed: bool) -> None:
    """The propensity is 0 once the budget is gone, whatever the policy proposed."""
    policy = Random(0.5, warmup=0)
    gate = VerificationGate(policy, budget=Budget(total=3), verifier=ScriptedVerifier())
    decisions = [gate.maybe_verify(out(f"r{i}")).decision for i in range(60)]
    spent = next(i for i in range(60) if sum(d.verify for d in decisions[: i + 1]) == 3)
    assert {d.propensity for d in decisions[: spent + 1]} == {0.5}
    late = decisions[spent + 1 :]
    assert {d.propensity for d in late} == {0.0}
    assert any((d.reason is Reason.BUDGET_EXHAUSTED) == proposed for d in late)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_cannot_spend_the_budget_again(tmp_path: Path) -> None:
    """The child of a fork shares the file but not the ledger: it is refused."""
    with gate_of(ScriptedVerifier(), log=tmp_path / "run.db") as gate:
        gate.maybe_verify(out("a"))
        child = os.fork()
        if not child:
            try:
                gate.maybe_verify(out("b"))
            except LogLockedError:
                os._exit(0)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert gate.status().seen == 1


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_gets_an_answer_in_the_middle_of_a_change(tmp_path: Path) -> None:
    """The thread that makes the change has the lock, and does not exist in the child."""
    begun, go_on = threading.Event(), threading.Event()

    class Slow(MemoryLog):
        def append(self, events: Iterable[Event]) -> None:
            super().append(events)
            if begun_with:
                begun.set()
                assert go_on.wait(60)

    begun_with: list[str] = []
    with gate_of(ScriptedVerifier(), log=Slow()) as gate:
        gate.maybe_verify(out("a"))
        begun_with.append("b")
        thread = threading.Thread(target=gate.maybe_verify, args=(out("b"),))
        thread.start()
        assert begun.wait(60)
        child = os.fork()
        if not child:
            signal.alarm(30)  # ends it if it waits
            refused = 0
            for call in (
                lambda: gate.maybe_verify(out("c")),
                lambda: gate.verify_batch([(out("c"), None)]),
                lambda: gate.report_outcome("a", "failed"),
                lambda: gate.find("a"),  # it is in the log, whose connection is the parent's
            ):
                try:
                    call()
                except LogLockedError:
                    refused += 1
            os._exit(0 if refused == 4 and gate.status().seen >= 1 else 1)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        go_on.set()
        thread.join()
        assert code == 0
        assert gate.status().seen == 2


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_that_leaves_the_gate_ends_nothing_of_its_parent(tmp_path: Path) -> None:
    """It closes neither the verifier nor the log: the file stays locked for others."""

    class Closing(ScriptedVerifier):
        def close(self) -> None:
            (tmp_path / f"closed by {os.getpid()}").touch()

    gate = gate_of(Closing(), log=tmp_path / "run.db")
    gate.maybe_verify(out("a"))
    child = os.fork()
    if not child:
        try:
            gate.close()
            del gate  # and what the interpreter collects when it ends
            gc.collect()
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not list(tmp_path.glob("closed by *"))
    with pytest.raises(LogLockedError):
        gate_of(log=tmp_path / "run.db")
    assert gate.maybe_verify(out("b")).verified
    gate.close()
    assert [path.name for path in tmp_path.glob("closed by *")] == [f"closed by {os.getpid()}"]


def test_without_logprobs_candidates_are_drawn_uniformly_and_counted() -> None:
    """No log-probabilities: verified at rate β, with that propensity, and shown as missing."""
    for policy in (Threshold(0.3, warmup=5), CST(0.3, warmup=5), HGA(0.3, calibration=0, warmup=5)):
        gate = VerificationGate(policy, budget=Budget(total=10**6), verifier=ScriptedVerifier())
        for g in stream(5):
            gate.maybe_verify(g)
        results = [gate.maybe_verify(out(f"m{i}", tokens=0)) for i in range(500)]
        for g in stream(20)[5:]:
            gate.maybe_verify(g)
        assert {r.decision.reason for r in results} == {Reason.MISSING_SIGNAL}
        assert {r.decision.propensity for r in results} == {0.3}
        assert {r.signals.state for r in results} == {"missing"}
        assert 100 < sum(r.verified for r in results) < 200  # 150 ± 5 standard deviations
        assert gate.status().missing_signal == 500


@pytest.mark.parametrize(
    "broken",
    [
        {"logprob": [nan] * 4, "top1": [nan] * 4, "top2": [nan] * 4},
        {"logprob": [-inf] * 4, "top1": [-inf] * 4, "top2": [-inf] * 4},
        {"logprob": [0.0] * 4, "top1": [0.0] * 4, "top2": [nan] * 4},  # one alternative only
        {"logprob": [-0.1, nan, -inf, -0.2], "top1": [-0.1, 0, nan, -1], "top2": [-9, -inf, 0, -2]},
        {"logprob": [-1e300] * 4, "top1": [inf] * 4, "top2": [-inf] * 4},
        {"logprob": [], "top1": [], "top2": [], "text": "", "output_tokens": 0},
    ],
    ids=["nan", "-inf", "one alternative", "mixed", "huge", "empty"],
)
def test_odd_logprobs_get_a_decision(broken: dict[str, Any], tmp_path: Path) -> None:
    """Whatever a provider sends: a decision, no made-up score, and the log can be resumed."""
    arrays = {k: np.array(v) if isinstance(v, list) else v for k, v in broken.items()}
    path = tmp_path / "run.db"
    with VerificationGate(
        CST(0.5, warmup=3), budget=Budget(total=99), verifier=ScriptedVerifier(), log=path
    ) as gate:
        for g in stream(10):
            gate.maybe_verify(g)
        result = gate.maybe_verify(replace(out("odd"), **arrays))
        score = result.decision.score
        assert score != score or 0.0 <= score <= 1.0
        assert 0.0 <= result.decision.propensity <= 1.0
        status = gate.status()
    with VerificationGate(CST(0.5, warmup=3), budget=Budget(total=99), log=path) as gate:
        assert gate.status() == status


def test_an_openai_response_goes_straight_in() -> None:
    """A chat completion's JSON; its id, or one of the caller's."""
    token = {"token": "4", "bytes": [52], "logprob": -0.1}
    other = {"token": "5", "bytes": [53], "logprob": -2.4}
    response = {
        "id": "chatcmpl-1",
        "model": "m",
        "choices": [
            {
                "message": {"content": "4"},
                "finish_reason": "stop",
                "logprobs": {"content": [token | {"top_logprobs": [token, other]}]},
            }
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1},
    }
    gate = gate_of(ScriptedVerifier())
    result = gate.maybe_verify(response, "task")
    assert result.id == "chatcmpl-1"
    assert result.signals.h1 == pytest.approx(0.1)
    assert result.signals.h2 == pytest.approx(-2.3)
    assert gate.maybe_verify(response, id="mine").id == "mine"
    bare = response | {"choices": [{"message": {"content": None}, "logprobs": None}], "usage": None}
    assert gate.maybe_verify(bare, id="bare").signals.state == "missing"
    for bad in ("text", 7, None, {"id": "x"}, {"choices": []}):
        with pytest.raises(BadInputError):
            gate.maybe_verify(bad)
    assert gate.status().seen == 3


# -- the same id again -------------------------------------------------------------------------


def test_the_same_output_again_gives_the_same_answer() -> None:
    """The same id again: no new decision, no charge, no call of the verifier."""
    verifier = ScriptedVerifier({"a": 1})
    gate = gate_of(verifier, wants=lambda id_: id_ == "a")
    first, skipped = gate.maybe_verify(out("a")), gate.maybe_verify(out("b"))
    status = gate.status()
    for _ in range(2):
        assert gate.maybe_verify(out("a")) == first
        assert gate.maybe_verify(out("b")) == skipped
        with pytest.raises(BadInputError, match="'b' was decided on and not selected"):
            gate.maybe_verify(out("b"), force=True)
        assert asyncio.run(gate.amaybe_verify(out("a"))) == first
        assert gate.verify_batch([(out("b"), None), (out("a"), None)]) == [skipped, first]
    assert gate.status() == status
    assert verifier.calls == ["a"]
    assert gate.policy.state() == {"taught": [("a", 1)], "seen": 2}


def test_an_id_cannot_name_two_outputs() -> None:
    gate = gate_of(ScriptedVerifier(), wants=lambda id_: id_ == "a")
    gate.maybe_verify(out("a", text="one"))
    gate.maybe_verify(out("b", text="one"))
    status = gate.status()
    for id_ in ("a", "b"):
        with pytest.raises(BadInputError, match=f"id='{id_}' already names another output") as seen:
            gate.maybe_verify(out(id_, text="two"))
        assert seen.type is BadInputError  # the name that a traceback shows is a public one
    with pytest.raises(BadInputError, match="'c' is twice in the batch"):
        gate.verify_batch([(out("c"), None), (out("c"), None)])
    assert gate.maybe_verify(out("c")).id == "c"
    assert gate.status().spent == status.spent


def test_a_batch_and_a_call_with_the_same_output_teach_once() -> None:
    """An output that a batch is still at, handed in by another caller: learned once, gate alive."""
    entered = threading.Event()

    class Slow(ScriptedVerifier):
        def verify(self, generation: Generation, task: Any) -> Outcome:
            if generation.id == "b":
                assert entered.wait(PATIENCE)
            return super().verify(generation, task)

    gate = gate_of(Slow({"a": 1}), workers=2)
    results: list[Any] = []

    def run() -> None:
        try:
            results.extend(gate.verify_batch([(out("a"), None), (out("b"), None)]))
        except Exception as e:
            results.append(e)

    batch = threading.Thread(target=run, daemon=True)
    batch.start()
    try:
        wait_for(lambda: gate.status().verified == 1)  # a has its verdict, the batch goes on
        result = gate.maybe_verify(out("a"))
        assert result.outcome is not None
        assert result.outcome.error == 1
    finally:
        entered.set()
        batch.join(PATIENCE)
    assert [getattr(r, "id", r) for r in results] == ["a", "b"]
    assert sorted(gate.policy.state()["taught"]) == [("a", 1), ("b", 0)]
    assert gate.maybe_verify(out("c")).verified  # the gate has not stopped


# -- verifiers that cannot tell ----------------------------------------------------------------


@pytest.mark.parametrize("how", ["sync", "async", "pool", "batch", "async only"])
@pytest.mark.parametrize("label", [None, ConnectionError("no daemon")], ids=["says", "raises"])
def test_could_not_tell_is_not_wrong(how: str, label: Exception | None) -> None:
    """No label, no charge, the reservation back, nothing learned; and it can be tried again."""
    labels: dict[str, Any] = {"a": label}
    double = ScriptedVerifier if how in ("sync", "pool", "batch") else AsyncScriptedVerifier
    verifier: Any = double(labels)
    if how == "async only":

        class OnlyAsync:
            averify = verifier.averify

        gate = gate_of(OnlyAsync(), budget=Budget(total=1))
    else:
        gate = gate_of(verifier, budget=Budget(total=1))

    def verify(id_: str) -> GateResult:
        if how == "batch":
            return gate.verify_batch([(out(id_), None)])[0]
        if how in ("sync", "async only"):
            return gate.maybe_verify(out(id_))
        return asyncio.run(gate.amaybe_verify(out(id_)))

    result = verify("a")
    assert result.decision.verify
    assert not result.verified
    assert result.outcome is not None
    assert (result.outcome.verdict, result.outcome.error) == (Verdict.INFRA_ERROR, None)
    if label is not None:
        assert result.outcome.detail == "ConnectionError: no daemon"
    status = gate.status()
    assert (status.spent, status.held, status.verified, status.unresolved) == (0.0, 0.0, 0, 1)
    assert gate.policy.state()["taught"] == []
    assert [g.id for g in gate.pending()] == ["a"]

    labels["a"] = 1  # the daemon is back
    assert verify("a").verified
    assert verifier.calls == ["a", "a"]
    assert gate.policy.state() == {"taught": [("a", 1)], "seen": 1}
    assert gate.status().spent == 1.0

    labels["b"] = None
    exhausted = verify("b")
    assert exhausted.decision.reason is Reason.BUDGET_EXHAUSTED


def test_a_second_try_needs_room_in_the_budget() -> None:
    """A released reservation may go to another output; the first then has no room."""
    labels: dict[str, Any] = {"a": None}
    gate = gate_of(ScriptedVerifier(labels), budget=Budget(total=1))
    gate.maybe_verify(out("a"))
    assert gate.maybe_verify(out("b")).verified
    labels["a"] = 1
    again = gate.maybe_verify(out("a"))
    assert again.decision.reason is Reason.BUDGET_EXHAUSTED
    assert not again.verified
    with pytest.raises(BadInputError, match="no room"):
        gate.report_outcome("a", "failed")
    assert gate.status().spent == 1.0


@pytest.mark.parametrize("how", ["sync", "async", "batch"])
def test_on_unavailable_raises_with_the_result(how: str) -> None:
    """By default a dead verifier is an exception that carries the whole result."""
    verifier = AsyncScriptedVerifier({"b": ConnectionError("no daemon")})
    gate = gate_of(verifier, on_unavailable="raise")
    calls: dict[str, Callable[[], Any]] = {
        "sync": lambda: gate.maybe_verify(out("b")),
        "async": lambda: asyncio.run(gate.amaybe_verify(out("b"))),
        "batch": lambda: gate.verify_batch([(out(id_), None) for id_ in "abc"]),
    }
    with pytest.raises(VerifierUnavailableError, match=r"'b'.*no daemon") as caught:
        calls[how]()
    assert caught.value.result.id == "b"
    assert caught.value.result.decision.verify
    assert caught.value.result.outcome is not None
    assert caught.value.result.outcome.error is None
    if how == "batch":  # the others were verified, and are known
        assert sorted(verifier.calls) == ["a", "b", "c"]
        assert [gate.find(id_).verified for id_ in "ac"] == [True, True]  # type: ignore[union-attr]
        assert gate.policy.state()["taught"] == [("a", 0), ("c", 0)]


@pytest.mark.parametrize(
    "nonsense",
    [
        lambda: None,
        lambda: True,
        lambda: "failed",
        lambda: Outcome("failed"),  # type: ignore[arg-type]
        lambda: Outcome(Verdict.FAILED, cost="1"),  # type: ignore[arg-type]
        lambda: Outcome(Verdict.FAILED, seconds="1"),  # type: ignore[arg-type]
        lambda: Outcome(Verdict.FAILED, seconds=nan),
        lambda: Outcome(Verdict.FAILED, detail=b"\xff"),  # type: ignore[arg-type]
        lambda: Outcome(Verdict.FAILED, meta={"n": np.int64(3)}),
        lambda: Outcome(Verdict.FAILED, meta={"n": nan}),
        lambda: Outcome(Verdict.FAILED, meta={"when": object()}),
    ],
    ids=[
        "None",
        "True",
        "text",
        "verdict as text",
        "cost as text",
        "seconds as text",
        "seconds nan",
        "bytes",
        "numpy integer",
        "nan",
        "object",
    ],
)
@pytest.mark.parametrize("log", ["memory", "file"])
def test_an_invalid_outcome_of_a_verifier_does_not_stop_the_gate(
    nonsense: Callable[[], Any], log: str, tmp_path: Path
) -> None:
    """It costs at most its own verdict: no exception of another kind, no lost reservation, and the
    next output is verified."""

    class Slip:
        def verify(self, generation: Generation, task: Any) -> Any:
            return nonsense() if generation.id == "a" else Outcome(Verdict.PASSED, cost=0.5)

    path = None if log == "memory" else tmp_path / "run.db"
    with gate_of(Slip(), budget=SECONDS, log=path) as gate:
        result = gate.maybe_verify(out("a"))
        assert isinstance(result.outcome, Outcome)
        assert result.verified or result.outcome.error is None
        assert gate.maybe_verify(out("b")).verified
        status = gate.status()
        assert status.held == 0.0
        assert status.spent <= 1.5
        assert status.verified == 1 + result.verified


@pytest.mark.parametrize(
    ("cost", "charged", "overrun"),
    [
        (0.25, 0.25, 0.0),
        (0.0, 0.0, 0.0),
        (1.0, 1.0, 0.0),
        (3.5, 1.0, 2.5),
        (nan, 1.0, 0.0),
        (-1.0, 1.0, 0.0),
        (inf, 1.0, 0.0),
    ],
)
def test_a_charge_is_at_most_the_reservation(cost: float, charged: float, overrun: float) -> None:
    """An invalid cost is charged as the reservation, and so is a higher one, with its overrun."""
    for unit in ("seconds", "usd"):
        budget = replace(SECONDS, unit=unit)
        gate = gate_of(ScriptedVerifier(cost=cost), budget=budget)
        result = gate.maybe_verify(out("a"))
        assert result.outcome is not None
        assert result.outcome.cost == charged
        status = gate.status()
        assert (status.spent, status.held, status.overrun) == (charged, 0.0, overrun)
    gate = gate_of(ScriptedVerifier(cost=cost))  # a verification costs one verification
    gate.maybe_verify(out("a"))
    assert gate.status().spent == 1.0


def test_seconds_are_measured_where_the_verifier_does_not_say() -> None:
    gate = gate_of(ScriptedVerifier(delay=0.02), budget=SECONDS)
    assert gate.maybe_verify(out("a")).verified
    assert gate.status().spent == 0.02

    class Silent:
        max_seconds = PATIENCE

        def verify(self, generation: Generation, task: Any) -> Outcome:
            time.sleep(0.01)
            return Outcome(Verdict.PASSED)

    gate = gate_of(Silent(), budget=Budget(total=2 * PATIENCE, unit="seconds"))
    assert gate.maybe_verify(out("a")).verified
    assert 0.01 <= gate.status().spent < PATIENCE


@pytest.mark.parametrize("how", ["sync", "async", "batch"])
def test_an_interrupt_in_a_verifier_gives_its_reservation_back(how: str) -> None:
    """Ctrl-C in the middle of a verification: passed on, nothing held, the gate goes on."""

    class Interrupted(AsyncScriptedVerifier):
        def _outcome(self, id_: str) -> Outcome:
            if id_ == "a" and len(self.calls) == 1:
                raise KeyboardInterrupt
            return super()._outcome(id_)

    verifier = Interrupted()
    gate = gate_of(verifier, workers=1)
    calls: dict[str, Callable[[], Any]] = {
        "sync": lambda: gate.maybe_verify(out("a")),
        "async": lambda: asyncio.run(gate.amaybe_verify(out("a"))),
        "batch": lambda: gate.verify_batch([(out("a"), None)]),
    }
    with pytest.raises(KeyboardInterrupt):
        calls[how]()
    status = gate.status()
    assert (status.held, status.spent, status.unresolved) == (0.0, 0.0, 1)
    assert gate.maybe_verify(out("a")).verified
    assert gate.status().spent == 1.0


def test_an_interrupt_around_a_step_leaves_the_gate_to_other_threads() -> None:
    """Ctrl-C at each line that enters or leaves a step: no thread waits for a lock for ever."""

    def interrupted(at: int) -> bool:
        gate, met = gate_of(), 0

        def trace(frame: Any, event: str, argument: Any) -> Any:
            nonlocal met
            if frame.f_code.co_filename != transaction.__file__:
                return None
            met += 1
            if met == at:
                raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            gate.maybe_verify(out("a"))
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        other = threading.Thread(target=gate.status, daemon=True)
        other.start()
        other.join(PATIENCE)
        assert not other.is_alive(), f"interrupted at line event {at}"
        return met >= at

    assert sum(1 for _ in itertools.takewhile(interrupted, itertools.count(1))) >= 5


# -- asyncio -----------------------------------------------------------------------------------


def test_cancelling_gives_back_what_has_not_begun_and_keeps_what_has() -> None:
    """In the pool: queued work is released; work under way finishes, is charged and learned."""
    begun, go = threading.Event(), threading.Event()

    class Blocking(ScriptedVerifier):
        def verify(self, generation: Generation, task: Any) -> Outcome:
            begun.set()
            assert go.wait(PATIENCE)
            return super().verify(generation, task)

    verifier = Blocking({"a": 1})
    gate = gate_of(verifier, workers=1)

    async def main() -> None:
        first = asyncio.create_task(gate.amaybe_verify(out("a")))
        await asyncio.to_thread(begun.wait, PATIENCE)
        second = asyncio.create_task(gate.amaybe_verify(out("b")))
        while gate.status().seen < 2:
            await asyncio.sleep(0)
        assert gate.status().held == 2.0
        for task in (first, second):
            task.cancel()
        assert all(
            isinstance(e, asyncio.CancelledError)
            for e in await asyncio.gather(first, second, return_exceptions=True)
        )
        assert gate.status().held == 1.0
        with pytest.raises(BadInputError, match="being verified"):
            await gate.amaybe_verify(out("a"))
        go.set()

    asyncio.run(main())
    gate.close()
    status = gate.status()
    assert (status.held, status.spent, status.verified, status.unresolved) == (0.0, 1.0, 1, 1)
    assert verifier.calls == ["a"]
    assert gate.policy.state()["taught"] == [("a", 1)]
    assert [g.id for g in gate.pending()] == ["b"]


def test_a_timeout_around_the_call_frees_an_async_verifier() -> None:
    """`asyncio.timeout` cancels: the reservation is back at once, the output can be retried."""
    verifier = AsyncScriptedVerifier({"a": 1}, delay=PATIENCE)
    gate = gate_of(verifier, budget=Budget(total=1))

    async def main() -> GateResult:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await gate.amaybe_verify(out("a"))
        assert gate.status().held == 0.0
        verifier.delay = 0.0
        return await gate.amaybe_verify(out("a"))

    assert asyncio.run(main()).verified


def at_once(gate: VerificationGate, outputs: list[Generation]) -> list[Any]:
    """Verify the outputs in one task each, on one event loop."""

    async def main() -> list[Any]:
        calls = [gate.amaybe_verify(output) for output in outputs]
        return await asyncio.gather(*calls, return_exceptions=True)

    return asyncio.run(main())


def test_outputs_at_once_get_the_decisions_of_one_after_the_other(tmp_path: Path) -> None:
    """The same decisions, even with known outputs, taken ids, duplicates and bad input among them.
    Eight are written in one transaction."""
    bad = replace(out("bad"), top1=np.zeros(3))
    known, taken = stream(40)[3], replace(stream(40)[5], text="another")
    outputs = [*stream(20), bad, known, *stream(40)[20:], taken, known, out("twice"), out("twice")]
    settings: dict[str, Any] = {"budget": Budget(total=15), "explore": 0.2}
    together = VerificationGate(Random(0.4, warmup=12), log=tmp_path / "together.db", **settings)
    alone = VerificationGate(Random(0.4, warmup=12), log=tmp_path / "alone.db", **settings)
    one_by_one: list[Any] = []
    for output in outputs:
        try:
            one_by_one.append(alone.maybe_verify(output))
        except BadInputError as error:
            one_by_one.append(error)
    assert list(map(repr, at_once(together, outputs))) == list(map(repr, one_by_one))
    assert together.status() == alone.status()
    together.close()
    alone.close()
    with (
        SQLiteLog(tmp_path / "together.db", read_only=True) as a,
        SQLiteLog(tmp_path / "alone.db", read_only=True) as b,
    ):
        assert list(a.rows()) == list(b.rows())
        of_one_write = a._db.execute(
            "SELECT count(*) FROM events WHERE kind = 'decided' GROUP BY at"
        )
        assert [n for (n,) in of_one_write] == [8, 8, 7, 8, 8, 2]


def test_a_policy_that_fails_at_one_of_several_has_decided_on_those_before() -> None:
    """They are in the log and get their answers; the later ones get the error of the policy."""
    log = MemoryLog()

    def fails(id_: str) -> bool:
        if id_ == "g3":
            raise RuntimeError("bug in a plug-in")
        return id_ == "g1"

    gate = gate_of(wants=fails, log=log)
    *before, failed, after = at_once(gate, stream(5))
    assert [answer.decision.verify for answer in before] == [False, True, False]
    assert isinstance(failed, RuntimeError)
    assert isinstance(after, LogError)
    assert "bug in a plug-in" in str(after)
    again = gate_of(wants=lambda id_: id_ == "g1", log=log)
    assert [again.find(g.id) for g in stream(5)] == [*before, None, None]


def test_where_the_log_cannot_be_written_none_of_several_is_decided_on() -> None:
    """No answer says what the log does not hold; a gate on the same log goes on from there."""
    log, verifier = Breaking(), AsyncScriptedVerifier()
    gate = gate_of(verifier, log=log)
    first = at_once(gate, stream(1))
    log.full = True
    answers = at_once(gate, stream(6)[1:])
    assert [str(answer) for answer in answers] == ["disk full"] * 5
    with pytest.raises(LogError, match="this gate stopped"):
        gate.maybe_verify(out("later"))
    log.full = False
    again = gate_of(verifier, log=log)
    assert again.status().seen == 1
    assert at_once(again, stream(6))[:1] == first
    assert again.status().spent == 6.0
    assert verifier.calls == [f"g{i}" for i in range(6)]


@pytest.mark.parametrize("verifies", [False, True])
@pytest.mark.parametrize("turns", range(4))
def test_cancelling_some_of_several_gives_their_reservations_back(
    verifies: bool, turns: int
) -> None:
    """Before the decision, between decision and answer, or after: the others have theirs."""
    gate = gate_of(AsyncScriptedVerifier() if verifies else None)

    async def main() -> list[Any]:
        tasks = [asyncio.create_task(gate.amaybe_verify(output)) for output in stream(5)]
        for _ in range(turns):
            await asyncio.sleep(0)
        tasks[0].cancel()
        tasks[2].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    ends = asyncio.run(main())
    assert [ends[i].id for i in (1, 3, 4)] == ["g1", "g3", "g4"]
    answered = float(sum(isinstance(end, GateResult) for end in ends))
    status = gate.status()
    assert (status.spent, status.held) == ((answered, 0.0) if verifies else (0.0, answered))


# -- batches -----------------------------------------------------------------------------------


def labelled(n: int, *, seed: int = 5) -> dict[str, Any]:
    return {f"g{i}": int(v) for i, v in enumerate(np.random.default_rng(seed).random(n) < 0.4)}


@pytest.mark.parametrize("policy", [Random, Threshold, CST, HGA])
def test_batches_decide_alike_with_any_number_of_workers(policy: type) -> None:
    """Order kept; the same decisions with 1 and 8 workers, and as one call after the other where
    the verdicts come in between."""
    more = {"calibration": 40} if policy is HGA else {}

    def run(workers: int, size: int) -> list[GateResult]:
        verifier = ScriptedVerifier(labelled(300), delay=0.0005)
        gate = VerificationGate(
            policy(0.3, warmup=30, seed=2, **more),
            budget=Budget(fraction=0.25),
            verifier=verifier,
            workers=workers,
        )
        pairs = [(g, None) for g in stream(300)]
        results = []
        for i in range(0, len(pairs), size):
            results += gate.verify_batch(iter(pairs[i : i + size]))
        assert [r.id for r in results] == [g.id for g, _ in pairs]
        assert gate.status().held == 0.0
        gate.close()
        return results

    def described(results: list[GateResult]) -> list[str]:
        return [
            repr((r.id, r.signals, r.decision, r.outcome and r.outcome.verdict)) for r in results
        ]

    assert described(run(1, 64)) == described(run(8, 64))
    assert described(run(1, 300)) == described(run(8, 300))
    assert any(r.verified for r in run(8, 300)[30:])


def test_batches_decide_alike_where_verifications_cannot_tell() -> None:
    """What they free is free for the next batch, whichever of them ends first."""

    class Unsure(ScriptedVerifier):
        def verify(self, generation: Generation, task: Any) -> Outcome:
            number = int(generation.id[1:])
            time.sleep(0.002 * (number * 7 % 3))
            if number % 2:
                return Outcome(Verdict.INFRA_ERROR, detail="no answer")
            return super().verify(generation, task)

    def run(workers: int) -> list[str]:
        with VerificationGate(
            Random(0.9, warmup=10, seed=2),
            budget=Budget(total=70),
            verifier=Unsure(labelled(200)),
            workers=workers,
            on_unavailable="pass",
        ) as gate:
            pairs = [(g, None) for g in stream(200)]
            found = [r for i in range(0, 200, 50) for r in gate.verify_batch(pairs[i : i + 50])]
            assert gate.status().held == 0.0
        assert any(r.decision.reason is Reason.BUDGET_EXHAUSTED for r in found)
        return [repr((r.id, r.decision, r.outcome and r.outcome.verdict)) for r in found]

    assert run(1) == run(8)


def test_a_batch_that_breaks_off_holds_nothing_for_those_that_cannot_tell() -> None:
    """Neither for one that ended before, nor for one that ends later."""
    begun, may_end = threading.Barrier(2), threading.Event()

    class Unsure(ScriptedVerifier):
        def verify(self, generation: Generation, task: Any) -> Outcome:
            if generation.id == "g1":
                begun.wait(PATIENCE)
                may_end.wait(PATIENCE)
            return Outcome(Verdict.INFRA_ERROR, detail="no answer")

    def wants(id_: str) -> bool:
        if id_ == "g2":  # g0 has ended by now
            begun.wait(PATIENCE)
        return True

    gate = gate_of(Unsure(), wants=wants, budget=Budget(total=99), workers=1)
    gate.maybe_verify(out("known"))
    other = replace(out("known"), text="another output")
    with pytest.raises(BadInputError, match="already names another output"):
        gate.verify_batch([(g, None) for g in (out("g0"), out("g1"), out("g2"), other)])
    assert gate.status().held == 2.0
    may_end.set()
    wait_for(lambda: not gate.status().verifying)
    assert gate.status().held == 1.0  # of g2, which nobody began with


def test_a_batch_learns_the_warm_up_before_it_scores() -> None:
    """One batch over the end of the warm-up: its labels are in before the first scored decision,
    in stream order, whatever order they came in."""

    class Backwards(ScriptedVerifier):
        def verify(self, generation: Generation, task: Any) -> Outcome:
            time.sleep(0.002 * (20 - int(generation.id[1:])))
            return super().verify(generation, task)

    policy = Spy(warmup=10)
    labels = labelled(20)
    gate = VerificationGate(policy, budget=Budget(total=99), verifier=Backwards(labels), workers=20)
    gate.verify_batch([(g, None) for g in stream(20)])
    assert policy._known == [0] * 10 + [10] * 10
    assert policy._learned == [(f"g{i}", labels[f"g{i}"]) for i in range(20)]


@pytest.mark.parametrize(
    "bad", [("text", None), (out("g0"), None), (out("x"),)], ids=["response", "twice", "no pair"]
)
def test_a_batch_with_a_bad_pair_changes_nothing(bad: Any) -> None:
    verifier = ScriptedVerifier(labelled(20))
    gate = gate_of(verifier, budget=Budget(total=99))
    good = [(g, None) for g in stream(20)]
    with pytest.raises(BadInputError, match=r"no known shape|twice|give .* pairs"):
        gate.verify_batch([*good, bad])
    assert (gate.status().seen, verifier.calls) == (0, [])
    assert all(r.verified for r in gate.verify_batch(good))


def test_a_batch_that_breaks_off_goes_on_when_handed_in_again() -> None:
    """A refused output in the middle: nothing verified is lost, nothing is verified twice."""
    verifier = ScriptedVerifier(labelled(20), delay=0.001)
    gate = gate_of(verifier, budget=Budget(total=99), workers=2)
    good = [(g, None) for g in stream(20)]
    other = replace(good[0][0], text="another output")
    assert gate.maybe_verify(good[0][0]).verified
    with pytest.raises(BadInputError, match="already names another output"):
        gate.verify_batch([*good[1:10], (other, None), *good[10:]])
    wait_for(lambda: not gate.status().verifying)  # what was under way is over
    results = gate.verify_batch(good)
    assert all(r.verified for r in results)
    assert sorted(verifier.calls) == sorted(g.id for g, _ in good)
    assert gate.policy.state()["taught"] == [(g.id, verifier.labels[g.id]) for g, _ in good]
    assert (gate.status().spent, gate.status().held, gate.pending()) == (20.0, 0.0, [])


# -- verdicts from outside ---------------------------------------------------------------------


def test_without_a_verifier_the_gate_only_decides() -> None:
    """verifier=None: selected outputs wait, reserved, for `report_outcome`."""
    gate = gate_of(wants=lambda id_: id_ != "c")
    a, _, c = (gate.maybe_verify(out(id_)) for id_ in "abc")
    assert a.decision.verify
    assert a.outcome is None
    assert not c.decision.verify
    assert (gate.status().held, gate.status().unresolved) == (2.0, 2)
    assert [g.id for g in gate.pending()] == ["a", "b"]
    assert gate.verify_batch([(out("a"), None)]) == [a]
    assert asyncio.run(gate.amaybe_verify(out("a"))) == a

    reported = gate.report_outcome("a", "failed")
    assert reported.verified
    assert reported.outcome is not None
    assert (reported.outcome.error, reported.outcome.cost) == (1, 1.0)
    assert gate.maybe_verify(out("a")).outcome == reported.outcome
    assert gate.report_outcome("b", Outcome(Verdict.PASSED, detail="CI")).verified
    assert gate.policy.state()["taught"] == [("a", 1), ("b", 0)]
    status = gate.status()
    assert (status.spent, status.held, status.verified, status.errors_found) == (2.0, 0.0, 2, 1)
    assert gate.pending() == []


def test_an_external_verdict_costs_and_teaches_nothing() -> None:
    gate = gate_of(wants=lambda id_: False)
    gate.maybe_verify(out("a"))
    result = gate.report_outcome("a", Verdict.INFRA_ERROR)  # nobody could tell yet
    assert not result.verified
    result = gate.report_outcome("a", Verdict.FAILED)
    assert result.verified
    assert not result.decision.verify
    status = gate.status()
    assert (status.external_verdicts, status.spent, status.held, status.verified) == (
        1,
        0.0,
        0.0,
        0,
    )
    assert status.errors_found == 0
    assert gate.policy.state()["taught"] == []
    found = gate.find("a")
    assert found is not None
    assert found.outcome is not None
    assert found.outcome.error == 1
    with pytest.raises(BadInputError, match="already has the verdict"):
        gate.report_outcome("a", "passed")
    assert gate.status() == status


def test_reports_that_cannot_be_taken() -> None:
    """Twice, an unknown id, an unknown verdict: refused, named, and nothing changes."""
    gate = gate_of(ScriptedVerifier({"b": None}), wants=lambda id_: id_ != "c")
    gate.maybe_verify(out("a"))
    status = gate.status()
    with pytest.raises(BadInputError, match="id='a' already has the verdict"):
        gate.report_outcome("a", "failed")
    with pytest.raises(BadInputError, match="id='x' is unknown"):
        gate.report_outcome("x", "failed")
    with pytest.raises(BadInputError, match=r"outcome='wrong'.*passed, failed"):
        gate.report_outcome("a", "wrong")
    assert gate.status() == status

    gate.maybe_verify(out("b"))  # could not tell; a person can
    assert gate.report_outcome("b", "infra_error").outcome is not None
    assert gate.status().spent == 1.0
    assert gate.report_outcome("b", "failed").verified
    assert gate.status().spent == 2.0
    assert gate.policy.state()["taught"] == [("a", 0), ("b", 1)]


def test_a_report_the_log_cannot_hold_does_not_stop_the_gate(tmp_path: Path) -> None:
    """A NumPy integer in the meta of an outcome from outside: taken, or refused as bad input."""
    with gate_of(wants=lambda id_: id_ == "a", log=tmp_path / "run.db") as gate:
        for id_ in "ab":  # a is selected, b gets an external verdict
            gate.maybe_verify(out(id_))
            with contextlib.suppress(BadInputError):
                gate.report_outcome(id_, Outcome(Verdict.FAILED, meta={"n": np.int64(3)}))
        for id_ in "ab":
            with contextlib.suppress(BadInputError):
                gate.report_outcome(id_, "failed")
            found = gate.find(id_)
            assert found is not None
            assert found.verified
        assert (gate.status().spent, gate.status().external_verdicts) == (1.0, 1)


@pytest.mark.parametrize("cost", [nan, inf, -inf, -1.0, 10**400])
@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.INFRA_ERROR])
@pytest.mark.parametrize("of", ["a verifier", "a report"])
def test_an_invalid_cost_stops_no_gate(
    cost: float, verdict: Verdict, of: str, tmp_path: Path
) -> None:
    """Charged or not, the verdict is kept, and the log has the same."""
    invalid = Outcome(verdict, cost=cost)

    class Costly:
        def verify(self, generation: Generation, task: object) -> Outcome:
            return invalid

    def gate() -> VerificationGate:
        verifier = Costly() if of == "a verifier" else None
        log = tmp_path / "run.db"
        return gate_of(verifier, wants=lambda id_: id_ == "a", budget=SECONDS, log=log)

    with gate() as first:
        for id_ in "ab":  # a is selected, b is not
            first.maybe_verify(out(id_))
            if first.find(id_).outcome is None:  # type: ignore[union-attr]
                first.report_outcome(id_, invalid)
        found, status = [first.find(id_) for id_ in "ab"], first.status()
    assert found[0].verified == (verdict is Verdict.FAILED)  # type: ignore[union-attr]
    with gate() as again:
        assert [again.find(id_) for id_ in "ab"] == found
        assert (again.status().spent, again.status().held) == (status.spent, status.held)


def test_a_report_without_seconds_is_not_free() -> None:
    """A budget of seconds, a verdict that does not say how long: the reservation is charged, as
    for every cost that is not known."""
    gate = gate_of(budget=replace(SECONDS, total=2.0))
    for id_ in "ab":
        assert gate.maybe_verify(out(id_)).decision.verify
        gate.report_outcome(id_, "failed")
    assert gate.status().spent == 2.0
    assert gate.maybe_verify(out("c")).decision.reason is Reason.BUDGET_EXHAUSTED


# -- invalid settings and inputs ---------------------------------------------------------------


@pytest.mark.parametrize("estimate", [0.0, -1.0, nan, inf, None, "3"])
def test_a_cost_estimate_must_be_a_positive_number(estimate: Any) -> None:
    gate = gate_of(ScriptedVerifier(), cost_estimate=lambda generation, task: estimate)
    with pytest.raises(BadInputError, match="id='a': cost estimate"):
        gate.maybe_verify(out("a"))
    assert gate.status().seen == 0


@pytest.mark.parametrize(
    "change",
    [
        {"prompt_tokens": np.int64(7)},
        {"output_tokens": np.int32(7)},
        {"k_seen": np.int64(2)},
        {"model": Path("weights")},
        {"text": b"bytes"},
    ],
    ids=str,
)
def test_an_output_the_log_cannot_hold_does_not_stop_the_gate(
    change: dict[str, Any], tmp_path: Path
) -> None:
    """A NumPy integer among the counts, a path as the model: taken, or refused as bad input."""
    with gate_of(ScriptedVerifier(), log=tmp_path / "run.db") as gate:
        try:
            gate.maybe_verify(replace(out("a"), **change))
        except BadInputError as e:
            assert "a" in str(e)  # noqa: PT017
        assert gate.maybe_verify(out("b")).verified


def test_invalid_settings_are_refused_with_the_remedy() -> None:
    """Unknown names list the known ones; numbers out of range are shown."""
    with pytest.raises(BadInputError) as caught:
        VerificationGate("cts", budget=Budget(fraction=0.2))
    for name in policy_names():
        assert name in str(caught.value)
    for beta in (0.0, 1.0, -0.2, 20, nan):
        if beta != 1.0:
            with pytest.raises(BadInputError, match="between 0 and 1"):
                Budget(fraction=beta)
        for policy in (Random, Threshold, CST, HGA):
            with pytest.raises(BadInputError, match="between 0 and 1"):
                policy(beta)
    with pytest.raises(BadInputError, match="needs a rate"):
        VerificationGate("cst", budget=Budget(total=300))
    with pytest.raises(BadInputError, match="max_cost"):
        VerificationGate(Random(0.5), budget=Budget(total=5.0, unit="usd"))
    with pytest.raises(BadInputError, match="on_unavailable='skip'"):
        gate_of(on_unavailable="skip")
    with pytest.raises(BadInputError, match="workers=0"):
        gate_of(workers=0)
    with pytest.raises(BadInputError, match=r"has verify\(generation, task\)"):
        gate_of(object())
    for setting, value, says in (
        ("log", "a\0b", "without NUL"),
        ("log", Path("a\0b"), "without NUL"),
        ("log", "a\ud800", "surrogate pairs"),
        ("log", [], "give a file name"),
        ("settings", "m", "give JSON values by name"),
        ("settings", ["m"], "give JSON values by name"),
        ("cost_estimate", 5, r"give a function of \(generation, task\)"),
        ("cost_estimate", None, r"give a function of \(generation, task\)"),
    ):
        with pytest.raises(BadInputError, match=says) as caught:
            gate_of(**{setting: value})
        shown = str(value) if isinstance(value, Path) else value
        assert str(caught.value).startswith(f"{setting}={shown!r}")
    for bad_id in ("", 7, "\ud800", "x" * 1025, "é" * 513):
        with pytest.raises(BadInputError, match=r"needs an id of its own|a string is needed"):
            gate_of().maybe_verify(out("a"), id=bad_id)  # type: ignore[arg-type]
    short = replace(out("a"), top1=np.zeros(3))
    with pytest.raises(BadInputError, match=r"id='a'.*one length"):
        gate_of().maybe_verify(short)


@pytest.mark.parametrize("name", ["random", "threshold", "cst", "hga"])
def test_a_policy_by_name_runs(name: str) -> None:
    """A name and a budget are enough; the seed makes the run repeatable."""

    def run(seed: int) -> list[bool]:
        budget = Budget(fraction=0.2, horizon=200)
        gate = VerificationGate(name, budget=budget, verifier=ScriptedVerifier(), seed=seed)
        return [gate.maybe_verify(g).verified for g in stream(200)]

    assert run(3) == run(3)
    assert sum(run(3)[50:]) <= 30  # 0.2 of the 150 that follow the warm-up


# -- the end -----------------------------------------------------------------------------------


def test_with_closes_the_verifier_and_the_log(tmp_path: Path) -> None:
    """`with gate:` closes what it was given, also when the body or the verifier's close fails."""
    closed = []

    class Closing(ScriptedVerifier):
        def close(self) -> None:
            closed.append(self)
            if len(closed) == 3:
                raise OSError("already gone")

    path = tmp_path / "run.db"
    with gate_of(Closing(), log=path) as gate:
        gate.maybe_verify(out("a"))
    with pytest.raises(ZeroDivisionError), gate_of(Closing(), log=path):
        _ = 1 / 0
    failing = gate_of(Closing(), log=path)
    with pytest.raises(OSError, match="already gone"):
        failing.close()
    assert len(closed) == 3
    with gate_of(log=path) as gate:  # the log was closed each time: nobody holds it
        assert gate.status().spent == 1.0
    with pytest.raises(GatekeeperError, match="this gate is closed"):
        gate.maybe_verify(out("b"))


def test_closing_waits_for_a_verification_in_a_callers_thread() -> None:
    """Its verdict is charged and returned, and the verifier is closed after it."""
    begun, may_end = threading.Event(), threading.Event()
    steps = []

    class Slow(ScriptedVerifier):
        def verify(self, generation: Generation, task: Any) -> Outcome:
            begun.set()
            may_end.wait(PATIENCE)
            steps.append("verified")
            return super().verify(generation, task)

        def close(self) -> None:
            steps.append("closed")

    gate = gate_of(Slow())
    with ThreadPoolExecutor(2) as pool:
        call = pool.submit(gate.maybe_verify, out("a"))
        begun.wait(PATIENCE)
        closing = pool.submit(gate.close)
        with pytest.raises(TimeoutError):
            closing.result(0.05)
        may_end.set()
        closing.result(PATIENCE)
        assert call.result(PATIENCE).verified
    assert steps == ["verified", "closed"]


def test_a_policy_that_fails_stops_the_gate_and_says_so() -> None:
    """After a half-made step nothing more is decided: the next call names the first error."""
    log = MemoryLog()

    def fails(id_: str) -> bool:
        if id_ == "b":
            raise RuntimeError("bug in a plug-in")
        return True

    gate = gate_of(ScriptedVerifier(), wants=fails, log=log)
    gate.maybe_verify(out("a"))
    with pytest.raises(RuntimeError, match="bug in a plug-in"):
        gate.maybe_verify(out("b"))
    with pytest.raises(LogError, match="bug in a plug-in"):
        gate.maybe_verify(out("c"))
    again = gate_of(ScriptedVerifier(), log=log)
    assert again.status().spent == 1.0
    assert again.maybe_verify(out("b")).verified


def test_what_was_logged_can_be_had_again(tmp_path: Path) -> None:
    """`output` and the log give what a verifier needs; every line is JSON for any reader."""
    path = tmp_path / "run.db"
    with gate_of(ScriptedVerifier(), log=path) as gate:
        gate.maybe_verify(out("a", text="x = 1\n", tokens=0))
        kept = gate.output("a")
        assert (kept.id, kept.text, kept.prompt_tokens) == ("a", "x = 1\n", 30)
        with pytest.raises(BadInputError, match="'b' is unknown"):
            gate.output("b")
    with SQLiteLog(path, read_only=True) as log:
        assert [e.kind for e in log.events("a")] == ["decided", "outcome", "learned"]

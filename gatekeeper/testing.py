"""For authors of policies and verifiers, and for tests of code that uses a gate.

`check_policy` and `check_verifier` are the contracts as code: every policy and verifier of
gatekeeper passes them in its own tests. The scripted verifiers replace slow ones.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gatekeeper.arguments import check_count, check_finite
from gatekeeper.errors import BadInputError
from gatekeeper.protocols import (
    AsyncVerifier,
    ObservingPolicy,
    Policy,
    ReleasingPolicy,
    Verifier,
)
from gatekeeper.signals import signals_of
from gatekeeper.types import Candidate, Decision, Generation, Label, Outcome, Reason, Verdict

__all__ = [
    "AsyncScriptedVerifier",
    "ScriptedVerifier",
    "check_policy",
    "check_verifier",
    "make_candidates",
    "make_generation",
]


def make_generation(
    id: str, *, tokens: int = 20, seed: int = 0, text: str = "", prompt_tokens: int = 30
) -> Generation:
    """An output with random, well-formed log-probabilities.

    Equal arguments give equal arrays; they do not depend on the id.

    Parameters
    ----------
    id, text, prompt_tokens
        Fields of the output.
    tokens
        Positions; 0: no log-probabilities.
    seed
        Seed of the log-probabilities.

    Raises
    ------
    BadInputError
        For a number of tokens, or a seed, below 0.
    """
    check_count("tokens", tokens, least=0)
    check_count("seed", seed, least=0)
    rng = np.random.default_rng(seed)
    p = np.sort(rng.dirichlet((2.0, 1.0, 0.5), size=tokens), axis=1)[:, ::-1]
    logp = np.log(np.maximum(p, 1e-12))
    return Generation(
        id,
        text,
        logprob=logp[:, 0],
        top1=logp[:, 0],
        top2=logp[:, 1],
        prompt_tokens=prompt_tokens,
        output_tokens=tokens,
        finish_reason="stop",
        k_seen=2 if tokens else 0,
    )


def make_candidates(n: int, *, seed: int = 0, missing: float = 0.0) -> list[Candidate]:
    """A stream of candidates with random signals and costs; equal arguments give equal ones.

    Parameters
    ----------
    n
        Number of candidates.
    seed
        Seed of the random numbers.
    missing
        Probability in [0, 1] with which a candidate lacks its signals.

    Raises
    ------
    BadInputError
        For a number below 0, and for a probability above 1.
    """
    check_count("n", n, least=0)
    check_count("seed", seed, least=0)
    if not 0.0 <= check_finite("missing", missing) <= 1.0:
        raise BadInputError(f"missing={missing!r}: give a probability in [0, 1]")
    rng = np.random.default_rng(seed)
    return [
        Candidate(
            f"c{i}",
            signals_of(
                make_generation(
                    f"c{i}",
                    tokens=0 if rng.random() < missing else int(rng.integers(1, 40)),
                    seed=seed + i,
                )
            ),
            cost_estimate=float(rng.lognormal(0.0, 0.5)),
        )
        for i in range(n)
    ]


class ScriptedVerifier:
    """A verifier with given verdicts, delay and failures, for tests.

    Parameters
    ----------
    labels
        By id: 1 wrong, 0 right, None `infra_error`; an exception instance is raised. An id that is
        absent is right.
    cost
        `Outcome.cost`, in the budget's unit; None leaves it to the gate.
    delay
        Seconds that each verification takes.

    Attributes
    ----------
    calls
        Ids verified, in order of arrival.
    most_at_once
        Verifications that ran together, at most.
    """

    def __init__(
        self,
        labels: Mapping[str, Label | Exception | None] | None = None,
        *,
        cost: float | None = None,
        delay: float = 0.0,
    ) -> None:
        self.labels = labels or {}
        self.cost = cost
        self.delay = delay
        self.calls: list[str] = []
        self.most_at_once = 0
        self._running = 0
        self._lock = threading.Lock()

    def verify(self, generation: Generation, task: Any) -> Outcome:
        self._enter(generation.id)
        try:
            time.sleep(self.delay)
            return self._outcome(generation.id)
        finally:
            self._leave()

    def _enter(self, id_: str) -> None:
        with self._lock:
            self.calls.append(id_)
            self._running += 1
            self.most_at_once = max(self.most_at_once, self._running)

    def _leave(self) -> None:
        with self._lock:
            self._running -= 1

    def _outcome(self, id_: str) -> Outcome:
        label = self.labels.get(id_, 0)
        if isinstance(label, Exception):
            raise label
        verdict = {0: Verdict.PASSED, 1: Verdict.FAILED, None: Verdict.INFRA_ERROR}[label]
        return Outcome(verdict, cost=self.cost, seconds=self.delay)


class AsyncScriptedVerifier(ScriptedVerifier):
    """`ScriptedVerifier` for asyncio; cancelling frees it at once."""

    async def averify(self, generation: Generation, task: Any) -> Outcome:
        self._enter(generation.id)
        try:
            await asyncio.sleep(self.delay)
            return self._outcome(generation.id)
        finally:
            self._leave()


def check_policy(make: Callable[[], Policy], *, n: int = 300, seed: int = 0) -> None:
    """Check the contract of `Policy`.

    Decisions are well formed and repeatable; labels may come late, in another order, or never;
    candidates without signals are accepted; `state` is JSON and `restore` continues exactly.

    Parameters
    ----------
    make
        Returns a fresh, equal policy each time.
    n
        Candidates in the stream.
    seed
        Seed of the stream and of its labels.

    Raises
    ------
    AssertionError
        If the policy violates it.
    """
    candidates = make_candidates(n, seed=seed, missing=0.1)
    labels = (np.random.default_rng(seed).random(n) < 0.4).astype(int).tolist()

    first = _run(make(), candidates, labels)
    again = _run(make(), candidates, labels)
    assert repr(first) == repr(again), "equal policies decided differently"  # NaN equals NaN
    for decision in first:
        assert isinstance(decision.verify, bool), f"verify={decision.verify!r} is not a bool"
        assert 0.0 <= decision.propensity <= 1.0, f"propensity={decision.propensity!r}"
        assert isinstance(decision.reason, Reason), f"reason={decision.reason!r}"

    policy, other = make(), make()
    half = n // 2
    _run(policy, candidates[:half], labels[:half])
    state = _as_json(policy.state(), "state()")
    other.restore(state)
    assert _same(state, _as_json(other.state(), "state()")), "restore lost part of the state"
    went_on = _run(policy, candidates[half:], labels[half:])
    restored = _run(other, candidates[half:], labels[half:])
    assert repr(went_on) == repr(restored), "restore changed decisions"

    never = make()  # no label ever comes
    for candidate in candidates:
        never.decide(candidate)

    late = make()  # all labels come at the end, backwards
    decisions = [late.decide(candidate) for candidate in candidates]
    for i in reversed(range(n)):
        late.update(candidates[i], decisions[i], _labelled(labels[i]))
    assert isinstance(late.decide(make_candidates(n + 1, seed=seed)[-1]), Decision)
    assert isinstance(late.phase, str)


def check_verifier(
    verifier: Verifier | AsyncVerifier, examples: Iterable[tuple[Generation, Any, Verdict]]
) -> None:
    """Check the contract of `Verifier` or `AsyncVerifier`.

    Each example is verified alone, again (the same verdict), and all at once from several threads.

    Parameters
    ----------
    verifier
        The one to check.
    examples
        (generation, task, expected verdict).

    Raises
    ------
    AssertionError
        For another verdict, an exception, or a result that is no Outcome.
    """
    examples = list(examples)

    def verify(example: tuple[Generation, Any, Verdict]) -> Outcome:
        generation, task, _ = example
        try:
            if isinstance(verifier, Verifier):
                return verifier.verify(generation, task)
            return asyncio.run(verifier.averify(generation, task))
        except Exception as e:
            raise AssertionError(f"id={generation.id!r}: verify raised {e!r}") from e

    with ThreadPoolExecutor(4) as pool:
        rounds = [[verify(e) for e in examples], list(pool.map(verify, examples))]
    for outcomes in rounds:
        for (generation, _, expected), outcome in zip(examples, outcomes, strict=True):
            assert isinstance(outcome, Outcome), f"verify returned {outcome!r}"
            assert outcome.verdict is expected, (
                f"id={generation.id!r}: {outcome.verdict} ({outcome.detail}), expected {expected}"
            )


def _run(policy: Policy, candidates: list[Candidate], labels: list[int]) -> list[Decision]:
    """Decide on all, each label following at once where the decision was to verify.

    Some verifications end without a label, if the policy observes that.
    """
    decisions = []
    for candidate, label in zip(candidates, labels, strict=True):
        decision = policy.decide(candidate)
        if isinstance(policy, ObservingPolicy):
            policy.observe(candidate, decision)
        assert isinstance(decision, Decision), f"decide returned {decision!r}"
        decisions.append(decision)
        if decision.verify and isinstance(policy, ReleasingPolicy) and len(decisions) % 7 == 0:
            policy.release(candidate, decision)
        elif decision.verify:
            policy.update(candidate, decision, _labelled(label))
    return decisions


def _labelled(label: int) -> Outcome:
    return Outcome(Verdict.FAILED if label else Verdict.PASSED, cost=1.0)


def _as_json(value: object, what: str) -> Any:
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as e:
        raise AssertionError(f"{what} is not JSON: {e}") from e


def _same(a: object, b: object) -> bool:
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)

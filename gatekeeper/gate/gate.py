"""The gate: decides after generation and before verification, and never overspends."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, replace
from math import inf, isfinite, nan
from numbers import Real
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from gatekeeper import costs
from gatekeeper.budget import Budget, Ledger
from gatekeeper.drift.fingerprint import Fingerprint
from gatekeeper.drift.guard import Guard
from gatekeeper.errors import (
    BadInputError,
    LogError,
    LogMismatchError,
    VerifierUnavailableError,
)
from gatekeeper.gate import loop
from gatekeeper.gate.best_of import Choice, abest_of, best_of
from gatekeeper.gate.micro_batch import Together
from gatekeeper.gate.settings import (
    OnDrift,
    OnUnavailable,
    as_json,
    chance_of,
    check_arguments,
    describe,
    max_cost_of,
    named_policy,
    relearning_rate,
)
from gatekeeper.gate.transaction import Step, _RefusedError
from gatekeeper.io.providers import wrapper_of
from gatekeeper.io.responses import as_generation
from gatekeeper.log import Event, Log, MemoryLog, SQLiteLog, encoding
from gatekeeper.protocols import (
    AsyncVerifier,
    CostEstimator,
    ObservingPolicy,
    Policy,
    Verifier,
)
from gatekeeper.signals import signals_of
from gatekeeper.types import (
    Calibration,
    Candidate,
    Decision,
    GateResult,
    GateStatus,
    Generation,
    Outcome,
    Reason,
    SignalState,
    Undecided,
    Verdict,
)

if TYPE_CHECKING:
    from gatekeeper.adapters.openai.call_settings import Verify
    from gatekeeper.adapters.positions import Scope

__all__ = ["VerificationGate"]

ClientT = TypeVar("ClientT")


@dataclass(slots=True, eq=False)
class _Open:
    """A candidate that was selected and that the policy has not learned from yet."""

    generation: Generation
    candidate: Candidate
    decision: Decision
    phase: str  # of the policy when it decided
    busy: bool = False  # a verifier is at it, in this process
    held: bool = True  # its budget is reserved
    outcome: Outcome | None = None  # charged, with a label
    trouble: Outcome | None = None  # why the verifier could not tell, the last time

    def result(self) -> GateResult:
        outcome = self.outcome or self.trouble
        return GateResult(self.candidate.id, self.candidate.signals, self.decision, outcome)


class _New(NamedTuple):
    """An output as it comes in."""

    generation: Generation
    candidate: Candidate | None  # None: its id is known
    force: bool


_Answer = _Open | GateResult | Exception | None  # to a new one. None: its id is known

# Outputs at most that an event loop's callers have decided on in one go. Written in one
# transaction and decided on while the code is in the processor's cache, they take less; more than a
# few would keep many finished answers waiting.
_TOGETHER = 8


class VerificationGate:
    """Asks a policy which outputs deserve verification, and verifies those within a budget.

    Safe to share between threads and asyncio tasks: policy, ledger and log change together under
    one short lock, verification runs outside it. An output is known by its id: handing in the
    same one again continues what was begun (after a crash, after a verifier that could not tell)
    or returns what is known; it never decides or charges twice.

    Outputs are handed in (`maybe_verify`, `verify_batch`), or come by themselves from a client
    that `wrap` put the gate around.
    """

    def __init__(
        self,
        policy: str | Policy = "cst",
        *,
        budget: Budget,
        verifier: Verifier | AsyncVerifier | None = None,
        log: str | Path | Log | None = None,
        cost_estimate: CostEstimator = costs.prompt_length,
        on_unavailable: OnUnavailable = "raise",
        workers: int = 4,
        seed: int = 0,
        explore: float = 0.1,
        prompt_template: str | None = None,
        on_drift: OnDrift = "relearn",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """
        policy           a name (see `gatekeeper.policies.policy_names`) or a fresh instance
        verifier         None: only decide; outcomes then come through `report_outcome`
        log              a file to write or to resume, a `Log`, or None: memory only
        cost_estimate    ĉ of an output before it is verified
        on_unavailable   what a verifier that cannot tell does to the caller: "raise"
                         VerifierUnavailableError, or "pass" the result with its `infra_error`
        workers          threads that run a synchronous verifier for `verify_batch` and asyncio
        seed             of a policy given by name, and of the draws of `explore`
        explore          share of the budget, in [0, 1), for drawing candidates uniformly whatever
                         the policy says: so each has a known chance, its decision's `propensity`,
                         and what was verified says something of all outputs. A policy given by
                         name leaves room for it; an instance keeps its own beta. 0: no draws, and
                         no such estimate. Where a budget has no rate (a total without a horizon)
                         there are none either
        prompt_template  its text, of which a hash is logged: another one when the log is resumed is
                         drift, as another verifier is, and a model that the log has not seen
        on_drift         where what the policy learned no longer holds (`status().calibration`):
                         "relearn" drops it and draws uniformly, within the same budget, until it
                         is learned again; "report" only says so
        settings         more of what a resumed log must have been written with, JSON values: the
                         model, the task file. A "model" is that of outputs that do not name theirs

        Raises BadInputError for settings that cannot be, LogError for a log that cannot be used
        or was written under other settings.
        """
        check_arguments(
            policy,
            budget,
            verifier,
            log,
            on_unavailable,
            workers,
            seed,
            explore,
            prompt_template,
            on_drift,
        )
        self._chance = chance_of(budget, explore)
        self._draws = np.random.default_rng((seed, 2))  # others than a policy's of the same seed
        if isinstance(policy, str):
            policy = named_policy(policy, budget, self._chance, seed)
        self.policy = policy
        self._guard = Guard(
            policy,
            rate=relearning_rate(budget, self._chance),
            relearns=on_drift == "relearn",
            seed=seed,
        )
        self._ask(policy)
        self._on_drift = on_drift
        self._fingerprint: Fingerprint | None = None  # none in the log yet
        self._stale = False  # the fingerprint changed, and nothing is to be done about it
        self._calibration, self._drift = Calibration.COLD, ""  # as noted in the log
        model = (settings or {}).get("model")
        self._model = model if isinstance(model, str) else None  # of outputs that do not say
        self.budget = budget
        self.verifier = verifier
        self._is_sync = isinstance(verifier, Verifier | None)  # once: a protocol answers slowly
        self._cost_estimate = cost_estimate
        self._on_unavailable = on_unavailable
        self._max_cost = max_cost_of(budget, verifier)
        self._ledger = Ledger(budget, self._max_cost, explore=self._chance)
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="gatekeeper")
        self._lock = RLock()  # a signal handler may ask for the status in the middle of a step
        self._step = Step()
        self._decide_together = Together(self._decide_all, self._take_back, most=_TOGETHER)
        self._ids: set[str] = set()
        self._open: dict[str, _Open] = {}
        self._counts: Counter[str] = Counter()
        if log is None:
            log = MemoryLog()
        self._log = SQLiteLog(log) if isinstance(log, str | Path) else log
        try:
            self._resume(
                {
                    "exploration": {"explore": explore, "seed": seed if explore else 0},
                    "policy": describe(policy),
                    "budget": asdict(budget) | {"max_cost": self._max_cost},
                    "more": as_json(settings or {}),
                },
                Fingerprint.of(prompt_template, verifier),
            )
        except BaseException:
            self._log.close()
            raise

    # -- what callers use ---------------------------------------------------------------------

    def maybe_verify(
        self, response: object, task: object = None, *, id: str | None = None, force: bool = False
    ) -> GateResult:
        """Decide on one output, and verify it here and now if it is selected.

        response   a Generation, an OpenAI chat completion, or its JSON as a dict
        task       what the verifier needs besides; passed on as it is
        id         overrides the response's own; one per output
        force      verify whatever the policy says, within the budget; not for an output on which
                   was decided before

        Raises BadInputError, LogError, and, with `on_unavailable="raise"`,
        VerifierUnavailableError.
        """
        if not self._is_sync and _in_event_loop():
            raise BadInputError(
                f"verifier={self.verifier!r} is asynchronous: await gate.amaybe_verify(...) instead"
            )
        entry = self._admit(response, task, id=id, force=force)
        if isinstance(entry, GateResult):
            return entry
        self._verify(entry, task, learn=True)
        return self._answer(entry)

    async def amaybe_verify(
        self, response: object, task: object = None, *, id: str | None = None, force: bool = False
    ) -> GateResult:
        """`maybe_verify` for asyncio. Cancelling it gives back what was reserved.

        Calls that an event loop has at once are decided on together, in the order in which they
        came, and logged in one transaction: up to 8 that come in one turn of the loop.

        A verifier without `averify` runs in a thread. One that has begun there cannot be stopped:
        it finishes, is charged, and its verdict is learned.
        """
        new = self._look_at(response, task, id=id, force=force)
        entry = self._admitted(new, await self._decide_together(new), learn=True)
        if isinstance(entry, GateResult):
            return entry
        if isinstance(self.verifier, AsyncVerifier):
            await self._averify(entry, task)
            return self._answer(entry)
        future = self._pool.submit(self._verify, entry, task, learn=True)
        try:
            await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if future.cancel():  # no thread had begun with it
                self._release(entry, "cancelled")
            raise
        return self._answer(entry)

    def verify_batch(self, pairs: Iterable[tuple[object, object]]) -> list[GateResult]:
        """Decide on (response, task) pairs in order; verify the selected ones concurrently.

        Results come in order. What the verdicts teach reaches the policy in order too, when the
        batch ends or the policy enters another phase. So, with a budget in verifications, the same
        batches give the same decisions at any number of workers; in seconds or usd a decision may
        also depend on what earlier ones have cost by then. Batches of a few dozens let a policy
        learn between them.
        With `on_unavailable="raise"`, the first verification that could not tell raises after
        all others are done; `find` has their results.
        """
        answers: list[GateResult | _Open] = []
        waiting: list[tuple[_Open, Future[None] | None]] = []
        ids: set[str] = set()
        try:
            for pair in pairs:
                if not (isinstance(pair, tuple | list) and len(pair) == 2):
                    raise BadInputError(f"pair={pair!r:.80}: give (response, task) pairs")
                response, task = pair
                generation = as_generation(response)
                if generation.id in ids:
                    raise BadInputError(f"id={generation.id!r} stands twice in the batch")
                ids.add(generation.id)
                if waiting and waiting[-1][0].phase != self._asked.phase:
                    self._collect(waiting)
                entry = self._admit(generation, task, learn=False)
                answers.append(entry)
                if isinstance(entry, _Open):
                    verify = entry.outcome is None
                    future = self._pool.submit(self._verify, entry, task) if verify else None
                    waiting.append((entry, future))
            self._collect(waiting)
        except BaseException:
            for entry, future in waiting:
                if future is not None and future.cancel():
                    entry.busy = False  # still reserved: handing it in again goes on
            raise
        return [a if isinstance(a, GateResult) else self._answer(a) for a in answers]

    def report_outcome(self, id: str, outcome: Outcome | Verdict | str) -> GateResult:
        """Take a verdict from outside: a human audit, a CI job, a verifier of the caller's own.

        For a selected output it is charged and learned from like any other. For one that was not
        selected it is kept in the log as an audit: it costs nothing, and no policy learns from
        it, because who picked it, and why, is not known. Raises BadInputError for an unknown id
        and for one that has a verdict already.
        """
        if not isinstance(outcome, Outcome):
            try:
                outcome = Outcome(Verdict(outcome))
            except ValueError:
                raise BadInputError(
                    f"outcome={outcome!r}: give an Outcome or one of {', '.join(Verdict)}"
                ) from None
        with self._lock, self._step:
            entry = self._open.get(id)
            if entry is None:
                return self._audit(id, outcome)
            if entry.busy or entry.outcome is not None:
                raise _RefusedError(f"id={id!r} is being verified or has a verdict already")
            if outcome.error is None:
                if entry.held:
                    self._give_back(entry, outcome.detail, outcome)
                return entry.result()
            if not entry.held and not self._reserve_again(entry):
                raise _RefusedError(f"id={id!r}: the budget has no room for this verdict any more")
            self._settle(entry, outcome, learn=True)
            return entry.result()

    # -- loops around it ------------------------------------------------------------------------

    def run_loop(
        self, generate: loop.Generate, task: object = None, *, id: str, max_attempts: int = 3
    ) -> loop.LoopResult:
        """Generate an output and hand it in; as long as one is found wrong, generate another.

        generate       called with the task and the earlier attempts, whose `feedback()` belongs
                       into the next prompt; returns one output, in any shape that `maybe_verify`
                       takes. It may ask a wrapped client: the output is decided on once
        task           what the verifier needs besides the output, and `generate` too
        id             of the task; its outputs are `id/1`, `id/2`, ... Called again with the same
                       id, after a crash too, the loop goes on where it was
        max_attempts   outputs at most, this call's and earlier ones' together

        It ends with an output that passed, that the policy did not select, that the budget has no
        room for or that the verifier cannot judge, and after `max_attempts`. Raises what
        `maybe_verify` and `generate` raise; with `on_unavailable="raise"` that includes
        VerifierUnavailableError.
        """
        return loop.run_loop(self, generate, task, id=id, max_attempts=max_attempts)

    async def arun_loop(
        self, generate: loop.AsyncGenerate, task: object = None, *, id: str, max_attempts: int = 3
    ) -> loop.LoopResult:
        """`run_loop` for asyncio; `generate` is a coroutine function."""
        return await loop.arun_loop(self, generate, task, id=id, max_attempts=max_attempts)

    def best_of(
        self, responses: Sequence[object], task: object = None, *, id: str | None = None
    ) -> Choice:
        """Choose one of several outputs to one prompt.

        They are handed in one after the other, the most doubtful (largest h1) first, until one is
        verified and passes: that one is chosen. Else it is the least doubtful one that did not
        fail, else the least doubtful. Equal texts are handed in once.

        responses   a list, of any shapes that `maybe_verify` takes, with one or several outputs
        task        what the verifier needs besides an output
        id          of the task: the outputs are named `id/0`, `id/1`, ... instead of their own ids

        Raises what `maybe_verify` raises.
        """
        return best_of(self, responses, task, id=id)

    async def abest_of(
        self, responses: Sequence[object], task: object = None, *, id: str | None = None
    ) -> Choice:
        """`best_of` for asyncio."""
        return await abest_of(self, responses, task, id=id)

    # -- around a client ------------------------------------------------------------------------

    def wrap(
        self, client: ClientT, *, strict: bool = False, return_tokens_as_token_ids: bool = False
    ) -> ClientT:
        """A copy of the client whose outputs pass through this gate; the client stays as it is.

        client   an OpenAI, AsyncOpenAI, AzureOpenAI or AsyncAzureOpenAI
        strict   raise what is wrong with the gate or with an output out of the caller's own call;
                 otherwise `result_of` names it
        return_tokens_as_token_ids   ask for that in legacy completions: right margins from vLLM,
                 whose dicts of strings lose tokens; other servers do not know it

        Calls get what they want of the gate by `task` or by
        `extra_body={"gatekeeper": {"task": ..., "id": ..., "verify": ..., "scope": ...}}`.
        Raises BadInputError for another client, and for one that another tool has patched.
        """
        wrapped: ClientT = wrapper_of(client)(
            self, client, strict=strict, return_tokens_as_token_ids=return_tokens_as_token_ids
        )
        return wrapped

    def task(
        self,
        task: object = None,
        *,
        id: str | None = None,
        verify: Verify = "auto",
        scope: Scope = "content",
    ) -> AbstractContextManager[None]:
        """What calls of wrapped clients want of this gate, made inside by this thread or asyncio
        task; `extra_body` overrides it.

        task     what the verifier needs besides the output
        id       of the output, instead of the provider's; of several, `id/0`, `id/1`, ...
        verify   "auto": as the policy decides; "always": within the budget; "never": not even seen
        scope    whose log-probabilities make the signals: "content", "reasoning" or "all"
        """
        from gatekeeper.adapters.openai.call_settings import CallSettings, with_settings

        return with_settings(self, CallSettings(task, id, verify, scope))

    def results_of(self, response: object) -> list[GateResult | Undecided]:
        """What became of the outputs of a response, a stream or an error of a wrapped client.

        Raises BadInputError for what did not come through a gate.
        """
        from gatekeeper.adapters.openai.attachment import results_of

        return results_of(response)

    def result_of(self, response: object) -> GateResult | Undecided:
        """The same where there is one output."""
        results = self.results_of(response)
        if len(results) != 1:
            raise BadInputError(f"the response has {len(results)} outputs: ask results_of")
        return results[0]

    def observe_stream(
        self,
        stream: Any,
        task: object = None,
        *,
        id: str | None = None,
        verify: Verify = "auto",
        scope: Scope = "content",
        strict: bool = False,
    ) -> Any:
        """The stream's chunks, untouched, without a wrapped client; iterate over what it returns.

        stream   chunks of OpenAI's shape, objects or dicts, from an iterable or an async one
        The gate decides when the outputs are complete; `result_of` the returned stream has the
        result. A stream that is not read so far is not decided on.
        """
        from gatekeeper.adapters.openai.call_settings import CallSettings
        from gatekeeper.adapters.openai.observer import observe_stream

        settings = CallSettings(task, id, verify, scope)
        return observe_stream(self, stream, settings, strict=strict)

    # -- what is known --------------------------------------------------------------------------

    def pending(self) -> list[Generation]:
        """Outputs that were selected and that the policy has not learned from, in stream order.

        After a resume these are what the last process did not finish: hand them in again, or free
        what they hold with `report_outcome(id, "infra_error")`.
        """
        with self._lock:
            return [entry.generation for entry in self._open.values() if not entry.busy]

    def find(self, id: str) -> GateResult | None:
        """What is known of an output; None for an id never seen."""
        with self._lock:
            return self._recall(id) if id in self._ids else None

    def output(self, id: str) -> Generation:
        """An output as the log has it: what a verifier needs, without token arrays.

        Raises BadInputError for an unknown id.
        """
        with self._lock:
            if id not in self._ids:
                raise BadInputError(f"id={id!r} is unknown: the gate has never seen it")
            return encoding.generation_of(id, self._decided(id))

    def phase_of(self, id: str) -> str:
        """The policy's phase when it decided on this output.

        Raises BadInputError for an unknown id.
        """
        with self._lock:
            if id not in self._ids:
                raise BadInputError(f"id={id!r} is unknown: the gate has never seen it")
            phase: str = self._decided(id)["phase"]
            return phase

    def status(self) -> GateStatus:
        with self._lock:
            n, ledger = self._counts, self._ledger
            return GateStatus(
                phase=self._asked.phase,
                seen=ledger.seen,
                verified=n["verified"],
                errors_found=n["errors_found"],
                warmup_seen=n["warmup_seen"],
                warmup_verified=n["warmup_verified"],
                warmup_errors=n["warmup_errors"],
                budget_exhausted=n[Reason.BUDGET_EXHAUSTED],
                missing_signal=n["without_signal"],
                audited=n["audited"],
                unresolved=sum(e.outcome is None for e in self._open.values()),
                cap=ledger.cap,
                spent=ledger.spent,
                held=ledger.held,
                warmup_spent=ledger.warmup_spent,
                overrun=ledger.overrun,
                calibration=self._calibration,
                drift=self._drift,
            )

    def close(self) -> None:
        """Wait for verifications under way, close the verifier and the log."""
        self._pool.shutdown()
        self._step.closed = True
        close = getattr(self.verifier, "close", None)
        try:
            if callable(close):
                close()
        finally:
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    # -- one step after the other, each under the lock ----------------------------------------

    def _admit(
        self,
        response: object,
        task: object,
        *,
        id: str | None = None,
        force: bool = False,
        learn: bool = True,
    ) -> _Open | GateResult:
        """Decide, or find what was decided. An _Open one is the caller's to verify or to learn."""
        new = self._look_at(response, task, id=id, force=force)
        [answer] = self._decide_all([new])
        return self._admitted(new, answer, learn=learn)

    def _look_at(self, response: object, task: object, *, id: str | None, force: bool) -> _New:
        generation = as_generation(response, id=id)
        if generation.id in self._ids:
            return _New(generation, None, force)
        signals = signals_of(generation)
        cost_estimate = self._cost_estimate(generation, task)
        is_number = isinstance(cost_estimate, (float, Real))  # float first: it is quicker
        if not (is_number and 0 < cost_estimate < inf):
            raise BadInputError(
                f"id={generation.id!r}: cost estimate {cost_estimate!r} must be a number above 0"
            )
        return _New(generation, Candidate(generation.id, signals, float(cost_estimate)), force)

    def _decide_all(self, outputs: list[_New]) -> list[_Answer]:
        """Decide on one after the other, and log it all at once. If that fails each has the error.

        In the order of the outputs; an exception is for `_admitted` to raise.
        """
        answers: list[_Answer] = []
        events: list[Event] = []
        try:
            with self._lock, self._step:
                for new in outputs:
                    try:
                        with self._step:  # its own: where it breaks off, the earlier ones stand
                            answers.append(self._decide_on(new, events))
                    except Exception as error:
                        answers.append(error)
                self._log.append(events)
        except Exception as error:
            return [error] * len(outputs)
        return answers

    def _decide_on(self, new: _New, events: list[Event]) -> _Open | GateResult | None:
        """What is to be logged is added to the events."""
        generation, candidate, force = new
        if candidate is None or generation.id in self._ids:
            return None
        met = self._meet(generation.model)
        phase = self._asked.phase
        decision = self._decide(candidate, force=force)
        data = encoding.decided(generation, candidate, decision, phase=phase, forced=force)
        events += [*met, Event("decided", generation.id, data), *self._note()]
        if not decision.verify:
            return GateResult(generation.id, candidate.signals, decision)
        entry = _Open(generation, candidate, decision, phase)
        self._open[generation.id] = entry
        entry.busy = self.verifier is not None
        return entry

    def _admitted(self, new: _New, answer: _Answer, *, learn: bool) -> _Open | GateResult:
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            return self._readmit(new.generation, force=new.force, learn=learn)
        if isinstance(answer, _Open) and not answer.busy:  # somebody else verifies it
            return answer.result()
        return answer

    def _take_back(self, answer: _Answer) -> None:
        """Nobody waits for it any more."""
        with self._lock:
            if isinstance(answer, _Open) and answer.held:
                self._release(answer, "cancelled")

    def _readmit(self, generation: Generation, *, force: bool, learn: bool) -> _Open | GateResult:
        with self._lock, self._step:
            id_ = generation.id
            entry = self._open.get(id_)
            known = self._recall(id_)
            text = entry.generation.text if entry else self._decided(id_)["text"]
            if text != generation.text:
                raise _RefusedError(
                    f"id={id_!r} already names another output: give each output an id of its own"
                )
            if entry is None:
                if force and known.outcome is None:
                    raise _RefusedError(
                        f"id={id_!r} was decided on and not selected: force=True comes too late; "
                        "verify it yourself and tell report_outcome"
                    )
                return known
            if entry.busy:
                raise _RefusedError(f"id={id_!r} is being verified already")
            if entry.outcome is not None:
                if not learn:
                    return entry
                self._log.append(self._learn([entry]))
                return known
            if self.verifier is None:
                return known
            if not entry.held and not self._reserve_again(entry):
                exhausted = replace(
                    entry.decision, verify=False, reason=Reason.BUDGET_EXHAUSTED, propensity=0.0
                )
                return replace(known, decision=exhausted)
            entry.busy = True
            return entry

    def _verify(self, entry: _Open, task: object, *, learn: bool = False) -> None:
        """Run the verifier in this thread, then settle."""
        start = time.perf_counter()
        try:
            if isinstance(self.verifier, Verifier):
                outcome = self.verifier.verify(entry.generation, task)
            else:
                assert isinstance(self.verifier, AsyncVerifier)
                outcome = asyncio.run(self.verifier.averify(entry.generation, task))
        except Exception as e:
            outcome = _could_not_tell(e)
        except BaseException:
            self._release(entry, "interrupted")
            raise
        self._conclude(entry, outcome, time.perf_counter() - start, learn=learn)

    async def _averify(self, entry: _Open, task: object) -> None:
        assert isinstance(self.verifier, AsyncVerifier)
        start = time.perf_counter()
        try:
            outcome = await self.verifier.averify(entry.generation, task)
        except Exception as e:
            outcome = _could_not_tell(e)
        except BaseException:
            self._release(entry, "cancelled")
            raise
        self._conclude(entry, outcome, time.perf_counter() - start, learn=True)

    def _conclude(self, entry: _Open, outcome: Outcome, elapsed: float, *, learn: bool) -> None:
        if not isinstance(outcome, Outcome):
            outcome = _could_not_tell(TypeError(f"verifier returned {outcome!r}, not an Outcome"))
        if not outcome.seconds:
            outcome = replace(outcome, seconds=elapsed)
        with self._lock, self._step:
            entry.busy = False
            if outcome.error is None:
                self._give_back(entry, outcome.detail, outcome)
            else:
                self._settle(entry, outcome, learn=learn)

    def _release(self, entry: _Open, why: str) -> None:
        """On the way out of an exception, which a gate that has stopped must not replace."""
        with suppress(LogError), self._lock, self._step:
            entry.busy = False
            self._give_back(entry, why)

    def _collect(self, waiting: list[tuple[_Open, Future[None] | None]]) -> None:
        """Wait for a batch's verifications, then teach the policy in stream order."""
        for _, future in waiting:
            if future is not None:
                future.result()
        with self._lock, self._step:
            done = [entry for entry, _ in waiting if entry.outcome is not None]
            self._log.append(self._learn(done))
        waiting.clear()

    def _answer(self, entry: _Open) -> GateResult:
        result = entry.result()
        if entry.outcome is None and self._on_unavailable == "raise":
            detail = entry.trouble.detail if entry.trouble else "no verdict"
            raise VerifierUnavailableError(
                f"id={entry.candidate.id!r}: the verifier could not tell ({detail}); nothing was "
                "charged. on_unavailable='pass' returns such results instead",
                result,
            )
        return result

    # -- the changes themselves: by a call, or again from the log ------------------------------

    def _ask(self, policy: Policy) -> None:
        """Let this one decide from now on."""
        self._asked = policy
        self._observer = policy if isinstance(policy, ObservingPolicy) else None

    def _decide(self, candidate: Candidate, *, force: bool = False) -> Decision:
        wish = self._asked.decide(candidate)
        # For each candidate, whatever the policy says, so that a resumed run draws alike.
        drawn = self._chance > 0.0 and self._draws.random() < self._chance
        warmup = wish.reason is Reason.WARMUP
        if force and not warmup:
            wish = replace(wish, verify=True, reason=Reason.FORCED, propensity=1.0)
        hold = self._ledger.see(candidate.cost_estimate, warmup=warmup)
        left = self._ledger.left(warmup=warmup)
        if warmup or force:
            granted, chance = left >= 0, 0.0
        else:
            granted = left >= self._ledger.spare()
            chance = self._chance if left >= 0 else 0.0
        verify, reason = wish.verify and granted, wish.reason
        if not verify and drawn and chance:
            verify, reason = True, Reason.EXPLORE
        elif wish.verify and not granted:
            reason = Reason.BUDGET_EXHAUSTED
        p = wish.propensity if granted else 0.0
        propensity = p + chance * (1.0 - p)  # 1 - (1 - ε)(1 - p), exact at 0 and 1
        decision = wish
        if (verify, reason, propensity) != (wish.verify, wish.reason, wish.propensity):
            decision = Decision(
                verify, reason, wish.score, wish.threshold, wish.stratum, propensity, wish.version
            )
        if verify:
            self._ledger.reserve(candidate.id, hold)
        if self._observer is not None:
            self._observer.observe(candidate, decision)
        self._ids.add(candidate.id)
        self._counts[decision.reason] += 1
        self._counts["warmup_seen"] += warmup
        self._counts["without_signal"] += candidate.signals.state is SignalState.MISSING
        return decision

    def _settle(self, entry: _Open, outcome: Outcome, *, learn: bool) -> None:
        if self.budget.unit == "verifications":
            cost = 1.0
        elif outcome.cost is not None:
            cost = outcome.cost
        else:  # unknown is charged as the whole reservation
            cost = (outcome.seconds or nan) if self.budget.unit == "seconds" else nan
        outcome = self._charge(entry, outcome, cost)
        taken = {"taken": cost if isfinite(cost) else None}
        data = encoding.outcome_data(outcome) | taken
        events = [Event("outcome", entry.candidate.id, data)]
        self._log.append(events + (self._learn([entry]) if learn else []))

    def _charge(self, entry: _Open, outcome: Outcome, cost: float) -> Outcome:
        charged = self._ledger.settle(entry.candidate.id, cost)
        entry.outcome = outcome = replace(outcome, cost=charged)
        entry.held = False
        where = "warmup_" if entry.decision.reason is Reason.WARMUP else ""
        self._counts[f"{where}verified"] += 1
        self._counts["warmup_errors" if where else "errors_found"] += outcome.error == 1
        return outcome

    def _learn(self, entries: list[_Open]) -> list[Event]:
        """Teach the policy, once, also where a batch and another caller had the same output.

        Returns the events to log.
        """
        events = []
        for entry in entries:
            if entry.candidate.id in self._open:
                self._teach(entry)
                events += [Event("learned", entry.candidate.id, {}), *self._note()]
        return events

    def _teach(self, entry: _Open) -> None:
        assert entry.outcome is not None
        self._asked.update(entry.candidate, entry.decision, entry.outcome)
        del self._open[entry.candidate.id]

    def _meet(self, model: str | None) -> list[Event]:
        """An output comes from this model. Returns the events to log."""
        model = model or self._model
        assert self._fingerprint is not None
        if model is None or model in self._fingerprint.models:
            return []
        return self._become(self._fingerprint.with_models([model]))

    def _become(self, fingerprint: Fingerprint) -> list[Event]:
        """What labels depend on is this from now on. Returns the events to log."""
        why = ""
        if self._fingerprint is not None and self._calibration is not Calibration.COLD:
            why = fingerprint.since(self._fingerprint)
        data = fingerprint.data() | {"on_drift": self._on_drift, "why": why}
        return [Event("fingerprint", "", data), *self._take(fingerprint, why)]

    def _take(self, fingerprint: Fingerprint, why: str) -> list[Event]:
        if self._fingerprint is None:
            self._ask(self._guard)
        self._fingerprint = fingerprint
        if why and self._on_drift == "relearn":
            self._guard.relearn()
        elif why:
            self._stale = True
        return self._note(why)

    def _note(self, why: str = "") -> list[Event]:
        """Where the policy stands now. Returns the event to log, if that has changed."""
        now = Calibration.DRIFTED if self._stale else self._guard.calibration
        if now is self._calibration and not why:
            return []
        self._calibration = now
        if now is Calibration.DRIFTED:
            self._drift = why or self._guard.why
        said = self._drift if now is Calibration.DRIFTED else ""
        return [Event("calibration", "", {"status": now, "why": said})]

    def _give_back(self, entry: _Open, why: str, outcome: Outcome | None = None) -> None:
        self._ledger.release(entry.candidate.id)
        entry.held = False
        entry.trouble = outcome
        data = {"why": why, "outcome": None if outcome is None else encoding.outcome_data(outcome)}
        self._log.append([Event("released", entry.candidate.id, data)])

    def _reserve_again(self, entry: _Open) -> bool:
        if not self._ledger.reserve_again(entry.candidate.id):
            return False
        entry.held = True
        self._log.append([Event("reserved", entry.candidate.id, {})])
        return True

    def _audit(self, id_: str, outcome: Outcome) -> GateResult:
        if id_ not in self._ids:
            raise _RefusedError(f"id={id_!r} is unknown: report only on outputs the gate has seen")
        known = self._recall(id_)
        if known.outcome is not None:
            raise _RefusedError(f"id={id_!r} already has the verdict {known.outcome.verdict!r}")
        if outcome.error is None:
            return replace(known, outcome=outcome)
        self._counts["audited"] += 1
        self._log.append([Event("audited", id_, encoding.outcome_data(outcome))])
        return replace(known, outcome=outcome)

    def _recall(self, id_: str) -> GateResult:
        if id_ in self._open:
            return self._open[id_].result()
        decided, *later = self._log.events(id_)
        outcome = None
        for event in later:
            if event.kind in ("outcome", "audited"):
                outcome = encoding.outcome_of(event.data)
        candidate = encoding.candidate_of(id_, decided.data)
        return GateResult(id_, candidate.signals, encoding.decision_of(decided.data), outcome)

    def _decided(self, id_: str) -> Mapping[str, Any]:
        return next(self._log.events(id_)).data  # the first that is logged of any output

    def _resume(self, settings: Mapping[str, Mapping[str, Any]], fingerprint: Fingerprint) -> None:
        """Go through the log's events: the policy, the ledger and the open ones as they were."""
        if not self._log.settings():
            self._log.configure(settings)
        # logs from before there was any exploration do not say so
        known = {"exploration": {"explore": 0.0, "seed": 0}} | self._log.settings()
        for group, mine in settings.items():
            theirs = known.get(group, {})
            for name in sorted(mine.keys() | theirs.keys()):
                if mine.get(name) != theirs.get(name):
                    raise LogMismatchError(
                        f"the log was written with {name}={theirs.get(name)!r} ({group}), this "
                        f"gate has {mine.get(name)!r}: use the same settings to go on, or a new log"
                    )
        models: dict[str, None] = {}  # seen before logs had fingerprints
        for event in self._log.events():
            if event.kind == "decided" and self._fingerprint is None:
                models |= dict.fromkeys(filter(None, [event.data["model"] or self._model]))
            self._replay(event)
        if self._fingerprint is None:
            self._log.append(self._become(fingerprint.with_models(models)))
        elif (now := fingerprint.after(self._fingerprint)) != self._fingerprint:
            self._log.append(self._become(now))

    def _replay(self, event: Event) -> None:
        kind, id_, data = event
        if kind == "decided":
            candidate, logged = encoding.candidate_of(id_, data), encoding.decision_of(data)
            now = self._decide(candidate, force=data["forced"])
            self._note()
            if (now.verify, now.reason) != (logged.verify, logged.reason):
                raise LogMismatchError(
                    f"id={id_!r}: the log has verify={logged.verify} ({logged.reason}), this "
                    f"policy says {now.verify} ({now.reason}): either it has been changed since, "
                    "or it was not a fresh instance here or there; start a new log"
                )
            if logged.verify:
                generation = encoding.generation_of(id_, data)
                self._open[id_] = _Open(generation, candidate, logged, data["phase"])
        elif kind == "outcome":
            cost = nan if data["taken"] is None else data["taken"]
            self._charge(self._open[id_], encoding.outcome_of(data), cost)
        elif kind == "learned":
            self._teach(self._open[id_])
            self._note()
        elif kind == "fingerprint":
            if data["on_drift"] != self._on_drift:
                raise LogMismatchError(
                    f"the log was written with on_drift={data['on_drift']!r}, this gate has "
                    f"{self._on_drift!r}: use the same to go on, or a new log"
                )
            self._take(Fingerprint.of_data(data), data["why"])
        elif kind == "released":
            self._ledger.release(id_)
            self._open[id_].held = False
            if data["outcome"] is not None:
                self._open[id_].trouble = encoding.outcome_of(data["outcome"])
        elif kind == "reserved":
            self._ledger.reserve_again(id_)
            self._open[id_].held = True
        elif kind == "audited":
            self._counts["audited"] += 1


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _could_not_tell(error: Exception) -> Outcome:
    return Outcome(Verdict.INFRA_ERROR, detail=f"{type(error).__name__}: {error}")

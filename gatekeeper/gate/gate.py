"""The gate: decides after generation and before verification, and never overspends."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from gatekeeper import costs
from gatekeeper.budget import Budget
from gatekeeper.errors import BadInputError
from gatekeeper.gate.clients import ClientMethods
from gatekeeper.gate.configuration import GateSettings
from gatekeeper.gate.held import HeldVerification
from gatekeeper.gate.loop_methods import LoopMethods
from gatekeeper.gate.micro_batch import MicroBatcher
from gatekeeper.gate.opening import open_lifecycle
from gatekeeper.gate.state import OnDrift
from gatekeeper.gate.verification import OnUnavailable, Verification
from gatekeeper.log import Log, PostgresRun
from gatekeeper.log.fold import Output
from gatekeeper.policies import T0, Goal
from gatekeeper.protocols import AsyncVerifier, CostEstimator, Feature, Policy, Sink, Verifier
from gatekeeper.types import GateResult, GateStatus, Generation, Outcome, Verdict
from gatekeeper.types.values import check_text
from gatekeeper.verifiers import as_verifier
from gatekeeper.wording import choose

__all__ = ["VerificationGate"]

# Most outputs that are decided on together for the callers of an event loop. Together they take
# less time (one transaction, a warm cache); more than a few would delay many finished answers.
_MICRO_BATCH = 8


class VerificationGate(ClientMethods, LoopMethods):
    """Asks a policy which outputs to verify, and verifies those within a budget.

    Safe to share between threads and asyncio tasks: policy, ledger and log change together under
    one short lock, verification runs outside it. An output is identified by its id: passing the
    same one again continues an interrupted verification (after a crash, or when the verifier could
    not tell) or returns the known result; it never decides or charges twice.

    Outputs are passed to the gate by `maybe_verify` and `verify_batch`, or by a client that `wrap`
    returned.

    Parameters
    ----------
    policy
        A name (see `gatekeeper.policies.policy_names`) or a fresh instance; None: "calibrated",
        or "survey" for the goal "score".
    budget
        What verification may cost.
    verifier
        An object with `verify` or `averify`, or a function of an output and its task that returns a
        bool, a score or an Outcome (see `gatekeeper.verifiers.outcome_of`). None: the gate only
        decides, and outcomes come through `report_outcome`.
    log
        A file to write or to resume; the address of a PostgreSQL database,
        "postgresql://USER@HOST/DATABASE" (extra `postgres`); a `Log`; or None: memory only.
    run
        The name of the run to begin or resume in a PostgreSQL database, which keeps many.
    shared
        This is one of several processes on the run, which have one budget: see docs/scale.md.
    cost_estimate
        ĉ of an output before it is verified, a number above 0.
    on_unavailable
        What happens if the verifier could not tell: "raise" raises VerifierUnavailableError, "pass"
        returns the result with its `infra_error`.
    workers
        Threads that run a synchronous verifier for `verify_batch` and asyncio, at least 1.
    seed
        Seed of a policy given by name, and of the draws of `explore`; at least 0.
    warmup
        Number of outputs of the warm-up, which are all verified, at least 1, for a policy given by
        name; an instance keeps its own.
    explore
        Share of the budget, in [0, 1), for candidates drawn uniformly, independent of the policy.
        So each has a known probability of being verified, its decision's `propensity`, and the
        verified ones allow estimates for all outputs. A policy given by name leaves room for it; an
        instance keeps its own beta. 0: no draws, and no such estimates. A budget without a rate (a
        total without a horizon) has no draws either.
    prompt_template
        Its text, of which a hash is logged. Another template when the log is resumed is drift, as
        is another verifier, or a model that is new in the log.
    on_drift
        The reaction to drift (`status().health`): "relearn" resets the policy and draws uniformly,
        within the same budget, until it has learned again, and later also when it lags behind the
        budget; "report" only reports drift.
    settings
        Further settings that a log must have to be resumed, JSON values: the model, the task file.
        A "model" is that of outputs that do not name theirs.
    goal
        "errors": find wrong outputs. "score": estimate the mean score of all outputs as precisely
        as the budget allows (`gatekeeper.analysis.score`). Every output is then drawn with a known
        probability, the first ones too: `warmup`, `explore` and `on_drift` have no effect.
    features
        Functions of (generation, task), each a feature by its name: see `gatekeeper.features`.
        Features that an output already has take precedence.
    telemetry
        A `Sink` or several, which get every decision and outcome: see `gatekeeper.telemetry`.

    Raises
    ------
    BadInputError
        For settings that cannot be used.
    LogError
        For a log that cannot be used, or was written with other settings.
    """

    def __init__(
        self,
        policy: str | Policy | None = None,
        *,
        budget: Budget,
        verifier: Verifier | AsyncVerifier | Callable[[Generation, Any], object] | None = None,
        log: str | Path | PostgresRun | Log | None = None,
        run: str | None = None,
        shared: bool = False,
        cost_estimate: CostEstimator = costs.prompt_length,
        on_unavailable: OnUnavailable = "raise",
        workers: int = 4,
        seed: int = 0,
        warmup: int = T0,
        explore: float = 0.1,
        prompt_template: str | None = None,
        on_drift: OnDrift = "relearn",
        settings: Mapping[str, Any] | None = None,
        features: Sequence[Feature] = (),
        goal: Goal = "errors",
        telemetry: Sink | Sequence[Sink] = (),
    ) -> None:
        judge = as_verifier(verifier)
        given = GateSettings(
            policy=policy,
            budget=budget,
            verifier=judge,
            log=log,
            run=run,
            shared=shared,
            cost_estimate=cost_estimate,
            on_unavailable=on_unavailable,
            workers=workers,
            seed=seed,
            warmup=warmup,
            explore=explore,
            prompt_template=prompt_template,
            on_drift=on_drift,
            more={} if settings is None else settings,
            features=features,
            goal=goal,
            telemetry=telemetry if isinstance(telemetry, list | tuple) else (telemetry,),
        )
        self.policy = given.make_policy()
        self.budget = budget
        self.verifier = judge
        self._is_sync = isinstance(judge, Verifier | None)  # once: a protocol answers slowly
        self._life = open_lifecycle(given, self.policy)
        self._verification = Verification(
            judge, self._life, workers=workers, on_unavailable=on_unavailable
        )
        self._decide = MicroBatcher(self._life.decide_batch, self._life.withdraw, most=_MICRO_BATCH)

    # -- handing in outputs -----------------------------------------------------------------------

    def maybe_verify(
        self, response: object, task: object = None, *, id: str | None = None, force: bool = False
    ) -> GateResult:
        """Decide on one output, and verify it at once if it is selected.

        Parameters
        ----------
        response
            A Generation, or a response of a provider, as an object or as JSON: the table in
            docs/any-generator.md lists them.
        task
            What the verifier needs besides the output; passed on unchanged.
        id
            Overrides the response's own; one per output.
        force
            Verify within the budget, whatever the policy proposes; not for an output that already
            has a decision.

        Raises
        ------
        BadInputError
            For a response, an id or a cost estimate that cannot be used.
        LogError
            Where the log cannot be written; the gate has then stopped.
        VerifierUnavailableError
            Where the verifier could not tell, with `on_unavailable="raise"`.
        """
        if not self._is_sync and _in_event_loop():
            raise BadInputError(
                f"verifier={self.verifier!r} is asynchronous: await gate.amaybe_verify(...) instead"
            )
        life = self._life
        new = life.read(response, task, id=id, force=force)
        try:
            output = life.admitted(new, life.decide(new), learn=True)
            if isinstance(output, GateResult):
                return output
            self._verification.run(output, task)
        except BaseException:  # Ctrl-C may come at any line
            life.abandon(new)
            raise
        return self._verification.result(output)

    async def amaybe_verify(
        self, response: object, task: object = None, *, id: str | None = None, force: bool = False
    ) -> GateResult:
        """`maybe_verify` for asyncio. Cancelling it releases the reservation.

        Up to 8 calls that come in one turn of the event loop are decided on together, in the order
        of the calls, and logged in one transaction.

        A verifier without `averify` runs in a thread. It cannot be stopped there once it has begun:
        it finishes, is charged, and the policy learns its verdict.
        """
        result, verification = await self.adecide(response, task, id=id, force=force)
        return result if verification is None else await verification

    async def adecide(
        self, response: object, task: object = None, *, id: str | None = None, force: bool = False
    ) -> tuple[GateResult, Coroutine[Any, Any, GateResult] | None]:
        """`amaybe_verify` in two steps: decide now, verify when the caller awaits the rest.

        Returns
        -------
        GateResult
            With the decision.
        coroutine or None
            For a selected output: its verification, which returns the complete result. Its budget
            is held until it is awaited or closed, or until a task that runs it is cancelled. After
            `close` it raises GatekeeperError, and the output is in `pending` of the next gate on
            the log.
        """
        new = self._life.read(response, task, id=id, force=force)
        try:
            output = self._life.admitted(new, await self._decide(new), learn=True)
        except BaseException:
            self._life.abandon(new)
            raise
        if isinstance(output, GateResult):
            return output, None
        rest = self._verified(output, task)
        return output.result(), HeldVerification(rest, lambda: self._life.withdraw(output))

    async def _verified(self, output: Output, task: object) -> GateResult:
        await self._verification.arun(output, task)
        return self._verification.result(output)

    def verify_batch(self, pairs: Iterable[tuple[object, object]]) -> list[GateResult]:
        """Decide on (response, task) pairs in order; verify the selected ones concurrently.

        The policy is updated in order, too, when the batch ends or the policy enters another phase.
        So, with a budget in verifications, the same batches give the same decisions at any number
        of workers; in seconds or usd a decision may also depend on the costs known by then. With
        batches of a few dozen a policy learns between them.

        Returns
        -------
        list of GateResult
            In order.

        Raises
        ------
        BadInputError
            For a pair that cannot be read: no output of the batch is then decided on. Also for an
            id that names another output, or one that is being verified already, and on the event
            loop that runs an asynchronous verifier for this gate, which would wait for itself.
        VerifierUnavailableError
            With `on_unavailable="raise"`, for the first verification that could not tell, after all
            others are done; `find` has their results.
        """
        return self._verification.batch(pairs)

    def report_outcome(self, id: str, outcome: Outcome | Verdict | str) -> GateResult:
        """Take a verdict from outside: from a person, a CI job, or the caller's own verifier.

        For a selected output it is charged and learned like any other. For one that was not
        selected it is logged as an external verdict: it is not charged, and no policy learns from
        it, because it is unknown why that output was chosen.

        Raises
        ------
        BadInputError
            For an unknown id, and for an output that has a verdict already.
        """
        if not isinstance(outcome, Outcome):
            try:
                outcome = Outcome(Verdict(outcome))
            except ValueError:
                known = [verdict.value for verdict in Verdict]
                raise BadInputError(
                    f"outcome={outcome!r:.80}: give an Outcome, or {choose(outcome, known)}"
                ) from None
        return self._life.report(id, outcome)

    # -- what is known ----------------------------------------------------------------------------

    def pending(self) -> list[Generation]:
        """Selected outputs that the policy has not learned from, in stream order.

        Those that are being verified are left out. After a resume these are the outputs that the
        last process did not finish: pass them to the gate again, or free their reservations with
        `report_outcome(id, "infra_error")`.
        """
        return self._life.pending()

    def find(self, id: str) -> GateResult | None:
        """The result of an output; None for an unknown id. Raises BadInputError for no string."""
        check_text("id", id)
        return self._life.find(id)

    def output(self, id: str) -> Generation:
        """An output from the log: the fields for a verifier, without token arrays.

        Raises
        ------
        BadInputError
            For an unknown id.
        """
        return self._life.decided(id).generation

    def phase_of(self, id: str) -> str:
        """The policy's phase when it decided on this output.

        Raises
        ------
        BadInputError
            For an unknown id.
        """
        return self._life.decided(id).phase

    def status(self) -> GateStatus:
        """Counts, account, reservations and policy health at one moment."""
        return self._life.status()

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()

    def close(self) -> None:
        """Wait for running verifications and batches, then close the verifier and the log.

        In the child of a fork it does nothing: what is open belongs to the parent.

        Raises
        ------
        BadInputError
            Where it would wait for itself: the verifier calls it in a thread of the gate's own, or
            a signal handler that interrupts `verify_batch` or a step of the gate.
        """
        if self._life.has_forked():
            return
        self._verification.close()
        self._life.stop()
        close = getattr(self.verifier, "close", None)
        try:
            if callable(close):
                close()
        finally:
            self._life.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _in_event_loop() -> bool:
    import asyncio  # here: a gate without it need not load it

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True

"""Makes the parts of a gate, and resumes them from its log."""

from __future__ import annotations

from pathlib import Path

from gatekeeper.budget import Ledger, SharedLedger
from gatekeeper.drift.guard import DriftGuard
from gatekeeper.gate.admission import Admission
from gatekeeper.gate.configuration import GateSettings
from gatekeeper.gate.journal import Journal
from gatekeeper.gate.lifecycle import Lifecycle
from gatekeeper.gate.new_output import OutputReader
from gatekeeper.gate.resume import check_settings, resume
from gatekeeper.gate.sinks import Sinks
from gatekeeper.gate.state import GateState
from gatekeeper.gate.transaction import Transaction
from gatekeeper.log import JointLog, Log, MemoryLog, PostgresRun, open_log
from gatekeeper.log.decoding import Naming
from gatekeeper.protocols import Policy

__all__ = ["open_lifecycle"]


def open_lifecycle(given: GateSettings, policy: Policy) -> Lifecycle:
    """Make a gate's parts, open its log and resume from it.

    Parameters
    ----------
    given
        The arguments of the gate.
    policy
        The gate's, in its initial state.

    Returns
    -------
    Lifecycle

    Raises
    ------
    BadInputError
        For settings that cannot be used.
    LogError
        For a log that cannot be used, or was written with other settings. The log is then closed.
    """
    ledger = (SharedLedger if given.shared else Ledger)(
        given.budget, given.max_cost, explore=given.epsilon
    )
    state = _fresh_state(given, policy, ledger)
    admission = Admission(state, epsilon=given.epsilon, seed=given.own_seed, planned=given.planned)
    transaction = Transaction()
    logged = given.logged(policy)  # raises while no log is open yet
    log = _open(given.place, ledger)
    try:
        check_settings(log, logged)
        journal = Journal(log, state, admission, transaction, settings=given.of_snapshot(logged))
        with Naming("of this gate"):
            resume(
                journal,
                state,
                admission,
                on_drift=given.effective_on_drift,
                fingerprint=given.fingerprint(),
                joint=given.shared,
            )
        if isinstance(ledger, SharedLedger) and isinstance(log, JointLog):
            ledger.share(log.leases, log.flush_unless_writing)
    except BaseException:
        log.close()
        raise
    sinks = Sinks(given.telemetry, given.facts(policy))
    life = Lifecycle(
        state,
        admission,
        journal,
        reader=_reader(given, state, keep_response_ids=bool(sinks)),
        unit=given.budget.unit,
        verifies=given.verifier is not None,
        transaction=transaction,
        sinks=sinks,
    )
    if isinstance(ledger, SharedLedger) and isinstance(log, JointLog):
        life.follow(log, ledger)
    return life


def _fresh_state(given: GateSettings, policy: Policy, ledger: Ledger) -> GateState:
    guard = DriftGuard(
        policy,
        rate=given.relearning_rate,
        relearns=given.effective_on_drift == "relearn",
        seed=given.own_seed,
    )
    return GateState(ledger, policy, guard, on_drift=given.effective_on_drift, model=given.model)


def _reader(given: GateSettings, state: GateState, *, keep_response_ids: bool) -> OutputReader:
    return OutputReader(
        state,
        given.cost_estimate,
        given.features,
        groups=tuple(given.budget.groups),
        keep_response_ids=keep_response_ids,
    )


def _open(log: Path | PostgresRun | Log | None, ledger: Ledger) -> Log:
    if isinstance(ledger, SharedLedger) and isinstance(log, PostgresRun):
        from gatekeeper.log.postgres_shared import SharedLog  # needs the extra

        return SharedLog(log, ledger)
    if log is None:
        return MemoryLog()
    return open_log(log) if isinstance(log, Path | PostgresRun) else log

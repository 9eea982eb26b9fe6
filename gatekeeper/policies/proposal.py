"""What a policy proposes, checked: one of another package may return anything."""

from __future__ import annotations

import numpy as np

from gatekeeper.arguments import check_count
from gatekeeper.errors import BadInputError
from gatekeeper.types import Decision, Reason
from gatekeeper.types.values import as_number

__all__ = ["checked_phase", "checked_proposal"]


def checked_phase(phase: object, id_: str) -> str:
    """The policy's phase when it decides on this output. Raises BadInputError if it is no string,
    which a log cannot keep.
    """
    if isinstance(phase, str):
        return phase
    raise BadInputError(
        f"id={id_!r}: the policy's phase cannot be used: phase={phase!r:.80}: a string is needed"
    )


def checked_proposal(proposal: object, id_: str) -> Decision:
    """The proposal, with numbers of Python's own types, which a log can keep.

    Parameters
    ----------
    proposal
        Returned by a policy's `decide`.
    id_
        Of the candidate, for the message.

    Raises
    ------
    BadInputError
        For anything but a `Decision`, and for one with a value that its field cannot have, such as
        a propensity outside [0, 1].
    """
    if type(proposal) is Decision:
        of, whole = proposal, proposal.stratum
        if (
            bool is type(of.verify)
            and float is type(of.score) is type(of.threshold) is type(of.propensity)
            and 0.0 <= of.propensity <= 1.0
            and int is type(of.version)
            and (whole is None or type(whole) is int)
            and type(of.reason) is Reason
        ):
            return of
    try:
        return _converted(proposal)
    except BadInputError as e:
        raise BadInputError(f"id={id_!r}: the policy's decision cannot be used: {e}") from None


def _converted(proposal: object) -> Decision:
    if not isinstance(proposal, Decision):
        raise BadInputError(f"{proposal!r:.80} is no Decision")
    verify, reason, stratum = proposal.verify, proposal.reason, proposal.stratum
    if not isinstance(verify, bool | np.bool_):
        raise BadInputError(f"verify={verify!r:.80}: True or False is needed")
    if not isinstance(reason, Reason):
        raise BadInputError(f"reason={reason!r:.80}: a member of Reason is needed")
    propensity = as_number("propensity", proposal.propensity)
    if not 0.0 <= propensity <= 1.0:
        raise BadInputError(f"propensity={propensity!r}: a probability, from 0 to 1, is needed")
    return Decision(
        bool(verify),
        reason,
        as_number("score", proposal.score),
        as_number("threshold", proposal.threshold),
        None if stratum is None else check_count("stratum", stratum, least=0),
        propensity,
        check_count("version", proposal.version, least=0),
    )

"""Results for callers: as headers, a comment in a stream, a JSON object."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, takewhile
from typing import Any
from urllib.parse import quote

from gatekeeper.adapters.openai.attachment import Result
from gatekeeper.gate import VerificationGate
from gatekeeper.gateway.outputs import Decided
from gatekeeper.log.json_values import json_number
from gatekeeper.types import Undecided

__all__ = ["as_json", "comment", "find", "headers", "id_header", "summary", "wrong"]

_IN_HEADERS = "/~#:@!$&'()*+,;=-._ "
_is_plain = re.compile("[0-9a-z-]+").fullmatch  # own ids; `quote` is slow: benchmarks/gateway.py


def id_header(id_: str) -> dict[str, str]:
    """The id of a call's output; the other headers of a result need the result."""
    return {"x-gatekeeper-id": id_ if _is_plain(id_) else quote(id_, safe=_IN_HEADERS)}


def headers(id_: str, decided: Sequence[Decided]) -> dict[str, str]:
    """The result in headers; of several outputs, in their order, separated by commas."""
    parts = [_words(each) for each in decided]
    names = ("decision", "reason", "verdict")
    return id_header(id_) | {
        f"x-gatekeeper-{name}": ", ".join(part[name] for part in parts) for name in names
    }


def comment(id_: str, decided: Sequence[Decided]) -> bytes:
    """The result as a comment of a stream of server-sent events: one line."""
    return f": gatekeeper {json.dumps(summary(id_, decided))}\n".encode()


def summary(id_: str, decided: Sequence[Decided]) -> dict[str, Any]:
    """The result in a few words, as a JSON object."""
    return {"id": id_, "results": [{"id": each.result.id} | _words(each) for each in decided]}


def _words(decided: Decided) -> dict[str, str]:
    result = decided.result
    if isinstance(result, Undecided):
        return {"decision": "undecided", "reason": str(result.state), "verdict": "none"}
    verdict = "none" if result.outcome is None else str(result.outcome.verdict)
    if decided.verification is not None and not decided.verification.done():
        verdict = "pending"
    decision = "verify" if result.decision.verify else "accept"
    return {"decision": decision, "reason": str(result.decision.reason), "verdict": verdict}


def wrong(decided: Iterable[Decided]) -> str:
    """The message for a blocked caller; "" where no output was found wrong."""
    for each in decided:
        outcome = each.result.outcome
        if outcome is not None and outcome.error == 1:
            return f"output {each.result.id} was verified and is wrong: {outcome.verdict}"
    return ""


def as_json(result: Result) -> dict[str, Any]:
    """The whole result except the verifier's `detail`, which may quote the task."""
    if isinstance(result, Undecided):
        return {"id": result.id, "decision": "undecided", "reason": result.state}
    decision, outcome, signals = result.decision, result.outcome, result.signals
    return {
        "id": result.id,
        "decision": "verify" if decision.verify else "accept",
        "reason": decision.reason,
        "propensity": decision.propensity,
        "score": json_number(decision.score),
        "threshold": json_number(decision.threshold),
        "stratum": decision.stratum,
        "signal": signals.state,
        "h1": json_number(signals.h1),
        "h2": json_number(signals.h2),
        "h3": json_number(signals.h3),
        "verdict": None if outcome is None else outcome.verdict,
        "error": None if outcome is None else outcome.error,
        "cost": None if outcome is None or outcome.cost is None else json_number(outcome.cost),
        "seconds": None if outcome is None else outcome.seconds,
    }


def find(gate: VerificationGate, id_: str) -> Mapping[str, Any] | None:
    """The results of the outputs of a call; None for an unknown id."""
    result = gate.find(id_)
    several = (gate.find(f"{id_}/{i}") for i in count())  # of a call with several outputs
    results = [result] if result is not None else list(takewhile(bool, several))
    if not results:
        return None
    return {"id": id_, "results": [as_json(each) for each in results if each is not None]}

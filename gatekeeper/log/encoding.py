"""Events as the texts that a log stores."""

from __future__ import annotations

import json
from collections.abc import Iterable
from json.encoder import encode_basestring_ascii as _quoted
from math import isfinite

from gatekeeper.errors import LogError
from gatekeeper.limits import MAX_LINE
from gatekeeper.log.events import Decided, Event

__all__ = ["encoded"]

_to_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_float = float.__repr__  # JSON's; `repr` of numpy's floats has their type
_BOOL = {False: "false", True: "true"}


def encoded(events: Iterable[Event], log: str) -> list[tuple[str, str, str]]:
    """Kind, id and JSON of each event.

    Parameters
    ----------
    log
        Its name, for the message.

    Raises
    ------
    LogError
        For an event that exceeds the size limit.
    """
    rows = []
    for event in events:
        text = _decided_json(event) if isinstance(event, Decided) else None
        kind, id_ = event.kind, event.id
        if text is None:
            text = _to_json(event.row().data)
        if len(text) + len(id_) > MAX_LINE:
            raise LogError(
                f"log {log!r} cannot keep event {kind!r} of id={id_!r:.80}: it has "
                f"{len(text) >> 20} MiB, and {MAX_LINE >> 20} MiB is the limit of one"
            )
        rows.append((kind, id_, text))
    return rows


def _decided_json(event: Decided) -> str | None:
    """The JSON of `event.row().data`, to the letter, in half its time: every output has one.

    None where a number is missing, where there are features or groups, and for values of other
    types than the fields': `json` then encodes the row, or raises the error.
    """
    generation, candidate, decision = event.generation, event.candidate, event.decision
    signals, coverage = candidate.signals, event.token_coverage
    h1, h2, h3, cost = signals.h1, signals.h2, signals.h3, candidate.cost_estimate
    score, threshold, propensity = decision.score, decision.threshold, decision.propensity
    if candidate.features or candidate.groups:
        return None
    try:
        if not isfinite(h1 + h2 + h3 + score + threshold + cost + propensity + coverage):
            return None
        return (
            f'{{"h1":{_float(h1)},"h2":{_float(h2)},"h3":{_float(h3)}'
            f',"signal":{_quoted(signals.state)}'
            f',"n_tokens":{signals.n_tokens:d},"n_margins":{signals.n_margins:d}'
            f',"token_coverage":{_float(coverage)},"k_seen":{generation.k_seen:d}'
            f',"cost_estimate":{_float(cost)},"phase":{_quoted(event.phase)}'
            f',"forced":{_BOOL[event.forced]},"warmup":{_BOOL[event.warmup]}'
            f',"verify":{_BOOL[decision.verify]},"reason":{_quoted(decision.reason)}'
            f',"score":{_float(score)},"threshold":{_float(threshold)}'
            f',"stratum":{_int(decision.stratum)},"propensity":{_float(propensity)}'
            f',"version":{_int(decision.version)},"model":{_text(generation.model)}'
            f',"finish_reason":{_text(generation.finish_reason)}'
            f',"prompt_tokens":{_int(generation.prompt_tokens)}'
            f',"output_tokens":{_int(generation.output_tokens)}'
            f',"text":{_quoted(generation.text)}}}'
        )
    except (TypeError, ValueError, KeyError):
        return None


def _int(value: int | None) -> str:
    return "null" if value is None else f"{value:d}"


def _text(value: str | None) -> str:
    return "null" if value is None else _quoted(value)

"""Events as the texts that a log stores."""

from __future__ import annotations

import json
from collections.abc import Iterable
from json.encoder import encode_basestring_ascii as _quoted
from math import isfinite

from gatekeeper.errors import LogError
from gatekeeper.limits import MAX_LINE
from gatekeeper.log.events import Decided, Event
from gatekeeper.log.json_values import json_number

__all__ = ["encoded"]

_to_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
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

    None where there are features or groups, and for values of other types than the fields': `json`
    then encodes the row, or raises the error.
    """
    generation, candidate, decision = event.generation, event.candidate, event.decision
    signals, coverage = candidate.signals, event.token_coverage
    h1, h2, h3, cost = signals.h1, signals.h2, signals.h3, candidate.cost_estimate
    score, threshold, propensity = decision.score, decision.threshold, decision.propensity
    n, m, k, version = signals.n_tokens, signals.n_margins, generation.k_seen, decision.version
    stratum, model, finish_reason = decision.stratum, generation.model, generation.finish_reason
    prompt, output = generation.prompt_tokens, generation.output_tokens
    if (
        candidate.features
        or candidate.groups
        or not float is type(h1) is type(h2) is type(h3) is type(cost) is type(coverage)
        or not float is type(score) is type(threshold) is type(propensity)
        or not int is type(n) is type(m) is type(k) is type(version)
        or not (stratum is None or type(stratum) is int)
        or not (prompt is None or type(prompt) is int)
        or not (output is None or type(output) is int)
        or not isfinite(cost + propensity + coverage)
    ):
        return None
    number = repr if isfinite(h1 + h2 + h3 + score + threshold) else _number
    try:
        return (
            f'{{"h1":{number(h1)},"h2":{number(h2)},"h3":{number(h3)},"signal":{_quoted(signals.state)}'
            f',"n_tokens":{n},"n_margins":{m},"token_coverage":{coverage!r},"k_seen":{k}'
            f',"cost_estimate":{cost!r},"phase":{_quoted(event.phase)}'
            f',"forced":{_BOOL[event.forced]},"warmup":{_BOOL[event.warmup]}'
            f',"verify":{_BOOL[decision.verify]},"reason":{_quoted(decision.reason)}'
            f',"score":{number(score)},"threshold":{number(threshold)}'
            f',"stratum":{"null" if stratum is None else stratum},"propensity":{propensity!r}'
            f',"version":{version},"model":{"null" if model is None else _quoted(model)}'
            f',"finish_reason":{"null" if finish_reason is None else _quoted(finish_reason)}'
            f',"prompt_tokens":{"null" if prompt is None else prompt}'
            f',"output_tokens":{"null" if output is None else output}'
            f',"text":{_quoted(generation.text)}}}'
        )
    except (TypeError, KeyError):
        return None


def _number(value: float) -> str:
    """The JSON of a number that may be missing or infinite."""
    return repr(value) if isfinite(value) else _to_json(json_number(value))

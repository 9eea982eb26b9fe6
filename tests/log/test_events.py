"""Events are stored completely: each kind, through JSON and back."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from gatekeeper import Candidate, Decision, Outcome, PolicyHealth, Reason, Verdict
from gatekeeper.drift.fingerprint import Fingerprint
from gatekeeper.errors import LogError
from gatekeeper.log import (
    Decided,
    Event,
    ExternalVerdict,
    FingerprintChanged,
    HealthChanged,
    Learned,
    Released,
    ReservedAgain,
    Settled,
    WarmupRepeated,
)
from gatekeeper.log.decoding import decode
from gatekeeper.log.encoding import encoded
from gatekeeper.log.fold import Output
from gatekeeper.signals import signals_of
from gatekeeper.testing import make_generation

WRONG = Outcome(Verdict.FAILED, cost=0.5, seconds=1.5, detail="line 3", meta={"stdout": "x"})
UNKNOWN = Outcome(Verdict.INFRA_ERROR, detail="no daemon")


def decided(*, tokens: int = 5, **changes: Any) -> Decided:
    generation = make_generation("a", tokens=tokens, text="42")
    candidate = Candidate("a", signals_of(generation), 30.0)
    decision = Decision(True, Reason.POLICY, 0.7, inf, 2, 0.25, 61)
    coverage = generation.token_coverage
    event = Decided(generation, candidate, decision, "steady", False, False, coverage)
    return replace(event, **changes)


WRONG_FROM_OUTSIDE = ExternalVerdict("a", WRONG)
EVENTS: list[Event] = [
    ReservedAgain("a"),
    Settled("a", WRONG, 0.75),
    Released("a", "cancelled", None),
    Released("a", "no daemon", UNKNOWN),
    Learned("a"),
    WRONG_FROM_OUTSIDE,
    FingerprintChanged(Fingerprint(models=("m", "n"), prompt_template="ab12"), "report", "why"),
    HealthChanged(PolicyHealth.DRIFTED, "more errors than predicted"),
    WarmupRepeated("no daemon"),
]


def stored(event: Event) -> Event:
    kind, id_, data = event.row()
    return decode(kind, id_, json.dumps(data, allow_nan=False))


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_an_event_is_read_as_it_was_written(event: Event) -> None:
    assert stored(event) == event


@pytest.mark.parametrize("tokens", [0, 5])
def test_a_decision_is_read_without_token_arrays(tokens: int) -> None:
    """Signals that are missing and a threshold of +∞ included; else the same row again."""
    event = decided(tokens=tokens)
    again = stored(event)
    assert again.row() == event.row()
    assert isinstance(again, Decided)
    assert (again.id, again.generation.text, again.generation.logprob.size) == ("a", "42", 0)
    assert (again.decision, again.token_coverage) == (event.decision, event.token_coverage)


def test_features_are_stored_where_there_are_any() -> None:
    features = {"confidence": 0.25, "length": 1e300}
    candidate = Candidate("a", decided().candidate.signals, 30.0, features)
    again = stored(decided(candidate=candidate))
    assert isinstance(again, Decided)
    assert again.candidate.features == again.generation.features == features
    assert "features" not in decided().row().data


NUMBERS = (0.1, -0.0, 5e-324, 1e308, -1e308, 1e16, 3, True, nan, inf, -inf, np.float64(0.3))
TEXTS = ("", 'quote " and \\ and \n\0\x7f', "é 漢 😀", "half \ud800", "</script>\u2028")


def test_an_event_is_stored_as_json_that_reads_as_its_row() -> None:
    """Numbers that are missing, infinite or of other types, any double, and any text."""
    rng = np.random.default_rng(0)
    base = decided()
    events: list[Event] = [
        replace(
            base,
            generation=replace(
                base.generation, text=text, model=model, finish_reason=model, prompt_tokens=tokens
            ),
            decision=replace(base.decision, score=score, threshold=1.0, version=7, verify=forced),
            forced=forced,
        )
        for score, text, model, tokens, forced in product(
            NUMBERS, TEXTS, (None, *TEXTS), (None, 12), (False, True)
        )
    ]
    for values in 10.0 ** rng.uniform(-300, 300, (3000, 4)):
        h1, h3, cost, score = values.tolist()
        signals = replace(base.candidate.signals, h1=h1, h2=-h3, h3=h3)
        candidate = replace(base.candidate, signals=signals, cost_estimate=cost)
        decision = replace(base.decision, score=-score, threshold=score)
        events.append(replace(base, candidate=candidate, decision=decision))
    events.append(replace(base, candidate=replace(base.candidate, features={"length": 2.0})))
    odd = {"n": 2**70, "deep": [{"a": (1, None)}], "text": TEXTS, "number": np.float64(0.3)}
    events += [replace(WRONG_FROM_OUTSIDE, outcome=replace(WRONG, meta=odd)), *EVENTS]
    for event, (kind, id_, text) in zip(events, encoded(events, "log"), strict=True):
        row = event.row()
        assert (kind, id_) == (row.kind, row.id)
        assert repr(json.loads(text)) == repr(json.loads(json.dumps(row.data, allow_nan=False)))
        text.encode()  # a half surrogate pair, which databases refuse, is an escape


def test_a_cost_that_is_unknown_stays_so() -> None:
    again = stored(Settled("a", WRONG, nan))
    assert isinstance(again, Settled)
    assert again.taken != again.taken
    assert again.outcome == WRONG


@pytest.mark.parametrize(
    ("reason", "phase", "warmup"),
    [
        (Reason.WARMUP, "warmup", True),
        (Reason.BUDGET_EXHAUSTED, "warmup", True),
        (Reason.BUDGET_EXHAUSTED, "steady", False),
        (Reason.POLICY, "steady", False),
    ],
)
def test_early_logs_do_not_store_what_counts_as_warm_up(
    reason: Reason, phase: str, warmup: bool
) -> None:
    kind, id_, data = decided(decision=Decision(False, reason), phase=phase).row()
    early = {name: value for name, value in data.items() if name != "warmup"}
    again = decode(kind, id_, json.dumps(early))
    assert isinstance(again, Decided)
    assert again.warmup is warmup


def test_invalid_rows_are_refused() -> None:
    with pytest.raises(LogError, match="event 'promoted' is unknown: known are decided, "):
        decode("promoted", "a", "{}")
    outcome = {"verdict": "passed", "cost": 1.0, "seconds": 0.0, "detail": "", "meta": {}}
    number = "Expected `bool | int | float | null`, got"
    for kind, data, why in (
        ("released", {"why": ""}, "Object missing required field `outcome` (it is {'why': ''})"),
        (
            "released",
            {"why": "", "outcome": outcome | {"cost": "1"}},
            f"{number} `str` - at `$.outcome.cost` (it is '1')",
        ),
        ("calibration", {"status": "newer", "why": ""}, "at `$.status` (it is 'newer')"),
        ("audited", "no object", "got `str` (it is 'no object')"),
        ("audited", outcome | {"verdict": ["passed"]}, "at `$.verdict` (it is ['passed'])"),
        ("outcome", outcome | {"taken": {}}, f"{number} `object` - at `$.taken` (it is {{}})"),
        ("outcome", outcome | {"taken": 1.0, "seconds": -1}, "seconds=-1: must be finite"),
    ):
        shown = re.escape(f"event '{kind}' of id='a' has no valid data: ") + ".*" + re.escape(why)
        with pytest.raises(LogError, match=shown):
            decode(kind, "a", json.dumps(data))
    with pytest.raises(LogError, match="event 'learned' of id='a' has no valid data: Expecting"):
        decode("learned", "a", "{")


@pytest.mark.parametrize("field", decided().row().data)
def test_a_value_of_another_type_in_a_decision_is_shown(field: str) -> None:
    """A row edited by hand: whatever the field, no other error leaves the reading."""
    kind, id_, data = decided().row()
    for value in ([1.5], {"a": 1}):
        text = json.dumps(dict(data) | {field: value})
        if field == "signal":  # not read: it follows from the numbers
            assert decode(kind, id_, text).id == "a"
            continue
        with pytest.raises(LogError, match=re.escape(f"`$.{field}` (it is {value!r})")):
            decode(kind, id_, text)


def test_an_output_is_the_fold_of_its_events() -> None:
    """Released, reserved again, settled; an external verdict; an unfinished one keeps its error."""
    output = Output.of([decided(), Released("a", "no daemon", UNKNOWN)])
    assert (output.result().outcome, output.reserved) == (UNKNOWN, False)
    output.apply(ReservedAgain("a"))
    assert output.reserved
    output.apply(Released("a", "cancelled", None))
    assert (output.result().outcome, output.reserved) == (UNKNOWN, False)
    output.apply(Settled("a", WRONG, 0.5))
    assert (output.result().outcome, output.external) == (WRONG, False)
    unselected = decided(decision=Decision(False, Reason.POLICY))
    output = Output.of([unselected, ExternalVerdict("a", WRONG)])
    assert (output.result().verified, output.external, output.reserved) == (True, True, False)

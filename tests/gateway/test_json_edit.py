"""Edits of JSON compared with parsing, changing and printing; no field of a request is lost."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gatekeeper.adapters.openai.logprobs import ENDPOINTS
from gatekeeper.adapters.openai.reader import generations_of
from gatekeeper.adapters.positions import Scope
from gatekeeper.errors import BadInputError
from gatekeeper.gateway import logprobs
from gatekeeper.gateway.answer_edit import NO_EDITS, Edits, object_of
from gatekeeper.gateway.calls import Call, read_call
from gatekeeper.gateway.entries import likely_span
from gatekeeper.gateway.json_edit import EACH, edited, with_members
from gatekeeper.gateway.settings import GatewaySettings
from gatekeeper.gateway.tasks import Tasks

USUAL = GatewaySettings(upstream="http://u/v1")
NONE = Tasks(kinds=())
NAMES = st.one_of(
    st.sampled_from(
        ["model", "logprobs", "top_logprobs", "include", "stream", "n", "choices", "a", "echo"]
    ),
    st.text(max_size=4),
)
VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=6),
        st.sampled_from([2, 5, True, ["message.output_text.logprobs"]]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=8,
)
PRINTS: list[dict[str, Any]] = [
    {},
    {"indent": 2},
    {"separators": (",", ":"), "ensure_ascii": False},
    {"separators": (" ,\r\n", "\t: ")},
]


def dumps(value: Any, how: dict[str, Any]) -> str:
    return json.dumps(value, **how)


def call_of(endpoint: str, body: bytes, tasks: Tasks) -> Call:
    value = object_of(body)
    assert value is not None
    return read_call(endpoint, body, value, {}, tasks=tasks, usual=USUAL)


def encodable(text: str) -> bool:
    return not any(0xD800 <= ord(c) < 0xE000 for c in text)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(NAMES, VALUES, max_size=6), st.sampled_from(PRINTS), st.data())
def test_no_field_of_a_request_is_lost(
    body: dict[str, Any], how: dict[str, Any], data: st.DataObject
) -> None:
    """Each member goes upstream as it is written; what is added is among the log-probabilities'."""
    with_key = body | {"gatekeeper": {"task": {"kind": "math", "gold": "SECRET"}}}
    order = data.draw(st.permutations(list(with_key)))
    text = dumps({name: with_key[name] for name in order}, how)
    if not encodable(text):
        return
    for endpoint in ENDPOINTS:
        call = call_of(endpoint, text.encode(), Tasks(kinds={"math"}))
        assert b"SECRET" not in call.body()
        assert json.loads(call.body(plain=True)) == body
        sent = json.loads(call.body())
        added = {n for n, v in sent.items() if n not in body or body[n] != v}
        assert added <= {"logprobs", "top_logprobs", "include"}
        assert body.keys() <= sent.keys()
        for name in body.keys() - added:  # as it is written
            member = dumps({name: body[name]}, how)[1:-1].strip()
            assert "indent" in how or member in call.body().decode()


def test_the_gateway_s_own_key_never_goes_upstream() -> None:
    """Several times, with escapes, beside the log-probabilities that are requested or not."""
    key = '"gatekeeper"', '"\\u0067atekeeper"', '"gatekeepe\\u0072"'
    for first in key:
        for second in key:
            for more in ("", ', "logprobs": true, "top_logprobs": 7', ', "logprobs": null'):
                text = f'{{{first}: {{"task": "SECRET"}}, "model": "m"{more}, {second}: {{}} }}\n'
                call = call_of("/chat/completions", text.encode(), NONE)
                for body in (call.body(), call.body(plain=True)):
                    assert b"SECRET" not in body
                    assert json.loads(body)["model"] == "m"
                    assert "gatekeeper" not in json.loads(body)


@settings(max_examples=80, deadline=None)
@given(VALUES, VALUES, st.sampled_from(PRINTS))
def test_edits_change_their_values_alone(inside: Any, beside: Any, how: dict[str, Any]) -> None:
    first, second, third = (copy.deepcopy(beside) for _ in range(3))
    document = {"a": beside, "choices": [{"logprobs": inside, "x": first}, second], "z": third}
    text = f" {dumps(document, how)}\n"
    paths = {"choices": {EACH: {"logprobs": lambda _: "null"}}}
    value, new = edited(text, paths)
    assert value == document
    for choice in document["choices"]:
        if isinstance(choice, dict) and "logprobs" in choice:
            choice["logprobs"] = None
    assert new == f" {dumps(document, how)}\n"
    assert edited(text, {}) == (json.loads(text), text)


@settings(max_examples=150, deadline=None)
@given(VALUES, VALUES, st.sampled_from(PRINTS), st.sampled_from([*ENDPOINTS]), st.data())
def test_edits_of_answers_are_those_of_the_slow_way(
    inside: Any, beside: Any, how: dict[str, Any], endpoint: str, data: st.DataObject
) -> None:
    """Of values of any type at the paths of each endpoint, of NaN, of text that is no JSON."""
    entries = [{"token": "a", "top_logprobs": [{"logprob": -0.5}] * n} for n in (2, 0, 5)]
    inside = data.draw(st.sampled_from([inside, {"content": entries}, entries, None, float("nan")]))
    part = {"x": beside, "logprobs": inside, "é": [beside]}
    document = {"choices": [part, beside], "output": [{"content": [beside, part]}], "part": part}
    text = f" {dumps(document, how)}"[: data.draw(st.sampled_from([None, None, -2]))]
    if not encodable(text):
        return
    asked = data.draw(st.sampled_from([{}, {"logprobs": True, "top_logprobs": 2}]))
    if endpoint == "/responses" and asked:
        asked = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
    requested = logprobs.requested(endpoint, asked)
    for edits in (requested.answer, requested.event, NO_EDITS):
        try:
            wanted = edited(text, edits.paths)
        except ValueError:
            wanted = None
        try:
            value, new = edits.apply(text.encode())
        except ValueError:
            assert wanted is None
        else:
            assert wanted is not None
            assert repr(value) == repr(wanted[0])  # NaN is not equal to itself
            assert new.decode() == edits.text(text.encode()).decode() == wanted[1]


ENTRY = {"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": [{"logprob": -0.5}]}
LISTS: dict[str, Any] = {"content": [ENTRY, ENTRY], "refusal": None}
LOGPROBS_OF = [LISTS, {"content": [ENTRY]}, dict(reversed(LISTS.items())), LISTS | {"z": [[{}]]}]
BESIDE: list[dict[str, Any]] = [  # each has what a guess could take for the log-probabilities
    {"message": {"content": '"logprobs":{"content":[{"top_logprobs":[{}]}]}'}},
    {"tool_calls": [{"a": [{"b": [{}]}]}], "finish_reason": "stop"},
    {'x"logprobs': LISTS},
    {"y": {"logprobs": LISTS}},
    {"filter": {}},
]


@settings(max_examples=100, deadline=None)
@given(
    st.permutations([*BESIDE, *({"logprobs": each} for each in [*LOGPROBS_OF, None, ""])]),
    st.integers(1, 4),
    st.sampled_from(PRINTS),
    st.sampled_from(["", ', "usage": {}', ', "a": [{"b": [{}]}]', ","]),
)
def test_log_probabilities_are_looked_for_where_they_usually_are(
    members: list[dict[str, Any]], size: int, how: dict[str, Any], more: str
) -> None:
    """Whatever is beside them: a guess that is wrong has the same result."""
    choice = ", ".join(dumps(member, how).strip()[1:-1] for member in members[:size])
    text = f'{{"choices": [{{{choice}}}]{more}}}'
    for asked in ({}, {"logprobs": True, "top_logprobs": 5}):
        edits = logprobs.requested("/chat/completions", asked).answer
        wanted, found = (result_of(edits, text, once=once) for once in (False, True))
        assert found == wanted


def result_of(edits: Edits, text: str, *, once: bool) -> str:
    try:
        return repr(edits.apply(text.encode(), once=once))
    except ValueError:
        return "no JSON"


def test_the_log_probabilities_of_usual_servers_are_found() -> None:
    message = {"role": "assistant", "content": "b", "refusal": None}
    for how in ({}, {"separators": (",", ":")}):
        for lists in LOGPROBS_OF[:2]:
            for more in ({}, {"finish_reason": "stop", "stop_reason": None}):
                choice = {"index": 0, "message": message, "logprobs": lists, **more}
                text = dumps({"choices": [choice], "usage": {"details": {"cached": 0}}}, how)
                span = likely_span(text.encode())
                assert span is not None
                assert text[slice(*span)] == dumps(lists, how)


TOKENS = st.sampled_from(["a", " b", "", "\ufffd", "é", None, 3])
LOGPROBS = st.sampled_from([-0.5, -0.25, -2, 0, -9999.0, None, "x"])
SPELLED = st.sampled_from([[97], [], [195], None, "a", [1.5], 3])
ALTERNATIVE = {"token": TOKENS, "logprob": LOGPROBS, "bytes": SPELLED}
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {
            "token": TOKENS,
            "top_logprobs": st.lists(st.fixed_dictionaries({}, optional=ALTERNATIVE)),
        },
        optional={"logprob": LOGPROBS, "bytes": SPELLED, "more": VALUES},
    )
)
SAME = {
    "token": st.sampled_from(["\ufffd", "", "a"]),
    "logprob": st.sampled_from([-0.5, -1.5, -3]),
    "bytes": st.sampled_from([[195], [169], None]),
}
WELL_FORMED = st.lists(
    st.fixed_dictionaries(
        {**SAME, "top_logprobs": st.lists(st.fixed_dictionaries(SAME), max_size=3)}
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(WELL_FORMED, ENTRIES), st.booleans(), st.sampled_from(["content", "all"]))
def test_outputs_are_those_of_the_plain_values(entries: Any, asked: bool, scope: Any) -> None:
    """Log-probabilities that are read apart, and those of the standard library's dicts."""
    message = {"content": "b", "reasoning": "a"}
    choice = {"index": 0, "message": message, "logprobs": {"content": entries}}
    part = {"type": "output_text", "text": "b", "logprobs": entries}
    for endpoint, answer in {
        "/chat/completions": {"id": "1", "choices": [choice]},
        "/responses": {"id": "1", "output": [{"type": "message", "content": [part]}]},
    }.items():
        needed = {"logprobs": True, "include": [logprobs.NEEDED], "top_logprobs": 5}
        edits = logprobs.requested(endpoint, needed if asked else {}).answer
        body = json.dumps(answer).encode()
        value, new = edits.apply(body)
        assert (new == body) == asked or not entries
        assert outputs_of(value, scope) == outputs_of(json.loads(body), scope)


def outputs_of(answer: Any, scope: Scope) -> list[str]:
    try:
        found = generations_of(answer, scope=scope)
        return [f"{g} {g.logprob} {g.top1} {g.top2} {g.k_seen} {g.output_tokens}" for g in found]
    except BadInputError as error:
        return [str(error)]


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet='{}[]",:0 \\a', max_size=12))
def test_invalid_json_is_refused(text: str) -> None:
    """Exactly where the standard library refuses it."""
    paths = {"a": {EACH: {"": {}}}, "": {EACH: {}}}
    try:
        wanted = json.loads(text)
    except ValueError:
        wanted = ...
    for read in (lambda: edited(text, paths)[0], lambda: NO_EDITS.apply(text.encode())[0]):
        try:
            found = read()
        except ValueError:
            found = ...
        assert found == wanted
    if isinstance(wanted, dict):
        text_of = with_members(text.encode(), wanted, drop="0", put={"1": 2})
        assert json.loads(text_of) == {n: v for n, v in wanted.items() if n != "0"} | {"1": 2}

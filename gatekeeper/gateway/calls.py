"""A request for outputs: its settings for the gateway, and the request to the upstream."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from msgspec import Struct
from multidict import CIMultiDictProxy

from gatekeeper.adapters.openai.call_settings import CallSettings, outputs_requested
from gatekeeper.arguments import check_choice
from gatekeeper.errors import BadInputError
from gatekeeper.gateway.codings import CodingError, codings_of, decoded
from gatekeeper.gateway.json_edit import with_members
from gatekeeper.gateway.logprobs import NOTHING, Requested, requested
from gatekeeper.gateway.refusal import RefusalError
from gatekeeper.gateway.settings import ON_FAILED, WAITS, GatewaySettings
from gatekeeper.gateway.tasks import Tasks
from gatekeeper.types.as_dataclass import as_dataclass
from gatekeeper.wording import nearest

__all__ = ["BODY_KEY", "TASK_HEADER", "Call", "check_unread", "make_ready", "read_call"]

BODY_KEY = "gatekeeper"
TASK_HEADER = "x-gatekeeper-task"

# The key as a member's name, with any of its letters escaped.
_NAME = "".join(rf"(?:{letter}|\\u(?i:{ord(letter):04x}))" for letter in BODY_KEY)
_MEMBER = re.compile(rf'(?<!\\)"{_NAME}"\s*:'.encode())


@as_dataclass
class Call(Struct, frozen=True):
    """A request for outputs.

    Attributes
    ----------
    endpoint, model
        The end of the path, and the body's model.
    settings
        Settings for the gate. The id is always set.
    waits, blocks
        Whether the call waits for the verdict, and answers with an error if an output is wrong.
    annotates
        Whether the result becomes a member of the answer.
    """

    endpoint: str
    model: str
    settings: CallSettings
    waits: bool
    blocks: bool
    annotates: bool
    requested: Requested
    _body: bytes
    _value: Mapping[str, Any]

    @property
    def n(self) -> int:
        """How many outputs are requested."""
        return outputs_requested(self._value)

    def body(self, *, plain: bool = False) -> bytes:
        """The body for the upstream; `plain`: without requests for log-probabilities by the
        gateway.
        """
        put = {} if plain else self.requested.parameters
        if not put and BODY_KEY not in self._value:
            return self._body
        return with_members(self._body, self._value, drop=BODY_KEY, put=put)


def read_call(
    endpoint: str,
    body: bytes,
    value: dict[str, Any],
    headers: Mapping[str, str],
    *,
    tasks: Tasks,
    usual: GatewaySettings,
) -> Call:
    """Read a request.

    Parameters
    ----------
    body, value
        As received, and parsed.
    usual
        The defaults for settings that the request does not have.

    Raises
    ------
    RefusalError
        For settings of the gateway that cannot be used, and for an unknown task.
    """
    wait, on_failed, annotates, sent = usual.wait, usual.on_failed, False, value
    header = headers.get(TASK_HEADER)
    if header is None and BODY_KEY not in value:  # most requests
        settings = _ready.pop() if _ready else _usual_settings()
    else:
        given = value.get(BODY_KEY, {})
        try:
            wait, on_failed, annotates = _own_settings(given, usual)
            settings = _gate_settings(given, header, tasks)
        except BadInputError as error:
            raise RefusalError(400, "gatekeeper_settings", str(error)) from None
        sent = {name: each for name, each in value.items() if name != BODY_KEY}
    blocks = on_failed == "block"
    return Call(
        endpoint=endpoint,
        model=str(sent.get("model")),
        settings=settings,
        waits=blocks or wait == "verdict",
        blocks=blocks,
        annotates=annotates,
        requested=NOTHING if settings.verify == "never" else requested(endpoint, sent),
        _body=body,
        _value=value,
    )


def check_unread(body: bytes, headers: CIMultiDictProxy[str]) -> None:
    """Check a body that is forwarded as it is, because it is no JSON object that can be read here.

    Raises
    ------
    RefusalError
        If it has settings for the gateway, or is compressed in a way that hides whether it has: a
        task in them would go upstream.
    """
    codings = codings_of(headers)
    try:
        text = decoded(body, codings)
    except CodingError as error:
        raise RefusalError(
            415,
            "unreadable_body",
            f"content-encoding {codings!r:.40}: the gateway cannot read the whole body ({error}); "
            "send it without",
        ) from None
    if _MEMBER.search(text.replace(b"\0", b"")):  # also in UTF-16
        raise RefusalError(
            400,
            "gatekeeper_settings",
            f"the body has the member {BODY_KEY!r} and cannot be read: send a JSON object in "
            "UTF-8, not compressed",
        )


_GATE = {field.name for field in fields(CallSettings)}


def _own_settings(given: Any, usual: GatewaySettings) -> tuple[Any, ...]:
    """wait, on_failed and annotate."""
    known = {"wait": usual.wait, "on_failed": usual.on_failed, "annotate": False}
    names = ", ".join(sorted(_GATE | known.keys()))
    if not isinstance(given, dict):
        raise BadInputError(f"the body's 'gatekeeper' is {given!r:.80}: give an object of {names}")
    if unknown := given.keys() - _GATE - known.keys():
        near = nearest(min(unknown), sorted(_GATE | known.keys()))
        raise BadInputError(
            f"the body's 'gatekeeper' has {min(unknown)!r:.80}, which is unknown: choose from "
            f"{names}{near and f' ({near})'}"
        )
    found = {name: given.get(name, default) for name, default in known.items()}
    check_choice("wait", found["wait"], WAITS)
    check_choice("on_failed", found["on_failed"], ON_FAILED)
    if not isinstance(found["annotate"], bool):
        raise BadInputError(f"annotate={found['annotate']!r:.80}: give true or false")
    return tuple(found.values())


def _gate_settings(given: dict[str, Any], header: str | None, tasks: Tasks) -> CallSettings:
    """With the task of the body or of the header, and an id for the output."""
    gate = {name: value for name, value in given.items() if name in _GATE}
    task, unique = gate.get("task"), _unique()
    own_id = f"output-{unique}"
    if task is None and header is not None:
        gate["task"] = named = tasks.named(header)
        own_id = tasks.output_id(named, unique)
    if gate.get("id") is None:
        gate["id"] = own_id
    settings = CallSettings(**gate)
    return settings if task is None else replace(settings, task=tasks.checked(gate["id"], task))


def make_ready() -> None:
    """Make the settings of the next usual call, which then waits less (benchmarks/gateway.py)."""
    if not _ready:
        _ready.append(_usual_settings())


def _usual_settings() -> CallSettings:
    return CallSettings(id=f"output-{_unique()}")


def _unique() -> str:
    return os.urandom(8).hex()


_ready: list[CallSettings] = []

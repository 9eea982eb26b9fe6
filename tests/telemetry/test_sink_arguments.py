"""Wrong arguments of sinks and collectors: BadInputError at once, not a lost score later."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gatekeeper import BadInputError, Budget, VerificationGate
from gatekeeper.telemetry.error_rate import LoggedErrorRate
from gatekeeper.telemetry.langfuse import LangfuseScores
from gatekeeper.telemetry.opentelemetry import OpenTelemetry
from gatekeeper.telemetry.phoenix import PhoenixAnnotations
from gatekeeper.telemetry.prometheus import GateCollector
from gatekeeper.testing import ScriptedVerifier

pytest.importorskip("opentelemetry.trace")
LANGFUSE = SimpleNamespace(create_score=print)
PHOENIX = SimpleNamespace(spans=SimpleNamespace(log_span_annotations=print))


def langfuse(**given: Any) -> object:
    return LangfuseScores(given.pop("client", LANGFUSE), **given)


def phoenix(**given: Any) -> object:
    return PhoenixAnnotations(given.pop("client", PHOENIX), **given)


@pytest.mark.parametrize("make", [langfuse, phoenix, OpenTelemetry])
def test_a_name_is_a_text_and_explanations_are_a_truth_value(make: Callable[..., object]) -> None:
    for name in (None, 5, "", " ", "a\0", "\ud800"):
        with pytest.raises(BadInputError) as raised:
            make(name=name)
        assert str(raised.value) == f"name={name!r}: give a text of printable characters"
    for value in (None, "no", 1):
        with pytest.raises(BadInputError) as raised:
            make(explanations=value)
        assert str(raised.value) == f"explanations={value!r}: give True or False"


@pytest.mark.parametrize("make", [langfuse, phoenix])
def test_a_client_can_take_scores(make: Callable[..., object]) -> None:
    """Otherwise each score would fail five times, in a thread. A text may be a key."""
    for client in (None, "sk-secret", SimpleNamespace(spans=None)):
        with pytest.raises(BadInputError, match=r"^client: a \w+ has no .*: give a ") as raised:
            make(client=client)
        assert "secret" not in str(raised.value)


def test_the_queue_and_its_waits_are_numbers() -> None:
    for most in (None, 0, True, 1.5, "5"):
        with pytest.raises(BadInputError, match=r"^most=.*: must be a whole number of at least 1"):
            langfuse(most=most)
    sink = LangfuseScores(LANGFUSE, most=np.int64(5))  # type: ignore[arg-type]
    for seconds in (None, "5", -1, float("nan"), float("inf")):
        for wait in (sink.flush, sink.close):
            with pytest.raises(BadInputError, match=r"^seconds=.*: give a number of seconds"):
                wait(seconds)  # type: ignore[arg-type]


def test_a_provider_gives_loggers() -> None:
    with pytest.raises(BadInputError, match=r"^logger_provider='x': give an opentelemetry"):
        OpenTelemetry(logger_provider="x")  # type: ignore[arg-type]


def test_a_collector_reads_a_gate() -> None:
    for value in (None, "gate", LANGFUSE):
        with pytest.raises(BadInputError, match=r"^gate=.*: give a VerificationGate"):
            GateCollector(value)  # type: ignore[arg-type]
    with VerificationGate("cst", budget=Budget(fraction=0.5), verifier=ScriptedVerifier()) as gate:
        for rate in ("x", 0.5):
            with pytest.raises(BadInputError, match=r"^error_rate=.*: give a function"):
                GateCollector(gate, error_rate=rate)  # type: ignore[arg-type]


def test_an_error_rate_has_a_log() -> None:
    for log in (None, 5, "x\0"):
        with pytest.raises(BadInputError, match=r"^log="):
            LoggedErrorRate(log)  # type: ignore[arg-type]
    for every in (None, -1, "x", float("nan")):
        with pytest.raises(BadInputError, match=r"^every=.*: give a number of seconds"):
            LoggedErrorRate("run.db", every=every)  # type: ignore[arg-type]

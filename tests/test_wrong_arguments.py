"""Wrong arguments of the public Python API: BadInputError, with the value and what to give."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gatekeeper import (
    CST,
    HGA,
    BadInputError,
    Budget,
    Calibrated,
    Generation,
    MPAdapt,
    Outcome,
    SplitConformal,
    VerificationGate,
    batch_signals,
    signals_of,
)
from gatekeeper.adapters.openai.call_settings import CallSettings
from gatekeeper.sandbox import LocalSandbox
from gatekeeper.testing import ScriptedVerifier, make_generation
from gatekeeper.verifiers import AsyncFunctionVerifier, FunctionVerifier, make_verifier

ARRAY = np.array([1.0, 2.0])
WORDS = ("", "nonsense", None, 3, ARRAY, ["a"], b"x")
Make = Callable[..., Any]


def gate(**settings: Any) -> VerificationGate:
    given = {"budget": Budget(fraction=0.2), "verifier": ScriptedVerifier({})} | settings
    return VerificationGate(given.pop("policy", "cst"), **given)


@pytest.fixture
def opened() -> Iterator[VerificationGate]:
    with gate() as made:
        made.maybe_verify(make_generation("known"))
        yield made


def call_settings(**given: Any) -> Any:
    return CallSettings(**given)


@pytest.mark.parametrize(
    ("make", "name", "near", "meant"),
    [
        (gate, "goal", "scores", "score"),
        (gate, "on_unavailable", "rise", "raise"),
        (gate, "on_drift", "re-learn", "relearn"),
        (lambda **given: Budget(total=9, **given), "unit", "second", "seconds"),
        (lambda **given: CST(0.2, **given), "on_missing", "uniforme", "uniform"),
        (lambda **given: Calibrated(0.2, **given), "objective", "recal", "recall"),
        (lambda **given: HGA(0.2, **given), "test", "papers", "paper"),
        (lambda **given: HGA(0.2, **given), "labels", "ful", "full"),
        (call_settings, "verify", "alway", "always"),
        (call_settings, "scope", "reason", "reasoning"),
        (LocalSandbox, "isolation", "namespace", "namespaces"),
    ],
)
def test_a_word_that_is_no_choice(make: Make, name: str, near: str, meant: str) -> None:
    """Whatever its type is: the choices, and the one that is like it."""
    with pytest.raises(BadInputError, match=rf"^{name}='{near}': choose one of .*'{meant}'\?\)$"):
        make(**{name: near})
    for value in WORDS:
        if value is None and make is LocalSandbox:
            continue  # the default
        with pytest.raises(BadInputError, match=f"^{name}={re.escape(repr(value))}: choose one of"):
            make(**{name: value})


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda **given: MPAdapt(0.2, **given), "extragradient"),
        (lambda **given: SplitConformal(0.2, **given), "stratified"),
        (gate, "shared"),
        (LocalSandbox, "in_process"),
        (LocalSandbox, "allow_unsafe"),
    ],
)
def test_a_word_is_no_truth_value(make: Make, name: str) -> None:
    """ "no" would count as true."""
    for value in ("no", 2, None, ARRAY):
        with pytest.raises(BadInputError, match=f"^{name}=.*: give True or False"):
            make(**{name: value})


@pytest.mark.parametrize("policy", [CST, SplitConformal])
def test_a_number_of_strata_has_an_end(policy: Make) -> None:
    """10**30 lists of them would take all memory."""
    for value in (0, 10**30, 2.0, True, ARRAY, np.array("2020", "M8[Y]")):
        with pytest.raises(
            BadInputError, match=r"strata=.*: must be a whole number from 1 to 1000"
        ):
            policy(0.2, strata=value)
    policy(0.2, strata=np.int64(3))


def test_settings_are_a_dict() -> None:
    for value in ("", [], 0, ARRAY):
        with pytest.raises(BadInputError, match="settings="):
            gate(settings=value)


def test_a_verdict_from_outside_is_like_one(opened: VerificationGate) -> None:
    with pytest.raises(BadInputError, match=r"outcome='pased': .*did you mean 'passed'\?"):
        opened.report_outcome("known", "pased")
    with pytest.raises(BadInputError, match=r"verdict='pass': .*'Verdict\.PASSED'\?"):
        Outcome("pass")  # type: ignore[arg-type]
    for value in WORDS:
        with pytest.raises(BadInputError, match="give an Outcome"):
            opened.report_outcome("known", value)  # type: ignore[arg-type]


def test_an_id_that_is_no_text_is_not_unknown(opened: VerificationGate) -> None:
    """None, the answer for an unknown id, would be wrong."""
    assert opened.find("other") is None
    for value in (1, None, ["known"]):
        with pytest.raises(BadInputError, match=r"id=.*: a string is needed"):
            opened.find(value)  # type: ignore[arg-type]


def test_what_is_no_batch(opened: VerificationGate) -> None:
    for value in (None, 3, make_generation("x")):
        with pytest.raises(BadInputError, match=r"pairs=.*: give \(response, task\) pairs"):
            opened.verify_batch(value)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, "text", 3, {"id": "a"}])
def test_signals_of_what_is_no_output(wrong: Any) -> None:
    with pytest.raises(BadInputError, match="give a Generation"):
        signals_of(wrong)
    with pytest.raises(BadInputError, match="give a Generation"):
        batch_signals([wrong])
    with pytest.raises(BadInputError, match="Generation"):
        batch_signals(wrong)


@pytest.mark.parametrize("make", [FunctionVerifier, AsyncFunctionVerifier])
def test_a_verifier_of_no_function(make: Make) -> None:
    for value in (None, "f", 3):
        with pytest.raises(BadInputError, match=r"function=.*: give a function of \(generation"):
            make(value)
    with pytest.raises(BadInputError, match="verifier="):
        make_verifier([])  # type: ignore[arg-type]


def test_features_that_are_no_dict() -> None:
    for value in (ARRAY, [1], "length", None):
        with pytest.raises(BadInputError, match=r"features=.*: give a dict"):
            Generation("a", "t", *np.empty((3, 0)), features=value)

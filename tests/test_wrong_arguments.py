"""Wrong arguments of the public Python API: BadInputError, with the value and what to give."""

from __future__ import annotations

import asyncio
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
    GatekeeperError,
    Generation,
    MPAdapt,
    Outcome,
    SplitConformal,
    VerificationGate,
    batch_signals,
    signals_of,
)
from gatekeeper.adapters.openai.call_settings import CallSettings
from gatekeeper.analysis.estimates import estimate
from gatekeeper.analysis.experiment import compare
from gatekeeper.analysis.replay import replay
from gatekeeper.analysis.score import estimate_score
from gatekeeper.features import agreement
from gatekeeper.maths import MathChecker
from gatekeeper.paper.stress import make_stream
from gatekeeper.policies import Survey, make_policy
from gatekeeper.sandbox import LocalSandbox
from gatekeeper.testing import ScriptedVerifier, make_candidates, make_generation
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
        (lambda **given: Survey(0.2, **given), "unit", "second", "seconds"),
        (lambda **given: make_policy("survey", 0.2, **given), "unit", "second", "seconds"),
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


@pytest.mark.parametrize("wrong", [*WORDS, np.int64(1), float("nan")])
def test_force_that_is_no_truth_value(wrong: Any) -> None:
    """The log would hold an event that cannot be read."""
    with gate() as made:
        output = make_generation("new")
        for call in (
            lambda: made.maybe_verify(output, force=wrong),
            lambda: asyncio.run(made.amaybe_verify(output, force=wrong)),
            lambda: asyncio.run(made.adecide(output, force=wrong)),
        ):
            with pytest.raises(BadInputError, match=r"^force=.*: give True or False$"):
                call()
        assert made.maybe_verify(output, force=np.bool_(True)).decision.verify  # type: ignore[arg-type]
        assert made.find("new") is not None


def test_a_text_in_place_of_an_output() -> None:
    with MathChecker(workers=1) as checker, LocalSandbox(workers=1) as sandbox:
        tests = {"gold": "5", "tests": ["assert f(1) == 1"]}
        for verifier in (checker, sandbox):
            with pytest.raises(BadInputError, match=r"^generation='5': give a Generation$"):
                verifier.verify("5", tests)  # type: ignore[arg-type]
            with pytest.raises(BadInputError, match=r"^generation='5': give a Generation$"):
                asyncio.run(verifier.averify("5", tests))  # type: ignore[arg-type]
        for wrong in (None, 5, b"5"):
            with pytest.raises(BadInputError, match=r"^response=.*: give the whole response as"):
                checker.check("5", wrong)  # type: ignore[arg-type]
    with pytest.raises(BadInputError, match=r"^others='abc': give a list of texts$"):
        agreement("a", "abc")


def test_a_closed_verifier_says_so() -> None:
    """In each of its calls, by an error of this package."""
    checker, sandbox = MathChecker(workers=1), LocalSandbox(workers=1)
    output, task = make_generation("q", text="x + y"), {"tests": ["assert f(1) == 1"]}
    gold, hard = r"\sin(2x)", r"\boxed{2\sin x\cos x}"  # which a worker compares
    for verifier in (checker, sandbox):
        verifier.close()
    for call in (
        lambda: checker.check(gold, hard),
        lambda: asyncio.run(checker.acheck(gold, hard)),
        lambda: list(checker.check_many([(gold, hard)])),
        lambda: sandbox.verify(output, task),
        lambda: asyncio.run(sandbox.averify(output, task)),
        lambda: list(sandbox.verify_many([(output, task)])),
    ):
        with pytest.raises(GatekeeperError, match=r"closed: make a new one$"):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: make_generation("q", tokens=-1),
        lambda: make_generation("q", seed=-1),
        lambda: make_candidates(-1),
        lambda: make_candidates(3, seed=-1),
        lambda: make_candidates(3, missing=2),
    ],
)
def test_what_no_output_can_be_made_of(call: Make) -> None:
    with pytest.raises(BadInputError):
        call()


def test_analyses_of_what_is_no_run() -> None:
    with gate(goal="score", policy=None) as made:
        results = [made.maybe_verify(make_generation(f"q{i}", seed=i)) for i in range(20)]
    checked = next(result.id for result in results if result.outcome)
    records = list(make_stream("usual", 300, seed=1))
    wrong: list[tuple[Make, str]] = [
        (lambda: estimate(5), "outputs=5: give a run's GateResults"),  # type: ignore[arg-type]
        (lambda: estimate_score(5), "outputs=5: give a run's GateResults"),  # type: ignore[arg-type]
        (lambda: estimate_score(results, bounds=(0, 1, 2)), "bounds="),  # type: ignore[arg-type]
        (lambda: estimate_score(results, bounds="x"), "bounds='x'"),  # type: ignore[arg-type]
        (lambda: estimate_score(results, values={checked: "x"}), "values="),  # type: ignore[dict-item]
        (lambda: estimate_score(results, weights={checked: "x"}), "weight='x'"),  # type: ignore[dict-item]
        (lambda: replay(records, "cst", 0.2), "policy='cst': give an instance"),  # type: ignore[arg-type]
        (lambda: compare(records, ["cst"], [0.2]), "give a RecordTable"),  # type: ignore[arg-type]
    ]
    for call, message in wrong:
        with pytest.raises(BadInputError, match=re.escape(message)):
            call()

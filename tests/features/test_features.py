"""Each ready-made feature equals its definition, on any text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatekeeper import BadInputError, Budget, Generation, VerificationGate
from gatekeeper.cli import main
from gatekeeper.errors import LogMismatchError
from gatekeeper.features import (
    BY_NAME,
    agreement,
    features_of,
    foreign_imports,
    has_answer,
    lowest_margin_at,
    margin_entropy,
    margin_tenth,
    normal_form,
    output_length,
    parses,
    samples_of,
    stated_confidence,
    undefined_names,
    with_agreement,
)
from gatekeeper.io.records import records_of_log


@pytest.mark.parametrize(
    ("text", "confidence"),
    [
        ("The answer is (B).\nConfidence: 85%", 0.85),
        ("Confidence: 20%. On reflection:\n**Confidence:** 0.9", 0.9),
        ("My confidence is 8/10", 0.8),
        ("Confidence level: very high", 0.95),
        ("confidence: Low", 0.2),
        ("confidence: 70", 0.7),
        ("Confidence: 1", 1.0),
        ("Confidence: 1%", 0.01),
        (r"Confidence: $1\%$", 0.01),
        ("Confidence: 1 percent", 0.01),
        ("Confidence: 99,5 %.", 0.995),
        ("Confidence: 0,85", 0.85),
        ("Confidence: .9", 0.9),
        ("Confidence...85%", 0.85),
        ("Confidence: 4/5", 0.8),
        ("Confidence: 1 / 2.", 0.5),
        ("Confidence: 85/100", 0.85),
        ("Confidence: 8 out of 10", 0.8),
        ("Confidence: 4.5 of 5", 0.9),
        ("Confidence: _85_, of 3 checks", 0.85),
        ("Confidence: 85\nOf 90 ways this is one.", 0.85),
        ("Confidence - 85%", 0.85),
        ("Confidence--85%", 0.85),
        ("Confidence: 85%\nConfidence: -5%", None),
        ("**Confidence:** −0.5", None),
        ("Confidence: 6/5", None),
        ("Confidence: 0/0", None),
        ("Confidence: 8 out of ten", None),
        ("Confidence: 1e-3", None),
        ("Confidence: 1-5%", None),
        ("Confidence: 1‰", None),
        ("Confidence: 1/2/2026", None),
        ("Confidence: 1000", None),
        ("Confidence: 250%", None),
        ("I am sure. 42", None),
        ("", None),
    ],
)
def test_stated_confidence(text: str, confidence: float | None) -> None:
    assert stated_confidence(Generation("a", text)) == confidence


def test_margins() -> None:
    """The entropy against its definition; a masked token is certain, a gap is left out."""
    top1 = np.log([0.5, 0.8, 1.0, 0.9])
    top2 = np.array([log(0.5), log(0.1), -9999.0, np.nan])
    generation = Generation("a", "x", top1, top1, top2)
    p = np.array([0.5, 8 / 9])
    entropy = -(p * np.log(p) + (1 - p) * np.log(1 - p))
    assert margin_entropy(generation) == pytest.approx(entropy.sum() / 3)
    assert margin_tenth(generation) == pytest.approx(0.1 * log(8))
    assert lowest_margin_at(generation) == 0.0
    turned = Generation("a", "x", top1[::-1].copy(), top1[::-1].copy(), top2[::-1].copy())
    assert lowest_margin_at(turned) == 1.0
    for feature in (margin_entropy, margin_tenth, lowest_margin_at):
        assert feature(Generation("a", "x")) is None


def test_agreement() -> None:
    code = "```python\ndef f(x):\n    '''Add one.'''\n    return x+1  # one more\n```"
    assert agreement(code, ["def f(x): return x + 1", "def f(x): return 1 + x"], kind="code") == 0.5
    assert agreement("def f(:", ["def f(:"], kind="code") == 0.0
    boxed = r"So the answer is \boxed{\frac{1}{2}}."
    assert agreement(boxed, [r"\boxed{\frac{1} {2}}", r"\boxed{2}"], kind="math") == 0.5
    assert (
        agreement(
            "The answer is 0.5.",
            [r"\boxed{\dfrac12}", r"\boxed{\frac{2}{4}}", r"\boxed{1}"],
            kind="math",
        )
        == 2 / 3
    )
    assert agreement("  Yes ", ["yes", "no"]) == 0.5
    assert agreement("yes", []) is None


MBPP = {"tests": ["assert area(2, r=[n for n in (1,)]) == 4"], "test_setup_code": "import math"}
HUMAN_EVAL = {
    "prompt": 'from typing import List\n\ndef area(r: List[int]) -> int:\n    """The area."""\n',
    "test": "import cmath\ndef check(candidate):\n    assert candidate([2]) == cmath.pi\n",
    "entry_point": "area",
}


@pytest.mark.parametrize(
    ("task", "program", "values"),  # parses, undefined_names, foreign_imports
    [
        (None, "x = 1", (1, 0, 0)),
        (None, "The answer is 4", (0, None, None)),
        (None, "", (0, 0, 0)),
        (None, "nonlocal x", (1, None, 0)),
        (None, "from math import *\nprint(pi)", (1, None, 0)),
        (None, "def f(n):\n    return sqrt(n) + f(n - 1) + later\n\nlater = __name__", (1, 1, 0)),
        (None, "def f():\n    global n\n    n = 1\n\ndef g():\n    return n", (1, 0, 0)),
        (None, "class A:\n    x = 1\n    def f(self):\n        return x, __class__", (1, 1, 0)),
        (None, "import numpy.linalg as la, os\nfrom pandas import Series", (1, 0, 2)),
        (None, "try:\n    import numpy\nexcept ImportError:\n    pass", (1, 0, 0)),
        (MBPP, "def area(a, r):\n    return math.pi * a", (1, 0, 0)),
        (MBPP, "def Area(a, r):\n    return math.pi * a", (1, 1, 0)),
        (MBPP, "Try:\n```python\ndef area(a, r): return re.escape(a)\n```", (1, 1, 0)),
        (HUMAN_EVAL, "    return cmath.pi * r[0]", (1, 1, 0)),
        (HUMAN_EVAL, "def area(r: List[int]):\n    return r", (1, 0, 0)),
    ],
)
def test_checks_of_a_program(task: Any, program: str, values: tuple[float | None, ...]) -> None:
    """As the verifier would run it: with what the task's prompt and setup code provide."""
    output = Generation("a", program)
    found = [feature(output, task) for feature in (parses, undefined_names, foreign_imports)]
    assert tuple(found) == values


@given(st.text())
def test_no_text_breaks_a_feature(text: str) -> None:
    generation = Generation("a", text)
    for feature in (
        *(stated_confidence, has_answer, output_length),
        *(parses, undefined_names, foreign_imports),
    ):
        value = feature(generation)
        assert value is None or value >= 0.0
    for kind in ("code", "math", "text"):
        normal_form(text, kind=kind)


def test_a_gate_computes_features(tmp_path: Any) -> None:
    def words(generation: Generation, task: Any) -> int | None:
        return len(generation.text.split()) * task["weight"] or None

    budget = Budget(fraction=0.2)
    path = tmp_path / "run.db"
    with VerificationGate("calibrated", budget=budget, log=path, features=[words, parses]) as gate:
        gate.maybe_verify(Generation("a", "x = 1", features={"parses": 0.5}), {"weight": 2})
        gate.maybe_verify(Generation("b", ""), {"weight": 2})
    with VerificationGate("calibrated", budget=budget, log=path, features=[parses, words]) as gate:
        assert gate.output("a").features == {"parses": 0.5, "words": 6.0}
        assert gate.output("b").features == {"parses": 0.0}
    with pytest.raises(LogMismatchError, match=r"features=\['parses', 'words'\]"):
        VerificationGate("calibrated", budget=budget, log=path)
    odd: Any
    for odd in ([words, words], [1], "words", words, None, (f for f in [words])):
        with pytest.raises(BadInputError, match="features"):
            VerificationGate("calibrated", budget=budget, features=odd)


def test_a_feature_that_is_not_a_number_is_named() -> None:
    def broken(generation: Generation, task: Any) -> Any:
        return "high"

    gate = VerificationGate("cst", budget=Budget(fraction=0.2), features=[broken])
    with gate, pytest.raises(BadInputError, match=r"features\['broken'\]='high'"):
        gate.maybe_verify(Generation("a", "x"))


def test_names_of_the_command_line() -> None:
    every = features_of(", ".join(BY_NAME))
    assert {feature.__name__ for feature in every} >= {"output_length", "margin_entropy", "parses"}
    assert features_of("") == []
    with pytest.raises(
        BadInputError, match="features='lenght' is unknown: choose one of length, confidence"
    ):
        features_of("margins,lenght")
    assert samples_of("length") == 0
    assert samples_of("length, agreement:4") == 4
    assert features_of("length, agreement:4") == [output_length]
    for bad in (
        "agreement",
        "agreement:0",
        "agreement:-1",
        "agreement:²",
        "agreement:101",
        "agreement:2,agreement:3",
    ):
        with pytest.raises(BadInputError, match="give agreement:N once"):
            samples_of(bad)


def test_agreement_with_samples_of_the_same_model() -> None:
    asked = []

    def generate(
        prompts: Sequence[str], ids: Sequence[str], *, temperature: float = 0.0, seed: int = 7
    ) -> list[Generation]:
        asked.append((temperature, seed))
        # "even" is answered alike; "odd" has the answer of its seed.
        texts = {"even": r"\boxed{0}", "odd": rf"\boxed{{{seed}}}"}
        return [Generation(i, texts[p]) for p, i in zip(prompts, ids, strict=True)]

    generate.prompt_template = "…"  # type: ignore[attr-defined]
    compared = with_agreement(generate, 3, kinds={"a": "math", "b": "math"}, seed=7)
    a, b = compared(["even", "odd"], ["a", "b"])
    assert (a.features, b.features) == ({"agreement": 1.0}, {"agreement": 0.0})
    assert b.text == r"\boxed{7}"
    assert asked == [(0.0, 7), (1.0, 8), (1.0, 9), (1.0, 10)]
    assert compared.prompt_template == "…"  # type: ignore[attr-defined]
    with pytest.raises(BadInputError, match="samples=0"):
        with_agreement(generate, 0, kinds={})


def test_a_run_logs_the_features_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks, path = tmp_path / "tasks.jsonl", tmp_path / "run.db"
    tasks.write_text(
        "".join(
            json.dumps(
                {"id": f"q{i}", "prompt": f"Calculate {i} + 3.", "kind": "math", "gold": "4"}
            )
            + "\n"
            for i in range(3)
        )
    )
    command = ["run", str(tasks), "--policy", "calibrated", "--log", str(path)]
    asked = "length,answer,agreement:2"
    assert main([*command, "--features", asked]) == 0
    features = records_of_log(path).features
    assert features is not None
    assert features.keys() == {"output_length", "has_answer", "agreement"}
    assert (features["output_length"] > 0).all()
    assert set(features["agreement"]) <= {0.0, 0.5, 1.0}
    assert main([*command, "--features", asked]) == 0
    capsys.readouterr()
    assert main([*command, "--features", "length"]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert "--features answer,length (now length)" in message.replace(
        "length,answer", "answer,length"
    )
    assert "--features agreement:2 (now none)" in message

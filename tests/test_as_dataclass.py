"""Objects of which every output takes some: quick to make, and dataclasses for everybody else."""

from __future__ import annotations

import pickle
from copy import copy
from dataclasses import asdict, fields, is_dataclass, replace
from inspect import signature
from pprint import pformat
from typing import Any

import pytest

from gatekeeper.errors import BadInputError
from gatekeeper.log import Decided
from gatekeeper.types import (
    Candidate,
    Decision,
    GateResult,
    Generation,
    Observation,
    Outcome,
    Reason,
    Signals,
    Undecided,
    Verdict,
)

SIGNALS = Signals(0.5, -1.0, 0.25, 8, 8)
CANDIDATE = Candidate("a", SIGNALS, 2.0)
DECISION = Decision(verify=True, reason=Reason.POLICY)
CLASSES = (
    *(Signals, Candidate, Decision, Generation, Outcome),
    *(GateResult, Undecided, Observation, Decided),
)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_its_fields_are_its_parameters(cls: type[Any]) -> None:
    assert is_dataclass(cls)
    assert [field.name for field in fields(cls)] == list(signature(cls).parameters)
    with pytest.raises(TypeError):
        cls(unknown=1)


def test_the_functions_of_dataclasses_take_it() -> None:
    assert replace(CANDIDATE, id="b") == Candidate("b", SIGNALS, 2.0)
    assert asdict(CANDIDATE) == {
        "id": "a",
        "signals": {"h1": 0.5, "h2": -1.0, "h3": 0.25, "n_tokens": 8, "n_margins": 8},
        "cost_estimate": 2.0,
        "features": {},
        "groups": {},
    }
    assert pformat(SIGNALS, width=1) == repr(SIGNALS)
    assert repr(SIGNALS) == "Signals(h1=0.5, h2=-1.0, h3=0.25, n_tokens=8, n_margins=8)"


def test_it_stays_frozen_and_can_be_copied() -> None:
    with pytest.raises(AttributeError):
        DECISION.verify = False  # type: ignore[misc]
    for again in (copy(CANDIDATE), pickle.loads(pickle.dumps(CANDIDATE))):
        assert again == CANDIDATE
        assert hash(again) == hash(CANDIDATE)
    assert replace(DECISION) == DECISION  # NaN included
    assert replace(DECISION, version=1) != DECISION


@pytest.mark.parametrize(
    ("right", "wrong"),
    [(Generation("a", "b"), {"text": 3}), (Outcome(Verdict.PASSED), {"seconds": -1.0})],
    ids=["Generation", "Outcome"],
)
def test_values_are_checked(right: Any, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(BadInputError, match=f"{name}="):
        replace(right, **wrong)
    with pytest.raises(BadInputError, match=f"{name}="):
        type(right)(**asdict(right) | wrong)


def test_values_are_converted() -> None:
    assert Generation("a", "b", [-1, 0]).logprob.dtype == "float64"  # type: ignore[arg-type]


def test_each_object_has_a_dict_of_its_own() -> None:
    assert CANDIDATE.features is not Candidate("b", SIGNALS, 2.0).features

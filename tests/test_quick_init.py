"""The quicker constructors: equal to those that `dataclass` writes."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, fields, replace
from inspect import signature
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
    Verdict,
)

SIGNALS = Signals(0.5, -1.0, 0.25, 8, 8)
CANDIDATE = Candidate("a", SIGNALS, 2.0)
DECISION = Decision(verify=True, reason=Reason.POLICY)
CLASSES = (Signals, Candidate, Decision, GateResult, Observation, Decided)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_it_takes_what_the_dataclass_takes_and_sets_the_same(cls: type[Any]) -> None:
    names = [field.name for field in fields(cls)]
    assert dataclass_init(cls) is not cls.__init__
    assert list(signature(cls).parameters) == names
    given = dict(zip(names, range(1, 1 + len(names)), strict=True))
    required = [p.name for p in signature(cls).parameters.values() if p.default is p.empty]
    least = {name: given[name] for name in required}
    for values in (given, least):
        plain = cls.__new__(cls)
        dataclass_init(cls)(plain, **values)
        assert repr(cls(**values)) == repr(cls(*values.values())) == repr(plain)
    for init in (cls.__init__, dataclass_init(cls)):
        with pytest.raises(TypeError, match=required[0]):
            init(cls.__new__(cls), **dict(list(least.items())[1:]))
        with pytest.raises(TypeError, match="unknown"):
            init(cls.__new__(cls), **given, unknown=1)


def test_objects_stay_frozen_and_can_be_copied() -> None:
    with pytest.raises(FrozenInstanceError):
        DECISION.verify = False  # type: ignore[misc]
    assert replace(CANDIDATE, id="b") == Candidate("b", SIGNALS, 2.0)
    assert pickle.loads(pickle.dumps(CANDIDATE)) == CANDIDATE


@pytest.mark.parametrize(
    ("cls", "given"), [(Generation, ("a", 3)), (Outcome, (Verdict.PASSED, 0, -1.0))]
)
def test_values_are_checked_and_converted(cls: type[Any], given: tuple[Any, ...]) -> None:
    with pytest.raises(BadInputError, match=r"text=3|seconds=-1.0"):
        cls(*given)
    assert Generation("a", "b", [-1, 0]).logprob.dtype == "float64"  # type: ignore[arg-type]


def test_each_object_has_a_dict_of_its_own() -> None:
    assert CANDIDATE.features is not Candidate("b", SIGNALS, 2.0).features


def dataclass_init(cls: type[Any]) -> Any:
    return cls.__init__.__wrapped__

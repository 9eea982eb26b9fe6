"""The settings of a gate: checked, completed, and in the form that its log stores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import isfinite
from pathlib import Path
from secrets import randbits
from typing import Any, get_args

from gatekeeper.arguments import check_choice, check_flag
from gatekeeper.budget import Budget
from gatekeeper.drift.fingerprint import Fingerprint
from gatekeeper.errors import BadInputError
from gatekeeper.gate.rates import exploration_rate, named_policy, rate_of, relearning_rate
from gatekeeper.gate.state import ON_DRIFT, OnDrift
from gatekeeper.gate.verification import ON_UNAVAILABLE, OnUnavailable
from gatekeeper.log import Log, PostgresRun
from gatekeeper.log.place import place_of
from gatekeeper.policies import (
    DEFAULT_POLICY,
    Goal,
    PolicyDescriptor,
    Survey,
    describe_policy,
    display_name,
)
from gatekeeper.protocols import (
    AsyncVerifier,
    CostEstimator,
    Feature,
    Policy,
    Sink,
    Verifier,
)
from gatekeeper.types import GateFacts

__all__ = ["GateSettings", "usual_policy"]


@dataclass(frozen=True, kw_only=True)
class GateSettings:
    """The arguments of `VerificationGate`, with the same meaning.

    Raises
    ------
    BadInputError
        For a value that cannot be used, when it is made or when the value is first needed.
    """

    policy: str | Policy | None
    budget: Budget
    verifier: Verifier | AsyncVerifier | None
    log: str | Path | PostgresRun | Log | None
    cost_estimate: CostEstimator
    on_unavailable: OnUnavailable
    workers: int
    seed: int
    warmup: int
    explore: float
    prompt_template: str | None
    on_drift: OnDrift
    more: Mapping[str, Any]
    features: Sequence[Feature] = ()
    telemetry: Sequence[Sink] = ()
    goal: Goal = "errors"
    run: str | None = None
    shared: bool = False

    def __post_init__(self) -> None:
        self._check_choices()
        self._check_parts()
        self._check_log()
        self._check_numbers()
        self._check_conditions()
        self._check_features()

    def _check_choices(self) -> None:
        check_choice("goal", self.goal, get_args(Goal))
        check_choice("on_unavailable", self.on_unavailable, ON_UNAVAILABLE)
        check_choice("on_drift", self.on_drift, ON_DRIFT)
        check_flag("shared", self.shared)

    def _check_parts(self) -> None:
        policy, verifier = self.policy, self.verifier
        if isinstance(policy, type) or not isinstance(policy, str | Policy | None):
            raise BadInputError(f"policy={policy!r}: give a name or an instance, such as CST(0.2)")
        if not isinstance(self.budget, Budget):
            raise BadInputError(
                f"budget={self.budget!r}: give a Budget, such as Budget(fraction=0.2)"
            )
        usable = verifier is None or isinstance(verifier, Verifier | AsyncVerifier)
        if isinstance(verifier, type) or not usable:
            raise BadInputError(
                f"verifier={verifier!r}: must be an object that has verify(generation, task) or "
                "averify, or a function of both"
            )
        if not callable(self.cost_estimate):
            raise BadInputError(
                f"cost_estimate={self.cost_estimate!r:.80}: give a function of (generation, task), "
                "such as gatekeeper.costs.constant"
            )
        for sink in self.telemetry:
            if isinstance(sink, type) or not isinstance(sink, Sink):
                raise BadInputError(
                    f"telemetry={sink!r:.80}: give an object that has decided and concluded, such "
                    "as gatekeeper.telemetry.opentelemetry.OpenTelemetry(), or a list of them"
                )

    def _check_log(self) -> None:
        is_place = isinstance(self.log, str | Path | PostgresRun)
        if not (self.log is None or is_place or isinstance(self.log, Log)):
            raise BadInputError(
                f"log={self.log!r}: give a file name, the address of a PostgreSQL database, a Log, "
                "or None"
            )
        if self.run is not None and not is_place:
            raise BadInputError(
                f"run={self.run!r}: names a run of a PostgreSQL log; give log='postgresql://...'"
            )
        _ = self.place  # checks both
        if self.shared and not isinstance(self.place, PostgresRun):
            raise BadInputError(
                f"shared=True with log={self.log!r}: several processes share a budget in a "
                "PostgreSQL database; give log='postgresql://...' and run='eval-7'"
            )

    def _check_numbers(self) -> None:
        explore = self.explore
        if type(self.workers) is not int or self.workers < 1:
            raise BadInputError(f"workers={self.workers!r}: a whole number of threads, at least 1")
        if type(self.seed) is not int or self.seed < 0:
            raise BadInputError(f"seed={self.seed!r}: a whole number of at least 0")
        if type(self.warmup) is not int or self.warmup < (self.goal == "errors"):
            raise BadInputError(f"warmup={self.warmup!r}: a whole number of outputs, at least 1")
        is_number = isinstance(explore, int | float) and not isinstance(explore, bool)
        if not (is_number and 0 <= explore < 1):
            raise BadInputError(
                f"explore={explore!r}: the share of the budget to draw at random lies in [0, 1), "
                "for example 0.1"
            )

    def _check_conditions(self) -> None:
        if not isinstance(self.more, Mapping):
            raise BadInputError(
                f"settings={self.more!r:.80}: give JSON values by name, such as {{'split': 'test'}}"
            )
        if not isinstance(self.prompt_template, str | None):
            raise BadInputError(
                f"prompt_template={self.prompt_template!r:.80}: give its text, or None"
            )

    def _check_features(self) -> None:
        if not isinstance(self.features, list | tuple):
            raise BadInputError(
                f"features={self.features!r:.80}: give a list of functions of (generation, task)"
            )
        for feature in self.features:
            if not callable(feature) or not hasattr(feature, "__name__"):
                raise BadInputError(
                    f"features has {feature!r:.80}: give functions of (generation, task)"
                )
        names = [feature.__name__ for feature in self.features]
        if len(set(names)) < len(names):
            raise BadInputError(f"features={names!r}: each needs a name of its own")

    @cached_property
    def place(self) -> Path | PostgresRun | Log | None:
        """Where the log is, or the log itself; None: in memory only."""
        if isinstance(self.log, str | Path | PostgresRun):
            return place_of(self.log, self.run)
        return self.log

    @cached_property
    def own_seed(self) -> int:
        """Seed of the draws; each process on a shared run has another."""
        return randbits(48) if self.shared else self.seed

    @property
    def effective_explore(self) -> float:
        """`explore`; 0 for the goal "score", whose policy draws every output itself."""
        return 0.0 if self.goal == "score" else self.explore

    @property
    def effective_warmup(self) -> int:
        """`warmup`; 0 for the goal "score", whose policy needs none."""
        return 0 if self.goal == "score" else self.warmup

    @property
    def effective_on_drift(self) -> OnDrift:
        """`on_drift`; "report" for the goal "score", whose draws are valid even under drift."""
        return "report" if self.goal == "score" else self.on_drift

    @property
    def planned(self) -> bool:
        """Whether the policy's own draws never exceed the budget."""
        budget = self.budget
        counted = budget.unit == "verifications" and (budget.total is None or budget.horizon)
        return self.goal == "score" and bool(counted)

    @property
    def epsilon(self) -> float:
        """ε, see `exploration_rate`."""
        if self.planned and rate_of(self.budget, self.effective_warmup) != 1.0:
            return 0.0  # the policy draws alone: at a fraction of 1 it must not all go to the first
        return exploration_rate(self.budget, self.effective_explore, warmup=self.effective_warmup)

    @property
    def relearning_rate(self) -> float | None:
        """See `relearning_rate`."""
        return relearning_rate(self.budget, self.epsilon, warmup=self.effective_warmup)

    @property
    def model(self) -> str | None:
        """The model of outputs that do not name their own."""
        model = self.more.get("model")
        return model if isinstance(model, str) else None

    @cached_property
    def max_cost(self) -> float:
        """The highest cost of one verification, in the budget's unit, which is reserved for it."""
        if self.budget.unit == "verifications":
            return 1.0
        max_cost = self.budget.max_cost
        if max_cost is None and self.budget.unit == "seconds":
            max_cost = getattr(self.verifier, "max_seconds", None)
        if max_cost is None:
            raise BadInputError(
                f"unit={self.budget.unit!r}: give what one verification can cost at most, "
                f"Budget(max_cost=...): that much is reserved before it starts"
            )
        max_cost = replace(self.budget, max_cost=max_cost).max_cost  # checks a verifier's, too
        assert max_cost is not None
        return max_cost

    def make_policy(self) -> Policy:
        """The policy given, the one of that name, or the usual one for the goal.

        Raises
        ------
        BadInputError
            The policy serves the other goal, or cannot be made for this budget.
        """
        policy = usual_policy(self.goal) if self.policy is None else self.policy
        if isinstance(policy, str):
            described = describe_policy(policy)
        else:
            described = PolicyDescriptor.of(type(policy).__name__, type(policy))
        if described.goal != self.goal:
            raise BadInputError(
                f"policy={described.name!r} with goal={self.goal!r}: this policy is for "
                f"goal={described.goal!r}; give that goal, or leave the policy out"
            )
        if isinstance(policy, str):
            return named_policy(
                policy, self.budget, self.epsilon, self.own_seed, warmup=self.effective_warmup
            )
        return policy

    def fingerprint(self) -> Fingerprint:
        """The conditions of labels that these settings name."""
        return Fingerprint.of(self.prompt_template, self.verifier)

    def facts(self, policy: Policy) -> GateFacts:
        """Facts about the gate for sinks."""
        return GateFacts(display_name(policy), self.budget.unit, self.fingerprint().of_verifier)

    def logged(self, policy: Policy) -> dict[str, dict[str, Any]]:
        """The settings that a log must have to be resumed: JSON values, by group and name."""
        more = dict(self.more)
        if self.goal != "errors":  # an early log does not name it
            more["goal"] = self.goal
        if self.features:  # a gate without any, and an early log, do not name them
            more["features"] = sorted(feature.__name__ for feature in self.features)
        budget = asdict(self.budget) | {"max_cost": self.max_cost}
        if not self.budget.groups:  # an early log does not name them
            del budget["groups"]
        of_policy = _settings_of(policy)
        if isinstance(self.policy, str | None) and "seed" in of_policy:
            of_policy["seed"] = self.seed
        return {
            "exploration": {
                "explore": self.effective_explore,
                "seed": self.seed if self.effective_explore else 0,
            },
            "policy": of_policy,
            "budget": budget,
            "more": _as_json(more),
        }

    def of_snapshot(self, logged: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
        """All settings that decisions depend on: a snapshot is read by a gate with equal ones.

        Those of `logged`, and others that a gate may change when it resumes a log.
        """
        return {
            **logged,
            "drift": {"on_drift": self.effective_on_drift, "rate": self.relearning_rate},
            "draws": {"rate": self.epsilon},  # also by `warmup`, which an instance ignores
        }


def usual_policy(goal: Goal) -> str:
    """The name of the policy for a goal, where none is given."""
    return Survey.name if goal == "score" else DEFAULT_POLICY


def _as_json(more: Mapping[str, Any]) -> dict[str, Any]:
    try:
        settings: dict[str, Any] = json.loads(json.dumps(dict(more), allow_nan=False))
    except (TypeError, ValueError) as e:
        raise BadInputError(f"settings={more!r}: only JSON values can be kept: {e}") from None
    return settings


def _settings_of(policy: Policy) -> dict[str, Any]:
    """The policy's class and its public plain settings, which identify it.

    Raises
    ------
    BadInputError
        For a number that is not finite: no JSON, and NaN is not equal to itself at a resume.
    """
    kind = type(policy)
    plain = {
        name: value
        for name, value in getattr(policy, "__dict__", {}).items()
        if not name.startswith("_") and isinstance(value, str | int | float | None)
    }
    for name, value in plain.items():
        if isinstance(value, float) and not isfinite(value):
            raise BadInputError(
                f"policy {kind.__qualname__} has {name}={value!r}, which a log cannot keep as a "
                f"setting: give a finite number or None, or call the attribute _{name}"
            )
    return {"type": f"{kind.__module__}.{kind.__qualname__}"} | plain

"""The properties of a policy, read from the attributes of its class, never from its name.

A policy class may have these attributes; `PolicyDescriptor.of` fills in what it lacks.

- `name`: what users type, such as "cst"
- `label`: what tables print; default: the name
- `description`: what it does, in one line
- `learns`: what its rule depends on, calibration aside: "nothing" (every candidate has the same
  probability, β), "warm-up" (labels of the warm-up) or "labels" (every label that becomes known;
  the default)
- `needs`: values for its constructor, as keywords of these names; default: none
    - "warmup": how many candidates come first, all verified
    - "calibration": on how many candidates after those it calibrates
    - "labels": "partial" live, where only verified candidates have one; "full" in replay
    - "horizon": how many candidates there are, the warm-up included
    - "unit": of the budget
    - "records": the evaluated records with their labels; such a policy exists in replay
- `goal`: what it is for: "errors", to find wrong outputs (the default), or "score", to estimate the
  mean score of all outputs
- `options`: other keywords of its constructor that a comparison may set; default: none

Its constructor takes `beta`, and `seed` as a keyword.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from gatekeeper.errors import BadInputError
from gatekeeper.protocols import Policy

__all__ = ["Goal", "Learns", "Need", "PolicyDescriptor", "display_name"]

Goal = Literal["errors", "score"]
Learns = Literal["nothing", "warm-up", "labels"]
Need = Literal["warmup", "calibration", "labels", "horizon", "unit", "records"]


@dataclass(frozen=True, slots=True)
class PolicyDescriptor:
    """A policy's class attributes, with defaults for those that it lacks."""

    name: str
    make: Callable[..., Policy]
    label: str
    description: str
    learns: Learns
    needs: tuple[Need, ...]
    options: tuple[str, ...]
    goal: Goal

    @classmethod
    def of(cls, name: str, make: Callable[..., Policy]) -> PolicyDescriptor:
        """Read the attributes of a class, or of any callable that returns a policy.

        Raises
        ------
        BadInputError
            `learns` or `needs` has a value that is not listed above.
        """
        described = cls(
            name,
            make,
            label=getattr(make, "label", name),
            description=getattr(make, "description", ""),
            learns=getattr(make, "learns", "labels"),
            needs=tuple(getattr(make, "needs", ())),
            options=tuple(getattr(make, "options", ())),
            goal=getattr(make, "goal", "errors"),
        )
        for attribute, values, known in (
            ("learns", (described.learns,), get_args(Learns)),
            ("needs", described.needs, get_args(Need)),
            ("goal", (described.goal,), get_args(Goal)),
        ):
            for value in values:
                if value not in known:
                    raise BadInputError(
                        f"policy={name!r}: its class attribute {attribute} has {value!r}: choose "
                        f"from {', '.join(known)}"
                    )
        return described

    @property
    def calibrates(self) -> bool:
        """Whether it spends the part of the stream after the warm-up on a calibration."""
        return "calibration" in self.needs

    @property
    def replay_only(self) -> bool:
        """Whether it needs the labels in advance."""
        return "records" in self.needs

    @property
    def learns_after_warmup(self) -> bool:
        """Whether its choices depend on labels after the warm-up."""
        return self.learns == "labels" or self.calibrates

    def build(
        self,
        beta: float,
        *,
        seed: int,
        stream: Mapping[Need, Any],
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> Policy:
        """A fresh policy.

        Parameters
        ----------
        beta
            Share of the full cost to spend, in (0, 1).
        seed
            Seed of its draws, at least 0.
        stream
            Values known for the stream: the policy gets those that it `needs`; absent ones have its
            defaults.
        options
            Values for some of its `options`.

        Raises
        ------
        BadInputError
            An option that the policy does not have, or a value that it refuses.
        """
        for option in options:
            if option not in self.options:
                known = ", ".join(self.options) or "none"
                raise BadInputError(
                    f"policy={self.name!r} with {dict(options)!r}: {option!r} is not an option; "
                    f"its options: {known}"
                )
        informed = {need: stream[need] for need in self.needs if need in stream}
        return self.make(beta, seed=seed, **informed, **options)


def display_name(policy: Policy) -> str:
    """The name under which telemetry shows a policy: its `name`, else that of its class."""
    return str(getattr(policy, "name", type(policy).__name__))

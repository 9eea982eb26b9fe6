"""A known cause of drift: a change of the conditions on which the labels of a run depend."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from inspect import signature
from math import isfinite
from typing import Any

from gatekeeper.protocols import AsyncVerifier, Verifier
from gatekeeper.signals import DEFINITION

__all__ = ["Fingerprint"]

# A log has all names with each new one, and callers of a gateway may send any, which some servers
# repeat in their answers.
MOST = 100  # models that are told apart
LONGEST = 200  # characters of a name
LISTED = 5  # names in a message
HOW_FAST = {"workers", "delay"}  # settings of a verifier without effect on verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The conditions of labels; None, or no models, where unknown."""

    models: tuple[str, ...] = ()  # in the order in which they were first seen
    prompt_template: str | None = None  # a hash of its text
    verifier: Mapping[str, Any] | None = None  # its type, its public plain settings; of text a hash
    signals: int = DEFINITION

    @classmethod
    def of(cls, prompt_template: str | None, verifier: object) -> Fingerprint:
        return cls(
            prompt_template=None if prompt_template is None else _hash(prompt_template),
            verifier=None if verifier is None else _described(verifier),
        )

    def data(self) -> dict[str, Any]:
        """JSON values, for the log."""
        return asdict(self) | {"models": list(self.models)}

    @property
    def of_verifier(self) -> str:
        """A hash of the verifier's type and settings; "" where there is none."""
        return "" if self.verifier is None else _hash(json.dumps(self.verifier, sort_keys=True))

    def knows(self, model: str) -> bool:
        """Whether a model is no change."""
        return model[:LONGEST] in self.models or len(self.models) >= MOST

    def with_models(self, models: Iterable[str]) -> Fingerprint:
        names = dict.fromkeys((*self.models, *(model[:LONGEST] for model in models)))
        return replace(self, models=tuple(names)[: max(MOST, len(self.models))])

    def after(self, earlier: Fingerprint) -> Fingerprint:
        """This one, with unknown parts taken from an earlier one of the same log."""
        return replace(
            self,
            models=earlier.with_models(self.models).models,
            prompt_template=self.prompt_template or earlier.prompt_template,
            verifier=self.verifier or earlier.verifier,
        )

    def since(self, earlier: Fingerprint) -> str:
        """What has changed, in words; "" for nothing.

        A part that was unknown before has not changed, except for a model: earlier outputs had one,
        even if unnamed.
        """
        changes = []
        if new := [model for model in self.models if model not in earlier.models]:
            changes.append(f"model {_listed(new)} instead of {_listed(earlier.models)}")
        if earlier.prompt_template not in (None, self.prompt_template):
            changes.append("another prompt template")
        if earlier.verifier not in (None, self.verifier):
            changes.append("another verifier, or another setting of it")
        if earlier.signals != self.signals:
            changes.append("another definition of the signals")
        return "; ".join(changes)


def _listed(models: Sequence[str]) -> str:
    more = [f"{len(models) - LISTED} others"] if len(models) > LISTED else []
    return " or ".join([*map(repr, models[:LISTED]), *more]) or "one without a name"


def _described(verifier: object) -> dict[str, Any]:
    """A verifier's type and settings.

    A setting is a parameter of its constructor that is also a public attribute, which excludes
    counters. Text is hashed, because it may be a key, and logs must not contain keys.
    """
    kind = type(verifier)
    about: dict[str, Any] = {"type": f"{kind.__module__}.{kind.__qualname__}"}
    try:
        names = signature(kind).parameters.keys() - HOW_FAST
    except (TypeError, ValueError):  # made in another language, or with a constructor of its own
        return about
    for name in sorted(names & set(dir(verifier))):
        value = getattr(verifier, name)
        if isinstance(value, float) and not isfinite(value):
            about[name] = str(value)  # JSON has no infinity
        elif isinstance(value, str):
            about[name] = _hash(value)
        elif isinstance(value, int | float | None):
            about[name] = value
        elif isinstance(value, Mapping) and value and all(map(_verifies, value.values())):
            about[name] = {str(key): _described(part) for key, part in value.items()}
    return about


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _verifies(part: object) -> bool:
    return isinstance(part, Verifier | AsyncVerifier)

"""A new output of a gate, with its signals and its cost estimate."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from numbers import Real

from msgspec import Struct

from gatekeeper.arguments import check_flag
from gatekeeper.budget.groups import groups_of
from gatekeeper.errors import BadInputError
from gatekeeper.gate.sizes import check_size
from gatekeeper.gate.state import GateState
from gatekeeper.io.providers import attribute
from gatekeeper.io.responses import as_generation
from gatekeeper.protocols import CostEstimator, Feature
from gatekeeper.signals import signals_of
from gatekeeper.types import Candidate, Generation
from gatekeeper.types.values import COST, LEAST_COST, MOST_COST, as_features

__all__ = ["NewOutput", "OutputReader"]


class NewOutput(Struct, frozen=True):
    """A new output."""

    generation: Generation
    candidate: Candidate | None  # None: its id is known
    force: bool
    response_id: object = None  # of the response


class OutputReader:
    """Reads responses for one gate, outside its lock.

    Parameters
    ----------
    state
        The gate's, with the ids that were decided on.
    cost_estimate
        ĉ of an output before it is verified.
    features
        Computed for each output before it is decided on.
    groups
        Names of the budget's groups.
    keep_response_ids
        A sink needs the ids that responses came with.
    """

    def __init__(
        self,
        state: GateState,
        cost_estimate: CostEstimator,
        features: Sequence[Feature] = (),
        *,
        groups: Collection[str] = (),
        keep_response_ids: bool = False,
    ) -> None:
        self._state, self._cost_estimate, self._features = state, cost_estimate, features
        self._groups = groups
        self._keeps_response_ids = keep_response_ids

    def read(self, response: object, task: object, *, id: str | None, force: bool) -> NewOutput:
        """The output of a response, with its signals and its cost estimate.

        Raises
        ------
        BadInputError
            For a response that cannot be read, an output that broke off or is too large for a log,
            a cost estimate that is not above 0, and an output whose group is unknown, where the
            budget has caps for groups; and for a `force` that is neither True nor False.
        """
        force = check_flag("force", force)
        generation = as_generation(response, id=id)
        if generation.id in self._state.ids:
            return NewOutput(generation, None, force)
        if generation.broke_off:
            raise BadInputError(
                f"id={generation.id!r}: the server broke this output off (finish_reason="
                f"{generation.finish_reason!r}), so a verdict would not be about the model: "
                "generate it again"
            )
        check_size(generation)
        if self._features:
            found = {feature.__name__: feature(generation, task) for feature in self._features}
            generation = replace(
                generation, features=as_features(found) | dict(generation.features)
            )
        signals = signals_of(generation)
        cost_estimate = self._cost_estimate(generation, task)
        is_number = isinstance(cost_estimate, (float, Real))  # float first: it is quicker
        if not (is_number and LEAST_COST <= cost_estimate <= MOST_COST):
            raise BadInputError(
                f"id={generation.id!r}: cost estimate {cost_estimate!r} must be {COST}"
            )
        groups = self._groups_of(generation, task) if self._groups else {}
        candidate = Candidate(
            generation.id, signals, float(cost_estimate), generation.features, groups
        )
        response_id = attribute(response, "id") if self._keeps_response_ids else None
        return NewOutput(generation, candidate, force, response_id)

    def _groups_of(self, generation: Generation, task: object) -> dict[str, str]:
        try:
            return groups_of(self._groups, task, self._state.model_of(generation))
        except BadInputError as e:
            raise BadInputError(f"id={generation.id!r}: {e}") from None

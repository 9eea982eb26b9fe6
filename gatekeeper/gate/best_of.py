"""The best of several outputs of one task; the most uncertain are verified first.

Uncertainty is h1 here, the mean negative log-likelihood. Among outputs to one prompt it is the best
indicator of wrong ones: their likelihoods are comparable, because they answer the same question,
while the margins of h2 and h3 mainly depend on the question. `benchmarks/best_of.py` measures it,
and what the verification gains (docs/agent.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf, isnan

from gatekeeper.errors import BadInputError
from gatekeeper.gate.protocol import Gate
from gatekeeper.io.responses import as_generations
from gatekeeper.signals import signals_of
from gatekeeper.types import GateResult, Generation, Label

__all__ = ["Choice", "abest_of", "best_of"]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several outputs, with the results of all.

    Attributes
    ----------
    outputs
        In the order given.
    results
        Results of the outputs, in the same order. None for an output that did not reach the gate,
        because another had passed; equal texts share one result.
    index
        Index of the chosen one.
    """

    outputs: tuple[Generation, ...]
    results: tuple[GateResult | None, ...]
    index: int

    @property
    def text(self) -> str:
        return self.outputs[self.index].text

    @property
    def result(self) -> GateResult | None:
        return self.results[self.index]

    @property
    def passed(self) -> bool:
        """Whether the chosen one was verified and is right."""
        return _error(self.result) == 0


def best_of(gate: Gate, responses: Sequence[object], task: object, *, id: str | None) -> Choice:
    """See `VerificationGate.best_of`."""
    outputs, results = _outputs(responses, id), _ByText()
    for output in _most_uncertain_first(outputs, results):
        results[output.text] = gate.maybe_verify(output, task)
    return _choice(outputs, results)


async def abest_of(
    gate: Gate, responses: Sequence[object], task: object, *, id: str | None
) -> Choice:
    """See `VerificationGate.abest_of`."""
    outputs, results = _outputs(responses, id), _ByText()
    for output in _most_uncertain_first(outputs, results):
        results[output.text] = await gate.amaybe_verify(output, task)
    return _choice(outputs, results)


_ByText = dict[str, GateResult]


def _outputs(responses: Sequence[object], id: str | None) -> list[Generation]:
    """Every output of the responses, each with an id of its own."""
    if not isinstance(responses, list | tuple):
        raise BadInputError(f"responses={responses!r:.80}: give a list of responses to one prompt")
    found = [output for response in responses for output in as_generations(response, id=id)]
    if id is not None:
        found = [replace(output, id=f"{id}/{i}") for i, output in enumerate(found)]
    if not found:
        raise BadInputError(f"responses={responses!r:.80}: there is no output to choose from")
    if len({output.id for output in found}) < len(found):
        raise BadInputError(
            f"id={found[0].id!r} and others: outputs share an id; name the task, id='...', and "
            "they are numbered"
        )
    return found


def _uncertainty(output: Generation) -> float:
    """h1, nats per token. Without log-probabilities: more than any."""
    h1 = signals_of(output).h1
    return inf if isnan(h1) else h1


def _most_uncertain_first(outputs: list[Generation], results: _ByText) -> Iterator[Generation]:
    """The next output for the gate, until one has passed; the caller puts its result into
    `results`.
    """
    for output in sorted(outputs, key=_uncertainty, reverse=True):
        if output.text not in results:
            yield output
            if _error(results[output.text]) == 0:
                return


def _choice(outputs: list[Generation], results: _ByText) -> Choice:
    """One that passed, else the least uncertain that did not fail, else the least uncertain."""
    rank = {0: 0, None: 1, 1: 2}
    ranks = [(rank[_error(results.get(output.text))], _uncertainty(output)) for output in outputs]
    found = tuple(results.get(output.text) for output in outputs)
    return Choice(tuple(outputs), found, ranks.index(min(ranks)))


def _error(result: GateResult | None) -> Label | None:
    return None if result is None or result.outcome is None else result.outcome.error

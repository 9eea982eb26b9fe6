"""Generators that compare each output: with more samples of its model, or with another model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import wraps

from gatekeeper.arguments import check_count
from gatekeeper.features.agreement import agreement
from gatekeeper.gate.runner import Generate, Sampler
from gatekeeper.types import Generation

__all__ = ["with_agreement", "with_second_model"]

TEMPERATURE = 1.0  # of the samples: those of the model's own distribution


def with_agreement(
    generate: Sampler, samples: int, *, kinds: Mapping[str, str], seed: int = 0
) -> Generate:
    """A generator whose outputs have the feature "agreement".

    Each prompt is answered `samples` more times, at temperature 1, whatever the temperature of the
    output, which multiplies the time of generation.

    Parameters
    ----------
    generate
        Generates the outputs and the samples.
    samples
        For each prompt, at least 1.
    kinds
        Kinds of each task, by id; see `normal_form`.
    seed
        Seed of the samples; the output itself has another one.

    Returns
    -------
    Generate

    References
    ----------
    Wang et al. (2023), "Self-consistency improves chain of thought reasoning in language models":
    answers that samples agree on are more often right.
    """
    check_count("samples", samples)

    @wraps(generate)
    def generate_and_compare(prompts: Sequence[str], ids: Sequence[str]) -> list[Generation]:
        outputs = generate(prompts, ids)
        more = [
            generate(prompts, ids, temperature=TEMPERATURE, seed=seed + 1 + k)
            for k in range(samples)
        ]
        return _compared("agreement", outputs, more, kinds)

    return generate_and_compare


def with_second_model(
    generate: Generate, second: Generate, *, kinds: Mapping[str, str]
) -> Generate:
    """A generator whose outputs have the feature "second_model": 1 if that model agrees, else 0.

    Parameters
    ----------
    generate
        Generates the outputs.
    second
        Another model, which may be a cheaper one. It answers the same prompts after the first.
    kinds
        Kinds of each task, by id; see `normal_form`.

    Returns
    -------
    Generate
    """

    @wraps(generate)
    def generate_and_compare(prompts: Sequence[str], ids: Sequence[str]) -> list[Generation]:
        outputs = generate(prompts, ids)
        return _compared("second_model", outputs, [second(prompts, ids)], kinds)

    return generate_and_compare


def _compared(
    name: str,
    outputs: Sequence[Generation],
    others: Sequence[Sequence[Generation]],
    kinds: Mapping[str, str],
) -> list[Generation]:
    """The outputs, each with its agreement with the other answers to its prompt."""
    compared = []
    for output, *answers in zip(outputs, *others, strict=True):
        texts = [answer.text for answer in answers]
        share = agreement(output.text, texts, kind=kinds[output.id])
        compared.append(replace(output, features={**output.features, name: share}))
    return compared

"""Ready-made features: functions of (generation, task) that return a number or None.

    VerificationGate("calibrated", ..., features=[stated_confidence, margin_entropy, parses])

Any function of that form is a feature; its name is that of the feature.
"""

from gatekeeper.errors import BadInputError
from gatekeeper.features.agreement import agreement, normal_form
from gatekeeper.features.checks import has_answer, output_length
from gatekeeper.features.comparisons import with_agreement, with_second_model
from gatekeeper.features.confidence import CONFIDENCE_PROMPT, stated_confidence
from gatekeeper.features.margins import lowest_margin_at, margin_entropy, margin_tenth
from gatekeeper.features.program import foreign_imports, parses, undefined_names
from gatekeeper.protocols import Feature
from gatekeeper.wording import choose

__all__ = [
    "BY_NAME",
    "CONFIDENCE_PROMPT",
    "agreement",
    "features_of",
    "foreign_imports",
    "has_answer",
    "lowest_margin_at",
    "margin_entropy",
    "margin_tenth",
    "normal_form",
    "output_length",
    "parses",
    "samples_of",
    "stated_confidence",
    "undefined_names",
    "with_agreement",
    "with_second_model",
]

BY_NAME: dict[str, tuple[Feature, ...]] = {
    "length": (output_length,),
    "confidence": (stated_confidence,),
    "margins": (margin_entropy, margin_tenth, lowest_margin_at),
    "parses": (parses,),
    "names": (undefined_names,),
    "imports": (foreign_imports,),
    "answer": (has_answer,),
}
"""Features by their names on the command line."""


AGREEMENT = "agreement"
MOST_SAMPLES = 100  # of a prompt: more cost far more than a verification


def features_of(names: str) -> list[Feature]:
    """Features by name.

    Parameters
    ----------
    names
        Separated by commas, such as "length,margins,agreement:4"; "" for none.

    Returns
    -------
    list of Feature
        In the order of the names, each once; without "agreement:N", see `samples_of`.

    Raises
    ------
    BadInputError
        For a name that is not in `BY_NAME`.
    """
    found = [name for name in _listed(names) if not _is_agreement(name)]
    for name in found:
        if name not in BY_NAME:
            known = [*BY_NAME, f"{AGREEMENT}:N"]
            raise BadInputError(f"features={name!r} is unknown: {choose(name, known)}")
    return [feature for name in found for feature in BY_NAME[name]]


def samples_of(names: str) -> int:
    """How many further samples of each prompt "agreement:N" among the names asks for; 0 for none.

    Raises
    ------
    BadInputError
        Where N is missing, no whole number from 1 to 100, or given twice.
    """
    found = [name for name in _listed(names) if _is_agreement(name)]
    if not found:
        return 0
    number = found[0].partition(":")[2]
    if len(found) > 1 or number not in map(str, range(1, MOST_SAMPLES + 1)):
        raise BadInputError(
            f"features={','.join(found)!r}: give {AGREEMENT}:N once, where N is the number of "
            f"further samples of each prompt, from 1 to {MOST_SAMPLES}, such as {AGREEMENT}:4"
        )
    return int(number)


def _listed(names: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))


def _is_agreement(name: str) -> bool:
    return name.partition(":")[0] == AGREEMENT

"""Ready-made features: functions of (generation, task) that return a number or None.

    VerificationGate("calibrated", ..., features=[stated_confidence, margin_entropy, parses])

Any function of that form is a feature; its name is that of the feature.
"""

from gatekeeper.errors import BadInputError
from gatekeeper.features.agreement import agreement, normal_form
from gatekeeper.features.checks import has_answer, output_length, parses
from gatekeeper.features.confidence import CONFIDENCE_PROMPT, stated_confidence
from gatekeeper.features.margins import lowest_margin_at, margin_entropy, margin_tenth
from gatekeeper.protocols import Feature

__all__ = [
    "BY_NAME",
    "CONFIDENCE_PROMPT",
    "agreement",
    "features_of",
    "has_answer",
    "lowest_margin_at",
    "margin_entropy",
    "margin_tenth",
    "normal_form",
    "output_length",
    "parses",
    "stated_confidence",
]

BY_NAME: dict[str, tuple[Feature, ...]] = {
    "length": (output_length,),
    "confidence": (stated_confidence,),
    "margins": (margin_entropy, margin_tenth, lowest_margin_at),
    "parses": (parses,),
    "answer": (has_answer,),
}
"""Features by their names on the command line."""


def features_of(names: str) -> list[Feature]:
    """Features by name.

    Parameters
    ----------
    names
        Separated by commas, such as "length,margins"; "" for none.

    Returns
    -------
    list of Feature
        In the order of the names, each once.

    Raises
    ------
    BadInputError
        For a name that is not in `BY_NAME`.
    """
    found = dict.fromkeys(name.strip() for name in names.split(",") if name.strip())
    unknown = [name for name in found if name not in BY_NAME]
    if unknown:
        raise BadInputError(f"features={unknown[0]!r}: choose from {', '.join(BY_NAME)}")
    return [feature for name in found for feature in BY_NAME[name]]

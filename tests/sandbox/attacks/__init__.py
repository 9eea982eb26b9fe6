"""The project's own attack suite: hostile candidates, and honest ones beside them."""

from __future__ import annotations

from attacks.answers import ANSWERS
from attacks.asserting import ASSERTING
from attacks.beside import BESIDE
from attacks.buffers import BUFFERS
from attacks.carried import CARRIED
from attacks.cases import CASES
from attacks.channel import CHANNEL
from attacks.claims import CLAIMS
from attacks.copies import COPIES
from attacks.descriptors import DESCRIPTORS
from attacks.forged import FORGED
from attacks.fourth_findings import FOURTH_FINDINGS
from attacks.honest import HONEST
from attacks.hosts import HOSTS
from attacks.isolation import ISOLATION
from attacks.memory import MEMORY
from attacks.more_findings import MORE_FINDINGS
from attacks.names import NAMES
from attacks.new_findings import FINDINGS
from attacks.program import Program
from attacks.protocol import PROTOCOL
from attacks.resources import RESOURCES
from attacks.returned import RETURNED
from attacks.shapes_checks import CHECKED
from attacks.shapes_classes import CLASSES
from attacks.shapes_misjudged import MISJUDGED
from attacks.shapes_tests import SHAPED
from attacks.third_findings import THIRD_FINDINGS

__all__ = ["PROGRAMS", "Program"]

PROGRAMS: tuple[Program, ...] = (
    *(*FORGED, *RESOURCES, *ISOLATION, *PROTOCOL, *HONEST),
    *(*MEMORY, *NAMES, *ANSWERS, *RETURNED, *ASSERTING, *CASES, *BUFFERS, *CHANNEL, *HOSTS),
    *(*MISJUDGED, *CLASSES, *SHAPED, *CHECKED, *FINDINGS, *BESIDE, *CLAIMS),
    *(*MORE_FINDINGS, *THIRD_FINDINGS, *COPIES, *FOURTH_FINDINGS, *DESCRIPTORS, *CARRIED),
)

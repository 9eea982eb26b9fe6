"""The project's own attack suite: hostile candidates, and honest ones beside them."""

from __future__ import annotations

from attacks.answers import ANSWERS
from attacks.asserting import ASSERTING
from attacks.buffers import BUFFERS
from attacks.captured import CAPTURED
from attacks.cases import CASES
from attacks.caught_assertions import CAUGHT_ASSERTIONS
from attacks.channel import CHANNEL
from attacks.copies import COPIES
from attacks.coroutines import COROUTINES
from attacks.data_sets import DATA_SETS
from attacks.decisions import DECISIONS
from attacks.deep_calls import DEEP_CALLS
from attacks.descriptors import DESCRIPTORS
from attacks.endings import ENDINGS
from attacks.environment import ENVIRONMENT
from attacks.errors import ERRORS
from attacks.event_loops import EVENT_LOOPS
from attacks.forged import FORGED
from attacks.formatted_texts import FORMATTED_TEXTS
from attacks.given_classes import GIVEN_CLASSES
from attacks.handed_over import HANDED_OVER
from attacks.hidden_numbers import HIDDEN_NUMBERS
from attacks.honest import HONEST
from attacks.hosts import HOSTS
from attacks.imports import IMPORTS
from attacks.isolation import ISOLATION
from attacks.iteration import ITERATION
from attacks.iteration_ends import ITERATION_ENDS
from attacks.kinds import KINDS
from attacks.known_by_objects import KNOWN_BY_OBJECTS
from attacks.left_work import LEFT_WORK
from attacks.library_objects import LIBRARY_OBJECTS
from attacks.library_subclasses import LIBRARY_SUBCLASSES
from attacks.looked_at import LOOKED_AT
from attacks.looks import LOOKS
from attacks.made_tests import MADE_TESTS
from attacks.memory import MEMORY
from attacks.named import NAMED
from attacks.names import NAMES
from attacks.own_classes import OWN_CLASSES
from attacks.own_helpers import OWN_HELPERS
from attacks.patched import PATCHED
from attacks.printed_texts import PRINTED_TEXTS
from attacks.program import Program
from attacks.protocol import PROTOCOL
from attacks.pytest_runs import PYTEST_RUNS
from attacks.python_values import PYTHON_VALUES
from attacks.refused_operators import REFUSED_OPERATORS
from attacks.resources import RESOURCES
from attacks.returned import RETURNED
from attacks.runs import RUNS
from attacks.shapes_checks import CHECKED
from attacks.shapes_classes import CLASSES
from attacks.shapes_misjudged import MISJUDGED
from attacks.shapes_tests import SHAPED
from attacks.shared_lists import SHARED_LISTS
from attacks.skipped_tests import SKIPPED_TESTS
from attacks.texts_run import TEXTS_RUN
from attacks.thoughts import THOUGHTS
from attacks.threads import THREADS
from attacks.unlabelled import UNLABELLED
from attacks.unrun_checks import UNRUN_CHECKS
from attacks.value_operators import VALUE_OPERATORS
from attacks.wrapped_helpers import WRAPPED_HELPERS
from attacks.wrapped_tests import WRAPPED_TESTS

__all__ = ["PROGRAMS", "Program"]

PROGRAMS: tuple[Program, ...] = (
    *(*FORGED, *RESOURCES, *ISOLATION, *PROTOCOL, *HONEST),
    *(*MEMORY, *NAMES, *ANSWERS, *RETURNED, *ASSERTING, *CASES, *BUFFERS, *CHANNEL, *HOSTS),
    *(*MISJUDGED, *CLASSES, *SHAPED, *CHECKED, *THREADS, *COROUTINES, *ERRORS, *HANDED_OVER),
    *(
        *WRAPPED_TESTS,
        *WRAPPED_HELPERS,
        *UNRUN_CHECKS,
        *SKIPPED_TESTS,
        *CAUGHT_ASSERTIONS,
        *ITERATION,
        *KINDS,
        *COPIES,
    ),
    *(*DECISIONS, *DESCRIPTORS, *ENDINGS, *UNLABELLED, *RUNS, *SHARED_LISTS, *DATA_SETS),
    *(*LIBRARY_OBJECTS, *OWN_CLASSES, *KNOWN_BY_OBJECTS, *HIDDEN_NUMBERS, *LEFT_WORK),
    *(
        *EVENT_LOOPS,
        *PRINTED_TEXTS,
        *FORMATTED_TEXTS,
        *OWN_HELPERS,
        *LOOKED_AT,
        *REFUSED_OPERATORS,
        *ITERATION_ENDS,
        *PYTEST_RUNS,
        *TEXTS_RUN,
        *IMPORTS,
        *ENVIRONMENT,
        *MADE_TESTS,
        *PATCHED,
        *PYTHON_VALUES,
        *THOUGHTS,
        *CAPTURED,
        *LIBRARY_SUBCLASSES,
        *DEEP_CALLS,
        *GIVEN_CLASSES,
        *LOOKS,
        *NAMED,
        *VALUE_OPERATORS,
    ),
)

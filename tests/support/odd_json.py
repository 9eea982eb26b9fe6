"""JSON of a known shape with one field made odd, for tests of what reads it."""

from __future__ import annotations

import copy
import random
from typing import Any


def mutated(value: Any, rng: random.Random) -> Any:
    """The same with one field, somewhere, made odd."""
    value = copy.deepcopy(value)
    node = value
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        key = rng.choice(list(keys))
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.8:
            node = node[key]
            continue
        node[key] = rng.choice([None, 7, -1.5, "x", [], {}, [None], [3], {"a": 1}, True, 10**400])
        return value

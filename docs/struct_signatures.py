"""For the API reference: a class under `as_dataclass` is a dataclass, with its constructor."""

from typing import Any

import griffe


class StructSignatures(griffe.Extension):
    """Shows griffe, which knows `dataclass` alone, that decorator in its place."""

    def on_class_instance(self, *, cls: griffe.Class, **_: Any) -> None:
        """Called by griffe for each class that it has read."""
        for decorator in cls.decorators:
            if str(decorator.value) == "as_dataclass":
                decorator.value = griffe.ExprName("dataclasses.dataclass")
                cls.labels.add("dataclass")

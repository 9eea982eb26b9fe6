"""For the API reference: the comment beside a field is its description, as the code has it.

LATE = "late"  # this text
"""

from typing import Any

import griffe


class FieldComments(griffe.Extension):
    """Gives fields without a docstring the comment at the end of their line."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Called by griffe for each attribute that it has read."""
        if attr.docstring is None and isinstance(attr.parent, griffe.Class):
            _, found, comment = attr.source.partition("  # ")
            if found and "\n" not in comment:
                attr.docstring = griffe.Docstring(comment, lineno=attr.lineno, parent=attr)

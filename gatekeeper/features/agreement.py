"""Agreement with other answers to the same prompt: further samples, or another model's."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from gatekeeper.errors import BadInputError
from gatekeeper.io.syntax import parse_python
from gatekeeper.maths.exact import value
from gatekeeper.maths.extract import extract
from gatekeeper.maths.normalise import normalise
from gatekeeper.sandbox.extract import extract_code

__all__ = ["agreement", "normal_form"]


def agreement(answer: str, others: Sequence[str], *, kind: str = "text") -> float | None:
    """Share of the other answers that have the same normal form.

    Parameters
    ----------
    answer
        The output's text.
    others
        Texts of further samples of the same prompt, or of another model's answer.
    kind
        Kind of the task, see `normal_form`.

    Returns
    -------
    float or None
        In [0, 1]; 0 for an answer without a normal form, None without other answers.

    Raises
    ------
    BadInputError
        For one text in place of several, whose letters would count as answers.
    """
    if isinstance(others, str):
        raise BadInputError(f"others={others!r:.80}: give a list of texts")
    if not others:
        return None
    own = normal_form(answer, kind=kind)
    return sum(own is not None and normal_form(o, kind=kind) == own for o in others) / len(others)


def normal_form(answer: str, *, kind: str = "text") -> str | None:
    """A form in which answers that differ only in spelling are equal.

    Parameters
    ----------
    answer
        Text of an output.
    kind
        "code": the syntax tree of the program, without comments and docstrings; names count, so
        programs that only behave alike differ. "math": the final answer, a number by its value,
        others without spaces and in lower case. Anything else: the text in lower case, with
        single spaces.

    Returns
    -------
    str or None
        None where there is no answer.
    """
    if kind == "code":
        try:
            tree = parse_python(extract_code(answer))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
        return ast.dump(_without_docstrings(tree)) if tree.body else None
    if kind == "math":
        found = extract(answer)
        spelled = None if found is None else normalise(found)
        if spelled is None:
            return None
        number = value(spelled)
        return str(number) if number is not None else "".join(spelled.split()).casefold() or None
    return " ".join(answer.split()).casefold() or None


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                node.body = node.body[1:] or [ast.Pass()]
    return tree

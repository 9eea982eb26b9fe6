r"""Whether two canonical answers are equal, by rules of increasing cost.

"2, 3" equals "3, 2", but not "(2, 3)". Pure and three-valued: True, False, or None for "needs
symbolic algebra". The caller's process has no symbolic algebra; a worker has `symbolic.equal`. The
rules are the same in both.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from itertools import pairwise

from gatekeeper.maths import exact, units
from gatekeeper.maths.choices import is_denied, labelled, same_choice
from gatekeeper.maths.logic import every, some
from gatekeeper.maths.parameters import align, letters, rename
from gatekeeper.maths.phrases import arrangements
from gatekeeper.maths.readings import (
    RELATION,
    are_intervals,
    assignments,
    components,
    conjunction,
    coordinates,
    in_order,
    is_condition,
    others,
    rational,
    reads_as,
    says_twice,
    unnumbered,
)
from gatekeeper.maths.scalars import ScalarComparer, Symbolic
from gatekeeper.maths.structure import Kind, Node, read, split
from gatekeeper.maths.words import date, is_in_sentence, same_date, same_items, says_in_words

__all__ = ["MAX_PAIRS", "AnswerComparer"]

MAX_PAIRS = 400  # element comparisons between two unordered collections

_UNORDERED = frozenset((Kind.LIST, Kind.SET))
_SET_LIKE = re.compile(
    r"[<>=|]|\\(?:leq|geq|neq|in|notin|mathbb|emptyset|cap|setminus|begin)(?![a-z])"
)
_NAME = re.compile(r"[A-Za-z]|\\text\{[^{}]*\}")
_UNCOUNTED = re.compile(r"\\(?:lor|dots)(?![a-z])")  # 1 or 1 is 1
_REALS = r"(-\infty,\infty)"
_MODULUS = re.compile(r"\\pmod\{(\d{1,9})\}\Z")
_PERMUTATIONS = re.compile(r"P\((\d{1,3}),(\d{1,3})\)")
_FUNCTION = re.compile(r"([A-Za-z]'{0,3})\(([a-z])\)")
_OTHERWISE = r"\text{otherwise}"
_EQUAL_SIGNS = frozenset(("=", r"\approx"))
_LETTER = re.compile(r"(?<![A-Za-z\\])[A-Za-z]")  # of a variable, not of a command
_FOREIGN = re.compile(r"[^\W\d_a-zA-Z]")  # words in a script that no rule reads
_NOT_A_SYMBOL = re.compile(r"\(|\\frac")


class AnswerComparer:
    """Compares one pair of answers; afterwards `rule` is the costliest rule that was needed."""

    def __init__(self, symbolic: Symbolic | None = None, near: Symbolic | None = None) -> None:
        self._scalar = ScalarComparer(symbolic, near)

    @property
    def rule(self) -> str:
        return self._scalar.rule

    def compare(self, gold: str, answer: str) -> bool | None:
        """Whether the answers are equal; None if only symbolic algebra, absent here, can decide."""
        if gold == answer:
            return True
        if not answer:
            return False
        choice = same_choice(gold, answer)
        if choice is not None:
            self._scalar.used("choice")
            return None if choice and is_denied(answer) else choice
        if r"\pmod" in gold + answer:
            return self._congruence(gold, answer)
        if (chosen := labelled(gold)) and chosen[1]:  # (B) 5: by its letter or its value
            its = labelled(answer)
            if its and its[0] != chosen[0]:
                return False
            content = its[1] if its else answer
            return self.compare(chosen[1], content) if content else True
        verdict = self._aligned(gold, answer)
        if verdict is not False:
            return verdict
        if not letters(gold) and (its := labelled(answer)) and its[1]:
            return self.compare(gold, its[1])  # "(B) 5" beside 5
        return None if self._has_another_reading(gold, answer) else False

    def _has_another_reading(self, gold: str, answer: str) -> bool:
        """Whether the answers may be the same to somebody who reads them in another way."""
        if not answer.isascii() and _FOREIGN.search(answer) and not _FOREIGN.search(gold):
            return True
        if says_in_words(gold, answer) or is_in_sentence(gold, answer):
            return True
        twice = says_twice(answer)
        if twice and all(self._aligned(gold, x) for x in twice):
            return True
        return any(self._aligned(x, y) is not False for x, y in others(gold, answer))

    def _aligned(self, gold: str, answer: str) -> bool | None:
        """Compare them with one name for an integer parameter."""
        gold, renamed, certain = align(gold, answer)
        if certain:
            return self._nodes(read(gold), read(renamed))
        verdict = self._nodes(read(gold), read(answer))
        if verdict is not False or self._nodes(read(gold), read(renamed)) is False:
            return verdict
        return None  # 6n+1 and 6k+1

    def _congruence(self, gold: str, answer: str) -> bool | None:
        wanted, given = _MODULUS.search(gold), _MODULUS.search(answer)
        if wanted is None and given is not None:
            return self._remainder(gold, answer[: given.start()], int(given[1]))
        if wanted is None:
            return self._aligned(gold, answer)
        gold = gold[: wanted.start()]
        if given is None:
            same = self._remainder(answer, gold, int(wanted[1]))
        elif wanted[1] == given[1]:
            gold, answer = gold.replace(r"\equiv", "="), answer.replace(r"\equiv", "=")
            answer = answer[: answer.index(r"\pmod")]
            if self._aligned(gold, answer):
                return True
            same = self._remainder(gold.rpartition("=")[2], answer, int(wanted[1]))
        else:
            same = False
        return False if same is False else None  # 5 beside 5 (mod 7), of which 12 is one, too

    def _remainder(self, gold: str, answer: str, modulus: int) -> bool | None:
        """5 (mod 7) and x = 5 (mod 7) are the remainder 5, and 12 (mod 7) may be."""
        node = read(answer.replace(r"\equiv", "=").removeprefix("="))
        same = self._nodes(read(gold), node)
        x, y = exact.value(gold), rational(node)
        is_congruent = x is not None and y is not None and modulus and (x - y) % modulus == 0
        if x is None or not 0 <= x < modulus:  # n (mod 7), or 12 (mod 7), which is 5 if reduced
            is_congruent, same = is_congruent or same is not False, False
        return None if is_congruent and not same else same

    def _nodes(self, gold: Node, answer: Node) -> bool | None:
        if gold.whole == answer.whole or (gold.text == _REALS and answer.text == "R"):
            return True
        if day := date(gold.whole):
            self._scalar.used("text")
            return same_date(day, answer.whole)
        if gold.name and answer.name and gold.name != answer.name:
            return self._differently_named(gold, answer)
        kinds = {gold.kind, answer.kind}
        if kinds <= _UNORDERED:
            return self._collections(gold, answer)
        if Kind.PIECEWISE in kinds:
            return self._piecewise(gold, answer)
        if _OTHERWISE in (gold.text, answer.text):
            return None  # the other condition may say the same
        if kinds & _UNORDERED:
            return self._collection_and_other(gold, answer)
        return self._alike(gold, answer) if len(kinds) == 1 else self._unlike(gold, answer)

    def _alike(self, gold: Node, answer: Node) -> bool | None:
        """Compare two scalars, tuples, matrices or unions."""
        if gold.kind is Kind.SCALAR:
            return self._scalars(gold, answer)
        if gold.kind is Kind.TUPLE:
            return self._tuples(gold, answer)
        if gold.kind is Kind.MATRIX:
            return self._ordered(gold.parts, answer.parts)
        same = self._unordered(gold.parts, answer.parts)
        return same or self._scalar.algebra(gold.text, answer.text)

    def _unlike(self, gold: Node, answer: Node) -> bool | None:
        """Compare different kinds of scalar, tuple, matrix and union."""
        kinds = {gold.kind, answer.kind}
        if Kind.SCALAR in kinds and Kind.UNION not in kinds:
            if gold.kind is Kind.SCALAR and (count := _PERMUTATIONS.fullmatch(answer.whole)):
                return exact.equal(gold.text, arrangements(*count.groups()) or "") or False
            gold, answer = components(gold, answer), components(answer, gold)
            kinds = {gold.kind, answer.kind}
            if kinds == {Kind.TUPLE}:
                return self._ordered(gold.parts, answer.parts)
        if kinds == {Kind.MATRIX, Kind.TUPLE}:
            return self._vectors(gold, answer)
        scalar, other = (gold, answer) if gold.kind is Kind.SCALAR else (answer, gold)
        if scalar.kind is Kind.SCALAR and not _SET_LIKE.search(scalar.text):
            self._scalar.used("structure")
            return False  # a number or an expression is neither an interval nor a matrix
        is_range = other.kind in (Kind.TUPLE, Kind.UNION)
        is_same_variable = is_range and letters(scalar.text) == {other.name}  # -1 < x < 1, |x| < 1
        if not is_same_variable and all(RELATION.search(x.whole) for x in (gold, answer)):
            return self._scalar.algebra(gold.whole, answer.whole)  # x + y < 3, y < 3 - x
        return self._scalar.algebra(gold.text, answer.text)

    def _differently_named(self, gold: Node, answer: Node) -> bool | None:
        """x=5 is not y=5, but y=2x may be x=y/2, and b<a is a>b."""
        self._scalar.used("structure")
        if (mine := coordinates(gold)) and (its := coordinates(answer)):
            return self._ordered(in_order(mine), in_order(its))
        function, its_own = (
            _FUNCTION.fullmatch(gold.name or ""),
            _FUNCTION.fullmatch(answer.name or ""),
        )
        if function and its_own and function[1] == its_own[1]:  # f(x)=x+1, f(t)=t+1
            if function[2] in letters(answer.text):
                return False
            return self._nodes(read(gold.text), read(rename(answer.text, its_own[2], function[2])))
        if (function and answer.name == "y") or (its_own and gold.name == "y"):
            return self._nodes(read(gold.text), read(answer.text))
        if _NOT_A_SYMBOL.search(f"{gold.name} {answer.name}"):
            return False  # f(x)=2x is not g(x)=2x
        constant = exact.value(gold.text) is not None or exact.value(answer.text) is not None
        bounds = gold.kind is answer.kind is Kind.TUPLE and str(gold.name) in answer.text
        if constant or not (bounds or gold.kind is answer.kind is Kind.SCALAR):
            return False
        return self._scalar.algebra(gold.whole, answer.whole)

    def _unordered(
        self, gold: tuple[Node, ...], answer: tuple[Node, ...], *, counts: bool = False
    ) -> bool | None:
        """Compare as sets: each element needs an equal one on the other side.

        `counts`: an element that stands in a list twice needs two equal ones.
        """
        self._scalar.used("structure")
        if not assignments(answer):
            gold = unnumbered(gold)
        if not assignments(gold):
            answer = unnumbered(answer)
        if assignments(gold) != assignments(answer):
            return self._ordered(in_order(gold), in_order(answer))
        if counts and not _as_often(gold, answer):
            return False
        known_gold, known_answer = ({_key(node) for node in nodes} for nodes in (gold, answer))
        left = [node for node in gold if _key(node) not in known_answer]
        right = [node for node in answer if _key(node) not in known_gold]
        if len(left) * len(answer) + len(right) * len(gold) > MAX_PAIRS:
            # An answer of many elements beside a reference of few is wrong, whatever they are.
            numbers = all(rational(node) is not None for node in (*left, *right))
            return False if numbers or 2 * len(gold) ** 2 < MAX_PAIRS else None
        forward = every(some(self._elements(x, y) for y in answer) for x in left)
        if forward is False:
            return False
        return every((forward, every(some(self._elements(x, y) for x in gold) for y in right)))

    def _elements(self, gold: Node, answer: Node) -> bool | None:
        """Compare elements of collections, where 1 is not {1}."""
        if (gold.kind is Kind.SET) != (answer.kind is Kind.SET):
            return False
        return self._nodes(gold, answer)

    def _collections(self, gold: Node, answer: Node) -> bool | None:
        is_set = Kind.SET in (gold.kind, answer.kind)
        counts = not is_set and not _UNCOUNTED.search(gold.text + answer.text)
        same = self._unordered(gold.parts, answer.parts, counts=counts)
        joined_alike = (r"\lor" in gold.text) == (r"\lor" in answer.text)
        are_names = all(_NAME.fullmatch(part.whole.strip("()")) for part in gold.parts)
        # p or q, beside p and q; but solutions may be joined by either
        return None if same and are_names and not joined_alike else same

    def _collection_and_other(self, gold: Node, answer: Node) -> bool | None:
        other = answer if gold.kind in _UNORDERED else gold
        if other.kind is Kind.UNION:
            return self._collection_and_union(gold, answer)
        if other.kind is Kind.TUPLE:
            return self._collection_and_tuple(gold, answer)
        if other.kind is Kind.SCALAR:
            return self._collection_and_scalar(gold, answer)
        return self._as_elements(gold, answer)

    def _collection_and_union(self, gold: Node, answer: Node) -> bool | None:
        collection, union = _collection_first(gold, answer)
        if gold is union and are_intervals(answer.parts):
            same = self._unordered(gold.parts, answer.parts)
            is_and = any(part.name for part in answer.parts)  # x < 1, x > 2: "and", or "or"
            return None if same and is_and else same
        if any(map(is_condition, collection.parts)):
            return None  # x = 0 or 1 < x < 2; x > 0, x \neq 1
        if r"\lor" in union.whole:
            return self._unordered(gold.parts, answer.parts)  # (1,2) or (2,1): points
        if collection.kind is Kind.SET:
            return self._scalar.algebra(gold.text, answer.text)
        return self._as_elements(gold, answer)

    def _collection_and_tuple(self, gold: Node, answer: Node) -> bool | None:
        """2, 3 is not (2, 3), but x = 2, y = 3 is, though not [2, 3]."""
        collection, other = _collection_first(gold, answer)
        if range_ := conjunction(collection.parts):
            return self._nodes(range_, other)
        is_round = other.brackets in ("()", "<>")
        is_single = collection.kind is Kind.SET and len(collection.parts) == 1
        if is_single and is_round and r"\infty" not in other.text:
            return self._nodes(collection.parts[0], other)  # the set of one solution
        are_named = assignments(collection.parts)
        if are_named and (named := coordinates(other)):
            return self._unordered(collection.parts, named)  # equal in both directions
        if other.name:
            return self._as_elements(gold, answer)
        if are_named and (is_round or len(other.parts) != 2):
            return self._ordered(in_order(gold.parts), in_order(answer.parts))
        self._scalar.used("structure")
        return False

    def _collection_and_scalar(self, gold: Node, answer: Node) -> bool | None:
        collection, other = _collection_first(gold, answer)
        if same_items(gold.text, answer.text) or reads_as(rational(gold), answer.parts):
            return None
        if collection is answer and self._is_one_quantity(answer):
            return some(self._nodes(gold, part) for part in answer.parts)
        values = [part for part in collection.parts if not is_condition(part)]
        if len(values) == 1 and len(collection.parts) > 1:  # 1/x, x != 0
            pair = (values[0], other) if collection is gold else (other, values[0])
            return False if self._nodes(*pair) is False else None
        return self._as_elements(gold, answer)

    def _as_elements(self, gold: Node, answer: Node) -> bool | None:
        """Compare a collection with what is none as with a collection of one element."""
        collection, other = _collection_first(gold, answer)
        is_element = other.kind is Kind.SCALAR and other.text != r"\emptyset"
        if collection.kind is Kind.SET and not is_element:
            self._scalar.used("structure")
            return False
        mine, its = (x.parts if x.kind in _UNORDERED else (x,) for x in (gold, answer))
        # An answer may be given twice, as in "x = 5, 5", but not a reference once.
        counts = gold.kind is Kind.LIST and not _UNCOUNTED.search(gold.text)
        return self._unordered(mine, its, counts=counts)

    def _is_one_quantity(self, answer: Node) -> bool:
        """Whether the parts are one quantity in several units: 150 minutes, or 2.5 hours."""
        with_units = all(units.split(part.text)[1] for part in answer.parts)
        pairs = pairwise(answer.parts)
        return r"\lor" in answer.text and with_units and all(self._nodes(x, y) for x, y in pairs)

    def _piecewise(self, gold: Node, answer: Node) -> bool | None:
        if gold.kind is answer.kind:
            return self._unordered(gold.parts, answer.parts, counts=True)
        other = answer if gold.kind is Kind.PIECEWISE else gold
        self._scalar.used("structure")
        # The function may be |x| in another form, but it is no number.
        return None if other.kind is Kind.SCALAR and rational(other) is None else False

    def _tuples(self, gold: Node, answer: Node) -> bool | None:
        """Intervals and points need equal brackets; [1, 2, 3] is a vector like (1, 2, 3)."""
        pair = {gold.brackets, answer.brackets}
        alike = {"()", "<>"} if len(gold.parts) == 2 else {"()", "<>", "[]"}
        if len(pair) == 2 and not pair <= alike:
            self._scalar.used("structure")
            return False
        named = gold if gold.name else answer
        if (gold.name is None or answer.name is None) and (by_name := in_order(coordinates(named))):
            other = answer if named is gold else gold
            verdicts = {
                self._ordered(other.parts, named.parts),
                self._ordered(other.parts, by_name),
            }
            return verdicts.pop() if len(verdicts) == 1 else None  # (y,x)=(1,2) beside (1,2)
        return self._ordered(gold.parts, answer.parts)

    def _vectors(self, gold: Node, answer: Node) -> bool | None:
        """A column of a matrix may be written as a tuple."""
        matrix, other = (gold, answer) if gold.kind is Kind.MATRIX else (answer, gold)
        column = tuple(row.parts[0] for row in matrix.parts)
        self._scalar.used("structure")
        if other.brackets not in ("()", "<>", "[]") or any(
            len(row.parts) > 1 for row in matrix.parts
        ):
            return False
        if gold is matrix:
            return self._ordered(column, answer.parts)
        return self._ordered(gold.parts, column)

    def _ordered(self, gold: tuple[Node, ...], answer: tuple[Node, ...]) -> bool | None:
        self._scalar.used("structure")
        if len(gold) != len(answer):
            return False
        return every(self._nodes(x, y) for x, y in zip(gold, answer, strict=True))

    def _scalars(self, gold: Node, answer: Node) -> bool | None:
        sides = split(answer.whole, _EQUAL_SIGNS)
        if r"\approx" not in answer.text or len(sides) == 1:
            verdict = self._scalar.compare(gold, answer)
        else:
            verdict = some(self._nodes(gold, read(side)) for side in sides)
        if verdict is False or len(sides) == 1:
            return verdict
        numbers = [units.split(side) for side in sides]
        numbers = [(value, unit) for value, unit in numbers if not _LETTER.search(value)]
        agree = every(self._scalar.agree(x, y) for x, y in pairwise(numbers))
        if agree is False:
            self._scalar.used("structure")
        return every((agree, verdict))


def _collection_first(gold: Node, answer: Node) -> tuple[Node, Node]:
    return (gold, answer) if gold.kind in _UNORDERED else (answer, gold)


def _key(node: Node) -> tuple[str | None, str | Fraction]:
    number = rational(node)
    return (node.name, node.text if number is None else number)


def _as_often(gold: tuple[Node, ...], answer: tuple[Node, ...]) -> bool:
    """Whether each value that both lists have stands in them equally often."""
    left, right = (Counter(_key(node)[1] for node in nodes) for nodes in (gold, answer))
    return len(gold) == len(answer) and all(left[x] == right[x] for x in left if x in right)

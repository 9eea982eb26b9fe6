"""Compare two canonical answers, by rules of increasing cost.

Pure and three-valued: True, False, or None for "needs symbolic algebra". The caller's process has
no symbolic algebra; a worker has `symbolic.equal`. The rules are the same in both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise

from gatekeeper.maths import exact, units
from gatekeeper.maths.structure import Kind, Node, read, split

__all__ = ["MAX_PAIRS", "AnswerComparer"]

MAX_PAIRS = 400  # element comparisons between two unordered collections
MAX_RATIO = 8  # parts of a ratio

_RULES = ("string", "text", "choice", "base", "structure", "exact", "symbolic")
_UNORDERED = (Kind.LIST, Kind.SET)
_TEXT = re.compile(r"\\text\{([^{}]*)\}")
_CHOICE = re.compile(
    r"\\text\{\(?([a-j])(?:[).:]\s*[^{}]*)?\}.*|\(([A-Ja-j])\).*|([A-J])(?:\).*|[.:].*)?"
)
# With words in capitals. "(A) or (B)", "C) 5, D) 6", "(C)(D)", but not "(B) f(a)=(a+b)(c)"
_ANOTHER_CHOICE = re.compile(
    r"(?<![A-Za-z)}])\(([A-Ja-j])\)|\s([A-J])[).]"
    r"|(?:(?<=[,;/.:)&])\s*|\\lor ?|\b(?:OR|AND|NOT)\s+)\(?([A-J])(?=[).:,;/&]|\s*$)"
)
_OPTION = re.compile(r"\\text\{(?:option|choice)(?:\}| (?=\(?[a-j]\W))")
_EXPLICIT_CHOICE = re.compile(r"\\text\{\(?[a-j][).]?\}|\([A-J]\)")
_LABELLED = re.compile(  # "(B) 5", "B. 5": the choice with its text, in a reference
    r"(?:\(([A-J])\)(?=\d|\\[a-z$])|([A-J])[.)]|\\text\{\(?([a-j])[).:]\}?(?!\}|$))(?!.*,).+"
)
_POINTS = re.compile(r"(?:(\\angle)\s?)?([A-Z]{3,})")
_BASE = re.compile(r"\(?([0-9][0-9A-Za-z]*)\)?_\{\(?(\d+)\)?\}")
_SET_LIKE = re.compile(
    r"[<>=|]|\\(?:leq|geq|neq|in|notin|mathbb|emptyset|cap|setminus|begin)(?![a-z])"
)
_EQUALS = frozenset("=")
_COLON = frozenset(":")
_EQUAL_SIGNS = frozenset(("=", r"\approx"))
_LETTER = re.compile(r"(?<![A-Za-z\\])[A-Za-z]")  # of a variable, not of a command
_NOT_A_SYMBOL = re.compile(r"\(|\\frac")
_FILLER_WORDS = frozenset(("a", "an", "the"))

Symbolic = Callable[[str, str], bool]


class AnswerComparer:
    """Compares one pair of answers; afterwards `rule` is the costliest rule that was needed."""

    def __init__(self, symbolic: Symbolic | None = None, near: Symbolic | None = None) -> None:
        self._symbolic = symbolic
        self._near = near
        self._costliest = 0

    @property
    def rule(self) -> str:
        return _RULES[self._costliest]

    def compare(self, gold: str, answer: str) -> bool | None:
        """Whether the answers are equal; None if only symbolic algebra, absent here, can decide."""
        if gold == answer:
            return True
        if not answer:
            return False
        choice = self._choice(gold, answer)
        if choice is not None:
            return choice
        return self._nodes(read(gold), read(answer))

    def _used(self, rule: str) -> None:
        self._costliest = max(self._costliest, _RULES.index(rule))

    def _nodes(self, gold: Node, answer: Node) -> bool | None:
        if gold.whole == answer.whole:
            return True
        if gold.name and answer.name and gold.name != answer.name:
            return self._differently_named(gold, answer)
        kinds = (gold.kind, answer.kind)
        if all(kind in _UNORDERED for kind in kinds):
            return self._unordered(gold.parts, answer.parts)
        if gold.kind in _UNORDERED or answer.kind in _UNORDERED:
            return self._collection_and_other(gold, answer)
        if kinds == (Kind.TUPLE, Kind.TUPLE):
            return self._tuples(gold, answer)
        if kinds == (Kind.MATRIX, Kind.MATRIX):
            return self._ordered(gold.parts, answer.parts)
        if kinds == (Kind.UNION, Kind.UNION):
            return self._unordered(gold.parts, answer.parts) or self._algebra(
                gold.text, answer.text
            )
        if kinds == (Kind.SCALAR, Kind.SCALAR):
            return self._scalars(gold, answer)
        if kinds in ((Kind.MATRIX, Kind.TUPLE), (Kind.TUPLE, Kind.MATRIX)):
            return self._vectors(gold, answer)
        scalar = gold if gold.kind is Kind.SCALAR else answer
        if scalar.kind is Kind.SCALAR and not _SET_LIKE.search(scalar.text):
            self._used("structure")
            return False  # a number or an expression is neither an interval nor a matrix
        return self._algebra(gold.text, answer.text)

    def _differently_named(self, gold: Node, answer: Node) -> bool | None:
        """x=5 is not y=5, but y=2x may be x=y/2, and b<a is a>b."""
        self._used("structure")
        if _NOT_A_SYMBOL.search(f"{gold.name} {answer.name}"):
            return False  # f(x)=2x is not g(x)=2x
        constant = exact.value(gold.text) is not None or exact.value(answer.text) is not None
        bounds = gold.kind is answer.kind is Kind.TUPLE and str(gold.name) in answer.text
        if constant or not (bounds or gold.kind is answer.kind is Kind.SCALAR):
            return False
        return self._algebra(gold.whole, answer.whole)

    def _unordered(self, gold: tuple[Node, ...], answer: tuple[Node, ...]) -> bool | None:
        """Compare as sets: each element needs an equal one on the other side."""
        self._used("structure")
        if _assignments(gold) != _assignments(answer):
            return self._ordered(gold, answer)
        known_gold, known_answer = ({_key(node) for node in nodes} for nodes in (gold, answer))
        left = [node for node in gold if _key(node) not in known_answer]
        right = [node for node in answer if _key(node) not in known_gold]
        if len(left) * len(answer) + len(right) * len(gold) > MAX_PAIRS:
            # An answer of many elements beside a reference of few is wrong, whatever they are.
            numbers = all(_exact(node) is not None for node in (*left, *right))
            return False if numbers or 2 * len(gold) ** 2 < MAX_PAIRS else None
        forward = _every(_some(self._nodes(x, y) for y in answer) for x in left)
        if forward is False:
            return False
        return _every((forward, _every(_some(self._nodes(x, y) for x in gold) for y in right)))

    def _collection_and_other(self, gold: Node, answer: Node) -> bool | None:
        collection, other = (gold, answer) if gold.kind in _UNORDERED else (answer, gold)
        if (named := _named(other)) and _assignments(collection.parts):
            return self._unordered(collection.parts, named)  # equal in both directions
        if other.kind is Kind.TUPLE and not other.name:
            # "2, 3" is not "(2, 3)", but "x = 2, y = 3" is
            if not _assignments(collection.parts):
                self._used("structure")
                return False
            return self._ordered(gold.parts, answer.parts)
        if collection.kind is Kind.SET and other.kind is Kind.UNION:
            return self._algebra(gold.text, answer.text)
        is_one = other.kind is Kind.SCALAR and other.text != r"\emptyset"
        if collection.kind is Kind.SET and not is_one:
            self._used("structure")
            return False
        mine, its = (gold.parts or (gold,)), (answer.parts or (answer,))
        if other.kind is not Kind.SCALAR:
            mine, its = (gold.parts, (answer,)) if gold is collection else ((gold,), answer.parts)
        return self._unordered(mine, its)

    def _tuples(self, gold: Node, answer: Node) -> bool | None:
        """Intervals and points need equal brackets; [1, 2, 3] is a vector like (1, 2, 3)."""
        pair = {gold.brackets, answer.brackets}
        alike = {"()", "<>"} if len(gold.parts) == 2 else {"()", "<>", "[]"}
        if len(pair) == 2 and not pair <= alike:
            self._used("structure")
            return False
        return self._ordered(gold.parts, answer.parts)

    def _vectors(self, gold: Node, answer: Node) -> bool | None:
        """A column of a matrix may be written as a tuple."""
        matrix, other = (gold, answer) if gold.kind is Kind.MATRIX else (answer, gold)
        column = tuple(row.parts[0] for row in matrix.parts)
        self._used("structure")
        if other.brackets not in ("()", "<>") or any(len(row.parts) > 1 for row in matrix.parts):
            return False
        if gold is matrix:
            return self._ordered(column, answer.parts)
        return self._ordered(gold.parts, column)

    def _ordered(self, gold: tuple[Node, ...], answer: tuple[Node, ...]) -> bool | None:
        self._used("structure")
        if len(gold) != len(answer):
            return False
        return _every(self._nodes(x, y) for x, y in zip(gold, answer, strict=True))

    def _scalars(self, gold: Node, answer: Node) -> bool | None:
        sides = split(answer.whole, _EQUAL_SIGNS)
        if r"\approx" not in answer.text or len(sides) == 1:
            verdict = self._one_scalar(gold, answer)
        else:
            verdict = _some(self._nodes(gold, read(side)) for side in sides)
        if verdict is False or len(sides) == 1:
            return verdict
        numbers = [units.split(side) for side in sides]
        numbers = [(value, unit) for value, unit in numbers if not _LETTER.search(value)]
        agree = _every(self._agree(x, y) for x, y in pairwise(numbers))
        if agree is False:
            self._used("structure")
        return _every((agree, verdict))

    def _agree(self, left: units.Quantity, right: units.Quantity) -> bool | None:
        """Whether 2/3 = 0.67 is one number, not two answers as 5 = 6."""
        (x, unit_x), (y, unit_y) = left, right
        if unit_x and unit_y and unit_x != unit_y:
            if unit_x.dimension != unit_y.dimension:
                return True
            x = _times(unit_x.factor / unit_y.factor, x)
        elif units.PERCENT in (unit_x, unit_y) and unit_x != unit_y:
            hundred = _times(Fraction(1, 100) if unit_x else Fraction(100), x)
            return _some((self._shows(x, y), self._shows(hundred, y)))
        return self._shows(x, y)

    def _shows(self, exactly: str, nearly: str) -> bool | None:
        """Whether one number shows the first digits of the other."""
        x, y = exact.value(exactly), exact.value(nearly)
        if y is None and x is not None:
            return self._shows(nearly, exactly)
        if x is None or y is None:
            return self._near(exactly, nearly) if self._near else None
        return x == y or abs(x - y) < (exact.last_place(nearly) or exact.last_place(exactly) or 0)

    def _one_scalar(self, gold: Node, answer: Node) -> bool | None:
        x, y = gold.text, answer.text
        if x == y:
            return True
        if gold.name is None or answer.name is None:
            other = answer if gold.name else gold
            if (gold.name or answer.name) and "=" in other.text:
                return self._algebra(gold.whole, answer.whole)  # y = 2x, 2y - 4x = 0
            if "=" in x and "=" not in y and not gold.name:
                self._used("structure")
                return False  # the line x + y = 5 is not 5
            if "=" not in x and len(sides := split(y, _EQUALS)) > 1:
                *_, left, y = sides  # a + b = 5 equals 5, but an equation does not equal 0
                if exact.value(y) == 0 and exact.value(left) is None:
                    self._used("structure")
                    return False
        for decide in (self._text, self._base, self._points, self._ratio):
            verdict = decide(x, y)
            if verdict is not None:
                return verdict
        return self._quantities(x, y)

    def _choice(self, gold: str, answer: str) -> bool | None:
        answer = _OPTION.sub(lambda m: "" if m[0][-1] == "}" else r"\text{", answer)
        wanted, given = _CHOICE.fullmatch(gold), _CHOICE.fullmatch(answer)
        explicit = _EXPLICIT_CHOICE.fullmatch(gold) is not None
        labelled = _LABELLED.fullmatch(gold)
        if labelled and (len(answer) == 1 or _EXPLICIT_CHOICE.fullmatch(answer)):
            self._used("choice")
            return _letter(labelled) == (_letter(given) if given else answer.lower())
        if not wanted or not (explicit or len(gold) == 1):
            return None
        if explicit and len(answer) == 1:
            self._used("choice")
            return _letter(wanted) == answer.lower()
        if not given:
            if not explicit:
                return None
            self._used("choice")
            return False
        self._used("choice")
        plain = _TEXT.sub(lambda m: f" {m[1].upper()} ", answer)
        chosen = {_letter(match) for match in (given, *_ANOTHER_CHOICE.finditer(plain))}
        return chosen == {_letter(wanted)}

    def _text(self, gold: str, answer: str) -> bool | None:
        wanted, given = _TEXT.fullmatch(gold), _TEXT.fullmatch(answer)
        if wanted is None and given is None:
            return None
        if given is None and "\\" in answer and exact.value(answer) is None:
            return None
        self._used("text")  # a short word, such as "up", may lack its \text
        return _words(wanted[1] if wanted else gold) == _words(given[1] if given else answer)

    def _base(self, gold: str, answer: str) -> bool | None:
        wanted, given = _BASE.fullmatch(gold), _BASE.fullmatch(answer)
        if wanted is None and given is None:
            return None
        self._used("base")
        if wanted is None or given is None:
            return False
        same_digits = wanted[1].lstrip("0").lower() == given[1].lstrip("0").lower()
        return same_digits and wanted[2] == given[2]

    def _points(self, gold: str, answer: str) -> bool | None:
        """ABC is not ACB, as a product would be; an angle may be read from either side."""
        wanted, given = _POINTS.fullmatch(gold), _POINTS.fullmatch(answer)
        if wanted is None or given is None:
            return None
        self._used("text")
        spellings = (given[2], given[2][::-1]) if wanted[1] and given[1] else (given[2],)
        return wanted[2] in spellings

    def _ratio(self, gold: str, answer: str) -> bool | None:
        """1:2:3 is 2:4:6; two parts are a fraction."""
        x, y = split(gold, _COLON), split(answer, _COLON)
        if max(len(x), len(y)) < 3:
            return None
        self._used("structure")
        if len(x) != len(y) or len(x) > MAX_RATIO:
            return False
        return _every(
            self._values(rf"({a})\cdot({d})", rf"({b})\cdot({c})")
            for (a, c), (b, d) in combinations(zip(x, y, strict=True), 2)
        )

    def _quantities(self, gold: str, answer: str) -> bool | None:
        (x, unit_x), (y, unit_y) = units.split(gold), units.split(answer)
        if unit_x is None or unit_y is None:  # 12\text{ m} shows what the letter in 12m is
            x, y = units.without(unit_y, x), units.without(unit_x, y)
        radians = units.RADIAN in (unit_x, unit_y) or r"\pi" in (x + y)
        if units.DEGREE in (unit_x, unit_y) and unit_x != unit_y and radians:
            return self._algebra(*(_radians(v, u) for v, u in ((x, unit_x), (y, unit_y))))
        if unit_x and unit_y and not (unit_x.dimension and unit_y.dimension):
            # 5 ways are 5 different ways, but 5 pupils may be 5 people, and 5 kJ are not 5 J.
            alike = unit_x.words <= unit_y.words or unit_x.words >= unit_y.words
            return _every((self._values(x, y), True if alike else None))
        if unit_x and unit_y and unit_x != unit_y:
            if unit_x.dimension != unit_y.dimension:
                self._used("structure")
                return False
            return self._values(x, _times(unit_y.factor / unit_x.factor, y))
        verdict = self._values(x, y)
        if verdict is False and units.PERCENT in (unit_x, unit_y) and unit_x != unit_y:
            hundredth = Fraction(1, 100)
            if unit_x:
                return self._values(_times(hundredth, x), y)
            return self._values(x, _times(hundredth, y))
        return verdict

    def _values(self, gold: str, answer: str) -> bool | None:
        if gold == answer:
            return True
        verdict = exact.equal(gold, answer)
        if verdict is not None:
            self._used("exact")
            return verdict
        return self._algebra(gold, answer)

    def _algebra(self, gold: str, answer: str) -> bool | None:
        if self._symbolic is None:
            return None
        self._used("symbolic")
        return self._symbolic(gold, answer)


def _letter(match: re.Match[str]) -> str:
    return next(group for group in match.groups() if group).lower()


def _words(text: str) -> list[str]:
    words = re.findall(r"[^\W_]+|[<>/]", text.lower())
    articles = [word in _FILLER_WORDS for word in words[:-1]] + [False]  # but player A
    kept = [w.removesuffix("s") for w, article in zip(words, articles, strict=False) if not article]
    return kept if any(len(word) > 1 for word in kept) else words  # "b, a" has no article


def _times(factor: Fraction, text: str) -> str:
    return rf"\frac{{{factor.numerator}}}{{{factor.denominator}}}\cdot({text})"


def _radians(value: str, unit: units.Unit | None) -> str:
    return rf"({value})\cdot\frac{{\pi}}{{180}}" if unit == units.DEGREE else value


def _exact(node: Node) -> Fraction | None:
    return exact.value(node.text) if node.kind is Kind.SCALAR else None


def _key(node: Node) -> tuple[str | None, str | Fraction]:
    number = _exact(node)
    return (node.name, node.text if number is None else number)


def _named(node: Node) -> tuple[Node, ...]:
    """(x,y)=(1,2) as x=1, y=2; empty for other nodes."""
    names = node.name[1:-1].split(",") if node.name and node.name[0] == "(" else []
    if node.kind is not Kind.TUPLE or len(names) != len(node.parts):
        return ()
    pairs = zip(names, node.parts, strict=True)
    return tuple(replace(part, name=name, whole=f"{name}={part.whole}") for name, part in pairs)


def _assignments(nodes: tuple[Node, ...]) -> bool:
    """Whether all are x=..., y=... with different names."""
    names = [node.name for node in nodes]
    return len(names) > 1 and None not in names and len(set(names)) == len(names)


def _every(verdicts: Iterable[bool | None]) -> bool | None:
    """`all` for verdicts of which some are unknown (None)."""
    unknown = False
    for verdict in verdicts:
        if verdict is False:
            return False
        unknown |= verdict is None
    return None if unknown else True


def _some(verdicts: Iterable[bool | None]) -> bool | None:
    """`any` for verdicts of which some are unknown (None)."""
    unknown = False
    for verdict in verdicts:
        if verdict:
            return True
        unknown |= verdict is None
    return None if unknown else False

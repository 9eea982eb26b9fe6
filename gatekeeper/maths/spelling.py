r"""How each token of an answer is spelled: commands, words and signs.

\tfrac12 becomes \frac{1}{2}, and \text{Apples} becomes \text{apples}.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from gatekeeper.maths import units
from gatekeeper.maths.cursor import Cursor, is_space
from gatekeeper.maths.numerals import join_commas
from gatekeeper.maths.vocabulary import (
    DROPPED,
    FONTS,
    FRACTIONS,
    FUNCTIONS,
    MATRIX,
    PARTICLES,
    REJECTED,
    SAME,
    TENTATIVE,
    TEXT,
    WORDS,
)

__all__ = ["MAX_NESTING", "PUNCTUATION", "Speller", "TooDeepError"]

MAX_NESTING = 60  # levels of braces and brackets
PUNCTUATION = ".,;:"  # without meaning at the end of an answer

_GLUED = re.compile(rf"({'|'.join(FUNCTIONS)}|pi)([a-z])")  # sinx, sqrtx
_WORDLIKE = re.compile(  # short runs of letters are products of variables, except these
    r"[A-Za-z]{4,}|(?i:all|the|yes|no|odd|one|two|six|ten|for|any|not|per|day|red|men|min|hrs|mph)"
)
_UNITLIKE = re.compile(r"mm|(?i:cm|km|kg|ft|lbs?)")  # after a number: GMm, km and kg are products
_CURRENCIES = frozenset(("USD", "EUR", "GBP", "INR", "JPY", "CNY", "RMB", "CAD", "AUD"))
_CAPITAL = re.compile(r"\{[A-Z]\}")
_LEADING_NUMBER = re.compile(r"([\d.,]*\d)\s*(\D*)")
_RAISED_ORDINALS = {r"\text{st}", r"\text{nd}", r"\text{rd}", r"\text{th}"}
_EXCLAIMED = re.compile(r"\\text\{[^{}]{2,}\}")
_LABEL = re.compile(
    rf"(?i:(?!.*\b(?:not?|{'|'.join(REJECTED)}|{TENTATIVE}|except|without"
    r"|half|twice|thrice|triple)\b))"
    r"\s*[A-Za-z][A-Za-z ]+:\s*"
)
_BRACKETED = re.compile(r"[(\[][^()\[\]]*[)\]]|\\\{[^{}]*\\\}")
_ONE_TEXT = re.compile(r"\\text\{[^{}]*\}")
_TWO_POINTS = re.compile(r"[A-Z]{2}")
_JOINT = re.compile(r"([A-Za-z ]+?),?(?: (and|or)|(?<=,))")  # 5 apples and 6 pears
_OPERAND = re.compile(r"[\d$-]|\\(?:[$-]|frac)")
_MATHS_IN_TEXT = re.compile(r"[\d\\^=+<>*]")
_ODD_INDEX = re.compile(r"\[\d*[13579]\]")
_NEGATIVE_TERM = re.compile(r"-[^-+]+")
_SIGNS = {
    "*": r"\cdot", "<=": r"\leq", ">=": r"\geq", "!=": r"\neq", "%": r"\%", "~": "", '"': "",
}  # fmt: skip


class TooDeepError(Exception):
    """Arguments within arguments, as in x^x^x^..., which need no braces to nest."""


class Speller(Cursor):
    """One pass over the tokens."""

    def __init__(self, tokens: list[str], *, depth: int = 0, is_prose: bool = False) -> None:
        super().__init__(tokens)
        self.is_prose = is_prose  # in which "are" is a word
        self.depth = depth
        self.has_printed = False

    def spell(self) -> str:
        items: list[str] = []
        while self.at < len(self.tokens):
            items += self.items()
            self.at += 1  # a closing brace without an opening one
        items = _without_punctuation(items)
        inside = _joined(_merge_text(_over(items)))
        is_group = inside[:1] == "{" and sum(map(bool, items)) == 1
        return inside[1:-1] if is_group else inside

    def items(self) -> list[str]:
        """Items up to the closing brace of this group, or the end."""
        items: list[str] = []
        while self.at < len(self.tokens) and self.tokens[self.at] != "}":
            items.append(self.item(items[-1] if items else ""))
        return items

    def group(self) -> str:
        """The group whose opening brace is next, without its braces."""
        self.at += 1
        items = self.items()
        inside = _joined(_merge_text(_over(_without_punctuation(items) or items)))
        self.at += 1
        return inside

    def argument(self, *, whole_number: bool = False) -> str:
        """The next argument, without braces. `whole_number`: 10 in x^10, but 1 in \\frac12."""
        token = self.peek()
        if token in ("", "}"):
            return ""
        if token == "{":
            return self.group()
        if token == "(" and whole_number:
            return self.parenthesised()
        if token == "-" and whole_number:
            self.at += 1
            return "-" + ("" if self.peek() == "-" else self.argument(whole_number=True))
        if token[0].isalnum() and len(token) > 1 and not whole_number:
            self.tokens[self.at] = token[1:]
            return token[0]
        if token.isalpha() and len(token) > 1:
            self.tokens[self.at] = token[1:]
            return token[0]
        return self.item("")

    def parenthesised(self) -> str:
        """The items between the parentheses that open here."""
        self.at += 1
        items: list[str] = []
        while self.peek() not in ("", ")", "}"):
            nested = self.peek() == "("  # their depth is bounded by that of the brackets
            items.append(f"({self.parenthesised()})" if nested else self.item(""))
        self.at += self.peek() == ")"
        return _joined(_merge_text(items))

    def item(self, previous: str) -> str:
        """Spell the next token with its arguments."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise TooDeepError
        spelled = self._item(previous)
        self.depth -= 1
        self.has_printed |= spelled != ""
        return spelled

    def _item(self, previous: str) -> str:
        token = self.tokens[self.at]
        if token == "{":
            return self.braced(previous)
        self.at += 1
        if token[0] == "\\" and len(token) > 1:
            return self.command(token[1:])
        if token in ("^", "**"):
            power = self.argument(whole_number=True)
            return r"\text{th}" if power in _RAISED_ORDINALS else f"^{{{power}}}"
        if token == "_":
            return f"_{{{self.argument(whole_number=True)}}}"
        if token.isspace():
            return ""
        if token[0] == "." and token != ".":
            return r"\dots" if token[1] == "." else "0" + token
        return self.word(token) if token[0].isalpha() else _SIGNS.get(token, token)

    def braced(self, previous: str) -> str:
        r"""A group, without its braces where they are no part of a command, as in {5}."""
        inside = self.group()
        is_argument = re.fullmatch(r"\\[a-zA-Z]+", previous) and previous != r"\cdot"
        if is_argument:
            return f"{{{inside}}}" if inside else ""  # "" where it ends a name: \pi{}
        if "," in inside:
            is_set = "," in _BRACKETED.sub("", inside)  # without its backslashes
            return rf"\{{{inside}\}}" if is_set else inside
        is_apart = inside.isdecimal() and not previous[-1:].isdecimal()
        return inside if is_apart or len(inside) < 2 else f"{{{inside}}}"

    def word(self, token: str) -> str:
        lower = token.lower()
        if lower in WORDS and len(token) > 1:
            return self.root() if lower == "sqrt" else WORDS[lower]
        glued = _GLUED.fullmatch(token)
        if glued:
            return f"\\{glued[1]} {glued[2]}" if glued[1] != "sqrt" else rf"\sqrt{{{glued[2]}}}"
        if token in _CURRENCIES and (self.peek()[:1].isdigit() or self.follows_number(self.at - 2)):
            return rf"\text{{{lower}}}"  # EUR 5
        is_word = (
            _WORDLIKE.fullmatch(token)
            or (_UNITLIKE.fullmatch(token) and self.has_number())
            or (self.is_prose and len(token) > 2 and token.islower())
        )
        return rf"\text{{{lower}}}" if is_word else token

    def command(self, name: str) -> str:
        spell = _COMMANDS.get(name)
        return spell(self, name) if spell else SAME.get(name, "\\" + name)

    def font(self, _name: str) -> str:
        return self.group() if self.peek() == "{" else ""

    def dropped(self, name: str) -> str:
        self.at += name in ("left", "right") and self.peek() == "."
        return ""

    def colour(self, _name: str) -> str:
        self.argument()
        return self.argument() if self.peek() == "{" else ""

    def words(self, name: str) -> str:
        letter = "".join(self.tokens[self.at : self.at + 3])
        is_symbol = name == "mathrm" and _CAPITAL.fullmatch(letter) and not self.has_number()
        return self.group() if is_symbol else self.text()

    def vector(self, _name: str) -> str:
        vector = self.argument()
        if _TWO_POINTS.fullmatch(vector):
            return rf"\overrightarrow{{{vector}}}"  # AB is not BA
        return vector if len(vector) < 2 else f"{{{vector}}}"

    def hat(self, _name: str) -> str:
        inside = self.argument()
        return inside if inside and inside in "ijk" else rf"\hat{{{inside}}}"  # a unit vector

    def negation(self, name: str) -> str:
        if self.peek() != "=":
            return "\\" + name
        self.at += 1
        return r"\neq"

    def fraction(self, name: str) -> str:
        same = SAME.get(name, "\\" + name)
        return f"{same}{{{self.argument()}}}{{{self.argument()}}}"

    def letter(self, _name: str) -> str:
        return rf"\mathbb{{{self.argument()}}}"

    def environment(self, name: str) -> str:
        kind = re.sub(r"[^a-zA-Z*]", "", self.argument().replace(r"\text", ""))
        if kind == "array" and name == "begin" and self.peek() == "{":
            self.group()  # the column specification
        return rf"\{name}{{{MATRIX.get(kind, kind)}}}"

    def root(self, _name: str = "sqrt") -> str:
        index = ""
        if self.peek() == "[":
            self.at += 1
            items: list[str] = []
            while self.peek() not in ("", "]", "}"):
                items.append(self.item(""))
            self.at += self.peek() == "]"
            index = f"[{_joined(items)}]"
        inside = self.argument(whole_number=self.peek() == "(")
        if _ODD_INDEX.fullmatch(index) and _NEGATIVE_TERM.fullmatch(inside):
            return rf"(-\sqrt{index}{{{inside[1:]}}})"  # real, as in school
        return rf"\sqrt{index}{{{inside}}}"

    def labels_all(self) -> bool:
        """Whether the text that has ended here labels a whole answer, as in "Total: 5"."""
        rest = [token for token in self.tokens[self.at :] if not is_space(token)]
        return not self.has_printed and bool(rest) and ":" not in rest

    def text(self) -> str:
        """Spell a \\text{...} as the symbol that it names, as mathematics, or in lower case."""
        if self.peek() != "{":
            return self.argument()
        before = self.at - 2
        raw = self.raw_group()
        written = "".join(raw)
        content = " ".join(written.split()).rstrip(".;:").strip()
        word = content.strip(", ").lower()
        if word in WORDS:
            return WORDS[word]
        if (sign := written.strip()) and sign in "-+=<>:":
            return sign
        if not word:
            return "," if "," in content else ""
        if _LABEL.fullmatch(written) and self.labels_all():
            return ""
        is_after_number = self.follows_number(before)
        joint = _JOINT.fullmatch(content)
        if joint and is_after_number and _OPERAND.match(self.peek()):
            return rf"\text{{{units.symbol(joint[1])}}}{WORDS.get(joint[2], ',')}"
        return self.phrase(raw, content, is_after_number=is_after_number)

    def phrase(self, raw: list[str], content: str, *, is_after_number: bool) -> str:
        if number := _LEADING_NUMBER.fullmatch(content):
            unit = units.symbol(number[2])
            return f"{join_commas(number[1])}\\text{{{unit}}}".removesuffix(r"\text{}")
        is_unit = is_after_number and self.peek() != "_"  # A_{16} is a digit
        if is_unit and (product := units.spelled("".join(raw))):
            return product
        if _MATHS_IN_TEXT.search(content):
            return Speller(raw, depth=self.depth, is_prose=True).spell()
        return rf"\text{{{units.symbol(content) if is_unit else content.lower()}}}"


_COMMANDS: dict[str, Callable[[Speller, str], str]] = {
    **dict.fromkeys(DROPPED, Speller.dropped),
    **dict.fromkeys(FONTS, Speller.font),
    **dict.fromkeys(TEXT, Speller.words),
    **dict.fromkeys(("color", "textcolor", "colorbox"), Speller.colour),
    **dict.fromkeys(("vec", "overrightarrow"), Speller.vector),
    **dict.fromkeys(FRACTIONS, Speller.fraction),
    **dict.fromkeys(("mathbb", "Bbb"), Speller.letter),
    **dict.fromkeys(("begin", "end"), Speller.environment),
    "hat": Speller.hat,
    "not": Speller.negation,
    "sqrt": Speller.root,
}


def _joined(items: list[str]) -> str:
    """Concatenate, with a space only where two items would read as one token."""
    out: list[str] = []
    previous = ""
    for item in items:
        if not item:
            continue
        if previous and _would_merge(previous, item):
            out.append(" ")
        out.append(item)
        previous = item
    return "".join(out)


def _would_merge(left: str, right: str) -> bool:
    if right[0].isdigit():
        return left[-1].isdigit() or left == "."
    return right[0].isalpha() and re.search(r"\\[a-zA-Z]+$", left) is not None


def _without_punctuation(items: list[str]) -> list[str]:
    """Drop sentence punctuation that the spelling moved to the end, as in 42\\text{,}"""
    end = len(items)
    while end and not items[end - 1].strip(PUNCTUATION):
        end -= 1
    return items[:end]


def _over(items: list[str]) -> list[str]:
    r"""{a \over b} as a fraction, {n \choose k} as a binomial coefficient."""
    for name, fraction in ((r"\over", r"\frac"), (r"\choose", r"\binom")):
        if name in items:
            at = items.index(name)
            above, below = (_joined(_merge_text(part)) for part in (items[:at], items[at + 1 :]))
            return [f"{fraction}{{{above}}}{{{below}}}"]
    return items


def _is_in_words(before: str, letter: str) -> bool:
    return before.startswith(r"\text{") and len(letter) == 1 and letter.isalpha()


def _merge_text(items: list[str]) -> list[str]:
    r"""Join neighbouring words: \text{square}\text{inches} and sq\text{inches}."""
    out: list[str] = []
    for item in items:
        if not item:
            continue
        if out and item.startswith(r"\text{") and out[-1] in PARTICLES:
            out[-1] = f"\\text{{{out[-1]} {item[6:-1]}}}"
        elif item.startswith(r"\text{") and len(out) > 1 and _is_in_words(*out[-2:]):
            letter = out.pop()
            out[-1] = f"{out[-1][:-1]} {letter} {item[6:-1]}}}"  # \text{if}n\text{is even}
        elif out and _ONE_TEXT.fullmatch(out[-1]) and _ONE_TEXT.fullmatch(item):
            out[-1] = f"{out[-1][:-1]} {item[6:-1]}}}"
        elif out and out[-1] == "," and item in (",", r"\lor"):
            out[-1] = item  # "1, 2, and 3"
        elif item != "!" or not out or not _EXCLAIMED.fullmatch(out[-1]):
            out.append(item)
    return out

"""Spell the tokens of an answer in one canonical way, command by command and word by word."""

from __future__ import annotations

import re

from gatekeeper.maths import units
from gatekeeper.maths.numerals import join_commas
from gatekeeper.maths.vocabulary import (
    DROPPED,
    FONTS,
    FUNCTIONS,
    MATRIX,
    PARTICLES,
    REJECTED,
    SAME,
    SIZED,
    SPACING,
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
_SPACE = re.compile(rf"\s+|~|\\(?:{'|'.join(map(re.escape, sorted(SPACING)))})")
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
_RAISED_UNIT = re.compile(r"([A-Za-z /]+)\^\{?(\d)\}?")
_MATHS_IN_TEXT = re.compile(r"[\d\\^=+<>*]")
_ODD_INDEX = re.compile(r"\[\d*[13579]\]")
_NEGATIVE_TERM = re.compile(r"-[^-+]+")


class TooDeepError(Exception):
    """Arguments within arguments, as in x^x^x^..., which need no braces to nest."""


class Speller:
    """One pass over the tokens; `at` is the next token."""

    def __init__(self, tokens: list[str], *, depth: int = 0, is_prose: bool = False) -> None:
        self.tokens = tokens
        self.is_prose = is_prose  # in which "are" is a word
        self.at = 0
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

    def skip_space(self) -> None:
        while self.at < len(self.tokens) and self.tokens[self.at].isspace():
            self.at += 1

    def peek(self) -> str:
        self.skip_space()
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

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
            inside = self.group()
            if not inside:
                return ""  # it ends the name of a command: \pi{}
            is_argument = re.fullmatch(r"\\[a-zA-Z]+", previous) and previous != r"\cdot"
            if inside.isdecimal() and not is_argument and not previous[-1:].isdecimal():
                return inside
            if "," in inside and not is_argument:
                is_set = "," in _BRACKETED.sub("", inside)  # without its backslashes
                return rf"\{{{inside}\}}" if is_set else inside
            return f"{{{inside}}}" if is_argument or len(inside) > 1 else inside
        self.at += 1
        if token[0] == "\\" and len(token) > 1:
            return self.command(token[1:])
        if token in ("^", "**"):
            power = self.argument(whole_number=True)
            return r"\text{th}" if power in _RAISED_ORDINALS else f"^{{{power}}}"
        if token == "_":
            return f"_{{{self.argument(whole_number=True)}}}"
        if token.isspace() or token in ("~", '"'):
            return ""
        if token[0] == "." and token != ".":
            return r"\dots" if token[1] == "." else "0" + token
        if token[0].isalpha():
            return self.word(token)
        plain = {"*": r"\cdot", "<=": r"\leq", ">=": r"\geq", "!=": r"\neq", "%": r"\%"}
        return plain.get(token, token)

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
        if name in SIZED:
            self.at += self.peek() == "*"
            start, has_printed = self.at, self.has_printed
            self.argument()
            self.tokens[start : self.at] = [" "] * (self.at - start)  # its size is no number
            self.has_printed = has_printed
            return ""
        if name in FONTS:
            return self.group() if self.peek() == "{" else ""
        if name in DROPPED:
            if name in ("left", "right") and self.peek() == ".":
                self.at += 1
            return ""
        if name in ("color", "textcolor", "colorbox"):
            self.argument()
            return self.argument() if self.peek() == "{" else ""
        if name in TEXT:
            letter = "".join(self.tokens[self.at : self.at + 3])
            is_symbol = name == "mathrm" and _CAPITAL.fullmatch(letter) and not self.has_number()
            return self.group() if is_symbol else self.text()
        if name in ("vec", "overrightarrow"):
            vector = self.argument()
            if _TWO_POINTS.fullmatch(vector):
                return rf"\overrightarrow{{{vector}}}"  # AB is not BA
            return vector if len(vector) < 2 else f"{{{vector}}}"
        if name == "hat" and (inside := self.argument()):
            return inside if inside in "ijk" else rf"\hat{{{inside}}}"  # a unit vector
        if name == "not" and self.peek() == "=":
            self.at += 1
            return r"\neq"
        name = SAME.get(name, "\\" + name)
        if name in (r"\frac", r"\binom"):
            return f"{name}{{{self.argument()}}}{{{self.argument()}}}"
        if name == r"\sqrt":
            return self.root()
        if name == r"\mathbb":
            return rf"\mathbb{{{self.argument()}}}"
        if name in (r"\begin", r"\end"):
            kind = self.argument()
            kind = re.sub(r"[^a-zA-Z*]", "", kind.replace(r"\text", ""))
            if kind == "array" and name == r"\begin" and self.peek() == "{":
                self.group()  # the column specification
            return f"{name}{{{MATRIX.get(kind, kind)}}}"
        return name

    def root(self) -> str:
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

    def has_number(self) -> bool:
        """Whether there is a number before the next token, so that a letter may be its unit."""
        return any(token[0].isdigit() for token in self.tokens[: self.at])

    def follows_number(self, at: int) -> bool:
        r"""Whether a number may end here, perhaps with words: 5\text{kg}, but not \text{is}."""
        while at >= 0:
            token = self.tokens[at]
            begin = self.begin_of_group(at) if token == "}" else at
            if token == "}" and self.tokens[begin - 1][1:] in TEXT:
                at = begin - 2
            elif _SPACE.fullmatch(token):
                at -= 1
            else:
                return token == "}" or token[-1].isdigit()
        return False

    def begin_of_group(self, at: int) -> int:
        """Where the brace opens that closes here."""
        depth = 0
        while at > 0:
            depth += {"}": 1, "{": -1}.get(self.tokens[at], 0)
            if depth == 0:
                break
            at -= 1
        return at

    def labels_all(self) -> bool:
        """Whether the text that has ended here labels a whole answer, as in "Total: 5"."""
        rest = [token for token in self.tokens[self.at :] if not _SPACE.fullmatch(token)]
        return not self.has_printed and bool(rest) and ":" not in rest

    def text(self) -> str:
        """Spell a \\text{...} as the symbol that it names, as mathematics, or in lower case."""
        if self.peek() != "{":
            return self.argument()
        begin = self.at + 1
        begins = self.at - 2
        depth = 0
        while self.at < len(self.tokens):
            depth += {"{": 1, "}": -1}.get(self.tokens[self.at], 0)
            self.at += 1
            if depth == 0:
                break
        raw = self.tokens[begin : self.at - (depth == 0)]
        content = " ".join("".join(raw).split()).rstrip(".;:").strip()
        word = content.strip(", ").lower()
        if word in WORDS:
            return WORDS[word]
        if (sign := "".join(raw).strip()) and sign in "-+=<>:":
            return sign
        if not word:
            return "," if "," in content else ""
        if _LABEL.fullmatch("".join(raw)) and self.labels_all():
            return ""
        joint = _JOINT.fullmatch(content)
        if joint and self.follows_number(begins) and _OPERAND.match(self.peek()):
            return rf"\text{{{units.symbol(joint[1])}}}{WORDS.get(joint[2], ',')}"
        number = _LEADING_NUMBER.fullmatch(content)
        if number:
            unit = units.symbol(number[2])
            return f"{join_commas(number[1])}\\text{{{unit}}}".removesuffix(r"\text{}")
        is_unit = self.follows_number(begins) and self.peek() != "_"  # A_{16} is a digit
        if is_unit and (product := units.spelled("".join(raw))):
            return product
        power = _RAISED_UNIT.fullmatch(content)
        if power:
            return f"\\text{{{power[1].lower()}}}^{{{power[2]}}}"
        if _MATHS_IN_TEXT.search(content):
            return Speller(raw, depth=self.depth, is_prose=True).spell()
        return rf"\text{{{units.symbol(content) if is_unit else content.lower()}}}"


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

r"""One canonical spelling of LaTeX for all spellings of an answer, in linear time.

"\dfrac12" becomes "\frac{1}{2}", and "10,\!080" becomes "10080". Only the spelling changes; other
modules read units, numbers and lists. The result has a space only where two tokens would merge.
"""

from __future__ import annotations

import re
import unicodedata

from gatekeeper.maths.numerals import in_words, join_commas, join_groups, repeat, scientific
from gatekeeper.maths.phrases import in_symbols
from gatekeeper.maths.prose import in_text
from gatekeeper.maths.spelling import MAX_NESTING, PUNCTUATION, Speller, TooDeepError
from gatekeeper.maths.vocabulary import BREAKS, GLYPHS, SPACING, SUBSCRIPT, SUPERSCRIPT

__all__ = ["MAX_LENGTH", "MAX_NESTING", "normalise"]

MAX_LENGTH = 1500  # characters; longer answers are not compared

_CONTROLS = dict.fromkeys((*range(32), 127), " ")
_RAISED = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_LOWERED = re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_GLYPH_ROOT = re.compile(r"([√∛])\s?(\d+(?:\.\d+)?)")
_DOUBLED = re.compile(r"(?<!\\)\\\\(?=[a-zA-Z(\[)\],;:!>])")
_KERN = re.compile(  # \kern-3pt, \mskip 3mu, \hspace{1em}: a space with its size; a label
    r"\\(?:[hmv]space|tag|label)\*?\s?\{[^{}]*\}|\\[hv]?phantom\s?\{(?:[^{}]|\{[^{}]*\})*\}|\\text\{\s*\}"
    r"|\\[hmv]?(?:kern|skip)\s?[-+]?[\d.]{1,9}\s?(?:[ecm]m|ex|pt|mu|pc|in|bp|sp)(?![a-zA-Z])"
)
_FACTORIAL = re.compile(r"(?<=\d)!=")  # 5!=120; but in x!=5 it means "is not"
_DOLLAR = re.compile(r"\A\s*-?\$(?=\.?\d[^$]*\Z)")  # $12.50, which opens no formula
_DELIMITER = re.compile(r"(?<!\\)\$|(?<!\\)\\[()\[\]]")
_ONLY = re.compile(r"(?<=.)(?:\\text\{only\}\Z| only(?=\}\Z))")  # I and II only
_TOKEN = re.compile(
    r"\\[a-zA-Z]+|\\.|\d+(?:\.\d+)?|(?<![A-Za-z])\.\d+|[A-Za-z]+|\s+|\*\*|[<>]=|!=|\.\.\.+|.",
    re.DOTALL,
)


def normalise(text: str) -> str | None:
    """The canonical spelling of an answer.

    Parameters
    ----------
    text : str
        LaTeX or plain text, at most `MAX_LENGTH` characters.

    Returns
    -------
    str or None
        It may be empty. None for a text that is too long, too deeply nested, or code.
    """
    if len(text) > MAX_LENGTH or "__" in text:
        return None
    if text.isdecimal() and text.isascii():
        return text
    text = repeat(_characters(text))
    if "!=" in text:
        text = _FACTORIAL.sub("! =", text)
    if r"\begin" not in text:
        text = _DOUBLED.sub(r"\\", text)  # "\\frac": escaped once too often
    text = _DOLLAR.sub(lambda m: m[0].replace("$", r"\$"), text)
    text = join_commas(join_groups(_DELIMITER.sub(" ", text)))
    text = _KERN.sub(" ", text)
    tokens = _without_ends(_TOKEN.findall(scientific(text)))
    plain = "".join(tokens)
    if (worded := in_text(plain)) != plain:
        tokens = _TOKEN.findall(worded)
    if _nesting(tokens) > MAX_NESTING:
        return None
    try:
        spelled = Speller(tokens).spell()
    except TooDeepError:
        return None
    if "only" in spelled:
        spelled = _ONLY.sub("", spelled)
    return in_words(in_symbols(spelled)).removeprefix("+")


def _characters(text: str) -> str:
    if text.isascii():
        return text.translate(_CONTROLS)
    text = _GLYPH_ROOT.sub(r"\1{\2}", text)
    text = _RAISED.sub(lambda m: f"^{{{m[0].translate(SUPERSCRIPT)}}}", text)
    text = _LOWERED.sub(lambda m: f"_{{{m[0].translate(SUBSCRIPT)}}}", text)
    text = unicodedata.normalize("NFKC", text.translate(GLYPHS)).replace("\u2044", "/")
    kept = []
    for char in text:
        category = unicodedata.category(char)
        if category == "Cf":
            continue  # zero-width and direction marks
        if category == "Nd":
            char = str(unicodedata.decimal(char))  # in any script
        if category == "Sc" and char != "$":
            char = rf"\text{{{unicodedata.name(char).lower()}}}"  # the euro sign
        kept.append("\ufffd" if category == "Cs" else " " if category in ("Cc", "Zs") else char)
    return "".join(kept)


def _without_ends(tokens: list[str]) -> list[str]:
    """Drop the space at both ends, and the punctuation of the sentence at the end.

    It works on tokens, because the comma of a last `\\,` belongs to its backslash.
    """
    begin, end = 0, len(tokens)
    while begin < end and (_is_space(tokens[begin]) or tokens[begin] in ",:"):
        begin += 1
    while end > begin and (_is_space(tokens[end - 1]) or tokens[end - 1] in PUNCTUATION):
        end -= 1
    return tokens[begin:end]


def _is_space(token: str) -> bool:
    """White space, the stars of Markdown, and a backslash that lost its space."""
    if token[0] == "\\":
        return not token[1:] or token[1:] in SPACING or token[1:] in BREAKS
    return token == "~" or not token.strip("*` \n")


def _nesting(tokens: list[str]) -> int:
    """The deepest nesting; a bracket does not close a brace, as an interval may mix brackets."""
    braces = brackets = deepest = 0
    for token in tokens:
        if token == "{":
            braces += 1
        elif token == "}":
            braces = max(0, braces - 1)
        elif token in ("(", "[", r"\{"):
            brackets += 1
        elif token in (")", "]", r"\}"):
            brackets = max(0, brackets - 1)
        deepest = max(deepest, braces + brackets)
    return deepest

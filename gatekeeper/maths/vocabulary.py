"""Tables of spellings with equal meaning: glyphs, commands and words.

\\dfrac is spelled as \\frac, and "five" is the number 5.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = [
    "BREAKS",
    "CHANGES",
    "COUNTS",
    "DOUBTFUL",
    "DROPPED",
    "FONTS",
    "FRACTIONS",
    "FUNCTIONS",
    "GLYPHS",
    "GREEK",
    "MATRIX",
    "MULTIPLES",
    "NEGATIONS",
    "ORDINALS",
    "PARTICLES",
    "PARTS",
    "PRECISION",
    "REJECTED",
    "SAME",
    "SPACING",
    "SUBSCRIPT",
    "SUPERSCRIPT",
    "TENS",
    "TENTATIVE",
    "TEXT",
    "WORDS",
    "words_of",
]

words_of: Callable[[str], list[str]] = re.compile(r"\S+").findall

SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
SUBSCRIPT = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_VULGAR = dict(
    zip(
        "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞",
        words_of("1/2 1/3 2/3 1/4 3/4 1/5 2/5 3/5 4/5 1/6 5/6 1/8 3/8 5/8 7/8"),
        strict=True,
    )
)
# Applied before NFKC, which would turn 3½ into 31/2.
GLYPHS = str.maketrans(
    {glyph: rf"\frac{{{v[0]}}}{{{v[2]}}}" for glyph, v in _VULGAR.items()}
    | {
        "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "‒": "-", "―": "-", "÷": "/",
        "×": r"\cdot ", "·": r"\cdot ", "⋅": r"\cdot ", "∙": r"\cdot ", "√": r"\sqrt ",
        "∞": r"\infty ", "°": r"^\circ ", "º": r"^\circ ", "≤": r"\leq ", "≥": r"\geq ",
        "≠": r"\neq ", "∪": r"\cup ", "∩": r"\cap ", "±": r"\pm ", "∓": r"\mp ",
        "∈": r"\in ", "∅": r"\emptyset ", "∛": r"\sqrt[3] ",
        "ℝ": r"\mathbb{R} ", "ℤ": r"\mathbb{Z} ", "ℚ": r"\mathbb{Q} ", "…": r"\dots ",
        "⟨": r"\langle ", "⟩": r"\rangle ", "∠": r"\angle ", "′": "'", "’": "'", "″": "''",
        "π": r"\pi ", "θ": r"\theta ", "α": r"\alpha ", "β": r"\beta ", "γ": r"\gamma ",
        "\u00b5": r"\mu ", "μ": r"\mu ", "\u2126": r"\Omega ", "Ω": r"\Omega ", "δ": r"\delta ",
        "Δ": r"\Delta ", "σ": r"\sigma ", "ρ": r"\rho ", "τ": r"\tau ", "⩾": r"\geq ",
        "⩽": r"\leq ", "¢": r"\text{cents} ", "✓": "", "✔": "", "✅": "",
        "≈": r"\approx ", "≡": r"\equiv ", "⌊": r"\lfloor ", "⌋": r"\rfloor ", "⌈": r"\lceil ",
        "⌉": r"\rceil ", "→": r"\to ", "⇒": r"\Rightarrow ", "∖": r"\setminus ", "∆": r"\Delta ",
        "△": r"\triangle ", "ε": r"\epsilon ", "∧": ",", "∨": r"\lor ", "ℕ": r"\mathbb{N} ",
        "ℂ": r"\mathbb{C} ", "∶": ":", "℃": r"^\circ C", "℉": r"^\circ F",
        "٫": ".", "。": ".", "٬": ",", "λ": r"\lambda ", "φ": r"\phi ", "ω": r"\omega ",
    }
)  # fmt: skip

SAME = {
    "dfrac": r"\frac", "tfrac": r"\frac", "cfrac": r"\frac", "dbinom": r"\binom",
    "tbinom": r"\binom", "nicefrac": r"\frac", "sfrac": r"\frac",
    "times": r"\cdot", "ast": r"\cdot", "div": "/", "le": r"\leq",
    "leqslant": r"\leq", "ge": r"\geq", "geqslant": r"\geq", "ne": r"\neq", "lt": "<",
    "gt": ">", "lbrace": r"\{", "rbrace": r"\}", "lbrack": "[", "rbrack": "]", "lvert": "|",
    "rvert": "|", "vert": "|", "mid": "|", "varnothing": r"\emptyset", "degree": r"^{\circ}",
    "varphi": r"\phi", "varepsilon": r"\epsilon", "ldots": r"\dots", "cdots": r"\dots",
    "dotsc": r"\dots", "dotsb": r"\dots", "land": ",", "vee": r"\lor", "imath": "i", "jmath": "j",
    "colon": ":", "infin": r"\infty", "|": "|", "backslash": r"\setminus",
    "smallsetminus": r"\setminus", "&": ",", "pounds": r"\text{pound sign}",
    "euro": r"\text{euro sign}", "cents": r"\text{cent}", "deg": r"^{\circ}", "bigcup": r"\cup",
    "tg": r"\tan", "ctg": r"\cot", "arctg": r"\arctan",
    "bigcap": r"\cap", "lg": r"\log_{10}", "geqq": r"\geq", "leqq": r"\leq",
}  # fmt: skip
FRACTIONS = frozenset(words_of("frac dfrac tfrac cfrac nicefrac sfrac binom dbinom tbinom"))
# Horizontal space: nothing is printed.
SPACING = frozenset(
    words_of(
        "quad qquad space nobreakspace thinspace medspace thickspace negthinspace negmedspace "
        "negthickspace enspace enskip hfil hfill relax strut mathstrut allowbreak nobreak "
        "nolinebreak noindent , ; : ! >"
    )
) | {" ", "\n", "\t"}
# Ends of lines: separators between two answers, space at the ends of an answer.
BREAKS = frozenset(words_of("\\ newline linebreak par smallskip medskip bigskip cr"))
# Fonts and boxes: their argument is printed.
FONTS = frozenset(
    words_of(
        "mathbf boldsymbol bm mathit mathsf mathtt mathnormal boxed fbox framebox underline "
        "ensuremath"
    )
)
# Spacing, sizes and fonts.
DROPPED = SPACING | frozenset(
    words_of(
        "left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr Biggl Biggr "
        "displaystyle textstyle scriptstyle limits bf it rm checkmark therefore blacksquare square "
        "tiny scriptsize footnotesize small normalsize large Large LARGE huge Huge"
    )
)
# Commands whose argument is words.
TEXT = frozenset(
    words_of("text textbf textit textrm textsf texttt textnormal mathrm mbox hbox operatorname")
)
# What follows a number and makes another one of it, as patterns: 5 million, 5 thirds.
MULTIPLES = "hundred|thousand|[mb]illion|trillion|dozen"
CHANGES = (
    r"squared|cubed|factorial|(?:in )?base|choose|point|plus|minus|divided by|to the power"
    r"|or (?:more|less|fewer|greater|higher)"
)
# After "to": how an answer is rounded, "to the nearest tenth", "to 2 decimal places".
PRECISION = r"(?:the nearest|\S{1,9} (?:decimal|significant|d\.?p|s\.?f))\b"
# What is said of a number that is no answer.
REJECTED = (
    *("wrong", "incorrect", "false", "untrue", "invalid", "extraneous", "reject", "rejected"),
    *("discard", "discarded", "eliminated", "excluded"),
)
# What names a number that is tried, and may be no answer.
TENTATIVE = (
    "guess(?:es)?|attempts?|tr(?:y|ies)|mistake|upper bound|lower bound"
    "|(?:first|old|initial|original|previous|earlier) (?:answer|estimate|result|solution|value)"
)
FUNCTIONS = words_of(
    "arcsin arccos arctan sinh cosh tanh sin cos tan cot sec csc cis log exp sqrt ln"
)
COUNTS = words_of(
    "zero one two three four five six seven eight nine ten eleven twelve "
    "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
TENS = words_of("twenty thirty forty fifty sixty seventy eighty ninety")
_ODD = {"five": "fif", "eight": "eigh", "nine": "nin", "twelve": "twelf"}
ORDINALS = {"third": 3} | {f"{_ODD.get(name, name)}th": n for n, name in enumerate(COUNTS) if n > 3}
ORDINALS |= {f"{name[:-1]}ieth": 10 * n for n, name in enumerate(TENS, start=2)}
ORDINALS |= {"hundredth": 100, "thousandth": 1000, "millionth": 10**6, "billionth": 10**9}
PARTS = "|".join(["quarter", "halve", *ORDINALS])
# Before a number: what makes it no answer, as in "the value is not 5" and "the square of x is 5".
NEGATIONS = (
    r"not?|never|cannot|none|isn't|aren't|if|unless|than|at least|at most|half|twice|double|triple"
    r"|thrice|(?<!of )times|minus|plus|squared|cubed|or|but|except|neither"
    r"|(?:square|cube|root|opposite|negative|reciprocal|inverse|factorial|multiple|power|log) of"
    r"|(?:opposite|negative|reciprocal|inverse|its (?:square|cube|root)) is"
    rf"|(?:an?|one|two|three) (?:{PARTS})s? of|{'|'.join(REJECTED)}"
)
# After a number: 5 more than x, 5 doubled, 5 to the power of two. Perhaps 5 of something, perhaps
# another number. Of the letters, which may be variables, those that are no symbol of a unit.
DOUBTFUL = {*COUNTS, *TENS, *REJECTED} - {"ten"}  # 5 tens
DOUBTFUL |= frozenset(
    words_of(
        "than to through choose mod modulo or no double doubled twice thrice triple tripled "
        "halved half root power inverse reciprocal below minus plus over divided by hex "
        "hexadecimal binary octal dozen hundred thousand million quadrillion sin cos tan log ln "
        "sqrt excluded impossible cannot fails unlikely itself mil grand "
        "a b c d e f i j n o p q r t u v w x y z"
    )
)
GREEK = words_of("alpha beta gamma delta epsilon theta lambda sigma rho tau phi omega")
# Words that stand for a symbol.
WORDS = {
    "and": ",", "or": r"\lor", "pi": r"\pi", "infinity": r"\infty", "infty": r"\infty",
    "inf": r"\infty",
    **{name: "\\" + name for name in GREEK},
    "percent": r"\%", "degrees": r"^{\circ}", "degree": r"^{\circ}",
    "e": "e", "i": "i", "tg": r"\tan", "ctg": r"\cot", "arctg": r"\arctan",
    **{word: str(number) for number, word in enumerate(COUNTS)},
    **{name: "\\" + name for name in FUNCTIONS},
}  # fmt: skip
MATRIX = dict.fromkeys(words_of("bmatrix Bmatrix matrix smallmatrix"), "pmatrix")
# Short words that belong to the text after them.
PARTICLES = frozenset(words_of("an of in is to on at by sq cu"))

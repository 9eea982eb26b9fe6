"""Numbers as they are written: thousands in groups, repeating decimals, powers of ten."""

from __future__ import annotations

import re

__all__ = ["join_commas", "join_groups", "repeat", "scientific"]

_GROUPED = re.compile(  # 10,\!080 and its spellings, one separator throughout
    r"(?<![\d.])[1-9]\d{0,2}(?:(?:,\s?\\!\s?\d{3})+|(?:\{,\}\d{3})+|(?:\\[,;:]\s?\d{3})+"
    r"|(?:~\d{3})+|(?: \d{3})+(?!\s*/))(?!\d)"
)
_COMMAS = re.compile(r"\\[{}]|[()\[\]]|(?<![\d.])(?<!(?<!\\),)[1-9]\d{0,2}(?:,\d{3})+(?!,?\d)")
_SCIENTIFIC = re.compile(  # but 2e-1 and 2e+1 are sums
    r"(?<![\w.])(?:(\d+\.\d+)[eE]\+?(-?\d{1,3})|(\d+)[eE](\d{1,3}))(?!\w|\.\d)"
)
_TIMES = re.compile(r"(?<=\d)\s?x\s?(?=10\s?\^)")
_DOTS = r"(?:\.{3,}|\\[lc]?dots(?![a-z]))"
_CONTINUED = re.compile(rf"(?<![\d.])(\d*)\.(\d+){_DOTS}(?!\s*\d)")  # 0.1666..., 3.14159...
_PERIOD = re.compile(r"(\d{0,9}?)(?:(\d)\2{2,}|(\d{2,9}?)\3+)")
_BARRED = re.compile(r"(\d\.\d*)\\(?:bar|dot)\s?\{?(\d+)(?:\}|(?!\d))")


def repeat(text: str) -> str:
    r"""0.1666... and 0.1\bar{6} as 0.1\overline{6}."""
    return _CONTINUED.sub(_continue, _BARRED.sub(r"\1\\overline{\2}", text))


def _continue(decimal: re.Match[str]) -> str:
    """0.1666... with the period that its digits show; without one, they are all there is."""
    repeating = _PERIOD.fullmatch(decimal[2])
    if not repeating:
        return f"{decimal[1]}.{decimal[2]}"
    return rf"{decimal[1] or 0}.{repeating[1]}\overline{{{repeating[2] or repeating[3]}}}"


def join_groups(text: str) -> str:
    r"""Read 10\,080 and its spellings as one number."""
    return _GROUPED.sub(lambda m: re.sub(r"\D", "", m[0]), text)


def join_commas(text: str) -> str:
    """Read 1,234 as one number, except between brackets, where commas separate."""
    depth = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal depth
        found = match[0]
        if found[0].isdigit():
            return found if depth else found.replace(",", "")
        depth = max(0, depth + (1 if found[-1] in "{([" else -1))
        return found

    return _COMMAS.sub(replace, text)


def scientific(text: str) -> str:
    """Read 6.02e23 and 6.02 x 10^23 as products."""
    return _SCIENTIFIC.sub(r"\1\3\\cdot10^{\2\4}", _TIMES.sub(r"\\cdot ", text))

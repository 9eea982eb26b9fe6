"""Arithmetic and algebra with worked steps and a final `\\boxed{...}`.

A family is `(rng, level) -> Draft`, level 1 (easy) to 7. Results are integers or reduced fractions.
"""

import math
import random
from collections.abc import Callable
from fractions import Fraction

from tools.bundled.draft import Draft

QUESTIONS = ("Compute {e}.", "What is {e}?", "Find the value of {e}.", "Calculate {e}.")
PEOPLE = ("Ana", "Ben", "Mia", "Tom", "Eva", "Leo")
THINGS = ("apples", "coins", "books", "cards", "pens", "stamps")


def latex(value: Fraction | int) -> str:
    """An integer, or a reduced fraction with the sign in front."""
    value = Fraction(value)
    if value.denominator == 1:
        return str(value.numerator)
    sign = "-" if value < 0 else ""
    return f"{sign}\\frac{{{abs(value.numerator)}}}{{{value.denominator}}}"


def _draft(prompt: str, steps: list[str], result: Fraction | int) -> Draft:
    gold = latex(result)
    work = [
        step.replace(" ", "") for step in steps
    ]  # a space before a digit would be a token of its own
    return Draft(prompt, "math", "\n".join([*work, f"\\boxed{{{gold}}}"]), gold=gold)


def _ask(rng: random.Random, expression: str) -> str:
    return rng.choice(QUESTIONS).format(e=expression)


def _number(rng: random.Random, digits: int) -> int:
    return rng.randint(10 ** (digits - 1) + (digits == 1), 10**digits - 1)


def _op(value: int) -> str:
    return f"- {-value}" if value < 0 else f"+ {value}"


def _reduce(top: int, bottom: int) -> list[str]:
    """The step that reduces top / bottom."""
    common = math.gcd(top, bottom)
    return (
        [f"gcd={common}"]
        if common == 1
        else [f"gcd={common}: {top // common} / {bottom // common}"]
    )


def total(rng: random.Random, level: int) -> Draft:
    """Sums and differences of `level` + 1 numbers, one running total per step."""
    digits = rng.randint(1, 3) if level < 4 else rng.randint(2, 4)
    running = _number(rng, digits)
    terms, steps = [str(running)], []
    for _ in range(level):
        term = _number(rng, rng.randint(max(1, digits - 1), digits)) * rng.choice((1, 1, -1))
        terms.append(_op(term))
        steps.append(f"{running} {_op(term)} = {running + term}")
        running += term
    return _draft(_ask(rng, " ".join(terms)), steps, running)


def _multiply(a: int, b: int) -> list[str]:
    """Steps of a * b, one digit of b at a time."""
    size = abs(b)
    parts = [int(d) * 10**i for i, d in enumerate(reversed(str(size))) if d != "0"]
    if len(parts) < 2:
        return [f"{a} * {b} = {a * b}"]
    steps, running = [], 0
    for i, part in enumerate(parts):
        steps.append(f"{a} * {part} = {a * part}")
        if i:
            steps.append(f"{running} + {a * part} = {running + a * part}")
        running += a * part
    return steps


def product(rng: random.Random, level: int) -> Draft:
    """Long multiplication; the number of digits grows with the level."""
    digits = ((1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (4, 2), (3, 3))[level - 1]
    a, b = _number(rng, digits[0]), _number(rng, digits[1])
    sign = rng.choice(("\\times", "\\cdot"))
    return _draft(_ask(rng, f"{a} {sign} {b}"), _multiply(a, b), a * b)


def fraction_sum(rng: random.Random, level: int) -> Draft:
    """Sums of two or three fractions over a common denominator."""
    top = (5, 8, 12, 15, 6, 9, 12)[level - 1]
    terms: list[tuple[int, int]] = []
    for i in range(2 if level < 5 else 3):
        bottom = rng.randint(2, top)
        terms.append((rng.randint(1, 2 * bottom - 1) * (rng.choice((1, -1)) if i else 1), bottom))
    common = math.lcm(*(bottom for _, bottom in terms))
    said, steps, running = "", [f"lcm={common}"], 0
    for i, (a, bottom) in enumerate(terms):
        piece = f"\\frac{{{abs(a)}}}{{{bottom}}}"
        said += piece if i == 0 else f" {'-' if a < 0 else '+'} {piece}"
        scaled = a * (common // bottom)
        steps.append(f"{a} * {common // bottom} = {scaled}")
        if i:
            steps.append(f"{running} {_op(scaled)} = {running + scaled}")
        running += scaled
    result = Fraction(running, common)
    return _draft(_ask(rng, said), [*steps, *_reduce(running, common)], result)


def _side(slope: int, constant: int) -> str:
    head = "x" if slope == 1 else "-x" if slope == -1 else f"{slope}x"
    return head if constant == 0 else f"{head} {_op(constant)}"


def equation(rng: random.Random, level: int) -> Draft:
    """Linear equations in x: ax + b = c, then x on both sides, then brackets."""
    wide = 6 + 3 * level
    a = rng.choice((-1, 1)) * rng.randint(2, wide)
    b = rng.randint(-wide, wide)
    c = 0 if level < 3 else rng.randint(-wide, wide)
    if a == c:
        c += 1
    x = rng.randint(-wide, wide)
    # Half of the harder equations have a result that need not be an integer.
    d = (a - c) * x + b if level < 4 or rng.random() < 0.5 else rng.randint(-9 * level, 9 * level)
    steps = []
    left = _side(a, b)
    if level >= 5:
        outer, inner, rest = rng.randint(2, 9), rng.randint(-9, 9), rng.randint(-20, 20)
        d += outer * inner + rest - b
        a, b = outer, outer * inner + rest
        if a == c:
            c += 1
        left = f"{outer}({_side(1, inner)}) {_op(rest)}"
        steps = [f"{outer} * {inner} = {outer * inner}", f"{outer * inner} {_op(rest)} = {b}"]
    right = str(d) if c == 0 else _side(c, d)
    slope, value = a - c, d - b
    if c:
        steps.append(f"{a} {_op(-c)} = {slope}")
    if b:
        steps.append(f"{d} {_op(-b)} = {value}")
    result = Fraction(value, slope)
    steps += [f"{value} / {slope}"] + ([] if result.denominator == 1 else _reduce(value, slope))
    prompt = rng.choice(("Solve {e} for x.", "Find x if {e}.", "What is x when {e}?"))
    return _draft(prompt.format(e=f"{left} = {right}"), steps, result)


def polynomial(rng: random.Random, level: int) -> Draft:
    """Horner's rule; degree 1 to 4."""
    degree = (1, 2, 2, 3, 3, 4, 4)[level - 1]
    top = (9, 6, 12, 6, 11, 6, 9)[level - 1]
    x = rng.randint(2, top) * (1 if level == 1 else rng.choice((1, -1)))
    coefficients = [rng.randint(2, 9)] + [
        rng.choice((1, -1)) * rng.randint(2, 12) for _ in range(degree)
    ]
    said, steps, running = "", [], 0
    for i, c in enumerate(coefficients):
        power = degree - i
        unit = "" if power == 0 else "x" if power == 1 else f"x^{power}"
        said += f"{c}{unit}" if i == 0 else f" {_op(c)}{unit}"
        if i:
            steps.append(f"{running} * {x} = {running * x}")
            steps.append(f"{running * x} {_op(c)} = {running * x + c}")
        running = running * x + c
    prompt = rng.choice(
        ("Evaluate {e} at x = {x}.", "What is {e} for x = {x}?", "Let x = {x}. Find {e}.")
    )
    return _draft(prompt.format(e=said, x=x), steps, running)


def remainder(rng: random.Random, level: int) -> Draft:
    """Long division, one digit of the dividend at a time."""
    n = _number(rng, level + 1)
    m = rng.randint(3, 9) if level < 3 else rng.randint(6, 10 * level - 10)
    steps, rest = [], 0
    for digit in str(n):
        value = rest * 10 + int(digit)
        rest = value % m
        if value >= m:
            steps.append(f"{value} - {value - rest} = {rest}")
    prompt = rng.choice(
        (
            "Find the remainder when {n} is divided by {m}.",
            "What is the remainder of {n} divided by {m}?",
            "What is {n} modulo {m}?",
        )
    )
    return _draft(prompt.format(n=n, m=m), steps, rest)


def gcd(rng: random.Random, level: int) -> Draft:
    """Euclid's algorithm."""
    common = rng.randint(2, 4 + 3 * level)
    a, b = common * rng.randint(2, 3 + 4 * level), common * rng.randint(2, 3 + 4 * level)
    big, small = max(a, b), min(a, b)
    steps = []
    while small:
        steps.append(f"{big} % {small} = {big % small}")
        big, small = small, big % small
    prompt = rng.choice(
        ("Find the greatest common divisor of {a} and {b}.", "What is gcd({a}, {b})?")
    )
    return _draft(prompt.format(a=a, b=b), steps, big)


def percentage(rng: random.Random, level: int) -> Draft:
    """A part of a number, or (from level 3) a price that changes several times; all integers."""
    if level < 3:
        percent = 5 * rng.randint(1, 19)
        whole = 20 * rng.randint(1, 10 * level)
        value = percent * whole // 100
        steps = [f"{percent} * {whole} = {percent * whole}", f"{percent * whole} / 100 = {value}"]
        return _draft(_ask(rng, f"{percent}% of {whole}"), steps, value)
    while True:
        price = 20 * rng.randint(2, 40)
        said, steps, now = [], [], price
        for _ in range(level - 2):
            percent = 5 * rng.randint(1, 12)
            up = rng.random() < 0.5
            change, lost = divmod(now * percent, 100)
            if lost:
                break
            after = now + change if up else now - change
            said.append(f"{'rises' if up else 'falls'} by {percent}%")
            steps.append(f"{now} * {percent} / 100 = {change}")
            steps.append(f"{now} {_op(change if up else -change)} = {after}")
            now = after
        else:
            prompt = f"A price of {price} {', then '.join(said)}. What is it now?"
            return _draft(prompt, steps, now)


def story(rng: random.Random, level: int) -> Draft:
    """A word problem of `level` events."""
    who, thing = rng.choice(PEOPLE), rng.choice(THINGS)
    now = rng.randint(10, 60 + 20 * level)
    said, steps = [f"{who} has {now} {thing}."], []
    for _ in range(level):
        event = rng.randrange(4)
        if event == 0:
            boxes, each = rng.randint(2, 9), rng.randint(3, 12 + level)
            said.append(f"{who} buys {boxes} boxes of {each} {thing}.")
            steps.append(f"{boxes} * {each} = {boxes * each}")
            change = boxes * each
        elif event == 1:
            change = rng.randint(3, 90)
            said.append(f"{who} finds {change} more.")
        elif event == 2 and now > 4:
            change = -rng.randint(2, now - 1)
            said.append(f"{who} gives away {-change}.")
        else:
            friends, each = rng.randint(2, 5), rng.randint(2, 9)
            if friends * each > now:
                change = rng.randint(3, 90)
                said.append(f"{who} gets {change} from a friend.")
            else:
                said.append(f"{who} gives {each} to each of {friends} friends.")
                steps.append(f"{friends} * {each} = {friends * each}")
                change = -friends * each
        steps.append(f"{now} {_op(change)} = {now + change}")
        now += change
    said.append(f"How many {thing} does {who} have now?")
    return _draft(" ".join(said), steps, now)


FAMILIES: dict[str, Callable[[random.Random, int], Draft]] = {
    "total": total,
    "product": product,
    "fraction": fraction_sum,
    "equation": equation,
    "polynomial": polynomial,
    "remainder": remainder,
    "gcd": gcd,
    "percentage": percentage,
    "story": story,
}

"""Small function-writing tasks in plain English, each with a reference solution.

A family is `(rng, level) -> Draft`, level 1 (easy) to 7. Higher levels are longer compositions,
not stranger words.
"""

import random
from collections.abc import Callable
from typing import NamedTuple

from tools.bundled.draft import Draft

NOUNS = (
    *("total", "score", "result", "value", "count", "mix", "rank", "level"),
    *("weight", "price", "size", "width", "index", "key", "code", "check"),
)
VERBS = ("get", "make", "find", "compute", "build", "pick", "scan", "fold", "solve", "run")
REQUESTS = (
    "Write a function {call} that returns {what}.",
    "Define {call}, which returns {what}.",
    "Write {call} returning {what}.",
    "Implement {call} so that it returns {what}.",
)
RECIPES = (
    "Write a function {call} that takes {arg} and does this: {steps}. Return {end}.",
    "Define {call}. Start from {arg}, then {steps}. Return {end}.",
    "Implement {call}: {steps}, then return {end}.",
)


class Step(NamedTuple):
    """One step of a pipeline: noun phrase around `{p}`, instruction, expression in `{v}`."""

    noun: str
    verb: str
    code: str


def _name(rng: random.Random) -> str:
    noun = rng.choice(NOUNS)
    return noun if rng.random() < 0.3 else f"{rng.choice(VERBS)}_{noun}"


def _ask(rng: random.Random, call: str, what: str) -> str:
    return rng.choice(REQUESTS).format(call=call, what=what)


# --- pipelines over a list or a string ---


def _list_step(rng: random.Random) -> Step:
    k, few = rng.randint(2, 30), rng.randint(2, 4)
    return rng.choice(
        (
            Step("the squares of {p}", "square each value", "[x * x for x in {v}]"),
            Step(
                f"{few} times each of {{p}}",
                f"multiply each value by {few}",
                f"[x * {few} for x in {{v}}]",
            ),
            Step(
                f"{k} more than each of {{p}}",
                f"add {k} to each value",
                f"[x + {k} for x in {{v}}]",
            ),
            Step(
                f"{k} less than each of {{p}}",
                f"subtract {k} from each value",
                f"[x - {k} for x in {{v}}]",
            ),
            Step(
                f"the ones above {k} among {{p}}",
                f"keep the values above {k}",
                f"[x for x in {{v}} if x > {k}]",
            ),
            Step(
                f"the ones below {k} among {{p}}",
                f"keep the values below {k}",
                f"[x for x in {{v}} if x < {k}]",
            ),
            Step(
                "the even ones among {p}", "keep the even values", "[x for x in {v} if x % 2 == 0]"
            ),
            Step("the odd ones among {p}", "keep the odd values", "[x for x in {v} if x % 2 == 1]"),
            Step(f"the first {few} of {{p}}", f"keep the first {few} values", f"{{v}}[:{few}]"),
            Step(f"the last {few} of {{p}}", f"keep the last {few} values", f"{{v}}[-{few}:]"),
            Step(
                f"all but the first {few} of {{p}}",
                f"drop the first {few} values",
                f"{{v}}[{few}:]",
            ),
            Step("the reverse of {p}", "reverse the order", "{v}[::-1]"),
            Step("the sorted list of {p}", "sort the values", "sorted({v})"),
        )
    )


def _list_end(rng: random.Random) -> Step:
    k = rng.randint(2, 40)
    inner = rng.choice(
        (
            Step("the sum of {p}", "their sum", "sum({v})"),
            Step("the largest of {p}", "the largest", "max({v}, default=0)"),
            Step("the smallest of {p}", "the smallest", "min({v}, default=0)"),
            Step("the number of {p}", "how many are left", "len({v})"),
            Step("{p}", "the list", "{v}"),
        )
    )
    if inner.code == "{v}" or rng.random() < 0.4:
        return inner
    outer = rng.choice(
        (
            Step(f"{k} plus {{p}}", f"{k} plus {{p}}", f"{k} + {{v}}"),
            Step(f"{k} times {{p}}", f"{k} times {{p}}", f"{k} * {{v}}"),
            Step(f"{k} minus {{p}}", f"{k} minus {{p}}", f"{k} - {{v}}"),
        )
    )
    return Step(
        outer.noun.format(p=inner.noun),
        outer.verb.format(p=inner.verb),
        outer.code.format(v=inner.code),
    )


def _string_step(rng: random.Random) -> Step:
    few, copies = rng.randint(2, 6), rng.randint(2, 3)
    a, b = rng.sample("abcdefgh", 2)
    mark = "".join(rng.choices("abcdefgh", k=rng.randint(1, 3)))
    return rng.choice(
        (
            Step("the reverse of {p}", "reverse it", "{v}[::-1]"),
            Step("the upper-case form of {p}", "make it upper case", "{v}.upper()"),
            Step("the lower-case form of {p}", "make it lower case", "{v}.lower()"),
            Step(
                f"the first {few} characters of {{p}}",
                f"keep the first {few} characters",
                f"{{v}}[:{few}]",
            ),
            Step(
                f"the last {few} characters of {{p}}",
                f"keep the last {few} characters",
                f"{{v}}[-{few}:]",
            ),
            Step(
                f"all but the first {few} characters of {{p}}",
                f"drop the first {few} characters",
                f"{{v}}[{few}:]",
            ),
            Step("every second character of {p}", "keep every second character", "{v}[::2]"),
            Step(f"{copies} copies of {{p}}", f"repeat it {copies} times", f"{{v}} * {copies}"),
            Step(f"'{mark}' followed by {{p}}", f"put '{mark}' in front", f"'{mark}' + {{v}}"),
            Step(f"'{mark}' put after {{p}}", f"put '{mark}' at the end", f"{{v}} + '{mark}'"),
            Step(
                f"the result of changing '{a}' to '{b}' in {{p}}",
                f"change '{a}' to '{b}'",
                f"{{v}}.replace('{a}', '{b}')",
            ),
        )
    )


def _string_end(rng: random.Random) -> Step:
    c = rng.choice("abcdefgh")
    return rng.choice(
        (
            Step("{p}", "the result", "{v}"),
            Step("{p}", "the result", "{v}"),
            Step("the length of {p}", "its length", "len({v})"),
            Step(
                f"how often '{c}' occurs in {{p}}", f"how often '{c}' occurs", f"{{v}}.count('{c}')"
            ),
        )
    )


def _pipeline(
    rng: random.Random,
    arg: str,
    base: str,
    steps: list[Step],
    end: Step,
    inputs: list[str],
) -> tuple[str, str, tuple[str, ...]]:
    """Prompt, solution and calls of a chain of steps; the noun form names the last step first."""
    name = _name(rng)
    call = f"{name}({arg})"
    if rng.random() < 0.6:
        phrase = base
        for step in [*steps, end]:
            phrase = step.noun.replace("{p}", phrase)
        prompt = _ask(rng, call, phrase)
    else:
        said = ", ".join(step.verb for step in steps)
        prompt = rng.choice(RECIPES).format(call=call, arg=arg, steps=said, end=end.verb)
    names = [arg] + ["v"] * (len(steps) - 1)
    body = [f"    v = {step.code.format(v=v)}" for step, v in zip(steps, names, strict=True)]
    answer = "\n".join([f"def {call}:", *body, f"    return {end.code.format(v='v')}"])
    return prompt, answer, tuple(f"{name}({value})" for value in inputs)


def list_pipeline(rng: random.Random, level: int) -> Draft:
    """`level` steps over a list of integers."""
    arg = rng.choice(("xs", "nums", "values", "items"))
    inputs = [str([rng.randint(-5, 40) for _ in range(rng.randint(6, 10))]) for _ in range(4)]
    inputs.append(str([rng.randint(0, 40) for _ in range(3)]))
    steps = [_list_step(rng) for _ in range(level)]
    prompt, answer, calls = _pipeline(
        rng, arg, f"the numbers in {arg}", steps, _list_end(rng), inputs
    )
    return Draft(prompt, "code", answer, calls=calls)


def string_pipeline(rng: random.Random, level: int) -> Draft:
    """`level` steps over a string."""
    arg = rng.choice(("s", "text", "word"))
    inputs = ["".join(rng.choices("abcdefghABCDXYZ", k=rng.randint(5, 14))) for _ in range(5)]
    steps = [_string_step(rng) for _ in range(level)]
    prompt, answer, calls = _pipeline(
        rng, arg, arg, steps, _string_end(rng), [repr(s) for s in inputs]
    )
    return Draft(prompt, "code", answer, calls=calls)


# --- arithmetic expressions in words ---


def _expression(rng: random.Random, size: int, args: list[str]) -> tuple[str, str, bool]:
    """`size` operators: (words, Python, whether an operand position needs brackets)."""
    if size == 0:
        leaf = rng.choice(args) if rng.random() < 0.7 else str(rng.randint(2, 30))
        return leaf, leaf, False
    if rng.random() < 0.25:
        words, code, loose = _expression(rng, size - 1, args)
        bare = f"({code})" if loose else code
        return rng.choice(
            (
                (f"twice {words}", f"2 * {bare}", True),
                (f"the square of {words}", f"{bare} ** 2", True),
                (f"the absolute value of {words}", f"abs({code})", False),
            )
        )
    left = rng.randint(0, size - 1)
    words_a, code_a, loose_a = _expression(rng, left, args)
    words_b, code_b, loose_b = _expression(rng, size - 1 - left, args)
    a = f"({code_a})" if loose_a else code_a
    b = f"({code_b})" if loose_b else code_b
    return rng.choice(
        (
            (f"the sum of {words_a} and {words_b}", f"{a} + {b}", True),
            (f"the difference of {words_a} and {words_b}", f"{a} - {b}", True),
            (f"the product of {words_a} and {words_b}", f"{a} * {b}", True),
            (f"the larger of {words_a} and {words_b}", f"max({code_a}, {code_b})", False),
            (f"the smaller of {words_a} and {words_b}", f"min({code_a}, {code_b})", False),
        )
    )


def _integers(rng: random.Random, n: int) -> str:
    return ", ".join(str(rng.randint(-20, 40)) for _ in range(n))


def expression(rng: random.Random, level: int) -> Draft:
    """Arithmetic with `level` + 1 operators, described in prefix order, to be written in infix."""
    args = rng.sample(["a", "b", "c", "x", "y", "n"], rng.randint(2, 3))
    name, signature = _name(rng), ", ".join(args)
    words, code, _ = _expression(rng, level + 1, args)
    prompt = _ask(rng, f"{name}({signature})", words)
    answer = f"def {name}({signature}):\n    return {code}"
    return Draft(
        prompt,
        "code",
        answer,
        calls=tuple(f"{name}({_integers(rng, len(args))})" for _ in range(5)),
    )


def conditional(rng: random.Random, level: int) -> Draft:
    """Cases tried in order; `level` sets how many and how long their values are."""
    args = rng.sample(["a", "b", "c", "x", "y", "n"], 2)
    name, signature = _name(rng), ", ".join(args)
    cases = 1 + level // 3
    said, body = [], []
    for _ in range(cases):
        k, who = rng.randint(-5, 30), rng.choice(args)
        words, code, _ = _expression(rng, (level + 1) // 2 if rng.random() < 0.5 else 1, args)
        condition, test = rng.choice(
            (
                (f"{who} is above {k}", f"{who} > {k}"),
                (f"{who} is below {k}", f"{who} < {k}"),
                (f"{who} is even", f"{who} % 2 == 0"),
                (f"{who} is odd", f"{who} % 2 == 1"),
                (f"{args[0]} is above {args[1]}", f"{args[0]} > {args[1]}"),
            )
        )
        said.append(f"{words} if {condition}")
        body.append(f"    if {test}:\n        return {code}")
    words, code, _ = _expression(rng, (level + 1) // 2, args)
    what = ", ".join(said) + f", otherwise {words}"
    answer = "\n".join([f"def {name}({signature}):", *body, f"    return {code}"])
    calls = tuple(f"{name}({_integers(rng, 2)})" for _ in range(5))
    return Draft(_ask(rng, f"{name}({signature})", what), "code", answer, calls=calls)


# --- functions inferred from examples ---


def _signed(value: int) -> str:
    return f"- {-value}" if value < 0 else f"+ {value}"


def linear(rng: random.Random, level: int) -> Draft:
    """A linear function (up to level 4) or a quadratic one, from its values at a few points."""
    name, arg = _name(rng), rng.choice(("x", "n", "t"))
    if level <= 4:
        a = rng.choice([-1, 1]) * rng.randint(2, 4 + 5 * level)
        b = rng.randint(-10 * level, 10 * level)
        first = rng.randint(0, 2 * level)
        second = first + rng.randint(1, 2 + 2 * level)
        at_first, at_second = a * first + b, a * second + b
        what = f"the linear function with value {at_first} at {first} and {at_second} at {second}"
        work = [
            f"    # {at_second} - {at_first} = {at_second - at_first}",
            f"    # {at_second - at_first} / {second - first} = {a}",
            f"    # {at_first} - {a} * {first} = {b}",
        ]
        code = f"{a} * {arg} {_signed(b)}"
    else:
        top = 4 * level - 14
        a, b, c = rng.randint(1, top), rng.randint(-2 * top, 2 * top), rng.randint(-30, 30)
        y0, y1, y2 = c, a + b + c, 4 * a + 2 * b + c
        what = f"the quadratic function with value {y0} at 0, {y1} at 1 and {y2} at 2"
        work = [
            f"    # {y1} - {y0} = {y1 - y0}",
            f"    # {y2} - {y1} = {y2 - y1}",
            f"    # {y2 - y1} - {y1 - y0} = {2 * a}",
            f"    # {2 * a} / 2 = {a}",
            f"    # {y1 - y0} - {a} = {b}",
        ]
        code = f"{a} * {arg} ** 2 {_signed(b)} * {arg} {_signed(c)}"
    prompt = _ask(rng, f"{name}({arg})", what)
    answer = "\n".join([f"def {name}({arg}):", *work, f"    return {code}"])
    return Draft(
        prompt, "code", answer, calls=tuple(f"{name}({rng.randint(-12, 25)})" for _ in range(4))
    )


FAMILIES: dict[str, Callable[[random.Random, int], Draft]] = {
    "list": list_pipeline,
    "string": string_pipeline,
    "expression": expression,
    "conditional": conditional,
    "linear": linear,
}

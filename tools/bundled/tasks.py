"""The bundled model's tasks: a training stream and a disjoint file of held-out tasks.

A prompt is held out when the first byte of its SHA-256 is a multiple of 32 (1 prompt in 32), so
the two do not overlap.

    python -m tools.bundled.tasks --n 600 --seed 1 --out gatekeeper/bundled/tasks.jsonl
"""

import argparse
import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path

from tools.bundled import code_tasks, math_tasks
from tools.bundled.draft import Draft, Kind

FAMILIES = {"code": code_tasks.FAMILIES, "math": math_tasks.FAMILIES}
LEVELS = range(1, 8)  # of the training stream
KINDS: tuple[Kind, ...] = ("code", "math")
# Families and levels of the task file, chosen so that about four answers in ten are wrong, and more
# of the long ones. Levels above 7 are longer than anything in the training stream.
MIX: dict[Kind, dict[str, range]] = {
    "code": {
        "list": range(6, 15),
        "string": range(6, 15),
        "expression": range(5, 11),
        "conditional": range(5, 13),
        "linear": range(1, 4),
    },
    "math": {
        "total": range(3, 11),
        "product": range(2, 8),
        "fraction": range(3, 8),
        "equation": range(3, 8),
        "polynomial": range(5, 8),
        "remainder": range(2, 5),
        "gcd": range(1, 6),
        "percentage": range(7, 11),
        "story": range(7, 14),
    },
}
MAX_LINE = 1500  # characters; keeps out the few tasks whose expected values are huge


def held_out(prompt: str) -> bool:
    """Whether a prompt belongs to the held-out 1/32."""
    return hashlib.sha256(prompt.encode()).digest()[0] % 32 == 0


def draw(rng: random.Random, kind: Kind, family: str, level: int) -> Draft:
    """One task of a family, held out or not."""
    return FAMILIES[kind][family](rng, level)


def training_stream(rng: random.Random) -> Iterator[tuple[str, int, Draft]]:
    """Endless (family, level, draft), evenly over all of them; never a held-out prompt."""
    while True:
        kind = rng.choice(KINDS)
        family = rng.choice(list(FAMILIES[kind]))
        level = rng.choice(LEVELS)
        draft = draw(rng, kind, family, level)
        if not held_out(draft.prompt):
            yield family, level, draft


def asserts_of(draft: Draft) -> list[str]:
    """Asserts whose expected values come from running the reference solution."""
    scope: dict[str, object] = {}
    exec(draft.answer, scope)  # our own generated text, never a model's
    return [f"assert {call} == {eval(call, scope)!r}" for call in draft.calls]


def task_line(draft: Draft, family: str, level: int) -> dict[str, object]:
    """A line of the task file."""
    digest = hashlib.sha256(draft.prompt.encode()).hexdigest()
    line: dict[str, object] = {
        "id": f"{draft.kind}-{digest[:12]}",
        "prompt": draft.prompt,
        "kind": draft.kind,
    }
    if draft.kind == "code":
        line |= {"tests": asserts_of(draft), "test_setup_code": ""}
    else:
        line |= {"gold": draft.gold}
    return line | {"family": family, "level": level}


def held_out_tasks(rng: random.Random, kind: Kind, n: int) -> list[dict[str, object]]:
    """`n` held-out tasks of one kind with unique prompts, families and levels as in `MIX`."""
    tasks: dict[str, dict[str, object]] = {}
    while len(tasks) < n:
        family = rng.choice(list(MIX[kind]))
        level = rng.choice(MIX[kind][family])
        draft = draw(rng, kind, family, level)
        if held_out(draft.prompt):
            line = task_line(draft, family, level)
            if len(json.dumps(line)) < MAX_LINE:
                tasks.setdefault(draft.prompt, line)
    return list(tasks.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=600, help="number of tasks, half of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="task file to write")
    args = parser.parse_args()
    rng = random.Random(args.seed)
    lines = [line for kind in KINDS for line in held_out_tasks(rng, kind, args.n // 2)]
    rng.shuffle(lines)
    args.out.write_text("".join(json.dumps(line) + "\n" for line in lines))


if __name__ == "__main__":
    main()

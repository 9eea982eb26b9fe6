"""Draws gain.svg: what the budget of `make demo` found. From the repository's root:

gatekeeper run gatekeeper/bundled/tasks.jsonl --generator bundled --policy cst --budget 0.2 \
    --sandbox local --check-all --json | python docs/images/gain.py > docs/images/gain.svg
"""

import json
import sys

HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" width="480" height="344" viewBox="0 0 480 344" role="img" \
aria-labelledby="t">
<title id="t">{title}</title>
<style>
:root {{ --ink: #1f2937; --soft: #4b5563; --paper: #fff; --edge: #e5e7eb; \
--random: #9ca3af; --gate: #4f46e5; --best: #a7f3d0 }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e5e7eb; --soft: #b6bdc9; --paper: #1e2129; --edge: #3b404d; \
--random: #7d8595; --gate: #8f88ff; --best: #1f6f55 }}
}}
text {{ font: 16px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: var(--ink) }}
.b {{ font-weight: 600 }} .s {{ font-size: 14px; fill: var(--soft) }}
</style>
<rect x="1" y="1" width="478" height="342" rx="10" \
style="fill:var(--paper);stroke:var(--edge);stroke-width:2"/>
"""
LEFT, WIDTH = 22, 380


def drawing(run: dict) -> str:
    """The picture of one run's result."""
    n = run["verified"]
    bars = [
        ("random", "drawn at random", run["random_found"]),
        ("gate", f"chosen by the gate ({run['policy']})", run["errors_found"]),
        ("best", "the best possible choice", run["best_found"]),
    ]
    title = [f"Wrong answers found with {n} verifications,", f"of {run['evaluated']} answers"]
    lines = [HEAD.format(title=" ".join(title)).rstrip()]
    lines += [
        f'<text class="b" x="{LEFT}" y="{34 + 21 * row}">{text}</text>'
        for row, text in enumerate(title)
    ]
    for row, (name, label, found) in enumerate(bars):
        y = 94 + 74 * row
        width = WIDTH * found / n
        value = f"{found:.1f}".removesuffix(".0")
        lines += [
            f'<text x="{LEFT}" y="{y}">{label}</text>',
            f'<rect x="{LEFT}" y="{y + 8}" width="{width:.1f}" height="30" rx="4" '
            f'style="fill:var(--{name})"/>',
            f'<text class="b" x="{LEFT + width + 10:.1f}" y="{y + 29}">{value}</text>',
        ]
    note = f"make demo: the bundled model, {run['outputs']} tasks, a budget of {run['budget']:.0%}"
    lines.append(f'<text class="s" x="{LEFT}" y="326">{note}</text>\n</svg>')
    return "\n".join(lines)


if __name__ == "__main__":
    print(drawing(json.load(sys.stdin)))

"""Draws gain.svg: what the budget of `make demo` found. From the repository's root:

gatekeeper run gatekeeper/bundled/tasks.jsonl --generator bundled --policy cst --budget 0.2 \
    --sandbox local --check-all --json | python docs/images/gain.py > docs/images/gain.svg
"""

import json
import sys

HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 196" role="img" aria-labelledby="t">
<title id="t">{title}</title>
<style>
text {{ font: 15px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #1f2937 }}
.b {{ font-weight: 600 }}
.s {{ font-size: 13px; fill: #4b5563 }} .r {{ text-anchor: end }}
</style>
<rect x="1" y="1" width="898" height="194" rx="10" fill="#fff" stroke="#e5e7eb" stroke-width="2"/>
<text class="b" x="24" y="32">{title}</text>
"""
LEFT, WIDTH = 250, 540
COLOURS = {"drawn at random": "#9ca3af", "chosen by the gate": "#4f46e5", "the best": "#a7f3d0"}


def drawing(run: dict) -> str:
    """The picture of one run's result."""
    n = run["verified"]
    bars = {
        "drawn at random": run["random_found"],
        f"chosen by the gate ({run['policy']})": run["errors_found"],
        "the best possible choice": run["best_found"],
    }
    title = f"Wrong answers found with {n} verifications, of {run['evaluated']} answers"
    lines = [HEAD.format(title=title)]
    for row, (name, found) in enumerate(bars.items()):
        y = 54 + 38 * row
        colour = next(c for start, c in COLOURS.items() if name.startswith(start))
        width = WIDTH * found / n
        value = f"{found:.1f}".removesuffix(".0")
        lines += [
            f'<text class="r" x="{LEFT - 14}" y="{y + 19}">{name}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="28" rx="4" fill="{colour}"/>',
            f'<text class="b" x="{LEFT + width + 10:.1f}" y="{y + 19}">{value}</text>',
        ]
    note = f"make demo: the bundled model, {run['outputs']} tasks, a budget of {run['budget']:.0%}"
    lines.append(f'<text class="s" x="24" y="182">{note}</text>\n</svg>')
    return "\n".join(lines).replace("\n\n", "\n")


if __name__ == "__main__":
    print(drawing(json.load(sys.stdin)))

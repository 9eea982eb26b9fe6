"""Simulated predictions for SWE-bench, and the reports that SWE-bench would write about them.

python tests/support/simulated_swebench.py FOLDER N    writes predictions.jsonl and reports/

No instance, no patch and no test is real. Each instance has a difficulty; it makes patches longer,
log-probabilities lower and resolution less likely. Three patches in a hundred are empty, and three
do not apply.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

MODEL = "simulated/agent"


def main(folder: Path, n: int, *, seed: int = 0, logprobs: bool = True) -> None:
    draw = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "predictions.jsonl").open("w") as file:
        for number in range(n):
            instance = f"example__simulated-{number:04}"
            difficulty = draw.normal()
            kind = draw.random()
            patch = "" if kind < 0.03 else patch_of(int(np.exp(2 + 0.6 * difficulty)) + 1)
            line: dict[str, Any] = {
                "instance_id": instance,
                "model_name_or_path": MODEL,
                "model_patch": patch,
            }
            if logprobs:
                margin = draw.exponential(np.exp(0.8 - 0.7 * difficulty), size=30)
                top1 = -np.log1p(np.exp(-margin))
                line["logprobs"] = {
                    "logprob": top1.round(3).tolist(),
                    "top1": top1.round(3).tolist(),
                    "top2": (top1 - margin).round(3).tolist(),
                }
            file.write(json.dumps(line) + "\n")
            resolved = draw.random() < 1 / (1 + np.exp(0.5 + 1.2 * difficulty))
            if patch:
                place = folder / "reports" / MODEL.replace("/", "__") / instance
                write(place, instance, patch, applies=kind < 0.97, resolved=bool(resolved))


def patch_of(lines: int) -> str:
    """A patch that adds so many lines to a file."""
    added = "".join(f"+line {number}\n" for number in range(lines))
    return f"diff --git a/x.py b/x.py\n--- a/x.py\n+++ b/x.py\n@@ -1,0 +1,{lines} @@\n{added}"


def write(place: Path, instance: str, patch: str, *, applies: bool, resolved: bool) -> None:
    """The files of one instance, as SWE-bench 5 writes them."""
    place.mkdir(parents=True)
    (place / "patch.diff").write_text(patch)
    log = [f"Creating container for {instance}..."]
    if not applies:
        log.append(">>>>> Patch Apply Failed:\nerror: patch does not apply")
    stamp = "2026-11-24 03:00:00,000 - INFO - "
    (place / "run_instance.log").write_text("".join(f"{stamp}{line}\n" for line in log))
    if not applies:
        return
    test = {"success": ["test_bug"], "failure": []}
    if not resolved:
        test = {"success": [], "failure": ["test_bug"]}
    tests = {"FAIL_TO_PASS": test, "PASS_TO_PASS": {"success": ["test_rest"], "failure": []}}
    report = {
        "patch_is_None": False,
        "patch_exists": True,
        "patch_successfully_applied": True,
        "resolved": resolved,
        "infra_failure": False,
        "tests_status": tests,
    }
    (place / "report.json").write_text(json.dumps({instance: report}, indent=4))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

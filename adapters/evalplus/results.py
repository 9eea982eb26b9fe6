"""EvalPlus's own file of results, which its tools read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from gatekeeper.adapters.evalplus.checkers import PASS
from gatekeeper.adapters.evalplus.harness import evalplus_module
from gatekeeper.adapters.evalplus.samples import Dataset, Sample
from gatekeeper.types import GateResult

__all__ = ["results_file", "write_results"]


def results_file(samples: Path) -> Path:
    """Where EvalPlus writes and expects its results for these samples."""
    if samples.is_dir():
        return samples / "eval_results.json"
    return samples.with_name(samples.name.replace(".jsonl", "_eval_results.json"))


def write_results(
    path: Path,
    dataset: Dataset,
    samples: Sequence[Sample],
    results: Sequence[GateResult],
) -> None:
    """Write the verdicts on all samples as `evalplus.evaluate` writes them.

    Parameters
    ----------
    path : Path
    dataset : Dataset
    samples, results : sequence
        All samples, each checked by `EvalPlusChecker`.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for sample, result in zip(samples, results, strict=True):
        assert result.outcome is not None
        meta, problem = result.outcome.meta, dataset.problems[sample.task_id]
        line: dict[str, Any] = {
            "task_id": sample.task_id,
            "solution": sample.generation.text,
            "base_status": meta["base"],
            "plus_status": meta.get("plus"),
        }
        for tests in ("base", "plus"):
            failed: list[Any] = []
            if meta.get(tests, PASS) != PASS and (ran := meta["ran"][tests]):
                failed = [problem[f"{tests}_input"][ran - 1]]
            if dataset.name == "mbpp":
                failed = evalplus_module("data.mbpp").mbpp_serialize_inputs(sample.task_id, failed)
            line[f"{tests}_fail_tests"] = failed
        found.setdefault(sample.task_id, []).append(line)
    when = datetime.now().strftime("%Y-%m-%d %H:%M")
    path.write_text(json.dumps({"date": when, "hash": dataset.hash, "eval": found}))

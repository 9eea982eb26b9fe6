"""What SWE-bench found, by the files that it writes for each instance.

`run_instance` writes `report.json` where the test script was started. Where the patch does not
apply there is none, and the reason is in `run_instance.log`: SWE-bench counts that as an error, and
not as resolved. Where the environment broke, or the tests took too long, nothing is known of the
patch, even if SWE-bench counts it as unresolved.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gatekeeper.adapters.swebench.predictions import Prediction
from gatekeeper.arguments import check_flag
from gatekeeper.errors import BadInputError
from gatekeeper.types import Outcome, Verdict

__all__ = ["EMPTY", "Recorded", "check_patches", "counts", "outcome_of", "remove_cut_off"]

# SWE-bench's names of what an instance can be counted as.
RESOLVED, UNRESOLVED, ERROR, EMPTY_PATCH = "resolved", "unresolved", "error", "empty_patch"

EMPTY = Outcome(Verdict.FAILED, detail="empty patch", meta={"swebench": EMPTY_PATCH})

# A line of the log's own: the patch itself is in it, too.
PATCH_FAILED = re.compile(r"^[\d-]+ [\d:,]+ - INFO - >>>>> Patch Apply Failed", re.MULTILINE)
TIMED_OUT = re.compile(r"Test timed out after [\d.]+ seconds")
TESTS = ">>>>> Start Test Output", ">>>>> End Test Output"  # of the script that runs the tests


class Recorded:
    """Reports of an earlier run, in place of an evaluation.

    Parameters
    ----------
    folder : Path
        Folder of one run, with `MODEL/INSTANCE/report.json` as SWE-bench writes it under
        `logs/run_evaluation/RUN_ID`, or with `INSTANCE/report.json`. An empty one is of a run to
        come.
    predictions : sequence of Prediction
        Predictions that the reports are of.

    Raises
    ------
    BadInputError
        The folder is not there, what it has is about none of them, or it is about other patches.
    """

    def __init__(self, folder: Path, predictions: Sequence[Prediction]) -> None:
        self._folder = folder
        there = [p for p in predictions if p.patch and self._place(p).is_dir()]
        if not folder.is_dir():
            raise BadInputError(f"--reports {folder} is no folder: make it for a run to come")
        if not there and any(folder.iterdir()):
            first = next(p for p in predictions if p.patch)
            raise BadInputError(
                f"--reports {folder} has no folder {first.folder}/{first.instance}, nor one for "
                "any other prediction: give the folder of one run, such as "
                "logs/run_evaluation/RUN_ID"
            )
        check_patches([(p, self._place(p)) for p in there], "give the predictions that were run")

    def check(self, prediction: Prediction) -> Outcome:
        """Look one prediction up."""
        return outcome_of(self._place(prediction), prediction)

    def stop(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing is held."""

    def _place(self, prediction: Prediction) -> Path:
        named = self._folder / prediction.folder / prediction.instance
        return named if named.is_dir() else self._folder / prediction.instance


def check_patches(places: Iterable[tuple[Prediction, Path]], remedy: str) -> None:
    """Refuse folders that are about another patch than the prediction's.

    SWE-bench itself takes whatever report is there.

    Raises
    ------
    BadInputError
        With the first such folder, and the remedy.
    """
    for prediction, place in places:
        patch, report = place / "patch.diff", place / "report.json"
        own = prediction.patch.encode(errors="replace")
        if patch.exists() and report.exists() and patch.read_bytes() != own:
            raise BadInputError(
                f"{place} is about another patch than the prediction for {prediction.instance}: "
                f"{remedy}"
            )


def remove_cut_off(place: Path) -> None:
    """Remove a report that was not written to its end, as by `kill -9`.

    SWE-bench would read it again, and fail, each time that it is to evaluate the instance.
    """
    report = place / "report.json"
    with contextlib.suppress(OSError):  # none is there, or SWE-bench itself meets the error
        try:
            json.loads(report.read_bytes())
        except ValueError:
            report.unlink()


def outcome_of(place: Path, prediction: Prediction) -> Outcome:
    """The outcome that the files of an instance's folder state.

    Parameters
    ----------
    place : Path
        The folder, `.../MODEL/INSTANCE`.
    prediction : Prediction

    Returns
    -------
    Outcome
        `meta["swebench"]` is what SWE-bench counts the instance as.
    """
    try:
        report = json.loads((place / "report.json").read_bytes())[prediction.instance]
        resolved = check_flag("resolved", report["resolved"])  # the text "false" would be true
        detail = _tests(report.get("tests_status") or {})
    except FileNotFoundError:
        return _without_report(place)
    except (ValueError, LookupError, TypeError, AttributeError):
        return _unknown(ERROR, f"{place / 'report.json'} cannot be read: delete it to try again")
    meta: dict[str, Any] = {"swebench": RESOLVED if resolved else UNRESOLVED}
    if resolved:
        return Outcome(Verdict.PASSED, detail=detail, meta=meta)
    reason = report.get("infra_failure_reason", "")
    if report.get("infra_failure") or _broke_off(place):
        why = reason or "the tests did not run to their end"
        return _unknown(UNRESOLVED, f"{why}: see {place}, and delete it to try again")
    return Outcome(Verdict.FAILED, detail=detail or f"no test results {reason}".strip(), meta=meta)


def counts(outcomes: Iterable[Outcome | None]) -> Counter[str]:
    """How many instances SWE-bench counts as what, of those that were evaluated."""
    return Counter(o.meta.get("swebench", ERROR) for o in outcomes if o is not None)


def _without_report(place: Path) -> Outcome:
    log = place / "run_instance.log"
    if not log.exists():
        return _unknown(ERROR, f"no report in {place}")
    text = log.read_text(encoding="utf-8", errors="replace")
    if PATCH_FAILED.search(text):
        detail = "the patch does not apply"
        return Outcome(Verdict.FAILED, detail=detail, meta={"swebench": ERROR})
    if late := TIMED_OUT.search(text):
        return _unknown(ERROR, late[0])
    errors = re.findall(r" - ERROR - (.+)", text)
    return _unknown(ERROR, f"{errors[-1] if errors else 'no report'!s:.200}: see {log}")


def _broke_off(place: Path) -> bool:
    """Whether the test script did not begin, or did not end: SWE-bench then reports no test, and
    counts the instance as unresolved, whatever the cause.
    """
    output = place / "test_output.txt"
    if not output.exists():
        return False
    text = output.read_text(encoding="utf-8", errors="replace")
    return not all(mark in text for mark in TESTS)


def _unknown(counted: str, why: str) -> Outcome:
    return Outcome(Verdict.INFRA_ERROR, detail=why, meta={"swebench": counted})


def _tests(status: dict[str, Any]) -> str:
    """How many of the tests that decide passed: "FAIL_TO_PASS 1 of 2, PASS_TO_PASS 8 of 8"."""
    parts = []
    for kind in ("FAIL_TO_PASS", "PASS_TO_PASS"):
        if kind in status:
            right, wrong = (len(status[kind][end]) for end in ("success", "failure"))
            parts.append(f"{kind} {right} of {right + wrong}")
    return ", ".join(parts)

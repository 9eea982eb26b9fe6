"""The report of a gated harness run: what was verified, and the pass rate of all outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gatekeeper.adapters.harness.scores import score_of, sentence
from gatekeeper.analysis.estimates import Estimates, as_json, estimate, show
from gatekeeper.analysis.score import ScoreEstimate, score_as_json
from gatekeeper.analysis.summary import Summary, summarise
from gatekeeper.errors import BadInputError
from gatekeeper.policies import Goal
from gatekeeper.types import GateResult
from gatekeeper.wording import counted

__all__ = ["Report", "report_of"]


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a gated run, as text (`lines`) and as JSON (`as_json`)."""

    selected: Sequence[str]  # ids, in order
    summary: Summary
    pass_rate: ScoreEstimate
    error_rate: Estimates | None  # with the goal "errors"

    def lines(self, name: str = "pass rate of all") -> list[str]:
        """The report in sentences; `name` is that of the rate."""
        s = self.summary
        wrong = s.warmup_errors + s.errors_found
        how = (
            f": {s.warmup_verified} to warm up, {s.verified} by choice" if s.warmup_verified else ""
        )
        verified = s.warmup_verified + s.verified
        lines = [f"verified {verified} of {s.outputs}{how}; {wrong} of them wrong"]
        if self.error_rate is None:
            lines.append(sentence(name, self.pass_rate))
            lines += self.pass_rate.notes
        if s.could_not_tell:
            lines.append(
                f"without a verdict: {counted(s.could_not_tell, 'selected output')}; try again"
            )
        if s.missing_signal:
            lines.append(
                f"{counted(s.missing_signal, 'output')} came without log-probabilities: of these "
                "the ones to verify were drawn at random"
            )
        return lines if self.error_rate is None else lines + show(self.error_rate)

    def as_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        s = self.summary
        return {
            "outputs": s.outputs,
            "verified": s.warmup_verified + s.verified,
            "wrong": s.warmup_errors + s.errors_found,
            "warmup": s.warmup_verified,
            "could_not_tell": s.could_not_tell,
            "missing_signal": s.missing_signal,
            "selected": list(self.selected),
            "pass_rate": score_as_json(self.pass_rate),
            "error_rate": None if self.error_rate is None else as_json(self.error_rate),
        }


def report_of(results: Iterable[GateResult], goal: Goal = "score") -> Report:
    """The report of a run's results. Raises BadInputError without any.

    Parameters
    ----------
    results : iterable of GateResult
    goal : {"score", "errors"}
        Goal of the run: with "errors" the report compares the estimates of the error rate.
    """
    results = list(results)
    if not results:
        raise BadInputError("no output was gated: there is nothing to report")
    selected = [r.id for r in results if r.decision.verify]
    right = [
        None if r.outcome is None or r.outcome.error is None else 1.0 - r.outcome.error
        for r in results
    ]
    rates = estimate(results) if goal == "errors" else None
    return Report(selected, summarise(results), score_of(results, right), rates)

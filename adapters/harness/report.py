"""The report of a gated harness run: what was verified, and the estimates for all outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gatekeeper.analysis.estimates import Estimates, as_json, estimate, show
from gatekeeper.analysis.summary import Summary, summarise
from gatekeeper.errors import BadInputError
from gatekeeper.types import GateResult

__all__ = ["Report", "report_of"]


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a gated run, as text (`lines`) and as JSON (`as_json`)."""

    selected: Sequence[str]  # ids, in order
    summary: Summary
    estimates: Estimates

    def lines(self) -> list[str]:
        """The report in sentences."""
        s = self.summary
        verified = s.warmup_verified + s.verified
        wrong = s.warmup_errors + s.errors_found
        lines = [
            f"verified {verified} of {s.outputs}: {s.warmup_verified} to warm up, "
            f"{s.verified} by choice; {wrong} of them wrong"
        ]
        if (found := self.estimates.assisted) is not None:
            p = found.complement
            lines.append(
                f"pass rate of all {s.outputs}: {p.value:.1%}, 95 % interval {p.low:.1%} to "
                f"{p.high:.1%}"
            )
        if s.could_not_tell:
            lines.append(f"{s.could_not_tell} selected outputs have no verdict; try them again")
        if s.missing_signal:
            lines.append(
                f"{s.missing_signal} outputs came without log-probabilities: of these the ones to "
                "verify were drawn at random"
            )
        return lines + show(self.estimates)

    def as_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        s, found = self.summary, self.estimates.assisted
        return {
            "outputs": s.outputs,
            "verified": s.warmup_verified + s.verified,
            "wrong": s.warmup_errors + s.errors_found,
            "warmup": s.warmup_verified,
            "could_not_tell": s.could_not_tell,
            "missing_signal": s.missing_signal,
            "selected": list(self.selected),
            "pass_rate": None if found is None else asdict(found.complement),
            "error_rate": as_json(self.estimates),
        }


def report_of(results: Iterable[GateResult]) -> Report:
    """The report of a run's results. Raises BadInputError without any."""
    results = list(results)
    if not results:
        raise BadInputError("no output was gated: there is nothing to report")
    selected = [r.id for r in results if r.decision.verify]
    return Report(selected, summarise(results), estimate(results))

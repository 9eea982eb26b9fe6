"""Figures for Prometheus, in its text format.

Counts are of this process, as is usual there. The account and the health are read from the gate
when the figures are asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from gatekeeper.adapters.openai.attachment import Result
from gatekeeper.types import GateResult, GateStatus, PolicyHealth, Undecided

__all__ = ["CONTENT_TYPE", "Histogram", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OVERHEAD = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)
VERIFICATION = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)

Sample = tuple[str, Mapping[str, str], float]  # suffix of the name, labels, value


class Histogram:
    """How often a duration was at most so long.

    Parameters
    ----------
    bounds : sequence of float
        Seconds, ascending.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum += seconds

    def samples(self) -> Iterator[Sample]:
        """As the text format has a histogram."""
        names = [*(f"{bound:g}" for bound in self._bounds), "+Inf"]
        for name, count in zip(names, accumulate(self._counts), strict=True):
            yield "_bucket", {"le": name}, count
        yield "_sum", {}, self._sum
        yield "_count", {}, sum(self._counts)


class Metrics:
    """The figures of one gateway.

    Parameters
    ----------
    policy : str
        Its name.
    unit : str
        Of the budget.
    """

    def __init__(self, *, policy: str, unit: str) -> None:
        self._policy, self._unit = policy, unit
        self._decisions: Counter[str] = Counter()
        self._undecided: Counter[str] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._without_task = 0
        self._overhead, self._verification = Histogram(OVERHEAD), Histogram(VERIFICATION)

    def decided(self, result: GateResult, *, has_task: bool) -> None:
        """Count a decision."""
        self._decisions[result.decision.reason] += 1
        self._without_task += not has_task

    def undecided(self, result: Undecided) -> None:
        """Count an output without a decision."""
        self._undecided[result.state] += 1

    def verified(self, result: Result, seconds: float) -> None:
        """Count a verification that has ended."""
        if result.outcome is not None:
            self._outcomes[result.outcome.verdict] += 1
            self._verification.add(seconds)

    def answered(self, endpoint: str, status: int, overhead: float | None = None) -> None:
        """Count an answer; `overhead` in seconds, where it was measured."""
        self._requests[endpoint, status] += 1
        if overhead is not None:
            self._overhead.add(overhead)

    def text(self, status: GateStatus) -> str:
        """All figures, with those of the gate's status."""
        policy, unit = {"policy": self._policy}, {"unit": self._unit}
        accounts = {
            "spent": (status.spent, status.warmup_spent),
            "held": (status.held, status.warmup_held),
        }
        parts = [
            _metric(
                "requests_total",
                "counter",
                "Answers by endpoint and HTTP status.",
                [
                    ("", {"endpoint": e, "status": str(s)}, n)
                    for (e, s), n in self._requests.items()
                ],
            ),
            _metric(
                "decisions_total",
                "counter",
                "Outputs decided on, by reason.",
                [("", policy | {"reason": r}, n) for r, n in self._decisions.items()],
            ),
            _metric(
                "undecided_total",
                "counter",
                "Outputs without a decision, by state.",
                [("", {"state": state}, n) for state, n in self._undecided.items()],
            ),
            _metric(
                "without_task_total",
                "counter",
                "Outputs decided on that came without a task, and are never verified.",
                [("", {}, self._without_task)],
            ),
            _metric(
                "outcomes_total",
                "counter",
                "Verifications that have ended, by verdict.",
                [("", {"verdict": verdict}, n) for verdict, n in self._outcomes.items()],
            ),
            *(
                _metric(
                    f"budget_{name}",
                    "gauge",
                    f"{name.capitalize()}, after the warm-up and in it.",
                    [
                        ("", {"account": "main", **unit}, after),
                        ("", {"account": "warmup", **unit}, warmup),
                    ],
                )
                for name, (after, warmup) in accounts.items()
            ),
            _metric(
                "budget_cap",
                "gauge",
                "What may be spent and held after the warm-up, as of now.",
                [("", {"account": "main", **unit}, status.cap)],
            ),
            _metric(
                "budget_overrun",
                "gauge",
                "What verifications took beyond their reservations.",
                [("", {"account": "main", **unit}, status.overrun)],
            ),
            _metric(
                "verifying",
                "gauge",
                "Outputs that a verifier has.",
                [("", {}, status.verifying)],
            ),
            _metric(
                "unresolved",
                "gauge",
                "Selected outputs without a verdict.",
                [("", {}, status.unresolved)],
            ),
            _metric(
                "health",
                "gauge",
                "1 for the state that the policy is in.",
                [("", {"state": h}, float(h is status.health)) for h in PolicyHealth],
            ),
            _metric(
                "verification_seconds",
                "histogram",
                "From the decision to the verdict, with the wait for a worker.",
                self._verification.samples(),
            ),
            _metric(
                "overhead_seconds",
                "histogram",
                "What the gateway added to an answer in one piece, verdicts awaited apart.",
                self._overhead.samples(),
            ),
        ]
        return "".join(parts)


def _metric(name: str, kind: str, help_: str, samples: Iterable[Sample]) -> str:
    name = f"gatekeeper_{name}"
    lines = [f"# HELP {name} {help_}", f"# TYPE {name} {kind}"]
    for suffix, labels, value in samples:
        inside = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{suffix}{{{inside}}} {_number(value)}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return "+Inf" if value == float("inf") else repr(float(value))

"""Which policy to use. Every command and page that advises one takes it from here.

All built-in policies are replayed on the outputs of the file, as `gatekeeper.analysis.off_policy`
does, and their recalls in the next run of such outputs are compared by draws (Bayesian bootstrap;
labels that a log lacks are drawn, too). The default policy finds the most over the streams of
`benchmarks/calibrated.py`, and a few hundred labels seldom distinguish the best policies. So the
advice is the default unless another one is ahead of it beyond chance, and it states the odds.
`benchmarks/advice.py` measures what following the advice gains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gatekeeper.analysis.odds import WORTH, chances_of, odds_text
from gatekeeper.analysis.off_policy import Evidence, parts_by_choice
from gatekeeper.errors import BadInputError
from gatekeeper.io.records import RecordTable
from gatekeeper.policies import DEFAULT_POLICY, T0, Random, built_in
from gatekeeper.stats.interval import TAIL, Interval
from gatekeeper.types import FloatArray

__all__ = ["MOST", "Advice", "Rival", "advise"]

MOST = 10_000  # outputs that are replayed; more would decide the same, and take minutes


@dataclass(frozen=True, slots=True)
class Rival:
    """Another policy, compared with the advised one at the same budget."""

    policy: str
    recall: Interval  # in the next run, in [0, 1]
    less: Interval  # recall of the advised policy minus this one's, in [-1, 1]
    ahead: float  # probability that the advised policy finds over a point of recall more
    behind: float  # probability that it finds over a point less


@dataclass(frozen=True, slots=True)
class Advice:
    """The policy to use, and how certain that is.

    Parameters
    ----------
    policy
        Its name; the default where nothing can be compared.
    budget
        Share of the full cost at which policies were compared, in (0, 1).
    recall
        Recall of the advised policy in the next run; None where nothing can be compared.
    rivals
        All other built-in policies, the best first.
    reason
        Why nothing can be compared; None where it can.
    """

    policy: str
    budget: float
    recall: Interval | None
    rivals: tuple[Rival, ...]
    reason: str | None

    @property
    def level(self) -> tuple[Rival, ...]:
        """Policies that may find as much as the advised one, except `random`."""
        return tuple(r for r in self._others if r.less.low <= 0.0)

    @property
    def beats_random(self) -> bool | None:
        """Whether it finds more than random draws; None where the file does not show it."""
        for rival in self.rivals:
            if rival.policy == Random.name:
                if rival.less.low > 0.0:
                    return True
                return None if rival.less.high > WORTH else False
        return None

    @property
    def _others(self) -> list[Rival]:
        return [r for r in self.rivals if r.policy != Random.name]

    def __str__(self) -> str:
        """One or two sentences."""
        if self.reason is not None or self.recall is None:
            return (
                f"Use {self.policy}, the default. These outputs do not show which policy finds "
                f"the most: {self.reason}."
            )
        said = [f"Use {self.policy}{'' if self.policy != DEFAULT_POLICY else ', the default'}: "]
        level, others = self.level, self._others
        if level:
            said.append(f"no significant difference from {_names([r.policy for r in level])}. ")
            said.append(f"The odds: {_odds(self.policy, level[0])}.")
            if level[0].less.value < 0.0:
                said.append(
                    f" So {level[0].policy} is ahead, but not beyond chance, and over many streams "
                    f"{self.policy} finds more (docs/calibrated.md)."
                )
        else:
            said.append(f"{_odds(self.policy, others[0])}; {others[0].policy} is the next best.")
        if self.beats_random is False:
            said.append(" No policy finds more than random draws here: the signal is of no use.")
        elif self.beats_random is None:
            said.append(" There is no evidence that it finds more than random draws.")
        return "".join(said)


def advise(
    table: RecordTable, beta: float, *, warmup: int = T0, evidence: Evidence | None = None
) -> Advice:
    """Which policy finds the most errors in the next run of such outputs.

    The advised policy is the default unless another one finds over a point of recall more
    with a probability above 1 - 0.025 / m, with m others compared.

    Parameters
    ----------
    table
        Records, or a run's log. Of more than `MOST` the first ones are compared.
    beta
        Budget, a share of the full cost in (0, 1).
    warmup
        How many outputs come first, all verified.
    evidence
        Evidence of the table with this warm-up, if it was made already.

    Returns
    -------
    Advice
        Without rivals, and with the reason, where nothing can be compared: too few outputs or
        verdicts, no explored outputs, no signal at all.
    """
    try:
        if evidence is None or len(table) > MOST:
            some = table.take(np.arange(min(len(table), MOST)))
            evidence = Evidence(some, warmup=warmup)
    except BadInputError as e:
        return Advice(DEFAULT_POLICY, beta, None, (), str(e))
    if np.isnan(evidence.stream.score[warmup:]).all():
        return Advice(DEFAULT_POLICY, beta, None, (), "no output after the warm-up has a signal")
    shares = {
        policy.name: evidence.shares(policy.name, beta)
        for policy in built_in()
        if not policy.replay_only
    }
    recalls = _recalls(evidence, shares, DEFAULT_POLICY)
    best = _best(recalls)
    if best != DEFAULT_POLICY:
        recalls = _recalls(evidence, shares, best)
    n = int((evidence.drawn & evidence.counted).sum())
    rivals = [_rival(name, own, other, n) for name, (own, other) in recalls.items()]
    rivals.sort(key=lambda rival: rival.less.value)
    own = next(iter(recalls.values()))[0]
    return Advice(best, beta, Interval.of_draws(own, n), tuple(rivals), None)


def _rival(name: str, own: FloatArray, other: FloatArray, n: int) -> Rival:
    gain = own - other
    return Rival(name, Interval.of_draws(other, n), Interval.of_draws(gain, n), *chances_of(gain))


def _best(recalls: Mapping[str, tuple[FloatArray, FloatArray]]) -> str:
    """The default, or the policy that is over a point ahead of it beyond chance; never random."""
    best, lead = DEFAULT_POLICY, 0.0
    for name, (usual, other) in recalls.items():
        gain = other - usual
        surely = chances_of(gain)[0] > 1.0 - TAIL / len(recalls)
        if surely and name != Random.name and gain.mean() > lead:
            best, lead = name, float(gain.mean())
    return best


def _recalls(
    evidence: Evidence, shares: Mapping[str, FloatArray], first: str
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """For every other policy: draws (D,) of the recall of the first in the next run, and its own in
    the same draws."""
    found = {}
    for name, share in shares.items():
        if name == first:
            continue
        labels = evidence.labels(parts_by_choice(shares[first], share))
        weights = np.column_stack([shares[first], share, np.ones(share.size)])
        (a, b, errors), _ = (sums.T for sums in evidence.totals(labels, weights, resample=True))
        found[name] = (a / errors, b / errors)
    return found


def _odds(policy: str, rival: Rival) -> str:
    return odds_text(policy, rival.policy, rival.less, rival.ahead, rival.behind)


def _names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"

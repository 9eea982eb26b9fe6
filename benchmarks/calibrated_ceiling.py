"""Where `calibrated` loses recall: the points that better knowledge would gain, by stream.

    python benchmarks/calibrated_ceiling.py [RECORDS ...] [--seeds 2] [--n 3000]
        [--streams NAME ...]

The streams, noise, budgets and counted half of benchmarks/calibrated.py; no other policy runs. What
is gained

- labels: if it is shown every label, not only those of the outputs that it verifies;
- model: if P(error) and E[cost] are fitted to 30,000 other outputs of the law of the counted half
  (of records: to those not in the stream), labels as noisy as usual;
- order: if the outputs of the counted half are taken in order of P(error) as it was when they were
  decided, by cost, until the budget is spent. This is what pacing and exploration lose, the costs
  of outputs to come being unknown, and chance, because the order is of outputs already seen;
- both: if they are taken in order of the fitted P(error).

Files with fewer than 2 n records are left out.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from _machine import machine
from calibrated import BETAS, PROTOCOL, RECALL, Source, sources

from gatekeeper.analysis.experiment import Protocol, runs
from gatekeeper.analysis.outputs import raw_of_records
from gatekeeper.analysis.policy_run import PolicyRun
from gatekeeper.io.records import RecordTable
from gatekeeper.paper.stress import STREAMS
from gatekeeper.stats.error_model import ErrorModel, KnownTable
from gatekeeper.stats.shrinkage import FLIPPED
from gatekeeper.stats.student import student_interval
from gatekeeper.types import FloatArray

OTHERS, OTHER_SEED = 30_000, 10_000  # outputs of the fitted model, and their seed
GAINS = ("labels", "model", "order", "both")


def fitted(name: str, source: Source, most: int, n: int, seed: int) -> ErrorModel:
    """The model of outputs that are not in the stream, with noise like the stream's."""
    if most < OTHERS:  # records
        table = source(most, seed + 1).take(np.arange(n, most))
    else:
        table = source(OTHERS, OTHER_SEED)
    if name in STREAMS and STREAMS[name].then is not None:
        table = table.take(np.arange(OTHERS // 2, OTHERS))
    rng = np.random.default_rng(OTHER_SEED)
    spread = PROTOCOL.signal_noise * np.ma.masked_invalid(table.h).std(axis=0).filled(0.0)
    raw = raw_of_records(replace(table, h=table.h + spread * rng.standard_normal(table.h.shape)))
    flipped = rng.random(len(table)) < FLIPPED
    return ErrorModel.fit(raw, KnownTable(raw, abs(table.error - flipped), table.cost))


def in_order(run: PolicyRun, expected_cost: FloatArray) -> float:
    """Recall if the budget is spent in order of P(error) / E[cost]; without a score last."""
    value = run.decisions.score / expected_cost[run.rows]
    order = np.argsort(-np.where(np.isnan(value), -1.0, value), kind="stable")
    spent, found = run.cost[order].cumsum(), run.error[order].cumsum()
    return float(np.interp(run.decisions.budget, spent, found) / found[-1])


def measure(table: RecordTable, model: ErrorModel, protocol: Protocol) -> FloatArray:
    """Recall of `calibrated`, and GAINS, in points: (budgets, 5)."""
    cost = model.of_rows(raw_of_records(table))[1]
    own = list(runs(table, ["calibrated"], BETAS, protocol))
    shown = list(runs(table, ["calibrated"], BETAS, replace(protocol, feedback="full")))
    with patch.object(ErrorModel, "fit", lambda *args, **options: model):
        known = list(runs(table, ["calibrated"], BETAS, protocol))
    recall, labels, best = ([r.metrics()[RECALL] for r in them] for them in (own, shown, known))
    order, both = ([in_order(r, cost) for r in them] for them in (own, known))
    found = 100 * np.array([recall, labels, best, order, both]).T
    found[:, 1:] -= found[:, :1]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="records or logs, labelled")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--n", type=int, default=3000)
    parser.add_argument("--streams", nargs="*", help="only these")
    args = parser.parse_args()
    print(machine())
    print(
        f"{f'N = {args.n}, {args.seeds} seeds':34}{'recall':>8}" + "".join(f"{g:>8}" for g in GAINS)
    )
    found: list[FloatArray] = []
    for name, most, source in sources(args.files):
        if most < 2 * args.n or (args.streams and name not in args.streams):
            continue
        mine = []
        for seed in range(args.seeds):
            model = fitted(name, source, most, args.n, seed)
            table, protocol = source(args.n, seed + 1), replace(PROTOCOL, first_seed=seed)
            mine.append(measure(table, model, protocol))
        found.append(np.array(mine))
        row = found[-1].mean(axis=(0, 1))
        print(f"{name:34}{row[0]:8.1f}" + "".join(f"{gain:+8.2f}" for gain in row[1:]), flush=True)
    by_budget = np.mean(found, axis=(0, 1))
    for beta, row in zip(BETAS, by_budget, strict=True):
        print(f"{f'β = {beta:.0%}':34}{row[0]:8.1f}" + "".join(f"{g:+8.2f}" for g in row[1:]))
    over = [student_interval(column) for column in np.mean(found, axis=(1, 2)).T]
    print(
        f"{'mean, ± over streams':34}"
        + ", ".join(f"{i.value:+.2f} ± {i.margin:.2f}" for i in over[1:])
    )


if __name__ == "__main__":
    main()

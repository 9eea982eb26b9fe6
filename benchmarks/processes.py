"""Errors that four gates on one shared run find, beside one gate that sees the whole stream.

    PYTHONPATH=.:tests/support python benchmarks/processes.py [--seeds 20] [--runs 400] [--jobs 2]

Each output of a stream of `gatekeeper.paper.stress` goes to one of four gates at random; all have
the same budget, a share of what is seen. The gates are in one program and take turns, so that their
delay behind each other does not depend on this machine: each reads what the others wrote every
`gatekeeper.log.postgres_shared.FOLLOW` seconds of a stream of `RATE` outputs per second, and writes
events and returns leases as often as a separate process would. Leases, events and reading are the
real ones, on a server that this script starts.

First the errors found by four gates, divided by those that one gate finds, with a 95 % interval of
the mean over seeds. About six verifications are missing at the end of a stream of any length, since
each process refuses near the cap, so shorter streams have lower figures. Then how often the 95 %
intervals of `gatekeeper.analysis.estimates` cover the true error rate, on the log of four gates
and, for the same streams, on that of one. Draws of shared gates have no seed: figures vary a little
from call to call.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from math import inf, sqrt
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from _machine import machine
from postgres import missing, start
from scipy.stats import t as student

from gatekeeper import Budget, Generation, Signals, VerificationGate
from gatekeeper.analysis.estimates import Estimates, estimate
from gatekeeper.budget.silence import BEAT
from gatekeeper.gate import new_output
from gatekeeper.io.records import RecordTable, load_records
from gatekeeper.log import PostgresRun, postgres_shared
from gatekeeper.log.postgres_shared import DELAY, FOLLOW, SharedLog
from gatekeeper.paper.stress import make_stream

POLICIES = ("threshold", "cst", "calibrated")
STREAMS = ("usual", "no-signal", "rare-errors", "drift", "sharp-signal")
GATES = 4
SHARE = 0.2
RATE = 200  # outputs per second, of all gates together
LONG, SHORT = 3000, 500  # outputs, for errors found and for coverage
ROUNDING = 1e-9


class Found(NamedTuple):
    """The results of one stream."""

    errors: int
    verified: int
    truth: float  # error rate of the outputs that an estimate is about
    estimates: Estimates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20, help="streams for errors found")
    parser.add_argument("--runs", type=int, default=400, help="for coverage, of each policy")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--policy", action="append", choices=POLICIES)
    args = parser.parse_args()
    if why := missing():
        raise SystemExit(why)
    print(machine())
    settled = "&options=-c%20synchronous_commit%3Doff"  # crashes of the server are not simulated
    with start() as server, ProcessPoolExecutor(args.jobs) as pool:
        for streams, n, seeds, show in (
            (("usual",), LONG, range(args.seeds), show_errors),
            (STREAMS, SHORT, range(args.runs), show_coverage),
        ):
            every = []
            for policy in args.policy or POLICIES if seeds else ():
                way = partial(both, server.dsn + settled, policy, streams, n)
                pairs = list(pool.map(way, seeds))
                show(policy, pairs)
                every += pairs
            if every:
                show("all", every)


def both(dsn: str, policy: str, streams: tuple[str, ...], n: int, seed: int) -> tuple[Found, Found]:
    """The results of four gates, and of one."""
    stream = make_stream(streams[seed % len(streams)], n, seed)
    signals = {id_: Signals(*h) for id_, h in zip(stream.ids, stream.h.tolist(), strict=True)}
    with patch.object(new_output, "signals_of", lambda generation: signals[generation.id]):
        four = of_four(policy, stream, PostgresRun(dsn, f"{policy} {n} {seed}"), seed)
        return four, of_one(policy, stream, seed)


def of_four(policy: str, stream: RecordTable, place: PostgresRun, seed: int) -> Found:
    which = np.random.default_rng((seed, 9)).integers(GATES, size=len(stream)).tolist()
    with (
        ExitStack() as stack,
        patch.object(postgres_shared, "FOLLOW", inf),
        patch.object(postgres_shared, "BEAT", inf),
    ):
        gates = [new_gate(policy, stream, log=place, shared=True) for _ in range(GATES)]
        logs = [log for gate in gates if isinstance(log := gate._life._log._log, SharedLog)]
        assert len(logs) == GATES
        for gate in gates:
            stack.callback(gate.close)
        for t, (id_, gate) in enumerate(zip(stream.ids, which, strict=True), start=1):
            gates[gate].maybe_verify(Generation(id_, ""))
            if t % round(DELAY * RATE) == 0:
                take_turns(logs, t)
    return found(load_records(place), stream)


def take_turns(logs: list[SharedLog], t: int) -> None:
    """Do what the background thread of each log does from time to time, after t outputs."""
    for log in logs:
        log.flush()
        log.leases.write_ahead()
    if t % round(FOLLOW * RATE) == 0:
        for log in logs:
            log._follow()
            log.leases.share()
    if t % round(BEAT * RATE) == 0:
        for log in logs:
            log.leases.beat()


def of_one(policy: str, stream: RecordTable, seed: int) -> Found:
    with new_gate(policy, stream, seed=seed) as gate:
        decisions = [gate.maybe_verify(Generation(id_, "")).decision for id_ in stream.ids]
    verified = np.array([decision.verify for decision in decisions])
    propensity = np.array([decision.propensity for decision in decisions])
    left = replace(
        stream,
        error=np.where(verified, stream.error, np.nan),
        propensity=propensity,
        verified=verified.astype(np.float64),
    )
    return found(left, stream)


def new_gate(policy: str, stream: RecordTable, **given: Any) -> VerificationGate:
    error = dict(zip(stream.ids, stream.error.tolist(), strict=True))
    cost = dict(zip(stream.ids, stream.cost_estimate.tolist(), strict=True))
    return VerificationGate(
        policy,
        budget=Budget(fraction=SHARE),
        verifier=lambda generation, task: not error[generation.id],
        cost_estimate=lambda generation, task: cost[generation.id],
        **given,
    )


def found(left: RecordTable, stream: RecordTable) -> Found:
    """The results, from a log's records in any order and the stream with its true labels."""
    assert left.verified is not None
    assert left.propensity is not None
    assert sorted(left.ids) == sorted(stream.ids)
    error = dict(zip(stream.ids, stream.error.tolist(), strict=True))
    covered = zip(left.ids, left.propensity.tolist(), strict=True)
    truth = np.mean([error[id_] for id_, p in covered if p > 0.0])
    verified = left.verified == 1.0
    return Found(int(left.error[verified].sum()), int(verified.sum()), float(truth), estimate(left))


def show_errors(policy: str, pairs: list[tuple[Found, Found]]) -> None:
    errors = np.array([[four.errors, one.errors] for four, one in pairs], dtype=float)
    verified = np.array([[four.verified, one.verified] for four, one in pairs], dtype=float)
    ratio = errors[:, 0] / errors[:, 1]
    margin = student.ppf(0.975, len(ratio) - 1) * ratio.std(ddof=1) / sqrt(len(ratio))
    print(
        f"{policy:<12} errors found by {GATES} gates / by one: {ratio.mean():.3f} +- {margin:.3f}"
        f" ({errors[:, 0].mean():.0f} / {errors[:, 1].mean():.0f} of "
        f"{verified[:, 0].mean():.0f} / {verified[:, 1].mean():.0f} verified)",
        flush=True,
    )


def show_coverage(policy: str, pairs: list[tuple[Found, Found]]) -> None:
    for gates, results in zip((GATES, 1), zip(*pairs, strict=True), strict=True):
        shown = []
        for name in ("weighted", "assisted"):
            inside = [
                one.low - ROUNDING <= result.truth <= one.high + ROUNDING
                for result in results
                if (one := getattr(result.estimates, name)) is not None
            ]
            shown.append(f"{name} {np.mean(inside):6.1%} of {len(inside)}")
        print(f"{policy:<12} {gates} gate(s), coverage: {', '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()

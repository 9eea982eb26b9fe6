"""Verifications per processor on a Ray pool of two nodes, beside the same sandbox without Ray.

Both run on this machine, by turns in one run. Needs the extra `ray`; the bar is 0.9 of the rate.

    python benchmarks/ray_pool.py
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import ray
from ray.cluster_utils import Cluster

from gatekeeper import Generation, Verdict
from gatekeeper.ray import RayVerifier
from gatekeeper.sandbox import LocalSandbox

NODES, BAR = 2, 0.9
TASK = {"kind": "code", "entry_point": "double", "tests": ["assert double(2) == 4"]}
TEXT = "def double(x):\n    return 2 * x"


def main() -> int:
    """Print the two rates. Returns 1 if the pool's is below the bar."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outputs", type=int, default=256, help="of one turn")
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    pairs = [(Generation(f"{n}", TEXT), TASK) for n in range(args.outputs)]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(NODES):
        cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False)
    local = LocalSandbox(workers=NODES)
    rates: dict[str, list[float]] = {"local": [], "ray": []}
    with RayVerifier(LocalSandbox) as pool, ThreadPoolExecutor(NODES) as threads:
        while len(pool.nodes) < NODES:
            time.sleep(0.1)
        for turn in range(args.turns + 1):  # the first one starts workers and is not counted
            for name in rates:
                start = time.perf_counter()
                if name == "ray":
                    outcomes = pool.verify_batch(pairs)
                else:
                    outcomes = list(threads.map(lambda pair: local.verify(*pair), pairs))
                rate = args.outputs / (time.perf_counter() - start) / NODES
                assert {outcome.verdict for outcome in outcomes} == {Verdict.PASSED}
                if turn:
                    rates[name].append(rate)
    ray.shutdown()
    cluster.shutdown()
    ratio = statistics.median(
        pooled / alone for pooled, alone in zip(rates["ray"], rates["local"], strict=True)
    )
    for name, found in rates.items():
        print(f"{name:6} {statistics.median(found):8.1f} verifications/s per processor")
    print(f"ratio  {ratio:8.2f}  (bar {BAR})")
    return int(ratio < BAR)


if __name__ == "__main__":
    sys.exit(main())

"""Products in blocks of rows: equal to the plain ones, and computed by the thread that asks."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from gatekeeper.stats import products

# Processor time of a policy's fits, of this thread and of all others, on stdout.
FITS = """
import time
from gatekeeper.policies import Calibrated
from gatekeeper.testing import ScriptedVerifier, make_generation
from gatekeeper import Budget, VerificationGate

outputs = [make_generation(str(i), tokens=8, seed=i) for i in range(1200)]
verifier = ScriptedVerifier({str(i): i % 3 == 0 for i in range(1200)})
policy = Calibrated(0.9, objective="precision")
with VerificationGate(policy, budget=Budget(fraction=0.9), verifier=verifier) as gate:
    for output in outputs:
        gate.maybe_verify(output)
    policy._fit()
    every, mine = time.process_time(), time.thread_time()
    for _ in range(20):
        policy._fit()
    every, mine = time.process_time() - every, time.thread_time() - mine
print(mine, every - mine)
"""
# The same of the predictions that a draw for a score depends on, with many columns of features.
PREDICTIONS = """
import time
import numpy as np
from gatekeeper.stats.value_model import Columns, predict

rng = np.random.default_rng(0)
z, known = rng.normal(size=(500, 60)), np.arange(500)
y = z[:, 0] + rng.normal(size=500)
predict(Columns(z, np.full(60, 0.1)), known, y)
every, mine = time.process_time(), time.thread_time()
for _ in range(20):
    predict(Columns(z, np.full(60, 0.1)), known, y)
every, mine = time.process_time() - every, time.thread_time() - mine
print(mine, every - mine)
"""


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 500])
def test_they_are_the_plain_products(n: int) -> None:
    rng = np.random.default_rng(n)
    x, y, w = rng.normal(size=(n, 7)), rng.normal(size=(n, 3)), rng.normal(size=(4, 7))
    for order in ("C", "F"):
        x = np.asarray(x, order=order)
        np.testing.assert_allclose(products.of_columns(x, y), x.T @ y, atol=1e-12)
        np.testing.assert_allclose(products.of_columns(x, x), x.T @ x, atol=1e-12)
        np.testing.assert_allclose(products.of_rows(x, w), x @ w.T, atol=1e-12)


@pytest.mark.parametrize("program", [FITS, PREDICTIONS], ids=["fits", "predictions"])
def test_a_fit_takes_no_other_thread(program: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    mine, others = map(float, run.stdout.split())
    assert mine > 0.01  # seconds
    assert others < 0.1 * mine

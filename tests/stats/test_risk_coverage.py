"""Risk–coverage in closed form."""

from math import nan

import numpy as np
import pytest

from gatekeeper.errors import BadInputError
from gatekeeper.stats.risk_coverage import aurc, risk_coverage


def test_aurc_of_known_orderings() -> None:
    n, e = 10, 3
    y = np.repeat([0, 1], [n - e, e])
    perfect = sum((i - (n - e)) / i for i in range(n - e + 1, n + 1)) / n
    worst = sum(min(i, e) / i for i in range(1, n + 1)) / n
    assert aurc(y, y) == pytest.approx(perfect)
    assert aurc(-y, y) == pytest.approx(worst)
    assert aurc(np.zeros(n), y) == pytest.approx(e / n)  # knows nothing: the base rate
    assert risk_coverage([1, 2, 3, 4], [0, 1, 0, 1]) == pytest.approx([0, 1 / 2, 1 / 3, 1 / 2])
    assert aurc([5.0], [1]) == 1.0
    assert aurc([1, np.inf, -np.inf], [0, 1, 0]) == pytest.approx(1 / 9)


def test_equal_scores_count_by_expectation() -> None:
    """The mean over all orders of the ties, here over many random ones."""
    rng = np.random.default_rng(0)
    scores, y = rng.integers(0, 4, 40), rng.integers(0, 2, 40)
    orders = [np.lexsort((rng.random(40), scores)) for _ in range(4000)]
    broken = np.mean([np.cumsum(y[o]) / np.arange(1, 41) for o in orders], axis=0)
    assert risk_coverage(scores, y) == pytest.approx(broken, abs=0.03)
    assert aurc(scores, y) == pytest.approx(broken.mean(), abs=0.005)
    assert aurc(np.exp(scores), y) == aurc(scores, y)  # only the order matters


@pytest.mark.parametrize(
    ("scores", "labels"), [([], []), ([1.0], [0, 1]), ([nan], [1]), ([1.0], [2]), ([1.0], [nan])]
)
def test_aurc_refuses_what_has_no_order(scores: list[float], labels: list[float]) -> None:
    with pytest.raises(BadInputError):
        aurc(scores, labels)

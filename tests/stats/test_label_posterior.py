"""Draws of labels: known ones are exact, unknown ones follow verdicts and predictions."""

import tracemalloc

import numpy as np
import pytest
from scipy.special import expit

from gatekeeper.stats.label_posterior import DRAWS, LabelPosterior
from gatekeeper.types import FloatArray

N = 3000


def stream(seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Log odds, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(-0.5, 1.0, N)
    return odds, (rng.random(N) < expit(odds)).astype(float)


def test_known_labels_are_added_up() -> None:
    odds, label = stream()
    weights = np.column_stack([np.ones(N), odds])
    found, size = LabelPosterior(label, odds, []).totals(weights)
    assert found == pytest.approx(np.tile(label @ weights, (DRAWS, 1)))
    assert size == pytest.approx(np.tile(weights.sum(axis=0), (DRAWS, 1)))


def test_a_resampled_rate_is_a_beta_posterior() -> None:
    """Bayesian bootstrap of x of n: Beta(x, n - x)."""
    label = np.repeat([1.0, 0.0], [30, 70])
    found, size = LabelPosterior(label, np.zeros(100), []).totals(np.ones((100, 1)), resample=True)
    rate = found / size
    assert rate.mean() == pytest.approx(0.3, abs=0.006)
    assert rate.std() == pytest.approx((0.3 * 0.7 / 101) ** 0.5, rel=0.1)


@pytest.mark.parametrize("verdicts", [20, 1000])
def test_a_part_has_the_rate_that_its_verdicts_show(verdicts: int) -> None:
    """Half of the outputs are never wrong, against the prediction: with many verdicts the estimate
    shows it, with few it lies in between and is uncertain."""
    odds, label = stream()
    part = np.arange(N) % 2
    label = np.where(part == 1, 0.0, label)
    known = np.random.default_rng(1).permutation(N)[: 2 * verdicts]
    seen = np.full(N, np.nan)
    seen[known] = label[known]
    found, _ = LabelPosterior(seen, odds, [part]).totals((part == 1)[:, None] / (N / 2))
    low, high = np.quantile(found, (0.025, 0.975)).tolist()
    if verdicts == 1000:
        assert high < 0.02
    else:
        assert low < 0.1 < expit(odds).mean()
        assert high - low > 0.05


def test_draws_cover_the_rate_of_the_unknown() -> None:
    covered = 0
    for seed in range(40):
        odds, label = stream(seed)
        unknown = np.random.default_rng((seed, 1)).random(N) > np.where(odds > 0.5, 1.0, 0.02)
        posterior = LabelPosterior(np.where(unknown, np.nan, label), odds, [unknown.astype(int)])
        found, _ = posterior.totals(np.ones((N, 1)))
        low, high = np.quantile(found, (0.025, 0.975))
        covered += low <= label.sum() <= high
    assert covered >= 35


def test_equal_seeds_draw_alike() -> None:
    odds, label = stream()
    seen = np.where(np.arange(N) % 7 == 0, label, np.nan)
    one, again, other = (
        LabelPosterior(seen, odds, [], seed=seed).totals(np.ones((N, 1)))[0] for seed in (1, 1, 2)
    )
    assert (one == again).all()
    assert (one != other).any()


def test_memory_does_not_grow_with_the_parts_of_all_outputs() -> None:
    """A long log has millions of outputs, and the design a column for each part."""
    n, parts = 100_000, 40
    label = np.full(n, np.nan)
    label[:100] = np.arange(100) % 2
    predicted, partition = np.zeros(n), np.arange(n) % parts
    tracemalloc.start()
    LabelPosterior(label, predicted, [partition])
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 10 * predicted.nbytes


@pytest.mark.parametrize("resample", [False, True])
@pytest.mark.parametrize("known", [0.15, 1.0])
def test_cells_draw_what_single_outputs_do(
    resample: bool, known: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums over the cells of many outputs have the distribution of sums over single labels: with
    parts, parts without an effect, outputs that do not count, and weights of any kind and sign."""
    odds, label = stream()
    rng = np.random.default_rng(3)
    partitions = [rng.integers(0, 3, N), np.where(rng.random(N) < 0.2, -1, rng.integers(0, 2, N))]
    share = rng.random(N)
    seen = np.where(rng.random(N) < known, label, np.nan)
    weights = np.column_stack([np.ones(N), (odds > 0.5) - 0.7 * (share > 0.5), share])
    weights[share > 0.9] = 0.0

    def sums() -> FloatArray:
        found = LabelPosterior(seen, odds, partitions).totals(weights, resample=resample)
        return np.hstack(found)

    each = sums()
    monkeypatch.setattr("gatekeeper.stats.label_posterior.EACH", 0)
    monkeypatch.setattr("gatekeeper.stats.label_posterior.BLOCK", 700)
    cells = sums()
    spread = each.std(axis=0)
    assert (np.abs(cells.mean(axis=0) - each.mean(axis=0)) <= 0.15 * spread + 1e-9).all()
    assert cells.std(axis=0) == pytest.approx(spread, rel=0.12, abs=1e-9)
    vary = spread > 1e-9
    if vary.sum() > 1:
        found, expected = (np.corrcoef(draws[:, vary].T) for draws in (cells, each))
        assert found == pytest.approx(expected, abs=0.12)


def test_few_cells_stand_for_many_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many outputs there are: else long logs take hours."""
    odds, label = stream()
    monkeypatch.setattr("gatekeeper.stats.label_posterior.EACH", 0)
    sizes = []
    for times in (1, 20):
        seen = np.tile(np.where(np.arange(N) % 7 == 0, label, np.nan), times)
        posterior = LabelPosterior(seen, np.tile(odds, times), [np.tile(np.arange(N) % 2, times)])
        asked: list[int] = []
        probabilities = posterior._probabilities

        def counted(rows, predicted, off, probabilities=probabilities, asked=asked):  # type: ignore[no-untyped-def]
            asked.append(rows.size)
            return probabilities(rows, predicted, off)

        monkeypatch.setattr(posterior, "_probabilities", counted)
        posterior.totals(np.ones((seen.size, 1)))
        sizes.append(sum(asked))
    assert sizes[0] == sizes[1] < N / 5

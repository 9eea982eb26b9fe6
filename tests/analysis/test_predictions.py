"""Predictions of errors from the verdicts on some outputs."""

import numpy as np
import pytest

from gatekeeper.analysis.predictions import log_odds_of
from gatekeeper.stats.error_model import ErrorModel, KnownTable
from gatekeeper.stats.raw_table import RawTable


def test_a_fit_takes_labels_of_the_whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long log has more labels than a fit needs; those it takes are of the beginning and the
    end."""
    n, most = 5000, 400
    rng = np.random.default_rng(0)
    h = rng.normal(size=n)
    rows = np.column_stack([h, h, h, np.zeros(n), np.arange(n)])
    raw = RawTable(rows, (), np.zeros((n, 0)))
    label = (rng.random(n) < 1.0 / (1.0 + np.exp(-2.0 * h))).astype(float)
    drawn = np.arange(n) % 2 == 1
    of_all = log_odds_of(raw.take, drawn, label)
    places = []
    fit = ErrorModel.fit

    def counted(recent: RawTable, known: KnownTable) -> ErrorModel:
        places.append(known.raw.rows[:, 4])
        return fit(recent, known)

    monkeypatch.setattr("gatekeeper.analysis.predictions.MOST", most)
    monkeypatch.setattr("gatekeeper.analysis.predictions.ErrorModel.fit", counted)
    of_some = log_odds_of(raw.take, drawn, label)
    (at,) = places
    assert at.size == most
    assert (at % 2 == 1).all()
    assert (np.histogram(at, bins=8, range=(0, n))[0] == most / 8).all()
    assert np.corrcoef(of_some, of_all)[0, 1] > 0.98

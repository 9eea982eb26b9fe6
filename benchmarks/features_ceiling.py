"""The most recall that features give where every label is known and right, by form of the model.

    pip install scikit-learn
    OPENBLAS_NUM_THREADS=1 python benchmarks/features_ceiling.py RECORDS ...

Each form is fitted to four fifths of the records and ranks the rest by P(error) / ĉ, with and
without features; no policy runs. Points of recall, mean over budgets of 10, 20 and 30 %: gained
over the same form without features, and over `calibrated`'s form without features.

- calibrated: `stats.error_model`, which assumes that 10 % of the labels are wrong;
- right labels: the same columns, and no label assumed wrong;
- levels, products: moreover a level for each value that 30 outputs share, and each feature's rank
  times that of the signals and of ĉ;
- trees: gradient boosting of signals, ĉ and features (scikit-learn);
- trees, group: the same with the records' group (for MMLU-Pro the subject), in both.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path

import numpy as np
from features import predicted, recall_by
from sklearn.ensemble import HistGradientBoostingClassifier

from gatekeeper.analysis.outputs import raw_of_records
from gatekeeper.analysis.predictions import FOLDS
from gatekeeper.io.records import RecordTable, load_records
from gatekeeper.stats.error_model import ERROR, WIDTH, R, U, design_of
from gatekeeper.stats.feature_terms import SLAB, FeatureTerms
from gatekeeper.stats.rank_scale import RankScale
from gatekeeper.stats.raw_table import RawTable
from gatekeeper.stats.shrinkage import Group, probabilities, shrunk_fit
from gatekeeper.types import FloatArray

SHARED = 30  # outputs that share a value which gets a level
LEVEL, PRODUCT = 0.1, 0.05  # prior variances of such coefficients
Form = Callable[[RecordTable, RawTable], FloatArray]  # P(error) of each, not from its own label


def linear(table: RecordTable, raw: RawTable, *, more: bool) -> FloatArray:
    scales = [RankScale.of(column) for column in raw.rows.T]
    size = raw.rows[:, 3]
    edges = np.quantile(size, np.arange(1, 8) / 8).tolist()
    x = design_of(scales, edges, float(size.mean()), raw.rows)
    terms = FeatureTerms.of_table(raw.names, raw.features)
    columns = [x, terms.of_rows(raw.names, raw.features)]
    variances = [*SLAB[terms.kinds].tolist()]
    for values in raw.features.T if more else ():
        levels, count = np.unique(values[~np.isnan(values)], return_counts=True)
        shared = levels[count >= SHARED]
        z = np.nan_to_num(RankScale.of(values).of_rows(values))[:, None]
        columns += [(values[:, None] == shared).astype(np.float64), z * x[:, [U, R]]]
        variances += [LEVEL] * shared.size + [PRODUCT] * 2
    x = np.hstack(columns)
    own = [Group((WIDTH + i,), variance=v, weight=inf) for i, v in enumerate(variances)]

    def predict(known: FloatArray, label: FloatArray, asked: FloatArray) -> FloatArray:
        fit = shrunk_fit(known, label, [*ERROR, *own], "logistic", flipped=0.0)
        return probabilities(asked, fit.coefficients)[0]

    return by_fold(x, table.error, predict)


def trees(table: RecordTable, raw: RawTable, *, group: bool) -> FloatArray:
    there = ~np.isnan(raw.rows).all(axis=0)
    columns = [raw.rows[:, there], raw.features]
    if group:
        assert table.group is not None
        names = np.array(table.group)
        columns.append((names[:, None] == np.unique(names)).astype(np.float64))

    def predict(known: FloatArray, label: FloatArray, asked: FloatArray) -> FloatArray:
        model = HistGradientBoostingClassifier(
            max_iter=300, learning_rate=0.025, max_leaf_nodes=6, min_samples_leaf=40, random_state=0
        )
        return np.asarray(model.fit(known, label).predict_proba(asked)[:, 1])

    return by_fold(np.hstack(columns), table.error, predict)


def by_fold(
    x: FloatArray,
    label: FloatArray,
    predict: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
) -> FloatArray:
    found, fold = np.empty(label.size), np.arange(label.size) % FOLDS
    for k in range(FOLDS):
        mine = fold == k
        found[mine] = predict(x[~mine], label[~mine], x[mine])
    return found


def mean_recall(table: RecordTable, p: FloatArray) -> float:
    return float(recall_by(table, p).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, help="records with features and all labels")
    forms: dict[str, Form] = {
        "calibrated": predicted,
        "right labels": partial(linear, more=False),
        "levels, products": partial(linear, more=True),
        "trees": partial(trees, group=False),
        "trees, group": partial(trees, group=True),
    }
    found: dict[str, list[tuple[float, float]]] = {}
    for path in parser.parse_args().files:
        table = load_records(path)
        table = table.take(~np.isnan(table.error) & ~np.isnan(table.cost))
        raw = raw_of_records(table)
        ours = mean_recall(table, predicted(table, raw.only(())))
        for name, form in forms.items():
            if "group" in name and table.group is None:
                continue
            used, plain = (mean_recall(table, form(table, each)) for each in (raw, raw.only(())))
            found.setdefault(name, []).append((used - plain, used - ours))
    print(f"{'form':20}{'over itself':>14}{'by file':>{7 * len(found['trees'])}}{'over ours':>14}")
    for name, gains in found.items():
        by_itself, by_ours = np.array(gains).T
        by_file = "".join(f"{gain:+7.2f}" for gain in by_itself)
        print(f"{name:20}{by_itself.mean():+14.2f}{by_file}{by_ours.mean():+14.2f}")


if __name__ == "__main__":
    main()

"""Verification in Ray Data: every row, without a gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gatekeeper.errors import BadInputError
from gatekeeper.ray.worker import Make, Worker
from gatekeeper.types import Generation, Outcome, Verdict
from gatekeeper.types.values import check_text

__all__ = ["VerifyRows"]


class VerifyRows:
    """Verifies the rows of a Ray Data set: `data.map_batches(VerifyRows, ...)`, without a gate.

    A batch comes back with the columns `verdict` (a `Verdict` as text), `detail` and `seconds`. A
    row whose text is null, or no text, is an INFRA_ERROR.

    Parameters
    ----------
    make
        As of `RayVerifier`; one verifier for each actor of Ray Data.
    text
        The column with the outputs' text. The whole row is the task.

    Raises
    ------
    BadInputError
        For a `make` that makes no verifier, and a column that no table can have.
    """

    def __init__(self, make: Make, *, text: str = "text") -> None:
        check_text("text", text)
        self._worker, self._text = Worker(make), text

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """The batch, columns as arrays, with the columns of the outcomes.

        Raises
        ------
        BadInputError
            Without the column `text`.
        """
        if self._text not in batch:
            raise BadInputError(f"text={self._text!r}: the columns are {', '.join(batch)}")
        columns = {name: _plain(values) for name, values in batch.items()}
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        outcomes = [self._verified(str(row.get("id", n)), row) for n, row in enumerate(rows)]
        return {
            **batch,
            "verdict": np.array([outcome.verdict.value for outcome in outcomes]),
            "detail": np.array([outcome.detail for outcome in outcomes]),
            "seconds": np.array([outcome.seconds for outcome in outcomes]),
        }

    def _verified(self, id_: str, row: dict[str, Any]) -> Outcome:
        try:
            generation = Generation(id_, row[self._text])
        except BadInputError as e:  # such as a null
            return Outcome(Verdict.INFRA_ERROR, detail=f"column {self._text!r}: {e}")
        return self._worker.verify_many([(generation, row)])[0]


def _plain(values: Any) -> list[Any]:
    """A column as Python's own values, nested ones too."""
    return [v.tolist() if isinstance(v, np.ndarray | np.generic) else v for v in values]

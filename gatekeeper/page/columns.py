"""A few bytes of each output, in arrays that grow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gatekeeper.types import BoolArray, FloatArray, Label, Reason

__all__ = ["REASONS", "Columns"]

REASONS = tuple(Reason)  # by their code
UNKNOWN = -1
_DTYPES = {"propensity": "f8", "key": "i8", "reason": "i1", "selected": "?", "label": "i1"}


class Columns:
    """Propensity, reason, selection and label of each output, in the order of deciding.

    The arrays have shape (N,); 19 bytes for each output. Ids are kept as hashes of 64 bits, for
    verdicts from outside, which may come for any output.
    """

    def __init__(self) -> None:
        self._n = 0
        self._all = {name: np.empty(1024, dtype) for name, dtype in _DTYPES.items()}
        self._waiting: list[tuple[int, Label]] = []  # labels by key, not yet in their places

    def __len__(self) -> int:
        return self._n

    def add(self, id_: str, propensity: float, reason: Reason, *, selected: bool) -> int:
        """Append an output; returns its index."""
        n = self._n
        if n == self._all["key"].size:
            self._all = {name: np.resize(column, 2 * n) for name, column in self._all.items()}
        columns = self._all
        columns["propensity"][n] = propensity
        columns["key"][n] = hash(id_)
        columns["reason"][n] = REASONS.index(reason)
        columns["selected"][n] = selected
        columns["label"][n] = UNKNOWN
        self._n = n + 1
        return n

    def set_label(self, index: int, error: Label) -> None:
        self._all["label"][index] = error

    def set_label_by_id(self, id_: str, error: Label) -> None:
        self._waiting.append((hash(id_), error))

    @property
    def propensity(self) -> FloatArray:
        return self._all["propensity"][: self._n]

    @property
    def selected(self) -> BoolArray:
        return self._all["selected"][: self._n]

    @property
    def labels(self) -> NDArray[np.int8]:
        """1 wrong, 0 right, -1 unknown."""
        labels: NDArray[np.int8] = self._all["label"][: self._n]
        if self._waiting:
            # One search for all of them: a run may check every output afterwards.
            keys = self._all["key"][: self._n]
            order = np.argsort(keys)
            wanted, errors = (np.array(part) for part in zip(*self._waiting, strict=True))
            at = np.minimum(np.searchsorted(keys, wanted, sorter=order), self._n - 1)
            known = keys[order[at]] == wanted
            labels[order[at[known]]] = errors[known]
            self._waiting.clear()
        return labels

    def of_reason(self, reason: Reason) -> BoolArray:
        """Which outputs were decided on for this reason."""
        codes = self._all["reason"][: self._n]
        return np.asarray(codes == REASONS.index(reason))

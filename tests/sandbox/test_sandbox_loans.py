"""Loans end when only the loans themselves refer to them, which is counted by references."""

from __future__ import annotations

from typing import Any

import pytest

from gatekeeper.sandbox.inside import loans
from gatekeeper.sandbox.inside.loans import Loans


def test_loans_end_when_nothing_else_refers_to_them() -> None:
    ours = Loans(0)
    inner, other = [1], [5]
    pair = inner, 2
    outer: list[Any] = [pair, {"k": inner}]
    ours.lend(outer, other, [7])
    ours.changes()
    assert len(ours.numbers) == 4  # `outer`, the dict in it, `inner`, `other`
    del outer, inner
    ours.changes()
    assert len(ours.numbers) == 2  # `inner`, which is in the pair, `other`
    del pair
    ours.changes()
    assert ours.find(ours.numbers[id(other)]) is other
    assert len(ours.numbers) == 1
    other.append(other)
    assert ours.changes() is not None
    del other
    ours.changes()
    assert not ours.numbers


def test_what_takes_too_long_is_sent_once_more_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loans, "WORK", 1)
    monkeypatch.setattr(loans, "TOTAL_LATER", 1000)
    ours = Loans(1)
    small, large = [1], [*range(1000)]
    ours.lend(small, large)
    numbers = {**ours.numbers}
    ours.changes()
    large.append(1)
    sent = ours.changes()
    assert sent is not None
    assert sent.changed == {numbers[id(large)]: large}
    assert sent.ended == [numbers[id(large)]]
    ours.sent(sent)
    assert [*ours.numbers] == [id(small)]


def test_numbers_that_this_side_did_not_give() -> None:
    ours = Loans(0)
    kept: list[int] = []
    ours.lend(kept)
    (number,) = ours.numbers.values()
    assert ours.take(number, [3]) is kept
    assert kept == [3]
    with pytest.raises(ValueError, match="something else"):
        ours.take(number, {})
    with pytest.raises(ValueError, match="does not change"):
        ours.take(7, (1, 2))
    ours.take(number + 2, [4])  # one of this side, which has ended: it is no loan
    assert [*ours.numbers] == [id(kept)]
    ours.end([number, number, None, []])
    assert not ours.numbers

"""Micro-batches: callers of one event loop are answered together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any

import pytest

from gatekeeper.gate.micro_batch import MicroBatcher

PATIENCE = 60.0


class Squares:
    """Answers with squares, and keeps the batches it was asked for and the answers it undid."""

    def __init__(self, *, most: int = 8) -> None:
        self.asked: list[list[int]] = []
        self.undone: list[int] = []
        self.square = MicroBatcher(self._handle, self.undone.append, most=most)

    def _handle(self, batch: Sequence[int]) -> list[int]:
        self.asked.append(list(batch))
        return [item * item for item in batch]


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, PATIENCE))


def test_calls_of_one_turn_are_answered_together_up_to_the_limit() -> None:
    """In the order in which they came, each with its own answer, and the next turn again."""
    squares = Squares()

    async def main() -> None:
        for _ in range(2):
            assert await asyncio.gather(*map(squares.square, range(20))) == [
                i * i for i in range(20)
            ]
        assert await squares.square(7) == 49

    run(main())
    turn = [list(range(8)), list(range(8, 16)), list(range(16, 20))]
    assert squares.asked == [*turn, *turn, [7]]
    assert squares.undone == []


def test_no_caller_waits_for_others_to_arrive() -> None:
    """A single caller has its answer in the next turn, whatever else is awaited."""
    squares = Squares()

    async def main() -> None:
        late = asyncio.create_task(asyncio.sleep(PATIENCE))
        asked = asyncio.create_task(squares.square(3))
        for _ in range(2):
            assert not asked.done()
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert asked.result() == 9
        late.cancel()

    run(main())


@pytest.mark.parametrize("who", range(3))
def test_a_caller_that_is_cancelled_before_the_batch_is_left_out(who: int) -> None:
    """Also the first one, whose turn the others wait for."""
    squares = Squares()

    async def main() -> None:
        tasks = [asyncio.create_task(squares.square(i)) for i in range(3)]
        asyncio.get_running_loop().call_soon(tasks[who].cancel)  # all of them wait by then
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results.pop(who), asyncio.CancelledError)
        assert results == [i * i for i in range(3) if i != who]

    run(main())
    assert squares.asked == [[i for i in range(3) if i != who]]
    assert squares.undone == []


@pytest.mark.parametrize("who", range(4))
def test_an_answer_whose_caller_is_cancelled_is_undone(who: int) -> None:
    """Cancelled between the answer and its taking: the fourth of four has taken it at once."""
    squares = Squares(most=4)

    async def ask(i: int) -> int:
        answer = await squares.square(i)
        await asyncio.sleep(0)
        return answer

    async def main() -> None:
        tasks = [asyncio.create_task(ask(i)) for i in range(4)]
        while not squares.asked:
            await asyncio.sleep(0)
        tasks[who].cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(results.pop(who), asyncio.CancelledError)
        assert results == [i * i for i in range(4) if i != who]

    run(main())
    assert squares.asked == [[0, 1, 2, 3]]
    assert squares.undone == ([] if who == 3 else [who * who])


def test_an_interrupt_leaves_no_caller_waiting() -> None:
    """Ctrl-C in the middle is raised; on a loop that goes on, the others are cancelled."""

    def interrupted(batch: Sequence[int]) -> list[int]:
        raise KeyboardInterrupt

    square = MicroBatcher(interrupted, pytest.fail, most=8)
    loop = asyncio.new_event_loop()
    tasks = [loop.create_task(square(i)) for i in range(3)]
    both = asyncio.gather(*tasks, return_exceptions=True)
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(both)
    ends = loop.run_until_complete(asyncio.wait_for(both, PATIENCE))
    assert [type(end) for end in ends] == [KeyboardInterrupt, *2 * [asyncio.CancelledError]]
    loop.close()


@pytest.mark.parametrize("fails", [False, True])
def test_an_answer_to_a_caller_cancelled_meanwhile_is_undone(fails: bool) -> None:
    """As by asyncio's handler of Ctrl-C, which runs in the middle of anything."""
    tasks: list[asyncio.Task[int]] = []
    undone: list[int] = []

    def handle(batch: Sequence[int]) -> list[int | Exception]:
        tasks[1].cancel()
        return [ValueError(item) if fails else item for item in batch]

    async def main() -> None:
        same = MicroBatcher(handle, undone.append, most=8)
        tasks.extend(asyncio.create_task(same(i)) for i in range(3))
        first, second, third = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(second, asyncio.CancelledError)
        assert list(map(repr, (first, third))) == (
            ["ValueError(0)", "ValueError(2)"] if fails else ["0", "2"]
        )

    run(main())
    assert undone == ([] if fails else [1])


def test_an_answer_whose_caller_is_closed_is_undone() -> None:
    """A coroutine that is thrown away before it has taken its answer."""
    squares = Squares()

    async def main() -> None:
        first, second = asyncio.create_task(squares.square(1)), squares.square(2)
        await asyncio.sleep(0)
        second.send(None)  # it waits with the first
        assert await first == 1
        second.close()

    run(main())
    assert squares.undone == [4]


def test_an_exception_reaches_the_caller_of_its_item_alone() -> None:
    """On an event loop, and without one; one whose caller is cancelled is not undone."""

    def odd_only(batch: Sequence[int]) -> list[int | Exception]:
        return [item if item % 2 else ValueError(item) for item in batch]

    odd = MicroBatcher(odd_only, pytest.fail, most=4)

    async def main() -> None:
        tasks = [asyncio.create_task(odd(i)) for i in range(4)]
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert list(map(repr, results)) == ["ValueError(0)", "1", "ValueError(2)", "3"]
        late = asyncio.create_task(odd(0))
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(late.cancel)
        with pytest.raises((asyncio.CancelledError, ValueError)):
            await late

    run(main())
    alone = odd(2)
    with pytest.raises(ValueError, match="2"):
        alone.send(None)


def test_event_loops_do_not_wait_for_each_other() -> None:
    """Eight in threads of their own, at once: each caller's own answer, and no mixed ones."""
    asked: list[set[int]] = []

    def handle(batch: Sequence[int]) -> list[int]:
        asked.append({item // 1000 for item in batch})
        return [item + 1 for item in batch]

    plus_one = MicroBatcher(handle, pytest.fail, most=8)
    wrong: list[int] = []

    async def main(first: int) -> None:
        for start in range(first, first + 1000, 50):
            answers = await asyncio.gather(*map(plus_one, range(start, start + 50)))
            wrong.extend(set(answers) - set(range(start + 1, start + 51)))

    crew = [threading.Thread(target=run, args=(main(i * 1000),), daemon=True) for i in range(8)]
    for thread in crew:
        thread.start()
    for thread in crew:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert wrong == []
    assert len(asked) == 8 * 20 * 7
    assert all(len(loops) == 1 for loops in asked)

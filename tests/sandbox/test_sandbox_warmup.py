"""What the supervisor does before it forks any process."""

from gatekeeper.sandbox.inside.warmup import fill_gaps

POOL = 1 << 14  # bytes, of CPython's allocator
SIZE, COUNT = 200, 60  # objects that fit into one pool


def pools() -> int:
    """In how many pools new objects of one size lie."""
    made = [bytes(SIZE) for _ in range(COUNT)]
    return len({id(item) // POOL for item in made})


def test_new_objects_lie_side_by_side_once_the_gaps_of_the_heap_are_filled():
    many = [bytes(SIZE) for _ in range(20_000)]
    del many[::40]  # a gap or two in each pool
    assert pools() > 20
    fillings = fill_gaps()
    assert pools() <= 2
    del fillings

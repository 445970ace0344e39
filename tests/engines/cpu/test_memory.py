"""Where buffers lie in the arena: laws of any lives and sizes."""

from hypothesis import given
from hypothesis import strategies as st

from primal.engines.cpu.code import LINE
from primal.engines.cpu.plan.memory import LARGE, PAGE, plan

SIZES = st.integers(1, 300) | st.integers(LARGE - 2, LARGE + 2) | st.integers(1, 5 * LARGE)
LIVES = st.tuples(SIZES, st.integers(0, 9), st.integers(0, 9))


@given(st.lists(LIVES, max_size=14))
def test_buffers_alive_at_once_lie_apart(drawn: list[tuple[int, int, int]]) -> None:
    buffers = [(size, min(life), max(life)) for size, *life in drawn]
    offsets, total = plan(buffers)
    placed = [(at, at + size, *life) for at, (size, *life) in zip(offsets, buffers, strict=True)]
    for i, (begin, end, first, last) in enumerate(placed):
        assert 0 <= begin < end <= total
        assert begin % (PAGE if end - begin >= LARGE else LINE) == 0
        for begun, ended, born, dead in placed[:i]:
            assert last < born or dead < first or end <= begun or ended <= begin


@given(st.lists(LIVES, min_size=1, max_size=14))
def test_the_arena_is_no_larger_than_all_buffers_and_a_page_each(
    drawn: list[tuple[int, int, int]],
) -> None:
    buffers = [(size, min(life), max(life)) for size, *life in drawn]
    _, total = plan(buffers)
    assert total <= sum(size + 2 * PAGE for size, _, _ in buffers)

"""The setting check_static_indices: integers that are known are in bounds, or an IndexError."""

from collections.abc import Iterator

import numpy as np
import pytest

import primal
import primal.numpy as jnp

LINE, SQUARE = jnp.arange(3.0), jnp.ones((3, 3))


@pytest.fixture(autouse=True)
def asked() -> Iterator[None]:
    primal.config.update("check_static_indices", True)
    yield
    primal.config.update("check_static_indices", False)


def both(read):
    return read, primal.jit(read)


@pytest.mark.parametrize(
    "index", [3, -4, np.int32(3), (None, 5), (Ellipsis, -4), (1, 4), (4, slice(0, 2)),
              (np.arange(3), 7), (slice(None), 3)]
)  # fmt: skip
def test_integers_out_of_bounds(index):
    x = SQUARE if isinstance(index, tuple) and index[0] is not None else LINE
    for read in both(lambda x: x[index]), both(lambda x: x.at[index].get()):
        for f in read:
            with pytest.raises(IndexError, match="out of bounds for axis"):
                f(x)


def test_others_are_read_as_without_the_setting():
    # In bounds; slices; arrays of indices; modes that say what out of bounds means; writes.
    for f in (
        lambda x: x[-3], lambda x: x[2], lambda x: x[0:9], lambda x: x[jnp.array([5])],
        lambda x: x[np.array([7])], lambda x: x.at[7].get(mode="clip"),
        lambda x: x.at[7].get(mode="fill", fill_value=1.0), lambda x: x.at[5].set(1.0),
        lambda x: x.at[7].add(1.0), lambda x: jnp.take(x, 7, mode="clip"),
    ):  # fmt: skip
        primal.config.update("check_static_indices", False)
        want = f(LINE)
        primal.config.update("check_static_indices", True)
        for g in both(f):
            np.testing.assert_array_equal(g(LINE), want)


def test_programs_know_the_setting():
    primal.config.update("check_static_indices", False)
    last = primal.jit(lambda x: x[9])
    assert last(LINE) == 2.0
    primal.config.update("check_static_indices", True)
    with pytest.raises(IndexError, match="check_static_indices"):
        last(LINE)

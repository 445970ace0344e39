"""Reductions over named axes and dimensions at once."""

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax

X = np.arange(24.0, dtype="float32").reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("reduce", "oracle"), [(lax.psum, np.sum), (lax.pmax, np.max), (lax.pmin, np.min)]
)
@pytest.mark.parametrize(
    ("axes", "of_all"), [(("i", 0), (0, 1)), ((-1, "i"), (0, 2)), (1, 2), ((0, 1), (1, 2))]
)
def test_integers_are_dimensions_of_the_operand(reduce, oracle, axes, of_all):
    found = primal.vmap(lambda x: reduce(x, axes), axis_name="i")(X)
    want = oracle(X, of_all)
    named = isinstance(axes, tuple) and "i" in axes
    np.testing.assert_array_equal(found, np.broadcast_to(want, (2, *want.shape)) if named else want)


def test_without_names_they_reduce_anywhere():
    assert lax.psum(X, (0, 1, 2)) == 276
    np.testing.assert_array_equal(primal.grad(lambda x: lax.psum(x, 0).sum())(X), np.ones_like(X))
    np.testing.assert_array_equal(primal.jit(lambda x: lax.psum(x > 3, 0))(X), (X > 3).sum(0))


@pytest.mark.parametrize("call", [
    lambda: lax.psum(X, 3), lambda: lax.psum(2.0, 0), lambda: lax.pmean(X, 0),
    lambda: lax.axis_size(0), lambda: lax.all_gather(jnp.ones(3), 0),
])  # fmt: skip
def test_a_position_that_is_none(call):
    with pytest.raises(ValueError, match="axis|axes"):
        call()

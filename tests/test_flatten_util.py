"""ravel_pytree: one vector of a tree, and back."""

from __future__ import annotations

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.flatten_util import ravel_pytree

TREES = {
    "float32": [jnp.array([3.0]), jnp.array([[1.0, 2.0], [3.0, 4.0]])],
    "int32": {"a": jnp.array([3]), "b": (np.int32(7), jnp.array([[1, 2]]))},
    "complex64": (jnp.array([1.0]), jnp.array([1, 2 + 3j]), jnp.array(True)),
}


@pytest.mark.parametrize("dtype", TREES)
def test_trees_come_back_as_they_were(dtype):
    tree = TREES[dtype]
    vector, unravel = ravel_pytree(tree)
    assert vector.dtype == dtype and vector.ndim == 1
    for back in (unravel(vector), primal.jit(unravel)(vector)):
        assert primal.tree.structure(back) == primal.tree.structure(tree)
        for x, y in zip(primal.tree.leaves(tree), primal.tree.leaves(back), strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)
    with pytest.raises(ValueError, match="vector of shape"):
        unravel(vector[1:])


def test_one_dtype_comes_back_as_it_is_and_several_ask_for_theirs():
    x = jnp.arange(4.0)
    vector, unravel = ravel_pytree(x)
    assert unravel(vector < 2).dtype == bool
    vector, unravel = ravel_pytree((x, jnp.arange(3)))
    with pytest.raises(TypeError, match="dtype float32, got bool"):
        unravel(vector < 2)
    vector, unravel = ravel_pytree([])
    assert vector.dtype == np.float32 and vector.shape == (0,) and unravel(vector) == []


def test_inverses_of_equal_trees_are_one_static_argument():
    traces = []

    @primal.jit
    def step(flat):
        return flat + 1

    def run(flat, unravel):
        traces.append(unravel)
        return unravel(step(flat))

    run = primal.jit(run, static_argnums=1)
    for tree in ((jnp.array([1, 2]), jnp.array([3])), (jnp.array([5, 6]), jnp.array([7]))):
        assert int(run(*ravel_pytree(tree))[1][0]) == int(tree[1][0]) + 1
    assert len(traces) == 1
    others = [(jnp.ones(2), jnp.ones(1)), [jnp.ones(2, int), jnp.ones(1, int)], (jnp.ones(3, int),)]
    inverses = [ravel_pytree(t)[1] for t in (TREES["int32"], *others)]
    assert len(set(inverses)) == len(inverses)

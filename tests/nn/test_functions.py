"""Edges of functions of primal.nn."""

from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import grad, nn, vmap


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_the_softmax_of_nothing_is_nothing(function, shape) -> None:
    assert function(jnp.zeros(shape)).shape == shape


def test_one_hot_of_floats_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="expected integers, got dtype float32"):
        assert nn.one_hot(1.0, 3).tolist() == [0.0, 1.0, 0.0]


NAMED: list[Any] = [nn.softmax, nn.log_softmax, nn.logsumexp, nn.logmeanexp, nn.standardize]


@pytest.mark.parametrize("function", NAMED)
def test_over_a_named_axis_as_over_the_axis_of_vmap(function: Any) -> None:
    x = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32))

    def along(x: Any, axis: Any) -> Any:
        return jnp.broadcast_to(function(x, axis=axis), x.shape)

    got = vmap(lambda row: function(row, axis="i"), axis_name="i")(x)
    np.testing.assert_allclose(got, along(x, 0), rtol=2e-5)
    both = vmap(lambda row: function(row, axis=("i", 0)), axis_name="i")(x)
    whole = jnp.broadcast_to(function(x, axis=(0, 1)), both.shape)
    np.testing.assert_allclose(both, whole, rtol=2e-5)
    w = jnp.arange(12.0).reshape(3, 4)
    named = grad(lambda x: jnp.sum(w * vmap(lambda r: function(r, axis="i"), axis_name="i")(x)))
    np.testing.assert_allclose(named(x), grad(lambda x: jnp.sum(w * along(x, 0)))(x), atol=1e-5)


def test_the_classes_of_one_hot_along_a_named_axis() -> None:
    got = vmap(lambda _: nn.one_hot(jnp.arange(4), 3, axis="i"), axis_name="i")(jnp.zeros(3))
    assert got.tolist() == nn.one_hot(jnp.arange(4), 3, axis=0).tolist()
    with pytest.raises(ValueError, match="match the size of axis 'i', got 4 != 3"):
        vmap(lambda _: nn.one_hot(0, 4, axis="i"), axis_name="i")(jnp.zeros(3))

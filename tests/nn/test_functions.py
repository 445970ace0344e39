"""Edges of functions of primal.nn."""

import pytest

import primal.numpy as jnp
from primal import nn


@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_the_softmax_of_nothing_is_nothing(function, shape) -> None:
    assert function(jnp.zeros(shape)).shape == shape


def test_one_hot_of_floats_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="expected integers, got dtype float32"):
        assert nn.one_hot(1.0, 3).tolist() == [0.0, 1.0, 0.0]

"""Functions that are compiled for large arrays say what they say for small ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import random
from primal.numpy.large import LARGE

N = LARGE + 17


def _drawn() -> tuple[Any, Any]:
    draw = np.random.default_rng(3)
    x = draw.random(N).astype(np.float32)
    x[::1001], x[7::5003], x[9::5003] = np.nan, -np.inf, np.inf
    return jnp.array(x), jnp.array(draw.integers(-3, 60, N).astype(np.int32))


EDGES = jnp.linspace(0.0, 1.0, 50)
CASES: dict[str, Callable[[Any, Any], Any]] = {
    "searchsorted": lambda x, i: jnp.searchsorted(EDGES, x),
    "searchsorted right": lambda x, i: jnp.searchsorted(EDGES, x, "right"),
    "digitize": lambda x, i: jnp.digitize(x, EDGES),
    "bincount": lambda x, i: jnp.bincount(i, length=50),
    "bincount weights": lambda x, i: jnp.bincount(i, jnp.nan_to_num(x, posinf=2, neginf=3)),
    "histogram": lambda x, i: jnp.histogram(x, EDGES),
    "interp": lambda x, i: jnp.interp(x, EDGES, EDGES**2),
    "segment_sum": lambda x, i: primal.ops.segment_sum(x, i, 50),
    "segment_max": lambda x, i: primal.ops.segment_max(x, i, 50),
}


@pytest.mark.parametrize("name", CASES)
def test_large_arrays_give_what_op_by_op_gives(name):
    x, i = _drawn()
    got = CASES[name](x, i)
    with primal.disable_jit():
        want = CASES[name](x, i)
    for a, b in zip(primal.tree.leaves(got), primal.tree.leaves(want), strict=True):
        assert a.dtype == b.dtype and a.weak_type == b.weak_type
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "sample",
    [
        lambda key: random.poisson(key, jnp.linspace(0.5, 40.0, 300)),
        lambda key: random.binomial(key, jnp.arange(600) % 60, 0.3),
        lambda key: random.bits(key, (N,)),
        lambda key: random.bits(key, (N,), "uint8"),
        lambda key: random.normal(key, (N,)),
        lambda key: random.randint(key, (N,), -5, 1000),
        lambda key: random.randint(key, (N,), jnp.int32(7), jnp.int32(3), "int8"),
    ],
)
def test_random_numbers_are_those_of_op_by_op(sample):
    got = sample(random.key(4))
    with primal.disable_jit():
        want = sample(random.key(4))
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


def test_gamma_numbers_are_those_of_op_by_op_to_the_last_digits():
    shapes = jnp.linspace(0.1, 9.0, 5000)
    got = random.gamma(random.key(4), shapes)
    with primal.disable_jit():
        want = random.gamma(random.key(4), shapes)
    np.testing.assert_allclose(got, want, rtol=2e-6)


def test_derivatives_and_errors_are_those_of_small_arrays():
    x, i = _drawn()
    x = jnp.nan_to_num(x, posinf=1.0, neginf=0.0)
    slope = primal.grad(lambda x: jnp.sum(jnp.interp(x, EDGES, 3 * EDGES)))(x)
    inside = (x > 0) & (x < 1)
    np.testing.assert_allclose(slope[inside], 3, rtol=1e-3)
    with pytest.raises(ValueError, match="shape of weights"):
        jnp.bincount(i, x[1:], length=3)
    with primal.debug_nans(True), pytest.raises(FloatingPointError):
        jnp.interp(x, EDGES, EDGES * jnp.nan)

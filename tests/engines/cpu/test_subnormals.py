"""Numbers below the normal ones are zeros in programs where that is asked for, nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.config import enable_x64, flush_subnormals, num_threads

LEAST = {
    "float32": np.finfo(np.float32).smallest_normal,
    "float64": np.finfo(np.float64).smallest_normal,
    "bfloat16": np.float32(ml_dtypes.finfo(ml_dtypes.bfloat16).smallest_normal),
}


@pytest.fixture(autouse=True)
def flushed() -> Iterator[None]:
    with flush_subnormals(True):
        yield


def half(x: Any) -> Any:
    return x * 0.5


@pytest.mark.parametrize("dtype", LEAST)
def test_what_is_made_and_what_is_read(dtype: str) -> None:
    with enable_x64(True):
        least = jnp.asarray([LEAST[dtype], -LEAST[dtype], 1.0], dtype)
        below = half(least)
        assert bool((below[:2] != 0).all())
        made, read = primal.jit(half)(least), primal.jit(lambda x: x * 2)(below)
        np.testing.assert_array_equal(np.asarray(made, np.float64), [0, -0.0, 0.5])
        np.testing.assert_array_equal(np.asarray(read, np.float64), [0, -0.0, 1])
        np.testing.assert_array_equal(np.signbit(np.asarray(made, np.float64)), [0, 1, 0])
        with flush_subnormals(False):
            np.testing.assert_array_equal(np.asarray(primal.jit(half)(least)), np.asarray(below))


def test_in_all_threads() -> None:
    x = jnp.full(1 << 21, LEAST["float32"])
    f = primal.jit(lambda x: jnp.sum(jnp.cos(x * 0.5) * (x * 0.5) != 0))
    for count in (1, 2, 3):
        with num_threads(count):
            assert int(f(x)) == 0


def test_in_loops_and_branches() -> None:
    x = jnp.full(4, LEAST["float32"])
    found = primal.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: x * 0.5, x))(x)
    assert not np.asarray(found).any()
    found = primal.jit(lambda x: lax.cond(x[0] > 0, half, lambda x: x, x))(x)
    assert not np.asarray(found).any()


def test_python_code_has_its_own_mode() -> None:
    least = LEAST["float32"]
    seen = []

    def look(x: Any) -> None:
        seen.append(np.asarray(x) * np.float32(0.5))

    def f(x: Any) -> Any:
        primal.debug.callback(look, x)
        return x * 0.5

    assert not np.asarray(primal.jit(f)(jnp.full(3, least))).any()
    primal.effects_barrier()
    assert seen[0].all()
    assert (np.full(3, least) * np.float32(0.5)).all()
    with pytest.raises(Exception, match="planted"):
        primal.jit(lambda x: primal.pure_callback(_fails, x, x) * 0.5)(jnp.ones(3))
    assert (np.full(3, least) * np.float32(0.5)).all()


def _fails(x: Any) -> Any:
    raise ValueError("planted")


def test_what_only_moves_or_looks_at_bits_stays() -> None:
    x = np.array([1e-40, -1e-42, 0, -0.0, 1e-45], np.float32)
    for f in (lambda x: x[::-1], jnp.negative, jnp.abs, lambda x: jnp.concatenate([x, x])):
        np.testing.assert_array_equal(np.asarray(primal.jit(f)(x)), np.asarray(f(jnp.asarray(x))))
    to = np.array([1, -1, -1, 1, 0], np.float32)
    found = primal.jit(jnp.nextafter)(x, to)
    np.testing.assert_array_equal(np.asarray(found), np.nextafter(x, to))
    np.testing.assert_array_equal(np.asarray(primal.jit(jnp.sign)(x)), [0, -0.0, 0, -0.0, 0])

"""The polar decomposition's derivatives, forward and reverse, against differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax

STEP = 1e-5


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_derivatives_of_qdwh(dtype: Any, x64: None) -> None:
    rng = np.random.default_rng(3)
    x, d = [rng.standard_normal((4, 3)).astype(dtype) for _ in range(2)]
    if x.dtype.kind == "c":
        x, d = x + 1j * rng.standard_normal((4, 3)), d * (1 + 0.5j)
    x, d = jnp.asarray(x), jnp.asarray(d)

    def factors(x: Any) -> Any:
        return lax.linalg.qdwh(x)[:2]

    def size(x: Any) -> Any:
        return sum(jnp.sum(jnp.abs(jnp.sin(v)) ** 2) for v in factors(x))

    def slope(f: Any) -> Any:
        return [
            (a - b) / (2 * STEP)
            for a, b in zip(
                primal.tree.leaves(f(x + STEP * d)), primal.tree.leaves(f(x - STEP * d)),
                strict=True,
            )
        ]  # fmt: skip

    for got, want in zip(primal.jvp(factors, (x,), (d,))[1], slope(factors), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-8)
    got = jnp.real(jnp.sum(primal.grad(size)(x) * d))
    np.testing.assert_allclose(got, slope(size)[0], rtol=1e-7)
    if x.dtype.kind == "f":
        second = primal.jvp(primal.grad(size), (x,), (d,))[1]
        np.testing.assert_allclose(second, slope(primal.grad(size))[0], rtol=1e-6, atol=1e-7)


def test_derivatives_of_the_part_that_counts(x64: None) -> None:
    rng = np.random.default_rng(0)
    x, d = [jnp.asarray(rng.standard_normal((4, 3))) for _ in range(2)]
    part = primal.jvp(lambda x: lax.linalg.qdwh(x, dynamic_shape=(3, 2))[0], (x,), (d,))[1]
    want = primal.jvp(lambda x: lax.linalg.qdwh(x)[0], (x[:3, :2],), (d[:3, :2],))[1]
    np.testing.assert_allclose(part[:3, :2], want, atol=1e-12)

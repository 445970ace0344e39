"""The public factorisations and transforms against figures recorded from JAX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import primal
from primal import jit
from primal import numpy as jnp
from primal.lax import linalg
from tests.lax.linalg_cases import cases, summary

RECORDED = json.loads(Path(__file__).parents[1].joinpath("data", "linalg.json").read_text())
CASES = dict(cases(primal))


def test_the_recording_is_of_these_cases() -> None:
    assert list(CASES) == list(RECORDED)


@pytest.mark.parametrize("name", CASES)
def test_as_recorded(name: str) -> None:
    got, want = summary(CASES[name]), RECORDED[name]
    if isinstance(want, str) or isinstance(got, str):
        assert got == want
        return
    assert [g[:2] for g in got] == [w[:2] for w in want]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g[2:], w[2:], rtol=1e-4, atol=1e-4)


def test_triangular_systems_of_narrow_floats() -> None:
    def solve(a: Any, b: Any) -> Any:
        return linalg.triangular_solve(a, b, left_side=True, lower=True)

    a, b = jnp.array([[2.0, 0.0], [1.0, 3.0]]), jnp.array([[2.0, 4.0], [3.0, 1.0]])
    for dtype in ("bfloat16", "float16"):
        for right in (b, b[:, 0]):
            for f in (solve, jit(solve)):
                out = f(a.astype(dtype), right.astype(dtype))
                assert out.dtype == dtype
                np.testing.assert_array_equal(out, solve(a, right).astype(dtype))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_factors_of_narrow_floats_are_updated(dtype: str) -> None:
    r, w = jnp.array([[3.0, 1.5], [0.0, 1.0]], dtype), jnp.array([4.0, -0.5], dtype)
    wanted = linalg.cholesky_update(r.astype("float32"), w.astype("float32")).astype(dtype)
    for f in (linalg.cholesky_update, jit(linalg.cholesky_update)):
        out = f(r, w)
        assert out.dtype == dtype
        np.testing.assert_array_equal(out, wanted)
        slope = primal.grad(lambda w, f=f: f(r, w).sum().astype("float32"))(w)
        assert slope.dtype == dtype
    with pytest.raises(TypeError, match="cholesky_update"):
        linalg.cholesky_update(r, w.astype("float32"))

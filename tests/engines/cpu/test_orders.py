"""Sorts and top_k of short rows by native code, beside NumPy's run of the same program."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import primal
from primal import lax
from primal.engines.cpu.routines.firsts import BITS, COUNTING, ROOMS, Greatest, Walk
from primal.engines.cpu.routines.orders import MANY, MOST
from primal.engines.cpu.steps import Library
from primal.ops.index.sort import sort, top_k
from tests.engines.cpu.lab import built, numpy_run

DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    ml_dtypes.bfloat16, "float32", "float64",
]  # fmt: skip
SHAPES = [((1,), 0), ((3,), 0), ((50,), 0), ((MOST,), 0), ((3, 17), 1), ((17, 3), 0),
          ((2, 33, 5), 1), ((300, 4), 1)]  # fmt: skip


def drawn(shape: tuple[int, ...], dtype: Any) -> Any:
    """Many equal elements, and what is extreme."""
    draw = np.random.default_rng(sum(shape))
    known = np.dtype(dtype)
    if known.kind in "iub":
        x = draw.integers(0, 40, shape).astype(dtype)
        if known.kind != "b" and x.size > 3:
            x.flat[1], x.flat[2] = np.iinfo(dtype).min, np.iinfo(dtype).max
        return x
    x = (draw.integers(-20, 20, shape) / 4).astype(dtype)
    if x.size > 8:
        special = [np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, np.nan, -0.0]
        x.flat[[4, 1, 7, 2, 0, 3, 6, 5]] = np.array(special).astype(dtype)
    return x


def same(f: Any, *xs: Any, native: bool = True) -> None:
    made = built(f, *xs)
    assert native != any(isinstance(s, Library) for s in made.plan.steps)
    for got, want in zip(made.execute(list(xs)), numpy_run(f, *xs), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        a, b = (v.astype(np.float64) if v.dtype.kind in "fV" else v for v in (got, want))
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a) & (a == 0), np.signbit(b) & (b == 0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_orders(dtype: Any, shape: tuple[int, ...], axis: int) -> None:
    x = drawn(shape, dtype)
    places = np.broadcast_to(np.arange(x.size, dtype=np.int32).reshape(shape), shape).copy()
    few = (places % 3).astype(np.int8)

    def f(x: Any, places: Any, few: Any) -> list[Any]:
        def by(*xs: Any, keys: int = 1) -> list[Any]:
            return list(sort(*xs, dimension=axis, is_stable=True, num_keys=keys))

        k = min(4, shape[axis])
        return [
            *by(x), *by(x, places), *by(few, x, places, keys=2), *top_k(x, k=k, axis=axis),
            *top_k(x, k=shape[axis], axis=axis),
        ]  # fmt: skip

    same(f, x, places, few, native=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_greatest_of_long_rows(dtype: Any) -> None:
    for shape, axis in (((300,), 0), ((2, 65), 1), ((1000, 3), 0)):
        x = drawn(shape, dtype)
        for k in (1, 8, 11, 32, 50, 64):
            same(lambda x, k=k, d=axis: list(top_k(x, k=k, axis=d)), x, native=True)
    x = drawn((300,), dtype)
    for sign in (1, -1):
        same(lambda x: list(top_k(x, k=9, axis=0)), np.sort(x)[::sign].copy(), native=True)
        same(lambda x: list(top_k(x, k=9, axis=0)), np.full(300, x[1]), native=True)
        long = np.sort(drawn((4096 + 77,), dtype))[::sign].copy()
        same(lambda x: list(top_k(x, k=17, axis=0)), long, native=True)
    for row in (x, np.full(300, x[1]), np.sort(x)):
        for k in (65, 200, 300):
            same(lambda x, k=k: list(top_k(x, k=k, axis=0)), row, native=True)
    x = drawn((3, 1500), dtype)
    same(lambda x: list(top_k(x, k=700, axis=1)), x, native=True)
    same(lambda x: list(top_k(x, k=1100, axis=1)), x, native=False)


def test_what_numpy_sorts_faster() -> None:
    for shape in ((MOST + 1,), (MOST, MANY + 1)):
        x = drawn(shape, "float32")
        same(lambda x: list(sort(x, dimension=len(x.shape) - 1, is_stable=True, num_keys=1)), x,
             native=False)  # fmt: skip


def test_the_greatest_share_their_code() -> None:
    """One kernel calls what finds them; no number of elements has a function of its own."""
    kinds, called = set(), set()
    for n in (1, 2, 5, 16, 40, 64, 65, 100, 256, 257, 333, 1000, 5000):
        for k in {min(n, most) for most in (1, 2, 9, 30, 60, 100, 1000)}:
            x = np.zeros((3, n), "float32")
            made = built(lambda x, k=k: list(top_k(x, k=k, axis=1)), x)
            kinds.update(made.plan.specs)
            called.update(made.plan.callees)
    assert kinds == {Walk("f4")}
    assert called == {Greatest("f4", how) for how in (COUNTING, BITS, *ROOMS)}


@pytest.mark.parametrize("axis", [0, 1])
def test_places_are_known_to_a_library_step(axis: int) -> None:
    """No kernel counts them, whether as they are, from behind or in part."""
    x = drawn((600, 2 * MOST), "float32")

    def f(x: Any) -> list[Any]:
        found: list[Any] = []
        for first in (0, 9):
            places = lax.broadcasted_iota(np.int32, (600, 4 * MOST), axis)
            places = lax.rev(places[:, first : first + 2 * MOST], (1,))
            found += sort(x, places, dimension=axis, is_stable=True, num_keys=1)
        return found

    made = built(f, x)
    assert not made.plan.specs
    for got, want in zip(made.execute([x]), numpy_run(f, x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_complex_operands_and_keys() -> None:
    x = drawn((2, 9), "int32")
    for dtype in ("complex64", "complex128"):
        z = (x + 1j * x).astype(dtype)
        same(lambda x, z: list(sort(x, z, dimension=1, is_stable=True, num_keys=1)), x, z)
        same(lambda z: list(sort(z, dimension=1, is_stable=True, num_keys=1)), z)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape, axis", [((1,), 0), ((1, 300), 0), ((7, 1, 40), 1)])
def test_rows_of_one_are_in_order(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    """Nothing is sorted, nor is where an element was asked for the derivative."""
    x = drawn(shape, dtype)
    places = np.arange(x.size, dtype=np.int32).reshape(shape)

    def f(x: Any, places: Any) -> Any:
        return sort(x, places, dimension=axis, is_stable=True, num_keys=1)

    assert not built(f, x, places).plan.steps
    same(f, x, places)
    if np.dtype(dtype).kind != "f":
        return
    t = np.ones(shape, dtype)
    out, slope = primal.jvp(lambda x: lax.sort(x, axis), (x,), (t,))
    np.testing.assert_array_equal(out, x)
    np.testing.assert_array_equal(slope, t)
    slopes = primal.make_jaxpr(lambda x, t: primal.jvp(lambda x: lax.sort(x, axis), (x,), (t,)))
    jaxpr = slopes(x, t)
    assert [e.primitive.name for e in jaxpr.eqns] == ["sort"]


@pytest.mark.parametrize("q", [0.3, [0.1, 0.5, 1.0]])
def test_quantiles_of_one_element_are_it(q: Any) -> None:
    """In their derivatives nothing is scattered; nan has nan's."""
    x = np.array([[1.5, -0.0, np.inf, np.nan, -3]], np.float32)
    f = primal.jit(primal.grad(lambda x: primal.numpy.quantile(x, np.float32(q), 0)[..., :2].sum()))
    want = np.broadcast_to(x[0], (*np.shape(q), 5))
    np.testing.assert_array_equal(primal.numpy.quantile(x, np.float32(q), 0), want)
    np.testing.assert_array_equal(f(x), [[np.size(q), np.size(q), 0, 0, 0]])
    assert "scatter" not in str(primal.make_jaxpr(f)(x))

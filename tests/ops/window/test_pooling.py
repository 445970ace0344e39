"""reduce_window and its derivatives against loops over windows."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from primal.base.config import enable_x64
from primal.lax import windows as lax_windows
from primal.ops import elementwise
from primal.ops.window import pooling
from primal.runtime.eager import as_array
from tests.ops.laws import agree, check_batching, check_derivatives, compiled, eager, tangents

RNG = np.random.default_rng(0)
OPS = {
    "reduce_window_sum": (np.sum, 0.0),
    "reduce_window_max": (np.max, -np.inf),
    "reduce_window_min": (np.min, np.inf),
}


def window(shape: Any, strides: Any = None, padding: Any = None, spread: Any = None,
           dilation: Any = None) -> dict[str, Any]:  # fmt: skip
    ones = (1,) * len(shape)
    return {
        "window_dimensions": shape,
        "window_strides": strides or ones,
        "padding": padding or ((0, 0),) * len(shape),
        "base_dilation": spread or ones,
        "window_dilation": dilation or ones,
    }


CASES = {
    "one": ((9,), window((3,))),
    "long": ((50,), window((40,), (2,), ((3, 5),))),
    "plane": ((2, 6, 7, 3), window((1, 2, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 0), (1, 1), (0, 0)))),
    "dilated": ((5, 6), window((2, 3), (2, 1), ((1, 1), (2, 0)), (2, 1), (3, 2))),
    "spread": ((5,), window((4,), (1,), ((1, 1),), (3,))),
    "cropped": ((9,), window((2,), (2,), ((-1, -2),))),
    "overlapping padding": ((3,), window((2,), (1,), ((3, 3),))),
    "padding behind columns": ((20, 3), window((18, 1), None, ((0, 0), (0, 2)))),
    "no window": ((2,), window((3,))),
}
EMPTY = ("overlapping padding", "padding behind columns")
"""Cases with windows of padding alone."""


def windows_of(x: Any, fill: float, w: dict[str, Any]) -> Any:
    """The elements of each window along a last axis, `fill` where there is padding."""
    counts = pooling.counts(x.shape, **w)
    rows = []
    for at in itertools.product(*[range(c) for c in counts]):
        row = []
        for k in itertools.product(*[range(n) for n in w["window_dimensions"]]):
            q = [
                a * s + i * d - lo
                for a, s, i, d, (lo, _) in zip(
                    at, w["window_strides"], k, w["window_dilation"], w["padding"], strict=True
                )
            ]
            spread = w["base_dilation"]
            inside = all(
                v % b == 0 and 0 <= v // b < n
                for v, b, n in zip(q, spread, x.shape, strict=True)
            )
            row.append(x[tuple(v // b for v, b in zip(q, spread, strict=True))] if inside else fill)
        rows.append(row)
    inside = int(np.prod(w["window_dimensions"]))
    return np.array(rows).reshape((*counts, inside))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_values(name: str, case: str, dtype: Any) -> None:
    shape, w = CASES[case]
    x = (10 * RNG.standard_normal(shape)).astype(dtype)
    (got,) = agree(functools.partial(getattr(pooling, name), **w), x, tol=1e-4)
    f, fill = OPS[name]
    if dtype is np.int32 and np.isinf(fill):
        info = np.iinfo(np.int32)
        fill = info.max if fill > 0 else info.min
    rows = windows_of(x, fill, w)
    want = f(rows, -1) if rows.size else np.zeros(got.shape)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.uint8, np.complex64])
def test_dtypes(name: str, dtype: Any) -> None:
    shape, w = CASES["plane"]
    x = RNG.integers(0, 9, shape).astype(dtype)
    (got,) = agree(functools.partial(getattr(pooling, name), **w), x, tol=1e-2)
    f, fill = OPS[name]
    if dtype in (np.uint8, np.complex64):
        fill = 0 if name != "reduce_window_min" else 255
    wide = np.complex64 if dtype is np.complex64 else np.float32
    rows = windows_of(x.astype(wide), fill, w)
    np.testing.assert_allclose(got.astype(wide), f(rows, -1), rtol=1e-2)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", OPS)
def test_derivatives(name: str, case: str) -> None:
    shape, w = CASES[case]
    # Distinct values far apart, so that no step changes which one is the extremum.
    x = RNG.permutation(np.arange(np.prod(shape), dtype=float)).reshape(shape)
    if case in EMPTY and name != "reduce_window_sum":
        return  # their extrema are infinite
    check_derivatives(functools.partial(getattr(pooling, name), **w), x)


@pytest.mark.parametrize("run", [eager, compiled])
def test_windows_of_padding_alone(run: Any) -> None:
    _, w = CASES["overlapping padding"]
    x = np.array([1.0, 2.0, 3.0], np.float32)
    (got,) = run(functools.partial(pooling.reduce_window_max, **w), x)
    np.testing.assert_array_equal(
        got, [-np.inf, -np.inf, 1.0, 2.0, 3.0, 3.0, -np.inf, -np.inf]
    )
    for select in ("ge", "le"):
        gather = functools.partial(pooling.select_and_gather_add, select=select, **w)
        (moved,) = run(gather, x, x)
        assert moved[0] == moved[1] == moved[-1] == 0


@pytest.mark.parametrize("run", [eager, compiled])
def test_the_first_of_equals_is_chosen(run: Any) -> None:
    _, w = CASES["one"]
    x = np.ones(5, np.float32)
    source = np.array([1.0, 2.0, 4.0], np.float32)
    for select in ("ge", "le"):
        scatter = functools.partial(pooling.select_and_scatter_add, select=select, **w)
        np.testing.assert_array_equal(run(scatter, source, x)[0], [1.0, 2.0, 4.0, 0.0, 0.0])


@pytest.mark.parametrize("run", [eager, compiled])
@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64", "uint64"])
def test_integers_are_added_without_rounding(run: Any, dtype: str) -> None:
    """All bits of the dtype, and sums that wrap."""
    most = np.iinfo(dtype).max
    x = np.array([5, 9, 5, 1], dtype)
    source = np.array([most, most - 2, most // 3], dtype)
    for select, want in (("ge", [0, sum(source.tolist()[:2]), int(source[2]), 0]),
                         ("le", [int(source[0]), 0, int(source[1]), int(source[2])])):  # fmt: skip
        scatter = functools.partial(pooling.select_and_scatter_add, select=select, **window((2,)))
        with enable_x64(True):
            (got,) = run(scatter, source, x)
        wrapped = [n & (2 ** (8 * x.itemsize) - 1) for n in want]
        assert got.view(f"u{x.itemsize}").tolist() == wrapped


@pytest.mark.parametrize("case", ["plane", "dilated", "cropped"])
def test_the_pair_is_adjoint(case: str) -> None:
    shape, w = CASES[case]
    x = RNG.permutation(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape)
    t = RNG.standard_normal(shape).astype(np.float32)
    ct = RNG.standard_normal(pooling.counts(shape, **w)).astype(np.float32)
    for select in ("ge", "le"):
        params = {"select": select, **w}
        (down,) = agree(functools.partial(pooling.select_and_gather_add, **params), t, x)
        (up,) = agree(functools.partial(pooling.select_and_scatter_add, **params), ct, x)
        np.testing.assert_allclose(np.sum(ct * down), np.sum(up * t), rtol=1e-4)


BLOCKS: dict[str, Any] = {
    "rows": ((70, 40), window((3, 5), (1, 1), ((1, 1), (2, 2)))),
    "steps": ((60, 33), window((2, 3), (3, 2), ((2, 0), (1, 4)))),
    "a long line": ((1000,), window((9,), (2,), ((8, 3),))),
    "dilated": ((90, 41), window((3, 2), (2, 1), ((4, 0), (0, 3)), None, (3, 4))),
    "channels last": ((50, 20, 6), window((5, 3, 1), (1, 2, 1), ((2, 2), (0, 1), (0, 0)))),
    "channels first": ((6, 20, 30), window((1, 3, 3), (1, 1, 2), ((0, 0), (1, 1), (1, 1)))),
    "a volume": ((20, 9, 20), window((2, 3, 4), (1, 2, 3), ((1, 0), (1, 1), (2, 3)))),
    "of padding alone": ((30, 20), window((2, 2), (1, 1), ((3, 3), (3, 3)))),
    "cropped": ((50, 30), window((3, 3), (1, 1), ((-4, -3), (-1, -2)))),
    "behind columns": ((33, 5), window((2, 1), (3, 1), ((1, 2), (0, 2)), None, (2, 1))),
    "behind a line": ((40,), window((1,), (1,), ((0, 9),))),
}


@pytest.mark.parametrize("select", ["ge", "le"])
@pytest.mark.parametrize("case", BLOCKS)
def test_winners_are_added_in_the_order_of_windows(case: str, select: str) -> None:
    """Also where blocks share windows, many of which have one winner, equals or NaN."""
    shape, w = BLOCKS[case]
    draw = np.random.default_rng(3)
    x = draw.integers(-9, 9, shape).astype(np.float32)
    x[draw.random(shape) < 0.01] = np.nan
    source = draw.standard_normal(pooling.counts(shape, **w)).astype(np.float32)
    want = np.zeros_like(x)
    for at in np.ndindex(*source.shape):
        best = None
        for k in np.ndindex(*w["window_dimensions"]):
            i = tuple([a * s + j * d - lo for a, s, j, d, (lo, _) in zip(
                at, w["window_strides"], k, w["window_dilation"], w["padding"], strict=True
            )])  # fmt: skip
            if not all(0 <= j < n for j, n in zip(i, shape, strict=True)):
                continue
            better = best is None or (x[i] > x[best] if select == "ge" else x[i] < x[best])
            if better or (np.isnan(x[i]) and not np.isnan(x[best])):
                best = i
        if best is not None:
            want[best] += source[at]
    scatter = functools.partial(pooling.select_and_scatter_add, select=select, **w)
    np.testing.assert_array_equal(compiled(scatter, source, x)[0], want)


@pytest.mark.parametrize("run", [eager, compiled])
@pytest.mark.parametrize("channels", [1, 2])
def test_many_windows_of_few_channels(run: Any, channels: int) -> None:
    x = np.random.default_rng(0).permutation(2 * 140 * 140 * channels).astype(np.float32)
    x = x.reshape(2, 140, 140, channels)
    w = window((1, 3, 3, 1), (1, 2, 2, 1))
    source = np.arange(2 * 69 * 69 * channels).reshape(2, 69, 69, channels).astype(np.float32) % 5
    want = np.zeros_like(x)
    for b, i, j, c in np.ndindex(*source.shape):
        row, column = divmod(int(x[b, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3, c].argmax()), 3)
        want[b, 2 * i + row, 2 * j + column, c] += source[b, i, j, c]
    scatter = functools.partial(pooling.select_and_scatter_add, select="ge", **w)
    np.testing.assert_array_equal(run(scatter, source, x)[0], want)
    gather = functools.partial(pooling.select_and_gather_add, select="ge", **w)
    views = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))[:, ::2, ::2]
    np.testing.assert_array_equal(run(gather, x, x)[0], views.max((-1, -2)))


@pytest.mark.parametrize("name", OPS)
def test_batching(name: str) -> None:
    x = RNG.permutation(np.arange(30, dtype=np.float32)).reshape(5, 6)
    w = window((2, 3), (2, 1), ((1, 1), (0, 1)))
    check_batching(functools.partial(getattr(pooling, name), **w), x)
    if name != "reduce_window_sum":
        f = functools.partial(pooling.select_and_gather_add, select="ge", **w)
        check_batching(f, x + 1, x)


def test_complex_sum() -> None:
    shape, w = CASES["plane"]
    x = RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)
    check_derivatives(functools.partial(pooling.reduce_window_sum, **w), x, order=1)


# The public function.


@pytest.mark.parametrize("run", [eager, compiled])
@pytest.mark.parametrize(
    ("init", "computation", "padding", "want"),
    [
        (0.0, elementwise.add, "SAME", [1.0, 3.0, 5.0, 7.0, 4.0]),
        (-np.inf, elementwise.max, "VALID", [1.0, 2.0, 3.0, 4.0]),
        (1.0, elementwise.max, "SAME_LOWER", [1.0, 1.0, 2.0, 3.0, 4.0]),
        (1.0, elementwise.add, "SAME", [2.0, 4.0, 6.0, 8.0, 5.0]),
        (1.0, elementwise.mul, ((0, 1),), [0.0, 2.0, 6.0, 12.0, 4.0]),
        (np.inf, lambda x, y: elementwise.min(y, x), "VALID", [0.0, 1.0, 2.0, 3.0]),
    ],
)
def test_reduce_window(run: Any, init: float, computation: Any, padding: Any, want: Any) -> None:
    x = np.arange(5, dtype=np.float32)
    f = lambda x: lax_windows.reduce_window(x, init, computation, (2,), (1,), padding)  # noqa: E731
    np.testing.assert_array_equal(run(f, x)[0], want)


@pytest.mark.parametrize("run", [eager, compiled])
def test_reduce_window_of_several_operands(run: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return lax_windows.reduce_window(
            (x, y),
            (0, 0.0),
            lambda a, b: (elementwise.add(a[0], b[0]), elementwise.mul(a[1], b[1])),
            (2,),
            (1,),
            "VALID",
        )

    got = run(f, np.arange(5, dtype=np.int32), np.arange(5, dtype=np.float32))
    np.testing.assert_array_equal(got[0], [1, 3, 5, 7])
    np.testing.assert_array_equal(got[1], [0, 0, 0, 0])


def test_max_pooling_as_in_jax() -> None:
    x = np.arange(16, dtype=np.float32).reshape(1, 4, 4, 1)

    def pool(x: Any) -> Any:
        return lax_windows.reduce_window(
            x, -np.inf, elementwise.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
        )

    np.testing.assert_array_equal(eager(pool, x)[0].reshape(2, 2), [[5, 7], [13, 15]])
    (t,) = tangents(pool, [x], [x * 10])
    np.testing.assert_array_equal(t.reshape(2, 2), [[50, 70], [130, 150]])


def test_errors() -> None:
    x = as_array(np.ones((4, 4), np.float32))
    with pytest.raises(TypeError, match=r"window_sum\] expected window_dimensions with 2"):
        pooling.reduce_window_sum(x, **window((2,)))
    with pytest.raises(TypeError, match=r"\[reduce_window_max\] expected .*positive integers"):
        pooling.reduce_window_max(x, **window((2, 2), (0, 1)))
    with pytest.raises(TypeError, match=r"\[reduce_window_max\] expected a number dtype"):
        pooling.reduce_window_max(as_array(np.ones(3, bool)), **window((2,)))
    with pytest.raises(RuntimeError, match=r"Unrecognized padding type"):
        lax_windows.reduce_window(x, 0.0, elementwise.add, (2, 2), padding="WHOLE")

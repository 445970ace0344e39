"""conv_general_dilated against the sum it is, over layouts, groups, strides, dilations, ranks."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import primal.numpy as jnp
from primal import lax
from primal.api import grad, jit, vmap
from primal.base.config import enable_x64
from primal.ops.window.convolution import ConvDimensionNumbers, conv_general_dilated
from primal.runtime.eager import as_array
from tests.ops.laws import agree, check_batching, check_derivatives

RNG = np.random.default_rng(0)


def plain(rank: int) -> ConvDimensionNumbers:
    order = tuple(range(rank + 2))
    return ConvDimensionNumbers(order, order, order)


def params(rank: int, **changes: Any) -> dict[str, Any]:
    return {
        "window_strides": (1,) * rank,
        "padding": ((0, 0),) * rank,
        "lhs_dilation": (1,) * rank,
        "rhs_dilation": (1,) * rank,
        "dimension_numbers": plain(rank),
        "feature_group_count": 1,
        "batch_group_count": 1,
        "precision": None,
        "preferred_element_type": None,
        **changes,
    }


def oracle(lhs: Any, rhs: Any, **p: Any) -> Any:
    """The definition, one output at a time."""
    ls, rs, os = p["dimension_numbers"]
    x, w = np.transpose(lhs, ls), np.transpose(rhs, rs)
    rank = x.ndim - 2
    fg, bg = p["feature_group_count"], p["batch_group_count"]
    counts = []
    for i in range(rank):
        lo, hi = p["padding"][i]
        n = x.shape[2 + i]
        extent = lo + hi + ((n - 1) * p["lhs_dilation"][i] + 1 if n else 0)
        window = (w.shape[2 + i] - 1) * p["rhs_dilation"][i] + 1
        counts.append(max(0, (extent - window) // p["window_strides"][i] + 1))
    outs, ins = w.shape[:2]
    batch = x.shape[0] // bg
    out = np.zeros((batch, outs, *counts), np.result_type(x, w))
    for n, o in itertools.product(range(batch), range(outs)):
        row = n + (o // (outs // bg)) * batch
        first = (o // (outs // fg)) * ins
        for place in itertools.product(*[range(c) for c in counts]):
            total = 0
            for k in itertools.product(*[range(c) for c in w.shape[2:]]):
                at = []
                for i in range(rank):
                    q = place[i] * p["window_strides"][i] + k[i] * p["rhs_dilation"][i]
                    q -= p["padding"][i][0]
                    spread = p["lhs_dilation"][i]
                    inside = q % spread == 0 and 0 <= q // spread < x.shape[2 + i]
                    at.append(q // spread if inside else None)
                if None not in at:
                    here = (row, slice(first, first + ins), *at)
                    total = total + np.sum(x[here] * w[(o, slice(None), *k)])
            out[(n, o, *place)] = total
    return np.transpose(out, [os.index(i) for i in range(len(os))])


CASES = {
    "one": ((2, 3, 7), (4, 3, 3), params(1)),
    "strided": ((2, 3, 7), (4, 3, 3), params(1, window_strides=(2,), padding=((1, 2),))),
    "two": ((2, 3, 5, 6), (4, 3, 2, 3), params(2, padding=((1, 0), (1, 1)))),
    "dilated": (
        (1, 2, 4, 5),
        (2, 2, 2, 2),
        params(2, lhs_dilation=(2, 3), rhs_dilation=(3, 1), padding=((1, 1), (0, 2)),
               window_strides=(1, 2)),
    ),
    "three": ((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), params(3, window_strides=(1, 2, 1))),
    "none": ((3, 4), (5, 4), params(0)),
    "negative padding": ((2, 2, 6), (3, 2, 2), params(1, padding=((-1, -2),), lhs_dilation=(2,))),
    "groups": ((2, 6, 5), (4, 3, 2), params(1, feature_group_count=2, padding=((1, 1),))),
    "depthwise": ((2, 3, 5), (6, 1, 2), params(1, feature_group_count=3)),
    "batch groups": ((4, 3, 5), (6, 3, 2), params(1, batch_group_count=2, window_strides=(2,))),
    "layouts": (
        (2, 5, 6, 3),
        (2, 3, 3, 4),
        params(2, dimension_numbers=ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1),
                                                         (0, 3, 1, 2)), padding=((1, 1), (1, 1))),
    ),
    "other layouts": (
        (5, 2, 4),
        (6, 2, 2),
        params(1, dimension_numbers=ConvDimensionNumbers((1, 2, 0), (0, 1, 2), (2, 0, 1)),
               feature_group_count=2),
    ),
    "wide window": ((1, 2, 3), (2, 2, 3), params(1, padding=((2, 2),))),
    "no place": ((2, 3, 2), (4, 3, 3), params(1)),
}  # fmt: skip


def drawn(case: str, dtype: Any = np.float32) -> tuple[Any, Any, dict[str, Any]]:
    left, right, p = CASES[case]
    if np.dtype(dtype).kind in "iu":
        return (RNG.integers(-3, 4, left).astype(dtype), RNG.integers(-3, 4, right).astype(dtype),
                p)
    x, w = RNG.standard_normal(left), RNG.standard_normal(right)
    if np.dtype(dtype).kind == "c":
        x, w = x + 1j * RNG.standard_normal(left), w - 1j * RNG.standard_normal(right)
    return x.astype(dtype), w.astype(dtype), p


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_values(case: str, dtype: Any) -> None:
    x, w, p = drawn(case, dtype)
    (got,) = agree(functools.partial(conv_general_dilated, **p), x, w, tol=1e-4)
    np.testing.assert_allclose(got, oracle(x, w, **p), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.complex64, np.float16, ml_dtypes.bfloat16, np.int8])
def test_dtypes(dtype: Any) -> None:
    x, w, p = drawn("two", dtype)
    (got,) = agree(functools.partial(conv_general_dilated, **p), x, w, tol=3e-2)
    wide = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
    want = oracle(x.astype(wide), w.astype(wide), **p)
    np.testing.assert_allclose(got.astype(wide), want, rtol=2e-2, atol=5e-2)


def test_preferred_dtype() -> None:
    x, w, p = drawn("two", np.int8)
    p = {**p, "preferred_element_type": np.dtype(np.int32)}
    (got,) = agree(functools.partial(conv_general_dilated, **p), x, w)
    np.testing.assert_array_equal(got, oracle(x.astype(int), w.astype(int), **p))
    x, w, p = drawn("one", np.float32)
    with enable_x64(True):
        p = {**p, "preferred_element_type": np.dtype(np.float64)}
        check = functools.partial(conv_general_dilated, **p)
        (got,) = agree(check, x, w, tol=1e-6)
        np.testing.assert_allclose(got, oracle(x, w, **p), rtol=1e-5, atol=1e-5)


def test_many_chunks() -> None:
    # More unfolded windows than are made at a time.
    x = RNG.standard_normal((40, 8, 30, 30)).astype(np.float32)
    w = RNG.standard_normal((4, 8, 5, 5)).astype(np.float32)
    agree(functools.partial(conv_general_dilated, **params(2)), x, w, tol=1e-3)


@pytest.mark.parametrize("case", [c for c in CASES if c != "no place"])
def test_derivatives(case: str) -> None:
    x, w, p = drawn(case, np.float64)
    check_derivatives(functools.partial(conv_general_dilated, **p), x, w)


def test_complex_derivatives() -> None:
    x, w, p = drawn("groups", np.complex128)
    check_derivatives(functools.partial(conv_general_dilated, **p), x, w, order=1)


def test_derivatives_without_a_place() -> None:
    x, w, p = drawn("no place", np.float64)
    check_derivatives(functools.partial(conv_general_dilated, **p), x, w, order=1)


@pytest.mark.parametrize("case", ["one", "groups", "batch groups", "layouts", "other layouts"])
def test_batching(case: str) -> None:
    x, w, p = drawn(case)
    check_batching(functools.partial(conv_general_dilated, **p), x, w, tol=1e-4)


@pytest.mark.parametrize(
    ("left", "right", "changes", "error", "text"),
    [
        ((1, 1, 3), (1, 1, 2, 2), {}, ValueError, "ndim to be equal"),
        ((1, 5, 3), (1, 2, 2), {}, ValueError, "as many lhs features as rhs input features"),
        ((1, 1, 3), (1, 1, 2), {"window_strides": (1, 1)}, TypeError, "window_strides with 1"),
        ((1, 1, 3), (1, 1, 2), {"window_strides": (0,)}, TypeError, "positive integers"),
        ((1, 2, 3), (3, 1, 2), {"feature_group_count": 2}, ValueError, "group counts that divide"),
        ((1, 1, 3), (2, 1, 2), {"batch_group_count": 2}, ValueError, "group counts that divide"),
        ((1, 1, 3), (2, 1, 2), {"batch_group_count": 0}, ValueError, "must be a positive integer"),
        ((1, 1, 3), (1, 1, 2), {"padding": ((-3, -3),)}, ValueError, "negative padding"),
        ((1, 1, 3), (1, 1, 0), {}, ValueError, "windows of positive size"),
    ],
)
def test_errors(left: Any, right: Any, changes: Any, error: type[Exception], text: str) -> None:
    x, w = as_array(np.ones(left, np.float32)), as_array(np.ones(right, np.float32))
    with pytest.raises(error, match=r"\[conv_general_dilated\] expected.*" + text):
        conv_general_dilated(x, w, **params(1, **changes))


def test_dtypes_must_agree() -> None:
    x, w = as_array(np.ones((1, 1, 3), np.float32)), as_array(np.ones((1, 1, 2), np.float16))
    with pytest.raises(TypeError, match="operands of one dtype, got float32 and float16"):
        conv_general_dilated(x, w, **params(1))


@pytest.mark.parametrize(
    ("groups", "batch_groups", "out"),
    [(1, 1, (2, 4, 5, 5)), (2, 1, (2, 4, 5, 5)), (1, 2, (1, 4, 5, 5))],
)
@pytest.mark.parametrize("axes", [(0, 0), (1, None), (None, 4)])
def test_no_examples(axes: Any, groups: int, batch_groups: int, out: Any) -> None:
    def conv(x: Any, y: Any) -> Any:
        return lax.conv_general_dilated(
            x, y, (1, 1), "SAME", feature_group_count=groups, batch_group_count=batch_groups
        )

    one = [np.ones((2, 2, 5, 5), np.float32), np.ones((4, 2 // groups, 2, 2), np.float32)]
    given = [x if d is None else np.repeat(np.expand_dims(x, d), 0, d)
             for x, d in zip(one, axes, strict=True)]  # fmt: skip
    for f in (vmap(conv, axes), jit(vmap(conv, axes))):
        assert f(*given).shape == (0, *out)
    slopes = vmap(grad(lambda x, y: jnp.sum(conv(x, y)), (0, 1)), axes)(*given)
    assert [s.shape for s in slopes] == [(0, *x.shape) for x in one]

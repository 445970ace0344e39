"""The public window functions against figures recorded from JAX."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base import dtypes
from primal.ops import elementwise
from tests.lax.window_cases import cases, summary

RECORDED = json.loads(Path(__file__).parents[1].joinpath("data", "windows.json").read_text())
OURS = SimpleNamespace(
    numpy=primal.numpy, lax=SimpleNamespace(**{**vars(elementwise), **vars(lax)})
)
CASES = dict(cases(OURS))


def test_the_recording_is_of_these_cases() -> None:
    assert list(CASES) == list(RECORDED)


@pytest.mark.parametrize("name", CASES)
def test_as_recorded(name: str) -> None:
    got, want = summary(CASES[name]), RECORDED[name]
    if isinstance(want, str) or isinstance(got, str):
        # NumPy's error for axes is a ValueError.
        assert ("ValueError" if got == "AxisError" else got) == want
        return
    assert got[:2] == want[:2]
    np.testing.assert_allclose(got[2], want[2], rtol=1e-4, atol=1e-3)


def test_the_transposed_kernel_transposes() -> None:
    # conv_transpose with transpose_kernel is the vjp of a convolution.
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 6, 2)).astype(np.float32)
    w = rng.standard_normal((3, 2, 4)).astype(np.float32)
    numbers = ("NHC", "HIO", "NHC")

    def forward(x: object) -> object:
        return lax.conv_general_dilated(x, w, (2,), "SAME", dimension_numbers=numbers)

    y, pull = primal.vjp(forward, primal.numpy.asarray(x))
    ct = rng.standard_normal(y.shape).astype(np.float32)
    (want,) = pull(primal.numpy.asarray(ct))
    got = lax.conv_transpose(
        ct, w, (2,), "SAME", dimension_numbers=numbers, transpose_kernel=True
    )
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: lax.cumsum(x, -1), lambda x: lax.reduce_max(x, (-1,)),
        lambda x: lax.argmax(x, -1, np.int32), lambda x: lax.reduce(x, 0.0, lax.add, (-1,)),
    ],
)  # fmt: skip
def test_negative_axes_are_refused(call: Callable[[np.ndarray], object]) -> None:
    with pytest.raises(ValueError, match="negative axes"):
        call(np.ones((2, 3), np.float32))


def test_choices_by_any_integer() -> None:
    x = np.arange(3.0, dtype=np.float32)
    for dtype in (np.int8, np.uint8, np.int16, np.uint32):
        np.testing.assert_array_equal(lax.select_n(dtype(1), x, x + 1, x + 2), x + 1)
        np.testing.assert_array_equal(lax.select_n(dtype(7), x, x + 1, x + 2), x + 2)
        chosen = lax.select_n(np.array([1, 0, 1], dtype), x, -x)
        np.testing.assert_array_equal(chosen, [0, 1, -2])


def test_windows_of_a_scalar() -> None:
    def windows(x: Any) -> Any:
        return lax.reduce_window(x, 0.0, lax.add, (), (), "VALID")

    assert float(windows(jnp.float32(3.0))) == float(primal.jit(windows)(jnp.float32(3.0))) == 3.0


def test_numbers_of_windows_are_whole() -> None:
    x = jnp.ones((1, 1, 6))
    with pytest.raises(TypeError):
        lax.conv(x, x, (1.0,), "SAME")  # type: ignore[arg-type]
    for padding in (1, [1], [(1.0, 1)], [(1, 1, 1)]):
        with pytest.raises(ValueError, match=r"\[conv_general_dilated\] expected padding"):
            lax.conv_general_dilated(x, x, (1,), padding)  # type: ignore[arg-type]
    for name in ("VALID", "SAME"):
        with pytest.raises(ValueError, match="transposed convolution"):
            lax.conv_general_dilated(x, x, (1,), name, lhs_dilation=(2,))
    assert lax.conv_general_dilated(x, x, (1,), np.array([(1, 1)])).shape == (1, 1, 3)


def _by_loop(x: Any, init: float, f: Any, size: Any, strides: Any, pads: Any, spread: Any,
             dilation: Any) -> Any:  # fmt: skip
    """Window by window, from what is there."""
    there: dict[tuple[int, ...], float] = {
        tuple(lo + i * s for i, (lo, _), s in zip(at, pads, spread, strict=True)): float(v)
        for at, v in np.ndenumerate(x)
    }
    shape = [lo + (n - 1) * s + 1 + hi
             for n, (lo, hi), s in zip(x.shape, pads, spread, strict=True)]
    counts = [(n - (w - 1) * d - 1) // s + 1
              for n, w, d, s in zip(shape, size, dilation, strides, strict=True)]
    out = np.full(counts, init)
    for p in np.ndindex(*counts):
        for k in np.ndindex(*size):
            at = tuple(a * s + b * d for a, s, b, d in zip(p, strides, k, dilation, strict=True))
            if at in there and all(0 <= a < n for a, n in zip(at, shape, strict=True)):
                out[p] = f(out[p], there[at])
    return out


@pytest.mark.parametrize("pads", [((0, 0), (0, 0)), ((1, 1), (0, 2)), ((-1, 0), (2, -1))])
@pytest.mark.parametrize("spread", [(1, 1), (2, 1)])
@pytest.mark.parametrize("dilation", [(1, 1), (1, 2)])
@pytest.mark.parametrize("what", ["add", "mul", "max", "function", "two"])
def test_windows_start_from_their_value_once(
    what: str, pads: Any, spread: Any, dilation: Any
) -> None:
    x = np.arange(12.0, dtype=np.float32).reshape(3, 4) / 5 - 1
    size, strides = (2, 2), (1, 2)
    rest = (size, strides, pads, spread, dilation)
    known: dict[str, Any] = {
        "add": (lax.add, lambda a, b: a + b),
        "mul": (lax.mul, lambda a, b: a * b),
        "max": (lax.max, max),
    }
    # a + b + ab is associative; its identity, 0, is not what windows start from.
    ours, theirs = known.get(what, (lambda a, b: a + b + a * b,) * 2)
    if what == "two":
        both = lax.reduce_window(
            (x, x), (0.5, 2.0), lambda a, b: (ours(a[0], b[0]), lax.mul(a[1], b[1])), *rest)
        np.testing.assert_allclose(both[0], _by_loop(x, 0.5, theirs, *rest), 2e-5, 1e-6)
        np.testing.assert_allclose(both[1], _by_loop(x, 2.0, known["mul"][1], *rest), 2e-5, 1e-6)
        return
    for init in (0.5, 2.0):
        got = lax.reduce_window(x, init, ours, *rest)
        np.testing.assert_allclose(got, _by_loop(x, init, theirs, *rest), 2e-5, 1e-6)


def test_windows_of_nothing_give_nothing() -> None:
    pads = {"padding": ((-1, -1),), "base_dilation": (3,), "window_dilation": (2,)}
    own = lambda a, b: a * 1 + b  # noqa: E731
    out = lax.reduce_window(jnp.ones(1), jnp.float32(2), own, (2,), (3,), **pads)
    assert out.shape == (0,)
    x, w = jnp.ones((0, 2, 1)), jnp.ones((2, 1, 1))
    conv = lambda x, w: lax.conv_general_dilated(  # noqa: E731
        x, w, (2,), "SAME", dimension_numbers=("HNC", "OHI", "NCH"), batch_group_count=2)
    assert conv(x, w).shape == primal.jit(conv)(x, w).shape == (1, 2, 0)


def test_extremes_of_complex_numbers_have_derivatives() -> None:
    x = jnp.asarray([1 + 1j, 2.0, 1 - 1j, 2 + 1j])
    for start in (-jnp.inf, jnp.complex64(0)):
        f = lambda x, s=start: lax.reduce_window(x, s, lax.max, (2,), (1,), "VALID")  # noqa: E731
        out, tangent = primal.jvp(f, (x,), (1j * x,))
        assert out.tolist() == [2, 2, 2 + 1j]
        assert tangent.tolist() == [2j, 2j, -1 + 2j]


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
@pytest.mark.parametrize("size", [(2, 3), (1, 33)])
def test_windows_of_narrow_floats_round_once(dtype: Any, size: tuple[int, int]) -> None:
    """As those of float32, rounded; so do the gradients."""
    rest = (size, (1, 2), "SAME")
    x = jnp.asarray(np.random.default_rng(0).integers(-9, 9, (7, 40)), dtype)
    monoids = ((lax.max, -jnp.inf), (lax.min, jnp.inf), (lax.add, 0.0))
    for f, start in monoids:
        def out(x: Any, f: Any = f, start: Any = start) -> Any:
            return lax.reduce_window(x, x.dtype.type(start), f, *rest)

        def slope(x: Any, out: Any = out) -> Any:
            y, pull = primal.vjp(out, x)
            return pull(jnp.arange(y.size, dtype=x.dtype).reshape(y.shape) % 7)[0]

        for g in (out, slope):
            want = np.asarray(g(x.astype(np.float32))).astype(dtype)
            for run in (g, primal.jit(g)):
                np.testing.assert_array_equal(run(x), want)
        text = str(primal.make_jaxpr(out)(x))
        assert "reduce_window" in text and "slice" not in text


def test_what_begins_a_window_is_a_scalar() -> None:
    with pytest.raises(TypeError, match=r"\[reduce_window\] expected init values"):
        lax.reduce_window(jnp.ones((4, 4)), jnp.zeros(1), lax.max, (2, 2), (2, 2), "VALID")
    with pytest.raises(ValueError, match=r"\[reduce\] expected init values"):
        lax.reduce(jnp.ones(4), jnp.zeros(1), lax.max, (0,))


@pytest.mark.parametrize("f", [lax.add, lax.mul, lambda a, b: a + jnp.abs(b)])
@pytest.mark.parametrize("init", [0, 1, 2, np.int32(0), jnp.int32(1)])
def test_reductions_of_weak_numbers_are_weak_if_the_start_is(f: Any, init: Any) -> None:
    for x in (lax.full((3,), 2), jnp.arange(3)):
        weak = dtypes.is_weak(x) and dtypes.is_weak(init)
        for g in (lax.reduce, primal.jit(lax.reduce, static_argnums=(2, 3))):
            out = g(x, init, f, (0,))
            assert (out.dtype, out.weak_type) == (np.int32, weak)


def test_a_computation_is_traced_once():
    """By its identity and the dtypes; one with constants, which may be tracers, every time."""
    met = []

    def plus(x, y):
        met.append(x.dtype)
        return x + y

    for _ in range(3):
        assert lax.reduce(jnp.arange(4), 0, plus, (0,)) == 6
        assert lax.reduce_window(jnp.arange(4), 0, plus, (2,), (2,)).tolist() == [1, 5]
    assert lax.reduce(jnp.arange(4.0), 0.0, plus, (0,)) == 6
    assert len(met) == 3
    with primal.enable_x64(True):
        assert lax.reduce(jnp.arange(4.0), 0.0, plus, (0,)).dtype == np.float64

    def of(c):
        bend = lambda x, y: x + y + 0 * c  # noqa: E731
        return lax.reduce(jnp.arange(4.0), 0.0, bend, (0,)) + lax.reduce(c[None], 0.0, bend, (0,))

    assert primal.grad(of)(jnp.float32(2)) == 1
    assert primal.jit(of)(jnp.float32(3)) == 9

"""Quotients, remainders, conversions to integers and known powers, to the last bit and edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.engines.cpu.run.objects import counters
from primal.ops import elementwise as e
from primal.ops.choose import convert_element_type
from tests.engines.cpu.lab import agree, built

RNG = np.random.default_rng(0)
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def any_integers(dtype: str, n: int = 4000) -> tuple[Any, Any]:
    """Dividends and divisors: of all sizes, small ones, zeros, the ends of the range."""
    ends = np.iinfo(dtype)
    x, y = [RNG.integers(ends.min, ends.max, n, dtype=dtype, endpoint=True) for _ in range(2)]
    y[::2] = RNG.integers(max(-4, int(ends.min)), 5, n // 2)
    x[:40], y[:40:3] = ends.min, ends.max
    return x, y


def any_floats(dtype: str) -> tuple[Any, Any]:
    """Pairs of edges, of arbitrary bits, and of multiples of a tenth."""
    big = np.finfo(dtype)
    edges = np.array(
        [0.0, -0.0, 1, -1, 3, 0.5, 7, 0.1, np.inf, -np.inf, np.nan, 1e30, big.max, -big.max,
         big.tiny, big.smallest_subnormal], dtype,
    )  # fmt: skip
    pairs = [a.ravel() for a in np.meshgrid(edges, edges)]
    bits = RNG.integers(0, 2 ** (8 * big.dtype.itemsize), (2, 4000), f"u{big.dtype.itemsize}")
    tenths = (RNG.integers(-500, 500, (2, 4000)) / 10).astype(dtype)
    x, y = [np.concatenate([pairs[i], bits[i].view(dtype), tenths[i]]) for i in (0, 1)]
    return x, y


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_quotients_by_known_floats_are_the_nearest(dtype: str) -> None:
    x, y = any_floats(dtype)
    info = np.finfo(dtype)
    small = RNG.integers(0, 8 << info.nmant, 2000, f"u{info.dtype.itemsize}").view(dtype)
    relu = np.maximum(RNG.normal(size=2000), 0).astype(dtype)
    x = np.concatenate([x[:6000], small, -small, relu, -relu])
    with np.errstate(all="ignore"):
        for over in np.concatenate([y[:256:17], [0.05, 2.0**29, 2.0**31, 1e-20], y[300:320]]):
            over = over.astype(dtype)
            (got,) = built(lambda x, y: [e.div(x, y)], x, over).execute([x, over])
            np.testing.assert_array_equal(got, x / over)
            some = ~np.isnan(got)
            np.testing.assert_array_equal(np.signbit(got[some]), np.signbit((x / over)[some]))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_divide_exactly(dtype: str) -> None:
    agree(lambda x, y: [e.div(x, y), e.rem(x, y)], *any_integers(dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_divide_by_known_numbers(dtype: str) -> None:
    x, _ = any_integers(dtype, 400)
    ends = np.iinfo(dtype)
    for n in (0, 1, 3, 7, 8, 10, 64, ends.max, ends.max - 1, -1, -3, -8, ends.min):
        if n >= ends.min:
            agree(lambda x, n=n: [e.div(x, int(n)), e.rem(x, int(n))], x)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_all_short_integers_divide_by_known_numbers(dtype: str) -> None:
    ends = np.iinfo(dtype)
    x = np.arange(ends.min, ends.max + 1, dtype=dtype)
    some = RNG.integers(3, ends.max, 40, dtype=dtype).tolist()
    for n in range(3, ends.max + 1) if x.itemsize == 1 else [3, 5, 6, 7, *some]:
        got = built(lambda x, n=n: [e.div(x, n), e.rem(x, n)], x).execute([x])
        quotient = np.trunc(x / n).astype(dtype)
        np.testing.assert_array_equal(got[0], quotient)
        np.testing.assert_array_equal(got[1], x - quotient * np.array(n, dtype))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_multiples_of_known_numbers_and_their_neighbours(dtype: str) -> None:
    ends = np.iinfo(dtype)
    for n in (3, 7, 10, 641, 2**16 + 1, ends.max // 3, ends.max - 1, ends.max):
        powers = [v for b in range(ends.bits) for v in (2**b - 1, 2**b) if v <= ends.max]
        times = [v // n * n + off for v in (*powers, ends.max) for off in (-1, 0, 1)]
        x = np.array([v for v in times if 0 <= v <= ends.max], dtype)
        if ends.min:
            x = np.concatenate([x, -x, [ends.min]]).astype(dtype)
        agree(lambda x, n=n: [e.div(x, n), e.rem(x, n)], x)


@pytest.mark.parametrize("n", [3, 7, 1009, 2**16 + 1, 2**30 + 1, 2**31 - 2, 2**31 - 1, -3, -1009])
def test_single_integers_divide_by_known_numbers(n: int) -> None:
    """In registers of a loop, where products have all their bits."""
    some = RNG.integers(-(2**31), 2**31, 300)
    edges = [v * abs(n) + off for v in (-1, 0, 1) for off in (-1, 0, 1)]
    edges = [v for v in edges if abs(v) < 2**31]
    x = np.array([*some, *edges, -(2**31), 2**31 - 1], np.int32)
    both = primal.jit(lambda x: lax.scan(lambda c, v: (c, (lax.div(v, n), lax.rem(v, n))), 0, x)[1])
    quotient = np.trunc(x / n).astype(np.int32)  # exact: float64 has 53 bits
    np.testing.assert_array_equal(both(x)[0], quotient)
    np.testing.assert_array_equal(both(x)[1], x - quotient * np.int64(n))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("n", [0.0, -0.0, np.inf, -np.inf, 2.0, -0.5, 2.0**14, -(2.0**-14)])
def test_divisors_with_an_exact_inverse_multiply(n: float, dtype: str) -> None:
    with np.errstate(over="ignore"):
        x, _ = any_floats(dtype)
    made = built(lambda x: [e.div(x, n)], x)
    (kernel,) = made.plan.instances.values()
    assert [word for word, *_ in kernel.spec.body] == ["mul"]
    (got,) = made.execute([x])
    with np.errstate(all="ignore"):
        want = x / np.array(n, dtype)
    np.testing.assert_array_equal(got, want)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))


def test_a_second_divisor_compiles_nothing() -> None:
    for dtype in INTEGERS:
        x, _ = any_integers(dtype, 400)
        built(lambda x: [e.div(x, 7), e.rem(x, 7)], x)
        before = counters.kernels
        for n in (3, 10, 100, 125):
            agree(lambda x, n=n: [e.div(x, n), e.rem(x, n)], x)
        assert counters.kernels == before, dtype


def test_quotients_of_64_bits_where_floats_end() -> None:
    y = RNG.integers(1, 2**50, 3000)
    for bits in (51, 52, 53, 62):
        times = np.maximum(2**bits // y, 1)
        for off in (-1, 0, 1):
            agree(lambda x, y: [e.div(x, y), e.rem(x, y)], y * times + off, y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_floats_are_exact(dtype: str) -> None:
    x, y = any_floats(dtype)
    (got,) = built(lambda x, y: [e.rem(x, y)], x, y).execute([x, y])
    single = built(lambda *xs: [lax.map(lambda x: e.rem(*x), xs)], x, y).execute([x, y])[0]
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
    some = ~np.isnan(want)
    for found in (got, single):
        np.testing.assert_array_equal(found, want)
        np.testing.assert_array_equal(np.signbit(found[some]), np.signbit(want[some]))


@pytest.mark.parametrize("new", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_integers_of_floats_end_at_the_range(dtype: str, new: str) -> None:
    ends = np.array([2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 2.5, -2.5], dtype)
    near = [np.nextafter(ends, np.array(to, dtype)) for to in (-np.inf, np.inf)]
    x = np.concatenate([any_floats(dtype)[0], ends, *near])
    as_new = {"new_dtype": np.dtype(new), "weak_type": False}
    agree(lambda x: [convert_element_type(x, **as_new)], x)


@pytest.mark.parametrize("exponent", [-1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_known_powers(dtype: str, exponent: float) -> None:
    """Powers of zeros and infinities of both signs, of subnormals and of what is near overflow."""
    with np.errstate(over="ignore"):
        edges = any_floats(dtype)[0][:4256]
    x = np.concatenate([edges, RNG.standard_normal(500).astype(dtype)])
    agree(lambda x: [e.pow(x, exponent)], x, within=2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("divisor", [3.0, 0.1, -1e-3, 2.0**-61, 1e38, 0.0, np.inf, np.nan])
def test_quotients_by_one_number_for_all(divisor: float, dtype: str) -> None:
    """The nearest float; of those below 2⁻¹⁰⁰, or its neighbour."""
    x, _ = any_floats(dtype)
    y = np.array(divisor, dtype)
    results = [built(lambda x: [e.div(x, divisor)], x).execute([x])[0]]
    results += built(lambda x, y: [e.div(x, y)], x, y[None]).execute([x, y[None]])
    with np.errstate(all="ignore"):
        want = x / y
    for got in results:
        small = abs(want) < 2.0**-100
        np.testing.assert_array_equal(got[~small], want[~small])
        step = np.nextafter(abs(want[small]), np.inf) - abs(want[small])
        assert (abs(got[small] - want[small]) <= step).all()
        np.testing.assert_array_equal(np.signbit(got[small]), np.signbit(want[small]))


@pytest.mark.parametrize("dtype", ["int4", "int8", "int16", "int32"])
def test_known_divisors_beyond_the_dtype_wrap(dtype: str) -> None:
    ends = jnp.iinfo(dtype)
    low, size = int(ends.min), int(ends.max) - int(ends.min) + 1
    values = [low, low + 1, -4, -1, 0, 1, 3, int(ends.max)]
    x = np.array(values).astype(jnp.dtype(dtype))
    for n in (2, 4, 7, 12, 120, 130, 200, 259, 33_000, 70_001):
        over = (n - low) % size + low
        got = primal.jit(lambda x, n=n: x // n)(jnp.asarray(x))
        assert got.astype("int32").tolist() == [v // over for v in values]


def test_a_number_for_all_elements_is_known() -> None:
    """`x % 50` guards against 0, element for element: what is known of 50 is no work."""
    text = primal.jit(lambda x: x % 50).lower(np.arange(100)).compile().as_text()
    (line,) = [line for line in text.splitlines() if line.startswith(";   0:")]
    assert "rem_by" in line
    assert " eq" not in line
    assert line.count(" ne") == 1  # not 0; that 50 is negative, and its sign another, is no work


def test_the_slope_of_a_remainder_computes_none() -> None:
    """It is 1 by the dividend, whichever side of zero the remainder fell on."""
    x = np.linspace(-9, 9, 50, dtype=np.float32)
    made = agree(lambda x, w: [primal.grad(lambda x: ((x % 3) * w).sum())(x)], x, x[::-1].copy())
    words = {n.word for i in made.plan.program.block.steps for n in getattr(i, "nodes", ())}
    assert not words & {"rem", "select_n"}

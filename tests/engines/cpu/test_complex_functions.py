"""Functions of complex numbers in kernels: errors, branch cuts, infinities and NaN."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from primal.engines.cpu.complexes.functions import FUNCTIONS
from primal.ir.trace import literal
from primal.ops import elementwise as e
from tests.engines.cpu.test_complex import DTYPES, native

EDGES = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-30, 100.0, -800.0]
UNITS = {"tan": 4.0, "tanh": 4.0, "log1p": 3.0}


def numbers(dtype: str) -> Any:
    """Of all sizes in all directions, next to the unit circle, on the axes."""
    rng = np.random.default_rng(0)
    z = (rng.normal(size=6000) + 1j * rng.normal(size=6000)) * 10.0 ** rng.integers(-6, 3, 6000)
    circle = np.exp(1j * rng.uniform(-4, 4, 2000))
    axes = [z[:500].real, 1j * z[:500].real]
    return np.concatenate([z, circle, circle * 1.001, *axes]).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors(name: str, dtype: str) -> None:
    """A few units of the last place of the modulus, overflow where the result does."""
    x = numbers(dtype)
    if name in ("log1p", "expm1"):
        x = x[abs(x) > 1e-3]  # NumPy's lose digits there
    (got,) = native(lambda x: [getattr(e, name)(x)], x)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype("D" if dtype == "complex64" else "G"))
    limits = np.finfo(dtype)
    some = np.isfinite(want) & (abs(want) < limits.max / 2) & (abs(want) > limits.tiny)
    error = abs(got - want)[some] / abs(want)[some] / float(limits.eps)
    assert error.max() < UNITS.get(name, 2.5)


def alike(got: Any, want: Any, rtol: float) -> None:
    """Equal parts, NaN at the same places, and the signs of zeros."""
    for g, w in ((got.real, want.real), (got.imag, want.imag)):
        np.testing.assert_allclose(g, w, rtol=rtol)
        np.testing.assert_array_equal(np.signbit(g) & (g == g), np.signbit(w) & (w == w))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_edges(name: str, dtype: str) -> None:
    """Those of eager code at zeros, infinities, NaN and the ends of the range, on branch cuts."""
    edges = [*EDGES, float(np.finfo(dtype).max), -float(np.finfo(dtype).max)]
    x = np.array([complex(a, b) for a, b in itertools.product(edges, edges)], dtype)
    (got,) = native(lambda x: [getattr(e, name)(x)], x)
    with np.errstate(all="ignore"):
        want = getattr(e, name).impl(x)
    alike(got, want, 1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_edges(dtype: str) -> None:
    """As NumPy has them: small whole powers are products, others C99's product and exponential."""
    edges = [-np.inf, -2.0, -0.0, 0.0, 1.0, 1.5, np.inf, np.nan]
    exponents = [-np.inf, -2.0, -1.0, -0.0, 0.0, 1.0, 1.5, 2.0, 3.0, 4.0, 40.0, np.inf, np.nan]
    z = [complex(a, b) for a, b in itertools.product(edges, edges)]
    w = [complex(a, b) for a in exponents for b in (-np.inf, -1.5, -0.0, 0.0, 1.0, np.nan)]
    x, y = np.array([*itertools.product(z, w)], dtype).T.copy()
    (got,) = native(lambda x, y: [e.pow(x, y)], x, y)
    with np.errstate(all="ignore"):
        want = np.power(x, y)
    finite = np.isfinite(want)
    assert (abs(got[finite] - want[finite]) <= 1e-4 * abs(want[finite])).all()
    alike(got[~finite], want[~finite], 1e-5)


@pytest.mark.parametrize("name", ["asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_inverses_of_extremes(name: str) -> None:
    """Numbers whose squares are none, and next to the branch points."""
    sizes = [5e-324, 1e-200, 1e-20, 1.0, 1 - 2.0**-53, 1 + 2.0**-52, 1e20, 1e154, 1.7e308]
    near = [complex(a, b) for a, b in itertools.product([*sizes, *np.negative(sizes)], repeat=2)]
    x = np.array(near)
    (got,) = native(lambda x: [getattr(e, name)(x)], x)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x.astype("G"))
    assert (abs(got - want) <= 4 * np.finfo(float).eps * abs(want) + 5e-324).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers(dtype: str) -> None:
    x = numbers(dtype)
    x = x[(abs(x) > 0.1) & (abs(x) < 10)]
    y = np.resize(np.array([2, 0.5, -1, 1.5 + 1j, 2.5 - 2j, 0, -0.3j], dtype), x.shape)
    (got,) = native(lambda x, y: [e.pow(x, y)], x, y)
    want = x.astype("G") ** y.astype("G")
    eps = np.finfo(dtype).eps
    assert (abs(got - want) / abs(want)).max() < (1 if dtype == "complex64" else 30) * eps
    zero = np.zeros(4, dtype)
    (got,) = native(lambda x, y: [e.pow(x, y)], zero, np.array([0, 1, 2 + 1j, -1], dtype))
    np.testing.assert_array_equal(got[:3], [1, 0, 0])
    assert np.isnan(got[3])


def test_powers_of_single_precision_keep_their_digits() -> None:
    """Of large exponents and bases far from 1: their angles and logarithms count many times."""
    draws = np.random.default_rng(3)
    x = (10 ** draws.uniform(-9, 9, 1000) * np.exp(6j * draws.random(1000))).astype("c8")
    y = np.where(draws.random(1000) < 0.5, 2, 9j).astype("c8") + draws.random(1000).astype("c8")
    (got,) = native(lambda x, y: [e.pow(x, y)], x, y)
    want = x.astype("G") ** y.astype("G")
    known = (abs(want) > 1e-30) & (abs(want) < 1e30)
    assert known.sum() > 300
    error = abs(got - want)[known] / abs(want)[known]
    assert error.max() < np.finfo(np.float32).eps


@pytest.mark.parametrize("dtype", DTYPES)
def test_known_powers_are_products(dtype: str) -> None:
    """Of infinities too, where exp(2·log z) has other signs."""
    x = np.array([complex(a, b) for a, b in itertools.product(EDGES, repeat=2)], dtype)
    found = native(lambda x: [e.pow(x, literal(k, x.aval.dtype, False)) for k in (1, 2, 3)], x)
    with np.errstate(all="ignore"):
        for got, want in zip(found, [x, x * x, x * x * x], strict=True):
            for a, b in ((got.real, want.real), (got.imag, want.imag)):
                np.testing.assert_allclose(a, b, 1e-6, 1e-37)


@pytest.mark.parametrize("dtype", DTYPES)
def test_known_roots_are_powers(dtype: str) -> None:
    """Of zeros and infinities those of eager code, whose powers are no roots."""
    x = np.array([complex(a, b) for a, b in itertools.product(EDGES, repeat=2)], dtype)
    (got,) = native(lambda x: [e.pow(x, literal(0.5, x.aval.dtype, False))], x)
    with np.errstate(all="ignore"):
        want, roots = e.pow.impl(x, np.full_like(x, 0.5)), np.sqrt(x)
    some = np.isfinite(want) & (want != 0)
    roots = roots[some]
    assert (abs(got[some] - roots) <= 4 * np.finfo(dtype).eps * abs(roots)).all()
    alike(got[~some], want[~some], 0)


@pytest.mark.parametrize("name", ["rsqrt", "logistic"])
def test_quotients(name: str) -> None:
    x = numbers("complex128")
    x = x[abs(x.real) < 300]
    (got,) = native(lambda x: [getattr(e, name)(x)], x)
    want = 1 / np.sqrt(x) if name == "rsqrt" else 1 / (1 + np.exp(-x))
    np.testing.assert_allclose(got, want, rtol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_of_all_sizes(dtype: str) -> None:
    """Within units of the modulus from subnormal numbers to the greatest; too great is infinite."""
    rng, limits = np.random.default_rng(5), np.finfo(dtype)
    low, high = int(limits.minexp) - int(limits.nmant), int(limits.maxexp)

    def part() -> Any:
        return np.ldexp(rng.uniform(0.5, 1, (2, 5000)), rng.integers(low, high, (2, 5000)))

    a, b = part(), part() * rng.choice([-1, 0, 1], (2, 5000))
    b = np.where(rng.random(b.shape) < 0.5, b, a * rng.uniform(-1.2, 1.2, b.shape))
    x, y = (a + 1j * np.where(abs(b) < limits.max, b, 1)).astype(dtype)
    with np.errstate(all="ignore"):
        (got,) = native(lambda x, y: [e.div(x, y)], x, y)
        want = np.where(y == 0, np.nan, x.astype("G") / y.astype("G"))
        over = np.maximum(abs(want.real), abs(want.imag)) > limits.max
        error = abs(got - want) / np.maximum(abs(want) * limits.eps, limits.smallest_subnormal)
    assert not np.isfinite(got[over]).any()
    assert not np.isnan(got[y != 0]).any()
    assert error[~over & (y != 0)].max() < 2.5


@pytest.mark.parametrize("dtype", DTYPES)
def test_inverse_roots_and_logistic_at_ends(dtype: str) -> None:
    """Signs of zeros, and logistic where it is subnormal, as outside of programs."""
    x = np.array([complex(a, b) for a, b in itertools.product(EDGES, repeat=2)], dtype)
    far = -90 if dtype == "complex64" else -720
    y = np.array([complex(a, b) for a in (-3, 3, far) for b in (0, -0.0, 1, -2)])
    for name, z in (("rsqrt", x), ("logistic", y.astype(dtype))):
        (got,) = native(lambda x, name=name: [getattr(e, name)(x)], z)
        with np.errstate(all="ignore"):
            alike(got, getattr(e, name).impl(z), 3e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_outside_of_programs(dtype: str) -> None:
    """The same zeros, infinities and NaN, and zeros of infinite operands have no signs of a NaN."""
    parts = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    z = [complex(a, b) for a, b in itertools.product(parts, parts)]
    x, y = np.array([*itertools.product(z, z)], dtype).T.copy()
    (got,) = native(lambda x, y: [e.pow(x, y)], x, y)
    with np.errstate(all="ignore"):
        want = e.pow.impl(x, y)
    usual = np.isfinite(want) & (want != 0)
    assert (abs(got[usual] - want[usual]) <= 8 * np.finfo(dtype).eps * abs(want[usual])).all()
    alike(got[~usual], want[~usual], 1e-5)
    endless = (want == 0) & ~(np.isfinite(x) & np.isfinite(y))
    for part in (want[endless].real, want[endless].imag):
        assert not np.signbit(part).any()

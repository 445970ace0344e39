"""complex64 by parts: beside NumPy's functions of complex128, with every pair of special parts."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from primal import jit
from primal import numpy as jnp
from primal.base import native
from primal.base.config import enable_x64
from primal.ops import elementwise as ops
from primal.ops.elementwise import complexes

EDGES = [
    0.0, -0.0, 1.0, -1.0, -2.5, np.inf, -np.inf, np.nan, 1e-30, 1e-45, -1e-40, 100.0, -800.0,
    float(np.finfo("f4").max), -float(np.finfo("f4").max), 0.99999994, 1.0000001, np.pi / 2, 1e7,
]  # fmt: skip
NAMES = {
    **{n: n for n in ("exp", "exp2", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"a{n}": f"arc{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}


def pairs() -> Any:
    return np.array([complex(a, b) for a, b in itertools.product(EDGES, EDGES)], "c8")


def numbers() -> Any:
    """Of all sizes in all directions, next to the unit circle, on the axes."""
    rng = np.random.default_rng(0)
    z = (rng.normal(size=4000) + 1j * rng.normal(size=4000)) * 10.0 ** rng.integers(-6, 3, 4000)
    circle = np.exp(1j * rng.uniform(-4, 4, 1000))
    return np.concatenate([z, circle, circle * 1.001, z[:300].real, 1j * z[:300].real]).astype("c8")


def alike(got: Any, want: Any) -> None:
    """Parts within a unit of float32, NaN at the same places, and the signs of zeros."""
    for g, w in ((got.real, want.real), (got.imag, want.imag)):
        np.testing.assert_allclose(g, w, rtol=1.2e-7, atol=1.5e-45)
        np.testing.assert_array_equal(np.signbit(g) & (g == g), np.signbit(w) & (w == w))


@pytest.mark.parametrize("name", NAMES)
def test_parts(name: str) -> None:
    """Each part rounded once, among many, alone, and of memory in another order."""
    op, reference = getattr(ops, name), getattr(np, NAMES[name])
    x = np.concatenate([pairs(), numbers()])
    assert x.size > complexes.BLOCK
    with np.errstate(all="ignore"):
        want = reference(x.astype("D")).astype("c8")
    got = np.asarray(op(jnp.asarray(x)))
    assert got.dtype == np.complex64
    alike(got, want)
    some = [np.asarray(op(jnp.asarray(x[i : i + 90]))) for i in range(0, x.size, 90)]
    np.testing.assert_array_equal(np.concatenate(some), got)
    shaped = np.asarray(op(jnp.asarray(x[:600].reshape(20, 30).T)))
    np.testing.assert_array_equal(shaped, got[:600].reshape(20, 30).T)


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("expm1", lambda z: np.exp(z) - 1),
        ("log1p", lambda z: np.log(z - -1)),  # the imaginary part less 0 keeps its sign
        ("rsqrt", lambda z: 1 / np.sqrt(z)),
    ],
)
def test_composed(name: str, reference: Any) -> None:
    """Among many and alone, also of special parts; beside formulas of complex128 for numbers of
    which 1 leaves enough digits."""
    op, x = getattr(ops, name), np.concatenate([pairs(), numbers()])
    got = np.asarray(op(jnp.asarray(x)))
    some = [np.asarray(op(jnp.asarray(x[i : i + 90]))) for i in range(0, x.size, 90)]
    np.testing.assert_array_equal(np.concatenate(some), got)
    with np.errstate(all="ignore"):
        want = reference(x.astype("D"))
        some = (abs(want) > 1e-37) & (abs(want) < 1e38) & (abs(x) > 1e-6)
    assert (np.abs(got[some] - want[some]) <= 1.2e-7 * np.abs(want[some])).all()


def test_logistic() -> None:
    """Beside 1 / (1 + e^-z) in complex128, poles included; odd imaginary parts."""
    x = numbers()
    got = np.asarray(ops.logistic(jnp.asarray(x)))
    with np.errstate(all="ignore"):
        want = 1 / (1 + np.exp(-x.astype("D")))
    some = np.isfinite(want) & (abs(want) < 1e38) & (abs(want) > 1e-37)
    assert (np.abs(got - want)[some] <= 1.2e-7 * np.abs(want[some])).all()
    edges = pairs()
    # Where e^-z leaves float64 too, it says nothing of the signs of zeros.
    edges = jnp.asarray(edges[~((abs(edges.real) > 700) & np.isfinite(edges))])
    parts = [edges[i : i + 19] for i in range(0, edges.size, 19)]
    few = np.concatenate([np.asarray(ops.logistic(x)) for x in parts])
    alike(np.asarray(ops.logistic(edges)), few)


def test_powers() -> None:
    """Of every pair of special parts to every other: as alone."""
    x, y = pairs()[:, None], pairs()[::7][None]
    got = np.asarray(ops.pow(jnp.asarray(x), jnp.asarray(y)))
    for i in range(0, x.size, 29):
        with np.errstate(all="ignore"):
            alike(got[i], ops.pow.impl(x[i], y[0]))
    z = numbers()[:4000]
    z, w = z[:2000], z[2000:]
    with np.errstate(all="ignore"):
        want = np.float_power(z, w)
    some = np.isfinite(want) & (abs(want) < 1e38) & (abs(want) > 1e-37)
    found = np.asarray(ops.pow(jnp.asarray(z), jnp.asarray(w)))[some]
    assert (np.abs(found - want[some]) <= 1.2e-7 * np.abs(want[some])).all()


def test_quotients() -> None:
    """Parts rounded once, also where two products almost cancel; signs of zeros as NumPy's."""
    if native.extension is None:
        pytest.skip("NumPy's quotients, without the extension")
    x = numbers()[:5000]
    y = np.concatenate([x[1:2500], x[:1], x[2500:].conj() * (1 + 1e-6j)]).astype("c8")
    got = np.asarray(ops.div(jnp.asarray(x), jnp.asarray(y)))
    want = x.astype("G") / y.astype("G")
    for g, w in ((got.real, want.real), (got.imag, want.imag)):
        np.testing.assert_allclose(g, w.astype("d"), rtol=6.1e-8, atol=1.5e-45)
    edges = pairs()
    edges = edges[np.isin(edges.real, [0, 1, -2.5]) & np.isin(edges.imag, [0, 1, -2.5])]
    x, y = edges[:, None], edges[edges != 0][None]
    alike(np.asarray(ops.div(jnp.asarray(x), jnp.asarray(y))), x / y)
    x, y = pairs()[:, None], pairs()[::7][None]
    got = np.asarray(ops.div(jnp.asarray(x), jnp.asarray(y)))
    for i in range(0, x.size, 29):
        alone = ops.div(jnp.asarray(x[i]), jnp.asarray(y[0]))
        np.testing.assert_array_equal(got[i], np.asarray(alone))


def test_quotients_of_complex128_are_numpys() -> None:
    """Bit for bit where they are finite, also by one number and of memory in another order."""
    parts = (0.0, -0.0, 1.0, -2.5, 5e-324, -1e-310, 1e-200, 1.7e308, np.inf, np.nan)
    edges = np.array([complex(a, b) for a, b in itertools.product(parts, parts)])
    many = numbers()[:100].astype("D")
    x, y = np.concatenate([edges, many])[:, None], np.concatenate([many, edges])[None]
    with np.errstate(all="ignore"):
        want = x / y
        some = np.isfinite(want)
        got = ops.div.impl(*np.broadcast_arrays(x, y))
        assert got[some].tobytes() == want[some].tobytes()
        np.testing.assert_array_equal(ops.div.impl(x.T, y.T), got.T)
        again = np.tile(y[0], 4)
        for i in range(0, y.size, 7):
            np.testing.assert_array_equal(ops.div.impl(x[:, 0], y[0, i]), got[:, i])
            np.testing.assert_array_equal(ops.div.impl(x[i, 0], again), np.tile(got[i], 4))


@pytest.mark.parametrize(("dtype", "least"), [("complex64", 2.0**-126), ("complex128", 2.0**-1022)])
def test_quotients_by_subnormal_numbers(dtype: str, least: float) -> None:
    """Their inverses are infinite, the quotients are those of numbers that are larger alike."""
    parts = np.array([0, -0.25, 0.125, 0.5, 0.875])
    y = (parts[:, None] + 1j * parts).reshape(1, -1)[:, 1:].astype(dtype)
    x = np.array([[0], [1], [0.5 - 0.25j], [0.875j], [3]], dtype)
    with enable_x64(True):
        small = [jnp.asarray((least * v).astype(dtype)) for v in (x, y)]
        for f in (ops.div, jit(ops.div)):
            np.testing.assert_allclose(np.asarray(f(*small)), x / y, rtol=3e-7)


def test_log_of_many_complex128() -> None:
    """Beside NumPy's, whose special values it has, next to the unit circle and at all sizes."""
    edges = [*EDGES, 5e-324, -1e-310, 1e308, -1.7e308]
    odd = np.array([complex(a, b) for a, b in itertools.product(edges, edges)])
    rng = np.random.default_rng(1)
    far = 10.0 ** rng.integers(-250, 250, 5000) * (rng.normal(size=5000) + 1j)
    circle = np.exp(1j * rng.uniform(-4, 4, 5000)) * rng.choice([1, 1 + 1e-9, 0.5, 1.5, 3], 5000)
    x = np.concatenate([odd, far, circle])
    with enable_x64(True), np.errstate(all="ignore"):
        got, want = np.asarray(ops.log(jnp.asarray(x))), np.log(x)
    assert got.dtype == np.complex128
    for g, w in ((got.real, want.real), (got.imag, want.imag)):
        np.testing.assert_allclose(g, w, rtol=9e-16)
        np.testing.assert_array_equal(np.signbit(g) & (g == g), np.signbit(w) & (w == w))

"""What NumPy answers in one piece is, to the last bit, what the operations give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import primal.numpy as jnp
from primal.numpy import direct
from primal.runtime.array import ArrayImpl

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, -7.25, 1e-40, 3e38, -3e38, 1e-20, 5e15]
SPECIAL = [*FLOATS, np.inf, -np.inf, np.nan]
SIGNED = [0, 1, -1, 2, -2, 3, 7, -7, 12, 100, 2**31 - 1, -(2**31 - 1), -(2**31)]
BINARY = ["floor_divide", "remainder", "divmod", "power", "gcd", "lcm", "copysign", "heaviside"]


def parts(out):
    return [np.asarray(x) for x in (out if isinstance(out, tuple) else (out,))]


def same_bits(one, other):
    """Equal with signs of zeros; nan is nan."""
    for a, b in zip(parts(one), parts(other), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        if a.dtype.kind == "f":
            nans = np.isnan(a)
            assert np.array_equal(nans, np.isnan(b))
            assert np.array_equal(np.signbit(a[~nans]), np.signbit(b[~nans]))
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f")


def compare(name, *args, **kwargs):
    """How many results `direct` had for arrays of one element each of the operands' values."""
    run = getattr(direct, name)(*args, **kwargs)
    assert run is not None
    hosts = [x.host for x in args if isinstance(x, ArrayImpl)]
    with np.errstate(all="ignore"):
        found = run(*hosts)
    if found is not None:
        same_bits(found, getattr(jnp, name).__wrapped__(*args, **kwargs))
    return found is not None


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8"])
@pytest.mark.parametrize("name", BINARY)
def test_of_two(name, dtype):
    values = {"float32": SPECIAL, "int32": SIGNED, "uint8": [0, 1, 2, 3, 7, 250, 255]}[dtype]
    build = getattr(direct, name)
    x, y = (jnp.asarray(np.array(v)) for v in zip(*itertools.product(values, values), strict=True))
    x, y = x.astype(dtype), y.astype(dtype)
    if build(x, y) is None:
        pytest.skip(f"NumPy's {name} is not used for {dtype}")
    if name in ("gcd", "lcm"):
        keep = (np.asarray(x) != -(2**31)) & (np.asarray(y) != -(2**31))
        x, y = jnp.asarray(np.asarray(x)[keep]), jnp.asarray(np.asarray(y)[keep])
    used = 0
    for i in range(x.size):
        used += compare(name, x[i : i + 1], y[i : i + 1])
    assert used > x.size / 5


@pytest.mark.parametrize("name", ["modf", "frexp"])
def test_of_one(name):
    used = [compare(name, jnp.asarray([v], jnp.float32)) for v in SPECIAL]
    assert sum(used) == len(FLOATS)


def test_ldexp():
    for v, n in itertools.product(SPECIAL, [-200, -149, -1, 0, 1, 30, 127, 300]):
        compare("ldexp", jnp.asarray([v], jnp.float32), jnp.asarray([n]))


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_orders(name):
    rng = np.random.default_rng(0)
    for values in (SPECIAL, SIGNED, [True, False, True], SPECIAL[::-1], FLOATS * 3):
        x = jnp.asarray(rng.permutation(np.array(values)))
        assert compare(name, x)
        assert compare(name, jnp.stack([x, x[::-1]]), axis=0)


def test_places():
    edges = jnp.asarray(sorted(FLOATS) + [np.inf, np.nan], jnp.float32)
    for side in ("left", "right"):
        assert compare("searchsorted", edges, jnp.asarray(SPECIAL, jnp.float32), side)
        assert compare("searchsorted", edges, 0.25, side=side)
    m = jnp.arange(12.0).reshape(3, 4)
    assert compare("take_along_axis", m, jnp.array([[0, 2, 1, 1]]), 0)
    assert not compare("take_along_axis", m, jnp.array([[0], [-1], [9]]), 1)
    assert not compare("take_along_axis", m, jnp.array([[0, 9, 0, 0]]), 0)
    assert compare("packbits", m > 4, 1, bitorder="little")
    assert compare("packbits", m > 4)
    for k in (-4, -1, 0, 2, 5):
        assert compare("diagonal", m, k)
        assert compare("diag", m, k)
        assert compare("diag", m[0], k)
    assert compare("diagonal", jnp.stack([m, m + 1]), 1, -1, 0)


def test_what_numpy_means_otherwise_is_left():
    x, i = jnp.ones(2), jnp.arange(2)
    assert direct.floor_divide(x, i) is None
    assert direct.floor_divide(x.astype(jnp.bfloat16), x.astype(jnp.bfloat16)) is None
    assert direct.floor_divide(i, 0.5) is None and direct.remainder(i.astype("int8"), 300) is None
    assert direct.power(x, x) is None and direct.sort(x, descending=True) is None
    for _ in range(4):
        assert (i // jnp.array([0, 0])).tolist() == [-1, -2]
        assert jnp.gcd(jnp.array([12, -6]), 9).tolist() == [3, 3]
        assert jnp.divmod(jnp.array([1.0, -0.0]), 0.0)[1].tolist()[0] != 0


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right):
    x = jnp.asarray(np.array(SPECIAL, np.float32))
    for edges in ([-1.0, 0.0, 1.0], [3.0, 0.5, -2.5], [1.0], [0.0, 0.0], [2.0, 1.0, 1.0, -np.inf]):
        for values in (x, x[3]):
            assert compare("digitize", values, jnp.asarray(edges, jnp.float32), right)
    assert compare("digitize", jnp.arange(9), jnp.asarray([2, 5]), right=right)


@pytest.mark.parametrize("invert", [False, True])
def test_isin(invert):
    x = jnp.asarray(np.array(SPECIAL, np.float32))
    for tests in (x[::2], x[:1], x.reshape(1, -1)):
        for values in (x, x[0], x.reshape(-1, 1)):
            assert compare("isin", values, tests, False, invert)
    assert compare("isin", jnp.arange(9), jnp.asarray([2, 5]), invert=invert)

"""Complex numbers in one piece: as the operations give them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import primal.numpy as jnp
from primal import jit
from primal.numpy.remembered import remembered
from primal.ops import elementwise as ops
from primal.ops.elementwise import convert
from tests.numpy.direct_rows import COMPLEX, PAIRS
from tests.numpy.direct_values import FLOATS, SPECIAL, same_bits, wider


def test_complex_square_roots_as_powers():
    parts = np.array([2.0, -3.0, 1e-20, -1e30, 0.25, 7.0, 1.0, -0.0, 0.0, np.inf, np.nan])
    half = np.array(0.5, np.complex64)
    for taken in (parts[:7], parts):
        with np.errstate(all="ignore"):
            x = (taken[:, None] + 1j * taken).astype(np.complex64)
            found, wanted = ops.pow.impl(x, half), np.power(x.astype(np.complex128), 0.5 + 0j)
            good = np.isfinite(x) & np.isfinite(wanted)
            distance = np.abs(found - wanted)[good] / np.abs(wanted)[good]
        assert np.nanmax(distance) < 2e-7 if taken.size == 7 else np.nanmax(distance) < 1e-5


def test_complex_powers_are_rounded_once():
    """Also where an argument of a sine has more digits than complex64."""
    parts = np.array([0.3, -2.0, 7.0, 1e4], np.float32)
    x = (parts[:, None] + 1j * parts).ravel()
    with np.errstate(all="ignore"):
        want = np.power(x[:, None].astype(np.complex128), x).astype(np.complex64)
    same_bits(jnp.power(x[:, None], x), want)


@pytest.mark.parametrize("dtype", ["bool", "float32", "complex64"])
def test_results_lie_as_transposed_operands_do(dtype):
    """So that elements are read and written in the order of memory, whichever way they go."""
    x = (np.arange(300 * 331).reshape(300, 331) % 7 > 2).astype(dtype)
    function = remembered(lambda a, b: jnp.add(a, jnp.logical_or(a, b)))
    for order in ((0, 1), (1, 0)):
        a = jnp.asarray(x).transpose(order)
        for _ in range(3):
            found = function(a, a)
            assert found.host.strides == np.add(a.host, a.host).strides
            same_bits(found, np.add(x, x != 0).transpose(order))
    t = jnp.asarray(x[:, :330].reshape(300, 33, 10)).transpose(1, 0, 2)
    for _ in range(3):
        same_bits(function(t, t), np.add(t.host, t.host != 0))
    row = jnp.broadcast_to(jnp.asarray(x[0]), x.shape)
    for _ in range(3):
        same_bits(function(row, jnp.asarray(x)), np.add(row.host, (row.host != 0) | (x != 0)))


@pytest.mark.parametrize("old", ["complex64", "complex128"])
def test_complex_numbers_as_floats(old):
    z = np.add.outer(np.array(SPECIAL * 5, old), [2j, -1e30j, 1j]).astype(old)
    with np.errstate(all="ignore"):
        for part in (z, z.T, z[::-1], z[:, 1], z[3, 1], z[:0], z[:, ::2]):
            for new in map(np.dtype, ("float16", "float32", "float64")):
                found = convert.convert_element_type.impl(part, new_dtype=new, weak_type=False)
                wanted = part.real.astype(new)
                same_bits(found, wanted)
                assert found.dtype == new and not np.shares_memory(found, z)


PARTS = [*FLOATS[:8], 88.5, 89.5, -100.0, np.inf, -np.inf, np.nan]
OF_COMPLEX = {
    "less": lambda x, y, r: (jnp.less(x, y), x <= r, x > 1.5, jnp.greater_equal(x, y)),
    "greater": lambda x, y, r: (jnp.greater(x, r), r < x, jnp.fmax(x, r), jnp.fmin(r, y)),
    "rint": lambda x, y, r: jnp.rint(x),
    "nanmax": lambda x, y, r: (jnp.nanmax(x), jnp.nanmin(x.reshape(4, -1), axis=1)),
    "sort": lambda x, y, r: (jnp.sort(x), jnp.sort(x.reshape(4, -1), axis=0)),
    "argsort": lambda x, y, r: (jnp.argsort(x), jnp.argsort(x.reshape(4, -1), axis=0)),
    "isin": lambda x, y, r: (jnp.isin(x, y[:60]), jnp.isin(x, r[:60])),
    "expm1": lambda x, y, r: jnp.expm1(x),
    "log1p": lambda x, y, r: (jnp.log1p(x), jnp.log1p(x[::2].reshape(2, -1).T), jnp.log1p(x[0])),
    "sign": lambda x, y, r: (jnp.sign(x), jnp.sign(x[::2].reshape(2, -1).T), jnp.sign(x[0])),
    "searchsorted": lambda x, y, r: jnp.searchsorted(jnp.sort(x), r),
}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_logarithms_next_to_the_unit_circle(dtype):
    """log|1 + x| of rational x, of which fractions say exactly what |1 + x|^2 - 1 is."""
    rng = np.random.default_rng(0)
    turns = np.exp(1j * rng.uniform(-3, 3, 200)) - 1
    far = rng.normal(size=(2, 200)) * 2.0 ** rng.integers(-40, 40, 200)
    x = np.concatenate([turns, turns * (1 + 1e-6), far[0] + 1j * far[1]]).astype(dtype)
    found = ops.log1p.impl(x)
    for z, got in zip(x, found, strict=True):
        a, b = Fraction(float(z.real)), Fraction(float(z.imag))
        beyond = a * a + 2 * a + b * b
        if abs(beyond) > 2:
            wanted = math.log(1 + beyond) / 2
        else:
            wanted = math.log1p(float(beyond)) / 2
        assert abs(got.real - wanted) <= 4 * np.finfo(dtype).eps * abs(wanted)
        assert abs(got.imag - math.atan2(b, 1 + a)) <= 2 * np.finfo(dtype).eps * abs(got.imag)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("name", OF_COMPLEX)
def test_of_complex_numbers(name, plain):
    """Every call gives the bits that the operations give one by one."""
    rng = np.random.default_rng(0)
    x = np.array([complex(a, b) for a in PARTS for b in PARTS], "complex64")
    if plain:
        x = x[np.isfinite(x) & (x.real != 0) & (x.imag != 0)]
    x = rng.permutation(np.tile(x, 2))[: len(x) // 4 * 4]
    args = [jnp.asarray(v) for v in (x, np.roll(x, 3), x.real.copy())]
    with np.errstate(all="ignore"):
        first, *later = [OF_COMPLEX[name](*args) for _ in range(4)]
    for found in later:
        same_bits(first, found)


UPDATES = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


@pytest.mark.parametrize("dtype", ["complex64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", UPDATES)
def test_updates_one_after_the_other(name, dtype):
    """At places that repeat, and of slices: those of NumPy, of narrow floats in float32."""
    rng = np.random.default_rng(4)
    x, v = rng.integers(-9, 9, (2, 6, 8)) / 4 + (1j * rng.integers(-9, 9, (2, 6, 8)) / 4)
    x, v = [a if dtype == "complex64" else a.real for a in (x, v)]
    x, v = [np.asarray(jnp.asarray(a).astype(dtype)) for a in (x, v)]
    wide, ufunc = wider(x), UPDATES[name]
    for index, values in (
        ([3, 0, 3, 5, 3], v[:5]), ([3, 0, 3], v[0, 0]), (slice(None, None, 2), v[:3]),
        ((slice(1, 4), [2, 2, 7]), v[1, 3]), (2, v[2]), (x[:, 0] > 0, v[0]), (slice(4), 2),
    ):  # fmt: skip
        wanted = wide.copy()
        ufunc.at(wanted, index, wider(np.asarray(values, x.dtype)))
        key = jnp.array(index) if type(index) is list else index
        key = (key[0], jnp.array(key[1])) if type(key) is tuple else key
        values = values if type(values) is int else jnp.asarray(values)

        def run(x, values, key=key):
            return getattr(x.at[key], name)(values)

        for f in (run, jit(run)):
            found = np.asarray(f(jnp.asarray(x), values))
            assert found.dtype == x.dtype
            np.testing.assert_allclose(wider(found), wider(wanted.astype(x.dtype)), 1e-6)


@pytest.mark.parametrize("new", ["uint8", "int16", "float16", "float32", "uint32"])
def test_views_of_complex_numbers(new):
    few = COMPLEX.astype(np.complex64)
    for x in (few, few.T, PAIRS[::-1], PAIRS[:0]):
        for _ in range(3):
            found = jnp.asarray(x).view(new)
            assert found.dtype == new
            same_bits(found, np.ascontiguousarray(x).view(new))
        same_bits(jit(lambda x: x.view(new))(jnp.asarray(x)), found)


def test_gradients_of_complex_numbers():
    x = jnp.asarray(np.outer(PAIRS, np.arange(7.0)).astype(np.complex64))
    for spacing in ((), (2.0,), (0.5, 3.0)):
        for found, want in zip(jnp.gradient(x, *spacing), np.gradient(x, *spacing), strict=True):
            np.testing.assert_allclose(found, want, 1e-6)


def test_sums_of_complex_numbers_and_floats():
    """Of one dtype with the floats' as its parts, as NumPy's, within roundings."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(70) + 1j * rng.standard_normal(70)).astype("complex64")
    r = rng.standard_normal(9).astype("float32")
    for _ in range(3):
        found = jnp.convolve(jnp.asarray(x), jnp.asarray(r))
        np.testing.assert_allclose(found, np.convolve(x.astype("complex128"), r), 1e-5, 1e-5)
        found = jnp.correlate(jnp.asarray(r), jnp.asarray(x[:5]), "full")
        np.testing.assert_allclose(found, np.correlate(r, x[:5], "full"), 1e-5, 1e-5)
        np.testing.assert_allclose(jnp.linalg.norm(jnp.asarray(x)), np.linalg.norm(x), 1e-6)
        large = jnp.asarray(np.tile(x, 100).reshape(70, 100).T)
        np.testing.assert_allclose(jnp.linalg.norm(large), 10 * np.linalg.norm(x), 1e-6)

"""What NumPy answers in one piece is what the operations give, to the last bit where it can be."""

from __future__ import annotations

import inspect
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import jit, lax, nn
from primal.base import config, native
from primal.numpy import direct, ufuncs
from primal.numpy.remembered import remembered
from primal.ops import elementwise as ops
from primal.ops.elementwise import arithmetic, convert
from primal.ops.index import sort as sorting
from primal.ops.spread import reduce_sum
from primal.runtime.array import ArrayImpl

FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 7.25, -7.25, 1e-40, 3e38, -3e38, 1e-20, 5e15]
SPECIAL = [*FLOATS, np.inf, -np.inf, np.nan]
SIGNED = [0, 1, -1, 2, -2, 3, 7, -7, 12, 100, 2**31 - 1, -(2**31 - 1), -(2**31)]
BINARY = ["floor_divide", "remainder", "divmod", "power", "gcd", "lcm", "copysign", "heaviside"]


def parts(out):
    return [np.asarray(x) for x in (out if isinstance(out, tuple | list) else (out,))]


def same_bits(one, other):
    """Equal with signs of zeros; nan is nan."""
    for a, b in zip(parts(one), parts(other), strict=True):
        assert a.shape == b.shape and a.dtype.kind == b.dtype.kind
        if a.dtype.kind == "c":
            same_bits((a.real, a.imag), (b.real, b.imag))
            continue
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
        fun = ufuncs._power if name == "power" else getattr(jnp, name)
        same_bits(found, fun.__wrapped__(*args, **kwargs))
    return found is not None


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
@pytest.mark.parametrize("name", BINARY)
def test_of_two(name, dtype):
    values = {"float32": SPECIAL, "int32": SIGNED, "uint8": [0, 1, 2, 3, 7, 250, 255]}.get(
        dtype, [False, True, False]
    )
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
    truths, powers = jnp.array([True, False, True]), jnp.array([1, 5, -3])
    assert compare("ldexp", truths, powers)
    same_bits(jnp.ldexp(truths, powers), np.array([2, 0, 0.125], np.float32))
    for n in (-30, -24, -1, 0, 3, 40):
        x, shift = jnp.asarray(HALVES), jnp.full(HALVES.shape, n)
        same_bits(jnp.ldexp(x, shift), jnp.ldexp.__wrapped__(x, shift))


@pytest.mark.parametrize("name", ["sort", "argsort"])
def test_orders(name):
    rng = np.random.default_rng(0)
    positive = [v for v in FLOATS if v or not np.signbit(v)] * 3
    lists = (SPECIAL, SIGNED, [True, False, True], SPECIAL[::-1], FLOATS * 3, positive)
    for values in (*lists, HALVES, np.tile(HALVES, 40)):
        x = jnp.asarray(rng.permutation(np.array(values)))
        assert compare(name, x)
        assert compare(name, jnp.stack([x, x[::-1]]), axis=0)


def test_places():
    edges = jnp.asarray(sorted(FLOATS) + [np.inf, np.nan], jnp.float32)
    for side in ("left", "right"):
        assert compare("searchsorted", edges, jnp.asarray(SPECIAL, jnp.float32), side)
        assert compare("searchsorted", edges, 0.25, side=side)
        assert compare("searchsorted", jnp.arange(4), jnp.asarray(SPECIAL, jnp.float32), side)
    # What has to be rounded, or has parts, before it is compared.
    halves, pairs = jnp.array([256, 258], jnp.bfloat16), jnp.array([1 + 1j, 1 + 2j, 3])
    for args in [
        (halves, jnp.array([257])),
        (jnp.array([1, 2], jnp.float16), pairs),
        (pairs, jnp.array([1, 2], jnp.float16)),
    ]:
        want = jit(jnp.searchsorted)(*args)
        for _ in range(3):
            assert np.array_equal(jnp.searchsorted(*args), want)
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


@pytest.mark.parametrize("k", [-6, -2, -1, 0, 1, 3, 6])
def test_diagonals_are_slices(k):
    for n, m in itertools.product((0, 1, 2, 3, 5), repeat=2):
        x = np.arange(2.0 * n * m, dtype=np.float32).reshape(2, n, m)
        for a, axes in ((x, (1, 2)), (x, (2, 1)), (x.transpose(1, 2, 0), (0, 1))):
            same_bits(jnp.diagonal.__wrapped__(jnp.asarray(a), k, *axes), np.diagonal(a, k, *axes))
        slope = primal.grad(lambda a: jnp.sum(jnp.diagonal(a, k, 1, 2) ** 2))(jnp.asarray(x))
        same_bits(slope, 2 * x * np.eye(n, m, k, dtype=np.float32))


def _wider(x):
    return x.astype(np.float32) if x.dtype in (np.float16, native.BFLOAT16) else x


@pytest.mark.parametrize("name", ["add", "multiply"])
def test_reductions_of_slices(name):
    upper = VECTOR.astype(native.BFLOAT16)
    for x in (GRID, WHOLE, VECTOR, HALVES[:9], BYTES, WHOLE > 2, VECTOR[::-1], PAIRS, upper):
        for i in ([0, 1, 0], [1, 1, 0, 0], [0]):
            for axis in range(x.ndim):
                found = getattr(jnp, name).reduceat(jnp.asarray(x), jnp.asarray(i), axis)
                wanted = getattr(np, name).reduceat(_wider(x), i, axis, _wider(x).dtype)
                np.testing.assert_allclose(found, wanted.astype(x.dtype), rtol=1e-6)
                assert found.dtype == x.dtype
    whole = jnp.asarray(WHOLE)
    assert direct.reduceat(np.add)(whole, jnp.array([-8, 6]))(WHOLE, np.array([-8, 6])) is None


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_reductions_of_truths(name):
    ours, numpys = getattr(jnp, name), getattr(np, name)
    keep = GRID % 3 > 0
    for x in (GRID % 2, GRID > 25, GRID < 25, BYTES[None], NANS[None]):
        for axis in (0, 1, (0, 1), None):
            same_bits(ours.reduce(jnp.asarray(x), axis), numpys.reduce(x, axis))
        same_bits(ours.reduce(jnp.asarray(x), keepdims=True), numpys.reduce(x, keepdims=True))
        same_bits(ours.reduce(jnp.asarray(x), initial=2), numpys.reduce(x, initial=2))
    masked = ours.reduce(jnp.asarray(GRID > 2), 1, where=jnp.asarray(keep))
    same_bits(masked, numpys.reduce(GRID > 2, 1, where=keep))


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), native.BFLOAT16])
def test_quotients_of_two_bytes(dtype):
    """Every step is rounded, as those of the operations are; remainders are exact."""
    rng = np.random.default_rng(5)
    every = rng.permutation(np.arange(1 << 16, dtype=np.uint16)).view(dtype)
    near = rng.normal(size=4000).astype(dtype)
    special = HALVES.astype(dtype)
    x, y = (np.concatenate([v, np.tile(special, 17)]) for v in (every, every[::-1]))
    y[-17 * 17 :] = special.repeat(17)
    for a, b in ((x, y), (near, near[::-1]), (x[:600].reshape(20, 30).T, y[:600].reshape(20, 30).T),
                 (x, dtype.type(3)), (dtype.type(-7.5), y), (x[:5000:3], y[:5000:3])):
        a, b = jnp.asarray(a), jnp.asarray(b)
        for function in (jnp.divmod, jnp.floor_divide, jnp.remainder):
            found, wanted = function(a, b), function.__wrapped__(a, b)
            same_bits([x.astype("f4") for x in parts(found)],
                      [x.astype("f4") for x in parts(wanted)])  # fmt: skip
        with np.errstate(all="ignore"):
            wanted = np.fmod(np.asarray(a).astype("f4"), np.asarray(b).astype("f4"))
        for _ in range(3):
            same_bits(jnp.fmod(a, b).astype("f4"), wanted)


def test_powers_of_zero_are_zero():
    base, exponent = jnp.array([0, 0, 0, 0, 2, 3]), jnp.array([64, 128, -(2**31), 0, 64, 65])
    for power in (jnp.power, jit(jnp.power), jnp.power, jnp.power):
        assert power(base, exponent).tolist() == [0, 0, 0, 1, 1, 3]


def test_what_numpy_means_otherwise_is_left():
    x, i = jnp.ones(2), jnp.arange(2)
    assert direct.remainder(i.astype("int8"), 300) is None
    assert direct.power(x, x) is None and direct.sort(x, descending=True) is None
    for _ in range(4):
        assert (i // jnp.array([0, 0])).tolist() == [-1, -2]
        assert jnp.gcd(jnp.array([12, -6]), 9).tolist() == [3, 3]
        assert jnp.divmod(jnp.array([1.0, -0.0]), 0.0)[1].tolist()[0] != 0


OF_MIXED = ["floor_divide", "remainder", "divmod", "fmax", "gcd", "copysign", "heaviside", "less",
            "logical_xor"]  # fmt: skip


@pytest.mark.parametrize("name", OF_MIXED)
def test_of_several_dtypes(name):
    """Promoted first, arrays and scalars, weak ones too."""
    values = {"float32": FLOATS, "float16": [0.5, -3.0, 7.0], "int32": SIGNED, "int8": [-7, 2, 100],
              "bfloat16": [0.5, -3.0, 257.0],
              "uint8": [1, 3, 250], "bool": [True, False]}  # fmt: skip
    arrays = [jnp.asarray(np.array(v), k) for k, v in values.items()] + [jnp.arange(4) * 1.5]
    used = 0
    for x, y in itertools.product([*arrays, 2, 2.5, -3], repeat=2):
        if any(isinstance(v, ArrayImpl) for v in (x, y)):
            x, y = [v[:, None] if isinstance(v, ArrayImpl) and v is x else v for v in (x, y)]
            fun = getattr(jnp, name)
            try:
                wanted = fun.__wrapped__(x, y)
            except (TypeError, ValueError):  # gcd of floats
                continue
            got = fun(x, y)
            for one, other in zip(*[v if type(v) is tuple else (v,) for v in (got, wanted)],
                                  strict=True):
                assert one.aval == other.aval
                # same_bits knows no nan of bfloat16
                same_bits(*[v if v.dtype != jnp.bfloat16 else v.astype("f4") for v in (one, other)])
            used += getattr(direct, name)(x, y) is not None
    assert used > 15 or name == "less"


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8"])
def test_of_whole_numbers_rounded_once(dtype):
    """Half a unit and a little of float32, of the same in float64 by NumPy."""
    whole = np.array([0, 1, 2, 5, 40, 100, 120], dtype)
    if dtype != "uint8":
        whole = np.concatenate([whole, -whole])
    x, wide = jnp.asarray(whole), whole.astype(np.float64)
    with np.errstate(all="ignore"):
        shifted = wide - wide.max()
        for got, wanted in [
            (nn.softplus(x), np.logaddexp(wide, 0)),
            (nn.log_sigmoid(x), -np.logaddexp(-wide, 0)),
            (nn.mish(x), wide * np.tanh(np.logaddexp(wide, 0))),
            (nn.log1mexp(x), np.log1p(-np.exp(-wide))),
            (nn.softmax(x), np.exp(shifted) / np.exp(shifted).sum()),
            (nn.log_softmax(x), shifted - np.log(np.exp(shifted).sum())),
            (nn.logsumexp(x), np.log(np.exp(shifted).sum()) + wide.max()),
            (jnp.logaddexp(x, x[::-1]), np.logaddexp(wide, wide[::-1])),
            (jnp.float_power(x[:, None], x), np.float_power(wide[:, None], wide)),
            (jnp.poly(x[:4]), np.poly(wide[:4])),
        ]:
            assert got.dtype == np.float32
            np.testing.assert_allclose(got, wanted.astype(np.float32), rtol=1.2e-7, atol=0)


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


# Every function, in every form that it takes: (whether to the last bit, calls).

RNG = np.random.default_rng(0)
VECTOR = np.array([0.5, -1.25, 2.0, -0.75, 1.5, 3.0, -2.5, 0.25], np.float32)
SPECIALS = np.array(SPECIAL, np.float32)
FINITE = np.array([0.0, -0.0, 1e-40, -1e-40, 1e-20, -7.0, 2.0**62, -(2.0**62), 1e15], np.float32)
POINTS = np.array([0.5, -1.0, 2.0, 3.5, -2.0, 1.25, 4.0, 0.0], np.float32)
EDGES = np.array([-2.0, 0.0, 0.5, 3.0], np.float32)
WHOLE = np.array([3, 1, 3, 0, 7, 7, 2, 1], np.int32)
MATRIX = RNG.normal(size=(5, 5)).astype(np.float32)
COMPLEX = np.add.outer(np.array(SPECIAL, np.complex64), [0j, 1j * np.inf, -2j, np.nan * 1j])
MANY = np.tile(VECTOR, (3, 1 << 14))
POSITIVE = MATRIX @ MATRIX.T + np.eye(5, dtype=np.float32)
SINGULAR = np.ones((4, 4), np.float32)
NANS = np.array([1.0, np.nan, -2.0, np.nan, 0.5], np.float32)
GRID = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
EMPTY = np.zeros(0, np.float32)
with np.errstate(over="ignore"):
    HALVES = np.array(SPECIAL).astype(np.float16)
NANS_16, GRID_16 = NANS.astype(np.float16), GRID.astype(np.float16)


def both(*more):
    """Calls of two operands: ordinary, special, mixed with scalars, of several ranks, empty."""
    pairs = itertools.product(SPECIAL, SPECIAL)
    left, right = (np.array(v, np.float32) for v in zip(*pairs, strict=True))
    return [
        ((left, right), {}),
        ((VECTOR, 2.0), {}),
        ((2.0, VECTOR), {}),
        ((GRID, GRID[0]), {}),
        ((EMPTY, EMPTY), {}),
        ((VECTOR.astype(np.float16), VECTOR.astype(np.float16)), {}),
        ((VECTOR, WHOLE), {}),
        *more,
    ]


def over(*arrays, **options):
    return [((x,), options) for x in arrays]


BYTES = WHOLE.astype(np.uint8)
PAIRS = np.array([2 - 1j, 1 + 1j, 2 - 1j, 0, -2j, 1], np.complex64)
SETS = (HALVES, PAIRS, WHOLE, WHOLE.reshape(2, 4), SPECIALS, VECTOR, EMPTY, WHOLE > 2, BYTES)
MATRICES = (
    MATRIX,
    POSITIVE,
    SINGULAR,
    MATRIX[:3, :3],
    MATRIX[:1, :1],
    np.stack([MATRIX] * 2),
    np.full((4, 4), np.nan, np.float32),
    MATRIX + 1j * POSITIVE,
    MATRIX[:0, :0],
    np.where(np.eye(5) > 0, np.inf, MATRIX),
)
ROWS = (VECTOR, GRID, SPECIALS, np.full(3, -np.inf, np.float32), NANS, WHOLE)
AXES = [{"axis": 0}, {"axis": -1}]

ZEROS = np.array([0.0, -0.0, -0.0, 1.0, 0.0, -1.0, -0.0] * 50, np.float32)
BOUNDS = [(-1, 1), (0.0, -0.0), (-0.0, None), (None, 0.0), (2, 1), (np.nan, 1.0), (-300, 3)]

LAWS = {
    **{name: (True, both(((WHOLE, WHOLE[::-1]), {}), ((WHOLE, 2.5), {}),
                         ((WHOLE > 2, WHOLE > 1), {}), ((COMPLEX, COMPLEX[::-1]), {}),
                         ((COMPLEX, np.conj(COMPLEX)), {}), ((MANY + 1j, MANY[::-1] + 1j), {})))
       for name in ("fmax", "fmin")},
    "vecdot": (False, [((GRID + 1j, (GRID - 2j)[..., :1, :]), {}), ((COMPLEX, COMPLEX), {}),
                       ((GRID + 1j, GRID * 1j), {"axis": 0}), ((GRID + 1j, GRID), {}),
                       ((VECTOR + 1j, np.tile(VECTOR * 2j, (3, 1))), {}),
                       ((GRID.T + 1j, GRID.T - 1j), {}), ((VECTOR[:1] + 1j,) * 2, {})]),
    "vdot": (False, [((VECTOR + 1j, VECTOR[::-1] - 2j), {}), ((COMPLEX, COMPLEX[::-1]), {}),
                     ((GRID + 1j, GRID * 2j), {}), ((GRID * 1j, (GRID + 1j).T.T.ravel()), {}),
                     ((VECTOR[:1] + 1j, VECTOR[:1]), {}), ((VECTOR, VECTOR), {})]),
    "square": (True, over(VECTOR, SPECIALS, WHOLE, BYTES, WHOLE > 2, HALVES, VECTOR + 1j, EMPTY)),
    "clip": (True, [((x, *b), {}) for b in BOUNDS
                    for x in (VECTOR, SPECIALS, ZEROS, EMPTY, WHOLE, WHOLE.astype(np.int8))]
             + [((VECTOR,), {"max": 0.5}), ((VECTOR, VECTOR[::-1]), {}), ((WHOLE, 0.5, 2), {})]),
    **{name: (True, [*over(VECTOR, NANS, GRID, SPECIALS, WHOLE, ZEROS, ZEROS[2:3], NANS[[1, 3]]),
                     *over(GRID, axis=1), *over(ZEROS.reshape(50, 7), axis=0),
                     *over(GRID, axis=(0, 1)), *over(NANS, initial=0.5), *over(HALVES, NANS_16),
                     *over(GRID, GRID_16, axis=-1, keepdims=True), *over(NANS, keepdims=True)])
       for name in ("nanmax", "nanmin")},
    **{name: (False, [*over(PAIRS, PAIRS[:1], COMPLEX, VECTOR), *over(PAIRS, ddof=2),
                      *over(PAIRS, ddof=6), *over(GRID * (1 + 2j), axis=(0, -1), keepdims=True)])
       for name in ("var", "std")},
    "trunc": (True, over(VECTOR, SPECIALS, HALVES, GRID, WHOLE, VECTOR.astype(np.float16), EMPTY)),
    **{name: (True, over(VECTOR, SPECIALS, GRID, WHOLE, WHOLE > 2, VECTOR + 1j, EMPTY))
       for name in ("isreal", "iscomplex")},
    **{name: (False, [*over(VECTOR, NANS, GRID, SPECIALS[SPECIALS < 1e9], WHOLE, EMPTY),
                      ((GRID, 1), {}), *over(GRID, axis=(0, -1)), *over(GRID, keepdims=True),
                      *over(GRID, np.where(GRID % 3, GRID, np.nan), axis=(0, -1), keepdims=True),
                      *over(NANS[[1, 3]]), *over(VECTOR + 1j), *over(GRID, dtype=np.float16),
                      *over(NANS + 1j * VECTOR[:5], GRID + 2j * GRID), *over(GRID * 1j, axis=1),
                      *over(PAIRS, PAIRS[:1])])
       for name in ("nansum", "nanmean", "nanvar", "nanstd")},
    **{name: (True, [((a, b), {}) for a, b in itertools.product(SETS, SETS)]
              + [((VECTOR, EDGES), {}), ((VECTOR[:3], VECTOR), {"assume_unique": True})])
       for name in ("intersect1d", "setxor1d")},
    "unpackbits": (True, [*over(WHOLE.astype(np.uint8), bitorder="little"), *over(WHOLE),
                          *[((WHOLE.astype(np.uint8).reshape(2, 4),), {"axis": a, "count": c})
                            for a in (None, 0, -1) for c in (None, 5, 9, 90, -3)]]),
    "fill_diagonal": (True, [((x, v), {"inplace": False}) for v in (2.0, VECTOR[:3], -0.0, 7)
                             for x in (MATRIX, GRID[0], GRID[0].T, np.zeros((2, 2, 2)), WHOLE,
                                       MATRIX + 1j)]
                      + [((MATRIX > 0, True), {"inplace": False})]),
    "resize": (True, [((x, n), {}) for x in (VECTOR, GRID, WHOLE, EMPTY)
                      for n in (3, (2, 5), (0, 3), (40,), (), -2)]),
    "linspace": (True, [((a, b, n), o) for a, b in ((0, 1), (-2.5, 7), (3, -1e30), (1, np.inf))
                        for n in (1, 2, 3, 8, 1001) for o in ({}, {"endpoint": False})]
                 + [((0, 25, 6), {"dtype": np.int32}), ((0, VECTOR, 5), {})]),
    "unstack": (True, [*over(VECTOR, GRID), *over(GRID, axis=-1), *over(EMPTY)]),
    **{name: (True, [(n, o) for n in ((3,), (0,), (3, 5), (4, 2, -1), (2, 3, 9))
                     for o in ({}, {"dtype": np.dtype("int32")}, {"dtype": int})])
       for name in ("eye", "tri")},
    "identity": (True, [((n,), {}) for n in (0, 1, 5)] + [((3,), {"dtype": bool})]),
    "indices": (True, [((n,), {}) for n in ((3,), (2, 0, 4), (5, 6, 2), (40, 50))]),
    "linalg.norm": (False, [*over(VECTOR, SPECIALS, GRID, MATRIX.T, EMPTY, NANS, WHOLE),
                            *over(VECTOR, MATRIX, ord=2), *over(GRID, axis=1)]),
    "hypot": (False, both()),
    "logaddexp": (False, both()),
    "logaddexp2": (False, both()),
    **{name: (True, [*over(VECTOR, SPECIALS, GRID, WHOLE, NANS, EMPTY, WHOLE > 2),
                     *over(VECTOR + 1j, HALVES, COMPLEX), ((2.0,), {}), ((True,), {})])
       for name in ("isnan", "isfinite", "logical_not")},
    **{name: (False, [*over(VECTOR, SPECIALS, POSITIVE, WHOLE, EMPTY, VECTOR + 1j, WHOLE > 1),
                      *over(PAIRS, COMPLEX, COMPLEX.T, PAIRS[0]),
                      *over(HALVES, np.exp2(np.arange(-9, 9, dtype=np.float32)))])
       for name in ("log2", "log10")},
    "signbit": (True, over(VECTOR, SPECIALS, HALVES, ZEROS, WHOLE - 2, WHOLE > 2, EMPTY)),
    **{name: (True, both(((WHOLE, WHOLE % 2), {}), ((WHOLE > 2, WHOLE > 1), {}), ((WHOLE, 3), {}),
                         ((NANS, ZEROS[:5]), {}), ((WHOLE > 2, True), {}), ((HALVES, HALVES), {}),
                         ((COMPLEX, COMPLEX[::-1]), {}),
                         ((MANY * NANS[:3, None], np.maximum(MANY, 0)), {}),
                         ((np.maximum(MANY, 0), 0.0), {})))
       for name in ("logical_and", "logical_or", "logical_xor")},
    **{name: (True, [((x, k), {}) for x in (MATRIX, MATRIX[:3], MATRIX[:, :2], GRID, NANS * MATRIX,
                                            MATRIX > 0, MATRIX + 1j, MATRIX[:0])
                     for k in (0, 1, -2, 9, -9)]) for name in ("tril", "triu")},
    "block": (True, [((x,), {}) for x in (
        [[MATRIX, MATRIX], [MATRIX, MATRIX]], [MATRIX, MATRIX[:, :1]], [VECTOR, VECTOR[:3]],
        [[GRID[0], GRID[1]]], [[VECTOR], [VECTOR]], [[[GRID, GRID]]], MATRIX, [WHOLE, VECTOR],
        [VECTOR, 2.0], [VECTOR[0], VECTOR], [[VECTOR, EMPTY], [EMPTY, VECTOR]],
        *[[[x, x[:, :1]], [x[:2], x[:2, :1]]] for x in (MANY, MANY > 0)], [MANY.ravel(), VECTOR],
        [[[MANY[None], MANY[None] + 1]]])]),
    "bitwise_count": (True, over(np.array(SIGNED, np.int32), BYTES, (BYTES - 4).view(np.int8),
                                 EMPTY.astype(np.uint16), WHOLE[0])),
    "isinf": (True, over(VECTOR, SPECIALS, GRID, WHOLE, NANS, EMPTY, COMPLEX)),
    "isposinf": (True, over(VECTOR, SPECIALS, GRID, WHOLE, NANS, EMPTY)),
    "isneginf": (True, over(VECTOR, SPECIALS, GRID, WHOLE, NANS, EMPTY)),
    "arange": (True, over(5, 0, -3) + [((*a,), o)
               for a in ((1, 7), (7, 1, -2), (0, 9, 4), (2, None, 3))
               for o in ({}, {"dtype": jnp.int16}, {"dtype": jnp.float32}, {"dtype": jnp.uint32})]),
    "cosh": (False, over(VECTOR, WHOLE, WHOLE - 3, BYTES, EMPTY, WHOLE > 2)),
    "sinh": (False, over(VECTOR, WHOLE, WHOLE - 3, BYTES, EMPTY, WHOLE > 2)),
    "expm1": (False, over(VECTOR, WHOLE, WHOLE - 3, BYTES, EMPTY, WHOLE > 2)),
    "nan_to_num": (True, [*over(VECTOR, SPECIALS, GRID, WHOLE, NANS, EMPTY, PAIRS, COMPLEX),
                          *over(COMPLEX.T, COMPLEX[0, 0], nan=2, posinf=7.5),
                          *over(SPECIALS, NANS, nan=2, posinf=3.5),
                          *over(SPECIALS, neginf=-1e300, nan=np.nan), ((SPECIALS, True, 7.0), {})]),
    "sinc": (False, over(VECTOR, SPECIALS, GRID, WHOLE, VECTOR.astype(np.float16))),
    "isin": (True, [((a, b), o) for a, b in itertools.product(
        (*SETS, np.tile(SPECIALS, 40), np.tile(WHOLE, 80), EDGES + 0j), SETS)
        for o in ({}, {"invert": True})]),
    "spacing": (True, over(VECTOR, SPECIALS, GRID, VECTOR.astype(np.float16), HALVES)),
    "diagflat": (True, [((x, k), {}) for k in (0, 2, -1) for x in (*SETS, GRID[0], VECTOR + 1j)]),
    "nn.elu": (False, [((x, *a), {}) for a in ((), (2,), (0.3,))
                      for x in (VECTOR, SPECIALS, WHOLE, HALVES, VECTOR[0])]),
    "nn.selu": (True, over(VECTOR, SPECIALS, WHOLE, HALVES, VECTOR[0])),
    "nn.squareplus": (True, [((x, *b), {}) for b in ((), (0,), (1,), (0.5,), (-1,))
                             for x in (VECTOR, SPECIALS, FINITE, GRID, EMPTY, WHOLE, VECTOR[0])]),
    "polyfit": (False, [((x, y, n), o) for n in (0, 1, 3) for x in (POINTS, np.arange(8))
                        for y in (VECTOR, GRID.ravel()[:8] % 3, np.stack([POINTS, VECTOR], 1))
                        for o in ({}, {"w": POINTS})]),
    "nn.log1mexp": (True, over(np.abs(VECTOR), SPECIALS, HALVES, VECTOR[0])),
    "nn.hard_tanh": (True, over(VECTOR, SPECIALS, WHOLE, HALVES, WHOLE > 2, VECTOR[0])),
    "take": (True, [
        ((VECTOR, WHOLE), {}), ((HALVES, WHOLE), {}), ((VECTOR, WHOLE - 1), {}),
        ((VECTOR, WHOLE + 5), {}),
        ((VECTOR, WHOLE + 5), {"mode": "clip"}), ((VECTOR, WHOLE - 9), {"mode": "wrap"}),
        ((GRID, WHOLE[:2]), {"axis": 1}), ((GRID, WHOLE.reshape(4, 2)), {}),
        ((np.arange(300), np.array([-1, -100, 5], np.int8)), {}),
        ((EMPTY, WHOLE[:0]), {}),
    ]),
    "unique": (True, [
        *over(*SETS), *over(*SETS, return_index=True), *over(*SETS, return_inverse=True),
        *over(*SETS, return_index=True, return_inverse=True, return_counts=True),
        *over(WHOLE, size=3), *over(NANS, equal_nan=False), *over(GRID, axis=0),
        *over(GRID, WHOLE.reshape(4, 2) % 2, NANS[:, None], ZEROS.reshape(-1, 2) + 0, axis=0),
        *over(-GRID % 3, ZEROS.reshape(-1, 2), BYTES.reshape(2, 4), GRID_16 % 2, axis=-1),
        *over(GRID % 2, axis=1, return_counts=True),
    ]),
    "union1d": (True, [((a, b), {}) for a, b in itertools.product(SETS, SETS)]),
    "setdiff1d": (True, [((a, b), {}) for a, b in itertools.product(SETS, SETS)]),
    "bincount": (True, [
        *over(WHOLE, WHOLE - 1, WHOLE[:0], WHOLE.astype(np.uint8)), *over(WHOLE, minlength=12),
        *over(WHOLE, length=3), ((WHOLE, VECTOR), {}), ((WHOLE, WHOLE), {}),
        ((WHOLE, VECTOR.astype(np.float16)), {}), ((WHOLE, WHOLE + (2**31 - 8)), {}),
        ((WHOLE, WHOLE.astype(np.uint8) + 249), {}),
    ]),
    "histogram": (True, [
        *over(VECTOR, GRID, WHOLE, SPECIALS, EMPTY, SINGULAR), *over(VECTOR, bins=3),
        *over(WHOLE > 2, np.tile(WHOLE > 2, 1000)),
        *over(VECTOR.astype(np.float16), HALVES, RNG.normal(size=5000).astype(np.float16)),
        *over(RNG.normal(size=5000).astype(np.float16), bins=37),
        *over(VECTOR, range=(0.0, 1.0)), *over(VECTOR, density=True), ((VECTOR, EDGES), {}),
        *over(RNG.normal(size=300).astype(np.float32), bins=37),
        *over(RNG.normal(size=40000).astype(np.float32), bins=37),
        *over((np.arange(5000) % 11).astype(np.float32)), *over(np.repeat(SPECIALS, 300)),
    ]),
    "digitize": (True, [((x, EDGES), {}) for x in SETS] + [((VECTOR, WHOLE[[3, 1, 4]]), {})]),
    "median": (False, [*over(VECTOR, NANS, GRID, SPECIALS, WHOLE, WHOLE > 2), *over(GRID, axis=1),
                       *over(GRID, keepdims=True), *over(VECTOR[:3], MATRIX, axis=-1),
                       *over(HALVES, NANS_16, GRID_16), *over(GRID_16, GRID_16.T, axis=1),
                       *over(GRID, axis=(0, 2)), *over(GRID, GRID.T, axis=(-1, 0)),
                       *over(np.tile(VECTOR, 400), np.tile(SPECIALS, 400), np.tile(NANS, 600)),
                       *over(np.tile(VECTOR, 300)[1:], np.tile(WHOLE, 300)),
                       *over(WHOLE.reshape(2, 4), axis=0), *over(WHOLE[:1], VECTOR[:2], EMPTY)]),
    "lexsort": (True, [((keys,), o) for o in ({}, {"axis": 0}) for keys in (
        [WHOLE, VECTOR], (WHOLE % 2, WHOLE), [GRID, -GRID], (SPECIALS, SPECIALS[::-1]), (WHOLE,))]),
    "argpartition": (True, [*[((x, k), {}) for x in (VECTOR, WHOLE, GRID, NANS, SPECIALS, ZEROS,
                                                     HALVES) for k in (0, 2, -1)],
                            ((GRID, 1), {"axis": 0})]),
    "partition": (True, [*[((x, k), {}) for x in (VECTOR, WHOLE, GRID, NANS, SPECIALS, WHOLE > 2,
                                                  HALVES, BYTES) for k in (0, 2, -1)],
                         *over(EMPTY, kth=0), ((GRID, 1), {"axis": 0})]),
    "quantile": (False, [((x, q), o) for x in (VECTOR, GRID, NANS, SPECIALS, WHOLE, EMPTY)
                         for q in (0.3, 1, 0.5, -2.0, np.nan, np.array([0.1, 0.5], np.float32))
                         for o in ({}, {"axis": 0}, {"axis": -1, "method": "lower"})]),
    "percentile": (False, [((x, q), o) for x in (VECTOR, GRID, NANS, SPECIALS, WHOLE)
                           for q in (30, 33.3, 100) for o in ({}, {"axis": -1})]),
    "nanmedian": (False, [*over(VECTOR, NANS, GRID, SPECIALS, WHOLE, WHOLE > 2, NANS[[1, 3]]),
                          *over(GRID, axis=1)]),
    "nanargmax": (True, [*over(VECTOR, NANS, GRID, SPECIALS, WHOLE, NANS[[1, 3]]),
                         *over(GRID, axis=1), *over(GRID, keepdims=True)]),
    "nanargmin": (True, [*over(VECTOR, NANS, GRID, SPECIALS, WHOLE, NANS[[1, 3]]),
                         *over(GRID, axis=1)]),
    "nancumsum": (True, [*over(VECTOR, NANS, GRID, WHOLE, EMPTY), *over(GRID, axis=1),
                         *over(NANS + 1j * VECTOR[:5])]),
    "nonzero": (True, [*over(*SETS, GRID % 3, NANS, VECTOR[0]), *over(WHOLE, size=3)]),
    "argwhere": (True, [*over(*SETS, GRID % 3, NANS, VECTOR[0]), *over(WHOLE, size=3)]),
    "where": (True, [*over(*SETS, GRID % 3), *over(WHOLE, size=3), ((WHOLE > 2, VECTOR, 0.0), {})]),
    "extract": (True, [((WHOLE > 1, x), o) for x in (VECTOR, WHOLE, WHOLE.reshape(4, 2), GRID[0],
                                                     HALVES[:8]) for o in ({}, {"size": 3})]
                + [((WHOLE, VECTOR), {})]),
    "compress": (True, [
        ((WHOLE > 1, VECTOR), {}), ((WHOLE[:3] > 1, VECTOR), {}), ((WHOLE > 9, VECTOR), {}),
        ((np.array([True, False, True]), GRID), {"axis": 1}), ((WHOLE, VECTOR), {}),
        ((WHOLE > 1, GRID), {}), ((WHOLE > 1, VECTOR), {"size": 3}),
    ]),
    "pad": (True, [((x, w), {"mode": m}) for x in (VECTOR, GRID, WHOLE) for w in (2, (1, 3))
                   for m in ("edge", "constant", "wrap", "reflect", "symmetric")]
            + [((GRID, ((0, 1),) * 3, "edge"), {}), *[((EMPTY, n, "edge"), {}) for n in (2, 0)]]),
    "roll": (True, [((x, s, a), {}) for x in (GRID, GRID.T, GRID > 2, GRID_16, EMPTY, WHOLE)
                    for s, a in ((2, 0), ((1, -9), (0, 2)), ([3, 4], (1, 1)), ((1, 2), 1),
                                 ((5, 0), (-1, 7)), (3, None))]),
    **{name: (True, [*over(GRID, GRID.T, GRID > 2, GRID_16, EMPTY, WHOLE, MATRIX + 1j),
                     *over(GRID, axes=(0, 2)), *over(GRID, axes=1)])
       for name in ("fft.fftshift", "fft.ifftshift")},
    "count_nonzero": (True, [*over(*SETS), *over(GRID, axis=1), *over(GRID, keepdims=True),
                             *over(COMPLEX, GRID, axis=0), *over(GRID, axis=(0, 2))]),
    "repeat": (True, [((x, 2), {}) for x in SETS] + [((GRID, 3), {"axis": 1}), ((VECTOR, 0), {}),
               ((VECTOR, 2), {"total_repeat_length": 5})]),
    "delete": (True, [((x, i), {}) for i in (0, 3, -1, 7, slice(1, 4), slice(5, 2), slice(-3, 99),
                                             slice(None, None, 2)) for x in (VECTOR, HALVES)]
               + [((GRID, 1), {"axis": 2})]),
    "insert": (True, [((x, i, 2.0), {}) for i in (0, 3, -1, 8, 30, -30)
                        for x in (VECTOR, HALVES, VECTOR * 1j)]
               + [((WHOLE > 2, i, v), {}) for i in (0, -1, 30) for v in (0, 7, True)]
               + [((WHOLE, 1, 2), {}), ((WHOLE, 1, 2.5), {}), ((GRID, 1, 5.0), {"axis": 2}),
                  *[((x, i, 2), {"axis": a}) for x in (GRID, GRID_16, GRID > 2)
                    for i in (0, 2, -1, 9) for a in (0, -1)]]),
    "choose": (True, [((WHOLE % 2, (VECTOR, -VECTOR)), {"mode": m}) for m in ("raise", "clip")]
               + [((WHOLE, [VECTOR, WHOLE]), {"mode": "wrap"}),
                  ((WHOLE - 2, [VECTOR, -VECTOR, VECTOR]), {"mode": "clip"})]),
    "unravel_index": (True, [((i, (3, 4)), {}) for i in (WHOLE, WHOLE - 5, WHOLE + 9, WHOLE[:0])]),
    "ravel_multi_index": (True, [
        (((WHOLE, WHOLE % 2), (8, 2)), {}), (((WHOLE, WHOLE), (8, 9)), {"order": "F"}),
        (((WHOLE + 3, WHOLE), (8, 2)), {"mode": "clip"}),
        (((WHOLE, WHOLE), (3, 2)), {"mode": "wrap"}),
    ]),
    "convolve": (False, [((a, b), {"mode": m}) for m in ("full", "same", "valid")
                         for a, b in itertools.product(
                             (VECTOR, EDGES, NANS, WHOLE, BYTES, BYTES > 2), repeat=2)]
                 + [((GRID_16[0, 0], GRID_16[1, 0]), {})]),
    "poly": (False, over(PAIRS, VECTOR, EMPTY, NANS, SPECIALS, WHOLE, MATRIX, VECTOR[0],
                         VECTOR * 1j)),
    "correlate": (False, [((a, b), {"mode": m}) for m in ("full", "same", "valid")
                          for a, b in itertools.product((VECTOR, EDGES, VECTOR * 1j), repeat=2)]
                  + [((GRID_16[0, 0], GRID_16[1, 0]), {"mode": "full"})]),
    "interp": (False, [
        ((x, xp, np.exp(EDGES)), o)
        for x in (VECTOR, WHOLE, SPECIALS, VECTOR[0])
        for xp in (EDGES, WHOLE[[3, 1, 2, 4]], np.ones(4, np.float32), EDGES.repeat(2)[1:5])
        for o in ({}, {"left": 0.5}, {"period": 2.0})
    ] + [((VECTOR, EDGES, np.array([0.0, np.inf, 1.0, np.nan], np.float32)), {})]),
    "trace": (False, [*over(MATRIX, GRID, MATRIX[:0]), *over(MATRIX, offset=-2),
                      *over(GRID, axis1=2, axis2=0), *over(WHOLE.reshape(2, 4) > 2)]),
    "vander": (False, [*over(VECTOR, WHOLE, SPECIALS, EMPTY, BYTES, WHOLE[:0]),
                       *over(PAIRS, PAIRS / 3, COMPLEX[0], N=5),
                       *over(VECTOR, WHOLE, N=3, increasing=True), *over(WHOLE, BYTES, N=150),
                       *over(WHOLE, N=0), *over(WHOLE, N=1), *over(HALVES[:9], WHOLE > 2, N=4),
                       *over(WHOLE > 2, WHOLE < 9), *over(WHOLE > 2, N=99, increasing=True)]),
    "linalg.qr": (True, [((x, m), {}) for x in (*MATRICES, GRID, GRID.swapaxes(1, 2), EMPTY)
                         for m in ("r", "reduced")]),
    "linalg.det": (False, over(*MATRICES)),
    "linalg.slogdet": (False, over(*MATRICES, WHOLE[:4].reshape(2, 2), np.eye(3) > 0)),
    "linalg.lstsq": (False, [
        ((MATRIX, VECTOR[:5]), {}), ((MATRIX[:, :3], VECTOR[:5]), {}), ((MATRIX, POSITIVE), {}),
        ((MATRIX[:2], VECTOR[:2]), {}), ((SINGULAR, VECTOR[:4]), {}), ((MATRIX, NANS), {}),
        ((MATRIX[:, :3], VECTOR[:5]), {"numpy_resid": True}),
    ]),
    "linalg.cond": (False, [*over(*MATRICES[:-2]), *over(POSITIVE, p=1)]),
    "linalg.matrix_rank": (True, over(*MATRICES, GRID, np.zeros((3, 4), np.float32))),
    "nn.softplus": (False, over(VECTOR, SPECIALS, GRID, WHOLE, EMPTY)),
    "nn.log_sigmoid": (False, over(VECTOR, SPECIALS, GRID, WHOLE, EMPTY)),
    "nn.mish": (False, over(VECTOR, SPECIALS, GRID, WHOLE, EMPTY)),
    "float_power": (False, [((a, b % 5), {}) for a in (WHOLE, WHOLE > 2) for b in (WHOLE, 7)]),
    "nn.softmax": (False, [((x,), o) for x in ROWS for o in [{}, *AXES]] + over(GRID, axis=(0, 2))),
    "nn.log_softmax": (False, [((x,), o) for x in ROWS for o in [{}, *AXES]]),
    "nn.logmeanexp": (False, [((x,), o) for x in (*ROWS, EMPTY) for o in [{}, *AXES]]
                      + over(GRID, axis=(0, 2))),
    "nn.logsumexp": (False, [((x,), o) for x in (*ROWS, EMPTY) for o in [{}, *AXES]]
                     + over(GRID, axis=(0, 2), keepdims=True)),
}  # fmt: skip


def test_every_function_has_a_law():
    held = {*(name.rpartition(".")[2] for name in LAWS), *BINARY}
    held |= {"modf", "frexp", "ldexp", "sort", "argsort", "searchsorted", "take_along_axis"}
    held |= {"packbits", "diagonal", "diag", "reduceat"}
    held |= {"less", "less_equal", "greater", "greater_equal", "rint"}  # test_of_complex_numbers
    assert held == {name for name in vars(direct) if callable(getattr(direct, name))}


def outcome(call):
    try:
        return call()
    except (TypeError, ValueError) as error:
        return type(error)


def as_arrays(x):
    if isinstance(x, tuple | list) and any(isinstance(v, np.ndarray | list) for v in x):
        return type(x)(map(as_arrays, x))
    return jnp.asarray(x) if isinstance(x, np.ndarray) else x


def _as_they_are(x):
    return x


def _in_halves(x):
    """Arrays of float32 as float16, whose least, greatest and rounding are others."""
    if isinstance(x, tuple | list) and any(isinstance(v, np.ndarray | list) for v in x):
        return type(x)(map(_in_halves, x))
    if not isinstance(x, np.ndarray) or x.dtype != np.float32:
        return x
    with np.errstate(over="ignore"):
        return x.astype(np.float16)


def _of_first(x):
    """Arrays without dimensions; NumPy has numbers for their results, which are not written to."""
    return x.ravel()[0].reshape(()) if isinstance(x, np.ndarray) and x.size else x


@pytest.mark.parametrize("form", [_as_they_are, _in_halves, _of_first])
@pytest.mark.parametrize("name", LAWS)
def test_law(name, form):
    """Types and values are those of the operations, and every call gives the same."""
    exact, calls = LAWS[name]
    # Rounded once they differ from what rounds each step.
    exact = exact and not (form is _in_halves and name == "nn.log1mexp")
    module, _, own = name.rpartition(".")
    function = getattr({"": jnp, "fft": jnp.fft, "linalg": jnp.linalg, "nn": nn}[module], own)
    build, used = getattr(direct, own), 0
    for args, kwargs in calls:
        args = tuple([as_arrays(form(x)) for x in args])
        expected = outcome(lambda: function.__wrapped__(*args, **kwargs))  # noqa: B023
        found = [outcome(lambda: function(*args, **kwargs)) for _ in range(3)]  # noqa: B023
        if isinstance(expected, type):
            assert found == [expected] * 3
            continue
        used += build(*args, **kwargs) is not None
        pieces = [list(x) if isinstance(x, tuple | list) else [x] for x in (expected, *found)]
        assert all(type(x) is type(expected) for x in found)
        for want, *got in zip(*pieces, strict=True):
            assert all(
                (x.shape, x.dtype, x.weak_type) == (want.shape, want.dtype, want.weak_type)
                for x in got
            ), (args, kwargs)
            assert len({np.asarray(x).tobytes() for x in got}) == 1
            if exact:
                same_bits(got[0], want)
            else:
                halves = any(x.dtype == np.float16 for x in parts(want))
                rtol, atol = (2e-3, 1e-3) if halves else (2e-5, 2e-6)
                np.testing.assert_allclose(got[0], want, rtol, atol)
    assert used or form is not _as_they_are


@pytest.mark.parametrize("without", [False, True])
@pytest.mark.parametrize("dtype", [*"bhilBHILefdFD?"])
def test_stable_order_of_many(dtype, without, monkeypatch):
    """Equal elements keep their order, nan come last in theirs, along any axis."""
    if without:
        monkeypatch.setattr(sorting, "extension", None)
    rng = np.random.default_rng(1)
    for shape in ((60, 40), (3, 70), (2, 300), (4, 0), (5000,), (40000,)):
        drawn = rng.choice(SPECIAL, shape) if dtype in "efdFD" else rng.integers(0, 40, shape)
        if dtype in "FD":
            drawn = rng.choice(FLOATS, shape) + 1j * rng.choice(FLOATS, shape)
        with np.errstate(all="ignore"):
            wide = (rng.normal(size=shape) * 1e4).astype(dtype)  # which wraps
            drawn = drawn.astype(dtype)
        for x in (drawn, wide, np.zeros(shape, dtype), np.sort(wide), drawn[..., ::-1]):
            for axis in range(x.ndim):
                order = np.argsort(x, axis, kind="stable")
                assert np.array_equal(sorting.stable_orders((x,), axis), order)
                ordered = np.take_along_axis(x, order, axis)
                same_bits(sorting.sorted_along(x, axis), ordered)
                major = rng.integers(0, 3, shape)
                order = np.lexsort((x.imag, x.real, major), axis)
                assert np.array_equal(sorting.stable_orders((major, x), axis), order)


@pytest.mark.parametrize("without", [False, True])
@pytest.mark.parametrize("old", ["float16", "float32", "float64"])
def test_floats_beyond_the_range_of_integers(old, without, monkeypatch):
    """They become its ends, nan becomes 0, and what lies between is cut off."""
    if without:
        monkeypatch.setattr(convert, "extension", None)
    ends = [2.0**k + d for k in (7, 8, 15, 16, 31, 32) for d in (-1, -0.5, 0, 1)]
    values = [*SPECIAL, -np.nan, *ends, *[-v for v in ends], *np.linspace(-300, 300, 700)]
    with np.errstate(all="ignore"):
        x = np.array(values, old)
    for new in map(np.dtype, ("int8", "int16", "int32", "uint8", "uint16", "uint32")):
        least, greatest = np.iinfo(new).min, np.iinfo(new).max
        wanted = [0 if v != v else int(min(max(v, least), greatest)) for v in map(float, x)]
        found = convert.convert_element_type.impl(x, new_dtype=new, weak_type=False)
        assert found.dtype == new and found.tolist() == wanted
        if old != "float16":
            z = (np.append(x[5:], np.tile(x, 5)) + np.array(1j, "complex64")).astype(
                "complex64" if old == "float32" else "complex128"
            )
            z.real[:] = np.append(x[5:], np.tile(x, 5))
            for part in (z, z[::2], z[1:], z.reshape(-1, 1), z[:12].reshape(3, 4).T, z[3], z[:0]):
                found = convert.convert_element_type.impl(part, new_dtype=new, weak_type=False)
                same_bits(
                    found,
                    convert.convert_element_type.impl(part.real, new_dtype=new, weak_type=False),
                )


@pytest.mark.parametrize("dtype", [np.dtype(np.float16), native.BFLOAT16])
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (7,), (8,), (5, 13), (4001,)])
def test_floats_of_two_bytes_in_vectors(shape, dtype):
    """Conversions are NumPy's and ml_dtypes', of all numbers and of any length."""
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(native.widened(every), every.astype(np.float32))
        if dtype != np.float16:
            back = native.narrowed(every.astype(np.float32), dtype)
            np.testing.assert_array_equal(
                back.view(np.uint16), every.astype(np.float32).astype(dtype).view(np.uint16)
            )
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 1 << 32, shape, np.uint64).astype(np.uint32).view(np.float32)
    edges = np.float32([65504, 65519.99, 65520, 2.0**-25, 3 * 2.0**-25, -(2.0**-24), 1 + 2.0**-11])
    upper = np.float32([1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-8 + 2.0**-23, 3.3961e38, 1e-40])
    for x in (wide, wide.T[::-1] if shape else wide, edges, upper, -upper):
        with np.errstate(all="ignore"):
            wanted, found = x.astype(dtype), native.narrowed(x, dtype)
        assert found.shape == x.shape and found.dtype == dtype
        if dtype in native.IN_VECTORS:
            for own in (x.copy(), np.array(x, order="F"), np.repeat(x[..., None], 2, -1)[..., 0]):
                once = native.rounded(own, dtype)
                assert once.dtype == np.float32
                same_bits(once, found.astype(np.float32))
        if dtype == np.float16:  # of which nan keeps some bits, of bfloat16 none
            np.testing.assert_array_equal(found, wanted)
        else:
            np.testing.assert_array_equal(found.view(np.uint16), wanted.view(np.uint16))


UPPER = np.array([*SPECIAL, -np.nan, 3.38e38, -1e-38, 2.0**-133, 257, 0.99], native.BFLOAT16)
OF_ONE = """modf frexp trunc isinf signbit logical_not sort argsort unique nanmax nanmin nanargmax
nanargmin argpartition:3 partition:3 any all count_nonzero max min cummax isreal iscomplex diag
unstack nonzero repeat:2 take_first delete:2 clip clip_below tril triu abs isfinite nan_to_num
argwhere nan_to_some spacing ldexp softplus bincount median histogram vander:4 norm det""".split()
OF_TWO = """copysign heaviside fmax fmin maximum minimum logical_and logical_or logical_xor
searchsorted digitize isin union1d setdiff1d setxor1d intersect1d insert add subtract multiply
divide less equal isclose logaddexp logaddexp2 convolve pair copysign_many
logical_or_many""".split()


def _of_bfloat16(name):
    name, *more = name.split(":")
    special = {
        "cummax": lambda x: lax.cummax(x),
        "take_first": lambda x: jnp.take(x, jnp.array([3, 0, 5])),
        "clip": lambda x: jnp.clip(x, -0.3, 1.7),
        "clip_below": lambda x: jnp.clip(x, 0.0, None),
        "insert": lambda x, y: jnp.insert(x, 1, 2.3),
        "tril": lambda x: jnp.tril(x.reshape(4, -1)),
        "triu": lambda x: jnp.triu(x.reshape(4, -1)),
        "nan_to_some": lambda x: jnp.nan_to_num(x, nan=0.3, posinf=3.4e38, neginf=-7),
        "ldexp": lambda x: jnp.ldexp(x, jnp.arange(x.size) * 7 % 300 - 150),
        "bincount": lambda x: jnp.bincount(jnp.arange(x.size) * 7 % 5, x),
        "softplus": nn.softplus,
        "norm": jnp.linalg.norm,
        "pair": lambda x, y: jnp.array([x, y]),
        "copysign_many": lambda x, y: jnp.copysign(jnp.tile(x, 9), jnp.tile(y, 9)).reshape(9, -1),
        "logical_or_many": lambda x, y: jnp.logical_or(jnp.tile(x, 9), jnp.tile(y, 9)[::-1]),
        "det": lambda x: jnp.linalg.det(x[:32].reshape(2, 4, 4)),
    }
    return special.get(name) or (lambda *xs: getattr(jnp, name)(*xs, *map(int, more)))


def _bits(out):
    return [
        np.where(x != x, np.uint16(0x7FC0), x.view(np.uint16)) if x.dtype == native.BFLOAT16 else x
        for x in parts(out)
    ]


@pytest.mark.parametrize("values", [UPPER, UPPER[np.isfinite(UPPER) & (UPPER != 0)]])
@pytest.mark.parametrize("name", [*OF_ONE, *OF_TWO])
def test_bfloat16_by_way_of_float32(name, values):
    """Every call gives the bits, and dtypes, that the operations give one by one."""
    rng = np.random.default_rng(0)
    values = rng.permutation(values)[: len(values) // 4 * 4]
    x = np.repeat(values, len(values)) if name in OF_TWO else np.tile(values, 3)
    y = np.tile(values, len(values))
    if name == "searchsorted":
        x = np.sort(x.astype(np.float32)).astype(x.dtype)
    if name == "digitize":
        y = np.array([-3, -0.0, 0.99, 257], x.dtype)
    args = [jnp.asarray(v) for v in ((x, y) if name in OF_TWO else (x,))]
    run = _of_bfloat16(name)
    state = [_bits(run(*args)) for _ in range(4)]
    for found in state[1:]:
        for a, b in zip(state[0], found, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("new", ["bool", "int8", "int32", "uint8", "uint16", "float32", "float16"])
def test_bfloat16_in_another_dtype(new):
    """And back: what float32 says of the same numbers."""
    every = np.arange(1 << 16, dtype=np.uint16).view(native.BFLOAT16)
    with np.errstate(all="ignore"):
        wide = jnp.asarray(every.astype(np.float32))
        np.testing.assert_array_equal(jnp.asarray(every).astype(new), wide.astype(new))
        back = jnp.asarray(wide.astype(new)).astype("bfloat16")
        wanted = np.asarray(wide.astype(new)).astype(np.float32).astype(back.dtype)
        np.testing.assert_array_equal(_bits(back)[0], _bits(wanted)[0])


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "less", "not_equal"])
def test_programs_of_float16_round_each_operation(name):
    """Remembered ones, which compute in float32, as NumPy's functions of float16."""
    rng = np.random.default_rng(0)
    every = rng.permutation(np.arange(1 << 16, dtype=np.uint16)).view(np.float16)
    function = remembered(lambda x, y: getattr(jnp, name)(jnp.where(x > y, x, y), y))
    other = np.roll(every, 7)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(np.where(every > other, every, other), other)
    for _ in range(3):
        same_bits(function(jnp.asarray(every), jnp.asarray(other)), wanted)


PROGRAMS = [
    lambda x, y: (x + y) * x - y / (x + 3),
    lambda x, y: (x * y, x * y > 1, (x * y + 1).astype("int8"), (x - y).astype("float32") * 2),
    lambda x, y: jnp.where(x > y, x * y, -jnp.abs(x) * 0.3),
    lambda x, y: jnp.maximum(x * x, y) + jnp.minimum(jnp.square(y), x) * jnp.exp(x - y),
    lambda x, y: jnp.sum(x * y, axis=0) + jnp.isfinite(x * 1e30),
    lambda x, y: (x @ y.T + 1, jnp.vecdot(x, y) * 3, x[0, 0] * y[0, 0] + 1, jnp.dot(x[0], y[0])),
    lambda x, y: (x * y).reshape(-1)[:7] + (x + y).T[:7, 0] * jnp.sqrt(jnp.abs(y[0, :7])),
    lambda x, y: ((x * 0.1).astype("float16") + 1, (y * 0.1).astype("bfloat16") - 1, x + 0.0),
    lambda x, y: jnp.concatenate([(x + y)[:, 1:], (x * y)[:, :1]], 1) + x,
    lambda x, y: (jnp.diff(x, n=2), (x + y).T[3:, ::-1] * 2, jnp.stack([x * y, x])),
    lambda x, y: [*jnp.split(x + y, 2, 1), *lax.optimization_barrier((x * y, y)), x - 1],
    lambda x, y: [x * 1.7, jnp.floor(x * 1.7), (x + y).astype(bool), x * y == y * x],
]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_in_float32_round_each_operation(program, dtype):
    """Every call gives the bits of operations one by one, however the operands lie; they stay."""
    function = remembered(program)
    rng = np.random.default_rng(0)
    values = np.concatenate([np.array(SPECIAL), rng.normal(size=63) * 4])
    with np.errstate(all="ignore"):
        drawn = [jnp.asarray(rng.permutation(np.tile(values, 200))).astype(dtype) for _ in "xy"]
    before = [_bits(v)[0].copy() for v in drawn]
    for shape in ((2, 10), (80, 200), (1, 16000)):
        n = math.prod(shape)
        x, y = [v[:n].reshape(shape) for v in drawn]
        for a, b in ((x, y), (x[:, ::-1], y), (x.T.reshape(-1)[:20].reshape(2, 10), y[:1, :10])):
            wanted = [_bits(v)[0] for v in primal.tree.leaves(program(a, b))]
            for _ in range(4):
                for found, want in zip(primal.tree.leaves(function(a, b)), wanted, strict=True):
                    np.testing.assert_array_equal(_bits(found)[0], want)
                    assert _bits(found)[0].dtype == want.dtype
    for v, bits in zip(drawn, before, strict=True):
        np.testing.assert_array_equal(_bits(v)[0], bits)


@pytest.mark.parametrize("small", ["which", "x", "y"])
def test_choices_of_float16_broadcast(small):
    """Programs leave out broadcasts that the choice makes itself, whichever operand is small."""
    rng = np.random.default_rng(1)
    values = {"which": rng.random((6, 10)) < 0.5}
    values |= {k: rng.standard_normal((6, 10)).astype(np.float16) for k in "xy"}
    for shape in ((), (1, 1), (10,), (6, 1)):
        given = values | {small: np.resize(values[small], shape)}
        function = remembered(lambda which, x, y: jnp.where(which, x + x, y + y) * 2)
        wanted = np.where(given["which"], given["x"], given["y"]) * np.float16(4)
        for _ in range(3):
            same_bits(function(*map(jnp.asarray, given.values())), wanted)


def test_square_roots_as_powers():
    """They are powers at -0 and -inf too, however the exponent is given."""
    values = [*SPECIAL, 7.3, 1e-38, 123.25]

    def power(v):
        return float("nan") if v < 0 and v > -np.inf else v if v != v else math.pow(v, 0.5)

    for dtype in ("float32", "float64"):
        x = np.array(values, dtype)
        wanted = np.array([power(float(v)) for v in x], dtype)
        n = (len(x), 1)
        half = np.array(0.5, dtype)
        for base, exponent in [
            (x, half), (x, half[None]), (x, np.broadcast_to(half, x.shape)),
            (x.reshape(n), half.reshape(1, 1)), (np.tile(x.reshape(n), 3), np.full(n, half)),
            (np.tile(x.reshape(n), 3), np.full((1, 3), half)), (x, np.full_like(x, half)),
        ]:  # fmt: skip
            with np.errstate(all="ignore"):
                found = ops.pow.impl(base, exponent)
                one = [ops.pow.impl(np.asarray(v), half) for v in x]
            for column in (*found.reshape(len(x), -1).T, np.asarray(one)):
                same_bits(np.isnan(column), np.isnan(wanted))
                np.testing.assert_array_max_ulp(column, wanted, 1)
                assert not np.signbit(column[column == 0]).any()


@pytest.mark.parametrize("order", ["C", "F"])
def test_sums_of_what_lies_in_one_run(order):
    """Sums over several axes, and of transposed arrays, as those of float64, and of one shape."""
    x = np.asarray(RNG.normal(size=(31, 40, 50)), np.float32, order)
    for axes in [(0, 1, 2), (1, 2), (2,), (0,), (0, 1), (0, 2)]:
        found = reduce_sum.impl(x, axes=axes)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, x.sum(axes, dtype=np.float64), rtol=1e-5, atol=2e-4)


@pytest.mark.parametrize("size", [5, 4096, 4097, 3_000_001])
def test_the_norm_of_many_is_as_exact_as_of_few(size):
    x = np.abs(RNG.normal(size=size)).astype(np.float32)
    exact = np.sqrt(np.sum(x.astype(np.float64) ** 2)).astype(np.float32)
    np.testing.assert_array_max_ulp(np.asarray(jnp.linalg.norm(jnp.asarray(x))), exact, 2)


def test_many_elements():
    """Where operations choose another way for many elements, it leads to the same."""
    x = np.tile(np.array(SPECIAL, np.float32), 200)
    few = [jnp.sign(jnp.asarray(part)) for part in np.split(x, 200)]
    same_bits(jnp.sign(jnp.asarray(x)), np.concatenate(few))
    for y in (x, np.where(x == 0, 1, x)):
        same_bits(jnp.sort(jnp.asarray(y)), np.sort(y, kind="stable"))
        same_bits(lax.clamp(-2.0, jnp.asarray(y), 3.0), np.minimum(np.maximum(y, -2), 3))
        places = jnp.asarray(np.where(np.isfinite(y), y, 0)).astype("int32")
        assert places[2] == 1 and places.dtype == jnp.int32
    grid, widths = np.ones((2, 3)), ((1, 2), (0, 3))
    same_bits(jnp.pad(jnp.asarray(grid), widths), np.pad(grid, widths).astype(np.float32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64])
def test_integers_as_floats(dtype):
    """As the language promotes them: with 64 bits too, narrow ones are float32."""
    info = np.iinfo(dtype)
    x = np.array([0, 1, 7, info.max, info.max - 1, info.min], dtype)
    with config.enable_x64(True):
        for f in (jnp.frexp, jnp.sinc, jnp.spacing, jnp.modf, lambda x: jnp.histogram(x, 5)):
            for got, want in zip(
                primal.tree.leaves(f(jnp.asarray(x))),
                primal.tree.leaves(primal.jit(f)(x)),
                strict=True,
            ):
                assert got.dtype == want.dtype
                np.testing.assert_allclose(got, want, 1e-6, 1e-7)


@pytest.mark.parametrize("axis", [None, 1, -2])
def test_running_sums_of_zeros_below(axis):
    """-0 and nan, counted as 0, begin like all sums."""
    x = jnp.array([[-0.0, np.nan, -0.0, 1.0]])
    got = jnp.nancumsum(x, axis)
    assert not np.signbit(got).any()
    np.testing.assert_array_equal(got, primal.jit(lambda x: jnp.nancumsum(x, axis))(x))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64])
@pytest.mark.parametrize("function", [jnp.convolve, jnp.correlate])
def test_sliding_sums_of_integers_leave_their_range(dtype, function):
    """They are floats, though each of the terms is a whole number."""
    top = np.iinfo(dtype).max
    x, y = np.array([top, 2, top, top - 1, 3], dtype), np.array([top, 1, top], dtype)
    with config.enable_x64(True):
        got = function(jnp.asarray(x), jnp.asarray(y))
        want = primal.jit(function)(x, y)
        assert got.dtype == want.dtype
    exact = getattr(np, function.__name__)(x.astype(float), y.astype(float), _default(function))
    np.testing.assert_allclose(got, exact, 1e-6)
    np.testing.assert_allclose(want, exact, 1e-6)


def _default(function):
    return inspect.signature(function).parameters["mode"].default


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_high_powers_of_integers(dtype):
    """All bits of a known exponent count, six of those in an array, as in jit and in XLA."""
    x = np.array([0, 1, 2, 3, 5], dtype)
    with config.enable_x64(True):
        for e in (3, 63, 64, 65, 70, 127, 200):
            exact = np.array([int(n) ** e % 2 ** (8 * x.itemsize) for n in x], object)
            unsigned = np.dtype(f"u{x.itemsize}")
            for f in (lambda x: jnp.power(x, e), lambda x: x**e):  # noqa: B023
                for run in (f, primal.jit(f)):
                    found = np.asarray(run(jnp.asarray(x)))
                    assert found.dtype == dtype
                    assert (found.view(unsigned) == exact.astype(unsigned)).all()
        few = 2 ** (np.arange(300, dtype=object) % 64) % 2 ** (8 * x.itemsize)
        for run in (jnp.vander, primal.jit(jnp.vander, static_argnums=(1, 2))):
            table = np.asarray(run(jnp.asarray(x), 300, True))
            assert table.dtype == dtype and table[:, 0].tolist() == [1] * 5
            assert not table[0, 1:].any() and (table[1] == 1).all()
            assert table[2].view(unsigned).tolist() == few.tolist()
            same_bits(np.asarray(run(jnp.asarray(x), 300, False)), table[:, ::-1])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32])
def test_quotients_over_zero_in_any_order_of_memory(dtype):
    rng = np.random.default_rng(3)
    x, y = (jnp.asarray(rng.integers(0, n, (5, 7)).astype(dtype)) for n in (5, 2))
    for name in ("floor_divide", "remainder", "divmod", "fmod"):
        function = getattr(jnp, name)
        wide = ((x[0], y[:, :1]), (x[1, 2], y), (x, y[0, 0]))
        for a, b in ((x.T, y.T), (x.T, y[0, :5]), (x[:, ::2], y[::, ::2]), *wide):
            own = [jnp.array(np.array(v, order="C")) for v in (a, b)]
            same_bits(function(a, b), jit(function)(*own))


@pytest.mark.parametrize("n", [1, 2, 3, 2049, 2050])
@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_medians_at_the_ends_of_the_range(name, n):
    function = getattr(jnp, name)
    for values in ([3e38, 3.4e38], [1e-45, 3e-45], [np.inf, -np.inf, 1.0]):
        x = np.resize(np.array(values, np.float32), n)
        # Exact means of two in twice the digits; inf and -inf have none.
        with np.errstate(invalid="ignore"):
            want = np.median(x.astype(np.float64)).astype(np.float32)
        same_bits(function(jnp.asarray(x)), want)
        same_bits(jit(function)(jnp.asarray(x)), want)


@pytest.mark.parametrize("shape", [(1, 3), (2, 4), (2049, 2), (2, 2050)])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int16"])
def test_medians_of_whole_numbers(dtype, shape):
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    x = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    for axis in (None, 0, 1, (0, 1)):
        # Rounded to float32, of which two and their mean are exact in float64.
        want = np.median(x.astype(np.float32).astype(np.float64), axis).astype(np.float32)
        same_bits(jnp.median(jnp.asarray(x), axis), want)
        same_bits(jit(jnp.median, static_argnums=1)(jnp.asarray(x), axis), want)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 2049, 2050])
def test_middle_zeros_of_two_signs(n):
    rng = np.random.default_rng(n)
    for values in ([-0.0], [0.0, -0.0], [1.0, -1.0, 0.0, -0.0]):
        x = jnp.asarray(rng.choice(np.array(values, np.float32), n))
        for f in (jnp.median, jnp.nanmedian, lambda x: jnp.quantile(x, 0.5)):
            same_bits(f(x), jit(f)(x))
        if len(values) == 1:
            same_bits(jnp.quantile(x, 0.25), np.float32(-0.0))


@pytest.mark.parametrize(("low", "width", "bins"), [
    (1e6, 1, 100), (-1e6, 1, 37), (0, 1e-45, 10), (0, 1e-37, 1000), (-3e38, 6e38, 9), (7, 3, 2000),
])  # fmt: skip
def test_histograms_whose_edges_are_rounded(low, width, bins):
    rng = np.random.default_rng(0)
    x = (low + rng.integers(0, 17, 3000) / 16 * width).astype(np.float32)
    found, edges = map(np.asarray, jnp.histogram(jnp.asarray(x), bins))
    assert (np.diff(edges) >= 0).all()
    wanted = [((x >= a) & (x < b)).sum() for a, b in itertools.pairwise(edges)]
    wanted[-1] += (x == edges[-1]).sum()
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("k", [-(2**31), -4, -3, 4, 5, 2**31 - 1])
@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles_beyond_the_corners(name, k):
    x = np.ones((2, 3, 4), np.float32)
    want = getattr(np, name)(x, k)
    for f in (getattr(jnp, name), jit(getattr(jnp, name), static_argnums=1)):
        same_bits(f(jnp.asarray(x), k), want)


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
    wide, ufunc = _wider(x), UPDATES[name]
    for index, values in (
        ([3, 0, 3, 5, 3], v[:5]), ([3, 0, 3], v[0, 0]), (slice(None, None, 2), v[:3]),
        ((slice(1, 4), [2, 2, 7]), v[1, 3]), (2, v[2]), (x[:, 0] > 0, v[0]), (slice(4), 2),
    ):  # fmt: skip
        wanted = wide.copy()
        ufunc.at(wanted, index, _wider(np.asarray(values, x.dtype)))
        key = jnp.array(index) if type(index) is list else index
        key = (key[0], jnp.array(key[1])) if type(key) is tuple else key
        values = values if type(values) is int else jnp.asarray(values)

        def run(x, values, key=key):
            return getattr(x.at[key], name)(values)

        for f in (run, jit(run)):
            found = np.asarray(f(jnp.asarray(x), values))
            assert found.dtype == x.dtype
            np.testing.assert_allclose(_wider(found), _wider(wanted.astype(x.dtype)), 1e-6)


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
def test_truths_of_several_dtypes(name):
    """Each of its own dtype, of few and of many."""
    for times in (1, 400):
        values = [np.tile(x, times) for x in (COMPLEX[:, 0], COMPLEX[:, 3], SPECIALS, HALVES,
                  SPECIALS.astype(native.BFLOAT16), SPECIALS > 1, np.arange(17) % 3)]  # fmt: skip
        for x, y in itertools.product(values, values):
            wanted = getattr(np, name)(x != 0, y != 0)
            for _ in range(3):
                same_bits(getattr(jnp, name)(jnp.asarray(x), jnp.asarray(y)), wanted)


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


@pytest.mark.parametrize("without", [False, True])
@pytest.mark.parametrize("name", ["sign", "isposinf", "isneginf", "spacing"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numbers_with_gaps_between_them(name, dtype, without, monkeypatch):
    """As those without, signs of zeros too, few and many."""
    if without:
        monkeypatch.setattr(arithmetic, "extension", None)
    with primal.enable_x64(dtype == "float64"):
        for times in (1, 5001):
            with np.errstate(all="ignore"):
                x = jnp.asarray(np.tile(np.array(SPECIAL, dtype), times))
            wide = jnp.stack([x, -x, x, x + 1])
            for part in (x[::2], x[::-3], wide.T[1:], wide[::2, ::3], wide.T[::3, 1:3], wide[:, 7]):
                packed = jnp.asarray(np.ascontiguousarray(part))
                for _ in range(3):
                    same_bits(getattr(jnp, name)(part), getattr(jnp, name)(packed))
        signs = np.asarray(jnp.sign(x))
        same_bits(signs, np.where(x == 0, x, np.sign(x)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint16", "bool"])
def test_clamp_of_whole_numbers(dtype):
    rng = np.random.default_rng(0)
    for n in (5, 3000):
        low, x, high = rng.integers(0, 100, (3, n)).astype(dtype)
        for a, b in [(low, high), (low[0], high[0]), (low[0], high), (low, high[0])]:
            wanted = np.minimum(np.maximum(x, a), b)
            for _ in range(3):
                same_bits(lax.clamp(jnp.asarray(a), jnp.asarray(x), jnp.asarray(b)), wanted)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 70])
def test_powers_of_truths(k):
    x = jnp.array([True, False, True])
    for _ in range(3):
        out = jnp.power(x, k)
        assert out.dtype == jnp.int32 and out.tolist() == [1, int(k == 0), 1]


def test_sums_of_wide_whole_weights():
    """Exact, whether float64 holds them or not."""
    rng = np.random.default_rng(0)
    with primal.enable_x64():
        places = rng.integers(0, 7, 90)
        for dtype, ends in [("int64", (-(2**31), 2**31)), ("uint64", (0, 2**32)),
                            ("int64", (-(2**62), 2**62)), ("uint64", (2**63, 2**64 - 1))]:
            w = rng.integers(*ends, 90, dtype=dtype)
            wanted = np.zeros(7, dtype)
            np.add.at(wanted, places, w)
            for _ in range(3):
                same_bits(jnp.bincount(jnp.asarray(places), jnp.asarray(w)), wanted)


def test_extrema_of_truths():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (2, 40)).astype(bool)
    places = rng.integers(0, 40, 40)
    for name, ufunc in [("max", np.maximum), ("min", np.minimum)]:
        wanted = x.copy()
        ufunc.at(wanted, places, y)
        for _ in range(3):
            same_bits(getattr(jnp.asarray(x).at[places], name)(y), wanted)
            tail = getattr(jnp.asarray(x).at[3:], name)(y[3:])
            same_bits(tail, np.append(x[:3], ufunc(x, y)[3:]))
        own = getattr(lax, name)

        def twice(a, b, own=own):
            return own(own(a, b), b)

        for start in (False, True):
            table = (jnp.asarray(x.reshape(5, 8)), start, (2, 3), (1, 2), "SAME")
            wanted = lax.reduce_window(*table[:2], twice, *table[2:])
            compiled = jit(lax.reduce_window, static_argnums=(2, 3, 4, 5))
            for run in (lax.reduce_window, lax.reduce_window, compiled):
                same_bits(run(*table[:2], own, *table[2:]), wanted)


def test_parts_in_known_places_are_replaced():
    x, part = np.arange(12.0, dtype=np.float32).reshape(3, 4), np.ones((2, 2), np.float32)
    for start in [(0, 0), (1, 2), (-1, -1), (5, 5)]:
        wanted = jit(lambda *at: lax.dynamic_update_slice(x, part, at))(*start)
        for _ in range(3):
            same_bits(lax.dynamic_update_slice(jnp.asarray(x), jnp.asarray(part), start), wanted)


def _behind(x, offset):
    """A row without its last element, so many bytes behind a multiple of 64."""
    room = np.empty(x.nbytes + 64, np.uint8)
    at = -room.ctypes.data % 64 + offset
    out = room[at : at + x[:-1].nbytes].view(x.dtype)
    out[...] = x[:-1]
    return out


@pytest.mark.parametrize("dtype", [*"?bBhHiIlLefdFD"])
def test_chosen_is_where(dtype):
    """To the last bit, however the operands lie and whatever nan they hold."""
    rng = np.random.default_rng(0)
    for n in (0, 1, 7, 64, 1003):
        drawn = rng.integers(0, 256, (2, n, 6, np.dtype(dtype).itemsize), np.uint8)
        x, y = (drawn % 2).astype("?")[..., 0] if dtype == "?" else drawn.view(dtype)[..., 0]
        mask = rng.integers(0, 2, (n, 6)) > 0
        for m, a, b in [
            (mask, x, y), (mask[:, 0], x[:, 0], y[:, 1]), (mask.T, x.T, y.T),
            (mask[:, 2], *x.T[:2]),
            (mask, x[:, :1], y), (mask, x[:1], y[:, :1]), (mask[::-2], x[::-2], y[::2]),
            (mask.ravel(), x.ravel(), y.dtype.type(1)), (mask.ravel(), x.dtype.type(1), y.ravel()),
            (np.True_, x, y), (mask[:1, :1], x, y),
            (mask.ravel()[:-1], *[_behind(v.ravel(), v.dtype.alignment) for v in (x, y)]),
        ]:  # fmt: skip
            found, wanted = native.chosen(m, a, b), np.where(m, a, b)
            assert found.dtype == wanted.dtype and found.shape == wanted.shape
            assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "bool"])
@pytest.mark.parametrize("name", [
    "nn.elu", "nn.selu", "nn.squareplus", "nn.hard_tanh", "sinc", "sign", "spacing", "isposinf",
    "cosh", "expm1", "nan_to_num", "square",
])  # fmt: skip
def test_of_an_array_without_dimensions(name, dtype):
    """As of one element: a result of NumPy's is a number then, which no step writes to."""
    function = getattr(nn, name[3:]) if name.startswith("nn.") else getattr(jnp, name)
    for value in (0, 1, 2.5, -3, 0.25):
        x = jnp.asarray(np.array(value).astype(dtype))
        wanted = outcome(lambda x=x: function(x[None]))
        for _ in range(3):
            found = outcome(lambda x=x: function(x))
            if wanted is TypeError:
                assert found is wanted
            else:
                same_bits(found, np.asarray(wanted)[0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_logaddexp_of_many_is_that_of_each(dtype, x64):
    ends = [0.0, 1e-30, 1.0, 80.0, 700.0, 6e4, np.inf]
    with np.errstate(over="ignore"):
        some = np.array([*ends, *[-v for v in ends], np.nan, 0.3, 0.300001, -5.5]).astype(dtype)
    rows = np.concatenate([some, np.random.default_rng(0).normal(size=40).astype(dtype)])
    x, y = [v.ravel() for v in np.meshgrid(rows, rows)]
    with np.errstate(all="ignore"):
        want = np.logaddexp(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
    for at in (slice(None), slice(0, 200)):
        got = np.asarray(jnp.logaddexp(jnp.asarray(x[at]), jnp.asarray(y[at])))
        assert got.dtype == np.dtype(dtype)
        near = 8 * np.finfo(dtype).eps
        np.testing.assert_allclose(got, want[at], rtol=near, atol=near)

"""What NumPy answers in one piece is what the operations give, to the last bit where it can be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import jit, nn
from primal.base import native
from primal.numpy import direct
from primal.numpy.direct import divisions
from primal.runtime.array import ArrayImpl
from tests.numpy.direct_rows import BYTES, GRID, HALVES, LAWS, NANS, PAIRS, WHOLE
from tests.numpy.direct_values import (
    BINARY,
    FLOATS,
    SIGNED,
    SPECIAL,
    VECTOR,
    as_arrays,
    compare,
    outcome,
    parts,
    same_bits,
    wider,
)


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
    for dtype in (bool, jnp.int8, jnp.uint8, jnp.int32):
        assert compare("packbits", (m % 3).astype(dtype))
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


@pytest.mark.parametrize("name", ["add", "multiply"])
def test_reductions_of_slices(name):
    upper = VECTOR.astype(native.BFLOAT16)
    for x in (GRID, WHOLE, VECTOR, HALVES[:9], BYTES, WHOLE > 2, VECTOR[::-1], PAIRS, upper):
        for i in ([0, 1, 0], [1, 1, 0, 0], [0]):
            for axis in range(x.ndim):
                found = getattr(jnp, name).reduceat(jnp.asarray(x), jnp.asarray(i), axis)
                wanted = getattr(np, name).reduceat(wider(x), i, axis, wider(x).dtype)
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


@pytest.mark.parametrize(("dtype", "bits"), [("float32", 22), ("float64", 51)])
def test_quotients_that_may_end_in_a_half(dtype, bits, x64):
    """Only those of so many bits are left to the operations, which round them the other way."""
    draw = np.random.default_rng(0)
    y = (2 * draw.integers(1, 1 << bits, 2000) + 1).astype(dtype)
    for least, used in ((bits - 1, True), (bits, False)):
        x = (y * (1 + draw.random(2000)) * 2.0**least).astype(dtype)
        want = parts(jnp.divmod.__wrapped__(jnp.asarray(x), jnp.asarray(y)))
        for found in (divisions._divmod(x, y), divisions._floor_divide(x, y)):
            assert (found is not None) == used
            if used:
                same_bits(found, want if type(found) is tuple else want[0])
        assert np.array_equal(np.floor_divide(x, y), want[0]) == used


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


def test_every_function_has_a_law():
    held = {*(name.rpartition(".")[2] for name in LAWS), *BINARY}
    held |= {"modf", "frexp", "ldexp", "sort", "argsort", "searchsorted", "take_along_axis"}
    held |= {"packbits", "diagonal", "diag", "reduceat"}
    held |= {"less", "less_equal", "greater", "greater_equal", "rint"}  # test_of_complex_numbers
    assert held == {name for name in vars(direct) if callable(getattr(direct, name))}


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

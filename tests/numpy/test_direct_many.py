"""Many elements, whole numbers and the ends of their ranges in one piece."""

from __future__ import annotations

import inspect
import itertools
import math

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import jit, lax, nn
from primal.base import config, native
from primal.ops import elementwise as ops
from primal.ops.elementwise import arithmetic, convert
from primal.ops.index import sort as sorting
from primal.ops.spread import reduce_sum
from tests.numpy.direct_rows import COMPLEX, HALVES
from tests.numpy.direct_values import FLOATS, SPECIAL, SPECIALS, outcome, same_bits


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
    x = np.asarray(np.random.default_rng(0).normal(size=(31, 40, 50)), np.float32, order)
    for axes in [(0, 1, 2), (1, 2), (2,), (0,), (0, 1), (0, 2)]:
        found = reduce_sum.impl(x, axes=axes)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, x.sum(axes, dtype=np.float64), rtol=1e-5, atol=2e-4)


@pytest.mark.parametrize("size", [5, 4096, 4097, 3_000_001])
def test_the_norm_of_many_is_as_exact_as_of_few(size):
    x = np.abs(np.random.default_rng(1).normal(size=size)).astype(np.float32)
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

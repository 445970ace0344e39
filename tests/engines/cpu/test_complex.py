"""Complex numbers in kernels: parts as arrays of floats, beside NumPy's run of the program."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.config import cpu_engine, enable_x64
from primal.engines.cpu.steps import Library, Routine
from primal.ops import elementwise as e
from primal.ops.choose import convert_element_type
from primal.ops.contract import dot_general
from primal.ops.reduce import reduce_prod
from primal.ops.shape import reshape, rev, transpose
from primal.ops.shape import slice as slice_op
from primal.ops.spread import broadcast_in_dim, reduce_sum
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import built, numpy_run, spoiled

DTYPES = ("complex64", "complex128")
SPECIAL = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e-30]


def drawn(dtype: str, *shape: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def specials(dtype: str) -> tuple[Any, Any]:
    """All pairs of numbers whose parts are special."""
    numbers = [complex(a, b) for a, b in itertools.product(SPECIAL, SPECIAL)]
    pairs = list(itertools.product(numbers, numbers))
    return tuple(np.array([p[i] for p in pairs], dtype) for i in (0, 1))


def native(f: Any, *xs: Any) -> list[Any]:
    """The results of f as compiled; no step is a call of NumPy."""
    made = built(f, *xs)
    assert not [s for s in made.plan.steps if type(s) is Library]
    with spoiled():
        return made.execute(list(xs))


def agree(f: Any, *xs: Any, signs: bool = False) -> None:
    for got, want in zip(native(f, *xs), numpy_run(f, *xs), strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        tolerance = 1e-12 if want.dtype in (np.float64, np.complex128) else 3e-6
        views = [(got, want)]
        if want.dtype.kind == "c":
            views = [(got.real, want.real), (got.imag, want.imag)]
        for g, w in views:
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=tolerance)
            if signs:
                some = ~np.isnan(w)
                np.testing.assert_array_equal(np.signbit(g[some]), np.signbit(w[some]))


UNARY = ("neg", "conj", "real", "imag", "abs", "square", "sign")
BINARY = ("add", "sub", "mul", "div")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (40001,)])
def test_unary(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    agree(lambda x: [getattr(e, name)(x)], drawn(dtype, *shape))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, dtype: str) -> None:
    x, y = drawn(dtype, 7, 33), drawn(dtype, 7, 33, seed=1)
    agree(lambda x, y: [getattr(e, name)(x, y)], x, y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ("neg", "conj", "real", "imag", "abs"))
def test_unary_at_special_numbers(name: str, dtype: str) -> None:
    agree(lambda x: [getattr(e, name)(x)], specials(dtype)[0], signs=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ("add", "sub"))
def test_sums_at_special_numbers(name: str, dtype: str) -> None:
    agree(lambda x, y: [getattr(e, name)(x, y)], *specials(dtype), signs=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ("mul", "div"))
def test_products_at_special_numbers(name: str, dtype: str) -> None:
    agree(lambda x, y: [getattr(e, name)(x, y)], *specials(dtype))


def quotient(z: complex, w: complex) -> complex:
    """C99, Annex G.5.1, line by line, which leaves open how zeros are signed where both numbers are
    finite: there, as by Smith's rule."""
    a, b, c, d = z.real, z.imag, w.real, w.imag
    with np.errstate(all="ignore"):
        smith = np.complex128(z) / np.complex128(w if w else math.nan)
    found = [float(smith.real), float(smith.imag)]

    def box(x: float) -> float:
        return math.copysign(math.isinf(x), x)

    if math.isnan(found[0]) and math.isnan(found[1]):
        if w == 0 and not (math.isnan(a) and math.isnan(b)):
            endless = math.copysign(math.inf, c)
            found = [endless * a, endless * b]
        elif (math.isinf(a) or math.isinf(b)) and math.isfinite(c) and math.isfinite(d):
            a, b = box(a), box(b)
            found = [math.inf * (a * c + b * d), math.inf * (b * c - a * d)]
        elif (math.isinf(c) or math.isinf(d)) and math.isfinite(a) and math.isfinite(b):
            c, d = box(c), box(d)
            found = [0 * (a * c + b * d), 0 * (b * c - a * d)]
    return complex(*found)


@pytest.mark.parametrize("engine", ["eager", "cpu", "xla"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_quotients_are_those_of_c99_on_every_engine(dtype: str, engine: str) -> None:
    """Of all pairs of numbers whose parts are zeros, infinities, NaN, 1 or -2: signs, too."""
    parts = [0.0, -0.0, 1.0, -2.0, math.inf, -math.inf, math.nan]
    ends = [complex(a, b) for a, b in itertools.product(parts, parts)]
    pairs = list(itertools.product(ends, ends))
    reals = [(z, complex(c)) for z, c in itertools.product(ends, parts)]
    rows: list[tuple[Any, list[Any], list[complex]]] = [
        (lax.div, [[p[i] for p in pairs] for i in (0, 1)], [quotient(*p) for p in pairs]),
        (lambda z, w: lax.div(z, w.real.astype(z.dtype)), [[p[i] for p in reals] for i in (0, 1)],
         [quotient(*p) for p in reals]),
        (jnp.reciprocal, [ends], [quotient(1 + 0j, z) for z in ends]),
        (lambda z: lax.integer_pow(z, -1), [ends], [quotient(1 + 0j, z) for z in ends]),
    ]
    with enable_x64(), cpu_engine("xla" if engine == "xla" else "cpu"):
        for f, operands, want in rows:
            f = f if engine == "eager" else primal.jit(f)
            got = np.asarray(f(*[jnp.asarray(np.array(x, dtype)) for x in operands]))
            for g, w in ((got.real, np.real(want)), (got.imag, np.imag(want))):
                np.testing.assert_allclose(g, w, rtol=1e-6)
                some = ~np.isnan(w)
                np.testing.assert_array_equal(np.signbit(g[some]), np.signbit(w[some]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_are_rounded_as_those_outside_of_jit(dtype: str) -> None:
    x, y = drawn(dtype, 999), drawn(dtype, 999, seed=1)
    if not np.any(np.multiply(x, np.conj(x)).imag):
        pytest.skip("NumPy rounds both products on this CPU")
    big = np.sqrt(np.finfo(dtype).max) * 4
    over = np.array([complex(a, b) for a in (big, -big, 1) for b in (big, -big, 0)], dtype)
    with np.errstate(all="ignore"):
        for a, b in ((x, y), (x, np.conj(x)), (over, over), (over, over[::-1].copy())):
            (got,) = native(lambda x, y: [e.mul(x, y)], a, b)
            np.testing.assert_array_equal(got, np.multiply(a, b))

        def powers(z: Any) -> list[Any]:
            return [e.square(z), *[e.integer_pow(z, y=n) for n in (2, 3, 4, 5)]]

        for got, want in zip(native(powers, over), numpy_run(powers, over), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", DTYPES)
def test_modulus_neither_overflows_nor_vanishes(dtype: str) -> None:
    big, small = (3e38, 1e-44) if dtype == "complex64" else (1e308, 5e-323)
    x = np.array([complex(big, big / 3), complex(small, 0), complex(small, small), 0j], dtype)
    x = np.concatenate([x, x.conj() * 1j, x / 1e5])
    agree(lambda x: [e.abs(x)], x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (7,), (64,), (3, 5), (1000, 2), (2, 3, 4)])
def test_products_of_all(dtype: str, shape: tuple[int, ...]) -> None:
    x = drawn(dtype, *shape)
    x /= np.abs(x)
    every = tuple(range(len(shape)))
    for axes in {every, every[:1], every[-1:], every[::2]}:
        agree(lambda x, a=axes: [reduce_prod(x, axes=a)], x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape",
    [(17,), (70_000,), (35, 20), (3, 1001), (9001, 3), (5, 400, 7), (2, 300, 300)],
)  # fmt: skip
def test_products_of_many(dtype: str, shape: tuple[int, ...]) -> None:
    """Against numbers of twice the precision; nothing is read beside the array."""
    rng = np.random.default_rng(0)
    wide = np.exp(1j * rng.normal(size=shape) + rng.normal(size=shape) * 1e-3)
    x = fenced(shape, dtype)
    x[...] = wide
    rank = len(shape)
    for axes in {tuple(range(rank)), (0,), (rank - 1,), tuple(range(0, rank, 2))}:
        want = x.astype(np.clongdouble).prod(axes)
        turned = tuple(rank - 1 - d for d in axes)
        forms: list[Any] = [
            lambda x, a=axes: [reduce_prod(x, axes=a)],
            lambda x, a=turned: [jnp.transpose(reduce_prod(jnp.transpose(x) * 1j / 1j, axes=a))],
        ]
        for form in forms:
            (got,) = native(form, x)
            error = np.abs(got - want) / np.abs(want) / np.finfo(dtype).eps
            assert np.max(error) <= 4 + 3 * math.sqrt(x.size / want.size)


@pytest.mark.parametrize("dtype", DTYPES)
def test_moduli_of_all_sizes(dtype: str) -> None:
    part = np.dtype(dtype).type(0).real.dtype
    rng = np.random.default_rng(0)
    span = np.log(np.finfo(part).max) / 1.01
    x = np.empty(20_000, dtype)
    x.real, x.imag = np.exp(rng.uniform(-span, span, (2, len(x))))
    x[::3] = drawn(dtype, len(x[::3]))
    x[5], x[6], x[7], x[8] = 0, -0.0, np.finfo(part).smallest_subnormal, np.finfo(part).max / 2
    x[9], x[10], x[11] = complex(np.nan, -np.inf), complex(np.inf, np.nan), complex(1, np.nan)
    wide = np.longdouble if dtype == "complex128" else np.float64
    want = np.hypot(x.real.astype(wide), x.imag.astype(wide))
    (got,) = native(lambda x: [e.abs(x)], x)
    np.testing.assert_array_equal(got[9:12], [np.inf, np.inf, np.nan])
    known = np.isfinite(want)
    far = np.abs(got[known] - want[known]) / np.spacing(want[known].astype(part))
    assert far.max() <= 1.5


@pytest.mark.parametrize("dtype", DTYPES)
def test_comparisons(dtype: str) -> None:
    x, y = specials(dtype)
    got = native(lambda x, y: [e.eq(x, y), e.ne(x, y)], x, y)
    np.testing.assert_array_equal(got, [x == y, x != y])


def moved(x: Any, y: Any, i: Any) -> list[Any]:
    """Data movement of many kinds."""
    n = x.shape[0]
    return [
        x.T[1:, ::2] + 1,
        jnp.reshape(x[:, ::-1], (-1,)),
        jnp.concatenate([x, y * 2], axis=1),
        jnp.pad(x, ((1, 2), (0, 1)), constant_values=2 + 3j),
        lax.pad(jnp.full_like(x, 2j), x.dtype.type(0), [(0, 0, 0)] * 2) + x,
        jnp.broadcast_to(x[0], (3, *x[0].shape)),
        x[i],
        x.at[i].set(y[i]),
        x.at[i].add(1j),
        lax.dynamic_slice(x, (i[0], 0), (2, 3)),
        lax.dynamic_update_slice(x, y[:2, :2], (i[1], 1)),
        jnp.where(x.real > 0, x, y),
        jnp.cumsum(x, axis=1),
        jnp.sum(x), jnp.mean(x * y, axis=0), jnp.sum(abs(x) ** 2, axis=1),
        x**3, x**-2, x**0,
        x != 0, x.real.astype(x.dtype), jnp.conj(x.real),
        x @ y.T, jnp.vdot(x, y), jnp.einsum("ij,kj->ik", x[:, :2], y[:, :2].conj()),
        x[:0], jnp.full((n,), 2 - 1j, x.dtype), jnp.zeros((n, 0), x.dtype) + 1j,
        jnp.fft.fft(x * 2).conj(), jnp.take(x, 99, axis=0, mode="fill"),
    ]  # fmt: skip


def looped(x: Any, y: Any, i: Any) -> list[Any]:
    """Complex carries, slices, stacks, constants and branches."""

    def step(carry: Any, row: Any) -> Any:
        z, count = carry
        z = z * y[0] * 0.5 + row
        return (z, count + 1), (z.conj(), abs(z))

    carry, stacks = lax.scan(step, (x[0], 0), x, reverse=True)
    turned = lax.fori_loop(0, 5, lambda k, z: z * (0.6 + 0.8j) + y * k, x)
    grown = lax.while_loop(lambda z: jnp.max(abs(z)) < 50, lambda z: z * (1 + 1j) + x, x)
    spectral = lax.fori_loop(0, 3, lambda k, z: jnp.fft.ifft(jnp.fft.fft(z) * y), x)
    chosen = [lax.cond(i[0] > n, lambda z: z * y, lambda z: z + jnp.fft.fft(y), x) for n in (0, 3)]
    again = lax.cond(i[0] > 0, lambda: x, lambda: y) + y
    return [*carry, *stacks, turned, grown, spectral, *chosen, again]


@pytest.mark.parametrize("f", [moved, looped], ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_programs(f: Any, dtype: str) -> None:
    x, y = drawn(dtype, 6, 5), drawn(dtype, 6, 5, seed=1)
    i = np.array([2, 4, 0])
    with enable_x64(dtype == "complex128"):
        results = []
        for engine in ("cpu", "reference"):
            with cpu_engine(engine):
                results.append(primal.jit(f)(x, y, i))
        for got, want in zip(*results, strict=True):
            assert got.dtype == want.dtype and got.shape == want.shape
            tight = 1e-12 if dtype == "complex128" else 3e-5
            np.testing.assert_allclose(got, want, rtol=tight, atol=tight)


def test_products_and_sums_are_one_kernel_of_parts() -> None:
    x, y = drawn("complex64", 50, 60), drawn("complex64", 50, 60, seed=1)
    made = built(lambda x, y: [e.abs(e.add(e.mul(x, y), e.conj(x)))], x, y)
    assert len(made.plan.instances) == 1
    assert len(made.plan.steps) == 1  # which takes both operands apart as it reads them


def test_arrays_are_taken_apart_and_put_together_where_they_are_read_and_made() -> None:
    x = drawn("complex64", 50, 60)
    made = built(lambda x: [e.neg(x), e.real(x), reduce_sum(e.imag(x), axes=(0, 1))], x)
    assert len(made.plan.instances) == 1
    turned = built(lambda x: [e.neg(transpose(x, permutation=(1, 0)))], x)
    assert len(turned.plan.steps) == 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1,), (15,), (33, 5), (300, 2), (2, 3, 40), (70, 70)])
def test_views_of_arrays(dtype: str, shape: tuple[int, ...]) -> None:
    x = drawn(dtype, *shape)
    order = tuple(reversed(range(len(shape))))
    start, stop = (0,) * len(shape), shape
    by = (2,) * len(shape)
    behind = tuple(range(1, 1 + len(shape)))

    def views(x: Any) -> list[Any]:
        return [
            x,
            transpose(x, permutation=order),
            slice_op(x, start_indices=start, limit_indices=stop, strides=by),
            rev(x, dimensions=tuple(range(len(shape)))),
            broadcast_in_dim(x, shape=(3, *shape), broadcast_dimensions=behind),
            reshape(transpose(x, permutation=order), shape=(x.aval.size,)),
        ]  # fmt: skip

    agree(lambda x: [v for y in views(x) for v in (e.neg(y), e.square(y))], x)
    agree(lambda x: views(x), x)
    axes = tuple(range(len(shape)))
    agree(lambda x: [reduce_sum(e.conj(y), axes=axes) for y in views(x)[:4]], x)


def test_numbers_at_odd_addresses() -> None:
    """NumPy aligns complex64 to four bytes."""
    memory = np.zeros(2 * 1000 + 1, np.float32)
    for first in (0, 1):
        x = memory[first : first + 1998].view(np.complex64)
        x[:] = drawn("complex64", 999)
        agree(lambda x: [e.mul(x, x), reduce_sum(x, axes=(0,))], x)


@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_real_parts_are_converted() -> None:
    x = drawn("complex64", 20) * 9
    integer, truth, wide = [np.dtype(d) for d in ("int32", "bool", "complex128")]
    agree(
        lambda x: [
            e.convert_element_type(x, new_dtype=d, weak_type=False) for d in (integer, truth, wide)
        ],
        x,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_at_special_numbers(name: str, dtype: str) -> None:
    x, y = specials(dtype)
    for args in ((x, y), (drawn(dtype, 1000), np.repeat(drawn(dtype, 500), 2))):
        agree(lambda x, y: [getattr(e, name)(x, y)], *args)
    agree(lambda x: [getattr(e, name)(x, np.zeros((), dtype)[()])], x, signs=True)


def products(f: Any, *xs: Any) -> list[Any]:
    """The routines of a program that agrees with NumPy's run of it."""
    agree(f, *xs)
    return [s for s in built(f, *xs).plan.steps if type(s) is Routine]


def dot(x: Any, y: Any) -> Any:
    return dot_general(
        x, y, dimension_numbers=(((1,), (0,)), ((), ())), precision=None,
        preferred_element_type=None,
    )  # fmt: skip


def by_real(x: Any, y: Any) -> list[Any]:
    return [dot(x, convert_element_type(e.real(y), new_dtype=x.dtype, weak_type=False))]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(20, 30, 40), (2, 30, 40), (3, 2, 3)])
@pytest.mark.parametrize(
    "f,count",
    [(lambda x, y: [dot(x, y)], 4), (lambda x, y: [e.real(dot(x, y))], 2), (by_real, 2)],
)
def test_matrix_products_are_products_of_parts(f: Any, count: int, shape: Any, dtype: str) -> None:
    m, n, depth = shape
    steps = products(f, drawn(dtype, m, depth), drawn(dtype, depth, n, seed=1))
    assert sum(s.name in ("matmul", "matvec") for s in steps) == count


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_transposed_results_are_written(dtype: str) -> None:
    """From `turns.LARGE` on parts are computed in the order of what they are made of."""
    x = drawn(dtype, 256, 256)
    turned = lambda x: transpose(x, permutation=(1, 0))  # noqa: E731
    agree(lambda x: [e.neg(turned(x)), turned(e.conj(x))], x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5,), (1,), (1000,), (3, 10, 97), (2, 700), (7, 1)])
def test_running_products(shape: Any, dtype: str) -> None:
    x = drawn(dtype, *shape)
    x /= abs(x)
    near = 1e-3 if dtype == "complex64" else 1e-12
    for axis in range(len(shape)):
        made = built(
            lambda x, axis=axis: [lax.cumprod(x, axis), lax.cumprod(x, axis, reverse=True)], x
        )
        assert not [s for s in made.plan.steps if type(s) is Library]
        forth, back = made.execute([x])
        np.testing.assert_allclose(forth, np.cumprod(x, axis), atol=near)
        np.testing.assert_allclose(
            back, np.flip(np.cumprod(np.flip(x, axis), axis), axis), atol=near
        )


def test_running_products_overflow_in_order() -> None:
    """1e30 · 1e30 · 0 is no number, whatever comes first elsewhere."""
    x = np.array([1e30, 1e30, 0, 1e-30], np.complex64)
    (got,) = built(lambda x: [lax.cumprod(x)], x).execute([x])
    np.testing.assert_array_equal(np.isnan(got), [False, False, True, True])
    assert got[0] == x[0] and np.isinf(got[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "rule,one,other",
    [("bij,bij->bi", (50, 4, 4), (50, 4, 4)), ("ij,ji->i", (50, 3), (3, 50)), ("i,i->", (6,), (6,)),
     ("bij,bij->b", (7, 2, 3), (7, 2, 3)), ("bij,bjk->bik", (9, 1, 5), (9, 5, 1))],
)  # fmt: skip
def test_scalar_products_of_few_terms_are_one_pass(
    rule: str, one: Any, other: Any, dtype: str
) -> None:
    x, y = drawn(dtype, *one), drawn(dtype, *other, seed=1)
    made = built(lambda x, y: [jnp.einsum(rule, x, y)], x, y)
    assert not [s for s in made.plan.steps if isinstance(s, Routine)]
    (got,) = made.execute([x, y])
    near = 1e-4 if dtype == "complex64" else 1e-12
    np.testing.assert_allclose(got, np.einsum(rule, x, y), atol=near)


SUMS: dict[str, Any] = {
    "short rows": ((3000, 3), lambda x: x.sum(1)),
    "rows of ten": ((1100, 10), lambda x: x.sum(1)),
    "long rows": ((1030, 77), lambda x: x.sum(1)),
    "columns": ((20, 1501), lambda x: x.sum(0)),
    "few columns, many rows": ((3, 1200), lambda x: x.sum(0)),
    "points of several arrays": ((400, 50, 3), lambda x: x.sum(1)),
    "the middle": ((30, 9, 70), lambda x: x.sum(1)),
    "two of three": ((1200, 4, 3), lambda x: x.sum((1, 2))),
    "of a transposed array": ((3, 3000), lambda x: x.T.sum(1)),
    "short rows in turn": ((900, 6), lambda x: (x * (1 - 2j)).reshape(-1, 2, 3).sum(1)),
    "rows beside each other": ((3, 3000), lambda x: (x * 2j).T),
    "padded between": ((3000,), lambda x: lax.pad(x * 2, x.dtype.type(0), [(0, 1, 1)])),
    "of products": ((1500, 3), lambda x: (x * x).sum(1)),
    "a greatest part as well": ((1500, 3), lambda x: x.sum(1).real.max()),
    "read twice": ((1500, 3), lambda x: (lambda y: y * y.real)(x.sum(1))),
    "one of two read": ((1500, 3), lambda x: (x.real.sum(1), x.sum(1))),
    "in halves": ((2500, 2), lambda x: jnp.concatenate([x.sum(1), (2 * x).sum(1)])),
    "another shape": ((2500, 2), lambda x: x.sum(1).reshape(50, 50).T),
    "in a loop": (
        (1500, 3), lambda x: lax.fori_loop(0, 3, lambda i, y: (y[:, None] * x).sum(1), x.sum(1))
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("name", SUMS)
def test_sums_are_written_as_numbers(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(7)
    shape, f = SUMS[name]
    for end in (False, True):
        x = fenced(shape, dtype, end)
        x[...] = rng.integers(-3, 4, shape) + 1j * rng.integers(-3, 4, shape)
        made = built(lambda x: [*primal.tree.leaves(f(x))], x)
        for got, want in zip(
            made.execute([x]), numpy_run(lambda x: [*primal.tree.leaves(f(x))], x), strict=True
        ):
            np.testing.assert_array_equal(got, want)
    if name in ("short rows", "rows of ten", "columns", "points of several arrays"):
        assert len(made.plan.steps) == 1
    if name.startswith("short rows "):
        assert {type(spec).__name__ for spec in made.plan.specs} == {"PointSpec"}


def test_what_is_put_together_as_it_lies_is_padded_as_such() -> None:
    """Gradient of (x·x)[1:].T: the cotangent's product lay in columns, and was padded as rows."""
    x = drawn("complex128", 3, 2000)
    w = drawn("complex128", 2000, 2, seed=1)

    def f(w: Any, x: Any) -> list[Any]:
        return [primal.grad(lambda x: (((x * x)[1:].T) * w).sum().real)(x)]

    (got,), (want,) = built(f, w, x).execute([w, x]), numpy_run(f, w, x)
    np.testing.assert_allclose(got, want, 1e-14)

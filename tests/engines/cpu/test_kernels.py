"""Loop nests: shapes, strides, reductions, what is shared, and that nothing else is touched."""

from __future__ import annotations

import ctypes
import mmap
import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import primal.numpy as jnp
from primal import lax
from primal.engines.cpu import _llvm, layout, program
from primal.engines.cpu.plan.schedule import MAX_CHAIN
from primal.engines.cpu.run import objects
from primal.engines.cpu.run.objects import counters
from primal.engines.cpu.steps import Library
from primal.ops import elementwise as e
from primal.ops import reduce
from primal.ops.shape import iota, reshape, rev, transpose
from primal.ops.shape import slice as slice_op
from primal.ops.spread import broadcast_in_dim, reduce_sum
from tests.engines.cpu.lab import agree, built, kernels_used, numpy_run

SIZES = st.integers(1, 40)


def ramp(*shape: int, dtype: str = "float32") -> Any:
    """Distinct small numbers, whose sums are exact."""
    n = int(np.prod(shape, dtype=int))
    return (np.arange(n) * 7 % 61 - 30).reshape(shape).astype(dtype)


# Sizes around the vector and around the unit of work.


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "int64"])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 128, 129, 1000])
def test_lengths(n: int, dtype: str) -> None:
    x = ramp(n, dtype=dtype)
    agree(lambda x: [e.max(x, rev(x, dimensions=(0,))), e.eq(x, x)], x)


@pytest.mark.parametrize("extra", [-1, 0, 1, 17])
def test_units_meet_without_gap_or_overlap(extra: int) -> None:
    x = ramp(2 * layout.UNIT + extra)
    agree(lambda x: [e.add(x, x), reduce_sum(x, axes=(0,))], x)
    agree(lambda x: [reduce_sum(x, axes=(0,)), e.neg(x)], x.reshape(1, -1).repeat(3, 0))


@pytest.mark.parametrize("n", [100, 32_768, 32_769, 50_000, 100_000, 1_000_000, 4_000_000])
def test_two_and_four_threads_have_as_many_units(n: int) -> None:
    made = built(lambda x: [e.neg(x)], ramp(n))
    (found,) = made.plan.instances.values()
    assert found.units == 1 if n <= layout.UNIT else found.units % layout.EVEN == 0
    assert found.chunk <= layout.UNIT and found.chunk % layout.GRAIN in (0, found.chunk)
    assert 0 <= found.units * found.chunk - n < max(found.units * layout.GRAIN, layout.UNIT)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int8"])
@pytest.mark.parametrize("shape", [(64, 2), (67, 3), (3, 200, 4), (70, 5, 2), (2, 65, 1, 6)])
def test_short_rows(shape: tuple[int, ...], dtype: str) -> None:
    """Vectors run across rows of a few elements, but for narrow numbers."""
    x = ramp(*shape, dtype=dtype)
    y = ramp(*shape[:-1], 1, dtype=dtype)
    agree(lambda x, y: [e.add(e.mul(x, y), x), e.max(x, y), iota(shape=shape, dtype=np.dtype(
        np.int32), dimension=len(shape) - 2)], x, y)  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32"])
@pytest.mark.parametrize("rows", [5, 40])
def test_columns_of_every_width_around_a_strip_are_one_kernel(rows: int, dtype: str) -> None:
    kinds: set[Any] = set()
    for columns in (17, 31, 32, 33, 47, 63, 64, 65, 81, 127, 128, 129, 200):
        x = ramp(rows, columns, dtype=dtype)

        def fun(x: Any) -> list[Any]:
            y = jnp.sign(x) / 3 if x.dtype.kind == "f" else x
            return [jnp.sum(x * 2 + 1, 0, dtype), jnp.sum(y, 0, dtype), (x == 3).any(0)]

        made = built(fun, x)
        kinds.update(made.plan.specs)
        total, signs, some = made.execute([x])
        np.testing.assert_array_equal(total, (x * 2 + 1).sum(0, dtype=dtype))
        want = (np.sign(x) / x.dtype.type(3) if x.dtype.kind == "f" else x).sum(0, dtype=dtype)
        np.testing.assert_allclose(signs, want, rtol=1e-6, atol=1e-6)
        np.testing.assert_array_equal(some, (x == 3).any(0))
    assert len(kinds) == 1


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8"])
@pytest.mark.parametrize("shape", [(300, 3), (1000, 2), (4, 500, 6), (3, 700, 2, 2), (300, 7)])
def test_few_long_columns(shape: tuple[int, ...], dtype: str) -> None:
    """Vectors run along columns of few to a row."""
    x = ramp(*shape, dtype=dtype)
    axis = len(shape) - 2 if len(shape) < 4 else 1
    agree(
        lambda x: [reduce_sum(x, axes=(axis,)), reduce.reduce_max(x, axes=(axis,)),
                   reduce.reduce_min(e.add(x, x), axes=(axis,))],
        x,
    )  # fmt: skip


@pytest.mark.parametrize("start", range(17))
def test_vectors_begin_anywhere_within_a_line(start: int) -> None:
    """Inputs at any distance from a cache line; operands and results of several widths."""
    whole = ramp(200)
    x = whole[start : start + 90]
    made = built(lambda x: [e.mul(x, x), e.gt(x, 0.0), e.add(e.exp(x), x)], whole[:90].copy())
    got = made.execute([x])
    np.testing.assert_array_equal(got[0], x * x)
    np.testing.assert_array_equal(got[1], x > 0)
    np.testing.assert_allclose(got[2], np.exp(x) + x, rtol=1e-6)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 5)])
def test_no_elements(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.float32)
    made = agree(
        lambda x: [e.add(x, 1.0), reduce_sum(x, axes=(0,)), reduce.reduce_max(x, axes=(0,)),
                   reduce_sum(x, axes=tuple(range(x.ndim)))],
        x,
    )  # fmt: skip
    assert kernels_used(made) == 0


# Index maps.


@st.composite
def maps(draw: Any) -> tuple[tuple[int, ...], list[Callable[[Any], Any]]]:
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=4)))
    steps: list[Any] = []
    now = shape
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["transpose", "rev", "slice", "reshape", "broadcast", "neg"]))
        if kind == "transpose":
            order = tuple(draw(st.permutations(range(len(now)))))
            steps.append(lambda x, p=order: transpose(x, permutation=p))
            now = tuple([now[p] for p in order])
        elif kind == "rev":
            dims = tuple(sorted(draw(st.sets(st.integers(0, len(now) - 1)))))
            steps.append(lambda x, d=dims: rev(x, dimensions=d))
        elif kind == "slice":
            start = tuple([draw(st.integers(0, n - 1)) for n in now])
            limit = tuple([draw(st.integers(a + 1, n)) for a, n in zip(start, now, strict=True)])
            by = tuple([draw(st.integers(1, 3)) for _ in now])
            steps.append(
                lambda x, a=start, b=limit, s=by: slice_op(
                    x, start_indices=a, limit_indices=b, strides=s
                )
            )
            now = tuple([-(-(b - a) // s) for a, b, s in zip(start, limit, by, strict=True)])
        elif kind == "reshape":
            n = int(np.prod(now))
            k = draw(st.sampled_from([d for d in range(1, n + 1) if n % d == 0]))
            steps.append(lambda x, s=(k, n // k): reshape(x, shape=s))
            now = (k, n // k)
        elif kind == "broadcast":
            to, dims = (3, *now), tuple(range(1, len(now) + 1))
            steps.append(
                lambda x, s=to, d=dims: broadcast_in_dim(x, shape=s, broadcast_dimensions=d)
            )
            now = (3, *now)
        else:
            steps.append(e.neg)
    return shape, steps


@given(drawn=maps(), counted=st.booleans())
def test_drawn_index_maps(drawn: Any, counted: bool) -> None:
    shape, steps = drawn
    dtype = np.dtype(np.int32)

    def f(x: Any) -> list[Any]:
        y = e.add(iota(shape=shape, dtype=dtype, dimension=len(shape) - 1), 0) if counted else x
        z = iota(shape=shape, dtype=dtype, dimension=0) if counted else x
        for step in steps:
            y, z = step(y), step(z)
        return [y, e.add(y, z), z]

    agree(f, ramp(*shape, dtype="int32"))


def test_index_maps_move_nothing() -> None:
    """A reader reads through the map: no copies, one kernel."""
    made = agree(
        lambda x: [
            e.add(transpose(x, permutation=(1, 0)), rev(reshape(x, shape=(5, 4)), dimensions=(0,)))
        ],
        ramp(4, 5),
    )
    assert kernels_used(made) == 1


# Reductions.


def subsets(n: int) -> list[tuple[int, ...]]:
    return [tuple(i for i in range(n) if mask >> i & 1) for mask in range(1, 2**n)]


@pytest.mark.parametrize("axes", subsets(3), ids=str)
@given(shape=st.tuples(SIZES, SIZES, SIZES))
def test_sums_over_all_axes(axes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    # Whole numbers, so that every order of adding gives the same.
    agree(lambda x: [reduce_sum(e.mul(x, x), axes=axes), e.add(x, 1.0)], ramp(*shape))
    agree(lambda x: [reduce_sum(x, axes=axes)], ramp(*shape))


MONOIDS = {"sum": "iuf", "prod": "iuf", "max": "biuf", "min": "biuf", "and": "biu", "or": "biu",
           "xor": "biu"}  # fmt: skip


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        (op, dtype)
        for op, kinds in MONOIDS.items()
        for dtype in ["float32", "float64", "int8", "uint16", "int64", "bool"]
        if np.dtype(dtype).kind in kinds
    ],
)
def test_monoids(op: str, dtype: str) -> None:
    kind = np.dtype(dtype).kind
    f = reduce_sum if op == "sum" else getattr(reduce, f"reduce_{op}")
    x = ramp(9, 37, dtype=dtype)
    if op == "prod":
        x = np.where(x % 3 == 0, 1, -1 if kind in "if" else 1).astype(dtype)
    for axes in ((0,), (1,), (0, 1)):
        made = agree(lambda x, axes=axes: [f(x, axes=axes)], x)
        assert kernels_used(made) == 1


@pytest.mark.parametrize("axes", [(0,), (1,)])
def test_nan_and_infinities_in_reductions(axes: tuple[int, ...]) -> None:
    x = ramp(40, 40)
    x[3, 5], x[7, 7], x[8, 9], x[8, 11] = np.nan, np.inf, np.inf, -np.inf
    agree(
        lambda x: [reduce_sum(x, axes=axes), reduce.reduce_max(x, axes=axes),
                   reduce.reduce_min(x, axes=axes)],
        x,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extrema_of_rows_know_nan_and_both_zeros(dtype: str) -> None:
    """NaN of either sign wins, and -0 is below 0, in rows around whole vectors."""
    drawn = np.random.default_rng(0)
    some = [np.nan, -np.nan, 0.0, -0.0, -np.inf, -1.0, np.inf, 1.0]
    for n in (13, 16, 17, 33, 100):
        x = np.concatenate([drawn.choice(some[at : at + 4], (30, n)) for at in (0, 1, 2, 4)])
        x = x.astype(dtype)
        made = built(lambda x: [f(x, axes=(1,)) for f in (reduce.reduce_max, reduce.reduce_min)], x)
        for got, best in zip(made.execute([x]), (max, min), strict=True):
            want = np.array([best(row, key=lambda v: (v, not np.signbit(v))) for row in x])
            want[np.isnan(x).any(1)] = np.nan
            np.testing.assert_array_equal(got, want)
            known = ~np.isnan(want)
            np.testing.assert_array_equal(np.signbit(got[known]), np.signbit(want[known]))
    x = np.zeros((4, 3, 17), dtype)
    x[0, 1, 2] = x[2, 2, 16] = np.nan
    made = built(lambda x: [f(x, axes=(2, 0)) for f in (reduce.reduce_max, reduce.reduce_min)], x)
    for got in made.execute([x]):
        np.testing.assert_array_equal(got, [0, np.nan, np.nan])


@pytest.mark.parametrize("shape", [(1_000_003,), (1000, 1001), (100_000, 3)])
def test_sums_of_many_floats_keep_their_digits(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).random(shape, np.float32)
    for axes in subsets(len(shape)):
        made = built(lambda x, axes=axes: [reduce_sum(x, axes=axes)], x)
        want = np.sum(x, axis=axes, dtype=np.longdouble)
        np.testing.assert_allclose(made.execute([x])[0], want, rtol=1.2e-7)


# Kernels are shared by structure.


def compiled_kernels(f: Any, *xs: Any) -> int:
    before = counters.kernels
    agree(f, *xs)
    return counters.kernels - before


def test_a_new_shape_compiles_nothing() -> None:
    def f(x: Any) -> list[Any]:
        return [e.sub(e.mul(e.abs(x), x), 0.125), reduce_sum(e.abs(e.add(x, x)), axes=(0,))]

    compiled_kernels(f, ramp(50))
    for n in range(51, 91):
        assert compiled_kernels(f, ramp(n)) == 0


def test_a_matrix_is_a_vector_to_an_elementwise_kernel() -> None:
    compiled_kernels(lambda x: [e.sub(e.mul(e.abs(x), x), 0.25)], ramp(50))
    assert compiled_kernels(lambda x: [e.sub(e.mul(e.abs(x), x), 3.5)], ramp(6, 8)) == 0


def test_scalars_are_no_part_of_a_kernel() -> None:
    compiled_kernels(lambda x: [e.max(e.mul(e.sign(x), 1.5), 7.5)], ramp(10))
    assert compiled_kernels(lambda x: [e.max(e.mul(e.sign(x), -2.5), 0.0)], ramp(11)) == 0


def test_equal_layers_share_a_kernel() -> None:
    def layer(x: Any) -> Any:
        mean = broadcast_in_dim(
            e.div(reduce_sum(x, axes=(1,)), 8.0), shape=(4, 8), broadcast_dimensions=(0,)
        )
        return e.max(e.sub(x, mean), 0.0)

    def network(x: Any, depth: int) -> list[Any]:
        for _ in range(depth):
            x = layer(x)
        return [x]

    compiled_kernels(lambda x: network(x, 16), ramp(4, 8))
    assert compiled_kernels(lambda x: network(x, 44), ramp(4, 8)) == 0


def test_a_long_chain_is_cut_into_equal_pieces() -> None:
    def f(x: Any) -> list[Any]:
        for i in range(1600):
            x = e.add(e.mul(e.floor(x), 0.5), 0.1 * i)
        return [x]

    before = counters.kernels
    made = built(f, ramp(32))
    assert counters.kernels - before <= 3
    assert kernels_used(made) == 3 * 1600 // MAX_CHAIN
    agree(f, ramp(32))


# Nothing outside the arrays is read or written.

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)


def guarded(x: Any) -> tuple[Any, Any]:
    """A copy of x that ends where a page without access begins; and what keeps it alive."""
    pages = -(-x.nbytes // PAGE) + 1
    room = mmap.mmap(-1, pages * PAGE)
    whole = np.frombuffer(room, np.uint8)
    end = (pages - 1) * PAGE
    fence = whole.ctypes.data + end
    assert _libc.mprotect(ctypes.c_void_p(fence), ctypes.c_size_t(PAGE), 0) == 0
    out = whole[end - x.nbytes : end].view(x.dtype).reshape(x.shape)
    out[...] = x
    return out, room


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "int16"])
@pytest.mark.parametrize("n", [1, 3, 17, 65])
def test_no_read_beyond_an_array(n: int, dtype: str) -> None:
    x, _ = guarded(ramp(n, 5, dtype=dtype))
    back = transpose
    agree(
        lambda x: [
            e.max(x, rev(x, dimensions=(0, 1))),
            e.copy(back(x, permutation=(1, 0))),
            reduce.reduce_max(x, axes=(0,)),
            reduce.reduce_max(x, axes=(1,)),
            reduce.reduce_max(x, axes=(0, 1)),
            e.copy(slice_op(x, start_indices=(0, 1), limit_indices=(n, 5), strides=(1, 3))),
        ],
        x,
    )


@pytest.mark.parametrize("n", [2, 5, 16, 33])
def test_no_write_beyond_an_array(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every output lies between zones that must stay as they are."""
    x = ramp(n, 3)
    made = built(
        lambda x: [e.add(x, 1.0), e.gt(x, 0.0), reduce_sum(x, axes=(0,)), reduce_sum(x, axes=(1,))],
        x,
    )
    zones: list[Any] = []

    def fenced(shape: Any, dtype: Any) -> Any:
        size = int(np.prod(shape)) * dtype.itemsize
        room = np.full(size + 256, 0xA5, np.uint8)
        zones.append((room, size))
        return room[128 : 128 + size].view(dtype).reshape(shape)

    monkeypatch.setattr(program, "empty", fenced)
    got = made.execute([x])
    assert len(zones) == 4
    for room, size in zones:
        assert (room[:128] == 0xA5).all() and (room[128 + size :] == 0xA5).all()
    want = numpy_run(
        lambda x: [e.add(x, 1.0), e.gt(x, 0.0), reduce_sum(x, axes=(0,)), reduce_sum(x, axes=(1,))],
        x,
    )
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


# Inputs that are not plain arrays.


def test_strided_and_unaligned_inputs() -> None:
    base = ramp(12, 10)
    made = built(lambda x: [e.mul(x, 2.0)], np.zeros((5, 6), np.float32))
    odd = np.zeros(4 * 30 + 1, np.uint8)[1:].view(np.float32).reshape(5, 6)
    odd[...] = base[:5, :6]
    for x in (base.T[::2, ::2], base[:5, :6], base[4::-1, 5::-1], odd,
              np.broadcast_to(base[0, :6], (5, 6)), np.asfortranarray(base[:5, :6])):  # fmt: skip
        np.testing.assert_array_equal(made.execute([x])[0], 2 * x)


def test_inputs_of_another_type_are_refused() -> None:
    made = built(lambda x: [e.neg(x)], ramp(4))
    for bad in (ramp(5), ramp(4, dtype="int32"), ramp(2, 2)):
        with pytest.raises(TypeError, match=r"expected f32\[4\] as input 0"):
            made.execute([bad])


# Other CPUs.


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of x86 CPUs")
@pytest.mark.parametrize(
    ("cpu", "features", "width"),
    [("x86-64", "+sse2", 16), ("haswell", "+avx2,+fma", 32), ("haswell", "+avx2", 32)],
)
def test_lesser_cpus(
    cpu: str, features: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Narrower vectors, masks without instructions of their own, no fused multiplication."""
    made = _llvm.Compiler(cpu, features)
    assert (made.width, made.fma) == (width, "+fma" in features)
    monkeypatch.setattr(_llvm, "compiler", lambda: made)
    monkeypatch.setattr(objects, "_known", {})
    for dtype in ("float32", "float64", "int8", "bool", "uint16"):
        x, _ = guarded(ramp(37, 5, dtype=dtype))
        if x.dtype.kind == "f":
            x[3, 2] = np.nan
        agree(
            lambda x: [
                e.max(x, rev(x, dimensions=(0, 1))),
                e.copy(transpose(x, permutation=(1, 0))),
                reduce.reduce_max(x, axes=(0,)),
                reduce.reduce_max(x, axes=(1,)),
                e.convert_element_type(x, new_dtype=np.dtype(np.int32), weak_type=False),
            ],
            x,
        )
    for dtype in ("float32", "float64"):
        x = np.linspace(-20, 20, 301).astype(dtype)
        agree(lambda x: [e.exp(x), e.sin(x), e.tanh(x), e.log1p(e.abs(x))], x, within=5)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint32", "bool"])
@pytest.mark.parametrize("number", [3, 0, -2, 256])
def test_reductions_of_a_number_that_is_repeated(number: int, dtype: str) -> None:
    value = np.asarray(number).astype(dtype)[()]
    names = ["max", "min"] if dtype == "bool" else ["sum", "prod", "max", "min"]
    names += ["xor", "or", "and"] if dtype[0] in "iub" else []

    def f(x: Any) -> list[Any]:
        many = lax.full((3, 5, 2), value)
        return [getattr(lax, f"reduce_{name}")(many, axes=(0, 2)) for name in names]

    made = agree(f, np.zeros(1))
    assert not [s for s in made.plan.steps if type(s) is Library]


@pytest.mark.parametrize("dtype", ["int8", "float32", "bool"])
@pytest.mark.parametrize("shape", [(3, 333), (300, 70), (5, 6, 7)], ids=str)
def test_what_is_reduced_to_one_is_read_as_it_lies(shape: tuple[int, ...], dtype: str) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) * 9).astype(dtype)

    def f(x: Any) -> list[Any]:
        wide = x.T.astype(np.float64)
        return [jnp.any(x.T), jnp.max(x.T), jnp.sum(wide), jnp.min(jnp.swapaxes(x, 0, -1) == x.T)]

    made = agree(f, x, within=64)
    assert all(len(found.sizes) == 1 for found in made.plan.instances.values())

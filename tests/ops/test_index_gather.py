"""gather and the scatters against their definitions as loops, and their laws."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from primal.base.config import enable_x64
from primal.ops.index import scatter as room
from primal.ops.index.gather import gather, scatter_add, take_along
from primal.ops.index.numbers import (
    CLIP,
    FILL_OR_DROP,
    ONE_HOT,
    PROMISE_IN_BOUNDS,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    default_fill,
)
from primal.runtime.eager import as_array
from primal.transforms.batch import Axis, batch_flat, materialize
from primal.transforms.linearize import linearize_flat
from tests.ops.index_cases import gather_loop, random_array, random_case, scatter_loop
from tests.ops.laws import agree, check_batching, check_derivatives, compiled, eager, same

MODES = list(GatherScatterMode)
SEEDS = st.integers(0, 2**32 - 1)
# Each example compiles several programs.
FEW = settings(max_examples=12)
SCATTERS = {
    "set": (room.scatter, lambda old, new: new),
    "add": (scatter_add, lambda old, new: old + new),
    "sub": (room.scatter_sub, lambda old, new: old - new),
    "mul": (room.scatter_mul, lambda old, new: old * new),
    "min": (room.scatter_min, min),
    "max": (room.scatter_max, max),
}
INDEX_DTYPES = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


def gathering(case: Any, mode: Any = PROMISE_IN_BOUNDS, fill: Any = None, **flags: Any) -> Any:
    """The gather of a case as a function of operand and indices."""
    params = {"indices_are_sorted": False, "unique_indices": False, **flags}
    return lambda x, i: gather(
        x, i, dimension_numbers=case.numbers, slice_sizes=case.sizes, mode=mode, fill_value=fill,
        **params,
    )


def scattering(op: Any, numbers: Any, mode: Any = FILL_OR_DROP, unique: bool = False) -> Any:
    """A scatter as a function of operand, indices and updates."""
    return lambda x, i, u: op(
        x, i, u, dimension_numbers=numbers, indices_are_sorted=False, unique_indices=unique,
        mode=mode,
    )


# Values.


@given(SEEDS)
def test_gather_is_the_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case, mode = random_case(rng), MODES[seed % 4]
    fill = {FILL_OR_DROP: np.nan, ONE_HOT: 0}.get(mode)
    want = gather_loop(case, mode, fill)
    f = gathering(case, mode)
    same(eager(f, case.operand, case.indices), [want], 0)
    same(compiled(f, case.operand, case.indices), [want], 0)


@given(SEEDS)
def test_scatters_are_the_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case, mode = random_case(rng), MODES[seed % 4]
    op, combine = list(SCATTERS.values())[seed // 4 % len(SCATTERS)]
    updates = random_array(rng, case.out, np.float32)
    want = scatter_loop(case, updates, mode, combine)
    f = scattering(op, case.scatter_numbers, mode)
    same(eager(f, case.operand, case.indices, updates), [want], 0)
    same(compiled(f, case.operand, case.indices, updates), [want], 0)


@given(SEEDS)
def test_eager_rules_on_many_cases(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        case = random_case(rng, np.int64, np.int64)
        for mode in MODES:
            fill = {FILL_OR_DROP: np.iinfo(np.int64).min, ONE_HOT: 0}.get(mode)
            params = {"dimension_numbers": case.numbers, "slice_sizes": case.sizes, "mode": mode}
            got = gather.impl(case.operand, case.indices, fill_value=None, **params)
            np.testing.assert_array_equal(got, gather_loop(case, mode, fill))
            updates = random_array(rng, case.out, np.int64)
            for op, combine in SCATTERS.values():
                got = op.impl(
                    case.operand, case.indices, updates,
                    dimension_numbers=case.scatter_numbers, mode=mode,
                )
                np.testing.assert_array_equal(got, scatter_loop(case, updates, mode, combine))


@pytest.mark.parametrize("index_dtype", INDEX_DTYPES)
@pytest.mark.parametrize("mode", MODES)
def test_every_index_dtype(index_dtype: Any, mode: GatherScatterMode) -> None:
    rng = np.random.default_rng(0)
    x = random_array(rng, (300, 2), np.float32)
    info = np.iinfo(index_dtype)
    ends = [[0], [299 % (int(info.max) + 1)], [int(info.max)], [int(info.min)]]
    indices = np.array(ends, dtype=object).astype(index_dtype)
    case = random_case(rng)._replace(
        operand=x, indices=indices, numbers=GatherDimensionNumbers((1,), (0,), (0,)),
        sizes=(1, 2), out=(4, 2),
    )
    fill = {FILL_OR_DROP: np.nan, ONE_HOT: 0}.get(mode)
    updates = random_array(rng, (4, 2), np.float32)
    with enable_x64(True):
        got = agree(gathering(case, mode), x, indices)
        same(got, [gather_loop(case, mode, fill)], 0)
        got = agree(scattering(room.scatter, case.scatter_numbers, mode), x, indices, updates)
        same(got, [scatter_loop(case, updates, mode, lambda old, new: new)], 0)


@pytest.mark.parametrize(
    "dtype",
    [np.bool_, np.int8, np.uint8, np.int32, np.uint32, np.float16, ml_dtypes.bfloat16,
     ml_dtypes.float8_e4m3fn, ml_dtypes.int4, np.complex64],
)
def test_every_operand_dtype(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    wide = np.int8 if dtype is ml_dtypes.int4 else np.float32
    plain = dtype in (ml_dtypes.int4, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn)
    x = random_array(rng, (4, 3), wide if plain else dtype).astype(dtype)
    updates = random_array(rng, (5, 3), wide if plain else dtype).astype(dtype)
    indices = np.array([[1], [3], [1], [9], [-1]], np.int32)
    numbers = GatherDimensionNumbers((1,), (0,), (0,))
    case = random_case(rng)._replace(
        operand=x, indices=indices, numbers=numbers, sizes=(1, 3), out=(5, 3)
    )
    for mode in (CLIP, FILL_OR_DROP):
        if not (mode is FILL_OR_DROP and dtype is ml_dtypes.int4):
            want = gather_loop(case, mode, np.asarray(default_fill(x.dtype)).astype(dtype))
            same(agree(gathering(case, mode), x, indices), [want], 0)
        for name, (op, combine) in SCATTERS.items():
            number = dtype is not np.bool_ or name in ("set", "min", "max")
            if not number or (x.dtype.kind == "c" and name in ("min", "max")):
                continue
            got = agree(scattering(op, case.scatter_numbers, mode), x, indices, updates)
            if dtype not in (ml_dtypes.int4, np.uint8, np.uint32, np.int8):
                same(got, [scatter_loop(case, updates, mode, combine)], 0, name)


def test_fill_values() -> None:
    numbers = GatherDimensionNumbers((), (0,), (0,))
    for dtype, want in [
        (np.int8, -128), (np.uint8, 255), (np.bool_, True), (np.int32, -(2**31)),
        (np.float32, np.nan), (np.complex64, np.nan), (ml_dtypes.bfloat16, np.nan),
    ]:
        x = np.zeros(2, dtype)
        f = lambda x, i: gather(  # noqa: E731
            x, i, dimension_numbers=numbers, slice_sizes=(1,), indices_are_sorted=False,
            unique_indices=False, mode=FILL_OR_DROP, fill_value=None,
        )
        (got,) = agree(f, x, np.array([[2]], np.int32))
        assert np.array_equal(got.astype(complex), [want], equal_nan=True) or got[0] == want


def test_given_fill_value() -> None:
    case = random_case(np.random.default_rng(0))._replace(
        operand=np.arange(3, dtype=np.int32), indices=np.array([[1], [5]], np.int32),
        numbers=GatherDimensionNumbers((), (0,), (0,)), sizes=(1,), out=(2,),
    )
    got = agree(gathering(case, FILL_OR_DROP, 7), case.operand, case.indices)
    same(got, [np.array([1, 7], np.int32)], 0)


def test_the_last_of_equal_indices_stays() -> None:
    numbers = ScatterDimensionNumbers((1,), (0,), (0,))
    for n, width in [(4, 1), (1000, 1), (1000, 5)]:
        x = np.zeros((3, width), np.float32)
        indices = np.arange(n, dtype=np.int32)[:, None] % 3
        updates = np.arange(n * width, dtype=np.float32).reshape(n, width)
        want = x.copy()
        for i, u in zip(indices[:, 0], updates, strict=True):
            want[i] = u
        same(agree(scattering(room.scatter, numbers), x, indices, updates), [want], 0)


def test_overlapping_windows_in_order() -> None:
    numbers = ScatterDimensionNumbers((1,), (), (0,))
    x, indices = np.zeros(6, np.float32), np.array([[0], [1], [3], [2]], np.int32)
    updates = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    got = agree(scattering(room.scatter, numbers), x, indices, updates)
    same(got, [np.array([1, 4, 10, 11, 12, 9], np.float32)], 0)
    got = agree(scattering(scatter_add, numbers), x, indices, updates)
    same(got, [np.array([1, 6, 18, 24, 20, 9], np.float32)], 0)


def test_operands_are_not_written_to() -> None:
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    for indices in ([[1]], [[1], [2]], [[7]]):
        x = as_array(np.zeros(3, np.float32))
        for op, _ in SCATTERS.values():
            scattering(op, numbers)(x, np.array(indices), np.ones(len(indices), np.float32))
        assert not x.numpy().any()


def test_narrow_floats_accumulate_in_float32() -> None:
    numbers = ScatterDimensionNumbers((), (0,), (0,))
    x = np.zeros(1, ml_dtypes.bfloat16)
    ones = np.ones(1000, ml_dtypes.bfloat16)
    got = eager(scattering(scatter_add, numbers), x, np.zeros((1000, 1), np.int32), ones)
    assert float(got[0][0]) == 1000


@pytest.mark.parametrize("shape", [(0,), (3, 0), (1, 1), (0, 2)])
def test_empty_and_single(shape: tuple[int, ...]) -> None:
    rank = len(shape)
    numbers = GatherDimensionNumbers(tuple(range(1, rank + 1)), (), (0,))
    case = random_case(np.random.default_rng(0))._replace(numbers=numbers, sizes=shape)
    x = np.ones(shape, np.float32)
    for n in (0, 1, 2):
        indices = np.zeros((n, 1), np.int32)
        same(agree(gathering(case), x, indices), [np.ones((n, *shape), np.float32)], 0)
        f = scattering(scatter_add, case.scatter_numbers)
        same(agree(f, x, indices, np.ones((n, *shape), np.float32)), [x + n], 0)


def test_no_index_dimensions() -> None:
    case = random_case(np.random.default_rng(0))._replace(
        numbers=GatherDimensionNumbers((), (), ()), sizes=()
    )
    x = np.float32(3)
    for mode in MODES:
        got = agree(gathering(case, mode), x, np.zeros((2, 0), np.int32))
        same(got, [np.full(2, 3, np.float32)], 0)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_take_along(axis: int) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3, 4, 5)).astype(np.float32)
    order = np.argsort(x, axis).astype(np.int32)
    got = agree(lambda x, i: take_along(x, i, axis), x, order)
    same(got, [np.take_along_axis(x, order, axis)], 0)


# Derivatives.


@FEW
@given(SEEDS)
def test_gather_derivatives(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mode = MODES[seed % 4]
    case = random_case(rng, inside=mode is PROMISE_IN_BOUNDS)
    x = rng.standard_normal(case.operand.shape)
    f = gathering(case, mode, 0 if mode is FILL_OR_DROP else None)
    check_derivatives(lambda x: f(x, case.indices), x, order=1)


@pytest.mark.parametrize("name", ["set", "add", "sub", "min", "max"])
@FEW
@given(seed=SEEDS)
def test_scatter_derivatives(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mode = MODES[seed % 4]
    case = random_case(rng, inside=mode is PROMISE_IN_BOUNDS)
    x, updates = rng.standard_normal(case.operand.shape), rng.standard_normal(case.out)
    f = scattering(SCATTERS[name][0], case.scatter_numbers, mode)
    check_derivatives(lambda x, u: f(x, case.indices, u), x, updates, order=1)


ROWS = ScatterDimensionNumbers((1,), (0,), (0,))


@pytest.mark.parametrize("name", SCATTERS)
def test_derivatives_of_unique_scatters(name: str) -> None:
    rng = np.random.default_rng(3)
    x, updates = rng.standard_normal((4, 2)), rng.standard_normal((3, 2))
    indices = np.array([[2], [0], [5]], np.int32)
    f = scattering(SCATTERS[name][0], ROWS, FILL_OR_DROP, unique=True)
    check_derivatives(lambda x, u: f(x, indices, u), x, updates)
    check_derivatives(lambda x: f(x, indices, updates), x)
    check_derivatives(lambda u: f(x, indices, u), updates)


def test_scatter_mul_is_linear_in_the_operand_with_repetitions() -> None:
    rng = np.random.default_rng(4)
    updates = rng.standard_normal((3, 2))
    indices = np.array([[2], [2], [0]], np.int32)
    f = scattering(room.scatter_mul, ROWS)
    check_derivatives(lambda x: f(x, indices, updates), rng.standard_normal((4, 2)))
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        linearize_flat(
            lambda u: [f(np.ones((4, 2), np.float32), indices, u)],
            [as_array(updates.astype(np.float32))], [True],
        )


def test_only_the_winner_gets_a_cotangent() -> None:
    indices = np.array([[1], [1], [0]], np.int32)
    f = scattering(room.scatter, ScatterDimensionNumbers((), (0,), (0,)))
    x, u = as_array(np.zeros(3, np.float32)), as_array(np.ones(3, np.float32))
    _, lin = linearize_flat(lambda x, u: [f(x, indices, u)], [x, u], [True, True])
    to_x, to_u = lin.transposed([as_array(np.array([1, 2, 3], np.float32))])
    assert to_x.numpy().tolist() == [0, 0, 3]
    assert to_u.numpy().tolist() == [0, 2, 1]


def test_ties_share_the_derivative() -> None:
    # As JAX 0.10.2 gives: each of the three elements that attain the maximum gets a third.
    indices = np.array([[0], [0]], np.int32)
    f = scattering(room.scatter_max, ScatterDimensionNumbers((), (0,), (0,)))
    x = as_array(np.array([5, 1], np.float32))
    u = as_array(np.array([5, 5], np.float32))
    _, lin = linearize_flat(lambda x, u: [f(x, indices, u)], [x, u], [True, True])
    to_x, to_u = lin.transposed([as_array(np.array([3, 7], np.float32))])
    np.testing.assert_allclose(to_x.numpy(), [1, 7], rtol=1e-6)
    np.testing.assert_allclose(to_u.numpy(), [1, 1], rtol=1e-6)


# Batching.


@FEW
@given(SEEDS)
def test_gather_batching(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    mode = MODES[seed % 4]
    f = gathering(case, mode, 0 if mode is FILL_OR_DROP else None)
    check_batching_of_one_axis(rng, f, case.operand, case.indices)


@FEW
@given(SEEDS)
def test_scatter_batching(seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    op, _ = list(SCATTERS.values())[seed // 4 % len(SCATTERS)]
    f = scattering(op, case.scatter_numbers, MODES[seed % 4])
    updates = random_array(rng, case.out, np.float32)
    check_batching_of_one_axis(rng, f, case.operand, case.indices, updates)


def check_batching_of_one_axis(rng: Any, f: Any, *xs: Any, size: int = 2) -> None:
    """One random choice of batch dimensions against a loop; every choice is for the laws below."""
    dims = [None if rng.random() < 0.35 else int(rng.integers(0, x.ndim + 1)) for x in xs]
    if all(d is None for d in dims):
        dims[0] = 0
    stacked = [
        x if d is None else np.stack([x, rng.permutation(x.reshape(-1)).reshape(x.shape)], d)
        for x, d in zip(xs, dims, strict=True)
    ]

    def over(*args: Any) -> list[Any]:
        axis = Axis(None, size)
        outs, found = batch_flat(lambda *a: [f(*a)], axis, args, dims)
        return [materialize(o, axis, d, 0) for o, d in zip(outs, found, strict=True)]

    rows = [
        eager(f, *[x if d is None else np.take(x, i, d)
                   for x, d in zip(stacked, dims, strict=True)])[0]
        for i in range(size)
    ]
    want = [np.stack(rows)]
    same(eager(over, *stacked), want, 1e-6, f"batched at {dims}")
    same(compiled(over, *stacked), want, 1e-6, f"compiled, batched at {dims}")


def test_every_choice_of_batch_dimensions() -> None:
    rng = np.random.default_rng(5)
    x, updates = rng.standard_normal((4, 3)), rng.standard_normal((2, 3))
    x, updates = x.astype(np.float32), updates.astype(np.float32)
    indices = np.array([[2], [0]], np.int32)
    case = random_case(rng)._replace(numbers=GatherDimensionNumbers(*ROWS), sizes=(1, 3))
    check_batching(gathering(case), x, indices)
    for op, _ in SCATTERS.values():
        check_batching(scattering(op, ROWS), x, indices, updates)


def test_batches_of_size_zero() -> None:
    case = random_case(np.random.default_rng(0))._replace(
        numbers=GatherDimensionNumbers(*ROWS), sizes=(1, 3)
    )
    x, i = np.ones((0, 4, 3), np.float32), np.zeros((0, 2, 1), np.int32)
    for dims in ([0, 0], [0, None], [None, 0]):
        args = [a if d == 0 else a.reshape(-1)[:0].sum() * np.ones(a.shape[1:], a.dtype)
                for a, d in zip((x, i), dims, strict=True)]

        def over(*args: Any, dims: Any = dims) -> list[Any]:
            f = gathering(case)
            return batch_flat(lambda x, i: [f(x, i)], Axis(None, 0), args, dims)[0]

        (got,) = agree(over, *args)
        assert sorted(got.shape) == [0, 2, 3]


# Types and errors.


def fails(error: Any, match: str, f: Any, *xs: Any) -> None:
    with pytest.raises(error, match=match):
        eager(f, *xs)


def test_errors_of_gather() -> None:
    x, i = np.zeros((3, 4), np.float32), np.zeros((2, 1), np.int32)

    def f(numbers: tuple[Any, ...], sizes: tuple[int, ...] = (1, 4)) -> Any:
        return gathering(random_case(np.random.default_rng(0))._replace(
            numbers=GatherDimensionNumbers(*numbers), sizes=sizes
        ))

    good = ((1,), (0,), (0,))
    fails(ValueError, "integer type", f(good), x, i.astype(np.float32))
    fails(ValueError, "integer type", f(good), x, i > 0)
    fails(TypeError, "last dimension", f(good), x, np.int32(0))
    fails(TypeError, "start_index_map", f(((1,), (0,), (0, 1))), x, i)
    fails(TypeError, "start_index_map", f(((1,), (0,), (5,))), x, i)
    fails(TypeError, "offset_dims", f(((2,), (0,), (0,))), x, i)
    fails(TypeError, "offset_dims", f(((1, 0), (), (0,)), (1, 1)), x, i)
    fails(TypeError, "offset_dims", f(((1, 2), (0,), (0,))), x, i)
    fails(TypeError, "slice size", f(good, (1, 5)), x, i)
    fails(TypeError, "slice size", f(good, (2, 4)), x, i)
    fails(TypeError, "slice size", f(good, (1,)), x, i)
    fails(TypeError, "operand_batching_dims", f(((1,), (), (0,), (0,), (0,))), x, i)
    fails(TypeError, "equal sizes", f(((1,), (), (1,), (0,), (0,)), (1, 1)), x, i)
    fails(TypeError, "something to gather", f(good), x[:0], i)


def test_errors_of_scatter() -> None:
    x, i = np.zeros((3, 4), np.float32), np.zeros((2, 1), np.int32)
    f = scattering(room.scatter, ROWS)
    fails(TypeError, "one dtype", f, x, i, np.zeros((2, 4), np.int32))
    fails(TypeError, "dimensions", f, x, i, x[0])
    fails(TypeError, r"shape \(2, 4\)", f, x, i, x)
    fails(TypeError, "fit", f, x, i, np.zeros((2, 5), np.float32))
    fails(TypeError, "scatter_dims_to_operand_dims",
          scattering(room.scatter, ScatterDimensionNumbers((1,), (0,), (0, 1))), x, i, x[:2])
    fails(TypeError, "dtype", scattering(scatter_add, ROWS), x > 0, i, x[:2] > 0)


def test_modes_by_name() -> None:
    names = {"clip": CLIP, "fill": FILL_OR_DROP, "drop": FILL_OR_DROP, None: FILL_OR_DROP,
             "promise_in_bounds": PROMISE_IN_BOUNDS, "one_hot": ONE_HOT, CLIP: CLIP}
    assert {n: GatherScatterMode.from_any(n) for n in names} == names
    assert str(CLIP) == "GatherScatterMode.CLIP"
    for wrong in ("wrap", 3, []):
        with pytest.raises(ValueError, match="Unknown gather mode"):
            GatherScatterMode.from_any(wrong)  # type: ignore[arg-type]


def test_dimension_numbers_print() -> None:
    assert str(GatherDimensionNumbers((1,), (0,), (0,))) == (
        "GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), "
        "start_index_map=(0,), operand_batching_dims=(), start_indices_batching_dims=())"
    )
    assert str(ROWS) == (
        "ScatterDimensionNumbers(update_window_dims=(1,), inserted_window_dims=(0,), "
        "scatter_dims_to_operand_dims=(0,), operand_batching_dims=(), "
        "scatter_indices_batching_dims=())"
    )

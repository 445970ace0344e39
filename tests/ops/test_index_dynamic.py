"""dynamic_slice and dynamic_update_slice against slices of NumPy, and their laws."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from primal.base.config import enable_x64
from primal.ops.index.dynamic import dynamic_slice, dynamic_update_slice
from primal.runtime.eager import as_array
from primal.transforms.batch import Axis, batch_flat
from tests.ops.laws import agree, check_batching, check_derivatives, eager, same

RNG = np.random.default_rng(0)
X = RNG.standard_normal((4, 5)).astype(np.float32)
STARTS = [(0, 0), (1, 2), (2, 3), (-1, 9), (2**31 - 1, -(2**31))]


def window(starts: Any, sizes: Any, shape: Any) -> tuple[slice, ...]:
    """Where the window lies once it is clamped."""
    found = []
    for s, n, m in zip(starts, sizes, shape, strict=True):
        start = min(max(int(s), 0), m - n)
        found.append(slice(start, start + n))
    return tuple(found)


def slicing(sizes: tuple[int, ...]) -> Any:
    return lambda x, *starts: dynamic_slice(x, *starts, slice_sizes=sizes)


@pytest.mark.parametrize("starts", STARTS)
@pytest.mark.parametrize("sizes", [(2, 3), (4, 5), (1, 1), (0, 2)])
def test_windows(starts: tuple[int, int], sizes: tuple[int, int]) -> None:
    given = [np.int32(s) for s in starts]
    where = window(starts, sizes, X.shape)
    same(agree(slicing(sizes), X, *given), [X[where]], 0)
    update = np.full(sizes, 7, np.float32)
    want = X.copy()
    want[where] = 7
    same(agree(dynamic_update_slice, X, update, *given), [want], 0)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
)
def test_every_dtype_of_starts(dtype: Any) -> None:
    x = np.arange(300, dtype=np.float32)
    info = np.iinfo(dtype)
    with enable_x64(True):
        for start in (int(info.min), 0, min(int(info.max), 250), int(info.max)):
            given = np.array(start, dtype)
            where = window([start], [40], [300])
            same(agree(slicing((40,)), x, given), [x[where]], 0)
            want = x.copy()
            want[where] = -1
            update = -np.ones(40, np.float32)
            same(agree(dynamic_update_slice, x, update, given), [want], 0)


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.uint32, np.float16, ml_dtypes.bfloat16, np.complex64]
)
def test_every_dtype_of_operands(dtype: Any) -> None:
    x = RNG.integers(0, 2, (3, 4)).astype(dtype)
    same(agree(slicing((2, 2)), x, np.int32(1), np.int32(1)), [x[1:3, 1:3]], 0)
    want = x.copy()
    want[1:3, 1:3] = x[:2, :2]
    got = agree(dynamic_update_slice, x, x[:2, :2], np.int32(1), np.int32(1))
    same(got, [want], 0)


def test_scalars_and_empty_operands() -> None:
    same(agree(slicing(()), np.float32(3)), [np.float32(3)], 0)
    same(agree(dynamic_update_slice, np.float32(3), np.float32(4)), [np.float32(4)], 0)
    empty = np.zeros((0, 2), np.float32)
    same(agree(slicing((0, 1)), empty, np.int32(3), np.int32(3)), [empty[:, :1]], 0)


def test_the_operand_is_not_written_to() -> None:
    x = as_array(X)
    dynamic_update_slice(x, np.zeros((1, 1), np.float32), np.int32(0), np.int32(0))
    np.testing.assert_array_equal(x.numpy(), X)


@pytest.mark.parametrize("starts", [(1, 2), (9, -9)])
def test_derivatives(starts: tuple[int, int]) -> None:
    given = [np.int32(s) for s in starts]
    check_derivatives(lambda x: dynamic_slice(x, *given, slice_sizes=(2, 3)), X)
    check_derivatives(lambda x, u: dynamic_update_slice(x, u, *given), X, X[:2, :3] + 1)
    check_derivatives(lambda x: dynamic_update_slice(x, X[:2, :3].astype(np.float64), *given), X)
    check_derivatives(lambda u: dynamic_update_slice(X.astype(np.float64), u, *given), X[:2, :3])


def test_batching() -> None:
    given = [np.array([0, 3, -2][i], np.int32) for i in range(2)]
    check_batching(slicing((2, 3)), X, *given)
    check_batching(dynamic_update_slice, X, X[:2, :3], *given)


def test_batched_starts_each_clamp() -> None:
    starts = np.array([-5, 1, 9], np.int32)

    def over(x: Any, s: Any) -> Any:
        f = lambda s: [dynamic_slice(x, s, slice_sizes=(2,))]  # noqa: E731
        return batch_flat(f, Axis(None, 3), [s], [0])[0]

    (got,) = agree(over, np.arange(5, dtype=np.float32), starts)
    assert got.tolist() == [[0, 1], [1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("match", "args", "sizes"),
    [
        ("one start and size per dimension", (0,), (2, 3)),
        ("one start and size per dimension", (0, 0), (2,)),
        ("fits an operand", (0, 0), (5, 3)),
        ("fits an operand", (0, 0), (-1, 3)),
        ("scalar starts", (np.zeros(2, np.int32), 0), (2, 3)),
        ("integers of the same type", (np.int8(0), np.int32(0)), (2, 3)),
        ("integers of the same type", (np.float32(0), np.float32(0)), (2, 3)),
    ],
)
def test_errors_of_dynamic_slice(match: str, args: Any, sizes: Any) -> None:
    error = ValueError if match.startswith("one start") else TypeError
    with pytest.raises(error, match=match):
        eager(slicing(sizes), X, *[np.asarray(a, np.asarray(a).dtype) for a in args])


def test_errors_of_dynamic_update_slice() -> None:
    zero = np.int32(0)
    for match, update in [
        ("one dtype", np.zeros((2, 2), np.int32)),
        ("rank", np.zeros(2, np.float32)),
        ("fits an operand", np.zeros((5, 2), np.float32)),
    ]:
        with pytest.raises(TypeError, match=match):
            eager(dynamic_update_slice, X, update, zero, zero)

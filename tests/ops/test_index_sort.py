"""sort, argmax, argmin and top_k against NumPy and loops, and their laws."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from primal.base.config import enable_x64
from primal.base.native import extension
from primal.ops.index.sort import LONG, argmax, argmin, sort, stable_order, top_k
from tests.ops.laws import agree, check_batching, check_derivatives, compiled, eager, same

RNG = np.random.default_rng(0)
NAN, INF = np.nan, np.inf
DTYPES = [
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64,
    np.float16, np.float32, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
    ml_dtypes.int4, np.complex64, np.complex128,
]
ODD = np.array([0, -0.0, NAN, -NAN, 1, -1, INF, -INF, 0.0, -0.0], np.float32)


def sorting(dimension: int = 0, num_keys: int = 1) -> Any:
    def f(*xs: Any) -> Any:
        return sort(*xs, dimension=dimension, is_stable=True, num_keys=num_keys)

    return f


def finding(op: Any, axis: int = 0, dtype: Any = np.int32) -> Any:
    return lambda x: op(x, axes=(axis,), index_dtype=np.dtype(dtype))


def topping(k: int, axis: int = 0) -> Any:
    return lambda x: top_k(x, k=k, axis=axis)


def draw(dtype: Any, shape: Any) -> Any:
    """Small numbers with repetitions."""
    dtype = np.dtype(dtype)
    low = 0 if dtype.kind in "bu" else -4
    x = RNG.integers(low, 5, shape)
    if dtype.kind == "c":
        return (x + 1j * RNG.integers(-2, 3, shape)).astype(dtype)
    return x.astype(np.int8).astype(dtype) if dtype.kind in "iuV" else x.astype(dtype)


def before(x: Any, y: Any) -> bool:
    """The order of one element and another, as the room defines it."""
    parts = [(x.real, y.real), (x.imag, y.imag)] if np.iscomplexobj(x) else [(x, y)]
    for a, b in parts:
        a, b = float(a), float(b)
        if a < b or (a == a and b != b):
            return True
        if b < a or (b == b and a != a):
            return False
    return False


def order_of(keys: list[Any]) -> list[int]:
    """The stable order, by inserting one element after the other."""
    found: list[int] = []
    for i in range(len(keys[0])):
        at = len(found)
        while at and less(keys, i, found[at - 1]):
            at -= 1
        found.insert(at, i)
    return found


def less(keys: list[Any], i: int, j: int) -> bool:
    for k in keys:
        if before(k[i], k[j]):
            return True
        if before(k[j], k[i]):
            return False
    return False


# Values.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [7, 300])
def test_sort_of_every_dtype(dtype: Any, length: int) -> None:
    with enable_x64(True):
        x = draw(dtype, (length, 2))
        order = np.stack([order_of([x[:, j]]) for j in range(2)], 1)
        want = np.take_along_axis(x, order, 0)
        same(agree(sorting(), x), [want], 0)
        tags = np.arange(x.size, dtype=np.int32).reshape(x.shape)
        same(agree(sorting(), x, tags), [want, np.take_along_axis(tags, order, 0)], 0)


BY_VECTORS = [
    np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.float16, np.float32,
    np.float64,
]  # fmt: skip


@pytest.mark.skipif(extension is None, reason="the extension's code")
@pytest.mark.parametrize("dtype", BY_VECTORS)
@given(st.data())
def test_rows_sorted_by_vectors_are_those_of_numpy(dtype: Any, data: Any) -> None:
    """Any bits, few values, rows that rise or fall, of all lengths around whole vectors."""
    dtype = np.dtype(dtype)
    n = data.draw(st.integers(0, 600) | st.sampled_from([1024, 4999, 20_000]))
    draws = np.random.default_rng(data.draw(st.integers(0, 99)))
    x = draws.integers(0, 256, (2, n * dtype.itemsize), np.uint8).view(dtype)
    kind = data.draw(st.sampled_from(["any", "few", "rising", "falling", "one"]))
    if kind == "few" and n:
        x = x[:, draws.integers(0, min(n, 5), n)]
    elif kind in ("rising", "falling"):
        x = np.sort(x)[:, :: -1 if kind == "falling" else 1]
    elif kind == "one" and n:
        x = np.repeat(x[:, :1], n, 1)
    got = extension.in_order(x)
    if got is None:
        pytest.skip("no AVX-512")
    # NumPy 2.4 sorts few different float16 wrongly where the CPU has AVX-512.
    exact = x.astype(np.float64) if dtype == np.float16 else x
    np.testing.assert_array_equal(got, np.sort(exact))
    if n > 1:
        np.testing.assert_array_equal(extension.in_order(x[:, ::2]), np.sort(exact[:, ::2]))


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("dtype", BY_VECTORS)
def test_sorts_without_vectors_or_extension(
    dtype: Any, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What other CPUs do, and installations without a C compiler."""
    lesser = None
    if not whole and extension is not None:
        rest = {name: getattr(extension, name) for name in ("order", "zeros_in_order")}
        lesser = SimpleNamespace(in_order=lambda x: None, **rest)
    monkeypatch.setitem(sort.impl.__globals__, "extension", lesser)
    for n in (7, 200, 3000):
        x = RNG.choice(ODD, (n, 2)) if np.dtype(dtype).kind == "f" else RNG.integers(0, 9, (n, 2))
        x[::3] = RNG.integers(0, 2**15, x[::3].shape)
        x = x.astype(dtype)
        for held, axis in ((x, 0), (np.asfortranarray(x), 0), (x.T, 1), (x[::2, 0], 0)):
            order = np.argsort(held, axis, "stable")
            want = np.take_along_axis(held, order, axis)
            (found,) = sort.impl(held, dimension=axis, is_stable=True, num_keys=1)
            np.testing.assert_array_equal(found, want)
            np.testing.assert_array_equal(np.signbit(found[want == 0]), np.signbit(want[want == 0]))
            np.testing.assert_array_equal(stable_order(held, axis), order)


@pytest.mark.parametrize("repeats", [1, 40])
def test_zeros_and_nans(repeats: int) -> None:
    x = np.tile(ODD, repeats)
    tags = np.arange(x.size, dtype=np.int32)
    order = order_of([x])
    got = agree(sorting(), x, tags)
    assert got[1].tolist() == order
    for f in (eager, compiled):
        (alone,) = f(sorting(), x)
        np.testing.assert_array_equal(alone, x[order])
        zeros = alone == 0
        np.testing.assert_array_equal(np.signbit(alone[zeros]), np.signbit(x[order][zeros]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_zeros_of_a_long_row_stay_in_order(dtype: Any) -> None:
    x = np.tile(ODD, LONG // ODD.size + 1).astype(dtype)
    want = x[np.argsort(np.where(x == 0, 0, x), kind="stable")]
    for f in (eager, compiled):
        (alone,) = f(sorting(), x)
        np.testing.assert_array_equal(alone, want)
        np.testing.assert_array_equal(np.signbit(alone[want == 0]), np.signbit(want[want == 0]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_only_zeros_of_two_signs(dtype: Any) -> None:
    """Wherever among many rows they are, and however these lie."""
    for row in (0, 511, 512, 1299):
        x = np.arange(1300 * 8, 0, -1).reshape(1300, 8).astype(dtype)
        x[row, :4] = (0.0, -0.0, 0.0, -0.0)
        for axis, held in ((1, x), (0, x.T), (1, np.asfortranarray(x))):
            (found,) = sort.impl(held, dimension=axis, is_stable=True, num_keys=1)
            assert np.signbit(found if axis else found.T)[row, :4].tolist() == [0, 1, 0, 1]


def test_complex_numbers_go_by_parts() -> None:
    parts = [1, -1, NAN, 0, -0.0, 2]
    x = np.array([complex(a, b) for a in parts for b in parts], np.complex64)
    tags = np.arange(x.size, dtype=np.int32)
    assert agree(sorting(), x, tags)[1].tolist() == order_of([x])


def test_several_keys() -> None:
    keys = [draw(np.int8, 200), draw(np.float32, 200), draw(np.complex64, 200)]
    tags = np.arange(200, dtype=np.int32)
    for n in (1, 2, 3):
        got = agree(sorting(num_keys=n), *keys, tags)
        assert got[-1].tolist() == order_of(keys[:n])


@pytest.mark.parametrize("dimension", [0, 1, 2])
def test_sort_along_every_dimension(dimension: int) -> None:
    x = RNG.standard_normal((3, 4, 5)).astype(np.float32)
    same(agree(sorting(dimension), x), [np.sort(x, dimension)], 0)


@given(arrays.arrays(np.float32, st.integers(1, 300),
                     elements=st.sampled_from(ODD.tolist()) | st.floats(width=32)))
def test_eager_orders_of_any_floats(x: Any) -> None:
    tags = np.arange(x.size, dtype=np.int32)
    assert eager(sorting(), x, tags)[1].tolist() == np.argsort(x, kind="stable").tolist()
    k = x.size // 2
    places = eager(topping(k), x)[1]
    rest = np.setdiff1d(tags, places)
    values = np.where(np.isnan(x), INF, x)
    assert not len(rest) or not k or values[places].min() >= values[rest].max()


@pytest.mark.parametrize("dtype", [d for d in DTYPES if np.dtype(d).kind != "c"])
@pytest.mark.parametrize("axis", [0, 1])
def test_arg_and_top_k_of_every_dtype(dtype: Any, axis: int) -> None:
    with enable_x64(True):
        x = draw(dtype, (6, 40))
        plain = x.astype(np.float64)
        same(agree(finding(argmax, axis), x), [np.argmax(plain, axis).astype(np.int32)], 0)
        same(agree(finding(argmin, axis), x), [np.argmin(plain, axis).astype(np.int32)], 0)
        for k in (0, 1, 4, x.shape[axis]):
            order = np.argsort(-plain, axis, kind="stable").take(range(k), axis)
            want = [np.take_along_axis(x, order, axis), order.astype(np.int32)]
            same(agree(topping(k, axis), x), want, 0)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64, np.float64])
def test_extreme_values(dtype: Any) -> None:
    with enable_x64(True):
        info = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else np.finfo(dtype)
        x = np.array([info.max, info.min, 0, 1, info.max, info.min], dtype)
        ranks = [x.tolist().index(v) for v in sorted(x.tolist())]
        order = sorted(range(6), key=lambda i: (x[i], i))
        assert [x[i] for i in order] == [x[i] for i in ranks]
        same(agree(sorting(), x), [x[order]], 0)
        down = sorted(range(6), key=lambda i: (-int(x[i]), i))
        same(agree(topping(6), x), [x[down], np.array(down, np.int32)], 0)
        same(agree(finding(argmax), x), [np.int32(0)], 0)
        same(agree(finding(argmin), x), [np.int32(order[0])], 0)


@pytest.mark.parametrize(
    ("x", "most", "least"),
    [([1, NAN, 3, NAN], 1, 1), ([-INF, -INF], 0, 0), ([INF, INF], 0, 0), ([0.0, -0.0], 0, 0),
     ([-0.0, 0.0], 0, 0), ([3, 1, 3, 1], 0, 1), ([-INF, -NAN, NAN], 1, 1)],
)
def test_first_extremum(x: list[float], most: int, least: int) -> None:
    array = np.array(x, np.float32)
    same(agree(finding(argmax), array), [np.int32(most)], 0)
    same(agree(finding(argmin), array), [np.int32(least)], 0)


def test_first_extremum_of_long_arrays() -> None:
    x = np.zeros(5000, np.float32)
    x[[1234, 4321]] = 1
    same(agree(finding(argmax), x), [np.int32(1234)], 0)
    x[[2000, 4000]] = NAN
    same(agree(finding(argmin), x), [np.int32(2000)], 0)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32])
def test_index_dtypes(dtype: Any) -> None:
    x = np.arange(300, dtype=np.float32)
    same(agree(finding(argmax, dtype=dtype), x), [np.array(299).astype(dtype)], 0)


def test_top_k_of_odd_floats() -> None:
    # As JAX 0.10.2 gives, but for the nan of negative sign, which comes last there.
    values, places = agree(topping(10), ODD)
    np.testing.assert_array_equal(values, [NAN, NAN, INF, 1, 0, 0, 0, 0, -1, -INF])
    assert places.tolist() == [2, 3, 6, 4, 0, 8, 1, 9, 5, 7]


def test_top_k_uses_a_partition_for_small_k() -> None:
    x = RNG.integers(0, 50, (3, 1000)).astype(np.float32)
    order = np.argsort(-x, 1, kind="stable")[:, :5]
    want = [np.take_along_axis(x, order, 1), order.astype(np.int32)]
    same(agree(topping(5, 1), x), want, 0)


def test_empty_and_single() -> None:
    empty = np.zeros((3, 0), np.float32)
    same(agree(sorting(1), empty), [empty], 0)
    same(agree(sorting(0), empty, empty), [empty, empty], 0)
    same(agree(topping(0, 1), empty), [empty, empty.astype(np.int32)], 0)
    same(agree(finding(argmax, 0), empty), [np.zeros(0, np.int32)], 0)
    one = np.ones((1, 1), np.float32)
    same(agree(sorting(), one), [one], 0)
    same(agree(topping(1), one), [one, np.zeros((1, 1), np.int32)], 0)


# Derivatives and batching.


@pytest.mark.parametrize("axis", [0, 1])
def test_derivatives(axis: int) -> None:
    x, y = RNG.standard_normal((2, 3, 4))
    check_derivatives(sorting(axis), x)
    check_derivatives(sorting(axis), x, y)
    check_derivatives(lambda y: sorting(axis)(x, y)[1], y)
    check_derivatives(lambda x: topping(2, axis)(x)[0], x)
    check_derivatives(sorting(), x[0])


def test_batching() -> None:
    x, y = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    for axis in (0, 1):
        check_batching(sorting(axis), x, y)
        check_batching(topping(2, axis), x)
        check_batching(finding(argmax, axis), x)
        check_batching(finding(argmin, axis), x)


# Errors.


@pytest.mark.parametrize(
    ("error", "match", "f", "xs"),
    [
        (TypeError, "at least one", sorting(), []),
        (TypeError, "equal shapes", sorting(), [np.zeros(3), np.zeros(4)]),
        (ValueError, "out of bounds", sorting(1), [np.zeros(3)]),
        (ValueError, "out of bounds", sorting(), [np.zeros(())]),
        (ValueError, "num_keys", sorting(num_keys=2), [np.zeros(3)]),
        (ValueError, "num_keys", sorting(num_keys=0), [np.zeros(3)]),
        (ValueError, "k argument", topping(4), [np.zeros(3)]),
        (ValueError, "k argument", topping(-1), [np.zeros(3)]),
        (ValueError, "complex", topping(1), [np.zeros(3, np.complex64)]),
        (ValueError, "out of bounds", topping(1), [np.zeros(())]),
        (ValueError, "out of bounds", finding(argmax, 2), [np.zeros((3, 3))]),
        (ValueError, "non-empty", finding(argmax), [np.zeros((0, 3))]),
        (TypeError, "integer index_dtype", finding(argmax, 0, np.float32), [np.zeros(3)]),
        (TypeError, "dtype", finding(argmin), [np.zeros(3, np.complex64)]),
    ],
)
def test_errors(error: Any, match: str, f: Any, xs: list[Any]) -> None:
    with pytest.raises(error, match=match):
        eager(f, *xs)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "float16"])
@pytest.mark.parametrize("how", ["any", "sorted", "few values", "nan and zeros"])
def test_top_k_of_long_rows_is_that_of_all(
    dtype: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Candidates found by a sample lose nothing."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((2, 20_000)) * 50).astype(dtype)
    if how == "sorted":
        x = np.sort(x, -1)
    elif how == "few values":
        x = (x // 20).astype(dtype)
    elif how == "nan and zeros" and np.dtype(dtype).kind == "f":
        x[:, ::7], x[:, 3::11], x[:, 4::11] = np.nan, -0.0, 0.0
    cases = [(a, axis, k) for a, axis in ((x, 1), (x.T.copy(), 0)) for k in (1, 7, 300)]
    found = [top_k.impl(a, k=k, axis=axis) for a, axis, k in cases]
    monkeypatch.setitem(top_k.impl.__globals__, "LONG", 10**9)
    for (a, axis, k), (values, places) in zip(cases, found, strict=True):
        whole = top_k.impl(a, k=k, axis=axis)
        np.testing.assert_array_equal(places, whole[1])
        assert values.tobytes() == whole[0].tobytes()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("n", [7, 64, 200])
def test_zeros_of_memory_that_changed_since_it_was_sorted(dtype: Any, n: int) -> None:
    """The extension gives sorted zeros the order of the array's: of as many as it sorted, however
    many the array has by then."""
    if extension is None:
        pytest.skip("no extension here")
    for before in (0, 1, n // 2, n):
        for after in (0, n // 2, n):
            room = np.full(n + 128, 5, dtype)
            out = room[64 : 64 + n]
            out[:] = np.sort([0.0] * before + [3.0] * (n - before))
            kept = room != 0
            extension.zeros_in_order(out, np.array([-0.0] * after + [3.0] * (n - after), dtype), 0)
            np.testing.assert_array_equal(room != 0, kept)
            assert np.count_nonzero(np.signbit(room)) == min(before, after)

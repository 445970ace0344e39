"""Points of few coordinates: a point in each lane, whatever runs over them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import primal.numpy as jnp
from primal import lax
from primal.engines.cpu import _llvm
from primal.engines.cpu.kernels.points import PointSpec
from primal.engines.cpu.kernels.rows import RowSpec
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import agree, built

WIDE = _llvm.compiler().width == 64
"""Whether rows shorter than a vector are turned into columns."""
COORDINATES = [1, 2, 3, 4, 5, 6, 7, 8, 9, 13]
COUNTS = [0, 1, 7, 8, 16, 17, 35, 700]
DTYPES = ["float32", "float64", "int32", "uint32", "int8"]


def drawn(*shape: int, dtype: str = "float32") -> Any:
    """Whole numbers, of which sums in any order are the same."""
    return np.random.default_rng(sum(shape)).integers(0, 9, shape).astype(dtype)


def by_points(made: Any) -> int:
    """How many kernels have a point in each lane."""
    specs = [i.spec for i in made.plan.instances.values()]
    return sum(type(s) is PointSpec or (type(s) is RowSpec and s.turned) for s in specs)


@pytest.mark.parametrize("k", COORDINATES)
@pytest.mark.parametrize("n", COUNTS)
def test_sums_of_coordinates(n: int, k: int) -> None:
    made = agree(lambda x: [jnp.sum(x * x, axis=1), jnp.max(x, axis=1)], drawn(n, k))
    least = 2 if WIDE and n * k > 16 else 9
    assert by_points(made) == (n >= least and k > 1)


@pytest.mark.parametrize("k", [2, 3, 5, 8])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(k: int, dtype: str) -> None:
    x, y = drawn(77, k, dtype=dtype), drawn(77, dtype=dtype)
    made = agree(lambda x, y: [x * 2 + y[:, None], jnp.min(x, axis=1), jnp.sum(x, axis=1)], x, y)
    assert by_points(made)


@pytest.mark.parametrize("k", [6, 14, 15])
def test_vectors_of_bytes(k: int) -> None:
    x = drawn(777, k, dtype="int8")
    made = agree(lambda x: [x[:, ::-2] * x[:, :1], jnp.max(x[:, 1:], axis=1)], x)
    assert by_points(made)


@pytest.mark.parametrize("k", COORDINATES)
@pytest.mark.parametrize("n", COUNTS)
def test_sums_of_points(n: int, k: int) -> None:
    x = drawn(5, n, k)
    made = agree(lambda x: [(y := x + 1), jnp.sum(y, axis=1)], x)
    rows = WIDE and k == 1 and 1 < n <= 16
    assert by_points(made) == (rows or (k > 1 and (n > 8 >= k or 1 < n <= 16 // k)))
    agree(lambda x: [jnp.sum(x, axis=0), jnp.sum(x, axis=(0, 1))], x)


@pytest.mark.parametrize("k", COORDINATES)
@pytest.mark.parametrize("n", [17, 1300, 40_000])
@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", ml_dtypes.bfloat16])
def test_points_and_coordinates_reduced_at_once(dtype: Any, n: int, k: int) -> None:
    """With something per coordinate, so that rows do not lie in one line, stored or not."""
    x, b = drawn(n, k).astype(dtype), drawn(k).astype(dtype)
    made = agree(lambda x, b: [(y := x * b), jnp.max(y)], x, b)
    assert bool(by_points(made)) == (k > 1 and n >= 1024)
    agree(lambda x, b: [jnp.max(x * b), jnp.any(x > b), jnp.sum(x + b)], x, b)
    agree(lambda x, b: [jnp.sum(x[:, None] * b, axis=(0, 2)), jnp.sum(x.T + x.T)], x, b)


@pytest.mark.parametrize("n", [1, 17, 700, 40_000])
@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_extrema_of_narrow_points_are_one_part(n: int, dtype: Any) -> None:
    x = drawn(n, 3).astype(dtype)
    made = agree(lambda x: [jnp.max(x, axis=0), jnp.min(x[:, 1:] * 2, axis=0)], x)
    assert by_points(made) == 2 * (n > 1)


@pytest.mark.parametrize("k", [2, 3, 8])
@pytest.mark.parametrize("n", [9, 300, 5000])
@pytest.mark.parametrize("axis", [0, 1])
def test_truth_of_points(axis: int, n: int, k: int) -> None:
    x = drawn(n, k)
    agree(lambda x: [jnp.any(x == 8, axis=axis), jnp.all(x != 8, axis=axis)], x)
    agree(lambda x: [jnp.any(x, axis=axis), jnp.all(x, axis=axis)], x == 3)


@pytest.mark.parametrize("k", [2, 3, 4, 7])
@pytest.mark.parametrize("n", [9, 16, 50, 600])
def test_numbers_beside_points(n: int, k: int) -> None:
    x, mean, scale = drawn(6, n, k), drawn(6, k), drawn(6, n)
    made = agree(lambda x, m, s: [(x - m[:, None]) * s[..., None]], x, mean, scale)
    (made,) = made.plan.instances.values()
    # Tables would be made for each of six runs of rows.
    assert getattr(made.spec, "flat", False) == (n >= 512)


@pytest.mark.parametrize("k, dtype", [(3, "float32"), (5, "int8"), (2, "bool"), (3, "complex64")])
def test_points_read_backwards(dtype: str, k: int) -> None:
    """Also beside such as are not."""
    for n in (17, 2600):
        x = drawn(n, k).astype(dtype)
        made = agree(
            lambda x: [x[::-1, ::-1], x[::-2, 1:], jnp.where(x[::-1] == x, x, x[:1])], x
        )
        assert by_points(made) >= 2 * (n >= 1024)
        agree(lambda x: [x.T[:, ::-1], jnp.where(x[::-1, 0], x[:, 1], x[:, 0][::-1])], x)


@pytest.mark.parametrize("dtype", ["int8", "complex64"])
def test_rows_of_sixteen_that_two_are_joined_to(dtype: str) -> None:
    x = drawn(33_000, 5).astype(dtype)
    made = agree(lambda x: [jnp.concatenate([x, x[::-1]], 1), jnp.stack([x, x * 2], 1)], x)
    assert by_points(made) >= (2 if dtype == "int8" else 1)
    assert by_points(agree(lambda x: [jnp.tile(x, 2), jnp.repeat(x, 3, 0)], x[:3000])) == 2
    assert by_points(agree(lambda x: [jnp.roll(x.T, 2, 0), jnp.concatenate([x.T, x.T])], x)) >= 2


@pytest.mark.parametrize("dtype", ["float32", "bool", "int16", "complex64"])
def test_points_whose_coordinates_become_rows(dtype: str) -> None:
    """All rows in one pass, beside operands that lie as these do, and reduced on the way or not."""
    x = drawn(1300, 2, 3).astype(dtype)
    u, v = x[:, 0], np.ascontiguousarray(x[:, 1].T)
    made = agree(lambda u, v: [u.T, jnp.where(v == u.T[:, :1], u[::-1].T, v)], u, v)
    assert by_points(made)
    agree(lambda x: [x.T, x[:, :, :1].T, jnp.moveaxis(x, 0, 1), jnp.moveaxis(x[::2], 2, 0)], x)
    if dtype != "complex64":
        agree(lambda u, v: [(y := jnp.maximum(u.T, v[:, 3:4])), jnp.max(y), jnp.any(y, 0)], u, v)
        agree(lambda u, v: [(y := jnp.minimum(u.T, v)), jnp.min(y, 1), jnp.sum(y, 0)], u, v)


@pytest.mark.parametrize("dtype", ["float32", "bool", "int8", "complex64", "float64"])
def test_points_apart_in_rows_of_coordinates(dtype: str) -> None:
    """Also at the end of a page: nothing is read behind the last one."""
    for n, step in ((8200, 8), (3100, 3), (2600, 2), (2601, 2)):
        x, y = fenced((3, n), dtype), drawn(len(range(1, n, step)), 3).astype(dtype)
        x[...] = drawn(3, n).astype(dtype)
        made = built(lambda x, y, k=step: [jnp.where(y == y, x.T[1::k], y)], x, y)
        assert by_points(made) or (dtype == "complex64" and step == 8)
        np.testing.assert_array_equal(made.execute([x, y])[0], x.T[1::step])
    made = agree(lambda x: [jnp.where(x.T == 3, x.T, x.T[:1])], x)
    assert by_points(made)
    agree(lambda x: [x[:, ::-2].T, jnp.where(x[:1, ::-3] == 3, x[:, ::-3], x[:, ::3]).T], x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "complex64"])
@pytest.mark.parametrize("n", [9, 1000, 70_001, 300_000])
def test_elements_apart_are_reduced(n: int, dtype: str) -> None:
    x = drawn(n).astype(dtype)

    def f(x: Any) -> list[Any]:
        last = jnp.sum(x[1::3]), jnp.any(x[::2][: n // 2] != x[1::2][: n // 2])
        return [jnp.sum(x[::2] * x[::2]), jnp.sum(x[::-5]), jnp.max(x[2::8].real), *last]

    made = agree(f, x)
    assert n < 2048 or by_points(made) >= 3


@pytest.mark.parametrize("dtype", ["float32", "int8", "float16"])
def test_extrema_of_two_in_a_loop(dtype: str) -> None:
    x = drawn(6000).astype(dtype) - np.array(4, dtype)
    if dtype[0] == "f":
        x[::7], x[1::7], x[3::14] = np.nan, -0.0, 0.0

    def f(x: Any) -> list[Any]:
        def turn(c: Any, _: Any) -> Any:
            a, b = c.reshape(-1, 2), c.reshape(2, -1)
            new = jnp.stack([jnp.max(a, 1), jnp.min(b, 0)], 1).reshape(-1)
            return new, (jnp.sum(jnp.max(a, 1) == 0), jnp.max(jnp.minimum(a, a[::-1]), 1)[:3])

        last, (counts, some) = lax.scan(turn, x, None, length=3)
        return [last, counts, some]

    agree(f, x)


def test_pairs_that_are_sorted_in_a_loop_are_written_where_they_belong() -> None:
    def turn(_: Any, x: Any) -> Any:
        a = x.reshape(-1, 2)
        x = jnp.stack([a.min(1), a.max(1)], 1).reshape(-1)
        b = x[1:-1].reshape(-1, 2)
        y = jnp.stack([b.min(1), b.max(1)], 1).reshape(-1)
        return jnp.concatenate([x[:1], y, x[-1:]])

    for n in (64, 1000):
        x = np.random.default_rng(n).permutation(n).astype(np.float32)
        f = lambda x, n=n: [lax.fori_loop(0, n // 2, turn, x)]  # noqa: E731
        np.testing.assert_array_equal(built(f, x).execute([x])[0], np.sort(x))
    (loop,) = built(f, x).plan.program.block.steps
    assert len(loop.body.steps) == 3  # both halves of a turn, and the ends


def test_pairs() -> None:
    x, y = drawn(500, 3), drawn(4, 3)

    def f(x: Any, y: Any) -> list[Any]:
        d = jnp.sum((x[:, None] - y) ** 2, axis=-1)
        return [d, jnp.sum(d, axis=1)]

    assert by_points(agree(f, x, y)) == 2
    agree(lambda x: [jnp.sum((x[:, None] - x) ** 2, axis=1)], x[:60])


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8])
def test_coordinates_by_name(k: int) -> None:
    x = drawn(90, k)
    made = agree(lambda x: [x[:, 0] * x[:, k - 1] - x[:, 1], x[1:, 1] + x[:-1, 0]], x)
    assert by_points(made) == 2
    agree(lambda x: [x[::-1, 0] + x[:, 1], jnp.sum(x[:, ::-1] * x, axis=1)], x)
    agree(lambda x: [x[5:, 1:] * x[:-5, :-1] + jnp.arange(k - 1, dtype=np.float32)], x)


@pytest.mark.parametrize("n", [16, 19])
def test_nan_and_signs_of_zero(n: int) -> None:
    x = drawn(n, 3) - 4
    x[::5, 1], x[3] = np.nan, -0.0
    agree(lambda x: [jnp.max(x, axis=1), jnp.min(x, axis=1), jnp.prod(x, axis=1)], x)
    agree(lambda x: [jnp.max(x, axis=1), jnp.min(x, axis=1)], np.stack([x, x]))
    agree(lambda x: [jnp.where(jnp.isnan(x), x[:, :1], x)], x)


def test_functions_of_points() -> None:
    x = drawn(70, 3) / 8
    agree(lambda x: [jnp.sqrt(jnp.sum(x * x, axis=1)), jnp.exp(x) * x[:, :1]], x, within=2)


@pytest.mark.parametrize("n", [17, 64])
def test_points_in_loops_change_in_place(n: int) -> None:
    x = drawn(n, 3) / 16

    def step(_: Any, x: Any) -> Any:
        return x * 0.5 + jnp.sum(x, axis=1)[:, None] * 0.25

    made = built(lambda x: [lax.fori_loop(0, 9, step, x)], x)
    want = x
    for _ in range(9):
        want = step(0, want)
    np.testing.assert_allclose(made.execute([x])[0], want, rtol=1e-6)


def test_many_units() -> None:
    x = drawn(40_000, 3)
    made = agree(lambda x: [x * 2 + jnp.sum(x, axis=1)[:, None], jnp.sum(x, axis=1)], x)
    assert all(i.units > 1 for i in made.plan.instances.values())

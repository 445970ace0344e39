"""Gathers of single elements as words of the groups around them: NumPy's values, and one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.run.objects import counters
from primal.engines.cpu.steps import Routine
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import agree

DRAW = np.random.default_rng(0)
X = (DRAW.standard_normal((13, 29)) * 50).astype(np.float32)
I = DRAW.integers(-40, 60, (7, 45)).astype(np.int32)  # noqa: E741
J = DRAW.integers(-40, 60, 45).astype(np.int32)


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("index", [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64])
@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float64, np.uint32, np.int64, np.bool_, np.int8, np.uint16, np.float16],
)
def test_any_index_of_any_dtype(dtype: Any, index: Any, mode: str) -> None:
    ends = np.iinfo(index)
    i = DRAW.integers(max(ends.min, -40), 60, (7, 45)).astype(index)
    i.flat[:4] = ends.max, ends.min, 0, 12

    def f(x: Any, i: Any) -> list[Any]:
        return [x.at[i + 1, i % 3].get(mode=mode) * 2, x.reshape(-1).at[i * 5].get(mode=mode)]

    made = agree(f, X.astype(dtype), i)
    assert not any(type(step) is Routine for step in made.plan.steps)


@pytest.mark.parametrize("mode", ["clip", "drop"])
@pytest.mark.parametrize("index", [np.int8, np.uint8, np.int32, np.uint64, np.int64])
def test_scatters_at_several_coordinates_are_in_one_line(index: Any, mode: str) -> None:
    """As NumPy's, in order, also where indices are far outside, and under vmap."""
    ends = np.iinfo(index)
    x, u = np.stack([X, -X])[:, None], DRAW.standard_normal((7, 45)).astype(np.float32)
    i, j, k = (DRAW.integers(max(ends.min, -3), n + 2, (7, 45)).astype(index) for n in (2, 13, 29))
    k.flat[:3], j.flat[2:5] = (ends.max, ends.min, 0), (ends.min, 12, ends.max)

    def f(x: Any, i: Any, j: Any, k: Any, u: Any) -> list[Any]:
        def at(x: Any, j: Any, k: Any, u: Any) -> Any:
            return x.at[0, j, k].multiply(u, mode=mode)

        return [
            x.at[i, 0, j, k].add(u, mode=mode), x.at[i, :, j, k].set(u[..., None], mode=mode),
            x.at[0, 0, j, k].min(2, mode=mode), primal.vmap(at)(x, j[:2], k[:2], u[:2]),
        ]  # fmt: skip

    made = agree(f, x, i, j, k, u)
    assert all(
        step.spec.columns == 1 for step in made.plan.steps
        if type(step) is Routine and step.name.startswith("scatter")
    )  # fmt: skip


CASES: dict[str, Callable[..., Any]] = {
    "in steps": lambda x, i, j: x[::2, 1::3].at[i, j].get(mode="clip"),
    "backwards": lambda x, i, j: x[::-1].at[i, j].get(mode="clip"),
    "of a transposition": lambda x, i, j: x.T.at[j, i].get(mode="fill"),
    "of what is computed": lambda x, i, j: (x * 3)[i % 13, j],
    "of what is read in part": lambda x, i, j: (x * 3)[2:9, ::4][i % 7, j % 5],
    "of what every lane reads": lambda x, i, j: x[i % 13, j % 29] * x[0, 0],
    "of what it puts out": lambda x, i, j: [x * 2, (x * 2)[i % 13, j % 29]],
    "of a result of rows": lambda x, i, j: x[:, jnp.argmax(x, axis=1)[i % 13]],
    "read in part": lambda x, i, j: x[i % 13, j % 29][:2, ::7] + 1,
    "transposed": lambda x, i, j: x[i % 13, j % 29].T + x.T[j % 29][:, :7],
    "summed": lambda x, i, j: jnp.sum(x[i % 13, j % 29] * 2, axis=1),
    "normalised": lambda x, i, j: primal.nn.softmax(x)[i % 13, j % 29],
    "along an axis": lambda x, i, j: jnp.take_along_axis(x, jnp.argsort(-x, axis=1), 1),
    "of batches": lambda x, i, j: primal.vmap(lambda a, b: a[b % 29 + 0 * b])(x[:7], i),
    "of twos": lambda x, i, j: (lambda y: y[i % 13, j % 29] + y[j % 13, i % 29])(x),
    "in a loop": lambda x, i, j: primal.lax.fori_loop(
        0, 3, lambda n, y: y.at[i % 13, j % 29].add(y[(i + n) % 13, j % 29] * 0.5), x
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    def f(x: Any, i: Any, j: Any) -> list[Any]:
        out = CASES[name](x, i, j)
        return out if isinstance(out, list) else [out]

    agree(f, X, I, J, within=64 if name in ("normalised", "in a loop") else 8)


def test_interpolation_is_one_group() -> None:
    def f(x: Any, i: Any, j: Any) -> list[Any]:
        return [primal.scipy.ndimage.map_coordinates(x, [i, j], order=1, mode="nearest")]

    at = [DRAW.random((30, 30)).astype(np.float32) * n for n in X.shape]
    made = agree(f, X, *at, within=1 << 12)  # sums of both signs
    (group,) = [step for step in made.plan.steps if getattr(step, "nodes", None)]
    assert type(group) is Group and [n.word for n in group.nodes].count("take") == 4


def test_indices_in_memory_are_the_routines() -> None:
    def f(x: Any, i: Any) -> list[Any]:
        return [x.reshape(-1).at[i].get(mode="clip", wrap_negative_indices=False)]

    made = agree(f, X, I)
    assert [type(step) for step in made.plan.steps] == [Routine]


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("index", [np.uint8, np.int16, np.int32, np.uint32, np.int64])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint16, np.float16, np.float32, np.int64])
def test_vectors_of_elements_of_an_array_at_the_end_of_memory(
    dtype: Any, index: Any, end: bool
) -> None:
    """Their indices lie there too, less than vectors of them."""
    ends = np.iinfo(index)
    x = fenced((5, 7), dtype, end)
    x[...] = DRAW.integers(0, 2 if dtype == np.bool_ else 100, (5, 7))
    i = fenced((37,), index, end)
    i[...] = DRAW.integers(max(ends.min, -4), 9, 37)
    i[:4] = ends.max, ends.min, 0, 6

    def f(x: Any, i: Any) -> list[Any]:
        def at(x: Any, mode: str = "clip") -> Any:
            kept = tuple(range(x.ndim - 1))
            numbers = primal.lax.GatherDimensionNumbers(kept, (x.ndim - 1,), (x.ndim - 1,))
            return primal.lax.gather(x, i[:, None], numbers, (*x.shape[:-1], 1), mode=mode)

        return [at(x.reshape(-1)), at(x), at(x.T, "fill"), at(x[::-1, ::-2], "fill")]

    made = agree(f, x, i)
    specs = [step.spec for step in made.plan.steps if type(step) is Routine]
    wide = "i4" if i.itemsize <= 4 else "i8"
    assert [spec.counts for spec in specs] == [wide] * 4
    assert {spec.index for spec in specs} == {np.dtype(index).str[1:]}


@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_elements_of_rows_are_gathered_in_units_of_rows_and_of_starts(mode: str) -> None:
    for shape, n in (((3, 600), 1030), ((3000, 9), 9), ((2, 700, 30), 31)):
        x, i = DRAW.standard_normal(shape), DRAW.integers(-shape[-1], shape[-1], n)
        i[:: n // 3] = 2 * shape[-1]
        agree(lambda x, i: [x.at[..., i].get(mode=mode)], x, i)


LINES: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.T,
    "backwards": lambda x: x[::-1, ::-2],
    "repeated": lambda x: jnp.broadcast_to(x[:, None], (40, 3, 50)).T,
    "computed": lambda x: (x * 2).T,
    "several axes": lambda x: x.reshape(40, 5, 10).transpose(1, 2, 0),
}


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("index", [np.int8, np.uint32, np.int64])
@pytest.mark.parametrize("name", LINES)
def test_few_elements_of_a_line_are_taken_where_they_lie(name: str, index: Any, mode: str) -> None:
    x = (DRAW.standard_normal((40, 50)) * 50).astype(np.float16)
    i = DRAW.integers(-100 if index is not np.uint32 else 0, 120, 30).astype(index)
    i[:3] = np.iinfo(index).max, np.iinfo(index).min, 0

    def f(x: Any, i: Any) -> list[Any]:
        line = LINES[name](x).ravel()
        back = line[::-1].at[i].get(mode=mode)
        return [line.at[i * 3].get(mode=mode), line.at[i[::10]].get(mode=mode), back]

    made = agree(f, x, i)
    assert not any(np.prod(getattr(step, "shape", 1)) >= x.size // 2 and name != "computed"
                   for step in made.plan.steps)  # fmt: skip


def test_a_concatenation_of_one_says_nothing_of_what_that_is_a_view_of() -> None:
    def f(x: Any, i: Any) -> list[Any]:
        at = (i * i + 7) % 13
        rest = primal.lax.concatenate([at[:, 2:]], 1)
        numbers = primal.lax.GatherDimensionNumbers((), (0, 1, 2), (0, 1, 2))
        return [primal.lax.gather(x, at, numbers, (1, 1, 1), mode="clip"), rest * 2]

    agree(f, DRAW.random((13, 14, 15)), DRAW.integers(0, 40, (300, 3)).astype(np.int32))


@pytest.mark.parametrize("word", ["add", "multiply", "max", "set"])
def test_one_number_is_scattered_without_looking_at_it_each_time(word: str) -> None:
    def f(x: Any, i: Any) -> list[Any]:
        return [getattr(x.reshape(-1).at[i], word)(3.0)]

    made = agree(f, X, I.reshape(-1))
    (spec,) = [s.spec for s in made.plan.steps if type(s) is Routine]
    assert spec.dense and spec.same


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (17,), (5, 0), (5, 3)])
def test_few_elements(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    x = rng.standard_normal((7, 5)).astype(np.float32)
    i = rng.integers(-7, 7, shape).astype(np.int32)

    def chosen(x: Any, i: Any) -> Any:
        return x[i, i % 5] * 2

    np.testing.assert_array_equal(primal.jit(chosen)(x, i), chosen(x, i))
    np.testing.assert_array_equal(primal.jit(chosen)(x.T.copy().T, i), chosen(x, i))


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize(
    "dtype, index",
    [("float32", "int32"), ("int8", "uint64"), ("bool", "int8"), ("complex64", "int64"),
     ("float16", "uint8")],
)  # fmt: skip
def test_single_ones_of_few_are_chosen(dtype: str, index: str, mode: str) -> None:
    """Whatever the indices; also others in each row, or those of a table."""
    x = (DRAW.standard_normal((600, 2, 3)) * 50).astype(dtype)
    ends = np.iinfo(index)
    i = DRAW.integers(max(ends.min, -3), 5, (600, 2, 4)).astype(index)
    i[:2, 0, 0] = ends.max, ends.min

    def f(x: Any, i: Any) -> list[Any]:
        each = primal.vmap(lambda x, i: x.at[:, i].get(mode=mode))
        return [
            x.at[:, :, i[0, 0]].get(mode=mode), x.T.at[i[0, 0], :, ::-1].get(mode=mode),
            x.at[:, i[0, 0], :].get(mode=mode), each(x, i[:, 0]), x[0, 0].at[i].get(mode=mode),
        ]  # fmt: skip

    made = agree(f, x, i)
    gathers = [s for s in made.plan.steps if type(s) is Routine and s.name == "gather"]
    assert len(gathers) == (dtype == "complex64")  # rows of two, 16 bytes each, are copied
    # Rows of what lies turned, across which the result's go.
    made = agree(lambda x, i: [x.T.at[:, i[:4, 0, 0]].get(mode=mode)], x[:, 0].T.copy(), i)
    assert not any(type(s) is Routine and s.name == "gather" for s in made.plan.steps)


@pytest.mark.parametrize("dtype", ["int8", "float64"])
def test_rows_with_elements_of_their_own(dtype: str) -> None:
    """While one is read the next is asked for; nothing is compiled for other sizes."""

    def f(x: Any, i: Any) -> list[Any]:
        along = jnp.take_along_axis(x, i, x.ndim - 1)
        return [along, primal.vmap(lambda x, i: x.at[i].get(mode="clip"))(x, i) * 2]

    def counted(*shape: int) -> int:
        before = counters.kernels
        x = (DRAW.standard_normal(shape[:-1]) * 50).astype(dtype)
        i = DRAW.integers(-3 * shape[-2], 3 * shape[-2], (*shape[:-2], shape[-1])).astype(np.int32)
        made = agree(f if len(shape) < 4 else lambda x, i: f(x, i)[:1], x, i)
        assert not any(type(step) is Routine for step in made.plan.steps)
        return counters.kernels - before

    counted(40, 33, 50)
    counted(3000, 10, 10)
    assert not counted(30, 47, 61) and not counted(7, 1000, 1100) and not counted(2100, 9, 11)
    for shape in ((1, 40, 35), (40, 1, 35), (300, 5, 1), (3, 5, 40, 33), (2, 3, 1, 19)):
        counted(*shape)


@pytest.mark.parametrize("shape", [(0, 40, 35), (3, 0, 5, 4), (3, 5, 0)])
def test_no_rows_and_no_elements(shape: tuple[int, ...]) -> None:
    x, i = np.ones(shape[:-1]), np.ones((*shape[:-2], shape[-1]), int)
    got = primal.jit(lambda x, i: jnp.take_along_axis(x, i + 1, -1))(x, i)
    assert got.shape == i.shape and not got.size

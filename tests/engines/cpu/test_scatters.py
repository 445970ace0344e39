"""What is written at a known place is written by who computes it: NumPy's values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import grad, jit, lax, vmap
from primal.base.config import cpu_engine
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.run.objects import counters
from primal.engines.cpu.steps import Loop, Move
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import HALF, built, numpy_run, spoiled

DRAW = np.random.default_rng(0)


def add_rows(x: Any, start: int, mode: str) -> Any:
    """199 rows more from a row on, of 200."""
    rows = lax.ScatterDimensionNumbers((0, 1), (), (0,))
    return lax.scatter_add(x, lax.full((1,), start, jnp.int32), x[:199], rows, mode=mode)


CASES: dict[str, Any] = {
    "first row stays": lambda x: x.at[1:].multiply(2),
    "both ends stay": lambda x: x.at[2:-3].add(x[5:]),
    "last row stays": lambda x: x.at[:-1].add(x[1:]),
    "one line": lambda x: x.ravel().at[5:-1].max(2),
    "behind a single one": lambda x: x[None].at[0, 1:].min(x[:-1]),
    "the other dimension": lambda x: x.at[:, 1:].add(3),
    "both": lambda x: x.at[1:, 1:].add(3),
    "dropped": lambda x: add_rows(x, 2, "fill"),
    "clamped": lambda x: add_rows(x, 2, "clip"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "float64"])
def test_values(name: str, dtype: str) -> None:
    x = (DRAW.standard_normal((200, 130)) * 50).astype(jnp.dtype(dtype))
    x[::3, 5] = 0
    x[1::3, 7] = -np.float32(0)
    f = CASES[name]
    (got,) = built(lambda x: [f(x)], x).execute([x])
    (want,) = numpy_run(lambda x: [f(x)], x)
    np.testing.assert_array_equal(got, want)
    if x.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize(
    "name", ["first row stays", "both ends stay", "last row stays", "one line"]
)
def test_nothing_is_copied_first(name: str) -> None:
    x = np.ones((200, 130), np.float32)
    made = built(lambda x: [CASES[name](x)], x)
    names = [type(spec).__name__ for spec in made.plan.specs]
    assert "Scatter" not in names and "Rows" in names


TURNED: dict[str, Any] = {
    "edges stay": lambda x: x.T.at[1:-1].set(3),
    "the first stay": lambda x: lax.dynamic_update_slice_in_dim(x.T, x.T[:-9], 7, 0),
    "columns stay": lambda x: x.T.at[:, 2:-3].set(x.T[:, 5:] + x.T[:, :-5]),
    "one is written": lambda x: jnp.moveaxis(x, 0, -1).at[..., 4].set(-1),
}


@pytest.mark.parametrize("name", TURNED)
@pytest.mark.parametrize("shape", [(200, 130), (30, 40, 50)])
@pytest.mark.parametrize("dtype", ["int8", "float32", "bfloat16", "complex128"])
def test_nothing_is_turned_that_is_written_over(
    name: str, shape: tuple[int, ...], dtype: str
) -> None:
    x = (DRAW.standard_normal(shape) * 50).astype(jnp.dtype(dtype))
    f = TURNED[name]
    made = built(lambda x: [f(x)], x)
    assert "Window" not in [type(spec).__name__ for spec in made.plan.specs]
    (got,), (want,) = made.execute([x]), numpy_run(lambda x: [f(x)], x)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("shape", [(40_000, 3), (3, 40_000), (200, 130)])
@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
def test_windows_of_what_lies_turned(shape: tuple[int, ...], dtype: str) -> None:
    """Where known or only at run time, of few columns or of long ones."""
    x, y = [(DRAW.standard_normal(shape) * 50).astype(dtype) for _ in range(2)]
    i, wide = np.int32(1), shape[0] // 2

    def f(x: Any, y: Any, i: Any) -> list[Any]:
        return [
            x.T.at[1:-1].set(0),
            lax.dynamic_update_slice_in_dim(x.T, y.T[1:], i, 0),
            lax.dynamic_update_slice_in_dim(x.T, y.T[:, :wide], i, 1),
            lax.dynamic_slice_in_dim(x.T, i, wide, 1),
            lax.dynamic_slice(x.T, (i - 2, i * 7), (2, wide)),
        ]

    found = built(f, x, y, i).execute([x, y, i])
    for got, want in zip(found, numpy_run(f, x, y, i), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_derivative_of_reading_at_several_places_is_one_array(count: int, dtype: str) -> None:
    x = DRAW.integers(-4, 5, (60, 50)).astype(dtype)
    i = DRAW.integers(0, 50, 40)
    holomorphic = {"holomorphic": True} if x.dtype.kind == "c" else {}

    def total(x: Any, i: Any) -> Any:
        return sum((x[i * (n + 2) % 60, i] ** 2 * (n + 1)).sum() for n in range(count))

    f = grad(total, **holomorphic)
    made = built(lambda x, i: [f(x, i)], x, i)
    (got,), (want,) = made.execute([x, i]), numpy_run(lambda x, i: [f(x, i)], x, i)
    np.testing.assert_array_equal(got, want)
    if dtype in ("float32", "complex64"):
        whole = [s for s in made.plan.steps if type(s) is Group and s.shape[:1] in ((60,), (3000,))]
        assert len(whole) == 1  # the zeros


def test_signs_of_zeros_of_what_windows_are_added_to() -> None:
    x, y = np.full((2, 300), -0.0, np.float32)
    i = np.array([3, 5])

    def f(x: Any, y: Any, i: Any) -> list[Any]:
        added = jnp.zeros(300, jnp.float32).at[i].add(1)
        twice = jnp.zeros(300, jnp.float32).at[i].add(-0.0)
        return [x + added, twice + y, added + twice, twice]

    for got, want in zip(built(f, x, y, i).execute([x, y, i]), numpy_run(f, x, y, i), strict=True):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


INNER = np.s_[1:-1, 1:-1]
STEPS: dict[str, Any] = {
    "read where it is written": lambda x, y: (x.at[INNER].add(y[INNER] - y[1:-1, :-2]), y * 0.5),
    "read beside": lambda x, y: (x.at[INNER].add(x[2:, 1:-1] - x[1:-1, :-2]), y),
    "carries change places": lambda x, y: (y.at[INNER].set(x[1:-1, 2:] - x[:-2, 1:-1]), x),
    "columns": lambda x, y: (x.at[:, 1:].multiply(y[:, :-1]), y),
    "one column": lambda x, y: (x.at[:, 3].multiply(y[:, 4] * 2), y),
    "few rows": lambda x, y: (x.at[2:5].set(y[1:4] + x[2:5]), y),
    "one after another": lambda x, y: (x.at[1:].add(y[:-1]).at[:-1].multiply(y[1:]), y),
    "the old one is read too": lambda x, y: (x.at[1:].add(y[1:] * 2), x),
    "what is made beside it": lambda x, y: ((x * y).at[INNER].add(y[INNER] * 2), x + y),
}


@pytest.mark.parametrize("first", [0, 50, 100])
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_windows_of_what_a_reshape_put_in_order(first: int, dtype: str) -> None:
    """From its beginning or to its end nothing lies before or behind the window."""
    x = DRAW.integers(-3, 4, (200, 300)).astype(dtype)
    last, line = first + 200, slice(first * 200, first * 200 + 40000)

    def run(x: Any) -> list[Any]:
        rows = x.T.reshape(300, 200).at[first:last].multiply(2)
        return [rows, (x + 1).T.ravel().at[line].add(1), jnp.repeat(x, 3, 1).at[:150].set(1)]

    for a, b in zip(built(run, x).execute([x]), numpy_run(run, x), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("shape", [(5, 7), (33, 20), (140, 131)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "complex64"])
def test_windows_in_loops(name: str, shape: Any, dtype: str) -> None:
    # Whole numbers: products with sums are not rounded.
    x, y = [DRAW.integers(-3, 4, shape).astype(dtype) for _ in range(2)]

    def run(x: Any, y: Any) -> list[Any]:
        turn = STEPS[name]

        def step(_: Any, c: Any) -> Any:
            return tuple([v.astype(dtype) for v in turn(*c)])

        return [*lax.fori_loop(0, 3, step, (x, y)), *step(0, (x, y))]

    got = built(run, x, y).execute([x, y])
    for a, b in zip(got, numpy_run(run, x, y), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_window_is_written_in_place_by_who_computes_it() -> None:
    def run(x: Any, y: Any) -> list[Any]:
        return [lax.fori_loop(0, 9, lambda _, c: c.at[INNER].add(y[INNER] * c[INNER]), x)]

    made = built(run, *np.ones((2, 64, 64), np.float32))
    (loop,) = [step for step in made.plan.steps if type(step) is Loop]
    assert [type(step) for step in loop.body.steps] == [Move, Group]
    (carried,) = loop.body.outs
    assert carried.home is loop.params[0].home


@pytest.mark.parametrize("run", [512, 777, 5000, 70_001])
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128"])
def test_threads_share_long_rows_that_meet(run: int, dtype: str) -> None:
    """Each strip of them takes all updates in order; the last strip has what is left."""
    rng = np.random.default_rng(run)
    count = 40_000 // run + 2
    x = rng.integers(-9, 9, (4, run)).astype(dtype)
    y = rng.integers(-9, 9, (count, run)).astype(dtype)
    i = rng.integers(-4, 6, count).astype(np.int32)

    def f(x: Any, i: Any, y: Any) -> list[Any]:
        return [x.at[i].add(y), x.at[i].set(y), x.at[i, 1:].add(y[:, 1:], mode="clip")]

    inside = i < 4
    wanted = [x.copy() for _ in range(3)]
    np.add.at(wanted[0], i[inside], y[inside])
    for at, row in zip(i[inside], y[inside], strict=True):
        wanted[1][at] = row
    np.add.at(wanted[2], np.where(i < 0, i + 4, np.minimum(i, 3)), y * (np.arange(run) > 0))
    for got, want in zip(built(f, x, i, y).execute([x, i, y]), wanted, strict=True):
        np.testing.assert_array_equal(got, want)


COMPLEX: dict[str, Any] = {
    "rows": lambda x, i, y: x.at[i].add(y[: i.size]),
    "columns": lambda x, i, y: x.at[:, i].add(y[:, : i.size]),
    "columns of a transposed array": lambda x, i, y: x.T.at[:, i].add(y.T[:, : i.size]),
    "rows of a transposed array": lambda x, i, y: x.T.at[i].add(y.T[: i.size]),
    "rows that lie across": lambda x, i, y: x.at[i].add(y.T[: i.size, 3:33]),
    "elements": lambda x, i, y: x.at[i, i].add(y[0, : i.size]),
    "elements of a line": lambda x, i, y: x.ravel().at[i].add(y[: i.size, 1]),
    "one number": lambda x, i, y: x.at[i].add(2 - 1j),
    "the same number": lambda x, i, y: x.ravel().at[i].add(y[0, 0]),
    "some that are outside": lambda x, i, y: x.at[i * 7].add(y[: i.size], mode="drop"),
    "windows": lambda x, i, y: x.at[i, 1:].add(y[: i.size, 1:]),
    "to zeros": lambda x, i, y: lax.full((60, 30), 0, x.dtype).at[i].add(y[: i.size]) * y[:60],
    "differences": lambda x, i, y: x.at[i].subtract(y[: i.size]),
    "products": lambda x, i, y: x.at[i].multiply(y[: i.size]),
    "products in columns": lambda x, i, y: x.at[:, i].multiply(y[:, : i.size]),
    "the greatest of rows": lambda x, i, y: x.at[i].max(y[: i.size]),
    "the least of elements": lambda x, i, y: x.ravel().at[i].min(y[: i.size, 1]),
    "the least of columns": lambda x, i, y: x.at[:, i].min(y[:, : i.size]),
    "the greatest that are inside": lambda x, i, y: x.at[i * 7].max(y[: i.size], mode="drop"),
    "the least and one number": lambda x, i, y: x.at[i].min(1j),
    "the greatest in a loop": lambda x, i, y: (
        lax.fori_loop(0, 3, lambda k, x: x.at[i + k].max(y[:25]), x)
    ),
    "in a loop": lambda x, i, y: lax.fori_loop(0, 3, lambda k, x: x.at[i + k].add(y[:25]), x),
    "in a strip": lambda x, i, y: (
        lax.full((5, 2000), 1, x.dtype).at[i % 5].add(jnp.tile(y[: i.size], (1, 70))[:, :2000])
    ),
}


@pytest.mark.parametrize("end", (False, True))
@pytest.mark.parametrize("dtype", (np.complex64, np.complex128))
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers_are_added_as_such(name: str, dtype: Any, end: bool) -> None:
    """In the order of the updates, and none beyond either end of an array."""
    x, y, i = fenced((60, 30), dtype, end), fenced((60, 30), dtype, end), fenced((25,), "i4", end)
    for z in (x, y):
        z[...] = DRAW.standard_normal((60, 30)) + 1j * DRAW.standard_normal((60, 30))
    i[...] = DRAW.integers(-20, 29, 25)
    f = COMPLEX[name]
    made = built(lambda x, i, y: [f(x, i, y)], x, i, y)
    (got,), (want,) = made.execute([x, i, y]), numpy_run(lambda x, i, y: [f(x, i, y)], x, i, y)
    if "products" in name:
        scale = 9 * np.finfo(dtype).eps
        np.testing.assert_allclose(got, want, scale, scale)
    else:
        np.testing.assert_array_equal(got, want)
    if "in a loop" not in name:
        assert sum([type(spec).__name__ == "Scatter" for spec in made.plan.specs]) == 1


SPECIAL = [0, -0.0, 1, np.inf, -np.inf, np.nan, 2]


@pytest.mark.parametrize("dtype", (np.complex64, np.complex128))
def test_extrema_of_complex_numbers_are_those_of_numpy(dtype: Any) -> None:
    """By real, then by imaginary part; NaN in either wins, and the first of equals stays."""
    every = np.array([complex(a, b) for a in SPECIAL for b in SPECIAL], dtype)
    x, y = np.repeat(every, len(every)), np.tile(every, len(every))
    i = DRAW.permutation(x.size)
    for name, ufunc in (("max", np.maximum), ("min", np.minimum)):

        def f(x: Any, i: Any, y: Any, name: str = name) -> list[Any]:
            rows = getattr(x.reshape(-1, 7).at[i[:99] % 40], name)(y.reshape(-1, 7)[:99])
            return [getattr(x.at[i], name)(y[i]), rows]

        (all_, rows), (_, want) = built(f, x, i, y).execute([x, i, y]), numpy_run(f, x, i, y)
        assert all_.tobytes() == ufunc(x, y).tobytes()
        assert rows.tobytes() == want.tobytes()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("word", ["max", "min"])
def test_narrow_extrema_are_made_where_the_array_lies(word: str, dtype: str) -> None:
    """Rows, columns and single elements: NumPy's ufunc.at in float32, and zeros as in float32."""
    x, z = [(DRAW.standard_normal(s) * 3).astype(jnp.dtype(dtype)) for s in ((50, 37), (200, 37))]
    x[::3, ::5], z[::4, ::3], z[7, 3] = 0, -np.float32(0), np.nan
    at = DRAW.integers(-50, 50, 200).astype(np.int32)
    ufunc = {"max": np.maximum, "min": np.minimum}[word]
    for f, index, places, values in (
        (lambda x, at, z: getattr(x.at[at], word)(z), at, (at,), z),
        (lambda x, at, z: getattr(x.at[at, 3], word)(z[:, 5]), at, (at, 3), z[:, 5]),
        (
            lambda x, at, z: getattr(x.at[:, at], word)(z[:50, :1]),
            at % 37, (slice(None), at % 37), z[:50, :1],
        ),
    ):  # fmt: skip
        made = built(lambda x, at, z, f=f: [f(x, at, z)], x, index, z)
        want = x.astype(np.float32)
        ufunc.at(want, places, values.astype(np.float32))
        (got,) = made.execute([x, index, z])
        np.testing.assert_array_equal(got.astype(np.float32), want)
        wide = [x.astype(np.float32), index, z.astype(np.float32)]
        (one,) = built(lambda x, at, z, f=f: [f(x, at, z)], *wide).execute(wide)
        zeros = want == 0
        np.testing.assert_array_equal(np.signbit(got)[zeros], np.signbit(one)[zeros])


@pytest.mark.parametrize("word", ["max", "min", "add", "multiply"])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16", "float32", "int64"])
def test_short_rows_are_combined_in_one_vector(dtype: str, word: str) -> None:
    """Of lengths that are part of the code: nothing of a neighbour is read or written."""
    if dtype == "bool" and word in ("add", "multiply"):
        pytest.skip("no arithmetic of booleans")
    item = np.dtype(dtype).itemsize
    for width in sorted({1, 2, 3, 32 // item - 1, 32 // item}):
        x = (DRAW.standard_normal((9, width)) * 5).astype(dtype)
        y, i = fenced((40, width), dtype, True), DRAW.integers(0, 9, 40).astype(np.int32)
        y[...] = (DRAW.standard_normal((40, width)) * 5).astype(dtype)

        def f(x: Any, i: Any, y: Any) -> list[Any]:
            return [getattr(x.at[i], word)(y)]

        (got,), (want,) = built(f, x, i, y).execute([x, i, y]), numpy_run(f, x, i, y)
        np.testing.assert_array_equal(got, want)


HALVES: dict[str, Any] = {
    "single ones": lambda x, i, y: x.ravel().at[i * 5].add(y.ravel()[:40]),
    "one number": lambda x, i, y: x.ravel().at[i].multiply(1.25),
    "by coordinates": lambda x, i, y: x.at[i, i % 7].add(y[0, :40], mode="drop"),
    "rows": lambda x, i, y: x.at[i % 90].add(y[:40]),
    "clamped": lambda x, i, y: x.at[i].multiply(y[:40], mode="clip"),
    "columns": lambda x, i, y: x.at[:, i].add(y[:, :40]),
    "transposed": lambda x, i, y: x.at[i % 50].add(y.T[:40, :60]),
    "in a loop": lambda x, i, y: lax.fori_loop(0, 3, lambda n, x: x.at[i + n].add(y[:40]), x),
    "sums of rows": lambda x, i, y: jnp.zeros((5, 60), x.dtype).at[i % 5].add(y[:40]),
    "sums": lambda x, i, y: jnp.zeros(7, x.dtype).at[i % 7].add(y[0, :40] * 2),
}


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("rows", [120, 3000])
def test_halves_are_rounded_once(rows: int, dtype: str, name: str) -> None:
    """Where all of an array is held as float32 meanwhile, and where what is updated is."""
    x, y = ((DRAW.standard_normal((rows, 60)) * 9).astype(jnp.dtype(dtype)) for _ in range(2))
    i = DRAW.integers(-20, 130, 40).astype(np.int32)
    i[::3] = i[0]

    def f(x: Any, i: Any, y: Any) -> list[Any]:
        return [HALVES[name](x, i, y)]

    with spoiled():
        (got,) = built(f, x, i, y).execute([x, i, y])
    np.testing.assert_array_equal(got, numpy_run(f, x, i, y)[0])


@HALF
def test_few_halves_are_converted_where_they_lie() -> None:
    x, i = np.ones(100_000, np.float16), DRAW.integers(0, 100_000, 500)
    made = built(lambda x, i: [x.at[i].add(1)], x, i)
    assert max([np.prod(s.shape) for s in made.plan.steps if type(s) is Group]) == 500


@pytest.mark.parametrize("engine", ["cpu", "xla", "reference"])
@pytest.mark.parametrize("shape", [(), (1,), (40,), (3, 20), (2, 3, 4)], ids=str)
def test_windows_of_all_dimensions(shape: tuple[int, ...], engine: str) -> None:
    """`.at[...]` has indices without elements: each of several windows is combined in once."""
    x = DRAW.integers(-9, 9, shape).astype(np.float32)
    y, many = 2 * x + 1, DRAW.integers(-9, 9, (3, *shape)).astype(np.float32)
    numbers = lax.ScatterDimensionNumbers(tuple(range(1, 1 + len(shape))), (), ())
    none = np.zeros((3, 0), np.int32)

    def f(x: Any, y: Any, many: Any) -> list[Any]:
        at = x.at[...]
        ways = [at.set(y), at.add(y), at.multiply(y), at.min(y), at.max(y), at.subtract(y)]
        halved = x.at[...].apply(lambda v: v / 2)
        return [*ways, halved, lax.scatter_add(x, none, many, numbers),
                vmap(lambda y: x.at[...].multiply(y))(many)]  # fmt: skip

    with cpu_engine(engine):
        got = jit(f)(*map(jnp.asarray, (x, y, many)))
    want = [
        y, x + y, x * y, np.minimum(x, y), np.maximum(x, y), x - y, x / 2, x + many.sum(0), x * many
    ]
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_windows_of_all_dimensions_call_no_library() -> None:
    x = np.ones((30, 40), np.float32)
    made = built(lambda x: [x.at[:].add(x), x.at[::-1].max(2), x.at[3:3].multiply(2)], x)
    assert all(type(step) in (Group, Move) for step in made.plan.steps)


WORDS = {"add": np.add, "subtract": np.subtract, "max": np.maximum}


@pytest.mark.parametrize("n", [3, 5, 8, 15, 16, 17, 20, 33, 100, 255, 256])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_windows_of_few_elements_in_loops(n: int, dtype: str, x64: None) -> None:
    x = DRAW.integers(-9, 9, n).astype(dtype)
    steps: list[Any] = [
        lambda u, at: at(u, slice(1, -1), "add", u[2:] - 2 * u[1:-1] + u[:-2]),
        lambda u, at: at(u, slice(1, None), "subtract", u[:-1]),
        lambda u, at: at(u, slice(n // 2, None), "max", -u[n // 2 :]),
        lambda u, at: at(u, slice(1, -1), "set", u[2:] - u[:-2] + u[1:-1] * 2),
        lambda u, at: at(at(u, slice(0, 2), "max", u[-2:]), 1, "add", u[0]),
    ]

    def plain(u: Any, where: Any, how: str, v: Any) -> Any:
        out = u.copy()
        out[where] = v if how == "set" else WORDS[how](u[where], v)
        return out

    def ours(u: Any, where: Any, how: str, v: Any) -> Any:
        return getattr(u.at[where], how)(v)

    for step in steps:
        got = jit(lambda x, s=step: lax.fori_loop(0, 4, lambda i, u: s(u, ours), x))(x)
        want = x
        for _ in range(4):
            want = step(want, plain)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", [17, 31, 100, 255])
def test_most_of_a_vector_is_written_by_one_group(n: int) -> None:
    """Also by words that read beside what they make; zeros have their signs."""
    x = DRAW.choice(np.float32([0, -0.0, 1, np.nan, np.inf, -3]), n)
    ways = [
        lambda u: u.at[1:-1].add(0.5 * (u[2:] - u[:-2])),
        lambda u: u.at[2:].set(-u[:-2]),
        lambda u: u.at[: n - 3].multiply(-1),
    ]
    for way in ways:
        made = built(lambda x, w=way: [lax.fori_loop(0, 3, lambda i, u: w(u), x)], x)
        (loop,) = [step for step in made.plan.steps if type(step) is Loop]
        assert [type(step) for step in loop.body.steps] == [Group]
        want: Any = jnp.asarray(x)
        for _ in range(3):
            want = way(want)
        (got,) = made.execute([x])
        np.testing.assert_array_equal(got, want)
        given = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[given]), np.signbit(want[given]))


@pytest.mark.parametrize("n", [1, 15, 17, 20, 255, 256])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int8"])
def test_vectors_that_loops_write_whole(n: int, dtype: str) -> None:
    x = DRAW.integers(-9, 9, n).astype(dtype)
    want = x
    for _ in range(3):
        want = want + want - x
    for start in (lambda i: 0, lambda i: i):

        def f(x: Any, start: Any = start) -> list[Any]:
            step = lambda i, u: lax.dynamic_update_slice(u, u + u - x, (start(i),))  # noqa: E731
            return [lax.fori_loop(0, 3, step, x)]

        (got,) = built(f, x).execute([x])
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("n", [2, 15, 16, 17, 33])
def test_loops_combine_single_halves(n: int, dtype: str) -> None:
    x, y = (DRAW.integers(-9, 9, m).astype(jnp.dtype(dtype)) for m in (n, 1))
    for i in np.int32([[0], [n - 1], [n]]):

        def f(x: Any, i: Any, y: Any) -> list[Any]:
            step = lambda _, u: u.at[i].add(y, mode="drop")  # noqa: E731
            return [lax.fori_loop(0, 3, step, x)]

        (got,), (want,) = built(f, x, i, y).execute([x, i, y]), numpy_run(f, x, i, y)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", ["clip", "fill"])
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
@pytest.mark.parametrize("first", [(0, 0), (3, 2), (-1, 4), (2**31 - 1, 0)])
def test_the_window_of_a_gather_at_a_known_place_is_a_slice(
    first: tuple[int, int], dtype: str, mode: str
) -> None:
    x = DRAW.integers(-50, 50, (7, 9)).astype(dtype)
    rows = lax.GatherDimensionNumbers((0,), (0,), (0, 1))

    def run(x: Any) -> list[Any]:
        at = jnp.stack([lax.full((), n, jnp.int32) for n in first])
        return [lax.gather(x, at, rows, (1, 4), mode=mode, fill_value=7)]

    made = built(run, x)
    assert "gather" not in made.as_text()
    for got, want in zip(made.execute([x]), numpy_run(run, x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_derivatives_of_windows_read_slices_in_loops() -> None:
    def loss(x: Any) -> Any:
        return lax.fori_loop(0, 4, lambda _, u: u.at[1:-1].add(0.5 * (u[2:] - u[:-2])), x)[3]

    assert "gather" not in jit(grad(loss)).lower(np.ones(40, np.float32)).compile().as_text()


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint64", "float16", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(9, 40), (1, 41), (33, 47), (40,), (2, 5, 19), (0, 40)])
def test_elements_in_turn_are_put_together(shape: tuple[int, ...], dtype: str) -> None:
    """Of rows, with what others lie between; NumPy's bits, and nothing compiled for other sizes."""
    x, step = DRAW.integers(0, 2 if dtype == "bool" else 50, shape).astype(dtype), len(shape) + 1
    words = ["set", "add", "multiply", "min"][: 1 if dtype in ("bool", "complex64") else 4]

    def run(x: Any, u: Any) -> list[Any]:
        def at(x: Any, low: int, stop: int | None = None) -> Any:
            return x.at[..., low:stop:step]

        out = [getattr(at(x, 1), w)(u[..., 1::step]) for w in words]
        out += [at(x.T, 0).set(u.T[..., ::step]), x.at[..., 1::3].set(x[..., ::3][..., :1])]
        out += [at(x, low, -low).set(True) for low in (1, 4, 5)]
        return [*out, at(x, 0, -1).set(True), at(x[::-1], 1).set(u[..., 1::step])]

    u = np.ascontiguousarray(x[..., ::-1])
    made = built(run, x, u)
    with spoiled():
        got = made.execute([x, u])
    for a, b in zip(got, numpy_run(run, x, u), strict=True):
        np.testing.assert_array_equal(a, b)


def test_elements_in_turn_are_no_scatter_of_any_size() -> None:
    def run(x: Any) -> list[Any]:
        return [x.at[:, ::2].multiply(x[:, 1::2])]

    for n, new in ((40, True), (64, False), (1000, False)):
        before = counters.kernels
        made = built(run, np.ones((n + 3, n), np.float32))
        assert "scatter" not in made.as_text() and (counters.kernels > before) == new


EVERY, BACK, SOME = slice(None), slice(-1, None, -2), slice(1, -2, 3)


@pytest.mark.parametrize("key", [(EVERY, SOME), (BACK, SOME), (SOME,), (3, BACK), (BACK, 0)])
def test_derivatives_of_what_takes_turns_read_slices(key: tuple[Any, ...]) -> None:
    x = DRAW.standard_normal((37, 41, 2)).astype(np.float32)
    u, w = x[key] * 2, x + 1

    def loss(x: Any, u: Any, w: Any) -> Any:
        return (x.at[key].set(u) ** 2 * w).sum()

    made = built(lambda *xs: list(grad(loss, (0, 1))(*xs)), x, u, w)
    assert "gather" not in made.as_text()
    dx, du = made.execute([x, u, w])
    np.testing.assert_array_equal(du, 2 * u * w[key])
    w[key] = 0
    np.testing.assert_array_equal(dx, 2 * x * w)


@pytest.mark.parametrize("index", ["int8", "int32", "uint8"])
@pytest.mark.parametrize(("step", "low"), [(2, 0), (-2, 300), (4, 1), (2, -1), (0, 3)])
def test_places_that_wrap_or_leave_the_array_are_no_turns(step: int, low: int, index: str) -> None:
    at = lax.ScatterDimensionNumbers((0,), (1,), (1,))

    def run(x: Any, u: Any) -> list[Any]:
        i = lax.iota(index, 150) * lax.full((), step, "int32").astype(index)
        i = i + lax.full((), low, "int32").astype(index)
        return [lax.scatter_add(x, i[:, None], u, at, mode="drop")]

    x, u = np.zeros((4, 300), np.int32), DRAW.integers(0, 9, (4, 150), dtype=np.int32)
    (got,), (want,) = built(run, x, u).execute([x, u]), numpy_run(run, x, u)
    np.testing.assert_array_equal(got, want)

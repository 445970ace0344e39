"""gather, scatter, slices at run-time starts, concatenation, padding: any index, any layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import primal
import primal.numpy as jnp
from primal import lax, vmap
from primal.engines.cpu.routines import moves
from primal.engines.cpu.run.objects import counters
from primal.engines.cpu.steps import Library, Loop, Routine
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import Flat, agree, built, numpy_run, spoiled

RNG = np.random.default_rng(0)
X = RNG.standard_normal((10, 7)).astype(np.float32)
I = RNG.integers(-15, 15, 5).astype(np.int32)  # noqa: E741
J = RNG.integers(-9, 9, (5, 3)).astype(np.int32)
V = RNG.standard_normal((5, 7)).astype(np.float32)
S = (1, -2, 9)

CASES: dict[str, Any] = {
    "rows": (lambda x, i: jnp.take(x, i, axis=0), X, I),
    "columns": (lambda x, i: jnp.take(x, i, axis=1), X, I),
    "clip": (lambda x, i: jnp.take(x, i, axis=0, mode="clip"), X, I),
    "along": (lambda x, j: jnp.take_along_axis(x[:5], j, axis=1), X, J),
    "index": (lambda x, i: x[i], X, I),
    "elements": (lambda x, i: x[i, i], X, I),
    "second": (lambda x, j: x[:, j], X, J),
    "one": (lambda x, i: x[i[0]], X, I),
    "fill": (lambda x, i: x.at[i].get(mode="fill"), X, I),
    "fill elements": (lambda x, i: x.at[i, i].get(mode="fill", fill_value=3.0), X, I),
    "of a transpose": (lambda x, i: x.T[i], X, I),
    "batched": (lambda x, j: vmap(lambda a, b: a[b])(x[:5], j), X, J),
    "promise": (lambda x, i: x.at[i].get(mode="promise_in_bounds"), X, I),
    "add": (lambda x, i, v: x.at[i].add(v), X, I, V),
    "set": (lambda x, i, v: x.at[i].set(v), X, I, V),
    "multiply": (lambda x, i, v: x.at[i].mul(v), X, I, V),
    "max": (lambda x, i, v: x.at[i].max(v), X, I, V),
    "min columns": (lambda x, i: x.at[:, i[:3] % 7].min(0.1), X, I),
    "add elements": (lambda x, j: x.at[:5, j[:, 0]].add(1.0), X, J),
    "add clipped": (lambda x, i, v: x.at[i].add(v, mode="clip"), X, I, V),
    "add to computed": (lambda x, i, v: (x * 2).at[i].add(v), X, I, V),
    "add to zeros": (lambda i, v: jnp.zeros((9, 7), v.dtype).at[i].add(v), I, V),
    "slice": (lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (3, 4)), X, I),
    "slice half known": (lambda x, i: lax.dynamic_slice(x, (2, i[1]), (3, 5)), X, I),
    "slice of a transpose": (lambda x, i: lax.dynamic_slice(x.T, (i[0], i[2]), (3, 2)), X, I),
    "slice known": (lambda x: lax.dynamic_slice(x, (9, -5), (3, 2)), X),
    "update": (lambda x, i, v: lax.dynamic_update_slice(x, v[:3, :2], (i[0], i[1])), X, I, V),
    "update half known": (
        lambda x, i, v: lax.dynamic_update_slice(x, v[:3, :2] * 2, (4, i[1])), X, I, V,
    ),
    "update known": (lambda x, v: lax.dynamic_update_slice(x, v[:3, :2], (4, 2)), X, V),
    "update all": (lambda x, i, v: lax.dynamic_update_slice(x * 2, v, (i[3], 0)), X, I, V),
    "rows joined": (lambda x, v: jnp.concatenate([x, v, x * 2]), X, V),
    "columns joined": (lambda x, v: jnp.concatenate([x[:5], v, x[5:] + v], axis=1), X, V),
    "stacked": (lambda x, v: jnp.stack([v, x[:5], v], axis=-1), X, V),
    "transposes joined": (lambda x, v: jnp.concatenate([x.T, v.T], axis=1), X, V),
    "padded": (lambda x: jnp.pad(x, ((1, 2), (3, 0))), X),
    "spread": (lambda x: lax.pad(x, np.float32(2), ((1, 2, 1), (-1, -2, 2))), X),
    "cropped": (lambda x, v: lax.pad(x, v[0, 0], ((-3, -4, 0), (-1, 9, 0))), X, V),
    "transpose padded": (lambda x, v: lax.pad(x.T, v[0, 0], ((-3, 8, 1), (-1, 9, 0))), X, V),
    "only padding": (lambda x: lax.pad(x, np.float32(2), ((-10, 3, 0), (0, 0, 0))), X),
    "rolled": (lambda x, i: jnp.roll(x, i[0]), X, I),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "uint16"])
def test_as_numpy(name: str, dtype: str) -> None:
    f, x, *rest = CASES[name]
    if dtype == "bool" and name not in ("rows", "set", "slice", "stacked", "index", "fill", "max"):
        pytest.skip("no arithmetic of booleans")
    cast = [a.astype(dtype) if a.dtype == np.float32 else a for a in (x, *rest)]
    if name in ("min columns", "add elements") and dtype[0] != "f":
        pytest.skip("its scalar is a float")
    if name in ("spread", "cropped", "transpose padded", "only padding") and dtype != "float32":
        pytest.skip("its scalar is of float32")
    made = agree(lambda *xs: [f(*xs)], *cast)
    steps = made.plan.program.block.steps
    assert not any(isinstance(s, Library) for s in steps)


@given(
    rows=st.integers(1, 9),
    width=st.integers(1, 70),
    indices=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=9),
    mode=st.sampled_from(["clip", "fill", "promise_in_bounds"]),
    wide=st.sampled_from(["int8", "int32", "uint32", "int64", "uint64"]),
)
def test_no_index_leaves_the_array(
    rows: int, width: int, indices: list[int], mode: str, wide: str
) -> None:
    x = np.arange(rows * width, dtype=np.int32).reshape(rows, width)
    i = np.array(indices, np.int64).astype(wide)
    agree(lambda x, i: [x.at[i].get(mode=mode), x.at[i].add(1, mode=mode)], x, i)


def test_updates_that_meet_come_in_order() -> None:
    x = np.zeros(3, np.float32)
    i = np.array([1, 1, 2, 1, 2, 7, 1])
    v = np.arange(7, dtype=np.float32) + 1e8
    agree(lambda x, i, v: [x.at[i].set(v), x.at[i].add(v), x.at[i].mul(v)], x, i, v)


@pytest.mark.parametrize("name", [n for n in CASES if n.startswith(("add", "set", "max", "mul"))])
def test_many_updates_come_in_several_steps(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between them signals are looked for; results and memory are those of one."""
    f, *xs = CASES[name]
    whole = built(lambda *xs: [f(*xs)], *xs)
    monkeypatch.setattr(moves, "ROUND", 8)
    parts = agree(lambda *xs: [f(*xs)], *xs)
    assert len(parts.plan.steps) >= len(whole.plan.steps)
    assert parts.plan.arena == whole.plan.arena


def test_updates_in_several_steps_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "ROUND", 3)
    x, i, v = np.zeros(3, np.float32), np.array([1, 1, 2, 1, 2, 7, 1]), np.arange(7.0) + 1e8
    f = lambda x, i, v: [x.at[i].set(v), x.at[i].add(v)]  # noqa: E731
    steps = agree(f, x, i, v.astype(np.float32)).plan.steps
    assert sum(type(s) is Routine for s in steps) >= 6


def test_updates_of_columns_come_in_order() -> None:
    x = np.zeros((300, 7, 2), np.float32)
    i = np.array([1, 1, 2, 1, 2, 7, 1, -1])
    v = RNG.standard_normal((300, 8, 2)).astype(np.float32)

    def f(x: Any, i: Any, v: Any) -> list[Any]:
        w, columns = v[:, :, 0].T, x.at[:, i]
        return [columns.set(v), x.at[:, i, 1].add(w.T), x.at[:, i, 0].set(2.0), columns.mul(3)]

    agree(f, x, i, v)


def test_pieces_of_a_split_are_joined_at_once() -> None:
    def f(a: Any, b: Any, c: Any) -> list[Any]:
        zero = np.float32(0)
        parts = [
            lax.pad(x, zero, ((0, 0, 0), (at, 16 - at, 0)))
            for x, at in ((a, 0), (b, 8), (c, 16))
        ]
        return [parts[0] + parts[2] + parts[1]]

    xs = [RNG.standard_normal((6, 8)).astype(np.float32) for _ in range(3)]
    xs[0][0, 0] = -0.0
    made = agree(f, *xs)
    assert not any(isinstance(s, Routine) for s in made.plan.program.block.steps)
    (got,) = made.execute(xs)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(numpy_run(f, *xs)[0]))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex64])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_pieces_are_written_where_they_belong(dtype: Any, axis: int) -> None:
    x = (RNG.standard_normal((37, 5, 6)) * 9).astype(dtype)
    y = (RNG.standard_normal((37, 5, 6)) * 9).astype(dtype)

    def f(x: Any, y: Any) -> list[Any]:
        return [lax.concatenate([x * y, -y], axis), jnp.stack([x + y, x - y], axis)]

    made = agree(f, x, y)
    if axis < 2:  # elements of other pieces between them are not worth it
        assert not any(isinstance(s, Routine) for s in made.plan.program.block.steps)


def test_pieces_that_others_read_or_that_nobody_computes_are_copied() -> None:
    x, y = [RNG.standard_normal((40, 20)).astype(np.float32) for _ in range(2)]

    def f(x: Any, y: Any) -> list[Any]:
        z = x * 2
        ends = jnp.stack([x.min(1), y.max(1)], 1)
        return [jnp.concatenate([z, y + 1, x], 1), z + y, jnp.concatenate([x - y] * 2), ends]

    agree(f, x, y)
    agree(lambda x, y: [jnp.stack([x[0] > y[0], x[1] < y[1], x[0] == x[0]], 1)], x, y)


def test_an_array_of_numbers_in_a_loop_is_no_step() -> None:
    def f(x: Any) -> list[Any]:
        def turn(c: Any, i: Any) -> tuple[Any, Any]:
            return jnp.stack([c[1] * 0.5 + i, c[2] - c[0], jnp.abs(c[0])]), c[0]

        return list(lax.scan(turn, x, x))

    made = agree(f, np.arange(3, dtype=np.float32))
    (loop,) = [s for s in made.plan.program.block.steps if isinstance(s, Loop)]
    assert not any(isinstance(s, Routine) for s in loop.body.steps)


@pytest.mark.parametrize(
    "config", [(0, 1, 1), (1, 0, 1), (1, 1, 2), (0, 0, 1), (2, 6, 0), (-1, 2, 0), (-1, -2, 0)]
)
@pytest.mark.parametrize("axis", [0, 1])
def test_pads_that_are_pieces(config: Any, axis: int) -> None:
    x = RNG.standard_normal((40, 9)).astype(np.float32)
    edges = [(0, 0, 0), (0, 0, 0)]
    edges[axis] = config
    agree(lambda x: [lax.pad(x, np.float32(2), edges), lax.pad(-x, np.float32(0), edges)], x)


@pytest.mark.parametrize(
    ("shape", "config"),
    [
        ((9000,), ((1, 2, 1),)), ((1,), ((40, 3, 2),)), ((2100,), ((-4, -2, 9),)),
        ((3, 70), ((0, 1, 1), (1, 0, 1))), ((70, 3), ((2, 1, 0), (20, -1, 7))),
        ((5, 40), ((1, 1, 2), (0, 0, 0))), ((1, 40), ((2, 2, 1), (-3, 1, 2))),
        ((4, 5, 33), ((-1, 3, 1), (2, -1, 2), (-1, -1, 3))),
        ((4, 5, 20), ((0, 0, 0), (0, 2, 1), (0, 3, 0))),
        ((6, 5, 4), ((0, 0, 2), (3, 0, 0), (0, 0, 0))),
    ],
)  # fmt: skip
def test_elements_are_padded_apart(shape: tuple[int, ...], config: Any) -> None:
    """Rows in one pass: sizes of 1, cropped edges, operands that lie in another order."""
    x = (RNG.standard_normal(shape) * 50).astype(np.float32)
    for dtype in ("float32", "float64", "int8"):
        agree(lambda x, v: [lax.pad(x, v, config)], x.astype(dtype), np.array(2, dtype))
    agree(lambda x: [lax.pad(x[::-1].T, np.float32(2), config[::-1])], x)


@pytest.mark.parametrize(
    ("f", "first", "sizes"),
    [
        (lambda x, i: [x[i], x.at[i].add(1.0), jnp.concatenate([x, x[:2]])], 10, (8, 13, 40)),
        # Rows shorter than a vector are in the code of what is padded as it is read.
        (lambda x, i: [x[i], jnp.pad(x, ((1, 1), (2, 0)))], 33, (32, 40, 130)),
    ],
    ids=["moved", "padded"],
)
def test_a_new_shape_compiles_nothing(f: Any, first: int, sizes: tuple[int, ...]) -> None:
    built(f, np.ones((6, first), np.float32), I[:4])
    before = counters.kernels
    for n in sizes:
        agree(f, np.ones((n, n + 1), np.float32), I[:4])
    assert counters.kernels == before


def test_blocks_of_rows_are_padded_side_by_side() -> None:
    x = RNG.standard_normal((3, 60, 80)).astype(np.float32)
    for edges in (((0, 0, 0), (1, 2, 0), (-1, 3, 1)), ((0, 0, 0), (0, 0, 0), (5, 0, 0))):
        for moved in (lambda x: x, lambda x: x.transpose(0, 2, 1)):
            f = lambda x, m=moved, e=edges: [lax.pad(m(x), np.float32(2), e)]  # noqa: E731
            made = built(f, x)
            np.testing.assert_array_equal(made.execute([x])[0], numpy_run(f, x)[0])
            (step,) = [s for s in made.plan.program.steps if type(s) is Routine]
            assert step.units > 2


@pytest.mark.parametrize("index", ["int8", "int32", "int64", "uint8", "uint32", "uint64"])
@pytest.mark.parametrize("method", ["add", "set", "max", "multiply"])
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
def test_a_vector_is_scattered_into_a_vector(index: str, method: str, dtype: str) -> None:
    draw = np.random.default_rng(7)
    info = np.iinfo(index)
    at = draw.integers(max(info.min, -9), 25, 300).astype(index)
    at[::17], at[5::17] = info.max, info.min
    start, rows = draw.integers(1, 9, 20).astype(dtype), draw.choice([1, 2], 300).astype(dtype)
    want = start.copy()
    for i, row in zip(at.tolist(), rows, strict=True):
        if 0 <= i < 20:
            old = want[i]
            want[i] = {"add": old + row, "set": row, "max": max(old, row), "multiply": old * row}[
                method
            ]

    def run(x: Any, i: Any, v: Any) -> Any:
        how = {"mode": "drop", "wrap_negative_indices": False}
        return getattr(x.at[i], method)(v, **how)

    with primal.enable_x64(True):
        got = primal.jit(run)(start, at, rows)
    assert got.dtype == dtype and np.array_equal(got, want)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "complex64"])
def test_rows_of_any_length_are_gathered_and_added_up(n: int, dtype: str) -> None:
    x = (np.arange(6 * n).reshape(6, n) % 5).astype(dtype)
    i = np.array([0, 5, 5, -3, 9, 1, 0, 0])
    rows = (np.arange(8 * n).reshape(8, n) % 3).astype(dtype)
    put = "max" if dtype == "bool" else "add"
    agree(lambda x, i, r: [x[i], x.at[i].set(r), getattr(x.at[i], put)(r)], x, i[:1], rows[:1])
    agree(lambda x, i, r: [x[i], getattr(x.at[i], put)(r, mode="drop")], x, i, rows)
    agree(lambda x, i: [x.at[i].get(mode="fill", fill_value=1)], x, i)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "complex64"])
@pytest.mark.parametrize("mode", ["fill", "clip"])
def test_few_columns_are_gathered(mode: str, dtype: str) -> None:
    """Wherever indices point, of arrays beside memory that nobody may read."""
    for shape in ((3000, 3), (40, 50, 4), (2, 5)):
        for end in (False, True):
            x = fenced(shape, dtype, end)
            x[...] = np.arange(x.size).reshape(shape) % 7
            for i in ([0, 2], [1], [-1, 90, 0, -90]):
                at = np.array(i, np.int32)
                agree(lambda x, i: [x.at[..., i].get(mode=mode), x.T.at[i].get(mode=mode)], x, at)


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
@pytest.mark.parametrize("mode", ["fill", "clip"])
def test_what_repeats_is_not_gathered(mode: str, dtype: str) -> None:
    x, i = RNG.standard_normal(4), np.array([0, 6, 7, 100, 0, 127], dtype)
    if i.dtype.kind == "i":
        i[4] = -1

    def f(x: Any, i: Any) -> list[Any]:
        options = {"mode": mode, "wrap_negative_indices": False}
        rows, pairs = jnp.broadcast_to(x, (7, 300, 4)), (i, slice(None), i[::-1])
        ones = jnp.broadcast_to(x[0] + 1j, (7, 4, 300))
        given = rows.at[i], rows.at[:, i], ones.at[pairs]
        return [at.get(**options) for at in given]

    agree(f, x, i)
    text = primal.jit(f).lower(x, i).compile().as_text()
    assert text is not None and "gather ->" not in text


STENCILS: dict[str, Any] = {
    "differences": lambda x: jnp.diff(x, axis=0) ** 2,
    "differences along rows": lambda x: jnp.diff(x) ** 2,
    "gradient": lambda x: jnp.gradient(x, axis=0) ** 2,
    "third differences": lambda x: jnp.diff(x, 3, axis=0) ** 2,
    "many meet": lambda x: sum(x[i : i + 3] * x[i + 1 : i + 4] for i in range(9)),
    "negative zeros": lambda x: x[1:-1] * -0.0,
    "beside a whole": lambda x: (x[1:] * x[:-1] * x[0]).sum() + jnp.tanh(x).sum() - x[-1].sum(),
    "both directions": lambda x: sum((g * g).sum() for g in jnp.gradient(x.reshape(-1, 5))),
}


@pytest.mark.parametrize("name", STENCILS)
@pytest.mark.parametrize("shape", [(40, 20), (300,), (13, 5)])
def test_sums_of_padded_arrays_that_meet(name: str, shape: tuple[int, ...]) -> None:
    """The derivatives of stencils, to the last bit: what is left out added zeros."""
    x = jnp.asarray(RNG.standard_normal(shape))
    f = primal.grad(lambda x: STENCILS[name](x).sum())
    got, want = primal.jit(f)(x), f(x)
    np.testing.assert_allclose(got, want, 1e-6, 1e-6)
    np.testing.assert_array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])


def test_sums_of_many_padded_arrays_are_one_array() -> None:
    """The derivative of taking an array apart; 0 is added to each part once."""
    x = RNG.standard_normal((80, 30)).astype(np.float32)
    x[3] = 0

    def padded(x: Any, i: int) -> Any:
        part = lax.slice_in_dim(x, i, i + 1) * np.float32(-i)
        return lax.pad(part, np.float32(0), ((i, 79 - i, 0), (0, 0, 0)))

    def every(step: int) -> Flat:
        return lambda x: [sum([padded(x, i) for i in range(0, 80, step)], padded(x, 1))]

    for step in (2, 3):
        made = agree(every(step), x)
        words = [node.word for s in made.plan.program.steps for node in s.nodes]
        assert words.count("add") == len({1, *range(0, 80, step)})
        assert not np.signbit(made.execute([x])[0][3]).any()


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_sums_of_padded_arrays_and_views(dim: int) -> None:
    """Views are padded by a routine, what is computed by who computes it."""

    def f(x: Any) -> Any:
        def padded(a: int, weigh: Any) -> Any:
            edges = [(a, 5 - a, 0) if d == dim else (0, 0, 0) for d in range(3)]
            return lax.pad(weigh(lax.slice_in_dim(x, a, a + 3, axis=dim)), np.float32(0), edges)

        pairs = ((4, 0), (0, 4), (1, 0), (5, 2))
        return [padded(a, jnp.negative) + padded(b, lambda x: x) for a, b in pairs]

    agree(f, RNG.standard_normal((8, 8, 8)).astype(np.float32))


@pytest.mark.parametrize("n", [7, 40, 255])
def test_columns_of_one_array_are_padded(n: int) -> None:
    """Rows of one element, whatever the distance to the next one would be."""

    def f(x: Any) -> Any:
        y = jnp.where(x > 0, x, 1)
        low, high = [lax.reshape(y[i], (300, 1)) for i in range(2)]
        edges = [((0, 0, 0), (a, n - 1 - a, 0)) for a in (5, 3)]
        a, b = [lax.pad(c, np.float32(0), e) for c, e in zip((low, high), edges, strict=True)]
        return [a + b, a * 2, b]

    agree(f, RNG.standard_normal((2, 300)).astype(np.float32))


def _parts_and_sums(x: Any, axes: Any, dim: int, weigh: Any) -> Any:
    """Parts of an array that are concatenated again along `dim`, and what the parts add up to."""
    n = x.shape[dim]
    low, high = [lax.slice_in_dim(x, a, b, axis=dim) for a, b in ((0, n // 2), (n // 2, n))]
    parts = [weigh(low), high * 3, low - 1]
    return [lax.concatenate(parts, dim), *[p.sum(axes) for p in parts[:2]]]


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize(
    "shape", [(4, 5, 3), (40, 6, 2), (3, 200, 7), (2, 3, 130), (90, 2, 5)], ids=str
)
@pytest.mark.parametrize("weigh", [lambda x: x * 2, jnp.exp], ids=["light", "heavy"])
def test_parts_are_stored_while_they_are_reduced(
    weigh: Any, shape: tuple[int, ...], dim: int, axes: tuple[int, ...]
) -> None:
    """A reduction along the rows that its group stores apart: vectors must not go side by side."""
    x = RNG.standard_normal(shape).astype(np.float32)

    def f(x: Any) -> Any:
        return _parts_and_sums(x, axes, dim, weigh)

    with spoiled():
        found = built(f, x).execute([x])
    for got, want in zip(found, numpy_run(f, x), strict=True):
        np.testing.assert_allclose(got, want, rtol=3e-5, atol=1e-4)


def _stacked(xs: Any, ys: Any) -> list[Any]:
    """Arrays of what is stacked, joined and padded with each other, some of it read elsewhere."""
    row, other = jnp.stack([xs[0], ys[1] + xs[4], xs[2]]), jnp.stack([ys[0], ys[0], xs[1]])
    table = jnp.stack([row, other, other])
    return [
        jnp.stack([row, jnp.stack([xs[3], ys[3], ys[2]])]),
        jnp.concatenate([jnp.stack([jnp.stack([xs[4], xs[0]]), jnp.stack([ys[4], xs[1]])])] * 2),
        jnp.stack([jnp.stack([x, y], -1) for x, y in zip(xs[:3], ys[1:4], strict=True)], -1),
        jnp.concatenate([jnp.stack([xs[1], ys[4] + xs[0]])[::-1], jnp.stack([xs[2], ys[0]])]),
        jnp.concatenate([jnp.concatenate([table.ravel(), xs[4].ravel()]), other.ravel()]),
    ]


@pytest.mark.parametrize(
    ("dtype", "shape"), [("f8", ()), ("i2", (3,)), ("c8", (5, 40)), ("i2", (2, 50_021))], ids=str
)
def test_what_is_joined_again(dtype: str, shape: tuple[int, ...]) -> None:
    xs, ys = [RNG.integers(0, 99, (5, *shape)).astype(dtype) for _ in range(2)]
    agree(_stacked, xs, ys)
    if dtype == "i2":
        agree(lambda xs, ys: _stacked(xs > 50, ys > 50), xs, ys)


def test_stacks_of_stacks_are_one_step() -> None:
    def f(x: Any) -> list[Any]:
        rows = [[x[3 * i + j] for j in range(3)] for i in range(2)]
        return [jnp.stack([jnp.stack(row) for row in rows])]

    text = built(f, np.arange(6.0)[::-1].copy()).as_text()
    assert text.count(": concatenate") == 1

    def doubled(x: Any) -> list[Any]:
        for _ in range(12):
            x = jnp.concatenate([x, x])
        return [x]

    assert built(doubled, np.arange(4.0)).as_text().count(": concatenate") == 12

    def of_parts(x: Any) -> list[Any]:
        rows = []
        for i in range(20):
            rows.append(jnp.stack([jnp.sort(x + i, 0)[-1], jnp.cumsum(x * i, 0)[-1]]))
        return [jnp.stack(rows)]

    made = primal.jit(of_parts).lower(np.ones((10_000, 100), np.float32)).compile()
    # What is sorted is let go where a row of it is stacked.
    assert made.memory_analysis().temp_size_in_bytes < 10 * 4_000_000


@pytest.mark.parametrize("n", [99_991, 131_072, 400_009])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.complex128])
def test_long_runs_are_copied_in_parts(n: int, dtype: Any) -> None:
    x, y = [RNG.integers(0, 200, n).astype(dtype) for _ in range(2)]
    i = np.int32(n // 7)
    rows = [a[: n // 3 * 3].reshape(3, -1) for a in (x, y)]
    agree(lambda x, y: [jnp.concatenate([x[-3:], y, x[:5]])], x, y)
    agree(lambda x, y: [jnp.concatenate([x[:, 5:], y[:, :-1]], axis=1)], *rows)
    agree(lambda x, i: [lax.dynamic_slice(x, (i,), (n // 2 + 3,))], x, i)
    agree(lambda x, y, i: [lax.dynamic_update_slice(x, y[3 : n // 2], (i,))], x, y, i)
    agree(lambda x, i: [lax.dynamic_slice(x, (0, i // 9), (3, n // 4))], rows[0], i)
    agree(lambda x, y, i: [lax.dynamic_update_slice(x, y[1:, 5 : n // 5], (1, i))], *rows, i)


@pytest.mark.parametrize("shape", [(203, 401), (7, 90, 301), (400, 300, 2)])
@pytest.mark.parametrize("method", ["add", "set", "max"])
def test_rows_of_a_single_window_are_units(shape: tuple[int, ...], method: str) -> None:
    x = RNG.standard_normal(shape).astype(np.float32)
    inner, steps = (slice(1, -1),) * 2, (slice(2, None, 3), slice(1, None))
    for part in (inner, steps):
        y = RNG.standard_normal(x[part].shape).astype(np.float32)
        agree(lambda x, y, part=part: [getattr(x.at[part], method)(y)], x, y)
        agree(lambda x, part=part: [getattr(x.at[part], method)(0.5)], x)


@pytest.mark.parametrize("n", [4, 7, 33, 100, 5001])
@pytest.mark.parametrize("edges", [(0, 0, 1), (2, 5, 2), (0, 3, 3), (7, 0, 7), (1, 1, 4)])
def test_numbers_of_sixteen_bytes_are_padded_between(n: int, edges: tuple[int, int, int]) -> None:
    for rows, end in ((1, False), (3, True)):
        x = fenced((rows, n), "c16", end)
        x[...] = RNG.standard_normal((rows, n)) + 1j
        agree(lambda x: [lax.pad(x, np.complex128(2 - 1j), ((0, 1, 0), edges))], x)

"""Zeros around arrays as they are read: NumPy's values, signs of zeros, and one group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.config import cpu_engine
from primal.engines.cpu.plan.schedule import Group
from tests.engines.cpu.fences import fenced
from tests.engines.cpu.lab import agree, built, spoiled

DRAW = np.random.default_rng(0)
SHAPES = [(90, 100), (30, 300), (1200, 9), (7, 40, 41)]
CASES: dict[str, Callable[..., Any]] = {
    "rows": lambda x: jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(3, 1)]) * 2,
    "the first dimension": lambda x: jnp.pad(x, [(2, 1)] + [(0, 0)] * (x.ndim - 1)) + 1,
    "all around": lambda x: jnp.pad(x, 2) * jnp.pad(x, ((1, 3),) * x.ndim),
    "of light words": lambda x: jnp.pad(-x / 2, 1) - jnp.pad(x - x, ((0, 2),) * x.ndim),
    "of many words": lambda x: jnp.pad(-(jnp.sqrt(abs(x)) * 3 - x) / 3, 1),
    "of a column": lambda x: jnp.pad(
        -x[..., 4:5], [(0, 0)] * (x.ndim - 1) + [(4, x.shape[-1] - 5)]
    ),
    "of a row": lambda x: jnp.pad(x[2:3] * 2, [(2, x.shape[0] - 3)] + [(0, 0)] * (x.ndim - 1)) + x,
    "of parts to one shape": lambda x: (
        jnp.pad(x, [(1, 2)] * x.ndim) * 2
        - jnp.pad(x[tuple([np.s_[:-1]] * x.ndim)], [(1, 3)] * x.ndim)
        - jnp.pad(x[1:], [(1, 3)] + [(1, 2)] * (x.ndim - 1))
    ),
    "transposed": lambda x: jnp.pad(x.T, 1) * 2,
    "in steps": lambda x: jnp.pad(x[..., ::2] + x[..., ::2], 1),
    "backwards": lambda x: jnp.pad(x[::-1, ...], 1) - 1,
    "repeated": lambda x: jnp.pad(jnp.broadcast_to(x[..., :1], x.shape) * 2, 1),
    "repeated along what is padded": lambda x: (
        jnp.pad(jnp.broadcast_to(x[..., 1:2], x.shape), [(0, 0)] * (x.ndim - 1) + [(3, 1)])
        - jnp.pad(jnp.broadcast_to(x[1:2], x.shape) * 2, [(0, 0)] * (x.ndim - 1) + [(2, 2)])
    ),
    "rows repeated": lambda x: jnp.pad(
        jnp.broadcast_to(x[1:2], x.shape), [(1, 2)] + [(0, 0)] * (x.ndim - 1)
    ),
    "of which a part is read": lambda x: (
        jnp.pad(x * 3, 2)[tuple([np.s_[1:-1]] * x.ndim)]
        + jnp.pad(-x, 2)[tuple([np.s_[2:]] * x.ndim)][tuple([np.s_[:n + 2] for n in x.shape])]
    ),
    "of which a part is read backwards": lambda x: (
        jnp.pad(x, 3)[tuple([np.s_[-2:0:-2]] * x.ndim)].T * jnp.pad(abs(x), 3)[1:, ..., 2].max()
    ),
    "under a function": lambda x: jnp.sin(jnp.pad(x, 1)) * jnp.pad(jnp.exp(x), 1),
    "summed": lambda x: jnp.sum(jnp.pad(jnp.round(x) * 2, 1), axis=-1),
    "of whole numbers": lambda x: jnp.pad(x.astype(jnp.int32) * 3, 1) // 2,
    "of truths": lambda x: jnp.pad(x > 0, 1) & True,
    "in a loop": lambda x: primal.lax.fori_loop(
        0, 3, lambda n, y: jnp.pad(y[..., 1:] * 0.5, [(0, 0)] * (x.ndim - 1) + [(0, 1)]) + x, x
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, shape: tuple[int, ...]) -> None:
    x = DRAW.standard_normal(shape).astype(np.float32)
    with spoiled():
        agree(lambda x: [CASES[name](x)], x, within=8)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.complex64])
def test_dtypes(dtype: Any) -> None:
    x = (DRAW.standard_normal((100, 100)) * 9).astype(dtype)
    agree(lambda x: [jnp.pad(x, 1) + 1, jnp.pad(-x, ((0, 1), (2, 0)))], x)


def test_signs_of_zeros_and_what_is_not_finite_stay_inside() -> None:
    x = DRAW.choice(np.float32([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]), (100, 100))

    def f(x: Any) -> list[Any]:
        return [jnp.pad(-x, 1), jnp.pad(x / 2, 1), jnp.pad(x * x, ((1, 0), (0, 0))),
                jnp.pad(x * jnp.float32(-0.1), 1), jnp.pad(x * jnp.float32(np.inf), 1)]  # fmt: skip

    wanted = f(jnp.asarray(x))
    for got, want in zip(primal.jit(f)(x), wanted, strict=True):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(100, 100), (30, 300)], ids=str)
def test_the_derivative_of_differences_is_one_group(shape: tuple[int, int], axis: int) -> None:
    def f(x: Any, w: Any) -> list[Any]:
        return [primal.grad(lambda x: jnp.sum(jnp.gradient(x, axis=axis) * w))(x)]

    x, w = DRAW.standard_normal((2, *shape)).astype(np.float32)
    made = agree(f, x, w, within=64)
    sizes = [int(np.prod(s.shape)) for s in made.plan.steps if type(s) is Group]
    assert [n for n in sizes if n == x.size] == [x.size]
    assert sum(sizes) - x.size <= sum(shape)  # where along an axis elements lie


@pytest.mark.parametrize(
    ("f", "groups"),
    [
        (lambda x: (x[1:] - x[:-1]) ** 2, 1),
        (lambda x: (x[..., 2:] - x[..., :-2]) ** 2, 1),
        (lambda x: jnp.gradient(x, axis=0) ** 2, 2),
        (lambda x: (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2]) ** 2, 2),
        (lambda x: jnp.tanh(x[2:, 1:-1] + x[1:-1, :-2] - 4 * x[1:-1, 1:-1]), 2),
    ],
)
def test_the_derivative_of_a_stencil_pads_nothing_in_memory(
    f: Callable[..., Any], groups: int
) -> None:
    """Its cotangent is computed as it is read, or stored once for all neighbours."""
    x = DRAW.integers(-3, 4, (100, 100)).astype(np.float32)
    made = agree(lambda x: [primal.grad(lambda x: f(x).sum())(x)], x, within=8)
    assert not [s for s in made.plan.steps if getattr(s, "name", "") == "pad"]
    large = [s for s in made.plan.steps if type(s) is Group and np.prod(s.shape) > x.size / 2]
    assert len(large) == groups


def _complex(shape: tuple[int, ...], dtype: str) -> Any:
    return (DRAW.standard_normal(shape) + 1j * DRAW.standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("shape", [(100, 100), (30, 301), (3000,), (17, 600)], ids=str)
def test_the_derivative_of_complex_differences_is_one_group(
    shape: tuple[int, ...], axis: int, dtype: str
) -> None:
    x = _complex(shape, dtype)
    w = np.diff(x, axis=axis)

    def f(x: Any, w: Any) -> list[Any]:
        return [primal.vjp(lambda x: jnp.diff(x, axis=axis), x)[1](w)[0]]

    made = built(f, x, w)
    (got,) = made.execute([x, w])
    flat = np.moveaxis(w, axis, -1)
    edge = np.zeros((*flat.shape[:-1], 1), dtype)
    want = np.concatenate([edge, flat], -1) + np.concatenate([-flat, edge], -1)
    np.testing.assert_array_equal(got, np.moveaxis(want, -1, axis))
    sizes = [int(np.prod(s.shape)) for s in made.plan.steps if type(s) is Group]
    assert len(made.plan.steps) == len(sizes) and sizes.count(x.size) == 1
    assert sum(sizes) - x.size <= max(shape)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3000,), (1027,), (17, 600), (100, 100)], ids=str)
def test_the_derivative_of_products_of_complex_neighbours_is_one_group(
    shape: tuple[int, ...], dtype: str
) -> None:
    x = _complex(shape, dtype)

    def f(x: Any) -> list[Any]:
        return [primal.grad(lambda x: jnp.sum(jnp.real(x[1:] * jnp.conj(x[:-1]))))(x)]

    made = built(f, x)
    (got,) = made.execute([x])
    edge = np.zeros_like(x[:1])
    want = np.conj(np.concatenate([x[1:], edge]) + np.concatenate([edge, x[:-1]]))
    np.testing.assert_array_equal(got, want)
    sizes = [int(np.prod(s.shape)) for s in made.plan.steps if type(s) is Group]
    assert len(made.plan.steps) == len(sizes) and sizes.count(x.size) == 1
    assert sum(sizes) - x.size <= max(shape)


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(1027,), (16, 64), (8, 101), (5, 300)], ids=str)
def test_nothing_is_read_beyond_complex_arrays_that_are_padded(
    shape: tuple[int, ...], dtype: str, end: bool
) -> None:
    plain = _complex(shape, dtype)
    x = fenced(shape, dtype, end)
    x[...] = plain
    (got,) = built(lambda x: [jnp.pad(x, 3) * 2 - jnp.pad(-x, ((1, 5),) * x.ndim)], x).execute([x])
    want = np.pad(plain, 3) * np.dtype(dtype).type(2) - np.pad(-plain, ((1, 5),) * plain.ndim)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_short_rows_that_columns_would_make_arrays_of_are_one_kernel(n: int) -> None:
    x = np.random.default_rng(n).standard_normal((3000, n)).astype(np.float32)

    def both(x: Any) -> Any:
        return sum((g * x).sum() for g in jnp.gradient(x))

    f = primal.jit(primal.grad(both))
    want = primal.grad(both)(x)
    np.testing.assert_allclose(f(x), want, rtol=1e-5, atol=1e-5)
    text = f.lower(x).compile().as_text()
    assert text is not None and "concatenate" not in text.split("define")[0]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool", "complex64"])
def test_pieces_without_elements_call_no_library(dtype: str) -> None:
    x = (np.arange(10).reshape(2, 5) % 4).astype(dtype)

    def joined(x: Any) -> Any:
        return jnp.concatenate([x[:, :0], x, x[:, 2:2]], 1), jnp.pad(x[:0], ((1, 2), (0, 0)))

    f = primal.jit(joined)
    for got, want in zip(f(x), joined(jnp.array(x)), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)
    text = f.lower(x).compile().as_text()
    assert text is not None and "no elements" not in text


@pytest.mark.parametrize("engine", ["cpu", "xla", "reference"])
def test_pieces_without_elements_are_left_out_for_every_engine(engine: str) -> None:
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    keys = primal.random.split(primal.random.key(0), 3)

    def pieces(x: Any, keys: Any) -> Any:
        alone = jnp.concatenate([x[:0], x, x[:0]])
        none = jnp.concatenate([x[:0], x[2:]])
        filled = lax.pad(x[:, :0], x[0, 1], ((0, 0, 1), (1, 2, 0)))
        step = lax.scan(lambda c, r: (jnp.concatenate([c[:0], c + r]), r), x[0], x)
        return alone, none, filled, step, jnp.concatenate([keys[:0], keys])

    want = pieces(jnp.array(x), keys)
    with cpu_engine(engine):
        got = primal.jit(pieces)(x, keys)
    assert primal.tree.all(primal.tree.map(lambda a, b: a.aval is b.aval, got, want))
    for a, b in zip(primal.tree.leaves(got[:-1]), primal.tree.leaves(want[:-1]), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(*[primal.random.key_data(r[-1]) for r in (got, want)])


ROLLED = [(1000,), (300, 100), (30, 300), (9, 4, 70), (4, 5000), (64, 64)]
JOINS: dict[str, Callable[..., Any]] = {
    "neighbours": lambda x: sum(
        jnp.roll(x, s, d) for d in range(x.ndim) for s in (1, -1)
    ) - 2 * x,
    "far": lambda x: [jnp.roll(x, s, d) * x for d in range(x.ndim) for s in (x.shape[d] // 2, 3)],
    "corners": lambda x: jnp.roll(x, (1,) * x.ndim, tuple(range(x.ndim))) + x,
    "both compared": lambda x: jnp.where(jnp.roll(x, 1, -1) > jnp.roll(x, 2, 0), x, -x),
    "arrays": lambda x: [jnp.concatenate([x, x[:7] * 2], 0) + 1, jnp.concatenate([x, x], -1) * 3],
    "views": lambda x: jnp.concatenate([x[..., ::-1], x], -1) + x[..., :1],
    "of what is computed": lambda x: jnp.roll(jnp.sqrt(abs(x)), 1, 0) - jnp.sqrt(abs(x)),
    "of light words": lambda x: jnp.roll(x * 0.5 + 1, 1, -1) - (x * 0.5 + 1),
    "summed": lambda x: jnp.sum(abs(jnp.round(x) - jnp.roll(jnp.round(x), 1, 0))),
    "under a function": lambda x: jnp.exp(-abs(x - jnp.roll(x, 1, -1))),
    "in a loop": lambda x: primal.lax.fori_loop(
        0, 3, lambda n, y: 0.5 * y + 0.25 * (jnp.roll(y, 1, 0) + jnp.roll(y, -1, -1)), x
    ),
}  # fmt: skip


@pytest.mark.parametrize("shape", ROLLED, ids=str)
@pytest.mark.parametrize("name", JOINS)
def test_arrays_one_after_another(name: str, shape: tuple[int, ...]) -> None:
    x = DRAW.standard_normal(shape).astype(np.float32)

    def f(x: Any) -> list[Any]:
        found = JOINS[name](x)
        return found if isinstance(found, list) else [found]

    agree(f, x, within=8)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "bool", "uint64", "complex64"])
@pytest.mark.parametrize("shape", [(5000,), (40, 130)], ids=str)
def test_arrays_one_after_another_of_each_dtype(dtype: str, shape: tuple[int, ...]) -> None:
    x = (DRAW.standard_normal(shape) * 9).astype(dtype)

    def f(x: Any) -> list[Any]:
        return [jnp.where(jnp.roll(x, s, d) == x, x, jnp.roll(x, s, d))
                for s in (1, 17, -1) for d in range(x.ndim)]  # fmt: skip

    agree(f, x)


@pytest.mark.parametrize("shape", [(1000, 1000), (100, 70), (100_000,)], ids=str)
def test_neighbours_are_one_kernel(shape: tuple[int, ...]) -> None:
    x = DRAW.standard_normal(shape).astype(np.float32)
    made = agree(lambda x: [JOINS["neighbours"](x)], x, within=8)
    assert [type(s) for s in made.plan.steps] == [Group]


@pytest.mark.parametrize("shape", [(40, 50), (90, 33), (17, 17), (5, 6, 70), (100, 9), (600, 20)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_the_transpose_of_neighbours_is_neighbours(
    shape: tuple[int, ...], dtype: str, x64: None
) -> None:
    """Halves of a roll's cotangent are joined again, and added in their order, to the bit."""
    ct = DRAW.choice([0.0, -0.0, 1.0, 3.0, -7.0, 1e-3, 1e5], shape).astype(dtype)
    ways = [(1, 0), (-1, 0), (2, -1), (-1, -1)]

    def f(x: Any) -> Any:
        return sum([jnp.roll(x, n, d) for n, d in ways], x * 3)

    def back(ct: Any) -> Any:
        (out,) = primal.linear_transpose(f, ct)(ct)
        return out

    want = back(jnp.asarray(ct))
    got = primal.jit(back)(ct)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    if not shape[-1] < 32 < ct.size // shape[-1]:
        steps = built(lambda ct: [back(ct * 3)], ct).plan.steps
        assert "pad" not in [node.word for step in steps for node in step.nodes]


@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("shape", [(4096,), (1027,), (16, 64), (8, 101), (6, 6)], ids=str)
def test_nothing_is_read_beyond_arrays_that_are_joined(shape: tuple[int, ...], end: bool) -> None:
    plain = DRAW.standard_normal(shape).astype(np.float32)
    x = fenced(shape, np.float32, end)
    x[...] = plain

    def f(x: Any) -> list[Any]:
        return [JOINS["neighbours"](x), JOINS["far"](x)[0], jnp.concatenate([x, x], -1) * 2]

    for got, want in zip(
        built(f, x).execute([x]), built(f, plain).execute([plain]), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("n", [40, 3000])
@pytest.mark.parametrize("edges", [(2, 0, 1), (0, 2, 1), (1, 1, 3), (3, -1, 2)])
def test_nothing_is_between_the_elements_of_one(edges: tuple[int, int, int], n: int) -> None:
    x, wide = DRAW.standard_normal((2, n)).astype(np.float32)

    def f(x: Any, wide: Any) -> list[Any]:
        one = lax.pad(x[None] * 2, np.float32(0), (edges, (0, 0, 0)))
        some = lax.pad(x[:, None, None], np.float32(1), ((0, 0, 0), edges, (1, 0, 5)))
        return [one, some, one + wide]

    agree(f, x, wide)


@pytest.mark.parametrize("crop", [(0, 0), (-1, 0), (0, -2)])
def test_padding_that_only_would_be_between_elements_is_none(crop: tuple[int, int]) -> None:
    x = DRAW.standard_normal((5, 1)).astype(np.float32)
    agree(lambda x: [lax.pad(x, np.float32(3), ((*crop, 0), (0, 0, 2))) * 2], x)
    agree(lambda x: [lax.pad(x.T, np.float32(3), ((0, 0, 1), (*crop, 0)))], x)


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(64,), (3, 33, 64), (1, 5000), (40, 0)], ids=str)
def test_padding_by_nothing_is_what_is_padded(shape: tuple[int, ...], dtype: str) -> None:
    x = (DRAW.integers(-9, 9, shape) + (1j if dtype[0] == "c" else 0)).astype(dtype)

    def f(x: Any) -> list[Any]:
        inner = lax.complex(x.imag, x.real) if x.dtype.kind == "c" else x * 2
        zero = jnp.zeros((), x.dtype)
        return [lax.pad(x, zero, [(0, 0, 0)] * x.ndim), lax.pad(inner, zero, [(0, 0, 0)] * x.ndim)]

    whole, made = built(f, x).execute([x])
    np.testing.assert_array_equal(whole, x)
    np.testing.assert_array_equal(made, x.imag + 1j * x.real if x.dtype.kind == "c" else x * 2)


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("edges", [(1, 6), (0, 7), (40, 0), (300, 1)])
def test_zeros_around_columns_of_a_constant(n: int, edges: tuple[int, int]) -> None:
    def f(x: Any) -> list[Any]:
        column = jnp.full((9, n), np.float32(1))
        row = jnp.full((n, 9), np.float32(2))
        wide = lax.pad(column, np.float32(0), ((0, 0, 0), (*edges, 0)))
        high = lax.pad(row, np.float32(0), ((*edges, 0), (0, 0, 0)))
        return [wide, wide * x, high - x, lax.pad(-column, np.float32(0), ((3, 4, 0), (*edges, 0)))]

    agree(f, np.float32(3))


def test_cotangents_of_ones_through_differences_of_columns() -> None:
    x = DRAW.standard_normal((9, 9)).astype(np.float32)

    def f(x: Any) -> list[Any]:
        out, back = primal.vjp(lambda x: jnp.gradient(x, axis=1), x)
        return [*back(jnp.ones_like(out))]

    agree(f, x)


@pytest.mark.parametrize(
    "shape",
    [(17,), (3, 7), (6, 6), (8, 3), (9, 6), (4, 2, 3), (5, 5, 9), (2, 63), (40, 17), (300, 8)],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
def test_short_rows_are_read_where_they_lie(shape: Any, dtype: str, x64: None) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) * 9).astype(dtype)

    def turn(x: Any) -> Any:
        out = x
        for axis in range(x.ndim):
            out = out ^ jnp.roll(x, 1, axis) if dtype == "bool" else out - jnp.roll(x, -2, axis)
        return out

    agree(lambda x: [turn(x), lax.fori_loop(0, 5, lambda i, x: turn(x), x)], x)


@pytest.mark.parametrize("n", [16, 17, 50, 3000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
def test_slices_of_vectors_are_padded_as_they_are_read_in_loops(
    n: int, dtype: str, x64: None
) -> None:
    x = (DRAW.standard_normal(n) * 9).astype(dtype)

    def turn(x: Any) -> Any:
        after, before = jnp.pad(x[1:], (0, 1)), jnp.pad(x[:-3], (2, 1))
        return after ^ before if dtype == "bool" else x - after - before

    def f(x: Any) -> list[Any]:
        return [lax.fori_loop(0, 5, lambda i, x: turn(x), x)]

    agree(f, x)
    (loop,) = built(f, x).plan.program.block.steps
    assert n == 16 or [type(step) for step in loop.body.steps] == [Group]


@pytest.mark.parametrize("shape", [(32, 40), (3, 32, 33)], ids=str)
def test_a_turn_of_the_gradient_of_a_padded_stencil_is_one_kernel(shape: tuple[int, ...]) -> None:
    """Neither is what nobody reads of padding computed, nor where it is."""

    def turn(i: Any, x: Any) -> Any:
        p = jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(1, 1)] * 2)
        rows = p[..., 2:, 1:-1] + p[..., :-2, 1:-1]
        return x + 0.5 * (rows + p[..., 1:-1, 2:] + p[..., 1:-1, :-2] - 4 * x)

    def f(x: Any) -> list[Any]:
        return [primal.grad(lambda x: (lax.fori_loop(0, 3, turn, x) ** 2).sum())(x)]

    x = DRAW.integers(-9, 9, shape).astype(np.float32)
    agree(f, x)
    *_, loop = built(f, x).plan.program.block.steps
    assert [type(step) for step in loop.body.steps] == [Group]


@pytest.mark.parametrize("between", [1, 2, 3, 4, 5, 6, 98])
def test_numbers_are_padded_between(between: int) -> None:
    def f(x: Any) -> list[Any]:
        one = jnp.full((40, 3), 7, np.float32)
        ends = ((0, 0), (5, -2), (-between - 2, 9), (-1, 0))
        made = [lax.pad(one, np.float32(2), ((*e, between), (1, 0, 0))) + x for e in ends]
        # As many again: moved along.
        return [*made, lax.pad(one, np.float32(2), ((between, -between, 0), (1, 0, 0))) + x]

    agree(f, np.zeros((), np.float32))


@pytest.mark.parametrize("n", [2, -3])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_words_of_numbers_are_padded_in_loops(dtype: Any, n: int) -> None:
    def f(x: Any) -> list[Any]:
        def turn(c: Any, a: Any) -> Any:
            total = lax.pad(jnp.full((1, 1), 3, dtype) + n, dtype(0), ((0, 15, 0), (0, 31, 0)))
            return c + total * a, total

        return list(lax.scan(turn, x, jnp.arange(2).astype(dtype)))

    agree(f, DRAW.integers(-9, 9, (16, 32)).astype(dtype))

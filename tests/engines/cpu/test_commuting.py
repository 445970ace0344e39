"""Slices of gathers and of what was padded, mirror images: NumPy's values, and no more work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal as pl
import primal.numpy as pnp
from primal.engines.cpu.plan import commuting
from primal.engines.cpu.plan.schedule import Group
from tests.engines.cpu.lab import built, numpy_run

DRAW = np.random.default_rng(0)
MATRIX, CUBE = DRAW.random((7, 50)), DRAW.random((5, 40, 6))
B, C, E = DRAW.integers(-5, 5, 30), DRAW.integers(-5, 5, 4), DRAW.integers(-3, 3, (3, 4))
CASES: dict[str, tuple[Any, Callable[..., Any], bool]] = {
    "rows, columns": (MATRIX, lambda x, b, c, e: x[b][:, c], True),
    "columns, rows": (MATRIX, lambda x, b, c, e: x[:, c][b], False),
    "rows, a column": (MATRIX, lambda x, b, c, e: x[b][:, 3], True),
    "rows, a part": (MATRIX, lambda x, b, c, e: x[b][2:9, 1:4], True),
    "strided": (MATRIX, lambda x, b, c, e: x[b][::2, ::3], False),
    "grid of rows": (MATRIX, lambda x, b, c, e: x[e][..., c], True),
    "grid of columns": (MATRIX, lambda x, b, c, e: x[b][:, c.reshape(2, 2)], True),
    "last, first": (CUBE, lambda x, b, c, e: x[:, :, b][c[:1]], True),
    "rows, middle": (CUBE, lambda x, b, c, e: x[b][:, c], True),
    "middle, rows": (CUBE, lambda x, b, c, e: x[:, b][c[:1]], True),
    "grid, last": (CUBE, lambda x, b, c, e: x[e][:, :, c[:2]], True),
    "pairs apart, middle": (CUBE, lambda x, b, c, e: x[b, :, b][:, c], True),
    "read twice": (MATRIX, lambda x, b, c, e: (lambda g: g[:, c] + g[:, :4])(x[b]), False),
    "complex": (MATRIX * (1 + 2j), lambda x, b, c, e: x[b][:, c], True),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x, f, commutes = CASES[name]
    x = x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)
    found = []

    def watched(rule: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any, **params: Any) -> Any:
            found.append(rule(*args, **params))
            return found[-1]

        return asked

    for rule in ("slice_of_gather", "gather_of_gather"):
        monkeypatch.setattr(commuting, rule, watched(getattr(commuting, rule)))
    np.testing.assert_array_equal(pl.jit(f)(x, B, C, E), f(x, B, C, E))
    assert any(out is not None for out in found) == commutes


@pytest.mark.parametrize("fills", [(7, 7), (7, 8), (7, None), (None, 8)])
def test_fills(fills: tuple[Any, Any]) -> None:
    far = np.array([0, 3, 90, -90])

    def taken(x: Any, at: Any, fill: Any) -> Any:
        if fill is None:
            return x.at[at].get(mode="clip")
        return x.at[at].get(mode="fill", fill_value=fill)

    def f(x: Any) -> Any:
        return taken(taken(x, far, fills[0]).T, far, fills[1]).T

    x = pnp.asarray(MATRIX, np.float32)
    np.testing.assert_array_equal(pl.jit(f)(x), f(x))


def test_what_is_light_is_reversed_where_it_is_read() -> None:
    """One pass, and nothing between: the derivative of a product with its mirror image."""
    x, y = DRAW.standard_normal((2, 30, 40)).astype(np.float32)
    row = DRAW.standard_normal(40).astype(np.float32)
    for f in (
        lambda x, y, row: pnp.flip(x * y) + x,
        lambda x, y, row: pnp.flip(pnp.where(x > row, x - 1, y), 1) * y,
        lambda x, y, row: pnp.flip(-pnp.flip(x, 0) * pnp.arange(40.0)) + y,
        pl.grad(lambda x, y, row: (pnp.flip(x) * x * 2).sum()),
    ):
        made = pl.jit(f).lower(x, y, row).compile()
        np.testing.assert_array_equal(made(x, y, row), f(x, y, row))
        assert " 1 steps, 1 kernels, 0 bytes" in made.as_text()


def test_chains_of_mirror_images_do_not_grow() -> None:
    def chain(x: Any) -> Any:
        for _ in range(30):
            x = 0.5 * x + pnp.flip(x) * 0.25
        return x

    x = DRAW.standard_normal(500).astype(np.float32)
    text = pl.jit(chain).lower(x).compile().as_text()
    words = sum(len(line.split(": ")[-1].split()) for line in text.splitlines() if " over " in line)
    assert words < 30 * 12
    np.testing.assert_allclose(pl.jit(chain)(x), chain(x), rtol=1e-5)


@pytest.mark.parametrize(
    "config", [((1, 2, 1), (0, 1, 2)), ((-1, 2, 0), (3, -2, 1)), ((0, 0, 0), (0, 4, 0))]
)
def test_what_was_padded_is_read_where_it_lies(config: Any) -> None:
    """The derivative of padding pads nothing where nothing was cropped."""
    x = DRAW.standard_normal((30, 40)).astype(np.float32)

    def padded(x: Any) -> Any:
        return pl.lax.pad(x, np.float32(3), config)

    f = pl.grad(lambda x: (padded(x) ** 2).sum())
    made = pl.jit(f).lower(x).compile()
    np.testing.assert_array_equal(made(x), f(x))
    if min(min(c) for c in config) >= 0:
        assert " pad ->" not in made.as_text() and "concatenate" not in made.as_text()

    def slices(x: Any) -> list[Any]:
        y = 2 * padded(x) - pnp.ones(padded(x).shape[1])
        return [y[::2, 1:], y[1::2, ::3], y[2:5, 3:4], -y]

    for got, want in zip(pl.jit(slices)(x), slices(x), strict=True):
        np.testing.assert_array_equal(got, want)


def _indexed(x: Any, value: float, config: Any, box: Any) -> Any:
    """A slice of padding, element by element."""
    y = np.full([lo + hi + (n - 1) * (mid + 1) + 1 for n, (lo, hi, mid) in
                 zip(x.shape, config, strict=True)], value, x.dtype)  # fmt: skip
    for at in np.ndindex(*x.shape):
        to = tuple([lo + i * (mid + 1) for i, (lo, _, mid) in zip(at, config, strict=True)])
        if all(0 <= t < m for t, m in zip(to, y.shape, strict=True)):
            y[to] = x[at]
    return y[tuple([slice(*b) for b in zip(*box, strict=True)])]


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_slices_of_padding_are_padding_of_slices(value: float) -> None:
    """Edges that crop, gaps and steps of any sizes, of padding that nobody else reads."""
    draw = np.random.default_rng(5)
    x = draw.standard_normal((9, 35)).astype(np.float32)
    drawn = []
    while len(drawn) < 60:
        config = [tuple(map(int, draw.integers((-4, -4, 0), (5, 5, 4)))) for _ in x.shape]
        shape = [lo + hi + (n - 1) * (mid + 1) + 1
                 for n, (lo, hi, mid) in zip(x.shape, config, strict=True)]  # fmt: skip
        start = [int(draw.integers(0, 4)) for _ in shape]
        limit = [int(draw.integers(max(n - 4, a + 1), n + 1)) if n > a + 1 else 0
                 for n, a in zip(shape, start, strict=True)]  # fmt: skip
        if min(limit) > 0:
            drawn.append((config, (start, limit, [int(draw.integers(1, 5)) for _ in shape])))

    def f(x: Any) -> list[Any]:
        return [pl.lax.slice(pl.lax.pad(x, np.float32(value), c), *box) for c, box in drawn]

    made = pl.jit(f).lower(x).compile()
    for (config, box), got in zip(drawn, made(x), strict=True):
        want = _indexed(x, value, config, box)
        np.testing.assert_array_equal(got, want, err_msg=f"{config} {box}")


def test_what_padding_with_gaps_drops_is_not_padded() -> None:
    """The derivative of padding that crops reads its cotangent once, where it lies."""
    x, y = DRAW.standard_normal((40, 50)).astype(np.float32), DRAW.standard_normal((74, 143))
    config = ((-3, -2, 1), (-1, -4, 2))
    f = pl.grad(lambda x, y: (pl.lax.pad(x, np.float32(0), config) * y).sum())
    made = pl.jit(f).lower(x, y.astype(np.float32)).compile()
    np.testing.assert_array_equal(made(x, y), f(x, y))
    assert "1 steps" in made.as_text()


def test_sums_over_rows_that_are_padded_are_one_step() -> None:
    """And their derivative: who reads a part of the rows adds the zeros to that."""
    x, y = DRAW.standard_normal((2, 90, 100)).astype(np.float32)
    x[3], x[-1, 4] = -0.0, np.inf

    def total(x: Any, size: tuple[int, int], strides: tuple[int, int]) -> Any:
        return pl.lax.reduce_window(x, np.float32(0), pl.lax.add, size, strides, "SAME")

    def loss(x: Any, y: Any, *window: Any) -> Any:
        out = total(x, *window)
        return (out * y[:out.shape[0], :out.shape[1]]).sum()

    for size, strides in (((5, 1), (1, 1)), ((4, 1), (3, 1)), ((2, 1), (1, 2)), ((3, 3), (1, 1))):
        for f in (
            lambda x, y, *w: total(x, *w), lambda x, y, *w: total(-x, *w) * 2,
            pl.grad(loss),
        ):  # fmt: skip
            made = pl.jit(f, static_argnums=(2, 3)).lower(x, y, size, strides).compile()
            want = f(x, y, size, strides)
            # Both add up 9 numbers in 8 roundings, each of half a unit of sums below 16.
            np.testing.assert_allclose(made(x, y), want, rtol=1e-6, atol=8 * 2.0**-20)
            np.testing.assert_array_equal(np.signbit(made(x, y)), np.signbit(want))
        if strides == (1, 1) == size[1:] * 2:
            assert "1 steps" in made.as_text()


@pytest.mark.parametrize("width", [2, 3, 4, 6, 7])
def test_sums_of_padded_columns_of_short_rows(width: int) -> None:
    """Signs of zeros included; no column of a derivative of differences is an array of its own."""
    x, y = DRAW.standard_normal((2, 200, width)).astype(np.float32)
    y[::3], y[1::3, 1] = -0.0, np.nan

    def edges(x: Any, y: Any) -> Any:
        left, right = x[:, 1:] * 2 - x[:, :-1], x[:, :1] / x[:, -1:]
        return (left * y[:, 1:]).sum() + (right * y[:, :1]).sum() + (pnp.diff(x, axis=0)).sum()

    f = pl.grad(edges)
    made = pl.jit(f).lower(x, y).compile()
    np.testing.assert_allclose(made(x, y), f(x, y), rtol=1e-5, atol=1e-6)
    number = ~np.isnan(f(x, y))
    np.testing.assert_array_equal(
        np.signbit(made(x, y))[number], np.signbit(f(x, y))[number]
    )
    differences = pl.grad(lambda x, y: sum([(d * y).sum() for d in pnp.gradient(x)]))
    made = pl.jit(differences).lower(x, y).compile()
    np.testing.assert_array_equal(made(x, y), differences(x, y))
    assert " pad ->" not in made.as_text()


def test_parts_of_little_that_is_padded_to_much() -> None:
    """The derivative of a short transform of a long array writes no long complex array."""
    x = DRAW.standard_normal(5000).astype(np.float32)
    f = pl.grad(lambda x: (abs(pnp.fft.fft(x, 6)) ** 2).sum())
    made = pl.jit(f).lower(x).compile()
    np.testing.assert_allclose(made(x), f(x), rtol=1e-5, atol=1e-5)
    assert " 64 bytes" in made.as_text()


READS: list[Callable[..., Any]] = [
    lambda x: x.T.ravel()[0],
    lambda x: x.T.ravel()[5:1005],
    lambda x: x.T.ravel()[3990:5000:7],
    lambda x: x.T.ravel()[-5:20000:-7],
    lambda x: x.T.reshape(10, 70, 100)[3, 40:44, 1::3],
    lambda x: x.T.reshape(-1, 10)[3:50, ::2],
    lambda x: x.reshape(10, 70, 100).swapaxes(0, 1).reshape(100, 700)[3, 5:207],
]


@pytest.mark.parametrize("f", READS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "bool", "complex64"])
def test_little_of_what_was_put_in_order(f: Callable[..., Any], dtype: str) -> None:
    x = (DRAW.random((200, 350)) * 9).astype(dtype)
    np.testing.assert_array_equal(pl.jit(f)(x), f(x))


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_one_element_of_a_transposed_array_is_one_of_the_array(dtype: str) -> None:
    x = np.ones((500, 400), dtype)
    text = pl.jit(lambda x: x.T.ravel()[7] + 1).lower(x).compile().as_text()
    assert text is not None and ": 1 steps" in text and " 0 bytes of arena" in text


@pytest.mark.parametrize("step", [2, 3, 4])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i1", "c8"])
def test_columns_apart_are_reduced_with_those_between(dtype: str, step: int) -> None:
    """No elements are gathered; rows end where the last column does."""
    x = np.random.default_rng(step).integers(-9, 9, (40, 3, 50)).astype(dtype)

    def f(x: Any) -> list[Any]:
        y = x[:, :, 1::step]
        words = [(y * y - y + y[:1]).sum(0), (y - y.sum(0)).max((0, 1)), (2 * y - 1).sum(1)]
        return [y.sum(0), y.sum((0, 1)), y.max(1), *(words if dtype != "c8" else [])]

    made = built(f, x)
    for got, want in zip(made.execute([x]), numpy_run(f, x), strict=True):
        np.testing.assert_array_equal(got, want)
    if dtype != "c8":
        groups = [s for s in made.plan.steps if type(s) is Group and s.reductions]
        specs = [made.plan.instances[s].spec for s in groups]
        assert specs and not any(step == "g" for s in specs for _, _, step in s.operands)

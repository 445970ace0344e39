"""A matrix times itself transposed: one half is made, the other copied."""

from typing import Any

import numpy as np
import pytest

from primal.engines.cpu.products import gemm, tiled, ways
from primal.engines.cpu.products.blas import Mirror
from primal.engines.cpu.run.objects import counters
from primal.ops.contract import dot_general
from tests.engines.cpu import lab


def array(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    draw = np.random.default_rng(seed)
    x = draw.standard_normal(shape)
    return (x + 1j * draw.standard_normal(shape) if dtype[0] == "c" else x).astype(dtype)


def dot(x: Any, y: Any, terms: int, batch: tuple[int, ...] = (), other: int = -1) -> Any:
    return dot_general(
        x, y, dimension_numbers=(((terms,), (terms if other < 0 else other,)), (batch, batch)),
        precision=None, preferred_element_type=None,
    )  # fmt: skip


def mirrors(f: Any, *xs: Any) -> list[Any]:
    """What copies a half, of a program that agrees with NumPy in wider numbers."""
    made = lab.built(f, *xs)
    wide = [x.astype("complex128" if x.dtype.kind == "c" else "float64") for x in xs]
    for _ in range(2):
        for got, want in zip(made.execute(list(xs)), lab.numpy_run(f, *wide), strict=True):
            error = 40 * np.finfo(got.dtype).eps * max(xs[0].shape) ** 0.5
            np.testing.assert_allclose(got, want, rtol=error, atol=error * np.abs(want).max())
    return [c for c in made.plan.callees if isinstance(c, Mirror)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(("n", "depth"), [(257, 256), (520, 301), (777, 260)])
@pytest.mark.parametrize("terms", [0, 1])
def test_one_half_is_made(terms: int, n: int, depth: int, dtype: str) -> None:
    x = array((depth, n) if terms == 0 else (n, depth), dtype)
    found = mirrors(lambda x: [dot(x, x, terms)], x)
    if dtype != "float32" or not tiled.have():
        assert len(found) == (n > 2 * (gemm.COLUMNS if dtype[0] == "f" else ways.SQUARE))


@pytest.mark.parametrize("terms", [1, 2])
def test_of_stacks(terms: int) -> None:
    x = array((3, 259, 261) if terms == 2 else (3, 261, 259), "float64")
    assert mirrors(lambda x: [dot(x, x, terms, (0,))], x)


def test_of_a_part_that_lies_within_another_array() -> None:
    x = array((280, 300), "float64")
    assert mirrors(lambda x: [dot(x[3:263, 7:], x[3:263, 7:], 0)], x)


def test_other_products_are_made_whole() -> None:
    x, y = array((300, 300), "float32"), array((300, 300), "float32", 1)
    assert not mirrors(lambda x, y: [dot(x, y, 0)], x, y)
    assert not mirrors(lambda x: [dot(x, x, 1, other=0)], x)
    assert not mirrors(lambda x: [dot(x[:290], x[10:], 0)], x)
    assert not mirrors(lambda x: [dot(x[:, :290], x[:, 10:], 0)], x)
    assert not mirrors(lambda x: [dot(x[: ways.MIRRORED - 1], x[: ways.MIRRORED - 1], 0)], x)


def test_nothing_but_sizes_differs_between_shapes() -> None:
    f = lambda x: [dot(x, x, 0)]  # noqa: E731
    assert mirrors(f, array((260, 300), "float64"))
    before = counters.kernels
    assert mirrors(f, array((270, 411), "float64"))
    assert counters.kernels == before


def test_nan_and_infinity_stand_where_their_rows_and_columns_do() -> None:
    x = array((256, 600), "float64")
    x[5, 70], x[9, 500] = np.nan, np.inf
    (got,) = lab.built(lambda x: [dot(x, x, 0)], x).execute([x])
    bad = np.zeros(600, bool)
    bad[[70, 500]] = True
    np.testing.assert_array_equal(np.isfinite(got), ~(bad[:, None] | bad))

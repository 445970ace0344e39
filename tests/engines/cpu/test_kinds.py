"""A new shape compiles nothing: what a program's kernels are does not depend on its sizes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import enable_x64, lax
from primal.engines.cpu import _llvm
from primal.engines.cpu.kernels import Spec
from primal.engines.cpu.plan.schedule import Group
from primal.engines.cpu.products import tiled
from tests.engines.cpu.lab import built, spoiled
from tests.engines.cpu.programs import Program, planned, programs

SIZES = 40, 64, 100, 200, 333
"""About the size of each dimension; multiples of vectors and others, within caches and beyond."""
OTHER_ALGORITHMS = {
    name: why
    for names, why in {
        "assoc, gamma, permutation": "the program is another one",
        "pool grad": "the program is another one: padding of odd and of even sizes",
        "conv grad": "phases of a stride have half of the places: short rows, at the first size",
    }.items()
    for name in names.split(", ")
}  # fmt: skip
"""Programs whose kinds depend on the size, and on what."""
OTHER_DIVISORS = {"inv det"}
"""Programs that divide by their size, which is a product where that is a power of two, as 64 is."""
LONG_ROWS = 33, 300, 9000, 40_000
"""Elements of rows by which units and alignment differ."""
SHORT = 13, 8, 5, 3
"""Sizes below a vector."""
OTHER_SHORT = {
    name
    for names in (
        # Columns of few rows, or of fewer than a vector: in registers, on the stack, as points.
        "softmax0, sum0, sum middle, norms, max pool, doubles, half, bytes, mlp",
        # Parts of other arrays and what lies apart, as points, or rows as they lie, by vectors of
        # 8 or 16 elements, or masked; arrays padded as they are read.
        "transpose, reflect, concat, roll, split, diff, pad, interior, conv, conv grad, conv group",
        "complex products, cond",
        # Rows that are a few of a loop's elements, several loops together, or few with tables.
        "pool grad, repeat, tile, kron, attention, int matmul, xent",
        # Runs of a gather that have their length in the code; prefix sums of few, written out.
        "take, scatter add, embedding, cumsum, cumsum rev, argmax, points",
        # Written out: products and factorisations up to 8 x 8; loops over up to 16 elements.
        "matmul, matmul tn, matmul nt, matmul tt, matvec, vecmat, batched, convolve",
        "complex matmul, solve, cholesky, qr, lu, tri, inv det, scan, scan mm, scan grad",
        # Equal numbers of a program are one; another program.
        "take el, searchsorted, interp, hist, assoc, gamma",
        # Two words of random bits are made together with the two of their key.
        "permutation",
    )
    for name in names.split(", ")
}
"""Programs whose kinds depend on sizes below a vector."""
if not tiled.have():
    OTHER_ALGORITHMS["complex matmul"] = "large ones are BLAS's, where no unit multiplies parts"


at_size = functools.cache(programs)


@functools.cache
def specs(name: str, n: int) -> frozenset[object]:
    """What is compiled for a program."""
    found: Program = at_size(n)[name]
    return frozenset(planned(*found, name).specs)


@pytest.mark.parametrize("name", [name for name in programs(3) if name not in OTHER_ALGORITHMS])
def test_a_new_size_compiles_nothing(name: str) -> None:
    first = specs(name, SIZES[0])
    if name in OTHER_DIVISORS:
        first |= {s for s in specs(name, SIZES[1]) if type(s) is Spec}
    for n in SIZES[1:]:
        assert not specs(name, n) - first, n


@pytest.mark.skipif(_llvm.compiler().width < 64, reason="points are a kernel per length")
@pytest.mark.parametrize("name", [name for name in programs(3) if name not in OTHER_SHORT])
def test_short_rows_of_a_new_length_compile_nothing(name: str) -> None:
    first = specs(name, SHORT[0])
    for n in SHORT[1:]:
        assert not specs(name, n) - first, n


MOST = 24
"""Kinds of a program over all sizes looked at; half of the programs have five or fewer."""
MORE = {"conv grad": 36}
"""Those of programs that have more: few places of a stride are few of each phase."""


@pytest.mark.skipif(_llvm.compiler().width < 64, reason="points are a kernel per length")
@pytest.mark.parametrize("name", [name for name in programs(3) if name != "gamma"])  # unrolled
def test_kinds_over_all_sizes_are_few(name: str) -> None:
    found: frozenset[object] = frozenset()
    for n in (*SHORT, *SIZES):
        found |= specs(name, n)
    assert len(found) <= MORE.get(name, MOST)


@pytest.mark.parametrize("heavy", [False, True])
def test_rows_of_any_length_are_one_kernel(heavy: bool) -> None:
    rng = np.random.default_rng(0)

    def fun(x: Any, b: Any) -> list[Any]:
        y = x * 2 + b
        return [jnp.exp(y - y * y) * x if heavy else y]

    kinds = set()
    for n in LONG_ROWS:
        x, b = rng.standard_normal((5, n), np.float32), rng.standard_normal(n, np.float32)
        made = built(fun, x, b)
        kinds.update(made.plan.specs)
        with spoiled():
            (found,) = made.execute([x, b])
        y = x.astype(np.float64) * 2 + b
        want = np.exp(y - y * y) * x if heavy else y
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
    assert len(kinds) == 1


@pytest.mark.parametrize("size", [2 * 40_960 + 64 + k for k in (1, 15, 16, 63)])
def test_units_of_a_long_row_do_not_overlap(size: int) -> None:
    # In place: what one unit has stored another must not read again.
    x = np.arange(3 * size, dtype=np.float32).reshape(3, size) % 1000
    column = np.ones((3, 1), np.float32)

    def fun(x: Any, column: Any) -> list[Any]:
        return [lax.fori_loop(0, 3, lambda _, x: x + column, x)]

    (found,) = built(fun, x, column).execute([x, column])
    np.testing.assert_array_equal(found, x + 3)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.int8])
def test_places_in_long_rows_are_found_by_one_kernel(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    with enable_x64():
        for n in (20, 32_768, 32_769, 100_000):
            x = rng.integers(0, 50, (3, n)).astype(np.float32)
            x[1, n // 2 :: 7] = np.nan
            made = built(lambda x: [lax.argmax(x, 1, dtype), lax.argmin(x, 1, dtype)], x)
            assert len(set(made.plan.specs)) == 2
            with spoiled():
                high, low = made.execute([x])
            np.testing.assert_array_equal(high, x.argmax(1).astype(dtype))
            np.testing.assert_array_equal(low, x.argmin(1).astype(dtype))


def test_parts_are_reduced_by_the_kernel_that_makes_them() -> None:
    rng = np.random.default_rng(0)
    for shape, axes in (
        ((200_000,), (0,)), ((3, 70_000), (1,)), ((2, 300, 200), (0, 1)), ((40_001, 3), (0,)),
        ((300, 2, 250), (0, 2)), ((2000, 97), (0,)), ((5, 30_000, 2), (1,)), ((9, 8191, 3), (0, 1)),
    ):  # fmt: skip
        x = rng.integers(-9, 9, shape).astype(np.float32)

        def reductions(x: Any, axes: Any = axes) -> list[Any]:
            y = x * 0.5
            return [y.sum(axes), x.max(axes), (x > 8).any(axes), x[..., :-1].sum(axes)]

        made = built(reductions, x)
        groups = [s for s in made.plan.steps if type(s) is Group and s.first is not None]
        assert groups
        for second in groups:
            assert made.plan.instances[second].spec is made.plan.instances[second.first].spec
        with spoiled():
            found = made.execute([x])
        want = [(x * 0.5).sum(axes, np.float64), x.max(axes), (x > 8).any(axes)]
        for got, right in zip(found, [*want, x[..., :-1].sum(axes, np.float64)], strict=True):
            np.testing.assert_array_equal(got, right)

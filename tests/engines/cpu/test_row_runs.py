"""Rows of any length by one kernel: all passes in one run, or each by itself, in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import primal.numpy as jnp
from primal import enable_x64, grad, lax, nn
from primal.engines.cpu.layout import rows as row_layout
from primal.engines.cpu.layout.rows import RowInstance
from tests.engines.cpu.lab import built, spoiled
from tests.engines.cpu.test_rows import CASES, numpy_run

NEAR = {"LONGEST": 1 << 40, "TALLEST": 1 << 40, "WIDEST": 1 << 40}
APART = {"LONGEST": 0, "TALLEST": 0, "WIDEST": 0, "LOW": 0, "TOGETHER": 0, "PART": 64}
WHOLE = {**APART, "PART": 1 << 40}
IN_MEMORY = {**APART, "TOGETHER": 1 << 40, "ROWS": 1}
"""How a kernel runs: by these bounds, which are no part of it."""
WAYS = {"near": NEAR, "apart": APART, "whole": WHOLE, "in memory": IN_MEMORY}


def made_by(patch: Any, how: dict[str, int], fun: Any, *xs: Any) -> Any:
    for name, value in how.items():
        patch.setattr(row_layout, name, value)
    return built(fun, *xs)


def runs(made: Any) -> int:
    return max([len(i.runs) for i in made.plan.instances.values() if type(i) is RowInstance])


@pytest.mark.parametrize("name", CASES)
def test_runs_apart_give_what_one_run_gives(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    f, xs, _ = CASES[name]
    kinds, found = set(), []
    for how in WAYS.values():
        with monkeypatch.context() as patch:
            made = made_by(patch, how, lambda *xs: [f(*xs)], *xs)
        kinds.add(frozenset(made.plan.specs))
        with spoiled():
            found.append(made.execute(list(xs)))
    assert len(kinds) == 1
    for got in found[1:]:
        for a, b in zip(got, found[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("how", WAYS)
@given(
    shape=st.tuples(*[st.integers(1, 6)] * 2, st.integers(1, 90), st.integers(1, 40)),
    axes=st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True),
    dtype=st.sampled_from(["float32", "float64", "float16", "int32", "int8"]),
)
def test_drawn(how: str, shape: Any, axes: Any, dtype: str) -> None:
    x = (np.arange(np.prod(shape)) * 7 % 13 - 6).reshape(shape).astype(dtype)
    axes = tuple(sorted(axes))

    def f(x: Any) -> list[Any]:
        top = x.max(axes, keepdims=True)
        y = x - top
        total = (y > -3).sum(axes, keepdims=True).astype(x.dtype)
        least = (x * 2 + total).min(axes, keepdims=True)
        return [y + least, jnp.where(y == 0, total, top), (x == least).any(axes), total * 2 - top]

    with pytest.MonkeyPatch.context() as patch, enable_x64():
        made = made_by(patch, WAYS[how], f, x)
        with spoiled():
            found = made.execute([x])
        for got, want in zip(found, numpy_run(f, x), strict=True):
            np.testing.assert_array_equal(got, want)


LONG = ((3, 9001), (5000,), (700, 33), (4, 600, 40), (64, 1030), (40, 20_000), (2, 513, 3, 64))


@pytest.mark.parametrize("shape", LONG, ids=str)
def test_long_rows_and_wide_columns(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x.flat[7] = np.inf
    for axes in ((0,), (len(shape) - 1,), tuple(range(len(shape)))):

        def f(x: Any, axes: Any = axes) -> list[Any]:
            mean = x.mean(axes, keepdims=True)
            scale = lax.rsqrt(((x - mean) ** 2).mean(axes, keepdims=True) + 1e-5)
            return [(x - mean) * scale, mean[..., :1], nn.softmax(jnp.sin(x), axes), x.max(axes)]

        made = built(f, x)
        with spoiled():
            found = made.execute([x])
        for got, want in zip(found, numpy_run(f, x), strict=True):
            np.testing.assert_allclose(got, want, rtol=3e-5, atol=3e-5)


def test_what_a_later_pass_reads_lies_where_it_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).standard_normal((50, 64)).astype(np.float32)
    for how in (APART, IN_MEMORY):
        with monkeypatch.context() as patch:
            made = made_by(patch, how, lambda x: [nn.softmax(x, 1)], x)
        (found,) = [i for i in made.plan.instances.values() if type(i) is RowInstance]
        assert found.spec.buffers and found.scratch < x.nbytes
        assert runs(made) == (5 if how is APART else 1)


def test_light_words_are_computed_again_once_per_pass() -> None:
    # Its gradient reads x - mean in two passes, in one of them twice.
    def standard(x: Any) -> Any:
        mean = x.mean((0, 1), keepdims=True)
        return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean((0, 1), keepdims=True) + 1e-5)

    x = np.random.default_rng(0).standard_normal((4, 6, 40)).astype(np.float32)
    f = grad(lambda x: (standard(x) ** 3).sum())
    made = built(lambda x: [f(x)], x)
    np.testing.assert_allclose(made.execute([x])[0], f(jnp.asarray(x)), rtol=1e-4, atol=1e-4)


def test_light_words_are_not_kept() -> None:
    x = np.ones((50, 64), np.float32)
    made = built(lambda x: [(x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)], x)
    (found,) = made.plan.instances.values()
    assert not found.spec.buffers

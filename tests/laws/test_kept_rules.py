"""Kept derivatives of operations are those of the operations' rules, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal as jax
import primal.numpy as jnp
from primal import lax
from primal.base.config import enable_x64
from primal.transforms import kept_rules
from primal.transforms.kept_rules import KeptRule
from primal.transforms.linearize import linearize_flat
from tests.cases import CASES, Case
from tests.laws.compare import arrays, eager, host
from tests.laws.laws import inexact, pulled, wide_draws


@pytest.fixture(autouse=True)
def fresh() -> Any:
    kept_rules.table.clear()
    yield
    kept_rules.table.clear()


def kept() -> list[KeptRule]:
    return [r for r in kept_rules.table.values() if type(r) is KeptRule]


def same(one: Any, other: Any) -> None:
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind in "fc":
            for part in ("real", "imag"):
                x, y = (np.asarray(getattr(v, part)) for v in (a, b))
                there = ~np.isnan(x)
                np.testing.assert_array_equal(np.signbit(x[there]), np.signbit(y[there]))


@pytest.mark.parametrize("case", [pytest.param(c, id=c.id) for c in CASES if c.order and c.reverse])
def test_kept_rules(case: Case, monkeypatch: Any) -> None:
    rng = np.random.default_rng(0)
    with enable_x64(True):
        for dtype, xs in wide_draws(case)[:2]:
            f, active = case.function(dtype), case.active(xs)
            if not any(active):
                continue
            cts = [rng.standard_normal(o.shape).astype(o.dtype) for o in eager(f, xs) if inexact(o)]
            found = []
            for patience in (1 << 30, 0, 0):
                monkeypatch.setattr(kept_rules, "PATIENCE", patience)
                found.append(eager(pulled(f, len(xs), active), [*xs, *cts]))
            same(found[0], found[1])
            same(found[0], found[2])
            # The map as a program.
            pushed = []
            for patience in (1 << 30, 0):
                monkeypatch.setattr(kept_rules, "PATIENCE", patience)
                _, linear = linearize_flat(f, arrays(xs), active)
                given = [x if a else 0 for x, a in zip(xs, active, strict=True)]
                outs = linear.pushed(arrays(given))
                pushed.append([host(o) for o in outs if hasattr(o, "aval")])
            same(*pushed)


def test_they_are_made_where_they_come_often() -> None:
    g = jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))
    x = jnp.arange(3.0)
    first = g(x)
    assert not kept()
    for _ in range(kept_rules.PATIENCE + 1):
        assert g(x).tolist() == first.tolist()
    assert len(kept()) == 3
    jax.clear_caches()
    assert not kept()


def test_numbers_and_sides_are_told_apart() -> None:
    x = jnp.array([-2.0, 3.0])
    functions = [
        lambda x: jnp.sum(x * 0.0), lambda x: jnp.sum(x * -0.0), lambda x: jnp.sum(x * 2.0),
        lambda x: jnp.sum(2.0 / x), lambda x: jnp.sum(x / 2.0), lambda x: jnp.sum(3.0 / x),
        lambda x: jnp.sum(lax.sub(x, x[::-1])), lambda x: jnp.sum(x * x), lambda x: jnp.sum(x - 1),
        lambda x: jnp.sum(lax.max(x, 0.0)), lambda x: jnp.sum(lax.max(x, -0.0)),
        lambda x: jnp.sum(x.sum(keepdims=True) * x), lambda x: jnp.mean(x**2), jnp.prod,
        lambda x: jnp.sum(jnp.where(x > 0, x, 1 / x)), lambda x: jnp.sum(jnp.sort(x) * x),
    ]  # fmt: skip
    want = [np.asarray(jax.grad(f)(x)) for f in functions]
    for _ in range(kept_rules.PATIENCE + 3):
        same([np.asarray(jax.grad(f)(x)) for f in functions], want)
    assert kept()


def test_other_transformations_see_the_operations(monkeypatch: Any) -> None:
    def f(x: Any) -> Any:
        return jnp.sum(jnp.tanh(x) * x / 3)

    def all_of(x: Any) -> list[Any]:
        slope = jax.grad(f)
        return [
            jax.hessian(f)(x), jax.jit(slope)(x), jax.vmap(slope)(jnp.stack([x, x])),
            jax.grad(lambda x: slope(x).sum())(x), jax.linearize(f, x)[1](x),
            jax.vjp(f, x)[1](1.0)[0], jax.jvp(slope, (x,), (x,))[1],
        ]  # fmt: skip

    x = jnp.arange(1.0, 4.0)
    plain = str(jax.make_jaxpr(jax.grad(f))(x))
    want = [np.asarray(v) for v in all_of(x)]
    monkeypatch.setattr(kept_rules, "PATIENCE", 0)
    for _ in range(3):
        same([np.asarray(v) for v in all_of(x)], want)
    assert str(jax.make_jaxpr(jax.grad(f))(x)) == plain


def test_bad_numbers_are_found(monkeypatch: Any) -> None:
    monkeypatch.setattr(kept_rules, "PATIENCE", 0)
    g = jax.grad(lambda x: jnp.sum(jnp.log(x)))
    for _ in range(3):
        g(jnp.zeros(2))
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        g(-jnp.ones(2))
    with pytest.raises(TypeError):
        jax.grad(lambda x: jnp.sum(x @ jnp.ones((3, 3))))(jnp.ones(2))

"""Slopes of weakly typed arrays: strong where a constant of the rule is, as JAX's types are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax, nn
from primal.scipy import special


def _weak(f: Any, x: Any) -> bool:
    return bool(primal.eval_shape(f, x).weak_type)


WEAK = jnp.sin(jnp.arange(6) / 10.0) + 0.1

STRONG_SLOPES = [
    lax.sqrt, lax.rsqrt, lax.cbrt, lax.tan, lax.asin, lax.acos, lax.atan, lax.exp2, lax.erf,
    lax.erfc, lax.erf_inv, lax.digamma, lax.square, lambda x: x**2, lambda x: x**3,
    lambda x: x**2.5,
]  # fmt: skip
WEAK_SLOPES = [lax.sin, lax.exp, lax.log, lax.tanh, lax.logistic, lax.log1p, lambda x: x * 2]


@pytest.mark.parametrize("f", STRONG_SLOPES)
def test_a_constant_of_the_rule_makes_the_slope_of_an_array_strong(f: Any) -> None:
    assert WEAK.weak_type
    assert not _weak(lambda x: primal.vjp(f, x)[1](x)[0], WEAK)


@pytest.mark.parametrize("f", WEAK_SLOPES)
def test_other_slopes_are_weak_as_the_array(f: Any) -> None:
    assert _weak(lambda x: primal.vjp(f, x)[1](x)[0], WEAK)


@pytest.mark.parametrize("f", [*STRONG_SLOPES[:-1], *WEAK_SLOPES])
def test_slopes_of_scalars_are_weak(f: Any) -> None:
    assert _weak(primal.grad(f), 0.5)


def test_what_takes_a_weakly_typed_array() -> None:
    assert all(o.weak_type for o in primal.eval_shape(lambda x: lax.top_k(x, 2), WEAK))
    assert _weak(lax.sort, WEAK)
    assert _weak(jnp.angle, WEAK)
    assert not _weak(lambda x: jnp.angle(x, deg=True), WEAK)
    assert not _weak(lambda x: lax.associative_scan(jnp.add, x), WEAK)
    assert not _weak(special.logit, WEAK)
    assert _weak(special.logit, 0.5)
    assert not _weak(primal.grad(nn.logsumexp), WEAK)
    assert _weak(primal.grad(lambda x: jnp.fft.rfft(x).real.sum()), WEAK)


STRONG = jnp.asarray(np.asarray(WEAK))


@pytest.mark.parametrize("jacobian", [primal.jacrev, primal.jacfwd])
def test_jacobians_are_weak_as_what_they_belong_to(jacobian: Any) -> None:
    """By rows: as the argument. By columns: as the result."""
    rows = jacobian is primal.jacrev
    assert _weak(jacobian(lambda x: x**2), WEAK)
    assert _weak(jacobian(lambda x: x * STRONG), WEAK) is rows
    assert not _weak(jacobian(lambda x: x**2), STRONG)
    by_tree = primal.eval_shape(jacobian(lambda x, y: (x * y, y), (0, 1)), STRONG, 2.0)
    weak = [a.weak_type for a in primal.tree.leaves(by_tree)]
    assert weak == ([False, True] * 2 if rows else [False, False, True, True])


@pytest.mark.parametrize("f", [jnp.sin, lambda x: x * 2, lambda x: jnp.sin(jnp.tan(x))])
@pytest.mark.parametrize("x", [WEAK, STRONG])
@pytest.mark.parametrize("t", [WEAK, STRONG])
def test_pushed_tangents_are_weak_as_the_values(f: Any, x: Any, t: Any) -> None:
    assert primal.jvp(f, (x,), (t,))[1].weak_type == x.weak_type


@pytest.mark.parametrize("product", [jnp.dot, jnp.matmul, jnp.vdot, jnp.vecdot])
def test_gradients_of_products_are_weak_where_both_operands_are(product: Any) -> None:
    for x, y in ((WEAK, WEAK), (WEAK, STRONG), (STRONG, WEAK)):
        weak = x.weak_type and y.weak_type
        assert [g.weak_type for g in primal.grad(product, (0, 1))(x, y)] == [weak, weak]


def test_what_is_jitted_is_pulled_back_in_the_type_of_the_cotangent() -> None:
    pull = primal.vjp(primal.jit(lambda x: -x), WEAK)[1]
    assert [pull(ct)[0].weak_type for ct in (WEAK, STRONG)] == [True, False]


CONTROLLED: list[Any] = [
    lambda x: lax.scan(lambda c, t: (c * t, c + t), 1.0, x)[1],
    lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2.0, x),
    lambda x: lax.cond(x[0] > 0, lambda x: x * 2, lambda x: x, x),
    lambda x: lax.map(lambda t: t * 2, x),
]


@pytest.mark.parametrize("f", CONTROLLED)
def test_control_flow_is_pulled_back_in_the_type_of_the_cotangent(f: Any) -> None:
    assert _weak(primal.grad(lambda x: jnp.sum(f(x))), WEAK)
    assert not _weak(primal.grad(lambda x: jnp.sum(f(x) ** 2)), WEAK)


W = jnp.full((3,), 2.0)
ZEROS_BESIDE = [
    lambda x: jnp.array([x, 2.0]), lambda x: jnp.stack([x, 2.0]) * 3, lambda x: jnp.append(W, x),
    lambda x: lax.concatenate([x * W, W], 0), lambda x: jnp.roll(jnp.array([x, 2.0]), 1),
    lambda x: W.at[0].set(x), lambda x: W.at[jnp.array([0, 1])].add(x),
    lambda x: jnp.cumprod(jnp.array([x, 2.0])), lambda x: jnp.array([x, 2.0]).max(),
]  # fmt: skip


@pytest.mark.parametrize("f", ZEROS_BESIDE)
def test_zeros_of_what_does_not_move_leave_slopes_weak(f: Any) -> None:
    """The slope by Python's number beside constants; it is strong where the number is."""
    slope = primal.grad(lambda x: f(x).sum())
    for how in (slope, primal.jit(slope)):
        assert how(1.5).weak_type and how(1.5).dtype == jnp.float32
        assert not how(jnp.float32(1.5)).weak_type

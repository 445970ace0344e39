"""Functions of which some inputs are known: two parts whose composition is the function."""

import numpy as np
import pytest

import primal as jax
import primal.numpy as jnp
from primal.core import eval_jaxpr
from primal.extend import linear_util as lu
from primal.interpreters import partial_eval as pe


def mixed(x, y):
    return jnp.sin(x), x + y, y * 2


def in_jit(x, y):
    return jax.jit(mixed)(x, jnp.cos(y))


def in_vmap_and_grad(x, y):
    return jax.vmap(mixed, (0, None))(x, y[0]), jax.grad(lambda y: (x * y).sum())(y)


def in_loop(x, y):
    return jax.lax.fori_loop(0, 3, lambda i, c: (c[0] * 2, c[1] + c[0]), (x, y)), x - 1


def in_scan(x, y):
    return jax.lax.scan(lambda c, v: ((c[0] + v, c[1] * y), (v * 2, c[1])), (x[0], y), x)


def in_cond(x, y):
    return jax.lax.cond(x[0] > 0, lambda x, y: (x * 2, y), lambda x, y: (x, x + y), x, y)


@pytest.mark.parametrize("f", [mixed, in_jit, in_vmap_and_grad, in_loop, in_scan, in_cond])
@pytest.mark.parametrize("known", [(True, False), (False, True), (True, True), (False, False)])
@pytest.mark.parametrize("instantiate", [False, True])
def test_both_parts_are_the_function(f, known, instantiate):
    args = jnp.array([0.5, 2.0]), jnp.array([3.0, 0.25])
    values = [
        pe.PartialVal.known(a) if k else pe.PartialVal.unknown(jax.typeof(a))
        for k, a in zip(known, args, strict=True)
    ]
    flat = lu.wrap_init(lambda *args: jax.tree.leaves(f(*args)))
    jaxpr, out, consts = pe.trace_to_jaxpr_nounits(flat, values, instantiate)
    rest = iter(eval_jaxpr(jaxpr, consts, *[a for k, a in zip(known, args, strict=True) if not k]))
    found = [v.get_known() if v.is_known() else next(rest) for v in out]
    for have, value, want in zip(found, out, jax.tree.leaves(f(*args)), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-6)
        assert value.is_known() or value[0].shape == want.shape
    if instantiate:
        assert not any(v.is_known() for v in out)
    elif all(known):
        assert all(v.is_known() for v in out)
    if known == (True, False) and not instantiate:
        want = {mixed: [True, False, False], in_jit: [True, False, False], in_cond: [True, False]}
        want |= {in_loop: [False, False, True], in_scan: [True, False, True, False]}
        assert [v.is_known() for v in out] == want.get(f, [v.is_known() for v in out])


def test_what_is_known_runs_at_once_and_only_once():
    seen = []

    def f(x, y):
        jax.debug.callback(lambda v: seen.append(float(v)), x * 2)
        return x * 2, y + x

    given = pe.PartialVal.known(jnp.float32(3.0)), pe.PartialVal.unknown(jax.typeof(jnp.ones(2)))
    _, (one, _), _ = pe.trace_to_jaxpr_nounits(lu.wrap_init(f), given)
    jax.effects_barrier()
    assert (float(one.get_known()), seen) == (6.0, [6.0])


def test_inside_of_other_transformations():
    def half(x):
        given = pe.PartialVal.known(x), pe.PartialVal.unknown(jax.typeof(x))
        jaxpr, (one, _), consts = pe.trace_to_jaxpr_nounits(
            lu.wrap_init(lambda x, y: (x * x, x * y)), given
        )
        (other,) = eval_jaxpr(jaxpr, consts, x + 1)
        return one.get_known() + other

    for f in (half, jax.jit(half), lambda x: jax.vmap(half)(x[None])[0]):
        np.testing.assert_allclose(f(jnp.float32(3.0)), 9 + 12)
    np.testing.assert_allclose(jax.grad(half)(3.0), 6 + 7)


def test_refusals():
    with pytest.raises(ValueError, match=r"expected \(aval, None\) or \(None, value\)"):
        pe.PartialVal((3, 4))
    with pytest.raises(ValueError, match="instantiate for 1 results, got 2"):
        pe.trace_to_jaxpr_nounits(
            lu.wrap_init(lambda x: (x,)), [pe.PartialVal.known(1)], [True, False]
        )


def test_tokens_of_transformations():
    token = jax.extend.core.get_opaque_trace_state
    outside, inside = token(), []
    jax.make_jaxpr(lambda x: inside.extend([token(), token(convention="flax")]))(1.0)
    assert inside[0] == inside[1] != outside == token()
    with jax.extend.core.take_current_trace() as trace:
        assert token() == outside
        with jax.extend.core.set_current_trace(trace):
            assert token() == outside


def test_programs_of_used_outputs() -> None:
    closed = jax.make_jaxpr(lambda x, y: (jnp.sin(x), jnp.cos(y) + jnp.ones(2), x))(1.0, 2.0)
    smaller, used = pe.dce_jaxpr(closed.jaxpr, [True, False, True])
    assert used == [True, False] and [eqn.primitive.name for eqn in smaller.eqns] == ["sin"]
    assert eval_jaxpr(smaller, closed.consts, 0.5) == [jnp.sin(0.5), 0.5]
    assert pe.dce_jaxpr(closed.jaxpr, False, instantiate=True)[1] == [True, True]
    with pytest.raises(ValueError, match="expected 3 used_outputs, got 1"):
        pe.dce_jaxpr(closed.jaxpr, [True])

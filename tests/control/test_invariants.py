"""What every turn of a loop computes alike is computed once, before it."""

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.transforms.simplify import simplify

ROW = np.linspace(0.5, 2.0, 6, dtype=np.float32)


def ops(fun, *args):
    """The names of the ops before the loop of a function, and inside it."""
    eqns = simplify(primal.make_jaxpr(fun)(*args), "kernel").eqns
    loop = next(e for e in eqns if e.op.name in ("scan", "while"))
    inside = []
    for name in ("jaxpr", "cond_jaxpr", "body_jaxpr"):
        if name in loop.params:
            inside += [e.op.name for e in loop.params[name].eqns]
    return [e.op.name for e in eqns[: eqns.index(loop)]], inside


def scanned(body):
    return lambda w, x: lax.scan(lambda c, y: (body(w, c, y), c), x, jnp.ones((4, 6)))


def repeated(body):
    return lambda w, x: lax.fori_loop(0, 4, lambda i, c: body(w, c, 1.0), x)


def until(body):
    return lambda w, x: lax.while_loop(
        lambda c: c[0] < jnp.sum(jnp.exp(w)) / 8, lambda c: (c[0] + 1, body(w, c[1], 1.0)), (0.0, x)
    )


LOOPS = {"scan": scanned, "fori": repeated, "while": until}
MOVED = {
    "function": (lambda w, c, y: c * jnp.log(w) + y, ["log"]),
    "function of differences": (
        lambda w, c, y: c @ jnp.exp(-((w[:, None] - w) ** 2)) * y, ["exp", "neg", "integer_pow"]
    ),
    "reduction": (lambda w, c, y: c - jnp.max(jnp.sin(w)) * y, ["reduce_max", "sin"]),
    "product": (lambda w, c, y: c * (jnp.outer(w, w) @ w) * y, ["dot_general"]),
    "factorisation": (
        lambda w, c, y: c + jnp.linalg.inv(jnp.outer(w, w) + jnp.eye(6)) @ c * 0.1, ["solve"]
    ),
}  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", MOVED)
def test_what_depends_on_constants_alone_is_computed_once(loop, name):
    body, moved = MOVED[name]
    fun = LOOPS[loop](body)
    before, inside = ops(fun, ROW, ROW)
    for op in moved:
        assert op in before
        assert op not in inside
    plain = primal.tree.leaves(fun(ROW, ROW))
    for a, b in zip(primal.tree.leaves(primal.jit(fun)(ROW, ROW)), plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5)


def test_conditions_too():
    before, inside = ops(until(lambda w, c, y: c * y), ROW, ROW)
    assert "reduce_sum" in before
    assert "reduce_sum" not in inside


def test_what_is_cheaper_to_make_than_to_read_stays():
    fun = scanned(lambda w, c, y: c @ (w[:, None] - w) * y)
    before, inside = ops(fun, ROW, ROW)
    assert "sub" in inside
    assert "sub" not in before


def test_from_the_innermost_of_nested_loops_to_the_outside():
    def fun(w, x):
        inner = repeated(lambda w, c, y: c * jnp.log(w))
        return scanned(lambda w, c, y: inner(w, c) + y)(w, x)

    before, inside = ops(fun, ROW, ROW)
    assert "log" in before
    assert "log" not in inside


def test_a_carry_that_every_turn_hands_on_is_a_constant():
    def fun(w, x):
        return lax.scan(lambda c, y: ((c[0] * jnp.log(c[1]) + y, c[1]), None), (x, w), jnp.ones(4))

    before, inside = ops(fun, ROW, ROW)
    assert "log" in before
    assert "log" not in inside


def test_what_has_effects_or_may_not_be_reached_stays():
    def fun(w, x):
        def body(i, c):
            primal.debug.print("{}", w[0])
            return c + lax.cond(c[0] > 1, lambda: jnp.log(w), lambda: jnp.sin(w))

        return lax.fori_loop(0, 3, body, x)

    before, inside = ops(fun, ROW, ROW)
    assert {"log", "sin", "debug_print"}.isdisjoint(before)
    assert "cond" in inside


def test_a_loop_without_turns_computes_nothing():
    fun = lambda w, x: lax.scan(lambda c, y: (c * jnp.log(w), y), x, jnp.ones((0, 6)))  # noqa: E731
    before, _ = ops(fun, ROW, ROW)
    assert "log" not in before


def test_derivatives_are_those_of_the_loop():
    fun = scanned(lambda w, c, y: c * jnp.log(w) + y)
    loss = lambda w: jnp.sum(fun(w, ROW)[1])  # noqa: E731
    np.testing.assert_allclose(
        primal.jit(primal.grad(loss))(ROW), primal.grad(loss)(ROW), rtol=1e-5
    )


BIG = np.eye(12, dtype=np.float32) * 9 + np.arange(144, dtype=np.float32).reshape(12, 12) / 40


@pytest.mark.parametrize("loop", LOOPS)
def test_a_matrix_of_which_systems_are_solved_is_factored_once(loop):
    fun = LOOPS[loop](lambda w, c, y: jnp.tanh(jnp.linalg.solve(BIG, w[0] * jnp.tile(c, 2))[3:9]))
    before, inside = ops(fun, ROW, ROW)
    assert "lu" in before
    assert {"lu", "solve"}.isdisjoint(inside)
    plain = primal.tree.leaves(fun(ROW, ROW))
    for a, b in zip(primal.tree.leaves(primal.jit(fun)(ROW, ROW)), plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5)


def test_systems_of_one_matrix_share_its_factors():
    def both(a, b):
        return jnp.linalg.solve(a, b), jnp.linalg.solve(a.T, b[:, 0]), jnp.linalg.solve(a, b @ b.T)

    closed = primal.make_jaxpr(primal.grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b)) ** 2))
    names = [e.op.name for e in simplify(closed(BIG, BIG[:, :2]), "kernel").eqns]
    assert names.count("lu") == 1
    assert "solve" not in names
    plain, fast = both(BIG, BIG[:, :2]), primal.jit(both)(BIG, BIG[:, :2])
    for a, b in zip(fast, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
    g = primal.grad(lambda a, b: jnp.sum(jnp.linalg.solve(a, b) ** 2), (0, 1))
    for a, b in zip(primal.jit(g)(BIG, BIG[:, :2]), g(BIG, BIG[:, :2]), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_a_system_takes_the_factors_that_are_read_already():
    both = lambda a: sum(jnp.linalg.slogdet(a))  # noqa: E731
    closed = primal.make_jaxpr(primal.value_and_grad(both))(BIG)
    names = [e.op.name for e in simplify(closed, "kernel").eqns]
    assert names.count("lu") == 1
    assert "solve" not in names
    value, slope = primal.jit(primal.value_and_grad(both))(BIG)
    np.testing.assert_allclose(value, both(BIG), rtol=1e-6)
    np.testing.assert_allclose(slope, np.linalg.inv(BIG).T, rtol=1e-4, atol=1e-5)
    # Factors of another kind are not those.
    other = primal.make_jaxpr(lambda a: (jnp.linalg.solve(a, a), lax.linalg.cholesky(a)))(BIG)
    assert "solve" in [e.op.name for e in simplify(other, "kernel").eqns]

"""Loops over arrays of a few elements: each element is in a register, wherever it goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.config import cpu_engine, enable_x64
from primal.engines.cpu.graph import IN_REGISTERS
from primal.engines.cpu.steps import Loop
from tests.engines.cpu.lab import built

Body = Callable[[Any, Any], tuple[Any, Any]]
RNG = np.random.default_rng(5)
X = RNG.normal(size=(7, 5)).astype(np.float32)
WIDE = RNG.normal(size=(7, 40)).astype(np.float32)


def lorenz(c: Any, _: Any) -> tuple[Any, Any]:
    x, y, z = c[:3]
    d = jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 2.5 * z])
    return c.at[:3].add(0.01 * d), c[::-1]


def springs(c: Any, a: Any) -> tuple[Any, Any]:
    d = c[1:] - c[:-1]
    force = jnp.pad(d, (0, 1)) - jnp.pad(d, (1, 0))
    return (c + 0.1 * force).at[0].set(a[0]), force


def mixed(c: Any, a: Any) -> tuple[Any, Any]:
    """A kernel of many elements reads and makes what registers hold."""
    wide = jnp.sin(jnp.outer(c, jnp.linspace(0.0, 0.1, 30)))
    total = wide.sum(1)
    return jnp.roll(c, 1) * 0.5 + total * 0.1, jnp.concatenate([total[:2], a, c[3:]])


def chosen(c: Any, a: Any) -> tuple[Any, Any]:
    new = lax.cond(a[0] > 0, lambda: jnp.flip(c) + 1, lambda: jnp.where(c > 0, c, a))
    return new, (new > c, new.argmax())


def reduced(c: Any, a: Any) -> tuple[Any, Any]:
    m = c[:4].reshape(2, 2)
    rest = jnp.array([m.sum(), m.max(), m.sum(0)[1], m.prod(1)[0], jnp.abs(m).min()])
    return rest * 0.3 + a, m.T


def swapped(c: Any, a: Any) -> tuple[Any, Any]:
    return jnp.concatenate([a[:1], c[:-1]]), (c, c * 2, jnp.float32(3))


def indexed(c: Any, a: Any) -> tuple[Any, Any]:
    i = jnp.abs(a[0] * 10).astype(jnp.int32) % 5
    return c.at[i].set(a[1]).at[2].multiply(0.5), c[i] + c


def nested(c: Any, a: Any) -> tuple[Any, Any]:
    inner = lax.fori_loop(0, 3, lambda i, c: c.at[i].add(c[i + 1]) * 0.9, c)
    return inner + a, lax.while_loop(lambda c: c.sum() < 1, lambda c: c + jnp.roll(c * c, 1) + 1, c)


def overwritten(c: Any, a: Any) -> tuple[Any, Any]:
    """A kernel writes into an array that is in registers."""
    new = lax.dynamic_update_slice(c, jnp.sin(jnp.cos(jnp.tanh(c[1:4] + a[:3]))), (1,))
    return new * 0.5 - a, new[:2]


def passes(c: Any, a: Any) -> tuple[Any, Any]:
    """Words that wait for sums of all elements, and sums that wait for those."""
    p = jnp.exp(c - c.max())
    p = p / p.sum()
    far = jnp.abs(p - p.mean())
    return p * 0.5 + a, (far.sum() > 0.3, far / (far.max() + 1))


def multiplied(c: Any, a: Any) -> tuple[Any, Any]:
    """Products of matrices, turned ones, of stacks and of vectors."""
    m, n = c[:4].reshape(2, 2), a[1:].reshape(2, 2)
    stack = jnp.einsum("bij,bjk->bki", jnp.stack([m, n]), jnp.stack([n, m.T]))
    wide = jnp.outer(c[:3], a) @ jnp.outer(a, c[:2]) @ n
    rest = jnp.array([c @ a, (c[:3] @ wide)[1]])
    return jnp.tanh(jnp.concatenate([stack[1, 0], rest, a[:1]])), (stack, m.T @ n @ c[:2])


BODIES = [
    lorenz, springs, mixed, chosen, reduced, swapped, indexed, nested, overwritten, passes,
    multiplied,
]  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
def test_loops_of_few_elements_give_what_numpy_gives(body: Body, reverse: bool) -> None:
    def f(c: Any, xs: Any) -> Any:
        return lax.scan(body, c, xs, reverse=reverse)

    agree(f, X[0], X)
    agree(lambda c, xs: (f(c, xs[:, ::-1]), c + 1, xs.sum()), X[1], X)


@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
def test_their_gradients_are_those_of_numpy(body: Body) -> None:
    def f(c: Any, xs: Any) -> Any:
        last, ys = lax.scan(body, c, xs)
        return sum([jnp.sum(y * 1.0) for y in primal.tree.leaves((last, ys))])

    if body is nested:
        pytest.skip("while_loop has no reverse mode")
    with enable_x64(True):
        agree(primal.grad(f, (0, 1)), X[0].astype(float), X.astype(float))


@pytest.mark.parametrize("body", BODIES, ids=lambda f: f.__name__)
def test_batches_of_them_agree(body: Body) -> None:
    """With an axis more, some arrays of a body are of a few elements and some are not."""
    for count in (2, 4):
        c, xs = np.stack([X[i] for i in range(count)]), np.stack([X + i for i in range(count)])
        agree(primal.vmap(lambda c, xs: lax.scan(body, c, xs)), c, xs)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int32", "float16", "bfloat16"])
def test_other_dtypes_are_computed_as_by_numpy(dtype: str) -> None:
    def body(c: Any, a: Any) -> tuple[Any, Any]:
        new = jnp.where(c > a, c[::-1], a)
        return new, (new.max(), jnp.concatenate([a[:1], c]), new.sum())

    x = jnp.asarray(np.abs(X) * 3).astype(dtype)
    agree(lambda x: lax.scan(body, x[0], x), x)


@pytest.mark.parametrize("dtype", ["int32", "uint32", "float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_products_of_small_matrices(dtype: str, n: int) -> None:
    """Whole numbers to the last bit; what adds up products of -0 is 0."""
    with enable_x64(True):
        x = jnp.asarray(RNG.integers(-3, 4, (4, n, n))).astype(dtype)
        agree(lambda x: lax.scan(lambda c, a: (c @ a + a, c.T @ a), x[0], x), x)
        if dtype[0] == "f":
            zeros = jnp.full((2, n, n), -0.0, dtype)
            product = primal.jit(lambda x: lax.scan(lambda c, a: (c, c @ abs(a)), x[0], x)[1])
            assert np.signbit(product(zeros)).all() == (n == 1)


@pytest.mark.parametrize("n", [IN_REGISTERS - 1, IN_REGISTERS, IN_REGISTERS + 1])
def test_about_as_many_as_fit(n: int) -> None:
    def body(c: Any, a: Any) -> tuple[Any, Any]:
        return jnp.concatenate([c[1:], a[:1]]) * 0.5, (c[:2], a.sum())

    agree(lambda x: lax.scan(body, x[0], x), WIDE[:, :n])


def test_a_body_in_registers_walks_no_table() -> None:
    for body in (springs, reduced, passes, multiplied):
        made = built(
            lambda c, xs, body=body: primal.tree.leaves(lax.scan(body, c, xs)), X[0], X
        )
        (loop,) = [s for s in made.plan.steps if type(s) is Loop]
        assert "walk" not in [i[0] for i in made.plan.fused[loop].spec.items], body.__name__


def sorted_by_swaps(x: Any) -> Any:
    """Bubbles up: a choice of what an array too long for registers becomes, or stays."""

    def turn(i: Any, x: Any) -> Any:
        a, b = x[i], x[i + 1]
        return lax.cond(a > b, lambda x: x.at[i].set(b).at[i + 1].set(a), lambda x: x, x)

    return lax.fori_loop(0, x.size, lambda _, x: lax.fori_loop(0, x.size - 1, turn, x), x)


@pytest.mark.parametrize("n", [IN_REGISTERS, IN_REGISTERS + 1, 40])
def test_a_choice_of_what_is_no_register_is_a_jump(n: int) -> None:
    x = WIDE[0, :n]
    np.testing.assert_array_equal(primal.jit(sorted_by_swaps)(x), np.sort(x))
    made = built(lambda x: [sorted_by_swaps(x)], x)
    items = [i for found in made.plan.fused.values() for i in found.spec.items]
    (jump,) = [i for i in items if i[0] == "branch"]
    if n > IN_REGISTERS:
        assert [[i[0] for i in items].count("put") for items, _ in jump[2]] == [0, 2]

    def turn(c: Any, a: Any) -> Any:
        """Results of both kinds, of one that another one reads, of branches in branches."""
        w, s = c
        i = jnp.abs(a * 10).astype(jnp.int32) % 3

        def inner(w: Any) -> Any:
            return lax.cond(s > a, lambda w: w.at[i].add(s), lambda w: jnp.tanh(w) + w[::-1], w)

        cases = [lambda w: (inner(w), s + w[1]), lambda w: (w, a), lambda w: (w * s, w.max())]
        w, s = lax.switch(i, cases, w)
        return (w, s * 0.5), (w[i], s)

    agree(lambda w, a: lax.scan(turn, (w, a[0]), a), x, X[0])
    agree(primal.vmap(lambda w, a: lax.scan(turn, (w, a[0]), a), (0, None)), WIDE[:2, :n], X[0])


def agree(f: Callable[..., Any], *args: Any) -> None:
    """The engine against operations one by one."""
    with cpu_engine("reference"):
        wanted = primal.tree.leaves(primal.jit(f)(*args))
    found = primal.tree.leaves(primal.jit(f)(*args))
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype.kind in "biu":
            np.testing.assert_array_equal(a, b)
        else:
            eps = 4e-3 if a.dtype.itemsize == 2 else 2e-5
            np.testing.assert_allclose(a.astype(float), b.astype(float), eps, eps)


@pytest.mark.parametrize("shape", [(65_536,), (30_000, 3)])
def test_sums_of_large_arrays_come_in_parts_that_are_wider(shape: tuple[int, ...]) -> None:
    """The parts are float64, and lie as their kernel has them; what the body reads is float32."""
    x = RNG.normal(size=shape).astype(np.float32)

    def step(_: Any, x: Any) -> Any:
        return x - x.sum(0) / shape[0]

    want = x
    for _ in range(3):
        want = step(0, want)
    with cpu_engine("cpu"):
        got = primal.jit(lambda x: lax.fori_loop(0, 3, step, x))(x)
    np.testing.assert_allclose(got, want, atol=1e-5)

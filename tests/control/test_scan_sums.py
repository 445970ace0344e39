"""Gradients of what every step reads: sums of products come after the loop, windows are added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import grad, jit, lax, make_jaxpr, vmap
from primal.ir.check import check_closed

N, T = 6, 5
DRAW = np.random.default_rng(0)
W = DRAW.standard_normal((N, N)).astype(np.float32) / 3
XS = DRAW.standard_normal((T, N)).astype(np.float32)
H = DRAW.standard_normal(N).astype(np.float32)

STEPS: dict[str, Any] = {
    "matrix first": lambda w, h, x: jnp.tanh(w @ h + x),
    "vector first": lambda w, h, x: jnp.tanh(h @ w + x),
    "transposed": lambda w, h, x: jnp.tanh(w.T @ (h * x)),
    "twice": lambda w, h, x: jnp.sin(w @ jnp.sin(h @ w) + x),
    "of what every step is given": lambda w, h, x: h + w @ x,
    "elsewhere too": lambda w, h, x: jnp.tanh(w @ h + x) * w[0],
    "of a constant": lambda w, h, x: h * x + w @ jnp.arange(1.0, N + 1),
    "a row": lambda w, h, x: jnp.tanh(w[place(x)] + h),
    "an element, and one of a column": lambda w, h, x: h * w[place(x), -1] + w[:, place(h)][2],
    "rows that may be one": lambda w, h, x: jnp.sin(h * w[jnp.array([place(x), place(h)])].sum(0)),
    "a clamped window": lambda w, h, x: jnp.tanh(x + window(w, place(x)).sum(0) * window(w, -1)[1]),
    "a row and all": lambda w, h, x: jnp.tanh(w[place(x)] * jnp.cos(w).sum(0) + h),
    "bent": lambda w, h, x: jnp.tanh(jnp.einsum("ab,cb->ac", w.reshape(4, 9), outer(h, x)).sum()),
}


def place(x: Any) -> Any:
    return jnp.abs(x[1] * 5).astype(jnp.int32) % N


def window(w: Any, start: Any) -> Any:
    """Three rows from one on that may be beyond the last of those."""
    return lax.dynamic_slice(w, (start + 2, jnp.int32(0)), (3, N))


def outer(h: Any, x: Any) -> Any:
    return jnp.outer(h, x).reshape(4, 9)


def losses(step: Any, reverse: bool = False, length: int = T) -> tuple[Any, Any]:
    """The same function by scan and unrolled."""

    def by_scan(w: Any, h: Any, xs: Any) -> Any:
        h, ys = lax.scan(lambda h, x: (h + step(w, h, x),) * 2, h, xs[:length], reverse=reverse)
        return (h * h).sum() + (ys**2).sum()

    def unrolled(w: Any, h: Any, xs: Any) -> Any:
        total = 0.0
        for i in reversed(range(length)) if reverse else range(length):
            h = h + step(w, h, xs[i])
            total += (h**2).sum()
        return (h * h).sum() + total

    return by_scan, unrolled


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_gradients_equal_those_of_the_unrolled_loop(name: str, reverse: bool) -> None:
    by_scan, unrolled = losses(STEPS[name], reverse)
    for argnums in (0, (0, 1, 2)):
        wanted = grad(unrolled, argnums)(W, H, XS)
        got = jit(grad(by_scan, argnums))(W, H, XS)
        primal.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 2e-4, 2e-4), got, wanted)
    check_closed(make_jaxpr(grad(by_scan))(W, H, XS))


@pytest.mark.parametrize("name", ["matrix first", "twice", "a row", "rows that may be one"])
def test_batches_and_second_derivatives(name: str) -> None:
    by_scan, unrolled = losses(STEPS[name])
    ws = jnp.stack([W, 2 * W, -W])
    for axes in ((0, None, None), (None, None, 0)):
        given = (ws if axes[0] == 0 else W, H, jnp.stack([XS] * 3) if axes[2] == 0 else XS)
        got, wanted = (jit(vmap(grad(f), axes))(*given) for f in (by_scan, unrolled))
        np.testing.assert_allclose(got, wanted, 2e-4, 2e-4)
    got, wanted = (
        jit(grad(lambda w, f=f: (grad(f)(w, H, XS) ** 2).sum()))(W) for f in (by_scan, unrolled)
    )
    np.testing.assert_allclose(got, wanted, 2e-3, 2e-2)


def test_a_scan_of_no_steps_has_no_gradient() -> None:
    by_scan, _ = losses(STEPS["matrix first"], length=0)
    np.testing.assert_array_equal(jit(grad(by_scan))(W, H, XS), np.zeros((N, N)))


def backward(f: Any, *args: Any) -> Any:
    closed = make_jaxpr(grad(f))(*args)
    return [e for e in closed.eqns if e.op.name == "scan"][-1], closed


def test_the_loop_carries_no_sum_of_products() -> None:
    def loss(w: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (jnp.tanh(w @ h + x), None), jnp.zeros(N), xs)[0].sum()

    scan, closed = backward(loss, W, XS)
    assert [v.aval.shape for v in scan.outvars] == [(N,), (T, N)]
    assert closed.eqns[-1].op.name == "dot_general"


@pytest.mark.parametrize("name", ["a row", "an element, and one of a column", "a clamped window"])
def test_steps_add_windows_to_what_lies_there(name: str) -> None:
    def loss(w: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (STEPS[name](w, h, x), None), jnp.zeros(N), xs)[0].sum()

    scan, _ = backward(loss, W, XS)
    eqns = scan.params["jaxpr"].eqns
    whole = [e.op.name for e in eqns if e.outvars[0].aval.shape == W.shape]
    assert set(whole) == {"scatter-add"}
    # A derivative of it hands the cotangent of the sum on, and stacks no sums.
    second = make_jaxpr(grad(lambda w: (grad(loss)(w, XS) ** 2).sum()))(W)
    loops = [e for e in second.eqns if e.op.name == "scan"]
    assert not any(v.aval.shape == (T, *W.shape) for e in loops for v in e.outvars)


def test_sums_of_long_products_stay_in_the_loop() -> None:
    # Stacks of 1,000 rows would be more than what adding up a matrix of 6 x 6 takes.
    def loss(w: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (jnp.tanh(h @ w + x), None), jnp.zeros((1000, N)), xs)[0].sum()

    scan, closed = backward(loss, W, np.ones((T, 1000, N), np.float32))
    assert (N, N) in [v.aval.shape for v in scan.outvars]

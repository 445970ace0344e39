"""Taylor mode against derivatives of the curve taken one by one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import grad, jit, jvp, lax, make_jaxpr, vmap
from primal.base.config import enable_x64
from primal.experimental.jet import jet
from primal.ir.jaxpr import count_eqns


def nested(f: Callable[..., Any], primals: Any, series: Any) -> list[Any]:
    """d^k/dt^k of f along the curve, by jvp of jvp of …"""
    order = len(series[0])

    def along(t: Any) -> Any:
        xs = []
        for p, terms in zip(primals, series, strict=True):
            total, power = p, 1.0
            for k, s in enumerate(terms, 1):
                power = power * t / k
                total = total + s * power
            xs.append(total)
        return f(*xs)

    def slope(g: Any) -> Any:
        return lambda t: jvp(g, (t,), (1.0,))[1]

    found, g = [], along
    for _ in range(order):
        g = slope(g)
        found.append(g(0.0))
    return found


X = np.array([0.3, 0.7, 0.5])
S = [X * 0 + 1.0, X - 0.4, X * 2, X * 0]
A = np.arange(6.0).reshape(2, 3) / 5 + 0.1


def looped(x: Any) -> Any:
    c, ys = lax.scan(lambda c, _: (jnp.sin(c) * x, c), x, None, length=3)
    c = lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, c[1] * jnp.exp(c[1])), (0, c))[1]
    return lax.cond(x[0] > 0, lambda c: jnp.tanh(c), lambda c: c, c) + ys[2]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(jnp, name)
        for name in (
            "sin", "tan", "tanh", "exp", "log", "sqrt", "arctan", "arcsin", "cbrt", "log1p",
        )
    },
    "polynomial": lambda x: x**3 - 2.0 * x**2 / (1.0 + x),
    "power": lambda x: x ** (x * 0.5),
    "shapes": lambda x: jnp.concatenate([x[::-1], jnp.cumsum(x * x)])[np.array([0, 4, 2])],
    "choices": lambda x: jnp.where(x > 0.4, x * x, jnp.maximum(x, 0.2)) + jnp.abs(x - 0.4),
    "products": lambda x: (A @ x) @ (A @ (x * x)) + jnp.max(x * x),
    "composed": lambda x: jnp.sin(jnp.exp(jnp.tanh(x))),
    "softmax": primal.nn.softmax,
    "loops": looped,
    "called": jit(lambda x: jnp.sin(jit(jnp.exp)(x))),
    "again": primal.checkpoint(lambda x: jnp.sin(jnp.sin(x))),
    "integers": lambda x: x * jnp.floor(x * 3) + jnp.arange(3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_derivatives_along_a_curve(name: str) -> None:
    f = FUNCTIONS[name]
    with enable_x64(True):
        out, terms = jet(f, (X,), (S[:3],))
        np.testing.assert_allclose(out, f(X), rtol=1e-12)
        for got, want in zip(terms, nested(f, (X,), (S[:3],)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8)


def test_several_arguments_trees_and_transformations() -> None:
    def f(x: Any, y: Any) -> Any:
        return {"a": x / y, "b": (jnp.sum(x * y), 3.0)}

    with enable_x64(True):
        out, terms = jet(f, (X, X + 1), (S[:3], S[1:4]))
        np.testing.assert_allclose(out["a"], X / (X + 1))
        assert [float(t) for t in terms["b"][1]] == [0.0] * 3
        for k, want in enumerate(nested(lambda x, y: f(x, y)["a"], (X, X + 1), (S[:3], S[1:4]))):
            np.testing.assert_allclose(terms["a"][k], want, rtol=1e-9)
        third = jit(lambda x: jet(jnp.sin, (x,), ([1.0, 0.0, 0.0],))[1][2])
        np.testing.assert_allclose(third(0.7), -np.cos(0.7), rtol=1e-12)
        np.testing.assert_allclose(grad(third)(0.7), np.sin(0.7), rtol=1e-12)
        np.testing.assert_allclose(vmap(third)(X), -np.cos(X), rtol=1e-12)
        coefficients = jet(jnp.exp, (0.0,), ([1.0, 0.0, 0.0],), factorial_scaled=False)[1]
        np.testing.assert_allclose(coefficients, [1.0, 1 / 2, 1 / 6], rtol=1e-12)
    assert jet(jnp.sin, (1.0,), ((),))[1] == []
    out, terms = jet(lambda x: x * 2.0, (3,), ((1.0, 2.0),))
    assert (float(out), [float(t) for t in terms]) == (6.0, [2.0, 4.0])


def test_the_work_grows_as_a_polynomial_of_the_order() -> None:
    def size(order: int) -> int:
        ones = [1.0] * order
        f = FUNCTIONS["composed"]
        return count_eqns(make_jaxpr(lambda x: jet(f, (x,), (ones,)))(0.3).jaxpr)

    # Cubic: twice the order is 8 times the work, where nested jvps take 16 times.
    assert size(8) < 8 * size(4)
    assert size(12) < 4 * size(8)


def test_errors() -> None:
    with pytest.raises(ValueError, match="is not an array"):
        jet(lambda d: d["a"], ({"a": 1.0},), ({"a": [1.0]},))
    with pytest.raises(ValueError, match="inconsistent lengths"):
        jet(lambda x, y: x * y, (1.0, 2.0), ((1.0, 2.0), (1.0,)))
    with pytest.raises(ValueError, match="shape of their primal"):
        jet(jnp.sin, (1.0,), ((X,),))
    with pytest.raises(ValueError, match="a series per primal"):
        jet(jnp.sin, (1.0, 2.0), ((1.0,),))


@pytest.mark.parametrize(
    ("f", "linear"),
    [
        (lambda x: -x, True),
        (lambda x: jnp.concatenate([x, 2 * x[::-1]]).reshape(2, 3).T, True),
        (lambda x: jnp.zeros(9).at[jnp.array([1, 1, 4])].add(x), True),
        (lambda x: jnp.sin(x) + jnp.cumsum(x), False),
        (lambda x: lax.linalg.triangular_solve(jnp.eye(3) * 2, x[:, None], left_side=True), True),
        (lambda x: jnp.where(X > 0.4, x, 1.0) / 2, True),
        (lambda x: x * x, False),
    ],
)
def test_what_is_linear_is_applied_to_each_order(f: Callable[..., Any], linear: bool) -> None:
    x, zero = jnp.asarray(X, jnp.float32), jnp.zeros(3)
    rows = [jnp.asarray(s, jnp.float32) for s in S]
    _, terms = jet(f, (x,), (rows,))
    same = [np.allclose(f(s) - f(zero), t, rtol=1e-5) for s, t in zip(rows, terms, strict=True)]
    assert all(same) == linear

    def count(order: int) -> int:
        return count_eqns(make_jaxpr(lambda x, s: jet(f, (x,), ([s] * order,)))(x, x).jaxpr)

    counts = [count(order) for order in (2, 3, 4, 5)]
    assert (len(set(np.diff(counts).tolist())) == 1) == linear, counts

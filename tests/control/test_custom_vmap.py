"""custom_vmap, sequential_vmap, linear_call."""

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import grad, jit, jvp, lax, make_jaxpr, vmap
from primal.custom_batching import custom_vmap, sequential_vmap
from primal.custom_derivatives import linear_call

seen: list[Any] = []


@custom_vmap
def f(x: Any, y: Any) -> Any:
    return x + y


@f.def_vmap
def rule(axis_size: int, in_batched: Any, x: Any, y: Any) -> Any:
    seen.append((axis_size, in_batched))
    return x - y, in_batched[0] or in_batched[1]


ONES, ROW = np.ones(2, np.float32), np.arange(3, dtype=np.float32)


@pytest.mark.parametrize(
    ("call", "want"),
    [
        (lambda: f(1.0, 2.0), 3.0),
        (lambda: f(y=2.0, x=1.0), 3.0),
        (lambda: jit(f)(1.0, 2.0), 3.0),
        (lambda: vmap(f)(ONES, ONES), [0.0, 0.0]),
        (lambda: vmap(f, (0, None))(ONES, 3.0), [-2.0, -2.0]),
        (lambda: vmap(f, (1, None))(np.ones((3, 2)), 3.0), np.full((2, 3), -2.0)),
        (lambda: vmap(vmap(f, (0, None)), (None, 0))(ONES, ROW), (1 - ROW)[:, None] + 0 * ONES),
        (lambda: jit(vmap(f))(ONES, ONES), [0.0, 0.0]),
        (lambda: vmap(jit(f))(ONES, ONES), [0.0, 0.0]),
        (lambda: grad(f)(1.0, 2.0), 1.0),
        (lambda: jvp(f, (1.0, 2.0), (1.0, 1.0)), [3.0, 2.0]),
        (lambda: jvp(vmap(f), (ONES, ONES), (ONES, ONES)), np.zeros((2, 2))),
        (
            lambda: vmap(lambda x: jnp.stack(jvp(f, (x, 2.0), (1.0, 1.0))))(ONES),
            [[-1.0, 0.0]] * 2,
        ),
        (lambda: grad(lambda x: vmap(f)(x, x).sum())(ONES), [0.0, 0.0]),
        (
            lambda: vmap(lambda x: lax.scan(lambda c, _: (f(c, x), None), x, None, 2)[0])(ONES),
            [-1, -1],
        ),
    ],
)  # fmt: skip
def test_the_rule_takes_the_place_of_the_function_under_vmap_only(call: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(call()), want)


def test_the_rule_learns_what_is_mapped() -> None:
    seen.clear()
    vmap(f, (0, None))(ONES, 1.0)
    assert seen == [(2, [True, False])]

    @custom_vmap
    def g(d: Any, y: Any) -> Any:
        return {"o": d["a"] * y, "n": None}

    @g.def_vmap
    def of_trees(n: int, in_batched: Any, d: Any, y: Any) -> Any:
        assert in_batched == [{"a": True}, False]
        return {"o": d["a"] + y, "n": None}, {"o": True, "n": None}

    got = vmap(g, (0, None))({"a": ONES}, 3.0)
    assert got["n"] is None
    np.testing.assert_array_equal(got["o"], ONES + 3)


def test_rules_get_scalars_of_python_as_arrays() -> None:
    @custom_vmap
    def f(x: Any, y: Any) -> Any:
        return x + y

    f.def_vmap(lambda size, batched, x, y: (x * y.astype("float32"), batched[0]))
    np.testing.assert_array_equal(vmap(f, (0, None))(np.arange(3.0), 2.0), [0.0, 2.0, 4.0])
    g = sequential_vmap(lambda x, y: x * y)
    np.testing.assert_array_equal(vmap(g, (0, None))(np.arange(3.0), 2.0), [0.0, 2.0, 4.0])


def test_sequential_vmap_loops() -> None:
    g = sequential_vmap(lambda x, y: jnp.sin(x) * y)
    np.testing.assert_allclose(vmap(g, (0, None))(ROW, 2.0), 2 * np.sin(ROW), rtol=1e-6)
    assert "scan" in str(make_jaxpr(vmap(g))(ROW, ROW))
    slope = grad(lambda x: vmap(g, (0, None))(x, 2.0).sum())(ROW)
    np.testing.assert_allclose(slope, 2 * np.cos(ROW), rtol=1e-6)


def test_errors_of_custom_vmap() -> None:
    def with_rule(rule: Any) -> Any:
        g = custom_vmap(lambda x: jnp.sin(x))
        g.def_vmap(rule)
        return vmap(g)(ONES)

    with pytest.raises(AttributeError, match="No batching rule defined"):
        custom_vmap(lambda x: x)(1.0)
    with pytest.raises(TypeError, match="return a pair"):
        with_rule(lambda n, b, x: x)
    with pytest.raises(ValueError, match="output batching specification"):
        with_rule(lambda n, b, x: (x, (True, True)))
    with pytest.raises(ValueError, match="that of original"):
        with_rule(lambda n, b, x: ((x, x), (True, True)))

    def closing(c: Any) -> Any:
        g = custom_vmap(lambda x: x * c)
        g.def_vmap(lambda n, b, x: (x, True))
        return g(c)

    with pytest.raises(TypeError, match="Pass it as an argument"):
        vmap(closing)(ONES)


def tenfold(x: Any, c: Any) -> Any:
    return linear_call(lambda r, x: x * r, lambda r, ct: ct * r * 10, c, x)


def test_linear_call_transposes_as_told() -> None:
    assert tenfold(2.0, 3.0) == 6.0
    for g in (grad(tenfold), jit(grad(tenfold)), grad(jit(tenfold))):
        assert g(2.0, 3.0) == 30.0
    assert jvp(tenfold, (2.0, 3.0), (1.0, 1.0)) == (6.0, 5.0)
    assert grad(tenfold, 1)(2.0, 3.0) == 2.0
    (ct,) = primal.linear_transpose(lambda x: tenfold(x, 3.0), 2.0)(1.0)
    assert ct == 30.0
    (twice,) = primal.linear_transpose(
        lambda ct: primal.linear_transpose(lambda x: tenfold(x, 3.0), 2.0)(ct)[0], 1.0
    )(1.0)
    assert twice == 3.0
    np.testing.assert_array_equal(vmap(tenfold)(ROW, ROW), ROW * ROW)
    np.testing.assert_array_equal(vmap(grad(tenfold))(ROW, ROW), 10 * ROW)
    np.testing.assert_array_equal(vmap(grad(tenfold), (0, None))(ROW, 2.0), [20.0] * 3)
    np.testing.assert_array_equal(
        grad(lambda x: vmap(tenfold, (None, 0))(x, ROW).sum())(2.0), 10 * ROW.sum()
    )
    tree = grad(
        lambda d: linear_call(
            lambda r, x: {"o": x["a"] * r}, lambda r, ct: {"a": ct["o"] * r}, 2.0, d
        )["o"]
    )({"a": 1.0})
    assert tree["a"] == 2.0


def test_errors_of_linear_call() -> None:
    with pytest.raises(TypeError, match="transpose output pytree structure"):
        grad(lambda x: linear_call(lambda r, x: x * r, lambda r, ct: (ct, ct), 2.0, x))(1.0)
    with pytest.raises(ValueError, match="Expected cotangent type float32"):
        grad(lambda x: linear_call(lambda r, x: x * r, lambda r, ct: jnp.ones(3), 2.0, x))(1.0)

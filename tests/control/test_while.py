"""while_loop: results, batching with a predicate per example, forward mode, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import grad, jit, jvp, lax, make_jaxpr, vmap
from primal.control.while_ import REVERSE_REMEDY
from primal.ir.check import check_closed


def collatz(n: Any) -> Any:
    """Steps until 1."""

    def body(c: Any) -> Any:
        n, steps = c
        return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

    return lax.while_loop(lambda c: c[0] != 1, body, (n, 0))[1]


def collatz_in_python(n: int) -> int:
    steps = 0
    while n != 1:
        n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
    return steps


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_examples_stop_each_at_its_own_time(wrap: Any) -> None:
    ns = np.arange(1, 20)
    assert int(wrap(collatz)(7)) == collatz_in_python(7)
    got = wrap(vmap(collatz))(ns)
    np.testing.assert_array_equal(got, [collatz_in_python(int(n)) for n in ns])
    nested = wrap(vmap(vmap(collatz)))(ns[:18].reshape(3, 6))
    np.testing.assert_array_equal(nested.reshape(-1), got[:18])


def test_a_finished_example_waits_unharmed() -> None:
    # Past its end the first example would divide by zero.
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] / c[0]), (x, 1.0))[1]

    xs = np.float32([1, 4])
    np.testing.assert_allclose(jit(vmap(f))(xs), [1.0, 1 / 24])
    _, t = jvp(vmap(f), (xs,), (np.ones(2, np.float32),))
    np.testing.assert_allclose(t[0], -1.0, rtol=1e-6)
    assert np.isfinite(t).all()


def test_batched_loops_ask_each_example_once_per_turn() -> None:
    def count(x: Any) -> Any:
        return lax.while_loop(lambda x: jnp.sin(x) > 0.1, lambda x: x * 0.9, x)

    x = jnp.linspace(0.2, 1, 6).reshape(2, 3)
    many = vmap(vmap(count))
    np.testing.assert_array_equal(many(x), [[count(e) for e in row] for row in x])
    (loop,) = [e for e in make_jaxpr(many)(x).jaxpr.eqns if e.op.name == "while"]
    sines = str(loop.params["cond_jaxpr"]) + str(loop.params["body_jaxpr"])
    assert sines.count(" sin ") == 1


def test_only_what_depends_on_the_examples_is_batched() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))

    closed = make_jaxpr(vmap(f))(np.ones(4, np.float32))
    check_closed(closed)
    (loop,) = [e for e in closed.jaxpr.eqns if e.op.name == "while"]
    assert [v.aval.shape for v in loop.outvars] == [(), (4,)]


def test_zero_trips_and_no_carry() -> None:
    assert float(lax.while_loop(lambda x: x < 0, lambda x: x + 1, 5.0)) == 5.0
    assert jit(lambda: lax.while_loop(lambda c: False, lambda c: (), ()))() == ()
    x = jnp.arange(3.0)
    out = jit(lambda x: lax.while_loop(lambda c: c[0].sum() > 9, lambda c: c, (x, x)))(x)
    np.testing.assert_array_equal(out[0], x)


def test_weak_carries_give_way() -> None:
    out = lax.while_loop(lambda c: c < 10, lambda c: c + np.float32(2.5), 0)
    assert out.dtype == np.float32 and float(out) == 10.0


def test_forward_mode_of_any_order() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * c[1]), (0, x))[1]

    for wrap in (lambda g: g, jit):
        assert jvp(wrap(f), (1.5,), (1.0,)) == (pytest.approx(1.5**8), pytest.approx(8 * 1.5**7))
        second = wrap(primal.jacfwd(primal.jacfwd(f)))(1.5)
        assert float(second) == pytest.approx(56 * 1.5**6, rel=1e-5)
        y, push = primal.linearize(wrap(f), 1.5)
        assert float(push(2.0)) == pytest.approx(16 * 1.5**7)


def test_reverse_mode_says_what_to_do() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c < 10, lambda c: c * 2, x)

    for g in (f, jit(f)):
        with pytest.raises(ValueError) as e:
            grad(g)(1.0)
        assert str(e.value) == REVERSE_REMEDY
        assert "scan" in REVERSE_REMEDY and "Python integers" in REVERSE_REMEDY
    with pytest.raises(ValueError, match="fori_loop whose bounds are computed"):
        grad(jit(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x, x)))(1.0, 3)


def test_reverse_mode_passes_a_loop_that_it_does_not_differentiate() -> None:
    def f(x: Any) -> Any:
        n = lax.while_loop(lambda c: c < 5, lambda c: c + 1, 0)
        return x * n

    assert float(grad(f)(2.0)) == 5.0
    assert float(jit(grad(f))(2.0)) == 5.0


def test_unused_carries_are_dropped() -> None:
    def f(x: Any) -> Any:
        def body(c: Any) -> Any:
            return c[0] + 1, c[1] * 2.0, jnp.sin(c[2])

        return lax.while_loop(lambda c: c[0] < 4, body, (0, x, x))[1]

    assert "sine" not in jit(f).lower(1.0).as_text()
    assert float(jit(f)(1.0)) == 16.0


def test_printed_form() -> None:
    def f(n: Any, x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, 1.0))

    assert str(make_jaxpr(f)(3, 2.0)) == """\
{ lambda ; a:i32[] b:f32[]. let
    c:i32[] d:f32[] = while[
      body_jaxpr={ lambda ; e:f32[] f:i32[] g:f32[]. let
          h:i32[] = add f 1
          i:f32[] = mul g e
        in (h, i) }
      body_nconsts=1
      cond_jaxpr={ lambda ; j:i32[] k:i32[] l:f32[]. let m:bool[] = lt k j in (m,) }
      cond_nconsts=1
    ] a b 0 1.0
  in (c, d) }"""


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: lax.while_loop(lambda c: c, lambda c: c + 1, 0.0), "boolean scalar, got float32"),
        (lambda: lax.while_loop(lambda c: (c < 1, c < 1), lambda c: c, 0.0), "got a tree"),
        (lambda: lax.while_loop(lambda c: c < np.ones(3), lambda c: c, 0.0), r"bool\[3\]"),
        (lambda: lax.while_loop(lambda c: 0, lambda c: c, 0.0), "int32"),
        (lambda: lax.while_loop(lambda c: True, lambda c: (c[0],), (0, 1.0)), r"carry\[1\]"),
        (lambda: lax.while_loop(lambda c: True, lambda c: (c[0], c[1] > 0), (0, 1.0)), "dtypes"),
        (lambda: lax.while_loop(3, lambda c: c, 0), "cond_fun to be callable"),
        (lambda: lax.while_loop(lambda c: True, 3, 0), "body_fun to be callable"),
        (lambda: lax.while_loop(lambda c: True, lambda c: c, "x"), "str"),
        (lambda: lax.while_loop(lambda c: True, lambda c: "x", 0), "str"),
        (lambda: lax.while_loop(lambda c: True, lambda c: None, 0), "pytree structure"),
        (lambda: lax.while_loop(lambda: True, lambda c: c, 0), "takes 0 positional arguments"),
        (lambda: lax.while_loop(lambda c: True, lambda c, d: c, 0), "missing 1 required"),
    ],
)
def test_errors(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


def test_what_no_step_changes_is_one_value_for_all_examples() -> None:
    """Also where the examples end at their own steps, and in loops within choices."""

    def f(w: Any, x: Any, n: Any) -> Any:
        c = lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] @ c[2], c[2]), (0, x, w))
        return c[2], c[1]

    w, xs = jnp.array([[1.0, 2.0], [0.0, 1.0]]), jnp.arange(8.0).reshape(4, 2)
    for vf in (vmap(f, (None, 0, 0), (None, 0)), jit(vmap(f, (None, 0, 0), (None, 0)))):
        same, ends = vf(w, xs, jnp.arange(4))
        np.testing.assert_array_equal(same, w)
        np.testing.assert_allclose(ends, [f(w, x, n)[1] for n, x in enumerate(xs)])

    def g(x: Any, y: Any) -> Any:
        loop = lambda _, y: lax.scan(lambda y, _: (y, None), y, None, length=1)[0]  # noqa: E731
        return lax.cond(x < 0, loop, loop, x, y)

    assert float(vmap(g, (0, None), None)(jnp.arange(3.0), 3.0)) == 3.0


def test_arrays_that_no_step_changes_are_handed_on() -> None:
    x, xs = jnp.arange(3.0), jnp.arange(4.0)
    assert lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, x))[1] is x
    for reverse in (False, True):
        (_, same), ys = lax.scan(lambda c, y: ((c[0] + y, c[1]), y), (0.0, x), xs, reverse=reverse)
        assert same is x and ys is xs
    a, b = lax.scan(lambda c, _: ((c[1], c[0]), None), (x, 2 * x), None, length=3)[0]
    np.testing.assert_array_equal(jnp.stack([a, b]), jnp.stack([2 * x, x]))
    mutable = np.arange(3.0)  # what the user may change is copied
    _, same = lax.fori_loop(0, 2, lambda _, c: (c[0] + 1, c[1]), (0, mutable))
    mutable[0] = 7
    assert float(same[0]) == 0.0
    step = lambda c: lax.scan(lambda c, y: ((c[0] * y, c[1]), c[1]), c, xs)  # noqa: E731
    (_, tangent), _ = primal.jvp(step, ((x[0], x),), ((x[1], 2 * x),))[1]
    np.testing.assert_array_equal(tangent, 2 * x)

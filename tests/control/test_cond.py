"""cond and switch: which function runs, types, transformations, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import grad, jit, jvp, lax, make_jaxpr, vmap
from primal.ir.check import check_closed

X = np.float32([0.5, 2.0])


def test_the_documents_examples() -> None:
    out = lax.cond(False, lambda x: x**2.0, lambda x: x**3.0, jnp.array([2.0]))
    assert repr(out) == "Array([8.], dtype=float32)"
    out = lax.cond(True, lambda x: x**2.0, lambda x: x**3.0, jnp.array([-2.0]))
    assert repr(out) == "Array([4.], dtype=float32)"


def test_a_concrete_predicate_calls_one_function() -> None:
    called = []

    def note(name: str) -> Any:
        def f(x: Any) -> Any:
            try:
                called.append((name, bool(x)))
            except primal.errors.ConcretizationTypeError:
                traced.append(name)
            return x * (2.0 if name == "yes" else 3.0)

        return f

    traced: list[str] = []
    yes, no = note("yes"), note("no")
    lax.cond(True, yes, no, 1.0)
    # Under grad and jvp of code that is not staged, predicates are concrete too.
    assert float(grad(lambda x: lax.cond(x > 0, yes, no, x))(1.0)) == 2.0
    jvp(lambda x: lax.cond(x > 0, yes, no, x), (1.0,), (1.0,))
    assert called == [("yes", True)] * 3
    assert traced == ["no"]
    jit(lambda p, x: lax.cond(p, yes, no, x))(True, 1.0)
    assert len(called) == 3


def test_the_other_function_is_traced_once_for_its_types() -> None:
    traced = []

    def other(x: Any) -> Any:
        traced.append(type(x).__name__)
        return x

    for _ in range(3):
        assert float(lax.cond(True, lambda x: x * 2, other, 1.0)) == 2.0
        assert float(lax.switch(1, [other, lambda x: x * 3], 1.0)) == 3.0
    assert traced == ["StageTracer"]


def test_functions_that_read_values_are_plain_python() -> None:
    # Neither could be traced; the one that does not run is taken at its word.
    def f(x: Any) -> float:
        return float(x) + 1 if x > 0 else 0.0

    def g(x: Any) -> float:
        return float(np.sin(x))

    assert float(lax.cond(True, f, g, 1.0)) == 2.0
    assert float(lax.switch(1, [f, g, f], 0.0)) == 0.0


def test_results_are_arrays_and_operands_too() -> None:
    out = lax.cond(True, lambda x: (x.astype(int), 1), lambda x: (2, 3), 2.5)
    assert [type(o).__name__ for o in out] == ["ArrayImpl", "ArrayImpl"]


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_results_are_weak_where_those_of_the_first_function_are(wrap: Any) -> None:
    weak, strong = lambda: 1.0, lambda: np.float32(2.0)
    for p in (True, False):
        assert wrap(lambda p: lax.cond(p, weak, weak))(p).weak_type
        assert not wrap(lambda p: lax.cond(p, weak, strong))(p).weak_type
        assert wrap(lambda p: lax.cond(p, strong, weak))(p).weak_type
        assert wrap(lambda i: lax.switch(i, [weak, strong]))(int(p)).weak_type
        assert not wrap(lambda i: lax.switch(i, [strong, weak]))(int(p)).weak_type


@pytest.mark.parametrize("p", [True, 1, 2.5, np.bool_(True), np.int32(3), jnp.float32(0.1)])
def test_numbers_are_predicates(p: Any) -> None:
    assert float(lax.cond(p, lambda: 1.0, lambda: 2.0)) == 1.0
    assert float(jit(lambda p: lax.cond(p, lambda: 1.0, lambda: 2.0))(p)) == 1.0
    assert float(jit(lambda p: lax.cond(p, lambda: 1.0, lambda: 2.0))(p * 0)) == 2.0


def test_older_spellings() -> None:
    assert float(lax.cond(True, 3.0, lambda x: x + 1, 4.0, lambda x: x)) == 4.0
    assert float(lax.cond(False, 3.0, lambda x: x + 1, 4.0, lambda x: x)) == 4.0
    assert float(lax.cond(True, lambda x: x + 1, lambda x: x, operand=2.0)) == 3.0
    assert float(lax.cond(pred=True, true_fun=lambda x: 1.0, false_fun=lambda x: 2.0,
                          operand=None)) == 1.0  # fmt: skip


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 9])
def test_switch_clamps(index: int) -> None:
    branches = [lambda x: x + 1, lambda x: x * 10, lambda x: x - 7]
    wanted = [4.0, 30.0, -4.0][min(max(index, 0), 2)]
    assert float(lax.switch(index, branches, 3.0)) == wanted
    assert float(jit(lambda i: lax.switch(i, branches, 3.0))(index)) == wanted
    got = vmap(lambda i: lax.switch(i, branches, 3.0))(np.array([index, 1]))
    np.testing.assert_array_equal(got, [wanted, 30.0])


def test_switch_of_one_is_a_call() -> None:
    assert float(lax.switch(7, [lambda x: x + 1], 3.0)) == 4.0
    assert "cond" not in str(make_jaxpr(lambda i: lax.switch(i, [lambda x: x + 1], 3.0))(7))


def branches_with_residuals(p: Any, x: Any, w: Any) -> Any:
    return lax.cond(
        p,
        lambda x: {"a": jnp.sin(x) * w, "b": None, "n": 1},
        lambda x: {"a": x * x * x, "b": None, "n": 2},
        x,
    )


@pytest.mark.parametrize("p", [True, False])
@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_gradients_with_a_traced_predicate(p: bool, wrap: Any) -> None:
    w = np.float32([3.0, -1.0])

    def loss(p: Any, x: Any, w: Any) -> Any:
        return branches_with_residuals(p, x, w)["a"].sum()

    gx, gw = wrap(grad(jit(loss), (1, 2)))(p, X, w)
    np.testing.assert_allclose(gx, np.cos(X) * w if p else 3 * X * X, rtol=1e-6)
    np.testing.assert_allclose(gw, np.sin(X) if p else 0 * X, rtol=1e-6)
    check_closed(make_jaxpr(grad(jit(loss), (1, 2)))(p, X, w))


def test_batched_predicates_choose_per_example() -> None:
    ps = np.array([True, False, True])
    xs = np.float32([[1, 2], [3, 4], [5, 6]])
    w = np.float32([3.0, -1.0])
    for wrap in (lambda f: f, jit):
        out = wrap(vmap(branches_with_residuals, (0, 0, None)))(ps, xs, w)
        wanted = np.where(ps[:, None], np.sin(xs) * w, xs**3)
        np.testing.assert_allclose(out["a"], wanted, rtol=1e-6)
        np.testing.assert_array_equal(out["n"], [1, 2, 1])
        g = wrap(vmap(grad(lambda p, x: branches_with_residuals(p, x, w)["a"].sum(), 1)))(ps, xs)
        np.testing.assert_allclose(
            g, np.where(ps[:, None], np.cos(xs) * w, 3 * xs**2), rtol=1e-6
        )


def test_residuals_of_branches_share_places() -> None:
    def f(p: Any, x: Any) -> Any:
        return lax.switch(p, [jnp.sin, jnp.exp, jnp.tanh], x).sum()

    closed = make_jaxpr(grad(f, 1))(1, X)
    known = next(e for e in closed.jaxpr.eqns if e.op.name == "cond")
    # Each branch needs up to two arrays for its derivative; one runs.
    assert len(known.outvars) <= 3


def test_unused_outputs_are_not_computed() -> None:
    def f(p: Any, x: Any) -> Any:
        return lax.cond(p, lambda x: (x, jnp.sin(x)), lambda x: (2 * x, jnp.cos(x)), x)[0]

    assert "sine" not in jit(f).lower(True, X).as_text()


def test_a_value_closed_over_by_both_is_one_operand() -> None:
    w = jnp.asarray(X)
    closed = make_jaxpr(lambda p, x: lax.cond(p, lambda x: x + w, lambda x: x - w, x))(True, X)
    assert str(closed) == """\
{ lambda a:f32[2]; b:bool[] c:f32[2]. let
    d:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b
    e:f32[2] = cond[
      branches=(
        { lambda ; f:f32[2] g:f32[2]. let h:f32[2] = sub g f in (h,) }
        { lambda ; i:f32[2] j:f32[2]. let k:f32[2] = add j i in (k,) }
      )
    ] d a c
  in (e,) }"""


def test_weak_outputs_agree() -> None:
    out = jit(lambda p: lax.cond(p, lambda: 1.0, lambda: jnp.float32(2)))(True)
    assert out.dtype == np.float32 and not out.weak_type
    out = jit(lambda p: lax.cond(p, lambda: 1.0, lambda: 2.0))(True)
    assert out.weak_type


def test_no_outputs() -> None:
    assert jit(lambda p: lax.cond(p, lambda: None, lambda: None))(True) is None


def test_branches_that_differ_are_shown_side_by_side() -> None:
    def yes() -> Any:
        return 1.0, {"a": 1}

    def no() -> Any:
        return 1.0, {"a": 2.0}

    with pytest.raises(TypeError) as e:
        jit(lambda p: lax.cond(p, yes, no))(True)
    lines = str(e.value).splitlines()
    assert lines[0] == (
        "[cond] expected branches whose outputs have the same types, got others: output[1]['a'] "
        "is float32[] in the false_fun and int32[] in the true_fun."
    )
    assert lines[1:4] == [
        "    leaf            false_fun  true_fun",
        "    output[0]       float32[]  float32[]",
        "    output[1]['a']  float32[]  int32[]    <- dtypes differ",
    ]
    assert "no at test_cond.py:" in lines[4] and "yes at test_cond.py:" in lines[4]


OTHERS = [
    (lambda x: x.astype(int), "dtypes differ"),
    (lambda x: jnp.ones(3), "shapes differ"),
    (lambda x: (x,), "pytree structure"),
    (lambda x: None, "pytree structure"),
    (lambda x: "a", "valid array type"),
    (lambda x, y: x, "missing 1 required positional argument"),
]


@pytest.mark.parametrize(("other", "text"), OTHERS)
def test_the_function_that_does_not_run_is_checked(other: Any, text: str) -> None:
    def same(x: Any) -> Any:
        return x * 2

    for f in (lambda x: x, jit(lambda x: x)):
        for call in (
            lambda f=f: lax.cond(True, f, other, X),
            lambda f=f: lax.cond(False, other, f, X),
            lambda f=f: lax.switch(0, [f, same, other], X),
            lambda: grad(lambda x: lax.cond(x.sum() > 0, same, other, x).sum())(X),
            lambda: jit(lambda p: lax.cond(p, same, other, X))(True),
        ):
            with pytest.raises(TypeError, match=text):
                call()
    with primal.disable_jit():  # Plain Python, and nothing else.
        np.testing.assert_array_equal(lax.cond(True, same, other, X), X * 2)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: lax.cond(X, lambda: 1, lambda: 2), TypeError, r"shape \(2,\)"),
        (lambda: lax.cond("a", lambda: 1, lambda: 2), TypeError, "scalar as predicate, got 'a'"),
        (lambda: lax.cond(None, lambda: 1, lambda: 2), TypeError, "got None"),
        (lambda: lax.cond(True, 1, lambda: 2), TypeError, "true_fun to be callable"),
        (lambda: lax.cond(True, lambda: 2, 1), TypeError, "false_fun to be callable"),
        (lambda: lax.cond(True, lambda: 1, lambda: 2, 3.0, operand=2.0), TypeError, "both"),
        (lambda: lax.cond(True, lambda: "x", lambda: 2), TypeError, "str"),
        (
            lambda: jit(lambda p: lax.cond(p, lambda: (1,), lambda: {"a": 1}))(True),
            TypeError,
            "pytree structure",
        ),
        (
            lambda: jit(lambda p: lax.cond(p, lambda: 1.0, lambda: None))(True),
            TypeError,
            "missing",
        ),
        (lambda: lax.switch(0, []), ValueError, "at least one branch"),
        (lambda: lax.switch(0.0, [lambda: 1]), TypeError, "integer as index"),
        (lambda: lax.switch(True, [lambda: 1]), TypeError, "integer as index"),
        (lambda: lax.switch(X, [lambda: 1, lambda: 2]), TypeError, "scalar as index"),
        (lambda: lax.switch(1, [lambda: 1, 3]), TypeError, "sequence of functions"),
        (lambda: lax.switch(1, 3), TypeError, "sequence of functions"),
        (
            lambda: jit(lambda i: lax.switch(i, [lambda: 1, lambda: 2, lambda: True]))(0),
            TypeError,
            "branch 2",
        ),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("how", [lambda f: f, jit], ids=["eager", "jit"])
def test_what_every_branch_passes_on_is_not_repeated_per_example(how: Any) -> None:
    def f(i: Any, x: Any, y: Any) -> Any:
        return lax.switch(i, [lambda x, y: (x, y, x), lambda x, y: (x, y + 0, y)], x, y)

    mapped = how(vmap(f, in_axes=(0, None, 1), out_axes=(None, 1, 0)))
    same, moved, chosen = mapped(jnp.array([0, 1]), X, jnp.ones((2, 2)))
    np.testing.assert_array_equal(same, X)
    np.testing.assert_array_equal(moved, np.ones((2, 2)))
    np.testing.assert_array_equal(chosen, [X, [1, 1]])
    assert vmap(lambda i: f(i, 3.0, 4.0)[0], out_axes=None)(jnp.array([0, 1])) == 3


def test_recursion_in_plain_python() -> None:
    def fact(n: Any) -> Any:
        return lax.cond(n <= 1, lambda n: jnp.int32(1), lambda n: n * fact(n - 1), n)

    assert int(fact(jnp.int32(5))) == 120
    assert isinstance(fact(jnp.int32(5)), primal.Array)


def test_platforms_and_composites() -> None:
    def f(x: Any) -> Any:
        return lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x * 5)

    assert f(1.0) == 2.0
    assert jit(f)(1.0) == 2.0
    assert grad(f)(1.0) == 1.0
    assert lax.platform_dependent(1.0, tpu=lambda x: 3.0, default=lambda x: x * 5) == 5.0
    with pytest.raises(NotImplementedError, match="a function for the platform cpu"):
        lax.platform_dependent(1.0, tpu=lambda x: x)
    scaled = lax.composite(lambda x, *, by: x * by, name="my.scaled", version=1)
    assert jit(lambda x: scaled(x, by=3))(2.0) == 6.0
    with pytest.raises(TypeError, match="integer version"):
        lax.composite(lambda x: x, name="f", version="1")  # type: ignore[arg-type]


SAFE = {
    "operand": (lambda w, x: lax.cond(x > 0, jnp.sqrt, lambda x: 0.0 * x, x), (0, 1 / 4)),
    "closed over": (lambda w, x: lax.cond(x > 0, lambda: w * jnp.log(x), lambda: 0.0), (0, 1 / 4)),
    "in a call": (
        lambda w, x: lax.cond(x > 0, primal.jit(lambda: w * jnp.log(x)), lambda: 0.0),
        (0, 1 / 4),
    ),
    "a product": (
        lambda w, x: lax.cond(
            x > 0, lambda: jnp.sqrt(w * jnp.ones((2, 2)) @ (x * jnp.ones(2))).sum(), lambda: 0.0
        ),
        (0, 2**0.5 / 2),
    ),
    "a switch": (
        lambda w, x: lax.switch(
            (x > 0).astype(int) + (x > 2), [lambda: 0.0, lambda: w / x, lambda: w * jnp.sqrt(x)]
        ),
        (0, 1 / 4),
    ),
}


@pytest.mark.parametrize("name", SAFE)
@pytest.mark.parametrize("wrap", [lambda f: f, primal.jit], ids=["eager", "jit"])
def test_a_branch_that_an_example_did_not_choose_makes_no_nan(name, wrap):
    # At x = 0 the derivatives of the branch for positive x are infinite.
    f, want = SAFE[name]
    xs = jnp.array([0.0, 4.0])

    def total(w, xs):
        return primal.vmap(f, (None, 0))(w, xs).sum()

    dw, dxs = wrap(primal.grad(total, (0, 1)))(1.0, xs)
    assert np.allclose(dxs, want)
    alone = sum([primal.grad(f)(1.0, x) for x in xs])
    assert np.isfinite(dw) and np.allclose(dw, alone)


def _root_of_steps(w, x):
    return lax.scan(lambda c, _: (jnp.sqrt(c * w), None), x, None, length=2)[0]


SHARED = {
    "read alone": lambda w, x: jnp.sqrt(w - 2) * x,
    "a loop": _root_of_steps,
    "a choice": lambda w, x: lax.cond(w > 1, lambda: jnp.log(x * w), lambda: w),
    "a product": lambda w, x: (w * jnp.eye(2) @ (jnp.ones(2) / x)).sum(),
    "a convolution": lambda w, x: jnp.sqrt(jnp.convolve(jnp.full(3, w), jnp.full(2, 1 / x))).sum(),
    "a solution": lambda w, x: jnp.linalg.solve(w * jnp.eye(2), jnp.ones(2) / x).sum(),
    "a gather": lambda w, x: jnp.log((w * jnp.arange(3.0))[x.astype(int)]),
    "a part": lambda w, x: jnp.full(3, w).at[1].multiply(1 / x).sum(),
    "remat": lambda w, x: primal.checkpoint(lambda w, x: w / x)(w, x),
}


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("xs", [[0.0, 1.0], [0.0, 0.0]])
def test_what_examples_share_gets_no_nan_from_branches_not_chosen(name, xs):
    def chosen(w, x):
        return lax.cond(x > 0, SHARED[name], lambda w, x: 0.0 * x, w, x)

    def total(w, xs):
        return primal.vmap(chosen, (None, 0))(w, xs).sum()

    # Nobody chooses the branch where it has no finite derivative.
    w = 2.0 if name != "read alone" or not any(xs) else 3.0
    dw, dxs = primal.jit(primal.grad(total, (0, 1)))(w, jnp.array(xs))
    alone = [primal.grad(chosen, (0, 1))(w, x) for x in xs]
    assert np.isfinite(dw) and np.allclose(dw, sum([g for g, _ in alone]))
    assert np.allclose(dxs, [g for _, g in alone])


def test_guards_leave_programs_that_nobody_differentiates_as_they_were():
    f = primal.vmap(lambda x: lax.cond(x > 0, jnp.sqrt, lambda x: x, x))
    text = primal.jit(f).lower(jnp.ones(3)).as_text()
    assert text.count("stablehlo.select") == 1
    assert "stop_gradient" in str(primal.make_jaxpr(f)(jnp.ones(3)))


def test_weights_that_a_loop_in_a_branch_reads_stay_one_for_all_examples():
    def in_branch(w, x):
        def steps():
            return lax.scan(lambda c, s: (jnp.sqrt(w @ c) * s, c), x, jnp.ones(3))[0]

        return lax.cond(x[0] > 0, steps, lambda: x)

    w, xs = jnp.full((5, 5), 0.5), jnp.array([np.zeros(5), np.ones(5), np.arange(1.0, 6)])
    gradient = primal.grad(lambda w: primal.vmap(in_branch, (None, 0))(w, xs).sum())
    assert "3,5,5]" not in str(primal.make_jaxpr(primal.vmap(in_branch, (None, 0)))(w, xs))
    want = sum([primal.grad(lambda w, x=x: in_branch(w, x).sum())(w) for x in xs[1:]])
    assert np.allclose(gradient(w), want)
    assert np.allclose(primal.jit(gradient)(w), want)


def test_float0_of_a_known_branch_is_that_of_numpy() -> None:
    nothing = np.zeros(3, primal.dtypes.float0)
    for got in (
        lax.cond(True, lambda: nothing, lambda: nothing),
        lax.cond(jnp.array(False), lambda: nothing, lambda: nothing),
        lax.switch(1, [lambda: nothing] * 2),
        jit(lambda: lax.cond(True, lambda: nothing, lambda: nothing))(),
    ):
        assert type(got) is np.ndarray and got.dtype == nothing.dtype and got.shape == (3,)


def test_functions_are_traced_in_the_order_in_which_they_are_written() -> None:
    traced: list[str] = []

    def noted(name: str) -> Any:
        def f(x: Any) -> Any:
            traced.append(name)
            return x < 3 if name == "condition" else x + 1

        return f

    jit(lambda x: lax.cond(x > 0, noted("true"), noted("false"), x))(1)
    jit(lambda x: lax.switch(x, [noted("first"), noted("second")], x))(1)
    lax.while_loop(noted("condition"), noted("body"), 0)
    assert traced == ["true", "false", "first", "second", "condition", "body"]

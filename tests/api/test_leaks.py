"""checking_leaks: a kept tracer is an error where its trace ends, and nothing else is."""

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax

X = np.arange(3.0, dtype=np.float32)
kept: list = []


def keeps(x):
    kept.append(x * 2)
    return x * 3


def keeps_in_closure(x):
    y = x * 2
    kept.append(lambda: y)
    return x * 3


TRANSFORMATIONS = {
    "jit": lambda f: primal.jit(f)(X),
    "make_jaxpr": lambda f: primal.make_jaxpr(f)(X),
    "eval_shape": lambda f: primal.eval_shape(f, X),
    "vmap": lambda f: primal.vmap(f)(X),
    "grad": lambda f: primal.grad(lambda x: f(x).sum())(X),
    "jvp": lambda f: primal.jvp(f, (X,), (X,)),
    "scan": lambda f: lax.scan(lambda c, a: (f(c), a), X, X),
    "cond": lambda f: primal.jit(lambda x: lax.cond(x[0] > 0, f, jnp.sin, x))(X),
    "grad of jit of vmap": lambda f: primal.grad(lambda x: primal.jit(primal.vmap(f))(x).sum())(X),
}


@pytest.fixture(autouse=True)
def forget():
    global kept
    kept = []  # a new one: what stood before the tests began is hidden from the collector
    yield
    kept.clear()


@pytest.mark.parametrize("name", TRANSFORMATIONS)
@pytest.mark.parametrize("f", [keeps, keeps_in_closure])
def test_kept_values_are_found(name, f):
    with primal.checking_leaks(), pytest.raises(primal.errors.UnexpectedTracerError) as info:
        TRANSFORMATIONS[name](f)
    assert "kept by a" in str(info.value)


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_innocent_functions_pass(name):
    with primal.checking_leaks():
        TRANSFORMATIONS[name](lambda x: jnp.sin(x) * x)


@primal.custom_vjp
def by_vjp(x):
    return jnp.sin(x)


by_vjp.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x),))


@primal.custom_jvp
def by_jvp(x):
    return jnp.sin(x)


by_jvp.defjvp(lambda xs, ts: (by_jvp(*xs), jnp.cos(xs[0]) * ts[0]))


@pytest.mark.parametrize("f", [jnp.sin, by_vjp, by_jvp, primal.jit(jnp.sin)])
@pytest.mark.parametrize(
    "use",
    [
        lambda f: primal.grad(f)(1.0),
        lambda f: primal.jit(primal.grad(f))(1.0),
        lambda f: primal.vmap(primal.grad(f))(X),
        lambda f: primal.jit(primal.vmap(primal.jit(f)))(X),
        lambda f: primal.jacrev(f)(X),
        lambda f: primal.vjp(f, X)[1](X),
        lambda f: primal.grad(lambda x: lax.scan(lambda c, a: (f(c) * a, c), 1.0, x)[0])(X),
    ],
)
def test_the_library_keeps_nothing(f, use):
    with primal.checking_leaks():
        use(f)


def test_an_error_passes_through():
    with primal.checking_leaks(), pytest.raises(ZeroDivisionError):
        primal.jit(lambda x: 1 // 0)(X)


def test_cycles_are_no_leaks():
    def f(x):
        cycle = [x * 2]
        cycle.append(cycle)
        return x

    with primal.checking_leaks():
        primal.jit(f)(X)


def test_the_flag_switches_it_on():
    primal.config.update("jax_check_tracer_leaks", True)
    try:
        with pytest.raises(primal.errors.UnexpectedTracerError, match="Leaked trace"):
            primal.jit(keeps)(X + 1)
    finally:
        primal.config.update("jax_check_tracer_leaks", False)
    primal.jit(keeps)(X + 1)

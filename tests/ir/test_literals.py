"""Literals: numbers of Python and NumPy beside operands of a dtype."""

import numpy as np
import pytest

import primal as jax
import primal.numpy as jnp
from primal.ir.trace import literal


@pytest.mark.parametrize("dtype", ["int32", "float16", "float32", "complex64"])
@pytest.mark.parametrize(
    "value",
    [0.0, 70000.0, -1e300, 1e308 + 1e308j, np.int32(-(2**31)), np.float32(1e10), np.int64(2**40)],
    ids=repr,
)
def test_extremes_are_converted_in_silence(value, dtype):
    if np.iscomplexobj(value) and dtype != "complex64":
        pytest.skip("not a number of that dtype")
    if dtype == "int32" and abs(complex(value).real) > 2**31:
        pytest.skip("no such integer")
    found = literal(value, np.dtype(dtype))
    with np.errstate(all="ignore"):
        want = np.asarray(value).astype(dtype)
    assert found.aval.dtype == dtype
    np.testing.assert_array_equal(found.val, want)


NUMBERS_OF_PROGRAMS = {
    "strong": lambda x: jnp.asarray(2.0) * x,
    "of a dtype": lambda x: jnp.float32(3) * x,
    "cast": lambda x: jnp.asarray(2).astype("float32") * x,
    "in a jit": lambda x: jax.jit(lambda y: jnp.asarray(2.0) * y)(x),
    "around a jit": lambda x: (lambda a: jax.jit(lambda y: a * y)(x))(jnp.asarray(2.0)),
    "in a loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, y: y * jnp.asarray(2.0), x),
    "in a gradient": lambda x: jax.grad(lambda x: (jnp.asarray(2.0) * x).sum())(x),
    "in a map": lambda x: jax.vmap(lambda y: y * jnp.asarray(2.0))(x),
    "alone": lambda x: jnp.asarray(3),
}


@pytest.mark.parametrize("name", NUMBERS_OF_PROGRAMS)
def test_numbers_made_while_a_program_is_recorded_are_literals(name):
    fun, x = NUMBERS_OF_PROGRAMS[name], np.arange(3, dtype=np.float32)
    closed = jax.make_jaxpr(fun)(x)
    assert not closed.consts
    got, want = jax.jit(fun)(x), fun(x)
    assert (got.dtype, got.weak_type) == (want.dtype, want.weak_type)
    np.testing.assert_array_equal(got, want)


def test_numbers_made_before_are_constants_and_read_as_they_were():
    made = jnp.asarray(2.0)
    closed = jax.make_jaxpr(lambda x: made * x)(np.ones(3, np.float32))
    assert len(closed.consts) == 1
    # Values can be asked for while the program is recorded.
    assert str(jax.make_jaxpr(lambda x: x * float(jnp.asarray(2.0)))(1.0)).count("2.0") == 1

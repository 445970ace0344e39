"""What users hand to transformations and get back: functions, names, places, numbers."""

import traceback

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.sharding import SingleDeviceSharding

X = np.ones(3, np.float32)


def a_generator(x):
    yield x


TRANSFORMATIONS = {
    "jit": primal.jit,
    "grad": primal.grad,
    "value_and_grad": primal.value_and_grad,
    "vmap": primal.vmap,
    "jacfwd": primal.jacfwd,
    "jacrev": primal.jacrev,
    "hessian": primal.hessian,
    "make_jaxpr": primal.make_jaxpr,
    "jvp": lambda f: primal.jvp(f, (1.0,), (1.0,)),
    "vjp": lambda f: primal.vjp(f, 1.0),
    "linearize": lambda f: primal.linearize(f, 1.0),
    "linear_transpose": lambda f: primal.linear_transpose(f, 1.0),
}


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_what_cannot_be_called_is_refused_when_it_is_given(name):
    transformed = TRANSFORMATIONS[name]
    with pytest.raises(TypeError, match="Expected a callable value, got 3"):
        transformed(3)
    with pytest.raises(TypeError, match="got a generator function"):
        transformed(a_generator)
    with pytest.raises(TypeError, match="staticmethod arguments are not supported"):
        transformed(staticmethod(abs))


def test_jit_of_an_object_whose_repr_fails_has_a_repr():
    class Broken:
        def __call__(self):
            return 1

        def __repr__(self):
            raise ValueError("no words")

    assert repr(primal.jit(Broken())) == "<PjitFunction>"


def of_kinds(a, /, b, *args, c=1, **rest):
    return b


@pytest.mark.parametrize("option", ["static_argnames", "donate_argnames"])
def test_names_that_no_keyword_has_are_refused(option):
    for name in ("b", "c", "anything", "rest"):
        primal.jit(of_kinds, **{option: name})
    for name in ("a", "args"):
        with pytest.raises(ValueError, match=f"got '{name}'"):
            primal.jit(of_kinds, **{option: name})


@pytest.mark.parametrize("empty", [None, (), {}, [(), None]])
def test_the_gradient_of_nothing_is_refused(empty):
    with pytest.raises(TypeError, match="Gradient only defined for scalar-output functions"):
        primal.grad(lambda x: empty)(1.0)


@pytest.mark.parametrize("f", [lax.add, lax.mul, lax.max, lax.eq, lambda x, y: lax.neg(x)])
@pytest.mark.parametrize("big", [2**31, -(2**31) - 1, 2**40])
def test_python_integers_that_no_array_holds_are_no_operands(f, big):
    for call in (f, primal.jit(f, static_argnums=(0, 1))):
        with pytest.raises(OverflowError, match=f"{big}"):
            call(big, 1)
    assert f(2**31 - 1, 1).dtype in (np.int32, np.bool_)


@pytest.mark.parametrize(
    "call",
    [
        lambda n: primal.jit(lambda x, n: x / n)(1.0, n),
        lambda n: primal.jit(lambda p: p["n"])({"n": n}),
        lambda n: primal.jvp(lambda x: x, (n,), (0.0,)),
        lambda n: lax.cond(True, lambda x: x, lambda x: x, n),
        lambda n: lax.scan(lambda c, x: (c, x), n, None, length=2),
        primal.device_put,
    ],
)
def test_python_integers_that_no_array_holds_are_no_arguments(call):
    with pytest.raises(OverflowError, match=r"expected an integer of int32, got 4294967296"):
        call(2**32)


def test_python_integers_beside_floats_are_floats():
    x = jnp.float32([1, 2])
    for f in (lambda x: x / 2**32, lambda x: x * 2**-32, lambda x: x - 2**40 + 2**40):
        np.testing.assert_array_equal(f(x), f(np.asarray(x)))
        np.testing.assert_array_equal(primal.jit(f)(x), f(np.asarray(x)))
    assert (x < 2**32).all() and float(jnp.where(x > 1, x, 2**32)[0]) == 2.0**32


@pytest.mark.parametrize("shape", [(0,), (2,), (2, 3), (0, 4)])
def test_arrays_have_no_truth_traced_or_not(shape):
    x = jnp.ones(shape)
    for f in (bool, primal.jit(bool), lambda x: primal.vmap(bool)(x[None])):
        with pytest.raises(ValueError, match="truth value of an"):
            f(x)


def test_results_of_dtype_float0_are_numpys():
    def pulled(i, x):
        return primal.vjp(lambda i, x: x * i, i, x)[1](1.0)

    for f in (pulled, primal.jit(pulled)):
        nothing, ct = f(2, 3.0)
        assert type(nothing) is np.ndarray and nothing.dtype == primal.float0
        assert nothing.shape == () and ct == 2.0
    for f in (primal.vmap(pulled), primal.jit(primal.vmap(pulled))):
        batched, _ = f(jnp.arange(3), jnp.ones(3))
        assert type(batched) is np.ndarray and batched.shape == (3,)
    moved = primal.vmap(primal.vmap(lambda x: primal.jvp(jnp.isnan, (x,), (x,))[1]), out_axes=1)
    nothing = moved(jnp.ones((2, 3)))
    assert type(nothing) is np.ndarray and nothing.shape == (3, 2)


def test_jacrev_of_integers_is_zeros_of_their_dtype():
    j = primal.jacrev(lambda i: jnp.arange(3.0) * i, allow_int=True)(jnp.arange(3))
    assert j.dtype == np.int32 and j.shape == (3, 3) and not j.any()


def test_a_transposed_function_is_a_tree():
    @primal.jit
    def transposed(c):
        return primal.linear_transpose(lambda x: c * x, 1.0)

    assert primal.jit(lambda f: f(3.0))(transposed(2.0)) == (6.0,)
    assert primal.vmap(lambda f: f(3.0))(primal.vmap(transposed)(jnp.arange(2.0)))[0].tolist() == [
        0.0,
        3.0,
    ]


def test_device_put_takes_a_tree_of_places():
    here = primal.devices()[0]
    a, (b, c) = primal.device_put((1, (2, 3)), (here, (SingleDeviceSharding(here), None)))
    assert (a.committed, b.committed, c.committed) == (True, True, False)
    a, (b, c) = primal.device_put((1, (2, 3)), (None, here))
    assert (a.committed, b.committed, c.committed) == (False, True, True)
    with pytest.raises(ValueError, match="prefix"):
        primal.device_put((1, 2), (here,))
    with pytest.raises(ValueError, match="Received invalid value"):
        primal.device_put((1, 2), ("cpu", here))


def test_device_put_copies_where_it_is_told_to():
    here = primal.devices()[0]
    for x in (jnp.arange(3), primal.device_put(jnp.arange(3), here)):
        for place in (None, here):
            same = primal.device_put(x, place, may_alias=False)
            assert same is not x and same.tolist() == [0, 1, 2]
            assert same.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
            assert same.committed == (x.committed or place is not None)
    assert primal.device_put(x, here) is x
    with pytest.raises(ValueError, match="cannot be True at the same time"):
        primal.device_put(x, here, may_alias=True, donate=True)
    x.delete()
    for place in (None, here):
        with pytest.raises(RuntimeError, match="deleted"):
            primal.device_put(x, place)


def test_zeros_of_a_rule_have_the_shapes_of_the_arguments():
    @primal.custom_vjp
    def swapped(x, y):
        return x, y

    swapped.defvjp(
        lambda x, y: ((x.value, y.value), None), lambda _, ct: (ct[1], ct[0]), symbolic_zeros=True
    )
    with pytest.raises(ValueError, match="SymbolicZero.*None stands for zeros"):
        primal.grad(lambda x, y: swapped(x, y)[0].sum())(jnp.ones(1), jnp.ones(2))


def test_the_zero_tangent_of_an_integer_is_what_a_rule_may_return():
    @primal.custom_jvp
    def f(x, i):
        return x, i

    f.defjvp(lambda p, t: (p, (2.0, primal.custom_derivatives.zero_from_primal(p[1]))))
    nothing = np.zeros((), primal.float0)
    _, (dx, di) = primal.jvp(f, (1.0, 3), (1.0, nothing))
    assert dx == 2.0 and di.dtype == primal.float0


def fails(x, *_):
    return jnp.reshape(x, 7)


CALLS = {
    "scan": lambda: lax.scan(lambda c, x: (fails(c), x), X, X),
    "map": lambda: lax.map(fails, jnp.ones((2, 3))),
    "while": lambda: lax.while_loop(lambda x: x.sum() < 9, fails, X),
    "fori": lambda: lax.fori_loop(0, 3, lambda i, x: fails(x), X),
    "cond": lambda: lax.cond(True, fails, fails, X),
    "switch": lambda: lax.switch(0, [fails, fails], X),
    "associative": lambda: lax.associative_scan(fails, X),
}


@pytest.mark.parametrize("name", CALLS)
def test_errors_of_functions_handed_over_end_at_the_users_line(name):
    with pytest.raises(TypeError, match="reshape") as found:
        CALLS[name]()
    frames = traceback.extract_tb(found.value.__traceback__)
    assert frames[-1].name == "fails"
    assert {f.filename for f in frames} == {__file__}


def test_from_dlpack_takes_no_traced_array():
    for call in (primal.jit(jnp.from_dlpack), primal.grad(lambda x: jnp.from_dlpack(x).sum())):
        with pytest.raises(TypeError, match="traced"):
            call(jnp.ones(2))
    assert jnp.from_dlpack(jnp.ones(2)).tolist() == [1.0, 1.0]

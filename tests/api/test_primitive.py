"""Operations that users define: what transformations and engines do with their rules."""

import copy
from functools import partial

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.config import cpu_engine
from primal.extend.core import Primitive, jaxpr_as_fun
from primal.interpreters import ad, batching, mlir, xla


def scaled_product() -> Primitive:
    """x·y·n with all its rules."""
    p = Primitive("scaled_product")
    p.def_impl(lambda x, y, *, n: n * x * y)
    p.def_abstract_eval(
        lambda x, y, *, n: primal.core.ShapedArray(np.broadcast_shapes(x.shape, y.shape), x.dtype)
    )
    mlir.register_lowering(p, mlir.lower_fun(lambda x, y, *, n: n * x * y, multiple_results=False))
    ad.defbilinear(
        p, lambda ct, x, y, *, n: p.bind(ct, y, n=n), lambda ct, x, y, *, n: p.bind(x, ct, n=n)
    )
    batching.defbroadcasting(p)
    return p


P = scaled_product()
X, Y = jnp.array([1.0, -2.0, 0.5]), jnp.array([3.0, 0.25, -1.0])


def ours(x, y):
    return P.bind(x, jnp.sin(y), n=3.0)


def plain(x, y):
    return 3.0 * x * jnp.sin(y)


TRANSFORMED = {
    "value": lambda f: f,
    "jvp": lambda f: lambda x, y: primal.jvp(f, (x, y), (y, x)),
    "grad": lambda f: primal.grad(lambda x, y: f(x, y).sum(), argnums=(0, 1)),
    "hessian": lambda f: primal.hessian(lambda x, y: f(x, y).sum(), argnums=(0, 1)),
    "linearize": lambda f: lambda x, y: primal.linearize(f, x, y)[1](y, x),
    "vmap": primal.vmap,
    "vmap of one": lambda f: primal.vmap(f, in_axes=(0, None)),
    "vmap of grad": lambda f: primal.vmap(primal.grad(f, argnums=(0, 1))),
    "checkpoint": lambda f: primal.grad(primal.checkpoint(lambda x, y: f(x, y).sum())),
    "scan": lambda f: lambda x, y: lax.scan(lambda c, a: (f(c, a), c), x[0], y),
    "grad of scan": lambda f: primal.grad(
        lambda x, y: lax.scan(lambda c, a: (f(c, a), c), x[0], y)[0], argnums=(0, 1)
    ),
    "cond": lambda f: lambda x, y: lax.cond(x[0] > 0, f, lambda x, y: y, x, y),
}


@pytest.mark.parametrize("engine", ["cpu", "xla", "reference"])
@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformations_follow_the_rules(name, engine):
    transform = TRANSFORMED[name]
    want = primal.tree.leaves(transform(plain)(X, Y))
    with cpu_engine(engine):
        for found in (transform(ours)(X, Y), primal.jit(transform(ours))(X, Y)):
            for a, b in zip(primal.tree.leaves(found), want, strict=True):
                assert np.shape(a) == np.shape(b)
                np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-6)


def test_outside_of_programs_bind_is_the_implementation():
    p = Primitive("raw")
    p.def_impl(lambda *args, **params: (args, params))
    x = np.ones(2)
    (got, word), params = p.bind(x, "word", key=[1])
    assert got is x and word == "word" and params == {"key": [1]}


def test_several_results_and_zero_cotangents():
    p = Primitive("two")
    p.multiple_results = True
    p.def_impl(lambda x, *, n: [x * n, x + x])
    p.def_abstract_eval(lambda x, *, n: [x, x])
    met = []

    def transpose(ct, x, *, n):
        assert ad.is_undefined_primal(x)
        met.append([type(c) is ad.Zero for c in ct])
        a, b = map(ad.instantiate_zeros, ct)
        return [n * a + 2 * b]

    ad.deflinear2(p, transpose)
    batching.primitive_batchers[p] = lambda args, dims, *, n: (p.bind(*args, n=n), [dims[0]] * 2)
    mlir.register_lowering(p, mlir.lower_fun(lambda x, *, n: [x * n, x + x]))
    for jit in (lambda f: f, primal.jit):
        assert [float(o) for o in jit(lambda x: p.bind(x, n=3.0))(2.0)] == [6.0, 4.0]
        assert jit(primal.grad(lambda x: p.bind(x, n=3.0)[0]))(2.0) == 3.0
        assert jit(primal.grad(lambda x: p.bind(x, n=3.0)[1]))(2.0) == 2.0
        found = jit(primal.vmap(lambda x: p.bind(x, n=3.0)))(X)
        assert np.array_equal(found[0], 3 * X) and np.array_equal(found[1], 2 * X)
    assert met[:2] == [[False, True], [True, False]]


def test_derivatives_by_functions_of_one_tangent():
    p = Primitive("p")
    p.def_impl(lambda x, y: x**2 * y)
    p.def_abstract_eval(lambda x, y: x)
    ad.defjvp(p, lambda t, x, y: 2 * x * y * t, None)
    assert [float(g) for g in primal.grad(p.bind, argnums=(0, 1))(2.0, 3.0)] == [12.0, 0.0]
    ad.defjvp2(p, lambda t, out, x, y: 2 * out / x * t, lambda t, out, x, y: out / y * t)
    assert [float(g) for g in primal.grad(p.bind, argnums=(0, 1))(2.0, 3.0)] == [12.0, 4.0]
    assert [float(t) for t in primal.jvp(p.bind, (2.0, 3.0), (1.0, 1.0))] == [12.0, 16.0]


def test_a_transpose_gets_parameters_and_no_operands_of_deflinear():
    p = Primitive("p")
    p.def_impl(lambda x, *, k: x * k)
    p.def_abstract_eval(lambda x, *, k: x)
    ad.deflinear(p, lambda ct, *, k: [ct * k])
    assert primal.linear_transpose(lambda x: p.bind(x, k=3.0), 1.0)(2.0) == (6.0,)
    assert ad.get_primitive_transpose(p)(2.0, None, k=3.0) == [6.0]
    ad.primitive_transposes[p] = lambda ct, x, *, k: [ct, ct]
    with pytest.raises(ValueError, match="expected the transpose rule to return 1 cotangents"):
        primal.linear_transpose(lambda x: p.bind(x, k=3.0), 1.0)(2.0)


def test_batching_rules():
    p = Primitive("p")
    p.def_impl(lambda x, *, axes: jnp.sum(x, axes))
    batching.defreducer(p)
    x = jnp.arange(24.0).reshape(2, 3, 4)
    for dim in range(3):
        for axes in ((0,), (1,), (0, 1)):
            found = primal.vmap(partial(p.bind, axes=axes), in_axes=dim)(x)
            want = primal.vmap(lambda a, axes=axes: a.sum(axes), in_axes=dim)(x)
            assert np.array_equal(found, want)
    sizes = []

    def fancy(axis, args, dims, *, axes):
        sizes.append(axis.size)
        return batching.bdim_at_front(args[0], dims[0], axis.size).sum((1, 2)), 0

    batching.fancy_primitive_batchers[p] = fancy
    assert primal.vmap(partial(p.bind, axes=(0, 1)), in_axes=2)(x).shape == (4,) and sizes == [4]
    elementwise = Primitive("p")
    elementwise.def_impl(jnp.exp)
    batching.defvectorized(elementwise)
    found = primal.vmap(elementwise.bind, in_axes=1, out_axes=1)(x[0])
    np.testing.assert_allclose(found, np.exp(x[0]), rtol=1e-6)


def test_two_of_one_name_are_two():
    p, q = Primitive("p"), Primitive("p")
    for one, factor in ((p, 2.0), (q, 3.0)):
        one.def_abstract_eval(lambda x: x)
        mlir.register_lowering(
            one, mlir.lower_fun(lambda x, factor=factor: x * factor, multiple_results=False)
        )
        one.def_impl(partial(xla.apply_primitive, one))
    assert p != q and p.bind(1.0) == 2.0 and q.bind(1.0) == 3.0
    closed = primal.make_jaxpr(lambda x: q.bind(p.bind(x)))(1.0)
    assert [eqn.primitive for eqn in closed.eqns] == [p, q]
    assert jaxpr_as_fun(closed)(1.0) == [6.0]
    assert primal.jit(jaxpr_as_fun(closed))(1.0) == [6.0]


def test_tables_are_views_of_the_records():
    p = Primitive("p")
    assert p not in ad.primitive_jvps and ad.primitive_jvps.get(p) is None
    rule = lambda primals, tangents: (primals[0], tangents[0])  # noqa: E731
    ad.primitive_jvps[p] = rule
    assert ad.primitive_jvps[p] is rule and p in list(ad.primitive_jvps)
    del ad.primitive_jvps[p]
    assert p not in ad.primitive_jvps
    with pytest.raises(TypeError, match="rules of the library's own operations stay"):
        ad.primitive_jvps[lax.sin_p] = rule
    with pytest.raises(TypeError, match="rules of the library's own operations stay"):
        mlir.register_lowering(lax.sin_p, mlir.lower_fun(jnp.sin))


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda p: p.bind(1.0), "Evaluation rule for 'p' not implemented"),
        (lambda p: primal.make_jaxpr(p.bind)(1.0), "Abstract evaluation for 'p' not implemented"),
        (lambda p: primal.grad(p.bind)(1.0), "Differentiation rule for 'p' not implemented"),
        (lambda p: primal.vmap(p.bind)(X), "Batching rule for 'p' not implemented"),
    ],
)
def test_rules_that_were_not_given(use, words):
    with pytest.raises(NotImplementedError, match=words):
        use(Primitive("p"))


def test_programs_that_name_it_can_be_copied():
    program = primal.make_jaxpr(ours)(X, Y)
    copied = copy.deepcopy(program)
    assert copied.eqns[-1].primitive is copy.copy(P) is P
    np.testing.assert_array_equal(jaxpr_as_fun(copied)(X, Y)[0], ours(X, Y))


def test_refusals():
    p = Primitive("p")
    p.def_abstract_eval(lambda x: (x, x))
    with pytest.raises(ValueError, match="multiple_results is False"):
        primal.eval_shape(p.bind, 1.0)
    p.def_abstract_eval(lambda x: x.shape and 1)
    with pytest.raises(TypeError, match="a ShapedArray"):
        primal.eval_shape(p.bind, jnp.ones(2))
    p.def_abstract_eval(lambda x: x)
    with pytest.raises(NotImplementedError, match="MLIR translation rule for primitive 'p'"):
        primal.jit(p.bind)(1.0)
    p.def_impl(lambda x: x)
    ad.primitive_jvps[p] = lambda primals, tangents: (p.bind(*primals), p.bind(*tangents))
    with pytest.raises(NotImplementedError, match="Transpose rule"):
        primal.grad(p.bind)(1.0)
    with pytest.raises(TypeError, match="a rule that lower_fun makes"):
        mlir.register_lowering(p, lambda ctx, x: x)
    with pytest.raises(NotImplementedError, match="one rule for all platforms"):
        mlir.register_lowering(p, mlir.lower_fun(jnp.sin), platform="tpu")

"""grad, jvp, vjp, linearize, linear_transpose, Jacobians: results, structure, refusals."""

import gc

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import (
    grad,
    hessian,
    jacfwd,
    jacrev,
    jit,
    jvp,
    lax,
    linear_transpose,
    linearize,
    make_jaxpr,
    value_and_grad,
    vjp,
    vmap,
)
from primal.test_util import check_grads
from primal.transforms import kept_rules


def f(x):
    return jnp.sum(jnp.sin(x) * x)


def df(x):
    return np.sin(x) + x * np.cos(x)


X = np.linspace(-1, 2, 5).astype(np.float32)


@pytest.mark.parametrize(
    "transformed",
    [
        grad(f),
        jit(grad(f)),
        grad(jit(f)),
        jit(grad(jit(f))),
        lambda x: vmap(grad(f))(x[None])[0],
        lambda x: vjp(f, x)[1](1.0)[0],
        lambda x: vmap(linearize(f, x)[1])(jnp.eye(5)),
        lambda x: vmap(lambda v: jvp(f, (x,), (v,))[1])(jnp.eye(5)),
        jacfwd(f),
        jacrev(f),
        lambda x: value_and_grad(f)(x)[1],
        lambda x: grad(lambda y: jvp(f, (y,), (jnp.ones(5),))[0])(x),
    ],
)
def test_every_way_to_the_gradient(transformed):
    np.testing.assert_allclose(transformed(X), df(X), rtol=1e-5, atol=1e-5)


def test_derivatives_of_every_order():
    g = lambda x: x**4 + 2 * x  # noqa: E731
    orders = [16.0 + 4, 32.0 + 2, 48.0, 48.0, 24.0, 0.0]
    for n, expected in enumerate(orders):
        h = g
        for _ in range(n):
            h = grad(h)
        assert float(h(2.0)) == expected
        assert float(jit(h)(2.0)) == expected


def test_python_control_flow_sees_values():
    def g(x):
        return x**2 if x > 0 else -x

    assert float(grad(g)(3.0)) == 6.0
    assert float(grad(g)(-3.0)) == -1.0


def test_argnums_and_structure():
    def g(p, x, scale=1.0):
        return jnp.sum(p["w"] * x + p["b"][0]) * scale

    p = {"w": jnp.ones(3), "b": (jnp.float32(2.0), None)}
    x = jnp.arange(3.0)
    got = grad(g, argnums=(1, 0))(p, x, scale=2.0)
    np.testing.assert_array_equal(got[0], [2, 2, 2])
    np.testing.assert_array_equal(got[1]["w"], [0, 2, 4])
    assert float(got[1]["b"][0]) == 6.0 and got[1]["b"][1] is None
    assert isinstance(grad(g, argnums=(0,))(p, x), tuple)
    np.testing.assert_array_equal(grad(g, argnums=-1)(p, x), [1, 1, 1])


def test_jacobian_of_whole_numbers_is_of_zeros():
    for wrapped in (jacfwd, lambda f: primal.jit(jacfwd(f))):
        floats, whole, truth = wrapped(lambda x: (x, x.astype("int8"), x > 0))(X)
        assert [a.dtype for a in (floats, whole, truth)] == ["float32", "int8", "bool"]
        for zeros in (whole, truth):
            assert zeros.shape == floats.shape and not zeros.any()


def test_aux():
    def g(x, y):
        return x**4 + (y - 1) ** 2 + 3, ({"y": y}, 1337)

    value, aux = grad(g, has_aux=True)(2.0, 5.0)
    assert float(value) == 32.0 and float(aux[0]["y"]) == 5.0 and aux[1] == 1337
    (value, aux), d = value_and_grad(g, has_aux=True)(2.0, 5.0)
    assert (float(value), float(d)) == (35.0, 32.0)
    y, pullback, aux = vjp(g, 2.0, 5.0, has_aux=True)
    assert [float(c) for c in pullback(1.0)] == [32.0, 8.0]
    y, tangent, aux = jvp(g, (2.0, 5.0), (1.0, 0.0), has_aux=True)
    assert (float(y), float(tangent), float(aux[0]["y"])) == (35.0, 32.0, 5.0)
    jac, aux = jacrev(lambda x: (x**2, x), has_aux=True)(jnp.arange(2.0))
    np.testing.assert_array_equal(jac, [[0, 0], [0, 2]])
    jac, aux = jacfwd(lambda d: (d["a"] * X, {"n": d["b"]}), has_aux=True)({"a": 2.0, "b": 3.0})
    np.testing.assert_array_equal(jac["a"], X)
    np.testing.assert_array_equal(jac["b"], X * 0)
    assert float(aux["n"]) == 3.0
    h, aux = hessian(lambda d: (d["a"] * d["b"] ** 2, d["a"]), has_aux=True)({"a": 2.0, "b": 3.0})
    assert primal.tree.map(float, h) == {"a": {"a": 0, "b": 6}, "b": {"a": 6, "b": 4}}
    assert float(aux) == 2.0
    y, push, aux = linearize(lambda x: (x * x, {"k": x}), 3.0, has_aux=True)
    assert (float(y), float(push(2.0)), float(aux["k"])) == (9.0, 12.0, 3.0)


def test_from_real_to_complex_and_back():
    t = 0.7

    def turn(x):
        return x * jnp.exp(1j * x)

    slope = (1 + 1j * t) * np.exp(1j * t)
    y, tangent = jvp(turn, (t,), (1.0,))
    np.testing.assert_allclose([y, tangent], [t * np.exp(1j * t), slope], rtol=1e-6)
    np.testing.assert_allclose(jacfwd(turn)(t), slope, rtol=1e-6)
    # No conjugation: a cotangent c of R -> C gives Re(c f'), which is real.
    for ct in (1.0 + 0j, 1j, 2.0 - 3j):
        (got,) = vjp(turn, t)[1](np.complex64(ct))
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, np.real(ct * slope), rtol=1e-5)
    # C -> R: the tangent is Re(g dz) where g is the gradient.
    z, dz = np.complex64(1 - 2j), np.complex64(0.3 + 0.4j)
    value, push = linearize(lambda z: jnp.abs(z) ** 2 + z.imag, z)
    g = grad(lambda z: jnp.abs(z) ** 2 + z.imag)(z)
    np.testing.assert_allclose([value, push(dz)], [3.0, np.real(g * dz)], rtol=1e-6)
    np.testing.assert_allclose(g, 2 * np.conj(z) - 1j, rtol=1e-6)
    for jac in (jacfwd, jacrev):
        got = jac(lambda z: z * z, holomorphic=True)(jnp.array([z, dz]))
        np.testing.assert_allclose(got, np.diag([2 * z, 2 * dz]), rtol=1e-6)


def test_unused_and_integer_arguments():
    assert float(grad(lambda x, y: y * 1.0)(2.0, 3.0)) == 0.0
    np.testing.assert_array_equal(grad(lambda x: 1.0)(jnp.ones(3)), np.zeros(3))
    g = grad(lambda x, n: x * n, argnums=(0, 1), allow_int=True)(2.0, 3)
    assert float(g[0]) == 3.0
    assert g[1].dtype == primal.float0 and g[1].shape == ()
    y, pullback = vjp(lambda x, n: x * n, 2.0, 3)
    assert pullback(1.0)[1].dtype == primal.float0
    for zero in (np.zeros((), primal.float0), jnp.zeros((), primal.float0)):
        out = jvp(lambda x, n: (x * n, n), (2.0, 3), (1.0, zero))
        assert float(out[1][0]) == 3.0 and out[1][1].dtype == primal.float0


def test_complex_gradients_are_not_conjugated():
    z = 1.0 + 2.0j
    assert complex(grad(lambda z: jnp.real(z * z))(z)) == pytest.approx(2 * z, rel=1e-6)
    assert complex(grad(jnp.abs)(z)) == pytest.approx(np.conj(z) / abs(z), rel=1e-6)
    assert complex(grad(lambda z: z**3, holomorphic=True)(z)) == pytest.approx(3 * z**2, rel=1e-6)


def test_jacobians_of_trees():
    def g(p):
        return {"s": jnp.sin(p["a"]) * p["b"], "t": p["b"] ** 2}

    p = {"a": jnp.arange(3.0), "b": jnp.float32(2.0)}
    for jac in (jacfwd, jacrev):
        j = jac(g)(p)
        np.testing.assert_allclose(j["s"]["a"], np.diag(2 * np.cos(np.arange(3.0))), rtol=1e-6)
        np.testing.assert_allclose(j["s"]["b"], np.sin(np.arange(3.0)), rtol=1e-6)
        np.testing.assert_array_equal(j["t"]["a"], np.zeros(3))
        assert float(j["t"]["b"]) == 4.0
    h = hessian(lambda x, y: jnp.sum(x**2 * y), argnums=(0, 1))(jnp.ones(2), jnp.ones(2))
    np.testing.assert_array_equal(h[0][0], np.eye(2) * 2)
    np.testing.assert_array_equal(h[0][1], np.eye(2) * 2)
    np.testing.assert_array_equal(h[1][1], np.zeros((2, 2)))


def test_linear_functions():
    y, push = linearize(lambda x, y: (x * y, jnp.sin(x)), 2.0, 3.0)
    np.testing.assert_allclose(push(1.0, 10.0), (23.0, np.cos(2.0)), rtol=1e-6)
    np.testing.assert_allclose(vmap(push)(jnp.ones(2), jnp.zeros(2))[0], [3.0, 3.0])
    transposed = linear_transpose(lambda x: 3 * x + jnp.flip(x), jnp.zeros(3))
    np.testing.assert_array_equal(transposed(jnp.arange(3.0))[0], [2, 4, 6])
    assert (
        float(linear_transpose(lambda x: 2 * x, primal.ShapeDtypeStruct((), "float32"))(3.0)[0])
        == 6
    )


def test_linearize_evaluates_the_function_once():
    calls = []

    def g(x):
        calls.append(1)
        return jnp.sin(x) * x

    _, push = linearize(g, 2.0)
    for _ in range(3):
        push(1.0)
    _, pullback = vjp(g, 2.0)
    for _ in range(3):
        pullback(1.0)
    assert len(calls) == 2


def test_gradient_programs_hold_no_dead_forward_work():
    jaxpr = make_jaxpr(grad(lambda x: jnp.sum(x * 3.0)))(X)
    assert len(jaxpr.eqns) <= 4


def test_jit_of_grad_of_jit_is_one_executable():
    from primal.runtime.programs import counters

    g = jit(grad(jit(lambda x: jnp.sum(jnp.tanh(x) * 1.375))))
    before = counters.compilations
    g(X)
    g(X)
    assert counters.compilations == before + 1


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: grad(3), TypeError, "callable"),
        (
            lambda: grad(jnp.sin)(X),
            TypeError,
            "scalar-output functions. Output had shape: \\(5,\\)",
        ),
        (
            lambda: grad(lambda x: (jnp.sum(x), {"x": x}))(X),
            TypeError,
            "Output was \\(float32\\[\\], \\{'x': float32\\[5\\]\\}\\), .*has_aux=True",
        ),
        (lambda: grad(lambda x: (f(x), "no array"))(X), TypeError, "'no array'.*has_aux=True"),
        (lambda: grad(lambda x: ([x], 1), has_aux=True)(X), TypeError, "Output was \\[float32"),
        (lambda: grad(f)(np.arange(3)), TypeError, "real- or complex-valued inputs.*int32"),
        (lambda: grad(lambda x: x > 0)(1.0), TypeError, "real- or complex-valued outputs.*bool"),
        (lambda: grad(lambda x: x * 1j)(1.0), TypeError, "real-valued outputs"),
        (lambda: grad(f, argnums=1)(X), TypeError, "argnums=1 requires at least 2 positional"),
        (lambda: grad(f, argnums=1.0)(X), TypeError, "argnums of ints"),
        (lambda: grad(f)("a"), TypeError, "not a valid array type"),
        (lambda: grad(f, holomorphic=True)(X), TypeError, "inputs with complex dtype"),
        (lambda: grad(f, has_aux=True)(X), TypeError, "pair \\(value, aux\\)"),
        (lambda: jvp(f, X, X), TypeError, "tuples or lists"),
        (lambda: jvp(f, (X,), ()), TypeError, "same tree structure"),
        (lambda: jvp(f, (X,), [X]), TypeError, "same tree structure"),
        (lambda: jvp(f, (X,), (X[:2],)), ValueError, "different primal and tangent shapes"),
        (lambda: jvp(f, (X,), (np.arange(5),)), TypeError, "dtypes must be equal"),
        (lambda: vjp(f, X)[1]((1.0,)), ValueError, "tree structure"),
        (lambda: vjp(jnp.sin, X)[1](jnp.ones(2)), ValueError, "[Ss]hape of cotangent"),
        (lambda: vjp(f, X)[1](jnp.int32(1)), ValueError, "cotangent"),
        (lambda: linear_transpose(jnp.sin, X)(X), NotImplementedError, "\\[transpose\\]"),
        (lambda: jacfwd(lambda x: x)(1j), TypeError, "real-valued inputs"),
        (lambda: jacrev(lambda x: x * 1j)(1.0), TypeError, "real-valued outputs"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_derivatives_at_a_point_are_trees_of_what_they_keep():
    y, pull = jit(lambda x: vjp(jnp.sin, x))(1.0)
    np.testing.assert_allclose((y, pull(2.0)[0]), (np.sin(1), 2 * np.cos(1)), rtol=1e-6)
    y, push = jit(lambda x: linearize(lambda x: (jnp.sin(x), x * x), x))(1.0)
    np.testing.assert_allclose(push(2.0), (2 * np.cos(1), 4.0), rtol=1e-6)
    xs = jnp.arange(3.0)
    pulls = vmap(lambda x: vjp(lambda x, y: x * x * y, x, 2.0)[1])(xs)
    ct, of_two = vmap(lambda p: p(1.0))(pulls)
    np.testing.assert_allclose(ct, 4 * xs)
    np.testing.assert_allclose(of_two, xs * xs)
    assert [x.shape for x in primal.tree.leaves(pulls)] == [(3,)] * len(primal.tree.leaves(pulls))
    second = grad(lambda x: vjp(jnp.sin, x)[1](1.0)[0])(1.0)
    np.testing.assert_allclose(second, -np.sin(1), rtol=1e-6)


def test_forward_and_backward_as_functions():
    fwd, bwd = primal.fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    y, res = fwd(2.0, 3.0)
    assert (y, *bwd(res, 1.0)) == (6.0, 3.0, 2.0)
    fwd, bwd = primal.fwd_and_bwd(
        lambda x, y: (x * y, {"a": x}), argnums=0, has_aux=True, jitted=False
    )
    y, res, aux = fwd(2.0, 3.0)
    assert (y, aux["a"], bwd(res, 1.0)) == (6.0, 2.0, 3.0)
    with pytest.raises(TypeError, match="argnums"):
        primal.fwd_and_bwd(lambda x: x, 3)[0](1.0)


def test_cotangents_of_integers_are_zeros_of_their_shape() -> None:
    _, pullback = primal.vjp(lambda x: x.astype(int), np.float32([1, 2]))
    for ct in (np.ones(2), np.ones(2, np.int8), np.zeros(2, primal.dtypes.float0)):
        np.testing.assert_array_equal(pullback(ct)[0], [0, 0])
    with pytest.raises(ValueError, match="of the shape of its output"):
        pullback(np.ones(3))


def test_arguments_that_are_refused() -> None:
    for call in (
        lambda: primal.grad(lambda x: x, reduce_axes=("i",)),
        lambda: primal.value_and_grad(lambda x: x, reduce_axes=("i",)),
        lambda: primal.vjp(lambda x: x, 1.0, reduce_axes=("i",)),
        lambda: primal.linear_transpose(lambda x: x, 1.0, reduce_axes=("i",)),
    ):
        with pytest.raises(NotImplementedError, match="reduce_axes"):
            call()
    with pytest.raises(ValueError, match="argnums of at least -2"):
        primal.grad(lambda x, y: x, argnums=-3)(1.0, 2.0)
    with pytest.raises(TypeError, match="requires at least 3 positional"):
        primal.grad(lambda x, y: x, argnums=(0, 2))(1.0, 2.0)


class AnswersAll:
    """A callable object for which every attribute is another of its kind."""

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__name__", "__qualname__", "__doc__"):
            raise AttributeError(name)
        return AnswersAll()

    def __call__(self, x):
        return jnp.sum(x * x)


@pytest.mark.parametrize(
    "transform",
    [
        primal.grad, primal.value_and_grad, primal.vmap, primal.jacfwd, primal.jacrev,
        primal.hessian, primal.checkpoint, primal.make_jaxpr, jnp.vectorize,
        lambda f: lambda x: primal.eval_shape(f, x), primal.experimental.checkify.checkify,
    ],
)  # fmt: skip
def test_callable_objects_whose_name_is_no_text(transform):
    expected = transform(lambda x: jnp.sum(x * x))(jnp.arange(2.0))
    assert str(transform(AnswersAll())(jnp.arange(2.0))) == str(expected)


@pytest.mark.parametrize("eps", [None, 0.01])
def test_differences_are_taken_at_distance_eps(eps):
    """Central differences: f(x + eps t) and f(x - eps t); eps is 1e-4 unless it is given."""
    seen = []

    def f(x):
        if not isinstance(x, primal.core.Tracer):
            seen.append(float(x))
        return 2 * x

    check_grads(f, (np.float32(1.0),), order=1, modes=["fwd"], eps=eps)
    step = (max(seen) - 1) / float(np.random.RandomState(0).randn())
    assert step == pytest.approx(eps or 1e-4, rel=1e-2)
    assert min(seen) + max(seen) == pytest.approx(2, abs=1e-6)


def _bent(f):
    """f with a derivative that is 1.5 times the true one."""
    bent = primal.custom_jvp(f)
    bent.defjvp(lambda p, t: (f(*p), 1.5 * primal.jvp(f, p, t)[1]))
    return bent


@pytest.mark.parametrize("mode", ["fwd", "rev", "lin"])
@pytest.mark.parametrize(
    "f, x",
    [
        (jnp.sin, np.float32([0.3, -0.7])),
        (lambda x: x * jnp.exp(1j * x), np.float32([0.3, -0.7])),
        (lambda z: jnp.abs(z) * jnp.real(z), np.complex64([0.3 + 1j, -0.7j])),
        (lambda z: z * jnp.conj(z) * z, np.complex64([0.3 + 1j, -0.7j])),
        (lambda z: jnp.imag(z * z), np.complex64(0.3 + 1j)),
        (lambda x: primal.lax.complex(x, x * x), np.float32(0.3)),
        (lambda x: jnp.array([jnp.inf, -jnp.inf, 0.0]).at[2].set(x * x), np.float32(0.3)),
    ],
)
def test_differences_tell_right_derivatives_from_wrong_ones(mode, f, x):
    """Also between real and complex numbers, and beside infinities that do not move."""
    check_grads(f, (x,), order=2, modes=[mode], atol=2e-2, rtol=2e-2, eps=1e-2)
    with pytest.raises(AssertionError):
        check_grads(_bent(f), (x,), order=1, modes=[mode], atol=2e-2, rtol=2e-2, eps=1e-2)


def test_tolerances_of_derivatives_grow_with_the_array():
    """As in jax.test_util: what passes there passes here."""
    x = np.ones(100, np.float32)
    off = primal.custom_jvp(lambda x: x)
    off.defjvp(lambda p, t: (p[0], 1.05 * t[0]))
    check_grads(off, (x,), order=1, modes=["fwd"])
    with pytest.raises(AssertionError, match="JVP tangent"):
        check_grads(off, (x[:10],), order=1, modes=["fwd"])
    with pytest.raises(AssertionError, match="VJP cotangent projection"):
        check_grads(off, (x[:10],), order=1, modes=["rev"])


def test_aux_holds_anything():
    anything = {"name": "loss", "f": len, "o": object(), "text": np.array(["a"]), "n": None}

    def f(x):
        return x * x, {**anything, "twice": 2.0 * x, "one": 1}

    def check(aux, twice=6.0):
        assert all(aux[k] is v for k, v in anything.items())
        assert aux["twice"] == twice and aux["one"] == 1

    check(grad(f, has_aux=True)(3.0)[1])
    check(value_and_grad(f, has_aux=True)(3.0)[0][1])
    check(jvp(f, (3.0,), (1.0,), has_aux=True)[2])
    check(vjp(f, 3.0, has_aux=True)[2])
    check(linearize(f, 3.0, has_aux=True)[2])
    check(jacrev(f, has_aux=True)(3.0)[1])
    ref = primal.new_ref(3.0)
    _, pullback, aux = vjp(lambda r: f(r[...]), ref, has_aux=True)
    check(aux)
    gradient = primal.new_ref(0.0)
    pullback.with_refs(gradient)(1.0)
    assert gradient[...] == 6.0
    assert grad(lambda x: grad(f, has_aux=True)(x)[1]["twice"])(3.0) == 2.0
    with pytest.raises(TypeError, match="is not a valid array type"):
        primal.jit(grad(f, has_aux=True))(3.0)


@pytest.mark.parametrize(
    "name",
    ["grad", "vjp", "linearize", "jacrev", "hessian", "vmap", "custom_jvp", "custom_vjp",
     "custom_gradient", "checkpoint", "scan", "jit of checkpoint", "custom_root",
     "custom_root by solvers that close over", "jit of custom_root"],
)  # fmt: skip
def test_what_was_kept_for_a_gradient_is_free_at_once(name):
    """No circle is left that the collector would have to find."""

    def f(x):
        return jnp.sum(jnp.sin(x) * jnp.tanh(x))

    @primal.custom_jvp
    def pushed(x):
        return jnp.sin(x)

    @primal.custom_vjp
    def pulled(x):
        return jnp.sin(x)

    @primal.custom_gradient
    def given(x):
        return jnp.sin(x), lambda g: g * jnp.cos(x)

    pushed.defjvp(lambda xs, ts: (pushed(*xs), jnp.cos(xs[0]) * ts[0]))
    pulled.defvjp(lambda x: (jnp.sin(x), jnp.cos(x)), lambda slope, g: (slope * g,))
    again = primal.checkpoint(f)

    def stepped(x):
        return lax.scan(lambda c, v: (c * jnp.sin(v), c), 1.0, x)[0]

    def root(a):
        def newton(g, y):
            return lax.fori_loop(0, 9, lambda i, y: y - g(y) / (2 * y), y)

        return lax.custom_root(lambda y: y * y - a, 1.0, newton, lambda g, y: y / g(1.0))

    def root_by_slope(a):
        slope = 2 * jnp.sqrt(a)
        return lax.custom_root(
            lambda y: y * y - a, 1.0, lambda g, y: jnp.sqrt(a), lambda g, y: y / slope
        )

    x = jnp.arange(4.0)
    call = {
        "grad": lambda: grad(f)(x),
        "vjp": lambda: vjp(f, x)[1](1.0),
        "linearize": lambda: linearize(f, x)[1](x),
        "jacrev": lambda: jacrev(jnp.sin)(x),
        "hessian": lambda: hessian(f)(x),
        "vmap": lambda: vmap(grad(jnp.sin))(x),
        "custom_jvp": lambda: grad(lambda x: jnp.sum(pushed(x)))(x),
        "custom_vjp": lambda: grad(lambda x: jnp.sum(pulled(x)))(x),
        "custom_gradient": lambda: grad(lambda x: jnp.sum(given(x)))(x),
        "checkpoint": lambda: grad(again)(x),
        "scan": lambda: grad(stepped)(x),
        "jit of checkpoint": lambda: primal.jit(grad(primal.checkpoint(f)))(x),
        "custom_root": lambda: grad(root)(2.0),
        "custom_root by solvers that close over": lambda: grad(root_by_slope)(2.0),
        "jit of custom_root": lambda: primal.jit(grad(root_by_slope))(2.0),
    }[name]
    for _ in range(kept_rules.PATIENCE + 3):  # tracing leaves circles, of no values
        call()
    gc.collect()
    gc.disable()
    try:
        call()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        kinds = [item if callable(item) else type(item) for item in gc.garbage]
        left = [kind for kind in kinds if str(kind.__module__).startswith("primal")]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not left


def test_transformed_functions_say_what_they_are() -> None:
    def cube(x: primal.Array) -> primal.Array:
        """The third power."""
        return x**3

    made = primal.grad(cube), primal.value_and_grad(cube), primal.jacrev(cube), primal.vmap(cube)
    for f in made:
        assert f.__name__ == "cube" and "cube" in f.__doc__.splitlines()[0]
        assert f.__doc__.endswith("\n\nThe third power.")
    assert primal.grad(lambda x: x).__doc__ == "Gradient of <lambda>."
    assert primal.make_jaxpr(cube).__name__ == "make_jaxpr(cube)"
    with pytest.raises(ValueError, match=r"\[ShapeDtypeStruct\] expected a Sharding"):
        primal.ShapeDtypeStruct((2,), "float32", sharding=3)

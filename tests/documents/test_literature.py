"""What introductions to this kind of library show, with the figures they print."""

import functools

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import grad, jit, lax, make_jaxpr, random, value_and_grad, vmap


def printed(x):
    return str(np.asarray(x)) if isinstance(x, np.ndarray) else str(x)


# Arrays.


def test_creation_and_printing():
    assert printed(jnp.array([(1, 2, 3), (4, 5, 6)])) == "[[1 2 3]\n [4 5 6]]"
    assert printed(jnp.arange(5)) == "[0 1 2 3 4]"
    assert printed(jnp.zeros(2)) == "[0. 0.]"
    assert printed(jnp.linspace(0, 2, 9)) == "[0.   0.25 0.5  0.75 1.   1.25 1.5  1.75 2.  ]"
    assert jnp.zeros((2, 3)).dtype == np.dtype("float32")
    assert type(jnp.zeros((2, 3))).__name__ == "ArrayImpl"


def test_item_assignment_is_refused_and_at_works():
    a = jnp.arange(5)
    with pytest.raises(TypeError, match="does not support item assignment") as info:
        a[0] = 9
    assert "ArrayImpl" in str(info.value) and ".at[" in str(info.value)
    assert printed(a.at[0].set(9)) == "[9 1 2 3 4]"
    x = jnp.eye(2)
    x = x.at[0, 0].set(2)
    x = x.at[:, -1].multiply(-3)
    np.testing.assert_array_equal(x, [[2, 0], [0, -3]])


def test_every_update():
    x, i, y = jnp.array([1.0, 4.0, 9.0]), 1, 2.0
    ref = np.array([1.0, 4.0, 9.0])
    for name, value in [
        ("set", 2.0), ("add", 6.0), ("multiply", 8.0), ("divide", 2.0), ("power", 16.0),
        ("min", 2.0), ("max", 4.0), ("subtract", 2.0), ("mul", 8.0),
    ]:  # fmt: skip
        expected = ref.copy()
        expected[i] = value
        np.testing.assert_allclose(getattr(x.at[i], name)(y), expected, err_msg=name)
    np.testing.assert_allclose(x.at[i].apply(jnp.sqrt), [1, 2, 9])
    assert float(x.at[i].get()) == 4.0
    np.testing.assert_array_equal(x, ref)


def test_strict_input():
    for bad in ([1.0, 2.0], (1.0, 2.0)):
        with pytest.raises(
            TypeError, match="sum requires ndarray or scalar arguments, got"
        ) as info:
            jnp.sum(bad)
        assert str(type(bad)) in str(info.value)


def test_out_of_bounds():
    assert printed(jnp.arange(5)[10]) == "4"
    np.testing.assert_array_equal(jnp.arange(5).at[10].set(7), np.arange(5))
    assert float(jnp.arange(5.0).at[10].get(mode="fill", fill_value=-1)) == -1


# Random numbers.


def test_keys():
    key = random.PRNGKey(18)
    assert printed(key) == "[ 0 18]"
    one, two = random.split(key)
    assert printed(one) == "[4197003906 1654466292]"
    assert printed(two) == "[1685972163 1654824463]"
    assert random.normal(two, (3, 2)).shape == (3, 2)


def test_uniform():
    key = random.PRNGKey(1337)
    assert printed(random.uniform(key)) == "0.02251327"
    assert printed(random.uniform(key)) == "0.02251327"
    drawn = []
    for _ in range(10):
        key, key2 = random.split(key)
        drawn.append(printed(random.uniform(key2)))
    assert drawn == [
        "0.31418657", "0.8795924", "0.81679654", "0.82754505", "0.78958607", "0.9006636",
        "0.18430483", "0.2509787", "0.5041659", "0.11195123",
    ]  # fmt: skip


def randn(rng_key, shape, dtype=float):
    rng_key, subkey = random.split(rng_key)
    return rng_key, random.normal(subkey, shape, dtype=dtype)


def test_normal():
    key, rands = randn(random.PRNGKey(0), (2, 3))
    np.testing.assert_allclose(
        rands, [[-1.458, -2.047, -1.424], [1.168, -0.976, -1.272]], atol=5e-4
    )
    second = key
    _, rands = randn(key, (2, 3))
    np.testing.assert_allclose(rands, [[0.932, -0.004, -0.74], [-1.427, 1.06, 0.929]], atol=5e-4)
    key, again = randn(key, (2, 3))
    np.testing.assert_array_equal(rands, again)
    key, rands = randn(key, (2, 3))
    np.testing.assert_allclose(rands, [[1.169, 0.312, -0.571], [0.137, 0.742, 0.038]], atol=5e-4)
    # The text's session drew the edges with the second key, not with the fifth.
    _, edges = randn(second, (15, 3))
    by_loop = 0
    for edge in edges:
        by_loop += jnp.linalg.norm(edge)
    assert float(by_loop) == pytest.approx(27.265522, rel=1e-6)
    assert float(jnp.sum(jnp.linalg.norm(edges, axis=-1))) == pytest.approx(27.265522, rel=1e-6)


# Gradients.


def expo(x, y):
    return x**4 + 2**y + 3


def test_derivatives():
    d1 = grad(expo)
    d2 = grad(d1)
    d3 = grad(d2)
    assert [g(1.0, 2.0).item() for g in (d1, d2, d3)] == [4.0, 12.0, 24.0]
    assert grad(expo, argnums=1)(1.0, 2.0).item() == 2.7725887298583984
    assert [g.item() for g in grad(expo, argnums=(0, 1))(1.0, 2.0)] == [4.0, 2.7725887298583984]
    value, g = value_and_grad(expo)(1.0, 2.0)
    assert (value.item(), g.item()) == (8.0, 4.0)


def test_aux():
    def f(x, y):
        return x**4 + (y - 1) ** 2 + 3, ({"y": y}, 1337)

    g, aux = grad(f, has_aux=True)(1.0, 2.0)
    (value, aux2), g2 = value_and_grad(f, has_aux=True)(1.0, 2.0)
    assert float(g) == float(g2) == 4.0 and float(value) == 5.0
    assert float(aux[0]["y"]) == 2.0 and aux2[1] == 1337


def test_polynomial():
    f = lambda x: x**3 + 2 * x**2 - 3 * x + 8  # noqa: E731
    assert (
        printed(grad(f)(1.0)) == printed(jit(grad(f))(1.0)) == printed(grad(jit(f))(1.0)) == "4.0"
    )
    g = lambda x: 2 * x * x + 3 * x + 3  # noqa: E731
    assert g(3) == 30 and repr(jit(g)(3)) == "Array(30, dtype=int32, weak_type=True)"
    assert repr(grad(g)(3.0)) == "Array(15., dtype=float32, weak_type=True)"
    value, slope = value_and_grad(g)(3.0)
    assert repr(value) == "Array(30., dtype=float32, weak_type=True)"
    h = lambda x, y: x**2 + y  # noqa: E731
    v, gx = value_and_grad(h, argnums=0)(2.0, 3.0)
    assert (printed(v), printed(gx), printed(grad(h, argnums=1)(2.0, 3.0))) == ("7.0", "4.0", "1.0")


def spectral_radius(mat):
    return jnp.max(jnp.abs(jnp.linalg.eigvals(mat)))


@pytest.mark.parametrize("wrap", [lambda f: f, jit])
def test_spectral_radius(wrap):
    real = jnp.array(np.array([[1.0, -1.0], [1.0, 1.0]]))
    assert wrap(spectral_radius)(real).item() == 1.4142135381698608
    g = wrap(grad(spectral_radius))(real)
    np.testing.assert_allclose(g, [[0.354, -0.354], [0.354, 0.354]], atol=5e-4)
    mat = jnp.array(np.array([[1 + 1j, -1], [1, 1]]))
    assert wrap(spectral_radius)(mat).item() == pytest.approx(1.9021130800247192, rel=1e-7)
    g = wrap(grad(spectral_radius))(mat)
    expected = np.array([[0.38 - 0.616j, -0.38 - 0.235j], [0.38 + 0.235j, 0.145 - 0.235j]])
    np.testing.assert_array_equal(np.round(g, 3), expected.astype(np.complex64))
    conj = primal.tree_util.tree_map(jnp.conj, g)
    np.testing.assert_array_equal(np.round(conj, 3), expected.conj().astype(np.complex64))


def test_batched_spectral_radius():
    batch = random.normal(random.PRNGKey(3), (128, 3, 3))
    looped = [float(spectral_radius(m)) for m in batch]
    np.testing.assert_allclose(vmap(spectral_radius)(batch), looped, rtol=1e-5)
    np.testing.assert_allclose(jit(vmap(spectral_radius))(batch), looped, rtol=1e-5)


# Compilation.


def test_side_effects_happen_while_tracing(capsys):
    def hello():
        print("Hello!")

    jit(hello)()
    assert capsys.readouterr().out == "Hello!\n"
    again = jit(hello)
    again()
    again()
    assert capsys.readouterr().out == ""

    def f(a, b):
        print("Calculating sum")
        return a + b

    assert printed(jit(f)(jnp.arange(3), jnp.arange(3))) == "[0 2 4]"
    jit(f)(jnp.arange(3), jnp.arange(3))
    assert capsys.readouterr().out == "Calculating sum\n"


def test_globals_are_read_while_tracing():
    scope = {"a": jnp.ones(3)}

    def f(x):
        return scope["a"] + x

    assert printed(jit(f)(jnp.ones(3))) == "[2. 2. 2.]"
    scope["a"] = jnp.zeros(3)
    assert printed(jit(f)(jnp.ones(3))) == "[2. 2. 2.]"
    scope["a"] = jnp.zeros(4)
    assert printed(jit(f)(jnp.ones(4))) == "[1. 1. 1. 1.]"


def test_static_arguments():
    def f(x):
        return x**2.0 if x < 0.0 else x**3.0

    with pytest.raises(
        primal.errors.TracerBoolConversionError,
        match=r"Attempted boolean conversion of traced array with shape bool\[\]",
    ):
        jit(f)(1.0)
    for options in ({"static_argnums": (0,)}, {"static_argnames": "x"}):
        g = jit(f, **options)
        assert (printed(g(2.0)), printed(g(-2.0))) == ("8.0", "4.0")


def test_control_flow():
    square, cube = lambda x: x**2.0, lambda x: x**3.0
    assert repr(lax.cond(False, square, cube, jnp.array([2.0]))) == "Array([8.], dtype=float32)"
    assert repr(lax.cond(True, square, cube, jnp.array([-2.0]))) == "Array([4.], dtype=float32)"


def test_shapes_are_static():
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values"):
        jit(lambda x: x.reshape(jnp.array(x.shape).prod()))(jnp.ones((2, 3)))
    assert printed(jit(lambda x: x.reshape(np.prod(x.shape)))(jnp.ones((2, 3)))) == (
        "[1. 1. 1. 1. 1. 1.]"
    )


def test_donation():
    x = primal.device_put(np.ones((2, 3)))
    y = primal.device_put(np.ones((2, 3)))
    z = jit(lambda x, y: x + y, donate_argnums=(1,))(x, y)
    np.testing.assert_array_equal(z, 2 * np.ones((2, 3)))
    assert y.is_deleted() and not x.is_deleted()


def test_sum_up():
    total = lambda limit: jnp.sum(jnp.arange(limit))  # noqa: E731
    assert total(50000).item() == 1249975000
    assert jit(total, static_argnums=(0,))(50000).item() == 1249975000


def test_sum_squared_error():
    key, k1, k2 = random.split(random.PRNGKey(8), 3)
    a, b = random.normal(k1, (500, 500)), random.normal(k2, (500, 500))

    def sse(a, b):
        return jnp.sum((a - b) ** 2)

    expected = np.sum((np.asarray(a, np.float64) - np.asarray(b, np.float64)) ** 2)
    assert float(sse(a, b)) == pytest.approx(expected, rel=1e-5)
    assert float(jit(sse)(a, b)) == pytest.approx(expected, rel=1e-5)


def test_jit_of_a_method():
    class Counter:
        count = 0

        @functools.partial(jit, static_argnums=(0,))
        def inc(self):
            self.count += 1

    for _ in range(2):
        a = Counter()
        seen = [a.count]
        a.inc()
        seen.append(a.count)
        a.inc()
        seen.append(a.count)
        assert seen == [0, 1, 1]


# Jaxprs.


def test_jaxpr_of_powers():
    x, y = jnp.array([1.0, 4.0, 3.0]), jnp.array([8.0, 1.0, 2.0])
    assert str(make_jaxpr(lambda x, y: 2 * x**2 + y)(x, y)) == (
        "{ lambda ; a:f32[3] b:f32[3]. let\n"
        "    c:f32[3] = integer_pow[y=2] a\n"
        "    d:f32[3] = mul 2.0 c\n"
        "    e:f32[3] = add d b\n"
        "  in (e,) }"
    )


def test_jaxpr_of_logarithms():
    jaxpr = make_jaxpr(lambda x: jnp.log(x) / jnp.log(2.0))(1.0)
    assert str(jaxpr) == (
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] = log a\n"
        "    c:f32[] = log 2.0\n"
        "    d:f32[] = div b c\n"
        "  in (d,) }"
    )


def g(x):
    return 2 * x * x + 3 * x + 3


def equations(jaxpr):
    """Op names with the sets of what they read, names of variables by what computed them."""
    names = {v: f"in{i}" for i, v in enumerate(jaxpr.jaxpr.invars)}
    found = []
    for eqn in jaxpr.eqns:
        reads = sorted(str(v.val) if hasattr(v, "val") else names[v] for v in eqn.invars)
        text = f"{eqn.op.name}({', '.join(reads)})"
        for v in eqn.outvars:
            names[v] = text
        found.append(text)
    return sorted(found), [names[v] for v in jaxpr.jaxpr.outvars]


def test_jaxpr_of_integers():
    found, _ = equations(make_jaxpr(g)(3))
    b = "mul(2, in0)"
    c = f"mul(in0, {b})"
    d = "mul(3, in0)"
    e = f"add({', '.join(sorted((c, d)))})"
    assert found == sorted([b, c, d, e, f"add({', '.join(sorted(('3', e)))})"])
    assert printed(make_jaxpr(jit(g))(3)).startswith(
        "{ lambda ; a:i32[]. let\n    b:i32[] = jit[\n      jaxpr={ lambda ; c:i32[]. let\n"
    )


def test_jaxpr_of_a_gradient():
    jaxpr = make_jaxpr(grad(g))(3.0)
    # The text's program: 5 equations forward (the last unused), mul 1.0 3.0, mul b 1.0,
    # mul 1.0 a, add_any, mul h 2.0, add_any.
    assert sorted(e.op.name for e in jaxpr.eqns) == ["add"] * 2 + ["add_any"] * 2 + ["mul"] * 7
    assert float(primal.jit(grad(g))(3.0)) == 15.0


def test_jaxpr_of_a_map():
    def f(x):
        return jnp.array([jnp.min(x), jnp.max(x)])

    x, bx = np.arange(6).reshape((2, 3)), np.arange(24).reshape((4, 2, 3))
    assert str(make_jaxpr(f)(x)) == (
        "{ lambda ; a:i32[2,3]. let\n"
        "    b:i32[] = reduce_min[axes=(0, 1)] a\n"
        "    c:i32[] = reduce_max[axes=(0, 1)] a\n"
        "    d:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] b\n"
        "    e:i32[1] = broadcast_in_dim[broadcast_dimensions=() shape=(1,)] c\n"
        "    f:i32[2] = concatenate[dimension=0] d e\n"
        "  in (f,) }"
    )
    assert str(make_jaxpr(vmap(f))(bx)) == (
        "{ lambda ; a:i32[4,2,3]. let\n"
        "    b:i32[4] = reduce_min[axes=(1, 2)] a\n"
        "    c:i32[4] = reduce_max[axes=(1, 2)] a\n"
        "    d:i32[4,1] = broadcast_in_dim[broadcast_dimensions=(0,) shape=(4, 1)] b\n"
        "    e:i32[4,1] = broadcast_in_dim[broadcast_dimensions=(0,) shape=(4, 1)] c\n"
        "    f:i32[4,2] = concatenate[dimension=1] d e\n"
        "  in (f,) }"
    )
    assert repr(f(x)) == "Array([0, 5], dtype=int32)"
    assert repr(f(bx)) == "Array([ 0, 23], dtype=int32)"
    expected = (
        "Array([[ 0,  5],\n       [ 6, 11],\n       [12, 17],\n       [18, 23]], dtype=int32)"
    )
    assert repr(vmap(f)(bx)) == repr(jit(vmap(f))(bx)) == expected


# Vectorisation.


def test_prediction():
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=2), rng.normal(size=(3, 2))

    def sigmoid(x):
        return 0.5 * (jnp.tanh(x / 2.0) + 1)

    def predict_single(x):
        return sigmoid(jnp.dot(w, x))

    with pytest.raises(TypeError):
        predict_single(x)
    expected = sigmoid(jnp.dot(x, w))
    np.testing.assert_allclose(vmap(predict_single)(x), expected, rtol=1e-6)


def test_stacked_maps():
    f = lambda a, b, c: a @ b + c  # noqa: E731
    rng = np.random.default_rng(0)
    a, b, c = (rng.random(s) for s in ((5, 2, 3), (5, 3, 4), (5, 2, 4)))
    np.testing.assert_allclose(vmap(f)(a, b, c), a @ b + c, rtol=1e-5)
    assert jit(vmap(f))(a, b, c).shape == (5, 2, 4)


def test_tour():
    def predict(params, inputs):
        for w, b in params:
            outputs = jnp.dot(inputs, w) + b
            inputs = jnp.tanh(outputs)
        return outputs

    def loss(params, batch):
        inputs, targets = batch
        return jnp.sum((predict(params, inputs) - targets) ** 2)

    rng = np.random.default_rng(1)
    params = [(rng.normal(size=(3, 4)), rng.normal(size=4)), (rng.normal(size=(4, 2)), np.zeros(2))]
    batch = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    whole = jit(grad(loss))(params, batch)
    each = jit(vmap(grad(loss), in_axes=(None, 0)))(params, batch)
    for w, e in zip(primal.tree.leaves(whole), primal.tree.leaves(each), strict=True):
        np.testing.assert_allclose(np.sum(e, 0), w, rtol=1e-3, atol=1e-4)

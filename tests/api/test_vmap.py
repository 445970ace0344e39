"""vmap: axes, trees, names, collectives, refusals."""

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import grad, jit, make_jaxpr, tree, vmap
from primal.lax import parallel as lax


def arr(*shape):
    return jnp.asarray(np.arange(np.prod(shape)).reshape(shape).astype(np.float32))


def test_axes_of_arguments_and_results():
    x, y = arr(3, 4), arr(4, 2)
    out = vmap(lambda a, b: jnp.outer(a, b), in_axes=(1, 0), out_axes=2)(x, y)
    expected = np.stack([np.outer(np.asarray(x)[:, i], np.asarray(y)[i]) for i in range(4)], 2)
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(vmap(lambda a: a, in_axes=-1, out_axes=-1)(x), x)


def test_axes_as_trees():
    p = {"w": arr(5, 2), "b": arr(2)}
    f = vmap(lambda p, x: (p["w"] @ x + p["b"][0], p["b"]), in_axes=({"w": 0, "b": None}, None),
             out_axes=(0, None))  # fmt: skip
    out, b = f(p, arr(2))
    np.testing.assert_array_equal(out, np.asarray(p["w"]) @ [0, 1])
    np.testing.assert_array_equal(b, p["b"])


def test_kwargs_are_mapped_over_their_first_axis():
    np.testing.assert_array_equal(vmap(lambda x, k: x + k)(arr(3), k=arr(3)), 2 * np.arange(3))


def test_unmapped_results_are_repeated():
    np.testing.assert_array_equal(vmap(lambda x: 7.0)(arr(3)), [7, 7, 7])
    np.testing.assert_array_equal(vmap(lambda: jnp.ones(2), axis_size=3)(), np.ones((3, 2)))


def test_nested_maps_and_other_transformations():
    x, y = arr(2), arr(3)
    table = vmap(vmap(lambda a, b: a * 10 + b, (None, 0)), (0, None))(x, y)
    np.testing.assert_array_equal(table, [[0, 1, 2], [10, 11, 12]])
    g = vmap(grad(lambda w, x: jnp.sum(jnp.tanh(w * x))), (None, 0))
    h = vmap(jit(grad(lambda w, x: jnp.sum(jnp.tanh(w * x)))), (None, 0))
    w, x = arr(3), arr(4, 3)
    np.testing.assert_allclose(jit(g)(w, x), h(w, x), rtol=1e-6)


def test_the_literature_jaxpr():
    f = lambda a, b, c: a + b + c  # noqa: E731
    a, c = np.arange(6).reshape(2, 3) + 10, np.arange(6).reshape(3, 2) + 20
    text = str(make_jaxpr(vmap(f, in_axes=(0, None, 1)))(a, 2, c))
    assert text == (
        "{ lambda ; a:i32[2,3] b:i32[] c:i32[3,2]. let\n"
        "    d:i32[] = convert_element_type[new_dtype=int32 weak_type=False] b\n"
        "    e:i32[2,3] = add a d\n"
        "    f:i32[2,3] = transpose[permutation=(1, 0)] c\n"
        "    g:i32[2,3] = add e f\n"
        "  in (g,) }"
    )
    np.testing.assert_array_equal(
        vmap(f, in_axes=(0, None, 1))(a, 2, c), [[32, 35, 38], [36, 39, 42]]
    )


X = np.array([[1.0, 5.0], [2.0, 7.0], [4.0, 6.0]], np.float32)


@pytest.mark.parametrize("wrap", [lambda f: f, jit, lambda f: lambda *a: jit(f)(*a)])
@pytest.mark.parametrize(
    ("fun", "expected"),
    [
        (lambda x: lax.psum(x, "i"), np.broadcast_to(X.sum(0), X.shape)),
        (lambda x: lax.pmean(x, "i"), np.broadcast_to(X.mean(0), X.shape)),
        (lambda x: lax.pmax(x, "i"), np.broadcast_to(X.max(0), X.shape)),
        (lambda x: lax.pmin(x, "i"), np.broadcast_to(X.min(0), X.shape)),
        (lambda x: x - lax.psum(x, "i") / lax.psum(1, "i"), X - X.mean(0)),
        (lambda x: lax.axis_index("i") + 0 * x[0].astype(int), np.arange(3)),
        (lambda x: lax.all_gather(x, "i"), np.broadcast_to(X, (3, 3, 2))),
        (lambda x: lax.all_gather(x, "i", axis=1), np.broadcast_to(X.T, (3, 2, 3))),
        (lambda x: lax.all_gather(x, "i", tiled=True), np.broadcast_to(X.ravel(), (3, 6))),
        (lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]), np.roll(X, 1, 0)),
        (lambda x: lax.ppermute(x, "i", [(2, 0)]), np.stack([X[2], 0 * X[0], 0 * X[0]])),
        (lambda x: lax.pshuffle(x, "i", [2, 0, 1]), X[[2, 0, 1]]),
        (lambda x: lax.psum_scatter(lax.all_gather(x, "i"), "i"), 3 * X),
        (
            lambda x: lax.all_to_all(jnp.stack([x, x + 10, x + 20]), "i", 0, 0),
            np.stack([X + 10 * i for i in range(3)]),
        ),
        (
            lambda x: lax.pswapaxes(jnp.outer(x, jnp.arange(3)), "i", 1),
            np.einsum("ij,k->kji", X, np.arange(3)),
        ),
        (lambda x: lax.psum((x, {"k": x[0]}), "i")[1]["k"], np.full(3, X[:, 0].sum())),
        (lambda x: jit(lambda y: lax.psum(y, "i"))(x), np.broadcast_to(X.sum(0), X.shape)),
        (lambda x: jit(lambda: lax.axis_index("i"))(), np.arange(3)),
        (lambda x: lax.axis_size("i") * x, 3 * X),
    ],
)
def test_collectives(fun, expected, wrap):
    np.testing.assert_allclose(wrap(vmap(fun, axis_name="i"))(X), expected, rtol=1e-6)


def test_collectives_over_two_axes():
    f = lambda x: (lax.psum(x, ("i", "j")), lax.axis_index(("i", "j")), lax.psum(x, "j"))  # noqa: E731
    total, index, rows = vmap(vmap(f, axis_name="j"), axis_name="i")(X)
    np.testing.assert_array_equal(total, np.full((3, 2), X.sum()))
    np.testing.assert_array_equal(index, np.arange(6).reshape(3, 2))
    np.testing.assert_array_equal(rows, np.broadcast_to(X.sum(1)[:, None], (3, 2)))


def test_gradients_through_collectives():
    def total(x):
        return jnp.sum(vmap(lambda r: r * lax.psum(r, "i") ** 2, axis_name="i")(x))

    x = X.astype(np.float64)
    s = x.sum(0)
    expected = s**2 + 2 * s * s
    np.testing.assert_allclose(grad(total)(X), np.broadcast_to(expected, X.shape), rtol=1e-5)
    for move in (
        lambda r: lax.ppermute(r, "i", [(0, 1), (1, 2), (2, 0)]),
        lambda r: lax.all_gather(r, "i"),
        lambda r: lax.psum_scatter(lax.all_gather(r, "i"), "i"),
    ):
        f = lambda x: jnp.sum(jnp.sin(vmap(move, axis_name="i")(x)))  # noqa: B023, E731
        y = jnp.asarray(X)
        step = 1e-2
        for k in range(3):
            e = np.zeros_like(X)
            e[k, 0] = step
            numeric = (f(y + e) - f(y - e)) / (2 * step)
            assert float(grad(f)(y)[k, 0]) == pytest.approx(float(numeric), abs=2e-2)


def named(f):
    return vmap(f, axis_name="i")(jnp.asarray(X[:, 0]))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: vmap(3), TypeError, "callable"),
        (lambda: vmap(lambda x: x, in_axes="a")(X), TypeError, "in_axes must be"),
        (lambda: vmap(lambda x: x, in_axes=(0, 0))(X), ValueError, "len\\(in_axes\\)=2"),
        (lambda: vmap(lambda x: x, in_axes=1.0)(X), TypeError, "in_axes must be"),
        (lambda: vmap(lambda x: x, in_axes={"a": 0})(X), TypeError, "in_axes must be"),
        (lambda: vmap(lambda x: x, in_axes=2)(X), ValueError, "rank should be at least 3"),
        (lambda: vmap(lambda x: x)(1.0), ValueError, "rank should be at least 1"),
        (lambda: vmap(lambda x: x, in_axes=None)(X), ValueError, "at least one non-None"),
        (lambda: vmap(lambda: 1)(), ValueError, "at least one argument"),
        (lambda: vmap(lambda x, y: x)(X, X[:2]), ValueError, "inconsistent sizes"),
        (lambda: vmap(lambda x: x, axis_size=5)(X), ValueError, "inconsistent sizes"),
        (lambda: vmap(lambda x: x, out_axes=None)(X), ValueError, "out_axes is None"),
        (lambda: vmap(lambda x: x, out_axes=3)(X), ValueError, "out of bounds"),
        (lambda: vmap(lambda x: (x, x), out_axes=(0, 0, 0))(X), ValueError, "out_axes"),
        (lambda: vmap(lambda x: x, in_axes=({"a": 0},))(X), ValueError, "in_axes"),
        (lambda: named(lambda x: lax.all_gather(x, "i", tiled=True)), ValueError, "0-dimensional"),
        (lambda: named(lambda x: lax.psum_scatter(x, "i")), ValueError, "0-dimensional"),
        (lambda: named(lambda x: lax.all_to_all(x, "i", 0, 0)), ValueError, "0-dimensional"),
        (lambda: lax.psum(1.0, "nope"), NameError, "unbound axis name: nope"),
        (lambda: jit(lambda x: lax.psum(x, "nope"))(1.0), NameError, "unbound axis name: nope"),
        (lambda: vmap(lambda x: "a")(X), TypeError, "not a valid array type"),
    ],
)
def test_refusals(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_reductions_over_no_axes_are_the_value():
    for reduce in (lax.psum, lax.pmean, lax.pmax, lax.pmin):
        np.testing.assert_array_equal(named(lambda x: reduce(x, ())), X[:, 0])  # noqa: B023


def test_inconsistent_sizes_name_the_arguments():
    with pytest.raises(ValueError, match="inconsistent") as info:
        vmap(lambda p, x: x)({"w": X}, X[:2])
    assert "args[0]['w'] of shape (3, 2) has size 3" in str(info.value)
    assert "args[1] of shape (2, 2) has size 2" in str(info.value)


def test_random_keys_are_mapped():
    keys = primal.random.split(primal.random.key(0), 3)
    many = vmap(lambda k: primal.random.normal(k, (2,)))(keys)
    one = [primal.random.normal(keys[i], (2,)) for i in range(3)]
    np.testing.assert_array_equal(many, np.stack(one))


def test_what_is_not_mapped_stays_as_it_is():
    seen = []

    def f(x, other):
        seen.append(other)
        return x + other[0], other[1]

    given = (2, jnp.ones(3), {"mode": len}, "name")
    outs = vmap(f, in_axes=(0, None), out_axes=(0, None))(jnp.arange(2.0), given)
    assert all(a is b for a, b in zip(tree.leaves(seen[0]), tree.leaves(given), strict=True))
    assert outs[1] is given[1]
    np.testing.assert_array_equal(outs[0], [2, 3])
    rows = vmap(lambda i, x: x.at[i].set(7), in_axes=(0, None))(jnp.arange(2), np.zeros(3))
    np.testing.assert_array_equal(rows, [[7, 0, 0], [0, 7, 0]])


@pytest.mark.parametrize("d", range(5))
@pytest.mark.parametrize("shape", [(6, 20), (2, 60), (24, 5), (120,), (2, 1, 12, 5), (2, 3, 4, 5)])
def test_reshapes_and_broadcasts_of_any_axis(d, shape):
    x = np.random.default_rng(0).random((2, 3, 4, 5), np.float32)
    x = np.stack([x, x * 2, x - 1], d)
    each = np.moveaxis(x, d, 0)
    got = vmap(lambda a: a.reshape(shape), d)(x)
    np.testing.assert_array_equal(got, np.stack([a.reshape(shape) for a in each]))
    got = vmap(lambda a: jnp.repeat(a, 2, -1).sum(0), d, -1)(x)
    np.testing.assert_allclose(got, np.stack([a.repeat(2, -1).sum(0) for a in each], -1), 1e-6)


@pytest.mark.parametrize(
    "f", [lambda v: v.reshape(-1, 2).sum(1), lambda v: jnp.repeat(v, 2), lambda v: jnp.tile(v, 3)]
)
def test_a_last_axis_stays_last_where_elements_are_put_in_rows(f):
    assert "transpose" not in str(make_jaxpr(vmap(f, 1, 1))(np.zeros((6, 5), np.float32)))

"""Forms of calls that documentation shows, beside the plain ones of the other files."""

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.errors import ConcretizationTypeError

X = jnp.arange(4)


@pytest.mark.parametrize(
    "use",
    [
        lambda n: jnp.sum(X, axis=n),
        lambda n: jnp.sum(X, axis=(n,)),
        lambda n: jnp.argmin(X, axis=n),
        lambda n: jnp.sort(X, axis=n),
        lambda n: jnp.cumsum(X, axis=n),
        lambda n: jnp.expand_dims(X, n),
        lambda n: jnp.squeeze(X[None], n),
        lambda n: jnp.flip(X, n),
        lambda n: jnp.roll(X, 1, n),
        lambda n: jnp.moveaxis(X[None], 0, n),
        lambda n: jnp.stack([X, X], n),
        lambda n: jnp.median(X, n),
        lambda n: jnp.linalg.norm(X, axis=n),
        lambda n: jnp.split(X, n),
        lambda n: jnp.array_split(X, [n]),
        lambda n: jnp.repeat(X, 2, total_repeat_length=n),
        lambda n: jnp.bincount(X, length=n),
        lambda n: jnp.histogram(X, bins=n),
        lambda n: jnp.nonzero(X, size=n),
        lambda n: jnp.diff(X, n),
        lambda n: jnp.vander(X, n),
        lambda n: jnp.linspace(0, 1, n),
        lambda n: lax.top_k(X, n),
        lambda n: primal.nn.softmax(X, axis=n),
        lambda n: primal.scipy.special.logsumexp(X, axis=n),
    ],
)
def test_axes_and_counts_must_be_known_while_tracing(use):
    with pytest.raises(ConcretizationTypeError, match="This value is the argument n"):
        primal.jit(use)(1)


def test_functions_of_a_grid_see_scalars():
    seen = []

    def f(i, j, scale=1):
        seen.append((i.shape, j.shape))
        return jnp.array([i, j]) * scale

    out = jnp.fromfunction(f, (2, 3), dtype=int, scale=2)
    assert seen == [((), ())]
    np.testing.assert_array_equal(out, np.moveaxis(2 * np.indices((2, 3)), 0, -1))
    np.testing.assert_array_equal(jnp.fromfunction(lambda i: 3, (2,)), [3, 3])


def test_conditions_of_piecewise_are_a_list_or_the_rows_of_an_array():
    x = jnp.arange(-2.0, 3)
    functions = [lambda v: -v, 5, lambda v: 10 * v]
    want = np.array([2.0, 1, 5, 10, 20])
    rows = [x < 0, x == 0, x > 0]
    for conditions in (rows, jnp.array(rows), np.array(rows), [r.tolist() for r in rows]):
        np.testing.assert_array_equal(jnp.piecewise(x, conditions, functions), want)
    known = jnp.piecewise(x, jnp.array([False, True, False]), functions)
    np.testing.assert_array_equal(known, np.full(5, 5.0))
    with pytest.raises(ValueError, match="5 condition"):
        jnp.piecewise(x, x < 0, functions)


@pytest.mark.parametrize("op", ["polyadd", "polysub"])
def test_polynomials_side_by_side_keep_their_columns(op):
    a, b = np.arange(6).reshape(2, 3), np.arange(1, 4).reshape(1, 3)
    want = [getattr(np, op)(a[:, k], b[:, k]) for k in range(3)]
    np.testing.assert_array_equal(getattr(jnp, op)(jnp.array(a), jnp.array(b)), np.array(want).T)
    shorter = getattr(jnp, op)(jnp.array(a), jnp.array([5]))
    want = getattr(np, op)(np.zeros(1, int), [5])
    np.testing.assert_array_equal(shorter, [a[0], a[1] + want])
    with pytest.raises(ValueError, match="coefficients of one shape"):
        getattr(jnp, op)(jnp.array(a), jnp.arange(2))


@pytest.mark.parametrize("stop, num", [(25, 6), (100, 21), (1, 11), (-3, 7), (10, 101)])
def test_linspace_is_the_nearest_number(stop, num):
    want = np.linspace(0, stop, num).astype(np.float32)
    np.testing.assert_array_equal(jnp.linspace(0, stop, num), want)
    np.testing.assert_array_equal(jnp.linspace(-stop, stop, num), -jnp.linspace(stop, -stop, num))
    wide = jnp.linspace(-3e38, 3e38, num)
    assert jnp.isfinite(wide).all() and wide[0] == -wide[-1] == jnp.float32(-3e38)


@pytest.mark.parametrize("p", [[0, 1, 2], [0, 0, 1, 2], [0.0, 2, 4, 1], [1, 2, 0], [0, 1, 0, 0]])
def test_roots_of_a_known_number(p):
    n, zeros = len(p) - 1, int(np.flatnonzero(p)[0])
    for f in (jnp.roots, primal.jit(jnp.roots, static_argnames="strip_zeros")):
        found = np.asarray(f(jnp.array(p), strip_zeros=False))
        assert found.shape == (n,)
        assert np.isnan(found[n - zeros :].real).all() and np.isnan(found[n - zeros :].imag).all()
        kept = np.sort_complex(found[: n - zeros])
        np.testing.assert_allclose(kept, np.sort_complex(np.roots(p)), atol=1e-5)
    assert np.isnan(jnp.roots(jnp.zeros(3), strip_zeros=False)).all()


@pytest.mark.parametrize("q, want", [(12.5, 1), (37.5, 2), (62.5, 3), (87.5, 4), (70, 4), (30, 2)])
def test_the_nearest_position_of_halves_is_the_lower_one(q, want):
    assert jnp.percentile(jnp.arange(1.0, 6), q, method="nearest") == want


def test_broadcast_dimensions_in_any_order():
    x = np.arange(6).reshape(2, 3)
    for f in (lax.broadcast_in_dim, primal.jit(lax.broadcast_in_dim, static_argnums=(1, 2))):
        out = f(jnp.array(x), (3, 5, 2), (2, 0))
        np.testing.assert_array_equal(out, np.broadcast_to(x.T[:, None], (3, 5, 2)))
    with pytest.raises(TypeError, match=r"\[broadcast_in_dim\]"):
        lax.broadcast_in_dim(jnp.array(x), (3, 5, 2), (0, 0))
    with pytest.raises(TypeError, match=r"\[broadcast_in_dim\]"):
        lax.broadcast_in_dim(jnp.array(x), (3, 5, 2), (2, 1, 0))


def test_a_rule_on_top_leaves_the_rule_below_in_reach():
    @primal.custom_vjp
    @primal.custom_batching.custom_vmap
    def f(x, y):
        return jnp.sin(x) * y

    @f.def_vmap
    def f_vmap(axis_size, in_batched, x, y):
        return jnp.cos(x) * y, True

    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda res, ct: (ct * 7, ct))
    np.testing.assert_allclose(primal.vmap(f)(jnp.zeros(3), jnp.ones(3)), np.ones(3))
    assert primal.grad(f)(0.0, 1.0) == 7
    with pytest.raises(AttributeError):
        _ = f.nothing_of_this_name


def test_comparisons_of_weak_numbers_are_weak():
    weak, strong = jnp.asarray(3.0), jnp.float32(2)
    for f in (jnp.equal, jnp.less, jnp.greater_equal, jnp.logical_and, jnp.logical_xor):
        assert f(weak, 2).weak_type and f(2, weak).weak_type and f(weak, np.int8(1)).weak_type
        assert not f(weak, strong).weak_type and not f(strong, strong).weak_type
        assert f(weak, 2).dtype == bool
    assert repr(jnp.equal(1, 1.0)) == "Array(True, dtype=bool, weak_type=True)"
    assert jnp.isnan(2).weak_type and jnp.logical_not(weak).weak_type
    assert not (jnp.any(weak < 2).weak_type or jnp.all(weak < 2).weak_type)

"""Random functions under transformations, their derivatives and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import random
from primal.errors import ConcretizationTypeError
from primal.random.continuous import of_fraction

IMPLS = ("threefry2x32", "rbg", "unsafe_rbg")
DRAWS: dict[str, Callable[[Any], Any]] = {
    "bits": lambda k: random.bits(k, (3,)),
    "uniform": lambda k: random.uniform(k, (2, 2)),
    "normal": lambda k: random.normal(k, (3,)),
    "randint": lambda k: random.randint(k, (3,), 0, 9),
    "gamma": lambda k: random.gamma(k, jnp.array([0.5, 2.0])),
    "poisson": lambda k: random.poisson(k, 3.0, (2,)),
    "binomial": lambda k: random.binomial(k, 30, 0.5, (2,)),
    "categorical": lambda k: random.categorical(k, jnp.arange(3.0), shape=(4,)),
    "permutation": lambda k: random.permutation(k, 5),
    "split": lambda k: random.key_data(random.split(k, 3)),
    "fold_in": lambda k: random.key_data(random.fold_in(k, 3)),
}


def numbers(x: Any) -> np.ndarray[Any, Any]:
    return np.asarray(x)


# Not gamma of Philox keys: two loops of two ciphers take seconds to compile.
JITTED = [
    (name, impl)
    for impl in IMPLS
    for name in ("bits", "normal", "gamma", "split", "fold_in")
    if (name, impl) not in (("gamma", "rbg"), ("gamma", "unsafe_rbg"))
]


@pytest.mark.parametrize(("name", "impl"), JITTED)
def test_jit_gives_the_same(name: str, impl: str) -> None:
    key = random.key(5, impl=impl)
    draw = DRAWS[name]
    np.testing.assert_allclose(numbers(primal.jit(draw)(key)), numbers(draw(key)), rtol=2e-6)


@pytest.mark.parametrize("name", DRAWS)
def test_vmap_over_keys_is_a_loop(name: str) -> None:
    draw = DRAWS[name]
    keys = random.split(random.key(5), 3)
    expected = np.stack([numbers(draw(k)) for k in keys])
    np.testing.assert_allclose(numbers(primal.vmap(draw)(keys)), expected, rtol=2e-6)


def test_raw_and_typed_keys_draw_the_same() -> None:
    for impl in IMPLS:
        with primal.default_prng_impl(impl):
            raw, typed = random.PRNGKey(3), random.key(3)
            assert raw.shape == (2 if impl == "threefry2x32" else 4,)
            np.testing.assert_array_equal(random.key_data(typed), raw)
            np.testing.assert_array_equal(random.normal(raw, (3,)), random.normal(typed, (3,)))
            np.testing.assert_array_equal(random.split(raw), random.key_data(random.split(typed)))
            assert random.wrap_key_data(raw).dtype == typed.dtype == random.key_dtype()
            assert random.key_impl(typed) == impl


def test_philox_keys_draw_for_a_batch_under_the_first() -> None:
    # XLA's generator has one state, whatever is batched; so have ours.
    keys = random.split(random.key(1, impl="rbg"), 2)
    drawn = primal.vmap(lambda k: random.bits(k, (3,)))(keys)
    np.testing.assert_array_equal(drawn, random.bits(keys[0], (2, 3)))


def test_clone_is_the_same_key() -> None:
    key = random.key(7)
    np.testing.assert_array_equal(random.key_data(random.clone(key)), random.key_data(key))
    assert "random_clone" in str(primal.make_jaxpr(random.clone)(key))


def test_keys_are_close_where_they_are_equal() -> None:
    keys = primal.random.split(primal.random.key(0))
    assert jnp.allclose(keys, keys) and not jnp.allclose(keys[0], keys[1])
    assert jnp.isclose(keys, keys[0]).tolist() == [True, False]


def test_structural_functions_work_on_wide_keys() -> None:
    keys = random.split(random.key(1, impl="unsafe_rbg"), 4)
    data = np.asarray(random.key_data(keys))
    swapped = primal.jit(lambda k: jnp.concatenate([k.reshape(2, 2)[1], k[:2]]))(keys)
    np.testing.assert_array_equal(random.key_data(swapped), data[[2, 3, 0, 1]])
    chosen = primal.jit(lambda k: jnp.where(jnp.array([True, False]), k[:2], k[2:]))(keys)
    np.testing.assert_array_equal(random.key_data(chosen), data[[0, 3]])


def test_same_moments_as_the_distributions() -> None:
    key, n = random.key(2), 4000
    for drawn, mean, variance in (
        (random.gamma(key, 3.0, (n,)), 3.0, 3.0),
        (random.beta(key, 2.0, 3.0, (n,)), 0.4, 0.04),
        (random.poisson(key, 4.0, (n,)), 4.0, 4.0),
        (random.poisson(key, 40.0, (n,)), 40.0, 40.0),
        (random.binomial(key, 50, 0.3, (n,)), 15.0, 10.5),
        (random.geometric(key, 0.25, (n,)), 4.0, 12.0),
        (random.wald(key, 2.0, (n,)), 2.0, 8.0),
        (random.triangular(key, 0.0, 1.0, 2.0, (n,)), 1.0, 1 / 6),
        (random.rayleigh(key, 1.0, (n,)), np.sqrt(np.pi / 2), 2 - np.pi / 2),
        (random.logistic(key, (n,)), 0.0, np.pi**2 / 3),
    ):
        host = np.asarray(drawn, np.float64)
        error = 5 * np.sqrt(variance / n)
        assert abs(host.mean() - mean) < error
        assert abs(host.var() / variance - 1) < 0.35


@pytest.mark.parametrize("mean", [1e-3, 10.0, 1e6, 1e25])
def test_wald_keeps_its_digits_for_large_means(mean: float) -> None:
    # Both roots of the quadratic are positive; 1/x + x/mean² tells y, whichever was taken.
    def draw(k: primal.Array) -> primal.Array:
        return random.wald(k, mean, (2000,))

    key = random.key(3)
    x = np.asarray(draw(key), np.float64)
    assert np.isfinite(x).all() and (x > 0).all()
    np.testing.assert_allclose(primal.jit(draw)(key), x, rtol=1e-5)
    y = np.asarray(random.normal(random.split(key)[0], (2000,)), np.float64) ** 2
    low = 1 + mean * y / 2 + np.sqrt(mean * y / 2 * (mean * y / 2 + 2))
    roots = np.stack([mean / low, mean * low])
    assert (np.abs(x / roots - 1).min(0) < 1e-5).all()


@pytest.mark.parametrize("shape", [0.3, 2.0, 20.0])
def test_gamma_moves_so_that_its_distribution_function_stays(shape: float) -> None:
    special = pytest.importorskip("scipy.special", reason="SciPy is not installed")
    key = random.key(4)
    x, t = primal.jvp(lambda a: random.gamma(key, a, (5,)), (shape,), (1.0,))
    x, t = np.asarray(x, np.float64), np.asarray(t, np.float64)
    at = special.gammainc(shape, x)
    h = 1e-5 * shape
    moved = (special.gammaincinv(shape + h, at) - special.gammaincinv(shape - h, at)) / (2 * h)
    np.testing.assert_allclose(t, moved, rtol=2e-3)
    y, s = primal.jvp(lambda a: random.loggamma(key, a, (5,)), (shape,), (1.0,))
    np.testing.assert_allclose(np.exp(np.asarray(y, np.float64)), x, rtol=1e-4)
    np.testing.assert_allclose(np.asarray(s), moved / x, rtol=5e-3)


@pytest.mark.parametrize(
    "draw",
    [
        lambda k, a: random.pareto(k, a, (4,)),
        lambda k, a: random.rayleigh(k, a, (4,)),
        lambda k, a: random.lognormal(k, a, (4,)),
        lambda k, a: random.weibull_min(k, a, 2.0, (4,)),
        lambda k, a: random.uniform(k, (4,), minval=-a, maxval=a),
        lambda k, a: random.double_sided_maxwell(k, a, a, (4,)),
        lambda k, a: random.multivariate_normal(k, a * jnp.ones(2), a * jnp.eye(2)),
    ],
)
def test_differentiable_by_parameters(draw: Callable[[Any, Any], Any]) -> None:
    with primal.enable_x64(True):
        key = random.key(6)
        out = primal.jacfwd(lambda a: draw(key, a))(1.7)
        h = 1e-6
        expected = (draw(key, 1.7 + h) - draw(key, 1.7 - h)) / (2 * h)
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(primal.jacrev(lambda a: draw(key, a))(1.7), out, rtol=1e-8)


K = random.key(0)
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: random.uniform(3), TypeError, "random key"),
    (lambda: random.uniform(np.zeros(3, np.uint32)), TypeError, "dimension 2"),
    (lambda: random.uniform(random.split(K)), ValueError, "single key"),
    (lambda: random.uniform(K, dtype=int), ValueError, "float dtype"),
    (lambda: random.normal(K, dtype=int), ValueError, "float or complex"),
    (lambda: random.bits(K, (2,), np.int32), ValueError, "unsigned"),
    (lambda: random.randint(K, (2,), 0, 3, float), TypeError, "integer dtypes"),
    (lambda: random.gamma(K, [1.0]), TypeError, "array or a number"),
    (lambda: random.gamma(K, jnp.ones(3), (2,)), ValueError, "shape"),
    (lambda: random.t(K, 1j), ValueError, "real parameters"),
    (lambda: random.chisquare(K, jnp.ones(2, "complex64")), ValueError, "real parameters"),
    (lambda: random.bernoulli(K, 1), TypeError, "floating dtype"),
    (lambda: random.bernoulli(K, 0.5, mode="x"), ValueError, "'high' or 'low'"),
    (lambda: random.gumbel(K, mode="x"), ValueError, "'low', 'high' or 'highest'"),
    (lambda: random.poisson(K, 2.0, dtype=float), ValueError, "int dtype"),
    (lambda: random.poisson(random.key(0, impl="rbg"), 2.0), NotImplementedError, "threefry"),
    (lambda: random.choice(K, 3, (4,), replace=False), ValueError, "larger sample"),
    (lambda: random.choice(K, 3, 2), TypeError, "sequence"),
    (lambda: random.permutation(K, 2.0), TypeError, "integer"),
    (lambda: random.permutation(K, 9, axis=1), ValueError, "axis 1 is out of bounds"),
    (lambda: primal.jit(random.permutation)(K, 2), ConcretizationTypeError, "random.permutation"),
    (lambda: primal.jit(random.choice)(K, 2), ConcretizationTypeError, "random.choice"),
    (lambda: random.dirichlet(K, 1.0), ValueError, "ndim >= 1"),
    (lambda: random.multivariate_normal(K, 0.0, jnp.eye(2)), ValueError, "ndim >= 1"),
    (lambda: random.multivariate_normal(K, jnp.zeros(2), jnp.eye(3)), ValueError, "n, n"),
    (lambda: random.categorical(K, jnp.ones(3), axis=2), IndexError, "axis"),
    (lambda: random.key(0, impl="x"), ValueError, "generator"),
    (lambda: random.key(1.5), TypeError, "integer"),
    (lambda: random.key(2**63), OverflowError, "64 bits"),
    (lambda: random.fold_in(K, -1), OverflowError, "32 bits"),
    (lambda: random.fold_in(K, jnp.arange(2)), TypeError, "scalar"),
    (lambda: random.wrap_key_data(jnp.zeros(3, "uint32")), TypeError, "dimension 2"),
    (lambda: jnp.any(random.split(K)), TypeError, "got keys"),
]


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED)
def test_what_is_refused(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda key: key + 1,
        lambda key: 1.0 * key,
        lambda key: key == 1,
        lambda key: jnp.where(True, key, 1),
        lambda key: jnp.concatenate([key[None], jnp.ones(2)]),
    ],
)
def test_keys_do_not_mix_with_numbers(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match=r"key<fry>.*\n.*key_data") as caught:
        call(random.key(0))
    assert isinstance(caught.value, ValueError)


def test_binomial_of_infinitely_many_ends() -> None:
    """Also of probability 0, beside counts whose numbers are those they are without it."""
    n, p = np.array([np.inf] * 4 + [50.0] * 2, "f4"), np.array([0, 0.3, 1, np.nan, 0.3, 0.5], "f4")
    found = np.asarray(random.binomial(random.key(0), n, p))
    few = np.asarray(random.binomial(random.key(0), np.full(6, 50.0, "f4"), p))
    np.testing.assert_array_equal(found[:4], [np.inf, np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(found[4:], few[4:])


def test_binomial_is_drawn_in_the_dtype_of_p() -> None:
    p = jnp.float32(0.4)
    for n in (9, 100):
        single = random.binomial(random.key(3), n, p, (4,))
        half = random.binomial(random.key(3), jnp.float16(n), p, (4,), "float16")
        assert half.dtype == jnp.float16
        assert half.tolist() == single.tolist()
    q = jnp.array([0.2, 0.3, 0.5])
    counts = random.multinomial(random.key(3), 9, q, dtype="float16")
    assert counts.tolist() == random.multinomial(random.key(3), 9, q).tolist()


def test_wide_parameters_widen_what_is_drawn() -> None:
    one = jnp.float32(1.0)
    assert random.double_sided_maxwell(random.key(0), 0.0, one, dtype="float16").dtype == one.dtype
    assert random.double_sided_maxwell(random.key(0), 0.0, 1.0, dtype="float16").dtype == "float16"
    assert random.generalized_normal(random.key(0), one, dtype="float16").dtype == one.dtype
    assert random.categorical(random.key(0), jnp.zeros(3), shape=4).shape == (4,)
    with pytest.raises(ValueError, match="got None"):
        random.gamma(random.key(0), None)


def test_the_dtype_of_a_key_may_be_a_name() -> None:
    assert random.key(7, dtype="rbg").dtype == random.key(7, impl="rbg").dtype
    with pytest.raises(ValueError, match="expected a generator among"):
        random.key(7, dtype="int32")
    with pytest.raises(TypeError, match="expected the name of a generator"):
        random.key(7, dtype=float)


@pytest.mark.parametrize("jitted", [False, True])
def test_highest_gumbel_numbers_are_those_of_64_bits(jitted: bool) -> None:
    """-log(-log(1 - n/2⁶⁴)), of the words drawn and of words at both ends and in the middle."""
    key = random.key(7)
    drawn = np.asarray(random.bits(key, (2, 5000), np.uint32))
    got = (primal.jit if jitted else lambda f: f)(
        lambda k: random.gumbel(k, (5000,), np.float32, mode="highest")
    )(key)
    ends = np.array([0, 1, 2, 255, 2**24 + 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1], np.uint32)
    pairs = np.stack(np.meshgrid(ends, ends)).reshape(2, -1)[:, 1:]  # not 0, whose value is -inf
    for words, found in ((drawn, got), (pairs, of_fraction(jnp.array(pairs[0]), pairs[1]))):
        whole = [int(a) << 32 | int(b) for a, b in words.T]
        want = [
            -np.log(-np.log1p(-n / 2**64)) if n < 2**63 else -np.log(-np.log((2**64 - n) / 2**64))
            for n in whole
        ]
        np.testing.assert_allclose(found, np.array(want), rtol=1e-6, atol=5e-7)
    # Halves are drawn in their own precision only.
    high = random.gumbel(key, (9,), np.float16, mode="high")
    np.testing.assert_array_equal(random.gumbel(key, (9,), np.float16, mode="highest"), high)


def test_seed_offset_is_added_to_every_seed() -> None:
    seeds = (0, 7, -1, 2**33 + 1, np.uint32(3), jnp.int32(-2))
    expected = [numbers(random.PRNGKey(s + 5)) for s in seeds]
    primal.config.update("random_seed_offset", 5)
    try:
        found = [numbers(random.PRNGKey(s)) for s in seeds]
        in_jit = numbers(primal.jit(random.PRNGKey)(jnp.int32(7)))
    finally:
        primal.config.update("random_seed_offset", 0)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(in_jit, [0, 12])


def test_default_mode_of_gumbel_is_a_setting() -> None:
    low, high = (numbers(random.gumbel(K, (9,), mode=m)) for m in ("low", "high"))
    for mode, expected in ((False, low), (True, high), (False, low)):
        primal.config.update("high_dynamic_range_gumbel", mode)
        try:
            np.testing.assert_array_equal(random.gumbel(K, (9,)), expected)
        finally:
            primal.config.update("high_dynamic_range_gumbel", False)

"""Distributions and sample statistics against SciPy; laws between their functions; derivatives."""

from typing import Any

import numpy as np
import pytest
import scipy.stats as reference

import primal
import primal.numpy as jnp
from primal import random
from primal.scipy import stats

RNG = np.random.default_rng(0)
LINE = np.concatenate([RNG.normal(size=40) * 3, [-1.0, 0.0, 1.0, 0.5, 12.0]])
UNIT = np.concatenate([RNG.uniform(size=40), [0.0, 1.0, 0.5, -0.5, 1.5]])
SHAPE, OTHER = RNG.uniform(0.5, 6.0, LINE.size), RNG.uniform(0.5, 6.0, LINE.size)
LOC, SCALE = RNG.normal(size=LINE.size), RNG.uniform(0.5, 3.0, LINE.size)
COUNT = RNG.integers(-1, 12, LINE.size).astype(float)
TRIALS = RNG.integers(1, 12, LINE.size).astype(float)
SHARE = RNG.uniform(0.05, 0.95, LINE.size)

# distribution: (functions of x, functions of a probability, functions of k, shape parameters)
ON_LINE = {
    "norm": ("pdf logpdf cdf logcdf sf logsf", "ppf isf", ()),
    "uniform": ("pdf logpdf cdf", "ppf", ()),
    "expon": ("pdf logpdf cdf logcdf sf logsf", "ppf", ()),
    "cauchy": ("pdf logpdf cdf logcdf sf logsf", "ppf isf", ()),
    "laplace": ("pdf logpdf cdf", "", ()),
    "logistic": ("pdf logpdf cdf sf", "ppf isf", ()),
    "gumbel_r": ("pdf logpdf cdf logcdf sf logsf", "ppf", ()),
    "gumbel_l": ("pdf logpdf cdf logcdf sf logsf", "ppf", ()),
    "gamma": ("pdf logpdf cdf logcdf sf logsf", "", (SHAPE,)),
    "chi2": ("pdf logpdf cdf logcdf sf logsf", "", (SHAPE,)),
    "beta": ("pdf logpdf cdf logcdf sf logsf", "", (SHAPE, OTHER)),
    "pareto": ("pdf logpdf cdf logcdf sf logsf", "ppf", (SHAPE,)),
    "t": ("pdf logpdf", "", (SHAPE,)),
    "truncnorm": ("pdf logpdf cdf logcdf sf logsf", "", (-SHAPE, OTHER)),
}
OF_COUNTS = {
    "bernoulli": (SHARE,),
    "binom": (TRIALS, SHARE),
    "betabinom": (TRIALS, SHAPE, OTHER),
    "nbinom": (TRIALS, SHARE),
    "geom": (SHARE,),
    "poisson": (SHAPE,),
}


def compare(got: object, want: object, name: str) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("name", ON_LINE)
def test_continuous(name: str) -> None:
    of_x, of_p, parameters = ON_LINE[name]
    ours, theirs = getattr(stats, name), getattr(reference, name)
    with primal.enable_x64(True), np.errstate(all="ignore"):
        for function in of_x.split():
            for place in ((), (LOC, SCALE)):
                want = getattr(theirs, function)(LINE, *parameters, *place)
                got = getattr(ours, function)(LINE, *parameters, *place)
                compare(got, want, f"{name}.{function}")
        compiled = primal.jit(ours.logpdf)(LINE, *parameters)
        compare(compiled, theirs.logpdf(LINE, *parameters), f"{name}.logpdf jitted")
        for function in of_p.split():
            want = getattr(theirs, function)(UNIT, *parameters, LOC, SCALE)
            got = getattr(ours, function)(UNIT, *parameters, LOC, SCALE)
            legal = ~np.isnan(want)
            compare(got[legal], want[legal], f"{name}.{function}")
            if name != "cauchy":
                assert np.isnan(np.asarray(got)[(UNIT < 0) | (UNIT > 1)]).all()


def test_quantiles_of_cauchy_keep_their_digits_at_both_ends() -> None:
    q = np.array([0.0, -0.0, 1e-30, 1e-7, 0.25, 0.5, 0.75, 1 - 2.0**-24, 1.0], np.float32)
    for name in ("ppf", "isf"):
        ours, theirs = getattr(stats.cauchy, name), getattr(reference.cauchy, name)
        for got in (ours(q), primal.jit(ours)(q)):
            np.testing.assert_allclose(got, theirs(q.astype(np.float64)), rtol=5e-7, atol=1e-30)
        slopes = primal.vmap(primal.grad(ours))(q[2:-1])
        assert np.isfinite(slopes[1:]).all()


def test_densities_of_cauchy_far_out() -> None:
    x = np.array([0.0, 1e-30, -2.0, 9e9, -1.1e10, 1e19, 1e25, -3e38, np.inf], np.float32)
    wide = x.astype(np.float64)
    for function in (stats.cauchy.logpdf, primal.jit(stats.cauchy.logpdf)):
        np.testing.assert_allclose(function(x), reference.cauchy.logpdf(wide), rtol=3e-7)
    slopes = primal.vmap(primal.grad(stats.cauchy.logpdf))(x[:-1])
    np.testing.assert_allclose(slopes, -2 * wide[:-1] / (1 + wide[:-1] ** 2), rtol=1e-6)


def test_densities_of_cauchy_with_scales_whose_squares_are_no_floats() -> None:
    x = np.array([0.0, 1e-10, 1e-5, -1e10, 1e25, np.inf], np.float32)
    scale = np.array([1e-30, 1e-30, 1e-30, 1e-12, 1e20, 1e-30], np.float32)
    want = reference.cauchy.pdf(x.astype(float), 0, scale.astype(float))
    for function in (stats.cauchy.pdf, primal.jit(stats.cauchy.pdf)):
        np.testing.assert_allclose(function(x, 0, scale), want, rtol=5e-7)


def test_densities_of_cauchy_in_float16() -> None:
    """Where half of all numbers' squares are beyond it, from 256 on."""
    x = np.arange(0x7C00, dtype=np.uint16).view(np.float16)
    wide = x.astype(np.float64)
    for function in (stats.cauchy.logpdf, primal.jit(stats.cauchy.logpdf)):
        np.testing.assert_allclose(function(x), reference.cauchy.logpdf(wide), rtol=3e-3)
    slopes = primal.vmap(primal.grad(stats.cauchy.logpdf))(x)
    np.testing.assert_allclose(slopes, -2 * wide / (1 + wide**2), rtol=5e-3, atol=6e-8)


@pytest.mark.parametrize(
    ("name", "parameters", "functions"),
    [("beta", (0.5, 7.25), "logpdf logcdf logsf"), ("beta", (2, 3), "logpdf logcdf logsf"),
     ("beta", (3, 30), "logcdf logsf"), ("gamma", (2.25,), "logcdf logsf"),
     ("chi2", (3,), "pdf logcdf logsf"), ("pareto", (2.25, -1), "pdf sf logpdf logcdf"),
     ("cauchy", (0.25, 0.375), "pdf logpdf cdf sf"), ("norm", (0.25, 0.375), "pdf logpdf"),
     ("t", (3, 0.5, 0.25), "pdf logpdf"), ("gumbel_l", (0.5, 0.25), "pdf cdf"),
     ("gennorm", (1.5,), "pdf cdf"), ("vonmises", (2.25,), "pdf logpdf")],
)  # fmt: skip
def test_functions_of_float16_are_rounded_once(name: str, parameters: Any, functions: str) -> None:
    """Sums in it have no digits where terms cancel, and tails overflow."""
    x = np.array([0.02, 0.13, 0.3, 0.5, 0.93, 1.3, 2.7, 9.1], np.float16)
    x = x[: 5 if name == "beta" else 8]
    for function in functions.split():
        got = getattr(getattr(stats, name), function)(x, *parameters)
        want = getattr(getattr(reference, name), function)(x.astype(float), *parameters)
        assert got.dtype == np.float16
        nearest = want.astype(np.float16)
        assert (abs(got - want) <= abs(np.spacing(nearest)).astype(float)).all(), (function, got)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_shares_of_16_bits(dtype: str) -> None:
    """Float32's results rounded, of shares whose rounded sum is not 1."""
    share = np.random.default_rng(3).dirichlet(np.ones(4), 9)
    p, alpha = jnp.asarray(share[0]).astype(dtype), jnp.array([0.5, 2.25, 4.0, 1.0], dtype)
    counts, x = np.array([[3, 1, 4, 1], [9, 0, 0, 0], [30, 20, 1, 40]]), share[1:].T.astype(dtype)
    last = 1 - x[:3].astype(np.float32).sum(0, keepdims=True)
    exact = np.concatenate([x[:3].astype(np.float32), last])
    for name in ("pdf", "logpdf"):
        function = getattr(stats.dirichlet, name)
        want = np.asarray(function(exact, alpha.astype("float32"))).astype(x.dtype)
        np.testing.assert_array_equal(function(x[:3], alpha), want)
        assert np.isfinite(np.asarray(function(x, alpha)).astype(float)).all()
    for name in ("pmf", "logpmf"):
        function = getattr(stats.multinomial, name)
        want = function(counts, counts.sum(1), p.astype("float32")).astype(dtype)
        np.testing.assert_array_equal(function(counts, counts.sum(1), p), want)


def test_names_of_parameters_of_16_bits() -> None:
    """Float32's results rounded, the dtype that of all operands, whatever is named."""
    k, p = jnp.arange(6).astype("bfloat16"), jnp.array(0.3, "bfloat16")
    want = stats.binom.pmf(k.astype("float32"), 5, p.astype("float32")).astype("bfloat16")
    for got in (stats.binom.pmf(k, 5, p), stats.binom.pmf(n=5, p=p, k=k)):
        assert got.dtype == "bfloat16" and np.array_equal(got, want)
    assert stats.norm.pdf(k, scale=jnp.ones(6)).dtype == np.float32
    with pytest.raises(TypeError, match=r"\[norm.pdf\] expected an array or a scalar, got"):
        stats.norm.pdf(k, loc=[1.0])


@pytest.mark.parametrize("name", OF_COUNTS)
def test_discrete(name: str) -> None:
    parameters = OF_COUNTS[name]
    ours, theirs = getattr(stats, name), getattr(reference, name)
    with primal.enable_x64(True), np.errstate(all="ignore"):
        for function in ("pmf", "logpmf"):
            for place in ((), (2.0,)):
                want = getattr(theirs, function)(COUNT, *parameters, *place)
                got = getattr(ours, function)(COUNT, *parameters, *place)
                compare(got, want, f"{name}.{function}")


def test_cumulated_counts_and_entropy() -> None:
    with primal.enable_x64(True):
        compare(stats.poisson.cdf(COUNT, SHAPE), reference.poisson.cdf(COUNT, SHAPE), "poisson")
        mu = np.array([0.01, 0.5, 3.0, 30.0, 49.0, 51.0, 400.0])
        np.testing.assert_allclose(
            stats.poisson.entropy(mu), reference.poisson.entropy(mu), rtol=1e-6
        )
        p = np.array([0.2, 0.7])
        compare(stats.bernoulli.cdf(0.5, p), reference.bernoulli.cdf(0.5, p), "bernoulli")
        q = np.array([0.5, 0.9])
        compare(stats.bernoulli.ppf(q, p), reference.bernoulli.ppf(q, p), "bernoulli")


def test_other_densities() -> None:
    with primal.enable_x64(True), np.errstate(all="ignore"):
        compare(stats.gennorm.pdf(LINE, SHAPE), reference.gennorm.pdf(LINE, SHAPE), "gennorm")
        compare(stats.gennorm.cdf(LINE, SHAPE), reference.gennorm.cdf(LINE, SHAPE), "gennorm")
        compare(
            stats.vonmises.logpdf(LINE, SHAPE), reference.vonmises.logpdf(LINE, SHAPE), "vonmises"
        )
        angle = np.abs(LINE) % (2 * np.pi)
        want = reference.wrapcauchy.logpdf(angle, SHARE)
        compare(stats.wrapcauchy.logpdf(angle, SHARE), want, "wrapcauchy")
        alpha = np.array([1.5, 2.0, 0.7])
        x = RNG.dirichlet(alpha, size=5).T
        compare(stats.dirichlet.logpdf(x, alpha), reference.dirichlet.logpdf(x, alpha), "dirichlet")
        compare(
            stats.dirichlet.pdf(x[:2], alpha), reference.dirichlet.pdf(x[:2], alpha), "dirichlet"
        )
        counts, p = np.array([[2, 1, 3], [0, 6, 0], [1, 1, 1]]), np.array([0.2, 0.3, 0.5])
        want = reference.multinomial.logpmf(counts, 6, p)
        compare(stats.multinomial.logpmf(counts, 6, p), want, "multinomial")


def test_normal_vectors() -> None:
    root = RNG.normal(size=(3, 3))
    cov, mean, x = root @ root.T + np.eye(3), RNG.normal(size=3), RNG.normal(size=(4, 2, 3))
    with primal.enable_x64(True):
        want = reference.multivariate_normal.logpdf(x, mean, cov)
        compare(stats.multivariate_normal.logpdf(x, mean, cov), want, "batch")
        compare(stats.multivariate_normal.pdf(x, mean, cov), np.exp(want), "pdf")
        compare(
            stats.multivariate_normal.logpdf(0.3, 0.1, 2.0),
            reference.norm.logpdf(0.3, 0.1, np.sqrt(2.0)), "scalar",
        )  # fmt: skip
        # The score is -Σ⁻¹(x - μ).
        score = primal.grad(stats.multivariate_normal.logpdf)(x[0, 0], mean, cov)
        compare(score, -np.linalg.solve(cov, x[0, 0] - mean), "score")
    with pytest.raises(ValueError, match="incompatible shapes"):
        stats.multivariate_normal.logpdf(x, mean, np.eye(2))


@pytest.mark.parametrize("name", ["norm", "expon", "logistic", "gumbel_r", "gamma", "beta", "t"])
def test_density_is_the_slope(name: str) -> None:
    distribution = getattr(stats, name)
    parameters = [2.5] * len(ON_LINE[name][2])
    with primal.enable_x64(True):
        x = 0.4
        log_slope = primal.grad(distribution.logpdf)(x, *parameters)
        up, down = (distribution.logpdf(x + d, *parameters) for d in (1e-6, -1e-6))
        np.testing.assert_allclose(log_slope, (up - down) / 2e-6, rtol=1e-6)
        if hasattr(distribution, "cdf"):
            slope = primal.grad(distribution.cdf)(x, *parameters)
            np.testing.assert_allclose(slope, distribution.pdf(x, *parameters), rtol=1e-10)


@pytest.mark.parametrize("bw", [None, "silverman", 0.3])
def test_kernel_density(bw: object) -> None:
    data, points = RNG.normal(size=(2, 30)), RNG.normal(size=(2, 7))
    weights = RNG.uniform(size=30)
    with primal.enable_x64(True):
        ours = stats.gaussian_kde(data, bw_method=bw, weights=weights)
        theirs = reference.gaussian_kde(data, bw_method=bw, weights=weights)
        compare(ours(points), theirs(points), "evaluate")
        compare(ours.logpdf(points), theirs.logpdf(points), "logpdf")
        compare(ours.covariance, theirs.covariance, "covariance")
        mean, cov = np.array([0.2, 0.1]), np.eye(2) * 0.4
        compare(ours.integrate_gaussian(mean, cov), theirs.integrate_gaussian(mean, cov), "gauss")
        compare(ours.integrate_kde(ours), theirs.integrate_kde(theirs), "kde")
        line, flat = stats.gaussian_kde(data[0]), reference.gaussian_kde(data[0])
        compare(line.integrate_box_1d(-1, 0.5), flat.integrate_box_1d(-1, 0.5), "box")
        assert ours.resample(random.key(0), (5, 3)).shape == (2, 5, 3)
        leaves = primal.tree.leaves(ours)
        assert len(leaves) == 5
        again = primal.jit(lambda k: k.evaluate(points))(ours)
        compare(again, theirs(points), "jitted")
    with pytest.raises(ValueError, match="dimension"):
        ours(np.zeros((3, 2)))


@pytest.mark.parametrize("method", ["average", "min", "max", "dense", "ordinal"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_ranks(method: str, axis: int | None) -> None:
    x = RNG.integers(0, 5, size=(4, 6))
    got = stats.rankdata(x, method, axis=axis)
    np.testing.assert_array_equal(got, reference.rankdata(x, method, axis=axis))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_mode_and_standard_error(axis: int | None, keepdims: bool) -> None:
    x = RNG.integers(0, 4, size=(5, 7))
    got, want = stats.mode(x, axis, keepdims=keepdims), reference.mode(x, axis, keepdims=keepdims)
    np.testing.assert_array_equal(got.mode, want.mode)
    np.testing.assert_array_equal(got.count, want.count)
    y = RNG.normal(size=(5, 7))
    np.testing.assert_allclose(
        stats.sem(y, axis, keepdims=keepdims), reference.sem(y, axis, keepdims=keepdims), rtol=1e-5
    )


def test_refusals() -> None:
    with pytest.raises(ValueError, match="unknown method"):
        stats.rankdata(jnp.ones(3), "median")
    with pytest.raises(ValueError, match="nan_policy"):
        stats.mode(jnp.ones(3), nan_policy="skip")
    with pytest.raises(TypeError, match="ndarray or scalar"):
        stats.norm.pdf([1.0])
    with pytest.raises(ValueError, match="one-dimensional"):
        stats.dirichlet.logpdf(jnp.ones(2), jnp.ones((2, 2)))


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("geom", (0.3,)), ("nbinom", (4, 0.4)), ("binom", (5, 0.3)), ("betabinom", (5, 2.0, 3.0)),
     ("bernoulli", (0.3,))],
)  # fmt: skip
def test_the_probability_of_nan_is_nan(name, parameters) -> None:
    got = getattr(stats, name).pmf(jnp.array([jnp.nan, 1.0]), *parameters)
    assert np.isnan(got).tolist() == [True, False]


def test_densities_of_uniform_numbers_are_of_their_dtype() -> None:
    assert not stats.uniform.pdf(jnp.ones(2), 0.0, 4.0).weak_type
    assert not stats.bernoulli.cdf(jnp.ones(2), 0.3).weak_type


def test_results_are_weak_only_where_all_operands_are_scalars() -> None:
    whole = jnp.arange(1, 4)
    for f, parameters in (
        (stats.norm.pdf, ()), (stats.gamma.logpdf, (2.5,)), (stats.beta.cdf, (2.0, 3.0)),
        (stats.t.pdf, (3.0,)), (stats.bernoulli.pmf, (0.3,)), (stats.cauchy.sf, (0.5, 2.0)),
        (stats.chi2.sf, (3.0,)), (stats.pareto.ppf, (2.0,)), (stats.uniform.pdf, ()),
    ):  # fmt: skip
        assert not f(whole, *parameters).weak_type and f(0.5, *parameters).weak_type
        weak = jnp.ones(2, int) * 0.5
        assert f(weak, *parameters).weak_type == (f is stats.uniform.pdf)  # as in JAX


# Those of norm, cauchy and logistic go on into the complex plane.
OF_REALS = sorted(ON_LINE.keys() - {"norm", "cauchy", "logistic"})


@pytest.mark.parametrize("name", [*OF_REALS, *OF_COUNTS])
def test_distributions_refuse_complex_numbers(name: str) -> None:
    distribution, parameters = getattr(stats, name), {**ON_LINE}.get(name, (0, 0, ()))[-1]
    density = distribution.logpdf if name in ON_LINE else distribution.logpmf
    parameters = OF_COUNTS.get(name, parameters)
    with pytest.raises(TypeError, match="expected real numbers, got complex64"):
        density(jnp.ones(45, "complex64"), *parameters)


@pytest.mark.parametrize("name", ["beta", "gamma", "chi2", "gumbel_l", "gumbel_r", "t"])
def test_what_is_no_distribution_has_no_probabilities(name: str) -> None:
    ours, theirs = getattr(stats, name), getattr(reference, name)
    x = np.array([-1.0, 0.25, 0.5, 2.0, np.inf, np.nan])
    good = (*(2.5 for _ in ON_LINE[name][-1]), 0.0, 1.0)
    with primal.enable_x64(True), np.errstate(all="ignore"):
        for function in ON_LINE[name][0].split():
            f = getattr(ours, function)
            compare(f(x, *good), getattr(theirs, function)(x, *good), f"{name}.{function}")
            for i in {*range(len(good))} - {len(good) - 2}:
                for wrong in (0.0, -1.0):
                    parameters = (*good[:i], wrong, *good[i + 1 :])
                    value = np.asarray(f(x, *parameters))
                    assert np.isnan(value).all(), (function, parameters, value)


def test_ranks_are_floats_of_the_default_width() -> None:
    for dtype in ("float16", "bfloat16", "complex64", "int8"):
        for method in ("average", "min", "dense", "ordinal"):
            x = jnp.array([3, 1, 2]).astype(dtype)
            ranks = stats.rankdata(x, method)
            assert ranks.dtype == np.float32 and ranks.tolist() == [3, 1, 2]


def test_statistics_refuse_axes_and_counts_that_there_are_not() -> None:
    with pytest.raises(ValueError, match=r"\[mode\] expected axes in \[-2, 2\)"):
        stats.mode(jnp.ones((2, 3)), axis=-4)
    with pytest.raises(ValueError, match="x and n must be of integer type"):
        stats.multinomial.pmf(jnp.array([1, 2]), 3.0, jnp.array([0.5, 0.5]))
    assert stats.sem(jnp.array(2.0), axis=None, ddof=0, keepdims=True).shape == ()


# From mpmath with 60 digits.
TAILS = [
    ("gamma.logcdf", (25, 100), -66.5684508),
    ("gamma.logcdf", (90, 100), -1.84376256),
    ("gamma.logcdf", (1e-30, 3), -209.024418),
    ("gamma.logcdf", (8500, 10000.0), -128.820032),
    ("gamma.logcdf", (12, 1.5), -2.49802897e-5),
    ("gamma.logsf", (150, 1.5), -147.370583),
    ("gumbel_r.logsf", (9, 0.5), -8.50010172),
    ("gumbel_r.logsf", (2e4, -3), -20003),
    ("gumbel_l.logcdf", (-800, 2, 4), -200.5),
    ("gamma.logsf", (300, 100), -94.0616749),
    ("gamma.logsf", (11300, 10000.0), -81.314152),
    ("gamma.logsf", (2, 20), -6.44373139e-14),
    ("gamma.logsf", (0.0001, 1.5), -7.52207899e-7),
    ("chi2.logsf", (400, 3), -197.227568),
    ("beta.logcdf", (0.01, 50, 2), -226.336537),
    ("beta.logcdf", (1e-20, 2, 3), -90.3116443),
    ("beta.logcdf", (0.25, 200, 100), -118.724755),
    ("beta.logcdf", (0.5, 2, 3), -0.374693449),
    ("beta.logsf", (0.75, 2, 200), -272.241592),
    ("beta.logsf", (0.96875, 3, 80), -269.213552),
    ("cauchy.logcdf", (100000000.0,), -3.18309887e-9),
    ("cauchy.logsf", (-100000000.0,), -3.18309887e-9),
]


def test_slopes_of_gumbel_tails_where_exponentials_leave_the_range() -> None:
    x = np.array([-1e4, -90, 0, 90, 1e4], np.float32)
    want = [0, 0, -1 / np.expm1(1), -1, -1]
    for function in (stats.gumbel_r.logsf, lambda x: stats.gumbel_l.logcdf(-x)):
        np.testing.assert_allclose(primal.vmap(primal.grad(function))(x), want, rtol=1e-6)


@pytest.mark.parametrize("name, args, want", TAILS)
def test_logarithms_of_tails_keep_their_digits(name, args, want) -> None:
    distribution, function = name.split(".")
    f = getattr(getattr(stats, distribution), function)
    x, *shapes = [jnp.float32(a) for a in args]
    np.testing.assert_allclose(f(x, *shapes), want, rtol=2e-5)
    step = abs(float(x)) * 1e-3
    around = (f(x + step, *shapes) - f(x - step, *shapes)) / (2 * step)
    np.testing.assert_allclose(primal.grad(f)(x, *shapes), around, rtol=0.02, atol=1e-6)


def test_logarithms_of_tails_end_where_the_support_does() -> None:
    x = jnp.array([0.0, jnp.inf, -1.0, jnp.nan])
    assert stats.gamma.logcdf(x, 2.0).tolist()[:3] == [-np.inf, 0, -np.inf]
    assert stats.gamma.logsf(x, 2.0).tolist()[:3] == [0, -np.inf, 0]
    assert stats.beta.logcdf(x, 2.0, 3.0).tolist()[:3] == [-np.inf, 0, -np.inf]
    assert all(jnp.isnan(f(x, 2.0)[3]) for f in (stats.gamma.logcdf, stats.chi2.logsf))
    assert jnp.isnan(stats.gamma.logsf(x, -1.0)).all()


def test_a_density_estimate_of_points_of_a_wider_dtype() -> None:
    with primal.enable_x64(True):
        sample = jnp.asarray(np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 2.0]], np.float32))
        got = stats.gaussian_kde(sample)(jnp.array([0.0, 1.0]))
        assert got.dtype == jnp.float64
        np.testing.assert_allclose(
            got, reference.gaussian_kde(np.asarray(sample))([0.0, 1.0]), 1e-5
        )


# By 40 digits of mpmath.
@pytest.mark.parametrize("parameters", [(1.0, 1.0), (1.0, 2.0), (0.5, 0.5), (3.0, 2.0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_density_of_beta_at_subnormal_numbers(dtype: Any, parameters: Any) -> None:
    """Whose inverses overflow."""
    x = np.array([8.0, 0.7, 0.01], dtype) * np.finfo(dtype).tiny
    with primal.enable_x64(True):
        got = stats.beta.logpdf(x.astype(dtype), *[dtype(p) for p in parameters])
    assert got.dtype == dtype
    want = reference.beta.logpdf(x.astype(np.float64), *parameters)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-4)


DENSITIES = [
    ("poisson.pmf", (52475.0, 52644.25), 0.0013263220146450415),
    ("poisson.logpmf", (0.0, 3.5), -3.5),
    ("gamma.pdf", (4222.75, 3986.75), 7.1887155428336813e-6),
    ("gamma.logpdf", (0.001, 0.01), 2.238197848150294),
    ("chi2.pdf", (9693.25, 9996.5), 0.00027821031817668511),
    ("beta.logpdf", (0.375, 448.0, 700.0), 2.7705721589817869),
    ("beta.pdf", (0.0625, 0.25, 300.5), 3.7019605299750027e-8),
    ("binom.logpmf", (3.0, 5.0, 0.25), -2.431662135269188),
    ("betabinom.pmf", (22094.0, 76337.0, 6.0, 6.5), 1.6093877032588617e-5),
    ("betabinom.logpmf", (0.0, 7.0, 5.25, 9.5), -2.5013396184466831),
    ("t.pdf", (-4.125, 67108864.0), 8.0540524914992587e-5),
    ("t.logpdf", (0.5, 1000000000000.0), -1.0439385332050321),
    ("wrapcauchy.pdf", (4.375, 0.999755859375), 2.9196257064423366e-5),
    ("beta.sf", (9.5367431640625e-07, 0.04296875, 1515.0), 0.22722265035288002),
    ("beta.sf", (1e-12, 0.001, 2.0), 0.026280028999258905),
    ("beta.sf", (0.99993896484375, 2.0, 0.5), 0.011718511581420898),
    ("norm.pdf", (-34.0625,), 4.5183047549941434e-253),
    ("pareto.pdf", (192078.5, 41.5), 1.1754414111603472e-223),
    ("pareto.sf", (23209.5, 35.5), 1.0443946704519185e-155),
    ("laplace.pdf", (63.5,), 1.3221185647140272e-28),
    ("cauchy.pdf", (17000000.0,), 1.1014182912933895e-15),
]


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(("name", "args", "want"), DENSITIES)
def test_densities_keep_their_digits(name: str, args: Any, want: float, jitted: bool) -> None:
    """Far out and of large parameters, where logarithms of Γ cancel."""
    distribution, function = name.split(".")
    f = getattr(getattr(stats, distribution), function)
    f = primal.jit(f) if jitted else f
    with primal.enable_x64(True):
        assert float(f(*map(jnp.float64, args))) == pytest.approx(want, rel=3e-14)
        if all(float(np.float32(x)) == x for x in args) and abs(want) > 1e-37:
            assert float(f(*map(jnp.float32, args))) == pytest.approx(want, rel=2e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_of_many_add_up_to_one(dtype: Any) -> None:
    with primal.enable_x64(True):
        k = jnp.arange(400_001).astype(dtype)
        n, p, mean = dtype(400_000), dtype(0.25), dtype(100_000)
        for probabilities in (
            stats.poisson.pmf(k, mean),
            stats.binom.pmf(k, n, p),
            stats.nbinom.pmf(k, mean, dtype(0.5)),
            stats.betabinom.pmf(k, n, dtype(3.5), dtype(200)),
        ):
            total = np.sum(np.asarray(probabilities, np.float64))
            assert total == pytest.approx(1, rel=60 * float(np.finfo(dtype).eps))


# By 80 digits of mpmath: of narrow intervals, far from 0 too.
CUT = [
    ("pdf", (8.625, 8.62109375, 8.6259765625), 202.21425587205701),
    ("sf", (8.625, 8.62109375, 8.6259765625), 0.19664550739485588),
    ("cdf", (-3.25, -3.2578125, -3.21875), 0.18999894561318116),
    ("logpdf", (-14.0625, -14.09375, -14.0), 2.0766632330528444),
    ("sf", (0.75, 0.25, 1.0), 0.2801374091431389),
    ("logcdf", (0.75, 0.25, 1.125), -0.4392382888127292),
    ("logsf", (-1.015625, -1.046875, -0.125), -0.024499149734709887),
]


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize(("function", "args", "want"), CUT)
def test_normal_numbers_cut_to_narrow_intervals(
    function: str, args: Any, want: float, jitted: bool
) -> None:
    f = getattr(stats.truncnorm, function)
    f = primal.jit(f) if jitted else f
    with primal.enable_x64(True):
        assert float(f(*map(jnp.float64, args))) == pytest.approx(want, rel=1e-13)
        assert float(f(*map(jnp.float32, args))) == pytest.approx(want, rel=1e-4)


def test_densities_of_exponential_numbers_are_exponentials() -> None:
    x = np.array([0, 1e-40, 1e-6, 0.5, 2, 50], np.float32)
    got = stats.gamma.logpdf(x, np.float32(1)), stats.chi2.logpdf(2 * x, np.float32(2)) + np.log(2)
    for logarithms in got:
        np.testing.assert_allclose(logarithms, -x, rtol=3e-7, atol=3e-7)
    assert stats.gamma.pdf(np.inf, 1.0) == 0 and stats.gamma.logpdf(np.inf, 1.0) == -np.inf
    assert stats.chi2.pdf(np.inf, 2.0) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_betabinom_of_one_beside_a_large_parameter(dtype: str, x64: None) -> None:
    """Of one draw the probabilities are a/(a + b) and b/(a + b), also where one rounds to 1."""
    large = {"float32": 1e8, "float64": 1e17}[dtype]
    for a, b in ((large, 1e-3), (large, 1.0), (1e-3, large), (large, large), (large**3, 0.5)):
        args = [jnp.asarray(x, dtype) for x in (a, b)]
        for k, part in ((0.0, b), (1.0, a)):
            want = np.log(part / (a + b))
            for run in (lambda f: f, primal.jit):
                got = run(stats.betabinom.logpmf)(jnp.asarray(k, dtype), 1, *args)
                eps = np.finfo(dtype).eps
                np.testing.assert_allclose(got, want, rtol=16 * eps, atol=4 * eps)
        assert stats.betabinom.pmf(jnp.asarray(0, dtype), 0, *args) == pytest.approx(1)


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
def test_logarithms_of_densities_at_the_ends_are_limits(jitted: bool) -> None:
    """Of 0ᵃ⁻¹, by shapes below, at and above 1."""
    a, b = np.meshgrid([0.5, 1.0, 2.5], [0.25, 1.0, 3.0])
    through = primal.jit if jitted else lambda f: f
    with primal.enable_x64(True), np.errstate(all="ignore"):
        for end in (0.0, -0.0, 1.0):
            got = through(primal.scipy.stats.beta.logpdf)(jnp.array(end), a, b)
            power, other = (a, b) if end == 0 else (b, a)
            limit = np.where(power == 1, np.log(other), np.where(power > 1, -np.inf, np.inf))
            np.testing.assert_allclose(got, limit, rtol=1e-15)
        got = through(primal.scipy.stats.gamma.logpdf)(jnp.zeros(3), a[0])
        np.testing.assert_array_equal(got, [np.inf, 0, -np.inf])

"""Derivatives of distributions: by their parameters, next to the ends of supports and there."""

from typing import Any

import numpy as np
import pytest
import scipy.stats as reference
from scipy import special

import primal
import primal.numpy as jnp
from primal.scipy import stats

# The parameters, points outside the support, points inside and at its ends.
WITH_SUPPORT = {
    "expon": ((), (-1.0,), (0.0, 0.7)), "uniform": ((), (-1.0, 2.0), (0.0, 0.3, 1.0)),
    "gamma": ((2.5,), (-1.0,), (0.0, 0.7)), "chi2": ((3.0,), (-1.0,), (0.0, 0.7)),
    "beta": ((2.0, 3.5), (-1.0, 2.0), (0.0, 0.3, 1.0)), "pareto": ((2.5,), (0.5,), (1.0, 1.5)),
    "truncnorm": ((-1.0, 2.0), (-3.0, 3.0), (0.3,)),
}  # fmt: skip


@pytest.mark.parametrize("name", WITH_SUPPORT)
def test_derivatives_at_and_beyond_the_ends_of_the_support(name: str) -> None:
    parameters, outside, inside = WITH_SUPPORT[name]
    given = getattr(stats, name)
    functions = [n for n in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf") if hasattr(given, n)]
    with primal.enable_x64(True):
        for f in [getattr(given, n) for n in functions]:
            for by in range(len(parameters) + 1):
                slope = primal.grad(f, by)
                for x in outside:
                    assert slope(x, *parameters) == 0, (f, by, x)
                    assert primal.grad(slope, by)(x, *parameters) == 0, (f, by, x)
        for x in inside:
            density = given.pdf(x, *parameters)
            np.testing.assert_allclose(primal.grad(given.cdf)(x, *parameters), density, rtol=1e-9)
            if hasattr(given, "sf"):
                fall = primal.grad(given.sf)(x, *parameters)
                np.testing.assert_allclose(fall, -density, rtol=1e-9)


def test_derivatives_at_the_middle() -> None:
    assert primal.grad(stats.laplace.cdf)(0.0) == 0.5
    twice = primal.grad(primal.grad(stats.logistic.logpdf))
    np.testing.assert_allclose([twice(0.0), twice(1e-3)], -0.5, rtol=1e-5)


def test_slopes_by_parameters_of_logarithms_of_densities() -> None:
    """Those of k, a, b and n are differences of ψ, without which the value is found."""
    psi = special.digamma
    with primal.enable_x64(True):
        k, m, n, a, b, p = 7.5, 9.25, 30.0, 0.75, 12.5, 0.375
        got = primal.grad(stats.poisson.logpmf, (0, 1))(7.0, m)
        assert np.asarray(got) == pytest.approx([np.log(m) - psi(8.0), 7 / m - 1], rel=1e-13)
        got = primal.grad(stats.gamma.logpdf, (0, 1))(k, a)
        assert np.asarray(got) == pytest.approx([(a - 1) / k - 1, np.log(k) - psi(a)], rel=1e-13)
        got = primal.grad(stats.beta.logpdf, (1, 2))(p, a, b)
        want = [np.log(p) - psi(a) + psi(a + b), np.log(1 - p) - psi(b) + psi(a + b)]
        assert np.asarray(got) == pytest.approx(want, rel=1e-13)
        got = primal.grad(stats.binom.logpmf, (1, 2))(7.0, n, p)
        want = [psi(n + 1) - psi(n - 6) + np.log(1 - p), 7 / p - 23 / (1 - p)]
        assert np.asarray(got) == pytest.approx(want, rel=1e-13)
        second = primal.grad(primal.grad(stats.poisson.logpmf, 1), 1)(7.0, m)
        assert float(second) == pytest.approx(-7 / m**2, rel=1e-13)
        second = primal.grad(primal.grad(stats.gamma.logpdf, 1), 1)(k, a)
        assert float(second) == pytest.approx(-special.polygamma(1, a), rel=1e-11)
        got = [float(primal.grad(stats.t.logpdf, 1)(1.5, df)) for df in (0.125, 3.5, 30.0)]
        want = [
            (psi((df + 1) / 2) - psi(df / 2) - 1 / df - np.log1p(2.25 / df)) / 2
            + (df + 1) / 2 * 2.25 / df**2 / (1 + 2.25 / df)
            for df in (0.125, 3.5, 30.0)
        ]
        assert got == pytest.approx(want, rel=1e-11)
        assert float(stats.t.logpdf(jnp.float32(0.5), jnp.float32(1e30))) == pytest.approx(
            reference.norm.logpdf(0.5), rel=1e-6
        )
        # At the ends of the support.
        assert float(primal.grad(stats.poisson.logpmf, 1)(0.0, 0.0)) == -1
        assert float(stats.binom.logpmf(0.0, 5.0, 0.0)) == 0
        assert float(stats.binom.logpmf(5.0, 5.0, 1.0)) == 0
        assert float(stats.binom.logpmf(1.0, 5.0, 0.0)) == -np.inf


def test_slopes_of_normal_numbers_cut_to_narrow_intervals() -> None:
    """By a and b: the density there; where what is narrow meets what is not, too."""
    with primal.enable_x64(True):
        for b in (-1.9, -1.6, -1.50001, -1.49999, -1.3):
            got = primal.grad(stats.truncnorm.logpdf, (1, 2))(-1.95, -2.0, b)
            mass = reference.norm.cdf(b) - reference.norm.cdf(-2.0)
            want = [reference.norm.pdf(-2.0) / mass, -reference.norm.pdf(b) / mass]
            assert np.asarray(got) == pytest.approx(want, rel=1e-12)


def test_slopes_of_normal_numbers_at_the_ends_of_the_interval() -> None:
    """Where nothing is below or above: the logarithm's is none, as beyond."""
    density = float(stats.truncnorm.pdf(1.0, -1.0, 1.0))
    ends = ("cdf", -1, 0), ("cdf", 1, density), ("sf", 1, 0), ("logcdf", -1, 0)
    for function, at, want in ends:
        f = getattr(stats.truncnorm, function)
        assert float(primal.grad(f)(float(at), -1.0, 1.0)) == pytest.approx(want)


@pytest.mark.parametrize("jitted", [False, True])
def test_slopes_of_logarithms_of_densities_next_to_the_ends(jitted: bool) -> None:
    """Of exponential and uniform numbers too, whose 0-th power has none."""
    x = np.array([0, 1e-40, 1e-30, 1e-9, 1e-6, 1e-3, 0.25], np.float32)
    wide = x.astype(np.float64)

    def slopes(f: Any, at: Any) -> Any:
        return (primal.jit if jitted else lambda g: g)(primal.vmap(primal.grad(f)))(at)

    for a in (1.0, 1.5, 40.0):
        with np.errstate(divide="ignore", over="ignore"):
            power = np.float32(a - 1) / x if a > 1 else np.zeros_like(x)
        got = slopes(lambda x: stats.gamma.logpdf(x, a), x)  # noqa: B023
        np.testing.assert_allclose(got, power - 1, rtol=1e-6)
        got = slopes(lambda x: stats.chi2.logpdf(x, 2 * a), x)  # noqa: B023
        np.testing.assert_allclose(got, power - 0.5, rtol=1e-6)
        for b in (1.0, 3.0):
            want = power - (b - 1) / (1 - wide)
            got = slopes(lambda x: stats.beta.logpdf(x, a, b), x)  # noqa: B023
            np.testing.assert_allclose(got, want, rtol=1e-6)
    y = np.float32(1) - np.array([0, 2.0**-24, 2.0**-20, 0.25], np.float32)
    for a in (1.0, 2.0):
        got = slopes(lambda x: stats.beta.logpdf(x, a, 1.0), y)  # noqa: B023
        np.testing.assert_allclose(got, (a - 1) / y.astype(np.float64), rtol=1e-6)


def test_the_slope_of_an_exponential_share_at_0() -> None:
    """0·log 0 of x^(a - 1) is none."""
    with primal.enable_x64(True):
        slope = primal.grad(stats.gamma.cdf)
        for f in (slope, primal.jit(slope)):
            assert float(f(0.0, 1.0)) == 1
        assert float(primal.grad(slope)(0.0, 1.0)) == -1
        assert float(primal.grad(stats.chi2.sf)(0.0, 2.0)) == -0.5


# (function, x, its slope there): the other operands stay, where slopes by them may be infinite.
AT_ENDS = {
    "xlogy": (lambda x: primal.scipy.special.xlogy(2.0, x), 0.0, np.inf),
    "xlogy of 0": (lambda x: primal.scipy.special.xlogy(0.0, x), 0.0, 0.0),
    "xlog1py of 0": (lambda x: primal.scipy.special.xlog1py(0.0, x), -1.0, 0.0),
    "boxcox": (lambda x: primal.scipy.special.boxcox(x, 0.0), 0.0, np.inf),
    "gamma": (lambda x: stats.gamma.logpdf(x, 1.0), 0.0, -1.0),
    "chi2": (lambda x: stats.chi2.logpdf(x, 2.0), 0.0, -0.5),
    "beta": (lambda x: stats.beta.logpdf(x, 1.0, 1.0), 1.0, 0.0),
    "poisson": (lambda x: stats.poisson.logpmf(0, x), 0.0, -1.0),
    "bernoulli": (lambda x: stats.bernoulli.logpmf(1, x), 1.0, 1.0),
}


@pytest.mark.parametrize("name", AT_ENDS)
def test_slopes_at_ends_are_the_same_forward_and_backward(name: str) -> None:
    f, x, slope = AT_ENDS[name]
    assert primal.grad(f)(x) == slope and primal.jacfwd(f)(x) == slope
    assert primal.jit(primal.jacfwd(f))(x) == slope

"""Derivatives of special functions: beside finite differences, at edges, poles and far out."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.special as reference

import primal
import primal.numpy as jnp
from primal.base.config import enable_x64
from primal.scipy import special
from tests.scipy.test_special import units_off


@pytest.mark.parametrize(("dtype", "bound"), [("float32", 6), ("float64", 16)])
def test_slopes_beside_small_numbers_keep_their_digits(dtype: str, bound: float) -> None:
    """ψ(a) - ψ(a + m) of whole m is a sum of fractions; of tiny b it is -b·ψ'(a)."""
    draw = np.random.default_rng(0)
    tiny = np.finfo(dtype).tiny
    with enable_x64(True):
        a, m = (10 ** draw.uniform(-2, 2, 100)).astype(dtype), draw.integers(1, 9, 100)
        total = [-sum(1 / (Fraction(x) + k) for k in range(n))
                 for x, n in zip(a.tolist(), m.tolist(), strict=True)]  # fmt: skip
        slope = primal.jit(primal.grad(lambda a, b: special.betaln(a, b).sum()))
        assert units_off(slope(a, m.astype(dtype)), total, dtype) < bound
        small = (10 ** draw.uniform(np.log10(tiny) + 3, -20, 100)).astype(dtype)
        bend = reference.polygamma(1, a.astype(float)).tolist()
        want = [Fraction(t) * -Fraction(b) for t, b in zip(bend, small.tolist(), strict=True)]
        assert units_off(slope(a, small), want, dtype) < bound
        # Of (z)ₘ = z(z + 1)…: by z that times the sum above, next to z = 0 (m - 1)! even where
        # the sum is infinite.
        low = np.concatenate([a, np.array([tiny, tiny / 8, tiny * 8], dtype)])
        m = np.concatenate([m, [2, 5, 3]])
        want = []
        for x, n in zip(low.tolist(), m.tolist(), strict=True):
            rising = [Fraction(x) + k for k in range(n)]
            want.append(sum(math.prod(rising[:k] + rising[k + 1 :]) for k in range(n)))
        for by in (lambda f: f, primal.jit):
            got = by(primal.grad(lambda z, m: special.poch(z, m).sum()))(low, m.astype(dtype))
            assert units_off(got, want, dtype) < 2 * bound


def test_the_slope_of_log_ndtr_far_below() -> None:
    """φ(x)/Φ(x) tends to -x, of which a difference of two squares has no digits."""
    x = np.float32([-3e4, -1e3, -30.0, -1.0, 0.0, 1.0, 9.0])
    got = primal.vmap(primal.grad(special.log_ndtr))(x)
    want = np.exp(-0.5 * x[3:].astype(float) ** 2 - reference.log_ndtr(x[3:].astype(float)))
    np.testing.assert_allclose(got[3:], want / np.sqrt(2 * np.pi), 5e-6)
    far = x[:3].astype(float)
    np.testing.assert_allclose(got[:3], -far - 1 / far + 2 / far**3, 2e-6)
    for end, slope in ((-3e38, 3e38), (-np.inf, np.inf), (np.inf, 0)):
        assert float(primal.grad(special.log_ndtr)(end)) == np.float32(slope)


SMOOTH = {
    "ndtr": (0.7,), "log_ndtr": (-3.0,), "ndtri": (0.03,), "owens_t": (0.4, 1.3), "erfcx": (0.6,),
    "dawsn": (1.7,), "exp1": (0.8,), "expi": (1.2,), "spence": (0.4,), "gamma": (2.2,),
    "betaln": (2.0, 14.0), "beta": (2.0, 3.0), "poch": (2.0, 1.5), "i0": (1.1,), "i1": (1.1,),
    "logit": (0.3,), "entr": (0.4,), "xlogy": (0.5, 1.4), "xlog1py": (0.5, 1.4),
    "rel_entr": (0.5, 1.4), "kl_div": (0.5, 1.4), "boxcox": (2.0, 0.7), "boxcox1p": (2.0, 0.7),
    "hyp1f1": (1.2, 2.3, -0.7), "hyp1f1 ": (1.2, 2.3, 0.7),
}  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_jit_and_vmap(name: str) -> None:
    function, at = getattr(special, name.strip()), SMOOTH[name]
    with primal.enable_x64(True):
        for i in range(len(at)):
            slope = primal.grad(function, i)(*at)
            up, down = (
                function(*[v + (d if j == i else 0.0) for j, v in enumerate(at)])
                for d in (1e-5, -1e-5)
            )
            np.testing.assert_allclose(slope, (up - down) / 2e-5, rtol=1e-6)
        np.testing.assert_allclose(primal.jit(function)(*at), function(*at), rtol=1e-12)
        rows = [jnp.asarray([v, v * 1.1]) for v in at]
        mapped = primal.vmap(function)(*rows)
        each = [function(*[r[k] for r in rows]) for k in range(2)]
        np.testing.assert_allclose(mapped, each, rtol=1e-12)


@pytest.mark.parametrize("function", [special.sici, special.fresnel])
def test_derivatives_of_pairs(function: object) -> None:
    with primal.enable_x64(True):
        for x in (0.7, 2.5, 6.0, -2.5):
            slopes = primal.jacobian(function)(x)
            up, down = function(x + 1e-5), function(x - 1e-5)
            for s, u, d in zip(slopes, up, down, strict=True):
                np.testing.assert_allclose(s, (u - d) / 2e-5, rtol=1e-6, atol=1e-9)


# Where the formula of the value is not that of the derivative: limits, integers, poles.
SLOPES = [
    ("logit", (0.0,), 0, np.inf), ("logit", (1.0,), 0, np.inf), ("logit", (0.25,), 0, 16 / 3),
    ("poch", (7.0, 0.0), 1, reference.digamma(7.0)), ("poch", (7.0, 0.0), 0, 0.0),
    ("comb", (5.0, 2.0), 0, 10 * (reference.digamma(6.0) - reference.digamma(4.0))),
    ("comb", (5.0, 2.0), 1, 10 * (reference.digamma(4.0) - reference.digamma(3.0))),
    ("comb", (7.0, 0.0), 1, reference.digamma(8.0) - reference.digamma(1.0)),
    ("boxcox", (7.0, 0.0), 1, np.log(7.0) ** 2 / 2), ("i0", (0.0,), 0, 0.0),
    ("spence", (1.0,), 0, -1.0), ("spence", (0.0,), 0, -np.inf), ("ndtri", (0.0,), 0, np.inf),
    ("xlogy", (0.0, 2.0), 1, 0.0), ("entr", (0.0,), 0, np.inf), ("expi", (0.0,), 0, np.inf),
    ("expn", (0.0, 1.5), 1, -np.exp(-1.5) * (1 / 1.5 + 1 / 1.5**2)),
    ("expn", (1.0, 0.0), 1, -np.inf), ("digamma", (np.inf,), 0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "at", "by", "want"), SLOPES)
def test_derivatives_at_the_edges(name: str, at: tuple[float, ...], by: int, want: float) -> None:
    for wide in (False, True):
        with primal.enable_x64(wide):
            got = primal.grad(getattr(special, name), by)(*at)
            np.testing.assert_allclose(got, want, rtol=1e-12 if wide else 1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in SMOOTH if name != "owens_t"])
def test_second_derivatives(name: str) -> None:
    function, at = getattr(special, name.strip()), SMOOTH[name]
    with primal.enable_x64(True):
        for i in range(len(at)):
            for k in range(len(at)):
                slope = primal.grad(function, i)
                up, down = (
                    slope(*[v + (d if j == k else 0.0) for j, v in enumerate(at)])
                    for d in (1e-5, -1e-5)
                )
                got = primal.grad(slope, k)(*at)
                np.testing.assert_allclose(got, (up - down) / 2e-5, rtol=1e-5, atol=1e-8)


def test_second_derivatives_of_expn_and_fresnel() -> None:
    with primal.enable_x64(True):
        for n in (0.0, 1.0, 3.0):
            slope = primal.grad(special.expn, 1)
            want = (slope(n, 1.5 + 1e-5) - slope(n, 1.5 - 1e-5)) / 2e-5
            np.testing.assert_allclose(primal.grad(slope, 1)(n, 1.5), want, rtol=1e-8)
        curve = primal.vmap(primal.grad(primal.grad(lambda x: special.fresnel(x)[1])))
        x = np.array([-3.0, 1.0, 7.0, 0.3])  # S, C: C'' = -πx sin(πx²/2)
        np.testing.assert_allclose(curve(x), -np.pi * x * np.sin(np.pi / 2 * x * x), atol=1e-12)


def test_loggamma_of_complex_numbers_has_the_derivative_digamma() -> None:
    with enable_x64(True):
        for w in (-2.3 + 0.7j, 3.1 - 4j, 0.2 + 0.1j):
            got = primal.grad(special.loggamma, holomorphic=True)(w)
            np.testing.assert_allclose(got, reference.digamma(w), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_boxcox1p_and_slopes_by_exponents_have_their_digits(dtype: Any) -> None:
    """In six units, for λ·log from the least to the greatest, which rounding 1 + x would cost."""
    drawn = np.random.default_rng(2)
    x = (10.0 ** drawn.uniform(-9, 1, 400)).astype(dtype)
    power = (10.0 ** drawn.uniform(-9, 1, 400) / np.log1p(x)).astype(dtype)
    wide = np.longdouble
    log, by = np.log1p(x.astype(wide)), power.astype(wide)
    whole = by * log
    slope = sum(log**2 * whole**k / (math.factorial(k) * (k + 2)) for k in range(60))
    wants = np.expm1(whole) / by, np.exp(whole - log), slope

    def both(x: Any, power: Any) -> Any:
        total = lambda x, power: special.boxcox1p(x, power).sum()  # noqa: E731
        return special.boxcox1p(x, power), *primal.grad(total, (0, 1))(x, power)

    with enable_x64(dtype is np.float64):
        for function in (both, primal.jit(both)):
            for got, want in zip(function(x, power), wants, strict=True):
                assert np.abs((np.asarray(got) - want) / want).max() < 6 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slopes_of_boxcox_by_small_bases_have_their_digits(dtype: Any) -> None:
    """In three units, where those of λ - 1 would be log x times as many."""
    drawn = np.random.default_rng(3)
    x = (10.0 ** drawn.uniform(-12, 0, 400)).astype(dtype)
    power = drawn.uniform(-1.5, 1.5, 400).astype(dtype)
    wide = np.longdouble
    want = x.astype(wide) ** (power.astype(wide) - 1)
    slope = primal.vmap(primal.grad(special.boxcox))
    with enable_x64(dtype is np.float64):
        for function in (slope, primal.jit(slope)):
            error = np.abs((np.asarray(function(x, power)) - want) / want)
            assert error.max() < 3 * np.finfo(dtype).eps


@pytest.mark.parametrize("name", ["boxcox", "boxcox1p"])
def test_slopes_of_boxcox_where_the_base_is_zero(name: str) -> None:
    shift = name == "boxcox1p"
    slopes = primal.vmap(primal.grad(getattr(special, name), (0, 1)))
    power = jnp.array([0.5, 1.0, 2.0])
    for run in (slopes, primal.jit(slopes)):
        by_base, by_power = run(jnp.zeros(3) - shift, power)
        np.testing.assert_array_equal(by_base, [np.inf, 1, 0])
        np.testing.assert_allclose(by_power, 1 / power**2, rtol=1e-6)


# Functions of two numbers and one, at the ends of where they are defined and beyond.
SLOPED = ["beta", "betaln", "expn", "kl_div", "owens_t", "poch", "rel_entr", "xlog1py", "xlogy",
          "hyp1f1", "loggamma", "log_ndtr", "ndtr", "entr", "logit"]  # fmt: skip


@pytest.mark.parametrize("name", SLOPED)
def test_slopes_of_both_modes_agree_at_special_values(name: str) -> None:
    f = getattr(special, name)
    count = {"hyp1f1": 3}.get(name, 1 if name in SLOPED[10:] else 2)
    ends = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5]
    xs = [jnp.asarray(v.ravel(), "float32") for v in np.meshgrid(*[ends] * count)]
    for i, x in enumerate(xs):

        def of_one(z: Any, i: int = i) -> Any:
            return f(*xs[:i], z, *xs[i + 1 :])

        forward = primal.jvp(of_one, (x,), (jnp.ones_like(x),))[1]
        back = primal.grad(lambda z, of_one=of_one: of_one(z).sum())(x)
        np.testing.assert_allclose(forward, back, rtol=1e-5)

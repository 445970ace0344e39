"""Special functions against SciPy in both float dtypes, their derivatives, jit and vmap."""

import functools
import inspect
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
from primal.scipy.special.harmonics import lpmn, lpmn_values

RNG = np.random.default_rng(0)
LINE = np.concatenate(
    [RNG.normal(size=60) * 3, np.geomspace(1e-5, 60, 60), -np.geomspace(1e-5, 9, 30),
     [0.0, 1.0, -1.0, 2.0, 4.0, np.inf, -np.inf, np.nan]]
)  # fmt: skip
HALF = np.abs(LINE)
UNIT = np.concatenate([RNG.uniform(size=60), 10.0 ** -RNG.uniform(1, 25, size=20), [0.0, 1.0]])
SIDE = RNG.uniform(0.1, 8.0, LINE.size)
OTHER = RNG.uniform(0.1, 8.0, LINE.size)
WHOLE = RNG.integers(0, 9, LINE.size).astype(float)

# name: (operands, tolerance in float32, in float64). Float32's tolerance is that of the result's
# size where the function has zeros or the argument's rounding grows with it.
CASES = {
    "ndtr": ([LINE[np.abs(LINE) < 10]], 1e-5, 1e-14),
    "log_ndtr": ([LINE], 1e-5, 1e-14),
    "ndtri": ([UNIT], 1e-6, 1e-13),
    "owens_t": ([LINE[np.isfinite(LINE)] / 4, SIDE[np.isfinite(LINE)] - 4], 1e-5, 1e-12),
    "erfcx": ([LINE[LINE > -7]], 1e-5, 1e-13),
    "dawsn": ([LINE], 1e-6, 1e-13),
    "exp1": ([HALF], 5e-6, 1e-13),
    "expi": ([LINE], 2e-5, 1e-12),
    "spence": ([HALF[np.isfinite(HALF)]], 2e-5, 1e-13),
    "fresnel": ([LINE[~np.isnan(LINE)]], 1e-5, 1e-13),
    "gamma": ([LINE[np.abs(LINE) < 20]], 1e-5, 1e-12),
    "gammaln": ([HALF], 1e-5, 1e-12),
    "gammasgn": ([LINE[np.isfinite(LINE)]], 0.0, 0.0),
    "loggamma": ([LINE[np.isfinite(LINE)]], 1e-5, 1e-12),
    "digamma": ([HALF[np.isfinite(HALF) & (HALF > 0)]], 1e-5, 1e-12),
    "factorial": ([HALF[HALF < 25]], 1e-5, 1e-12),
    "beta": ([SIDE, OTHER], 1e-5, 1e-12),
    "betaln": ([SIDE * 30, OTHER], 5e-5, 1e-11),
    "poch": ([SIDE, OTHER], 2e-5, 1e-12),
    "comb": ([WHOLE + 4, WHOLE[::-1].copy()], 1e-5, 1e-12),
    "gammainc": ([SIDE, OTHER], 1e-5, 1e-12),
    "gammaincc": ([SIDE, OTHER], 2e-5, 1e-11),
    "betainc": ([SIDE, OTHER, RNG.uniform(size=SIDE.size)], 2e-5, 1e-11),
    "zeta": ([SIDE + 1, OTHER], 2e-5, 1e-12),
    "i0": ([LINE[np.abs(LINE) < 30]], 1e-5, 1e-13),
    "i0e": ([LINE[np.isfinite(LINE)]], 1e-5, 1e-13),
    "i1": ([LINE[np.abs(LINE) < 30]], 1e-5, 1e-13),
    "i1e": ([LINE[np.isfinite(LINE)]], 1e-5, 1e-13),
    "expit": ([LINE], 1e-5, 1e-13),
    "logit": ([UNIT], 1e-4, 1e-12),
    "entr": ([LINE], 1e-5, 1e-13),
    "xlogy": ([LINE, HALF], 1e-5, 1e-13),
    "xlog1py": ([LINE, HALF], 1e-5, 1e-13),
    "rel_entr": ([SIDE, OTHER], 1e-4, 1e-12),
    "kl_div": ([SIDE, OTHER], 1e-4, 1e-11),
    "boxcox": ([SIDE, OTHER - 4], 1e-5, 1e-12),
    "boxcox1p": ([SIDE, OTHER - 4], 1e-5, 1e-12),
    "hyp1f1": ([SIDE, OTHER, LINE.clip(-20, 20)[::-1].copy()], 2e-4, 1e-10),
    "hyp2f1": ([SIDE / 2, OTHER / 2, SIDE[::-1].copy(), RNG.uniform(-3, 0.95, SIDE.size)],
               2e-3, 1e-8),
}  # fmt: skip


@pytest.mark.parametrize("wide", [False, True], ids=["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_values(name: str, wide: bool) -> None:
    operands, single, double = CASES[name]
    with primal.enable_x64(wide):
        dtype = np.float64 if wide else np.float32
        given = [np.asarray(x, dtype) for x in operands]
        got = getattr(special, name)(*given)
        want = getattr(reference, name)(*[x.astype(np.float64) for x in given])
        both = zip(got, want, strict=True) if isinstance(got, tuple) else [(got, want)]
        for g, w in both:
            assert g.dtype == dtype
            tolerance = double if wide else single
            with np.errstate(over="ignore"):
                w = w.astype(dtype)
            near = tolerance * (1 if name in ("betaln", "kl_div", "rel_entr", "expi") else 1e-3)
            np.testing.assert_allclose(g, w, rtol=tolerance, atol=near)


def test_beta_functions_keep_their_digits() -> None:
    """Of float32, beside SciPy's float64: an error of four units, or of four of 1 next to it."""
    a, b = (10 ** RNG.uniform(-9, 7, (2, 5000))).astype(np.float32)
    a[:2000], b[:2000] = RNG.uniform(0.01, 12, (2, 2000))
    wide = a.astype(float), b.astype(float)
    want = reference.betaln(*wide)
    error = np.abs(primal.jit(special.betaln)(a, b) - want) / np.maximum(np.abs(want), 1)
    assert error.max() < 4 * 2.0**-23
    slopes = primal.jit(primal.grad(lambda a, b: special.betaln(a, b).sum(), (0, 1)))(a, b)
    total = reference.psi(wide[0] + wide[1])
    for got, x, other in zip(slopes, wide, wide[::-1], strict=True):
        # ψ of SciPy loses its digits in the difference where the other one is small.
        near = x < 100 * other
        np.testing.assert_allclose(got[near], (reference.psi(x) - total)[near], 2e-5)
    for p, q in ((-0.5, 2.0), (-1.5, -2.5), (0.0, 1.0), (-0.5, -0.5)):
        np.testing.assert_allclose(special.betaln(p, q), reference.betaln(p, q), 1e-5)


_PI = Fraction("3.1415926535897932384626433832795028841971693993751058209749445923078164062862")


def units_off(got: Any, exact: list[Fraction], dtype: str) -> Any:
    """How far results are from fractions, in units of the last place; infinite ones must agree."""
    got, most = np.asarray(got), Fraction(float(np.finfo(dtype).max))
    assert got.dtype == dtype
    out = []
    for value, want in zip(got.tolist(), exact, strict=True):
        if abs(want) > most:
            assert abs(value) >= most * (1 - 2**-20)
            continue
        step = float(np.spacing(np.array(abs(want), dtype)))
        out.append(float(abs(Fraction(value) - want) / Fraction(step)))
    return max(out)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_digits_of_gamma_factorials_and_binomials(dtype: str, jitted: bool) -> None:
    """Beside fractions: Γ at whole numbers and halves, products of rising and falling numbers."""
    call = primal.jit if jitted else (lambda f: f)
    digits = np.finfo(dtype).nmant + 1
    with enable_x64(True):
        whole = np.arange(1, 172)
        factorials = [Fraction(math.factorial(n - 1)) for n in whole.tolist()]
        got = call(special.gamma)(whole.astype(dtype))
        assert units_off(got, factorials, dtype) < 6
        few = [f.numerator for f in factorials if f < 2 ** (digits - 1)]
        np.testing.assert_array_equal(np.asarray(got)[: len(few)], np.array(few, dtype))
        assert units_off(call(special.factorial)((whole - 1).astype(dtype)), factorials, dtype) < 6
        # Γ(n + ½) = (2n)!/(4ⁿ n!)·√π and Γ(½ - n) = (-1)ⁿ·π/Γ(n + ½).
        root = Fraction(math.isqrt(int(_PI * 10**74)), 10**37)
        halves = [root * Fraction(math.factorial(2 * n), 4**n * math.factorial(n))
                  for n in range(185)]  # fmt: skip
        turned = [(-1) ** n * _PI / h for n, h in enumerate(halves)]
        above, below = np.arange(185) + 0.5, 0.5 - np.arange(185)
        for x, want in ((above, halves), (below, turned)):
            assert units_off(call(special.gamma)(x.astype(dtype)), want, dtype) < 6.5
        draw = np.random.default_rng(0)
        z, m = (10 ** draw.uniform(-2, 2, 300)).astype(dtype), draw.integers(0, 12, 300)
        rising = [math.prod([Fraction(a) + k for k in range(b)], start=Fraction(1))
                  for a, b in zip(z.tolist(), m.tolist(), strict=True)]  # fmt: skip
        assert units_off(call(special.poch)(z, m.astype(dtype)), rising, dtype) < 20
        # Downwards, from where z + m is exact.
        top = (z + m).astype(dtype)
        at = [k for k, r in enumerate(rising) if r < 1e30 and Fraction(float(top[k])) ==
              Fraction(float(z[k])) + int(m[k])]  # fmt: skip
        got = call(special.poch)(top[at], -m[at].astype(dtype))
        assert len(at) > 30 and units_off(got, [1 / rising[k] for k in at], dtype) < 25
        # Where a factor is infinite: the product is, too, or next to 0 a number.
        for a, b in ((0.05, 200), (5, 1000), (1e-6, 1e4), (1000, 1000)):
            assert np.isinf(call(special.poch)(np.array(a, dtype), np.array(b, dtype)))
        a, b = (1e-30, 50) if dtype == "float32" else (1e-280, 260)
        power = Fraction(a) * math.factorial(b - 1)
        got = call(special.poch)(np.array(a, dtype), np.array(b, dtype))
        assert float(got) == pytest.approx(float(power), rel=5e-5 if dtype == "float32" else 1e-12)
        half = call(special.poch)(np.array([0.5, 0.5], "float16"), np.array([30, 3], "float16"))
        assert half.dtype == "float16" and np.array_equal(half, np.float16([np.inf, 1.875]))
        n = draw.integers(1, 50, 300)
        k = (n * draw.uniform(size=300)).astype(int)
        ways = [Fraction(math.comb(a, b)) for a, b in zip(n.tolist(), k.tolist(), strict=True)]
        got = call(special.comb)(n.astype(dtype), k.astype(dtype))
        assert units_off(got, ways, dtype) < 80
        assert np.isinf(call(special.comb)(np.array(2000, dtype), np.array(1000, dtype)))
        # Of the last numbers that the dtype holds.
        n, k = (128, 60) if dtype == "float32" else (1029, 514)
        np.testing.assert_allclose(
            float(call(special.comb)(np.array(n, dtype), np.array(k, dtype))),
            float(math.comb(n, k)),
            rtol=1e-5 if dtype == "float32" else 1e-12,
        )
        # Where factorials are 0 they are flat, also where Γ is infinite.
        flat = primal.grad(lambda n: special.factorial(n).sum())
        below = np.array([-1.0, -2.0, -0.5, -np.inf], dtype)
        np.testing.assert_array_equal(np.asarray(call(flat)(below)), 0 * np.ones(4, dtype))


# a, b, log B(a, b), ψ(a) - ψ(a + b), from mpmath with 60 digits.
BETALN = np.array([
    (0.3, 0.7, 1.3566652413497420971, -2.925308557298600173),
    (1e-12, 3.5, 27.631021115926867856, -1000000000001.6803924),
    (2.5, 1e-09, 20.723265835666038789, -4.9035775598213286973e-10),
    (1.0, 1.0000001, -9.9999995058387045178e-8, -1.0000000644934047019),
    (9.75, 10.25, -13.729655575672685182, -0.7454144571975730389),
    (100000000.0, 3.25, -58.931410523298962091, -3.2499999634375006703e-8),
    (0.125, 1000000000000000.0, -2.2979286918100392575, -42.927269058206539753),
    (123456.7, 7654321.25, -633974.42863449416739, -4.1431394642573658293),
    (1.0, 1.0, 0.0, -1.0),
]).T  # fmt: skip


# a, b, log |B(a, b)| of negative a, from mpmath with 60 digits.
BETALN_BELOW = np.array([
    (-0.3, 1e5, 4.918715740343471), (-0.3, 1e10, 8.37259532982024),
    (-0.3, 1e30, 22.188105887804014), (-100.5, 1e10, 1949.197049639551),
    (-7.25, 7.5, -1.2955417314150945),
    (-0.002563898218795657, 0.002766256220638752, 3.3510263767826647),
]).T  # fmt: skip


@pytest.mark.parametrize(("dtype", "bound"), [("float32", 3e-6), ("float64", 1e-14)])
def test_beta_functions_of_negative_numbers(dtype: str, bound: float) -> None:
    with enable_x64(True):
        a, b, want = BETALN_BELOW
        got = primal.jit(special.betaln)(*np.array([[*a, *b], [*b, *a]], dtype))
        near = np.asarray([*want, *want]) if dtype == "float64" else reference.betaln(
            *np.array([[*a, *b], [*b, *a]], dtype).astype(float)
        )
        np.testing.assert_allclose(got, near, bound, 1e-6 if dtype == "float32" else 0)


def test_far_arguments_have_the_limits() -> None:
    for dtype in ("float32", "float64"):
        with enable_x64(True):
            x = np.array([3e16, 1e20, 1e38, np.inf], dtype)
            for sign in (1, -1):
                for part in primal.jit(special.fresnel)(sign * x):
                    np.testing.assert_array_equal(part, np.full(4, sign * 0.5, dtype))
            np.testing.assert_array_equal(special.poch(np.array([np.nan, np.inf, -2], dtype), 0), 1)


def test_beta_functions_of_float64() -> None:
    with enable_x64(True):
        a, b, want, slope = BETALN
        # Next to 1 the logarithm has the digits that 1 has.
        np.testing.assert_allclose(special.betaln(a, b), want, 2e-15, 1e-15)
        got = primal.vmap(primal.grad(special.betaln))(a, b)
        # Of a small b its distance from 0 has as many digits less as b has zeros.
        np.testing.assert_allclose(got, slope, 3e-15, 1e-16)


# Units of the last place of float32, from where to where, beside SciPy's float64.
UNITS = {
    "erfcx": (3.5, 0.0, 1e30), "dawsn": (2.5, -1e30, 1e30), "exp1": (5.0, 0.0, 1.0),
    "expi": (4.0, 0.6, 12.0), "sici": (2.5, -3.0, 3.0), "log_ndtr": (4.0, -1e10, 0.0),
    "owens_t": (5.0, -3.0, 3.0),
}  # fmt: skip


@pytest.mark.parametrize("name", UNITS)
def test_units_of_the_last_place(name: str) -> None:
    units, low, high = UNITS[name]
    x = np.concatenate([10 ** RNG.uniform(-20, 20, 4000), RNG.uniform(0, 30, 8000)])
    x = np.concatenate([x, -x]).astype(np.float32)
    x = x[(x > low) & (x < high)]
    given = (x, np.float32(0.7)) if name == "owens_t" else (x,)
    got = primal.jit(getattr(special, name))(*given)
    want = getattr(reference, name)(*[np.asarray(v, float) for v in given])
    if name == "sici":
        got, want = got[0], want[0]
    few = np.abs(want) > np.finfo(np.float32).tiny
    error = np.abs(np.asarray(got, float) - want)[few] / np.spacing(np.float32(abs(want[few])))
    assert error.max() < units, x[few][np.argmax(error)]


def test_integral_sine_and_cosine() -> None:
    with primal.enable_x64(True):
        for x in (HALF[np.isfinite(HALF)], -HALF[np.isfinite(HALF)]):
            si, ci = special.sici(x)
            np.testing.assert_allclose(si, reference.sici(x)[0], rtol=1e-13)
            np.testing.assert_allclose(ci, reference.sici(x)[1], rtol=1e-12, atol=1e-15)


def test_expn() -> None:
    n, x = WHOLE[np.isfinite(HALF)], HALF[np.isfinite(HALF)]
    with primal.enable_x64(True):
        got = special.expn(n, x)
        np.testing.assert_allclose(got, reference.expn(n.astype(int), x), rtol=1e-12)
    slope = primal.grad(special.expn, 1)(2.0, 1.5)
    np.testing.assert_allclose(slope, -reference.expn(1, 1.5), rtol=1e-5)


def test_faddeeva() -> None:
    z = RNG.normal(size=100) * 3 + 1j * RNG.normal(size=100) * 2
    with primal.enable_x64(True):
        np.testing.assert_allclose(special.wofz(z), reference.wofz(z), rtol=1e-12)
    assert special.wofz(1.0).dtype == np.complex64


def test_bessel_of_integer_order() -> None:
    x = np.linspace(0.0, 10.0, 21)
    with primal.enable_x64(True):
        got = special.bessel_jn(x, v=4)
        want = [reference.jv(k, x) for k in range(5)]
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="n_iter above v=60"):
        special.bessel_jn(1.0, v=60)


def test_associated_legendre_functions() -> None:
    with enable_x64(True):
        z = np.array([-1.0, -0.9, 0.1, 0.5, 1.0])
        for n in (0, 1, 6):
            values, slopes = lpmn(n, n, jnp.asarray(z))
            # SciPy's are [degree, order from 0 to n, then from -n to -1].
            want = reference.assoc_legendre_p_all(n, n, z, diff_n=1)[:, :, : n + 1].swapaxes(1, 2)
            np.testing.assert_allclose(values, want[0], rtol=1e-12, atol=1e-12)
            got, want = np.asarray(slopes)[..., 1:-1], want[1][..., 1:-1]
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(lpmn_values(n, n, jnp.asarray(z), False), values)
            degree, order = np.arange(n + 1), np.arange(n + 1)[:, None]
            ratio = reference.poch(degree - order + 1, 2 * order)
            scale = np.sqrt((2 * degree + 1) / (4 * np.pi * np.where(order > degree, 1, ratio)))
            got = lpmn_values(n, n, jnp.asarray(z), True)
            np.testing.assert_allclose(got, values * scale[..., None], rtol=1e-12, atol=1e-14)
    with pytest.warns(DeprecationWarning, match="lpmn is deprecated"):
        assert special.lpmn is lpmn
    wrong = [((1, 2, z), NotImplementedError), ((1, 1, [0.5]), TypeError)]
    wrong += [((1, 1, np.arange(3)), TypeError), ((1, 1, np.ones((2, 2))), ValueError)]
    for args, error in wrong:
        with pytest.raises(error, match="lpmn"):
            lpmn(*args)


def test_spherical_harmonics() -> None:
    n, m = np.array([0, 1, 1, 2, 3, 5, 5]), np.array([0, 1, -1, -2, 1, -3, 5])
    theta, phi = RNG.uniform(0, 3, 7), RNG.uniform(0, 6, 7)
    with primal.enable_x64(True):
        want = reference.sph_harm_y(n, m, theta, phi)
        np.testing.assert_allclose(special.sph_harm_y(n, m, theta, phi), want, atol=1e-14)
        compiled = primal.jit(functools.partial(special.sph_harm_y, n_max=5))
        np.testing.assert_allclose(compiled(n, m, theta, phi), want, atol=1e-14)
    with pytest.raises(ValueError, match="n_max"):
        primal.jit(special.sph_harm_y)(n, m, theta, phi)


def test_multivariate_gamma_and_bernoulli() -> None:
    a = np.array([3.0, 4.5])
    np.testing.assert_allclose(special.multigammaln(a, 3), reference.multigammaln(a, 3), rtol=1e-5)
    np.testing.assert_allclose(special.bernoulli(12), reference.bernoulli(12), rtol=1e-6)
    with enable_x64(True):
        np.testing.assert_allclose(special.bernoulli(301), reference.bernoulli(301), rtol=5e-12)
        # From mpmath: SciPy loses three digits on the way.
        assert float(special.bernoulli(258)[258]) == 1.3352784187354634e306
        for n in range(3):
            np.testing.assert_array_equal(special.bernoulli(n), [1, -0.5, 1 / 6][: n + 1])
    np.testing.assert_allclose(special.polygamma(2, a), reference.polygamma(2, a), rtol=1e-5)


def test_refusals() -> None:
    with pytest.raises(TypeError, match="ndarray or scalar"):
        special.exp1([1.0])
    with pytest.raises(ValueError, match="real"):
        special.entr(1j)
    with pytest.raises(ValueError, match="integer type"):
        special.polygamma(1.5, 2.0)
    with pytest.raises(NotImplementedError, match="exact=False"):
        special.factorial(5, exact=True)
    with pytest.raises(TypeError, match="series_order"):
        special.log_ndtr(1.0, series_order=1.0)


HYP2F1 = [
    (1.5, 2.5, 3.2, 0.4),
    (1.5, 2.5, 3.2, -0.4),
    (1.5, 2.5, 3.2, -20.0),
    (1.5, 2.5, 3.2, 0.95),
    (-2.0, 2.5, 3.2, 0.4),
    (0.5, -3.0, 3.2, 0.7),
    (0.3, 0.2, 1.5, 0.99),
    (1.0, 1.0, 2.0, 0.5),
    (-2.0, 1.5, 0.7, -20.0),
    (0.3, 0.2, 3.2, 0.0),
]


@pytest.mark.parametrize("point", HYP2F1, ids=str)
def test_hyp2f1_by_all_arguments(point) -> None:
    with enable_x64(True):
        slopes = primal.grad(special.hyp2f1, argnums=(0, 1, 2, 3))(*point)
        again = primal.jit(primal.grad(special.hyp2f1, argnums=(0, 3)))(*point)
    for i, slope in enumerate(slopes):
        up, down = list(point), list(point)
        up[i], down[i] = point[i] + 1e-5, point[i] - 1e-5
        want = (reference.hyp2f1(*up) - reference.hyp2f1(*down)) / 2e-5
        np.testing.assert_allclose(slope, want, rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(again, [slopes[0], slopes[3]], rtol=1e-12)


def test_hyp2f1_by_all_arguments_twice() -> None:
    at = (0.6, 0.4, 1.7, 0.3)
    with enable_x64(True):
        twice = primal.jacobian(primal.grad(special.hyp2f1, argnums=(0, 2)), argnums=(1, 2))(*at)
        for i, row in zip((0, 2), twice, strict=True):
            for k, got in zip((1, 2), row, strict=True):
                up, down = list(at), list(at)
                up[k], down[k] = at[k] + 1e-5, at[k] - 1e-5
                slope = primal.grad(special.hyp2f1, i)
                np.testing.assert_allclose(got, (slope(*up) - slope(*down)) / 2e-5, rtol=1e-6)


def test_hyp2f1_by_its_parameters_at_one() -> None:
    with enable_x64(True):
        slopes = primal.grad(special.hyp2f1, argnums=(0, 1, 2))(0.3, 0.2, 3.2, 1.0)
    for i, slope in enumerate(slopes):
        up, down = [0.3, 0.2, 3.2], [0.3, 0.2, 3.2]
        up[i], down[i] = up[i] + 1e-5, down[i] - 1e-5
        want = (reference.hyp2f1(*up, 1.0) - reference.hyp2f1(*down, 1.0)) / 2e-5
        np.testing.assert_allclose(slope, want, rtol=1e-6)


def test_hyp1f1_by_a_where_it_is_a_polynomial() -> None:
    with enable_x64(True):
        slope = primal.grad(special.hyp1f1)(-2.0, 2.5, 0.4)
    want = (reference.hyp1f1(-2 + 1e-6, 2.5, 0.4) - reference.hyp1f1(-2 - 1e-6, 2.5, 0.4)) / 2e-6
    np.testing.assert_allclose(slope, want, rtol=1e-6)


@pytest.mark.parametrize("name", ["loggamma", "gamma", "erfcx"])
def test_of_complex_numbers(name) -> None:
    r = np.random.default_rng(1)
    z = (r.normal(size=300) + 1j * r.normal(size=300)) * np.repeat([1.0, 3.0, 8.0], 100)
    if name == "loggamma":
        z = np.append(z, np.linspace(-9.7, 9.3, 40) + 0j)
    want = getattr(reference, name)(z)
    keep = np.isfinite(want) & (np.abs(want) < 1e30)
    close = functools.partial(np.testing.assert_allclose, desired=want[keep])
    close(getattr(special, name)(z.astype(np.complex64))[keep], rtol=1e-4, atol=3e-6)
    with enable_x64(True):
        close(primal.jit(getattr(special, name))(z)[keep], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["loggamma", "gamma"])
def test_poles_of_complex_numbers(name) -> None:
    z = np.array([0, -1, -7, complex(-0.0, -0.0), 1], np.complex64)
    want = getattr(reference, name)(z)
    assert np.isnan(want.real[:-1]).all()
    for call in (getattr(special, name), primal.jit(getattr(special, name))):
        got = np.asarray(call(z))
        np.testing.assert_array_equal(np.isnan(got.real), np.isnan(want.real))
        np.testing.assert_array_equal(np.isnan(got.imag), np.isnan(want.imag))


REFUSED: dict[type[Exception], list[str]] = {
    TypeError: ["gammaln", "erf", "i0", "digamma", "gammainc", "betaln", "zeta", "hyp2f1"],
    ValueError: ["beta", "betainc", "gammasgn", "poch", "entr", "dawsn", "expi", "hyp1f1"],
    NotImplementedError: ["fresnel"],
}


@pytest.mark.parametrize(("name", "error"), [(n, e) for e, names in REFUSED.items() for n in names])
def test_functions_of_real_numbers_refuse_complex_ones(name: str, error: type[Exception]) -> None:
    function = getattr(special, name)
    arity = len(inspect.signature(function).parameters)
    with pytest.raises(error, match="expected real numbers, got complex64"):
        function(*[jnp.ones(2, jnp.complex64)] * arity)


@pytest.mark.parametrize("power", [0.0, 0.7, -2.0, 0.3 - 0.4j])
def test_boxcox_of_complex_numbers(power: complex) -> None:
    z = np.array([1 + 1j, 2 - 0.5j, 0.3j, -3 + 0.1j])
    for function, shifted in [(special.boxcox, z), (special.boxcox1p, 1 + z)]:
        want = np.log(shifted) if power == 0 else (shifted**power - 1) / power
        np.testing.assert_allclose(function(z, power), want, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("function", [special.boxcox, special.boxcox1p])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_boxcox_of_two_bytes(function: Any, dtype: str) -> None:
    """For powers of 0, subnormal in float16, small, and infinite in it, by values and slopes."""
    x, power = jnp.meshgrid(jnp.array([0.25, 0.5, 1.5, 3.0, 100.0], dtype),
                            jnp.array([0.0, 1e-7, -1e-5, 1e-3, 0.02, 2.45], dtype))  # fmt: skip
    eps = float(jnp.finfo(dtype).eps)
    slope = lambda x, power: primal.grad(lambda x: function(x, power).sum())(x)  # noqa: E731
    for f in (function, primal.jit(function), slope, primal.jit(slope)):
        want = f(x.astype("float32"), power.astype("float32"))
        np.testing.assert_allclose(f(x, power).astype("float32"), want, rtol=eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_boxcox_has_its_digits_where_it_is_large(dtype: Any) -> None:
    """In four units; exp(λ·log x) alone has half as many wrong ones as λ·log x is large."""
    drawn = np.random.default_rng(1)
    x = (10.0 ** drawn.uniform(-5, 5, 500)).astype(dtype)
    power = drawn.uniform(-6, 6, 500).astype(dtype)
    wide = np.longdouble
    whole = power.astype(wide) * np.log(x.astype(wide))
    want = np.expm1(whole) / power
    with enable_x64(dtype is np.float64):
        for function in (special.boxcox, primal.jit(special.boxcox)):
            error = np.abs((np.asarray(function(x, power)) - want) / want)
            assert error.max() < 4 * np.finfo(dtype).eps


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "boxcox", "boxcox1p", "spence"])
def test_values_at_the_edges(name: str) -> None:
    edges = np.array([0.0, -0.0, 0.5, 1.0, 2.5, np.inf, np.nan])
    grid = [g.ravel() for g in np.meshgrid(edges, edges)][: 1 if name == "spence" else 2]
    if name == "boxcox1p":
        grid[0] = grid[0] - 1
    with primal.enable_x64(True), np.errstate(all="ignore"):
        want = getattr(reference, name)(*grid)
        for fun in (getattr(special, name), primal.jit(getattr(special, name))):
            np.testing.assert_allclose(fun(*grid), want, rtol=1e-12, atol=1e-15)


DOUBLES = {
    "exp1": 1, "expi": 1, "expn": 2, "sici": 1, "fresnel": 1, "spence": 1, "hyp1f1": 3, "poch": 2,
    "betaln": 2, "beta": 2, "ndtr": 1, "log_ndtr": 1, "ndtri": 1, "rel_entr": 2,
    "erfcx": 1, "dawsn": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", DOUBLES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_eager_calls_are_computed_in_doubles(name: str, dtype: str) -> None:
    """Within half a unit; where SciPy's function is not asked, the operations' numbers."""
    if dtype == "float16" and name in ("spence", "ndtr", "log_ndtr", "ndtri"):
        pytest.skip("of float32 and float64 alone")
    function, numpys = getattr(special, name), getattr(reference, name)
    rng = np.random.default_rng(7)
    upper = 0.95 if name in ("ndtri", "hyp1f1") else 6
    given = [rng.uniform(0.05, upper, 200).astype(dtype) for _ in range(DOUBLES[name])]
    if name == "expn":
        given[0] = np.ceil(given[0])
    wanted = numpys(*[x.astype("f8") for x in given])
    calls = [pieces(function(*map(jnp.asarray, given))) for _ in range(3)]
    for want, *found in zip(pieces(wanted), *calls, strict=True):
        assert len({x.tobytes() for x in found}) == 1 and found[0].dtype == dtype
        limits = np.finfo(dtype)
        normal = (np.abs(want) > 10 * limits.tiny) & (np.abs(want) < limits.max)
        unit = np.spacing(np.abs(want[normal]).astype(dtype)).astype("f8")
        off = np.abs(found[0][normal].astype("f8") - want[normal]) / unit
        assert off.max() < 0.51
    ends = np.array([0.0, -0.0, -1.5, np.inf, -np.inf, np.nan, 0.5], dtype)
    for value in ends:
        at = [jnp.full(3, value, dtype), *[jnp.full(3, 0.5, dtype)] * (len(given) - 1)]
        if value == 0.5 and name != "expn":
            continue
        for a, b in zip(*map(pieces, (function(*at), function.__wrapped__(*at))), strict=True):
            np.testing.assert_allclose(a, b, rtol=8 * np.finfo(dtype).eps)
            assert np.array_equal(np.signbit(a), np.signbit(b)) or np.isnan(a).all()


def pieces(x: object) -> list[np.ndarray]:
    return [np.asarray(v) for v in (x if isinstance(x, tuple) else (x,))]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("jitted", [False, True])
def test_relative_entropy_keeps_its_digits(dtype: str, jitted: bool) -> None:
    with enable_x64(dtype == "float64"):
        great = float(jnp.finfo(dtype).max)
        p = np.asarray([great, great / 2, 3.0, 3.0, 1e-30, 1e30, 5.0], dtype)
        q = np.asarray([great, great, 3.0001, 2.9999, 1e30, 1e-3, 5.0], dtype)
        f = primal.jit(special.rel_entr) if jitted else special.rel_entr
        want = reference.rel_entr(p.astype(np.float64), q.astype(np.float64))
        tol = 4 * float(jnp.finfo(dtype).eps)
        np.testing.assert_allclose(f(p, q), want, rtol=tol)
        slopes = primal.vmap(primal.grad(special.rel_entr, (0, 1)))(p[2:4], q[2:4])
        wide = p[2:4].astype(np.float64), q[2:4].astype(np.float64)
        np.testing.assert_allclose(slopes[0], np.log(wide[0] / wide[1]) + 1, rtol=tol)
        np.testing.assert_allclose(slopes[1], -wide[0] / wide[1], rtol=tol)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_betaln_in_16_bits_is_rounded_once(dtype: str) -> None:
    a, b = (jnp.asarray(v, dtype) for v in np.meshgrid([0.5, 1, 2, 3, 100], [0.5, 1, 2, 3, 100]))
    wide = reference.betaln(np.asarray(a, np.float64), np.asarray(b, np.float64))
    for f in (special.betaln, primal.jit(special.betaln)):
        np.testing.assert_allclose(
            np.asarray(f(a, b), np.float64), wide, rtol=float(jnp.finfo(dtype).eps) / 2, atol=1e-6
        )


@pytest.mark.parametrize("dtype, ends", [("f4", [88.5, 91.0]), ("f8", [709.5, 712.0])])
def test_bessel_functions_where_the_exponential_alone_is_infinite(dtype, ends, x64):
    x = np.linspace(*ends, 7).astype(dtype)
    for name in ("i0", "i1"):
        function, far = getattr(special, name), np.exp(x.astype("f8") / 2)
        for f in (function, primal.jit(function)):
            want = getattr(reference, name + "e")(x.astype("f8")) * far * far
            np.testing.assert_allclose(f(x), want, rtol=30 * np.finfo(dtype).eps)
            np.testing.assert_array_equal(f(-x), f(x) * (1 if name == "i0" else -1))
    slopes = primal.vmap(primal.grad(primal.grad(special.i0)))(x)
    want = reference.i0e(x) - reference.i1e(x) / x
    np.testing.assert_allclose(slopes / far / far, want, rtol=300 * np.finfo(dtype).eps)

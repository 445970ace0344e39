"""Special functions: values against SciPy, engines against each other, derivatives, batching."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.integrate
import scipy.special
import scipy.stats

from primal.api import grad, jit
from primal.base.config import cpu_engine
from primal.ops import special as ops
from primal.ops.special import error
from primal.runtime.eager import as_array
from tests.ops.laws import agree, check_batching, check_derivatives, compiled, eager

BF16 = ml_dtypes.bfloat16
NAN, INF = np.nan, np.inf
# Relative to the value, both for SciPy and between engines: XLA's lgamma, digamma and zeta lose
# digits near their zeros.
TOLERANCE = {np.float64: 1e-9, np.float32: 2e-4, np.float16: 4e-3, BF16: 3e-2}
UNARY = {
    "erf": scipy.special.erf, "erfc": scipy.special.erfc, "erf_inv": scipy.special.erfinv,
    "lgamma": scipy.special.gammaln, "digamma": scipy.special.psi,
    "bessel_i0e": scipy.special.i0e, "bessel_i1e": scipy.special.i1e,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _floating_point_silence() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def near(got: Any, want: Any, tol: float, what: str) -> None:
    """Relatively close, or both below what float32 holds without subnormals."""
    assert got.shape == want.shape, what
    g, w = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_allclose(g, w, rtol=tol, atol=1e-37, err_msg=what)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("name", list(UNARY))
def test_values(name: str, dtype: Any, x64: None) -> None:
    rng = np.random.default_rng(0)
    some = [rng.uniform(-1, 1, 60), rng.standard_normal(60) * 3, np.exp(rng.uniform(-8, 3, 40))]
    special = [NAN, INF, 0.0, 1, -1, 0.5, 2, 1e-30]
    x = np.concatenate([special, *some]).astype(dtype)
    if name in ("lgamma", "digamma"):
        # Away from the zeros, where the relative error of any method grows without bound.
        x = x[(np.abs(UNARY[name](x.astype(np.float64))) > 0.05) & (x != 0)]
    (got,) = eager(getattr(ops, name), x)
    assert got.dtype == np.dtype(dtype)
    near(got, UNARY[name](x.astype(np.float64)).astype(dtype), TOLERANCE[dtype], name)
    near(compiled(getattr(ops, name), x)[0], got, TOLERANCE[dtype], f"xla {name}")


def test_erf_of_float32_to_the_last_place() -> None:
    x = np.concatenate([np.linspace(-4.2, 4.2, 20001), np.logspace(-10, 1, 5000)])
    x = x.astype(np.float32)
    (got,) = eager(ops.erf, x)
    want = scipy.special.erf(x.astype(np.float64))
    assert np.max(np.abs(got - want) / np.spacing(np.abs(want).astype(np.float32))) <= 2


def test_erfc_of_float32_keeps_its_digits_down_to_the_least_number() -> None:
    x = np.concatenate([np.linspace(-5, 9.1, 20001), np.logspace(-10, 0.9, 3000)])
    x = x.astype(np.float32)
    (got,) = eager(ops.erfc, x)
    want = scipy.special.erfc(x.astype(np.float64))
    assert np.max(np.abs(got - want) / np.spacing(want.astype(np.float32))) <= 6


def test_inverse_error_function_as_xla_computes_it() -> None:
    """Normal numbers are drawn through it: both engines must draw the same."""
    x = np.random.default_rng(0).uniform(-1, 1, 5000).astype(np.float32)
    (got,) = eager(ops.erf_inv, x)
    (two,) = compiled(ops.erf_inv, x)
    assert np.max(np.abs(got - two) / np.spacing(np.abs(two))) <= 3


POLES = {
    "erf_inv": ([1.0, -1.0, 1.5, -2.0], [INF, -INF, NAN, NAN]),
    "lgamma": ([0.0, -0.0, -1.0, -2.0, -INF], [INF] * 5),
    "digamma": ([0.0, -0.0, -1.0, -2.0, INF, -INF], [NAN, NAN, NAN, NAN, INF, NAN]),
    "erf": ([INF, -INF, 30.0], [1, -1, 1]),
    "erfc": ([INF, -INF, 40.0], [0, 2, 0]),
    "bessel_i0e": ([INF, -INF], [0, 0]),
    "bessel_i1e": ([INF, -INF], [0, 0]),
}


@pytest.mark.parametrize("name", list(POLES))
def test_poles_and_ends(name: str) -> None:
    x, want = [np.array(v, np.float32) for v in POLES[name]]
    np.testing.assert_array_equal(agree(getattr(ops, name), x)[0], want)


# To 17 digits by mpmath: next to zeros and poles, of subnormal numbers, of whole ones below 0.
NEAR = {
    "lgamma": {
        1 + 2**-52: -1.28167624269600084e-16, 1 - 2**-53: 6.40838121348000724e-17,
        2 + 2**-51: 1.87753961310862431e-16, 1.9375: -0.025147619402988871,
        1.0: 0.0, 2.0: 0.0, 5e-324: 744.44007192138121, -5e-324: 744.44007192138121,
        -1e-310: 713.80137882815421,
        -4503599627370497.0: INF, -1.7e308: INF,
    },
    "digamma": {
        -1 + 2**-53: -9007199254740991.6, -2 - 2**-51: 2251799813685248.9,
        -100.00000000000001: 70368744177668.6, -4503599627370497.0: NAN,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", NEAR)
def test_next_to_zeros_and_poles(name: str, x64: None) -> None:
    x, want = np.array([*NEAR[name].items()]).T.copy()
    f = getattr(ops, name)
    with cpu_engine("cpu"):
        program = np.asarray(jit(f)(as_array(x)))
    for got in (eager(f, x)[0], program):
        np.testing.assert_allclose(got, want, 1e-14)
        np.testing.assert_array_equal(np.signbit(got) & (got == got), np.signbit(want))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_odd_functions_keep_the_sign_of_zero(dtype: Any, x64: None) -> None:
    x = np.array([-0.0, 0.0], dtype)
    for got in agree(lambda x: [ops.erf(x), ops.erf_inv(x), ops.bessel_i1e(x)], x):
        np.testing.assert_array_equal(np.signbit(got), [True, False])


def pairs(dtype: Any) -> tuple[Any, Any]:
    """(a, x) around, below and above x = a, from 0.05 to 400."""
    rng = np.random.default_rng(0)
    a = np.exp(rng.uniform(-3, 6, 120))
    around = a[:60] * np.exp(rng.standard_normal(60) * 0.3)
    x = np.concatenate([around, np.exp(rng.uniform(-3, 6, 60))])
    return a.astype(dtype), x.astype(dtype)


INCOMPLETE = {"igamma": scipy.special.gammainc, "igammac": scipy.special.gammaincc}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, BF16])
@pytest.mark.parametrize("name", list(INCOMPLETE))
def test_incomplete_gamma(name: str, dtype: Any, x64: None) -> None:
    a, x = pairs(dtype)
    (got,) = eager(getattr(ops, name), a, x)
    want = INCOMPLETE[name](a.astype(np.float64), x.astype(np.float64)).astype(dtype)
    near(got, want, TOLERANCE[dtype], name)
    near(compiled(getattr(ops, name), a, x)[0], got, TOLERANCE[dtype], f"xla {name}")


def test_incomplete_gamma_at_large_shapes(x64: None) -> None:
    a = np.array([1e3, 1e4, 1e5, 1e5])
    x = a + np.array([10, -100, 300, 0])
    for name, fun in INCOMPLETE.items():
        near(compiled(getattr(ops, name), a, x)[0], fun(a, x), 1e-9, name)


EDGES = [
    (NAN, 1, NAN, NAN), (1, NAN, NAN, NAN), (-1, 1, NAN, NAN), (1, -1, NAN, NAN), (0, 0, NAN, NAN),
    (1, 0, 0, 1), (1, INF, 1, 0), (0, 1, 1, 0), (0, 0.5, 1, 0), (INF, 1, 0, 1),
    (INF, INF, NAN, NAN),
]  # fmt: skip


def test_edges_of_incomplete_gamma() -> None:
    a, x, lower, upper = np.array(EDGES, np.float32).T
    np.testing.assert_array_equal(agree(ops.igamma, a, x)[0], lower)
    np.testing.assert_array_equal(agree(ops.igammac, a, x)[0], upper)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_derivatives_by_the_shape(dtype: Any, x64: None) -> None:
    a, x = pairs(np.float64)
    (got,) = eager(ops.igamma_grad_a, a.astype(dtype), x.astype(dtype))
    step = 1e-5 * a
    # Differences of the smaller of P and Q, which keeps its digits.
    lower = scipy.special.gammainc(a + step, x) - scipy.special.gammainc(a - step, x)
    upper = scipy.special.gammaincc(a - step, x) - scipy.special.gammaincc(a + step, x)
    want = np.where(x < a, lower, upper) / (2 * step)
    np.testing.assert_allclose(got, want, rtol=1e-3 if dtype == np.float32 else 1e-5, atol=1e-8)
    (two,) = compiled(ops.igamma_grad_a, a.astype(dtype), x.astype(dtype))
    near(two, got, TOLERANCE[dtype], "xla")
    (variate,) = eager(ops.random_gamma_grad, a.astype(dtype), x.astype(dtype))
    density = scipy.stats.gamma.pdf(x, a)
    sound = density > 1e-30
    np.testing.assert_allclose(
        variate[sound], (-got / density)[sound], rtol=1e-4 if dtype == np.float32 else 1e-9
    )
    (two,) = compiled(ops.random_gamma_grad, a.astype(dtype), x.astype(dtype))
    near(two, variate, TOLERANCE[dtype], "xla variate")


def test_derivatives_by_large_shapes(x64: None) -> None:
    # Slopes of quantiles: the same of all shapes, where a series would need √a terms.
    for a in (2e6, 1e8, 1e11):
        z = np.array([-4.0, -0.3, 0.0, 1.1, 3.0])
        x = a + z * np.sqrt(a)
        level, step = scipy.special.gammainc(a, x), 1e-3 * a
        ends = [scipy.special.gammaincinv(a + s, level) for s in (step, -step)]
        (got,) = eager(ops.random_gamma_grad, np.full(5, a), x)
        np.testing.assert_allclose(got, (ends[0] - ends[1]) / (2 * step), atol=2e-9)
        (slope,) = eager(ops.igamma_grad_a, np.full(5, a), x)
        normal = np.exp(-z * z / 2) / np.sqrt(2 * np.pi * a)
        np.testing.assert_allclose(slope, -normal, rtol=30 / np.sqrt(a))
    # It meets the series, in derivatives too.
    for order in (1, 2, 3):
        f = functools.partial(ops.igamma_derivative, order=order, variate=True)
        a, x = np.array([1e6 * (1 - 1e-12), 1e6 * (1 + 1e-12)]), np.full(2, 1.002e6)
        (got,) = eager(f, a, x)
        np.testing.assert_allclose(got[0], got[1], rtol=1e-6)
    (got,) = eager(ops.random_gamma_grad, *[np.float64([1e6, 1.01e308])] * 2)
    np.testing.assert_allclose(got, 1 + 1 / (6 * np.float64([1e6, 1.01e308])), rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_polygamma_and_zeta(dtype: Any, x64: None) -> None:
    rng = np.random.default_rng(0)
    m = rng.integers(0, 8, 60)
    x = np.exp(rng.uniform(-2, 3, 60)).astype(dtype)
    (got,) = agree(ops.polygamma, m.astype(dtype), x, tol=1e-3 if dtype == np.float32 else 1e-9)
    near(got, scipy.special.polygamma(m, x.astype(np.float64)), TOLERANCE[dtype], "polygamma")
    s = (1.2 + 5 * rng.random(60)).astype(dtype)
    (got,) = agree(ops.zeta, s, x, tol=1e-3 if dtype == np.float32 else 1e-9)
    want = scipy.special.zeta(s.astype(np.float64), x.astype(np.float64))
    near(got, want, TOLERANCE[dtype], "zeta")


def test_edges_of_polygamma_and_zeta() -> None:
    cases = [(1, 0, INF), (1, -1, INF), (2, 0, NAN), (2, -1, NAN), (3, -1, INF), (0.5, 1, NAN),
             (-1, 1, NAN), (0, 0, NAN), (0, INF, INF), (2, INF, 0), (1, NAN, NAN)]  # fmt: skip
    m, x, want = np.array(cases, np.float32).T
    np.testing.assert_array_equal(agree(ops.polygamma, m, x)[0], want)
    cases = [(2, 0, INF), (2, -1, INF), (3, 0, NAN), (0.5, 1, NAN), (0, 1, NAN), (1, 2, INF),
             (2, INF, 0), (NAN, 1, NAN), (-1, 2, NAN)]  # fmt: skip
    s, q, want = np.array(cases, np.float32).T
    np.testing.assert_array_equal(agree(ops.zeta, s, q)[0], want)
    (got,) = agree(ops.zeta, np.array([2, 3], np.float32), np.array([-0.5, -0.5], np.float32))
    np.testing.assert_allclose(got, [8.934802, 0.41439819], rtol=1e-5)


def test_zeta_whose_first_term_hides_a_long_sum(x64: None) -> None:
    x = 1 + np.float64([2e-16, 1e-12, 1e-6, 0.01, 0.5])
    q = np.float64([2e-16, 1e-15, 1e-10, 1e-5, 0.3])
    for run in (eager, compiled):
        (got,) = run(ops.zeta, x, q)
        np.testing.assert_allclose(got, q**-x + scipy.special.zeta(x, q + 1), rtol=2e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, BF16])
@pytest.mark.parametrize("engine", ["cpu", "reference"])
def test_polygamma_of_even_order_at_negative_halves(engine: str, dtype: Any, x64: None) -> None:
    """There they are those at 1 - x: of terms of up to 1e22 all others cancel each other."""
    m, x = map(np.ravel, np.meshgrid([2, 8, 12, 18], [-0.5, -3.5, -14.5, -19.5]))
    want = scipy.special.polygamma(m, 1 - x)
    with cpu_engine(engine):
        got = np.asarray(jit(ops.polygamma)(m.astype(dtype), x.astype(dtype)), np.float64)
    eps = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(got, want.astype(dtype).astype(float), rtol=16 * eps)


def test_how_gamma_variates_move_far_out(x64: None) -> None:
    """There it is log x - ψ(a), however large x/a is."""
    a, x = np.meshgrid([2.0, 20.5, 161.0, 999.0], [1e18, 1e20, 1e100, 1e300])
    for run in (eager, compiled):
        (got,) = run(ops.random_gamma_grad, a, x)
        np.testing.assert_allclose(got, np.log(x) - scipy.special.psi(a), rtol=4e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, BF16])
def test_incomplete_beta(dtype: Any, x64: None) -> None:
    rng = np.random.default_rng(0)
    a, b = np.exp(rng.uniform(-3, 3, (2, 200))).astype(dtype)
    x = rng.uniform(0, 1, 200).astype(dtype)
    (got,) = eager(ops.regularized_incomplete_beta, a, b, x)
    want = scipy.special.betainc(*[v.astype(np.float64) for v in (a, b, x)]).astype(dtype)
    near(got, want, TOLERANCE[dtype], "betainc")
    near(compiled(ops.regularized_incomplete_beta, a, b, x)[0], got, TOLERANCE[dtype], "xla")


def test_edges_of_incomplete_beta() -> None:
    cases = [
        (1, 2, 0, 0), (1, 2, 1, 1), (1, 2, -0.5, NAN), (1, 2, 1.5, NAN), (NAN, 1, 0.5, NAN),
        (0, 0, 0.5, NAN), (0, 1, 0.25, 1), (0, 1, 0, 0), (1, 0, 0.25, 0), (1, 0, 1, 1),
        (INF, 1, 0.5, 0), (1, INF, 0.5, 1), (INF, INF, 0.5, NAN), (-1, 1, 0.5, NAN),
    ]  # fmt: skip
    a, b, x, want = np.array(cases, np.float32).T
    np.testing.assert_array_equal(agree(ops.regularized_incomplete_beta, a, b, x)[0], want)


INSIDE = np.random.default_rng(2).uniform(-0.8, 0.8, (2, 3))
POSITIVE = np.random.default_rng(3).uniform(0.4, 4, (2, 3))


def test_derivatives() -> None:
    for f, x in [(ops.erf, INSIDE * 3), (ops.erfc, INSIDE * 3), (ops.erf_inv, INSIDE),
                 (ops.lgamma, POSITIVE), (ops.digamma, POSITIVE), (ops.bessel_i0e, INSIDE * 9),
                 (ops.bessel_i1e, INSIDE * 9)]:  # fmt: skip
        check_derivatives(f, x, tol=1e-5)


def test_derivatives_of_two_operands() -> None:
    a = POSITIVE[::-1] + 0.5
    check_derivatives(ops.igamma, a, POSITIVE, tol=1e-5, order=1)
    check_derivatives(ops.igammac, a, POSITIVE, tol=1e-5, order=1)
    check_derivatives(lambda x: ops.polygamma(np.float64(2), x), POSITIVE, tol=1e-5)
    check_derivatives(lambda q: ops.zeta(np.float64(2.5), q), POSITIVE, tol=1e-5)
    beta = lambda x: ops.regularized_incomplete_beta(np.float64(1.5), np.float64(2.5), x)  # noqa: E731
    check_derivatives(beta, np.abs(INSIDE) + 0.1, tol=1e-5)


def test_derivative_at_zero_of_bessel() -> None:
    assert float(grad(ops.bessel_i1e)(as_array(np.float32(0)))) == 0.5


def test_derivatives_that_are_refused() -> None:
    x = as_array(np.float32(2))
    with pytest.raises(ValueError, match="polygamma gradient with respect to m"):
        grad(ops.polygamma)(x, x)


# From mpmath with 40 digits: (a, x, ∂²P/∂a², ∂³P/∂a³); (a, b, x, ∂I/∂a, ∂I/∂b, ∂²I/∂a∂b, ∂²I/∂a²);
# (s, q, ∂ζ/∂s, ∂²ζ/∂s²).
GAMMA = [
    (0.5, 0.1, 1.6586313062993034, -2.2629213871187894),
    (0.5, 3.0, -0.08598986897368568, -0.06251605647052302),
    (2.5, 2.0, 0.06707717180911078, 0.09333374672837003),
    (2.5, 9.0, -0.006217598371257099, -0.006158161590717486),
    (7.0, 5.0, 0.04310542910031174, 0.0033184479150309507),
    (30.0, 28.0, 0.004883618603839374, 0.0020170861132289093),
    (30.0, 45.0, -0.0014122483428958034, -0.00045784440155628936),
    (0.001, 0.5, -0.5848512398697082, 1.9078634572533417),
    (200.0, 190.0, 0.0011470748278582699, 5.294370652713802e-05),
    (200.0, 260.0, -3.486922537365641e-06, -8.487582419822455e-07),
]
BETA = [
    (*(0.5, 0.5, 0.1), *(-0.5926200221433794, 0.2768155243583513),
     *(-0.47342123086420335, 1.8537435126871828)),
    (*(1.5, 2.5, 0.3), *(-0.3075569951305262, 0.15116264414909963),
     *(-0.019342609201049174, 0.1687280807210776)),
    (*(1.5, 2.5, 0.9), *(-0.007110692129340406, 0.013370699475754897),
     *(0.01360916426640364, -0.004107788961197683)),
    (*(20.0, 3.0, 0.8), *(-0.02271397850889235, 0.1222944440085913),
     *(-0.012707936791504441, 0.002905523041761777)),
    (*(5.0, 60.0, 0.1), *(-0.1245697595619299, 0.011654428663571397),
     *(0.00408200822896515, -0.03081200862785689)),
]  # fmt: skip
ZETA = [
    (1.1, 0.3, -95.50731492058073, 2005.4464690748339),
    (2.0, 1.0, -0.9375482543158438, 1.989280234298901),
    (2.5, 7.0, -0.10190250680147186, 0.2768103711460185),
    (8.0, 0.5, 177.42918955805217, 123.00302495584833),
    (30.0, 2.0, -6.45548953880003e-10, 4.4746260164732365e-10),
    (4.0, 100.0, -1.6693388563966024e-06, 8.273310809981502e-06),
]


@pytest.mark.parametrize(
    "op, rows, params",
    [
        (ops.igamma_derivative, GAMMA, [{"order": n, "variate": False} for n in (2, 3)]),
        (
            ops.betainc_derivative,
            BETA,
            [{"orders": n} for n in ((1, 0), (0, 1), (1, 1), (2, 0))],
        ),
        (ops.zeta_derivative, ZETA, [{"order": n} for n in (1, 2)]),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_derivatives_to_the_last_digits(op: Any, rows: Any, params: Any, x64: None) -> None:
    table = np.array(rows).T
    count = len(table) - len(params)
    for p, want in zip(params, table[count:], strict=True):
        (got,) = eager(functools.partial(op, **p), *table[:count])
        np.testing.assert_allclose(got, want, rtol=2e-14, err_msg=str(p))


def test_third_derivatives_by_shapes(x64: None) -> None:
    a, x = np.float64(2.5), np.float64(2.0)
    third = grad(grad(grad(ops.igamma)))(as_array(a), as_array(x))
    np.testing.assert_allclose(float(third), GAMMA[2][3], rtol=1e-12)
    # A variate moves by -(∂P/∂a)/p.
    check_derivatives(ops.random_gamma_grad, POSITIVE[::-1].copy(), POSITIVE, tol=1e-5)


def test_batching() -> None:
    x = POSITIVE.astype(np.float32)
    check_batching(ops.erf, x)
    check_batching(ops.igamma, x, x[::-1].copy())
    check_batching(ops.zeta, np.float32(2.5), x)
    check_batching(ops.regularized_incomplete_beta, np.float32(1.5), x, np.float32(0.3))


@pytest.mark.parametrize("shape", [(0,), (2, 0), (), (1, 1)])
def test_shapes(shape: tuple[int, ...]) -> None:
    x = np.full(shape, 0.5, np.float32)
    for name in UNARY:
        assert agree(getattr(ops, name), x)[0].shape == shape
    for name in ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad", "polygamma"):
        f = getattr(ops, name)
        assert agree(f, np.ones(shape, np.float32), x)[0].shape == shape
    assert agree(ops.regularized_incomplete_beta, x, x, x)[0].shape == shape


def test_integers_are_refused() -> None:
    for name in [*UNARY, "igamma", "zeta"]:
        f = getattr(ops, name)
        with pytest.raises(TypeError, match=f"{name}.*floating"):
            f(*[np.arange(1, 3, dtype=np.int32)] * (1 if name in UNARY else 2))


def test_importing_loads_no_scipy(fresh_process: Any) -> None:
    code = "import sys, primal.ops.special; print([m for m in sys.modules if 'scipy' in m])"
    assert fresh_process(code).stdout.strip() == "[]"


@pytest.mark.parametrize("engine", ("cpu", "xla"))
def test_functions_of_floats_of_8_bits(engine: str) -> None:
    names = ("erf", "erfc", "bessel_i0e", "bessel_i1e", "lgamma", "digamma")
    for dtype in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2):
        x = np.array([-1.5, 0.25, 2.0], dtype)
        with cpu_engine(engine):
            outs = jit(lambda x: [getattr(ops, name)(x) for name in names])(x)
        for name, out in zip(names, outs, strict=True):
            assert out.dtype == dtype
            want = getattr(ops, name).impl(x.astype(np.float32))
            np.testing.assert_allclose(
                np.asarray(out).astype(np.float32), want, rtol=0.13, atol=0.02, err_msg=name
            )


@pytest.mark.parametrize("a", [6e4, 1e6, 6.4e11, 1e15])
@pytest.mark.parametrize("far", [-8.0, -5.0, 5.0, 20.0])
def test_tails_of_incomplete_gammas_of_large_shapes(a: float, far: float, x64: None) -> None:
    # √(a/2π)·e^(-1/(12a))·∫ exp(-a(u - log(1 + u)))/(1 + u) du, which no digits cancel in.
    x = a + far * np.sqrt(a)
    start = (x - a) / a
    s = np.linspace(0.0, 12.0, 200_001)
    u = start + np.sign(far) * s / np.sqrt(a)
    inner = np.exp(-a * (u - np.log1p(u) - (start - np.log1p(start)))) / (1 + u)
    level = np.exp(-a * (start - np.log1p(start)) - 1 / (12 * a))
    want = level * scipy.integrate.simpson(inner, x=s) / np.sqrt(2 * np.pi)
    op = ops.igamma if far < 0 else ops.igammac
    (got,) = eager(op, np.array([a]), np.array([x]))
    # For the greatest, u itself has few digits of its logarithm's distance.
    np.testing.assert_allclose(got, [want], rtol=1e-6 if a > 1e10 else 1e-8)


@pytest.mark.parametrize("name", ["erf", "erfc", "erf_inv"])
def test_error_functions_in_c(name: str) -> None:
    """The extension's loop and NumPy's passes give the same bits."""
    x = np.random.default_rng(0).normal(scale=2, size=5003).astype(np.float32)
    x = np.concatenate([x, np.array([0, -0.0, INF, -INF, NAN, 1, -3.92, 1e-40, 1e38], np.float32)])
    x = np.concatenate([x, np.nextafter(np.float32([1, -1]), np.float32(0)), np.tanh(x)])
    with np.errstate(all="ignore"):
        one, other = [getattr(error, f"_{name}_{by}")(x) for by in ("by_numpy", "block")]
    assert np.array_equal(one, other, equal_nan=True)
    assert np.array_equal(np.signbit(one)[~np.isnan(one)], np.signbit(other)[~np.isnan(one)])


# Those of Bessel are sums of float32's coefficients, in float64.
@pytest.mark.parametrize(
    ("name", "ulps"), [("lgamma", 0), ("digamma", 0), ("bessel_i0e", 1), ("bessel_i1e", 1)]
)
def test_functions_of_float32_are_those_of_float64_rounded_once(name: str, ulps: int) -> None:
    x = np.random.default_rng(0).normal(size=(11, 500))
    x = (x * 10.0 ** np.array([-40, -30, -5, -2, -1, 0, 1, 2, 5, 20, 38])[:, None]).astype("f4")
    ends = [0, -0.0, INF, -INF, NAN, 1, 2, -1, -3, 0.5, 1.5, 2.5, 7.5, 8, 1e-45, -1e-45, -2.457025]
    x[0, : len(ends)] = ends
    impl: Any = getattr(ops, name).impl
    got, want = impl(x), impl(x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_max_ulp(got, want, ulps)
    assert np.array_equal(np.signbit(got)[got == 0], np.signbit(want)[got == 0])
    for other in (x.T, x[::-1, ::3], x[:0], x[3, 3]):
        want = impl(other.astype("f4", order="C"))
        assert np.asarray(impl(other)).tobytes() == np.asarray(want).tobytes()


def test_log_gamma_of_float64_has_its_digits() -> None:
    """Also next to its zeros, where terms cancel, and where 1/x is infinite."""
    rng = np.random.default_rng(0)
    near = np.array([[1.0], [2.0]]) + rng.uniform(-0.3, 0.3, (2, 400)) ** 3
    x = np.concatenate([10 ** rng.uniform(-300, 0, 200), 3 + 10 ** rng.uniform(-1, 300, 400)])
    np.testing.assert_array_max_ulp(ops.lgamma.impl(x), scipy.special.gammaln(x), 8)
    want = scipy.special.loggamma(near.astype(complex)).real  # of real numbers it has not
    np.testing.assert_array_max_ulp(ops.lgamma.impl(near), want, 8)
    tiny = np.array([5e-324, -5e-324, 1e-310, -2e-308, 1e-300, 1e-20])
    np.testing.assert_array_max_ulp(ops.lgamma.impl(tiny), -np.log(np.abs(tiny)), 1)


def test_psi_of_float64_has_its_digits_on_the_left() -> None:
    """Also halfway between poles, where it is a difference; as ψ(x + 9) - Σ 1/(x + n)."""
    apart = np.random.default_rng(0).uniform(-0.02, 0.02, 400)
    x = np.concatenate([np.linspace(-7.97, -0.01, 999), np.tile(np.arange(-7.5, 0), 50) + apart])
    terms = 1 / (x.astype(np.longdouble) + np.arange(9)[:, None])
    want = (scipy.special.psi(x + 9) - terms.sum(0)).astype(np.float64)
    off = abs(ops.digamma.impl(x) - want)
    assert (off <= 9 * np.spacing(np.maximum(abs(want), 1))).all()


FOLDED = """
import itertools
import sys
import numpy as np
import primal.scipy.special
from primal.ir.evaluate import quietly
from primal.ir.op import ELEMENTWISE, registry

computed = set()
for op in list(registry.values()):
    if op.kind is ELEMENTWISE and op.folds and op.impl is not None:
        for operands, kind in itertools.product((1, 2, 3), (np.float32, np.float64)):
            try:
                quietly(op.impl, [kind(0.5)] * operands, {})
            except (TypeError, ValueError):
                continue  # another number of operands, integers alone, or parameters
            computed.add(op.name)
            assert "scipy.special" not in sys.modules, f"folding {op.name} imports it"
assert {"exp", "log1p", "pow"} < computed and not registry["lgamma"].folds
"""


def test_what_is_computed_of_known_numbers_loads_no_scipy(fresh_process) -> None:
    """Its import takes longer than most programs take to compile."""
    fresh_process(FOLDED)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_polynomials_in_vectors_have_the_bits_of_numpys(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for size, degree in [(0, 3), (1, 1), (63, 2), (64, 7), (200, 20)]:
        row, x = rng.normal(size=degree + 1).astype(dtype), rng.normal(size=size).astype(dtype)
        for given in (x, x[::-1]):
            made = error.horner(row, given)
            assert made.dtype == dtype
            assert made.tobytes() == error.by_numpy(row, given).tobytes()
    assert error.horner(row, x[3]) == error.horner(row, x)[3]

"""Incomplete gamma and beta functions, Hurwitz's zeta: errors of float32, edges, extremes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.special

from primal.engines.cpu.functions.gammas import LARGE
from primal.engines.cpu.steps import Library
from primal.ops import special
from tests.engines.cpu.lab import built, kernels_used, numpy_run

ENDS = [0.0, -0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5, -2.5, np.inf, -np.inf, np.nan, 1e-40, 3e38,
        1e-20, 20.0, 100.0, -100.5]  # fmt: skip
# Units of the last place.
BOUNDS = {"igamma": 1.5, "igammac": 1.5, "zeta": 1.0}


SLOPES = ("igamma_grad_a", "random_gamma_grad")


def run(name: str, *given: Any) -> Any:
    xs = [np.asarray(x, np.float32) for x in given]
    made = built(lambda *xs: [getattr(special, name)(*xs)], *xs)
    assert kernels_used(made) and not [s for s in made.plan.steps if isinstance(s, Library)]
    return made.execute(xs)[0]


def exact(name: str, *given: Any) -> Any:
    wide = [np.asarray(x, np.float32).astype(np.float64) for x in given]
    return numpy_run(lambda *xs: [getattr(special, name)(*xs)], *wide)[0]


def errors(got: Any, want: Any) -> Any:
    limits = np.finfo(np.float32)
    some = abs(want) < limits.max
    np.testing.assert_array_equal(np.isinf(got), ~some)
    got, want = got[some], want[some]
    return abs(got - want) / np.spacing(np.maximum(abs(want), limits.tiny).astype(np.float32))


@pytest.mark.parametrize("name", [*BOUNDS, *SLOPES])
def test_edges(name: str) -> None:
    a, x = np.array(list(itertools.product(ENDS, ENDS))).T
    got, want = run(name, a, x), exact(name, a, x)
    with np.errstate(all="ignore"):
        want = want.astype(np.float32)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
    # Of sizes like these the op's own loop gives up before slopes converge.
    some = (a < 1e30) & (x < 1e30) | (name not in SLOPES)
    np.testing.assert_allclose(got[some], want[some], rtol=4e-7, atol=1e-38)


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_functions(name: str) -> None:
    draw = np.random.default_rng(0)
    a = 10 ** draw.uniform(-4, 6, 20_000)
    near = abs(a * (1 + draw.normal(size=a.size) / np.sqrt(a)))
    apart = 10 ** draw.uniform(-8, 8, a.size)
    little = 10 ** draw.uniform(-30, -1, a.size)
    for shape, x in ((a, near), (a, apart), (little, apart)):
        shape, x = shape.astype(np.float32), x.astype(np.float32)
        # SciPy's series end too early in the tails of large shapes.
        some = (shape < 1e3) | (abs(x - shape) < 4 * np.sqrt(shape))
        shape, x = shape[some], x[some]
        assert errors(run(name, shape, x), exact(name, shape, x)).max() < BOUNDS[name]


def test_large_shapes_are_normal() -> None:
    normal = pytest.importorskip("scipy.special").ndtr
    draw = np.random.default_rng(0)
    a = (10 ** draw.uniform(np.log10(LARGE), 30, 3000)).astype(np.float32)
    x = (a * (1 + draw.uniform(-8, 8, a.size) / np.sqrt(a.astype(float)))).astype(np.float32)
    wide_a, wide_x = a.astype(float), x.astype(float)
    z = (wide_x - wide_a) / np.sqrt(wide_a)
    # Wilson's and Hilferty's cube root takes the skewness out.
    root = np.expm1(np.log1p((wide_x - wide_a) / wide_a) / 3) + 1 / (9 * wide_a)
    z = np.where(wide_a < 1e9, root * 3 * np.sqrt(wide_a), z)
    for name, sign in (("igamma", 1), ("igammac", -1)):
        got = run(name, a, x)
        np.testing.assert_allclose(got, normal(sign * z), rtol=1e-2, atol=1e-36)
        near = abs(z) < 4
        assert errors(got[near], exact(name, a[near], x[near])).max() < BOUNDS[name]


BETA = "regularized_incomplete_beta"


def test_edges_of_beta() -> None:
    ends = [*ENDS, 0.25, 0.999, 1e9, 3.5]
    xs = np.array(list(itertools.product(ends, repeat=3))).T
    got, want = run(BETA, *xs), exact(BETA, *xs)
    np.testing.assert_allclose(got, want, rtol=3e-7, atol=1e-38)


@pytest.mark.parametrize("a", [(-3, 2), (-30, 1), (3, 6), (6, 10), (8, 15)])
@pytest.mark.parametrize("b", [(-3, 2), (-9, -5), (2, 6), (6, 12), (6, 15)])
def test_incomplete_beta_function(a: tuple[int, int], b: tuple[int, int]) -> None:
    draw = np.random.default_rng(0)
    p, q = [(10 ** draw.uniform(*v, 1000)).astype(np.float32) for v in (a, b)]
    mean = p / (p.astype(float) + q)
    near = mean + 2 * draw.normal(size=p.size) * np.sqrt(mean * (1 - mean) / (p + q + 1))
    left = 1 - 10 ** draw.uniform(-7, -1, p.size)
    for x in (draw.uniform(size=p.size), near, 10 ** draw.uniform(-30, 0, p.size), left):
        x = np.clip(x, 1e-37, 1 - 2**-24).astype(np.float32)
        assert errors(run(BETA, p, q, x), exact(BETA, p, q, x)).max() < 1


def test_large_shapes_of_beta() -> None:
    """Beside Temme's expansion in 70 digits: SciPy loses six of float64's sixteen here."""
    a, b = [2.497961e18, 2.9870026e18, 5.8415184e16], [2.2432781e24, 1.7329904e28, 5.264169e20]
    got = run(BETA, a, b, [1.1135303e-06, 1.7236117e-10, 0.00011095522])
    want = np.array([2.3529380187e-26, 2.0341969862e-09, 4.6527289040e-16])
    assert errors(got, want).max() < 1


def test_zeta() -> None:
    draw = np.random.default_rng(0)
    x, q = 1 + 10 ** draw.uniform(-6, 2.5, 20_000), 10 ** draw.uniform(-6, 6, 20_000)
    x, q = x.astype(np.float32), q.astype(np.float32)
    assert errors(run("zeta", x, q), exact("zeta", x, q)).max() < BOUNDS["zeta"]
    # Of q < 0, in which terms of both signs cancel.
    x, q = draw.integers(2, 12, 2000), -(10 ** draw.uniform(-3, 3, 2000))
    x, q = x.astype(np.float32), q.astype(np.float32)
    np.testing.assert_allclose(run("zeta", x, q), exact("zeta", x, q), rtol=1e-6)


def test_zeta_of_float64() -> None:
    draw = np.random.default_rng(0)
    ends = np.array(list(itertools.product([*ENDS, 1e-300, 3e300], repeat=2))).T
    x, q = draw.uniform(1, 60, 20_000), draw.uniform(0, 60, 20_000)
    below = draw.integers(2, 12, 2000).astype(float), -(10 ** draw.uniform(-3, 3, 2000))
    near = 1 + 10 ** draw.uniform(-6, 0, 2000), 10 ** draw.uniform(-6, 6, 2000)
    # Of q < 0, in which terms of both signs cancel, as above.
    for given, within in ((ends, 3e-15), ((x, q), 3e-15), (near, 3e-15), (below, 1e-12)):
        made = built(lambda x, q: [special.zeta(x, q)], *given)
        assert not [s for s in made.plan.steps if isinstance(s, Library)]
        (want,) = numpy_run(lambda x, q: [special.zeta(x, q)], *given)
        np.testing.assert_allclose(made.execute(list(given))[0], want, rtol=within)


@pytest.mark.parametrize("dtype, within", [(np.float32, 1.2e-7), (np.float64, 1e-13)])
def test_slopes_of_zeta(dtype: Any, within: float) -> None:
    draw = np.random.default_rng(0)
    ends = np.array(list(itertools.product([*ENDS, 1e30], repeat=2))).T
    x, q = 1 + 10 ** draw.uniform(-6, 2, 2000), 10 ** draw.uniform(-2, 6, 2000)
    for given in (ends.astype(dtype), (x.astype(dtype), q.astype(dtype))):
        made = built(lambda x, q: [special.zeta_derivative(x, q, order=1)], *given)
        assert not [s for s in made.plan.steps if isinstance(s, Library)]
        (want,) = numpy_run(lambda x, q: [special.zeta_derivative(x, q, order=1)], *given)
        got = made.execute(list(given))[0]
        np.testing.assert_allclose(got, want, rtol=within, atol=np.finfo(dtype).tiny)


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_by_shape(name: str) -> None:
    draw = np.random.default_rng(0)
    a = 10 ** draw.uniform(-4, 4, 1000)
    near = abs(a * (1 + draw.normal(size=a.size) * 3 / np.sqrt(a)))
    apart, little = 10 ** draw.uniform(-8, 8, a.size), 10 ** draw.uniform(-10, 8, a.size)
    whole = draw.integers(1, 30, a.size)
    for shape, x in ((a, near), (a, apart), (little, apart), (whole, whole * near / a)):
        shape, x = shape.astype(np.float32), x.astype(np.float32)
        assert errors(run(name, shape, x), exact(name, shape, x)).max() < 1


# a, x, ∂P/∂a and how a variate moves: mpmath's of differences with 220 digits.
FINE = (
    (0.0625, 0.25, -1.044838842926662276, 5.662374428751345867),
    (0.5, 0.001953125, -0.3127507643825771036, 0.02454632991623174796),
    (0.75, 3.5, -0.04359104819620665402, 2.419517710794294612),
    (2.5, 2.25, -0.2711220795784292571, 1.013187664988175778),
    (2.5, 2.75, -0.2457416953897060104, 1.120536052947258229),
    (17.25, 17.375, -0.09612856584337276954, 1.013365730023353856),
    (19.5, 31.0, -0.0060908152653946305, 1.260300127829026622),
    (20.5, 12.0, -0.009585977938793229654, 0.7621342360758565446),
    (150.0, 163.5, -0.01758965064784181014, 1.044867845517139491),
    (374.5, 330.0, -0.001239731641002512244, 0.9385009372824363814),
    (2048.0, 2040.0, -0.008695785170522904697, 0.9981255518605342427),
    (2048.0, 2100.5, -0.004491721825324743031, 1.012791658656164878),
)


def fine(name: str, a: Any, x: Any) -> Any:
    made = built(lambda *xs: [getattr(special, name)(*xs)], a, x)
    assert not [s for s in made.plan.steps if isinstance(s, Library)]
    return made.execute([a, x])[0]


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_of_float64(name: str) -> None:
    a, x, *wants = np.array(FINE).T
    # Where exponents of D are large, these are rounded: 56 units were seen, and of the op's 53.
    np.testing.assert_allclose(fine(name, a, x), wants[SLOPES.index(name)], rtol=3e-14)
    draw = np.random.default_rng(0)
    a = 10 ** draw.uniform(-4, 5, 300)
    x = abs(a * (1 + draw.normal(size=a.size) * 2 / np.sqrt(a)))
    (want,) = numpy_run(lambda *xs: [getattr(special, name)(*xs)], a, x)
    # Both lose what the exponent, of some a·log(a), is rounded by.
    off = abs(fine(name, a, x) - want) / abs(want)
    assert np.all(off < 5e-14 * np.maximum(1, a / 100))


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_of_float64_at_the_ends(name: str) -> None:
    """The op's own formula, and log(x) - ψ(a) of variates so large that it has no digits."""
    ends = np.array([*ENDS, 5e-324, 1e-160, 99e4, 1.01e6, 1e8])
    a, x = np.array(list(itertools.product(ends[abs(ends) != 3e38], repeat=2))).T
    (want,) = numpy_run(lambda *xs: [getattr(special, name)(*xs)], a, x)
    np.testing.assert_allclose(fine(name, a, x), want, rtol=1e-10, atol=1e-300)
    far = np.array([1e100, 1e200, 1e300, 1.7e308])
    for shape in (0.5, 20.5, 1e5):
        got = fine(name, np.full(4, shape), far)
        moves = np.log(far) - scipy.special.psi(shape) if name == SLOPES[1] else np.zeros(4)
        np.testing.assert_allclose(got, moves, rtol=1e-13)


def test_slopes_of_large_shapes() -> None:
    """Where one moves by a thousandth, so does the other, but for how much narrower it becomes."""
    a = np.float32(10.0) ** np.arange(5, 12, dtype=np.float32)
    for ratio in (-0.009, 0.0, 0.001, 0.009):
        got = run("random_gamma_grad", a, a * np.float32(1 + ratio))
        away = (a * np.float32(1 + ratio)).astype(float) / a - 1
        slope = 1 + away - (away - np.log1p(away)) * (1 + away) / np.where(away, away, 1)
        np.testing.assert_allclose(got, slope + 1 / (6.0 * a), rtol=2e-7)


def test_polygamma() -> None:
    draw = np.random.default_rng(0)
    m = draw.integers(0, 12, 5000).astype(np.float32)
    x = draw.uniform(-20, 60, m.size).astype(np.float32)
    ends = np.array(list(itertools.product([0, 1, 2, 3, -1, 0.5, 4, np.nan], ENDS))).T
    m, x = (np.concatenate(v).astype(np.float32) for v in ((m, ends[0]), (x, ends[1])))
    got, want = run("polygamma", m, x), exact("polygamma", m, x)
    with np.errstate(all="ignore"):
        want = want.astype(np.float32)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(want))
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_polygamma_of_float64() -> None:
    """Beside 20 digits: ours keep them for m = 170, where SciPy's ζ loses three."""
    m = np.array([1, 2, 6, 150, 170, 0, 1, 171])
    x = np.array([0.3, 7.5, -2.5, 97.39873222902094, 61.29881268923269, 2.5, 1e-200, 1.0])
    want = [
        12.245364546107731301, -0.020305252536644664065, -0.13835810755003520228,
        -3.893643691180028346e-38, -17.169431252298133295, 0.70315664064524318723, np.inf, np.inf,
    ]  # fmt: skip
    given = m.astype(float), x
    made = built(lambda m, x: [special.polygamma(m, x)], *given)
    assert not [s for s in made.plan.steps if isinstance(s, Library)]
    np.testing.assert_allclose(made.execute(list(given))[0], want, rtol=2e-9)
    np.testing.assert_allclose(made.execute(list(given))[0][[0, 1, 3, 4, 5]],
                               np.array(want)[[0, 1, 3, 4, 5]], rtol=3e-15)  # fmt: skip


@pytest.mark.parametrize("name", BOUNDS)
def test_a_lane_does_not_depend_on_others(name: str) -> None:
    a = np.full(33, 1.5, np.float32)
    x = np.linspace(0.1, 9, 33).astype(np.float32)
    whole = run(name, a, x)
    a[7], x[7] = 5e5, 4.99e5
    a[20], x[20] = np.nan, 1e9
    others = [i for i in range(33) if i not in (7, 20)]
    np.testing.assert_array_equal(run(name, a, x)[others], whole[others])


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_floats(name: str, dtype: str) -> None:
    a, x = np.linspace(1.5, 9.7, 40).astype(dtype), np.linspace(9.7, 0.3, 40).astype(dtype)
    f = lambda a, x: [getattr(special, name)(a, x)]  # noqa: E731
    (got,), (want,) = built(f, a, x).execute([a, x]), numpy_run(f, a, x)
    assert got.dtype == want.dtype
    within = 8 if dtype == "float64" else 2
    np.testing.assert_allclose(got, want, rtol=within * float(np.finfo(dtype).eps))

"""Digits where rounded squares, quotients or phases would be amplified: in tails and next to zeros.

Values are mpmath's with 60 digits, at numbers that float32 holds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.scipy import special

VALUES: dict[str, list[tuple[float, float]]] = {
    "erfc": [
        (2.0999999046325684, 2.979467964359561228e-3),
        (5.699999809265137, 7.566228319610284792e-16),
        (8.899999618530273, 2.505374615942337914e-36),
        (16.1299991607666, 3.544702948641675172e-115),
        (24.280000686645508, 2.193846405026592946e-258),
    ],
    "erfcx": [
        (-5.736000061035156, 3.890947023758315309e14),
        (-9.119999885559082, 2.649793587279999054e36),
        (-16.1299991607666, 1.969745996330388618e113),
        (-24.280000686645508, 2.116569711486770911e256),
        (3.299999952316284, 1.64007299763093551e-1),
    ],
    "ndtr": [
        (-2.299999952316284, 1.072411137241429716e-2),
        (-9.460000038146973, 1.539715468437014324e-21),
        (-12.5, 3.732564298877713377e-36),
        (-24.280000686645508, 1.594507201786940637e-130),
        (-36.900001525878906, 2.310394295478252121e-298),
    ],
    "log_ndtr": [
        (2.200000047683716, -1.400100404397415191e-2),
        (9.460000038146973, -1.539715468437014324e-21),
        (12.300000190734863, -4.528696262321945538e-35),
        (24.280000686645508, -1.594507201786940637e-130),
    ],
    "logit": [
        (0.4999909996986389, -3.600120544822432808e-5),
        (0.5000157952308655, 6.318092348293134986e-5),
        (0.25999999046325684, -1.04596860474996046),
        (0.7400000095367432, 1.04596860474996046),
        (0.30000001192092896, -8.472978036208759007e-1),
        (0.6000000238418579, 4.054652074492399945e-1),
    ],
    "spence": [
        (1.0002086162567139, -2.086053775369002098e-4),
        (1.0000892877578735, -8.928576487669678814e-5),
        (1.2999999523162842, -2.800742920579057442e-1),
        (1.9900000095367432, -8.155258881061915705e-1),
        (0.9990000128746033, 1.000237230128824757e-3),
        (2.009999990463257, -8.293888639284151554e-1),
    ],
    "S": [
        (7315.45703125, 4.999657843005785924e-1),
        (2184.499267578125, 5.000114437624935858e-1),
        (-301.70001220703125, -5.001693610401777889e-1),
        (99999.0, 4.999999999999998987e-1),
    ],
    "C": [
        (7315.45703125, 4.999731192127282626e-1),
        (2184.499267578125, 5.001452629039106584e-1),
        (-301.70001220703125, -4.989586276597840875e-1),
        (99999.0, 5.000031831306931448e-1),
    ],
    "ndtr'": [
        (-2.299999952316284, 2.83270408482996709e-2),
        (-9.460000038146973, 1.472501957339999615e-20),
        (-12.5, 4.695195357975146e-35),
        (-24.280000686645508, 3.878008665220722445e-129),
        (-36.900001525878906, 8.531607370532282937e-297),
        (1.7000000476837158, 9.404906975305101128e-2),
    ],
    "log_ndtr'": [
        (2.200000047683716, 3.597476228315972067e-2),
        (9.460000038146973, 1.472501957339999615e-20),
        (12.300000190734863, 5.606643772884426362e-34),
        (24.280000686645508, 3.878008665220722445e-129),
        (-30.0, 3.003325966743367704e1),
    ],
    "ndtri'": [
        (1.0000000031710769e-30, 8.658027756090292874e28),
        (9.99999991097579e-38, 7.77493321287619905e35),
        (0.4000000059604645, 2.588376659023761872),
        (0.8999999761581421, 5.698058864074919353),
        (9.999999747378752e-05, 2.526222458382319499e3),
    ],
    "erfc'": [
        (-2.299999952316284, -5.689018490383500948e-3),
        (5.699999809265137, -8.754438307598182516e-15),
        (8.899999618530273, -4.487372237189576544e-35),
        (-16.1299991607666, -1.145710329349741953e-113),
        (24.280000686645508, -1.066233879254456321e-256),
    ],
    "erfcx'": [
        (-8.119999885559082, -1.401397359629801216e30),
        (0.30000001192092896, -6.876195537589450824e-1),
        (2.700000047683716, -6.525887753121521012e-2),
        (19.299999237060547, -1.508584846219620811e-3),
        (1234.5, -3.702051428743762317e-7),
        (30000000.0, -6.268773150530614963e-16),
    ],
    "i0e'": [
        (-0.029999999329447746, 9.561055763414209632e-1),
        (0.699999988079071, -3.746355495314173849e-1),
        (-5.300000190734863, 1.7811072181799478e-2),
        (88.19999694824219, -2.418464209791493095e-4),
        (9876.5, -2.032319381989772743e-7),
    ],
    "i1e'": [
        (-0.029999999329447746, 4.708282196358694536e-1),
        (0.699999988079071, 1.108212858363234374e-1),
        (-5.300000190734863, -1.240209446128575685e-2),
        (88.19999694824219, -2.377215250078517872e-4),
        (9876.5, -2.032010714319072516e-7),
    ],
    "i1'": [
        (-0.029999999329447746, 0.5001687605396072037),
        (0.699999988079071, 0.5950463324214055395),
        (-5.300000190734863, 29.59530070787300473),
        (11.989999771118164, 17269.81036215121009),
        (12.010000228881836, 17606.10800790784964),
        (88.19999694824219, 8.484827173122678738e36),
        (650.0, 3.056905844302063303e280),
    ],
    "exp1": [
        (0.20000000298023224, 1.222650531983854271),
        (0.9900000095367432, 2.230998222107515459e-1),
        (1.0099999904632568, 2.157416272335621497e-1),
        (1.9800000190734863, 5.027439022360791673e-2),
        (2.0199999809265137, 4.756723598597466231e-2),
        (31.0, 1.076767038616238262e-15),
    ],
    "expi": [
        (-1.9800000190734863, -5.027439022360791673e-2),
        (-1.0099999904632568, -2.157416272335621497e-1),
        (0.8999999761581421, 1.622811648539636364),
        (7.699999809265137, 3.420400853862486142e2),
        (30.299999237060547, 4.929482867613189088e11),
    ],
    "expm1'": [
        (-40.099998474121094, 3.844075760849765646e-18),
        (-17.299999237060547, 3.066943634454963873e-8),
        (-3.299999952316284, 3.688316915996652029e-2),
        (0.20000000298023224, 1.221402761800233716),
    ],
    "squareplus": [
        (-3.000000106909804e37, 3.333333214544666704e-38),
        (-10000.0, 9.999999900000002e-5),
        (-0.699999988079071, 7.094810090122770593e-1),
        (2.0999999046325684, 2.499999917786697234),
        (1.9999999961012896e19, 1.999999996101289574e19),
        (3.0000000054977558e38, 3.000000005497755758e38),
    ],
    "squareplus'": [
        (-1.999999968613499e18, 2.5000000784662545e-37),
        (-1700000.0, 3.4602076124531555e-13),
        (-0.699999988079071, 0.3348247901418865),
        (-0.0010000000474974513, 0.49975000001937564),
        (0.30000001192092896, 0.5741702293475281),
        (4.199999809265137, 0.9514302556225323),
        (9.999999980506448e18, 1.0),
    ],
    "sinc'": [
        (9.999999682655225e-21, -3.289868029294206734e-20),
        (0.0003000000142492354, -9.869603993188496648e-4),
        (0.20000000298023224, -6.323614557388318317e-1),
        (0.33000001311302185, -9.733611820845727393e-1),
        (-0.8999999761581421, 1.178165504573004555),
    ],
}
FUNCTIONS = {
    "S": lambda x: special.fresnel(x)[0], "C": lambda x: special.fresnel(x)[1],
    "expm1'": jnp.expm1, "sinc'": jnp.sinc, "squareplus": primal.nn.squareplus,
    "squareplus'": primal.nn.squareplus,
}  # fmt: skip
UNITS = 6
MORE = {"i1e'": 12}  # a difference of terms up to three times as large


def function(name: str) -> Any:
    fun = FUNCTIONS.get(name) or getattr(special, name.rstrip("'"))
    return primal.vmap(primal.grad(fun)) if name.endswith("'") else fun


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", VALUES)
def test_units_of_the_last_place(name: str, dtype: str, jitted: bool) -> None:
    x, want = np.array(VALUES[name]).T
    with primal.enable_x64(True):
        fun = function(name)
        got = (primal.jit(fun) if jitted else fun)(jnp.asarray(x, dtype))
    info = np.finfo(dtype)
    inside = (np.abs(want) < float(info.max)) & (np.abs(want) > float(info.tiny))
    got, want = np.asarray(got, np.float64)[inside], want[inside]
    unit = np.spacing(np.abs(want).astype(dtype)).astype(np.float64)
    assert got.size
    np.testing.assert_array_less(np.abs(got - want) / unit, MORE.get(name, UNITS))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_slope_of_i1_is_infinite_where_it_overflows(dtype: str) -> None:
    with primal.enable_x64(True):
        x = jnp.asarray([jnp.inf, -jnp.inf, 1e3, -1e3, 1e30, jnp.nan, 0.0, -0.0], dtype)
        got = primal.vmap(primal.grad(special.i1))(x)
    np.testing.assert_array_equal(got, [jnp.inf] * 5 + [jnp.nan, 0.5, 0.5])


# One of the two, far from x = a on its small side, where the exponent is a number of hundreds.
TAILS = [
    ("gammainc", 2697.5, 1320.75, 3.070779782196670303e-241),
    ("gammainc", 1711.25, 654.25, 4.745523756176935386e-258),
    ("gammainc", 576.25, 150.375, 1.264981186510615352e-153),
    ("gammainc", 4114.0, 2610.0, 2.426364348110630925e-162),
    ("gammainc", 30.5, 4.0, 3.286717149343736985e-17),
    ("gammainc", 0.75, 1.90109156629516e-211, 9.906202866421373215e-159),
    ("gammainc", 12.5, 9.094947017729282e-13, 1.785946350035216688e-160),
    ("gammaincc", 296.375, 719.0, 5.448709015842690265e-72),
    ("gammaincc", 1.240520129162012e-265, 119.5, 1.301534280639587075e-319),
    ("gammaincc", 20.0, 720.0, 3.340362322540321356e-276),
    ("gammaincc", 9000.0, 12000.0, 4.629269632157594793e-181),
    ("gammaincc", 3.5, 700.0, 3.859963181237335221e-298),
]


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
def test_tails_of_the_incomplete_gamma_functions(jitted: bool) -> None:
    with primal.enable_x64(True):
        for name, a, x, want in TAILS:
            fun = getattr(special, name)
            got = float((primal.jit(fun) if jitted else fun)(jnp.array([a]), jnp.array([x]))[0])
            assert abs(got - want) <= 30 * np.spacing(want), (name, a, x, got)


# a, x, ∂P/∂a in tails.
SLOPES_BY_SHAPE = [
    (2697.5, 1320.75, -2.19458077826680124e-241),
    (1711.25, 654.25, -4.56587053294127552e-258),
    (576.25, 150.375, -1.7012551500203017e-153),
    (4114.0, 2610.0, -1.10542102066624549e-162),
    (300.5, 520.25, -2.69612239674297803e-26),
    (1000.25, 1900.5, -6.44878474302386129e-115),
    (12.5, 400.0, -4.24104134086787748e-152),
    (3.25, 650.0, -2.34447480507328094e-276),
]


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
def test_slopes_of_the_incomplete_gamma_function_by_shapes_in_tails(jitted: bool) -> None:
    a, x, want = np.array(SLOPES_BY_SHAPE).T
    with primal.enable_x64(True):
        slope = primal.vmap(primal.grad(special.gammainc))
        got = np.asarray((primal.jit(slope) if jitted else slope)(a, x))
    assert np.all(np.abs(got - want) <= 40 * np.spacing(np.abs(want)))


# a, x, x^(a-1)·e^-x/Γ(a), of which the logarithm is rounded as a number of that size, and no other.
DENSITIES = [
    (4289.75, 4691.5, 1.128113539347295384e-10),
    (2823.5, 2884.25, 3.858641012837461906e-3),
    (2865.0, 3272.0, 2.161862811613955437e-14),
    (167.5, 339.5, 7.52302928132197801e-26),
    (16077.0, 14718.0, 1.228918953208593519e-29),
    (20.5, 7.25, 7.853451630731907371e-5),
    (3.5, 0.25, 7.323188157795373284e-3),
    (0.25, 0.5, 2.813482257631822813e-1),
    # Of shapes that are lost beside 1.
    (2.0**-20, 0.5, 1.156865296656803869e-6),
    (2.0**-40, 2.0**-10, 9.304135238530134232e-10),
    (2.0**-60, 2.0**-60, 9.999999999999999636e-1),
]


@pytest.mark.parametrize("engine", ["cpu", "xla", "reference"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_slopes_of_the_incomplete_gamma_functions(dtype: str, engine: str) -> None:
    a, x, want = np.array(DENSITIES).T
    with primal.enable_x64(True), primal.config.flag("cpu_engine")(engine):
        slopes = [
            primal.jit(primal.vmap(primal.grad(fun, 1)))(
                jnp.asarray(a, dtype), jnp.asarray(x, dtype)
            )
            for fun in (special.gammainc, special.gammaincc)
        ]
    bound = (8 + 8 * np.abs(np.log(want))) * np.finfo(dtype).eps * want
    for sign, got in zip((1, -1), slopes, strict=True):
        np.testing.assert_array_less(np.abs(sign * np.asarray(got, np.float64) - want), bound)


@pytest.mark.parametrize("engine", ["cpu", "xla", "reference"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_slopes_of_the_incomplete_gamma_function(dtype: str, engine: str) -> None:
    """They are those of float32, rounded once."""
    a, x = np.array([0.5, 3, 30, 100]), np.array([0.75, 2, 25, 90])
    slope = primal.jit(primal.vmap(primal.grad(special.gammainc, 1)))
    with primal.config.flag("cpu_engine")(engine):
        got, want = (slope(jnp.asarray(a, d), jnp.asarray(x, d)) for d in (dtype, "float32"))
    eps = float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(got.astype("float32"), want, rtol=eps)


# Where branches of the functions, or of their slopes, meet: x, and the second, third and fourth
# derivative there.
SEAMS: dict[str, list[tuple[float, list[float]]]] = {
    "ndtri": [(0.5, [0.0, 15.749609945722421, 0.0])],
    "log_ndtr": [(0.0, [-0.6366197723675814, 0.21801361414499012, 0.11477068205421882])],
    "spence": [(1.0, [0.5, -2 / 3, 1.5])],
    "logit": [(0.5, [0.0, 32.0, 0.0])],
    "ndtr": [(0.0, [0.0, -0.3989422804014327, 0.0])],
    "erfcx": [(0.0, [2.0, -4.513516668382051, 12.0])],
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("name", SEAMS)
def test_derivatives_where_branches_meet(name: str, jitted: bool) -> None:
    with primal.enable_x64(True):
        for x, wants in SEAMS[name]:
            slope = primal.grad(getattr(special, name))
            for want in wants:
                slope = primal.grad(slope)
                got = float((primal.jit(slope) if jitted else slope)(jnp.float64(x)))
                assert abs(got - want) <= 1e-12 * max(abs(want), 1), (name, x, want, got)


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kl_div_of_numbers_that_are_close(dtype: str, jitted: bool) -> None:
    """By the series of its definition, in longer floats; far ones are SciPy's."""
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    p = np.exp(rng.uniform(-3, 3, 400)).astype(dtype)
    q = (p * (1 + rng.choice([-1, 1], 400) * 10 ** rng.uniform(-6, -1.2, 400))).astype(dtype)
    wide, other = p.astype(np.longdouble), q.astype(np.longdouble)
    z = (other - wide) / (other + wide)
    want = z * (other - wide) - wide * sum(2 * z ** (2 * k + 3) / (2 * k + 3) for k in range(12))
    with primal.enable_x64(True):
        fun = primal.jit(special.kl_div) if jitted else special.kl_div
        got = np.asarray(fun(jnp.asarray(p), jnp.asarray(q)))
        slopes = primal.vmap(primal.grad(special.kl_div, (0, 1)))(p, q)
        extremes = fun(jnp.asarray([info.tiny, info.max / 1e4]), jnp.asarray([info.max / 2, 1]))
    np.testing.assert_array_less(abs(got - want), 4 * info.eps * want)
    by_p, by_q = map(np.asarray, slopes)
    ratio = np.log1p((wide - other) / other)
    np.testing.assert_array_less(abs(by_p - ratio), 4 * info.eps * abs(ratio) + info.tiny)
    np.testing.assert_allclose(by_q, (other - wide) / other, rtol=4 * info.eps)
    assert np.isfinite(extremes).all()

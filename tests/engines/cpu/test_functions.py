"""Mathematical functions: errors against wider arithmetic, and every special value."""

from __future__ import annotations

import math
import platform
from typing import Any

import numpy as np
import pytest
import scipy.special

from primal import lax
from primal.base.config import config
from primal.engines.cpu import _llvm
from primal.engines.cpu.functions import BOUNDS, FLOAT2, LIBRARY, exponentials
from primal.engines.cpu.run import objects
from primal.ops import elementwise as e
from primal.ops import special
from tests.engines.cpu.lab import built, kernels_used, numpy_run

NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh",
         "acosh": "arccosh", "atanh": "arctanh", "atan2": "arctan2", "pow": "power"}  # fmt: skip
OPS = {"erf": special.erf, "erfc": special.erfc, "erf_inv": special.erf_inv}


def in_float64(fun: Any) -> Any:
    """A function of the C library; SciPy's erfc is off by hundreds of units where it is small."""
    each = np.vectorize(fun, otypes=[np.float64])
    return lambda x: each(x.astype(np.float64)).astype(x.dtype)


EXACT = {
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "erf": in_float64(math.erf),
    "erfc": in_float64(math.erfc),
    # SciPy's gives 0 for -0.
    "erf_inv": lambda x: np.copysign(scipy.special.erfinv(x.astype(np.float64)), x).astype(x.dtype),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    **{name: getattr(np, NAMES.get(name, name)) for name in BOUNDS
       if name not in ("logistic", "erf", "erfc", "erf_inv", "rsqrt")},
}  # fmt: skip
WIDER = {"float32": np.float64, "float64": np.longdouble}
CASES = [(word, dtype) for word in BOUNDS for dtype in WIDER]


def op_of(word: str) -> Any:
    return OPS.get(word) or getattr(e, word)


def operands(word: str, dtype: str) -> list[Any]:
    x = arguments(dtype)
    if word not in FLOAT2:
        return [x]
    rng = np.random.default_rng(2)
    y = rng.permutation(x)
    if word == "pow":
        # Exponents of ordinary size among the others, and whole ones.
        y[::2] = (rng.standard_normal(len(y)) * 20)[::2]
        y[::4] = np.round(y[::4])
    return [x, y]


def arguments(dtype: str, n: int = 20_000) -> Any:
    """All exponents, ordinary numbers, the neighbourhoods of 0, 1 and multiples of π/2."""
    rng = np.random.default_rng(1)
    word = np.dtype(f"u{np.dtype(dtype).itemsize}")
    parts = [
        rng.integers(0, np.iinfo(word).max, n, dtype=word).view(dtype),
        rng.standard_normal(n) * 10.0 ** rng.integers(-10, 3, n),
        np.linspace(-110, 110, n),
        np.linspace(-750, -700, n),  # where exp of float64 is subnormal
        np.linspace(-1080, -1020, n),  # and exp2
        1 + rng.standard_normal(n) * 10.0 ** rng.uniform(-7, 0, n),
        1 - 10.0 ** rng.uniform(-7, 0, n),
        np.arange(n) * (np.pi / 2),
        rng.integers(0, 2**50, n) * (np.pi / 2),
    ]
    return np.concatenate([p.astype(dtype) for p in parts])


def worst_error(word: str, dtype: str, each: bool) -> tuple[float, list[Any]]:
    """In units of the last place, and where. `each`: numbers one by one, in a loop."""
    wide = WIDER[dtype]
    if dtype == "float64" and np.finfo(wide).nmant < 60:
        pytest.skip("no wider float to compare with on this machine")
    op = op_of(word)
    with np.errstate(all="ignore"):
        xs = [x[:: 4 if word.startswith("erf") else 1] for x in operands(word, dtype)]
        if each:
            # By the C library, signalling NaN to the power of 0 is NaN.
            xs = [np.where(np.isnan(x), np.nan, x).astype(dtype) for x in xs]
            made = built(lambda *xs: [lax.map(lambda x: op(*x), xs)], *xs)
        else:
            made = built(lambda *xs: [op(*xs)], *xs)
        assert kernels_used(made) == 1 and bool(made.plan.fused) == each
        (got,) = made.execute(xs)
        exact = EXACT[word](*[x.astype(wide) for x in xs])
        want = exact.astype(dtype)
        finite = np.isfinite(want)
        step = np.spacing(np.abs(want[finite])).astype(wide)
        # The largest float's neighbour is infinite, so that its step is none.
        step = np.where(np.isfinite(step), step, np.inf)
        error = np.abs(got[finite].astype(wide) - exact[finite]) / step
    np.testing.assert_array_equal(got[~finite], want[~finite])
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
    return error[worst], [x[finite][worst] for x in xs]


@pytest.mark.parametrize(("word", "dtype"), CASES)
def test_errors_stay_within_the_stated_bounds(word: str, dtype: str) -> None:
    error, where = worst_error(word, dtype, False)
    assert error <= BOUNDS[word][dtype == "float64"], f"{word}{where} is off by {error} ulps"


@pytest.mark.parametrize("dtype", WIDER)
@pytest.mark.parametrize("word", [*LIBRARY["f4"], "tanh", "cbrt", "sin"])
def test_errors_of_single_numbers_do(word: str, dtype: str) -> None:
    """Some functions of one number are the C library's, polynomials of others go by pairs."""
    error, where = worst_error(word, dtype, True)
    assert error <= BOUNDS[word][dtype == "float64"], f"{word}{where} is off by {error} ulps"


@pytest.mark.parametrize(("word", "dtype"), CASES)
def test_special_values(word: str, dtype: str) -> None:
    info = np.finfo(dtype)
    x = np.array(
        [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, -info.tiny,
         info.smallest_subnormal, -info.smallest_subnormal, 1, -1, -0.5, -1.5, 2, 3, -3], dtype,
    )  # fmt: skip
    xs = [x]
    if word in FLOAT2:
        xs = [np.repeat(x, len(x)), np.tile(x, len(x))]
    with np.errstate(all="ignore"):
        want = EXACT[word](*[x.astype(WIDER[dtype]) for x in xs]).astype(dtype)
        (got,) = built(lambda *xs: [op_of(word)(*xs)], *xs).execute(xs)
    np.testing.assert_allclose(got, want, rtol=1e-6 if dtype == "float32" else 1e-15, atol=0)
    zero = want == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))


@pytest.mark.parametrize(("dtype", "last"), [("float32", -87.5), ("float64", -708.5)])
def test_the_logistic_function_ends_as_the_exponential_does(dtype: str, last: float) -> None:
    """In subnormal numbers, where e^-x is infinite."""
    x = np.concatenate([np.linspace(1.2 * last, last, 999), [-np.inf, np.nan]]).astype(dtype)
    with np.errstate(all="ignore"):
        want = np.exp(x.astype(WIDER[dtype]))
        for found in (numpy_run(lambda x: [e.logistic(x)], x),
                      built(lambda x: [e.logistic(x)], x).execute([x])):  # fmt: skip
            error = np.abs(found[0] - want)[:-1]
            assert (error <= 3 * np.spacing(want.astype(dtype))[:-1]).all()
            assert np.isnan(found[0][-1])


@pytest.mark.parametrize("word", ["sin", "cos"])
def test_large_and_small_arguments_side_by_side(word: str) -> None:
    """One lane takes the long way, its neighbours do not notice."""
    x = np.linspace(-3, 3, 64)
    x[5], x[33], x[34] = 1e300, 1e22, np.inf
    with np.errstate(all="ignore"):
        want = getattr(np, word)(x)
        (got,) = built(lambda x: [getattr(e, word)(x)], x).execute([x])
    np.testing.assert_allclose(got, want, rtol=1e-15, atol=1e-16)


def test_many_calls_are_calls() -> None:
    """The code of a function is there once, however often a kernel uses it."""

    def f(x: Any) -> list[Any]:
        for _ in range(30):
            x = e.sin(x)
        return [x]

    made = built(f, np.ones(7, np.float32))
    assert made.as_text().count("define internal") == 3  # the sine, and its longer ways
    few = built(lambda x: [e.exp(x)], np.ones(7, np.float32))
    assert "define internal" not in few.as_text()
    np.testing.assert_allclose(
        made.execute([np.ones(7, np.float32)])[0], np.full(7, iterated(30)), rtol=1e-5
    )


def iterated(n: int) -> float:
    x = 1.0
    for _ in range(n):
        x = float(np.sin(x))
    return x


def test_a_planted_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A polynomial with a wrong digit does not pass."""
    bad = dict(exponentials._EXP, f4=(0.50001, *exponentials._EXP["f4"][1:]))
    monkeypatch.setattr(exponentials, "_EXP", bad)
    x = arguments("float32", 200)
    # Another structure than the tests above have compiled.
    with np.errstate(all="ignore"):
        (got,) = built(lambda x: [e.exp(e.max(x, x))], x).execute([x])
        want = np.exp(x.astype(np.float64)).astype(np.float32)
        ok = np.isfinite(want) & (want > 0)
        off = np.abs(got[ok] - want[ok]) / np.spacing(want[ok])
    assert off.max() > 10 * BOUNDS["exp"][0]


@pytest.mark.parametrize(
    ("cpu", "features"),
    [("haswell", "+sse2,+sse4.2,+avx,+avx2,+fma,+f16c"), ("nehalem", "+sse2,+sse4.2")],
)
@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86 only")
def test_lesser_cpus(cpu: str, features: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bounds and edges with narrower vectors, and without fused multiplication."""
    compiler = _llvm.Compiler(cpu, features)
    monkeypatch.setattr(_llvm, "compiler", lambda: compiler)
    monkeypatch.setattr(objects, "_known", {})
    before = config.enable_compilation_cache
    config.update("enable_compilation_cache", False)
    try:
        for word, dtype in CASES:
            test_errors_stay_within_the_stated_bounds(word, dtype)
            test_special_values(word, dtype)
    finally:
        config.update("enable_compilation_cache", before)


def test_large_angles_share_their_code() -> None:
    """Whatever is computed of them, and the loop that asks the C library."""
    x = np.array([1.0, 1e5, -1e9, 1e20, np.inf, np.nan] * 9, np.float32)
    made = built(lambda x: [e.sin(x), e.cos(x), e.tan(x), e.sin(e.cos(x))], x)
    functions = made.as_text().split("define internal ")[1:]
    shared = [text.split("@")[1].split("(")[0].split(".")[0] for text in functions]
    assert shared.count("turned") <= 1
    assert shared.count("library1") == 1
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        want = [np.sin(wide), np.cos(wide), np.tan(wide), np.sin(np.cos(wide))]
    for got, exact in zip(made.execute([x]), want, strict=True):
        np.testing.assert_allclose(got, exact, rtol=1e-6)

"""`accuracy=` of the functions that take it: in jaxprs, in StableHLO, under transformations."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.experimental import checkify
from tests.laws.compare import engines

NAMES = (
    "exp", "exp2", "expm1", "log", "log1p", "logistic", "sqrt", "rsqrt", "cbrt", "sin", "cos",
    "tan", "tanh",
)  # fmt: skip
HIGHEST, DEFAULT = lax.AccuracyMode.HIGHEST, lax.AccuracyMode.DEFAULT
SOME = lax.Tolerance(atol=1e-3, rtol=1e-5, ulps=2)
X = jnp.array([0.3, 0.7])


def asked(name: str, accuracy: Any) -> Any:
    return lambda x: getattr(lax, name)(x, accuracy=accuracy)


def attribute(fun: Any) -> str | None:
    found = re.search(r"\{(result_accuracy = .*)\} :", primal.jit(fun).lower(X).as_text())
    return found and found[1]


@pytest.mark.parametrize("name", NAMES)
def test_it_reaches_the_program(name: str) -> None:
    for accuracy in (HIGHEST, DEFAULT, SOME):
        jaxpr = primal.make_jaxpr(asked(name, accuracy))(X)
        assert f"{name}[accuracy={accuracy}] a" in str(jaxpr)
    assert f"{name} a" in str(primal.make_jaxpr(asked(name, None))(X))
    head = "result_accuracy = #stablehlo.result_accuracy<"
    mode = "mode = #stablehlo.result_accuracy_mode<{}>>"
    assert attribute(asked(name, HIGHEST)) == head + mode.format("HIGHEST")
    numbers = "atol = 1.000000e-03, rtol = 1.000000e-05, ulps = 2, "
    assert attribute(asked(name, SOME)) == head + numbers + mode.format("TOLERANCE")
    assert attribute(asked(name, DEFAULT)) is None
    assert attribute(asked(name, None)) is None


@pytest.mark.parametrize("engine", sorted(engines()))
def test_results_and_derivatives_are_those_without(engine: str) -> None:
    # CPUs have one implementation of each function, whatever is asked of it.
    before = primal.config.cpu_engine
    primal.config.update("cpu_engine", engine)
    try:
        for name in NAMES:
            plain = getattr(lax, name)
            for fun in (asked(name, SOME), asked(name, HIGHEST)):
                for one, other in ((fun, plain), (primal.grad(fun), primal.grad(plain))):
                    same(primal.vmap(one)(X), primal.vmap(other)(X))
                    same(primal.jit(primal.vmap(one))(X), primal.jit(primal.vmap(other))(X))
        # What no compiler for CPUs can give is no error: they give what they have.
        never = lax.Tolerance(atol=1e-300)
        same(primal.jit(asked("exp", never))(X), primal.jit(lax.exp)(X))
        anything = lax.Tolerance(atol=float("inf"))
        same(primal.jit(asked("exp", anything))(X), primal.jit(lax.exp)(X))
    finally:
        primal.config.update("cpu_engine", before)


def same(x: Any, y: Any) -> None:
    np.testing.assert_array_equal(x, y)


def test_the_derivative_reads_the_accurate_result() -> None:
    text = str(primal.make_jaxpr(primal.grad(asked("exp", HIGHEST)))(1.0))
    assert text.count("exp") == 1


def test_the_derivative_calls_functions_as_accurately() -> None:
    for name, other in (("sin", "cos"), ("cos", "sin")):
        twice = primal.grad(primal.grad(asked(name, HIGHEST)))
        text = str(primal.make_jaxpr(twice)(1.0))
        assert f"{other}[accuracy=AccuracyMode.HIGHEST]" in text
        assert text.count("accuracy") == text.count("sin") + text.count("cos")


def test_complex_numbers_and_narrow_floats() -> None:
    for dtype in (jnp.complex64, jnp.bfloat16):
        x = X.astype(dtype)
        same(asked("exp", HIGHEST)(x), lax.exp(x))
        assert asked("exp", HIGHEST)(x).dtype == dtype
    with pytest.raises(TypeError, match="exp"):
        asked("exp", HIGHEST)(jnp.arange(2))
    assert asked("exp", HIGHEST)(1.0).weak_type


def test_mistakes_are_reported_by_the_function_s_name() -> None:
    error, _ = checkify.checkify(asked("log", HIGHEST), errors=checkify.nan_checks)(-1.0)
    assert "nan" in str(error.get()) and "log" in str(error.get())
    with primal.debug_nans(True):
        for fun in (asked("log", HIGHEST), primal.jit(asked("log", HIGHEST))):
            with pytest.raises(FloatingPointError, match="log"):
                fun(-1.0)


def test_what_is_no_accuracy() -> None:
    for wrong in ("high", 1):
        with pytest.raises(NotImplementedError, match="accuracy"):
            lax.exp(X, accuracy=wrong)  # type: ignore[arg-type]
    for numbers in ({}, {"atol": -1.0}, {"rtol": -1e-3}, {"ulps": -2}, {"rtol": float("nan")}):
        with pytest.raises(ValueError, match="Tolerance"):
            lax.Tolerance(**numbers)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="ulps"):
        lax.Tolerance(ulps=1.5)  # type: ignore[arg-type]

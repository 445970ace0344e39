"""debug_nans and debug_infs name the operation, the user's line and the iteration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.config import cpu_engine
from primal.experimental import io_callback


@pytest.fixture(params=("reference", "cpu", "xla"), autouse=True)
def engine(request: Any) -> Iterator[None]:
    with cpu_engine(request.param):
        yield


def log(x: Any) -> Any:
    return jnp.log(x)  # the line


WRAPS = [lambda f: f, primal.jit, lambda f: primal.jit(primal.jit(f))]


@pytest.mark.parametrize("wrap", WRAPS)
def test_names_operation_and_line(wrap: Any) -> None:
    line = log.__code__.co_firstlineno + 1
    where = rf"\(nan\) encountered in log at test_watch.py:{line} \(log\)"
    with primal.debug_nans(True):
        with pytest.raises(FloatingPointError, match=where):
            wrap(lambda x: log(x) + 1)(-1.0)
        assert wrap(log)(1.0) == 0
        assert wrap(lambda x: 1 / jnp.asarray(x))(0.0) == np.inf
    with primal.debug_infs(True):
        with pytest.raises(FloatingPointError, match=r"\(inf\) encountered in log"):
            wrap(log)(0.0)
        assert np.isnan(wrap(log)(-1.0))
    assert np.isnan(wrap(log)(-1.0))


@pytest.mark.parametrize("wrap", WRAPS)
def test_names_the_iteration(wrap: Any) -> None:
    def scanned(x: Any) -> Any:
        return lax.scan(lambda c, v: (log(c - v) + 1 + v, c), x, jnp.array([0.0, 0.0, 4.0, 0.0]))

    def looped(x: Any) -> Any:
        return lax.while_loop(lambda c: c > -9, lambda c: jnp.where(c > 0, c - 1, log(c)), x)

    def both(x: Any) -> Any:
        return lax.scan(lambda c, v: (scanned(c - v)[0], None), x, jnp.array([0.0, 9.0]))

    def grows(x: Any) -> Any:
        return lax.fori_loop(0, 9, lambda i, c: c * 1e20, x)

    line = log.__code__.co_firstlineno + 1
    loop = scanned.__code__.co_firstlineno + 1
    with primal.debug_infs(True), pytest.raises(FloatingPointError) as caught:
        wrap(grows)(1.0)
    assert "(inf) encountered in mul" in str(caught.value)
    assert "in iteration 1 of scan" in str(caught.value)
    with primal.debug_nans(True):
        with pytest.raises(FloatingPointError, match=(
            rf"in log at test_watch.py:{line} \(log\), in iteration 2 of scan at "
            rf"test_watch.py:{loop} "
        )):  # fmt: skip
            wrap(scanned)(1.0)
        with pytest.raises(FloatingPointError, match=r"in log at .*, in iteration 1 of while at"):
            wrap(looped)(0.5)
        with pytest.raises(
            FloatingPointError, match="in log at .* iteration . of scan at .* iteration . of scan"
        ):
            wrap(both)(1.0)


def test_loops_that_users_call_themselves() -> None:
    with primal.debug_nans(True), pytest.raises(FloatingPointError, match="iteration 1 of scan"):
        lax.scan(lambda c, v: (c + jnp.log(v), c), 0.0, jnp.array([1.0, -1.0]))


def test_values_that_are_not_used_are_no_errors() -> None:
    with primal.debug_nans(True):
        assert primal.jit(lambda x: jnp.where(x < 0, 1.0, jnp.log(x)))(-1.0) == 1


def test_bad_arguments_and_derivatives() -> None:
    with primal.debug_nans(True):
        with pytest.raises(FloatingPointError, match="comes from the arguments"):
            primal.jit(lambda x: x)(np.float32(np.nan))
        with pytest.raises(FloatingPointError):
            primal.jit(primal.grad(lambda x: jnp.sqrt(x) * 0.0))(0.0)
        with pytest.raises(FloatingPointError):
            primal.vmap(log)(jnp.array([1.0, -1.0]))


def test_effects_happen_once() -> None:
    seen = []

    def f(x: Any) -> Any:
        io_callback(lambda v: seen.append(float(v)), None, x)
        return log(x)

    with primal.debug_nans(True):
        assert primal.jit(f)(1.0) == 0
        with pytest.raises(FloatingPointError, match="in log"):
            primal.jit(f)(-1.0)
    assert seen == [1, -1]


def test_donated_arguments_are_still_there_to_explain() -> None:
    with primal.debug_nans(True), pytest.raises(FloatingPointError, match="in log"):
        primal.jit(log, donate_argnums=0)(-jnp.ones(3))


def test_functions_of_the_library_count_as_one_operation() -> None:
    """Bad values inside are no errors where their results hold none."""
    x = jnp.array([1.0, 0.0, -1.0])
    far = jnp.array([np.inf, -np.inf, 0.0])
    bad = primal.device_put(np.array([np.nan, 1.0], np.float32))
    with primal.debug_nans(True):
        assert jnp.nanmax(bad) == jnp.nanmin(bad) == jnp.nanmedian(bad) == 1 and jnp.median(x) == 0
        assert jnp.logaddexp(far, far)[0] == np.inf and jnp.isclose(far, far).all()
        assert jnp.linspace(0, 1, 1).tolist() == [0]
        for chosen in (
            lambda v: jnp.where(v > 0, jnp.log(v), 0.0),
            lambda v: float(v.sum()) and v or jnp.where(v > 0, jnp.log(jnp.abs(v) + 1), 0.0),
        ):
            assert lax.cond(True, chosen, lambda v: v, x).shape == (3,)
            assert lax.switch(1, [lambda v: v, chosen], x).shape == (3,)
        with pytest.raises(FloatingPointError, match="in log"):
            lax.cond(True, jnp.log, lambda v: v, -x)
        with pytest.raises(FloatingPointError):
            jnp.logaddexp(bad, bad)
    assert np.isnan(jnp.max(bad))


def test_bad_values_that_are_read_written_or_made() -> None:
    x = jnp.array([1.0, 2.0])
    bad = primal.device_put(np.array([np.nan, 1.0], np.float32))
    with primal.debug_nans(True):
        for call in (
            lambda: x.at[0].set(np.nan), lambda: x.at[0].set(jnp.nan), lambda: x.at[0].add(np.nan),
            lambda: bad.at[1].set(2.0), lambda: bad[0], lambda: bad[:1], lambda: bad[np.array([0])],
            lambda: jnp.array([np.nan]), lambda: jnp.asarray(np.nan), lambda: jnp.float32(np.nan),
            lambda: jnp.asarray(np.array([np.nan], np.float32)),
        ):  # fmt: skip
            with pytest.raises(FloatingPointError, match="nan"):
                call()
        assert bad[1] == 1 and x.at[0].set(5.0)[0] == 5 and jnp.asarray(bad) is bad
        assert bad.at[0].set(2.0).tolist() == [2, 1]
    with primal.debug_infs(True), pytest.raises(FloatingPointError, match="inf"):
        x.at[0].set(np.inf)
    assert np.isnan(x.at[0].set(np.nan)[0])

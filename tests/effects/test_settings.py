"""Settings that find mistakes: transfer guards, logs of traces and compilations, scopes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.errors import JaxRuntimeError
from primal.runtime import guards

X = np.ones(3, np.float32)
IMPLICIT: list[tuple[str, Callable[[Any], Any]]] = [
    ("operator", lambda x: x + X),
    ("reflected", lambda x: X[0] * x),
    ("scalar", lambda x: x + 1),
    ("function", lambda x: jnp.add(x, X)),
    ("array", lambda x: jnp.array([1.0, 2.0])),
    ("asarray", lambda x: jnp.asarray(X)),
    ("jit", lambda x: primal.jit(lambda v: v)(X)),
    ("jit scalar", lambda x: primal.jit(lambda v: v)(2.0)),
    ("jit scalar, remembered", lambda x: added(x, 2.0)),
    ("in a list", lambda x: jnp.stack([x, X])),
    ("function of a scalar", lambda x: jnp.add(x, 1)),
    ("function of nothing else", lambda x: jnp.sin(1.0)),
    ("NumPy scalar", lambda x: jnp.sin(np.float32(1))),
    ("named", lambda x: jnp.clip(x, min=1, max=2)),
    ("method", lambda x: x.clip(0, 2)),
    ("remainder", lambda x: x % 2),
    ("power", lambda x: x**2.5),
    ("where", lambda x: jnp.where(x > x, x, 0.0)),
    ("lax", lambda x: lax.max(x, 0.0)),
    ("lax.full", lambda x: lax.full((2,), 1.0)),
    ("lax.dynamic_slice", lambda x: lax.dynamic_slice(x, (1,), (2,))),
    ("lax.scan", lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x)),
    ("array of a scalar", lambda x: jnp.array(1)),
    ("asarray of a scalar", lambda x: jnp.asarray(1.0)),
    ("type", lambda x: jnp.float32(1.0)),
    ("full", lambda x: jnp.full((2,), 3)),
    ("full_like", lambda x: jnp.full_like(x, 3)),
    ("linspace", lambda x: jnp.linspace(0, 1, 3)),
    ("index", lambda x: x[0]),
    ("index from the end", lambda x: x[-1]),
    ("slice", lambda x: x[1:2]),
    ("NumPy index", lambda x: x[np.array([0, 1])]),
    ("NumPy mask", lambda x: x[X > 0]),
    ("take", lambda x: jnp.take(x, 2)),
    ("at", lambda x: x.at[jnp.argmax(x)].set(1.0)),
    ("at index", lambda x: x.at[0].set(x.sum())),
    ("key", lambda x: primal.random.key(0)),
    ("PRNGKey", lambda x: primal.random.PRNGKey(0)),
    ("fold_in", lambda x: primal.random.fold_in(KEY, 7)),
    ("bounds", lambda x: primal.random.uniform(KEY, (2,), minval=-1, maxval=1)),
    ("grad", lambda x: primal.grad(lambda v: v * v)(2.0)),
    ("vmap", lambda x: primal.vmap(lambda v: v * v)(X)),
]
KEY = primal.random.key(1)
added = primal.jit(lambda x, y: x + y)
EXPLICIT = [("device_put", lambda x: primal.device_put(X))]
FREE: list[tuple[str, Callable[[Any], Any]]] = [
    ("arrays", lambda x: x + x),
    ("jit", lambda x: primal.jit(lambda v: v * 2 + 1)(x)),
    ("library constants", lambda x: (jnp.mean(x), jnp.var(x), primal.nn.softmax(x), jnp.sort(x))),
    ("read", lambda x: (np.asarray(x), float(x.sum()), repr(x), primal.device_get(x), list(x))),
    ("numbers that are no operands", lambda x: (
        x.sum(0), jnp.sum(x, axis=0, keepdims=True), x.round(1), jnp.roll(x, 1), x.reshape(1, 3),
        jnp.repeat(x, 2), jnp.tile(x, 2), jnp.arange(3), jnp.zeros(2), jnp.isclose(x, x),
        primal.nn.one_hot(x.astype(int), 3), jnp.expand_dims(x, 0), jnp.split(x, 3), x[::2], x[:],
    )),
    ("whole powers", lambda x: x**2),
    ("new keys", lambda x: primal.random.split(KEY, 2)),
    ("samples", lambda x: primal.random.normal(KEY, (3,))),
    ("device_put of an array", lambda x: primal.device_put(x)),
    ("traced", lambda x: primal.make_jaxpr(lambda v: jnp.add(v, 1)[0])(x)),
]
ids: Any = lambda row: row[0] if isinstance(row, tuple) else None  # noqa: E731


@pytest.mark.parametrize("row", [*IMPLICIT, *EXPLICIT, *FREE], ids=ids)
@pytest.mark.parametrize("guard", ["transfer_guard", "transfer_guard_host_to_device"])
def test_transfer_guards(row: Any, guard: str, caplog: pytest.LogCaptureFixture) -> None:
    _, run = row
    x = jnp.arange(3.0)
    with getattr(primal, guard)("allow"):
        run(x)
    for level, stops in (
        ("disallow", row in IMPLICIT),
        ("disallow_explicit", row in IMPLICIT or row in EXPLICIT),
    ):
        with getattr(primal, guard)(level):
            for _ in range(2):  # what was allowed once is not remembered past the guard
                if stops:
                    with pytest.raises(JaxRuntimeError, match="Disallowed host-to-device"):
                        run(x)
                else:
                    run(x)
    for level, logs in (
        ("log", row in IMPLICIT),
        ("log_explicit", row in IMPLICIT or row in EXPLICIT),
    ):
        caplog.clear()
        with getattr(primal, guard)(level):
            run(x)
        assert ("host-to-device transfer" in caplog.text) == logs
    for other in ("transfer_guard_device_to_host", "transfer_guard_device_to_device"):
        with getattr(primal, other)("disallow"):
            run(x)


def test_reading_in_one_thread_explains_nothing_in_another() -> None:
    class OnAnAccelerator:
        aval, device = "f32[3]", "gpu:0"

    def read() -> None:
        with primal.transfer_guard_device_to_host("disallow"):
            guards.device_to_host(OnAnAccelerator())

    with guards.reading():
        read()
        with ThreadPoolExecutor(1) as pool, pytest.raises(JaxRuntimeError, match="device-to-host"):
            pool.submit(read).result()
    with pytest.raises(JaxRuntimeError, match="device-to-host"):
        read()


def test_guards_of_the_process() -> None:
    x = jnp.arange(3.0)
    primal.config.update("jax_transfer_guard", "disallow")
    try:
        assert primal.config.jax_transfer_guard_device_to_host == "disallow"
        with pytest.raises(JaxRuntimeError):
            x + X
        with primal.transfer_guard("allow"):
            x + X
        with primal.transfer_guard_host_to_device("allow"):
            x + X
    finally:
        primal.config.update("jax_transfer_guard", None)
    x + X
    with pytest.raises(ValueError, match="'disallow_explicit'"):
        primal.transfer_guard("never")


def misses(caplog: pytest.LogCaptureFixture, *calls: Callable[[], Any]) -> str:
    calls[0]()
    caplog.clear()
    with primal.explain_cache_misses(True):
        for call in calls[1:]:
            call()
    return caplog.text


def test_cache_misses_are_explained(caplog: pytest.LogCaptureFixture) -> None:
    @primal.jit
    def f(x: Any, y: Any = 1.0) -> Any:
        return x

    one = jnp.ones(3)
    assert "different type at x: now i32[] and before f32[]" in misses(
        caplog, lambda: f(1.0), lambda: f(1)
    )
    assert "at y: now f32[2] and before f32[3]" in misses(
        caplog, lambda: f(one, one), lambda: f(one, jnp.ones(2))
    )
    assert "weak_type=False, and before weak_type=True" in misses(
        caplog, lambda: f(1.0), lambda: f(jnp.float32(1))
    )
    text = misses(caplog, lambda: f({"a": one}), lambda: f({"b": one}))
    assert "{'b': *}" in text and "{'a': *}" in text
    assert misses(caplog, lambda: f(one), lambda: f(one)) == ""
    assert "default_matmul_precision is now 'float32' and was None" in misses(
        caplog, lambda: f(one), lambda: primal.default_matmul_precision("float32")(f)(one)
    )


def test_static_and_new_functions(caplog: pytest.LogCaptureFixture) -> None:
    g = primal.jit(lambda x, n, flag=True: x * n, static_argnums=1, static_argnames="flag")
    assert "static argument 1: now 3 and before 2" in misses(
        caplog, lambda: g(1.0, 2), lambda: g(1.0, 3)
    )
    assert "static argument 'flag': now False and before True" in misses(
        caplog, lambda: g(1.0, 2, flag=True), lambda: g(1.0, 2, flag=False)
    )
    assert "never seen function" in misses(
        caplog, lambda: None, lambda: primal.jit(lambda x: x + 3)(1.0)
    )

    def made_anew() -> None:
        primal.jit(lambda x: x + 4)(1.0)

    def h(x: Any) -> Any:
        return x

    again = "a function defined there was traced before"
    assert again not in misses(caplog, lambda: None, made_anew)
    assert again in misses(caplog, lambda: None, made_anew)
    assert again not in misses(caplog, lambda: None, lambda: primal.jit(h)(1.0))
    assert again in misses(caplog, lambda: None, lambda: primal.jit(h, donate_argnums=0)(1.0))


def test_log_compiles(caplog: pytest.LogCaptureFixture) -> None:
    def a_name(x: Any) -> Any:
        return jnp.cos(x) * 17.25

    with primal.log_compiles(True):
        primal.jit(a_name)(1.0)
        first = caplog.text
        caplog.clear()
        primal.jit(a_name)(2.0)
    assert "Finished tracing a_name for jit in" in first
    assert "Compiling jit(a_name) with global shapes and types" in first
    assert "compilation of jit(a_name) in" in first
    assert caplog.text == ""


def test_disable_jit_runs_python() -> None:
    seen = []

    @primal.jit
    def f(x: Any) -> Any:
        seen.append(x)
        return x * 2 if x > 0 else x

    with primal.disable_jit():
        assert f(2.0) == 4
        f(2.0)
    assert seen == [2.0, 2.0]


def test_no_tracing_and_no_execution() -> None:
    f = primal.jit(lambda x: x + 1)
    f(1.0)
    with primal.no_tracing(True):
        assert f(2.0) == 3
        with pytest.raises(RuntimeError, match="'no_tracing' is set"):
            f(1)
    with primal.no_execution(True):
        for _ in range(2):
            with pytest.raises(RuntimeError, match="no_execution"):
                f(1.0)
    assert f(1.0) == 2


def test_raw_keys_may_be_forbidden() -> None:
    raw, key = primal.random.PRNGKey(0), primal.random.key(0)
    with primal.legacy_prng_key("error"):
        with pytest.raises(ValueError, match="Legacy uint32 key"):
            primal.random.uniform(raw)
        primal.random.uniform(key)
    with primal.legacy_prng_key("warn"), pytest.warns(UserWarning, match="Legacy uint32 key"):
        primal.random.uniform(raw)
    with pytest.raises(ValueError, match="'allow', 'warn', 'error'"):
        primal.legacy_prng_key("never")


def test_values_known_while_tracing() -> None:
    @primal.jit
    def f(x: Any) -> Any:
        with primal.ensure_compile_time_eval():
            n = jnp.arange(4).sum()
            inner = primal.jit(lambda: jnp.float32(1) + 1)()
            assert int(n) == 6 and float(inner) == 2
            y = jnp.sin(x) * inner
        return y + n

    np.testing.assert_allclose(f(1.0), 2 * np.sin(1) + 6, rtol=1e-6)
    with primal.ensure_compile_time_eval():
        assert float(jnp.sin(0.0)) == 0


def test_unknown_names_and_values() -> None:
    for use in (
        lambda: primal.config.update("jax_nonsense", 1),
        lambda: primal.config.read("jax_nonsense"),
        lambda: primal.config.jax_nonsense,
    ):
        with pytest.raises(AttributeError, match="expected a flag name"):
            use()
    with pytest.raises(ValueError, match="expected one of 'allow', 'warn', 'raise'"):
        primal.config.update("jax_numpy_rank_promotion", "maybe")


def test_scopes_of_settings_have_their_effect() -> None:
    one, row = jnp.ones((2, 2)), jnp.ones(2)
    with primal.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        one + row
    with primal.numpy_dtype_promotion("strict"), pytest.raises(Exception, match="strict|promotion"):
        row + jnp.arange(2)
    with primal.enable_x64(True):
        assert jnp.arange(2.0).dtype == np.float64
        with primal.experimental.disable_x64():
            assert jnp.arange(2.0).dtype == np.float32
    with primal.default_matmul_precision("highest"):
        assert "HIGHEST" in str(primal.make_jaxpr(jnp.matmul)(one, one))

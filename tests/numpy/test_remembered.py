"""Calls of jnp functions that skip their decisions give what the functions give."""

from __future__ import annotations

import inspect
import types
import warnings
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.base.native import extension
from primal.numpy import remembered

A = jnp.array([1.5, -2.0, 0.25, 7.0, -0.0, np.inf, np.nan, -3.5])
B = jnp.array([0.5, 3.0, -2.0, 0.0, 1.0, 2.0, 1.0, -1.5])
K = jnp.array([4, -7, 0, 9], dtype=jnp.int32)
J = jnp.array([3, 2, 0, -4], dtype=jnp.int32)
M = jnp.arange(12.0).reshape(3, 4)

CASES = {
    "linspace": lambda: jnp.linspace(0.0, 1.0, 8),
    "linspace_retstep": lambda: jnp.linspace(0, 3, 4, retstep=True),
    "arange": lambda: jnp.arange(2, 9, 3),
    "zeros": lambda: jnp.zeros((2, 3), jnp.int8),
    "full_weak": lambda: jnp.full(3, 2),
    "ones_like": lambda: jnp.ones_like(M, dtype="bool"),
    "eye": lambda: jnp.eye(3, 4, k=1),
    "tril": lambda: jnp.tril(M, -1),
    "floor_divide": lambda: A // B,
    "floor_divide_ints": lambda: K // J,
    "floor_divide_scalar": lambda: K // 3,
    "remainder": lambda: A % B,
    "divmod": lambda: jnp.divmod(A, B),
    "logaddexp": lambda: jnp.logaddexp(A, B),
    "var": lambda: jnp.var(M, axis=1, ddof=1),
    "std": lambda: jnp.std(K),
    "median": lambda: jnp.median(M, axis=0, keepdims=True),
    "einsum": lambda: jnp.einsum("ij,kj->ik", M, M),
    "outer": lambda: jnp.outer(K, B),
    "stack": lambda: jnp.stack([A, B], axis=1),
    "concatenate": lambda: jnp.concatenate((K, B)),
    "split": lambda: jnp.split(M, 2, axis=1),
    "meshgrid": lambda: jnp.meshgrid(K, B),
    "where": lambda: jnp.where(A > 0, A, 0),
    "clip": lambda: jnp.clip(A, -1, 1),
    "argsort": lambda: jnp.argsort(A),
    "matmul": lambda: M @ M.T,
    "norm": lambda: jnp.linalg.norm(M, axis=0),
    "tile": lambda: jnp.tile(K, (2, 2)),
    "ranks": lambda: M * M[0],
    "weak": lambda: jnp.add(jnp.asarray(2.0), 3),
    "slogdet": lambda: jnp.modf(A),
}


def parts(out):
    """Container, avals and bytes of a result."""
    if isinstance(out, tuple | list):
        return type(out), [parts(x) for x in out]
    return out.shape, out.dtype, out.weak_type, np.asarray(out).tobytes()


@pytest.mark.parametrize("name", CASES)
def test_again_is_the_same(name):
    """The first call decides, the second stages, the third and fourth run what was staged."""
    primal.clear_caches()
    first, *others = [parts(CASES[name]()) for _ in range(4)]
    assert all(other == first for other in others)


def test_the_program_runs(monkeypatch):
    calls = []

    @remembered.remembered
    def f(x, scale, *, shift=0):
        calls.append(x)
        return (x + shift) * scale

    for _ in range(5):
        assert f(K, 2, shift=1).tolist() == [10, -12, 2, 20]
    assert len(calls) == 2  # decided, staged
    assert f(K, 2.0, shift=1).dtype == jnp.float32
    assert f(K, True, shift=1).tolist() == [5, -6, 1, 10]
    assert len(calls) == 4


def test_what_numpy_has_counts_within_as_it_will_in_later_calls() -> None:
    """In a function that gets a program it is its operations from the first call on."""
    made = []

    @remembered.remembered_as(lambda *args: lambda a: made.append("NumPy") or np.negative(a))
    def inner(x):
        made.append("operations")
        return 0 - x

    @remembered.remembered
    def staged(x):
        return inner(x) + 1

    @remembered.remembered
    def never_staged(x):
        return inner(x) + int(x[0])

    def met(fun, x) -> set[str]:
        made.clear()
        fun(x)
        return set(made)

    assert ["NumPy" in met(staged, K) for _ in range(4)] == [False] * 4
    assert ["NumPy" in met(inner, K) for _ in range(4)] == [True] * 4
    met(never_staged, J)
    assert made[-1] == "NumPy"
    assert [met(never_staged, J) for _ in range(3)] == [{"NumPy"}] * 3


def test_statics_are_told_apart_by_type_and_sign():
    for _ in range(3):
        assert jnp.full(2, 1).dtype == jnp.int32
        assert jnp.full(2, 1.0).dtype == jnp.float32
        assert jnp.full(2, True).dtype == jnp.bool_
        assert np.signbit(np.asarray(jnp.full(2, -0.0))).all()
        assert not np.signbit(np.asarray(jnp.full(2, 0.0))).any()


def test_settings_are_part_of_the_signature():
    for _ in range(3):
        assert jnp.zeros(2).dtype == jnp.float32
        with primal.enable_x64(True):
            assert jnp.zeros(2).dtype == jnp.float64
        with primal.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
            jnp.multiply(M, M[0])
        assert jnp.multiply(M, M[0]).shape == (3, 4)
        with primal.debug_nans(True), pytest.raises(FloatingPointError):
            jnp.logaddexp(A, B)


def test_warnings_and_errors_come_every_time():
    for _ in range(4):
        with pytest.warns(UserWarning, match="float64"):
            jnp.ones(2, dtype="float64")
        with pytest.raises(TypeError, match="requires ndarray"):
            jnp.sum([1, 2])
        with pytest.raises(ValueError):
            jnp.stack([A, K])


def test_results_are_apart():
    """Donating one result leaves the others as they are."""
    outs = [jnp.zeros(4) for _ in range(4)]
    step = primal.jit(lambda x: x + 1, donate_argnums=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert step(outs[3]).tolist() == [1.0] * 4
    assert outs[2].tolist() == [0.0] * 4 and jnp.zeros(4).tolist() == [0.0] * 4


def test_traces_see_the_function():
    for _ in range(3):
        jnp.linspace(0.0, 1.0, 3)
    assert len(primal.make_jaxpr(lambda: jnp.linspace(0.0, 1.0, 3))().eqns) > 1
    grad = primal.grad(lambda x: jnp.logaddexp(x, x).sum())(jnp.ones(2))
    assert grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool", "complex64"])
def test_arrays_of_numpys_are_operands_as_ours_are(dtype: str) -> None:
    x = np.arange(4).astype(dtype)
    for _ in range(3):
        for fun in (jnp.add, jnp.floor_divide, lambda a, b: jnp.stack([a, b])):
            if fun is jnp.floor_divide and dtype in ("bool", "complex64"):
                continue
            want, got = fun(jnp.asarray(x), A[:4]), fun(x, A[:4])
            assert got.aval is want.aval
            np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(A[:4] + x, A[:4] + jnp.asarray(x))


def test_results_do_not_share_memory_with_arrays_of_numpys() -> None:
    x = np.arange(6.0, dtype="float32")
    for _ in range(3):
        out = [jnp.reshape(x, (2, 3)), jnp.ravel(x), jnp.squeeze(x[None]), jnp.real(x)]
        x += 1
        for y in out:
            assert float(y.reshape(-1)[0]) == x[0] - 1


def test_what_is_no_array_of_numbers_is_refused_by_the_function() -> None:
    for _ in range(3):
        with pytest.raises(TypeError):
            jnp.add(A, np.array(["a"] * 8))
        with pytest.raises(TypeError):
            jnp.stack([A, np.array([None] * 8)])


def test_random_numbers_are_the_same_in_every_call() -> None:
    for draw in (
        lambda: primal.random.normal(primal.random.key(3), (5,)),
        lambda: primal.random.randint(primal.random.PRNGKey(3), (4,), 0, 100),
        lambda: primal.random.permutation(primal.random.key(3), A),
        lambda: primal.random.split(primal.random.key(3), 3),
        lambda: primal.scipy.special.betaln(A, B),
    ):
        first, *others = (draw() for _ in range(4))
        for other in others:
            assert other.aval is first.aval
            typed = jnp.issubdtype(first.dtype, primal.dtypes.prng_key)
            data = primal.random.key_data if typed else np.asarray
            np.testing.assert_array_equal(data(other), data(first))


LONG = np.random.default_rng(0).normal(size=20_000).astype(np.float32)
IN_PLACE = {
    "isclose": lambda x: jnp.isclose(x, x * 1.00001),
    "gradient": jnp.gradient,
    "unwrap": jnp.unwrap,
    "polyval": lambda x: jnp.polyval(x[:5], x),
    "geomspace": lambda x: jnp.geomspace(1.0, 2.0, 20_000),
    "nanvar": jnp.nanvar,
    "angle": lambda x: jnp.angle(x + 1j * x[::-1]),
    "sinc": jnp.sinc,
    "vander": lambda x: jnp.vander(x, 3),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_dead_memory_is_used_again(name: str) -> None:
    """Of programs on large arrays: results and operands stay as they are."""
    x = jnp.asarray(LONG)
    first, *later = [IN_PLACE[name](x) for _ in range(4)]
    assert all(np.asarray(y).tobytes() == np.asarray(first).tobytes() for y in later)
    assert np.array_equal(x, LONG)


def test_what_is_read_later_or_seen_keeps_its_memory() -> None:
    @remembered.remembered
    def several(x, y):
        a = x + y
        b = a * 2
        c = a - b
        seen = b.reshape(2, -1)
        return jnp.negative(c), seen, b * a, jnp.sqrt(a) + c, (a > 0) & (b > c)

    x, y = jnp.asarray(LONG), jnp.asarray(LONG[::-1].copy())
    results = [several(x, y) for _ in range(4)]
    for found in results[1:]:
        for one, other in zip(found, results[0], strict=True):
            assert np.array_equal(one, other, equal_nan=True)
    assert np.array_equal(x, LONG)


def test_an_exponent_that_is_known_is_the_number_at_every_call() -> None:
    """Arrays without axes too, of which a program would know the dtype alone."""
    bases = [jnp.array([1.3, -0.7, 1e5]), jnp.array([True, False]), jnp.bool_(True), K]
    for base in bases:
        want = jnp.power(base, 5)
        for exponent in (jnp.uint8(5), jnp.int32(5), np.uint8(5), np.array(5)):
            for _ in range(4):
                found = jnp.power(base, exponent)
                assert found.aval == want.aval
                assert np.asarray(found).tobytes() == np.asarray(want).tobytes()
    with pytest.raises(TypeError, match="negative"):
        jnp.power(K, jnp.int32(-1))


NARROW_FIRST = [
    ("bool", "int32"), ("int8", "float32"), ("bool", "float32"), ("uint16", "float32"),
    ("int32", "float32"), ("float16", "float32"), ("int32", "complex64"), ("float32", "complex64"),
    ("float16", "complex64"), ("int8", "uint8"),
]  # fmt: skip


@pytest.mark.parametrize("name", "add subtract multiply divide maximum less_equal arctan2".split())
def test_operands_that_a_ufunc_converts(name: str) -> None:
    """Whichever of two dtypes comes first, and whether it is one number: the bits of operands that
    were converted beforehand."""
    function = getattr(jnp, name)
    for pair in NARROW_FIRST:
        values = [(np.arange(-12, 12) * 0.6).astype(d) for d in pair]
        for x, y in (values, values[::-1], (values[0], values[1][3]), (values[0][5], values[1])):
            a, b = jnp.asarray(x), jnp.asarray(y)
            wide = jnp.result_type(a, b)
            if wide.kind == "c" and name == "arctan2":
                continue
            want = function(a.astype(wide), b.astype(wide))
            for _ in range(3):
                found = function(a, b)
                assert found.dtype == want.dtype
                np.testing.assert_array_equal(found, want)
                if wide.kind == "f" and want.dtype == wide:
                    np.testing.assert_array_equal(np.signbit(found), np.signbit(want))


@pytest.mark.parametrize("narrow", ["bool", "int8", "uint16", "int32"])
def test_sums_of_whole_numbers_that_are_converted(narrow: str) -> None:
    for wide in ("uint8", "int32", "uint32", "float32"):
        x = (np.arange(5 * 300).reshape(5, 300) % 1000).astype(narrow)
        for axis in (None, 0, 1):
            # Modulo 2^bits, as sums of the narrow type go on in the wide one.
            want = x.astype(np.int64).sum(axis).astype(wide)
            for _ in range(3):
                found = jnp.sum(jnp.asarray(x), axis=axis, dtype=wide)
                assert found.dtype == wide
                np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_repeated_numbers_of_narrow_floats(dtype: str) -> None:
    """Read narrow, in float32 or both, they are the same numbers; alone they are no casts."""

    def of_wide(x: Any) -> Any:
        return x + jnp.full_like(x, 1.5)

    def of_both(x: Any) -> Any:
        fill = jnp.full_like(x, -0.0)
        return jnp.concatenate([fill, x * fill]), fill, fill.T + 1, jnp.cumsum(fill, 0)

    def moved(x: Any) -> Any:
        moved = jnp.concatenate([x + x, jnp.ones_like(x)])[::-1]
        return moved, jnp.full_like(x, 2).astype("float32")

    x = jnp.arange(2200.0).reshape(40, 55).astype(dtype)  # more than a constant holds
    for fun in (jnp.zeros_like, jnp.ones_like, of_wide, of_both, moved):
        want = primal.tree.leaves(fun(x))
        for run in (remembered.remembered(fun), primal.jit(fun)):
            for _ in range(3):
                for a, b in zip(primal.tree.leaves(run(x)), want, strict=True):
                    assert a.dtype == b.dtype
                    assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    got = remembered.remembered(jnp.zeros_like)
    for _ in range(3):
        out = got(x)
    assert out.host.strides == (0, 0)


def test_what_looks_for_functions_finds_them() -> None:
    """Whatever skips its decisions is a function to `inspect` and all that asks as it does."""
    listed = dict(inspect.getmembers(primal.random, inspect.isfunction))
    assert {"randint", "normal", "gamma", "split", "choice"} <= set(listed)
    for fun in (jnp.where, jnp.concatenate, primal.random.randint, primal.scipy.linalg.solve):
        assert isinstance(fun, types.FunctionType)
        assert isinstance(fun.__code__, types.CodeType)


@pytest.mark.skipif(extension is None, reason="without the extension it is a function around one")
def test_what_is_remembered_passes_for_what_was_written() -> None:
    for fun in (jnp.where, jnp.concatenate, primal.random.randint, primal.scipy.linalg.solve):
        assert fun.__module__ == fun.__globals__["__name__"]
        assert repr(fun).startswith(f"<function {fun.__name__} at ")
    assert inspect.getfullargspec(jnp.where).args == ["condition", "x", "y"]
    assert isinstance(primal.nn.relu, primal.custom_jvp)

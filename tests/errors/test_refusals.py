"""What public functions are given wrongly is refused in words, whatever failed on it inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.runtime.refusals import shown
from primal.scipy import signal

X = np.ones((3, 4), np.float32)
V = np.ones(3, np.float32)
WHATEVER: dict[str, Any] = {
    "text": "a", "dict": {}, "object": object(), "bytes": b"a", "ragged": [[1], [2, 3]],
    "words": np.array(["a"]), "records": np.zeros(3, "f4,i4"),
}  # fmt: skip
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": jnp.sum, "compress": lambda w: jnp.compress(V > 0, V, size=w), "sin": jnp.sin,
    "sort": lambda w: jnp.sort(V, descending=w), "fft": lambda w: jnp.fft.fft(V, norm=w),
    "max": lambda w: jnp.max(V, out=w), "where": lambda w: jnp.where(V > 0, w, V),
    "roll": lambda w: jnp.roll(V, w), "take": lambda w: jnp.take(V, w),
    "interp": lambda w: jnp.interp(V, V, w), "histogram": lambda w: jnp.histogram(V, w),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WHATEVER)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_numpy_say_what_they_expected(name: str, wrong: str) -> None:
    for how in (lambda f: f, lambda f: lambda w: primal.jit(lambda: f(w))()):
        if name == "sort" and wrong in ("text", "bytes", "object"):  # as true as True
            how(FUNCTIONS[name])(WHATEVER[wrong])
            continue
        kinds = (TypeError, ValueError, NotImplementedError)
        with pytest.raises(kinds, match=r"(?s)^\[.*\] expected "):
            how(FUNCTIONS[name])(WHATEVER[wrong])


def test_words_of_numpy_and_jax_stay_at_the_end() -> None:
    """Programs match them; the class is that of the error raised on purpose."""
    for call, kind, words in [
        (lambda: jnp.add(V, "a"), TypeError, "add requires ndarray or scalar arguments, got <cl"),
        (lambda: jnp.take(V, 0, mode="raise"), NotImplementedError, "raise"),
        (lambda: jnp.sum(V, out=V), NotImplementedError, "The 'out' argument to jnp.sum is not"),
        (lambda: jnp.allclose(V, X), ValueError, "Incompatible shapes for broadcasting"),
        (lambda: jnp.arange(1, 5, 0), ZeroDivisionError, "step"),
        (lambda: jnp.sum(2**70), OverflowError, "too large to convert to int32"),
        (lambda: jnp.sum(V, axis="i"), NameError, "unbound axis name: i"),
        (lambda: lax.sin(2**40), OverflowError, "out of bounds for int32"),
        (lambda: jnp.array([[1], [2, 3]]), ValueError, "inhomogeneous shape"),
        (lambda: jnp.array([jnp.ones(2), V]), TypeError, "Cannot concatenate arrays with diff"),
        (lambda: jnp.asarray(V)[slice(1.5)], TypeError, "cannot be interpreted as an integer"),
        (lambda: primal.jit(lambda: "a")(), TypeError, "returned a value of type <class 'str'>"),
        (lambda: primal.jit(jnp.nonzero)(V), TypeError, "Abstract tracer value encountered where"),
        (lambda: primal.jit(jnp.arange)(3), TypeError, "Abstract tracer value encountered where"),
        (lambda: primal.grad(jnp.sum)("a"), TypeError, "is not a valid array type"),
        (lambda: jnp.vectorize(jnp.sin, signature=(0, 0)), TypeError, "signature: str | None"),
        (lambda: primal.vmap(lambda x: jnp.vectorize(jnp.sin, signature=x)(x))(V), TypeError, "s"),
        (lambda: jnp.einsum_path("ab", V), ValueError, "Einstein sum subscript"),
        (lambda: signal.welch(V, window="a"), ValueError, "window"),
    ]:  # fmt: skip
        with pytest.raises(kind, match=words) as error:
            call()
        assert "] expected " in str(error.value)


@pytest.mark.parametrize("dtype", ["U1", "O", "M8[D]", "longdouble", "f4,i4"])
def test_arrays_like_what_holds_no_numbers(dtype: str) -> None:
    a = np.zeros(2, dtype)
    for like in (jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda a: jnp.full_like(a, 1)):
        for how in (lambda f: f, lambda f: lambda a: primal.jit(lambda: f(a))()):
            with pytest.raises(TypeError, match="is not a valid JAX array type"):
                how(like)(a)


def test_orders_beyond_the_size_give_no_elements() -> None:
    """However large: there is one step for each element, not for each order."""
    for n in (3, 4, 2**70):
        assert jnp.diff(V, n=n).shape == jnp.polyder(V, n).shape == (0,)
    x = jnp.arange(3)
    for shape in ((), (0,), (2,), (7,), (5, 4), (1 << 20,)):
        np.testing.assert_array_equal(jnp.resize(x, shape), np.resize(np.arange(3), shape))


def test_what_a_gather_fills_in_is_a_number() -> None:
    """Of the operand's kind; under jit, too, before anything is compiled."""
    x, i = jnp.ones(3), jnp.array([0, 7])
    numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    reads: list[Callable[[Any, Any], Any]] = [
        lambda x, f: jnp.take(x, i, fill_value=f),
        lambda x, f: jnp.take_along_axis(x, i, 0, fill_value=f),
        lambda x, f: x.at[i].get(mode="fill", fill_value=f),
        lambda x, f: x.at[i].get(fill_value=f),
        lambda x, f: lax.gather(x, i[:, None], numbers, (1,), mode="fill", fill_value=f),
    ]
    for read in reads:
        for fill in ("a", (0, 0), [1.0], np.ones(2), len, 2j):
            # What has axes is a wrong value, as in JAX, all else of the wrong type.
            error = ValueError if isinstance(fill, tuple | list | np.ndarray) else TypeError
            for how in (read, lambda x, f, read=read: primal.jit(lambda x: read(x, f))(x)):
                with pytest.raises(error, match="expected a number of float32 as fill_value"):
                    how(x, fill)
        if read is not reads[3]:
            for fill in (True, 2, np.float64(2.5), np.array(3), jnp.float32(4)):
                np.testing.assert_array_equal(read(x, fill), [1, float(fill)])
            assert read(x + 0j, 2j)[1] == 2j


def test_keys_do_not_count() -> None:
    key = primal.random.key(0)
    for call in (lambda k: primal.nn.one_hot(k, 3), lambda k: lax.iota(k.dtype, 3),
                 lambda k: jnp.arange(3, dtype=k.dtype)):  # fmt: skip
        for how in (call, primal.jit(call)):
            with pytest.raises((TypeError, ValueError), match=r"^\[.*\] expected "):
                how(key)


def test_of_what_is_shown_no_more_is_read_than_fits() -> None:
    read: list[int] = []

    class Counted:
        def __repr__(self) -> str:
            read.append(1)
            return "1"

    deep: list[Any] = [Counted()]
    for _ in range(4):
        deep = [deep] * 50
    endless: list[Any] = []
    endless += [endless, {"a": endless}]
    for value in (deep, endless, (deep, {1: deep})):
        with pytest.raises(TypeError, match=r"^\[sin\] expected .*, got .*…"):
            jnp.sin(value)
    assert len(read) < 200
    for plain in ([], (), {}, (1,), [(1, 2), "a"], {"a": [1.5], 2: None}):
        assert shown(plain) == repr(plain)


def test_what_users_functions_raise_passes() -> None:
    def f(*_: Any) -> Any:
        raise LookupError("mine")

    for call in (
        lambda: jnp.apply_along_axis(f, 0, X), lambda: jnp.piecewise(V, [V > 0], [f]),
        lambda: jnp.fromfunction(f, (2,)), lambda: lax.map(f, V),
    ):  # fmt: skip
        with pytest.raises(LookupError, match="^mine$"):
            call()


@pytest.mark.parametrize("call", [
    lambda: jnp.zeros((2**40, 0, 2**40)),
    lambda: jnp.ones((2**40, 0)) @ jnp.ones((0, 2**40)),
    lambda: jnp.outer(jnp.zeros((2**40, 0)), jnp.zeros(0)).reshape(2**40, 0, 2**40),
    lambda: jnp.broadcast_to(jnp.zeros((0, 1)), (2**40, 0, 2**40)),
])  # fmt: skip
def test_arrays_without_elements_may_be_too_long(call: Callable[[], Any]) -> None:
    for how in (lambda f: f(), lambda f: primal.jit(f)()):
        with pytest.raises(MemoryError, match=r"2\*\*63 bytes, lengths of 0 not counted"):
            how(call)

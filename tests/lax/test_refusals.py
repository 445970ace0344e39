"""What no function takes is refused in words, parameter by parameter, before any engine sees it."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.runtime.refusals import in_words
from tests.lax.calls import CALLS, OF_FUNCTIONS, OTHERS

WRONG: dict[str, Any] = {
    "None": None,
    "1j": 1j,
    "1.5": 1.5,
    "-9": -9,
    "0": 0,
    "100": 100,
    "text": "spam",
    "bytes": b"\x01",
    "list": [1],
    "nothing": (),
    "three": (1, 1, 1),
    "negative": (-1, -1),
    "large": (9, 9),
    "zeros": (0, 0),
    "halves": (1.5, 1.5),
    "texts": ("spam", "eggs"),
    "pairs": ((1,), (1,)),
    "ragged": [[1, 2], [3]],
    "set": {1},
    "dict": {},
    "object": object(),
    "function": lambda *args: args,
    "type": int,
    "dtype": np.dtype("float32"),
    "numbers": np.array([0, 1]),
    "strings": np.array(["spam", "eggs"]),
    "objects": np.array([None, 1], dtype=object),
    **{
        f"array of {dtype.__name__}": np.ones((3, 4), dtype)
        for dtype in (np.bool_, np.int32, np.uint8, np.complex64, ml_dtypes.bfloat16,
                      ml_dtypes.float8_e4m3fn, ml_dtypes.int4)
    },
    **{
        f"array of {shape}": np.ones(shape, np.float32)
        for shape in ((), (3,), (2, 3, 4), (0, 4), (5, 7), (3, 3))
    },
}  # fmt: skip
# JAX's classes, which programs catch: of indices, and of paddings that have no name.
IN_WORDS = (TypeError, ValueError, NotImplementedError, IndexError, RuntimeError)


def function_of(name: str) -> Any:
    found: Any = lax
    for part in name.split("."):
        found = getattr(found, part)
    return found


def refuses_in_words(fun: Any, args: Any, kwargs: Any) -> str:
    """What is wrong with the error, if there is one."""
    try:
        fun(*args, **kwargs)
    except IN_WORDS as e:
        if re.match(r"\[[^\]]+\] expected .*\bgot\b", str(e), re.S) is None:
            return f"{type(e).__name__}: {str(e)[:100]}"
    except Exception as e:
        return repr(e)
    return ""


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments(name: str) -> None:
    fun, (args, kwargs) = function_of(name), CALLS[name]
    fun(*args, **kwargs)
    wrong = []
    key = {"key": primal.random.key(0)}
    for what, value in {**WRONG, **key}.items():
        if isinstance(value, np.ndarray) and value.dtype.kind not in "OU":
            value = jnp.asarray(value)
        for place in range(len(args)):
            said = refuses_in_words(fun, (*args[:place], value, *args[place + 1 :]), kwargs)
            wrong.append(f"argument {place} is {what}: {said}" if said else "")
        for parameter in kwargs:
            said = refuses_in_words(fun, args, {**kwargs, parameter: value})
            wrong.append(f"{parameter} is {what}: {said}" if said else "")
    assert not any(wrong), "\n".join(filter(None, wrong))


@pytest.mark.parametrize("name", OF_FUNCTIONS)
def test_wrong_parameters_beside_functions(name: str) -> None:
    fun, ((args, kwargs), parameters) = function_of(name), OF_FUNCTIONS[name]
    wrong = [
        f"{parameter} is {what}: {said}"
        for parameter in parameters
        for what, value in WRONG.items()
        if what != "function"
        and (said := refuses_in_words(fun, args, {**kwargs, parameter: value}))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_function_is_asked() -> None:
    asked = {*CALLS, *OF_FUNCTIONS, *" ".join(OTHERS.values()).split()}
    there = {n for n in vars(lax) if n[0] != "_" and callable(getattr(lax, n))}
    there -= {n for n in there if isinstance(getattr(lax, n), type)}  # enums, named tuples
    there -= {"DotDimensionNumbers", "PrecisionLike", "ConvGeneralDilatedDimensionNumbers"}
    there |= {f"linalg.{n}" for n in lax.linalg.__all__ if n[0].islower()}
    assert there == asked


def test_too_many_and_unknown_arguments() -> None:
    with pytest.raises(TypeError, match=r"\[rev\] expected the arguments \(operand, dimensions\)"):
        lax.rev(jnp.ones(3))
    with pytest.raises(TypeError, match=r"\[rev\] expected the arguments .*unexpected keyword"):
        lax.rev(jnp.ones(3), (0,), axis=1)


def test_numbers_that_no_dtype_holds_stay_an_overflow() -> None:
    with pytest.raises(OverflowError, match=r"\[full\] expected .*10{20}"):
        lax.full((2,), 10**20, jnp.int32)


def test_errors_of_the_users_functions_pass() -> None:
    def body(carry: Any, x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        lax.scan(body, 0, jnp.ones(3))


def test_errors_of_packages_whose_names_begin_as_numpys_does_pass() -> None:
    scope: dict[str, Any] = {}
    code = compile("def fun(x): raise TypeError('theirs')", f"{np.__path__[0]}ro/code.py", "exec")
    exec(code, scope)
    with pytest.raises(TypeError, match="^theirs$"):
        lax.map(scope["fun"], jnp.arange(3.0))


def test_functions_keep_their_names_and_signatures() -> None:
    @in_words
    def half(x: Any, times: int = 1) -> Any:
        return x / [2][times - 1]

    assert half.__name__ == "half"
    assert half(3) == 1.5
    with pytest.raises(IndexError):  # raised here, in a file of the user's
        half(3, 7)


V = np.ones(3, np.float32)
M = np.ones((3, 3), np.float32)
AT = np.zeros((2, 1), np.int32)


def _gathered(offset: Any, gone: Any, starts: Any, sizes: Any) -> Any:
    return lax.gather(M, AT, lax.GatherDimensionNumbers(offset, gone, starts), sizes)


# The words in which programs look for these errors.
WORDS: dict[str, tuple[type[Exception], Any]] = {
    "arrays must have the same number of dimensions": (TypeError, lambda: lax.add(V, M)),
    "lax.mul requires arguments to have the same dtypes": (TypeError, lambda: lax.mul(V, AT)),
    "broadcast_dimensions must be a subset of output dimensions": (
        TypeError, lambda: lax.broadcast_in_dim(V, (2, 3), (2,))),
    "target broadcast shape must have equal or higher rank": (
        TypeError, lambda: lax.broadcast_in_dim(V, (), (0,))),
    "concatenate dimension out of bounds": (TypeError, lambda: lax.concatenate([V, V], 1)),
    "arrays with different numbers of dimensions": (
        TypeError, lambda: lax.concatenate([V, M], 0)),
    "length of padding_config must equal the number of axes": (
        ValueError, lambda: lax.pad(V, 0.0, [(1, 1, 0)] * 2)),
    "Dimension size after padding is not at least 0": (
        ValueError, lambda: lax.pad(V, 0.0, [(-2, -2, 0)])),
    "limit_indices must be less than or equal to operand shape": (
        TypeError, lambda: lax.slice(V, (0,), (4,))),
    "start_indices must have every element be nonnegative": (
        TypeError, lambda: lax.slice(V, (-1,), (2,))),
    "lhs batch dimensions to be distinct": (
        TypeError, lambda: lax.dot_general(M, M, (((), ()), ((0, 0), (0, 1))))),
    "offset_dims in gather op must be sorted": (
        TypeError, lambda: _gathered((2, 1), (), (0,), (1, 1))),
    "Slice size at index 1 in gather op is out of range": (
        TypeError, lambda: _gathered((1,), (0,), (0,), (1, 4))),
    "All dilations must be positive": (
        TypeError, lambda: lax.conv_general_dilated(V[None, None], V[None, None], (1,), "SAME",
                                                    rhs_dilation=(0,))),
    "Pred must be a scalar": (TypeError, lambda: lax.cond(V, abs, abs, 1)),
    "scan body output must be a pair": (TypeError, lambda: lax.scan(lambda c, x: c, 0.0, V)),
    "lax.while_loop: body_fun and cond_fun arguments should be callable": (
        TypeError, lambda: lax.while_loop(abs, 3, 0.0)),
}  # fmt: skip


@pytest.mark.parametrize("words", WORDS)
def test_texts_have_the_words_that_programs_look_for(words: str) -> None:
    kind, call = WORDS[words]
    for how in (call, primal.jit(call)):
        with pytest.raises(kind, match=r"^\[.*\] expected .*" + re.escape(words)):
            how()

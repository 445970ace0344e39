"""What the functions here do with their operands first."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

import primal.numpy as jnp
from primal.base import dtypes
from primal.numpy.promotion import (
    broadcast_shapes,
    check_arraylike,
    from_literal,
    in_float32,
    promote_dtypes_inexact,
    with_rank,
)
from primal.ops.elementwise import complex, convert_element_type
from primal.ops.special import polynomial

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
NARROW = frozenset(np.dtype(dtype) for dtype in (np.float16, dtypes.bfloat16))


def inexact(name: str, *args: Any) -> list[Any]:
    """The operands as arrays of their common dtype, which is made floating where it is not.

    Python's integers of any size are taken, as floats.
    """
    return list(map(from_literal, _promoted(name, *args)))


def _promoted(name: str, *args: Any) -> list[Any]:
    """`inexact`, but Python's numbers stay literals."""
    args = tuple(map(_in_range, args))
    check_arraylike(name, *args)
    return promote_dtypes_inexact(name, *args)


def real_inexact(name: str, *args: Any, error: type[Exception] = TypeError) -> list[Any]:
    """`inexact`; complex operands raise `error`: TypeError, as operations do, or what JAX raises
    where the function itself looks at its operands."""
    return list(map(from_literal, _real(name, *args, error=error)))


def _real(name: str, *args: Any, error: type[Exception]) -> list[Any]:
    out = _promoted(name, *args)
    if out and out[0].aval.dtype.kind == "c":
        broadcast_shapes(*[x.aval.shape for x in out])  # whose error comes first
        raise error(f"[{name}] expected real numbers, got {out[0].aval.dtype.name}.")
    return out


def of_parts(re: Any, im: Any) -> Any:
    """re + i·im of arrays of one shape and real dtype, complex64 of those below 32 bits.

    As the sum of a product with 1j it would be a promotion, which the strict setting forbids.
    """
    real = dtypes.to_real_dtype(dtypes.to_complex_dtype(re.dtype))
    return complex(re.astype(real), im.astype(real))


def beside(x: Any, row: Any) -> Any:
    """A row of numbers for the last axis of x, in its dtype and rank, which strict settings ask."""
    return with_rank(jnp.asarray(row, x.dtype), x.ndim)


def wide(name: str, x: Any) -> Any:
    """A strong array of float32 or float64; TypeError for other dtypes, which JAX has none for."""
    x = jnp.asarray(x)
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"[{name}] expected float32 or float64, got {x.dtype}: x.dtype={x.dtype} is not "
            "supported. Convert with astype(float)."
        )
    return strong(x)[0]


def settled(name: str, *args: Any, error: type[Exception] = TypeError) -> list[Any]:
    """`real_inexact`, but weak only if the first is a scalar: constants get its dtype for good.

    Where operands of two ranks meet, a scalar counts as one of the greater rank.
    """
    return _as_first(_real(name, *args, error=error))


def analytic(name: str, *args: Any) -> list[Any]:
    """The same for formulas that go on into the complex plane."""
    return _as_first(_promoted(name, *args))


def _as_first(out: list[Any]) -> list[Any]:
    ranks = {len(x.aval.shape) for x in out} - {0}
    if out[0].aval.shape == () and len(ranks) < 2:
        return list(map(from_literal, out))
    return strong(*out)


def rounded_once(fun: F) -> F:
    """A function of arrays that for operands of at most 16 bits is computed in float32.

    Operation by operation no digit of some results was left, or a power was infinite and its share
    not: `cauchy.logpdf` of float16 was 92 units off, `logistic.ppf` 9,883.
    """
    package, module = fun.__module__.split(".")[-2:]
    name = fun.__name__ if package == "special" else f"{module}.{fun.__name__}"  # as in errors

    @functools.wraps(fun)
    def call(*args: Any, **named: Any) -> Any:
        given = (*args, *named.values())
        for x in given:
            if getattr(x, "dtype", None) in NARROW:
                break
        else:
            return fun(*args, **named)
        operands, n = inexact(name, *given), len(args)
        if operands[0].dtype not in NARROW:
            return fun(*args, **named)
        return in_float32(
            lambda *xs: fun(*xs[:n], **dict(zip(named, xs[n:], strict=True))), *operands
        )

    return call  # type: ignore[return-value]


def _in_range(x: Any) -> Any:
    return float(x) if type(x) is int and not -(2**31) <= x < 2**31 else x


def strong(*operands: Any) -> list[Any]:
    """The operands, none of them weak: for results whose dtype JAX gives them for good.

    Of literals too: programs know them then, and what is made of them alone is no code (the first
    `beta.logpdf(x, 2., 3.)` of float64 67 to 37 ms of CPU).
    """
    return [
        convert_element_type(x, new_dtype=x.aval.dtype, weak_type=False)
        if x.aval.weak_type
        else from_literal(x)
        for x in operands
    ]


def in_floats(x: Any) -> Any:
    """An operand as an array: of the default dtype of floats where it is of integers or bools."""
    x = jnp.asarray(x)
    return x if dtypes.issubdtype(x.dtype, np.inexact) else x.astype(jnp.result_type(float))


def epsilon(x: Any) -> float:
    """The distance from 1 to the next number of the dtype, no less than float32's or float64's.

    Narrower dtypes take the number of terms of float32: they are computed in it.
    """
    return float(np.finfo(np.float64 if x.dtype.itemsize == 8 else np.float32).eps)


def digits(x: Any, single: T, double: T) -> T:
    """How many terms of a series, or which table: one for float64, one for narrower dtypes."""
    return double if x.dtype.itemsize == 8 else single


def horner(c: Sequence[float], x: Any) -> Any:
    """Σ c[k] xᵏ of floats."""
    return polynomial(x, coefficients=tuple([float(v) for v in c]))

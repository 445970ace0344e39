"""Tangents and cotangents as users hand them in and get them: checks, float0, zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.api.operands import operand
from primal.base import dtypes
from primal.ir.avals import Aval
from primal.ir.trace import ZERO, aval_of
from primal.ops.spread import zeros_like_aval
from primal.runtime.array import from_literal, from_numpy


def active(xs: Sequence[Any]) -> list[bool]:
    """Which operands have tangents: those that are not integers, booleans or keys."""
    return [dtypes.to_tangent_dtype(aval_of(x).dtype) != dtypes.float0 for x in xs]


def is_float0(x: Any) -> bool:
    """Whether x is an array of float0, the tangent of integers: NumPy's, or `jnp.zeros`'."""
    return getattr(x, "dtype", None) == dtypes.float0


def tangent_operand(t: Any, aval: Aval, error: type[Exception] = TypeError) -> Any:
    """A user's tangent for a primal of that aval, checked."""
    wanted = aval.tangent()
    if is_float0(t) or wanted.dtype == dtypes.float0:
        if not is_float0(t) or wanted.dtype != dtypes.float0:
            got = dtypes.float0 if is_float0(t) else aval_of(t).dtype
            raise error(
                "primal and tangent arguments to jvp do not match; dtypes must be equal, or in "
                "case of int/bool primal dtype the tangent dtype must be float0. Got primal dtype "
                f"{aval.dtype.name} and so expected tangent dtype {wanted.dtype.name or 'float0'}, "
                f"but got tangent dtype {got} instead."
            )
        return ZERO
    got_aval = aval_of(t)
    if got_aval.dtype != wanted.dtype:
        raise error(
            "primal and tangent arguments to jvp do not match; dtypes must be equal, or in case "
            f"of int/bool primal dtype the tangent dtype must be float0. Got primal dtype "
            f"{aval.dtype.name} and so expected tangent dtype {wanted.dtype.name}, but got tangent "
            f"dtype {got_aval.dtype.name} instead."
        )
    if got_aval.shape != wanted.shape:
        raise ValueError(
            f"jvp called with different primal and tangent shapes; Got primal shape {aval.shape} "
            f"and tangent shape as {got_aval.shape}."
        )
    return _as_dtype(t, wanted)


def cotangent_operand(
    ct: Any, aval: Aval, wanted: Aval | None = None, error: type[Exception] = ValueError
) -> Any:
    """A user's cotangent for an output of that aval, checked."""
    wanted = aval.tangent() if wanted is None else wanted
    if wanted.dtype == dtypes.float0:
        # Integers have no cotangent but 0: a cotangent of another type says nothing more.
        if np.shape(ct) != aval.shape:
            raise error(
                f"[vjp] expected a cotangent of the shape of its output, {aval}, got one of shape "
                f"{np.shape(ct)}: numpy.zeros({aval.shape}, primal.dtypes.float0) makes one."
            )
        return ZERO
    got = aval_of(ct)
    if got.shape != wanted.shape:
        raise error(
            f"Shape of cotangent input to vjp pullback function {got.shape} must be the same as "
            f"the shape of corresponding primal input {wanted.shape}: unexpected type (e.g. "
            "shape/dtype) for argument to VJP function."
        )
    if got.dtype != wanted.dtype:
        raise error(
            f"Type of cotangent input to vjp pullback function ({got.dtype.name}) is not the "
            f"expected tangent type ({wanted.dtype.name}) of corresponding primal output with "
            f"dtype {aval.dtype.name}: unexpected type (e.g. shape/dtype) for argument to VJP "
            "function."
        )
    return _as_dtype(ct, wanted)


def _as_dtype(x: Any, wanted: Aval) -> Any:
    if isinstance(x, bool | int | float | complex):
        return from_numpy(np.asarray(x).astype(wanted.dtype), wanted)
    return operand(x)


def tangent_of(t: Any, aval: Aval) -> Any:
    """The tangent a user gets for an output: zeros instead of ZERO, float0 for integers."""
    wanted = aval.tangent()
    if wanted.dtype == dtypes.float0:
        return np.zeros(aval.shape, dtypes.float0)
    return zeros_like_aval(wanted) if t is ZERO else from_literal(t)


cotangent_of = tangent_of

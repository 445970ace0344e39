"""Several passes over a row: softmax and its kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.native import is_finite
from primal.numpy.direct.operands import is_array, rounded_once

_largest, _sum = np.maximum.reduce, np.add.reduce


@rounded_once(1)
def softmax(x: Any, axis: Any = -1, where: Any = None) -> Callable[..., Any] | None:
    """exp(x) / Σ exp(x)."""
    if not is_array(x, "f") or where is not None or not x.aval.size:
        return None

    def run(x: Any) -> Any:
        out = np.subtract(x, _largest(x, axis=axis, keepdims=True))
        np.exp(out, out)
        return np.divide(out, _sum(out, axis=axis, keepdims=True), out)

    return run


@rounded_once(1)
def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Callable[..., Any] | None:
    """x - log(Σ exp(x))."""
    if not is_array(x, "f") or where is not None or not x.aval.size:
        return None

    def run(x: Any) -> Any:
        out = np.subtract(x, _largest(x, axis=axis, keepdims=True))
        return np.subtract(out, np.log(_sum(np.exp(out), axis=axis, keepdims=True)), out)

    return run


@rounded_once(1)
def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Callable[..., Any] | None:
    """log(Σ exp(a))."""
    if not is_array(a, "f") or b is not None or where is not None or return_sign:
        return None

    return lambda x: _log_of_sum(x, axis, keepdims)


def _log_of_sum(x: Any, axis: Any, keepdims: bool) -> Any:
    top = _largest(x, axis=axis, keepdims=True, initial=-np.inf)
    if not is_finite(top):
        top = np.where(np.isfinite(top), top, top.dtype.type(0))
    small = np.subtract(x, top)
    shares = np.exp(small, small if x.ndim else None)
    out = np.log(_sum(shares, axis=axis, keepdims=True)) + top
    return out if keepdims else out.reshape(()) if axis is None else out.squeeze(axis)


@rounded_once(1)
def logmeanexp(
    x: Any, axis: Any = None, where: Any = None, keepdims: bool = False
) -> Callable[..., Any] | None:
    """log(mean(exp(x)))."""
    if not is_array(x, "f") or where is not None or not x.aval.size:
        return None

    def run(x: Any) -> Any:
        total = _log_of_sum(x, axis, keepdims)
        return np.subtract(total, np.log(total.dtype.type(x.size // total.size)))

    return run

"""Convolution and correlation in any number of dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.base.lengths import smooth
from primal.ir.trace import Array
from primal.lax.convolutions import conv_general_dilated
from primal.numpy.promotion import ArrayLike
from primal.ops.types import canonical_axes
from primal.runtime.refusals import in_words
from primal.scipy.operands import inexact

MODES = ("full", "same", "valid")


def _check_mode(mode: Any) -> None:
    if mode not in MODES:
        raise ValueError(f"mode must be one of {list(MODES)}, got {mode!r}.")


def _ordered(x: Any, y: Any, axes: Any) -> tuple[Any, Any]:
    """The larger operand first; ValueError unless one is, along all the axes."""
    if all(x.shape[i] >= y.shape[i] for i in axes):
        return x, y
    if all(y.shape[i] >= x.shape[i] for i in axes):
        return y, x
    raise ValueError("One input must be smaller than the other in every dimension.")


def _direct(x: Any, y: Any, mode: str, precision: Any) -> Any:
    """One `conv_general_dilated` of the reversed second operand."""
    _check_mode(mode)
    if x.ndim != y.ndim:
        raise ValueError("in1 and in2 must have the same number of dimensions")
    if 0 in x.shape or 0 in y.shape:
        raise ValueError(
            f"zero-size arrays not supported in convolutions, got shapes {x.shape} and {y.shape}."
        )
    if x.ndim == 0:
        return jnp.multiply(x, y)
    if mode == "valid":
        x, y = _ordered(x, y, range(x.ndim))
    elif mode == "full" and all(b > a for a, b in zip(x.shape, y.shape, strict=True)):
        x, y = y, x  # the zeros around the first meet the shorter one, which may be all finite
    around = {
        "full": [(n - 1, n - 1) for n in y.shape],
        "same": [(n - 1 - (n - 1) // 2, (n - 1) // 2) for n in y.shape],
        "valid": [(0, 0)] * x.ndim,
    }[mode]
    out = conv_general_dilated(
        x[None, None], jnp.flip(y)[None, None], window_strides=(1,) * x.ndim, padding=around,
        precision=precision,
    )  # fmt: skip
    return out[0, 0]


def _convolved(name: str, in1: Any, in2: Any, mode: str, method: str, precision: Any) -> Any:
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"Got {method=}; expected 'auto', 'fft', or 'direct'.")
    x, y = inexact(name, in1, in2)
    if name.startswith("correlate"):
        y = jnp.flip(jnp.conj(y))
    if method == "fft":
        return fftconvolve(x, y, mode)
    return _direct(x, y, mode, precision)


@in_words
def convolve(
    in1: Array,
    in2: Array,
    mode: str = "full",
    method: str = "auto",
    precision: Any = None,
) -> Array:
    """out[k] = Σ_j in1[j] · in2[k - j] of two arrays with the same number of dimensions.

    mode 'full' has all m + n - 1 points per axis, 'same' the m in their middle, 'valid' those of
    full overlap. method 'fft' is `fftconvolve`, 'direct' and 'auto' sum. Integers become floats.
    ValueError for empty arrays, unequal ranks, another mode or method.

    >>> convolve(jnp.array([1., 2.]), jnp.array([1., 10.]))
    Array([ 1., 12., 20.], dtype=float32)
    """
    return _convolved("convolve", in1, in2, mode, method, precision)


@in_words
def correlate(
    in1: Array,
    in2: Array,
    mode: str = "full",
    method: str = "auto",
    precision: Any = None,
) -> Array:
    """out[k] = Σ_j in1[j] · conj(in2[j - k + n - 1]), with n points of in2 per axis.

    It is `convolve` with the reversed conjugate of in2: modes, methods and errors are the same.

    >>> correlate(jnp.array([1., 2.]), jnp.array([1., 10.]))
    Array([10., 21.,  2.], dtype=float32)
    """
    return _convolved("correlate", in1, in2, mode, method, precision)


def _of_matrices(name: str, in1: Any, in2: Any, boundary: str, fill: Any) -> None:
    if boundary != "fill" or fill != 0:
        raise NotImplementedError(f"{name}() only supports boundary='fill', fillvalue=0")
    if np.ndim(in1) != 2 or np.ndim(in2) != 2:
        raise ValueError(f"{name}() only supports 2-dimensional inputs.")


@in_words
def convolve2d(
    in1: Array,
    in2: Array,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """`convolve` of two matrices; outside them are zeros.

    ValueError for other ranks, NotImplementedError for other boundaries and fill values.

    >>> convolve2d(jnp.ones((2, 2)), jnp.ones((1, 2)))
    Array([[1., 2., 1.],
           [1., 2., 1.]], dtype=float32)
    """
    _of_matrices("convolve2d", in1, in2, boundary, fillvalue)
    return _convolved("convolve2d", in1, in2, mode, "direct", precision)


@in_words
def correlate2d(
    in1: Array,
    in2: Array,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: Any = None,
) -> Array:
    """`correlate` of two matrices; outside them are zeros.

    ValueError for other ranks, NotImplementedError for other boundaries and fill values.

    >>> correlate2d(jnp.ones((2, 2)), jnp.array([[1., 0.]]))
    Array([[0., 1., 1.],
           [0., 1., 1.]], dtype=float32)
    """
    _of_matrices("correlate2d", in1, in2, boundary, fillvalue)
    x, y = inexact("correlate2d", in1, in2)
    _check_mode(mode)
    if mode == "same":
        # SciPy's middle of an even number of points is one before that of `correlate`.
        out = _direct(jnp.flip(jnp.conj(x)), y, "full", precision)
        out = jnp.conj(jnp.flip(out))
        first = [n // 2 for n in y.shape]
        return out[tuple(slice(f, f + m) for f, m in zip(first, x.shape, strict=True))]
    out = _convolved("correlate2d", x, y, mode, "direct", precision)
    smaller = any(m < n for m, n in zip(x.shape, y.shape, strict=True))
    # SciPy exchanges the operands then, and does not conjugate the result back.
    return jnp.conj(out) if mode == "valid" and smaller else out


@in_words
def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Sequence[int] | None = None
) -> Array:
    """`convolve` along `axes` (all by default) as the product of Fourier transforms.

    O(n log n), with rounding errors relative to the largest value. Along other axes shapes are
    equal. Integers become floats. ValueError for unequal ranks or shapes or another mode.

    >>> fftconvolve(jnp.array([1., 2.]), jnp.array([1., 10.])).round(3)
    Array([ 1., 12., 20.], dtype=float32)
    """
    x, y = inexact("fftconvolve", in1, in2)
    _check_mode(mode)
    if x.ndim != y.ndim:
        raise ValueError("in1 and in2 should have the same dimensionality")
    if x.ndim == 0:
        return jnp.multiply(x, y)
    given = range(x.ndim) if axes is None else np.atleast_1d(np.asarray(axes, int)).tolist()
    # One at a time: an axis may be named twice.
    places = sorted({canonical_axes("fftconvolve", (i,), x.ndim)[0] for i in given})
    rest = [i for i in range(x.ndim) if i not in places]
    if any(x.shape[i] != y.shape[i] for i in rest):
        raise ValueError(
            f"mapped axes must have same shape; got in1.shape={x.shape} in2.shape={y.shape} "
            f"axes={tuple(places)}"
        )
    if not places:
        return jnp.multiply(x, y)
    if mode == "valid":
        x, y = _ordered(x, y, places)
    sizes = [x.shape[i] + y.shape[i] - 1 for i in places]
    crop = [slice(None)] * x.ndim
    for i in places:
        m, n = x.shape[i], y.shape[i]
        first, count = {
            "full": (0, m + n - 1), "same": ((n - 1) // 2, m), "valid": (n - 1, m - n + 1)
        }[mode]  # fmt: skip
        crop[i] = slice(first, max(first + count, first))
    if 0 in x.shape or 0 in y.shape:
        shape = list(x.shape)
        for i, n in zip(places, sizes, strict=True):
            shape[i] = max(n, 0)
        return jnp.zeros(shape, x.dtype)[tuple(crop)]
    # Twice 10,000 rows are 19,999: its factor 2857 made the transform ten times as long.
    lengths = [smooth(n) for n in sizes]
    if x.dtype.kind == "c":
        product = jnp.fft.fftn(x, lengths, axes=places) * jnp.fft.fftn(y, lengths, axes=places)
        return jnp.fft.ifftn(product, lengths, axes=places)[tuple(crop)]
    product = jnp.fft.rfftn(x, lengths, axes=places) * jnp.fft.rfftn(y, lengths, axes=places)
    return jnp.fft.irfftn(product, lengths, axes=places)[tuple(crop)]

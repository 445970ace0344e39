"""`primal.numpy.fft`: discrete Fourier transforms.

y[k] = Σ_j x[j] exp(-2πi jk/n) forwards, and its inverse; `norm` places the factor 1/n: 'backward'
(the default) on the inverse, 'forward' on the transform, 'ortho' 1/√n on both. Real operands of
`rfft` give the first n//2 + 1 values only, as the others are their conjugates. Several axes are
transformed at most three at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.ir.trace import Array, Literal, literal
from primal.numpy import direct
from primal.numpy.creation import array, asarray, placed, zeros
from primal.numpy.elementary import conjugate
from primal.numpy.promotion import (
    ArrayLike,
    DTypeLike,
    check_arraylike,
    convert,
    from_literal,
    is_arraylike,
    promote_dtypes_inexact,
)
from primal.numpy.remembered import remembered, remembered_as
from primal.numpy.shapes import moveaxis, roll
from primal.ops import elementwise as ops
from primal.ops import fft as room
from primal.ops import shape as shape_ops
from primal.ops.types import axes_given, canonical_axes, static_count, static_ints

KIND = room.FftType
FORWARD = (KIND.FFT, KIND.RFFT)


def _transform(
    name: str, kind: Any, a: Any, s: Any, axes: Sequence[int] | None, norm: str | None
) -> Array:
    full = f"jax.numpy.fft.{name}"
    check_arraylike(full, a)
    (x,) = promote_dtypes_inexact(full, a)
    dtype = x.aval.dtype
    if dtypes.is_narrow_float(dtype):
        x = convert(x, dtypes.float32)
    if kind is KIND.RFFT and dtype.kind == "c":
        raise ValueError(
            f"only real valued inputs supported for rfft, got {dtype.name} in {full}: use fft."
        )
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(
            f'Invalid norm value {norm!r}; should be "backward", "ortho" or "forward".'
        )
    rank = x.aval.ndim
    lengths = None if s is None else static_ints(f"{full} s", s)
    if lengths is not None and any(n < 1 for n in lengths):
        raise ValueError(f"Shape should be non-negative, got {lengths}: {full} needs n >= 1.")
    if axes is None:
        axes = range(rank) if lengths is None else range(rank - len(lengths), rank)
    axes = static_ints(f"{full} axes", axes)
    if lengths is not None and len(lengths) != len(axes):
        raise ValueError(f"Shape and axes have different lengths: {lengths} and {axes}.")
    places = canonical_axes(full, axes, rank)
    if not places:
        # No axis to transform: the values, which a Python number is not yet.
        same = x.aval.dtype if kind is KIND.RFFT else dtypes.to_complex_dtype(x.aval.dtype)
        out = convert(x, same)
        return from_literal(out) if isinstance(out, Literal) else out
    if kind is not KIND.RFFT:
        x = convert(x, dtypes.to_complex_dtype(x.aval.dtype))
    end = tuple(range(rank - len(places), rank))
    x = moveaxis(x, places, end)
    if lengths is None:
        lengths = x.aval.shape[rank - len(places) :]
        if kind is KIND.IRFFT:
            lengths = (*lengths[:-1], max(2 * (lengths[-1] - 1), 0))
        # Also of one element along an axis, which irfft takes for the half of none.
        if 0 in lengths:
            return _nothing(x, lengths, kind, end, places)
    x = _resized(x, lengths, kind)
    out = _by_threes(x, lengths, kind)
    return moveaxis(_scaled(out, lengths, kind, norm), end, places)


def _nothing(x: Any, lengths: tuple[int, ...], kind: Any, end: Any, places: Any) -> Any:
    """The transform without elements."""
    sizes = list(lengths)
    if kind is KIND.RFFT:
        sizes[-1] = sizes[-1] // 2 + 1 if sizes[-1] else 0
    dtype = x.aval.dtype
    if kind is KIND.IRFFT:
        dtype = dtypes.to_real_dtype(dtype)
    elif kind is KIND.RFFT:
        dtype = dtypes.to_complex_dtype(dtype)
    lead = x.aval.shape[: x.aval.ndim - len(lengths)]
    return moveaxis(zeros((*lead, *sizes), dtype), end, places)


def _resized(x: Any, lengths: tuple[int, ...], kind: Any) -> Any:
    """Cut or filled up with zeros to the lengths."""
    have = x.aval.shape
    sizes = list(lengths)
    if kind is KIND.IRFFT:
        sizes[-1] = sizes[-1] // 2 + 1
    first = len(have) - len(sizes)
    config = [(0, 0, 0)] * first
    config += [(0, n - m, 0) for n, m in zip(sizes, have[first:], strict=True)]
    if not any(after for _, after, _ in config):
        return x
    return shape_ops.pad(x, literal(0, x.aval.dtype, False), padding_config=tuple(config))


def _by_threes(x: Any, lengths: tuple[int, ...], kind: Any) -> Any:
    """The op takes three axes at once: the rest goes first (last, for the inverse of rfft)."""
    last, rest = lengths[-3:], lengths[:-3]
    if not rest:
        return room.fft(x, fft_type=kind, fft_lengths=last)
    plain = KIND.FFT if kind in FORWARD else KIND.IFFT
    rank = x.aval.ndim
    if kind is not KIND.IRFFT:
        x = room.fft(x, fft_type=kind, fft_lengths=last)
    for i in range(len(rest)):
        at = rank - len(lengths) + i
        turned = room.fft(moveaxis(x, at, -1), fft_type=plain, fft_lengths=(rest[i],))
        x = moveaxis(turned, -1, at)
    return room.fft(x, fft_type=kind, fft_lengths=last) if kind is KIND.IRFFT else x


def _scaled(x: Any, lengths: tuple[int, ...], kind: Any, norm: str | None) -> Any:
    n = float(np.prod([float(m) for m in lengths]))
    forward = kind in FORWARD
    if norm == "ortho":
        factor = n**-0.5 if forward else n**0.5
    elif norm == "forward":
        factor = 1 / n if forward else n
    else:
        return x
    return ops.mul(x, literal(factor, x.aval.dtype, True))


def _one(name: str, kind: Any, a: Any, n: Any, axis: Any, norm: Any) -> Array:
    if isinstance(axis, tuple | list):
        raise ValueError(
            f"jax.numpy.fft.{name} does not support multiple axes. Please use "
            f"jax.numpy.fft.{name}n. Got axis = {axis!r}."
        )
    axes = (-1,) if axis is None else (axis,)  # as JAX takes it
    return _transform(name, kind, a, None if n is None else (n,), axes, norm)


def _two(name: str, kind: Any, a: Any, s: Any, axes: Any, norm: Any) -> Array:
    axes = static_ints(f"jax.numpy.fft.{name} axes", axes)
    if len(axes) != 2:
        raise ValueError(f"jax.numpy.fft.{name} only supports 2 axes. Got axes = {axes!r}.")
    return _transform(name, kind, a, s, axes, norm)


@remembered
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform along an axis, cut or filled up with zeros to n points.

    X[k] = Σ x[j] exp(-2πi·jk/n), divided by what `norm` says.

    >>> jnp.fft.fft(jnp.array([1., 0., 0., 0.])).real
    Array([1., 1., 1., 1.], dtype=float32)
    """
    return _one("fft", KIND.FFT, a, n, axis, norm)


@remembered
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `fft`.

    Complex numbers of the operand's precision; sizes other than n or s stay. x[j] = 1/n Σ X[k]
    exp(2πi·jk/n), or divided as `norm` says.

    >>> jnp.fft.ifft(jnp.array([4., 0., 0., 0.])).real
    Array([1., 1., 1., 1.], dtype=float32)
    """
    return _one("ifft", KIND.IFFT, a, n, axis, norm)


@remembered
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The first n//2 + 1 values of the transform of real numbers; ValueError for complex ones.

    >>> jnp.fft.rfft(jnp.array([1., 0., 0., 0.])).real
    Array([1., 1., 1.], dtype=float32)
    """
    return _one("rfft", KIND.RFFT, a, n, axis, norm)


@remembered
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `rfft`: n real numbers (2(m - 1) of m values by default).

    Real numbers of the operand's precision; the last axis has 2(n - 1) elements unless told.
    irfft(rfft(x), n) = x.

    >>> jnp.fft.irfft(jnp.array([4., 0., 0.]))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    return _one("irfft", KIND.IRFFT, a, n, axis, norm)


@remembered
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The real transform of numbers whose second half is the conjugate of the first.

    hfft(x, n) = n · irfft(conj(x), n).

    >>> jnp.fft.hfft(jnp.array([1., 0., 0.]))
    Array([1., 1., 1., 1.], dtype=float32)
    """
    check_arraylike("jax.numpy.fft.hfft", a)
    return _one("irfft", KIND.IRFFT, conjugate(a), n, axis, _turned(norm))


@remembered
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`.

    Complex numbers of the operand's precision, n // 2 + 1 of them.

    >>> jnp.fft.ihfft(jnp.array([4., 0., 0., 0.])).real
    Array([1., 1., 1.], dtype=float32)
    """
    a = a if is_arraylike(a) else asarray(a)  # of lists too, as the reference
    return conjugate(_one("rfft", KIND.RFFT, a, n, axis, _turned(norm)))


def _turned(norm: str | None) -> str | None:
    if norm is None or norm == "backward":
        return "forward"
    return "backward" if norm == "forward" else norm


@remembered
def fft2(
    a: ArrayLike, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The transform of two axes.

    X[k, l] = Σ x[j, m] exp(-2πi·(jk/n + ml/p)).

    >>> jnp.fft.fft2(jnp.ones((2, 2))).real
    Array([[4., 0.],
           [0., 0.]], dtype=float32)
    """
    return _two("fft2", KIND.FFT, a, s, axes, norm)


@remembered
def ifft2(
    a: ArrayLike, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of `fft2`.

    Complex numbers of the operand's precision; sizes other than n or s stay. ifft2(fft2(x)) = x.

    >>> jnp.fft.ifft2(jnp.ones((2, 2))).real
    Array([[1., 0.],
           [0., 0.]], dtype=float32)
    """
    return _two("ifft2", KIND.IFFT, a, s, axes, norm)


@remembered
def rfft2(
    a: ArrayLike, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The transform of two axes of real numbers; half of the last.

    X[k, l] = Σ x[j, m] exp(-2πi·(jk/n + ml/p)) for 0 ≤ l ≤ p/2.

    >>> jnp.fft.rfft2(jnp.ones((2, 4))).shape
    (2, 3)
    """
    return _two("rfft2", KIND.RFFT, a, s, axes, norm)


@remembered
def irfft2(
    a: ArrayLike, s: Any = None, axes: Sequence[int] = (-2, -1), norm: str | None = None
) -> Array:
    """The inverse of `rfft2`.

    Real numbers of the operand's precision; the last axis has 2(n - 1) elements unless told.
    irfft2(rfft2(x), x.shape) = x.

    >>> jnp.fft.irfft2(jnp.ones((2, 3))).shape
    (2, 4)
    """
    return _two("irfft2", KIND.IRFFT, a, s, axes, norm)


@remembered
def fftn(
    a: ArrayLike, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The transform of several axes, all by default.

    X[k, l, …] = Σ x[j, m, …] exp(-2πi·(jk/n + ml/p + …)).

    >>> jnp.fft.fftn(jnp.ones((2, 2, 2)))[0, 0, 0].real
    Array(8., dtype=float32)
    """
    return _transform("fftn", KIND.FFT, a, s, axes, norm)


@remembered
def ifftn(
    a: ArrayLike, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of `fftn`.

    Complex numbers of the operand's precision; sizes other than n or s stay. ifftn(fftn(x)) = x.

    >>> jnp.fft.ifftn(jnp.ones((2, 2, 2)))[0, 0, 0].real
    Array(1., dtype=float32)
    """
    return _transform("ifftn", KIND.IFFT, a, s, axes, norm)


@remembered
def rfftn(
    a: ArrayLike, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The transform of several axes of real numbers; half of the last.

    `fftn` at 0 ≤ k ≤ n/2 along the last axis.

    >>> jnp.fft.rfftn(jnp.ones((2, 2, 4))).shape
    (2, 2, 3)
    """
    return _transform("rfftn", KIND.RFFT, a, s, axes, norm)


@remembered
def irfftn(
    a: ArrayLike, s: Any = None, axes: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of `rfftn`.

    Real numbers of the operand's precision; the last axis has 2(n - 1) elements unless told.
    irfftn(rfftn(x), x.shape) = x.

    >>> jnp.fft.irfftn(jnp.ones((2, 2, 3))).shape
    (2, 2, 4)
    """
    return _transform("irfftn", KIND.IRFFT, a, s, axes, norm)


# Frequencies.


@remembered
def fftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None
) -> Array:
    """The frequency of each value of `fft`, in cycles per unit of the sample distance d.

    A vector of floats of the default dtype. [0, 1, …, -2, -1] / (d·n).

    >>> jnp.fft.fftfreq(4)
    Array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    count = _points("fftfreq", n)
    order = np.concatenate([np.arange((count + 1) // 2), np.arange(-(count // 2), 0)])
    return _frequencies("fftfreq", order, count, d, dtype, device)


@remembered
def rfftfreq(
    n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None, device: Any = None
) -> Array:
    """The frequency of each value of `rfft`.

    A vector of floats of the default dtype. [0, 1, …, n // 2] / (d·n).

    >>> jnp.fft.rfftfreq(4)
    Array([0.  , 0.25, 0.5 ], dtype=float32)
    """
    count = _points("rfftfreq", n)
    return _frequencies("rfftfreq", np.arange(count // 2 + 1), count, d, dtype, device)


def _points(name: str, n: Any) -> int:
    if isinstance(n, list | tuple):
        raise ValueError(
            f"The n argument of jax.numpy.fft.{name} only takes an int. Got n = {n!r}."
        )
    count = static_count(f"{name} n", n)
    if count < 0:
        raise ValueError(f"[{name}] expected n >= 0, got {count}.")
    return count


def _frequencies(name: str, order: Any, n: int, d: Any, dtype: Any, device: Any) -> Array:
    if isinstance(d, list | tuple):
        raise ValueError(
            f"The d argument of jax.numpy.fft.{name} only takes a single value. Got d = {d!r}."
        )
    target = dtypes.check_user_dtype_supported(float if dtype is None else dtype, name)
    if dtypes.issubdtype(target, np.inexact):
        frequencies = array(order, target) / (array(d, target) * n)
    else:
        frequencies = (array(order, float) / (array(d, float) * n)).astype(target)
    return placed(frequencies, device)


@remembered_as(direct.fftshift)
def fftshift(x: ArrayLike, axes: Any = None) -> Array:
    """The zero frequency moved to the middle of axes, all by default.

    out[(k + n // 2) mod n] = x[k].

    >>> jnp.fft.fftshift(jnp.arange(4))
    Array([2, 3, 0, 1], dtype=int32)
    """
    check_arraylike("fftshift", x)
    v, places = _shifted_axes(x, axes)
    return roll(v, [v.shape[a] // 2 for a in places], list(places)) if places else v


@remembered_as(direct.ifftshift)
def ifftshift(x: ArrayLike, axes: Any = None) -> Array:
    """The inverse of `fftshift`.

    Shape and dtype stay. ifftshift(fftshift(x)) = x.

    >>> jnp.fft.ifftshift(jnp.array([2, 3, 0, 1]))
    Array([0, 1, 2, 3], dtype=int32)
    """
    check_arraylike("ifftshift", x)
    v, places = _shifted_axes(x, axes)
    return roll(v, [-(v.shape[a] // 2) for a in places], list(places)) if places else v


def _shifted_axes(x: Any, axes: Any) -> tuple[Any, tuple[int, ...]]:
    v = array(x, copy=False)
    if axes is None:
        return v, tuple(range(v.ndim))
    return v, tuple([canonical_axes("fftshift", (a,), v.ndim)[0] for a in axes_given(axes)])

"""`primal.scipy.fft`: discrete cosine transforms of type 2 and their inverses.

y[k] = 2 Σⱼ x[j] cos(π k (2j + 1) / 2n), through one FFT of the even points followed by the odd ones
backwards (Makhoul, 1980). norm 'ortho' divides y[0] by √(4n) and the others by √(2n), which makes
the transform orthogonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import primal.numpy as jnp
from primal.base import dtypes
from primal.ir.trace import Array
from primal.ops.types import canonical_axes, static_int
from primal.runtime.refusals import in_words
from primal.scipy.operands import beside, inexact, of_parts


def _operand(name: str, x: Any, type: int, norm: Any) -> Any:
    if type != 2:
        raise NotImplementedError("Only DCT type 2 is implemented.")
    if norm not in (None, "backward", "ortho"):
        raise ValueError(
            f"primal.scipy.fft.{name}: norm={norm!r} is not implemented: expected None, "
            "'backward' or 'ortho'."
        )
    (y,) = inexact(name, x)
    return y.astype(np.float32) if dtypes.is_narrow_float(y.dtype) else y


def _resized(name: str, x: Any, n: Any, axis: int) -> Any:
    """Cut or filled up with zeros to n points along the axis."""
    have = x.shape[axis]
    n = have if n is None else static_int(f"{name} n", n)
    if n < 1:
        raise ValueError(f"primal.scipy.fft.{name}: expected at least one point, got n={n}.")
    if n <= have:
        return x[(slice(None),) * axis + (slice(0, n),)]
    return jnp.pad(x, [(0, n - have if i == axis else 0) for i in range(x.ndim)])


def _axes(name: str, axes: Any, rank: int) -> tuple[int, ...]:
    return canonical_axes(f"primal.scipy.fft.{name}", tuple(axes), rank)


def _turns(x: Any) -> tuple[Any, Any]:
    """cos and sin of πk/2n."""
    n = x.shape[-1]
    angle = np.pi * np.arange(n) / (2 * n)
    return beside(x, np.cos(angle)), beside(x, np.sin(angle))


def _real_dct(x: Any) -> Any:
    """Of real numbers along the last axis: 2 Re(e^(-iπk/2n) FFT(v)[k])."""
    v = jnp.concatenate([x[..., ::2], jnp.flip(x[..., 1::2], -1)], axis=-1)
    f = jnp.fft.fft(v, axis=-1)
    c, s = _turns(x)
    return 2 * (jnp.real(f) * c + jnp.imag(f) * s)


def _real_idct(y: Any) -> Any:
    """The inverse, of real numbers: FFT(v)[k] = e^(iπk/2n) (y[k] - i y[n-k]) / 2 with y[n] = 0."""
    n = y.shape[-1]
    mirrored = jnp.flip(y, -1)
    back = jnp.concatenate([jnp.zeros_like(y[..., :1]), mirrored[..., : n - 1]], axis=-1)
    c, s = _turns(y)
    f = of_parts(y * c + back * s, y * s - back * c) / 2
    v = jnp.real(jnp.fft.ifft(f, axis=-1))
    places = np.arange(n)
    return v[..., np.where(places % 2, n - 1 - places // 2, places // 2)]


def _weights(y: Any) -> Any:
    """What norm 'ortho' multiplies y[k] by."""
    n = y.shape[-1]
    out = np.full(n, (2 * n) ** -0.5)
    out[0] = (4 * n) ** -0.5
    return beside(y, out)


def _along(x: Any, axis: int, norm: Any, inverse: bool) -> Any:
    y = jnp.moveaxis(x, axis, -1)
    if norm == "ortho" and inverse:
        y = y / _weights(y)
    fun = _real_idct if inverse else _real_dct
    out = of_parts(fun(jnp.real(y)), fun(jnp.imag(y))) if y.dtype.kind == "c" else fun(y)
    if norm == "ortho" and not inverse:
        out = out * _weights(y)
    return jnp.moveaxis(out, -1, axis)


def _one(name: str, x: Any, type: int, n: Any, axis: int, norm: Any) -> Any:
    y = _operand(name, x, type, norm)
    (axis,) = _axes(name, (axis,), y.ndim)
    return _along(_resized(name, y, n, axis), axis, norm, name == "idct")


def _several(name: str, x: Any, type: int, s: Any, axes: Any, norm: Any) -> Any:
    y = _operand(name, x, type, norm)
    sizes = None if s is None else tuple(np.atleast_1d(s).tolist())
    if axes is None:
        axes = range(y.ndim) if sizes is None else range(y.ndim - len(sizes), y.ndim)
    places = _axes(name, np.atleast_1d(np.asarray(axes, int)).tolist(), y.ndim)
    if len(set(places)) < len(places):
        raise ValueError(f"repeated axis: {places}")
    if sizes is not None and len(sizes) != len(places):
        raise ValueError(
            f"primal.scipy.fft.{name}: expected as many sizes as axes, got s={sizes} and axes="
            f"{places}."
        )
    if not places:
        return jnp.asarray(x)
    for i, axis in enumerate(places):
        y = _resized(name, y, None if sizes is None else sizes[i], axis)
    for axis in places:
        y = _along(y, axis, norm, name == "idctn")
    return y


@in_words
def dct(
    x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The discrete cosine transform y[k] = 2 Σⱼ x[j] cos(π k (2j + 1) / 2n) along an axis.

    x is cut or filled up with zeros to n points; integers become floats, 16-bit floats float32.
    NotImplementedError for types other than 2, ValueError for norms other than None, 'backward' and
    'ortho'.

    >>> dct(jnp.array([1., 2.])).round(3)
    Array([ 6.   , -1.414], dtype=float32)
    """
    return _one("dct", x, type, n, axis, norm)


@in_words
def idct(
    x: Array, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The inverse of `dct`: x[j] = (y[0]/2 + Σ_{k>0} y[k] cos(π k (2j + 1) / 2n)) / n.

    Shapes, dtypes and errors are those of `dct`.

    >>> idct(dct(jnp.array([1., 2.]))).round(3)
    Array([1., 2.], dtype=float32)
    """
    return _one("idct", x, type, n, axis, norm)


@in_words
def dctn(
    x: Array,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """`dct` along several axes, all by default, cut or filled up with zeros to the lengths s.

    Without `axes`, s are the lengths of the last axes. ValueError where s and axes differ in
    number or an axis repeats; other errors as for `dct`.

    >>> dctn(jnp.ones((2, 2)))
    Array([[16.,  0.],
           [ 0.,  0.]], dtype=float32)
    """
    return _several("dctn", x, type, s, axes, norm)


@in_words
def idctn(
    x: Array,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of `dctn`.

    Shapes, dtypes and errors are those of `dctn`.

    >>> idctn(jnp.array([[16., 0.], [0., 0.]]))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    return _several("idctn", x, type, s, axes, norm)

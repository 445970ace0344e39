"""fft: discrete Fourier transforms of the last one to three dimensions.

FFT: y[k] = Σj x[j] exp(-2πi jk/n); IFFT its inverse (divided by n); RFFT: the first n // 2 + 1
values of the FFT of real x; IRFFT the inverse of that, n real values.
"""

from __future__ import annotations

import enum
import functools
import math
from typing import Any

import numpy as np

from primal.base.extensions import extension_of_scipy
from primal.ir.avals import Aval
from primal.ir.op import FFT, Op, by_kind
from primal.ir.trace import aval_of
from primal.ops.elementwise import conj, convert_element_type, mul
from primal.ops.shape import moveaxis
from primal.ops.spread import broadcast_in_dim
from primal.ops.words import linear


class FftType(enum.IntEnum):
    """Which transform.

    >>> lax.fft(jnp.ones(4), FftType.RFFT, (4,))
    Array([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


_REAL = (np.dtype(np.float32), np.dtype(np.float64))
_COMPLEX = (np.dtype(np.complex64), np.dtype(np.complex128))


def _type(x: Aval, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Aval:
    name, rank = fft_type.name, len(fft_lengths)
    if not 1 <= rank <= 3 or rank > x.ndim:
        raise ValueError(
            f"[fft] expected 1 to 3 lengths, at most one per dimension of shape {x.shape}, got "
            f"{fft_lengths}: must have at least as many input dimensions as fft_lengths. "
            "Transform further dimensions by another call."
        )
    wanted = _REAL if fft_type is FftType.RFFT else _COMPLEX
    if x.dtype not in wanted:
        raise ValueError(
            f"[fft] expected {name} input of {wanted[0].name} or {wanted[1].name}, got "
            f"{x.dtype.name}: {name} input must be {wanted[0].name} or {wanted[1].name}."
        )
    half = fft_lengths[-1] // 2 + 1 if fft_lengths[-1] else 0
    sizes = (*fft_lengths[:-1], half) if fft_type is FftType.IRFFT else fft_lengths
    if x.shape[x.ndim - rank :] != sizes:
        raise ValueError(
            f"[fft] expected {name} input whose last dimensions are {sizes}, got shape {x.shape} "
            f"with fft_lengths {fft_lengths}: minor dimensions must be equal to fft_lengths."
        )
    if fft_type is FftType.RFFT:
        return Aval((*x.shape[:-1], half), _COMPLEX[_REAL.index(x.dtype)])
    if fft_type is FftType.IRFFT:
        return Aval((*x.shape[:-1], fft_lengths[-1]), _REAL[_COMPLEX.index(x.dtype)])
    return Aval(x.shape, x.dtype)


# Elements from which SciPy transforms: several rows at a time, twice to four times as fast as NumPy
# in float32 and on stacks.
_LARGE = 1 << 14


@functools.cache
def _pocketfft() -> Any:
    """SciPy's transforms, or None where that SciPy has others: NumPy's give the same then.

    Not by `scipy.fft`, which takes 0.16 s to import (20,000 float32: 165 to 5 ms at first). From
    SciPy 1.18 on they are those of DUCC, pocketfft's successor, which are called alike.
    """
    try:
        return extension_of_scipy("fft._pocketfft.pypocketfft", "fft._duccfft.pyduccfft")
    except ImportError:
        return None


def _impl(x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    if not x.size:
        out = fft.infer(
            (Aval(x.shape, x.dtype),), {"fft_type": fft_type, "fft_lengths": fft_lengths}
        )
        return np.zeros(out.shape, out.dtype)
    # Both compute in the precision of their operand.
    axes = tuple(range(x.ndim - len(fft_lengths), x.ndim))
    pocketfft = None if x.size < _LARGE else _pocketfft()
    if pocketfft is not None:
        # The last arguments: forwards; 0 as it is, 2 divided by the number of points.
        if fft_type is FftType.RFFT:
            return pocketfft.r2c(x, axes, True, 0)
        if fft_type is FftType.IRFFT:
            return pocketfft.c2r(x, axes, fft_lengths[-1], False, 2)
        forwards = fft_type is FftType.FFT
        return pocketfft.c2c(x, axes, forwards, 0 if forwards else 2)
    if len(fft_lengths) == 1:
        return getattr(np.fft, fft_type.name.lower())(x, fft_lengths[0])
    if fft_type is FftType.RFFT:
        return np.fft.rfftn(x, axes=axes)
    if fft_type is FftType.IRFFT:
        return np.fft.irfftn(x, s=fft_lengths, axes=axes)
    return (np.fft.fftn if fft_type is FftType.FFT else np.fft.ifftn)(x, axes=axes)


def _transpose(ct: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    if fft_type in (FftType.FFT, FftType.IFFT):
        # The matrix exp(-2πi jk/n) is symmetric.
        return (fft(ct, fft_type=fft_type, fft_lengths=fft_lengths),)
    if fft_type is FftType.RFFT:
        # x[j] = Re Σk y[k] exp(-2πi jk/n): the inverse transform of conjugates, which takes all but
        # the first and, of even n, the last twice.
        weighted = _weighted(conj(ct), fft_lengths, math.prod(fft_lengths), 0.5)
        back = fft(weighted, fft_type=FftType.IRFFT, fft_lengths=fft_lengths)
        if x.aval.weak_type and not aval_of(back).weak_type:
            back = convert_element_type(back, new_dtype=x.dtype, weak_type=True)
        return (back,)
    # A value of the half spectrum stands for its conjugate too, but the first and, of even n, the
    # last: x[j] = Σk w[k]/n Re(y[k] exp(2πi jk/n)).
    back = conj(fft(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths))
    return (_weighted(back, fft_lengths, 1 / math.prod(fft_lengths), 2.0),)


def _weighted(y: Any, lengths: tuple[int, ...], factor: float, twice: float) -> Any:
    """Half a spectrum times a factor, and what stands for its conjugate as well times another."""
    aval = aval_of(y)
    weights = np.full(aval.shape[-1], factor * twice, _REAL[_COMPLEX.index(aval.dtype)])
    weights[:1] = factor
    if lengths[-1] % 2 == 0:
        weights[-1:] = factor
    dims = (len(aval.shape) - 1,)
    whole = broadcast_in_dim(weights, shape=aval.shape, broadcast_dimensions=dims)
    return mul(y, convert_element_type(whole, new_dtype=aval.dtype, weak_type=False))


def _batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
    (x,), (d,) = args, dims
    return fft(moveaxis(x, d, 0), **params), 0


def _hlo(b: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
    (out,) = b.outs
    if 0 in x.shape or 0 in out.shape:
        return b.full(out.shape, 0, out.dtype)
    return b.fft(x, fft_type.name, fft_lengths)


fft = Op(
    name="fft",
    kind=FFT,
    type=_type,
    impl=_impl,
    jvp=linear,
    transpose=_transpose,
    batch=_batch,
    shard=by_kind,
    hlo=_hlo,
    kernel=lambda k, x, *, fft_type, fft_lengths: k.fft(x, fft_type.name, fft_lengths),
)

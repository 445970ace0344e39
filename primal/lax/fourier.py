"""Fourier transforms as users call them: the kind by name, real operands made complex."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.ir.trace import Array, aval_of
from primal.ops.elementwise import convert_element_type
from primal.ops.fft import FftType as FftType
from primal.ops.fft import fft as fft_op
from primal.runtime.refusals import in_words


@in_words
def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform of the last len(fft_lengths) (at most 3) dimensions.

    'FFT': y[k] = Σj x[j] exp(-2πi jk/n). 'IFFT' is its inverse. 'RFFT' takes real x and gives the
    first n // 2 + 1 values; 'IRFFT' takes those and gives fft_lengths real ones. Integers become
    floats, and real operands of the others complex. ValueError where dtype, lengths and shape do
    not fit. TypeError for another kind.

    >>> lax.fft(jnp.ones(4), 'RFFT', (4,))
    Array([4.+0.j, 0.+0.j, 0.+0.j], dtype=complex64)
    """
    if isinstance(fft_type, str):
        if fft_type.upper() not in FftType.__members__:
            raise ValueError(
                f"[fft] expected one of {', '.join(FftType.__members__)}, got {fft_type!r}: "
                f"Unknown FFT type {fft_type!r}"
            )
        kind = FftType[fft_type.upper()]
    elif isinstance(fft_type, FftType):
        kind = fft_type
    else:
        raise TypeError(f"[fft] expected an FftType or its name, got {fft_type!r}.")
    lengths = tuple([int(n) for n in fft_lengths])
    dtype = aval_of(x).dtype
    if kind is FftType.RFFT and dtype.kind == "c":
        raise ValueError(
            f"[fft] expected real input for RFFT, got {dtype.name}: only real valued inputs "
            "supported for rfft. Use FFT, or take the real part."
        )
    wide = dtype.itemsize == 8 and dtype.kind in "fiu"
    if kind is FftType.RFFT and dtype.kind in "iub":
        wanted = np.dtype(np.float64 if wide else np.float32)
        x = convert_element_type(x, new_dtype=wanted, weak_type=False)
    elif kind is not FftType.RFFT and dtype.kind != "c":
        wanted = np.dtype(np.complex128 if wide else np.complex64)
        x = convert_element_type(x, new_dtype=wanted, weak_type=False)
    if not lengths:
        return x
    return fft_op(x, fft_type=kind, fft_lengths=lengths)

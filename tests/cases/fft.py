"""Rows of Fourier transforms."""

from __future__ import annotations

from typing import Any

from primal.ops.fft import FftType
from tests.cases.case import C64, C128, F16, F32, F64, Case, Wrong, shaped

SUMMED: dict[str, Any] = {"ulps": 16, "near": 16.0, "cause": "sums in another order"}


def row(kind: FftType, shape: tuple[int, ...], lengths: tuple[int, ...], **options: Any) -> Case:
    return Case(
        op="fft",
        name=f"{kind.name} of {shape} by {lengths}",
        operands=shaped(shape),
        params={"fft_type": kind, "fft_lengths": lengths},
        dtypes=(F32, F64) if kind is FftType.RFFT else (C64, C128),
        **SUMMED,
        **options,
    )


FORWARD, BACK, HALF, WHOLE = FftType.FFT, FftType.IFFT, FftType.RFFT, FftType.IRFFT
ROWS = [
    row(
        FORWARD,
        (2, 6),
        (6,),
        also=(shaped((6,)), shaped((0, 6)), shaped((1, 6))),
        errors=(
            Wrong(shaped((2, 5)), ValueError, "minor dimensions", dtype=C64),
            Wrong(shaped((2, 6)), ValueError, "must be complex64", dtype=F32),
            Wrong(shaped((6,)), ValueError, "at most one per", {"fft_lengths": (2, 6)}, C64),
        ),
    ),
    *[row(kind, (2, 3, 5), (3, 5)) for kind in (FORWARD, BACK)],
    row(BACK, (4, 2, 3), (4, 2, 3)),
    row(
        HALF,
        (2, 6),
        (6,),
        also=(shaped((1, 6)),),
        errors=(Wrong(shaped((2, 6)), ValueError, "must be float32", dtype=F16),),
    ),
    *[row(HALF, shape, n) for shape, n in (((5,), (5,)), ((2, 3, 4), (3, 4)), ((1,), (1,)))],
    *[
        row(WHOLE, shape, n)
        for shape, n in (
            ((2, 4), (6,)),
            ((3,), (5,)),
            ((2, 3, 3), (3, 4)),
            ((2, 3, 3), (3, 5)),
            ((1,), (1,)),
        )
    ],
]

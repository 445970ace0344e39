"""Rows of special functions."""

from __future__ import annotations

from typing import Any

from tests.cases.case import F32, F64, FLOATS, Case, X
from tests.cases.elementwise import APPROX, binary, unary

# Series and continued fractions of our own against SciPy's.
SERIES: dict[str, Any] = {"ulps": 64, "near": 1.0, "cause": "two series of one function"}
FEW = (F32, F64)

ROWS = [
    *[unary(op, FLOATS, **{**APPROX, "near": 1.0}) for op in ("erf", "erfc")],
    unary("erf_inv", FLOATS, -0.9, 0.9, **SERIES),
    unary("lgamma", FLOATS, 0.5, 4, **SERIES),
    unary("digamma", FLOATS, 0.5, 4, **SERIES),
    *[unary(op, FLOATS, **SERIES) for op in ("bessel_i0e", "bessel_i1e")],
    *[
        binary(op, FEW, 0.5, 4, special=False, order=1, costly=True, **SERIES)
        for op in ("igamma", "igammac")
    ],
    *[
        binary(op, FEW, 0.5, 4, special=False, wide=(1,), costly=True, **SERIES)
        for op in ("igamma_grad_a", "random_gamma_grad")
    ],
    Case(
        op="polygamma",
        operands=(X((2, 3), values=[0, 1, 2, 3, 1, 2]), X((2, 3), 0.5, 4)),
        dtypes=FEW,
        wide=(1,),
        costly=True,
        **SERIES,
    ),
    Case(
        op="zeta",
        operands=(X((2, 3), 1.5, 4), X((2, 3), 0.5, 4)),
        dtypes=FEW,
        wide=(1,),
        costly=True,
        **SERIES,
    ),
    Case(
        op="regularized_incomplete_beta",
        operands=(X((2, 3), 0.5, 3), X((2, 3), 0.5, 3), X((2, 3), 0.1, 0.9)),
        dtypes=FEW,
        wide=(2,),
        costly=True,
        **SERIES,
    ),
]

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
    *[
        Case(
            op="polynomial",
            name=f"degree {len(c) - 1}",
            operands=(X((2, 3), -1, 1),),
            also=((X((0, 3)),), (X((1, 1)),)),
            params={"coefficients": c},
            ulps=2,
            near=4.0,
            cause="engines round products once more, or not",
        )
        for c in ((1.5,), (0.5, -1.5), (0.25, 1.5, -0.5, 2.0))
    ],
    unary("digamma", FLOATS, 0.5, 4, **SERIES),
    *[unary(op, FLOATS, **SERIES) for op in ("bessel_i0e", "bessel_i1e")],
    *[
        binary(op, FEW, 0.5, 4, special=False, costly=True, **SERIES)
        for op in ("igamma", "igammac", "igamma_grad_a", "random_gamma_grad")
    ],
    *[
        Case(
            op="igamma_derivative",
            name="variate" if variate else "",
            operands=(X((2, 3), 0.5, 4), X((2, 3), 0.5, 4)),
            params={"order": 2, "variate": variate},
            dtypes=(F64,),
            costly=True,
            **SERIES,
        )
        for variate in (False, True)
    ],
    Case(
        op="polygamma",
        operands=(X((2, 3), values=[0, 1, 2, 3, 1, 2]), X((2, 3), 0.5, 4)),
        dtypes=FEW,
        wide=(1,),
        costly=True,
        **SERIES,
    ),
    *[
        Case(
            op=op,
            operands=(X((2, 3), 1.5, 4), X((2, 3), 0.5, 4)),
            params=params,
            dtypes=(F64,) if params else FEW,
            costly=True,
            **SERIES,
        )
        for op, params in (("zeta", {}), ("zeta_derivative", {"order": 1}))
    ],
    *[
        Case(
            op=op,
            operands=(X((2, 3), 0.5, 3), X((2, 3), 0.5, 3), X((2, 3), 0.1, 0.9)),
            params=params,
            dtypes=(F64,) if params else FEW,
            costly=True,
            **SERIES,
        )
        for op, params in (
            ("regularized_incomplete_beta", {}),
            ("betainc_derivative", {"orders": (1, 1)}),
        )
    ],
]

"""Rows of factorisations and solves."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tests.cases.case import C64, F16, F32, F64, I32, Case, Wrong, X, shaped

NARROW = (F32, F64, C64)
# The condition of the matrices below times a few roundings.
SOLVED = {"ulps": 200, "near": 4.0, "cause": "eliminations in another order", "tol": 1e-5}
STEADY = np.array([[4.0, 1, 0.5], [0.7, 3, -1], [-0.2, 0.6, 5]])
# Eigenvalues far apart and real, which keep their order when the matrix moves a little.
APART = np.array([[1.0, 0.1, 0.2], [0.1, 3, 0.1], [0.05, 0.2, 6]])
TWO = np.stack([STEADY, STEADY.T + 0.3])


def square(values: Any = STEADY) -> X:
    return X(np.shape(values), values=values)


ROWS = [
    *[
        Case(
            op="triangular_solve",
            name=f"{'left' if left else 'right'}, {'lower' if lower else 'upper'}"
            f"{', transposed' if trans else ''}{', conjugated' if conj else ''}"
            f"{', unit' if unit else ''}",
            operands=(square(), X((3, 2) if left else (2, 3))),
            also=((square(TWO), X((2, 3, 2) if left else (2, 2, 3))),),
            params={
                "left_side": left,
                "lower": lower,
                "transpose_a": trans,
                "conjugate_a": conj,
                "unit_diagonal": unit,
            },
            dtypes=NARROW,
            errors=(
                Wrong(shaped((3, 2), (3, 2)), (TypeError, ValueError), "expected"),  # type: ignore[arg-type]
                Wrong(shaped((3, 3), (2, 2)), ValueError, "rows|columns"),
                Wrong((X((3, 3)), X((3, 2), dtype=F64)), TypeError, "one dtype"),
            )
            if left and lower and not (trans or conj or unit)
            else (),
            **SOLVED,
        )
        for left, lower, trans, conj, unit in itertools.product(
            (True, False), (True, False), (True, False), (False,), (True, False)
        )
    ],
    Case(
        op="triangular_solve",
        name="adjoint",
        operands=(square(STEADY + 1j * TWO[1]), X((3, 2))),
        params={
            "left_side": True,
            "lower": True,
            "transpose_a": True,
            "conjugate_a": True,
            "unit_diagonal": False,
        },
        dtypes=(C64,),
        **SOLVED,
    ),
    Case(
        op="lu",
        operands=(square(),),
        also=((square(TWO),), (X((3, 2), values=STEADY[:, :2]),), (X((0, 0)),)),
        dtypes=NARROW,
        errors=(
            Wrong(shaped((3,)), (TypeError, ValueError), "expected"),  # type: ignore[arg-type]
            Wrong(shaped((3, 3)), TypeError, "complex128", dtype=I32),
            Wrong(shaped((3, 3)), TypeError, "complex128", dtype=F16),
        ),
        **SOLVED,
    ),
    Case(
        op="lu_pivots_to_permutation",
        operands=(X((3,), values=[2, 2, 3]),),
        also=((X((2, 2), values=[[1, 2], [3, 1]]),),),
        params={"permutation_size": 4},
        dtypes=(I32,),
        errors=(
            Wrong(shaped((3,)), TypeError, "int32"),
            Wrong((X((5,), dtype=I32),), ValueError, "permutation_size"),
        ),
    ),
    *[
        Case(
            op="solve",
            name="transposed" if trans else "",
            operands=(square(), X((3, 2))),
            also=((square(TWO), X((2, 3, 2))), (square(), X((3, 0)))),
            params={"transpose_a": trans},
            dtypes=NARROW,
            errors=(
                Wrong(shaped((3, 3), (2, 2)), ValueError, "3 rows"),
                Wrong((X((3, 3)), X((3, 2), dtype=F64)), TypeError, "one dtype"),
            ),
            **SOLVED,
        )
        for trans in (False, True)
    ],
    *[
        Case(
            op="eig",
            name=f"left {left}, right {right}",
            operands=(square(APART),),
            params={"compute_left_eigenvectors": left, "compute_right_eigenvectors": right},
            dtypes=NARROW,
            **SOLVED,
        )
        for left, right in ((False, False), (False, True), (True, True))
    ],
]

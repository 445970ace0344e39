"""Rows of factorisations and solves."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from primal.ops.elementwise import add, conj, mul, real
from primal.ops.linalg.common import adjoint, matmul
from primal.runtime.eager import as_array
from tests.cases.case import C64, F16, F32, F64, I32, Case, Flat, Wrong, X, shaped

NARROW = (F32, F64, C64)
# The condition of the matrices below times a few roundings.
SOLVED = {"ulps": 200, "near": 4.0, "cause": "eliminations in another order", "tol": 1e-5}
STEADY = np.array([[4.0, 1, 0.5], [0.7, 3, -1], [-0.2, 0.6, 5]])
# Eigenvalues far apart and real, which keep their order when the matrix moves a little.
APART = np.array([[1.0, 0.1, 0.2], [0.1, 3, 0.1], [0.05, 0.2, 6]])
# Two pairs of complex eigenvalues and a real one between them.
PAIRS = np.array([[1.0, 2, 0.3, 0.1, 0.2], [-1, 1.5, 0.2, 0.5, 0.1], [0.2, 0.4, 4, 0.2, 0.3],
                  [0.1, 0.3, 0.6, 8, 1], [0.5, 0.1, 0.4, -3, 9]])  # fmt: skip
FOUR = np.array([[2.0, 1, 0.5, -0.4], [0.8, 3, -1, 0.6], [-0.7, 0.9, 5, 1], [0.5, 1.2, 0.7, 1]])
TWO = np.stack([STEADY, STEADY.T + 0.3])


def square(values: Any = STEADY) -> X:
    return X(np.shape(values), values=values)


def on(base: Any, scale: float = 0.3) -> Any:
    """The operand becomes base + scale·x: near a matrix whose factors are well apart."""

    def around(f: Flat) -> Flat:
        return lambda x: f(add(mul(x, scale), full(base, x.dtype)))

    return around


def moduli(f: Flat) -> Flat:
    """Squares of moduli of results: what the phases of vectors do not change."""

    def call(x: Any) -> list[Any]:
        return [real(mul(y, conj(y))) for y in f(x)]

    return call


def positive(f: Flat) -> Flat:
    """The operand becomes x xᴴ + 3."""
    return lambda x: f(add(matmul(x, adjoint(x)), full(3 * np.eye(3), x.dtype)))


def hermitian(f: Flat) -> Flat:
    """The operand becomes (x + xᴴ)/10 + diag(1, 3, 6)."""

    def call(x: Any) -> list[Any]:
        part = mul(add(x, adjoint(x)), 0.1)
        return f(add(part, full(np.diag([1.0, 3, 6]), x.dtype)))

    return call


def full(values: Any, dtype: Any) -> Any:
    return as_array(np.asarray(values).astype(dtype))


ROWS = [
    Case(
        op="cholesky", operands=shaped((3, 3)), around=positive, dtypes=NARROW, **SOLVED
    ),
    Case(
        op="cholesky",
        name="refused",
        operands=(square(),),
        also=((X((0, 0)),), (square(TWO),)),
        dtypes=(F32,),
        order=0,
        vmap=False,
        errors=(
            Wrong(shaped((3, 2)), (TypeError, ValueError), "square"),  # type: ignore[arg-type]
            Wrong(shaped((3, 3)), TypeError, "complex128", dtype=I32),
        ),
        **SOLVED,
    ),
    *[
        # As they are, without what makes the rows below smooth.
        Case(
            op=op,
            name="of any dtype",
            operands=(square(APART),),
            also=((square(TWO),), (X((0, 0)),)),
            params=params,
            dtypes=(F32, F64),
            order=0,
            vmap=False,
            errors=(
                Wrong(shaped((3,)), (TypeError, ValueError), "expected"),  # type: ignore[arg-type]
                Wrong(shaped((3, 3)), TypeError, "complex128", dtype=F16),
            ),
            **SOLVED,
        )
        for op, params in (
            ("qr", {"pivoting": False, "full_matrices": True}),
            ("svd", {"full_matrices": True, "compute_uv": True, "algorithm": "gesdd"}),
            ("eigh", {"lower": True, "compute_eigenvectors": False}),
            ("schur", {"compute_schur_vectors": True}),
        )
    ],
    *[
        Case(
            op="qr",
            name=f"{shape}{', full' if whole else ''}",
            operands=shaped(shape),
            params={"pivoting": False, "full_matrices": whole},
            around=on(APART[: shape[0], : shape[1]]),
            dtypes=NARROW,
            **SOLVED,
        )
        for shape, whole in (
            ((3, 2), False), ((3, 3), False), ((2, 3), False), ((3, 2), True), ((3, 1), True),
        )
    ],
    *[
        Case(
            op="qr",
            name=f"pivoting {shape}{', full' if whole else ''}",
            operands=shaped(shape),
            params={"pivoting": True, "full_matrices": whole},
            around=on(APART[: shape[0], : shape[1]]),
            dtypes=NARROW,
            **SOLVED,
        )
        for shape, whole in (((3, 3), False), ((2, 3), False), ((3, 2), True))
    ],
    *[
        Case(
            op="geqrf",
            name=f"{shape}",
            operands=shaped(shape),
            around=on(APART[: shape[0], : shape[1]]),
            dtypes=NARROW,
            **SOLVED,
        )
        for shape in ((3, 2), (3, 3), (2, 3))
    ],
    Case(
        op="geqrf", name="one row", operands=shaped((1, 1)), also=(shaped((1, 2)), shaped((0, 2))),
        dtypes=(F32, F64), **SOLVED,
    ),
    *[
        Case(
            op="householder_product",
            name=name,
            operands=(X(shape), X((count,), 0.1, 0.5)),
            dtypes=NARROW,
            errors=(
                Wrong(shaped((2, 3), (2,)), ValueError, "as many rows"),
                Wrong(shaped((3, 2), (3,)), ValueError, "taus"),
                # Of several faults dimensions come first, then sizes, then dtypes.
                Wrong(shaped((2, 3), ()), TypeError, "at least 1 dimensions"),
                Wrong(shaped((2, 3), (2, 2)), TypeError, "leading dimensions"),
                Wrong((X((2, 3)), X((2,), dtype=F64)), ValueError, "as many rows"),
            )
            if not name
            else (),
            **SOLVED,
        )
        for name, shape, count in (("", (3, 2), 2), ("square", (3, 3), 3), ("fewer", (4, 3), 1))
    ],
    *[
        Case(
            op="svd",
            name=f"{shape}{', vectors' if vectors else ''}{', full' if whole else ''}",
            operands=shaped(shape),
            params={"full_matrices": whole, "compute_uv": vectors, "algorithm": "gesdd"},
            around=on(np.array([[3.0, 0.3, 0.1], [0.2, 1, 0.2], [0.1, 0.4, 0.3]])[
                : shape[0], : shape[1]
            ], 0.05),
            # The phases of complex vectors are LAPACK's choice, which derivatives do not follow.
            dtypes=(F32, F64) if vectors else NARROW,
            order=0 if whole and shape[0] != shape[1] else 2,
            **SOLVED,
        )
        for shape, vectors, whole in (
            ((3, 2), False, False),
            ((3, 2), True, False),
            ((2, 3), True, False),
            ((3, 3), True, True),
            ((3, 2), True, True),
        )
    ],
    Case(
        op="svd",
        name="gesvd",
        operands=shaped((3, 2)),
        params={"full_matrices": False, "compute_uv": False, "algorithm": "gesvd"},
        around=on(np.array([[3.0, 0.3], [0.2, 1], [0.1, 0.4]]), 0.05),
        dtypes=NARROW,
        **SOLVED,
    ),
    *[
        Case(
            op="eigh",
            name=f"{'lower' if lower else 'upper'}{', vectors' if vectors else ''}",
            operands=shaped((3, 3)),
            params={"lower": lower, "compute_eigenvectors": vectors},
            around=hermitian,
            dtypes=(F32, F64) if vectors else NARROW,
            **SOLVED,
        )
        for lower, vectors in ((True, False), (True, True), (False, True))
    ],
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
                Wrong(shaped((3, 3), (2, 3, 3)), TypeError, "leading dimensions"),
                Wrong((X((3, 3)), X((2, 2), dtype=F64)), ValueError, "rows|columns"),
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
    Case(
        op="lu_pivots_to_permutation",
        name="of as many",
        operands=(X((3,), values=[1, 1, 2]),),
        also=((X((2, 3), values=[[1, 2, 2], [2, 1, 2]]),),),
        params={"permutation_size": 3},
        dtypes=(I32,),
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
    Case(
        op="hessenberg",
        operands=(square(),),
        also=((square(FOUR),), (square(TWO),), (X((1, 1)),), (X((0, 0)),), (X((0, 2, 2)),)),
        dtypes=(F32, F64),
        errors=(
            Wrong(shaped((3, 2)), ValueError, "square"),
            Wrong(shaped((3, 3)), TypeError, "complex128", dtype=I32),
        ),
        **SOLVED,
    ),
    *[
        Case(
            op="tridiagonal",
            name="lower" if lower else "upper",
            operands=(square(),),
            also=((square(FOUR),), (square(TWO),), (X((1, 1)),), (X((0, 2, 2)),)),
            params={"lower": lower},
            dtypes=(F32, F64),
            errors=(
                Wrong(shaped((3, 2)), ValueError, "square"),
                Wrong(shaped((0, 0)), ValueError, "at least one row"),
                Wrong(shaped((3, 3)), TypeError, "complex128", dtype=F16),
            ),
            **SOLVED,
        )
        for lower in (True, False)
    ],
    *[
        # The last reflection of a complex matrix turns a phase, of which reals have none.
        Case(
            op=op,
            name=f"complex{'' if params.get('lower', True) else ', upper'}",
            operands=(square(FOUR + 1j * FOUR[::-1] / 3),),
            params=params,
            dtypes=(C64,),
            **SOLVED,
        )
        for op, params in (
            ("hessenberg", {}), ("tridiagonal", {"lower": True}), ("tridiagonal", {"lower": False})
        )
    ],
    Case(
        op="ormqr",
        operands=(X((3, 2)), X((2,), 0.1, 0.5), X((3, 4))),
        also=(
            (X((2, 3, 2)), X((2, 2), 0.1, 0.5), X((2, 3, 1))),
            (X((3, 3)), X((1,), 0.1, 0.5), X((3, 2))),
            (X((3, 2)), X((0,)), X((3, 2))),
        ),
        params={"left": True, "transpose": False},
        dtypes=NARROW,
        wide=(2,),
        errors=(
            Wrong(shaped((3, 2), (2,), (2, 2)), ValueError, "3 rows"),
            Wrong(shaped((3, 2), (), (3, 2)), TypeError, "at least 1 dimensions"),
            Wrong((X((3, 2)), X((2,)), X((2, 2), dtype=F64)), ValueError, "3 rows"),
            Wrong(shaped((3, 2), (3,), (3, 2)), ValueError, "taus"),
            Wrong((X((3, 2)), X((2,)), X((3, 2), dtype=F64)), TypeError, "one dtype"),
        ),
        **SOLVED,
    ),
    *[
        Case(
            op="ormqr",
            name=f"{'left' if left else 'right'}{', adjoint' if trans else ''}",
            operands=(X((3, 2)), X((2,), 0.1, 0.5), X((3, 4) if left else (4, 3))),
            params={"left": left, "transpose": trans},
            dtypes=NARROW,
            wide=(2,),
            **SOLVED,
        )
        for left, trans in ((True, True), (False, False), (False, True))
    ],
    *[
        Case(
            op="schur",
            name=f"{name}{'' if vectors else ', values'}",
            operands=shaped((len(base), len(base))),
            params={"compute_schur_vectors": vectors},
            around=on(base, 0.05),
            # The phases of complex vectors are LAPACK's choice, which derivatives do not follow.
            dtypes=(F32, F64),
            **SOLVED,
        )
        for name, base, vectors in (
            ("real eigenvalues", APART, True),
            ("pairs", PAIRS, True),
            ("pairs", PAIRS, False),
        )
    ],
    Case(
        op="schur",
        name="complex",
        operands=(square(STEADY + 1j * TWO[1]),),
        also=((X((0, 0)),),),
        params={"compute_schur_vectors": False},
        around=moduli,
        dtypes=(C64,),
        **SOLVED,
    ),
    *[
        Case(
            op="tridiagonal_solve",
            name="perturbed" if perturb else "",
            operands=(*shaped((3,)), X((3,), 4.0, 6.0), *shaped((3,), (3, 2))),
            also=(
                (*shaped((2, 3)), X((2, 3), 4.0, 6.0), *shaped((2, 3), (2, 3, 2))),
                (*shaped((1,)), X((1,), 4.0, 6.0), *shaped((1,), (1, 2))),
                shaped((0,), (0,), (0,), (0, 2)),
            ),
            params={"perturb_singular": perturb},
            dtypes=NARROW,
            errors=(
                Wrong(shaped((2,), (3,), (2,), (3, 2)), TypeError, "one shape"),
                Wrong(shaped((3,), (3,), (3,), (3,)), TypeError, "two dimensions"),
                Wrong(shaped((3,), (3,), (3,), (2, 2)), TypeError, "rows"),
                Wrong(shaped((3,), (3,), (3,), (3, 2)), TypeError, "complex128", dtype=I32),
            ),
            **SOLVED,
        )
        for perturb in (False, True)
    ],
    Case(
        op="cholesky_update",
        operands=(square(STEADY), X((3,))),
        also=(
            (square(TWO), X((2, 3))),
            (X((0, 0)), X((0,))),
        ),
        dtypes=(F32, F64),
        errors=(
            Wrong(shaped((3, 3), (1, 3)), TypeError, "leading dimensions"),
            Wrong(shaped((3, 2), (3,)), ValueError, "square"),
            Wrong(shaped((3, 3), (3,)), TypeError, "float64", dtype=C64),
        ),
        **SOLVED,
    ),
]

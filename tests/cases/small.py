"""Empty operands and operands of size 1, of ops whose rows are made in groups."""

from __future__ import annotations

import dataclasses

from tests.cases.case import I32, Case, X, shaped

Operands = tuple[X, ...]
START = X((), 0, 3, dtype=I32)


def _alike(row: Case, shape: tuple[int, ...]) -> Operands:
    """The operands of a row, each in that shape."""
    return tuple([dataclasses.replace(x, shape=shape, values=None) for x in row.operands])


# Every operand in one shape.
ALIKE = (
    "betainc_derivative", "igamma_derivative", "name", "regularized_incomplete_beta", "zeta",
    "zeta_derivative",
)  # fmt: skip
# The operands, where shapes go together.
SHAPED: dict[str, tuple[Operands, ...]] = {
    **dict.fromkeys(("argmax", "argmin"), (
        (X((0, 3, 1), distinct=True),), (X((1, 1, 1), distinct=True),),
    )),
    "bitcast_convert_type": (shaped((0, 3)), shaped((1, 1))),
    "cholesky": (shaped((1, 1)),),
    "clamp": (shaped((), (1, 1), ()),),
    "convert_element_type": (shaped((1, 1)),),
    "dynamic_update_slice": ((X((1, 1)), X((1, 1)), START, START),),
    "householder_product": (shaped((2, 0), (0,)),),
    "lu_pivots_to_permutation": ((X((0,), 0, 3, dtype=I32),), (X((1,), 0, 3, dtype=I32),)),
    "solve": (shaped((1, 1), (1, 1)),),
    "triangular_solve": (shaped((0, 0), (0, 2)), shaped((1, 1), (1, 1))),
    "cholesky_update": (shaped((0, 0), (0,)), shaped((1, 1), (1,))),
    "eig": (shaped((0, 0)), shaped((1, 1)), shaped((0, 2, 2))),
    "eigh": (shaped((0, 0)), shaped((1, 1))),
    "lu": (shaped((0, 2)), shaped((1, 1))),
    "polygamma": (shaped((0, 3), (0, 3)), (X((1, 1), values=[1]), X((1, 1), 0.5, 4))),
    "schur": (shaped((0, 0)), shaped((1, 1))),
    "svd": (shaped((0, 2)), shaped((1, 1))),
    "optimization_barrier": (shaped((0, 3), (1,)),),
}  # fmt: skip
ROWS = [
    Case(
        op="dynamic_slice", name="of one column", operands=(X((4, 1)), START, START),
        params={"slice_sizes": (0, 1)},
    ),
    Case(
        op="slice", name="of one", operands=shaped((1, 1)),
        params={"start_indices": (0, 0), "limit_indices": (1, 1), "strides": None},
    ),
    Case(
        op="top_k", name="of one", operands=(X((3, 1), distinct=True),),
        also=((X((0, 1), distinct=True),),), params={"k": 1, "axis": 1},
    ),
]  # fmt: skip


def with_small(row: Case) -> Case:
    """The row with small shapes besides its own."""
    more = SHAPED.get(row.op, ())
    if row.op in ALIKE:
        more = tuple([_alike(row, shape) for shape in ((0, 3), (1, 1))])
    return dataclasses.replace(row, also=(*row.also, *more))

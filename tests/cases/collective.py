"""Rows of communication over a named axis, which a surrounding vmap binds: 4 examples in front."""

from __future__ import annotations

from typing import Any

from primal.ops.elementwise import convert_element_type, mul
from primal.transforms.batch import Axis, batch_flat, materialize
from tests.cases.case import BF16, BOOL, C64, F32, F64, I32, Case, Flat, Wrong, X, shaped

SIZE = 4
NAME = "i"


def over(dim: int = 0, inner: bool = False) -> Any:
    """f over the named axis; with `inner`, over an axis without a name inside of it."""

    def around(f: Flat) -> Flat:
        def examples(*xs: Any) -> list[Any]:
            if not inner:
                return f(*xs)
            axis = Axis(None, 2)
            outs, dims = batch_flat(f, axis, xs, [x.ndim - 1 for x in xs])
            return [materialize(o, axis, d, 0) for o, d in zip(outs, dims, strict=True)]

        def call(*xs: Any) -> list[Any]:
            axis = Axis(NAME, SIZE)
            outs, dims = batch_flat(examples, axis, xs, [dim] * len(xs))
            return [materialize(o, axis, d, 0) for o, d in zip(outs, dims, strict=True)]

        return call

    return around


def row(op: str, shape: tuple[int, ...], **options: Any) -> list[Case]:
    """The op on examples of that shape, and inside of another vmap."""
    options = {"dtypes": (F32, BF16, C64, I32), "ulps": 4, "near": 8.0, "cause": "sums", **options}
    plain = Case(op=op, operands=shaped((SIZE, *shape)), around=over(), **options)
    options = {**options, "errors": (), "dtypes": (F32,)}
    return [
        plain,
        Case(op=op, name="last", operands=shaped((*shape, SIZE)),
             around=over(len(shape)), **options),
        Case(op=op, name="inside", operands=shaped((SIZE, *shape, 2)),
             around=over(inner=True), **options),
    ]  # fmt: skip


def _with_index(f: Flat) -> Flat:
    """axis_index has no operand: it scales one here."""

    def scaled(x: Any) -> list[Any]:
        (i,) = f()
        return [mul(convert_element_type(i, new_dtype=x.dtype, weak_type=False), x)]

    return over()(scaled)


AXES = {"axes": (NAME,)}
ROWS = [
    *row(
        "psum",
        (2, 3),
        params=AXES,
        errors=(Wrong(shaped((SIZE, 2)), TypeError, "dtype", dtype=BOOL),),
    ),
    *[c for op in ("pmax", "pmin") for c in row(op, (2, 3), params=AXES, dtypes=(F32,))],
    *row("all_gather", (2, 3), params={**AXES, "dim": 1, "size": SIZE}),
    *row(
        "reduce_scatter",
        (3, SIZE),
        params={**AXES, "dim": 1, "size": SIZE},
        errors=(Wrong(shaped((SIZE, 3, 5)), ValueError, "size of the axis"),),
    ),
    *row(
        "ppermute",
        (2,),
        params={**AXES, "perm": ((0, 1), (1, 2), (3, 0))},
        errors=(Wrong(shaped((SIZE, 2)), ValueError, "distinct", {"perm": ((0, 1), (0, 2))}),),
    ),
    *row(
        "all_to_all",
        (SIZE, 3, 2),
        params={**AXES, "split": 0, "concat": 1},
        errors=(Wrong(shaped((SIZE, 3, 2, 2)), ValueError, "size of the axis"),),
    ),
    Case(
        op="axis_index",
        operands=(X((SIZE, 3)),),
        params=AXES,
        around=_with_index,
        dtypes=(F32, F64),
        vmap=True,
    ),
]

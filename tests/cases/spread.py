"""Rows of broadcast_in_dim and reduce_sum."""

from typing import Any

from primal.ops.elementwise import convert_element_type, mul
from primal.ops.shape import iota
from tests.cases.case import BOOL, F8, F32, F64, I4, I32, NUMBERS, Case, Flat, Wrong, X, shaped


def spread(name: str, x: tuple[int, ...], shape: tuple[int, ...], dims: tuple[int, ...]) -> Case:
    return Case(
        op="broadcast_in_dim",
        name=name,
        operands=shaped(x),
        params={"shape": shape, "broadcast_dimensions": dims},
        dtypes=(*NUMBERS, BOOL, F8, I4) if name == "between" else NUMBERS[:2],
    )


def of_counts(*shape: int) -> Any:
    """The sum of integers that count, whose value is known; it scales an operand."""

    def around(f: Flat) -> Flat:
        def scaled(x: Any) -> list[Any]:
            (total,) = f(iota(dtype=I32, shape=shape, dimension=0))
            return [mul(convert_element_type(total, new_dtype=x.dtype, weak_type=False), x)]

        return scaled

    return around


ROWS = [
    spread("between", (2, 3), (2, 4, 3), (0, 2)),
    spread("scalar", (), (2, 3), ()),
    spread("grows", (1, 3), (2, 3), (0, 1)),
    spread("grows and new", (3, 1), (2, 3, 4), (1, 2)),
    spread("nothing", (2,), (0, 2), (1,)),
    Case(
        op="broadcast_in_dim",
        name="same",
        params={"shape": (2, 3), "broadcast_dimensions": (0, 1)},
        errors=(
            Wrong(shaped((3,)), TypeError, "one broadcast dimension per"),
            Wrong(shaped((3, 2)), TypeError, "sizes to be 1", {"broadcast_dimensions": (0, 1)}),
            Wrong(shaped((3, 2)), TypeError, "increasing", {"broadcast_dimensions": (1, 0)}),
            Wrong(shaped((3,)), TypeError, "subset of output", {"broadcast_dimensions": (5,)}),
        ),
    ),
    *[
        Case(
            op="reduce_sum",
            name=f"over {axes}",
            operands=shaped((2, 3, 4)),
            also=(shaped((2, 0, 1)), shaped((1, 1, 1))),
            params={"axes": axes},
            dtypes=NUMBERS if axes == (1,) else NUMBERS[:1],
            ulps=4,
            near=8.0,
            cause="sums in another order",
            special=True,
            errors=(
                Wrong(shaped((2,)), ValueError, "out of bounds", {"axes": (1,)}),
                Wrong(shaped((2,)), ValueError, "distinct", {"axes": (0, 0)}),
                Wrong(shaped((2,)), TypeError, "dtype", {"axes": (0,)}, BOOL),
            )
            if axes == (1,)
            else (),
        )
        for axes in ((1,), (0,), (0, 2), (0, 1, 2), ())
    ],
    Case(
        op="reduce_sum",
        name="of a negative axis",
        operands=(X((2, 3)),),
        params={"axes": ()},
        errors=(Wrong(shaped((2, 3)), ValueError, "axis 2", {"axes": (2,)}),),
    ),
    *[
        Case(
            op="reduce_sum",
            name=f"of counts {shape}",
            params={"axes": tuple(range(len(shape)))},
            around=of_counts(*shape),
            dtypes=(F32, F64),
        )
        for shape in ((5,), (3, 2))
    ],
]

"""Rows of random bits. Keys go in and out as the words they are made of."""

from __future__ import annotations

from typing import Any

from primal.base.dtypes import KeyType, uint64
from primal.ops.bits.keys import random_unwrap, random_wrap
from tests.cases.case import F32, I32, I64, U32, Case, Flat, Wrong, X

WORD = {"low": 0, "high": 2**31}
IMPL = "threefry2x32"


def with_keys(*places: int) -> Any:
    """Those operands are wrapped into keys, if they are words; keys come out as words."""

    def around(f: Flat) -> Flat:
        def call(*xs: Any) -> list[Any]:
            args = [random_wrap(x, impl=IMPL) if i in places and x.dtype == U32 else x
                    for i, x in enumerate(xs)]
            return [random_unwrap(o) if isinstance(o.dtype, KeyType) else o for o in f(*args)]

        return call

    return around


KEY = X((2,), **WORD)
ROWS = [
    Case(
        op="threefry2x32",
        costly=True,
        operands=(X((), **WORD), X((), **WORD), X((2, 3), **WORD), X((2, 3), **WORD)),
        also=((X((1, 3), **WORD), X((1, 3), **WORD), X((2, 3), **WORD), X((), **WORD)),),
        dtypes=(U32,),
        errors=(Wrong((X((2,), dtype=I32),) * 4, TypeError, "uint32"),),
    ),
    Case(
        op="random_wrap",
        operands=(KEY,),
        also=((X((3, 2), **WORD),), (X((0, 2), **WORD),)),
        params={"impl": IMPL},
        dtypes=(U32,),
        around=with_keys(),
        errors=(
            Wrong((X((2,), dtype=I32),), TypeError, "uint32"),
            Wrong((X((3,), dtype=U32),), TypeError, "last dimension 2"),
        ),
    ),
    Case(
        op="random_unwrap",
        operands=(KEY,),
        also=((X((3, 2), **WORD),),),
        dtypes=(U32,),
        around=with_keys(0),
    ),
    Case(
        op="convert_element_type",
        name="of keys",
        operands=(KEY,),
        params={"new_dtype": KeyType(IMPL, uint64), "weak_type": False},
        dtypes=(U32,),
        around=with_keys(0),
        order=0,
        errors=(Wrong((KEY,), ValueError, "number dtypes", {"new_dtype": F32}, U32),),
    ),
    Case(
        op="random_clone",
        operands=(KEY,),
        also=((X((3, 2), **WORD),),),
        dtypes=(U32,),
        around=with_keys(0),
    ),
    Case(
        op="random_seed",
        operands=(X((3,), -9, 99),),
        also=((X(()),),),
        params={"impl": IMPL},
        dtypes=(I32, U32, I64),
        around=with_keys(),
        errors=(Wrong((X((2,), dtype=F32),), TypeError, "integer seeds"),),
    ),
    Case(
        op="random_fold_in",
        operands=(KEY, X((), 0, 99, dtype=U32)),
        also=((X((3, 2), **WORD), X((3,), 0, 99)), (KEY, X((3,), 0, 99))),
        params={"impl": IMPL},
        dtypes=(U32,),
        around=with_keys(0),
        errors=(Wrong((X((2,), dtype=U32), X((), dtype=I32)), TypeError, "uint32"),),
    ),
    *[
        Case(
            op="random_split",
            name="partitionable" if new else "original",
            operands=(KEY,),
            also=((X((3, 2), **WORD),),),
            params={"shape": (2, 3), "partitionable": new, "impl": IMPL},
            dtypes=(U32,),
            around=with_keys(0),
        )
        for new in (False, True)
    ],
    *[
        Case(
            op="random_bits",
            name=f"{width} bits, {'partitionable' if new else 'original'}",
            operands=(KEY,),
            also=((X((3, 2), **WORD),),) if width in (32, 64) else (),
            params={"bit_width": width, "shape": shape, "partitionable": new},
            dtypes=(U32,),
            around=with_keys(0),
            errors=(Wrong((X((2,), dtype=U32),), TypeError, "bit width", {"bit_width": 7}),)
            if width == 32
            else (),
        )
        for width, shape in ((32, (2, 3)), (64, (5,)), (16, (3,)), (8, (7,)))
        for new in (False, True)
    ],
]

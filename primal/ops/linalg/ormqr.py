"""ormqr: products with the unitary Q that reflections packed as by geqrf make, never made itself.

Q c, Qᴴ c, c Q or c Qᴴ. Linear in c.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.ir.avals import Aval
from primal.ir.op import LINALG, Op, Word, by_kind
from primal.ir.trace import ZERO
from primal.ops.linalg._lapack import by_columns, on_stack
from primal.ops.linalg.common import (
    batch_stacks,
    check_dtypes,
    check_stacks,
    conjugate,
    weak_together,
)


@weak_together
def _type(a: Aval, taus: Aval, c: Aval, *, left: bool, transpose: bool) -> Aval:
    check_stacks("ormqr", (a, 2), (taus, 1), (c, 2))
    lead, (m, n) = a.shape[:-2], a.shape[-2:]
    if taus.shape[:-1] != lead or taus.shape[-1] > min(m, n):
        raise ValueError(
            f"[ormqr] expected taus of the leading dimensions of a and at most {min(m, n)} of "
            f"them, got shapes {a.shape} and {taus.shape}."
        )
    if c.shape[:-2] != lead or c.shape[-2 if left else -1] != m:
        raise ValueError(
            f"[ormqr] expected c with {m} {'rows' if left else 'columns'} and the leading "
            f"dimensions of a, got shapes {a.shape} and {c.shape}."
        )
    check_dtypes("ormqr", a, taus, c)
    return Aval(c.shape, c.dtype)


def _impl(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    if not c.size or not taus.size:
        return np.array(c)
    trans = ("C" if c.dtype.kind == "c" else "T") if transpose else "N"
    k, (m, n) = taus.shape[-1], c.shape[-2:]
    q, x = by_columns(a[..., :k]), by_columns(c)
    taus = np.ascontiguousarray(taus).reshape(len(x), k)
    # 64 columns at a time is more than LAPACK takes, plus its table of 65 by 64.
    room = 64 * max(m, n) + 65 * 64
    sizes, work = (m, n, k), ((room * c.itemsize,), room)
    side, rows = "L" if left else "R", a.shape[-2]
    on_stack("ormqr", c.dtype, len(x), side, trans, *sizes, q, rows, taus, x, m, *work)
    return x.swapaxes(-1, -2).reshape(c.shape)


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
    (a, taus, c), (da, dtaus, dc) = primals, tangents
    if da is not ZERO or dtaus is not ZERO:
        raise NotImplementedError(
            "[ormqr] expected tangents of c alone, got some of the reflections. Differentiate qr "
            "and a product, whose factors are what reflections serve for."
        )
    return ormqr(a, taus, c, **params), ormqr(a, taus, dc, **params)


def _transpose(ct: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    # Cotangents are transposed, not conjugated: Qᵀ ct is the conjugate of Qᴴ applied to ct's.
    back = ormqr(a, taus, conjugate(ct), left=left, transpose=not transpose)
    return None, None, conjugate(back)


def _hlo(b: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    if 0 in c.shape or 0 in taus.shape:
        return c
    k, lead = taus.shape[-1], a.shape[:-2]
    if k < a.shape[-1]:
        a = b.slice(a, (0,) * a.ndim, (*lead, a.shape[-2], k))
    return b.lapack(
        "ormqr",
        [a, taus, c],
        [c.aval],
        attributes={"left": left, "transpose": transpose},
        aliases={2: 0},
    )[0]


ormqr = Op(
    name="ormqr",
    kind=LINALG,
    type=_type,
    impl=_impl,
    jvp=_jvp,
    transpose=_transpose,
    batch=Word(batch_stacks),
    shard=by_kind,
    hlo=_hlo,
    kernel=lambda k, a, taus, c, **params: k.ormqr(a, taus, c, **params),
)

"""Eager calls on floats of at most 32 bits, which SciPy's functions compute in float64.

Their results are within half a unit, where the operations round each of their steps (Ci 7,600 units
near its zeros), and take a third to a fortieth of the time. Of float64 the functions are used that
are no worse there than the operations, by mpmath: hyp1f1, ndtri and rel_entr. Other operands, and
results that are not finite, are left to the operations, which say what happens at the ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.dtypes import to_inexact_dtype
from primal.base.native import is_finite
from primal.numpy.direct.operands import FLOAT64, Direct, by_wide, elementwise
from primal.ops.special.terms import scipys
from primal.runtime.array import ArrayImpl


def in_doubles(
    name: str, positive: bool = False, of_double: bool = False, whole: bool = False
) -> Direct:
    """SciPy's function of that name where its operands are `positive`, or no result is 0, whose
    sign is then the operations' to say; `of_double`: of float64 too. The first operand is a `whole`
    number."""

    def run(*xs: Any) -> Any:
        if whole and not (is_finite(xs[0]) and np.all(xs[0] == np.floor(xs[0]))):
            return None
        if positive and not all(np.minimum.reduce(x, None, initial=np.inf) > 0 for x in xs):
            return None
        out = scipys(name)(*xs)
        for part in out if type(out) is tuple else (out,):
            if not is_finite(part) or not (positive or np.count_nonzero(part) == np.size(part)):
                return None
        return out

    forms = elementwise(True, f=run, e=by_wide(run))

    def direct(*args: Any) -> Callable[..., Any] | None:
        arrays = [x.aval.dtype for x in args if type(x) is ArrayImpl]
        if not of_double and FLOAT64 in map(to_inexact_dtype, arrays):
            return None
        return forms(*args)

    return direct

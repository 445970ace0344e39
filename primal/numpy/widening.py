"""Remembered programs of floats of two bytes in float32, rounded after each operation.

NumPy and ml_dtypes compute these one by one, the extension casts them in vectors; but a cast of
every operand and result takes longer than the operation. So values stay in float32 from one
operation to the next, where they are rounded in place, and become narrow where something else reads
them. Only operations that float32 rounds once as the narrow dtype would, or not at all, are written
so: every call gives the bits that the operations give one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base.native import BFLOAT16, FLOAT32, IN_VECTORS, SAME_AS_WIDE, widened
from primal.ir.jaxpr import Atom, ClosedJaxpr, Eqn, Var
from primal.ir.op import SHAPE
from primal.ir.trace import Literal
from primal.numpy.phrases import function_of
from primal.ops import elementwise as ops
from primal.ops.choose import convert_element_type, select_n
from primal.ops.contract import dot_general
from primal.ops.elementwise.make import IN_FLOAT32
from primal.ops.spread import broadcast_in_dim

Rounded = dict[Var, Any]

# What rounds nothing, so that float32 has the same results.
_EXACT = frozenset({ops.abs, ops.neg, ops.max, ops.min, ops.is_finite, select_n})


def widen(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, Rounded]:
    """The program with operations in float32, and the results that are to be rounded, with the
    dtypes whose numbers they become."""
    if not any(_is_narrow(v) for eqn in closed.eqns for v in (*eqn.invars, *eqn.outvars)):
        return closed, {}
    writer = _Writer()
    for eqn in closed.eqns:
        writer.add(eqn)
    for v in closed.jaxpr.outvars:
        writer.narrow(v)
    # What is narrow at once is rounded by that.
    read = {v for e in writer.eqns if e not in writer.last for v in e.invars if type(v) is Var}
    rounded = {v: dtype for v, dtype in writer.rounded.items() if v in read}
    return closed.replace(jaxpr=closed.jaxpr.replace(eqns=writer.eqns)), rounded


def _is_narrow(v: Atom) -> bool:
    return v.aval.dtype in IN_VECTORS


class _Writer:
    def __init__(self) -> None:
        self.eqns: list[Eqn] = []
        self.rounded: Rounded = {}
        self.wide: dict[Any, Any] = {}
        self.pending: dict[Any, Any] = {}  # what is there in float32 only
        self.last: set[Eqn] = set()  # the casts of these
        # Numbers repeated, which are views: written in the dtypes in which they are read.
        self.filled: dict[Any, Eqn] = {}
        self.views: set[Any] = set()  # those written as they are

    def add(self, eqn: Eqn) -> None:
        ins, how = eqn.invars, self._is_widened(eqn)
        if eqn.op is broadcast_in_dim and type(ins[0]) is Literal and _is_narrow(ins[0]):
            self.filled[eqn.outvars[0]] = eqn
            return
        if how is None:
            for v in ins:
                self.narrow(v)
            self.eqns.append(eqn)
            return
        (out,) = eqn.outvars
        given = [self._widened(v) if _is_narrow(v) else v for v in ins]
        if not _is_narrow(out):
            self.eqns.append(eqn.replace(invars=given))
            return
        if eqn.op is dot_general:
            eqn = eqn.replace(params={**eqn.params, "preferred_element_type": None})
        made = Var(out.aval.with_dtype(FLOAT32))
        self.wide[out] = self.pending[out] = made
        if how == "round":
            self.rounded[made] = out.aval.dtype
        self.eqns.append(eqn.replace(invars=given, outvars=[made]))

    def _is_widened(self, eqn: Eqn) -> str | None:
        """Whether the operation runs in float32: "round" where its results are rounded."""
        op, ins = eqn.op, eqn.invars
        if not any(map(_is_narrow, ins)):
            return None
        function = function_of(eqn)
        alike = function in SAME_AS_WIDE or (
            function in IN_FLOAT32 and ins[0].aval.dtype == BFLOAT16
        )
        if alike or op is dot_general:
            return "round" if len({v.aval.dtype for v in ins}) == 1 else None
        if op in _EXACT:
            return "exact"
        if op.kind is SHAPE and not op.multiple:  # moved where it is
            rows = [v for v in ins if v not in self.filled]
            return "exact" if rows and all(v in self.pending for v in rows) else None
        there = ins[0] in self.wide
        if op is broadcast_in_dim:
            return "exact" if there else None
        if op is convert_element_type:
            return "exact" if there and not _is_narrow(eqn.outvars[0]) else None
        return None

    def _widened(self, v: Any) -> Any:
        if type(v) is Literal:
            return Literal(widened(np.asarray(v.host))[()], v.aval.with_dtype(FLOAT32))
        if v not in self.wide:
            self.wide[v] = made = Var(v.aval.with_dtype(FLOAT32))
            if v in self.filled:
                eqn = self.filled[v]
                self.eqns.append(eqn.replace(invars=[self._widened(eqn.invars[0])], outvars=[made]))
                return made
            params = {"new_dtype": FLOAT32, "weak_type": False}
            self.eqns.append(Eqn(convert_element_type, [v], [made], params))
        return self.wide[v]

    def narrow(self, v: Any) -> None:
        if type(v) is Var and v in self.filled and v not in self.views:
            self.views.add(v)
            self.eqns.append(self.filled[v])
        made = None if type(v) is Literal else self.pending.pop(v, None)
        if made is not None:
            params = {"new_dtype": v.aval.dtype, "weak_type": v.aval.weak_type}
            cast = Eqn(convert_element_type, [made], [v], params)
            self.eqns.append(cast)
            self.last.add(cast)

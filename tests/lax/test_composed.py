"""Functions of `lax` that are made of several ops obey the laws of ops, at the calls of `CALLS`."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from primal import Array, tree_util
from primal.ir.op import registry
from tests.cases.case import F32, F64, Case, Flat
from tests.laws import laws
from tests.lax.calls import CALLS
from tests.lax.test_refusals import function_of


@dataclasses.dataclass(frozen=True, kw_only=True)
class Called(Case):
    """A function of `lax` as a row: its operands are the arrays of its call."""

    def function(self, dtype: Any) -> Flat:
        args, kwargs = CALLS[self.op]

        def call(*xs: Any) -> list[Any]:
            rest = iter(xs)
            out = function_of(self.op)(*[_filled(a, rest) for a in args], **kwargs)
            return [x for x in tree_util.tree_leaves(out) if hasattr(x, "aval")]

        return call

    def draws(self, dtype: Any, also: bool = True) -> list[list[Any]]:
        found = [np.asarray(x) for x in tree_util.tree_leaves(CALLS[self.op][0]) if is_data(x)]
        wide = {F32: dtype, np.dtype(np.complex64): np.result_type(dtype, np.complex64)}
        return [[x.astype(wide.get(x.dtype, x.dtype)) for x in found]]


def is_data(x: Any) -> bool:
    return isinstance(x, Array)


def _filled(arg: Any, rest: Any) -> Any:
    if isinstance(arg, list | tuple) and any(map(is_data, arg)):
        return type(arg)([next(rest) if is_data(a) else a for a in arg])
    return next(rest) if is_data(arg) else arg


ALIKE = {"bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor", "bitwise_not": "not"}
ROWS = [
    Called(op=name, operands=(), dtypes=(F32,), ulps=64, near=4.0, cause="sums and series")
    for name in CALLS
    if ALIKE.get(name, name.split(".")[-1]) not in registry
    and name.split(".")[-1].replace("_", "-") not in registry
    and any(map(is_data, tree_util.tree_leaves(CALLS[name][0])))
]
EACH = pytest.mark.parametrize("case", [pytest.param(c, id=c.op) for c in ROWS])


@EACH
def test_engines(case: Called) -> None:
    laws.law_of_engines(case)


@EACH
def test_batching(case: Called) -> None:
    laws.law_of_batching(case, names=["cpu"])


@EACH
def test_derivatives(case: Called) -> None:
    wide = dataclasses.replace(case, dtypes=(F64,))
    laws.law_of_derivatives(wide, ["cpu"])
    laws.law_of_second_order(wide)

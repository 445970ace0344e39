"""Functions of `lax` that are made of several ops obey the laws of ops, at the calls of `CALLS`."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import Array, lax, tree_util
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


NOTHING_TO_DO = {
    "transpose": lambda x: lax.transpose(x, (0, 1)),
    "reshape": lambda x: lax.reshape(x, (2, 3)),
    "broadcast": lambda x: lax.broadcast(x, ()),
    "broadcast_in_dim": lambda x: lax.broadcast_in_dim(x, (2, 3), (0, 1)),
    "expand_dims": lambda x: lax.expand_dims(x, ()),
    "squeeze": lambda x: lax.squeeze(x, ()),
    "collapse": lambda x: lax.collapse(x, 0, 1),
    "concatenate": lambda x: lax.concatenate([x], 1),
    "numpy.transpose": lambda x: jnp.transpose(x, (0, 1)),
    "numpy.expand_dims": lambda x: jnp.expand_dims(x, ()),
}


@pytest.mark.parametrize("name", NOTHING_TO_DO)
def test_what_changes_nothing_is_its_operand(name):
    x, same = jnp.arange(6.0).reshape(2, 3), NOTHING_TO_DO[name]
    assert same(x) is x
    assert not primal.make_jaxpr(same)(x).eqns
    given = np.ones((2, 3), np.float32)
    made = same(given)
    given[:] = 5
    assert isinstance(made, Array) and (made == 1).all()

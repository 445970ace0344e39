"""How results are read: what an `Outlook` finds, and what records say of their kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primal.numpy as jnp
from primal import lax, make_jaxpr
from primal.engines.cpu.plan.outlook import Outlook
from primal.engines.cpu.plan.schedule import LIGHT, LIGHT_BY_NUMBER
from primal.ir.op import registry

X = np.ones((5, 9), np.float32)


class Asked:
    """A builder that tells which of its words a kernel rule uses."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def unary(self, name: str, _: Any) -> None:
        self.words.append(name)

    def binary(self, name: str, *_: Any) -> None:
        self.words.append(name)

    def select_n(self, *_: Any) -> None:
        self.words.append("select_n")


def test_kernels_are_the_words_that_records_name() -> None:
    named = {op.word for op in registry.values()}
    assert named >= LIGHT | LIGHT_BY_NUMBER
    for op in registry.values():
        if op.word is not None:
            k = Asked()
            count = 1 + (op.kernel.__code__.co_argcount > 2)
            op.kernel(k, *[object()] * count)
            assert k.words == [op.word]


def found(fun: Any, *xs: Any) -> tuple[Outlook, Any]:
    jaxpr = make_jaxpr(fun)(*xs).jaxpr
    return Outlook(jaxpr), jaxpr


def named(jaxpr: Any, name: str) -> list[Any]:
    return [v for eqn in jaxpr.eqns if eqn.op.name == name for v in eqn.outvars]


def test_reads_count_operands_and_results() -> None:
    outlook, jaxpr = found(lambda x: (x * x + lax.neg(x), x), X)
    (x,) = jaxpr.invars
    assert outlook.read[x] == 4
    assert all(outlook.read[eqn.outvars[0]] == 1 for eqn in jaxpr.eqns)


@pytest.mark.parametrize(
    ("reader", "woven"),
    [
        (lambda y: y * 2 - y, True),
        (lambda y: jnp.where(y > 0, y, 1), True),
        (lambda y: lax.exp(y), False),
        (lambda y: y.sum(), False),
        (lambda y: (y + 1, y), False),
    ],
)
def test_what_only_light_words_read_is_woven(reader: Any, woven: bool) -> None:
    outlook, jaxpr = found(lambda x: reader(lax.concatenate([x, x], 1)), X)
    (out,) = named(jaxpr, "concatenate")
    assert (out in outlook.woven) == woven


def test_sums_at_places_are_woven_where_one_reads_them() -> None:
    def added(x: Any) -> Any:
        return lax.scatter_add(x, np.array([1]), x[:1], numbers)

    numbers = lax.ScatterDimensionNumbers((0, 1), (), (0,))
    for reader, woven in ((lambda y, x: y + x, True), (lambda y, x: y * y + x, False)):
        outlook, jaxpr = found(lambda x, f=reader: f(added(x), x), X)
        (out,) = named(jaxpr, "scatter-add")
        assert (out in outlook.woven) == woven


def test_an_order_is_what_all_readers_want() -> None:
    outlook, jaxpr = found(lambda x: jnp.sin(jnp.cos(x)).T, X)
    assert [outlook.orders[eqn.outvars[0]] for eqn in jaxpr.eqns[:2]] == [(1, 0), (1, 0)]
    outlook, jaxpr = found(lambda x: (jnp.sin(y := jnp.cos(x)).T, y), X)
    assert outlook.orders == {jaxpr.eqns[1].outvars[0]: (1, 0)}
    outlook, jaxpr = found(lambda x: (x @ x.T).T, X)
    assert outlook.orders == {named(jaxpr, "dot_general")[0]: (1, 0)}
    assert not found(lambda x: x.cumsum(0).T, X)[0].orders


def test_padding_along_and_across_rows() -> None:
    along, across = ((0, 0, 0), (1, 2, 0)), ((1, 0, 0), (0, 0, 0))

    def padded(*configs: Any) -> Any:
        return found(lambda x: [lax.pad(x, jnp.float32(0), c) for c in configs], X)[0].crossed

    assert padded(along, ((0, 0, 0), (3, 0, 0))) == padded(across) == set()
    assert padded(along, ((0, 0, 0), (0, 3, 0)), across) == set()
    assert padded(along, ((1, -1, 0), (0, 3, 0))) == {(5, 12)}
    assert padded(((1, 0, 0), (0, 3, 0))) == set()  # nothing to meet

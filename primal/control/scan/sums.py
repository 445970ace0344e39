"""Sums over steps that are not added up whole in each.

The cotangent of a matrix that every step multiplies by is a sum of products, one per step. Adding
them up in the loop reads and writes the whole sum in each; stacked operands make one product of it
afterwards, with the steps as one more contracted dimension: Σi u[i]·v[i].

The cotangent of an array of which every step reads a window is a sum of windows in zeros. A step
adds its own to what lies there, and leaves the rest as it is: sums begin as zeros, so that none of
their elements is -0, which alone adding zero would change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from primal.base.dtypes import physical_dtype
from primal.base.structures import structure
from primal.control.programs import computable, part_of
from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr
from primal.ir.trace import Literal, aval_of
from primal.ops.contract import dot_general
from primal.ops.index.dynamic import dynamic_update_slice
from primal.ops.index.gather import scatter_add
from primal.ops.index.numbers import CLIP, ScatterDimensionNumbers
from primal.ops.shape import concatenate, reshape, transpose
from primal.ops.spread import add_any, broadcast_in_dim


@structure
class Term:
    """A product to come after the loop, then transposed: places of its operands among the stacks.

    A place is (False, i): the i-th x, or (True, i): the i-th y.
    """

    places: tuple[tuple[bool, int], tuple[bool, int]]
    params: tuple[tuple[str, Any], ...]
    permutations: tuple[tuple[int, ...], ...]

    def value(self, xs: Sequence[Any], ys: Sequence[Any]) -> Any:
        """The sum over all steps, given the stacks."""
        u, v = [(ys if made else xs)[i] for made, i in self.places]
        params = dict(self.params)
        (uc, vc), (ub, vb) = params["dimension_numbers"]
        contracted = tuple([(0, *[d + 1 for d in dims]) for dims in (uc, vc)])
        batch = tuple([tuple([d + 1 for d in dims]) for dims in (ub, vb)])
        params["dimension_numbers"] = (contracted, batch)
        result = dot_general(u, v, **params)
        for permutation in reversed(self.permutations):
            result = transpose(result, permutation=permutation)
        return result


@structure
class Late:
    """A body whose first outputs were sums; `body` lacks some and has more ys, as `terms` need.

    `terms`: per sum those that make it, or None where `body` still puts it out.
    """

    body: ClosedJaxpr
    terms: tuple[tuple[Term, ...] | None, ...]


def bytes_of(aval: Aval) -> int:
    return aval.size * physical_dtype(aval.dtype).itemsize


def later(body: ClosedJaxpr, num_sums: int, num_carry: int, fixed: int, ys: int) -> Late:
    """Take sums of products out of a body with outputs (sums, carry, ys).

    Its inputs are `fixed` consts, then xs, `num_carry` carries, then xs again; an x is numbered
    as if the carries were not there. Only products that read less than adding them up takes are
    taken out, and only as long as what is newly stacked is no more than what is stacked already.
    """
    jaxpr = body.jaxpr
    made = {v: e for e in jaxpr.eqns for v in e.outvars}
    split = len(jaxpr.invars) - ys
    xs = [*jaxpr.invars[fixed : split - num_carry], *jaxpr.invars[split:]]
    room = sum([bytes_of(x.aval) for x in xs])
    still = {*jaxpr.constvars, *jaxpr.invars[:fixed]}
    computable(jaxpr.eqns, still)
    stacked: list[Any] = list(jaxpr.outvars[num_sums + num_carry :])
    found: list[tuple[Term, ...] | None] = []

    def place(v: Any) -> tuple[bool, int]:
        if v in xs:
            return False, xs.index(v)
        if v not in stacked:
            stacked.append(v)
        return True, stacked.index(v)

    for out in jaxpr.outvars[:num_sums]:
        products = _products(out, made)
        operands = [v for eqn, _ in products or () for v in eqn.invars]
        if products is None or any(type(v) is Literal or v in still for v in operands):
            found.append(None)
            continue
        new = {v: bytes_of(v.aval) for v in operands if v not in xs and v not in stacked}
        read = sum([bytes_of(v.aval) for v in operands])
        if read > 2 * len(products) * bytes_of(out.aval) or sum(new.values()) > room:
            found.append(None)
            continue
        room -= sum(new.values())
        found.append(
            tuple(
                [
                    Term((place(e.invars[0]), place(e.invars[1])), tuple(e.params.items()), moves)
                    for e, moves in products
                ]
            )
        )
    if not any(found):
        return Late(body, tuple(found))
    kept = [v for v, terms in zip(jaxpr.outvars, found, strict=False) if terms is None]
    outs = [*kept, *jaxpr.outvars[num_sums : num_sums + num_carry], *stacked]
    return Late(part_of(body, jaxpr.invars, outs, jaxpr.eqns), tuple(found))


def _products(v: Any, made: dict[Any, Any]) -> list[tuple[Any, tuple[Any, ...]]] | None:
    """The products whose sum v is, each with the permutations that follow it, last one first."""
    moves: list[Any] = []
    while type(v) is not Literal and v in made and made[v].op is transpose:
        moves.append(made[v].params["permutation"])
        v = made[v].invars[0]
    eqn = None if type(v) is Literal else made.get(v)
    if eqn is None:
        return None
    if eqn.op is add_any:
        parts = [_products(x, made) for x in eqn.invars]
        if any(p is None for p in parts):
            return None
        return [(e, (*moves, *more)) for p in parts for e, more in p or ()]
    # Sums of what was rounded to a narrower dtype, or of integers made wider, are others.
    plain = eqn.op is dot_general and all(x.aval.dtype == v.aval.dtype for x in eqn.invars)
    return [(eqn, tuple(moves))] if plain else None


@structure
class Added:
    """How a step adds to a sum: whole arrays, then windows by these (op, parameters, operands)."""

    whole: int
    windows: tuple[tuple[Any, tuple[tuple[str, Any], ...], int], ...]

    def to(self, total: Any, given: Iterator[Any]) -> Any:
        """The sum with what a step made, which comes in that order."""
        for _ in range(self.whole):
            total = add_any(total, next(given))
        for op, params, count in self.windows:
            update, *where = [next(given) for _ in range(count)]
            if op is dynamic_update_slice:
                total = _added_at(total, update, where)
            else:
                total = op(total, *where, update, **dict(params))
        return total


def _added_at(total: Any, update: Any, starts: Sequence[Any]) -> Any:
    """A window added at clamped starts: a scatter's derivative hands the sum's on as it is."""
    shape, sizes = aval_of(total).shape, aval_of(update).shape
    mapped = tuple([d for d, n in enumerate(sizes) if n < shape[d]])
    if not mapped:
        return add_any(total, update)
    columns = [reshape(starts[d], shape=(1,)) for d in mapped]
    at = columns[0] if len(columns) == 1 else concatenate(*columns, dimension=0)
    return scatter_add(
        total,
        at,
        update,
        dimension_numbers=ScatterDimensionNumbers(tuple(range(len(sizes))), (), mapped),
        indices_are_sorted=True,
        unique_indices=True,
        mode=CLIP,
    )


def in_windows(body: ClosedJaxpr, num_sums: int) -> tuple[ClosedJaxpr, tuple[Added, ...]]:
    """The body with what its first outputs, sums, are made of in their place."""
    jaxpr = body.jaxpr
    made = {v: e for e in jaxpr.eqns for v in e.outvars}
    outs: list[Any] = []
    found = []
    for out in jaxpr.outvars[:num_sums]:
        parts = _summands(out, made)
        windows = [e for e in map(made.get, parts) if e is not None and _puts_in_zeros(e, made)]
        put = {e.outvars[0] for e in windows}
        whole = [v for v in parts if v not in put] if windows else [out]
        outs += whole
        for e in windows:
            # An update is the second operand, or the last one of a scatter.
            x, *given = e.invars
            outs += given if e.op is dynamic_update_slice else [given[1], given[0]]
        kinds = [(e.op, tuple(e.params.items()), len(e.invars) - 1) for e in windows]
        found.append(Added(len(whole), tuple(kinds)))
    if not any(added.windows for added in found):
        return body, tuple(found)
    outs += jaxpr.outvars[num_sums:]
    return part_of(body, jaxpr.invars, outs, jaxpr.eqns), tuple(found)


def _summands(v: Any, made: dict[Any, Any]) -> list[Any]:
    """What is added up to v."""
    eqn = None if type(v) is Literal else made.get(v)
    if eqn is None or eqn.op is not add_any:
        return [v]
    return [part for x in eqn.invars for part in _summands(x, made)]


def _puts_in_zeros(eqn: Any, made: dict[Any, Any]) -> bool:
    """Whether an equation puts windows into zeros."""
    if eqn.op is not dynamic_update_slice and eqn.op is not scatter_add:
        return False
    maker = None if type(eqn.invars[0]) is Literal else made.get(eqn.invars[0])
    if maker is None or maker.op is not broadcast_in_dim:
        return False
    (number,) = maker.invars
    return type(number) is Literal and bool(number.val == 0)

"""Taylor mode: derivatives of higher order along a curve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.api.operands import check_outputs, name_of, operand
from primal.base import dtypes
from primal.base.errors import api_boundary
from primal.base.pytree import flatten, unflatten
from primal.ir.trace import ZERO, aval_of
from primal.ops.choose import convert_element_type
from primal.ops.elementwise import div, mul
from primal.ops.spread import zeros_like_aval
from primal.transforms.jet import jet_flat


@api_boundary
def jet(
    fun: Callable[..., Any],
    primals: Sequence[Any],
    series: Sequence[Sequence[Any]],
    factorial_scaled: bool = True,
    **_: Any,
) -> tuple[Any, Any]:
    """f(x) and the derivatives of t ↦ f(x(t)) at 0, for x(t) = x + Σ series[k-1]·tᵏ/k!.

    `primals` are arrays, `series` gives for each a list of the derivatives of its curve, all of
    one length K; the result is (f(x), derivatives), with a list of K arrays for each output. With
    `factorial_scaled=False` both lists hold Taylor coefficients, derivatives over k!.

    The cost grows with K³, where K nested jvps double it K times.

    ValueError for primals that are no arrays, for lists of several lengths, and for terms of
    another shape than their primal.

    >>> y, terms = jet(jnp.exp, (0.0,), ((1.0, 0.0, 0.0),))
    >>> [float(t) for t in terms]
    [1.0, 1.0, 1.0]
    """
    if len(primals) != len(series):
        raise ValueError(
            f"[jet] expected a series per primal, got {len(primals)} primals and {len(series)} "
            "series."
        )
    for i, p in enumerate(primals):
        if not flatten(p)[1].is_leaf():
            raise ValueError(
                f"[jet] expected arrays, got a tree: primal value at position {i} is not an array. "
                "Pass its leaves as arguments."
            )
    lengths = {len(s) for s in series}
    if len(lengths) > 1:
        raise ValueError(
            "[jet] expected series of one length, got jet terms have inconsistent lengths for "
            f"different arguments: {sorted(lengths)}."
        )
    order = lengths.pop() if lengths else 0
    xs, rows = [], []
    for i, (p, s) in enumerate(zip(primals, series, strict=True)):
        x, terms = _curve(i, p, s)
        xs.append(x)
        rows.append([_scaled(t, k, mul) for k, t in enumerate(terms, 1)] if not factorial_scaled
                    else terms)
    found: list[Any] = []

    def flat(*args: Any) -> list[Any]:
        result = fun(*args)
        outs, spec = flatten(result)
        check_outputs(name_of(fun), result, outs)
        found.append(spec)
        return outs

    outs, results = jet_flat(flat, xs, rows)
    outs = [operand(o) for o in outs]
    lists = []
    for o, terms in zip(outs, results, strict=True):
        zeros = zeros_like_aval(aval_of(o))
        full = [zeros if t is ZERO else t for t in (terms or [ZERO] * order)]
        if not factorial_scaled:
            full = [_scaled(t, k, div) for k, t in enumerate(full, 1)]
        lists.append([operand(t) for t in full])
    return unflatten(found[0], outs), unflatten(found[0], lists)


def _curve(i: int, primal: Any, series: Sequence[Any]) -> tuple[Any, list[Any]]:
    """A primal and its terms as arrays of one inexact dtype."""
    x = operand(primal)
    terms = [operand(t) for t in series]
    dtype = x.dtype
    if terms and not dtypes.issubdtype(dtype, np.inexact):
        dtype = terms[0].dtype
        x = convert_element_type(x, new_dtype=dtype, weak_type=False)
    out = []
    for t in terms:
        if t.shape != x.shape:
            raise ValueError(
                f"[jet] expected terms of the shape of their primal, {x.shape}, got {t.shape} for "
                f"argument {i}."
            )
        same = t.dtype == dtype
        out.append(t if same else convert_element_type(t, new_dtype=dtype, weak_type=False))
    return x, out


def _scaled(t: Any, k: int, by: Any) -> Any:
    return by(t, float(math.factorial(k)))


__all__ = ["jet"]

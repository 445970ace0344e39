"""Contractions, convolutions, reductions: operations over windows of their operands."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.monoids import identity
from primal.engines.xla.builder.core import Constant, Ints, Region, Value, i64s, ints, kind_of
from primal.engines.xla.builder.shapes import MONOIDS, Shapes, monoid_body
from primal.engines.xla.builder.types import element, physical, tensor
from primal.ir.avals import Aval

Padding = Sequence[tuple[int, int]]
_ALGORITHM = (
    "lhs_precision_type", "rhs_precision_type", "accumulation_type", "lhs_component_count",
    "rhs_component_count", "num_primitive_operations", "allow_imprecise_accumulation",
)  # fmt: skip
_ROUNDS = {"bf16": "f32", "tf32": "f32"}  # what an algorithm reads in fewer bits, if need be
_PRECISIONS = frozenset(("DEFAULT", "HIGH", "HIGHEST"))


class Windows(Shapes):
    """Operations that combine elements of a neighbourhood or of whole dimensions."""

    def dot_general(
        self,
        x: Value,
        y: Value,
        *,
        dimension_numbers: tuple[tuple[Ints, Ints], tuple[Ints, Ints]],
        precision: Any = None,
        preferred_element_type: Any = None,
    ) -> Value:
        """Sum over the contracting dimensions; result is (batch, rest of x, rest of y)."""
        (cx, cy), (bx, by) = dimension_numbers
        gone_x, gone_y = {*cx, *bx}, {*cy, *by}
        shape = (
            *[x.aval.shape[d] for d in bx],
            *[n for d, n in enumerate(x.aval.shape) if d not in gone_x],
            *[n for d, n in enumerate(y.aval.shape) if d not in gone_y],
        )
        out = Aval(shape, preferred_element_type or x.aval.dtype)
        batching = f"batching_dims = {ints(bx)} x {ints(by)}, " if len(bx) else ""
        return self.write(
            f"stablehlo.dot_general {x.name}, {y.name}, {batching}"
            f"contracting_dims = {ints(cx)} x {ints(cy)}, {_how(precision, x, y, out)}"
            f" : ({x.type}, {y.type}) -> {tensor(out)}",
            out,
        )

    def convolution(
        self,
        x: Value,
        kernel: Value,
        *,
        dims: tuple[Ints, Ints, Ints],
        strides: Ints,
        padding: Padding,
        lhs_dilation: Ints | None = None,
        rhs_dilation: Ints | None = None,
        reversal: Sequence[bool] | None = None,
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        precision: Any = None,
        preferred_element_type: Any = None,
    ) -> Value:
        """Cross-correlation of x with the kernel over the spatial dimensions."""
        lhs, rhs, result = dims
        rank = x.ndim - 2
        spread = lhs_dilation or (1,) * rank
        dilate = rhs_dilation or (1,) * rank
        flip = reversal or (False,) * rank
        shape = [0] * x.ndim
        shape[result[0]] = x.aval.shape[lhs[0]] // batch_group_count
        shape[result[1]] = kernel.aval.shape[rhs[0]]
        for i in range(rank):
            shape[result[2 + i]] = windowed_size(
                x.aval.shape[lhs[2 + i]],
                kernel.aval.shape[rhs[2 + i]],
                strides[i],
                padding[i],
                spread[i],
                dilate[i],
            )
        out = Aval(tuple(shape), preferred_element_type or x.aval.dtype)
        layout = (
            f"#stablehlo.conv<{_conv_dims(lhs, 'bf')}x{_conv_dims(rhs, 'oi')}"
            f"->{_conv_dims(result, 'bf')}>"
        )
        one, other = precision_text(precision).split(", ")
        attrs = (
            f"batch_group_count = {int(batch_group_count)} : i64, "
            f"dimension_numbers = {layout}, "
            f"feature_group_count = {int(feature_group_count)} : i64, "
            f"lhs_dilation = {i64s(spread)}, padding = {_pairs(padding)}, "
            f"precision_config = [#stablehlo<precision {one}>, #stablehlo<precision {other}>], "
            f"rhs_dilation = {i64s(dilate)}, window_reversal = {_bools(flip)}, "
            f"window_strides = {i64s(strides)}"
        )
        return self.op("stablehlo.convolution", (x, kernel), (out,), attrs)[0]

    def identity(self, monoid: str, dtype: Any) -> Constant:
        """The neutral element of a monoid for that dtype."""
        return self.scalar(monoid_identity(monoid, dtype), dtype)

    def reduce(self, monoid: str, x: Value, dims: Ints, init: Value | None = None) -> Value:
        """x combined over `dims` by a monoid, whose identity `init` is by default."""
        if monoid not in MONOIDS:
            raise ValueError(f"[reduce] expected one of {', '.join(MONOIDS)}, got {monoid!r}.")
        if init is None:
            init = self.identity(monoid, x.aval.dtype)
        out = Aval(_without(x.aval.shape, dims), x.aval.dtype)
        return self.write(
            f"stablehlo.reduce({x.name} init: {init.name}) applies stablehlo.{monoid} across "
            f"dimensions = {ints(dims)} : ({x.type}, {init.type}) -> {tensor(out)}",
            out,
        )

    def reduce_with(
        self, xs: Sequence[Value], inits: Sequence[Value], dims: Ints, body: Region
    ) -> list[Value]:
        """Several operands reduced together by `body(b, *accumulators, *items)`."""
        scalars = [i.aval for i in inits]
        shape = _without(xs[0].aval.shape, dims)
        items = [Aval((), x.aval.dtype) for x in xs]
        return self.op(
            "stablehlo.reduce",
            (*xs, *inits),
            [Aval(shape, scalar.dtype) for scalar in scalars],
            f"dimensions = {i64s(dims)}",
            [(scalars + items, body)],
        )

    def reduce_window(
        self,
        monoid: str,
        x: Value,
        *,
        window: Ints,
        strides: Ints | None = None,
        padding: Padding | None = None,
        base_dilation: Ints | None = None,
        window_dilation: Ints | None = None,
        init: Value | None = None,
    ) -> Value:
        """x combined over each window by a monoid."""
        if init is None:
            init = self.identity(monoid, x.aval.dtype)
        return self.reduce_window_with(
            [x],
            [init],
            monoid_body(monoid),
            window=window,
            strides=strides,
            padding=padding,
            base_dilation=base_dilation,
            window_dilation=window_dilation,
        )[0]

    def reduce_window_with(
        self,
        xs: Sequence[Value],
        inits: Sequence[Value],
        body: Region,
        *,
        window: Ints,
        strides: Ints | None = None,
        padding: Padding | None = None,
        base_dilation: Ints | None = None,
        window_dilation: Ints | None = None,
    ) -> list[Value]:
        """Several operands reduced together over each window."""
        rank = len(window)
        steps, edges = strides or (1,) * rank, padding or ((0, 0),) * rank
        spread, dilate = base_dilation or (1,) * rank, window_dilation or (1,) * rank
        shape = tuple(
            [
                windowed_size(*sizes)
                for sizes in zip(
                    xs[0].aval.shape, window, steps, edges, spread, dilate, strict=True
                )
            ]
        )
        attrs = (
            f"base_dilations = {i64s(spread)}, padding = {_pairs(edges)}, "
            f"window_dilations = {i64s(dilate)}, window_dimensions = {i64s(window)}, "
            f"window_strides = {i64s(steps)}"
        )
        scalars = [i.aval for i in inits]
        return self.op(
            "stablehlo.reduce_window",
            (*xs, *inits),
            [Aval(shape, x.aval.dtype) for x in xs],
            attrs,
            [(scalars + scalars, body)],
        )

    def select_and_scatter(
        self,
        x: Value,
        source: Value,
        init: Value,
        *,
        direction: str = "GE",
        monoid: str = "add",
        window: Ints,
        strides: Ints | None = None,
        padding: Padding | None = None,
    ) -> Value:
        """`source` scattered to the element of each window of x that `direction` selects, or to its
        first NaN."""
        rank = len(window)
        attrs = (
            f"padding = {_pairs(padding or ((0, 0),) * rank)}, "
            f"window_dimensions = {i64s(window)}, window_strides = {i64s(strides or (1,) * rank)}"
        )
        scalar = Aval((), x.aval.dtype)

        def stays(b: Any, p: Value, q: Value) -> Value:
            found = b.compare(p, q, direction)
            if not dtypes.issubdtype(p.dtype, np.floating):
                return found
            return b.or_(found, b.compare(p, p, "NE"))

        return self.op(
            "stablehlo.select_and_scatter",
            (x, source, init),
            (x.aval,),
            attrs,
            [
                ((scalar, scalar), stays),
                ((scalar, scalar), monoid_body(monoid)),
            ],
        )[0]


def windowed_size(
    size: int, window: int, stride: int, edges: tuple[int, int], spread: int, dilate: int
) -> int:
    """How many windows fit: floor((padded - dilated window) / stride) + 1, at least none."""
    padded = edges[0] + edges[1] + (max(size - 1, 0) * spread + 1 if size else 0)
    covered = (window - 1) * dilate + 1 if window else 0
    return 0 if padded < covered else (padded - covered) // stride + 1


@functools.cache
def monoid_identity(monoid: str, dtype: Any) -> Any:
    """The neutral element of a monoid for that dtype, as a NumPy scalar.

    >>> monoid_identity('maximum', np.dtype('i1'))
    np.int8(-128)
    """
    dtype = physical(dtype)
    kind = kind_of(dtype)
    if (kind == "f" and monoid == "and") or (
        kind == "c" and monoid in ("maximum", "minimum", "and")
    ):
        raise TypeError(f"[{monoid}] expected a dtype it is defined for, got {dtype}.")
    return identity(monoid, dtype)


def _without(shape: tuple[int, ...], dims: Ints) -> tuple[int, ...]:
    gone = set(dims)
    return tuple([n for i, n in enumerate(shape) if i not in gone])


def _how(precision: Any, x: Value, y: Value, out: Aval) -> str:
    """The precision of a product, and the algorithm where it fits the operands as they are.

    Where it does not, as in derivatives, whose operands are sums, no precision is lost.
    """
    numbers = getattr(precision, "numbers", None)
    if numbers is None:
        return f"precision = [{precision_text(precision)}]"
    lhs, rhs, total, *counts, imprecise = numbers
    fits = element(out.dtype) == total and all(
        element(v.dtype) in (wanted, _ROUNDS.get(wanted)) for v, wanted in ((x, lhs), (y, rhs))
    )
    if not fits:
        return "precision = [HIGHEST, HIGHEST]"
    fields = dict(zip(_ALGORITHM, (lhs, rhs, total, *counts, str(imprecise).lower()), strict=True))
    text = ", ".join([f"{name} = {value}" for name, value in fields.items()])
    return f"precision = [DEFAULT, DEFAULT], algorithm = <{text}>"


def precision_text(precision: Any) -> str:
    """`A, B` from None, one name or member, or a pair of them."""
    return _precision(tuple(precision) if isinstance(precision, list) else precision)


@functools.cache
def _precision(precision: Any) -> str:
    pair = precision if isinstance(precision, tuple) else (precision, precision)
    names = ["DEFAULT" if p is None else str(getattr(p, "name", p)).upper() for p in pair]
    if len(names) != 2 or not _PRECISIONS.issuperset(names):
        raise ValueError(
            f"[precision] expected None, one of {', '.join(sorted(_PRECISIONS))} or a pair of "
            f"those, got {precision!r}."
        )
    return ", ".join(names)


def _conv_dims(spec: Ints, letters: str) -> str:
    text = [""] * len(spec)
    for i, place in enumerate(spec):
        text[place] = letters[i] if i < 2 else str(i - 2)
    return f"[{', '.join(text)}]"


def _pairs(padding: Padding) -> str:
    rows = ", ".join([f"[{int(lo)}, {int(hi)}]" for lo, hi in padding])
    # An empty list says no shape, and the verifier wants (0, 2).
    return f"dense<{f'[{rows}]' if rows else ''}> : tensor<{len(padding)}x2xi64>"


def _bools(flags: Sequence[bool]) -> str:
    text = ", ".join(["true" if f else "false" for f in flags])
    return f"array<i1: {text}>" if text else "array<i1>"

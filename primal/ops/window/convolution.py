"""conv_general_dilated: sums of products over windows, with channels mixed; any rank.

out[n, o, p] = Σ(c, k) lhs[n, c, p·stride + k·rhs_dilation - low] · rhs[o, c, k], where lhs is
spread by lhs_dilation and padded with zeros, in the layouts that dimension_numbers name.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from primal.base import dtypes
from primal.ir.avals import Aval
from primal.ir.op import WINDOW, Op, by_kind
from primal.ir.trace import aval_of
from primal.ops.choose import as_dtype, convert_element_type
from primal.ops.shape import moveaxis, reshape, rev
from primal.ops.spread import zeros_like_aval
from primal.ops.types import NUMERIC, check_dtype, is_linear
from primal.ops.window.views import (
    Ints,
    Pairs,
    adjoint_edges,
    check_window,
    spread_and_padded,
    window_view,
    windows_in,
)
from primal.ops.words import each


class ConvDimensionNumbers(NamedTuple):
    """Places of dimensions: (batch, feature, *spatial); of rhs (out, in, *spatial).

    >>> lax.conv_dimension_numbers((1, 3, 8, 8), (4, 3, 3, 3), None).lhs_spec
    (0, 1, 2, 3)
    """

    lhs_spec: Ints
    rhs_spec: Ints
    out_spec: Ints


def _check_counts(
    name: str, lhs: Aval, rhs: Aval, dims: ConvDimensionNumbers, groups: int, batch_groups: int
) -> None:
    """A ValueError unless groups divide features and batch, and lhs has as many features as rhs."""
    if groups < 1 or batch_groups < 1 or (groups > 1 and batch_groups > 1):
        rule = "At most one of batch_group_count and feature_group_count may be > 1"
        raise ValueError(
            f"[{name}] expected positive feature_group_count and batch_group_count, one of them "
            f"1, got {groups} and {batch_groups}: "
            f"{rule if min(groups, batch_groups) > 1 else 'must be a positive integer'}."
        )
    ls, rs, _ = dims
    batch, features = lhs.shape[ls[0]], lhs.shape[ls[1]]
    outs, ins = rhs.shape[rs[0]], rhs.shape[rs[1]]
    if features != ins * groups:
        rule = (
            "feature_group_count must divide lhs feature dimension size"
            if features % groups
            else "lhs feature dimension size divided by feature_group_count must equal the rhs "
            "input feature dimension size"
        )
        raise ValueError(
            f"[{name}] expected as many lhs features as rhs input features times "
            f"feature_group_count, got {features} and {ins} * {groups}, from shapes {lhs.shape} "
            f"and {rhs.shape} with dimension_numbers {dims}: {rule}."
        )
    if outs % groups or outs % batch_groups or batch % batch_groups:
        which = "feature_group_count" if outs % groups else "batch_group_count"
        rule = (
            f"rhs output feature dimension size must be a multiple of {which}"
            if outs % groups or batch % batch_groups == 0
            else "batch_group_count must divide lhs batch dimension size"
        )
        raise ValueError(
            f"[{name}] expected group counts that divide the rhs output features ({outs}) and the "
            f"lhs batch ({batch}), got feature_group_count {groups} and batch_group_count "
            f"{batch_groups}: {rule}."
        )


def _type(
    lhs: Aval,
    rhs: Aval,
    *,
    window_strides: Ints,
    padding: Pairs,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> Aval:
    name = "conv_general_dilated"
    for x in (lhs, rhs):
        check_dtype(name, x, (*NUMERIC, np.bool_))
    if lhs.ndim != rhs.ndim or lhs.ndim < 2:
        raise (TypeError if lhs.ndim == rhs.ndim else ValueError)(
            f"[{name}] expected lhs and rhs of equal rank >= 2, got shapes {lhs.shape} and "
            f"{rhs.shape}: convolution requires lhs and rhs ndim to be equal."
        )
    if lhs.dtype != rhs.dtype and preferred_element_type is None:
        raise TypeError(
            f"[{name}] expected operands of one dtype, got {lhs.dtype.name} and {rhs.dtype.name}. "
            "Convert first, or give preferred_element_type."
        )
    ls, rs, os = dimension_numbers
    rank = lhs.ndim - 2
    if not sorted(ls) == sorted(rs) == sorted(os) == list(range(lhs.ndim)):
        raise TypeError(
            f"[{name}] expected dimension_numbers to permute {lhs.ndim} dimensions, got "
            f"{dimension_numbers}."
        )
    check_window(
        name, rank, window_strides=window_strides, padding=padding, lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
    )  # fmt: skip
    _check_counts(name, lhs, rhs, dimension_numbers, feature_group_count, batch_group_count)
    if any(rhs.shape[d] == 0 for d in rs[2:]):
        raise ValueError(f"[{name}] expected windows of positive size, got shape {rhs.shape}.")
    shape = [0] * lhs.ndim
    shape[os[0]], shape[os[1]] = lhs.shape[ls[0]] // batch_group_count, rhs.shape[rs[0]]
    for i in range(rank):
        size = lhs.shape[ls[2 + i]]
        if sum(padding[i]) + max(0, (size - 1) * lhs_dilation[i] + 1) < 0:
            raise ValueError(
                f"[{name}] expected negative padding of at most the size of its dimension, got "
                f"{padding} for lhs of shape {lhs.shape}: Negative padding is larger than the size "
                "of the corresponding dimension."
            )
        shape[os[2 + i]] = windows_in(
            size, rhs.shape[rs[2 + i]], window_strides[i], padding[i], lhs_dilation[i],
            rhs_dilation[i],
        )  # fmt: skip
    dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    weak = lhs.weak_type and rhs.weak_type and preferred_element_type is None
    return Aval(tuple(shape), dtype, weak)


# Bytes of unfolded windows made at a time: more does not multiply faster, and needs the memory.
_UNFOLDED = 1 << 24


def _impl(
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Ints,
    padding: Pairs,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    ls, rs, os = dimension_numbers
    out_dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
    work = _work_dtype(lhs.dtype, rhs.dtype, preferred_element_type)
    x = np.transpose(lhs, ls).astype(work, copy=False)
    w = np.transpose(rhs, rs).astype(work, copy=False)
    groups = feature_group_count
    if batch_group_count > 1:
        # A group of the batch meets its own output features, as a group of features does.
        groups = batch_group_count
        x = x.reshape((groups, x.shape[0] // groups, *x.shape[1:]))
        x = np.moveaxis(x, 0, 1).reshape((x.shape[1], groups * x.shape[2], *x.shape[3:]))
    x = np.ascontiguousarray(spread_and_padded(x, 0, padding, lhs_dilation, 2))
    n, features, *sizes = x.shape
    outs, ins, *window = w.shape
    counts = tuple(
        [
            windows_in(size, k, s, (0, 0), 1, d)
            for size, k, s, d in zip(sizes, window, window_strides, rhs_dilation, strict=True)
        ]
    )
    places, inside = math.prod(counts), ins * math.prod(window)
    out = np.empty((n, groups, outs // groups, places), work)
    if out.size and inside:
        view = window_view(x, counts, tuple(window), window_strides, rhs_dilation, 2)
        rank = len(counts)
        view = np.transpose(view, (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank)))
        weights = w.reshape((groups, outs // groups, inside))
        each_ = max(1, _UNFOLDED // max(1, groups * inside * places * x.itemsize))
        for i in range(0, n, each_):
            columns = view[i : i + each_].reshape((-1, groups, inside, places))
            out[i : i + each_] = np.matmul(weights, columns)
    else:
        out[...] = 0
    if work != out_dtype:
        out = convert_element_type.impl(out, new_dtype=out_dtype, weak_type=False)
    out = out.reshape((n, outs, *counts))
    return np.transpose(out, tuple([os.index(i) for i in range(len(os))]))


def _work_dtype(left: Any, right: Any, preferred: Any) -> Any:
    """The dtype products are summed in."""
    if dtypes.is_narrow_float(left):
        return np.dtype(np.float32) if preferred is None else dtypes.sums_dtype(left, preferred)
    return left if preferred is None else dtypes.sums_dtype(left, right, preferred)


# Words for groups.


def _split(x: Any, at: int, groups: int) -> Any:
    """Dimension `at` as two: groups, and the members of one."""
    shape = aval_of(x).shape
    return reshape(x, shape=(*shape[:at], groups, shape[at] // groups, *shape[at + 1 :]))


def _merge(x: Any, source: int, into: int) -> Any:
    """Dimension `source` merged in front of dimension `into` (counted without it)."""
    x = moveaxis(x, source, into)
    shape = aval_of(x).shape
    return reshape(x, shape=(*shape[:into], shape[into] * shape[into + 1], *shape[into + 2 :]))


def _move_groups(x: Any, groups: int, source: int, into: int) -> Any:
    """The groups of dimension `source` as groups of dimension `into`."""
    return x if groups == 1 else _merge(_split(x, source, groups), source, into)


def _transpose_lhs(
    ct: Any,
    lhs: Aval,
    rhs: Any,
    *,
    window_strides: Ints,
    padding: Pairs,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    ls, rs, os = dimension_numbers
    ct_shape, w_shape = aval_of(ct).shape, aval_of(rhs).shape
    groups = max(feature_group_count, batch_group_count)
    edges = tuple(
        [
            adjoint_edges(
                lhs.shape[ls[i]], ct_shape[os[i]], w_shape[rs[i]], window_strides[i - 2],
                padding[i - 2][0], lhs_dilation[i - 2], rhs_dilation[i - 2],
            )
            for i in range(2, lhs.ndim)
        ]
    )  # fmt: skip
    kernel = rev(_move_groups(rhs, groups, rs[0], rs[1]), dimensions=rs[2:])
    out = conv_general_dilated(
        ct,
        kernel,
        window_strides=lhs_dilation,
        padding=edges,
        lhs_dilation=window_strides,
        rhs_dilation=rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(os, (rs[1], rs[0], *rs[2:]), ls),
        feature_group_count=groups,
        batch_group_count=1,
        precision=precision,
        preferred_element_type=None,
    )
    return _move_groups(out, batch_group_count, ls[1], ls[0])


def _transpose_rhs(
    ct: Any,
    lhs: Any,
    rhs: Aval,
    *,
    window_strides: Ints,
    padding: Pairs,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    ls, rs, os = dimension_numbers
    x_shape, ct_shape = aval_of(lhs).shape, aval_of(ct).shape
    # Spread and padded lhs at p·stride + k·dilation: now k counts windows and p is inside them.
    edges = []
    for i in range(2, rhs.ndim):
        extent = (ct_shape[os[i]] - 1) * window_strides[i - 2] + 1
        extent += (rhs.shape[rs[i]] - 1) * rhs_dilation[i - 2]
        size = x_shape[ls[i]]
        spread = (size - 1) * lhs_dilation[i - 2] + 1 if size else 0
        edges.append((padding[i - 2][0], extent - spread - padding[i - 2][0]))
    return conv_general_dilated(
        lhs,
        ct,
        window_strides=rhs_dilation,
        padding=tuple(edges),
        lhs_dilation=lhs_dilation,
        rhs_dilation=window_strides,
        dimension_numbers=ConvDimensionNumbers(
            (ls[1], ls[0], *ls[2:]), (os[1], os[0], *os[2:]), (rs[1], rs[0], *rs[2:])
        ),
        feature_group_count=batch_group_count,
        batch_group_count=feature_group_count,
        precision=precision,
        preferred_element_type=None,
    )


def _along_lhs(t: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    return conv_general_dilated(t, rhs, **params)


def _along_rhs(t: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    return conv_general_dilated(lhs, t, **params)


def _transpose(ct: Any, lhs: Any, rhs: Any, **params: Any) -> Any:
    linear = lhs if is_linear(lhs) else rhs
    aval = linear.aval
    if 0 in aval_of(ct).shape or 0 in aval.shape:
        grad = zeros_like_aval(aval.strong())
    elif linear is lhs:
        grad = _transpose_lhs(ct, aval, as_dtype(rhs, aval_of(ct).dtype), **params)
    else:
        grad = _transpose_rhs(ct, as_dtype(lhs, aval_of(ct).dtype), aval, **params)
    grad = as_dtype(grad, aval.dtype)
    return (grad, None) if linear is lhs else (None, grad)


def _batch(
    axis: Any,
    args: Any,
    dims: Any,
    *,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    **params: Any,
) -> Any:
    (lhs, rhs), (ld, rd) = args, dims
    ls, rs, os = dimension_numbers
    groups, batch_groups = feature_group_count, batch_group_count

    def conv(lhs: Any, rhs: Any, groups: int, batch_groups: int) -> Any:
        return conv_general_dilated(
            lhs,
            rhs,
            dimension_numbers=dimension_numbers,
            feature_group_count=groups,
            batch_group_count=batch_groups,
            **params,
        )

    if axis.size == 0:
        # Joined with others, no examples leave no groups, and the size of one is not known again.
        one = [
            x if d is None else Aval((*x.shape[:d], *x.shape[d + 1 :]), x.dtype, x.weak_type)
            for x, d in zip(map(aval_of, args), dims, strict=True)
        ]
        result = _type(
            *one,
            dimension_numbers=dimension_numbers,
            feature_group_count=groups,
            batch_group_count=batch_groups,
            **params,
        )
        return zeros_like_aval(Aval((0, *result.shape), result.dtype, result.weak_type)), 0
    if ld is not None and rd is not None:
        # Every example is a group of its own.
        if batch_groups > 1:
            lhs, groups, batch_groups = _merge(lhs, ld, ls[0]), groups, batch_groups * axis.size
        else:
            lhs, groups = _merge(lhs, ld, ls[1]), groups * axis.size
        out = conv(lhs, _merge(rhs, rd, rs[0]), groups, batch_groups)
        return _split(out, os[1], axis.size), os[1]
    if ld is not None:
        # Examples join the batch, inside its groups.
        out = conv(_merge_inside(lhs, ld, ls[0], batch_groups), rhs, groups, batch_groups)
        return _split(out, os[0], axis.size), os[0]
    # Kernels join the output features, inside their groups.
    inner = max(groups, batch_groups)
    out = conv(lhs, _merge_inside(rhs, rd, rs[0], inner), groups, batch_groups)
    if inner == 1:
        return _split(out, os[1], axis.size), os[1]
    shape = aval_of(out).shape
    members = shape[os[1]] // (inner * axis.size)
    split = reshape(
        out, shape=(*shape[: os[1]], inner, axis.size, members, *shape[os[1] + 1 :])
    )
    split = moveaxis(split, os[1] + 1, 0)
    whole = (axis.size, *shape[: os[1]], inner * members, *shape[os[1] + 1 :])
    return reshape(split, shape=whole), 0


def _merge_inside(x: Any, source: int, into: int, groups: int) -> Any:
    """`_merge` between the groups of a dimension and their members."""
    if groups == 1:
        return _merge(x, source, into)
    x = _split(moveaxis(x, source, 0), into + 1, groups)  # (source, …, groups, members, …)
    return _merge(_merge(x, 0, into + 1), into, into)


def _hlo(
    b: Any,
    lhs: Any,
    rhs: Any,
    *,
    window_strides: Ints,
    padding: Pairs,
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dimension_numbers: ConvDimensionNumbers,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> Any:
    (out,) = b.outs
    if 0 in lhs.shape or 0 in rhs.shape or 0 in out.shape:
        return b.full(out.shape, 0, out.dtype)
    return b.convolution(
        lhs,
        rhs,
        dims=tuple(dimension_numbers),
        strides=window_strides,
        padding=padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        feature_group_count=feature_group_count,
        batch_group_count=batch_group_count,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


conv_general_dilated = Op(
    name="conv_general_dilated",
    kind=WINDOW,
    type=_type,
    impl=_impl,
    jvp=each(_along_lhs, _along_rhs),
    transpose=_transpose,
    batch=_batch,
    shard=by_kind,
    hlo=_hlo,
    kernel=lambda k, lhs, rhs, **params: k.convolution(lhs, rhs, **params),
)

"""Convolutions as users call them: layouts by letters, padding by name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.dtypes import check_user_dtype_supported
from primal.ir.trace import Array, aval_of
from primal.lax.windows import Padding, explicit_padding, ints
from primal.ops.precision import Precision, check_preferred, plain_precision, product
from primal.ops.shape import rev, transpose
from primal.ops.types import static_ints
from primal.ops.window.convolution import ConvDimensionNumbers
from primal.ops.window.convolution import conv_general_dilated as conv_op
from primal.runtime.refusals import in_words

ConvGeneralDilatedDimensionNumbers = ConvDimensionNumbers | tuple[str, str, str] | None


@in_words
def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """The places of batch, feature and spatial dimensions, from letters.

    `dimension_numbers` is a triple of strings for lhs, rhs and the result: N batch, C feature,
    O and I output and input features of rhs, any other letter a spatial dimension; None is NC…,
    OI…, NC…. TypeError when letters and ranks do not fit.

    >>> lax.conv_dimension_numbers((1, 2, 3, 4), (1, 2, 3, 4), ('NHWC', 'HWIO', 'NHWC')).rhs_spec
    (3, 2, 0, 1)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    rank = len(lhs_shape)
    if rank != len(rhs_shape):
        raise TypeError(
            f"[convolution] expected lhs and rhs of equal rank, got {rank} and {len(rhs_shape)}: "
            "convolution requires lhs and rhs ndim to be equal."
        )
    if dimension_numbers is None:
        order = tuple(range(rank))
        return ConvDimensionNumbers(order, order, order)
    if not isinstance(dimension_numbers, list | tuple) or len(dimension_numbers) != 3:
        raise TypeError(
            "[convolution] expected dimension_numbers None, a ConvDimensionNumbers or a triple of "
            f"strings, got {dimension_numbers!r}: convolution dimension_numbers list/tuple must be "
            "length 3."
        )
    lhs, rhs, out = dimension_numbers
    for i, (letters, needed) in enumerate(((lhs, "NC"), (rhs, "OI"), (out, "NC"))):
        if len(letters) != rank:
            raise TypeError(
                f"[convolution] expected dimension_numbers[{i}] with {rank} letters, one per "
                f"dimension, got {letters!r}: convolution dimension_numbers[{i}] must have len "
                "equal to the ndim of lhs and rhs."
            )
        if len(set(letters)) != rank or not set(needed) <= set(letters):
            raise TypeError(
                f"[convolution] expected dimension_numbers[{i}] with distinct letters, {needed[0]}"
                f" and {needed[1]} among them, got {letters!r}: it must contain the characters "
                f"{needed[0]!r} and {needed[1]!r} exactly once."
            )
    if not set(lhs) - set("NC") == set(rhs) - set("OI") == set(out) - set("NC"):
        raise TypeError(
            "[convolution] expected the same letters for spatial dimensions everywhere, got "
            f"{dimension_numbers}."
        )
    spatial = [c for c in rhs if c not in "OI"]

    def places(letters: str, first: str) -> tuple[int, ...]:
        return tuple([letters.index(c) for c in (*first, *spatial)])

    return ConvDimensionNumbers(places(lhs, "NC"), places(rhs, "OI"), places(out, "NC"))


@in_words
def conv_general_dilated(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Convolution (cross-correlation) of any rank, with strides, dilations and groups.

    out[n, o, p] = Σ(c, k) lhs[n, c, p * stride + k * rhs_dilation - low] * rhs[o, c, k], lhs spread
    by lhs_dilation and padded with zeros. Parameters have one entry per spatial dimension; padding
    is 'SAME', 'SAME_LOWER', 'VALID' or pairs. Output features of group g see input features of
    group g (or batch group g). One dtype, kept unless preferred_element_type is given. TypeError or
    ValueError where shapes do not fit.

    >>> lax.conv_general_dilated(jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2)), (1,), 'SAME')
    Array([[[2., 2., 1.]]], dtype=float32)
    """
    name = "conv_general_dilated"
    left, right = aval_of(lhs), aval_of(rhs)
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    rank = left.ndim - 2
    strides = ints(f"{name} window_strides", window_strides, rank)
    spread = ints(f"{name} lhs_dilation", lhs_dilation, rank)
    dilation = ints(f"{name} rhs_dilation", rhs_dilation, rank)
    for what, values in (("window_strides", strides), ("rhs_dilation", dilation)):
        if len(values) != rank:
            raise ValueError(
                f"[{name}] expected {what} with {rank} entries, one per spatial dimension, got "
                f"{values}: window and {what} must have the same number of dimensions."
            )
    if any(s < 1 for s in (*strides, *spread, *dilation)):
        raise (TypeError if min(dilation, default=1) < 1 else ValueError)(
            f"[{name}] expected positive strides and dilations, got {strides}, {spread} and "
            f"{dilation}: {'All dilations' if min(strides, default=1) > 0 else 'strides'} must be "
            "positive."
        )
    by_name = isinstance(padding, str) or hasattr(padding, "name")
    if by_name and any(s != 1 for s in spread):
        raise ValueError(
            f"[{name}] expected padding as pairs together with lhs_dilation, got {padding!r}: "
            "String padding is not implemented for transposed convolution using this op. Use "
            "conv_transpose."
        )
    if by_name or not hasattr(padding, "__len__") or len(padding) == rank:
        pads = explicit_padding(
            name,
            padding,
            [left.shape[d] for d in numbers.lhs_spec[2:]],
            [right.shape[d] for d in numbers.rhs_spec[2:]],
            strides,
            dilation,
        )
    else:
        raise TypeError(
            f"[{name}] expected padding with {rank} pairs, got {len(padding)}: Wrong number of "
            "explicit pads for convolution."
        )
    wanted = None
    if preferred_element_type is not None:
        wanted = check_user_dtype_supported(preferred_element_type, name)
    check_preferred(name, left.dtype, wanted, kinds=True)
    return conv_op(
        lhs,
        rhs,
        window_strides=strides,
        padding=pads,
        lhs_dilation=spread,
        rhs_dilation=dilation,
        dimension_numbers=numbers,
        feature_group_count=int(feature_group_count),
        batch_group_count=int(batch_group_count),
        precision=plain_precision(precision),
        preferred_element_type=wanted,
    )


@in_words
def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """`conv_general_dilated` of (N, C, …) by (O, I, …), without dilation.

    >>> lax.conv(jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2)), (1,), 'VALID')
    Array([[[2., 2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


@in_words
def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """`conv_general_dilated` of (N, C, …) by (O, I, …).

    >>> lax.conv_with_general_padding(
    ...     jnp.ones((1, 1, 3)), jnp.ones((1, 1, 2)), (1,), [(0, 0)], None, (2,))
    Array([[[2.]]], dtype=float32)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


_CHANNELS_LAST = {3: ("NHC", "HIO", "NHC"), 4: ("NHWC", "HWIO", "NHWC"), 5: ("NHWDC", "HWDIO",
                                                                            "NHWDC")}  # fmt: skip


@in_words
def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Padding,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Convolution with a fractional stride: lhs spread by `strides`, then convolved.

    'SAME' gives size * stride places, 'VALID' (size - 1) * stride + max(window, stride); pairs pad
    the spread lhs. `transpose_kernel` reverses rhs and swaps its features, which makes this the
    transpose of `conv_general_dilated`. With `use_consistent_padding` pairs are those of that
    convolution: window - 1 - pair is padded. Channels come last unless dimension_numbers say
    otherwise. ValueError without dimension_numbers for ranks but 3 to 5.

    >>> lax.conv_transpose(jnp.ones((1, 2, 1)), jnp.ones((2, 1, 1)), (2,), 'SAME')[0, :, 0]
    Array([1., 1., 1., 1.], dtype=float32)
    """
    left, right = aval_of(lhs), aval_of(rhs)
    if dimension_numbers is None:
        if left.ndim not in _CHANNELS_LAST:
            raise ValueError(
                f"[conv_transpose] expected 3 to 5 dimensions or dimension_numbers, got shape "
                f"{left.shape}: no 4+ dimensional dimension_number defaults."
            )
        dimension_numbers = _CHANNELS_LAST[left.ndim]
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    rank = left.ndim - 2
    steps = ints("conv_transpose strides", strides, rank)
    dilation = ints("conv_transpose rhs_dilation", rhs_dilation, rank)
    window = [right.shape[d] for d in numbers.rhs_spec[2:]]
    covered = [(k - 1) * d + 1 for k, d in zip(window, dilation, strict=True)]
    if isinstance(padding, str) and padding.upper() in ("SAME", "VALID"):
        same = padding.upper() == "SAME"
        padding = [_transposed_pads(k, s, same) for k, s in zip(covered, steps, strict=True)]
    elif use_consistent_padding and not isinstance(padding, str):
        padding = [
            (k - 1 - low, k - 1 - high) for k, (low, high) in zip(covered, padding, strict=True)
        ]
    if transpose_kernel:
        rhs = rev(rhs, dimensions=numbers.rhs_spec[2:])
        order = list(range(left.ndim))
        o, i = numbers.rhs_spec[:2]
        order[o], order[i] = order[i], order[o]
        rhs = transpose(rhs, permutation=tuple(order))
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * rank,
        padding,
        steps,
        dilation,
        numbers,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def _transposed_pads(window: int, stride: int, same: bool) -> tuple[int, int]:
    if same:
        total = window + stride - 2
        before = window - 1 if stride > window - 1 else math.ceil(total / 2)
    else:
        total = window + stride - 2 + max(window - stride, 0)
        before = window - 1
    return before, total - before


@in_words
def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The windows that a convolution reads, as features: out[n, (c, k), p] = lhs[n, c, p + k].

    >>> lax.conv_general_dilated_patches(jnp.arange(3.).reshape(1, 1, 3), (2,), (1,), 'VALID')
    Array([[[0., 1.],
            [1., 2.]]], dtype=float32)
    """
    left = aval_of(lhs)
    shape = static_ints("conv_general_dilated_patches filter_shape", filter_shape)
    rank = len(shape)
    numbers = conv_dimension_numbers(left.shape, (1,) * (rank + 2), dimension_numbers)
    features = left.shape[numbers.lhs_spec[1]]
    count = math.prod(shape)
    # A kernel of unit vectors, the same for every feature.
    units = np.eye(count, dtype=left.dtype).reshape((count, 1, *shape))
    kernel = np.tile(units, (features, 1, *(1,) * rank))
    order = [numbers.rhs_spec.index(i) for i in range(rank + 2)]
    return conv_general_dilated(
        lhs,
        np.transpose(kernel, order),
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        numbers,
        feature_group_count=features,
        precision=Precision.HIGHEST if precision is None else precision,
        preferred_element_type=preferred_element_type,
    )


@in_words
def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Padding,
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    precision: Any = None,
) -> Array:
    """A convolution whose kernel differs from place to place: a locally connected layer.

    rhs has the layout of a kernel, with the output's places as its spatial dimensions and the
    features and places of a window, (C, *filter_shape), in one dimension of inputs.

    >>> kernels = jnp.array([[[1., 10.], [0., 1.]]])  # (O, C·2, places)
    >>> lax.conv_general_dilated_local(jnp.array([[[1., 2., 3.]]]), kernels, (1,), 'VALID', (2,))
    Array([[[ 1., 23.]]], dtype=float32)
    """
    left, right = aval_of(lhs), aval_of(rhs)
    numbers = conv_dimension_numbers(left.shape, right.shape, dimension_numbers)
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers,
        precision=precision,
    )  # fmt: skip
    n, features, *places = numbers.out_spec
    o, inputs, *own = numbers.rhs_spec
    numbered = (((features,), (inputs,)), (tuple(places), tuple(own)))
    found = product(patches, rhs, numbered, precision, None)
    # (places…, n, o) to the layout of the output.
    rank = len(places)
    source = dict(zip((*places, n, features), range(rank + 2), strict=True))
    return transpose(found, permutation=tuple([source[d] for d in range(rank + 2)]))


@in_words
def conv_general_permutations(dimension_numbers: Any) -> tuple[tuple[int, ...], ...]:
    """For layouts by letters, the permutations of lhs, rhs and output that put features second.

    >>> lax.conv_general_permutations(('NHWC', 'HWIO', 'NHWC'))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    rank = len(dimension_numbers[0])
    numbers = conv_dimension_numbers((1,) * rank, (1,) * rank, tuple(dimension_numbers))
    return numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec

"""Einstein summation: `einsum` as a chain of products of two operands.

Each step is one `dot_general`: labels of both operands are contracted, or batched where they are
still needed; labels of one operand alone are summed before. For three operands and more, opt_einsum
finds the order; it is imported on the first such call.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from primal.base import dtypes
from primal.ir.trace import Array
from primal.numpy.contraction import product
from primal.numpy.creation import placed
from primal.numpy.diagonals import diagonal
from primal.numpy.promotion import (
    BOOL,
    DTypeLike,
    array_operand,
    asked_dtype,
    check_out,
    convert,
    operand,
    promote_to_one_dtype,
    promoted_dtype,
)
from primal.numpy.reductions import sum as total
from primal.numpy.remembered import remembered
from primal.numpy.ufuncs import multiply
from primal.ops import shape as shape_ops
from primal.ops.reduce import reduce_or
from primal.ops.spread import broadcast_in_dim
from primal.runtime.refusals import in_words

LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@remembered
def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    _dot_general: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Sums of products over labelled axes: `'ij,jk->ik'` is the product of two matrices.

    out[o…] = Σ over labels not in the output of Π operands. Labels twice in one operand take its
    diagonal; `...` stands for axes that broadcast; without `->` the output has the labels that
    occur once, in order. `optimize` is passed to opt_einsum for three operands and more.
    `_dot_general` is a function with the arguments of `lax.dot_general`, for all products of two
    operands. ValueError for subscripts that do not fit, TypeError for a `_dot_general` that is no
    function, NotImplementedError for `out`.

    >>> jnp.einsum("ij,j->i", jnp.ones((2, 3)), jnp.arange(3.))
    Array([3., 3.], dtype=float32)
    """
    check_out("einsum", out)
    if _dot_general is not None and not callable(_dot_general):
        raise TypeError(f"[einsum] expected a function as _dot_general, got {_dot_general!r}.")
    if not isinstance(subscripts, str):
        subscripts, operands = _from_interleaved(subscripts, operands)
    given = [operand("einsum", x, i) for i, x in enumerate(operands)]
    shapes = tuple([x.aval.shape for x in given])
    terms, output = _parse(subscripts, shapes)
    try:
        dtype, weak = promoted_dtype(given)
        items = promote_to_one_dtype("einsum", *operands)
    except dtypes.TypePromotionError:
        if preferred_element_type is None:
            raise
        dtype, weak, items = given[0].aval.dtype, False, given
    preferred = dtype
    if preferred_element_type is not None:
        preferred = asked_dtype("einsum", dtype, preferred_element_type)
        weak = False
    pairs = [(x, t) for x, t in zip(items, _sized(terms, shapes), strict=True)]
    work = [_squeezed(x, names, kept) for x, (names, kept) in pairs]
    for chosen in _order(terms, output, shapes, optimize):
        taken = [work.pop(i) for i in sorted(chosen, reverse=True)][::-1]
        needed = set(output).union(*[names for _, names in work])
        while len(taken) > 1:
            rest = needed.union(*[names for _, names in taken[2:]])
            taken[:2] = [_pair(taken[0], taken[1], rest, precision, preferred, _dot_general)]
        work.append(_reduced(taken[0], needed))
    ((x, names),) = work
    if names != output:
        permutation = tuple([names.index(n) for n in output])
        x = shape_ops.transpose(x, permutation=permutation)
    return placed(convert(array_operand("einsum", x), preferred, weak), None, out_sharding)


@in_words
def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: Any = "auto"
) -> tuple[list[Any], Any]:
    """The order in which `einsum` would take its operands, and a report of its cost.

    >>> jnp.einsum_path("ij,jk,kl", *[jnp.ones((2, 2))] * 3)[0]
    [(0, 1), (0, 1)]
    """
    import opt_einsum

    if not isinstance(subscripts, str):
        subscripts, operands = _from_interleaved(subscripts, operands)
    if optimize is False:
        optimize = [tuple(range(len(operands)))]
    shapes = [operand("einsum_path", x, i).aval.shape for i, x in enumerate(operands)]
    path, report = opt_einsum.contract_path(
        subscripts, *shapes, shapes=True, optimize="optimal" if optimize is True else optimize
    )
    return path, report


# Reading subscripts.


def _from_interleaved(first: Any, rest: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
    """`einsum(x, [0, 1], y, [1], [0])` as text and operands."""
    values = [first, *rest]
    output = list(values.pop()) if len(values) % 2 else None
    operands, lists = tuple(values[::2]), [list(s) for s in values[1::2]]
    labels = sorted({n for s in [*lists, output or []] for n in s if n is not Ellipsis})
    letters = dict(zip(labels, LETTERS, strict=False))

    def text(s: Sequence[Any]) -> str:
        return "".join(["..." if n is Ellipsis else letters[n] for n in s])

    subscripts = ",".join([text(s) for s in lists])
    return subscripts + ("" if output is None else "->" + text(output)), operands


@functools.lru_cache(maxsize=1024)
def _parse(subscripts: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[str, ...], str]:
    """(the labels of each operand, the labels of the output), `...` expanded."""
    text = subscripts.replace(" ", "")
    left, arrow, output = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise ValueError(
            f"Number of einsum subscripts, {len(terms)}, must be equal to the number of operands, "
            f"{len(shapes)}."
        )
    for label in left.replace("...", "").replace(",", "") + output.replace("...", ""):
        if label in "->.":
            raise ValueError(f"Character {label!r} is not a valid symbol in {subscripts!r}.")
    free = [c for c in LETTERS if c not in text]
    widest = 0
    for term, have in zip(terms, shapes, strict=True):
        if "..." in term:
            widest = max(widest, len(have) - len(term) + 3)
    dots = "".join(free[:widest])
    expanded = []
    for i, (term, have) in enumerate(zip(terms, shapes, strict=True)):
        rank = len(have) - len(term) + 3 if "..." in term else 0
        names = term.replace("...", dots[len(dots) - rank :]) if rank >= 0 else term
        if len(names) != len(have):
            raise ValueError(
                f"Einstein sum subscript {term!r} does not contain the correct number of indices "
                f"for operand {i}, which has {len(have)} dimensions."
            )
        expanded.append(names)
    if arrow:
        output = output.replace("...", dots)
    else:
        once = [c for c in sorted(set(left) - {".", ","}) if left.count(c) == 1]
        output = dots + "".join(once)
    for c in output:
        if output.count(c) > 1:
            raise ValueError(f"Output character {c!r} appeared more than once in the output.")
        if not any(c in t for t in expanded):
            raise ValueError(f"Output character {c!r} did not appear in the input.")
    return tuple(expanded), output


def _sized(terms: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> list[tuple[str, list[int]]]:
    """Per operand its labels, and the axes to keep: those of size 1 against larger ones are not."""
    sizes: dict[str, int] = {}
    for i, (names, have) in enumerate(zip(terms, shapes, strict=True)):
        for name, n in zip(names, have, strict=True):
            known = sizes.get(name, 1)
            if n != known and known != 1 and n != 1:
                raise ValueError(
                    f"Size of label {name!r} for operand {i} ({known}) does not match previous "
                    f"terms ({n})."
                )
            if n != 1 or name not in sizes:
                sizes[name] = n
    return [
        (names, [i for i, (c, n) in enumerate(zip(names, have, strict=True)) if sizes[c] == n])
        for names, have in zip(terms, shapes, strict=True)
    ]


def _order(terms: Any, output: str, shapes: Any, optimize: Any) -> list[tuple[int, ...]]:
    """Which operands each step takes."""
    n = len(terms)
    if n <= 2 or optimize is False:
        return [tuple(range(n))]
    if isinstance(optimize, list | tuple):
        steps = [tuple(p) for p in optimize if p != "einsum_path"]
        left = n - sum(len(p) - 1 for p in steps)
        return steps if left <= 1 else [*steps, tuple(range(left))]
    return _found_order(terms, output, shapes, "optimal" if optimize is True else optimize)


@functools.lru_cache(maxsize=1024)
def _found_order(terms: Any, output: str, shapes: Any, optimize: Any) -> list[tuple[int, ...]]:
    import opt_einsum

    text = ",".join(terms) + "->" + output
    path, _ = opt_einsum.contract_path(text, *shapes, shapes=True, optimize=optimize)
    return [tuple(p) for p in path]


# One or two operands at a time: pairs of (array, labels).


def _squeezed(x: Any, names: str, kept: list[int]) -> tuple[Any, str]:
    """Without broadcast axes, and with every label once (a diagonal where it was twice)."""
    if len(kept) != len(names):
        dropped = tuple([i for i in range(len(names)) if i not in kept])
        x = shape_ops.squeeze(x, dimensions=dropped)
        names = "".join([names[i] for i in kept])
    while len(set(names)) != len(names):
        label = next(c for c in names if names.count(c) > 1)
        i = names.index(label)
        j = names.index(label, i + 1)
        x = diagonal(x, 0, i, j)
        names = "".join([c for k, c in enumerate(names) if k not in (i, j)]) + label
    return x, names


def _reduced(pair: tuple[Any, str], needed: set[str]) -> tuple[Any, str]:
    """Summed over the labels that nobody needs."""
    x, names = pair
    gone = tuple([i for i, c in enumerate(names) if c not in needed])
    if not gone:
        return pair
    if x.aval.dtype == BOOL:
        summed = reduce_or(x, axes=gone)
    else:
        summed = total(x, axis=gone, promote_integers=False)
    return summed, "".join([c for c in names if c in needed])


def _pair(
    one: tuple[Any, str], other: tuple[Any, str], needed: set[str], precision: Any, preferred: Any,
    dot: Any,
) -> tuple[Any, str]:  # fmt: skip
    x, a = _reduced(one, needed | set(other[1]))
    y, b = _reduced(other, needed | set(one[1]))
    shared = [c for c in a if c in b]
    contracted = [c for c in shared if c not in needed]
    if not contracted and dot is None:
        return _outer(x, a, y, b)
    batch = [c for c in shared if c in needed]

    def places(names: str, labels: Sequence[str]) -> tuple[int, ...]:
        return tuple([names.index(c) for c in labels])

    numbers = (places(a, contracted), places(b, contracted)), (places(a, batch), places(b, batch))
    if dot is None:
        out = product(x, y, numbers, precision, preferred)
    else:
        out = dot(x, y, numbers, precision, preferred_element_type=preferred)
    own = [c for c in a if c not in shared], [c for c in b if c not in shared]
    return out, "".join([*batch, *own[0], *own[1]])


def _outer(x: Any, a: str, y: Any, b: str) -> tuple[Any, str]:
    """The product without contraction: elementwise, after broadcasting to one order of labels."""
    names = a + "".join([c for c in b if c not in a])
    if x.aval.dtype != y.aval.dtype:
        y = convert(y, x.aval.dtype, x.aval.weak_type)
    return multiply(_aligned(x, a, names), _aligned(y, b, names)), names


def _aligned(x: Any, own: str, names: str) -> Any:
    if own == names or not own:
        return x
    order = sorted(own, key=names.index)
    if "".join(order) != own:
        x = shape_ops.transpose(x, permutation=tuple([own.index(c) for c in order]))
    sizes = dict(zip(order, x.aval.shape, strict=True))
    if len(order) == len(names):
        return x
    return broadcast_in_dim(
        x,
        shape=tuple([sizes.get(c, 1) for c in names]),
        broadcast_dimensions=tuple([names.index(c) for c in order]),
    )

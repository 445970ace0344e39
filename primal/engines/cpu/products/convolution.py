"""conv_general_dilated as sums of products over loops: forward and both gradients are one case.

The dimensions of a convolution become loops with strides in its operands, in whatever layout they
have: batch and output places outside, features and window inside. Lanes run along output features,
or along the last output dimension where that is contiguous in the operand as well; the other side
of the tile is the biggest of the remaining dimensions. Only edges are made: a padded copy.

Unfolding into a matrix for BLAS was rejected: 3 x 3 windows write nine times the input, and what
BLAS then packs is written once more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.structures import replaced, structure
from primal.engines.cpu import _llvm
from primal.engines.cpu.graph import NATIVE, Value, row_major, size_of, sliced, transposed
from primal.engines.cpu.products.panels import Loop, Panels, blocked, units_of, words_of
from primal.engines.cpu.products.ways import SPEED
from primal.engines.cpu.routines.moves import merged
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

DEEP, BLOCK = 1024, 256
"""Terms of a sum from which they come in blocks, and those of a block."""
LOOPS = 2, 3
"""Loops outside and inside of images; with fewer, the others have one turn, and no other code."""
WIDER = 4
"""Vectors of a single row: additions wait for each other as long as four of them take."""
LEAST_UNITS = 6
"""Units that are left when loops move inside the blocks."""
FEW, LONG = 32, 4096
"""Results, an eighth as many per place, and terms of each from which they are reductions (3 x 3
places of windows of 1000 x 1000: 4.8 to 1.2 ms, with the copies that pad)."""
TURNED = 4
"""Taps from which x is turned, so that lanes run along places, where features fill few of them: 56
x 56 places of 3 features, of 4 x 4 taps of 64, 0.97 ms along these, 0.28 so."""
MOST_TAPS = 32
"""Windows up to this size are written out where every feature has a window of its own, and in loops
that of the only one (a turn of 3 in 1000 numbers 770 to 165 ns, JAX 400; of 3 x 3 in 32 x 32 with
tanh 2.4 to 0.83 us): elsewhere each window would be a kernel to compile."""

SIGNAL, FEW_TAPS = 1 << 16, 8
"""Elements of a padded row from which, and of a window up to which, sums of one feature are written
out: a copy with its padding takes longer than they do (a million doubles, 3 of a window, 0.76 to
0.23 ms, JAX 0.47; 8 of a window 1.04 to 0.29)."""

Ints = tuple[int, ...]


def convolution(
    k: Any,
    x: Value,
    w: Value,
    *,
    window_strides: Ints,
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Ints,
    rhs_dilation: Ints,
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    precision: Any,
    preferred_element_type: Any,
) -> Value:
    """out[n, o, p] = Σ(c, k) x[n, c, p·stride + k·dilation - low] w[o, c, k]."""
    xs, ws, os = dimension_numbers
    out = x.dtype if preferred_element_type is None else preferred_element_type
    work = x.dtype
    if dtypes.is_narrow_float(work):
        work = np.dtype(np.float32)
    if preferred_element_type is not None:
        work = dtypes.sums_dtype(work, preferred_element_type)
    if 0 in x.shape or 0 in w.shape:
        raise Unsupported("no elements")
    if work.kind in "iu" and x.dtype.kind in "iu" and w.dtype == x.dtype:
        given = {
            "window_strides": window_strides, "padding": padding, "lhs_dilation": lhs_dilation,
            "rhs_dilation": rhs_dilation, "dimension_numbers": dimension_numbers,
            "feature_group_count": feature_group_count, "batch_group_count": batch_group_count,
            "precision": precision, "preferred_element_type": None,
        }  # fmt: skip
        whole = _of_integers(k, x, w, work, size_of(w.shape) // w.shape[ws[0]], given)
        return k.convert(whole, out)
    if NATIVE.get(work) not in ("f4", "f8"):
        raise Unsupported(f"conv_general_dilated in {work}")
    x, w = k.held(k.convert(x, work)), k.held(k.convert(w, work))
    x, w = transposed(x, xs), transposed(w, ws)
    order = tuple([os.index(i) for i in range(len(os))])  # place in dims of output dimension i
    by = Windows(
        window_strides, padding, lhs_dilation, rhs_dilation, feature_group_count, batch_group_count
    )
    return k.convert(_sums(k, x, w, by, order), out)


@structure
class Windows:
    """How windows lie: their places' steps, what is before and behind each dimension of x, how far
    apart its elements are and the taps of w; in how many groups features and images are."""

    strides: Ints
    padding: Sequence[tuple[int, int]]
    between: Ints
    apart: Ints
    groups: int
    batches: int

    def counts(self, x: Value, w: Value) -> Ints:
        """The number of places in each dimension."""
        fields = self.strides, self.padding, self.between, self.apart
        return tuple(
            [
                ((n - 1) * between + low + high - (m - 1) * apart) // step + 1
                for n, m, step, (low, high), between, apart in zip(
                    x.shape[2:], w.shape[2:], *fields, strict=True
                )
            ]
        )


def _sums(k: Any, x: Value, w: Value, by: Windows, order: Ints) -> Value:
    """out[n, o, p] of x[n, c, q] and w[o, c, t], its dimensions in `order`."""
    counts = by.counts(x, w)
    if len(counts) == 1 and (x.shape[2], w.shape[2]) == (x.size, w.size):
        if _is_signal(x, w, by.padding[0], (*by.strides, *by.between), by.apart[0]):
            value = _signal(k, x, w, by.padding[0], by.apart[0])
            return transposed(k.reshape(value, (1, 1, value.size)), order)
    groups = by.groups * by.batches
    batch, each = x.shape[0] // by.batches, w.shape[0] // groups
    dims = (batch, w.shape[0], *counts)
    if min(dims) <= 0:
        raise Unsupported("no elements")
    width = _llvm.compiler().width
    lanes = width // x.dtype.itemsize
    turned = (order[-1], x.steps()[-1]) != (x.ndim - 1, 1) and size_of(w.shape[2:]) >= TURNED
    if turned and by.strides[-1] == 1 and _few_to_many(each, counts[-1] // by.between[-1], lanes):
        if set(by.between) == {1}:
            x = _padded(k, x, by, range(x.ndim))
            by = replaced(by, padding=((0, 0),) * len(counts))
        x = x if x.steps()[-1] == 1 else k.copy(x)
        return transposed(_sums(k, x, w, by, tuple(range(x.ndim))), order)
    if set(by.between) != {1} == set(by.strides):
        return _by_phases(k, x, w, by, order)
    x = _padded(k, x, by, sorted(range(x.ndim), key=lambda d: -x.steps()[d]))
    if size_of(counts) == 1 and groups == 1:
        return _at_one_place(k, x, w, order, by.apart)
    few = size_of(dims) <= FEW and size_of(dims[:2]) <= FEW // 8
    if groups == 1 and few and size_of(w.shape[1:]) >= LONG:
        return _few(k, x, w, dims, order, by.strides, by.apart)
    # Strides of x for groups, batch and places, and for features and window.
    sx, sw = x.steps(), w.steps()
    inside = x.shape[1] // by.groups
    split = batch * sx[0] if by.batches > 1 else inside * sx[1]
    places = [step * s for step, s in zip(by.strides, sx[2:], strict=True)]
    taps = [far * s for far, s in zip(by.apart, sx[2:], strict=True)]
    one_each = inside == 1 and each == 1 and by.batches == 1
    if one_each and (groups > 1 or k.path) and size_of(w.shape[2:]) <= MOST_TAPS:
        return _written(k, x, w, dims, order, places, taps)
    inner = [
        (n, (a, b)) for n, a, b in zip((inside, *w.shape[2:]), (sx[1], *taps), sw[1:], strict=True)
    ]
    last = order[-1]
    if last >= 2 and places[last - 2] == 1 and 2 * counts[last - 2] >= lanes:
        return _along_places(k, x, w, dims, order, groups, each, split, places, inner, last, width)
    return _along_features(k, x, w, dims, order, groups, each, split, places, inner, width)


def _few_to_many(features: int, places: int, lanes: int) -> bool:
    """Whether features fill at most half of a vector, and places half as much again of theirs."""
    return 2 * features <= lanes <= 2 * places and 3 * features * -(-places // lanes) <= 2 * places


def _padded(k: Any, x: Value, by: Windows, order: Sequence[int]) -> Value:
    """x with its edges, if there are any, which lies in the order of these dimensions then."""
    edges = [(low, high, n - 1) for (low, high), n in zip(by.padding, by.between, strict=True)]
    edges = [(0, 0, 0), (0, 0, 0), *edges]
    if all(e == (0, 0, 0) for e in edges):
        return x
    made = k.pad(transposed(x, order), k.literal(0, x.dtype), tuple([edges[d] for d in order]))
    return transposed(made, [order.index(d) for d in range(x.ndim)])


def _of_integers(
    k: Any, x: Value, w: Value, work: Any, terms: int, given: dict[str, Any]
) -> Value:
    """A convolution of integers by floats that hold every sum of its products.

    Those of 32 bits go by halves, x·w = l·m + 2¹⁶·(h·m + l·n) of those bits. NumPy took 60 ms for
    what 16 features of 64 x 64 in 8 images make of windows of 3 x 3 (JAX 9 to 18).
    """

    def products(a: Value, b: Value, bits: int) -> Value:
        """Of as many bits, which are all that counts in sums of fewer than these have."""
        exact = terms << 2 * bits
        if exact > 1 << 53:
            raise Unsupported(f"sums of {terms} products of {bits} bits")
        wide, whole = (np.float32, np.int32) if exact <= 1 << 24 else (np.float64, np.int64)
        a, b = (k.convert(v, np.dtype(wide)) for v in (a, b))
        return k.convert(k.convert(convolution(k, a, b, **given), np.dtype(whole)), work)

    bits = 8 * x.dtype.itemsize
    if bits <= 16:
        return products(x, w, bits)
    if bits != 32 or work.itemsize != 4:
        raise Unsupported(f"conv_general_dilated of {x.dtype} in {work}")
    half = k.literal(16, x.dtype)

    def halves(v: Value) -> tuple[Value, Value]:
        low = k.binary("and", v, k.literal((1 << 16) - 1, v.dtype))
        return low, k.binary("shift_right_logical", v, half)

    (low, high), (least, most) = halves(x), halves(w)
    across = k.binary("add", products(high, least, 16), products(low, most, 16))
    half = k.literal(16, work)
    return k.binary("add", products(low, least, 16), k.binary("shift_left", across, half))


def _by_phases(k: Any, x: Value, w: Value, by: Windows, order: Ints) -> Value:
    """A convolution of elements that lie apart, of each window those taps that fall on elements.

    Which they are is the same for places as far apart as the elements are: each phase of these is
    a convolution of x as it is, with every so many-th tap. As one of x between zeros, the gradient
    of windows that stride by two in two dimensions multiplies four times as much.
    """
    far, rank = by.between, len(by.between)
    counts = by.counts(x, w)
    dims = [x.shape[0] // by.batches, w.shape[0]]
    dims += [-(-n // f) for n, f in zip(counts, far, strict=True)]
    # From tap to tap of a phase, and from element to element.
    steps = [f // math.gcd(f, apart) for f, apart in zip(far, by.apart, strict=True)]
    inside = [s * apart // f for s, apart, f in zip(steps, by.apart, far, strict=True)]
    # Of each dimension, and each phase of it that has taps: the first, and the elements it meets.
    phases: list[dict[int, tuple[int, int, int]]] = []
    for i, m in enumerate(w.shape[2:]):
        found = {}
        for r, t in itertools.product(range(far[i]), range(min(steps[i], m))):
            at, off = divmod(r + t * by.apart[i] - by.padding[i][0], far[i])
            if not off:
                found[r] = t, at, at + dims[2 + i] + (m - 1 - t) // steps[i] * inside[i]
        phases.append(found)
    starts = [min([a for _, a, _ in found.values()], default=0) for found in phases]
    stops = [max([b for _, _, b in found.values()], default=1) for found in phases]
    edges = tuple([(-a, b - n) for a, b, n in zip(starts, stops, x.shape[2:], strict=True)])
    by = replaced(by, padding=edges, between=(1,) * rank, apart=tuple(inside))
    x = k.held(_padded(k, x, by, sorted(range(x.ndim), key=lambda d: -x.steps()[d])))
    by = replaced(by, padding=((0, 0),) * rank)
    shape = [dims[d] for d in order]
    turns = list(itertools.product(*[range(f) for f in far]))
    made, on_elements = [], np.zeros((len(turns), *w.shape[2:]), np.bool_)
    for turn, phase in enumerate(turns):
        if not all(r in found for r, found in zip(phase, phases, strict=True)):
            made.append(k.broadcast_in_dim(k.literal(0, x.dtype), (1, *shape), ()))
            continue
        met = [found[r] for r, found in zip(phase, phases, strict=True)]
        taps = tuple([slice(t, None, step) for (t, _, _), step in zip(met, steps, strict=True)])
        on_elements[turn][taps] = True
        first = [0, 0, *[a - start for (_, a, _), start in zip(met, starts, strict=True)]]
        stop = [*x.shape[:2], *[b - start for (_, _, b), start in zip(met, starts, strict=True)]]
        elements = sliced(x, first, stop, (1,) * x.ndim)
        window = sliced(w, (0, 0, *[t for t, _, _ in met]), w.shape, (1, 1, *steps))
        made.append(k.reshape(_sums(k, elements, window, by, order), (1, *shape)))
    value = k.concatenate(made, 0)
    lost = k.broadcast_in_dim(_of_zeros(k, w, on_elements), value.shape, (0, 1 + order.index(1)))
    # Each phase's dimension comes behind that of its places, and is one with it.
    value = k.reshape(k.binary("add", value, lost), (*far, *shape))
    turned = [i for d, n in enumerate(order) for i in ((rank + d,) if n < 2 else (rank + d, n - 2))]
    whole = tuple([dims[n] * (far[n - 2] if n >= 2 else 1) for n in order])
    value = k.reshape(transposed(value, turned), whole)
    return sliced(value, (0,) * x.ndim, [(*dims[:2], *counts)[n] for n in order], (1,) * x.ndim)


def _of_zeros(k: Any, w: Value, met: Any) -> Value:
    """What the zeros between elements add to each phase and feature: 0, or NaN where a tap that
    falls on one is not finite. `met`: which taps of a phase fall on elements."""
    zero = k.literal(0, w.dtype)
    products = k.binary("mul", w, k.broadcast_in_dim(zero, w.shape, ()))
    sums = k.reduce("add", products, (1,))
    shape = (met.shape[0], *sums.shape)
    taps = tuple(range(2, len(shape)))
    met = k.broadcast_in_dim(k.constant(met, Aval(met.shape, met.dtype)), shape, (0, *taps))
    sums = k.broadcast_in_dim(sums, shape, tuple(range(1, len(shape))))
    return k.reduce("add", k.select_n(met, sums, k.broadcast_in_dim(zero, shape, ())), taps)


def _at_one_place(k: Any, x: Value, w: Value, order: Ints, rhs_dilation: Ints) -> Value:
    """A product, as windows are as large as x."""
    taps = [(m - 1) * far + 1 for m, far in zip(w.shape[2:], rhs_dilation, strict=True)]
    x = k.slice(x, (0,) * x.ndim, (*x.shape[:2], *taps), (1, 1, *rhs_dilation))
    terms = tuple(range(1, x.ndim))
    value = k.dot_general(
        x, w, dimension_numbers=((terms, terms), ((), ())), precision=None,
        preferred_element_type=None,
    )  # fmt: skip
    return transposed(k.reshape(value, (*value.shape, *[1] * len(taps))), order)


def _few(
    k: Any, x: Value, w: Value, dims: Ints, order: Ints, window_strides: Ints, rhs_dilation: Ints
) -> Value:
    """Long sums of products of slices, which are one pass: filters' gradients of few features."""
    far = (1, 1, *rhs_dilation)
    sizes = [(n - 1) * f + 1 for n, f in zip(w.shape[2:], rhs_dilation, strict=True)]
    made = []
    for n, o, *place in np.ndindex(*dims):
        start = [n, 0, *[p * s for p, s in zip(place, window_strides, strict=True)]]
        limit = [n + 1, x.shape[1], *[a + m for a, m in zip(start[2:], sizes, strict=True)]]
        a = sliced(x, start, limit, far)
        b = sliced(w, (o, *[0] * (w.ndim - 1)), (o + 1, *w.shape[1:]), (1,) * w.ndim)
        product = k.reshape(k.binary("mul", a, b), a.shape[1:])
        total = k.reduce("add", product, tuple(range(product.ndim)))
        made.append(k.reshape(total, (1,)))
    return transposed(k.reshape(k.concatenate(made, 0), dims), order)


def _along_features(
    k: Any, x: Value, w: Value, dims: Ints, order: Ints, groups: int, each: int, split: int,
    places: list[int], inner: list[tuple[int, tuple[int, int]]], width: int,
) -> Value:  # fmt: skip
    """Lanes along output features, in which w is made contiguous."""
    if w.steps()[0] != 1:
        turned = k.copy(transposed(w, (*range(1, w.ndim), 0)))
        steps = turned.steps()
        w = transposed(turned, (w.ndim - 1, *range(w.ndim - 1)))
        inner = [(n, (a, s)) for (n, (a, _)), s in zip(inner, steps, strict=False)]
    # The result has features last; the rest is in the order of the output.
    kept = [d for d in order if d != 1]
    shape = (*[dims[d] for d in kept], dims[1])
    so = dict(zip((*kept, 1), row_major(shape), strict=True))
    loops: dict[int, Loop] = {0: (dims[0], (x.steps()[0], 0, so[0]))}
    for d, s in enumerate(places):
        loops[d + 2] = (dims[d + 2], (s, 0, so[d + 2]))
    rows = max(reversed(kept), key=lambda d: min(dims[d], 28))
    outer = [(groups, (split, each, each)), *[loops[d] for d in kept if d != rows]]
    m = (dims[rows], loops[rows][1][0], so[rows])
    value = _panels(k, x, w, m, each, outer, inner, shape, width)
    return transposed(value, [(*kept, 1).index(d) for d in order])


def _along_places(
    k: Any, x: Value, w: Value, dims: Ints, order: Ints, groups: int, each: int, split: int,
    places: list[int], inner: list[tuple[int, tuple[int, int]]], last: int, width: int,
) -> Value:  # fmt: skip
    """Lanes along the last output dimension, rows along output features."""
    shape = tuple([dims[d] for d in order])
    so = dict(zip(order, row_major(shape), strict=True))
    loops = [(dims[0], (0, x.steps()[0], so[0]))]
    for d, s in enumerate(places):
        if d + 2 != last:
            loops.append((dims[d + 2], (0, s, so[d + 2])))
    step = w.steps()[0]
    outer = [(groups, (each * step, split, each * so[1])), *loops]
    swapped = [(n, (b, a)) for n, (a, b) in inner]
    return _panels(k, w, x, (each, step, so[1]), dims[last], outer, swapped, shape, width)


def _panels(
    k: Any, a: Value, b: Value, m: tuple[int, int, int], n: int, outer: Sequence[Loop],
    inner: Sequence[Loop], shape: Ints, width: int,
) -> Value:  # fmt: skip
    """The routine for these loops."""
    dtype = NATIVE[a.node.dtype]
    outer = merged(outer)
    inner = merged(sorted(inner, key=lambda g: [-abs(s) for s in g[1]]))
    depth = size_of([g[0] for g in inner])
    counts = max(len(outer), LOOPS[0]), max(len(inner), LOOPS[1])
    around, inner = blocked(inner, DEEP, BLOCK)
    lanes = width // a.node.dtype.itemsize
    single = m[0] == 1
    vectors = 1 if n <= lanes else WIDER if single else 2
    # A block that leaves the cache is read again by every unit: fewer units, that do more.
    units = len(outer)
    while around and units:
        before = outer[: units - 1]
        if outer[units - 1][1][1] or units_of(n, before, vectors * lanes) < LEAST_UNITS:
            break
        units -= 1
    spec = Panels(dtype, vectors, lanes, *counts, single)
    callees = spec.callees(m[0])
    words = [0] * len(callees) + words_of(
        m, n, (outer[:units], outer[units:], around, inner), counts, a.node.dtype.itemsize, width
    )
    inside = size_of([g[0] for g in outer[units:]])
    cost = 50 + int(2.0 * m[0] * vectors * lanes * depth * inside / SPEED[dtype])
    return k.routine(
        spec, (a, b), (Aval(shape, a.dtype),), words,
        units=units_of(n, outer[:units], vectors * lanes), cost=min(cost, 2**31 - 1),
        name="convolution", terms=depth, callees=callees,
    )[0]  # fmt: skip


def _written(
    k: Any, x: Value, w: Value, dims: Ints, order: Ints, places: list[int], taps: list[int]
) -> Value:
    """Every feature has a window of its own: products of slices, added up."""
    sx, sw = x.steps(), w.steps()
    shape = tuple([dims[d] for d in order])
    along_x = (sx[0], sx[1], *places)
    along_w = (0, sw[0], *[0] * len(places))
    total: Value | None = None
    for tap in np.ndindex(*w.shape[2:]):
        ax = x.offset + sum(t * s for t, s in zip(tap, taps, strict=True))
        aw = w.offset + sum(t * s for t, s in zip(tap, sw[2:], strict=True))
        part = k.binary(
            "mul",
            x.view(shape, tuple([along_x[d] for d in order]), ax),
            w.view(shape, tuple([along_w[d] for d in order]), aw),
        )
        total = part if total is None else k.binary("add", total, part)
    assert total is not None
    return total


def _is_signal(x: Value, w: Value, edges: tuple[int, int], steps: Ints, apart: int) -> bool:
    """Whether a row is long and has edges, and the window few elements."""
    reach = (w.size - 1) * apart
    return (
        max(edges) > 0 <= min(edges)
        and max(edges) <= reach < SIGNAL <= x.size
        and w.size <= FEW_TAPS
        and all(s == 1 for s in steps)
    )


def _signal(k: Any, x: Value, w: Value, edges: tuple[int, int], apart: int) -> Value:
    """Results whose windows lie in the row, beside those at its ends, which are padded alone."""
    row, window = k.reshape(x, (x.size,)), k.reshape(w, (w.size,))
    reach = (w.size - 1) * apart

    def sums(y: Value) -> Value:
        n = y.size - reach
        (by,) = window.steps()
        total: Value | None = None
        for t in range(w.size):
            part = sliced(y, (t * apart,), (t * apart + n,), (1,))
            part = k.binary("mul", part, window.view((n,), (0,), window.offset + t * by))
            total = part if total is None else k.binary("add", total, part)
        assert total is not None
        return total

    zero, made = k.literal(0, x.dtype), [sums(row)]
    for at, n in enumerate(edges):
        if n:
            start = (x.size - reach) * at
            end = sliced(row, (start,), (start + reach,), (1,))
            end = k.pad(end, zero, ((n * (1 - at), n * at, 0),))
            made.insert(at * len(made), sums(end))
    return k.concatenate(made, 0)

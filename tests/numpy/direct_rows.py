"""Every function that NumPy may answer, in every form that it takes."""

from __future__ import annotations

import itertools

import numpy as np

import primal.numpy as jnp
from tests.numpy.direct_values import SIGNED, SPECIAL, SPECIALS, VECTOR

RNG = np.random.default_rng(0)
FINITE = np.array([0.0, -0.0, 1e-40, -1e-40, 1e-20, -7.0, 2.0**62, -(2.0**62), 1e15], np.float32)
POINTS = np.array([0.5, -1.0, 2.0, 3.5, -2.0, 1.25, 4.0, 0.0], np.float32)
EDGES = np.array([-2.0, 0.0, 0.5, 3.0], np.float32)
WHOLE = np.array([3, 1, 3, 0, 7, 7, 2, 1], np.int32)
MATRIX = RNG.normal(size=(5, 5)).astype(np.float32)
COMPLEX = np.add.outer(np.array(SPECIAL, np.complex64), [0j, 1j * np.inf, -2j, np.nan * 1j])
MANY = np.tile(VECTOR, (3, 1 << 14))
POSITIVE = MATRIX @ MATRIX.T + np.eye(5, dtype=np.float32)
SINGULAR = np.ones((4, 4), np.float32)
NANS = np.array([1.0, np.nan, -2.0, np.nan, 0.5], np.float32)
GRID = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
EMPTY = np.zeros(0, np.float32)
with np.errstate(over="ignore"):
    HALVES = np.array(SPECIAL).astype(np.float16)
NANS_16, GRID_16 = NANS.astype(np.float16), GRID.astype(np.float16)


def both(*more):
    """Calls of two operands: ordinary, special, mixed with scalars, of several ranks, empty."""
    pairs = itertools.product(SPECIAL, SPECIAL)
    left, right = (np.array(v, np.float32) for v in zip(*pairs, strict=True))
    return [
        ((left, right), {}),
        ((VECTOR, 2.0), {}),
        ((2.0, VECTOR), {}),
        ((GRID, GRID[0]), {}),
        ((EMPTY, EMPTY), {}),
        ((VECTOR.astype(np.float16), VECTOR.astype(np.float16)), {}),
        ((VECTOR, WHOLE), {}),
        *more,
    ]


def over(*arrays, **options):
    return [((x,), options) for x in arrays]


BYTES = WHOLE.astype(np.uint8)
PAIRS = np.array([2 - 1j, 1 + 1j, 2 - 1j, 0, -2j, 1], np.complex64)
SETS = (HALVES, PAIRS, WHOLE, WHOLE.reshape(2, 4), SPECIALS, VECTOR, EMPTY, WHOLE > 2, BYTES)
MATRICES = (
    MATRIX,
    POSITIVE,
    SINGULAR,
    MATRIX[:3, :3],
    MATRIX[:1, :1],
    np.stack([MATRIX] * 2),
    np.full((4, 4), np.nan, np.float32),
    MATRIX + 1j * POSITIVE,
    MATRIX[:0, :0],
    np.where(np.eye(5) > 0, np.inf, MATRIX),
)
ROWS = (VECTOR, GRID, SPECIALS, np.full(3, -np.inf, np.float32), NANS, WHOLE)
AXES = [{"axis": 0}, {"axis": -1}]
ZEROS = np.array([0.0, -0.0, -0.0, 1.0, 0.0, -1.0, -0.0] * 50, np.float32)
BOUNDS = [(-1, 1), (0.0, -0.0), (-0.0, None), (None, 0.0), (2, 1), (np.nan, 1.0), (-300, 3)]
# (whether to the last bit, calls)
LAWS = {
    **{name: (True, both(((WHOLE, WHOLE[::-1]), {}), ((WHOLE, 2.5), {}),
                         ((WHOLE > 2, WHOLE > 1), {}), ((COMPLEX, COMPLEX[::-1]), {}),
                         ((COMPLEX, np.conj(COMPLEX)), {}), ((MANY + 1j, MANY[::-1] + 1j), {})))
       for name in ("fmax", "fmin")},
    "vecdot": (False, [((GRID + 1j, (GRID - 2j)[..., :1, :]), {}), ((COMPLEX, COMPLEX), {}),
                       ((GRID + 1j, GRID * 1j), {"axis": 0}), ((GRID + 1j, GRID), {}),
                       ((VECTOR + 1j, np.tile(VECTOR * 2j, (3, 1))), {}),
                       ((GRID.T + 1j, GRID.T - 1j), {}), ((VECTOR[:1] + 1j,) * 2, {})]),
    "vdot": (False, [((VECTOR + 1j, VECTOR[::-1] - 2j), {}), ((COMPLEX, COMPLEX[::-1]), {}),
                     ((GRID + 1j, GRID * 2j), {}), ((GRID * 1j, (GRID + 1j).T.T.ravel()), {}),
                     ((VECTOR[:1] + 1j, VECTOR[:1]), {}), ((VECTOR, VECTOR), {})]),
    "square": (True, over(VECTOR, SPECIALS, WHOLE, BYTES, WHOLE > 2, HALVES, VECTOR + 1j, EMPTY)),
    "clip": (True, [((x, *b), {}) for b in BOUNDS
                    for x in (VECTOR, SPECIALS, ZEROS, EMPTY, WHOLE, WHOLE.astype(np.int8))]
             + [((VECTOR,), {"max": 0.5}), ((VECTOR, VECTOR[::-1]), {}), ((WHOLE, 0.5, 2), {})]),
    **{name: (True, [*over(VECTOR, NANS, GRID, SPECIALS, WHOLE, ZEROS, ZEROS[2:3], NANS[[1, 3]]),
                     *over(GRID, axis=1), *over(ZEROS.reshape(50, 7), axis=0),
                     *over(GRID, axis=(0, 1)), *over(NANS, initial=0.5), *over(HALVES, NANS_16),
                     *over(GRID, GRID_16, axis=-1, keepdims=True), *over(NANS, keepdims=True)])
       for name in ("nanmax", "nanmin")},
    **{name: (False, [*over(PAIRS, PAIRS[:1], COMPLEX, VECTOR), *over(PAIRS, ddof=2),
                      *over(PAIRS, ddof=6), *over(GRID * (1 + 2j), axis=(0, -1), keepdims=True)])
       for name in ("var", "std")},
    "trunc": (True, over(VECTOR, SPECIALS, HALVES, GRID, WHOLE, VECTOR.astype(np.float16), EMPTY)),
    **{name: (True, over(VECTOR, SPECIALS, GRID, WHOLE, WHOLE > 2, VECTOR + 1j, EMPTY))
       for name in ("isreal", "iscomplex")},
    **{name: (False, [*over(VECTOR, NANS, GRID, SPECIALS[SPECIALS < 1e9], WHOLE, EMPTY),
                      ((GRID, 1), {}), *over(GRID, axis=(0, -1)), *over(GRID, keepdims=True),
                      *over(GRID, np.where(GRID % 3, GRID, np.nan), axis=(0, -1), keepdims=True),
                      *over(NANS[[1, 3]]), *over(VECTOR + 1j), *over(GRID, dtype=np.float16),
                      *over(NANS + 1j * VECTOR[:5], GRID + 2j * GRID), *over(GRID * 1j, axis=1),
                      *over(PAIRS, PAIRS[:1])])
       for name in ("nansum", "nanmean", "nanvar", "nanstd")},
    **{name: (True, [((a, b), {}) for a, b in itertools.product(SETS, SETS)]
              + [((VECTOR, EDGES), {}), ((VECTOR[:3], VECTOR), {"assume_unique": True})])
       for name in ("intersect1d", "setxor1d")},
    "unpackbits": (True, [*over(WHOLE.astype(np.uint8), bitorder="little"), *over(WHOLE),
                          *[((WHOLE.astype(np.uint8).reshape(2, 4),), {"axis": a, "count": c})
                            for a in (None, 0, -1) for c in (None, 5, 9, 90, -3)]]),
    "fill_diagonal": (True, [((x, v), {"inplace": False}) for v in (2.0, VECTOR[:3], -0.0, 7)
                             for x in (MATRIX, GRID[0], GRID[0].T, np.zeros((2, 2, 2)), WHOLE,
                                       MATRIX + 1j)]
                      + [((MATRIX > 0, True), {"inplace": False})]),
    "resize": (True, [((x, n), {}) for x in (VECTOR, GRID, WHOLE, EMPTY)
                      for n in (3, (2, 5), (0, 3), (40,), (), -2)]),
    "linspace": (True, [((a, b, n), o) for a, b in ((0, 1), (-2.5, 7), (3, -1e30), (1, np.inf))
                        for n in (1, 2, 3, 8, 1001) for o in ({}, {"endpoint": False})]
                 + [((0, 25, 6), {"dtype": np.int32}), ((0, VECTOR, 5), {})]),
    "unstack": (True, [*over(VECTOR, GRID), *over(GRID, axis=-1), *over(EMPTY)]),
    **{name: (True, [(n, o) for n in ((3,), (0,), (3, 5), (4, 2, -1), (2, 3, 9))
                     for o in ({}, {"dtype": np.dtype("int32")}, {"dtype": int})])
       for name in ("eye", "tri")},
    "identity": (True, [((n,), {}) for n in (0, 1, 5)] + [((3,), {"dtype": bool})]),
    "indices": (True, [((n,), {}) for n in ((3,), (2, 0, 4), (5, 6, 2), (40, 50))]),
    "linalg.norm": (False, [*over(VECTOR, SPECIALS, GRID, MATRIX.T, EMPTY, NANS, WHOLE),
                            *over(VECTOR, MATRIX, ord=2), *over(GRID, axis=1)]),
    "hypot": (False, both()),
    "logaddexp": (False, both()),
    "logaddexp2": (False, both()),
    **{name: (True, [*over(VECTOR, SPECIALS, GRID, WHOLE, NANS, EMPTY, WHOLE > 2),
                     *over(VECTOR + 1j, HALVES, COMPLEX), ((2.0,), {}), ((True,), {})])
       for name in ("isnan", "isfinite", "logical_not")},
    **{name: (False, [*over(VECTOR, SPECIALS, POSITIVE, WHOLE, EMPTY, VECTOR + 1j, WHOLE > 1),
                      *over(PAIRS, COMPLEX, COMPLEX.T, PAIRS[0]),
                      *over(HALVES, np.exp2(np.arange(-9, 9, dtype=np.float32)))])
       for name in ("log2", "log10")},
    "signbit": (True, over(VECTOR, SPECIALS, HALVES, ZEROS, WHOLE - 2, WHOLE > 2, EMPTY)),
    **{name: (True, both(((WHOLE, WHOLE % 2), {}), ((WHOLE > 2, WHOLE > 1), {}), ((WHOLE, 3), {}),
                         ((NANS, ZEROS[:5]), {}), ((WHOLE > 2, True), {}), ((HALVES, HALVES), {}),
                         ((COMPLEX, COMPLEX[::-1]), {}),
                         ((MANY * NANS[:3, None], np.maximum(MANY, 0)), {}),
                         ((np.maximum(MANY, 0), 0.0), {})))
       for name in ("logical_and", "logical_or", "logical_xor")},
    **{name: (True, [((x, k), {}) for x in (MATRIX, MATRIX[:3], MATRIX[:, :2], GRID, NANS * MATRIX,
                                            MATRIX > 0, MATRIX + 1j, MATRIX[:0])
                     for k in (0, 1, -2, 9, -9)]) for name in ("tril", "triu")},
    "block": (True, [((x,), {}) for x in (
        [[MATRIX, MATRIX], [MATRIX, MATRIX]], [MATRIX, MATRIX[:, :1]], [VECTOR, VECTOR[:3]],
        [[GRID[0], GRID[1]]], [[VECTOR], [VECTOR]], [[[GRID, GRID]]], MATRIX, [WHOLE, VECTOR],
        [VECTOR, 2.0], [VECTOR[0], VECTOR], [[VECTOR, EMPTY], [EMPTY, VECTOR]],
        *[[[x, x[:, :1]], [x[:2], x[:2, :1]]] for x in (MANY, MANY > 0)], [MANY.ravel(), VECTOR],
        [[[MANY[None], MANY[None] + 1]]])]),
    "bitwise_count": (True, over(np.array(SIGNED, np.int32), BYTES, (BYTES - 4).view(np.int8),
                                 EMPTY.astype(np.uint16), WHOLE[0])),
    "isinf": (True, over(VECTOR, SPECIALS, GRID, WHOLE, NANS, EMPTY, COMPLEX)),
    "isposinf": (True, over(VECTOR, SPECIALS, GRID, WHOLE, NANS, EMPTY)),
    "isneginf": (True, over(VECTOR, SPECIALS, GRID, WHOLE, NANS, EMPTY)),
    "arange": (True, over(5, 0, -3) + [((*a,), o)
               for a in ((1, 7), (7, 1, -2), (0, 9, 4), (2, None, 3))
               for o in ({}, {"dtype": jnp.int16}, {"dtype": jnp.float32}, {"dtype": jnp.uint32})]),
    "cosh": (False, over(VECTOR, WHOLE, WHOLE - 3, BYTES, EMPTY, WHOLE > 2)),
    "sinh": (False, over(VECTOR, WHOLE, WHOLE - 3, BYTES, EMPTY, WHOLE > 2)),
    "expm1": (False, over(VECTOR, WHOLE, WHOLE - 3, BYTES, EMPTY, WHOLE > 2)),
    "nan_to_num": (True, [*over(VECTOR, SPECIALS, GRID, WHOLE, NANS, EMPTY, PAIRS, COMPLEX),
                          *over(COMPLEX.T, COMPLEX[0, 0], nan=2, posinf=7.5),
                          *over(SPECIALS, NANS, nan=2, posinf=3.5),
                          *over(SPECIALS, neginf=-1e300, nan=np.nan), ((SPECIALS, True, 7.0), {})]),
    "sinc": (False, over(VECTOR, SPECIALS, GRID, WHOLE, VECTOR.astype(np.float16))),
    "isin": (True, [((a, b), o) for a, b in itertools.product(
        (*SETS, np.tile(SPECIALS, 40), np.tile(WHOLE, 80), EDGES + 0j), SETS)
        for o in ({}, {"invert": True})]),
    "spacing": (True, over(VECTOR, SPECIALS, GRID, VECTOR.astype(np.float16), HALVES)),
    "diagflat": (True, [((x, k), {}) for k in (0, 2, -1) for x in (*SETS, GRID[0], VECTOR + 1j)]),
    "nn.elu": (False, [((x, *a), {}) for a in ((), (2,), (0.3,))
                      for x in (VECTOR, SPECIALS, WHOLE, HALVES, VECTOR[0])]),
    "nn.selu": (True, over(VECTOR, SPECIALS, WHOLE, HALVES, VECTOR[0])),
    "nn.squareplus": (True, [((x, *b), {}) for b in ((), (0,), (1,), (0.5,), (-1,))
                             for x in (VECTOR, SPECIALS, FINITE, GRID, EMPTY, WHOLE, VECTOR[0])]),
    "polyfit": (False, [((x, y, n), o) for n in (0, 1, 3) for x in (POINTS, np.arange(8))
                        for y in (VECTOR, GRID.ravel()[:8] % 3, np.stack([POINTS, VECTOR], 1))
                        for o in ({}, {"w": POINTS})]),
    "polyval": (True, [((p, x), {}) for p in (VECTOR, FINITE[2:], FINITE, SPECIALS, EDGES[:1])
                       for x in (POINTS, SPECIALS, GRID, VECTOR[0], EMPTY, WHOLE)]),
    "nn.log1mexp": (True, over(np.abs(VECTOR), SPECIALS, HALVES, VECTOR[0])),
    "nn.hard_tanh": (True, over(VECTOR, SPECIALS, WHOLE, HALVES, WHOLE > 2, VECTOR[0])),
    "take": (True, [
        ((VECTOR, WHOLE), {}), ((HALVES, WHOLE), {}), ((VECTOR, WHOLE - 1), {}),
        ((VECTOR, WHOLE + 5), {}),
        ((VECTOR, WHOLE + 5), {"mode": "clip"}), ((VECTOR, WHOLE - 9), {"mode": "wrap"}),
        ((GRID, WHOLE[:2]), {"axis": 1}), ((GRID, WHOLE.reshape(4, 2)), {}),
        ((np.arange(300), np.array([-1, -100, 5], np.int8)), {}),
        ((EMPTY, WHOLE[:0]), {}),
    ]),
    "unique": (True, [
        *over(*SETS), *over(*SETS, return_index=True), *over(*SETS, return_inverse=True),
        *over(*SETS, return_index=True, return_inverse=True, return_counts=True),
        *over(WHOLE, size=3), *over(NANS, equal_nan=False), *over(GRID, axis=0),
        *over(GRID, WHOLE.reshape(4, 2) % 2, NANS[:, None], ZEROS.reshape(-1, 2) + 0, axis=0),
        *over(-GRID % 3, ZEROS.reshape(-1, 2), BYTES.reshape(2, 4), GRID_16 % 2, axis=-1),
        *over(GRID % 2, axis=1, return_counts=True),
    ]),
    "union1d": (True, [((a, b), {}) for a, b in itertools.product(SETS, SETS)]),
    "setdiff1d": (True, [((a, b), {}) for a, b in itertools.product(SETS, SETS)]),
    "bincount": (True, [
        *over(WHOLE, WHOLE - 1, WHOLE[:0], WHOLE.astype(np.uint8)), *over(WHOLE, minlength=12),
        *over(WHOLE, length=3), ((WHOLE, VECTOR), {}), ((WHOLE, WHOLE), {}),
        ((WHOLE, VECTOR.astype(np.float16)), {}), ((WHOLE, WHOLE + (2**31 - 8)), {}),
        ((WHOLE, WHOLE.astype(np.uint8) + 249), {}),
    ]),
    "histogram": (True, [
        *over(VECTOR, GRID, WHOLE, SPECIALS, EMPTY, SINGULAR), *over(VECTOR, bins=3),
        *over(WHOLE > 2, np.tile(WHOLE > 2, 1000)),
        *over(VECTOR.astype(np.float16), HALVES, RNG.normal(size=5000).astype(np.float16)),
        *over(RNG.normal(size=5000).astype(np.float16), bins=37),
        *over(VECTOR, range=(0.0, 1.0)), *over(VECTOR, density=True), ((VECTOR, EDGES), {}),
        *over(RNG.normal(size=300).astype(np.float32), bins=37),
        *over(RNG.normal(size=40000).astype(np.float32), bins=37),
        *over((np.arange(5000) % 11).astype(np.float32)), *over(np.repeat(SPECIALS, 300)),
    ]),
    "digitize": (True, [((x, EDGES), {}) for x in SETS] + [((VECTOR, WHOLE[[3, 1, 4]]), {})]),
    "median": (False, [*over(VECTOR, NANS, GRID, SPECIALS, WHOLE, WHOLE > 2), *over(GRID, axis=1),
                       *over(GRID, keepdims=True), *over(VECTOR[:3], MATRIX, axis=-1),
                       *over(HALVES, NANS_16, GRID_16), *over(GRID_16, GRID_16.T, axis=1),
                       *over(GRID, axis=(0, 2)), *over(GRID, GRID.T, axis=(-1, 0)),
                       *over(np.tile(VECTOR, 400), np.tile(SPECIALS, 400), np.tile(NANS, 600)),
                       *over(np.tile(VECTOR, 300)[1:], np.tile(WHOLE, 300)),
                       *over(WHOLE.reshape(2, 4), axis=0), *over(WHOLE[:1], VECTOR[:2], EMPTY)]),
    "lexsort": (True, [((keys,), o) for o in ({}, {"axis": 0}) for keys in (
        [WHOLE, VECTOR], (WHOLE % 2, WHOLE), [GRID, -GRID], (SPECIALS, SPECIALS[::-1]), (WHOLE,))]),
    "argpartition": (True, [*[((x, k), {}) for x in (VECTOR, WHOLE, GRID, NANS, SPECIALS, ZEROS,
                                                     HALVES) for k in (0, 2, -1)],
                            ((GRID, 1), {"axis": 0})]),
    "partition": (True, [*[((x, k), {}) for x in (VECTOR, WHOLE, GRID, NANS, SPECIALS, WHOLE > 2,
                                                  HALVES, BYTES) for k in (0, 2, -1)],
                         *over(EMPTY, kth=0), ((GRID, 1), {"axis": 0})]),
    "quantile": (False, [((x, q), o) for x in (VECTOR, GRID, NANS, SPECIALS, WHOLE, EMPTY)
                         for q in (0.3, 1, 0.5, -2.0, np.nan, np.array([0.1, 0.5], np.float32))
                         for o in ({}, {"axis": 0}, {"axis": -1, "method": "lower"})]),
    "percentile": (False, [((x, q), o) for x in (VECTOR, GRID, NANS, SPECIALS, WHOLE)
                           for q in (30, 33.3, 100) for o in ({}, {"axis": -1})]),
    "nanmedian": (False, [*over(VECTOR, NANS, GRID, SPECIALS, WHOLE, WHOLE > 2, NANS[[1, 3]]),
                          *over(GRID, axis=1)]),
    "nanargmax": (True, [*over(VECTOR, NANS, GRID, SPECIALS, WHOLE, NANS[[1, 3]]),
                         *over(GRID, axis=1), *over(GRID, keepdims=True)]),
    "nanargmin": (True, [*over(VECTOR, NANS, GRID, SPECIALS, WHOLE, NANS[[1, 3]]),
                         *over(GRID, axis=1)]),
    "nancumsum": (True, [*over(VECTOR, NANS, GRID, WHOLE, EMPTY), *over(GRID, axis=1),
                         *over(NANS + 1j * VECTOR[:5])]),
    "nonzero": (True, [*over(*SETS, GRID % 3, NANS, VECTOR[0]), *over(WHOLE, size=3)]),
    "argwhere": (True, [*over(*SETS, GRID % 3, NANS, VECTOR[0]), *over(WHOLE, size=3)]),
    "where": (True, [*over(*SETS, GRID % 3), *over(WHOLE, size=3), ((WHOLE > 2, VECTOR, 0.0), {})]),
    "extract": (True, [((WHOLE > 1, x), o) for x in (VECTOR, WHOLE, WHOLE.reshape(4, 2), GRID[0],
                                                     HALVES[:8]) for o in ({}, {"size": 3})]
                + [((WHOLE, VECTOR), {})]),
    "compress": (True, [
        ((WHOLE > 1, VECTOR), {}), ((WHOLE[:3] > 1, VECTOR), {}), ((WHOLE > 9, VECTOR), {}),
        ((np.array([True, False, True]), GRID), {"axis": 1}), ((WHOLE, VECTOR), {}),
        ((WHOLE > 1, GRID), {}), ((WHOLE > 1, VECTOR), {"size": 3}),
    ]),
    "pad": (True, [((x, w), {"mode": m}) for x in (VECTOR, GRID, WHOLE) for w in (2, (1, 3))
                   for m in ("edge", "constant", "wrap", "reflect", "symmetric")]
            + [((GRID, ((0, 1),) * 3, "edge"), {}), *[((EMPTY, n, "edge"), {}) for n in (2, 0)]]),
    "roll": (True, [((x, s, a), {}) for x in (GRID, GRID.T, GRID > 2, GRID_16, EMPTY, WHOLE)
                    for s, a in ((2, 0), ((1, -9), (0, 2)), ([3, 4], (1, 1)), ((1, 2), 1),
                                 ((5, 0), (-1, 7)), (3, None))]),
    **{name: (True, [*over(GRID, GRID.T, GRID > 2, GRID_16, EMPTY, WHOLE, MATRIX + 1j),
                     *over(GRID, axes=(0, 2)), *over(GRID, axes=1)])
       for name in ("fft.fftshift", "fft.ifftshift")},
    "count_nonzero": (True, [*over(*SETS), *over(GRID, axis=1), *over(GRID, keepdims=True),
                             *over(COMPLEX, GRID, axis=0), *over(GRID, axis=(0, 2))]),
    "repeat": (True, [((x, 2), {}) for x in SETS] + [((GRID, 3), {"axis": 1}), ((VECTOR, 0), {}),
               ((VECTOR, 2), {"total_repeat_length": 5})]),
    "delete": (True, [((x, i), {}) for i in (0, 3, -1, 7, slice(1, 4), slice(5, 2), slice(-3, 99),
                                             slice(None, None, 2)) for x in (VECTOR, HALVES)]
               + [((GRID, 1), {"axis": 2})]),
    "insert": (True, [((x, i, 2.0), {}) for i in (0, 3, -1, 8, 30, -30)
                        for x in (VECTOR, HALVES, VECTOR * 1j)]
               + [((WHOLE > 2, i, v), {}) for i in (0, -1, 30) for v in (0, 7, True)]
               + [((WHOLE, 1, 2), {}), ((WHOLE, 1, 2.5), {}), ((GRID, 1, 5.0), {"axis": 2}),
                  *[((x, i, 2), {"axis": a}) for x in (GRID, GRID_16, GRID > 2)
                    for i in (0, 2, -1, 9) for a in (0, -1)]]),
    "choose": (True, [((WHOLE % 2, (VECTOR, -VECTOR)), {"mode": m}) for m in ("raise", "clip")]
               + [((WHOLE, [VECTOR, WHOLE]), {"mode": "wrap"}),
                  ((WHOLE - 2, [VECTOR, -VECTOR, VECTOR]), {"mode": "clip"})]),
    "unravel_index": (True, [((i, (3, 4)), {}) for i in (WHOLE, WHOLE - 5, WHOLE + 9, WHOLE[:0])]),
    "ravel_multi_index": (True, [
        (((WHOLE, WHOLE % 2), (8, 2)), {}), (((WHOLE, WHOLE), (8, 9)), {"order": "F"}),
        (((WHOLE + 3, WHOLE), (8, 2)), {"mode": "clip"}),
        (((WHOLE, WHOLE), (3, 2)), {"mode": "wrap"}),
    ]),
    "convolve": (False, [((a, b), {"mode": m}) for m in ("full", "same", "valid")
                         for a, b in itertools.product(
                             (VECTOR, EDGES, NANS, WHOLE, BYTES, BYTES > 2), repeat=2)]
                 + [((GRID_16[0, 0], GRID_16[1, 0]), {})]),
    "poly": (False, over(PAIRS, VECTOR, EMPTY, NANS, SPECIALS, WHOLE, MATRIX, VECTOR[0],
                         VECTOR * 1j)),
    "correlate": (False, [((a, b), {"mode": m}) for m in ("full", "same", "valid")
                          for a, b in itertools.product((VECTOR, EDGES, VECTOR * 1j), repeat=2)]
                  + [((GRID_16[0, 0], GRID_16[1, 0]), {"mode": "full"})]),
    "interp": (False, [
        ((x, xp, np.exp(EDGES)), o)
        for x in (VECTOR, WHOLE, SPECIALS, VECTOR[0])
        for xp in (EDGES, WHOLE[[3, 1, 2, 4]], np.ones(4, np.float32), EDGES.repeat(2)[1:5])
        for o in ({}, {"left": 0.5}, {"period": 2.0})
    ] + [((VECTOR, EDGES, np.array([0.0, np.inf, 1.0, np.nan], np.float32)), {})]),
    "trace": (False, [*over(MATRIX, GRID, MATRIX[:0]), *over(MATRIX, offset=-2),
                      *over(GRID, axis1=2, axis2=0), *over(WHOLE.reshape(2, 4) > 2)]),
    "vander": (False, [*over(VECTOR, WHOLE, SPECIALS, EMPTY, BYTES, WHOLE[:0]),
                       *over(PAIRS, PAIRS / 3, COMPLEX[0], N=5),
                       *over(VECTOR, WHOLE, N=3, increasing=True), *over(WHOLE, BYTES, N=150),
                       *over(WHOLE, N=0), *over(WHOLE, N=1), *over(HALVES[:9], WHOLE > 2, N=4),
                       *over(WHOLE > 2, WHOLE < 9), *over(WHOLE > 2, N=99, increasing=True)]),
    "linalg.qr": (True, [((x, m), {}) for x in (*MATRICES, GRID, GRID.swapaxes(1, 2), EMPTY)
                         for m in ("r", "reduced")]),
    "linalg.det": (False, over(*MATRICES)),
    "linalg.slogdet": (False, over(*MATRICES, WHOLE[:4].reshape(2, 2), np.eye(3) > 0)),
    "linalg.lstsq": (False, [
        ((MATRIX, VECTOR[:5]), {}), ((MATRIX[:, :3], VECTOR[:5]), {}), ((MATRIX, POSITIVE), {}),
        ((MATRIX[:2], VECTOR[:2]), {}), ((SINGULAR, VECTOR[:4]), {}), ((MATRIX, NANS), {}),
        ((MATRIX[:, :3], VECTOR[:5]), {"numpy_resid": True}),
    ]),
    "linalg.cond": (False, [*over(*MATRICES[:-2]), *over(POSITIVE, p=1)]),
    "linalg.matrix_rank": (True, over(*MATRICES, GRID, np.zeros((3, 4), np.float32))),
    "nn.softplus": (False, over(VECTOR, SPECIALS, GRID, WHOLE, EMPTY)),
    "nn.log_sigmoid": (False, over(VECTOR, SPECIALS, GRID, WHOLE, EMPTY)),
    "nn.mish": (False, over(VECTOR, SPECIALS, GRID, WHOLE, EMPTY)),
    "float_power": (False, [((a, b % 5), {}) for a in (WHOLE, WHOLE > 2) for b in (WHOLE, 7)]),
    "nn.softmax": (False, [((x,), o) for x in ROWS for o in [{}, *AXES]] + over(GRID, axis=(0, 2))),
    "nn.log_softmax": (False, [((x,), o) for x in ROWS for o in [{}, *AXES]]),
    "nn.logmeanexp": (False, [((x,), o) for x in (*ROWS, EMPTY) for o in [{}, *AXES]]
                      + over(GRID, axis=(0, 2))),
    "nn.logsumexp": (False, [((x,), o) for x in (*ROWS, EMPTY) for o in [{}, *AXES]]
                     + over(GRID, axis=(0, 2), keepdims=True)),
}  # fmt: skip

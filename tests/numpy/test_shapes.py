"""Shapes, joining, splitting, padding, choice against NumPy."""

from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal.api import grad, jit, vmap
from primal.base import errors

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
Y = np.arange(12, dtype=np.float32).reshape(3, 4)
V = np.array([3.0, 1.0, 2.0], np.float32)


def same(got: Any, want: Any) -> None:
    if isinstance(want, list | tuple):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w)
        return
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-6)


# (name, operands, keywords): called with arrays alike here and in NumPy.
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("reshape", (X, (4, -1)), {}), ("reshape", (X, -1), {}), ("reshape", (X, (6, 4), "F"), {}),
    ("reshape", (Y, (2, 2, 3)), {"order": "F"}), ("reshape", (np.float32(1), (1, 1)), {}),
    ("ravel", (X,), {}), ("ravel", (X, "F"), {}), ("transpose", (X,), {}),
    ("transpose", (X, (1, -1, 0)), {}), ("permute_dims", (X, (2, 0, 1)), {}),
    ("matrix_transpose", (X,), {}), ("swapaxes", (X, 0, -1), {}), ("moveaxis", (X, 0, -1), {}),
    ("moveaxis", (X, (0, 1), (-1, 0)), {}), ("rollaxis", (X, 2), {}), ("rollaxis", (X, 0, 3), {}),
    ("squeeze", (X[:, :1],), {}), ("squeeze", (X[:1, :, :1], (0, -1)), {}),
    ("expand_dims", (X, (0, -1)), {}), ("expand_dims", (Y, 1), {}),
    ("broadcast_to", (V[:, None], (2, 3, 4)), {}), ("broadcast_to", (2.0, (2,)), {}),
    ("broadcast_arrays", (V, Y.T, 1.0), {}), ("atleast_1d", (3.0,), {}), ("atleast_2d", (V,), {}),
    ("atleast_3d", (V,), {}), ("atleast_3d", (Y,), {}), ("atleast_2d", (V, 1.0), {}),
    ("flip", (X,), {}), ("flip", (X, (0, -1)), {}), ("fliplr", (Y,), {}), ("flipud", (Y,), {}),
    ("rot90", (Y,), {}), ("rot90", (X, 2, (1, 2)), {}), ("rot90", (X, -1, (2, 0)), {}),
    ("roll", (V, 1), {}), ("roll", (X, 5), {}), ("roll", (X, -1, 1), {}),
    ("roll", (X, (1, 2), (0, 2)), {}), ("roll", (X, 1, (0, 1)), {}), ("roll", (X, (1, 2), 1), {}),
    ("concatenate", ([X, X],), {}), ("concatenate", ([X, X[:, :1]], 1), {}),
    ("concatenate", ([X, V], None), {}), ("concatenate", ([V, np.arange(2)],), {}),
    ("concat", ([Y, Y],), {"axis": -1}), ("stack", ([V, V],), {}), ("stack", ([Y, Y], -1), {}),
    ("stack", (X, 1), {}), ("vstack", ([V, Y[:, :3]],), {}), ("hstack", ([V, V],), {}),
    ("hstack", ([Y, Y],), {}), ("dstack", ([Y, Y],), {}), ("dstack", ([V, V],), {}),
    ("column_stack", ([V, Y],), {}), ("append", (V, V), {}),
    ("concatenate", (X, 1), {}), ("concatenate", (X, None), {}), ("vstack", (X,), {}),
    ("vstack", (V,), {}), ("hstack", (X,), {}), ("hstack", (V,), {}), ("dstack", (X,), {}),
    ("dstack", (Y,), {}), ("dstack", (V,), {}), ("column_stack", (X,), {}),
    ("column_stack", (Y,), {}), ("column_stack", (V,), {}),
    ("append", (Y, Y), {"axis": 1}),
    ("unstack", (X,), {"axis": 1}), ("split", (Y, 3), {}), ("split", (Y, [1, 2], 1), {}),
    ("split", (Y, [-1], 1), {}), ("split", (Y, [1, 9]), {}), ("array_split", (Y, 3, 1), {}),
    ("array_split", (V, 5), {}), ("hsplit", (Y, 2), {}), ("hsplit", (V, 3), {}),
    ("vsplit", (Y, 3), {}), ("dsplit", (X, 2), {}), ("tile", (V, 2), {}),
    ("tile", (Y, (2, 1, 3)), {}),
    ("tile", (X, 2), {}), ("tile", (V, 0), {}), ("repeat", (V, 2), {}), ("repeat", (X, 3, 1), {}),
    ("repeat", (Y, np.array([2, 0, 1]), 0), {}), ("repeat", (np.float32(2), 3), {}),
    ("resize", (V, (2, 4)), {}), ("resize", (V, 2), {}), ("block", ([[Y, Y], [Y, Y]],), {}),
    ("block", ([V, V],), {}), ("block", ([[V], [V]],), {}), ("where", (Y > 3, Y, -Y), {}),
    ("where", (V > 1, 1.0, Y[:, :3]), {}), ("where", (Y > 3,), {}),
    ("select", ([Y > 8, Y > 3], [Y, -Y], 7.0), {}), ("clip", (Y, 2, 7), {}),
    ("clip", (Y, None, V[:, None]), {}), ("clip", (Y,), {"min": 3}), ("round", (Y / 7, 2), {}),
    ("around", (Y / 7,), {}), ("round", (Y * 30, -2), {}), ("nonzero", (Y % 3,), {}),
    ("flatnonzero", (Y % 3,), {}), ("argwhere", (X % 5 == 0,), {}),
    ("argwhere", (np.float32(1),), {}),
    ("trim_zeros", (np.array([0, 0, 1, 0, 2, 0]),), {}), ("trim_zeros", (np.zeros(3),), {}),
    ("trim_zeros", (np.array([0, 1, 0]), "f"), {}), ("sort", (X, 1), {}), ("sort", (Y, None), {}),
    ("argsort", (-Y, 0), {}), ("lexsort", ((V, np.array([1, 1, 0])),), {}),
    ("sort_complex", (V,), {}), ("searchsorted", (np.sort(V), Y), {}),
    ("searchsorted", (np.sort(V), np.array([1.0, 2, 3, np.nan]), "right"), {}),
    ("unique", (np.array([3, 1, 3, 2, 1]),), {}), ("unique", (Y % 4,), {"return_inverse": True}),
    ("unique", (np.array([3, 1, 3]),),
     {"return_index": True, "return_inverse": True, "return_counts": True}),
    ("unique", (np.array([[1, 2], [0, 5], [1, 2]]),), {"axis": 0, "return_counts": True}),
    ("unique", (np.array([[1, 2, 1], [0, 5, 0]]),), {"axis": 1, "return_index": True}),
    ("unique", (np.array([np.nan, 1, np.nan]),), {}),
    ("unique", (np.array([np.nan, 1, np.nan]),), {"equal_nan": False}),
    ("unique", (np.zeros((0,)),), {}), ("union1d", (V, Y),{}), ("intersect1d", (V, Y), {}),
    ("intersect1d", (V, Y), {"return_indices": True}), ("setdiff1d", (Y, V), {}),
    ("setxor1d", (Y, V), {}), ("isin", (Y, V), {}), ("isin", (Y, V), {"invert": True}),
    ("packbits", (Y > 3,), {}), ("packbits", (Y > 3, 1), {"bitorder": "little"}),
    ("packbits", (X > 0, 0), {}), ("packbits", (np.arange(95).reshape(19, 5) % 3 > 0, 0), {}),
    ("unpackbits", (np.array([[3, 200]], np.uint8),), {"axis": 1}),
    ("unpackbits", (np.arange(95, dtype=np.uint8).reshape(19, 5),), {"axis": 0, "count": 9}),
    ("unpackbits", (np.arange(95, dtype=np.uint8).reshape(19, 5),), {"axis": 1, "count": 43}),
    ("unpackbits", (np.arange(30, dtype=np.uint8).reshape(2, 3, 5),), {"axis": -2}),
    ("unpackbits", (np.array([3, 200], np.uint8),), {"count": 11, "bitorder": "little"}),
    ("array_equal", (V, V), {}), ("array_equiv", (V, Y[:, :3]), {}),
    ("allclose", (V, V + 1e-7), {}),
    ("choose", (np.array([0, 1, 1]), [V, -V]), {}),
    ("choose", (np.array([0, 4, -1]), [V, -V]), {"mode": "wrap"}),
    ("choose", (np.array([0, 4, -1]), [V, -V]), {"mode": "clip"}),
    ("shape", (X,), {}), ("ndim", (X,), {}), ("size", (X, 1), {}), ("iterable", (X,), {}),
    ("apply_over_axes", (np.sum, X, (0, 2)), {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "args", "kwargs"), CALLS, ids=[c[0] for c in CALLS])
def test_as_numpy(name: str, args: Any, kwargs: Any) -> None:
    ours = args
    if name == "apply_over_axes":
        ours = (jnp.sum, *args[1:])
    got, want = getattr(jnp, name)(*ours, **kwargs), getattr(np, name)(*args, **kwargs)
    if isinstance(want, bool | int):
        assert got == want
    elif name == "shape":
        assert got == want
    else:
        same(got, tuple(want) if isinstance(want, tuple) else want)


STATIC = "reshape transpose moveaxis concatenate stack tile flip roll split where clip sort".split()


@pytest.mark.parametrize("case", [c for c in CALLS if c[0] in STATIC], ids=lambda c: c[0])
def test_in_programs(case: Any) -> None:
    name, args, kwargs = case
    if name == "where" and len(args) == 1:
        return
    first, *rest = args
    program = jit(lambda x: getattr(jnp, name)(x, *rest, **kwargs))
    same(program(first), getattr(np, name)(*args, **kwargs))


def test_errors_of_shapes() -> None:
    for call, error, text in [
        (lambda: jnp.reshape(X, (5, 5)), TypeError, "cannot reshape array of shape"),
        (lambda: jnp.reshape(X, (-1, 5)), TypeError, "cannot reshape array"),
        (lambda: jnp.reshape(X, (-1, -1)), TypeError, "one unknown"),
        (lambda: jnp.reshape(X, 24, "Z"), ValueError, "order"),
        (lambda: jnp.transpose(X, (0, 1)), TypeError, "permutation"),
        (lambda: jnp.transpose(X, (0, 0, 1)), TypeError, "permutation"),
        (lambda: jnp.squeeze(X, 0), ValueError, "not equal to one"),
        (lambda: jnp.expand_dims(X, 5), ValueError, "out of bounds"),
        (lambda: jnp.expand_dims(X, (0, 0)), ValueError, "duplicate"),
        (lambda: jnp.moveaxis(X, (0, 1), 0), ValueError, "Inconsistent number"),
        (lambda: jnp.broadcast_to(V, (2,)), ValueError, "Incompatible shapes"),
        (lambda: jnp.rot90(V), ValueError, "at least two"),
        (lambda: jnp.concatenate([]), ValueError, "Need at least one array"),
        (lambda: jnp.concatenate([X, Y]), TypeError, "different numbers of dimensions"),
        (lambda: jnp.concatenate([X, X[:1, :1]]), TypeError, "differ in dimensions other"),
        (lambda: jnp.concatenate([1.0, 2.0]), ValueError, "Zero-dimensional"),
        (lambda: jnp.concatenate([V, [1.0]]), TypeError, "requires ndarray or scalar"),
        (lambda: jnp.concatenate(3), TypeError, "sequence of arrays"),
        (lambda: jnp.stack([]), ValueError, "Need at least one array"),
        (lambda: jnp.stack([V, Y]), ValueError, "different numbers of dimensions"),
        (lambda: jnp.stack([V, V[:2]]), ValueError, "same shape"),
        (lambda: jnp.split(V, 2), ValueError, "equal division"),
        (lambda: jnp.split(V, 0), ZeroDivisionError, "larger than 0"),
        (lambda: jnp.block((V, V)), ValueError, "tuples"),
        (lambda: jnp.block([]), ValueError, "empty"),
        (lambda: jnp.block([[V], V]), ValueError, "depth"),
        (lambda: jnp.where(V > 0, V), TypeError, "position 2"),
        (lambda: jnp.where(V > 0, V, V, size=2), ValueError, "three-term"),
        (lambda: jnp.select([], []), ValueError, "non-empty"),
        (lambda: jnp.select([V > 0], [V, V]), ValueError, "length"),
        (lambda: jnp.clip(V + 1j, 0, 1), ValueError, "complex"),
        (lambda: jnp.round(np.arange(3), -1), NotImplementedError, "decimals < 0"),
        (lambda: jnp.choose(np.array([5]), [V]), ValueError, "invalid entry"),
        (lambda: jnp.choose(V, [V]), ValueError, "integer"),
        (lambda: jnp.tile(V, 1.5), TypeError, "Shapes must be 1D"),
        (lambda: jnp.repeat(V, -1), ValueError, "negative"),
        (lambda: jnp.sort(V, kind="stable"), TypeError, "stable=True"),
        (lambda: jnp.searchsorted(Y, V), ValueError, "1-dimensional"),
        (lambda: jnp.searchsorted(V, V, side="up"), ValueError, "side"),
        (lambda: jnp.nonzero(1.0), ValueError, "0d arrays"),
        (lambda: jnp.lexsort([]), TypeError, "keys"),
        (lambda: jnp.packbits(V), TypeError, "integer or boolean"),
        (lambda: jnp.unpackbits(np.arange(3)), TypeError, "unsigned byte"),
        (lambda: jnp.piecewise(V, [V > 1], [1, 2, 3]), ValueError, "functions are expected"),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            call()  # type: ignore[no-untyped-call]


NEEDS_SIZE: list[tuple[str, Any]] = [
    ("nonzero", lambda x: jnp.nonzero(x)), ("nonzero", lambda x: jnp.flatnonzero(x)),
    ("nonzero", lambda x: jnp.where(x)), ("nonzero", lambda x: jnp.argwhere(x)),
    ("unique", lambda x: jnp.unique(x)), ("unique", lambda x: jnp.union1d(x, x)),
    ("unique", lambda x: jnp.setdiff1d(x, x)), ("trim_zeros", lambda x: jnp.trim_zeros(x)),
    ("bincount", lambda x: jnp.bincount(x)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "f"), NEEDS_SIZE, ids=[n for n, _ in NEEDS_SIZE])
def test_lengths_that_depend_on_values(name: str, f: Any) -> None:
    with pytest.raises(errors.ConcretizationTypeError, match=f"jnp.{name}"):
        jit(f)(np.array([1, 0, 2]))


def test_given_sizes() -> None:
    x = np.array([[0, 3, 0], [5, 0, 7]])
    for size in (0, 2, 5):
        rows, columns = np.nonzero(x)
        want = [np.append(v[:size], [-1] * max(0, size - len(v))) for v in (rows, columns)]
        program = jit(lambda v, n=size: jnp.nonzero(v, size=n, fill_value=-1))
        same(program(x), tuple(want))
    same(jit(lambda v: jnp.argwhere(v, size=2))(x), np.argwhere(x)[:2])
    same(jit(lambda v: jnp.flatnonzero(v, size=4, fill_value=(9,)))(x), [1, 3, 5, 9])
    v = np.array([3, 1, 3, 2])
    values, index, inverse, counts = jit(
        lambda a: jnp.unique(a, True, True, True, size=5, fill_value=-1)
    )(v)
    same(values, [1, 2, 3, -1, -1])
    same(index[:3], [1, 3, 0])
    same(inverse, [2, 0, 2, 1])
    same(counts, [1, 1, 2, 0, 0])
    same(jit(lambda a: jnp.union1d(a, a + 1, size=6))(v), [1, 2, 3, 4, 1, 1])
    same(jit(lambda a: jnp.intersect1d(a, a + 1, size=3))(v), [2, 3, 2])
    same(jit(lambda a: jnp.setxor1d(a, a + 1, size=3))(v), [1, 4, 1])
    same(jit(lambda a: jnp.setdiff1d(a, a + 1, size=2, fill_value=9))(v), [1, 9])
    same(vmap(lambda a: jnp.unique(a, size=2))(np.array([[1, 2], [3, 3]])), [[1, 2], [3, 3]])


def test_repeat_of_traced_counts() -> None:
    counts = np.array([2, 0, 3])
    for length in (0, 3, 5, 8):
        want = np.repeat(V, counts)
        want = np.append(want, [V[-1]] * 8)[:length]
        program = jit(lambda c, n=length: jnp.repeat(V, c, total_repeat_length=n))
        same(program(counts), want)
        same(jnp.repeat(V, counts.astype(np.uint8), total_repeat_length=length), want)
    few = np.full(300, 2, np.uint8)
    same(jnp.repeat(np.arange(300), few, total_repeat_length=601)[-3:], [299, 299, 299])
    many = np.arange(200_000) % 3  # each place was compared with each count: some 10 s
    same(jit(lambda c: jnp.repeat(c, c, total_repeat_length=200_000))(many),
         np.append(np.repeat(many, many), [1])[:200_000])  # fmt: skip
    for unknown in (counts, 2):
        with pytest.raises(errors.ConcretizationTypeError, match="repeats"):
            jit(lambda c: jnp.repeat(V, c))(unknown)


def test_roll_by_traced_shifts() -> None:
    program = jit(lambda x, s: jnp.roll(x, s, 1))
    for shift in range(-9, 10):
        same(program(X, shift), np.roll(X, shift, 1))
    pair = jit(lambda x, s: jnp.roll(x, s, (0, 2)))
    same(pair(X, np.array([1, -3])), np.roll(X, (1, -3), (0, 2)))
    same(vmap(jnp.roll)(Y, np.arange(3)), np.stack([np.roll(r, i) for i, r in enumerate(Y)]))
    same(jnp.roll(np.zeros((0,)), 2), np.zeros(0))


def test_sort_order() -> None:
    x = np.array([2.0, np.nan, -0.0, 0.0, np.inf, -np.inf], np.float32)
    same(jnp.sort(x), np.sort(x))
    same(jnp.sort(x, descending=True), np.sort(x)[::-1])
    ties = np.array([1, 0, 1, 0])
    same(jnp.argsort(ties), [1, 3, 0, 2])
    same(jnp.argsort(ties, descending=True), [0, 2, 1, 3])
    z = np.array([1 + 2j, 1 + 1j, 0 + 5j], np.complex64)
    same(jnp.sort(z), np.sort(z))
    k = np.asarray(jnp.partition(-Y, 1, axis=1))
    same(np.sort(k, 1), np.sort(-Y, 1))
    same(jnp.argpartition(-V, 1), np.argsort(-V))


def test_binary_search_against_numpy() -> None:
    rng = np.random.default_rng(0)
    for n in (0, 1, 2, 3, 7, 64):
        a = np.sort(rng.integers(0, 9, n))
        v = np.arange(-1, 11)
        for side in ("left", "right"):
            same(jnp.searchsorted(a, v, side), np.searchsorted(a, v, side))
            same(jit(lambda p, q, s=side: jnp.searchsorted(p, q, s))(a, v),
                 np.searchsorted(a, v, side))  # fmt: skip
    z = np.sort(np.array([1 + 1j, 1 + 2j, 2], np.complex64))
    same(jnp.searchsorted(z, z), [0, 1, 2])
    order = np.argsort(V)
    same(jnp.searchsorted(V, 2.5, sorter=order), np.searchsorted(V, 2.5, sorter=order))


def test_piecewise() -> None:
    x = np.linspace(-2, 2, 7, dtype=np.float32)
    pieces = [lambda v: -v, 3.0, lambda v: v**2]
    same(jnp.piecewise(x, [x < -1, x > 1], pieces), np.piecewise(x, [x < -1, x > 1], pieces))
    same(jnp.piecewise(x, [x < 0], [1.0]), np.piecewise(x, [x < 0], [1.0]))
    shifted = [lambda v, k: v + k, lambda v, k: v - k]
    same(jnp.piecewise(x, [x > 0], shifted, 5.0), np.piecewise(x, [x > 0], shifted, 5.0))


def test_derivatives_through_choice() -> None:
    same(grad(lambda v: jnp.where(v > 1.5, v**2, -v).sum())(V), [6, -1, 4])
    same(grad(lambda v: jnp.clip(v, 1.5, 2.5).sum())(V), [0, 0, 1])
    same(grad(lambda v: jnp.sort(v)[0])(V), [0, 1, 0])
    same(grad(lambda v: jnp.roll(v, 1)[0])(V), [0, 0, 1])
    same(grad(lambda v: jnp.repeat(v, 3).sum())(V), [3, 3, 3])
    same(grad(lambda v: jnp.concatenate([v, 2 * v]).sum())(V), [3, 3, 3])
    same(grad(lambda v: jnp.round(v).sum())(V), [0, 0, 0])


WIDTHS: list[Any] = [1, (1, 2), ((1, 0), (0, 3)), ((5, 7), (6, 9))]
MODES: list[tuple[str, dict[str, Any]]] = [
    ("constant", {}), ("constant", {"constant_values": 3}),
    ("constant", {"constant_values": (1, 2)}),
    ("constant", {"constant_values": ((1, 2), (3, 4))}), ("edge", {}), ("reflect", {}),
    ("symmetric", {}), ("wrap", {}), ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {"reflect_type": "odd"}), ("linear_ramp", {}),
    ("linear_ramp", {"end_values": (5, -4)}), ("maximum", {}), ("minimum", {}), ("mean", {}),
    ("median", {}), ("mean", {"stat_length": 2}), ("maximum", {"stat_length": ((1, 2), (3, 1))}),
]  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS, ids=repr)
@pytest.mark.parametrize(("mode", "kwargs"), MODES, ids=str)
def test_pad(mode: str, kwargs: dict[str, Any], width: Any) -> None:
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    want = np.pad(x, width, mode, **kwargs)
    same(jnp.pad(x, width, mode, **kwargs), want)
    same(jit(lambda v: jnp.pad(v, width, mode, **kwargs))(x), want)


def test_pad_of_integers_and_others() -> None:
    x = np.arange(5)
    for mode in ("mean", "median", "linear_ramp", "maximum", "wrap"):
        got = jnp.pad(x, 3, mode)
        assert got.dtype == np.int32
        same(got, np.pad(x, 3, mode))
    same(jnp.pad(x, {0: (1, 2)}), np.pad(x, (1, 2)))
    same(jnp.pad(np.float32(1), ()), 1)

    def rim(row: Any, width: Any, axis: int, kwargs: Any) -> Any:
        return row.at[: width[0]].set(kwargs["value"])

    assert jnp.pad(np.ones((2, 2)), 1, rim, value=9.0)[0].tolist() == [9, 9, 9, 9]
    for call, error, text in [
        (lambda: jnp.pad(x, 1, "foo"), NotImplementedError, "Unimplemented padding mode"),
        (lambda: jnp.pad(x, 1, "edge", constant_values=1), ValueError, "unsupported keyword"),
        (lambda: jnp.pad(x, -1), ValueError, "negative"),
        (lambda: jnp.pad(x, 1.5), TypeError, "integral"),
        (lambda: jnp.pad(x, (1, 2, 3)), ValueError, "unsupported shape"),
        (lambda: jnp.pad(np.zeros(0), 1, "edge"), ValueError, "empty axis"),
        (lambda: jit(lambda n: jnp.pad(x, n))(1), errors.ConcretizationTypeError, "int"),
    ]:  # fmt: skip
        with pytest.raises(error, match=text):
            call()  # type: ignore[no-untyped-call]


def test_transpose_names_an_axis_out_of_bounds() -> None:
    with pytest.raises(ValueError, match="axis 1 is out of bounds for array of dimension 1"):
        jnp.transpose(jnp.arange(4), (1, 0))
    with pytest.raises(TypeError, match="expected a permutation"):
        jnp.transpose(jnp.zeros((2, 3)), (0, 0))


def test_reshape_takes_any_copy() -> None:
    for copy in (None, True, False):
        assert jnp.reshape(jnp.arange(4), (2, 2), copy=copy).tolist() == [[0, 1], [2, 3]]


def test_unique_of_nothing_needs_what_to_fill_with() -> None:
    with pytest.raises(ValueError, match="fill_value must be specified"):
        jnp.unique(jnp.zeros(0), size=2)
    assert jnp.unique(jnp.zeros(0), size=2, fill_value=7).tolist() == [7.0, 7.0]


def test_axes_may_be_any_sequence():
    x = jnp.arange(6.0).reshape(1, 2, 3, 1)
    for f in (
        lambda axes: jnp.sum(x, axis=axes(1, 3)),
        lambda axes: jnp.max(x, axis=axes(2)),
        lambda axes: jnp.flip(x, axes(1, 3)),
        lambda axes: jnp.squeeze(x, axis=axes(0, 1)),
        lambda axes: jnp.expand_dims(x, axes(0, 2)),
        lambda axes: jnp.moveaxis(x, axes(0, 2), axes(2, 4)),
        lambda axes: jnp.roll(x, (1, 2), axes(1, 3)),
        lambda axes: jnp.size(x, axes(1, 3)),
        lambda axes: jnp.quantile(x, 0.5, axis=axes(1, 3)),
        lambda axes: primal.nn.softmax(x, axis=axes(1, 3)),
    ):
        expected = f(lambda *ends: tuple(range(*ends)))
        np.testing.assert_array_equal(f(range), expected)
        np.testing.assert_array_equal(f(lambda *ends: np.arange(*ends)), expected)
    # A static argument of JAX's.
    assert jnp.linalg.norm(x, axis=range(1, 3)).shape == (1, 1)
    with pytest.raises(ValueError, match="a number or a tuple as axis"):
        jnp.linalg.norm(x, axis=np.arange(1, 3))


def test_blocks_and_counts_without_a_dimension() -> None:
    for x in (3, jnp.arange(3), jnp.ones((2, 2))):
        assert jnp.block(x).shape == np.block(x).shape
    for reps in (np.array(2), jnp.array(2), np.int64(2), np.array([2, 1])):
        np.testing.assert_array_equal(jnp.tile(jnp.arange(3), reps), np.tile(np.arange(3), reps))


@pytest.mark.parametrize("f", [jnp.intersect1d, jnp.setdiff1d, jnp.setxor1d])
def test_sets_of_a_given_size_without_elements_are_zeros(f: Any) -> None:
    a, b = np.array([3, 1]), np.array([7, 5] if f is jnp.intersect1d else [1, 3])
    for g in (f, jit(f, static_argnames="size")):
        same(g(a, b, size=2), [0, 0])
        same(g(a, b, size=2, fill_value=4), [4, 4])


@pytest.mark.parametrize("name", ["repeat", "cumsum", "cumprod", "nancumsum"])
def test_scalars_are_arrays_of_one_element_along_an_axis(name: str) -> None:
    call = getattr(jnp, name)
    more = (2,) if name == "repeat" else ()
    for axis in (0, -1):
        want = getattr(np, name)(3.0, *more, axis=axis)
        same(call(3.0, *more, axis=axis), want)
        same(vmap(lambda x: call(x, *more, axis=axis))(V), V[:, None] * want / 3)  # noqa: B023
    for axis, error in ((1, ValueError), ((), TypeError)):
        with pytest.raises(error):
            call(3.0, *more, axis=axis)


def test_rolled_along_no_axes() -> None:
    for shift in (1, (1,), ()):
        same(jnp.roll(X, shift, axis=()), np.roll(X, shift, axis=()))
    same(jnp.roll(X, (), axis=0), np.roll(X, (), axis=0))
    with pytest.raises(ValueError, match="as many shifts as axes"):
        jnp.roll(X, (1, 2), axis=())


@pytest.mark.parametrize("join", [jnp.concatenate, jnp.stack, jnp.vstack, jnp.hstack, jnp.dstack])
def test_rows_of_an_array_are_joined_in_as_many_operations_however_many_they_are(join) -> None:
    few, many = [primal.make_jaxpr(join)(jnp.ones((n, 4, 5))).eqns for n in (2, 200)]
    assert len(few) == len(many) <= 3

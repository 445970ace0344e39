"""Collectives over named axes, on trees."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.base import dtypes
from primal.base.pytree import tree_map
from primal.ir.state import axis_size as _size_of
from primal.ir.trace import Tracer, aval_of
from primal.ops import collective
from primal.ops.choose import convert_element_type
from primal.ops.elementwise import div
from primal.ops.reduce import reduce_max, reduce_min
from primal.ops.shape import reshape
from primal.ops.spread import reduce_sum
from primal.ops.types import canonical_axes, shape_of


def _names(axis_name: Any) -> tuple[Any, ...]:
    names, positions = _names_positions(axis_name)
    if positions:
        raise ValueError(
            f"[axis] expected names of axes, got {axis_name!r}: axis {positions[0]} is out of "
            "bounds, as only psum, pmax and pmin reduce dimensions by their position."
        )
    return names


def _names_positions(axis_name: Any) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """(the names among the axes of a reduction, the dimensions of the operand itself)."""
    axes = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    names = tuple([a for a in axes if not isinstance(a, int)])
    for name in names:
        _size_of(name)
    return names, tuple([a for a in axes if isinstance(a, int)])


def _one_name(op: str, axis_name: Any) -> Any:
    names = _names(axis_name)
    if len(names) != 1:
        raise NotImplementedError(f"[{op}] expected one axis name, got {axis_name!r}.")
    return names[0]


def _no_groups(op: str, axis_index_groups: Any) -> None:
    if axis_index_groups is not None:
        raise NotImplementedError(
            f"[{op}] expected axis_index_groups=None: groups of devices are not here yet."
        )


def axis_size(axis_name: Any) -> int:
    """The size of a named axis (the product, for several names).

    >>> primal.vmap(lambda x: x * axis_size("i"), axis_name="i")(jnp.arange(3.0))
    Array([0., 3., 6.], dtype=float32)
    """
    total = 1
    for name in _names(axis_name):
        total *= _size_of(name)
    return total


def axis_index(axis_name: Any) -> Any:
    """The index of this example on a named axis, int32.

    >>> primal.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(jnp.zeros(3, int))
    Array([0, 1, 2], dtype=int32)
    """
    names = _names(axis_name)
    index = collective.axis_index(axes=(names[0],))
    for name in names[1:]:
        index = index * _size_of(name) + collective.axis_index(axes=(name,))
    return index


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum over a named axis: out = Σ_i x_i, the same for every example.

    A constant is multiplied by the size of the axis, so psum(1, name) is that size. Axes that are
    integers are dimensions of x, and go away.

    >>> primal.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    _no_groups("psum", axis_index_groups)
    names, positions = _names_positions(axis_name)

    def one(leaf: Any) -> Any:
        if isinstance(leaf, int | float | complex) and not positions:
            return leaf * axis_size(names)
        if aval_of(leaf).dtype.kind == "b":
            leaf = convert_element_type(leaf, new_dtype=dtypes.int32, weak_type=False)
        return _reduced("psum", leaf, names, positions)

    return tree_map(one, x)


_ROOMS = {
    "psum": (collective.psum, reduce_sum),
    "pmax": (collective.pmax, reduce_max),
    "pmin": (collective.pmin, reduce_min),
}


def _reduced(op: str, x: Any, names: tuple[Any, ...], positions: tuple[int, ...]) -> Any:
    across, along = _ROOMS[op]
    if positions:
        x = along(x, axes=tuple(sorted(canonical_axes(op, positions, len(shape_of(x))))))
    return across(x, axes=names) if names else x


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean over a named axis: psum(x) / psum(1).

    >>> primal.vmap(lambda x: pmean(x, "i"), axis_name="i")(jnp.arange(3.0))
    Array([1., 1., 1.], dtype=float32)
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    n = axis_size(axis_name)

    def one(leaf: Any) -> Any:
        return leaf / n if not isinstance(leaf, Tracer) else _divided(leaf, n)

    return tree_map(one, total)


def _divided(x: Any, n: int) -> Any:
    if x.dtype.kind in "iub":
        x = convert_element_type(x, new_dtype=dtypes.float32, weak_type=False)
    return div(x, float(n))


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The maximum over a named axis.

    >>> primal.vmap(lambda x: pmax(x, "i"), axis_name="i")(jnp.arange(3.0))
    Array([2., 2., 2.], dtype=float32)
    """
    _no_groups("pmax", axis_index_groups)
    names, positions = _names_positions(axis_name)
    return tree_map(lambda leaf: _reduced("pmax", leaf, names, positions), x)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The minimum over a named axis.

    >>> primal.vmap(lambda x: pmin(x, "i"), axis_name="i")(jnp.arange(3.0))
    Array([0., 0., 0.], dtype=float32)
    """
    _no_groups("pmin", axis_index_groups)
    names, positions = _names_positions(axis_name)
    return tree_map(lambda leaf: _reduced("pmin", leaf, names, positions), x)


def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """All values of a named axis, along a new dimension (`tiled`: along an existing one).

    `to` says how the result counts over a mesh: "varying" or, as it is the same everywhere,
    "invarying"; axes of vmap make no difference. ValueError for other words, NotImplementedError
    for "reduced".

    >>> primal.vmap(lambda x: all_gather(x, "i"), axis_name="i")(jnp.arange(2.0))
    Array([[0., 1.],
           [0., 1.]], dtype=float32)
    """
    _no_groups("all_gather", axis_index_groups)
    if to == "reduced":
        raise NotImplementedError(
            "[all_gather] expected to='varying' or 'invarying', got 'reduced', which is for meshes."
        )
    if to not in ("varying", "invarying"):
        raise ValueError(
            f"[all_gather] expected to to be 'varying', 'invarying' or 'reduced', got {to!r}: "
            "Got unexpected `to` value."
        )
    name = _one_name("all_gather", axis_name)
    size = _size_of(name)

    def one(leaf: Any) -> Any:
        shape = shape_of(leaf)
        (at,) = canonical_axes("all_gather", (axis,), len(shape) + (not tiled))
        out = collective.all_gather(leaf, axes=(name,), dim=at, size=size)
        if tiled:
            return reshape(out, shape=(*shape[:at], size * shape[at], *shape[at + 1 :]))
        return out

    return tree_map(one, x)


def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """The sum over a named axis, of which each example keeps its own part.

    With `tiled` that part is a slice of the dimension, whose size the axis size has to divide, else
    ValueError; without it the dimension has the axis size and goes away.

    >>> primal.vmap(lambda x: psum_scatter(x, "i"), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    _no_groups("psum_scatter", axis_index_groups)
    name = _one_name("psum_scatter", axis_name)
    size = _size_of(name)

    def one(leaf: Any) -> Any:
        shape = shape_of(leaf)
        (at,) = canonical_axes("psum_scatter", (scatter_dimension,), len(shape))
        if tiled:
            if shape[at] % size:
                raise ValueError(
                    f"[psum_scatter] expected dimension {at} divisible by the axis size {size}, "
                    f"got shape {shape}."
                )
            split = (*shape[:at], size, shape[at] // size, *shape[at + 1 :])
            leaf = reshape(leaf, shape=split)
        return collective.reduce_scatter(leaf, axes=(name,), dim=at, size=size)

    return tree_map(one, x)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send values along a named axis by (source, destination) pairs; zeros where none arrives.

    >>> turn = [(0, 1), (1, 2), (2, 0)]
    >>> primal.vmap(lambda x: ppermute(x, "i", turn), axis_name="i")(jnp.arange(3.0))
    Array([2., 0., 1.], dtype=float32)
    """
    name = _one_name("ppermute", axis_name)
    pairs = tuple([(int(s), int(t)) for s, t in perm])
    return tree_map(lambda leaf: collective.ppermute(leaf, axes=(name,), perm=pairs), x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Shuffle values along a named axis: example i receives from perm[i].

    ValueError where perm is no permutation of all indices.

    >>> primal.vmap(lambda x: pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.arange(3.0))
    Array([2., 0., 1.], dtype=float32)
    """
    if set(perm) != set(range(len(perm))):
        raise ValueError(f"[pshuffle] expected a permutation of range({len(perm)}), got {perm}.")
    return ppermute(x, axis_name, [(s, i) for i, s in enumerate(perm)])


def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Transpose a dimension with a named axis: part i of `split_axis` goes to example i.

    With `tiled` dimensions keep their rank: parts are slices. ValueError where the axis size does
    not divide `split_axis`, or is not its size.

    >>> primal.vmap(lambda x: all_to_all(x, "i", 0, 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    _no_groups("all_to_all", axis_index_groups)
    name = _one_name("all_to_all", axis_name)
    size = _size_of(name)

    def one(leaf: Any) -> Any:
        shape = shape_of(leaf)
        (s,) = canonical_axes("all_to_all", (split_axis,), len(shape))
        (c,) = canonical_axes("all_to_all", (concat_axis,), len(shape))
        if not tiled:
            return collective.all_to_all(leaf, axes=(name,), split=s, concat=c)
        if shape[s] % size:
            raise ValueError(
                f"[all_to_all] expected dimension {s} divisible by the axis size {size}, got shape "
                f"{shape}."
            )
        parts = reshape(leaf, shape=(*shape[:s], size, shape[s] // size, *shape[s + 1 :]))
        moved = collective.all_to_all(parts, axes=(name,), split=s, concat=c)
        # The gathered dimension stands at c; it is merged with the one behind it.
        out = list(shape)
        out[s] //= size
        out[c] *= size
        return reshape(moved, shape=tuple(out))

    return tree_map(one, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Swap a dimension with a named axis: `all_to_all` whose parts stay in their place.

    ValueError where the dimension has not the axis size.

    >>> primal.vmap(lambda x: pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def pbroadcast(x: Any, axis_name: Any, source: int) -> Any:
    """The value of one example for all.

    >>> primal.vmap(lambda x: pbroadcast(x, "i", 1), axis_name="i")(jnp.arange(3.0))
    Array([1., 1., 1.], dtype=float32)
    """
    name = _one_name("pbroadcast", axis_name)
    size = _size_of(name)

    def one(leaf: Any) -> Any:
        rows = collective.all_gather(leaf, axes=(name,), dim=0, size=size)
        return rows[source]

    return tree_map(one, x)


_VARYING = ("varying", "reduced", "unreduced")


def pcast(x: Any, axis_name: Any, *, to: str) -> Any:
    """x as it is, under another type of how it varies over the axes of a mesh.

    Without axes nothing changes. ValueError for others: mesh axes are those of `shard_map`, and
    under `vmap` values vary over its axis without being told to.

    >>> pcast(jnp.arange(2), (), to="varying")
    Array([0, 1], dtype=int32)
    """
    names = tuple(axis_name) if isinstance(axis_name, tuple | list | set) else (axis_name,)
    if not names:
        return x
    if to not in _VARYING:
        raise ValueError(f"[pcast] expected `to` of {', '.join(_VARYING)}, got {to!r}.")
    raise ValueError(
        f"[pcast] expected no axes outside of shard_map, got {names}: there is no mesh whose axes "
        "values could vary over. Leave pcast out."
    )

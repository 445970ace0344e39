"""Trees that are prefixes of other trees, and the errors that say where they are not."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from primal.base.pytree.core import (
    LEAF,
    IsLeaf,
    NoneType,
    Outline,
    Spec,
    flatten,
    flatten_until,
    is_namedtuple_type,
    one_level_with_keys,
    outline,
    thaw,
)
from primal.base.pytree.keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, keystr


def subtrees(spec: Spec, tree: Any, where: str, what: str) -> list[Any]:
    """Return the subtrees of `tree` at the places of the spec's leaves.

    Raises a ValueError in the name of `where` that says at which key path `what` differs.
    """
    if spec.is_leaf():
        return [tree]
    with contextlib.suppress(Exception):  # what is below the leaves of the spec does not matter
        leaves, whole = flatten(tree)
        if whole == spec:
            return leaves
    found: list[Any] = []
    difference = _difference(outline(spec), tree, _open_tree, found.append)
    if difference is not None:
        path, want, got = difference
        remedy = _NONE_REMEDY if "None" in (want, got) else _MATCH_REMEDY
        raise ValueError(
            f"[{where}] expected {want} {_place(path)} of {what}, got {got}.\n{remedy}"
        )
    return found


# --- prefixes -------------------------------------------------------------------------------------


def broadcast_prefix(
    prefix_tree: Any,
    full_tree: Any,
    is_leaf: IsLeaf = None,
    *,
    where: str = "broadcast_prefix",
    what: str = "the full tree",
) -> list[Any]:
    """Return the prefix's leaves, each repeated for every leaf of the full tree below it.

    `is_leaf` speaks of the prefix only. Raises a ValueError that names the key path where the
    prefix is none.

    >>> broadcast_prefix([1, 2], [{"a": 0, "b": 0}, 0])
    [1, 1, 2]
    """
    leaves, spec = flatten_until(prefix_tree, is_leaf)
    out: list[Any] = []
    for leaf, subtree in zip(leaves, subtrees(spec, full_tree, where, what), strict=True):
        out += [leaf] * len(flatten(subtree)[0])
    return out


def broadcast_to_spec(
    prefix_tree: Any, spec: Spec, where: str, what: str = "the value", is_leaf: IsLeaf = None
) -> list[Any]:
    """Return the leaves of a prefix tree repeated for every leaf of a spec: `broadcast_prefix`
    for a structure whose leaves are not at hand."""
    leaves, prefix = flatten_until(prefix_tree, is_leaf)
    counts: list[int] = []
    if not (prefix.is_prefix(spec) and _is_strict_prefix(prefix, spec, counts)):
        difference = _difference(outline(prefix), outline(spec), _open_outline, [].append)
        path, want, got = difference or ((), "a prefix", "another structure")
        raise ValueError(
            f"[{where}] expected a prefix of the structure of {what}, got {want} {_place(path)}, "
            f"where {what} has {got}: {where} specification must be a tree prefix of the "
            f"corresponding value.\n{_PREFIX_REMEDY}"
        )
    out: list[Any] = []
    for leaf, n in zip(leaves, counts, strict=True):
        out += [leaf] * n
    return out


def _is_strict_prefix(prefix: Spec, full: Spec, counts: list[int]) -> bool:
    # optree takes a dictionary for a prefix of another type of dictionary.
    if prefix.is_leaf():
        counts.append(full.num_leaves)
        return True
    if prefix.type is not full.type or prefix.entries() != full.entries():
        return False
    pairs = zip(prefix.children(), full.children(), strict=True)
    return all(_is_strict_prefix(p, f, counts) for p, f in pairs)


def is_none(x: Any) -> bool:
    """Where None is a leaf."""
    return x is None


def flatten_axes(name: str, treedef: Any, axis_tree: Any) -> list[Any]:
    """Return one axis per leaf of a structure from a prefix tree of axes, in which None is a leaf.

    Raises a ValueError in the name of `name` that says where the trees differ.

    >>> from primal.base.pytree import tree_structure
    >>> flatten_axes("vmap in_axes", tree_structure((1, [2, 3])), (0, None))
    [0, None, None]
    """
    if type(axis_tree) is int:
        return [axis_tree] * treedef.num_leaves
    return broadcast_to_spec(axis_tree, treedef.spec, name, "the value", is_none)


# --- messages -------------------------------------------------------------------------------------

_MATCH_REMEDY = (
    "Trees match when they have the same containers, with the same keys and lengths, down to the "
    "leaves of the first."
)
_PREFIX_REMEDY = (
    "A prefix tree has the containers of the full tree, with the same keys and lengths; each of "
    "its leaves may stand for a whole subtree."
)
_NONE_REMEDY = (
    "None is a container without leaves. Pass is_leaf=lambda x: x is None to treat it as a leaf."
)


def _container(cls: type, aux: Any, size: int) -> str:
    if cls is NoneType:
        return "None"
    if cls is list or cls is tuple:
        return f"a {cls.__name__} of length {size}"
    if cls is dict:
        return f"a dict with keys {', '.join(map(repr, aux))}" if aux else "an empty dict"
    if is_namedtuple_type(cls):
        return f"a namedtuple {cls.__name__}"
    children = "1 child" if size == 1 else f"{size} children"
    return f"{cls.__name__} with {children} and metadata {aux}"


def _open_tree(tree: Any) -> tuple[type, Any, Sequence[tuple[Any, Any]]] | None:
    found = one_level_with_keys(tree)
    return None if found is None else (type(tree), found[1], found[0])


def _open_outline(outline: Outline) -> tuple[type, Any, Sequence[tuple[Any, Any]]] | None:
    if outline is LEAF:
        return None
    cls, aux, *children = outline
    if cls is dict:
        keys = map(DictKey, aux)
    elif is_namedtuple_type(cls):
        keys = map(GetAttrKey, cls._fields)
    else:
        keys = map(SequenceKey if cls in (list, tuple) else FlattenedIndexKey, count())
    return cls, aux, list(zip(keys, children, strict=False))


def _difference(
    spec: Outline,
    value: Any,
    opened: Callable[[Any], tuple[type, Any, Sequence[tuple[Any, Any]]] | None],
    append: Callable[[Any], None],
    path: tuple[Any, ...] = (),
) -> tuple[tuple[Any, ...], str, str] | None:
    """Return (key path, what the outline has there, what the value has), or None where it fits;
    `append` gets the parts of the value at the outline's leaves."""
    if spec is LEAF:
        append(value)
        return None
    cls, aux, *children = spec
    found = opened(value)
    if found is None:
        leaf = "a leaf" if value is LEAF else f"a leaf of type {type(value).__name__}"
        return path, _container(cls, thaw(aux), len(children)), leaf
    got_cls, got_aux, pairs = found
    if cls is not got_cls or len(children) != len(pairs) or aux != got_aux:
        want, got = [
            _container(c, thaw(a), n)
            for c, a, n in ((cls, aux, len(children)), (got_cls, got_aux, len(pairs)))
        ]
        if got == want:  # two classes of one name
            got = f"another class {got_cls.__module__}.{got_cls.__qualname__}"
        return path, want, got
    for child, (key, part) in zip(children, pairs, strict=True):
        inner = _difference(child, part, opened, append, (*path, key))
        if inner is not None:
            return inner
    return None


def _place(path: tuple[Any, ...]) -> str:
    return f"at key path {keystr(path)}" if path else "at the root"

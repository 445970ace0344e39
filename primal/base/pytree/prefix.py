"""Trees that are prefixes of other trees, and the errors that say where they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from primal.base.pytree.core import (
    LEAF,
    IsLeaf,
    NoneType,
    Spec,
    aux_of,
    flatten_until,
    is_namedtuple_type,
    one_level,
    one_level_with_keys,
)
from primal.base.pytree.keys import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey, keystr


def count_leaves(spec: Spec) -> int:
    """Return the number of leaves of a spec."""
    if spec is LEAF:
        return 1
    return sum([1 if child is LEAF else count_leaves(child) for child in spec[2:]])


def subtrees(spec: Spec, tree: Any, where: str, what: str) -> list[Any]:
    """Return the subtrees of `tree` at the places of the spec's leaves.

    Raises a ValueError in the name of `where` that says at which key path `what` differs.
    """
    found: list[Any] = []
    if not _collect(spec, tree, found.append):
        raise ValueError(_tree_message(spec, tree, where, what))
    return found


def _collect(spec: Spec, tree: Any, append: Callable[[Any], None]) -> bool:
    if spec is LEAF:
        append(tree)
        return True
    cls = spec[0]
    if type(tree) is not cls:
        return False
    children: Iterable[Any]
    if cls is list or cls is tuple:
        if len(tree) != len(spec) - 2:
            return False
        children = tree
    elif cls is dict:
        keys = spec[1]
        if len(tree) != len(keys):
            return False
        try:
            children = [tree[key] for key in keys]
        except KeyError:
            return False
    else:
        found = one_level(tree)
        if found is None:
            return False
        children, aux = found
        if len(children) != len(spec) - 2 or aux != spec[1]:
            return False
    for child_spec, child in zip(spec[2:], children, strict=True):
        if child_spec is LEAF:
            append(child)
        elif not _collect(child_spec, child, append):
            return False
    return True


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
        out += [leaf] * len(flatten_until(subtree, None)[0])
    return out


def broadcast_to_spec(
    prefix_tree: Any, spec: Spec, where: str, what: str = "the value", is_leaf: IsLeaf = None
) -> list[Any]:
    """Return the leaves of a prefix tree repeated for every leaf of a spec: `broadcast_prefix`
    for a structure whose leaves are not at hand."""
    leaves, prefix = flatten_until(prefix_tree, is_leaf)
    counts: list[int] = []
    if not _collect_counts(prefix, spec, counts):
        raise ValueError(_spec_message(prefix, spec, where, what))
    out: list[Any] = []
    for leaf, count in zip(leaves, counts, strict=True):
        out += [leaf] * count
    return out


def _collect_counts(prefix: Spec, full: Spec, counts: list[int]) -> bool:
    if prefix is LEAF:
        counts.append(count_leaves(full))
        return True
    if full is LEAF or prefix[:2] != full[:2] or len(prefix) != len(full):
        return False
    return all(_collect_counts(p, f, counts) for p, f in zip(prefix[2:], full[2:], strict=True))


def _is_none(x: Any) -> bool:
    return x is None


def flatten_axes(name: str, treedef: Any, axis_tree: Any) -> list[Any]:
    """Return one axis per leaf of a structure from a prefix tree of axes, in which None is a leaf.

    Raises a ValueError in the name of `name` that says where the trees differ.

    >>> from primal.base.pytree import tree_structure
    >>> flatten_axes("vmap in_axes", tree_structure((1, [2, 3])), (0, None))
    [0, None, None]
    """
    return broadcast_to_spec(axis_tree, treedef.spec, name, "the value", _is_none)


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


def _leaf_words(tree: Any) -> str:
    return f"a leaf of type {type(tree).__name__}"


def _differ(expected: Spec, cls: type, aux: Any, size: int) -> bool:
    return expected[0] is not cls or len(expected) - 2 != size or expected[1] != aux


def _tree_difference(
    spec: Spec, tree: Any, path: tuple[Any, ...]
) -> tuple[tuple[Any, ...], str, str] | None:
    """Return (key path, what the spec has there, what the tree has), or None where it fits."""
    if spec is LEAF:
        return None
    want = _container(spec[0], aux_of(spec), len(spec) - 2)
    found = one_level_with_keys(tree)
    if found is None:
        return path, want, _leaf_words(tree)
    pairs, aux = found
    if _differ(spec, type(tree), aux, len(pairs)):
        got = _container(type(tree), aux, len(pairs))
        if got == want:  # two classes of one name
            got = f"another class {type(tree).__module__}.{type(tree).__qualname__}"
        return path, want, got
    for child, (key, value) in zip(spec[2:], pairs, strict=True):
        inner = _tree_difference(child, value, (*path, key))
        if inner is not None:
            return inner
    return None


def _keys_of(spec: Spec) -> list[Any]:
    cls, size = spec[0], len(spec) - 2
    if cls is dict:
        return [DictKey(key) for key in spec[1]]
    if cls is list or cls is tuple:
        return [SequenceKey(i) for i in range(size)]
    if is_namedtuple_type(cls):
        return [GetAttrKey(name) for name in cls._fields]
    return [FlattenedIndexKey(i) for i in range(size)]


def _spec_difference(
    prefix: Spec, full: Spec, path: tuple[Any, ...]
) -> tuple[tuple[Any, ...], str, str] | None:
    if prefix is LEAF:
        return None
    want = _container(prefix[0], aux_of(prefix), len(prefix) - 2)
    if full is LEAF:
        return path, want, "a leaf"
    if _differ(prefix, full[0], full[1], len(full) - 2):
        return path, want, _container(full[0], aux_of(full), len(full) - 2)
    for key, p, f in zip(_keys_of(full), prefix[2:], full[2:], strict=True):
        inner = _spec_difference(p, f, (*path, key))
        if inner is not None:
            return inner
    return None


def _place(path: tuple[Any, ...]) -> str:
    return f"at key path {keystr(path)}" if path else "at the root"


def _tree_message(spec: Spec, tree: Any, where: str, what: str) -> str:
    path, want, got = _tree_difference(spec, tree, ()) or ((), "the given structure", "another")
    remedy = _NONE_REMEDY if "None" in (want, got) else _MATCH_REMEDY
    return f"[{where}] expected {want} {_place(path)} of {what}, got {got}.\n{remedy}"


def _spec_message(prefix: Spec, full: Spec, where: str, what: str) -> str:
    path, want, got = _spec_difference(prefix, full, ()) or ((), "a prefix", "another structure")
    return (
        f"[{where}] expected a prefix of the structure of {what}, got {want} {_place(path)}, where "
        f"{what} has {got}.\n{_PREFIX_REMEDY}"
    )

"""Functions over trees: the public surface of `tree_util` and `tree`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar, overload

from primal.base.pytree import core
from primal.base.pytree.core import IsLeaf
from primal.base.pytree.nodes import register_dataclass, register_pytree_node
from primal.base.pytree.prefix import broadcast_prefix, subtrees
from primal.base.pytree.treedef import PyTreeDef, as_treedef, specs_of


class Unspecified:
    """Stands for an argument that was not given, where None is a legal value."""

    def __repr__(self) -> str:
        return "<unspecified>"


_unspecified = Unspecified()


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """Return the leaves of a tree, depth first, and its structure.

    Dictionaries are visited in the order of their sorted keys; None is a node without leaves;
    `is_leaf(node)` may make a node a leaf.

    >>> tree_flatten({"b": 1, "a": (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    leaves, spec = core.flatten_until(tree, is_leaf)
    return leaves, PyTreeDef(spec)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Return the tree of a structure around leaves: the inverse of `tree_flatten`.

    Raises ValueError if their number is wrong.

    >>> tree_unflatten(tree_structure([0, (0, 0)]), [1, 2, 3])
    [1, (2, 3)]
    """
    return as_treedef(treedef, "tree_unflatten").unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """Return the leaves of a tree, depth first.

    >>> tree_leaves([1, (2, {"x": 3}), None])
    [1, 2, 3]
    """
    return core.flatten_until(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> PyTreeDef:
    """Return the structure of a tree.

    >>> tree_structure([1, (2, {"x": 3}), None])
    PyTreeDef([*, (*, {'x': *}), None])
    """
    return tree_flatten(tree, is_leaf)[1]


class _Leaf(Protocol):
    """What type checkers know an array by, here below the arrays."""

    @property
    def weak_type(self) -> bool: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


L = TypeVar("L", bound=_Leaf)
K = TypeVar("K")
T = TypeVar("T")


# Of a tuple nothing can be said: a NamedTuple of arrays is one too, and comes back as itself.
@overload
def tree_map(f: Callable[..., T], tree: _Leaf, *rest: Any, is_leaf: None = ...) -> T: ...
@overload
def tree_map(
    f: Callable[..., T], tree: dict[K, L], *rest: Any, is_leaf: None = ...
) -> dict[K, T]: ...
@overload
def tree_map(f: Callable[..., T], tree: list[L], *rest: Any, is_leaf: None = ...) -> list[T]: ...
@overload
def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = ...) -> Any: ...
def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf = None) -> Any:
    """Return the tree of `f(leaf, ...)`, with the structure of the first tree.

    The further trees must have that structure down to its leaves, and may go deeper: `f` then gets
    their subtrees. Raises ValueError, with the key path, where they differ.

    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": (2, 3)}, {"a": 10, "b": (20, 30)})
    {'a': 11, 'b': (22, 33)}
    """
    leaves, spec = core.flatten_until(tree, is_leaf)
    if not rest:
        return core.unflatten(spec, [f(leaf) for leaf in leaves])
    columns = [leaves]
    for i, other in enumerate(rest):
        columns.append(subtrees(spec, other, "tree_map", f"tree {i + 2}"))
    return core.unflatten(spec, [f(*row) for row in zip(*columns, strict=True)])


def tree_all(tree: Any, *, is_leaf: IsLeaf = None) -> bool:
    """Return whether all leaves are true.

    >>> tree_all([True, {"a": 1}]), tree_all([])
    (True, True)
    """
    return all(tree_leaves(tree, is_leaf))


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _unspecified,
    is_leaf: IsLeaf = None,
) -> Any:
    """Return `f(f(f(initializer, x0), x1), ...)` over the leaves.

    Raises TypeError for a tree without leaves and no initializer.

    >>> tree_reduce(lambda a, b: a + b, [1, (2, 3)])
    6
    """
    leaves = tree_leaves(tree, is_leaf)
    if isinstance(initializer, Unspecified):
        if not leaves:
            raise TypeError(
                "[tree_reduce] expected a tree with leaves, got none: reduce() of empty iterable "
                "with no initial value.\n"
                "Pass initializer, the result for a tree without leaves."
            )
        return functools.reduce(function, leaves)
    return functools.reduce(function, leaves, initializer)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _unspecified,
    is_leaf: IsLeaf = None,
) -> Any:
    """Return the leaves combined by an associative operation, as a balanced binary tree.

    n leaves need n - 1 operations, of which only about log2(n) depend on each other. Raises
    TypeError for a tree without leaves and no identity.

    >>> tree_reduce_associative(lambda a, b: f"({a}{b})", list("abcd"))
    '((ab)(cd))'
    """
    leaves = tree_leaves(tree, is_leaf)
    if not leaves:
        if isinstance(identity, Unspecified):
            raise TypeError(
                "[tree_reduce_associative] expected a tree with leaves, got none.\n"
                "Pass identity, the result for a tree without leaves."
            )
        return identity

    def fold(lo: int, hi: int) -> Any:
        if hi - lo == 1:
            return leaves[lo]
        mid = lo + (hi - lo) // 2
        return operation(fold(lo, mid), fold(mid, hi))

    return fold(0, len(leaves))


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """Return a tree of structure inner∘outer from one of structure outer∘inner.

    With `inner_treedef=None` the inner structure is taken from the tree. Raises TypeError if the
    tree does not have as many leaves as outer∘inner: containers are not compared, as a node's
    metadata may follow from what it holds.

    >>> tree_transpose(tree_structure([0, 0]), None, [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'a': [1, 3], 'b': [2, 4]}
    """
    outer = as_treedef(outer_treedef, "tree_transpose")
    leaves, treedef = tree_flatten(pytree_to_transpose)
    if inner_treedef is None:
        parts = outer.flatten_up_to(pytree_to_transpose)
        inner = tree_structure(parts[0] if parts else 0)
    else:
        inner = as_treedef(inner_treedef, "tree_transpose")
    if treedef.num_leaves != outer.num_leaves * inner.num_leaves:
        raise TypeError(
            f"[tree_transpose] expected a tree of structure\n  {outer.compose(inner)}\n"
            f"(the outer structure with the inner one at its leaves), got\n  {treedef}\n"
            "Mismatch of the numbers of leaves."
        )
    n = inner.num_leaves
    columns = [outer.unflatten(leaves[i::n]) for i in range(n)]
    return inner.unflatten(columns)


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf = None) -> Any:
    """Return a tree of the full tree's structure whose leaves are those of the prefix above them.

    Raises ValueError, with the key path, where the first tree is no prefix of the second.

    >>> tree_broadcast([1, 2], [{"a": 0, "b": 0}, 0])
    [{'a': 1, 'b': 1}, 2]
    """
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf, where="tree_broadcast")
    return core.unflatten(core.flatten(full_tree)[1], leaves)


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[Any, Any]], PyTreeDef]:
    """Return [(key path, leaf), ...] and the structure.

    With `is_leaf_takes_path`, `is_leaf(path, node)` is called.

    >>> tree_flatten_with_path({"a": [7]})
    ([((DictKey(key='a'), SequenceKey(idx=0)), 7)], PyTreeDef({'a': [*]}))
    """
    leaves, spec = core.flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    return leaves, PyTreeDef(spec)


def tree_leaves_with_path(
    tree: Any, is_leaf: IsLeaf = None, is_leaf_takes_path: bool = False
) -> list[tuple[Any, Any]]:
    """Return [(key path, leaf), ...].

    >>> tree_leaves_with_path({"a": 7})
    [((DictKey(key='a'),), 7)]
    """
    return core.flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: IsLeaf = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """Return the tree of `f(key path, leaf, ...)`; otherwise as `tree_map`.

    >>> from primal.base.pytree.keys import keystr
    >>> tree_map_with_path(lambda path, x: keystr(path), {"a": [7, 8]})
    {'a': ["['a'][0]", "['a'][1]"]}
    """
    pairs, spec = core.flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    columns: list[Any] = [[path for path, _ in pairs], [leaf for _, leaf in pairs]]
    for i, other in enumerate(rest):
        columns.append(subtrees(spec, other, "tree_map_with_path", f"tree {i + 2}"))
    return core.unflatten(spec, [f(*row) for row in zip(*columns, strict=True)])


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple of trees of the given structures.

    >>> treedef_tuple([tree_structure([0]), tree_structure(0)])
    PyTreeDef(([*], *))
    """
    return PyTreeDef(core.engine().treespec_tuple(specs_of(treedefs, "treedef_tuple")))


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of the root's children.

    >>> from primal import tree
    >>> treedef_children(tree.structure((1, [2, 3])))
    [PyTreeDef(*), PyTreeDef([*, *])]
    """
    return as_treedef(treedef, "treedef_children").children()


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return whether a structure has no parts: a leaf, None, or an empty container.

    >>> from primal import tree
    >>> treedef_is_leaf(tree.structure(1)), treedef_is_leaf(tree.structure([1]))
    (True, False)
    """
    return as_treedef(treedef, "treedef_is_leaf").num_nodes == 1


def build_tree(treedef: PyTreeDef, xs: Any) -> Any:
    """Return the tree of a structure from its children as nested iterables."""
    return as_treedef(treedef, "build_tree").from_iterable_tree(xs)


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf = None) -> bool:
    """Return whether no element is a container.

    >>> all_leaves([1, 2.0]), all_leaves([1, [2]])
    (True, False)
    """
    return all(
        (is_leaf is not None and is_leaf(x)) or not core.is_node_type(type(x)) for x in iterable
    )


def is_tree_node(typ: type) -> bool:
    """Return whether values of a type are containers, as opposed to leaves.

    >>> is_tree_node(tuple), is_tree_node(int)
    (True, False)
    """
    return core.is_node_type(typ)


def flatten_one_level(tree: Any) -> tuple[Sequence[Any], Any]:
    """Return (children, metadata) of the root; ValueError for a leaf.

    The children of lists and of namedtuples, whose metadata is their type, are a list.

    >>> flatten_one_level({"b": 1, "a": [2]})
    (([2], 1), ('a', 'b'))
    """
    found = core.one_level(tree)
    if found is None:
        raise ValueError(_no_node("flatten_one_level", tree))
    cls = type(tree)
    if core.is_namedtuple_type(cls):
        return list(found[0]), cls
    return list(found[0]) if cls is list else found[0], core.thaw(found[1])


def flatten_one_level_with_keys(tree: Any) -> tuple[tuple[tuple[Any, Any], ...], Any]:
    """Return ((key, child) pairs, metadata) of the root; ValueError for a leaf.

    >>> flatten_one_level_with_keys({"b": 1, "a": [2]})
    (((DictKey(key='a'), [2]), (DictKey(key='b'), 1)), ('a', 'b'))
    """
    found = core.one_level_with_keys(tree)
    if found is None:
        raise ValueError(_no_node("flatten_one_level_with_keys", tree))
    return found[0], core.thaw(found[1])


def _no_node(where: str, tree: Any) -> str:
    return f"[{where}] expected a container, got a leaf of type {type(tree).__name__}."


class PyTreeRegistry:
    """The registry of node types, as an object; there is one, `default_registry`."""

    def flatten(self, tree: Any, leaf_predicate: IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
        """Return (leaves, structure)."""
        return tree_flatten(tree, leaf_predicate)

    def flatten_with_path(
        self, tree: Any, leaf_predicate: IsLeaf = None
    ) -> tuple[list[tuple[Any, Any]], PyTreeDef]:
        """Return ([(key path, leaf), ...], structure)."""
        return tree_flatten_with_path(tree, leaf_predicate)

    def flatten_one_level(self, tree: Any) -> tuple[Any, Any] | None:
        """Return (children, metadata) of the root, or None for a leaf."""
        return flatten_one_level(tree) if core.is_node_type(type(tree)) else None

    def flatten_one_level_with_keys(self, tree: Any) -> tuple[Any, Any] | None:
        """Return ((key, child) pairs, metadata) of the root, or None for a leaf."""
        return flatten_one_level_with_keys(tree) if core.is_node_type(type(tree)) else None

    def is_node(self, typ: type) -> bool:
        """Return whether values of a type are containers."""
        return core.is_node_type(typ)

    def register_node(
        self, nodetype: type, to_iterable: Any, from_iterable: Any, with_keys: Any = None
    ) -> None:
        """Register a class; see `register_pytree_node`."""
        register_pytree_node(nodetype, to_iterable, from_iterable, with_keys)

    def register_dataclass_node(self, nodetype: type, data_fields: Any, meta_fields: Any) -> None:
        """Register a class by its fields; see `register_dataclass`."""
        register_dataclass(nodetype, data_fields, meta_fields)

    def __reduce__(self) -> str:
        return "default_registry"


default_registry = PyTreeRegistry()

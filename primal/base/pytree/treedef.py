"""`PyTreeDef`: the structure of a tree as users see and hold it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from primal.base.pytree.core import (
    LEAF,
    NoneType,
    Outline,
    Spec,
    engine,
    flatten,
    has_own_rules,
    is_node_type,
    outline,
    put_together,
    thaw,
    unflatten,
)
from primal.base.pytree.prefix import subtrees


def show(outline: Outline) -> str:
    """Return a spec as text: leaves are `*`, custom nodes `CustomNode(type[metadata], [...])`."""
    if outline is LEAF:
        return "*"
    cls, aux = outline[0], thaw(outline[1])
    children = [show(child) for child in outline[2:]]
    inside = ", ".join(children)
    if cls is NoneType:
        return "None"
    if cls is list:
        return f"[{inside}]"
    if cls is tuple:
        return f"({inside},)" if len(children) == 1 else f"({inside})"
    if cls is dict:
        items = (f"{key!r}: {child}" for key, child in zip(aux, children, strict=True))
        return "{" + ", ".join(items) + "}"
    name = f"{cls.__name__}[{aux}]" if has_own_rules(cls) else f"namedtuple[{cls.__name__}]"
    return f"CustomNode({name}, [{inside}])"


def _metadata(node: Outline) -> Any:
    """What a node is made of besides its children; of a dict, the list of its keys."""
    return list(node[1]) if node[0] is dict else thaw(node[1])


class PyTreeDef:
    """The structure of a tree: its containers, their keys and metadata, without the leaves.

    >>> from primal.base.pytree import tree_structure
    >>> tree_structure({"a": 1, "b": [2, 3]})
    PyTreeDef({'a': *, 'b': [*, *]})
    """

    __slots__ = ("spec",)
    spec: Spec

    def __init__(self, spec: Spec) -> None:
        self.spec = spec

    @property
    def num_leaves(self) -> int:
        """The number of leaves."""
        return self.spec.num_leaves

    @property
    def num_nodes(self) -> int:
        """The number of nodes, leaves and Nones included."""
        return self.spec.num_nodes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PyTreeDef):
            return NotImplemented
        return self.spec is other.spec or bool(self.spec == other.spec)

    def __hash__(self) -> int:
        return hash(self.spec)

    def __repr__(self) -> str:
        return f"PyTreeDef({show(outline(self.spec))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (pickle.dumps(self.spec),)

    def __deepcopy__(self, memo: Any) -> PyTreeDef:
        return self

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return the tree with these leaves; ValueError if their number differs from `num_leaves`.

        >>> from primal.base.pytree import tree_structure
        >>> tree_structure({"a": 1, "b": [2, 3]}).unflatten([4, 5, 6])
        {'a': 4, 'b': [5, 6]}
        """
        if not isinstance(leaves, (list, tuple)):
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            rule = "Too few" if len(leaves) < self.num_leaves else "Too many"
            raise ValueError(
                f"[tree_unflatten] expected {self.num_leaves} leaves for {self}, got "
                f"{len(leaves)}: {rule} leaves for PyTreeDef."
            )
        return unflatten(self.spec, leaves)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """Return the subtrees of `tree` at the places of this structure's leaves.

        Raises ValueError where the tree differs above them.

        >>> from primal.base.pytree import tree_structure
        >>> tree_structure({"a": 1, "b": 2}).flatten_up_to({"a": [3, 4], "b": 5})
        [[3, 4], 5]
        """
        return subtrees(self.spec, tree, "flatten_up_to", "the tree")

    def children(self) -> list[PyTreeDef]:
        """Return the structures of the children; none for leaves."""
        return [PyTreeDef(child) for child in self.spec.children()]

    def node_data(self) -> tuple[type, Any] | None:
        """Return (type, metadata) of the root, None for a leaf; a dict's metadata are its keys."""
        found = outline(self.spec)
        if found is LEAF:
            return None
        return found[0], _metadata(found)

    def compose(self, inner: PyTreeDef) -> PyTreeDef:
        """Return this structure with `inner` at the place of every leaf.

        >>> from primal.base.pytree import tree_structure
        >>> tree_structure([1, 2]).compose(tree_structure((1,)))
        PyTreeDef([(*,), (*,)])
        """
        return PyTreeDef(self.spec.compose(inner.spec))

    def walk(
        self,
        f_node: Callable[[Any, Any], Any],
        f_leaf: Callable[[Any], Any] | None,
        leaves: Iterable[Any],
    ) -> Any:
        """Fold the tree: `f_node(tuple of results of the children, metadata)`, `f_leaf(leaf)`."""
        take = iter(leaves).__next__

        def fold(node: Outline) -> Any:
            if node is LEAF:
                return take() if f_leaf is None else f_leaf(take())
            children = tuple([fold(child) for child in node[2:]])
            return f_node(children, _metadata(node))

        return fold(outline(self.spec))

    def from_iterable_tree(self, tree: Any) -> Any:
        """Return the tree of this structure, given its children as nested iterables."""

        def build(node: Outline, given: Any) -> Any:
            if node is LEAF:
                return given
            pairs = zip(node[2:], given, strict=True)
            return put_together(node[0], node[1], [build(child, x) for child, x in pairs])

        return build(outline(self.spec), tree)

    @staticmethod
    def from_node_data_and_children(
        registry: Any, node_data: tuple[type, Any] | None, children: Iterable[PyTreeDef]
    ) -> PyTreeDef:
        """Return the structure with this root: the inverse of `node_data()` and `children()`."""
        if node_data is None:
            return PyTreeDef(engine().treespec_leaf())
        if not is_node_type(node_data[0]):
            raise ValueError(f"[pytree] expected a registered node type, got {node_data[0]!r}.")
        inside = [child.unflatten([0] * child.num_leaves) for child in children]
        return PyTreeDef(flatten(put_together(*node_data, inside))[1])


def _unpickled(spec: bytes) -> PyTreeDef:
    engine()  # has our node types
    return PyTreeDef(pickle.loads(spec))


def as_treedef(value: Any, where: str) -> PyTreeDef:
    """Return the value if it is a PyTreeDef, else raise a TypeError that names the function."""
    if isinstance(value, PyTreeDef):
        return value
    raise TypeError(
        f"[{where}] expected a PyTreeDef, got {value!r} of type {type(value).__name__}.\n"
        "tree_structure(tree) makes one."
    )


def specs_of(treedefs: Iterable[PyTreeDef], where: str) -> Sequence[Spec]:
    """Return the specs of several structures."""
    return [as_treedef(treedef, where).spec for treedef in treedefs]

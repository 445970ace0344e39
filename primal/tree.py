"""Functions over trees, under short names: `tree.map` is `tree_util.tree_map`."""

from primal.base.pytree import static
from primal.base.pytree import tree_all as all
from primal.base.pytree import tree_broadcast as broadcast
from primal.base.pytree import tree_flatten as flatten
from primal.base.pytree import tree_flatten_with_path as flatten_with_path
from primal.base.pytree import tree_leaves as leaves
from primal.base.pytree import tree_leaves_with_path as leaves_with_path
from primal.base.pytree import tree_map as map
from primal.base.pytree import tree_map_with_path as map_with_path
from primal.base.pytree import tree_reduce as reduce
from primal.base.pytree import tree_reduce_associative as reduce_associative
from primal.base.pytree import tree_structure as structure
from primal.base.pytree import tree_transpose as transpose
from primal.base.pytree import tree_unflatten as unflatten

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]

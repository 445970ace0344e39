"""Functions of trees as functions of their leaves, for libraries that are written with JAX's."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from primal.api.operands import abstract
from primal.api.wrapped import WrappedFun, transformation2, transformation_with_aux2
from primal.ir.avals import Aval
from primal.tree_util import tree_flatten, tree_unflatten

__all__ = [
    "DebugInfo", "argnums_partial", "debug_info", "flatten_fun", "flatten_fun_nokwargs",
    "safe_map", "shaped_abstractify",
]  # fmt: skip


def shaped_abstractify(x: Any) -> Aval:
    """The shape, dtype and weak type of a value, a tracer or a ShapeDtypeStruct.

    TypeError for what cannot be an array.

    >>> primal.api_util.shaped_abstractify(jnp.ones(2))
    ShapedArray(float32[2])
    """
    return abstract(x)


def safe_map(f: Callable[..., Any], *args: Any) -> list[Any]:
    """The list of `f` of each item of sequences of one length; ValueError for several lengths.

    >>> primal.api_util.safe_map(lambda x, y: x + y, [1, 2], [3, 4])
    [4, 6]
    """
    return [f(*items) for items in zip(*args, strict=True)]


@transformation_with_aux2
def flatten_fun(f: Callable[..., Any], store: Any, in_tree: Any, *leaves: Any) -> list[Any]:
    """A WrappedFun of the leaves of (args, kwargs), and what gives its results' tree afterwards.

    >>> from primal.extend import linear_util as lu
    >>> leaves, tree = primal.tree.flatten(((1, 2), {"c": 3}))
    >>> fun = lu.wrap_init(lambda a, b, c: {"s": a + b + c})
    >>> flat, out_tree = primal.api_util.flatten_fun(fun, tree)
    >>> flat.call_wrapped(*leaves), out_tree()
    ([6], PyTreeDef({'s': *}))
    """
    args, kwargs = tree_unflatten(in_tree, leaves)
    found, tree = tree_flatten(f(*args, **kwargs))
    store.store(tree)
    return found


@transformation_with_aux2
def flatten_fun_nokwargs(
    f: Callable[..., Any], store: Any, in_tree: Any, *leaves: Any
) -> list[Any]:
    """A WrappedFun of the leaves of its positional arguments, as `flatten_fun` otherwise.

    >>> from primal.extend import linear_util as lu
    >>> leaves, tree = primal.tree.flatten(((1, 2), 3))
    >>> fun = lu.wrap_init(lambda a, b: a[0] + a[1] + b)
    >>> flat, out_tree = primal.api_util.flatten_fun_nokwargs(fun, tree)
    >>> flat.call_wrapped(*leaves), out_tree()
    ([6], PyTreeDef(*))
    """
    found, tree = tree_flatten(f(*tree_unflatten(in_tree, leaves)))
    store.store(tree)
    return found


class _Fixed(NamedTuple):
    """An argument that stays, compared by its value."""

    val: Any


@transformation2
def _with_fixed(
    f: Callable[..., Any], numbers: tuple[int, ...], fixed: tuple[_Fixed, ...], *args: Any,
    **kwargs: Any,
) -> Any:  # fmt: skip
    moving, staying = iter(args), iter(fixed)
    count = len(args) + len(fixed)
    full = [next(moving) if i in numbers else next(staying).val for i in range(count)]
    return f(*full, **kwargs)


def argnums_partial(
    f: WrappedFun, dyn_argnums: int | Sequence[int], args: Sequence[Any],
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple[Any, ...]]:  # fmt: skip
    """A WrappedFun of the arguments at `dyn_argnums` with the others as in `args`, and those.

    Numbers below 0 count from the end. ValueError for others that are not hashable, unless
    `require_static_args_hashable` is False, and for a number beyond the arguments.

    >>> from primal.extend import linear_util as lu
    >>> f, moving = primal.api_util.argnums_partial(lu.wrap_init(lambda x, y: x - y), 1, (5, 3))
    >>> f.call_wrapped(1), moving
    (4, (3,))
    """
    given = (dyn_argnums,) if isinstance(dyn_argnums, int) else tuple(dyn_argnums)
    if any(not -len(args) <= i < len(args) for i in given):
        raise ValueError(
            f"[argnums_partial] expected dyn_argnums of {len(args)} arguments, got {given}."
        )
    numbers = tuple(sorted({i % len(args) for i in given}))
    fixed = tuple([_Fixed(a) for i, a in enumerate(args) if i not in numbers])
    if require_static_args_hashable:
        for a in fixed:
            if not isinstance(a.val, Hashable):
                raise ValueError(
                    "[argnums_partial] expected hashable static arguments, got one of type "
                    f"{type(a.val).__name__}."
                )
    return _with_fixed(f, numbers, fixed), tuple([args[i] for i in numbers])


class DebugInfo(NamedTuple):
    """What a function is traced for, where it stands, and its arguments' names."""

    traced_for: str
    func_src_info: str
    arg_names: tuple[str, ...] | None
    result_paths: Any = None


def debug_info(
    traced_for: str, fun: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any],
    **options: Any,
) -> DebugInfo:  # fmt: skip
    """The words on a function that `wrap_init` keeps beside it.

    `options` are JAX's: `result_paths_thunk` and `sourceinfo` take the place of what is found,
    static arguments are not told from others. `arg_names` is None for a function whose signature
    does not take the arguments, or has none.

    >>> primal.api_util.debug_info("jit", lambda x, y: x, (1, 2), {}).arg_names
    ('x', 'y')
    """
    where = options.get("sourceinfo")
    if where is None:
        code = getattr(inspect.unwrap(fun), "__code__", None)
        name = getattr(fun, "__name__", type(fun).__name__)
        where = f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name
    try:
        bound = inspect.signature(fun).bind(*args, **kwargs)
    except (TypeError, ValueError):
        bound = None
    names = None if bound is None else tuple(bound.arguments)
    return DebugInfo(traced_for, where, names, options.get("result_paths_thunk"))

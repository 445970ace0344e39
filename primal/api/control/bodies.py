"""Tracing the functions that control flow is given, and the errors where their types disagree."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from primal.api.operands import check_operands, check_outputs, name_of
from primal.base import caches
from primal.base.config import settings
from primal.base.lasting import lasts
from primal.base.promotion import promote_pair
from primal.base.pytree import (
    PyTreeDef,
    flatten,
    flatten_with_path,
    keystr,
    unflatten,
)
from primal.base.structures import structure
from primal.control.programs import same_type
from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr, hoist_consts
from primal.ir.state import state
from primal.ir.trace import PYTHON_SCALARS, Tracer
from primal.ops.choose import convert_element_type
from primal.runtime.program_refs import tracing_refs
from primal.runtime.refs import Ref
from primal.transforms.stage import StageTrace, stage


@structure
class Body:
    """A traced function: its program takes (consts, flat arguments, references).

    `refs`: the mutable references from outside that it touches, and whether it writes them; it
    returns (flat results, last values of references among its arguments, last values of those
    written).
    """

    program: ClosedJaxpr
    consts: list[Any]
    spec: Any
    refs: tuple[tuple[Ref, bool], ...] = ()

    @property
    def out_avals(self) -> tuple[Aval, ...]:
        """The types of the flat results."""
        return tuple(self.program.out_avals[: self.spec.num_leaves])


class Names(Sequence[str]):
    """Names of flat arguments for error messages, made only if one asks."""

    def __init__(self, names: Sequence[str], trees: Sequence[Any]) -> None:
        self._names = names
        self._trees = trees

    def _all(self) -> list[str]:
        return [
            name + keystr(path)
            for name, tree in zip(self._names, self._trees, strict=True)
            for path, _ in flatten_with_path(tree)[0]
        ]

    def __getitem__(self, i: Any) -> Any:
        return self._all()[i]

    def __len__(self) -> int:
        return len(self._all())


# Programs of functions, for as long as the functions live: a loop called again with the same
# functions and types is not traced again, as jit does not.
_bodies: weakref.WeakKeyDictionary[Any, dict[Any, Body]] = weakref.WeakKeyDictionary()
caches.register(_bodies.clear)
# A custom derivative that replaces another: programs traced before hold that one.
forget_bodies = _bodies.clear


def trace_body(
    fun: Callable[..., Any],
    specs: Sequence[Any],
    avals: Sequence[Aval],
    names: Sequence[str] | None = None,
    origin: tuple[Any, ...] | None = None,
    ref_args: tuple[int, ...] = (),
) -> Body:
    """`fun`, of one tree per spec, as a program; what it closes over becomes operands.

    Remembered, unless it closes over traced values. `origin`, where `fun` is made anew for every
    call, is the function it is made of and whatever else tells it apart. Arguments at the flat
    positions `ref_args` arrive as mutable references.
    """
    owner, *rest = origin or (fun,)
    if not lasts(owner):
        return _trace_body(fun, specs, avals, names, ref_args)
    known = _bodies.get(owner)
    if known is None:
        known = _bodies[owner] = {}
    key = (*specs, *avals, *rest, ref_args, settings().trace_key, state.axes)
    found = known.get(key)
    if found is None:
        found = _trace_body(fun, specs, avals, names, ref_args)
        if not found.refs and not any(isinstance(c, Tracer) for c in found.consts):
            known[key] = found
    return found


def _trace_body(
    fun: Callable[..., Any],
    specs: Sequence[Any],
    avals: Sequence[Aval],
    names: Sequence[str] | None,
    ref_args: tuple[int, ...],
) -> Body:
    sizes = [PyTreeDef(s).num_leaves for s in specs]
    found: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        args = []
        at = 0
        for spec, n in zip(specs, sizes, strict=True):
            args.append(unflatten(spec, leaves[at : at + n]))
            at += n
        result = fun(*args)
        outs, spec = flatten(result)
        check_outputs(name_of(fun), result, outs)
        found.append(spec)
        return outs

    touched: list[tuple[Ref, bool]] = []
    closed = stage(tracing_refs(flat, touched, ref_args), avals, name_of(fun), names)
    return Body(ClosedJaxpr(hoist_consts(closed)), closed.consts, found[0], tuple(touched))


def check_leaves(name: str, tree: Any, leaves: Sequence[Any]) -> list[Aval]:
    """The avals of the leaves of an argument; a TypeError names the path of one that is none."""
    return check_operands(name, (tree,), leaves)


def check_callable(name: str, **functions: Any) -> None:
    """TypeError naming what is not callable."""
    for role, f in functions.items():
        if not callable(f):
            several = len(functions) > 1
            raise TypeError(
                f"[{name}] expected {role} to be callable, got {f!r} of {type(f)}: lax.{name}: "
                f"{' and '.join(functions)} {'arguments' if several else 'argument'} should be "
                f"{'callable' if several else 'a callable'}."
            )


def promoted(
    leaves: Sequence[Any], avals: Sequence[Aval], outs: Sequence[Aval]
) -> list[Any] | None:
    """The carry a loop starts from, after weak types gave way to what its body returns.

    Only weakly typed leaves change (`0` becomes a float where the body adds floats to it). None
    when nothing changes.
    """
    changed = False
    result = []
    for x, a, out in zip(leaves, avals, outs, strict=True):
        if a.weak_type and a.dtype != out.dtype and a.shape == out.shape:
            dtype, _ = promote_pair(a.dtype, True, out.dtype, out.weak_type)
            if dtype != a.dtype:
                changed = True
                if type(x) in PYTHON_SCALARS:
                    x = np.asarray(x).astype(dtype)[()]
                else:
                    x = convert_element_type(x, new_dtype=dtype, weak_type=False)
        result.append(x)
    return result if changed else None


def staged_in() -> bool:
    """Whether an enclosing trace records a program, so that nothing in it is concrete."""
    trace = state.trace
    while trace is not None:
        if isinstance(trace, StageTrace):
            return True
        trace = trace.parent
    return False


def concrete(x: Any) -> Any:
    """The concrete value behind x, through the values that transformations carry, or None."""
    while isinstance(x, Tracer):
        x = x.concrete()
    return x


# Messages about types that differ.

_ROWS = 40


def _rows(name: str, spec: Any, avals: Sequence[Aval]) -> dict[str, Aval]:
    paths, _ = flatten_with_path(unflatten(spec, list(avals)))
    return {name + keystr(path): a for path, a in paths}


def difference(
    name: str,
    left: tuple[str, Any, Sequence[Aval]],
    right: tuple[str, Any, Sequence[Aval]],
) -> tuple[str, str]:
    """What differs first, in words, and both trees side by side; each is (title, spec, avals)."""
    (l_title, l_spec, l_avals), (r_title, r_spec, r_avals) = left, right
    l_rows, r_rows = _rows(name, l_spec, l_avals), _rows(name, r_spec, r_avals)
    first = ""
    lines = []
    for key in dict.fromkeys([*l_rows, *r_rows]):
        a, b = l_rows.get(key), r_rows.get(key)
        l_type, r_type = [x.str_short() if x else "-" for x in (a, b)]
        if a is None or b is None:
            why = "missing"
            said = f"{key} is in the {l_title if b is None else r_title} only"
        elif not same_type(a, b):
            kind = "shapes" if a.shape != b.shape else "dtypes"
            why = f"{kind} differ"
            said = f"{key} is {l_type} in the {l_title} and {r_type} in the {r_title}"
        else:
            why = said = ""
        first = first or said
        lines.append((key, l_type, r_type, f"  <- {why}" if why else ""))
    if l_spec != r_spec:
        l_tree, r_tree = PyTreeDef(l_spec), PyTreeDef(r_spec)
        trees = f"the {l_title} has the tree {l_tree}, the {r_title} {r_tree}"
        first = f"{first}: {trees}" if first else trees
    hidden = len(lines) - _ROWS
    table = [("leaf", l_title, r_title, ""), *lines[:_ROWS]]
    widths = [max(len(row[i]) for row in table) for i in range(3)]
    text = [
        "    " + "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=False)) + row[3]
        for row in table
    ]
    if hidden > 0:
        text.append(f"    … and {hidden} more leaves")
    return first, "\n".join(line.rstrip() for line in text)


class Words(NamedTuple):
    """What messages say of a loop: its name, the user's function, and where the carry of a body
    made around that one holds what it takes and returns (None: that is all of it)."""

    name: str
    fun: Callable[..., Any]
    part: int | None = None

    def users(self, spec: Any, avals: Sequence[Aval]) -> tuple[Any, Sequence[Aval]]:
        """Structure and types of the user's part of a carry."""
        if self.part is None:
            return spec, avals
        leaves, own = flatten(unflatten(spec, list(avals))[self.part])
        return own, leaves


def check_carry(
    words: Words, spec: Any, avals: Sequence[Aval], out_spec: Any, outs: Sequence[Aval]
) -> None:
    """TypeError unless the body returns a carry of the structure and types that it takes."""
    if spec == out_spec and all(same_type(a, b) for a, b in zip(avals, outs, strict=True)):
        return
    (spec, avals), (out_spec, outs) = words.users(spec, avals), words.users(out_spec, outs)
    first, table = difference(
        "carry", ("carry input", spec, avals), ("carry output", out_spec, outs)
    )
    what = "pytree structure" if spec != out_spec else "types"
    raise TypeError(
        f"[{words.name}] expected a body whose carry input and carry output have the same {what}, "
        f"got others from {name_of(words.fun)}: {first}.\n{table}\nReturn the carry with the "
        "shapes and dtypes it came with (x.astype(dtype) converts), or start from an initial carry "
        "of the types that are returned."
    )


def described(fun: Callable[..., Any]) -> str:
    """The name of a function and the line where it is defined."""
    code = getattr(fun, "__code__", None)
    if code is None:
        return name_of(fun)
    return f"{name_of(fun)} at {os.path.basename(code.co_filename)}:{code.co_firstlineno}"

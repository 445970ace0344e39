"""Calls of jitted functions that were met before: signature, run, results.

`Dispatcher` is the base of `JitFunction`. The extension's matches the arguments' trees against what
it remembers and runs compiled programs on the memory of arrays without any Python; the one below
does as much as is fast in Python. Both hand what they have not met to `_call_slowly`, which lets
them remember it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.config import settings
from primal.base.errors import filter_traceback
from primal.base.native import extension
from primal.base.pytree import outline, unflatten
from primal.base.pytree.core import LEAF, build, has_own_rules, take_apart
from primal.ir.avals import Aval
from primal.ir.state import state
from primal.ir.trace import aval_of
from primal.runtime.array import ArrayImpl
from primal.runtime.eager import root
from primal.runtime.programs import Program

MOST = 64
"""Signatures that are found without looking further, as many as the extension has."""


class PythonDispatcher:
    """What the extension's Dispatcher does, for arrays as positional arguments."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = object.__new__(cls)
        made._entries = {}
        return made

    _entries: dict[Any, tuple[Program, Any]]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if not kwargs and state.trace is root and not state.axes:
                key: list[Any] = [settings().jit_key]
                for a in args:
                    if a.__class__ is not ArrayImpl or a.placement is not None:
                        break
                    key.append(a.aval)
                else:
                    found = self._entries.get(tuple(key))
                    if found is not None:
                        program, out_spec = found
                        results = program.run(args, None)
                        return unflatten(out_spec, results)
            return self._call_slowly(args, kwargs)
        except Exception as error:
            filter_traceback(error)
            raise

    def _call_slowly(self, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError("[jit] expected a class that defines `_call_slowly`.")

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else _method(self, instance)

    def _forget(self) -> None:
        self._entries.clear()


_method: Any = type(PythonDispatcher()._forget)
Dispatcher: Any = PythonDispatcher if extension is None else extension.Dispatcher


def remember(
    dispatcher: Any,
    args: tuple[Any, ...],
    spec: Any,
    leaves: list[Any],
    fixed: tuple[Any, ...] | None,
    program: Program,
    out_spec: Any,
) -> None:
    """Let the next call with this signature skip everything but the run.

    `spec` is that of (dynamic args, kwargs), `leaves` theirs; `fixed` has None or `(value,)` per
    positional argument where some are static. Only for calls whose results have no placement.
    """
    key = settings().jit_key
    if key is None:
        return
    for x in leaves:
        if type(x) is ArrayImpl and x.placement is not None:
            return
    if extension is None:
        if fixed is None and all(type(a) is ArrayImpl for a in args) and len(args) == len(leaves):
            entries = dispatcher._entries
            entries[(key, *[a.aval for a in args])] = (program, out_spec)
            for oldest in list(entries)[:-MOST]:
                entries.pop(oldest, None)
        return
    avals = tuple([aval_of(x) for x in leaves])
    trees = outline(spec)
    try:
        entry = extension.Entry(
            key=key,
            args=trees[2],
            kwargs=trees[3],
            out=outline(out_spec),
            avals=avals,
            scalars=_by_type(avals),
            fixed=fixed,
            run=program.run,
            native=native_of(program),
            out_avals=tuple(program.out_avals),
            donated=program.donated,
        )
    except ValueError:  # a tree deeper, or an array of more dimensions, than the extension takes
        return
    dispatcher._remember(entry)


_WIDE = {narrow: wide for wide, narrow in dtypes.NARROW.items()}


def _by_type(avals: tuple[Aval, ...]) -> dict[Any, Any]:
    """What Python scalars are under these settings, and which NumPy values have which aval."""
    found: dict[Any, Any] = {type(x): aval_of(x) for x in (True, 1, 1.0, 1j)}
    for aval in avals:
        dtype = aval.dtype
        if not isinstance(dtype, dtypes.KeyType) and dtype != dtypes.float0:
            same = Aval(aval.shape, dtypes.canonicalize_dtype(dtype)) is aval
            if same and dtypes.physical_dtype(dtype) == dtype:
                wide = None if settings().enable_x64 else _WIDE.get(dtype)
                found[aval] = (aval.shape, np.dtype(dtype), wide)
    return found


def native_of(program: Program) -> Any:
    """The extension's form of a program, or None where its executable has no native entry."""
    plain = program.host_buffers and not program.nothings
    entry = getattr(program.executable, "entry", None) if plain else None
    if entry is None:
        return None
    natives = program.executable.natives
    if program in natives:
        return natives[program]
    consts = [c.host for c in program.consts]
    if any(c is None or not c.flags.carray for c in consts):
        consts = [np.array(c.numpy(), order="C") for c in program.consts]
    ins = [("const", c) for c in consts] + [("in", i) for i in program.kept]
    outs = [
        (kind, n, aval.shape)
        for (kind, n), aval in zip(entry.outputs, program.out_avals, strict=True)
    ]
    native = extension.Native(
        run=entry.run,
        table=entry.table,
        words=entry.words,
        keep=entry.keep,
        slots=list(entry.slots),
        ins=ins,
        in_types=list(entry.inputs),
        news=list(entry.new),
        outs=outs,
        arena=entry.arena,
        context=bytes(entry.context),
        cancelled=entry.cancelled,
        lent=entry.take(),
    )
    natives[program] = native
    return native


if extension is not None:
    extension.install(
        leaf=LEAF,
        take_apart=take_apart,
        unflatten=lambda node, leaves: build(node, iter(leaves)),
        has_own_rules=has_own_rules,
        filter_error=filter_traceback,
    )

"""Eager execution: an op outside every transformation runs at once.

On the CPU it is a call of the op's `impl` on NumPy arrays: no program is built and nothing is
compiled. What was decided for the operand avals (checks, result aval) is remembered on the op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base import caches, dtypes
from primal.base.config import config, settings, settings_variable
from primal.base.dtype_table import NARROW
from primal.base.native import BFLOAT16, FLOAT16, IN_VECTORS, SAME_AS_WIDE, by_float32, extension
from primal.ir.avals import Aval
from primal.ir.evaluate import ERROR_STATE, QUIET, quietly
from primal.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, Var, subjaxprs
from primal.ir.op import FOREIGN, Op
from primal.ir.state import install_root
from primal.ir.trace import (
    PYTHON_SCALARS,
    Literal,
    Trace,
    Tracer,
    adopt_scalars,
    as_array_operand,
    aval_of,
    check_range,
    leak_error,
)
from primal.runtime import devices, guards, watch
from primal.runtime.array import ArrayImpl, Placement, from_literal, from_numpy


def _eager_key(values: dict[str, Any]) -> Any:
    """What a remembered operation depends on beside its operands: where arrays go.

    None where nothing is remembered, because results are looked at.
    """
    named = values["default_device"]
    return None if values["watches"] else "" if named is None else named


config.derive("eager_key", _eager_key)


WITHIN = "within"
"""Set while a function of the library runs that may get a program of what it calls: to a list of
what it met that would run otherwise without one."""


class EagerTrace(Trace):
    """The trace of a thread that runs no transformation."""

    __slots__ = ()

    def process(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        try:
            key = (*[a.aval for a in args], settings().eager_key)
            out_aval = op.eager.get((key, *params.items()) if params else key)
            vals = [a.host for a in args]
        except AttributeError:
            out_aval = None
        if out_aval is None:
            return self.process_new(op, args, params)
        for v in vals:
            if v is None:
                return run_placed(op, args, params, out_aval)
        out = quietly(op.impl, vals, params)
        if out_aval.__class__ is tuple:
            return [ArrayImpl(aval, np.asarray(o)) for o, aval in zip(out, out_aval, strict=True)]
        return ArrayImpl(out_aval, out if out.__class__ is np.ndarray else np.asarray(out))

    def process_new(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """The first call for these avals, and operands that are not arrays yet."""
        if op.kind is FOREIGN:
            return op.impl(*[from_literal(a) for a in args], **params)
        args = lift_operands(op, args)
        avals = tuple([a.aval for a in args])
        out_aval = op.infer(avals, params)
        if op.kind.call:
            return _run_call(op, args, params)
        where = settings().eager_key
        # Programs among the parameters are not remembered, as `Op.infer` does not: they would be
        # kept for ever.
        plain = op.higher is None and not op.kind.host
        if plain and where is not None and devices.default_is_host():
            key = (*avals, where)
            op.eager[(key, *params.items()) if params else key] = out_aval
        return run_placed(op, args, params, out_aval)


def lift_operands(op: Op, args: Sequence[Any]) -> list[Any]:
    """Operands as arrays and literals; NumPy values are copied, tracers are errors."""
    out: list[Any] = []
    if guards.ever:
        for a in args:
            guards.incoming(a)
    if any(type(a) in PYTHON_SCALARS for a in args):
        args = adopt_scalars(op, tuple(args))
    for a in args:
        if isinstance(a, ArrayImpl | Literal):
            out.append(a)
        elif isinstance(a, Tracer):
            raise leak_error(a)
        else:
            out.append(as_array(a))
    return out


# Dtypes of NumPy that arrays have whatever the settings say.
_CANONICAL = frozenset({
    BFLOAT16, *map(np.dtype, ("?", "i1", "i2", "i4", "u1", "u2", "u4", "f2", "f4", "c8")),
})  # fmt: skip


def as_array(x: Any) -> ArrayImpl:
    """A NumPy value or Python scalar as an array of its canonical dtype, copied."""
    if x.__class__ is np.ndarray:
        dtype = x.dtype
        if dtype in _CANONICAL:
            return from_numpy(x.copy(), Aval(x.shape, dtype))
        if dtype in NARROW:
            dtype = dtypes.canonicalize_dtype(dtype)
            return from_numpy(x.astype(dtype, order="C"), Aval(x.shape, dtype))
    if isinstance(x, ArrayImpl):
        return x
    if not isinstance(x, np.ndarray | np.generic | bool | int | float | complex):
        x = as_array_operand(x)
        if isinstance(x, ArrayImpl):
            return x
    aval = aval_of(x)
    check_range(x, aval.dtype)
    return from_numpy(np.array(x, dtype=dtypes.physical_dtype(aval.dtype), order="C"), aval)


def run_placed(op: Op, args: Sequence[Any], params: dict[str, Any], out_aval: Any) -> Any:
    """Run where operands are on other devices than plain host memory, or not fetched yet."""
    place = placement_of(op.name, args)
    device = devices.default() if place is None else place.device
    if device.platform != "cpu" and not op.kind.host:
        return _run_call_of_one(op, args, params, out_aval)
    vals = [a.host if type(a) is Literal else a.numpy() for a in args]
    if not settings().watches:
        if op.higher is not None and op.higher.hoist is not None:
            return _run_loop(op, args, vals, params, out_aval)
        out = quietly(op.impl, vals, params)
    elif op.higher is not None:
        out = watch.check_loop(op, args, vals, params, out_aval)
    else:
        out = quietly(op.impl, vals, params)
        watch.check_eager(op, params, args, vals, out)
    if op.multiple:
        return [
            from_numpy(np.asarray(o), aval, place) for o, aval in zip(out, out_aval, strict=True)
        ]
    return from_numpy(np.asarray(out), out_aval, place)


def _run_loop(
    op: Op, args: Sequence[Any], vals: Sequence[Any], params: dict[str, Any], out_aval: Any
) -> Any:
    """A loop outside every transformation: compiled, as each turn op by op would cost 2 µs per
    operation, and from its first call on, as the next one has to give the same numbers.

    With effects it runs op by op. So does a loop of the library whose caller's program will.
    """
    assert op.higher is not None
    library = settings().__dict__.get(WITHIN) if op.higher.in_place else None
    if library is None and not any(p.effects for p in subjaxprs(params)):
        return _run_call_of_one(op, args, params, out_aval)
    if library is not None:
        library.append(op)
    out = quietly(op.impl, vals, params)
    place = placement_of(op.name, args)
    return [from_numpy(np.asarray(o), a, place) for o, a in zip(out, out_aval, strict=True)]


def placement_of(name: str, args: Sequence[Any]) -> Placement | None:
    """Where a computation of these operands runs; ValueError when committed ones disagree."""
    chosen: Placement | None = None
    for a in args:
        place = getattr(a, "placement", None)
        if place is None or place is chosen:
            continue
        if chosen is None or (place.committed and not chosen.committed):
            chosen = place
        elif place.committed and chosen.committed and place.device is not chosen.device:
            raise ValueError(
                f"[{name}] expected operands on one device, got some committed to "
                f"{chosen.device!r} and some to {place.device!r}: Received incompatible devices "
                "for jitted computation. Move them with primal.device_put first."
            )
    return chosen


_run_program: Callable[..., list[Any]] | None = None


def install_program_runner(run: Callable[..., list[Any]]) -> None:
    """Set what runs whole programs; `runtime.programs` does, which is built on this module."""
    global _run_program
    _run_program = run


def _run_call(op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
    assert _run_program is not None
    return _run_program(params["jaxpr"], args, params.get("name", op.name))


_single: dict[Any, ClosedJaxpr] = {}
_loops: dict[Any, ClosedJaxpr] = {}
caches.register(_loops.clear)


def _run_call_of_one(op: Op, args: Sequence[Any], params: dict[str, Any], out_aval: Any) -> Any:
    """An op on an accelerator: a program of one equation, compiled once per avals."""
    assert _run_program is not None
    key = (op, tuple([a.aval for a in args]), *params.items())
    closed = _single.get(key) or _loops.get(key)
    if closed is None:
        invars = [Var(a.aval) for a in args]
        outvars = [Var(a) for a in (out_aval if op.multiple else (out_aval,))]
        jaxpr = Jaxpr([], invars, outvars, [Eqn(op, invars, outvars, params)])
        closed = ClosedJaxpr(jaxpr)
        if op.higher is not None and len(_loops) >= 256:
            _loops.clear()
        # Parameters with programs would be kept for ever.
        (_single if op.higher is None else _loops)[key] = closed
    outs = _run_program(closed, args, op.name)
    return outs if op.multiple else outs[0]


root = EagerTrace(None, "eager")
install_root(root)
if extension is not None and ERROR_STATE is not None:
    extension.install(
        array=ArrayImpl,
        literal=Literal,
        settings_var=settings_variable,
        error_state=ERROR_STATE,
        quiet=QUIET,
        eager_slow=root.process,
        by_float32=by_float32,
        same_as_wide=SAME_AS_WIDE if FLOAT16 in IN_VECTORS else frozenset(),
    )
    # The same for operands that were met before, without Python.
    EagerTrace.process = extension.process  # type: ignore[method-assign]

"""Values that outlive the transformation that made them, looked for under `checking_leaks`."""

from __future__ import annotations

import gc
import types
from typing import Any

from primal.base import errors, forks
from primal.ir.trace import Trace, Tracer, shown


def _in_words(owner: Any) -> str:
    if isinstance(owner, types.CellType):
        return "a variable that a function closes over"
    if isinstance(owner, dict) and isinstance(owner.get("__name__"), str):
        return f"a global of {owner['__name__']}"
    size = f" of {len(owner)}" if isinstance(owner, dict | list | tuple | set) else ""
    return f"a {type(owner).__name__}{size}"


_looking = forks.lock()


def _values_of(trace: Trace) -> list[Tracer]:
    with _looking:  # the list of all objects would keep another thread's values alive
        return [x for x in gc.get_objects() if issubclass(type(x), Tracer) and x._trace is trace]


def check_leaks(trace: Trace) -> None:
    """Raise UnexpectedTracerError when a value of an ended trace still exists.

    Called under `checking_leaks`, by a transformation that has let go of its own references.
    """
    kept = _values_of(trace)
    if kept:
        del kept
        gc.collect()  # a cycle is no leak; collecting is slow, so it comes second
        kept = _values_of(trace)
    if not kept:
        return
    tracer = kept[0]
    owners = [
        r for r in gc.get_referrers(tracer) if r is not kept and not isinstance(r, types.FrameType)
    ]
    raise errors.UnexpectedTracerError(
        errors.explain(
            errors.MSG_LEAKED,
            shown(tracer.aval),
            where=", ".join([f"kept by {_in_words(r)}" for r in owners[:3]]),
            origin=tracer.origin(),
            function=trace.name,
        )
    )

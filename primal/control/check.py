"""check: a value that must hold, else the program is wrong; functionalised by checkify.

Operands: a code, negative while all is well, and what the message is to show. Codes number *sites*,
places in programs with their texts, in a table of the process: an error found by a compiled program
is a number, its text is looked up afterwards. The same place traced again has the same number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from primal.base.pytree import unflatten
from primal.ir.avals import Aval
from primal.ir.effects import DebugEffect
from primal.ir.op import HOST, Op, by_kind
from primal.ir.trace import aval_of
from primal.ops.elementwise import ge, select_n
from primal.ops.index.dynamic import dynamic_slice
from primal.ops.reduce import reduce_max
from primal.ops.shape import iota, moveaxis, reshape
from primal.ops.types import NOT_LINEAR

INT32 = np.dtype(np.int32)
FINE = -1
# The category of an error is in the low bits of its code, so that programs can ask for it.
CATEGORIES = ("nan", "index", "div", "user")
BITS = 3

Signature = tuple[Aval, ...]


class JaxRuntimeError(ValueError):
    """An error that `checkify` found."""


class CheckEffect(DebugEffect):
    """The program asks for a check that nothing reads."""

    __slots__ = ()

    def __init__(self, name: Any = "check") -> None:
        super().__init__(name)


class Site:
    """A place of a program where something may be wrong, and how to say so."""

    __slots__ = ("category", "text", "signature", "shape", "spec")

    def __init__(
        self,
        category: str,
        text: str,
        signature: Signature = (),
        shape: tuple[int, ...] = (),
        spec: Any = None,
    ) -> None:
        self.category = category
        self.text = text
        self.signature = signature
        self.shape = shape
        self.spec = spec

    def key(self) -> tuple[Any, ...]:
        """Sites with equal keys are one."""
        return self.category, self.text, self.signature, self.shape, self.spec

    def message(self, payload: Sequence[Any]) -> str:
        """The text of an error with these values."""
        if self.category == "index":
            index, axis = (int(v) for v in np.asarray(payload[0]))
            return self.text.format(
                shape=self.shape, index=index, axis=axis, size=self.shape[axis]
            )
        if self.category == "user":
            args, kwargs = unflatten(self.spec, payload) if self.spec is not None else ((), {})
            return self.text.format(*args, **kwargs) + " (`check` failed)"
        return self.text


_sites: list[Site] = []
_codes: dict[Any, int] = {}


def code_of(site: Site) -> int:
    """The number of a site."""
    found = _codes.get(site.key())
    if found is None:
        found = _codes[site.key()] = len(_sites) << BITS | CATEGORIES.index(site.category)
        _sites.append(site)
    return found


def site_of(code: int) -> Site:
    """The site of a number."""
    return _sites[code >> BITS]


def payload_of(
    signatures: Sequence[Signature], values: Sequence[Any], own: Signature
) -> Sequence[Any]:
    """The part of the values that belongs to errors with that signature."""
    at = 0
    for s in signatures:
        if s == own:
            return values[at : at + len(s)]
        at += len(s)
    return ()


def message(code: int, signatures: Sequence[Signature], values: Sequence[Any]) -> str:
    """The text of an error from its code and the payloads of all signatures."""
    site = site_of(code)
    return site.message(payload_of(signatures, values, site.signature))


UNSTAGED = (
    "[check] expected a check that was functionalised, got one that is being compiled: Cannot "
    "abstractly evaluate a checkify.check which was not functionalized. Wrap the function that "
    "contains it, checkify.checkify(f), and compile that: err, out = jit(checkify(f))(x); "
    "err.throw(). Or use debug_check, which is left out of programs that are not functionalised."
)


def _check_type(code: Aval, *avals: Aval, signatures: Any, debug: bool) -> tuple[Aval, ...]:
    if code.shape or code.dtype != INT32:
        raise TypeError(f"[check] expected an int32 scalar as code, got {code.short()}.")
    return ()


def _check_impl(code: Any, *values: Any, signatures: Any, debug: bool) -> tuple[Any, ...]:
    if not debug and int(code) >= 0:
        raise JaxRuntimeError(message(int(code), signatures, values))
    return ()


def _check_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    return check(*primals, **params), []


def _check_batch(axis: Any, args: Any, dims: Any, **params: Any) -> Any:
    if not axis.size:
        return [], []
    moved = [a if d is None else moveaxis(a, d, 0) for a, d in zip(args, dims, strict=True)]
    return check(*worst(moved, [d is not None for d in dims]), **params), []


def worst(args: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Code and values of the last example that failed, where some differ between examples."""
    if not batched[0]:
        at: Any = np.int32(0)
    else:
        codes = args[0]
        n = aval_of(codes).shape[0]
        places = iota(dtype=INT32, shape=(n,), dimension=0)
        failed = select_n(ge(codes, np.int32(0)), np.zeros((n,), INT32), places)
        at = reduce_max(failed, axes=(0,))
    return [at_index(a, at) if b else a for a, b in zip(args, batched, strict=True)]


def at_index(x: Any, at: Any) -> Any:
    """x[at]."""
    shape = aval_of(x).shape
    zeros = [np.int32(0)] * (len(shape) - 1)
    return reshape(dynamic_slice(x, at, *zeros, slice_sizes=(1, *shape[1:])), shape=shape[1:])


def _check_engine(b: Any, *operands: Any, signatures: Any, debug: bool) -> list[Any]:
    if debug:
        return []
    raise ValueError(UNSTAGED)


check = Op(
    name="check",
    kind=HOST,
    type=_check_type,
    impl=_check_impl,
    jvp=_check_jvp,
    transpose=NOT_LINEAR,
    batch=_check_batch,
    shard=by_kind,
    hlo=_check_engine,
    kernel=_check_engine,
    multiple=True,
    effects=lambda params: frozenset((CheckEffect("debug_check" if params["debug"] else "check"),)),
    show=lambda params: {"debug": params["debug"]},
)

"""A row of the table that drives every law: one op, one way of calling it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from primal.base import dtypes
from primal.base.limits import iinfo
from primal.ir.op import Op, registry

Array = Any
Flat = Callable[..., Any]

F32, F64, F16 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16)
BF16, F8 = np.dtype(ml_dtypes.bfloat16), np.dtype(ml_dtypes.float8_e4m3fn)
C64, C128 = np.dtype(np.complex64), np.dtype(np.complex128)
I8, I16, I32, I64 = [np.dtype(f"i{n}") for n in (1, 2, 4, 8)]
U8, U16, U32, U64 = [np.dtype(f"u{n}") for n in (1, 2, 4, 8)]
I4, U4 = np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)
BOOL = np.dtype(np.bool_)

FLOATS = (F32, F64, F16, BF16)
COMPLEX = (C64, C128)
INEXACT = (*FLOATS, *COMPLEX)
SIGNED = (I32, I8, I16, I64)
UNSIGNED = (U8, U16, U32, U64)
INTEGERS = (*SIGNED, *UNSIGNED)
NUMBERS = (*INEXACT, *INTEGERS)
REAL = (*FLOATS, *INTEGERS, BOOL)
ALL = (*NUMBERS, BOOL)


@dataclasses.dataclass(frozen=True)
class X:
    """An operand: its shape, the interval its elements are drawn from, its dtype if fixed.

    `values` names the elements themselves; `distinct` draws without ties.
    """

    shape: tuple[int, ...] = (2, 3)
    low: float = -2.0
    high: float = 2.0
    dtype: Any = None
    values: Any = None
    distinct: bool = False

    def draw(self, rng: np.random.Generator, dtype: Any) -> Array:
        dtype = np.dtype(self.dtype) if self.dtype is not None else dtype
        if self.values is not None:
            return np.asarray(self.values).astype(dtype).reshape(self.shape)
        size = int(np.prod(self.shape))
        if dtype == BOOL:
            return rng.integers(0, 2, self.shape).astype(bool)
        if dtypes.issubdtype(dtype, np.integer):
            info = iinfo(dtype)
            low = max(int(np.ceil(self.low)), int(info.min))
            high = max(low, min(int(np.floor(self.high)), int(info.max)))
            return rng.integers(low, high + 1, self.shape).astype(np.int64).astype(dtype)
        if self.distinct:
            grid = np.linspace(self.low, self.high, size + 2)[1:-1]
            return rng.permutation(grid).reshape(self.shape).astype(dtype)
        drawn = rng.uniform(self.low, self.high, self.shape)
        if dtype.kind == "c":
            drawn = drawn + 1j * rng.uniform(self.low, self.high, self.shape)
        with np.errstate(over="ignore"):  # the narrowest floats hold no large numbers
            return np.asarray(drawn).astype(dtype)


@dataclasses.dataclass(frozen=True)
class Wrong:
    """Operands that an op refuses: the class of the error and a part of its text."""

    operands: tuple[X, ...]
    error: type[Exception] | tuple[type[Exception], ...]
    match: str
    params: Mapping[str, Any] | None = None
    dtype: Any = F32


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """What the laws need to know of one op called in one way.

    * `operands` are drawn per dtype in `dtypes`; `also` are other shapes for the same call.
    * `params`: a dict, or a function of the dtype.
    * A result may be off by `ulps` of its dtype, relative to its size or `near` if that is more;
      `cause` says why it is off at all. Integers are exact.
    * `order`: how often it can be differentiated; 0 where its jvp is `Never`.
    * `wide`: the operands that derivatives are taken of (None: every inexact one).
    * `special`: compare engines on nan, ±inf, ±0 too.
    * `exact`: how far transposes and engines may be apart in float64, for ops that round inside.
    * `costly`: compiling takes seconds, so batching and derivatives are run op by op alone.
    * `around` puts the call in a surrounding function, as collectives and keys need.
    """

    op: str
    name: str = ""
    operands: tuple[X, ...] = (X(),)
    also: tuple[tuple[X, ...], ...] = ()
    params: Mapping[str, Any] | Callable[[Any], Mapping[str, Any]] = dataclasses.field(
        default_factory=dict
    )
    dtypes: tuple[Any, ...] = FLOATS
    ulps: float = 0.0
    near: float = 0.0
    cause: str = ""
    order: int = 2
    reverse: bool = True
    wide: tuple[int, ...] | None = None
    vmap: bool = True
    special: bool = False
    errors: tuple[Wrong, ...] = ()
    says: str = ""
    around: Callable[[Flat], Flat] | None = None
    costly: bool = False
    step: float = 1e-4
    tol: float = 1e-6
    exact: float = 1e-9

    @property
    def id(self) -> str:
        return f"{self.op}-{self.name}" if self.name else self.op

    @property
    def record(self) -> Op:
        return registry[self.op]

    @property
    def twice(self) -> bool:
        """Whether it has second derivatives, in each order of the two modes."""
        return self.order > 1 and self.reverse

    def parameters(self, dtype: Any) -> dict[str, Any]:
        return dict(self.params(dtype) if callable(self.params) else self.params)

    def function(self, dtype: Any) -> Flat:
        """The call as a function of its operands that returns a list."""
        params = self.parameters(dtype)
        op = self.record

        def call(*xs: Any) -> Any:
            out = op(*xs, **params)
            return list(out) if op.multiple else [out]

        call.__name__ = self.id
        return self.around(call) if self.around is not None else call

    def draws(self, dtype: Any, also: bool = True) -> list[list[Array]]:
        """Operands for each shape of the row."""
        rng = np.random.default_rng(7)
        rows = (self.operands, *self.also) if also else (self.operands,)
        return [[x.draw(rng, dtype) for x in row] for row in rows]

    def active(self, xs: Sequence[Array]) -> list[bool]:
        """Which operands derivatives are taken of."""
        if self.wide is not None:
            return [i in self.wide for i in range(len(xs))]
        return [dtypes.issubdtype(np.asarray(x).dtype, np.inexact) for x in xs]


def shaped(*shapes: tuple[int, ...], **options: Any) -> tuple[X, ...]:
    """Operands of those shapes, drawn alike."""
    return tuple([X(s, **options) for s in shapes])

"""Formulas written once, for NumPy arrays and for values of a StableHLO program.

A formula takes `xp`, which offers `where exp log log1p sqrt abs isnan lgamma polygamma moves
loop` and the machine precision `eps`, and operands with Python's operators: NumPy arrays have them,
`Term` gives them to the builder's values.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.base.dtypes import is_narrow_float, itemsize_bits
from primal.base.extensions import extension_of_scipy
from primal.base.native import extension
from primal.base.patience import unbroken

Formula = Callable[..., Any]
Step = Callable[..., tuple[Any, Sequence[Any]]]


@functools.cache
def scipys(name: str) -> Any:
    """SciPy's special function of that name.

    Most lie in an extension module that loads in 2 ms, the others in a package that takes 0.2 s.
    """
    with contextlib.suppress(ImportError, AttributeError):
        return getattr(extension_of_scipy("special._special_ufuncs"), name)
    return getattr(unbroken(lambda: importlib.import_module("scipy.special")), name)


def hlo_without_octets(name: str) -> Formula:
    """The builder's operation of that name; XLA expands it for no float of 8 bits or less."""

    def hlo(b: Any, x: Any) -> Any:
        if itemsize_bits(x.dtype) > 8:
            return b.unary(name, x)
        return b.convert(b.unary(name, b.convert(x, np.dtype(np.float32))), x.dtype)

    return hlo


def by_scipy(name: str, signed: bool = False) -> Formula:
    """An `impl` that is SciPy's function of that name, 16-bit floats computed in float32.

    The sign of the results of a `signed` one is its operand's: SciPy loses that of -0.
    """

    def impl(*xs: Any) -> Any:
        dtype = xs[0].dtype
        fun = scipys(name)
        if is_narrow_float(dtype):
            xs = tuple([x.astype(np.float32) for x in xs])
        out = fun(*xs)
        if signed:
            out = np.copysign(out, xs[0])
        return out if out.dtype is dtype else out.astype(dtype)

    return impl


def in_c(name: str, of_any: Formula, *rows: Sequence[float]) -> Formula:
    """An `impl` of one operand that is the extension's function: the formula of kernels, in
    float64. Without the extension, `of_any`."""
    if extension is None:
        return of_any
    of_floats, tables = getattr(extension, name), [np.array(row) for row in rows]

    def impl(x: Any) -> Any:
        wide = np.asarray(x, np.float32 if is_narrow_float(x.dtype) else x.dtype)
        return of_floats(wide, *tables).astype(x.dtype, copy=False)

    return impl


def by_formula(formula: Formula) -> Formula:
    """An `impl` that is a formula on NumPy arrays, computed in float64."""

    def impl(*xs: Any, **params: Any) -> Any:
        dtype = xs[0].dtype
        wide = np.broadcast_arrays(*[np.asarray(x, np.float64) for x in xs])
        return formula(NumpyTerms, *wide, **params).astype(dtype)

    return impl


def hlo_formula(formula: Formula) -> Formula:
    """An `hlo` rule that is a formula, 16-bit floats computed in float32."""

    def hlo(b: Any, *xs: Any, **params: Any) -> Any:
        aval = b.outs[0]
        dtype = np.dtype(np.float32) if is_narrow_float(aval.dtype) else aval.dtype
        terms = [Term(b, b.convert(b.broadcast_to(x, aval.shape), dtype)) for x in xs]
        out = formula(HloTerms(b, dtype, aval.shape), *terms, **params)
        return b.convert(out.value, aval.dtype)

    return hlo


class NumpyTerms:
    """The vocabulary of formulas on NumPy arrays of float64."""

    eps = float(np.finfo(np.float64).eps)
    where: Callable[..., Any] = staticmethod(np.where)
    exp = staticmethod(np.exp)
    log = staticmethod(np.log)
    log1p = staticmethod(np.log1p)
    sqrt = staticmethod(np.sqrt)
    abs = staticmethod(np.abs)
    isnan = staticmethod(np.isnan)

    @staticmethod
    def lgamma(x: Any) -> Any:
        """log |Γ(x)|."""
        return scipys("gammaln")(x)

    @staticmethod
    def polygamma(m: int, x: Any) -> Any:
        """ψ⁽ᵐ⁾(x), ψ being the derivative of log Γ."""
        if m == 0:
            return scipys("psi")(x)
        return (-1.0) ** (m + 1) * math.factorial(m) * scipys("zeta")(m + 1.0, x)

    @staticmethod
    def moves(part: Any, total: Any) -> Any:
        """Whether a part counts beside a total."""
        return np.abs(part) > np.abs(total) * (NumpyTerms.eps / 4)

    @staticmethod
    def loop(
        step: Step, active: Any, fixed: Sequence[Any], state: Sequence[Any], limit: int
    ) -> list[Any]:
        """Repeat `active, state = step(i, fixed, *state)` for each element while it is active.

        i counts 1, 2, …; elements that have become inactive keep their state.
        """
        out = [np.array(s) for s in state]
        # Few elements take many steps: those that are done are left out, not masked.
        places = np.flatnonzero(active)
        inputs, kept = [[np.ravel(v)[places] for v in group] for group in (fixed, out)]
        i = 0
        while i < limit and places.size:
            i += 1
            more, kept = step(float(i), inputs, *kept)
            if not more.all():
                done = ~more
                for whole, part in zip(out, kept, strict=True):
                    np.put(whole, places[done], part[done])
                places = places[more]
                inputs, kept = [[v[more] for v in group] for group in (inputs, kept)]
        for whole, part in zip(out, kept, strict=True):
            np.put(whole, places, part)
        return out


class Term:
    """A value of a StableHLO program under Python's operators."""

    __slots__ = ("b", "value")

    def __init__(self, b: Any, value: Any) -> None:
        self.b = b
        self.value = value

    def of(self, other: Any) -> Any:
        """The value of an operand; Python scalars take this term's dtype and shape."""
        return other.value if isinstance(other, Term) else self.b.full_like(self.value, other)

    def _join(self, word: str, other: Any, swapped: bool = False) -> Any:
        if not isinstance(other, Term | float | int):
            return NotImplemented
        pair = (self.value, self.of(other))
        return Term(self.b, getattr(self.b, word)(*(reversed(pair) if swapped else pair)))

    def __add__(self, other: Any) -> Any:
        return self._join("add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._join("subtract", other)

    def __rsub__(self, other: Any) -> Any:
        return self._join("subtract", other, swapped=True)

    def __mul__(self, other: Any) -> Any:
        return self._join("multiply", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return self._join("divide", other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._join("divide", other, swapped=True)

    def __neg__(self) -> Term:
        return Term(self.b, self.b.negate(self.value))

    def compare(self, other: Any, direction: str) -> Term:
        """The comparison as a term of bool."""
        return Term(self.b, self.b.compare(self.value, self.of(other), direction))

    def __lt__(self, other: Any) -> Term:
        return self.compare(other, "LT")

    def __le__(self, other: Any) -> Term:
        return self.compare(other, "LE")

    def __gt__(self, other: Any) -> Term:
        return self.compare(other, "GT")

    def __ge__(self, other: Any) -> Term:
        return self.compare(other, "GE")

    def __eq__(self, other: Any) -> Term:  # type: ignore[override]
        return self.compare(other, "EQ")

    __hash__ = None  # type: ignore[assignment]

    def __and__(self, other: Term) -> Term:
        return Term(self.b, self.b.and_(self.value, other.value))

    def __or__(self, other: Term) -> Term:
        return Term(self.b, self.b.or_(self.value, other.value))

    def __invert__(self) -> Term:
        return Term(self.b, self.b.not_(self.value))


class HloTerms:
    """The vocabulary of formulas on terms of one dtype and shape."""

    def __init__(self, b: Any, dtype: Any, shape: tuple[int, ...]) -> None:
        self.b = b
        self.shape = shape
        self.dtype = dtype
        self.eps = float(np.finfo(dtype).eps)

    def where(self, mask: Term, x: Any, y: Any) -> Term:
        """x where the mask holds, else y."""
        pair = [v if isinstance(v, Term) else self.full(v) for v in (x, y)]
        return Term(self.b, self.b.select(mask.value, pair[0].value, pair[1].value))

    def full(self, value: float) -> Term:
        """A constant of the formula's dtype and shape."""
        return Term(self.b, self.b.full(self.shape, value, self.dtype))

    def polynomial(self, coefficients: Sequence[float], x: Term) -> Term:
        """The sum of c_i·x^i."""
        out = self.full(coefficients[-1])
        for c in coefficients[-2::-1]:
            out = out * x + c
        return out

    def inverse_root(self, x: Term) -> Term:
        """1/√x of positive numbers."""
        return 1.0 / self.sqrt(x)  # type: ignore[no-any-return]

    def exp(self, x: Term) -> Term:
        """e^x."""
        return Term(self.b, self.b.exponential(x.value))

    def log(self, x: Term) -> Term:
        """The natural logarithm."""
        return Term(self.b, self.b.log(x.value))

    def log1p(self, x: Term) -> Term:
        """log(1 + x)."""
        return Term(self.b, self.b.log_plus_one(x.value))

    def sqrt(self, x: Term) -> Term:
        """The square root."""
        return Term(self.b, self.b.sqrt(x.value))

    def abs(self, x: Term) -> Term:
        """The absolute value."""
        return Term(self.b, self.b.abs(x.value))

    def isnan(self, x: Term) -> Term:
        """Whether x is NaN."""
        return x.compare(x, "NE")

    def lgamma(self, x: Term) -> Term:
        """log |Γ(x)|."""
        return Term(self.b, self.b.lgamma(x.value))

    def polygamma(self, m: int, x: Term) -> Term:
        """ψ⁽ᵐ⁾(x), ψ being the derivative of log Γ."""
        if m == 0:
            return Term(self.b, self.b.digamma(x.value))
        return Term(self.b, self.b.polygamma(self.full(m).value, x.value))

    def moves(self, part: Any, total: Term) -> Term:
        """Whether a part counts beside a total."""
        return self.abs(part).compare(self.abs(total) * (self.eps / 4), "GT")

    def loop(
        self, step: Step, active: Term, fixed: Sequence[Any], state: Sequence[Any], limit: int
    ) -> list[Term]:
        """As that of NumPy: `active, state = step(i, fixed, *state)` while any is active."""
        b = self.b
        kept = [s if isinstance(s, Term) else self.full(s) for s in state]
        zero = b.full((), 0, self.dtype)
        dims = tuple(range(len(self.shape)))

        def going(b: Any, i: Any, active: Any, *state: Any) -> Any:
            some = b.reduce("or", active, dims) if dims else active
            return b.and_(b.compare(i, b.full((), limit, self.dtype), "LT"), some)

        def body(b: Any, i: Any, active: Any, *state: Any) -> list[Any]:
            i = b.add(i, b.full((), 1, self.dtype))
            count = Term(b, b.broadcast_to(i, self.shape))
            more, new = step(count, fixed, *[Term(b, s) for s in state])
            kept = [
                b.select(active, (n if isinstance(n, Term) else self.full(n)).value, o)
                for n, o in zip(new, state, strict=True)
            ]
            return [i, b.and_(active, more.value), *kept]

        out = b.while_(going, body, [zero, active.value, *[k.value for k in kept]])
        return [Term(b, v) for v in out[2:]]

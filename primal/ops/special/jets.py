"""Derivatives of formulas: power series in place of numbers.

A `Jet` is f₀ + f₁·ε + f₂·ε² + … up to a fixed order, where ε is what an operand moves by; so fₖ is
the k-th derivative over k!. A formula (see terms.py) on jets, with `JetTerms` for its vocabulary,
gives its own derivatives of every order: sums, quotients and recurrences are differentiated term
by term, which is as accurate as they are. Coefficients are whatever the vocabulary beneath works
on, jets along another operand included.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from primal.ops.special.terms import Step


class Jet:
    """A truncated power series under Python's operators; coefficients left out are zero."""

    __slots__ = ("coefficients", "order")
    __array_ufunc__ = None  # NumPy's operators give way

    def __init__(self, coefficients: Sequence[Any], order: int) -> None:
        self.coefficients = tuple(coefficients[: order + 1])
        self.order = order

    def at(self, k: int) -> Any:
        """The coefficient of ε^k."""
        return self.coefficients[k] if k < len(self.coefficients) else 0.0

    def each(self, fun: Callable[[Any], Any]) -> Jet:
        """The jet of `fun`, which is linear, at every coefficient."""
        return Jet([fun(c) for c in self.coefficients], self.order)

    def __add__(self, other: Any) -> Jet:
        x, y = self.coefficients, _jet(other, self.order).coefficients
        low = [a + b for a, b in zip(x, y, strict=False)]
        return Jet([*low, *x[len(low) :], *y[len(low) :]], self.order)

    __radd__ = __add__

    def __neg__(self) -> Jet:
        return self.each(lambda c: -c)

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Jet:
        x, y = self.coefficients, _jet(other, self.order).coefficients
        size = min(len(x) + len(y) - 1, self.order + 1)
        return Jet([_convolved(x, y, k) for k in range(size)], self.order)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Jet:
        if not isinstance(other, Jet):
            return self.each(lambda c: c / other)
        y = other.coefficients
        if len(y) == 1:
            return self.each(lambda c: c / y[0])
        out: list[Any] = []
        for k in range(self.order + 1):
            rest = self.at(k)
            for j in range(1, min(k, len(y) - 1) + 1):
                rest = rest - y[j] * out[k - j]
            out.append(rest / y[0])
        return Jet(out, self.order)

    def __rtruediv__(self, other: Any) -> Jet:
        return _jet(other, self.order) / self

    def __lt__(self, other: Any) -> Any:
        return self.coefficients[0] < _jet(other, self.order).coefficients[0]

    def __gt__(self, other: Any) -> Any:
        return self.coefficients[0] > _jet(other, self.order).coefficients[0]


def _jet(x: Any, order: int) -> Jet:
    return x if isinstance(x, Jet) else Jet((x,), order)


def _convolved(x: Sequence[Any], y: Sequence[Any], k: int) -> Any:
    parts = [x[j] * y[k - j] for j in range(len(x)) if 0 <= k - j < len(y)]
    return functools.reduce(lambda a, b: a + b, parts)


class JetTerms:
    """The vocabulary of formulas on jets, over that of their coefficients."""

    def __init__(self, under: Any, order: int) -> None:
        self.under = under
        self.order = order
        self.eps = under.eps
        self.dtype = getattr(under, "dtype", None)

    def variable(self, x: Any) -> Jet:
        """x + ε."""
        return Jet((x, 1.0), self.order)

    def constant(self, x: Any) -> Jet:
        """x, which may be a jet of the vocabulary beneath, without ε."""
        return Jet((x,), self.order)

    def derivative(self, x: Any) -> Any:
        """The derivative of the vocabulary's order of a result."""
        return _jet(x, self.order).at(self.order) * float(math.factorial(self.order))

    def start(self, x: Any) -> Any:
        """The result itself, without ε."""
        return _jet(x, self.order).at(0)

    def where(self, mask: Any, x: Any, y: Any) -> Jet:
        """x where the mask holds, else y."""
        x, y = _jet(x, self.order), _jet(y, self.order)
        size = max(len(x.coefficients), len(y.coefficients))
        return Jet([self.under.where(mask, x.at(k), y.at(k)) for k in range(size)], self.order)

    def abs(self, x: Any) -> Any:
        """|x|: its coefficients with the sign that makes the first positive."""
        if not isinstance(x, Jet):
            return self.under.abs(x)
        return self.where(x < 0.0, -x, x)

    def isnan(self, x: Any) -> Any:
        """Whether x is NaN."""
        return self.under.isnan(self.start(x))

    def exp(self, x: Any) -> Any:
        """e^x: k·eₖ = Σ j·xⱼ·eₖ₋ⱼ."""
        x = _jet(x, self.order)
        out = [self.under.exp(x.at(0))]
        for k in range(1, self.order + 1 if len(x.coefficients) > 1 else 1):
            steps = range(1, min(k, len(x.coefficients) - 1) + 1)
            parts = [x.at(j) * out[k - j] * (j / k) for j in steps]
            out.append(functools.reduce(lambda a, b: a + b, parts))
        return Jet(out, self.order)

    def log(self, x: Any) -> Any:
        """log x."""
        x = _jet(x, self.order)
        return self._log(x, self.under.log(x.at(0)))

    def log1p(self, x: Any) -> Any:
        """log(1 + x)."""
        x = _jet(x, self.order)
        return self._log(x + 1.0, self.under.log1p(x.at(0)))

    def _log(self, x: Jet, first: Any) -> Jet:
        # x·l' = x' gives x₀·lₖ = xₖ - Σ j·lⱼ·xₖ₋ⱼ/k.
        out = [first]
        for k in range(1, self.order + 1 if len(x.coefficients) > 1 else 1):
            rest = x.at(k)
            for j in range(1, k):
                if k - j < len(x.coefficients):
                    rest = rest - out[j] * x.at(k - j) * (j / k)
            out.append(rest / x.at(0))
        return Jet(out, self.order)

    def lgamma(self, x: Any) -> Jet:
        """log |Γ(x)|."""
        x = _jet(x, self.order)
        slopes = [self.under.polygamma(k, x.at(0)) for k in range(self._terms(x))]
        return self._compose(x, [self.under.lgamma(x.at(0)), *slopes])

    def digamma(self, x: Any) -> Jet:
        """ψ(x)."""
        return self.polygamma(0, x)

    def polygamma(self, m: int, x: Any) -> Jet:
        """ψ⁽ᵐ⁾(x)."""
        x = _jet(x, self.order)
        slopes = [self.under.polygamma(m + k, x.at(0)) for k in range(self._terms(x) + 1)]
        return self._compose(x, slopes)

    def _terms(self, x: Jet) -> int:
        return self.order if len(x.coefficients) > 1 else 0

    def _compose(self, x: Jet, derivatives: Sequence[Any]) -> Jet:
        """f(x) by Taylor's series around x₀, given the derivatives of f there."""
        step = Jet((0.0, *x.coefficients[1:]), self.order)
        out = self.constant(derivatives[0])
        power: Any = 1.0
        for k, slope in enumerate(derivatives[1:], 1):
            power = step * power
            out = out + power * self.constant(slope * (1.0 / math.factorial(k)))
        return out

    def moves(self, part: Any, total: Any) -> Any:
        """Whether adding the part to the total changes any coefficient of it."""
        part, total = _jet(part, self.order), _jet(total, self.order)
        pairs = [(part.at(k), total.at(k)) for k in range(len(part.coefficients))]
        return functools.reduce(
            lambda a, b: a | b, [self.under.moves(p, t) for p, t in pairs]
        )

    def loop(
        self, step: Step, active: Any, fixed: Sequence[Any], state: Sequence[Any], limit: int
    ) -> list[Any]:
        """As that beneath, over all coefficients."""
        size = self.order + 1
        inputs, kept = [[_jet(s, self.order) for s in values] for values in (fixed, state)]
        zero = kept[0].at(0) * 0.0
        # What is fixed keeps its coefficients that are numbers: they are known to be 0 or 1.
        places = [
            (n, k) for n, j in enumerate(inputs) for k, c in enumerate(j.coefficients)
            if not isinstance(c, float)
        ]  # fmt: skip

        def packed(jets: Sequence[Any]) -> list[Any]:
            parts = [_jet(j, self.order) for j in jets]
            return [
                p.coefficients[k] if k < len(p.coefficients) else zero
                for p in parts
                for k in range(size)
            ]

        def unpacked(flat: Sequence[Any]) -> list[Any]:
            starts = range(0, len(flat), size)
            return [Jet(flat[i : i + size], self.order) for i in starts]

        def on_flat(i: Any, held: Sequence[Any], *flat: Any) -> tuple[Any, list[Any]]:
            found = [list(j.coefficients) for j in inputs]
            for (n, k), value in zip(places, held, strict=True):
                found[n][k] = value
            more, new = step(i, [Jet(c, self.order) for c in found], *unpacked(flat))
            return more, packed(new)

        held = [inputs[n].at(k) for n, k in places]
        return unpacked(self.under.loop(on_flat, active, held, packed(kept), limit))

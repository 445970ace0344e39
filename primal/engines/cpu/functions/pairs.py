"""Complex arithmetic on pairs of lanes, for code that is written out for floats as well."""

from __future__ import annotations

from primal.engines.cpu.functions.floats import Floats

Complex = tuple[str, str]


class Pairs:
    """What triangular systems ask of Floats, of complex numbers: each is its two parts."""

    def __init__(self, f: Floats) -> None:
        self.f = f

    def neg(self, x: Complex) -> Complex:
        """-x."""
        return self.f.neg(x[0]), self.f.neg(x[1])

    def conj(self, x: Complex) -> Complex:
        """The conjugate of x."""
        return x[0], self.f.neg(x[1])

    def add(self, x: Complex, y: Complex) -> Complex:
        """x + y."""
        return self.f.add(x[0], y[0]), self.f.add(x[1], y[1])

    def mul(self, x: Complex, y: Complex) -> Complex:
        """x y, each part a product and a fused step."""
        f = self.f
        re = f.fma(f.neg(x[1]), y[1], f.mul(x[0], y[0]))
        return re, f.fma(x[1], y[0], f.mul(x[0], y[1]))

    def fma(self, x: Complex, y: Complex, z: Complex) -> Complex:
        """x y + z, each part two fused steps."""
        f = self.f
        re = f.fma(f.neg(x[1]), y[1], f.fma(x[0], y[0], z[0]))
        im = f.fma(x[1], y[0], f.fma(x[0], y[1], z[1]))
        return re, im

    def div(self, x: Complex, y: Complex) -> Complex:
        """x / y by Smith's method, whose squares do not overflow; exact parts where y is real."""
        f = self.f
        real = f.test("oge", f.abs(y[0]), f.abs(y[1]))
        more, less = f.where(real, y[0], y[1]), f.where(real, y[1], y[0])
        u, v = f.where(real, x[0], x[1]), f.where(real, x[1], x[0])
        ratio = f.div(less, more)
        whole = f.fma(less, ratio, more)
        re = f.div(f.fma(v, ratio, u), whole)
        im = f.div(f.fma(f.neg(u), ratio, v), whole)
        return re, f.where(real, im, f.neg(im))

"""Elementwise operations. The methods are generated: each is one template and one name."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from primal.base.dtype_table import COMPLEX, REAL
from primal.base.dtypes import itemsize_bits
from primal.engines.xla.builder.core import Constant, Core, Value, kind_of
from primal.engines.xla.builder.types import scalar_literal, tensor
from primal.ir.avals import Aval

_BOOL = np.dtype(bool)
_F64 = np.dtype(np.float64)
_COMPARISON = {"b": "UNSIGNED", "i": "SIGNED", "u": "UNSIGNED", "f": "FLOAT", "c": "FLOAT"}
_DIRECTIONS = frozenset(("EQ", "NE", "LT", "LE", "GT", "GE"))
_METHODS = {"not": "not_", "and": "and_", "or": "or_"}


def _unary(mnemonic: str) -> Callable[[Any, Value], Value]:
    head = f"stablehlo.{mnemonic}"

    def method(self: Core, x: Value) -> Value:
        n = self.count
        self.count = n + 1
        self.lines.append(f"%{n} = {head} {x.name} : {x.type}")
        return Value(f"%{n}", x.type, x.aval)

    return method


def _function(mnemonic: str) -> Callable[..., Value]:
    head = f"stablehlo.{mnemonic}"

    def method(self: Core, x: Value, accuracy: Any = None) -> Value:
        how = "" if accuracy is None else result_accuracy(accuracy)
        return self.write(f"{head} {x.name}{how} : {x.type}", x.aval)

    return method


def _chlo_unary(mnemonic: str) -> Callable[[Any, Value], Value]:
    head = f"chlo.{mnemonic}"

    def method(self: Core, x: Value) -> Value:
        return self.write(f"{head} {x.name} : {x.type} -> {x.type}", x.aval)

    return method


def _predicate(head: str) -> Callable[[Any, Value], Value]:
    def method(self: Core, x: Value) -> Value:
        out = Aval(x.aval.shape, _BOOL)
        arrow = f"({x.type})" if head.startswith("stablehlo") else x.type
        return self.write(f"{head} {x.name} : {arrow} -> {tensor(out)}", out)

    return method


def _binary(mnemonic: str) -> Callable[[Any, Value, Value], Value]:
    head = f"stablehlo.{mnemonic}"

    def method(self: Elementwise, x: Value, y: Value) -> Value:
        if x.type != y.type:
            x, y = self.align(x, y)
        left, right = x.name, y.name
        n = self.count
        self.count = n + 1
        self.lines.append(f"%{n} = {head} {left}, {right} : {x.type}")
        return Value(f"%{n}", x.type, x.aval)

    return method


def _chlo_binary(mnemonic: str) -> Callable[[Any, Value, Value], Value]:
    head = f"chlo.{mnemonic}"

    def method(self: Elementwise, x: Value, y: Value) -> Value:
        if x.type != y.type:
            x, y = self.align(x, y)
        text = f"{head} {x.name}, {y.name} : {x.type}, {y.type} -> {x.type}"
        return self.write(text, x.aval)

    return method


class Elementwise(Core):
    """out[i] depends on the operands at i, after scalars and size-1 dimensions are broadcast."""

    negate = _unary("negate")
    _sign = _unary("sign")
    floor = _unary("floor")
    ceil = _unary("ceil")
    round_nearest_even = _unary("round_nearest_even")
    round_nearest_afz = _unary("round_nearest_afz")
    exponential = _function("exponential")
    exponential_minus_one = _function("exponential_minus_one")
    log = _function("log")
    log_plus_one = _function("log_plus_one")
    logistic = _function("logistic")
    tanh = _function("tanh")
    sine = _function("sine")
    cosine = _function("cosine")
    tan = _function("tan")
    sqrt = _function("sqrt")
    rsqrt = _function("rsqrt")
    cbrt = _function("cbrt")
    not_ = _unary("not")
    popcnt = _unary("popcnt")
    count_leading_zeros = _unary("count_leading_zeros")

    asin = _chlo_unary("asin")
    acos = _chlo_unary("acos")
    atan = _chlo_unary("atan")
    sinh = _chlo_unary("sinh")
    cosh = _chlo_unary("cosh")
    asinh = _chlo_unary("asinh")
    acosh = _chlo_unary("acosh")
    atanh = _chlo_unary("atanh")
    erf = _chlo_unary("erf")
    erfc = _chlo_unary("erfc")
    erf_inv = _chlo_unary("erf_inv")
    lgamma = _chlo_unary("lgamma")
    digamma = _chlo_unary("digamma")
    bessel_i1e = _chlo_unary("bessel_i1e")
    _conj = _chlo_unary("conj")

    _is_finite = _predicate("stablehlo.is_finite")

    add = _binary("add")
    subtract = _binary("subtract")
    multiply = _binary("multiply")
    divide = _binary("divide")
    _remainder = _binary("remainder")
    maximum = _binary("maximum")
    minimum = _binary("minimum")
    and_ = _binary("and")
    or_ = _binary("or")
    xor = _binary("xor")
    shift_left = _binary("shift_left")
    shift_right_arithmetic = _binary("shift_right_arithmetic")
    shift_right_logical = _binary("shift_right_logical")
    atan2 = _binary("atan2")

    next_after = _chlo_binary("next_after")
    polygamma = _chlo_binary("polygamma")
    zeta = _chlo_binary("zeta")

    def unary(self, name: str, x: Value, accuracy: Any = None) -> Value:
        """The method of that name; `not` for `not_`."""
        method = getattr(self, _METHODS.get(name, name))
        return method(x) if accuracy is None else method(x, accuracy)

    def binary(self, name: str, x: Value, y: Value) -> Value:
        """The method of that name; `and` for `and_`, `or` for `or_`."""
        return getattr(self, _METHODS.get(name, name))(x, y)

    def power(self, x: Value, y: Value, accuracy: Any = None) -> Value:
        """x^y."""
        if x.type != y.type:
            x, y = self.align(x, y)
        # The specification gives power no such attribute; XLA takes it with any operation.
        how = "" if accuracy is None else result_accuracy(accuracy)
        return self.write(f"stablehlo.power {x.name}, {y.name}{how} : {x.type}", x.aval)

    def align(self, *xs: Value) -> builtins.list[Value]:
        """The operands broadcast to their common shape; dtypes stay."""
        shapes = [x.aval.shape for x in xs if x.aval.shape]
        shape = shapes[0] if shapes else ()
        for other in shapes:
            if other != shape:
                shape = np.broadcast_shapes(*shapes)
                break
        return [self.expand(x, shape) for x in xs]

    def expand(self, x: Value, shape: tuple[int, ...]) -> Value:
        """x at that shape, trailing dimensions aligned; constants become splats."""
        old = x.aval.shape
        if old == shape:
            return x
        out = Aval(shape, x.aval.dtype)
        if not old and x.__class__ is Constant:
            return Constant(self, x.literal if out.size else "", out)
        dims = ", ".join([str(d) for d in range(len(shape) - len(old), len(shape))])
        head = f"stablehlo.broadcast_in_dim {x.name}, dims = [{dims}]"
        return self.write(f"{head} : ({x.type}) -> {tensor(out)}", out)

    def abs(self, x: Value) -> Value:
        """Absolute value; the modulus of a complex operand is real."""
        if kind_of(x.aval.dtype) == "u":
            return x
        part = REAL.get(x.aval.dtype)
        if part is None:
            return self.write(f"stablehlo.abs {x.name} : {x.type}", x.aval)
        out = Aval(x.aval.shape, part)
        return self.write(f"stablehlo.abs {x.name} : ({x.type}) -> {tensor(out)}", out)

    def sign(self, x: Value) -> Value:
        """-1, 0 or 1; x / |x| of a complex operand."""
        if kind_of(x.aval.dtype) == "u":
            return self.minimum(x, self.full_like(x, 1))
        return self._sign(x)

    def square(self, x: Value) -> Value:
        """x * x."""
        return self.multiply(x, x)

    def conj(self, x: Value) -> Value:
        """Complex conjugate; a real operand is its own."""
        return self._conj(x) if x.aval.dtype in REAL else x

    def is_finite(self, x: Value) -> Value:
        """Neither infinite nor nan, in both parts."""
        if x.aval.dtype in REAL:
            return self.and_(self._is_finite(self.real(x)), self._is_finite(self.imag(x)))
        return self._is_finite(x)

    def remainder(self, x: Value, y: Value) -> Value:
        """x - y trunc(x / y), with the sign of x."""
        if x.aval.dtype in REAL:
            # XLA ends the process over it (0.10 to 0.12).
            raise TypeError(f"[remainder] expected real operands, got {x.aval.dtype}.")
        return self._remainder(x, y)

    def real(self, x: Value) -> Value:
        """Real part; a real operand is its own."""
        return self._part("real", x) if x.aval.dtype in REAL else x

    def imag(self, x: Value) -> Value:
        """Imaginary part; zero for a real operand."""
        return self._part("imag", x) if x.aval.dtype in REAL else self.full_like(x, 0)

    def _part(self, which: str, x: Value) -> Value:
        out = Aval(x.aval.shape, REAL[x.aval.dtype])
        return self.write(f"stablehlo.{which} {x.name} : ({x.type}) -> {tensor(out)}", out)

    def complex(self, re: Value, im: Value) -> Value:
        """A complex number from its parts."""
        if re.type != im.type:
            re, im = self.align(re, im)
        out = Aval(re.aval.shape, COMPLEX[re.aval.dtype])
        return self.write(f"stablehlo.complex {re.name}, {im.name} : {tensor(out)}", out)

    def compare(
        self, x: Value, y: Value, direction: str, total_order: builtins.bool = False
    ) -> Value:
        """x `direction` y; total order puts -0 below 0 and nan at the ends."""
        direction = direction.upper()
        if direction not in _DIRECTIONS:
            raise ValueError(
                f"[compare] expected one of {', '.join(sorted(_DIRECTIONS))}, got {direction!r}."
            )
        if x.type != y.type:
            x, y = self.align(x, y)
        kind = kind_of(x.aval.dtype)
        how = "TOTALORDER" if total_order and kind == "f" else _COMPARISON[kind]
        out = Aval(x.aval.shape, _BOOL)
        return self.write(
            f"stablehlo.compare {direction}, {x.name}, {y.name}, {how} : "
            f"({x.type}, {y.type}) -> {tensor(out)}",
            out,
        )

    def select(self, pred: Value, on_true: Value, on_false: Value) -> Value:
        """`on_true` where pred holds, else `on_false`; a scalar pred chooses whole arrays."""
        if on_true.type != on_false.type:
            on_true, on_false = self.align(on_true, on_false)
        shape = on_true.aval.shape
        if pred.aval.shape and pred.aval.shape != shape:
            pred, on_true, on_false = self.align(pred, on_true, on_false)
        return self.write(
            f"stablehlo.select {pred.name}, {on_true.name}, {on_false.name} : "
            f"{pred.type}, {on_true.type}",
            on_true.aval,
        )

    def select_n(self, which: Value, *cases: Value) -> Value:
        """cases[which]; indices beyond the ends choose the last or the first case."""
        if kind_of(which.aval.dtype) == "b":
            return self.select(which, cases[-1], cases[0])
        result = cases[-1]
        for i in range(len(cases) - 2, -1, -1):
            result = self.select(
                self.compare(which, self.scalar(i, which.aval.dtype), "LE"), cases[i], result
            )
        return result

    def clamp(self, low: Value, x: Value, high: Value) -> Value:
        """min(max(x, low), high); the bounds are scalars or of the shape of x."""
        shape = x.aval.shape
        if low.aval.shape:
            low = self.expand(low, shape)
        if high.aval.shape:
            high = self.expand(high, shape)
        return self.write(
            f"stablehlo.clamp {low.name}, {x.name}, {high.name} : "
            f"({low.type}, {x.type}, {high.type}) -> {x.type}",
            x.aval,
        )

    def convert(self, x: Value, dtype: Any) -> Value:
        """Value conversion; to bool it means `x != 0`, from complex to real the real part."""
        out = Aval(x.aval.shape, dtype)
        text = tensor(out)
        if text == x.type:
            return x if out is x.aval else Value(x.name, text, out)
        if x.aval.dtype in REAL and kind_of(out.dtype) != "c":
            if kind_of(out.dtype) == "b":
                return self.compare(x, self.full_like(x, 0), "NE")
            x = self.real(x)
            if x.type == text:
                return x
        return self.write(f"stablehlo.convert {x.name} : ({x.type}) -> {text}", out)

    def bitcast_convert(self, x: Value, dtype: Any) -> Value:
        """The same bits; a narrower dtype adds a last dimension, a wider one takes it away."""
        shape = x.aval.shape
        out = Aval(shape, dtype)
        if tensor(out) == x.type:
            # The same bits on the device too: keys and the numbers they are held in.
            return Value(x.name, x.type, out)
        if out.dtype != x.aval.dtype and not {kind_of(out.dtype), kind_of(x.aval.dtype)} <= set(
            "iuf"
        ):
            raise TypeError(
                f"[bitcast_convert] expected dtypes that are neither bool nor complex, got "
                f"{x.aval.dtype} to {out.dtype}."
            )
        old, new = itemsize_bits(x.aval.dtype), itemsize_bits(out.dtype)
        if old > new:
            out = Aval((*shape, old // new), dtype)
        elif old < new:
            out = Aval(shape[:-1], dtype)
        if tensor(out) == x.type:
            return Value(x.name, x.type, out)
        return self.write(f"stablehlo.bitcast_convert {x.name} : ({x.type}) -> {tensor(out)}", out)

    def reduce_precision(self, x: Value, exponent_bits: int, mantissa_bits: int) -> Value:
        """x rounded to a float of that many exponent and mantissa bits."""
        how = f"format = e{int(exponent_bits)}m{int(mantissa_bits)}"
        return self.write(f"stablehlo.reduce_precision {x.name}, {how} : {x.type}", x.aval)


def result_accuracy(accuracy: Any) -> str:
    """The attribute that asks for an accuracy: a mode by its name, or three tolerances."""
    mode = getattr(accuracy, "name", "TOLERANCE")
    if mode == "DEFAULT":
        return ""
    fields = [f"mode = #stablehlo.result_accuracy_mode<{mode}>"]
    if mode == "TOLERANCE":
        atol, rtol = (scalar_literal(v, _F64) for v in (accuracy.atol, accuracy.rtol))
        fields = [f"atol = {atol}, rtol = {rtol}, ulps = {int(accuracy.ulps)}", *fields]
    return f" {{result_accuracy = #stablehlo.result_accuracy<{', '.join(fields)}>}}"

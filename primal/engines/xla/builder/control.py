"""Control flow, calls into libraries, and what XLA offers of linear algebra and random bits."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from primal.engines.xla.builder.core import Ints, Region, Value, as_values, ints
from primal.engines.xla.builder.types import element, scalar_literal, tensor
from primal.engines.xla.builder.windows import Windows
from primal.ir.avals import Aval

_FFT = {"FFT", "IFFT", "RFFT", "IRFFT"}
_LETTERS = {np.dtype("f4"): "s", np.dtype("f8"): "d", np.dtype("c8"): "c", np.dtype("c16"): "z"}
# The names LAPACK gives to the complex case.
_COMPLEX_ROUTINES = {"syevd": "heevd", "orgqr": "ungqr", "ormqr": "unmqr", "sytrd": "hetrd"}
_ANY_DTYPE = {"tridiagonal_solve_perturbed"}


class Control(Windows):
    """Operations with regions that see outside, and operations XLA does not open.

    >>> b = Control()
    >>> x = b.fresh(Aval((2,), np.dtype('float32')))
    >>> b.add(b.sine(x), b.constant(1.0, 'float32'))
    Value(%3: tensor<2xf32>)
    >>> print(*b.lines, sep="\\n")
    %1 = stablehlo.sine %0 : tensor<2xf32>
    %2 = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
    %3 = stablehlo.add %1, %2 : tensor<2xf32>
    """

    def while_(self, cond: Region, body: Region, inits: Sequence[Value]) -> list[Value]:
        """Repeats body while cond holds; both take the carry and may mention outer values."""
        if not self.in_order and inits:
            return self._while(cond, body, inits)

        # What the loop did last is carried along. A condition's calls are ordered with the rest by
        # the loop itself, which awaits the condition before each step.
        # XLA drops a carry that nothing reads, and crashes when none is left: a loop for effects
        # alone gets one that seems to count.
        alone = not inits

        def ordered_cond(b: Any, mark: Value, *carry: Value) -> Any:
            self.mark = mark
            going = as_values(cond(b, *carry))[0]
            zero = self.constant(0, np.int32)
            return self.and_(going, self.compare(mark, zero, "GE")) if alone else going

        def ordered_body(b: Any, mark: Value, *carry: Value) -> list[Value]:
            self.mark = mark
            outs = as_values(body(b, *carry))
            last = self.marked()
            return [self.subtract(self.constant(1, np.int32), last) if alone else last, *outs]

        self.mark, *outs = self._while(ordered_cond, ordered_body, [self.marked(), *inits])
        return outs

    def _while(self, cond: Region, body: Region, inits: Sequence[Value]) -> list[Value]:
        avals = [x.aval for x in inits]
        return self.op(
            "stablehlo.while", inits, avals, "", [(avals, cond), (avals, body)], isolated=False
        )

    def marked(self) -> Value:
        """The result of the last ordered call, which the next one takes as an operand.

        Data order calls where StableHLO's tokens would too, and need no care outside of calls,
        loops and branches: engines see one more scalar.
        """
        if self.mark is None:
            self.mark = self.constant(0, np.int32)
        return self.mark

    def case(self, index: Value, branches: Sequence[Region]) -> list[Value]:
        """The branch of that index, the last one when it is out of range."""
        return self._branch("stablehlo.case", index, branches)

    def if_(self, pred: Value, on_true: Region, on_false: Region) -> list[Value]:
        """One of two branches by a scalar bool."""
        return self._branch("stablehlo.if", pred, (on_true, on_false))

    def _branch(self, name: str, selector: Value, branches: Sequence[Region]) -> list[Value]:
        if not self.in_order:
            return self._branches(name, selector, branches)
        before = self.marked()

        def ordered(body: Region) -> Region:
            def run(b: Any) -> list[Value]:
                self.mark = before
                outs = as_values(body(b))
                return [self.marked(), *outs]

            return run

        self.mark, *outs = self._branches(name, selector, [ordered(body) for body in branches])
        return outs

    def _branches(self, name: str, selector: Value, branches: Sequence[Region]) -> list[Value]:
        chosen = selector.name
        at = len(self.lines)
        self.lines.append("")
        outs: list[Value] = []
        for i, body in enumerate(branches):
            if i:
                self.lines.append("}, {")
            outs = self.region((), body, isolated=False)
        left, values = self.results([x.aval for x in outs])
        self.lines[at] = f'{left}"{name}"({chosen}) ({{'
        types = ", ".join([x.type for x in values])
        self.lines.append(f"}}) : ({selector.type}) -> ({types})")
        return values

    def optimization_barrier(self, xs: Sequence[Value]) -> list[Value]:
        """The operands, which no optimisation moves across or merges."""
        if not xs:
            return []
        names, types = ", ".join([x.name for x in xs]), ", ".join([x.type for x in xs])
        left, values = self.results([x.aval for x in xs])
        self.lines.append(f"{left}stablehlo.optimization_barrier {names} : {types}")
        return values

    def call_function(
        self, name: str, operands: Sequence[Value], outs: Sequence[Aval]
    ) -> list[Value]:
        """A call of a function of this module."""
        left, values = self.results(outs)
        names, types = ", ".join([x.name for x in operands]), ", ".join([x.type for x in operands])
        to = ", ".join([v.type for v in values])
        self.lines.append(f"{left}func.call @{name}({names}) : ({types}) -> ({to})")
        return values

    def fft(self, x: Value, kind: str, lengths: Ints) -> Value:
        """Fourier transform of the last len(lengths) dimensions."""
        kind = str(getattr(kind, "name", kind)).upper()
        if kind not in _FFT:
            raise ValueError(f"[fft] expected one of {', '.join(sorted(_FFT))}, got {kind!r}.")
        shape, dtype = list(x.aval.shape), x.aval.dtype
        if kind == "RFFT":
            shape[-1] = lengths[-1] // 2 + 1 if lengths[-1] else 0
            dtype = np.dtype("c16" if dtype == np.dtype("f8") else "c8")
        elif kind == "IRFFT":
            shape[-1] = lengths[-1]
            dtype = np.dtype("f8" if dtype == np.dtype("c16") else "f4")
        out = Aval(tuple(shape), dtype)
        return self.write(
            f"stablehlo.fft {x.name}, type = {kind}, length = {ints(lengths)} : "
            f"({x.type}) -> {tensor(out)}",
            out,
        )

    def cholesky(self, x: Value, lower: bool = True) -> Value:
        """Cholesky factor; the other triangle holds rubbish that the caller masks."""
        flag = "true" if lower else "false"
        return self.write(f"stablehlo.cholesky {x.name}, lower = {flag} : {x.type}", x.aval)

    def triangular_solve(
        self,
        a: Value,
        b: Value,
        *,
        left_side: bool = True,
        lower: bool = True,
        unit_diagonal: bool = False,
        transpose: str = "NO_TRANSPOSE",
    ) -> Value:
        """x with op(a) x = b, or x op(a) = b."""
        attrs = (
            f"left_side = {_bool(left_side)}, lower = {_bool(lower)}, "
            f"transpose_a = #stablehlo<transpose {transpose}>, "
            f"unit_diagonal = {_bool(unit_diagonal)}"
        )
        return self.op("stablehlo.triangular_solve", (a, b), (b.aval,), attrs)[0]

    def rng_bit_generator(
        self, state: Value, shape: Ints, dtype: Any, algorithm: str = "DEFAULT"
    ) -> tuple[Value, Value]:
        """(new state, bits)."""
        new, out = self.op(
            "stablehlo.rng_bit_generator",
            (state,),
            (state.aval, Aval(tuple(shape), dtype)),
            f"rng_algorithm = #stablehlo<rng_algorithm {algorithm}>",
        )
        return new, out

    def custom_call(
        self,
        target: str,
        operands: Sequence[Value],
        outs: Sequence[Aval],
        *,
        attributes: Mapping[str, Any] | None = None,
        operand_layouts: Sequence[Ints] | None = None,
        result_layouts: Sequence[Ints] | None = None,
        aliases: Mapping[int, int] | None = None,
        side_effect: bool = False,
    ) -> list[Value]:
        """Typed FFI call. `aliases` maps an operand to the result that takes its memory."""
        self.custom_targets.add(target)
        parts = ["api_version = 4 : i32"]
        config = ", ".join([f"{k} = {_attribute(v)}" for k, v in (attributes or {}).items()])
        parts.append(f"backend_config = {{{config}}}")
        if side_effect:
            parts.append("has_side_effect = true")
        if operand_layouts is not None:
            parts.append(f"operand_layouts = [{', '.join(map(_layout, operand_layouts))}]")
        if result_layouts is not None:
            parts.append(f"result_layouts = [{', '.join(map(_layout, result_layouts))}]")
        if aliases:
            texts = [
                "#stablehlo.output_operand_alias<output_tuple_indices = "
                f"[{result if len(outs) > 1 else ''}], operand_index = {operand}, "
                "operand_tuple_indices = []>"
                for operand, result in aliases.items()
            ]
            parts.append(f"output_operand_aliases = [{', '.join(texts)}]")
        left, values = self.results(outs)
        names, types = ", ".join([x.name for x in operands]), ", ".join([x.type for x in operands])
        to = ", ".join([v.type for v in values])
        self.lines.append(
            f"{left}stablehlo.custom_call @{target}({names}) {{{', '.join(parts)}}} : "
            f"({types}) -> {to if len(values) == 1 else f'({to})'}"
        )
        return values

    def lapack(
        self,
        routine: str,
        operands: Sequence[Value],
        outs: Sequence[Aval],
        *,
        attributes: Mapping[str, Any] | None = None,
        aliases: Mapping[int, int] | None = None,
        batch_dims: int | None = None,
    ) -> list[Value]:
        """LAPACK's `routine` without its type letter, as in 'geev', on the CPU."""
        if self.platform != "cpu":
            raise NotImplementedError(
                f"[{routine}] expected the CPU, got platform {self.platform!r}, for which there "
                "is no factorisation kernel. Compute this part under default_device(cpu)."
            )
        letter = _LETTERS.get(operands[0].aval.dtype)
        if letter is None:
            raise TypeError(
                f"[{routine}] expected float32, float64, complex64 or complex128, got "
                f"{operands[0].aval.dtype}. Convert first."
            )
        if letter in "cz":
            routine = _COMPLEX_ROUTINES.get(routine, routine)
        batch = operands[0].ndim - 2 if batch_dims is None else batch_dims
        chars = {
            k: np.uint8(ord(v)) if isinstance(v, str) and len(v) == 1 else v
            for k, v in (attributes or {}).items()
        }
        return self.custom_call(
            f"lapack_{letter}{routine}_ffi" if routine not in _ANY_DTYPE else f"{routine}_ffi",
            operands,
            outs,
            attributes=chars,
            operand_layouts=[_columns_first(x.ndim, batch) for x in operands],
            result_layouts=[_columns_first(a.ndim, batch) for a in outs],
            aliases=aliases,
        )

    def host_call(
        self,
        callback: Any,
        operands: Sequence[Value],
        outs: Sequence[Aval],
        side_effect: bool = False,
        ordered: bool = False,
    ) -> list[Value]:
        """`callback(*arrays)` on the host; it returns NumPy arrays of the avals `outs`.

        With `side_effect` the call is neither dropped nor merged; with `ordered` it runs after
        all ordered calls before it.
        """
        if self.platform == "tpu":
            raise NotImplementedError(
                "[callback] expected the CPU or a GPU, got platform 'tpu', whose compiler offers "
                "no call of Python functions here. Return the values and use them outside of jit."
            )
        index = len(self.callbacks)
        avals = list(outs)
        if ordered:
            avals = [_MARK, *avals]
            operands = [self.marked(), *operands]
            callback = functools.partial(_after, callback)
        self.callbacks.append((callback, tuple(avals)))
        target = f"xla_ffi_python_{'cpu' if self.platform == 'cpu' else 'gpu'}_callback"
        results = self.custom_call(
            target, operands, avals, attributes={"index": np.uint64(index)}, side_effect=side_effect
        )
        if ordered:
            self.mark, *results = results
        return results


_MARK = Aval((), np.dtype(np.int32))


def _after(callback: Any, mark: Any, *arrays: Any) -> list[Any]:
    return [mark, *callback(*arrays)]


def _columns_first(rank: int, batch: int) -> list[int]:
    order = list(range(rank - 1, -1, -1))
    if rank - batch == 2:
        order[:2] = order[1], order[0]
    return order


def _layout(order: Ints) -> str:
    return f"dense<{ints(order) if len(order) else ''}> : tensor<{len(order)}xindex>"


def _attribute(value: Any) -> str:
    """A typed attribute: FFI handlers read nothing but the exact type they declare."""
    if isinstance(value, bool | np.bool_):
        return _bool(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, int):
        return f"{value} : i64"
    if isinstance(value, float):
        return f"{scalar_literal(value, np.dtype('f8'))} : f64"
    array = np.asarray(value)
    if array.dtype.kind not in "iufb" or array.ndim > 1:
        raise TypeError(
            f"[custom_call] expected a bool, number, string or flat array as attribute, got "
            f"{value!r}."
        )
    if not array.ndim:
        return f"{scalar_literal(array, array.dtype)} : {element(array.dtype)}"
    items = [scalar_literal(v, array.dtype) for v in array]
    head = element(array.dtype).replace("u", "")
    return f"array<{head}: {', '.join(items)}>" if items else f"array<{head}>"


def _bool(flag: object) -> str:
    return "true" if flag else "false"


__all__ = ["Control", "as_values"]

"""Complex numbers: inside a program they are two arrays of floats, real and imaginary parts.

A `Pair` holds the parts; every word on it is words on floats, which fuse as all others do. Arrays
of complex numbers exist where somebody outside the kernels reads or writes them: inputs and
outputs of the program, library calls, BLAS. The kernel that first needs the parts of such an array
takes them apart as it reads, the one that makes the last part puts them together as it writes
(`interleaved`); an index map of an array is a view of it. The alternative, numbers next to each
other in all registers, needs a shuffle in every product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from primal.engines.cpu import rooms
from primal.engines.cpu.complexes.functions import FUNCTIONS, Terms, raised
from primal.engines.cpu.graph import (
    APART,
    Node,
    Value,
    aligned,
    broadcast,
    is_zero,
    reversed_along,
    size_of,
    sliced,
    transposed,
)
from primal.engines.cpu.interleaved import is_first
from primal.engines.cpu.loops import control
from primal.engines.cpu.plan import around, halves, partial, wanted
from primal.engines.cpu.plan.commuting import made_by_pad, slice_of_copy
from primal.engines.cpu.routines import padding, scatters, turns
from primal.engines.cpu.words import BOOL, Words
from primal.ir.avals import Aval
from primal.ir.builders import Unsupported

Ints = Sequence[int]
WORK = 1 << 24
"""Products of numbers below which a matrix product is one of parts."""
PARTS = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(float)}
"""complex dtype -> the dtype of its parts."""


def is_complex(dtype: Any) -> bool:
    """Whether kernels hold a dtype as pairs of floats."""
    return dtype in PARTS


class Pair(Value):
    """A complex value as its parts, in the shape of both. Asking for `node` puts it together."""

    __slots__ = ("words", "both", "joined")

    def __init__(self, words: ComplexWords, re: Value, im: Value, logical: Any) -> None:
        shape = tuple(np.broadcast_shapes(re.shape, im.shape))
        self.words = words
        self.both = aligned(re, shape), aligned(im, shape)
        self.joined: Any = None
        self.shape = shape
        self.logical = logical
        self.strides = None
        self.offset = 0

    @property
    def parts(self) -> tuple[Value, Value]:
        return self.both

    @property
    def node(self) -> Node:  # type: ignore[override]
        made = self.words.plain(self)
        if made.strides is not None:  # put together as the parts lie: who asks reads row by row
            made = self.words.dense(made)
            self.joined = self.words._place(), made
        return made.node


class ComplexWords(Words):
    """The words, of complex values too."""

    def __init__(self, inline: Any) -> None:
        super().__init__(inline)
        self._apart: dict[Any, Any] = {}
        self.around: dict[Any, Any] = {}
        """Keys of what is computed again, as it is padded or read: where, the word, of what."""
        self.shared: dict[Node, int] = {}
        """What several equations read, and how many."""
        self.crossed: set[Any] = set()
        """Shapes to which arrays are padded along rows, and others along other dimensions."""

    def _turned(self, x: Value) -> Value:
        """Of a part of numbers in memory these are turned, once: x.T + y of 10 x 100,000 complex64
        took 960 us by parts."""
        node = x.node
        read = partial.viewed(x) if node.word in ("real", "imag") else None
        if read is None:
            return super()._turned(x)
        made = self.turned_copy(read)
        return x if made is None else self.parts(made)[node.word == "imag"]

    # From arrays to parts and back.

    def parts(self, x: Value) -> tuple[Value, Value]:
        """Re x and Im x."""
        if isinstance(x, Pair):
            return x.parts
        part = PARTS[x.dtype]
        if not x.size:
            return (self.empty(Aval(x.shape, part)),) * 2
        found = self._apart.get(x.key())
        if found is None or not self._stands(found[0]):
            if x.node.word == "constant":
                aval = Aval(x.node.shape, part)
                nodes = [self.constant(a, aval).node for a in (x.node.attr.real, x.node.attr.imag)]
                re, im = [Value(n, x.shape, part, x.strides, x.offset) for n in nodes]
                return re, im
            re, im = self._parts_of_padded(x) or [
                self.element(word, (x,), part) for word in ("real", "imag")
            ]
            # Keys hold for as long as their node does.
            found = self._apart[x.key()] = self._place(), re, im, x
        return found[1], found[2]

    def _parts_of_padded(self, x: Value) -> list[Value] | None:
        """The parts of what was padded: as they are read, or of little that was padded to much."""
        made = made_by_pad(self, x)
        if made is None:
            return None
        inner, value, config = made
        whole = self._padded(self.plain(inner), value, config)
        if whole is not None:
            return [self.element(word, (whole,), PARTS[x.dtype]) for word in ("real", "imag")]
        if 4 * inner.size > x.size:
            return None
        both = zip(self.parts(inner), self.parts(value), strict=True)
        return [self.pad(p, v, config) for p, v in both]

    def plain(self, x: Value) -> Value:
        """The value in an array of complex numbers, if it is not one."""
        if not isinstance(x, Pair):
            return x
        if x.joined is None or not self._stands(x.joined[0]):
            if not x.size:
                return self.empty(x.aval)
            x.joined = self._joined(x)
        return x.joined[1]

    def _joined(self, x: Value) -> Any:
        re, im = self.parts(x)
        # Of a transposition the view of what is put together as it lies: no parts are in memory,
        # and numbers are turned as such.
        order = turns.lying_alike(re, im)
        lain = [transposed(p, order) for p in (re, im)]
        out = self.element("complex", lain, x.dtype)
        out = transposed(out, [order.index(d) for d in range(x.ndim)])
        place = self._place()
        self._apart[out.key()] = place, re, im, out
        return place, out

    def pair(self, re: Value, im: Value, dtype: Any) -> Pair:
        """re + i·im."""
        return Pair(self, re, im, dtype)

    def _each(self, f: Any, x: Value) -> Value:
        """What one word makes of both parts."""
        re, im = self.parts(x)
        return self.pair(f(re), f(im), x.dtype)

    # Leaves.

    def literal(self, value: Any, dtype: Any, role: object = None) -> Value:
        if not is_complex(dtype):
            return super().literal(value, dtype, role)
        number, part = np.asarray(value, dtype), PARTS[dtype]
        re, im = super().literal(number.real, part), super().literal(number.imag, part)
        return self.pair(re, im, dtype)

    def held(self, x: Value) -> Value:
        return self.plain(x) if is_complex(x.dtype) else super().held(x)

    def copy(self, x: Value) -> Value:
        return self._joined(x)[1] if type(x) is Pair else super().copy(x)

    def dense(self, x: Value) -> Value:
        return super().dense(self.plain(x))

    def routine(self, spec: Any, args: Sequence[Value], *rest: Any, **options: Any) -> list[Value]:
        return super().routine(spec, [self.plain(x) for x in args], *rest, **options)

    # Elementwise.

    def unary(self, name: str, x: Value) -> Value:
        if name == "conj" and x.dtype in PARTS.values():
            dtype = next(c for c, part in PARTS.items() if part == x.dtype)
            return self.pair(x, self.literal(0, x.dtype), dtype)
        if not is_complex(x.dtype):
            return super().unary(name, x)
        re, im = self.parts(x)
        if name == "real":
            return re
        if name == "imag":
            return im
        if name == "conj":
            return self.pair(re, self.unary("neg", im), x.dtype)
        if name == "neg":
            return self.pair(self.unary("neg", re), self.unary("neg", im), x.dtype)
        if name == "square":
            return self._product(x, x)
        if name == "abs":
            return self.binary("modulus", re, im)
        if name == "reciprocal":
            return self._reciprocal(x)
        if name == "sign":
            size = self.binary("modulus", re, im)
            some = self.binary("ne", size, self.literal(0, size.dtype))
            size = self.select_n(some, self.literal(1, size.dtype), size)
            return self._each(lambda p: self.binary("div", p, size), x)
        if name in FUNCTIONS:
            return self.pair(*FUNCTIONS[name](Terms(self, re.dtype), re, im), x.dtype)
        if name == "rsqrt":
            p, q = self.parts(self._reciprocal(self.unary("sqrt", x)))
            q = self.unary("neg", Terms(self, q.dtype).signed(q, im))
            return self.pair(self.unary("abs", p), q, x.dtype)
        if name == "logistic":
            one = self.literal(1, x.dtype)
            right = self.binary("ge", re, self.literal(0, re.dtype))
            # Of the sides the one where the exponential is not infinite; its zeros have no sign.
            side = self.select_n(right, x, self.unary("neg", x))
            grown = self.unary("exp", self.binary("add", side, self.literal(0, x.dtype)))
            return self._quotient(self.select_n(right, grown, one), self.binary("add", grown, one))
        raise Unsupported(f"{name} of {x.dtype}")

    def binary(self, name: str, x: Value, y: Value) -> Value:
        if name == "complex":
            dtype = next((c for c, part in PARTS.items() if part == x.dtype), None)
            if dtype is not None:
                return self.pair(x, y, dtype)
        if not is_complex(x.dtype):
            return super().binary(name, x, y)
        if name == "add" and (self.padded or self.scattered):
            found = wanted.sum_of(self, x, y)
            if found is not None:
                return found
        if name == "mul":
            return self._product(x, y)
        if name == "div":
            return self._quotient(x, y)
        (a, b), (c, d) = self.parts(x), self.parts(y)
        if name in ("add", "sub"):
            return self.pair(self.binary(name, a, c), self.binary(name, b, d), x.dtype)
        if name in ("eq", "ne"):
            how = "and" if name == "eq" else "or"
            return self.binary(how, self.binary(name, a, c), self.binary(name, b, d))
        if name in ("max", "min"):
            return self._extremum(name, x, y)
        if name == "pow":
            return raised(self, x, y)
        raise Unsupported(f"{name} of {x.dtype}")

    def _product(self, x: Value, y: Value) -> Value:
        """(ac - bd) + i(ad + bc), the products with b rounded and those with a not, as NumPy's
        vector code: bit for bit what the product is outside of jit, also where products overflow
        and their difference does not."""
        (a, b), (c, d) = self.parts(x), self.parts(y)
        bd, bc = self.binary("mul", b, d), self.binary("mul", b, c)
        re = self.fma(a, c, self.unary("neg", bd))
        return self.pair(re, self.fma(a, d, bc), x.dtype)

    def _quotient(self, x: Value, y: Value) -> Value:
        """By Smith's rule, which divides by the greater part: no square overflows. C99's at 0 and
        infinities, which XLA's is too."""
        (a, b), (c, d) = self.parts(x), self.parts(y)
        f = self.binary
        if is_zero(d):  # what was real: d/c is 0, or NaN where what follows is not used
            # Not 1 divided by c: of a known power of two that is a number, and another kernel.
            wide, divisor, scale = None, c, self.unary("reciprocal", c)
            t = f("mul", d, scale)
        else:
            wide = f("ge", self.unary("abs", c), self.unary("abs", d))
            # With c the greater: (a + b·t, b - a·t) / (c + d·t) of t = d/c. Otherwise (a·t + b,
            # b·t - a) / (c·t + d) of t = c/d.
            first, second = self.select_n(wide, d, c), self.select_n(wide, c, d)
            t = f("div", second, first)
            divisor = f("add", first, f("mul", second, t))
            scale = self.unary("reciprocal", divisor)

        def either(no: Value, yes: Value) -> Value:
            return yes if wide is None else self.select_n(wide, no, yes)

        u, v = f("mul", a, t), f("mul", b, t)
        re = f("mul", f("add", either(b, a), either(u, v)), scale)
        im = f("mul", f("sub", either(v, b), either(a, u)), scale)
        # 0, or NaN where the inverse of the divisor is infinite or subnormal.
        none, four = self.literal(0, c.dtype), self.literal(4, c.dtype)
        usual = self.fma(scale, none, f("mul", f("mul", divisor, four), none))
        size = f("add", f("add", self.unary("abs", a), self.unary("abs", b)), usual)
        first = self.element("quotient", (re, size, a, b, c, d), re.dtype)
        second = self.element("quotient", (im, size, b, self.unary("neg", a), c, d), re.dtype)
        return self.pair(first, second, x.dtype)

    def _extremum(self, name: str, x: Value, y: Value) -> Value:
        """By real, then imaginary part; NaN in either part wins, that of x first."""
        both, how = (self.parts(x), self.parts(y)), "g" if name == "max" else "l"
        first = is_first(self.binary, how, *both, all(map(_is_number, both[1])))
        return self.select_n(first, y, x)

    def _reciprocal(self, x: Value) -> Value:
        return self._quotient(self.literal(1, x.dtype), x)

    def select_n(self, which: Value, *cases: Value) -> Value:
        if not is_complex(cases[0].dtype):
            return super().select_n(which, *cases)
        parts = []
        for same in zip(*[self.parts(x) for x in cases], strict=True):
            alike = same[0].node.word == "literal" and all(p.node is same[0].node for p in same)
            shape = np.broadcast_shapes(which.shape, *[p.shape for p in same])
            parts.append(aligned(same[0], shape) if alike else super().select_n(which, *same))
        return self.pair(parts[0], parts[1], cases[0].dtype)

    def convert(self, x: Value, dtype: Any) -> Value:
        if x.dtype == dtype:
            return x
        if not is_complex(x.dtype):
            if not is_complex(dtype):
                return super().convert(x, dtype)
            part = PARTS[dtype]
            return self.pair(self.convert(x, part), self.literal(0, part), dtype)
        if is_complex(dtype):
            re, im = [self.convert(p, PARTS[dtype]) for p in self.parts(x)]
            return self.pair(re, im, dtype)
        if dtype == BOOL:
            return self.binary("ne", x, self.literal(0, x.dtype))
        return self.convert(self.parts(x)[0], dtype)

    # Products.

    def dot_general(self, x: Value, y: Value, **params: Any) -> Value:
        """Products of parts: of a real operand half of them, and none of what nobody reads.

        Where taking operands apart and adding takes longer than BLAS, that multiplies the numbers:
        of a matrix in memory and a vector, but for loops, which do it once for all turns (1000 x
        1000 of complex64 by a vector 559 to 120 us, JAX 336). It never does so of great matrices
        beside the matrix unit: 800 x 800 take that 24 ms, and BLAS 39.
        """
        if not (is_complex(x.dtype) and is_complex(y.dtype)):
            return super().dot_general(x, y, **params)
        (_, b), (_, d) = self.parts(x), self.parts(y)
        dtype = params["preferred_element_type"] or x.dtype
        contracted = size_of([x.shape[i] for i in params["dimension_numbers"][0][0]])
        batch = size_of([x.shape[i] for i in params["dimension_numbers"][1][0]])
        work = x.size * y.size // contracted // batch
        if x.size == y.size == batch * contracted and contracted <= rooms.products.SMALL:
            found = rooms.products.of_vectors(self, x, y, params["dimension_numbers"])
            return self.convert(found, dtype)
        fast = work < WORK or (x.dtype == np.complex64 and rooms.products.tiled.have())
        for vector, matrix in ((x, y), (y, x)):
            if vector.size == batch * contracted < matrix.size and type(matrix) is not Pair:
                fast = fast and bool(self.path)
        if not (is_complex(dtype) and (fast or is_zero(b) or is_zero(d))):
            return super().dot_general(self.plain(x), self.plain(y), **params)
        return self._bilinear(super().dot_general, x, y, dtype, params)

    def convolution(self, x: Value, y: Value, **params: Any) -> Value:
        dtype = params["preferred_element_type"] or x.dtype
        if not (is_complex(x.dtype) and is_complex(y.dtype) and is_complex(dtype)):
            return super().convolution(x, y, **params)
        return self._bilinear(super().convolution, x, y, dtype, params)

    def _bilinear(
        self, times: Callable[..., Value], x: Value, y: Value, dtype: Any, params: dict[str, Any]
    ) -> Value:
        """Sums of products by those of parts."""
        (a, b), (c, d) = self.parts(x), self.parts(y)
        params = {**params, "preferred_element_type": PARTS[dtype]}
        re, im = times(a, c, **params), self.literal(0, PARTS[dtype])
        if not (is_zero(b) or is_zero(d)):
            re = self.binary("sub", re, times(b, d, **params))
            im = self.binary("add", times(a, d, **params), times(b, c, **params))
        elif not (is_zero(b) and is_zero(d)):
            im = times(b, c, **params) if is_zero(d) else times(a, d, **params)
        return self.pair(re, im, dtype)

    # Index maps: of an array they are views of it, of a pair views of both parts.

    def broadcast_in_dim(self, x: Value, shape: Ints, dims: Ints) -> Value:
        if type(x) is Pair:
            return self._each(lambda p: self.broadcast_in_dim(p, shape, dims), x)
        if is_complex(x.dtype):
            return broadcast(x, tuple(shape), dims)
        return super().broadcast_in_dim(x, shape, dims)

    def reshape(self, x: Value, shape: Ints) -> Value:
        if is_complex(x.dtype) and type(x) is not Pair:
            return self._reshaped(x, shape)
        if is_complex(x.dtype):
            return self._each(lambda p: self.reshape(p, shape), x)
        return super().reshape(x, shape)

    def transpose(self, x: Value, permutation: Ints) -> Value:
        if type(x) is Pair:
            return self._each(lambda p: self.transpose(p, permutation), x)
        if is_complex(x.dtype):
            return transposed(x, permutation)
        return super().transpose(x, permutation)

    def slice(self, x: Value, start: Ints, limit: Ints, strides: Ints) -> Value:
        if type(x) is Pair:
            return self._each(lambda p: self.slice(p, start, limit, strides), x)
        if is_complex(x.dtype):
            out = sliced(x, start, limit, strides)
            copied = x.node is self.once and x.node in self.laid
            return slice_of_copy(self, out) if copied else out
        return super().slice(x, start, limit, strides)

    def rev(self, x: Value, dims: Ints) -> Value:
        if type(x) is Pair:
            return self._each(lambda p: self.rev(p, dims), x)
        if is_complex(x.dtype):
            return reversed_along(x, dims)
        return super().rev(x, dims)

    # Reductions and moves.

    def reduce(self, monoid: str, x: Value, axes: Ints) -> Value:
        if not is_complex(x.dtype):
            return super().reduce(monoid, x, axes)
        if monoid in ("maximum", "minimum"):
            return rooms.complex_extrema.reduced(self, monoid, x, axes)
        if monoid == "multiply":
            return rooms.complex_products.multiplied(self, x, axes)
        two = halves.reduced(self, monoid, x, axes)
        return two or self._each(lambda p: self.reduce(monoid, p, axes), x)

    def cumulative(self, word: str, x: Value, axis: int, reverse: bool) -> Value:
        if not is_complex(x.dtype):
            return super().cumulative(word, x, axis, reverse)
        if word in ("add", "mul", "max", "min") and rooms.complex_folds.is_short(self, x, axis):
            return rooms.complex_folds.running(self, word, x, axis, reverse)
        if word in ("max", "min"):
            return rooms.complex_extrema.cumulative(self, word, x, axis, reverse)
        if word == "mul":
            return rooms.complex_products.running(self, x, axis, reverse)
        if word != "add":
            raise Unsupported(f"cumulative {word} of {x.dtype}")
        return self._each(lambda p: self.cumulative(word, p, axis, reverse), x)

    def sort(self, xs: Sequence[Value], axis: int, num_keys: int) -> list[Value]:
        keys = self._flat(xs[:num_keys])
        outs = super().sort([*keys, *self._flat(xs[num_keys:])], axis, len(keys))
        return self._packed(outs, [x.dtype for x in xs])

    def _pad(self, x: Value, value: Value, config: Any) -> Value:
        if type(x) is not Pair:
            return super()._pad(x, value, config)
        (re, im), (a, b) = self.parts(x), self.parts(value)
        first, second = self._padded(re, a, config), self._padded(im, b, config)
        if first is None or second is None:
            # Of a number, as in gradients of x[1:-1], what lies side by side is filled at once.
            number = re.node.word == im.node.word == "literal" and not self.path
            if self._is_moved_whole(x) or (number and padding.is_one_run(x, config)):
                return super()._pad(x, value, config)
            first, second = self.pad(re, a, config), self.pad(im, b, config)
        return self.pair(first, second, x.dtype)

    def _padded(self, x: Value, value: Value, config: Any) -> Value | None:
        """Numbers, or parts of them, padded as they are read, if that suits.

        Vectors too, as pieces of them would be pieces of parts, which a pass puts together.
        """
        zeros = all(map(is_zero, self.parts(value) if is_complex(x.dtype) else (value,)))
        return around.padded_around(self, x, config, lines=True) if zeros else None

    # Numbers of arrays move as they are; those of pairs, part by part.

    def _is_moved_whole(self, x: Value) -> bool:
        """Whether a group makes the parts, and had better put them together where they belong.

        Else padded or concatenated parts are arrays that a further pass puts together: the
        gradient of a roll of 333333 x 3 complex64 took 770 µs so (JAX 460). Loops carry parts.
        """
        made = [p.node.args and p.node.word not in APART for p in x.parts]
        return type(x) is not Pair or (not self.path and any(made))

    def _concatenate(self, xs: Sequence[Value], dim: int) -> Value:
        if not is_complex(xs[0].dtype) or any(map(self._is_moved_whole, xs)):
            return super()._concatenate([self.plain(x) for x in xs], dim)
        re, im = zip(*[self.parts(x) for x in xs], strict=True)
        return self.pair(self.concatenate(re, dim), self.concatenate(im, dim), xs[0].dtype)

    def dynamic_slice(self, x: Value, starts: Sequence[Value], sizes: Ints) -> Value:
        if type(x) is not Pair:
            return super().dynamic_slice(x, starts, sizes)
        return self._each(lambda p: self.dynamic_slice(p, starts, sizes), x)

    def dynamic_update_slice(self, x: Value, update: Value, starts: Sequence[Value]) -> Value:
        if type(x) is not Pair:
            return super().dynamic_update_slice(x, self.plain(update), starts)
        (re, im), (a, b) = self.parts(x), self.parts(update)
        first = self.dynamic_update_slice(re, a, starts)
        return self.pair(first, self.dynamic_update_slice(im, b, starts), x.dtype)

    def gather(self, x: Value, indices: Value, **params: Any) -> Value:
        if type(x) is not Pair:
            return super().gather(x, indices, **params)
        fill = params.pop("fill")
        fills = (None, None)
        if fill is not None:
            number = np.asarray(fill).astype(x.dtype)
            fills = number.real[()], number.imag[()]
        re, im = [
            self.gather(p, indices, fill=f, **params)
            for p, f in zip(self.parts(x), fills, strict=True)
        ]
        return self.pair(re, im, x.dtype)

    def scatter(self, word: str, x: Value, indices: Value, updates: Value, **params: Any) -> Value:
        if not is_complex(x.dtype):
            return super().scatter(word, x, indices, updates, **params)
        if self.path and type(x) is Pair and word in ("set", "add", "sub"):
            re, im = [
                self.scatter(word, p, indices, u, **params)
                for p, u in zip(self.parts(x), self.parts(updates), strict=True)
            ]
            return self.pair(re, im, x.dtype)
        # As numbers: by parts each index was taken twice, and a further pass put them together.
        return scatters.scatter(self, word, x, indices, updates, **params)

    # Control flow: carries and slices are parts.

    def _flat(self, values: Sequence[Value]) -> list[Value]:
        return [p for x in values for p in (self.parts(x) if is_complex(x.dtype) else (x,))]

    def _packed(self, values: Sequence[Value], dtypes: Sequence[Any]) -> list[Value]:
        rest = iter(values)
        return [
            self.pair(next(rest), next(rest), d) if is_complex(d) else next(rest) for d in dtypes
        ]

    def _region(self, region: Any, dtypes: Sequence[Any]) -> Any:
        return lambda k, *flat: self._flat(region(k, *self._packed(flat, dtypes)))

    def while_(self, cond: Any, body: Any, inits: Sequence[Value]) -> list[Value]:
        dtypes = [x.dtype for x in inits]
        outs = control.while_(
            self, self._region(cond, dtypes), self._region(body, dtypes), self._flat(inits)
        )
        return self._packed(outs, dtypes)

    def scan(
        self,
        body: Any,
        inits: Sequence[Value],
        xs: Sequence[Value],
        stacked: Sequence[Aval],
        length: int,
        reverse: bool,
    ) -> list[Value]:
        dtypes = [x.dtype for x in inits]
        given = [*dtypes, *[x.dtype for x in xs]]
        flat = [
            Aval(a.shape, d)
            for a in stacked
            for d in ([PARTS[a.dtype]] * 2 if is_complex(a.dtype) else [a.dtype])
        ]
        outs = control.scan(
            self, self._region(body, given), self._flat(inits), self._flat(xs), flat, length,
            reverse,
        )  # fmt: skip
        return self._packed(outs, [*dtypes, *[a.dtype for a in stacked]])

    def case(self, index: Value, branches: Sequence[Any]) -> list[Value]:
        dtypes: list[Any] = []

        def flattened(branch: Any) -> Any:
            def region(k: Any) -> list[Value]:
                values = branch(k)
                dtypes[:] = [x.dtype for x in values]
                return self._flat(values)

            return region

        outs = control.case(self, index, [flattened(b) for b in branches])
        return self._packed(outs, dtypes)


__all__ = ["ComplexWords", "Pair", "is_complex"]


def _is_number(x: Value) -> bool:
    """Whether the value is known not to be NaN."""
    return x.node.word == "literal" and not np.isnan(np.frombuffer(x.node.attr, x.node.dtype)[0])

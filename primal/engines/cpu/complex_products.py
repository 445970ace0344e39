"""Products of complex numbers along axes: of all of them, and running ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.base.structures import structure
from primal.engines.cpu.code import Module, itemsize
from primal.engines.cpu.floats import Floats
from primal.engines.cpu.graph import Value, size_of
from primal.engines.cpu.moves import held, name_of
from primal.engines.cpu.scans import blocks, sizes_along
from primal.engines.cpu.script import Int, Script, lanes_before, read_vector, write_vector


def multiplied(k: Any, x: Value, axes: Sequence[int]) -> Value:
    """The first half by the second, until one is left: no kernel has an accumulator for it."""
    kept = [i for i in range(x.ndim) if i not in axes]
    shape = tuple([x.shape[i] for i in kept])
    x = k.transpose(x, (*axes, *kept))
    x = k.reshape(x, (x.size // max(size_of(shape), 1), *shape))
    rest = None
    while (n := x.shape[0]) > 1:
        if n % 2:
            odd = _rows(k, x, n - 1, n)
            rest = odd if rest is None else k.binary("mul", rest, odd)
        x = k.binary("mul", _rows(k, x, 0, n // 2), _rows(k, x, n // 2, n // 2 * 2))
    return k.reshape(x if rest is None else k.binary("mul", rest, x), shape)


def _rows(k: Any, x: Value, start: int, stop: int) -> Value:
    first, last = [0] * x.ndim, list(x.shape)
    first[0], last[0] = start, stop
    return k.slice(x, first, last, [1] * x.ndim)


@structure
class ComplexProducts:
    """out[k] = x[0] · … · x[k], whose parts are arrays; words as of `scans.Scan`.

    As of real numbers the order decides whether they overflow on the way: one after another.
    """

    dtype: str
    reverse: bool
    across: bool

    def write(self, module: Module, name: str) -> None:
        item = itemsize(self.dtype)
        s = Script(module, module.width // item if self.across else 1)
        parts = [s.address() for _ in range(4)]
        n, row = s.words(2)
        inner, chunk, chunks = s.words(3)
        f = Floats(s, self.dtype)

        def unit(u: Int) -> None:
            base = (u // chunks) * row
            start = (u % chunks) * chunk
            stop = (start + chunk).least(inner)

            def column(i: Int) -> None:
                mask = lanes_before(s, stop - i) if self.across else ""

                def turn(j: str, now: list[str]) -> list[str]:
                    k = n - Int(s, j) - 1 if self.reverse else Int(s, j)
                    here = base + (k * inner + i) * item
                    a, b = now
                    c, d = [read_vector(s, self.dtype, p + here, mask) for p in parts[:2]]
                    made = [f.fma(a, c, f.neg(f.mul(b, d))), f.fma(a, d, f.mul(b, c))]
                    for part, value in zip(parts[2:], made, strict=True):
                        write_vector(s, self.dtype, value, part + here, mask)
                    return made

                k = n - 1 if self.reverse else Int(s, "0")
                here = base + (k * inner + i) * item
                first = [read_vector(s, self.dtype, p + here, mask) for p in parts[:2]]
                for part, value in zip(parts[2:], first, strict=True):
                    write_vector(s, self.dtype, value, part + here, mask)
                s.loop("1", n.name, "1", [(f.t, v) for v in first], turn)

            s.each(start, stop, column, s.lanes)

        s.units(unit)
        s.finish(name)


def running(k: Any, x: Value, axis: int, reverse: bool) -> Value:
    """x[0], x[0] · x[1], … along an axis, or from the end."""
    parts = [k.dense(held(k, part)) for part in k.parts(x)]
    dtype, avals = name_of(parts[0]), [part.aval for part in parts]
    outer, n, inner = sizes_along(parts[0].shape, axis)
    chunk, chunks = blocks(inner, n, 2 * itemsize(dtype))
    made = k.routine(
        ComplexProducts(dtype, reverse, inner > 1), parts, avals,
        [n, n * inner * itemsize(dtype), inner, chunk, chunks], units=outer * chunks,
        cost=4 * n * min(inner, chunk), reuses=((0, 0), (1, 1)), name="cumprod",
    )  # fmt: skip
    return k.pair(*made, x.dtype)

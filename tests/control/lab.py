"""Programs with control flow beside the same programs unrolled in Python, and stacks of
transformations to compare the two under."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import primal
import primal.numpy as jnp
from primal import grad, jit, jvp, lax, vmap
from primal.base.pytree import tree_leaves
from primal.ir.check import check_closed

Fun = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Program:
    """`looped` and `unrolled` compute the same trees of arrays; all arguments are floats."""

    name: str
    looped: Fun
    unrolled: Fun
    args: tuple[Any, ...]
    reverse_mode: bool = True


def draw(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.RandomState(sum(shape) + len(shape)).uniform(-1, 1, shape).astype(np.float32)


PROGRAMS: list[Program] = []


def program(*args: Any, reverse_mode: bool = True) -> Callable[[Fun], Fun]:
    """Register the (looped, unrolled) pair that the decorated function returns."""

    def add(make: Fun) -> Fun:
        looped, unrolled = make()
        PROGRAMS.append(Program(make.__name__, looped, unrolled, args, reverse_mode))
        return make

    return add


def loop(f: Fun, init: Any, xs: Any, n: int, reverse: bool = False) -> Any:
    """The meaning of scan, in Python."""
    ys = []
    carry = init
    for i in reversed(range(n)) if reverse else range(n):
        carry, y = f(carry, None if xs is None else primal.tree.map(lambda x, i=i: x[i], xs))
        ys.append(y)
    if reverse:
        ys.reverse()
    return carry, primal.tree.map(lambda *rows: jnp.stack(rows), *ys)


@program(draw(3, 3), draw(3), draw(4, 3))
def recurrent() -> Any:
    def step(w: Any) -> Fun:
        def f(h: Any, x: Any) -> Any:
            h = jnp.tanh(w @ h + x)
            return h, h * x

        return f

    return (
        lambda w, h, xs: lax.scan(step(w), h, xs),
        lambda w, h, xs: loop(step(w), h, xs, 4),
    )


@program(draw(2), draw(5, 2))
def backwards_and_unrolled() -> Any:
    def f(c: Any, x: Any) -> Any:
        return jnp.sin(c) * x["a"], {"y": c, "z": (None, c * x["a"])}

    return (
        lambda c, a: lax.scan(f, c, {"a": a}, reverse=True, unroll=2),
        lambda c, a: loop(f, c, {"a": a}, 5, reverse=True),
    )


@program(draw(3))
def without_xs() -> Any:
    def f(c: Any, _: Any) -> Any:
        return jnp.cos(c) + 0.1 * c, None

    return lambda c: lax.scan(f, c, None, length=3), lambda c: loop(f, c, None, 3)


@program(draw(2), draw(2), draw(3))
def counter_and_unchanged_carry() -> Any:
    # The weights are carried along unchanged, the counter is an integer.
    def f(c: Any, x: Any) -> Any:
        i, w, h = c
        return (i + 1, w, h * w * (i + 1.0) + x), h

    def outputs(result: Any) -> Any:
        (_, w, h), ys = result
        return w, h, ys

    return (
        lambda w, h, xs: outputs(lax.scan(f, (0, w, h), xs)),
        lambda w, h, xs: outputs(loop(f, (0, w, h), xs, 3)),
    )


@program(draw(2), draw(3, 2))
def same_arrays_in_and_out() -> Any:
    def f(c: Any, x: Any) -> Any:
        return c, (c, x, x)

    return lambda c, xs: lax.scan(f, c, (xs)), lambda c, xs: loop(f, c, xs, 3)


@program(draw(2), draw(3, 2))
def zero_steps() -> Any:
    def f(c: Any, x: Any) -> Any:
        return c * x, c + x

    return (
        lambda c, xs: lax.scan(f, c, xs[:0]),
        lambda c, xs: (c, xs[:0]),
    )


@program(draw(3))
def known_bounds() -> Any:
    def body(i: Any, x: Any) -> Any:
        return jnp.sin(x) * (i + 1)

    def unrolled(x: Any) -> Any:
        for i in range(2, 5):
            x = body(i, x)
        return x

    return lambda x: lax.fori_loop(2, 5, body, x), unrolled


@program(draw(3), reverse_mode=False)
def computed_bounds() -> Any:
    def looped(x: Any) -> Any:
        n = jnp.sum(x * 0.0 + 1.0).astype("int32")
        return lax.fori_loop(0, n, lambda i, x: jnp.sin(x) * (i + 1), x)

    return looped, lambda x: jnp.sin(jnp.sin(jnp.sin(x) * 1) * 2) * 3


@program(draw(3), draw(3), reverse_mode=False)
def until_it_is_large() -> Any:
    def unrolled(x: Any, y: Any) -> Any:
        # 1.5 ** k > 20 for k = 8.
        for _ in range(8):
            x, y = x * y + y, y * 1.5
        return x, y

    def looped(x: Any, y: Any) -> Any:
        def go_on(c: Any) -> Any:
            return c[0] < 20

        def body(c: Any) -> Any:
            n, x, z = c
            return n * 1.5, x * z + z, z * 1.5

        return lax.while_loop(go_on, body, (1.0, x, y))[1:]

    return looped, unrolled


@program(draw(2), draw(5, 2))
def choice_in_a_loop() -> Any:
    def step(cond: Fun) -> Fun:
        def f(c: Any, x: Any) -> Any:
            i, h = c
            h = cond(i % 2 == 0, lambda h: jnp.sin(h) * x, lambda h: h + x * x, h)
            return (i + 1, h), h * h

        return f

    def chosen(p: bool, yes: Fun, no: Fun, *args: Any) -> Any:
        return yes(*args) if p else no(*args)

    return (
        lambda c, xs: pick_floats(lax.scan(step(lax.cond), (0, c), xs)),
        lambda c, xs: pick_floats(loop(step(chosen), (0, c), xs, 5)),
    )


def pick_floats(result: Any) -> Any:
    (_, h), ys = result
    return h, ys


@program(draw(2), draw(4, 2))
def choice_among_three() -> Any:
    which = np.array([2, 0, 7, -1], np.int32)  # the last two are out of range and clamp
    branches = [lambda h, x: h * x, lambda h, x: h, lambda h, x: jnp.exp(h) + x]

    def f(c: Any, x: Any) -> Any:
        h = lax.switch(x[0], branches, c, x[1])
        return h, c

    def unrolled(c: Any, xs: Any) -> Any:
        ys = []
        for i, w in enumerate([2, 0, 2, 0]):
            ys.append(c)
            c = branches[w](c, xs[i])
        return c, jnp.stack(ys)

    return lambda c, xs: lax.scan(f, c, (which, xs)), unrolled


@program(draw(2), draw(3, 2))
def loop_in_a_choice() -> Any:
    def looped(c: Any, xs: Any) -> Any:
        def summed(c: Any, xs: Any) -> Any:
            return lax.scan(lambda c, x: (c * x + 1.0, None), c, xs)[0]

        return lax.cond(xs[0, 0] > -5, summed, lambda c, xs: c, c, xs)

    def unrolled(c: Any, xs: Any) -> Any:
        return ((c * xs[0] + 1.0) * xs[1] + 1.0) * xs[2] + 1.0

    return looped, unrolled


@program(draw(2), draw(3, 2), draw(2))
def loop_in_a_loop() -> Any:
    def outer(scan: Fun) -> Fun:
        def run(c: Any, xs: Any, w: Any) -> Any:
            def inner(h: Any, v: Any) -> Any:
                return h * v + jnp.sin(w), h * w

            def f(c: Any, x: Any) -> Any:
                h, hs = scan(inner, c, jnp.stack([x, x * w]))
                return h, hs

            return scan(f, c, xs)

        return run

    return outer(lax.scan), outer(lambda f, c, xs: loop(f, c, xs, xs.shape[0]))


@program(draw(2), draw(3, 2))
def jit_in_a_loop() -> Any:
    w = jnp.asarray(draw(2))

    @jit
    def g(c: Any, x: Any) -> Any:
        return jnp.tanh(c * x) + w

    return (
        lambda c, xs: lax.scan(lambda c, x: (g(c, x), c), c, xs),
        lambda c, xs: loop(lambda c, x: (jnp.tanh(c * x) + w, c), c, xs, 3),
    )


@program(draw(3, 2))
def mapped() -> Any:
    return (
        lambda xs: lax.map(lambda x: {"s": jnp.sin(x) * x}, xs),
        lambda xs: {"s": jnp.sin(xs) * xs},
    )


@program(draw(5))
def prefixes() -> Any:
    def unrolled(x: Any) -> Any:
        out = [x[0]]
        for i in range(1, 5):
            out.append(out[-1] * x[i])
        return jnp.stack(out)

    return lambda x: lax.associative_scan(jnp.multiply, x), unrolled


@primal.custom_jvp
def own_sine(x: Any) -> Any:
    return jnp.sin(x)


own_sine.defjvp(lambda p, t: (jnp.sin(p[0]), 2.0 * jnp.cos(p[0]) * t[0]))


@program(draw(2), draw(3, 2))
def own_tangents() -> Any:
    # f with the value of sin and twice its slope, of any order: 2·sin - stopped sin has neither
    # right, so the unrolled program uses the same function outside of any loop.
    def f(c: Any, x: Any) -> Any:
        return own_sine(c * x), c

    return lambda c, xs: lax.scan(f, c, xs), lambda c, xs: loop(f, c, xs, 3)


@primal.custom_vjp
def tripled_slope(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y


tripled_slope.defvjp(
    lambda x, y: (jnp.sin(x) * y, (x, y)),
    lambda r, ct: (3.0 * ct * jnp.cos(r[0]) * r[1], 3.0 * ct * jnp.sin(r[0])),
)


@program(draw(2), draw(3, 2), draw(2))
def own_cotangents() -> Any:
    def step(w: Any) -> Fun:
        def f(c: Any, x: Any) -> Any:
            return tripled_slope(c * x, w), c

        return f

    return (
        lambda c, xs, w: lax.scan(step(w), c, xs),
        lambda c, xs, w: loop(step(w), c, xs, 3),
    )


FORWARD_FAILS = {"own_cotangents"}


def total(out: Any) -> Any:
    """A scalar that depends on every element of a tree, differently."""
    result = jnp.float32(0)
    for k, leaf in enumerate(tree_leaves(out)):
        result = result + jnp.sum(leaf * (1.0 + 0.3 * k)) + 0.1 * jnp.sum(leaf * leaf)
    return result


def scalar(f: Fun) -> Fun:
    return lambda *args: total(f(*args))


def gradient(f: Fun) -> Fun:
    """With respect to all arguments."""
    return lambda *args: grad(scalar(f), tuple(range(len(args))))(*args)


def pushed(f: Fun) -> Fun:
    """Value and tangent along the arguments' sines."""
    return lambda *args: jvp(f, args, tuple([jnp.sin(a) for a in args]))


def over_first(f: Fun) -> Fun:
    """vmap over the first argument, whose examples are made here."""
    return lambda x, *rest: vmap(f, (0, *[None] * len(rest)))(
        jnp.stack([x, x * 0.5, -x]), *rest
    )


def over_last_axis(f: Fun) -> Fun:
    """vmap over the last argument, examples along its last axis."""
    return lambda *args: vmap(f, (*[None] * (len(args) - 1), -1), -1)(
        *args[:-1], jnp.stack([args[-1], args[-1] * 0.5], -1)
    )


FORWARD = {
    "value": lambda f: f,
    "jit": jit,
    "vmap": over_first,
    "vmap last": over_last_axis,
    "jit vmap": lambda f: jit(over_first(f)),
    "jvp": pushed,
    "jvp jit": lambda f: pushed(jit(f)),
    "jvp jvp": lambda f: pushed(pushed(f)),
    "vmap jvp": lambda f: over_first(pushed(f)),
    "jvp vmap": lambda f: pushed(over_last_axis(f)),
    "jit vmap jvp": lambda f: jit(over_first(pushed(f))),
}
REVERSE = {
    "grad": gradient,
    "jit grad": lambda f: jit(gradient(f)),
    "grad jit": lambda f: gradient(jit(f)),
    "vmap grad": lambda f: over_first(gradient(f)),
    "grad vmap": lambda f: gradient(over_last_axis(f)),
    "jit grad vmap": lambda f: jit(gradient(over_first(f))),
    "jit vmap grad": lambda f: jit(over_last_axis(gradient(f))),
    "grad grad": lambda f: gradient(gradient(f)),
    "jit grad grad": lambda f: jit(gradient(gradient(f))),
}
MIXED = {
    "jvp grad": lambda f: pushed(gradient(f)),
    "grad jvp": lambda f: gradient(pushed(f)),
    "jit vmap jvp grad": lambda f: jit(over_first(pushed(gradient(f)))),
    "grad vmap jvp": lambda f: gradient(over_last_axis(pushed(f))),
}


def stacks_for(p: Program) -> dict[str, Callable[[Fun], Fun]]:
    """The transformations that the program admits."""
    found = {} if p.name in FORWARD_FAILS else dict(FORWARD)
    if p.name in FORWARD_FAILS:
        found.update({k: f for k, f in FORWARD.items() if "jvp" not in k})
    if p.reverse_mode:
        found.update(REVERSE)
        if p.name not in FORWARD_FAILS:
            found.update(MIXED)
    return found


def check_program(f: Fun, args: tuple[Any, ...]) -> Any:
    """The jaxpr of f, checked."""
    closed = primal.make_jaxpr(f)(*args)
    check_closed(closed)
    return closed

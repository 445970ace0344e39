"""The incomplete gamma and beta functions of float32, computed in float64.

Series and fractions run until every lane of a vector has its digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from primal.engines.cpu.functions.exponentials import exp, expm1, log, log1p
from primal.engines.cpu.functions.floats import Floats, branch, wide
from primal.engines.cpu.functions.special import erfc

_INF, _NAN = float("inf"), float("nan")
LOG_TWO_PI = math.log(2 * math.pi)
DIGITS = 2.0**-33
"""What does not count beside a float32, a hundred times over: so slowly do terms fall."""
FINE = 2.0**-42
"""The same where terms fall more slowly."""
LARGE = 1e6
"""Shapes from which the normal distribution and its first correction give a float32."""
LIMIT = 10_000
"""Terms: for shapes up to `LARGE`, some 6·√a are needed next to x = a."""
SLOW = 40_000
"""The same of the beta function: all of them for b < 1e-6 and x next to 1."""
# log Γ(y) less Stirling's formula, in powers of 1/y², times 1/y.
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)
PSI = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760)
# log Γ(1 + a) / a in powers of a, for a < 0.01: -γ, then ζ(k)·(-1)^k / k.
_LOG_GAMMA_OF_ONE = (
    -0.5772156649015329, 0.8224670334241132, -0.40068563438653143, 0.27058080842778454,
    -0.20738555102867398, 0.1695571769974082,
)  # fmt: skip
# Temme's first coefficient in powers of η.
_TEMME = (-1 / 3, 1 / 12, -2 / 135, 1 / 864)


def repeated(
    f: Floats, active: str, state: Sequence[str],
    step: Callable[[str, Sequence[str]], tuple[str, Sequence[str]]], limit: int,
) -> list[str]:  # fmt: skip
    """`active, state = step(i, state)` for i = 1, 2, … in the lanes that are active."""
    c = f.c
    head, inside, after = c.label("head"), c.label("inside"), c.label("after")
    before = c.block
    c.do(f"br label %{head}")
    c.start(head)
    at = len(c.lines)
    types = ["i64", c.vec("i1"), *[f.t] * len(state)]
    names = [f"%p{c.count + i}" for i in range(len(types))]
    c.count += len(names)
    c.lines.extend([""] * len(names))
    count, mask, *now = names
    some = f.any(mask)
    below = c.new(f"icmp slt i64 {count}, {limit}")
    c.do(f"br i1 {c.new(f'and i1 {some}, {below}')}, label %{inside}, label %{after}")
    c.start(inside)
    following = c.new(f"add i64 {count}, 1")
    i = c.splat(f.scalar, c.new(f"sitofp i64 {following} to {f.scalar}"))
    more, new = step(i, now)
    kept = [f.where(mask, n, o) for n, o in zip(new, now, strict=True)]
    more = f.both(mask, more)
    back = c.block
    c.do(f"br label %{head}")
    for k, (name, t, first, last) in enumerate(
        zip(names, types, ["0", active, *state], [following, more, *kept], strict=True)
    ):
        c.lines[at + k] = f"  {name} = phi {t} [ {first}, %{before} ], [ {last}, %{back} ]"
    c.start(after)
    return now


def without(f: Floats, mask: str, other: str) -> str:
    """The lanes of a mask that another has not."""
    every = f.c.const("i1", "true")
    return f.both(mask, f.c.new(f"xor {f.c.vec('i1')} {other}, {every}"))


def either(f: Floats, a: str, b: str) -> str:
    return f.c.new(f"or {f.c.vec('i1')} {a}, {b}")


def log_density(f: Floats, a: str, x: str) -> tuple[str, str]:
    """log(x^a·e^-x/Γ(a + 1)), without a·log(x) and log Γ cancelling each other for large a.

    And its derivative by a.
    """
    large = f.test("ogt", a, 20.0)
    y = f.where(large, a, f.add(a, 9.0))
    inverse = f.div(1.0, y)
    stirling = f.mul(inverse, f.poly(f.mul(inverse, inverse), STIRLING))
    log_y = log(f, y)
    ratio = f.div(f.sub(x, a), a)
    log_x = log(f, x)
    log_ratio = log1p(f, f.where(large, ratio, 0.0))
    # Of x/a, whose difference from 1 has no digits of a small quotient.
    log_ratio = f.where(f.test("olt", ratio, -0.5), f.sub(log_x, log_y), log_ratio)
    near = f.mul(a, f.sub(log_ratio, ratio))
    near = f.sub(near, f.fma(f.add(log_y, LOG_TWO_PI), 0.5, stirling))
    # Γ(a + 9) is Γ(a + 1) times this; ψ is less by its logarithmic derivative.
    product, slope = f.add(a, 1.0), f.k(1.0)
    for k in range(2, 9):
        factor = f.add(a, float(k))
        product, slope = f.mul(product, factor), f.fma(slope, factor, product)
    gamma = f.fma(f.sub(y, 0.5), log_y, f.sub(0.5 * LOG_TWO_PI, y))
    gamma = f.sub(f.add(gamma, stirling), log(f, f.where(large, 1.0, product)))
    small = f.sub(f.fma(f.where(large, 1.0, a), log_x, f.neg(x)), gamma)
    # ψ(y) is log y, less this; ψ(a + 1) is ψ(a) and 1/a.
    psi = f.mul(inverse, f.fma(inverse, f.poly(f.mul(inverse, inverse), PSI), 0.5))
    change = f.add(f.sub(log_x, log_y), f.add(psi, f.div(slope, product)))
    change = f.where(large, f.add(log_ratio, f.sub(psi, inverse)), change)
    return f.where(large, near, small), change


def _series(f: Floats, a: str, x: str, active: str) -> str:
    """1 + x/(a + 1) + x²/((a + 1)(a + 2)) + …"""

    def step(i: str, state: Sequence[str]) -> tuple[str, Sequence[str]]:
        term = f.div(f.mul(state[0], x), f.add(a, i))
        total = f.add(state[1], term)
        return f.test("ogt", term, f.mul(total, DIGITS)), (term, total)

    return repeated(f, active, [f.k(1.0)] * 2, step, LIMIT)[1]


def _fraction(f: Floats, a: str, x: str, active: str) -> str:
    """1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - …))), by numerators and denominators."""
    from_a = f.sub(f.add(x, 1.0), a)

    def step(i: str, state: Sequence[str]) -> tuple[str, Sequence[str]]:
        p0, q0, p1, q1 = state
        down, by = f.mul(i, f.sub(a, i)), f.fma(i, 2.0, from_a)
        p, q = f.fma(p1, by, f.mul(p0, down)), f.fma(q1, by, f.mul(q0, down))
        # |p/q - p1/q1| counts beside p/q.
        change = f.abs(f.sub(f.mul(p, q1), f.mul(p1, q)))
        more = f.test("ogt", change, f.mul(f.abs(f.mul(p, q1)), DIGITS))
        scale = f.where(f.test("ogt", f.abs(q), 2.0**250), 2.0**-300, 1.0)
        return more, [f.mul(v, scale) for v in (p1, q1, p, q)]

    state = [f.k(0.0), f.k(1.0), f.k(1.0), from_a]
    _, _, p, q = repeated(f, active, state, step, LIMIT)
    return f.div(p, q)


def _by_normal(f: Floats, a: str, x: str, lower: bool) -> str:
    """P or Q of large shapes: Temme's uniform expansion (1979), of which one term is enough."""
    ratio = f.div(f.sub(x, a), a)
    half_square = f.sub(ratio, log1p(f, ratio))
    half_square = f.where(f.test("olt", half_square, 0.0), 0.0, half_square)
    eta = f.signed(f.sqrt(f.mul(half_square, 2.0)), ratio)
    power = f.mul(half_square, a)
    far = f.signed(f.sqrt(power), ratio)
    rest = f.div(exp(f, f.neg(power)), f.sqrt(f.mul(a, 2 * math.pi)))
    rest = f.mul(rest, f.poly(f.where(f.test("olt", f.abs(eta), 0.1), eta, 0.0), _TEMME))
    # P has the mirrored normal distribution and loses what Q gains.
    tail = erfc(f, f.neg(far) if lower else far)
    return f.fma(tail, 0.5, f.neg(rest) if lower else rest)


def _upper_of_little(f: Floats, a: str, x: str) -> str:
    """Q for a < 0.01, x <= 1, where P is 1 but for a: 1 - x^a/Γ(1 + a)·(1 + a·Σ…)."""
    level = f.mul(a, f.sub(log(f, x), f.poly(a, _LOG_GAMMA_OF_ONE)))
    out = f.neg(expm1(f, level))
    term, total = f.k(1.0), f.k(0.0)
    for n in range(1, 13):
        term = f.mul(term, f.mul(x, -1.0 / n))
        total = f.add(total, f.div(term, f.add(a, float(n))))
    return f.sub(out, f.mul(f.mul(a, exp(f, level)), total))


def _incomplete(f: Floats, a: str, x: str, lower: bool) -> str:
    inside = f.both(f.test("ogt", x, 0.0), f.test("ogt", a, 0.0))
    inside = f.both(inside, f.both(f.test("olt", x, _INF), f.test("olt", a, _INF)))
    given = a, x
    a, x = f.where(inside, a, 1.0), f.where(inside, x, 0.5)
    beyond = f.both(f.test("ogt", x, 1.0), f.test("ogt", x, a))
    large = f.test("ogt", a, LARGE)
    usual = without(f, inside, large)
    density = exp(f, log_density(f, a, x)[0])
    below = f.mul(density, _series(f, a, x, without(f, usual, beyond)))
    above = f.mul(f.mul(density, a), _fraction(f, a, x, f.both(usual, beyond)))
    if lower:
        out = f.where(beyond, f.sub(1.0, above), below)
    else:
        out = f.where(beyond, above, f.sub(1.0, below))
        little = without(f, f.both(usual, f.test("olt", a, 0.01)), beyond)
        out = branch(f, little, out, lambda: _upper_of_little(f, a, x))
    out = branch(f, large, out, lambda: _by_normal(f, a, x, lower))
    # P(a, 0) = 0, P(a, ∞) = 1, P(0, x) = 1, P(∞, x) = 0; 0 and 0, or ∞ and ∞, say nothing.
    a, x = given
    none, whole = (0.0, 1.0) if lower else (1.0, 0.0)
    out = f.where(inside, out, none)
    out = f.where(either(f, f.test("oeq", a, 0.0), f.test("oeq", x, _INF)), whole, out)
    bad = either(f, f.test("ult", x, 0.0), f.test("ult", a, 0.0))
    for v in (0.0, _INF):
        bad = either(f, bad, f.both(f.test("oeq", a, v), f.test("oeq", x, v)))
    return f.where(bad, _NAN, out)


@wide
def igamma(f: Floats, a: str, x: str) -> str:
    return _incomplete(f, a, x, True)


@wide
def igammac(f: Floats, a: str, x: str) -> str:
    return _incomplete(f, a, x, False)


def _binet(f: Floats, a: str) -> str:
    """log Γ(a) less (a - ½)·log(a) - a + ½·log(2π)."""
    large = f.test("ogt", a, 20.0)
    y, z = f.where(large, a, f.add(a, 9.0)), f.where(large, 1.0, a)
    inverse = f.div(1.0, y)
    stirling = f.mul(inverse, f.poly(f.mul(inverse, inverse), STIRLING))
    product = z
    for k in range(1, 9):
        product = f.mul(product, f.add(z, float(k)))
    moved = f.fma(f.sub(y, 0.5), log(f, y), f.sub(f.sub(stirling, 9.0), log(f, product)))
    return f.where(large, stirling, f.sub(moved, f.mul(f.sub(z, 0.5), log(f, z))))


def _beta_fraction(f: Floats, a: str, b: str, x: str, gap: str, active: str) -> str:
    """1/(β₀ + α₁/(β₁ + α₂/(β₂ + …))) by Didonato and Morris (1992), whose terms are positive.

    gap: 1 + a·(1 - x) - b·x, which is so as x is below the mean.
    """
    total, from_x = f.add(a, b), f.sub(2.0, x)

    def step(m: str, state: Sequence[str]) -> tuple[str, Sequence[str]]:
        p0, q0, p1, q1 = state
        last = f.sub(m, 1.0)
        here = f.add(a, m)
        down = f.add(here, last)
        u = f.div(f.mul(f.mul(m, x), f.sub(b, m)), down)
        more = f.mul(f.mul(u, x), f.div(f.add(a, last), down))
        more = f.mul(more, f.add(total, last))
        by = f.div(f.mul(here, f.fma(m, from_x, gap)), f.add(down, 2.0))
        by = f.add(f.add(m, u), by)
        p, q = f.fma(p1, by, f.mul(p0, more)), f.fma(q1, by, f.mul(q0, more))
        change = f.abs(f.sub(f.mul(q, p1), f.mul(q1, p)))
        going = f.test("ogt", change, f.mul(f.abs(f.mul(q, p1)), FINE))
        scale = f.where(f.test("ogt", f.abs(p), 2.0**250), 2.0**-300, 1.0)
        return going, [f.mul(v, scale) for v in (p1, q1, p, q)]

    start = f.mul(f.div(a, f.add(a, 1.0)), gap)
    _, _, p, q = repeated(f, active, [f.k(1.0), f.k(0.0), start, f.k(1.0)], step, SLOW)
    return f.div(q, p)


def _beta_by_normal(f: Floats, a: str, b: str, r: str, s: str, level: str) -> str:
    """I_x of large shapes, by Temme: r and s are x and 1 - x over their means, less 1."""
    n = f.add(a, b)
    power = f.neg(f.where(f.test("olt", level, 0.0), level, 0.0))
    eta = f.signed(f.sqrt(f.div(f.mul(power, 2.0), n)), r)
    # The standard deviation of one trial, times what x is off its mean.
    deviation = f.sqrt(f.mul(f.div(a, n), f.div(b, n)))
    off = f.mul(r, f.div(a, n))
    near = f.both(f.test("olt", f.abs(r), 1e-4), f.test("olt", f.abs(s), 1e-4))
    apart = f.sub(f.div(1.0, eta), f.div(deviation, off))
    close = f.div(f.sub(b, a), f.mul(f.mul(n, deviation), 3.0))
    first = f.div(f.where(near, close, apart), f.sqrt(f.mul(n, 2 * math.pi)))
    tail = erfc(f, f.neg(f.signed(f.sqrt(power), r)))
    return f.fma(tail, 0.5, f.mul(exp(f, f.neg(power)), first))


@wide
def betainc(f: Floats, a: str, b: str, x: str) -> str:
    inside = f.both(f.test("ogt", x, 0.0), f.test("olt", x, 1.0))
    for v in (a, b):
        inside = f.both(inside, f.both(f.test("ogt", v, 0.0), f.test("olt", v, _INF)))
    given = a, b, x
    a, b, x = f.where(inside, a, 1.0), f.where(inside, b, 1.0), f.where(inside, x, 0.5)
    y, n = f.sub(1.0, x), f.add(a, b)
    # x^a·(1-x)^b/B(a, b), without the powers and Γ cancelling each other for large shapes.
    rest = f.mul(y, a)
    off = f.fma(x, b, f.neg(rest))
    # What y and the product were rounded by is as much as the distance for shapes of 1e20.
    off = f.sub(off, f.fma(a, f.sub(f.sub(1.0, y), x), f.fma(y, a, f.neg(rest))))
    r, s = f.div(off, a), f.neg(f.div(off, b))
    level = f.k(0.0)
    for shape, part, ratio in ((a, x, r), (b, y, s)):
        small = f.test("olt", ratio, -0.5)
        log_ratio = log1p(f, f.where(small, 0.0, ratio))
        apart = branch(
            f, small, log_ratio, lambda: f.add(log(f, part), log(f, f.div(n, shape)))  # noqa: B023
        )
        lost = f.mul(f.mul(ratio, ratio), f.poly(ratio, (-1 / 2, 1 / 3, -1 / 4, 1 / 5, -1 / 6)))
        near = f.test("olt", f.abs(ratio), 1e-3)
        level = f.fma(shape, f.where(near, lost, f.sub(apart, ratio)), level)
    scale = f.sub(_binet(f, n), f.add(_binet(f, a), _binet(f, b)))
    density = f.sqrt(f.mul(a, f.div(f.div(b, n), 2 * math.pi)))
    density = f.mul(density, exp(f, f.add(level, scale)))
    # From the nearer end, but for what is left of 1 where the other shape is next to 0.
    swapped = f.test("ogt", off, f.sub(1.0, f.mul(x, 2.0)))
    swapped = f.both(swapped, f.test("ogt", b, 1e-6))
    large = f.both(f.test("ogt", a, LARGE), f.test("ogt", b, LARGE))
    p, q, z = f.where(swapped, b, a), f.where(swapped, a, b), f.where(swapped, y, x)
    gap = f.sub(1.0, f.where(swapped, f.neg(off), off))
    out = f.mul(density, _beta_fraction(f, p, q, z, gap, without(f, inside, large)))
    out = f.where(swapped, f.sub(1.0, out), out)
    out = branch(f, large, out, lambda: _beta_by_normal(f, a, b, r, s, level))
    # The ends of [0, 1]; all mass at 1 for a = ∞ or b = 0, at 0 for b = ∞ or a = 0.
    a, b, x = given
    low = either(f, f.test("oeq", a, 0.0), f.test("oeq", b, _INF))
    low = f.both(low, f.test("ogt", x, 0.0))
    edge = f.where(either(f, low, f.test("oeq", x, 1.0)), 1.0, 0.0)
    out = f.where(inside, out, edge)
    bad = either(f, f.test("ult", x, 0.0), f.test("ugt", x, 1.0))
    bad = either(f, bad, either(f, f.test("ult", a, 0.0), f.test("ult", b, 0.0)))
    for v in (0.0, _INF):
        bad = either(f, bad, f.both(f.test("oeq", a, v), f.test("oeq", b, v)))
    return f.where(bad, _NAN, out)

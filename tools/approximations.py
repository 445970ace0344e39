"""Prints `primal/ops/special/tables.py`: coefficients of polynomials and quotients of them.

    python tools/approximations.py > primal/ops/special/tables.py

Needs mpmath. Each function interpolates at Chebyshev's points, with 200 bits; a quotient of degree
n at 2n + 1 of them. Beside each table stands its largest error, relative and before rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath as mp

mp.mp.prec = 200
Function = Callable[[mp.mpf], mp.mpf]
SHIFT = mp.mpf("1.25")
HUGE = mp.mpf(10) ** 25
TEXT = '''\
"""Coefficients of approximations; written by `tools/approximations.py`, which says of what.

Lowest power first: those of float32, then those of float64.
"""

# fmt: off'''


def points(count: int, low: float, high: float) -> list[mp.mpf]:
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    return [middle + half * mp.cos(mp.pi * (k + mp.mpf(1) / 2) / count) for k in range(count)]


def polynomial(f: Function, low: float, high: float, n: int) -> list[list[mp.mpf]]:
    xs = points(n + 1, low, high)
    rows = mp.matrix([[x**j for j in range(n + 1)] for x in xs])
    return [list(mp.lu_solve(rows, mp.matrix([f(x) for x in xs])))]


def quotient(f: Function, low: float, high: float, n: int) -> list[list[mp.mpf]]:
    """Both of degree n; the denominator begins with 1."""
    xs = points(2 * n + 1, low, high)
    values = [f(x) for x in xs]
    rows = [
        [x**j for j in range(n + 1)] + [-v * x**j for j in range(1, n + 1)]
        for x, v in zip(xs, values, strict=True)
    ]
    found = list(mp.lu_solve(mp.matrix(rows), mp.matrix(values)))
    return [found[: n + 1], [mp.mpf(1), *found[n + 1 :]]]


def asymptotic(ratio: Function, count: int = 80) -> mp.mpf:
    """1 + r(0)·(1 + r(1)·(1 + …)), as far as its terms fall."""
    total, term = mp.mpf(0), mp.mpf(1)
    for k in range(count):
        total += term
        after = term * ratio(k)
        if abs(after) > abs(term):
            break
        term = after
    return total


def line(f: Function, low: float, high: float) -> Function:
    """f of t from -1 to 1."""
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    return lambda t: f(middle + half * t)


# x·Γ(x)·e^x·(x + h)^(-x - ½) in u = h/(x + h), and (log(x + h) - 1/x - ψ(x))/u.


def lanczos(u: mp.mpf) -> mp.mpf:
    x = SHIFT / u - SHIFT
    return mp.exp(mp.loggamma(1 + x) + x - (x + mp.mpf(1) / 2) * mp.log(x + SHIFT))


def lanczos_slope(u: mp.mpf) -> mp.mpf:
    x = SHIFT / u - SHIFT
    return (mp.log(x + SHIFT) - mp.digamma(1 + x)) / u


def erfcx(k: mp.mpf) -> Function:
    """(k + x)·e^(x²)·erfc(x) in t = (x - k)/(x + k)."""

    def f(t: mp.mpf) -> mp.mpf:
        x = k * (1 + t) / (1 - t)
        if x < 30:
            return (k + x) * mp.exp(x * x) * mp.erfc(x)
        return (1 + k / x) / mp.sqrt(mp.pi) * asymptotic(lambda j: -(2 * j + 1) / (2 * x * x))

    return f


def erfcx_slope(k: int) -> Function:
    """-(½ + x)²·(2x·erfcx(x) - 2/√π), what erfcx falls by, in t = (x - k)/(x + k)."""

    def f(t: mp.mpf) -> mp.mpf:
        x = k * (1 + t) / (1 - t)
        if x < 30:
            slope = 2 / mp.sqrt(mp.pi) - 2 * x * mp.exp(x * x) * mp.erfc(x)
            return slope * (mp.mpf(1) / 2 + x) ** 2
        level = asymptotic(lambda j: -(2 * j + 3) / (2 * x * x)) / mp.sqrt(mp.pi)
        return level * (1 + 1 / (2 * x)) ** 2

    return f


def dawson(square: mp.mpf) -> mp.mpf:
    """F(x)/x in x²."""
    x = mp.sqrt(square)
    return mp.sqrt(mp.pi) / 2 * mp.exp(-square) * mp.erfi(x) / x


def dawson_far(v: mp.mpf) -> mp.mpf:
    """2x·F(x) in 1/x²."""
    x2 = 1 / v if v > 1 / HUGE else HUGE
    if x2 < 1600:
        return 2 * x2 * dawson(x2)
    return asymptotic(lambda j: (2 * j + 1) / (2 * x2))


def entire(sign: int) -> Function:
    """Σ (±x)^(k - 1)/(k·k!), k from 1: of Ei and of E₁."""
    return lambda x: mp.fsum((sign * x) ** (k - 1) / (k * mp.factorial(k)) for k in range(1, 80))


def expi_far(u: mp.mpf) -> mp.mpf:
    """x·e^-x·Ei(x) in u = 1/x."""
    x = 1 / u if u > 1 / HUGE else HUGE
    return x * mp.exp(-x) * mp.ei(x) if x < 400 else asymptotic(lambda k: (k + 1) / x)


def exp1_far(u: mp.mpf) -> mp.mpf:
    """x·e^x·E₁(x) in u = 1/x."""
    x = 1 / u if u > 1 / HUGE else HUGE
    return x * mp.exp(x) * mp.e1(x) if x < 400 else asymptotic(lambda k: -(k + 1) / x)


def sine(y: mp.mpf) -> mp.mpf:
    """Si(x)/x in x²."""
    return mp.fsum((-y) ** k / ((2 * k + 1) * mp.factorial(2 * k + 1)) for k in range(40))


def cosine(y: mp.mpf) -> mp.mpf:
    """-(Ci(x) - γ - log x)/x² in x²."""
    return mp.fsum((-y) ** k / ((2 * k + 2) * mp.factorial(2 * k + 2)) for k in range(40))


def auxiliary(i: int) -> Function:
    """x·f(x), or x²·g(x) for i = 1, in v = 16/x²: DLMF 6.2.17 and 6.2.18."""

    def h(v: mp.mpf) -> mp.mpf:
        x = 4 / mp.sqrt(v) if v > 1 / HUGE else mp.sqrt(16 * HUGE)
        if x > 200:
            return asymptotic(lambda k: -(2 * k + 1 + i) * (2 * k + 2 + i) / (x * x))
        ci, si = mp.ci(x), mp.si(x) - mp.pi / 2
        if i == 0:
            return x * (ci * mp.sin(x) - si * mp.cos(x))
        return -x * x * (ci * mp.cos(x) + si * mp.sin(x))

    return h


def bessel(order: int) -> Function:
    """e^-x·I₀(x)·√(1 + x), or e^-x·I₁(x)/x·√(1 + x)³, in t = (x - 6)/(x + 6)."""

    def f(t: mp.mpf) -> mp.mpf:
        x = 6 * (1 + t) / (1 - t)
        if x < 2000:
            value = mp.besseli(order, x) * mp.exp(-x)
        else:
            value = asymptotic(lambda j: ((2 * j + 1) ** 2 - 4 * order) / (8 * (j + 1) * x))
            value /= mp.sqrt(2 * mp.pi * x)
        return value * mp.sqrt(1 + x) if order == 0 else value / x * mp.sqrt(1 + x) ** 3

    return f


def bessel_apart(x: mp.mpf) -> mp.mpf:
    """e^-x·(I₀(x) - I₁(x))·√(1 + x)³."""
    t = (x - 6) / (x + 6)
    return bessel(0)(t) * (1 + x) - bessel(1)(t) * x


def bessel_slope(x: mp.mpf) -> mp.mpf:
    """e^-x·I₁'(x)·√(1 + x)."""
    t = (x - 6) / (x + 6)
    return bessel(0)(t) - bessel(1)(t) / (1 + x)


sixteenth = mp.mpf(1) / 16
TABLES: list[
    tuple[str, Callable[..., list[list[mp.mpf]]], list[tuple[Function, float, float, int]]]
]
TABLES = [
    ("LANCZOS", polynomial, [(lanczos, 0, 1, 6), (lanczos, 0, 1, 17)]),
    ("LANCZOS_SLOPE", polynomial, [(lanczos_slope, 0, 1, 7), (lanczos_slope, 0, 1, 18)]),
    ("I0E", polynomial, [(bessel(0), -1, 1, n) for n in (20, 44)]),
    ("I1E", polynomial, [(bessel(1), -1, 1, n) for n in (20, 44)]),
    # To 12 in (2x - 6)/(x + 6), then in 24/x - 1: coefficients for all x grow, and cancel.
    ("I0E_I1E_NEAR", polynomial,
     [(lambda s: bessel_apart((6 + 6 * s) / (2 - s)), -1, 1, n) for n in (17, 29)]),
    ("I0E_I1E_FAR", polynomial,
     [(lambda s: bessel_apart(24 / (1 + s)), -1, 1, n) for n in (7, 18)]),
    ("I1_SLOPE_NEAR", polynomial,
     [(lambda s: bessel_slope((6 + 6 * s) / (2 - s)), -1, 1, n) for n in (16, 33)]),
    ("I1_SLOPE_FAR", polynomial,
     [(lambda s: bessel_slope(24 / (1 + s)), -1, 1, n) for n in (6, 16)]),
    ("ERFCX", polynomial, [(erfcx(mp.mpf(3) / 2), -1, 1, 12), (erfcx(mp.mpf(3)), -1, 1, 23)]),
    ("ERFCX_SLOPE", polynomial, [(erfcx_slope(2), -1, 1, 13), (erfcx_slope(3), -1, 1, 25)]),
    # x² from 0 to 4, x from 2 to 4, 16/x² from 0 to 1; of float64 64/x² from 1 to 4, to 1.
    ("DAWSON_NEAR", polynomial, [(line(dawson, 0, 4), -1, 1, n) for n in (10, 17)]),
    ("DAWSON_MIDDLE", polynomial,
     [(line(lambda x: 2 * x * x * dawson(x * x), 2, 4), -1, 1, n) for n in (12, 23)]),
    ("DAWSON_FAR", polynomial, [(line(dawson_far, 0, sixteenth), -1, 1, 6),
                                (line(dawson_far, sixteenth / 4, sixteenth), -1, 1, 18)]),
    ("DAWSON_BEYOND", polynomial, [(line(dawson_far, 0, sixteenth / 4), -1, 1, 12)]),
    ("EXPI_NEAR", polynomial, [(entire(1), 0, 6, 12), (entire(1), 0, 6, 19)]),
    # 1/x between those of 6 and 12; 12 and on; of float64 12 and 24, 24 and on.
    ("EXPI_MIDDLE", polynomial,
     [(line(expi_far, mp.mpf(1) / 12, mp.mpf(1) / 6), -1, 1, n) for n in (8, 19)]),
    ("EXPI_FAR", polynomial, [(line(expi_far, 0, mp.mpf(1) / 12), -1, 1, 9),
                              (line(expi_far, mp.mpf(1) / 24, mp.mpf(1) / 12), -1, 1, 17)]),
    ("EXPI_BEYOND", polynomial, [(line(expi_far, 0, mp.mpf(1) / 24), -1, 1, 20)]),
    ("EXP1_NEAR", polynomial, [(entire(-1), 0, 1, 7), (entire(-1), 0, 1, 12)]),
    ("EXP1_FAR", quotient, [(exp1_far, 0, 1, 6), (exp1_far, 0, 1, 14)]),
    ("SI_NEAR", polynomial, [(sine, 0, 16, 6), (sine, 0, 16, 10)]),
    ("CI_NEAR", polynomial, [(cosine, 0, 16, 6), (cosine, 0, 16, 10)]),
    ("SICI_F", quotient, [(auxiliary(0), 0, 1, 4), (auxiliary(0), 0, 1, 14)]),
    ("SICI_G", quotient, [(auxiliary(1), 0, 1, 5), (auxiliary(1), 0, 1, 14)]),
    ("OWEN", polynomial, [(lambda y: 1 / (1 + y), 0, 1, n) for n in (10, 20)]),
]  # fmt: skip


def error(f: Function, parts: Sequence[Sequence[mp.mpf]], low: float, high: float) -> float:
    xs = points(97, low, high)
    at = [[mp.polyval(c[::-1], x) for c in parts] for x in xs]
    found = [v[0] / v[1] if len(v) == 2 else v[0] for v in at]
    return float(max(abs(g / f(x) - 1) for g, x in zip(found, xs, strict=True)))


def wrapped(numbers: list[str]) -> str:
    lines, now = [], "   "
    for text in numbers:
        if len(now) + len(text) + 2 > 100:
            lines.append(now)
            now = "   "
        now += f" {text},"
    return "\n".join([*lines, now])


def main() -> None:
    print(TEXT)
    for name, fitted, cases in TABLES:
        for k, (f, low, high, n) in enumerate(cases):
            parts = fitted(f, low, high, n)
            digits = 17 if k or name.endswith("BEYOND") else 12 if name[0] == "I" else 10
            suffix = ["", "_64"][k or name.endswith("BEYOND")]
            for part, more in zip(parts, ("", "_UNDER"), strict=False):
                print(f"{name}{more}{suffix} = (  # {error(f, parts, low, high):.0e}")
                print(wrapped([mp.nstr(v, digits) for v in part]))
                print(")", flush=True)


if __name__ == "__main__":
    main()

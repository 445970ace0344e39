"""Writes `docs/ops.md`, the table of all operations, from their records.

    python -m tools.ops_table

The dtypes that an operation takes are found by asking its type rule, with the operands of its
first row in `tests/cases`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from primal.base import dtypes
from primal.base.config import enable_x64
from primal.ir.op import ByKind, Expand, Library, Never, Op, Splice
from primal.transforms.stage import stage
from tests.cases import CASES, Case
from tests.cases.case import BF16, BOOL, C64, C128, F16, F32, F64, I8, I32, I64, U8, U32, U64
from tests.laws.compare import arrays

PAGE = Path(__file__).parents[1] / "docs" / "ops.md"

HEAD = """# Operations

Every operation of the intermediate language: what its record says. This page is made by
`python -m tools.ops_table`, and a test compares the two.

* **takes**: b bool, i and u integers, f floats, c complex numbers, k other (random keys).
* **derivative**: *linear* (the operation itself, on the tangent), *zero*, *sum* (one term per
  operand), *rule*, or none.
* **transpose**: of operations that are linear in some operands.
* **batching**: *pointwise* (that of every elementwise operation) or a *rule*.
* **XLA**, **CPU**: *compiled*, *rewritten* into other operations before the engine sees it,
  *inlined*, or *NumPy* (the engine calls the reference implementation as a step). Every operation
  has a NumPy implementation, which defines it and runs it outside of `jit`.
* **within**: how far results of the engines may be from NumPy's, which the laws in `tests/laws`
  hold them to: at most so many ε, that of the dtype, times the size of the result or the number
  after *of*, whichever is larger. Integers and booleans are equal, always.
* **checked**: the order of derivatives that the laws compare with differences, whether they compare
  vmap over every axis of every operand with a loop, and how many wrong calls have their text
  recorded. `tests/laws/test_coverage.py` gives the reason wherever one of these is missing.

"""

GROUPS = (("b", (BOOL,)), ("i", (I8, I32, I64)), ("u", (U8, U32, U64)),
          ("f", (F16, BF16, F32, F64)), ("c", (C64, C128)))  # fmt: skip


def taken(case: Case) -> str:
    """The kinds of dtypes that the type rule accepts."""
    fixed = all(x.dtype is not None for x in case.operands)
    if case.around is not None or fixed:
        kinds = {np.dtype(d).kind for d in case.dtypes}
        return "".join(k for k, _ in GROUPS if k in kinds) or "k"
    found = ""
    for letter, members in GROUPS:
        accepted = 0
        for dtype in members:
            with enable_x64(True):
                try:
                    xs = case.draws(dtype, also=False)[0]
                    stage(case.function(dtype), [a.aval for a in arrays(xs)], case.id)
                except (TypeError, ValueError):
                    continue
            accepted += 1
        found += letter if accepted else ""
    return found


def derivative(op: Op) -> str:
    """How the derivative is declared."""
    if isinstance(op.jvp, Never):
        return "–"
    name = getattr(op.jvp, "__qualname__", "")
    for start, word in (("_jvp_linear", "linear"), ("_jvp_zero", "zero"), ("_sum_over", "sum")):
        if name.startswith(start):
            return word
    return "rule"


def batching(op: Op) -> str:
    """Who batches it."""
    if isinstance(op.batch, Never):
        return "–"
    return "pointwise" if isinstance(op.batch, ByKind) else "rule"


def engine(rule: Any) -> str:
    """What an engine does with it."""
    words = {Never: "–", Library: "NumPy", Expand: "rewritten", Splice: "inlined"}
    return next((word for kind, word in words.items() if isinstance(rule, kind)), "compiled")


def within(cases: list[Case]) -> str:
    """The most that a row allows, and why."""
    worst = max(cases, key=lambda c: c.ulps * max(c.near, 1e-9))
    if not worst.ulps:
        return "equal"
    return f"{worst.ulps:g} ε{f' of {worst.near:g}' if worst.near else ''}: {worst.cause}"


def checked(cases: list[Case]) -> str:
    """What the laws ask of it, and how many wrong calls they know."""
    order = max(c.order if c.reverse else min(c.order, 1) for c in cases)
    inexact = any(dtypes.issubdtype(d, np.inexact) for c in cases for d in c.dtypes)
    derived = inexact and not isinstance(cases[0].record.jvp, Never)
    wrong = sum(len(c.errors) for c in cases)
    parts = (
        f"order {order}" if derived and order else "",
        "vmap" if any(c.vmap for c in cases) else "",
        f"{wrong} wrong" if wrong else "",
    )
    return ", ".join(part for part in parts if part) or "–"


def table() -> str:
    """The page."""
    first: dict[str, Case] = {}
    for case in CASES:
        first.setdefault(case.op, case)
    rows = {name: [c for c in CASES if c.op == name] for name in first}
    parts = [HEAD]
    kinds: dict[str, list[Case]] = {}
    for case in first.values():
        kinds.setdefault(case.record.kind.name, []).append(case)
    for kind, cases in kinds.items():
        parts.append(f"## {kind[0].upper()}{kind[1:]}\n\n")
        titles = "takes | derivative | transpose | batching | XLA | CPU | within | checked"
        parts.append(f"| operation | {titles} |\n|{'---|' * 9}\n")
        for case in sorted(cases, key=lambda c: c.op):
            op = case.record
            cells = (
                f"`{op.name}`", taken(case), derivative(op),
                "–" if isinstance(op.transpose, Never) else "yes",
                batching(op), engine(op.hlo), engine(op.kernel),
                within(rows[op.name]), checked(rows[op.name]),
            )  # fmt: skip
            parts.append(f"| {' | '.join(cells)} |\n")
        parts.append("\n")
    return "".join(parts).rstrip("\n") + "\n"


if __name__ == "__main__":
    PAGE.write_text(table())

"""Every rule of every op, made wrong, is caught by a row of that op."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from primal.base.errors import JaxprTypeError
from primal.ir.op import HigherOrder, Op, registry
from tests.cases import CASES, Case
from tests.laws import laws, program_laws
from tests.laws.compare import staged, width
from tests.laws.mutants import MUTATIONS, has, mutated

ROWS: dict[str, list[Case]] = {}
for row in CASES:
    ROWS.setdefault(row.op, []).append(row)


def _on(*engines: str) -> Callable[[Case], None]:
    def law(case: Case) -> None:
        laws.law_of_engines(case, engines)

    return law


def _slopes(case: Case) -> None:
    if case.order:
        laws.law_of_derivatives(case, ["reference"])


def _examples(case: Case) -> None:
    if case.vmap:
        laws.law_of_batching(case, names=["reference"])


def _inside(case: Case) -> None:
    if case.record.kind.collective and not case.name:
        program_laws.law_of_named_axes(case)


LAWS: dict[str, list[Callable[[Case], None]]] = {
    "type": [laws.law_of_types, _inside],
    # Where the engine calls impl as a step, or rewrites the op, another engine tells.
    "impl": [_on("cpu"), _on("xla"), _on("reference")],
    "jvp": [_slopes, _inside],
    "transpose": [program_laws.law_of_transposes, _slopes, _inside],
    "batch": [_examples, _inside],
    "hlo": [_on("xla")],
    "kernel": [_on("cpu")],
    "written": [program_laws.law_of_written],
    "closed_form": [_on("cpu")],
    "apart": [program_laws.law_of_apart],
    "linearize": [_slopes],
    "dce": [program_laws.law_of_dropped_results],
}
# Fields of a record that are no rule of this kind, and where a wrong one is seen.
ELSEWHERE = {
    "name": "every test calls ops by it",
    "kind": "tests/engines, tests/laws: fusion and default batching",
    "multiple": "every law unpacks the results",
    "higher": "its parts are in LAWS",
    "shard": "read by nothing on one device",
    "effects": "tests/effects",
    "show": "tests/ir/test_show.py",
    "title": "tests/ir/test_show.py",
    "mixes": "tests/control/test_nested.py: `together`",
    "in_place": "tests/numpy/test_remembered.py",
    "hoist": "tests/engines/cpu: what every turn of a loop computes alike",
    "by_rule": "tests/control/test_custom.py",
    "hollow": "tests/engines/cpu/test_around.py: pieces without elements, on every engine",
    "ahead": "tests/engines/cpu/test_outlook.py",
    "word": "tests/engines/cpu/test_outlook.py: the kernel of each record that names one",
    "folds": "tests/ops/test_special.py: what is computed of known numbers loads no SciPy",
}


def test_every_field_of_a_record_is_made_wrong() -> None:
    fields = {*inspect.signature(Op.__init__).parameters, *HigherOrder.__slots__} - {"self"}
    assert fields <= {*LAWS, *ELSEWHERE}
    assert set(LAWS) == set(MUTATIONS)


def test_every_law_of_programs_is_asked() -> None:
    asked = {law for found in LAWS.values() for law in found} | {program_laws.law_of_named_axes}
    every = {law for name, law in vars(program_laws).items() if name.startswith("law_of_")}
    assert every <= asked


def gives(case: Case, slopes: bool) -> bool:
    """Whether there is a result that can be wrong; with `slopes`, one that has a derivative."""
    for dtype in case.dtypes:
        for xs in case.draws(dtype, also=False):
            with width([np.zeros(0, dtype), *xs]):
                avals = staged(case.function(dtype), xs).out_avals
                if any(map(laws.inexact, avals)) and any(case.active(xs)):
                    return True
                if avals and not slopes:
                    return True
    return False


def places() -> Iterator[tuple[str, str]]:
    """Each op with each rule that gives something."""
    for name, rows in ROWS.items():
        if name not in registry or not any(gives(case, False) for case in rows):
            continue
        smooth = any(gives(case, True) for case in rows)
        for field in MUTATIONS:
            if has(registry[name], field) and (smooth or field not in ("jvp", "linearize")):
                yield name, field


def caught(name: str, field: str) -> bool:
    """Whether some row of the op fails."""
    for law in LAWS[field]:
        for case in ROWS[name]:
            try:
                law(dataclasses.replace(case, dtypes=case.dtypes[:1], also=()))
            except (AssertionError, JaxprTypeError):
                return True
    return False


# What the rows do not reach, and what does.
BEYOND = {
    ("axis_index", "batch"): "its batch rule is its meaning: tests/api/test_vmap.py",
    ("bitcast_convert_type", "jvp"): "floats from floats are in 16 bits: tests/lax",
    **{("custom_lin", field): "its row is the transpose itself: tests/control"
       for field in ("type", "transpose", "batch")},
    ("jit", "impl"): "its program is spliced into that of the row: tests/control",
    ("recomputed", "transpose"): "made where XLA gets a program, which nothing transposes again",
    ("custom_vjp_call", "jvp"): "its rows have no derivatives: tests/control/test_nested.py",
    ("custom_vjp_call", "linearize"): "as above",
    ("while", "linearize"): "its row has no reverse mode: tests/control/test_nested.py",
}


@pytest.mark.parametrize(("name", "field"), list(places()), ids=lambda part: part)
def test_a_wrong_rule_is_caught(name: str, field: str) -> None:
    with mutated(registry[name], field):
        assert caught(name, field) is ((name, field) not in BEYOND)

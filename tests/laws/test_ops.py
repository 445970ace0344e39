"""Every row of the table drives every law."""

from __future__ import annotations

from typing import Any

import pytest

from primal.ir.op import Never
from tests.cases import CASES, Case
from tests.cases.case import F32
from tests.cases.linalg import ROWS as FACTORISATIONS
from tests.laws import extreme_laws, laws, program_laws
from tests.laws.compare import ENGINES, engines
from tests.laws.mutants import has

ROWS = [pytest.param(c, id=c.id) for c in CASES]
QUICK = [pytest.param(c, id=c.id) for c in CASES if not c.costly]
SMOOTH = [pytest.param(c, id=c.id) for c in CASES if c.order]
NOT_SMOOTH = [pytest.param(c, id=c.id) for c in CASES if not c.order]


def test_every_op_has_a_row(fresh_process) -> None:
    # In a process of its own: other tests register ops to be thrown away.
    done = fresh_process(
        "import tests.cases\nfrom primal.ir.op import registry\nprint(*sorted(registry))"
    )
    have, want = {c.op for c in CASES}, set(done.stdout.split())
    assert have == want, f"without a row: {sorted(want - have)}; of no op: {sorted(have - want)}"


def test_rows_have_names_of_their_own() -> None:
    names = [c.id for c in CASES]
    assert sorted(set(names)) == sorted(names)


def test_tolerances_have_causes() -> None:
    assert [c.id for c in CASES if c.ulps and not c.cause] == []


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_are_there(engine: str) -> None:
    if engine not in engines():
        pytest.skip(f"the engine {engine} is not registered in this installation")


@pytest.mark.parametrize("case", ROWS)
def test_types(case: Case) -> None:
    laws.law_of_types(case)


def _first_rows(on_axes: bool = False) -> list[Any]:
    """One row per op: those whose call does not depend on the dtype in other ways."""
    first: dict[str, Case] = {}
    for c in CASES:
        if (on_axes or c.around is None) and not callable(c.params):
            first.setdefault(c.op, c)
    return [pytest.param(c, id=c.op) for c in first.values()]


@pytest.mark.parametrize("case", _first_rows())
def test_all_dtypes(case: Case) -> None:
    laws.law_of_all_dtypes(case)


@pytest.mark.parametrize("case", ROWS)
def test_engines(case: Case) -> None:
    laws.law_of_engines(case)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.id) for c in CASES if c.special])
def test_special_values(case: Case) -> None:
    laws.law_of_special_values(case)


# Rows that name the values of their operands mean those.
DRAWN = [c for c in QUICK if all(x.dtype or x.values is None for x in c.values[0].operands)]


@pytest.mark.parametrize("case", DRAWN)
def test_integers(case: Case) -> None:
    extreme_laws.law_of_integers(case)


@pytest.mark.parametrize(
    "case", [c for c in QUICK if c.values[0].vmap and F32 in c.values[0].dtypes]
)
def test_special_batches(case: Case) -> None:
    extreme_laws.law_of_special_batches(case)


# Where NaN comes to in factorisations depends on the order of steps (docs/differences.md).
TWICE = [c for c in QUICK if c.values[0].twice and F32 in c.values[0].dtypes
         and c.values[0] not in FACTORISATIONS]  # fmt: skip


@pytest.mark.parametrize("case", TWICE)
def test_special_slopes(case: Case) -> None:
    extreme_laws.law_of_special_slopes(case)


@pytest.mark.parametrize("case", SMOOTH)
def test_derivatives(case: Case) -> None:
    laws.law_of_derivatives(case)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.id) for c in CASES if c.twice])
def test_second_order(case: Case) -> None:
    laws.law_of_second_order(case)


@pytest.mark.parametrize("case", NOT_SMOOTH)
def test_no_derivatives(case: Case) -> None:
    if isinstance(case.record.jvp, Never):
        laws.law_of_no_derivative(case)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.id) for c in CASES if c.vmap])
def test_batching(case: Case) -> None:
    laws.law_of_batching(case)


@pytest.mark.parametrize("case", ROWS)
def test_dropped_results(case: Case) -> None:
    program_laws.law_of_dropped_results(case)


@pytest.mark.parametrize("case", [c for c in ROWS if has(c.values[0].record, "written")])
def test_written(case: Case) -> None:
    program_laws.law_of_written(case)


@pytest.mark.parametrize("case", [c for c in ROWS if has(c.values[0].record, "apart")])
def test_apart(case: Case) -> None:
    program_laws.law_of_apart(case)


@pytest.mark.parametrize("case", [c for c in ROWS if has(c.values[0].record, "transpose")])
def test_transposes(case: Case) -> None:
    program_laws.law_of_transposes(case)


@pytest.mark.parametrize(
    "case", [c for c in _first_rows(on_axes=True) if c.values[0].record.kind.collective]
)
def test_named_axes(case: Case) -> None:
    program_laws.law_of_named_axes(case)


@pytest.mark.parametrize("case", [pytest.param(c, id=c.id) for c in CASES if c.errors])
def test_errors(case: Case) -> None:
    laws.law_of_errors(case)

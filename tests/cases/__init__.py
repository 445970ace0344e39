"""The table of all ops: one row per op and variant. Every row drives every law."""

import dataclasses
import importlib
import pkgutil

import primal.control
import primal.ops
from tests.cases.case import Case as Case

# Every room, so that the registry is whole.
for package in (primal.ops, primal.control):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)

from tests.cases import (  # noqa: E402
    bits,
    collective,
    contract,
    control,
    elementwise,
    fft,
    host,
    index,
    linalg,
    reduce,
    refused,
    shape,
    small,
    special,
    spread,
    window,
)

ROOMS = (
    elementwise,
    special,
    spread,
    shape,
    contract,
    reduce,
    index,
    window,
    linalg,
    fft,
    bits,
    host,
    collective,
    control,
    small,
)
CASES: list[Case] = [row for room in ROOMS for row in room.ROWS]
for op, errors in refused.REFUSED.items():
    first = next(i for i, row in enumerate(CASES) if row.op == op and row.around is None
                 or row.op == op and op.startswith("random_"))  # fmt: skip
    says = refused.SAYS.get(op, CASES[first].says)
    all_errors = (*CASES[first].errors, *errors)
    CASES[first] = dataclasses.replace(CASES[first], errors=all_errors, says=says)
for op in (*small.ALIKE, *small.SHAPED):
    first = next(i for i, row in enumerate(CASES) if row.op == op and row.around is None)
    CASES[first] = small.with_small(CASES[first])

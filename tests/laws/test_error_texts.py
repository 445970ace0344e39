"""The texts of errors: every wrong row of the table, word for word as recorded.

A text that was changed on purpose is recorded by

    python -m tests.laws.test_error_texts
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from tests.cases import CASES
from tests.cases.case import Case, Wrong
from tests.laws.compare import arrays, width

FILE = Path(__file__).parents[1] / "data" / "error_texts.json"


def call_of(case: Case, wrong: Wrong) -> tuple[Any, list[Any]]:
    """The wrong call and its operands."""
    rng = np.random.default_rng(3)
    xs = [x.draw(rng, wrong.dtype) for x in wrong.operands]
    params = {**case.parameters(wrong.dtype), **(wrong.params or {})}

    def call(*args: object) -> list[object]:
        out = case.record(*args, **params)
        return list(out) if case.record.multiple else [out]

    return case.around(call) if case.around is not None else call, xs


def text_of(case: Case, wrong: Wrong) -> str:
    """Class and text of the error that an eager call with these operands raises."""
    call, xs = call_of(case, wrong)
    with width(xs):
        try:
            call(*arrays(xs))
        except (TypeError, ValueError, NotImplementedError, NameError) as e:
            return f"{type(e).__name__}: {e}"
    return "no error"


def texts() -> dict[str, list[str]]:
    """The texts of all rows that have wrong operands."""
    return {c.id: [text_of(c, w) for w in c.errors] for c in CASES if c.errors}


@pytest.mark.parametrize("case", [pytest.param(c, id=c.id) for c in CASES if c.errors])
def test_text(case: Case) -> None:
    want = json.loads(FILE.read_text()).get(case.id)
    assert [text_of(case, w) for w in case.errors] == want, (
        "Texts of errors changed; if on purpose, run python -m tests.laws.test_error_texts"
    )


# Programs are checked where they are called, before a transformation sees them.
TRANSFORMED = [c for c in CASES if c.errors and c.record.higher is None]


@pytest.mark.parametrize("case", [pytest.param(c, id=c.id) for c in TRANSFORMED])
def test_what_is_wrong_is_wrong_under_transformations(case: Case) -> None:
    for wrong in case.errors:
        call, xs = call_of(case, wrong)
        with width(xs):
            args = arrays(xs)
            moving = [i for i, x in enumerate(args) if jnp.issubdtype(x.dtype, jnp.inexact)]

            def moved(*some: Any) -> Any:
                given = dict(zip(moving, some, strict=True))  # noqa: B023
                return call(*[given.get(i, x) for i, x in enumerate(args)])  # noqa: B023

            refused = wrong.error if isinstance(wrong.error, tuple) else (wrong.error,)
            if moving:
                some = tuple([args[i] for i in moving])
                with pytest.raises((*refused, NotImplementedError)):  # the derivative, by some
                    primal.jvp(moved, some, some)
            if args:
                with pytest.raises(refused):
                    primal.vmap(call)(*[jnp.stack([x, x]) for x in args])


if __name__ == "__main__":
    FILE.write_text(json.dumps(texts(), indent=1, ensure_ascii=False) + "\n")

"""docs/errors.md: every program of it does what it says, and the page is current."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import errors
from tests.errors.catalogue import ERRORS, OTHERS, PAGE, ROWS, Row, page


def run(source: str, name: str) -> None:
    scope: dict[str, Any] = {"primal": primal, "jnp": jnp, "np": np}
    exec(compile(source, name, "exec"), scope)


@pytest.mark.parametrize("row", ROWS, ids=[r.title for r in ROWS])
def test_wrong_programs_raise(row: Row) -> None:
    error = getattr(importlib.import_module(row.where), row.name)
    with pytest.raises(error) as caught:
        run(row.wrong, "wrong")
    assert row.says in str(caught.value)
    if row.where == ERRORS and row.name != "JaxRuntimeError":
        assert type(caught.value) is error


@pytest.mark.parametrize("row", ROWS, ids=[r.title for r in ROWS])
def test_right_programs_run(row: Row) -> None:
    run(row.right, "right")


def test_every_class_is_there() -> None:
    shown = {r.name for r in ROWS if r.where == ERRORS}
    assert shown | set(OTHERS) == set(errors.__all__)
    assert not shown & set(OTHERS)


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "Run python -m tests.errors.catalogue."

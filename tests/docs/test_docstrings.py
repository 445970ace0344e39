"""Every example in a docstring of the package prints what it says."""

import importlib

import pytest

from tests.docs import examples


@pytest.mark.parametrize("name", examples.modules())
def test_examples(name: str) -> None:
    reports = list(examples.run(examples.in_module(importlib.import_module(name))))
    assert not reports, "\n".join(["", *reports])

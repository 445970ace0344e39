"""What C repeats of the coefficients is the same to the last digit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from primal.base import expansions, native

SOURCE = (Path(native.__file__).parent / "fast" / "functions.c").read_text()


@pytest.mark.parametrize(
    ("within", "known"),
    [("log_of", expansions.LOG), ("right_psi", expansions.ZERO_OF_PSI)],
)
def test_constants_of_the_extension(within: str, known: tuple[float, ...]) -> None:
    start = SOURCE.index(f"double {within}(double")
    body = SOURCE[start : SOURCE.index("\n}\n", start)]
    said = {float(x) for x in re.findall(r"\d+\.\d+(?:e-?\d+)?", body)}
    assert said >= set(known)

"""Frozen records of named fields."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from primal.base.structures import replaced, structure


@structure
class Tile:
    rows: int
    columns: int = 16
    loops: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Peer:
    rows: int
    columns: int = 16
    loops: tuple[int, ...] = ()


@structure
class Wider(Tile):
    lanes: int = 1

    def __repr__(self) -> str:
        return "wide"


GIVEN: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((1,), {}),
    ((1, 16, ()), {}),
    ((1, 2), {"loops": (3,)}),
    ((), {"loops": (3,), "columns": 2, "rows": 1}),
    ((True,), {}),
    ((1.0, 16.0), {}),
    (("a",), {"columns": None}),
]


@pytest.mark.parametrize("one", GIVEN)
@pytest.mark.parametrize("two", GIVEN)
def test_they_compare_hash_and_read_as_frozen_dataclasses(one: Any, two: Any) -> None:
    x, y = (Tile(*v, **n) for v, n in (one, two))
    a, b = (Peer(*v, **n) for v, n in (one, two))
    assert (x == y) == (a == b) and (x != y) == (a != b)
    assert hash(x) == hash(a)
    assert repr(x) == repr(a).replace("Peer", "Tile")
    assert [x.rows, x.columns, x.loops] == [a.rows, a.columns, a.loops]


@pytest.mark.parametrize(
    "values, named", [((), {}), ((1, 2, (), 4), {}), ((1,), {"rows": 1}), ((1,), {"other": 1})]
)
def test_what_is_missing_twice_or_unknown_is_refused(values: Any, named: Any) -> None:
    with pytest.raises(TypeError):
        Peer(*values, **named)
    with pytest.raises(TypeError, match=r"\[Tile\] expected"):
        Tile(*values, **named)


def test_fields_stay() -> None:
    tile = Tile(1)
    with pytest.raises(AttributeError, match="rows"):
        tile.rows = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="rows"):
        del tile.rows
    assert replaced(tile, columns=2) == Tile(1, 2) != tile
    assert copy.deepcopy(tile) == pickle.loads(pickle.dumps(tile)) == tile


def test_a_class_adds_fields_to_those_of_its_base() -> None:
    assert Wider(1, 2, (3,), 4).lanes == 4 and Wider(1).columns == 16
    assert Wider(1) != Tile(1) and Wider(1, lanes=2) != Wider(1)
    assert repr(Wider(1)) == "wide"
    assert replaced(Wider(1), lanes=3) == Wider(1, lanes=3)

"""Keys: how one steps from a node of a tree to a child, and how a path of keys is printed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, TypeVar

KeyEntry = TypeVar("KeyEntry")
KeyPath: TypeAlias = tuple[Any, ...]


class _Key:
    """A key with one field; immutable, equal by type and field."""

    __slots__ = ("_value",)
    __match_args__: tuple[str, ...] = ()
    _value: Any

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._value == other._value

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__match_args__[0]}={self._value!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._value,)


class SequenceKey(_Key):
    """The position of a child in a list or tuple; prints as `[3]`.

    >>> str(SequenceKey(0))
    '[0]'
    """

    __slots__ = ()
    __match_args__ = ("idx",)

    def __init__(self, idx: int) -> None:
        if not isinstance(idx, int):
            raise TypeError(f"[SequenceKey] expected an int, got {idx!r}.")
        self._value = idx

    @property
    def idx(self) -> int:
        """The position."""
        return self._value

    def __str__(self) -> str:
        return f"[{self._value!r}]"


class DictKey(_Key):
    """The key of a child in a dictionary; prints as `['w']`.

    >>> str(DictKey("a"))
    "['a']"
    """

    __slots__ = ()
    __match_args__ = ("key",)

    def __init__(self, key: Any) -> None:
        self._value = key

    @property
    def key(self) -> Any:
        """The dictionary's key."""
        return self._value

    def __str__(self) -> str:
        return f"[{self._value!r}]"


class GetAttrKey(_Key):
    """The attribute that holds a child; prints as `.weight`.

    >>> str(GetAttrKey("x"))
    '.x'
    """

    __slots__ = ()
    __match_args__ = ("name",)

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"[GetAttrKey] expected a str, got {name!r}.")
        self._value = name

    @property
    def name(self) -> str:
        """The attribute's name."""
        return self._value

    def __str__(self) -> str:
        return f".{self._value}"


class FlattenedIndexKey(_Key):
    """The position of a child in a custom node without keys; prints as `[<flat index 0>]`.

    >>> str(FlattenedIndexKey(1))
    '[<flat index 1>]'
    """

    __slots__ = ()
    __match_args__ = ("key",)

    def __init__(self, key: int) -> None:
        if not isinstance(key, int):
            raise TypeError(f"[FlattenedIndexKey] expected an int, got {key!r}.")
        self._value = key

    @property
    def key(self) -> int:
        """The position among the node's children."""
        return self._value

    def __str__(self) -> str:
        return f"[<flat index {self._value!r}>]"


def keystr(keys: Iterable[Any], *, simple: bool = False, separator: str = "") -> str:
    """Return a path of keys as text; `simple` prints the bare fields.

    >>> keystr((DictKey("a"), SequenceKey(0), GetAttrKey("w")))
    "['a'][0].w"
    >>> keystr((DictKey("a"), SequenceKey(0)), simple=True, separator="/")
    'a/0'
    """
    words = [str(key._value) if simple and isinstance(key, _Key) else str(key) for key in keys]
    return separator.join(words)

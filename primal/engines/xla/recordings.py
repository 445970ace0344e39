"""Recordings of XLA's profiler, with lines of events added to them.

A recording is a message `XSpace` of protocol buffers: planes of lines of events, whose names lie in
a table of the plane. Fields that repeat are added to by writing more of them, so that only the
length of the plane is to be changed. A package for protocol buffers was rejected: this is all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

HOST = "/host:CPU"
"""The plane of the threads of this machine."""
_FIRST = 1 << 40
"""Numbers of names and lines begin here, above those of XLA."""
_VARINT, _BYTES = 0, 2


class Event(NamedTuple):
    """What happened, in nanoseconds since the recording's start, and texts to show with it."""

    name: str
    begin: int
    duration: int
    stats: Mapping[str, str]


def with_lines(space: bytes, lines: Mapping[str, Sequence[Event]]) -> bytes:
    """The recording with the named lines of events among the threads of this machine."""
    more = _plane(lines)
    out = []
    for number, plane in _fields(space):
        if number == 1 and (2, HOST.encode()) in _fields(plane):
            plane, more = plane + more, b""
        out.append(_field(number, plane))
    if more:
        out.append(_field(1, _field(2, HOST.encode()) + more))
    return b"".join(out)


def _plane(lines: Mapping[str, Sequence[Event]]) -> bytes:
    """Fields of a plane: 3 lines, 4 names of events, 5 names of stats."""
    names: dict[str, int] = {}
    keys: dict[str, int] = {}
    out = []
    for at, (title, events) in enumerate(lines.items(), _FIRST):
        line = [_field(1, at), _field(2, title.encode())]
        for name, begin, duration, stats in events:
            event = [
                _field(1, names.setdefault(name, _FIRST + len(names))),
                _field(2, 1000 * max(begin, 0)),
                _field(3, 1000 * duration),
            ]
            for key, value in stats.items():
                known = keys.setdefault(key, _FIRST + len(keys))
                event.append(_field(4, _field(1, known) + _field(5, value.encode())))
            line.append(_field(4, b"".join(event)))
        out.append(_field(3, b"".join(line)))
    for number, table in (4, names), (5, keys):
        for name, key in table.items():
            entry = _field(1, key) + _field(2, name.encode())
            out.append(_field(number, _field(1, key) + _field(2, entry)))
    return b"".join(out)


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields that hold bytes; a recording and the head of a plane have a few numbers else."""
    at = 0
    while at < len(message):
        tag, at = _read(message, at)
        n, at = _read(message, at)
        if tag & 7 == _BYTES:
            yield tag >> 3, message[at : at + n]
            at += n
        elif tag & 7 != _VARINT:
            raise ValueError(f"expected fields of numbers and bytes, got one of kind {tag & 7}.")


def _read(message: bytes, at: int) -> tuple[int, int]:
    n = shift = 0
    while True:
        byte = message[at]
        n |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return n, at

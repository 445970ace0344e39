"""Machine code in slabs of memory: a loader for objects of x86-64 Linux.

LLVM's linker takes 0.27 ms, 43 kB and two mappings of memory per object, of which the system allows
a process 65,530. Here objects lie one behind the other, each on pages of its own, which are written
and then made executable, never both at once; neighbours are one mapping, so that a slab has two,
however many objects it holds.

This knows what LLVM makes of kernels. Of anything else, another CPU's object, a relocation out of
reach, memory that may not become code, nothing is loaded (`Unknown`), and LLVM is asked. Code stays
for ever: programs hold addresses of kernels, and nobody counts who runs one.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Sequence

from primal.base import forks

__all__ = ["Image", "Slabs", "Unknown", "have"]

SLAB = 1 << 20
"""Bytes of a slab. Smaller than a huge page, which would be zeroed for the first kernel."""
_MOST = 1 << 24
"""Bytes of a section; more is a damaged file rather than a kernel."""
_PAGE = mmap.PAGESIZE
_ALIGNED = 64
"""What parts of an image are aligned to: the longest vector, and a cache line."""

_BYTES, _SYMBOLS, _RELOCATIONS, _ZEROS, _UNWINDING = 1, 2, 4, 8, 0x70000001
"""Kinds of sections; the file does not hold zeros, and no exception passes through kernels."""
_WRITE, _MEMORY, _THREAD = 1, 2, 0x400
"""What a section asks for: to be written to, to be there at all, to be there for each thread."""
_UNDEFINED = 0
"""The section of symbols that others define."""
_ADDRESS, _NEAR, _CALL, _BY_SLOT = 1, 2, 4, {9, 41, 42}
"""Relocations: an address, the way there in 32 bits, to a function, to where the address is."""
_JUMP = b"\xff\x25\xf2\xff\xff\xff\xcc\xcc"
"""`jmp *-14(%rip)`: to what the eight bytes before it say."""


class Unknown(Exception):
    """An object that is not for this loader."""


def have() -> bool:
    """Whether this machine's objects are of the kind known here."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


class Image:
    """What an object is in memory.

    `code`, from `base` on: instructions and constants, and behind them the addresses of what lies
    elsewhere, with a jump each. `data`, from `start` to `top`: what is written while kernels run.
    `names`: the addresses of what the object defines.
    """

    def __init__(
        self, object_: bytes, base: int, top: int, address_of: Callable[[str], int]
    ) -> None:
        self.base, self.code, self.data = base, bytearray(), bytearray()
        self.names: dict[str, int] = {}
        self._object, self._address_of = object_, address_of
        try:
            if object_[:6] != b"\x7fELF\2\1" or struct.unpack_from("<HH", object_, 16) != (1, 62):
                raise Unknown("no object of x86-64")
            first, size, count, names = struct.unpack_from("<40xQ10xHHH", object_)
            self._sections = [
                struct.unpack_from("<IIQQQQIIQQ", object_, first + i * size) for i in range(count)
            ]
            self._place(names)
            self.start = (top - len(self.data)) // _ALIGNED * _ALIGNED
            self._symbols = self._read()
            self._slots: dict[int, int] = {}
            for _, kind, _, _, at, length, _, section, _, _ in self._sections:
                if kind == _RELOCATIONS and section in self._places:
                    self._relocate(section, object_[at : at + length])
        except (struct.error, LookupError, ValueError, OverflowError, AttributeError) as e:
            raise Unknown(str(e)) from e

    def _place(self, names: int) -> None:
        """Put the sections behind each other."""
        self._places: dict[int, tuple[bytearray, int]] = {}
        for i, (name, kind, flags, _, at, length, _, _, align, _) in enumerate(self._sections):
            if not flags & _MEMORY or kind == _UNWINDING:
                continue
            known = kind in (_BYTES, _ZEROS) and not flags & _THREAD
            if not known or align > _ALIGNED or length > _MOST:
                raise Unknown(f"a section of kind {kind}, flags {flags}, {length} bytes")
            # Tables of addresses are written by relocations and by nobody else.
            written = flags & _WRITE and not self._text(names, name).startswith(".data.rel.ro")
            home = self.data if written else self.code
            home.extend(bytes(-len(home) % max(align, 1)))
            self._places[i] = home, len(home)
            home.extend(self._object[at : at + length] if kind == _BYTES else bytes(length))
        self.code.extend(bytes(-len(self.code) % 8))

    def _text(self, section: int, at: int) -> str:
        begin = self._sections[section][4] + at
        return self._object[begin : self._object.index(b"\0", begin)].decode()

    def _read(self) -> list[tuple[str, int | None]]:
        """Name and address of each symbol; no address has what others define."""
        found: list[tuple[str, int | None]] = []
        for _, kind, _, _, at, length, names, _, _, _ in self._sections:
            if kind != _SYMBOLS:
                continue
            table = struct.iter_unpack("<IBBHQQ", self._object[at : at + length])
            for named, _, _, section, value, _ in table:
                name = self._text(names, named)
                if section in self._places:
                    home, place = self._places[section]
                    found.append((name, self._start_of(home) + place + value))
                    self.names[name] = self._start_of(home) + place + value
                else:  # of a section that is not in memory: nobody's name
                    found.append((name if section == _UNDEFINED else "", None))
        return found

    def _start_of(self, home: bytearray) -> int:
        return self.base if home is self.code else self.start

    def _relocate(self, section: int, table: bytes) -> None:
        """Write addresses into a section, now that all are known."""
        home, begin = self._places[section]
        start = self._start_of(home)
        for offset, info, addend in struct.iter_unpack("<QQq", table):
            symbol, kind = info >> 32, info & 0xFFFFFFFF
            place, where = begin + offset, self._symbols[symbol][1]
            if kind in _BY_SLOT:
                where = self._slot(symbol)
            elif where is None and kind == _CALL:
                where = self._slot(symbol) + 8
            elif where is None:
                where = self._address_of(self._symbols[symbol][0])
            if kind == _ADDRESS:
                struct.pack_into("<Q", home, place, where + addend)
            elif kind in (_NEAR, _CALL) or kind in _BY_SLOT:
                struct.pack_into("<i", home, place, where + addend - start - place)
            else:
                raise Unknown(f"a relocation of kind {kind}")

    def _slot(self, symbol: int) -> int:
        """Where the address of a symbol is, with a jump there behind it."""
        if symbol not in self._slots:
            name, where = self._symbols[symbol]
            self._slots[symbol] = self.base + len(self.code)
            where = self._address_of(name) if where is None else where
            self.code.extend(where.to_bytes(8, "little") + _JUMP)
        return self._slots[symbol]


class Slabs:
    """The code that was loaded here."""

    def __init__(self) -> None:
        self._process = library = ctypes.CDLL(None, use_errno=True)
        self._map, self._protect = library.mmap, library.mprotect
        self._map.restype = ctypes.c_void_p
        self._map.argtypes = (
            ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
            ctypes.c_long,
        )  # fmt: skip
        self._protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        self._addresses: dict[str, int] = {}
        self._free = self._top = 0
        self._lock = forks.lock()

    def load(self, object_: bytes, names: Sequence[str]) -> list[int]:
        """Load an object; the addresses of the named functions in it."""
        with self._lock:
            image = self._image(object_) if self._top else None
            if image is None:
                # What is left of the slab before is less than this object, or a page.
                self._new(len(object_))
                image = self._image(object_)
            if image is None:
                raise Unknown("an object larger than its file")
            # Taken before anything is written: a child forked, or Ctrl-C pressed, in the middle
            # leaves a few pages that nobody uses.
            size = -(-len(image.code) // _PAGE) * _PAGE
            self._free, self._top = image.base + size, image.start
            ctypes.memmove(image.start, bytes(image.data), len(image.data))
            ctypes.memmove(image.base, bytes(image.code), len(image.code))
            if self._protect(image.base, size, mmap.PROT_READ | mmap.PROT_EXEC):
                raise Unknown(f"the system makes no code of memory ({ctypes.get_errno()})")
        try:
            return [image.names[name] for name in names]
        except KeyError as e:
            raise Unknown(f"no function {e}") from e

    def _image(self, object_: bytes) -> Image | None:
        """The object at the next free pages, if it fits there."""
        image = Image(object_, self._free, self._top, self._address_of)
        fits = image.base + len(image.code) <= image.start // _PAGE * _PAGE
        return image if fits else None

    def _new(self, least: int) -> None:
        """A slab with room for an object of so many bytes, mapped for ever."""
        size = -(-max(SLAB, 2 * least) // _PAGE) * _PAGE
        rights, kind = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        found = self._map(None, size, rights, kind, -1, 0)
        if found in (None, ctypes.c_void_p(-1).value):
            raise Unknown(f"the system maps no memory ({ctypes.get_errno()})")
        self._free, self._top = found, found + size

    def _address_of(self, name: str) -> int:
        """Where this process has a function."""
        if name not in self._addresses:
            found = ctypes.cast(self._process[name], ctypes.c_void_p).value
            self._addresses[name] = found or 0
        return self._addresses[name]

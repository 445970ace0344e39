"""Machine code on disk.

A module of kernels is one file: a checksum, the names of the kernels by the digests of their specs,
the object. Beside it lies a small file per kernel that names the module, so that programs which
share some kernels share those. Digests cover the spec, the CPU and its features, LLVM's version and
the text of the compiler itself; on a hit no LLVM IR is written, let alone compiled.

Files are written under another name and renamed, so that readers see all of one or nothing; what
does not match its checksum is compiled again. A folder that cannot be written is none.

What a first program would wait for is left out: `hashlib` loads OpenSSL, `tempfile` and `pathlib`
twenty modules.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
from typing import Any

from primal.base.config import config
from primal.engines.cpu import _llvm
from primal.engines.cpu.steps import RoutineSpec

try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

_MAGIC = b"primal object 2\n"
_DIGEST = 20
_COMPILER = os.path.dirname(os.path.dirname(__file__))


def key_of(spec: RoutineSpec) -> str:
    """The digest of all that the code of a spec depends on.

    The `repr` of a spec says all of it, in a form that is the same in every process.
    """
    return _digest(f"{type(spec).__module__} {spec!r}")


def _digest(text: str) -> str:
    start: Any = _surroundings(_llvm.compiler()).copy()
    start.update(text.encode())
    return start.hexdigest()


@functools.cache
def _surroundings(compiler: _llvm.Compiler) -> Any:
    """A digest of what code depends on besides its spec."""
    found = blake2b(digest_size=_DIGEST)
    for part in (
        platform.system(), platform.machine(), compiler.cpu, compiler.features, compiler.version
    ):  # fmt: skip
        found.update(part.encode() + b"\0")
    sources = [
        os.path.join(folder, name)
        for folder, _, names in os.walk(_COMPILER)
        for name in names
        if name.endswith(".py")
    ]
    for path in sorted(sources):
        found.update(_read(path))
    return found


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


class Store:
    """The files of one folder."""

    _current: tuple[str, Store | None] = ("", None)

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._measured = False

    @classmethod
    def current(cls) -> Store | None:
        """The store that the settings name, if its folder can be made."""
        named = config.compilation_cache_dir or config.cache_dir or _default()
        if named != cls._current[0]:
            try:
                os.makedirs(named, mode=0o700, exist_ok=True)
                cls._current = named, cls(named)
            except OSError:
                cls._current = named, None
        return cls._current[1]

    @classmethod
    def forget(cls) -> None:
        """Look at the folder anew: it may have been removed, or could not be made before."""
        cls._current = ("", None)

    def find(self, key: str) -> tuple[dict[str, str], bytes] | None:
        """The module that has a kernel: names of its functions by key, and the object."""
        try:
            module = self._path(_read(self._path(f"{key}.in")).decode())
            data = _read(module)
            os.utime(module)
        except (OSError, ValueError):
            return None
        body = data[len(_MAGIC) + _DIGEST :]
        if not data.startswith(_MAGIC) or checksum(body) != data[len(_MAGIC) :][:_DIGEST]:
            return None
        head = int.from_bytes(body[:8], "little")
        lines = body[8 : 8 + head].decode().splitlines()
        names = {k: name for k, _, name in [line.partition(" ") for line in lines]}
        return (names, body[8 + head :]) if key in names else None

    def add(self, names: dict[str, str], code: bytes) -> None:
        """Keep a module."""
        head = "\n".join([f"{key} {name}" for key, name in names.items()]).encode()
        body = len(head).to_bytes(8, "little") + head + code
        data = _MAGIC + checksum(body) + body
        module = f"{blake2b(head, digest_size=_DIGEST).hexdigest()}.o"
        try:
            if not self._measured:
                self._measured = True
                self._shrink()
            self._write(module, data)
            for key in names:
                self._write(f"{key}.in", module.encode())
        except OSError:
            return

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _write(self, name: str, data: bytes) -> None:
        temporary = self._path(os.urandom(8).hex())
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            with os.fdopen(handle, "wb") as f:
                f.write(data)
            os.replace(temporary, self._path(name))
        except BaseException:
            os.unlink(temporary)
            raise

    def _shrink(self) -> None:
        """Remove what was not used for longest, down to three quarters of the limit.

        It is asked for when a process first adds a file.
        """
        limit = config.compilation_cache_max_size
        if limit < 0:
            return
        files = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # another process shrinks as well
                    info = entry.stat()
                    files.append((info.st_mtime, info.st_size, entry.path))
        total = sum([size for _, size, _ in files])
        if total <= limit:
            return
        for _, size, path in sorted(files):
            if total <= 3 * limit // 4:
                break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
            total -= size


def checksum(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST).digest()


def _default() -> str:
    if platform.system() == "Darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return os.path.join(os.path.expanduser(base), "primal")

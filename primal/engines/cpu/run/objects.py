"""Machine code of specs: found in this process, found on disk (see `store`), or compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from primal.base import caches, forks
from primal.base.config import config
from primal.base.later import Later
from primal.base.threads import threads
from primal.engines.cpu import _llvm
from primal.engines.cpu.run.foundry import Casting, foundry
from primal.engines.cpu.steps import RoutineSpec

if TYPE_CHECKING:
    from primal.engines.cpu.run.store import Store

# Paths, digests and temporary files are 10 ms of imports, which only who has a store waits for.
_store = Later("primal.engines.cpu.run.store")


class Counters:
    """What was made so far in this process; tests assert these instead of times."""

    def __init__(self) -> None:
        self.kernels = 0
        self.modules = 0
        self.loaded = 0


counters = Counters()
_known: dict[RoutineSpec, int] = {}
_lock = forks.lock()


@caches.register
def _forget() -> None:
    """Code stays loaded; what is forgotten is only found again by compiling it again.

    Another thread may be on its way through the table, which therefore stays as it is.
    """
    global _known
    _known = {}


def _current() -> Store | None:
    """The store that the settings name, if any."""
    found: Store | None = None
    if config.enable_compilation_cache:
        found = _store.Store.current()
    return found


def kernels_for(specs: Sequence[RoutineSpec]) -> dict[RoutineSpec, int]:
    """Code addresses; those not known yet are loaded, or compiled in one module."""
    known = _known
    found = {s: known[s] for s in specs if s in known}
    if len(found) == len(specs):
        return found
    missing = [s for s in dict.fromkeys(specs) if s not in found]
    if not missing:
        return found
    with _lock:
        fresh = [s for s in missing if s not in known]
        store = _current()
        if store is not None:
            fresh = _loaded(store, fresh, known)
        if fresh:
            for casting in foundry.finish(fresh):
                _kept(casting, store, known)
        found.update({s: known[s] for s in missing})
    return found


def ahead(*specs: RoutineSpec | None) -> None:
    """Begin to compile what a program under way is going to ask for, if it is anything."""
    known = _known
    fresh = [s for s in specs if s is not None and s not in known and s not in foundry]
    if not fresh or threads() == 1:
        return
    if not _lock.acquire(blocking=False):
        return
    try:
        store = _current()
        if store is not None:
            fresh = _loaded(store, fresh, known)
        if fresh:
            foundry.order(fresh)
    finally:
        _lock.release()


def _kept(casting: Casting, store: Store | None, known: dict[RoutineSpec, int]) -> None:
    addresses = _llvm.compiler().link(casting.code, casting.names)
    known.update(zip(casting.specs, addresses, strict=True))
    counters.kernels += len(casting.specs)
    counters.modules += 1
    if store is not None:
        keys = [_store.key_of(s) for s in casting.specs]
        store.add(dict(zip(keys, casting.names, strict=True)), casting.code)


def _loaded(
    store: Store, wanted: Sequence[RoutineSpec], known: dict[RoutineSpec, int]
) -> list[RoutineSpec]:
    """Load what is on disk; the rest is returned."""
    keys = {s: _store.key_of(s) for s in wanted if s not in foundry}
    where = {k: s for s, k in keys.items()}
    for spec in wanted:
        if spec in known or spec in foundry:  # it came with the module of another, or is coming
            continue
        found = store.find(keys[spec])
        if found is None:
            continue
        names, code = found
        ours = {k: n for k, n in names.items() if k in where}
        addresses = _llvm.compiler().link(code, list(ours.values()))
        for key, address in zip(ours, addresses, strict=True):
            known[where[key]] = address
        counters.loaded += len(ours)
    return [s for s in wanted if s not in known]

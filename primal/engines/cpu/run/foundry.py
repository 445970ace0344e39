"""Specs on their way to machine code, in several threads, while Python goes on.

A spec is ordered as soon as it is known, which for routines is long before the last step of a
program is: a thread that works off orders compiles a transformer's products while its other steps
are still being arranged. Who needs the code helps with what nobody has begun.

What is taken at a time is one module, as kernels share functions there. Threads end when there is
nothing to do; a forked child, which has none, begins anew.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Sequence

from primal.base.threads import threads
from primal.engines.cpu import _llvm
from primal.engines.cpu.run import resident
from primal.engines.cpu.steps import RoutineSpec

LEAST = 3
"""Kernels of a module, where there are as many: one takes a millisecond before its first."""
MOST = 6
"""Kernels of a module made ahead: who comes for them shall find some left to do."""


def is_plain(spec: RoutineSpec) -> bool:
    """Whether a spec has `plain` set: its code only finds what other functions work on.

    That of a product asks 30 words and calls one function per unit. To compile it takes LLVM 5 ms,
    and 1 without its optimisations, which nobody notices beside what is called.
    """
    return bool(getattr(spec, "plain", False))


def _form(spec: RoutineSpec) -> tuple[bool, bool]:
    """What specs of one module have alike."""
    return is_plain(spec), resident.is_resident(spec)


class Casting:
    """Some specs in one module: the names of their functions, and the object or what went wrong."""

    __slots__ = ("specs", "names", "code", "error")

    def __init__(self, specs: Sequence[RoutineSpec]) -> None:
        self.specs = list(specs)
        self.names = [f"kernel{i}" for i in range(len(specs))]
        self.code = b""
        self.error: Exception | None = None

    def text(self) -> str:
        """LLVM IR with one function per spec."""
        module = _llvm.compiler().module()
        for name, spec in zip(self.names, self.specs, strict=True):
            spec.write(module, name)
        return module.text()


class Foundry:
    """The orders of this process."""

    def __init__(self) -> None:
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[RoutineSpec] = []
        self._ordered: set[RoutineSpec] = set()
        self._made: list[Casting] = []
        self._workers = self._helpers = 0

    def __contains__(self, spec: RoutineSpec) -> bool:
        return spec in self._ordered

    def order(self, specs: Sequence[RoutineSpec]) -> None:
        """Have them compiled, by a thread if there may be more than this one."""
        _llvm.compiler()
        with self._changed:
            fresh = [s for s in dict.fromkeys(specs) if s not in self._ordered]
            self._waiting += fresh
            self._ordered.update(fresh)
            if self._waiting and self._workers < threads() - 1:
                # Counted before: Ctrl-C may end the wait for a thread that runs all the same.
                self._workers += 1
                try:
                    threading.Thread(target=self._work, name="primal compiler").start()
                except RuntimeError:  # no more threads: who needs the code makes all of it
                    self._workers -= 1

    def finish(self, specs: Sequence[RoutineSpec]) -> list[Casting]:
        """All that was made and not handed out so far, these specs among it."""
        # The longest first, so that those who share the work end at about the same time.
        self.order(sorted(specs, key=lambda s: len(repr(s)), reverse=True))
        with self._changed:
            self._helpers += 1
        try:
            while True:
                with self._changed:
                    batch = self._taken()
                    if not batch:
                        made = {s for c in self._made for s in c.specs}
                        if made.issuperset(specs):
                            return self._handed_out()
                        self._changed.wait()
                        continue
                self._cast(batch)
        finally:
            with self._changed:
                self._helpers -= 1

    def _handed_out(self) -> list[Casting]:
        for i, casting in enumerate(self._made):
            if casting.error is not None:
                self._ordered.difference_update(self._made.pop(i).specs)
                raise casting.error
        made, self._made = self._made, []
        for casting in made:
            self._ordered.difference_update(casting.specs)
        return made

    def _taken(self) -> list[RoutineSpec]:
        """The next module: all that waits, a part where several work, one kind where more may come.

        Kernels of a kind share functions: while the program is being arranged, the kind most of
        which waits is made, as another's may find company until then.
        """
        waiting = self._waiting
        if self._workers and not self._helpers:
            kinds = Counter([type(s) for s in waiting]).most_common(1)
            taken = [s for s in waiting if type(s) is kinds[0][0]][:MOST]
            self._waiting = [s for s in waiting if s not in taken]
            return taken
        count = len(waiting)
        if self._workers:
            count = max(LEAST, count // (2 * (self._helpers + self._workers)))
        # Plain ones are last, as they take least.
        waiting.sort(key=_form)
        taken = [s for s in waiting[:count] if _form(s) == _form(waiting[0])]
        self._waiting = waiting[len(taken) :]
        return taken

    def _cast(self, specs: Sequence[RoutineSpec]) -> None:
        casting = Casting(specs)
        try:
            if resident.is_resident(specs[0]):
                casting.code = resident.code_of(casting.text())
            else:
                casting.code = _llvm.compiler().object_of(casting.text(), is_plain(specs[0]))
        except Exception as e:
            casting.error = e
        except BaseException:  # Ctrl-C in the caller's thread: to be ordered again
            with self._changed:
                self._ordered.difference_update(specs)
            raise
        with self._changed:
            self._made.append(casting)
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                batch = self._taken()
                if not batch:
                    self._workers -= 1
                    return
            self._cast(batch)


foundry = Foundry()
"""The foundry of this process."""

"""The error of a program under construction: one code, and values for its message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from primal.control.check import FINE, INT32, Signature, Site, code_of
from primal.ir.avals import Aval
from primal.ir.trace import literal
from primal.ops.elementwise import bitwise_and, lt, select_n
from primal.ops.spread import broadcast_to, zeros_like_aval

CODE = Aval((), INT32)


def in_order(signatures: Iterable[Signature]) -> tuple[Signature, ...]:
    """Signatures without repetition, in an order that does not depend on how they were met."""
    return tuple(sorted(set(signatures), key=lambda s: (len(s), [a.short() for a in s])))


def avals_of(signatures: Sequence[Signature]) -> list[Aval]:
    """The types of an error as operands of a program: the code, then each signature's values."""
    return [CODE, *[a for s in signatures for a in s]]


class State:
    """The first error so far. Values are kept once per signature, as there is one error."""

    __slots__ = ("code", "values", "touched")

    def __init__(self, code: Any = None, values: dict[Signature, list[Any]] | None = None) -> None:
        self.code = literal(FINE, INT32, False) if code is None else code
        self.values = {} if values is None else values
        self.touched = False

    @classmethod
    def unflatten(cls, signatures: Sequence[Signature], flat: Sequence[Any]) -> State:
        """The state whose `flatten` these are."""
        made = cls()
        made.update(signatures, flat)
        return made

    def update(self, signatures: Sequence[Signature], flat: Sequence[Any]) -> None:
        """Replace everything by what a program returned."""
        self.code = flat[0]
        at = 1
        self.values = {}
        for s in signatures:
            self.values[s] = list(flat[at : at + len(s)])
            at += len(s)

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """The signatures that have values."""
        return in_order(self.values)

    def flatten(self, signatures: Sequence[Signature] | None = None) -> list[Any]:
        """Operands for a program; signatures without values so far get zeros."""
        flat = [self.code]
        for s in self.signatures if signatures is None else signatures:
            found = self.values.get(s)
            flat += [zeros_like_aval(a) for a in s] if found is None else found
        return flat

    def fail(self, failed: Any, site: Site, payload: Sequence[Any] = ()) -> None:
        """Note an error of a site where `failed`, a boolean scalar, holds."""
        code = literal(code_of(site), INT32, False)
        self.touched = True
        self._take(failed, code, site.signature, payload)

    def join(
        self, code: Any, signatures: Sequence[Signature], values: Sequence[Any]
    ) -> None:
        """Note an error found by another functionalised program."""
        self.touched = True
        failed = lt(np.int32(FINE), code)
        before = self.code
        at = 0
        for s in signatures:
            self.code = before
            self._take(failed, code, s, values[at : at + len(s)])
            at += len(s)
        if not signatures:
            self._take(failed, code, (), ())

    def _take(self, failed: Any, code: Any, signature: Signature, payload: Sequence[Any]) -> None:
        first = bitwise_and(failed, lt(self.code, np.int32(0)))
        if signature:
            old = self.values.get(signature)
            if old is None:
                old = [zeros_like_aval(a) for a in signature]
            self.values[signature] = [
                select_n(broadcast_to(first, a.shape), x, y)
                for a, x, y in zip(signature, old, payload, strict=True)
            ]
        self.code = select_n(first, self.code, code)

"""What the builder of kernels says about matrices: factorisations, spectra and systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.engines.cpu import rooms
from primal.engines.cpu.graph import Value
from primal.ir.avals import Aval


class MatrixWords:
    """Each is a routine in a room that is loaded when the first of them is asked for."""

    def eigenvalues(self, x: Value, dtype: Any) -> Value:
        return rooms.factorisations.eigenvalues(self, x, dtype)

    def cholesky(self, x: Value) -> Value:
        return rooms.solves.cholesky(self, x)

    def lu(self, x: Value) -> list[Value]:
        return rooms.solves.lu(self, x)

    def swapped(self, swaps: Value, size: int) -> Value:
        return rooms.solves.swapped(self, swaps, size)

    def qr(self, a: Value, full: bool) -> list[Value]:
        qr = rooms.small.qr if rooms.small.is_short(a) else rooms.reflections.qr
        return qr(self, a, full)

    def pivoted_qr(self, a: Value, full: bool, address: int) -> list[Value]:
        return rooms.reflections.qr(self, a, full, address)

    def geqrf(self, a: Value) -> list[Value]:
        return rooms.packed.geqrf(self, a)

    def householder_product(self, a: Value, tau: Value) -> Value:
        return rooms.packed.householder_product(self, a, tau)

    def ormqr(self, a: Value, tau: Value, x: Value, **params: Any) -> Value:
        return rooms.packed.ormqr(self, a, tau, x, **params)

    def cholesky_update(self, r: Value, w: Value) -> Value:
        return rooms.packed.cholesky_update(self, r, w)

    def eigh(self, a: Value, outs: Sequence[Aval], **params: Any) -> list[Value]:
        return rooms.spectra.eigh(self, a, outs, **params)

    def eig(self, a: Value, outs: Sequence[Aval], **params: Any) -> list[Value]:
        return rooms.spectra.eig(self, a, outs, **params)

    def schur(self, a: Value, outs: Sequence[Aval], **params: Any) -> list[Value]:
        return rooms.spectra.schur(self, a, outs, **params)

    def hessenberg(self, a: Value, outs: Sequence[Aval], **params: Any) -> list[Value]:
        return rooms.condense.hessenberg(self, a, outs, **params)

    def tridiagonal(self, a: Value, outs: Sequence[Aval], **params: Any) -> list[Value]:
        return rooms.condense.tridiagonal(self, a, outs, **params)

    def svd(self, a: Value, outs: Sequence[Aval], **params: Any) -> list[Value]:
        return rooms.spectra.svd(self, a, outs, **params)

    def solve(self, a: Value, b: Value, transpose_a: bool) -> Value:
        solve = rooms.small.solve if rooms.small.is_small(a) else rooms.systems.solve
        return solve(self, a, b, transpose_a)

    def triangular_solve(self, a: Value, b: Value, **params: Any) -> Value:
        return rooms.solves.triangular_solve(self, a, b, **params)

    def recurrence(self, a: Value, b: Value, **params: Any) -> Value:
        return rooms.recurrences.recurrence(self, a, b, **params)

    def tridiagonal_solve(self, dl: Value, d: Value, du: Value, b: Value) -> Value:
        return rooms.tridiagonals.tridiagonal_solve(self, dl, d, du, b)

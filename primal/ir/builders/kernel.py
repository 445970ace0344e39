"""`KernelBuilder`: the vocabulary of `kernel` rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from primal.ir.avals import Aval

Ints = Sequence[int]


class KernelValue(Protocol):
    """A value of the program being compiled, at no address yet: an expression to be placed."""

    @property
    def aval(self) -> Aval: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def ndim(self) -> int: ...


K = KernelValue


class KernelBuilder(Protocol):
    """What a `kernel` rule may call: the words of the CPU compiler.

    Every word either returns the value, of exactly the shape and dtype that the op's type rule
    gives, or raises `Unsupported`. No word computes anything yet: the engine decides later what is
    fused, what is stored, and where. A value that a rule makes and uses twice is computed once.

    Elementwise words broadcast scalars and size-1 dimensions, as the IR does, and mean what the
    `impl` of the op of that name means: integers wrap around, `div` and `rem` of integers by zero
    are defined, NaN wins in max and min.
    """

    # Elementwise. The names are those of the ops.
    def unary(self, name: str, x: K) -> K:
        """neg, sin, not, is_finite, …; of a float also round_nearest_even, round_nearest_afz."""
        ...

    def binary(self, name: str, x: K, y: K) -> K:
        """add, mul, max, lt, and, shift_left, …: operands of one dtype."""
        ...

    def rotate_left(self, x: K, distance: int) -> K:
        """The bits of integers, turned."""
        ...

    def bitcast(self, x: K, dtype: Any) -> K:
        """The same bits as a dtype of as many."""
        ...

    def select_n(self, which: K, *cases: K) -> K:
        """cases[which]: a bool chooses between two, an int32 is clamped into range."""
        ...

    def clamp(self, low: K, x: K, high: K) -> K:
        """min(max(x, low), high)."""
        ...

    def convert(self, x: K, dtype: Any) -> K:
        """Floats to integers truncate and saturate, NaN to 0; to bool means x != 0."""
        ...

    def integer_pow(self, x: K, y: int) -> K:
        """x^y by repeated squaring; a negative y takes the reciprocal at the end."""
        ...

    def copy(self, x: K) -> K:
        """The same values in a place of their own."""
        ...

    # Index maps: nothing moves, a consumer reads through them.
    def broadcast_in_dim(self, x: K, shape: Ints, dims: Ints) -> K: ...
    def reshape(self, x: K, shape: Ints) -> K: ...
    def transpose(self, x: K, permutation: Ints) -> K: ...
    def slice(self, x: K, start: Ints, limit: Ints, strides: Ints) -> K: ...
    def rev(self, x: K, dims: Ints) -> K: ...
    def iota(self, shape: Ints, dtype: Any, dim: int) -> K:
        """Counts 0, 1, … along `dim`, made where they are read."""
        ...

    # Parts of several values.
    def pad(self, x: K, value: K, config: Sequence[tuple[int, int, int]]) -> K:
        """`config` per dimension: (before, after, between neighbours); negative edges crop."""
        ...

    def concatenate(self, xs: Sequence[K], dim: int) -> K: ...

    def dynamic_slice(self, x: K, starts: Sequence[K], sizes: Ints) -> K:
        """The window of `sizes` at scalar starts, clamped."""
        ...

    def dynamic_update_slice(self, x: K, update: K, starts: Sequence[K]) -> K: ...
    def gather(
        self,
        x: K,
        indices: K,
        *,
        dimension_numbers: Any,
        slice_sizes: Ints,
        fill: Any,
        shape: tuple[int, ...],
    ) -> K:
        """Windows of x, of that shape all together; `fill` None clamps starts."""
        ...

    def scatter(
        self,
        word: str,
        x: K,
        indices: K,
        updates: K,
        *,
        dimension_numbers: Any,
        sizes: Ints,
        drops: bool,
    ) -> K:
        """Windows combined in by 'set', 'add', …, in order; clamped or dropped where outside."""
        ...

    # Windows; `window` holds the parameters of the ops.
    def reduce_window(
        self, monoid: str, x: K, shape: Ints, window: Mapping[str, Any]
    ) -> K:
        """`monoid` is one of add maximum minimum."""
        ...

    def select_and_scatter_add(
        self, source: K, x: K, how: str, window: Mapping[str, Any]
    ) -> K:
        """The source of each window added where its first extremum ('ge', 'le') is."""
        ...

    # Along one axis.
    def cumulative(self, word: str, x: K, axis: int, reverse: bool) -> K:
        """Running results of 'add', 'mul', 'max', 'min' or 'logaddexp'."""
        ...

    def place_of(self, how: str, x: K, axis: int, dtype: Any) -> K:
        """The place of the first greatest ('gt') or least ('lt') element; the first nan is one."""
        ...

    def sort(self, xs: Sequence[K], axis: int, num_keys: int) -> Sequence[K]:
        """All operands reordered alike, stably, by the first `num_keys` of them; nan last."""
        ...

    def top_k(self, x: K, count: int, axis: int) -> Sequence[K]:
        """The greatest, descending, and their places; nan counts as greatest, 0 above -0."""
        ...

    # Sums and products.
    def reduce(self, monoid: str, x: K, axes: Ints) -> K:
        """`monoid` is one of add multiply maximum minimum and or xor; none give its identity."""
        ...

    def dot_general(
        self,
        x: K,
        y: K,
        *,
        dimension_numbers: tuple[tuple[Ints, Ints], tuple[Ints, Ints]],
        precision: Any = None,
        preferred_element_type: Any = None,
    ) -> K: ...

    def convolution(self, x: K, y: K, **params: Any) -> K:
        """conv_general_dilated, with its parameters."""
        ...

    def eigenvalues(self, x: K, dtype: Any) -> K:
        """Of square matrices, in that complex dtype."""
        ...

    def cholesky(self, x: K) -> K: ...
    def lu(self, x: K) -> list[K]: ...
    def eigh(
        self, x: K, outs: Sequence[Aval], *, lower: bool, address: int
    ) -> list[K]:
        """Vectors, if `outs` has them, and values, by LAPACK's syevd or heevd at an address."""
        ...

    def eig(
        self, x: K, outs: Sequence[Aval], *, left: bool, right: bool, address: int, room: int
    ) -> list[K]:
        """Values and wanted vectors, by LAPACK's geev at an address, in so much workspace."""
        ...

    def pivoted_qr(self, x: K, full: bool, *, address: int) -> list[K]:
        """Q, R and the order of columns by geqp3 at that address."""
        ...

    def geqrf(self, x: K) -> list[K]:
        """R with the reflections that make it below, and their factors."""
        ...

    def householder_product(self, x: K, tau: K) -> K: ...

    def ormqr(self, a: K, tau: K, x: K, *, left: bool, transpose: bool) -> K: ...

    def cholesky_update(self, r: K, w: K) -> K: ...

    def hessenberg(self, x: K, outs: Sequence[Aval], *, address: int, room: int) -> list[K]:
        """By gehrd: the packed matrix and its factors."""
        ...

    def tridiagonal(
        self, x: K, outs: Sequence[Aval], *, lower: bool, address: int, room: int
    ) -> list[K]:
        """By sytrd or hetrd: the packed matrix, both diagonals and the factors."""
        ...

    def schur(self, x: K, outs: Sequence[Aval], *, address: int, room: int) -> list[K]:
        """T and, if `outs` has it, Q, by LAPACK's gees in so much workspace."""
        ...

    def svd(
        self, x: K, outs: Sequence[Aval], *, full: bool, algorithm: str, address: int, room: int
    ) -> list[K]:
        """Values and, if `outs` has them, vectors, by LAPACK's routine in so much workspace."""
        ...

    def fft(self, x: K, kind: str, lengths: Ints) -> K:
        """FFT, IFFT, RFFT or IRFFT of the last dimensions."""
        ...

    def triangular_solve(self, a: K, b: K, **params: Any) -> K: ...

    def tridiagonal_solve(self, dl: K, d: K, du: K, b: K) -> K: ...

    # Control. Regions take the builder and values; they may also mention values from outside.
    def inline(self, closed: Any, *args: K) -> list[K]:
        """The equations of the jaxpr, here."""
        ...

    def while_(
        self, cond: Callable[..., Sequence[K]], body: Callable[..., Sequence[K]], inits: Sequence[K]
    ) -> list[K]:
        """carry = body(carry) as long as cond(carry), a list of one scalar."""
        ...

    def scan(
        self,
        body: Callable[..., Sequence[K]],
        inits: Sequence[K],
        xs: Sequence[K],
        stacked: Sequence[Aval],
        length: int,
        reverse: bool,
    ) -> list[K]:
        """(carry, y[i]) = body(carry, x[i]) for all i; `stacked` are the avals of y."""
        ...

    def case(self, index: K, branches: Sequence[Callable[..., Sequence[K]]]) -> list[K]:
        """branches[index](), the index clamped."""
        ...

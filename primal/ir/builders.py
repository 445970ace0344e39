"""The vocabularies that an op's `hlo` and `kernel` rules speak: methods of a builder argument.

An op's room imports no engine; it receives a builder that satisfies `HloBuilder` or
`KernelBuilder`. The names of `HloBuilder` are the mnemonics of StableHLO (and of CHLO, its
companion of composed functions); methods that produce one result return an `HloValue`, those of
variadic operations a list. `KernelBuilder` has few words, and may decline any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from primal.ir.avals import Aval

Ints = Sequence[int]


class HloValue(Protocol):
    """A named value of the program being built."""

    @property
    def aval(self) -> Aval: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def ndim(self) -> int: ...


V = HloValue
Region = Callable[..., "V | Sequence[V]"]
"""Builds the body of a region: called with the builder and the block's arguments."""


class HloBuilder(Protocol):
    """What an `hlo` rule may call.

    Elementwise methods of several operands broadcast scalars and size-1 dimensions, as the IR
    does. Everything else takes exactly the shapes that StableHLO asks for.

    `outs` holds the avals of the equation being lowered (its type rule's answer) and `platform`
    the target: 'cpu', 'cuda', 'tpu'. `location` is a text for error messages and profiles.
    """

    outs: tuple[Aval, ...]
    platform: str

    # Anything: the escape hatch.
    def op(
        self,
        name: str,
        operands: Sequence[V],
        outs: Sequence[Aval],
        attrs: str = "",
        regions: Sequence[tuple[Sequence[Aval], Region]] = (),
    ) -> list[V]:
        """The operation in generic form; `attrs` is the text between `<{` and `}>`."""
        ...

    # Constants.
    def constant(self, value: Any, dtype: Any = None) -> V:
        """A NumPy array or scalar as a constant; big arrays belong into arguments."""
        ...

    def full(self, shape: Ints, value: Any, dtype: Any) -> V:
        """An array filled with one Python or NumPy scalar."""
        ...

    def full_like(self, x: V, value: Any) -> V:
        """`full` with the shape and dtype of x."""
        ...

    def iota(self, shape: Ints, dtype: Any, dim: int) -> V:
        """Counts 0, 1, … along `dim`."""
        ...

    # Elementwise, by name: the mnemonics below without the trailing underscore.
    def unary(self, name: str, x: V) -> V: ...
    def binary(self, name: str, x: V, y: V) -> V: ...

    # Elementwise, one operand, result of the same type.
    def abs(self, x: V) -> V:
        """Absolute value; of a complex operand, the real modulus."""
        ...

    def negate(self, x: V) -> V: ...
    def sign(self, x: V) -> V: ...
    def floor(self, x: V) -> V: ...
    def ceil(self, x: V) -> V: ...
    def round_nearest_even(self, x: V) -> V: ...
    def round_nearest_afz(self, x: V) -> V: ...
    def exponential(self, x: V) -> V: ...
    def exponential_minus_one(self, x: V) -> V: ...
    def log(self, x: V) -> V: ...
    def log_plus_one(self, x: V) -> V: ...
    def logistic(self, x: V) -> V: ...
    def tanh(self, x: V) -> V: ...
    def sine(self, x: V) -> V: ...
    def cosine(self, x: V) -> V: ...
    def tan(self, x: V) -> V: ...
    def sqrt(self, x: V) -> V: ...
    def rsqrt(self, x: V) -> V: ...
    def cbrt(self, x: V) -> V: ...
    def not_(self, x: V) -> V: ...
    def popcnt(self, x: V) -> V: ...
    def count_leading_zeros(self, x: V) -> V: ...
    def asin(self, x: V) -> V: ...
    def acos(self, x: V) -> V: ...
    def atan(self, x: V) -> V: ...
    def sinh(self, x: V) -> V: ...
    def cosh(self, x: V) -> V: ...
    def asinh(self, x: V) -> V: ...
    def acosh(self, x: V) -> V: ...
    def atanh(self, x: V) -> V: ...
    def erf(self, x: V) -> V: ...
    def erfc(self, x: V) -> V: ...
    def erf_inv(self, x: V) -> V: ...
    def lgamma(self, x: V) -> V: ...
    def digamma(self, x: V) -> V: ...
    def bessel_i1e(self, x: V) -> V: ...
    def square(self, x: V) -> V: ...
    def conj(self, x: V) -> V: ...

    # Elementwise, one operand, another dtype.
    def real(self, x: V) -> V: ...
    def imag(self, x: V) -> V: ...
    def is_finite(self, x: V) -> V: ...
    def is_inf(self, x: V) -> V: ...
    def is_pos_inf(self, x: V) -> V: ...
    def is_neg_inf(self, x: V) -> V: ...
    def convert(self, x: V, dtype: Any) -> V:
        """Value conversion; to bool it means `x != 0`, from complex to real the real part."""
        ...

    def bitcast_convert(self, x: V, dtype: Any) -> V:
        """The same bits; a narrower dtype adds a last dimension, a wider one takes it away."""
        ...

    def reduce_precision(self, x: V, exponent_bits: int, mantissa_bits: int) -> V: ...

    # Elementwise, several operands.
    def add(self, x: V, y: V) -> V: ...
    def subtract(self, x: V, y: V) -> V: ...
    def multiply(self, x: V, y: V) -> V: ...
    def divide(self, x: V, y: V) -> V: ...
    def remainder(self, x: V, y: V) -> V: ...
    def power(self, x: V, y: V) -> V: ...
    def maximum(self, x: V, y: V) -> V: ...
    def minimum(self, x: V, y: V) -> V: ...
    def and_(self, x: V, y: V) -> V: ...
    def or_(self, x: V, y: V) -> V: ...
    def xor(self, x: V, y: V) -> V: ...
    def shift_left(self, x: V, y: V) -> V: ...
    def shift_right_arithmetic(self, x: V, y: V) -> V: ...
    def shift_right_logical(self, x: V, y: V) -> V: ...
    def atan2(self, x: V, y: V) -> V: ...
    def next_after(self, x: V, y: V) -> V: ...
    def polygamma(self, n: V, x: V) -> V: ...
    def zeta(self, x: V, q: V) -> V: ...
    def complex(self, re: V, im: V) -> V: ...
    def compare(self, x: V, y: V, direction: str, total_order: bool = False) -> V:
        """`direction` is one of EQ NE LT LE GT GE, in either case; the dtype says how."""
        ...

    def select(self, pred: V, on_true: V, on_false: V) -> V: ...
    def select_n(self, which: V, *cases: V) -> V:
        """cases[which], elementwise; a bool `which` chooses between two."""
        ...

    def clamp(self, low: V, x: V, high: V) -> V: ...

    # Shape.
    def broadcast_in_dim(self, x: V, shape: Ints, dims: Ints) -> V: ...
    def broadcast_to(self, x: V, shape: Ints) -> V:
        """NumPy's rule: trailing dimensions align."""
        ...

    def reshape(self, x: V, shape: Ints) -> V: ...
    def transpose(self, x: V, permutation: Ints) -> V: ...
    def slice(self, x: V, start: Ints, limit: Ints, strides: Ints | None = None) -> V: ...
    def pad(self, x: V, value: V, config: Sequence[tuple[int, int, int]]) -> V:
        """`config` per dimension: (before, after, between neighbours); negative edges crop."""
        ...

    def concatenate(self, xs: Sequence[V], dim: int) -> V: ...
    def reverse(self, x: V, dims: Ints) -> V: ...

    # Contraction and windows.
    def dot_general(
        self,
        x: V,
        y: V,
        *,
        dimension_numbers: tuple[tuple[Ints, Ints], tuple[Ints, Ints]],
        precision: Any = None,
        preferred_element_type: Any = None,
    ) -> V:
        """`dimension_numbers` = (contracting of x, of y), (batch of x, of y).

        `precision` is None, one of DEFAULT HIGH HIGHEST, or a pair of those.
        """
        ...

    def convolution(
        self,
        x: V,
        kernel: V,
        *,
        dims: tuple[Ints, Ints, Ints],
        strides: Ints,
        padding: Sequence[tuple[int, int]],
        lhs_dilation: Ints | None = None,
        rhs_dilation: Ints | None = None,
        reversal: Sequence[bool] | None = None,
        feature_group_count: int = 1,
        batch_group_count: int = 1,
        precision: Any = None,
        preferred_element_type: Any = None,
    ) -> V:
        """`dims` = (batch, feature, *spatial), (out, in, *spatial), (batch, feature, *spatial)."""
        ...

    def reduce(self, monoid: str, x: V, dims: Ints, init: V | None = None) -> V:
        """`monoid` is one of add multiply maximum minimum and or xor; `init` its identity."""
        ...

    def reduce_with(self, xs: Sequence[V], inits: Sequence[V], dims: Ints, body: Region) -> list[V]:
        """`body(b, *accumulators, *items)` on scalars."""
        ...

    def reduce_window(
        self,
        monoid: str,
        x: V,
        *,
        window: Ints,
        strides: Ints | None = None,
        padding: Sequence[tuple[int, int]] | None = None,
        base_dilation: Ints | None = None,
        window_dilation: Ints | None = None,
        init: V | None = None,
    ) -> V: ...

    def reduce_window_with(
        self,
        xs: Sequence[V],
        inits: Sequence[V],
        body: Region,
        *,
        window: Ints,
        strides: Ints | None = None,
        padding: Sequence[tuple[int, int]] | None = None,
        base_dilation: Ints | None = None,
        window_dilation: Ints | None = None,
    ) -> list[V]: ...

    def select_and_scatter(
        self,
        x: V,
        source: V,
        init: V,
        *,
        direction: str = "GE",
        monoid: str = "add",
        window: Ints,
        strides: Ints | None = None,
        padding: Sequence[tuple[int, int]] | None = None,
    ) -> V: ...

    # Indexing.
    def gather(
        self,
        x: V,
        indices: V,
        *,
        offset_dims: Ints,
        collapsed_slice_dims: Ints,
        start_index_map: Ints,
        slice_sizes: Ints,
        operand_batching_dims: Ints = (),
        start_indices_batching_dims: Ints = (),
        index_vector_dim: int | None = None,
        indices_are_sorted: bool = False,
    ) -> V:
        """Out-of-bounds starts clamp. `index_vector_dim` defaults to the last dimension."""
        ...

    def scatter(
        self,
        xs: Sequence[V],
        indices: V,
        updates: Sequence[V],
        body: str | Region,
        *,
        update_window_dims: Ints,
        inserted_window_dims: Ints,
        scatter_dims_to_operand_dims: Ints,
        input_batching_dims: Ints = (),
        scatter_indices_batching_dims: Ints = (),
        index_vector_dim: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> list[V]:
        """Out-of-bounds updates are dropped; `body` is a monoid, 'set', or a region."""
        ...

    def dynamic_slice(self, x: V, starts: Sequence[V], sizes: Ints) -> V: ...
    def dynamic_update_slice(self, x: V, update: V, starts: Sequence[V]) -> V: ...
    def sort(
        self,
        xs: Sequence[V],
        dim: int,
        *,
        num_keys: int = 1,
        stable: bool = True,
        comparator: Region | None = None,
    ) -> list[V]:
        """Without a comparator: ascending by the first `num_keys`, -0 equal to 0, NaN last."""
        ...

    def top_k(self, x: V, k: int) -> tuple[V, V]: ...

    # Control.
    def while_(self, cond: Region, body: Region, inits: Sequence[V]) -> list[V]:
        """Both regions take the carry; they may also mention values from outside."""
        ...

    def case(self, index: V, branches: Sequence[Region]) -> list[V]:
        """Branches take the builder only and mention values from outside."""
        ...

    def if_(self, pred: V, on_true: Region, on_false: Region) -> list[V]: ...
    def optimization_barrier(self, xs: Sequence[V]) -> list[V]: ...
    def inline(self, closed_jaxpr: Any, *args: V) -> list[V]:
        """The equations of the jaxpr, here."""
        ...

    def call(self, closed_jaxpr: Any, *args: V, name: str = "f") -> list[V]:
        """The jaxpr as a function of its own, emitted once however often it is called."""
        ...

    # Linear algebra, Fourier, bits.
    def fft(self, x: V, kind: str, lengths: Ints) -> V:
        """`kind` is one of FFT IFFT RFFT IRFFT; `lengths` are those of the real signal."""
        ...

    def cholesky(self, x: V, lower: bool = True) -> V: ...
    def triangular_solve(
        self,
        a: V,
        b: V,
        *,
        left_side: bool = True,
        lower: bool = True,
        unit_diagonal: bool = False,
        transpose: str = "NO_TRANSPOSE",
    ) -> V:
        """`transpose` is one of NO_TRANSPOSE TRANSPOSE ADJOINT."""
        ...

    def rng_bit_generator(
        self, state: V, shape: Ints, dtype: Any, algorithm: str = "DEFAULT"
    ) -> tuple[V, V]:
        """(new state, bits); `algorithm` is one of DEFAULT PHILOX THREE_FRY."""
        ...

    def custom_call(
        self,
        target: str,
        operands: Sequence[V],
        outs: Sequence[Aval],
        *,
        attributes: Mapping[str, Any] | None = None,
        operand_layouts: Sequence[Ints] | None = None,
        result_layouts: Sequence[Ints] | None = None,
        aliases: Mapping[int, int] | None = None,
        side_effect: bool = False,
    ) -> list[V]:
        """Typed FFI. `attributes` are NumPy scalars, strings, bools; layouts minor-to-major."""
        ...

    def lapack(
        self,
        routine: str,
        operands: Sequence[V],
        outs: Sequence[Aval],
        *,
        attributes: Mapping[str, Any] | None = None,
        aliases: Mapping[int, int] | None = None,
        batch_dims: int | None = None,
    ) -> list[V]:
        """LAPACK's `routine` without its type letter, as in 'geev', on the CPU.

        Whatever has two dimensions beyond `batch_dims` (default: those of the first operand, a
        matrix) is a column-major matrix. One-letter strings in `attributes` become LAPACK's chars.
        """
        ...

    def host_call(
        self,
        callback: Callable[..., Any],
        operands: Sequence[V],
        outs: Sequence[Aval],
        side_effect: bool = False,
        ordered: bool = False,
    ) -> list[V]:
        """`callback(*arrays)` on the host, in Python; it returns NumPy arrays of the avals `outs`.

        A call with `side_effect` is neither dropped nor merged with another. Only `ordered` calls
        wait for each other.
        """
        ...


class Unsupported(Exception):
    """A kernel builder has no code for this word, dtype or shape.

    Raised by the words of `KernelBuilder` and never seen by users: the engine drops what the rule
    has built so far and runs the op's `impl` as a step. A rule need not catch it; one that knows
    another way to say the same may.
    """


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
    def triangular_solve(self, a: K, b: K, **params: Any) -> K: ...

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

"""`HloBuilder`: the vocabulary of `hlo` rules, in the mnemonics of StableHLO."""

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
    # Those that take an accuracy (`exponential` to `cbrt`, `power`) have it as a last argument.
    def unary(self, name: str, x: V, accuracy: Any = None) -> V: ...
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
    def exponential(self, x: V, accuracy: Any = None) -> V: ...
    def exponential_minus_one(self, x: V, accuracy: Any = None) -> V: ...
    def log(self, x: V, accuracy: Any = None) -> V: ...
    def log_plus_one(self, x: V, accuracy: Any = None) -> V: ...
    def logistic(self, x: V, accuracy: Any = None) -> V: ...
    def tanh(self, x: V, accuracy: Any = None) -> V: ...
    def sine(self, x: V, accuracy: Any = None) -> V: ...
    def cosine(self, x: V, accuracy: Any = None) -> V: ...
    def tan(self, x: V, accuracy: Any = None) -> V: ...
    def sqrt(self, x: V, accuracy: Any = None) -> V: ...
    def rsqrt(self, x: V, accuracy: Any = None) -> V: ...
    def cbrt(self, x: V, accuracy: Any = None) -> V: ...
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
    def power(self, x: V, y: V, accuracy: Any = None) -> V: ...
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

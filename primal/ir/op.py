"""The record of one operation: every obligation named, none hidden in a table elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from primal.base.native import extension
from primal.base.patience import patiently
from primal.ir.avals import Aval
from primal.ir.state import state

# The small words below are plain classes: a dataclass takes 0.5 ms of every `import primal`.


class Kind:
    """The family an op belongs to; answers fusion, cost, printing and default batching.

    `elementwise`: out[i] depends on operands at i only, with scalars and size-1 dimensions
    broadcast. `adopts_scalars`: Python scalars take the dtype of the other operands.
    `call`: the op runs a program it carries, so eager execution compiles it. `host`: its
    parameters hold Python functions, which no table may keep and no compiler may call. Operations
    that users define are of a kind of their own, FOREIGN, whose rules may still come or change.
    """

    __slots__ = ("name", "elementwise", "adopts_scalars", "call", "collective", "host")

    def __init__(
        self,
        name: str,
        elementwise: bool = False,
        adopts_scalars: bool = False,
        call: bool = False,
        collective: bool = False,
        host: bool = False,
    ) -> None:
        self.name = name
        self.elementwise = elementwise
        self.adopts_scalars = adopts_scalars
        self.call = call
        self.collective = collective
        self.host = host

    def __repr__(self) -> str:
        return self.name


ELEMENTWISE = Kind("elementwise", elementwise=True, adopts_scalars=True)
MIXED = Kind("elementwise (operands of several dtypes)", elementwise=True)
REDUCTION = Kind("reduction")
SPREAD = Kind("broadcast")
SHAPE = Kind("shape")
INDEX = Kind("index")
CONTRACT = Kind("contraction")
WINDOW = Kind("window")
LINALG = Kind("linear algebra")
FFT = Kind("Fourier transform")
BITS = Kind("random bits")
COLLECTIVE = Kind("collective", collective=True)
CALL = Kind("call", call=True)
CONTROL = Kind("control flow")
HOST = Kind("host", host=True)
FOREIGN = Kind("operation of the user's", host=True)


class Never:
    """A deliberate absence: calling the rule raises the reason as the user's error."""

    __slots__ = ("reason", "error")

    def __init__(self, reason: str, error: type[Exception] = NotImplementedError) -> None:
        self.reason = reason
        self.error = error

    def __call__(self, *args: Any, **params: Any) -> Any:
        raise self.error(self.reason)


class Word:
    """A rule in declarative form (`linear`, `each`, …), built once its op exists."""

    __slots__ = ("of",)

    def __init__(self, of: Callable[[Op], Callable[..., Any]]) -> None:
        self.of = of


class ByKind:
    """The default of the op's kind, kept by the transformation that reads it."""

    __slots__ = ()


by_kind = ByKind()


class Library:
    """The CPU compiler runs the op by calling its `impl` as a step."""

    __slots__ = ()


library = Library()


class Expand:
    """The op is rewritten into smaller ones, by calling `rule` on tracers, before any engine."""

    __slots__ = ("rule",)

    def __init__(self, rule: Callable[..., Any]) -> None:
        self.rule = rule


class Splice:
    """The op is replaced, before any engine, by the equations of the program in a parameter."""

    __slots__ = ("param",)

    def __init__(self, param: str) -> None:
        self.param = param


class HigherOrder:
    """Obligations of an op that carries jaxprs.

    `linearize(trace, primals, tangents, **params)` splits one pass into what is known and what
    is linear; it cannot be derived from `jvp`, whose result mixes both in one program.
    `dce(used, eqn)` drops what nobody uses: returns (used inputs, smaller eqn or None).
    `mixes(linear, **params)`: which outputs depend on the `linear` inputs, for an op whose programs
    may compute values beside tangents. None: all do.
    `hoist(part, invars, params)`, for loops: the operands and parameters after what every turn
    computes alike was moved before it. `part(program, known)` moves what depends on known inputs
    alone (`known` has None at others), and returns the rest and its further inputs, which come
    first. None: there are no turns. A call outside of programs compiles what has turns.
    `in_place`: functions of the library that are remembered run it where it stands. Loops of known
    length may be long.
    `by_rule`: its transpose is a function of the user's.
    """

    __slots__ = ("linearize", "dce", "mixes", "hoist", "in_place", "by_rule")

    def __init__(
        self,
        *,
        linearize: Callable[..., Any],
        dce: Callable[..., Any] | Never,
        mixes: Callable[..., Sequence[bool]] | None = None,
        hoist: Callable[..., tuple[list[Any], dict[str, Any]]] | None = None,
        in_place: bool = False,
        by_rule: bool = False,
    ) -> None:
        self.linearize = linearize
        self.dce = dce
        self.mixes = mixes
        self.hoist = hoist
        self.in_place = in_place
        self.by_rule = by_rule


Bound = Callable[[Any], str]
"""Gives a constant a name in the source of a program."""
Effects = frozenset[Any]
no_effects: Effects = frozenset()


if TYPE_CHECKING or extension is None:

    class AsksTrace:
        """Calling the record asks the ambient trace."""

        def __call__(self, *args: Any, **params: Any) -> Any:
            return state.trace.process(self, args, params)

else:
    AsksTrace = extension.Callable  # the same, and at once where no trace is running


class Op(AsksTrace):
    """One operation and everything that is known about it. The record is the callable.

    Data are positional, parameters keyword-only and hashable. Rules:

    * `type(*avals, **params)` -> Aval, or tuple of Avals when `multiple`.
    * `impl(*arrays, **params)`: NumPy; the meaning of the op.
    * `jvp(primals, tangents, **params)` -> (out, tangent out); `ZERO` is the symbolic zero.
    * `transpose(ct, *args, **params)` -> one cotangent per argument, `None` where the argument is
      not linear; linear arguments arrive as `Undefined(aval)`.
    * `batch(axis, args, dims, **params)` -> (out, out dim), `None` for not batched.
    * `shard`: how the op acts on sharded operands.
    * `hlo(b, *operands, **params)`: StableHLO through a builder.
    * `kernel(k, *operands, **params)`: the CPU compiler through a builder, or `library`, or
      `Expand(f)`.
    * `show(params)` -> the parameters that are printed, `title(params)` -> the name.
    * `written(eqn, names, bound)` -> NumPy's expression for what `impl` does, where the types of an
      equation on NumPy's own dtypes settle it, or None; `bound` names a constant. Programs that
      run as Python source save the question, which is 0.1 to 0.4 µs an operation.
    * `closed_form(*makers, **params)` -> the scalar that the result is known to be, or None;
      makers are the equations without operands (an iota, say) that make the operands, or None.
    * `folds`: whether simplification computes it of known numbers; not where `impl` waits for a
      library longer than its code takes (scipy.special: 0.15 s).
    * `apart(*operands, **params)`: the same by smaller ops, the first of which read the first
      operand alone; for programs in which they are shared, or moved before a loop.
    * `word`: the builder's word that the kernel is, of the operands as they are; None: it is more.
    * `ahead(outlook, eqn)`: what the CPU compiler is told of an equation before it begins with the
      program, through a builder (`engines/cpu/plan/outlook.py`).
    * `hollow(*operands, **params)`: the same by smaller ops where an operand has no elements and
      the result has some, as no kernel can read nothing. None: the CPU compiler calls `impl`.
    """

    def __init__(
        self,
        *,
        name: str,
        kind: Kind,
        type: Callable[..., Any],
        impl: Callable[..., Any],
        jvp: Any,
        transpose: Any,
        batch: Any,
        shard: Callable[..., Any] | ByKind,
        hlo: Callable[..., Any] | Expand | Splice,
        kernel: Callable[..., Any] | Library | Expand | Splice,
        higher: HigherOrder | None = None,
        multiple: bool = False,
        effects: Callable[..., Effects] | None = None,
        show: Callable[..., dict[str, Any]] | None = None,
        title: Callable[..., str] | None = None,
        written: Callable[[Any, Sequence[str], Bound], str | None] | None = None,
        closed_form: Callable[..., Any] | None = None,
        apart: Callable[..., Any] | None = None,
        hollow: Callable[..., Any] | None = None,
        folds: bool = True,
        word: str | None = None,
        ahead: Callable[[Any, Any], None] | None = None,
    ) -> None:
        # Written out: a dataclass of so many fields takes 1 ms of every `import primal`.
        fields = self.__dict__
        fields["name"] = name
        fields["kind"] = kind
        fields["type"] = type
        fields["impl"] = patiently(impl) if kind is LINALG else impl
        fields["jvp"] = jvp  # a function, or a Word, which is made one below
        fields["transpose"] = transpose
        fields["batch"] = batch  # likewise, or by_kind
        fields["shard"] = shard
        fields["hlo"] = hlo
        fields["kernel"] = kernel
        fields["higher"] = higher
        fields["multiple"] = multiple
        fields["effects"] = effects
        fields["show"] = show
        fields["title"] = title
        fields["written"] = written
        fields["closed_form"] = closed_form
        fields["apart"] = apart
        fields["hollow"] = hollow
        fields["folds"] = folds
        fields["word"] = word
        fields["ahead"] = ahead
        fields["types"] = {}
        fields["eager"] = {}
        for field in ("type", "impl", "jvp", "transpose", "batch", "hlo", "kernel"):
            rule = fields[field]
            if isinstance(rule, Word):
                fields[field] = rule.of(self)
            elif not callable(rule) and not isinstance(rule, ByKind | Library | Expand | Splice):
                raise TypeError(f"[{self.name}] expected a rule for `{field}`, got {rule!r}.")
        module = _module_below(sys._getframe(1))
        if self.name in registry and _is_loaded(_modules[self.name]):
            raise ValueError(f"[{self.name}] expected a new name, got one already registered.")
        registry[self.name], _modules[self.name] = self, module

    if TYPE_CHECKING:
        name: str
        kind: Kind
        type: Callable[..., Any]
        impl: Callable[..., Any]
        jvp: Callable[..., Any]
        transpose: Callable[..., Any]
        batch: Any
        shard: Callable[..., Any] | ByKind
        hlo: Callable[..., Any] | Expand | Splice
        kernel: Callable[..., Any] | Library | Expand | Splice
        higher: HigherOrder | None
        multiple: bool
        effects: Callable[..., Effects] | None
        show: Callable[..., dict[str, Any]] | None
        title: Callable[..., str] | None
        written: Callable[[Any, Sequence[str], Bound], str | None] | None
        closed_form: Callable[..., Any] | None
        apart: Callable[..., Any] | None
        hollow: Callable[..., Any] | None
        folds: bool
        word: str | None
        ahead: Callable[[Any, Any], None] | None
        types: dict[Any, Any]
        eager: dict[Any, Any]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"[{self.name}] expected a record that stays as it is.")

    def infer(self, avals: tuple[Aval, ...], params: dict[str, Any]) -> Any:
        """The type rule, remembered per (avals, params).

        Programs and functions among the parameters are new objects for every trace of a user's
        function: a table keyed by them would only grow, and it would keep them alive. Those of
        collectives depend on the sizes of the axes that are ambient.
        """
        if self.higher is not None or self.kind.collective or self.kind.host:
            return self.type(*avals, **params)
        key = (avals, *params.items()) if params else avals
        found = self.types.get(key)
        if found is None:
            found = self.types[key] = self.type(*avals, **params)
        return found

    def title_of(self, params: dict[str, Any]) -> str:
        """The name that people are shown for a call with these parameters."""
        return self.title(params) if self.title is not None else self.name

    # What interpreters of programs that were written for JAX call an operation by.
    def bind(self, *args: Any, **params: Any) -> Any:
        """The operation applied."""
        return self(*args, **params)

    @property
    def multiple_results(self) -> bool:
        """Whether the results are a sequence."""
        return self.multiple

    @property
    def call_primitive(self) -> bool:
        """Whether it only calls the program `call_jaxpr` of its parameters; no op here does."""
        return False

    def get_bind_params(self, params: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Functions and parameters that `bind` takes: programs stay parameters here."""
        return [], params

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return op_named, (self.name,)


registry: dict[str, Op] = {}
_modules: dict[str, dict[str, Any]] = {}
"""The variables of the module that was being loaded when an op was made, by the op's name."""


def _module_below(frame: Any) -> dict[str, Any]:
    while frame.f_back is not None and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    variables: dict[str, Any] = frame.f_globals
    return variables


def _is_loaded(variables: dict[str, Any]) -> bool:
    """False for a module whose loading was interrupted: it is loaded again, its ops with it."""
    module = sys.modules.get(variables.get("__name__", ""))
    return module is not None and vars(module) is variables


def op_named(name: str) -> Op:
    """The op of that name, for unpickling programs."""
    return registry[name]

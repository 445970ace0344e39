"""Operations that users define: records whose rules are given after they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any
from weakref import WeakSet

from primal.ir.avals import Aval
from primal.ir.op import FOREIGN, Expand, Op, by_kind
from primal.ir.state import roots, state
from primal.ir.trace import ZERO, Tracer, aval_of
from primal.ops.spread import zeros_like_aval
from primal.runtime.array import from_literal


class Zero:
    """A tangent or cotangent that is known to be zero, with the type that it would have.

    >>> primal.interpreters.ad.Zero(primal.typeof(jnp.ones(2)))
    Zero(float32[2])
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Aval) -> None:
        self.aval = aval

    def instantiate(self) -> Any:
        """The zeros as an array."""
        return zeros_like_aval(self.aval)

    def __repr__(self) -> str:
        return f"Zero({self.aval})"


def zero_tangent(value: Any) -> Zero:
    """The zero tangent of a value."""
    return Zero(aval_of(value).tangent())


class Primitive(Op):
    """An operation of the user's, which transformations and programs know by its rules.

    `bind` applies it. Outside of transformations that calls what `def_impl` was given, with the
    operands as they are, and returns what it returns. The rules of transformations are set in
    `primal.interpreters`: `ad.primitive_jvps`, `ad.primitive_transposes`,
    `batching.primitive_batchers` and `mlir.register_lowering`; those tables are views of the rules
    in this record. A set `multiple_results` says that results are a sequence. A rule that is
    needed and was not given is a NotImplementedError.

    >>> from primal.extend.core import Primitive
    >>> double_p = Primitive("double")
    >>> double_p.def_impl(lambda x: x * 2) and double_p.bind(3.0)
    6.0
    >>> _ = double_p.def_abstract_eval(lambda x: x)
    >>> primal.make_jaxpr(double_p.bind)(3.0)
    { lambda ; a:f32[]. let b:f32[] = double a in (b,) }
    """

    multiple_results = False
    rules: dict[str, Callable[..., Any]]
    """Those that are set in the tables of `primal.interpreters`."""

    def __init__(self, name: str) -> None:
        # Not those of `Op`: the name is not registered, as those of two users may be the same.
        fields = self.__dict__
        fields.update(name=name, kind=FOREIGN, shard=by_kind, types={}, eager={}, rules={})
        for absent in (
            "higher", "effects", "show", "title", "written", "closed_form", "apart", "hollow",
            "word", "ahead",
        ):  # fmt: skip
            fields[absent] = None
        fields["folds"] = False

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Set what computes the results of operands that have values; returns it."""
        self.impl = impl  # type: ignore[method-assign]
        return impl

    def def_abstract_eval(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule from the types of operands to those of results; returns it.

        Types are `primal.core.ShapedArray`s.
        """
        self.abstract_eval = rule  # type: ignore[method-assign]
        return rule

    def bind(self, *args: Any, **params: Any) -> Any:
        """The operation applied to operands, with parameters that can be hashed."""
        if state.trace in roots and not any(isinstance(a, Tracer) for a in args):
            return self.impl(*args, **params)
        return state.trace.process(self, args, params)

    def abstract_eval(self, *avals: Any, **params: Any) -> Any:
        """The types of the results, by the rule that was given."""
        raise self.lacks("a rule for types", "def_abstract_eval", "Abstract evaluation")

    # The rules of an `Op`, from those that were given.
    @property
    def multiple(self) -> bool:  # type: ignore[override]
        return self.multiple_results

    def impl(self, *args: Any, **params: Any) -> Any:
        raise self.lacks("an implementation", "def_impl", "Evaluation rule")

    def type(self, *avals: Aval, **params: Any) -> Any:
        out = self.abstract_eval(*avals, **params)
        found = tuple(out) if isinstance(out, tuple | list) else (out,)
        right = isinstance(out, tuple | list) == self.multiple
        if not right or not all(isinstance(aval, Aval) for aval in found):
            raise (TypeError if right else ValueError)(
                f"[{self.name}] expected the rule of def_abstract_eval to return "
                f"{'a sequence of ShapedArrays' if self.multiple else 'a ShapedArray'}, as "
                f"multiple_results is {self.multiple}, got {out!r}."
            )
        return found if self.multiple else out

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        rule = self.rules.get("jvp")
        if rule is None:
            raise self.lacks("a derivative", "ad.primitive_jvps", "Differentiation rule")
        primals = [from_literal(x) for x in primals]
        pushed = [
            zero_tangent(x) if t is ZERO else from_literal(t)
            for x, t in zip(primals, tangents, strict=True)
        ]
        out, tangent = rule(tuple(primals), tuple(pushed), **params)
        return out, [_plain(t) for t in tangent] if self.multiple else _plain(tangent)

    def transpose(self, ct: Any, *args: Any, **params: Any) -> Any:
        rule = self.rules.get("transpose")
        if rule is None:
            raise self.lacks(
                "a transpose", "ad.primitive_transposes",
                "Transpose rule (for reverse-mode differentiation)",
            )  # fmt: skip
        if self.multiple:
            outs = self.infer(tuple([aval_of(a) for a in args]), params)
            ct = [
                Zero(a.tangent()) if c is ZERO else from_literal(c)
                for c, a in zip(ct, outs, strict=True)
            ]
        else:
            ct = from_literal(ct)
        found = list(rule(ct, *[from_literal(a) for a in args], **params))
        if len(found) != len(args):
            raise ValueError(
                f"[{self.name}] expected the transpose rule to return {len(args)} cotangents, one "
                f"for each operand, got {len(found)}."
            )
        return [None if c is None or isinstance(c, Zero) else c for c in found]

    def batch(self, axis: Any, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        args = [from_literal(a) for a in args]
        fancy = self.rules.get("fancy_batch")
        if fancy is not None:
            return fancy(axis, args, dims, **params)
        rule = self.rules.get("batch")
        if rule is None:
            raise self.lacks("a rule for vmap", "batching.primitive_batchers", "Batching rule")
        return rule(args, dims, **params)

    def hlo(self, builder: Any, *operands: Any, **params: Any) -> Any:
        raise NotImplementedError(
            f"[{self.name}] expected a rule for programs, got none: MLIR translation rule for "
            f"primitive '{self.name}' not found. Give a function of arrays that computes it: "
            "mlir.register_lowering(p, mlir.lower_fun(f))."
        )

    kernel = hlo

    def lower_by(self, fun: Callable[..., Any], multiple: bool) -> None:
        """Programs compute it by the operations of `fun`, which gives a sequence if `multiple`."""

        def rule(*args: Any, **params: Any) -> Any:
            out = fun(*args, **params)
            outs = list(out) if multiple else [out]
            return outs if self.multiple else outs[0]

        self.hlo = self.kernel = Expand(rule)  # type: ignore[assignment, method-assign]

    def lacks(self, wanted: str, where: str, rule: str) -> NotImplementedError:
        """The error of a rule that was not given; JAX's words come last."""
        return NotImplementedError(
            f"[{self.name}] expected {wanted}, given by {where}, got none: {rule} for "
            f"'{self.name}' not implemented"
        )

    def __deepcopy__(self, memo: Any) -> Primitive:
        return self

    def __copy__(self) -> Primitive:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            f"[{self.name}] expected a program of this library's operations to pickle, got one of "
            "the user's, which has no name to be found by."
        )


def _plain(tangent: Any) -> Any:
    return ZERO if isinstance(tangent, Zero) else tangent


class Rules(MutableMapping[Primitive, Callable[..., Any]]):
    """A table of one rule of all primitives, as JAX has it: a view of their records."""

    def __init__(self, rule: str, name: str) -> None:
        self._rule, self._name = rule, name
        self._having: WeakSet[Primitive] = WeakSet()

    def __getitem__(self, primitive: Primitive) -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(primitive, "rules", {})[self._rule]
        return found

    def __setitem__(self, primitive: Primitive, rule: Callable[..., Any]) -> None:
        if not isinstance(primitive, Primitive):
            raise TypeError(
                f"[{self._name}] expected a primal.extend.core.Primitive, got {primitive!r}: the "
                "rules of the library's own operations stay as they are."
            )
        primitive.rules[self._rule] = rule
        self._having.add(primitive)

    def __delitem__(self, primitive: Primitive) -> None:
        del primitive.rules[self._rule]
        self._having.discard(primitive)

    def __iter__(self) -> Iterator[Primitive]:
        return iter(list(self._having))

    def __len__(self) -> int:
        return len(self._having)

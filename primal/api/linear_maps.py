"""Derivatives at a point as functions: what `vjp` and `linearize` return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from primal.api.tangents import cotangent_of, cotangent_operand, tangent_of, tangent_operand
from primal.base.errors import api_boundary
from primal.base.pytree import (
    PyTreeDef,
    flatten,
    register_pytree_node,
    tree_broadcast,
    tree_leaves,
    unflatten,
)
from primal.ir.jaxpr import Jaxpr
from primal.ir.trace import ZERO
from primal.runtime.refs import Ref, addupdate
from primal.transforms.linear_program import LinearProgram
from primal.transforms.linearize import Linearization


class _LinearMap:
    """A derivative at a point. A tree of the values it keeps, so that jit and vmap return it."""

    def __init__(
        self, lin: Linearization | LinearProgram, spec: Any, out_spec: Any, count: int
    ) -> None:
        self.lin = lin
        self.spec = spec
        self.out_spec = out_spec
        self.count = count

    def _program(self) -> LinearProgram:
        if not isinstance(self.lin, LinearProgram):
            self.lin = LinearProgram.of(self.lin)
        return self.lin

    def _flattened(self) -> tuple[Any, Any]:
        lin = self._program()
        fixed = (lin.program, lin.ins, lin.outs, lin.in_avals, lin.out_avals)
        return tuple(lin.consts), (fixed, self.spec, self.out_spec, self.count)

    @classmethod
    def _unflattened(cls, aux: Any, consts: Any) -> Any:
        (program, *rest), spec, out_spec, count = aux
        return cls(LinearProgram(program, list(consts), *rest), spec, out_spec, count)


# What `VJP.with_refs` is told per argument, and what the pullback then returns in its place.


class _Word:
    """A word that equals those of its class."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradValue(_Word):
    """To `VJP.with_refs`: return this argument's gradient, as without.

    >>> y, pullback = primal.vjp(lambda x: x * x, 3.0)
    >>> pullback.with_refs(primal.ad.GradValue())(1.0)
    (Array(6., dtype=float32, weak_type=True),)
    """

    __slots__ = ()


class DontWant(_Word):
    """To `VJP.with_refs`: do not compute this argument's gradient.

    >>> y, pullback = primal.vjp(lambda x: x * x, 3.0)
    >>> pullback.with_refs(primal.ad.DontWant())(1.0)
    (DidntWant(),)
    """

    __slots__ = ()


class DidntWant(_Word):
    """From a pullback: a gradient that was not wanted. A tree without leaves.

    >>> primal.tree.leaves(primal.ad.DidntWant())
    []
    """

    __slots__ = ()


class GradRef(_Word):
    """From a pullback: a gradient that was added to a reference. A tree without leaves.

    >>> ref = primal.new_ref(1.0)
    >>> primal.vjp(lambda x: x * x, 3.0)[1].with_refs(ref)(1.0), ref[...]
    ((GradRef(),), Array(7., dtype=float32, weak_type=True))
    """

    __slots__ = ()


class NotNeeded(_Word):
    """In `VJP.args_res`: an argument whose value the pullback does not need. Without leaves."""

    __slots__ = ()


for _word in (DidntWant, GradRef, NotNeeded):
    register_pytree_node(_word, lambda x: ((), None), lambda aux, _, kind=_word: kind())  # type: ignore[misc]

_VALUE, _NOTHING = GradValue(), DontWant()


class VJP(_LinearMap):
    """The function of cotangents that `vjp` returns.

    `wishes` says per flat argument what becomes of its gradient: GradValue, DontWant, or a
    reference to add it to. Arguments that were references (`ref_args`) need one. `given` are the
    identities of the flat arguments, by which what is kept of them is told from the rest.
    """

    ref_args: tuple[int, ...] = ()
    wishes: Sequence[Any] | None = None
    given: tuple[int, ...] = ()
    _places: tuple[tuple[int, int], ...] | None = None
    _kept: tuple[list[Any], list[Any]] | None = None

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of the arguments."""
        return PyTreeDef(self.spec)

    @property
    def out_tree(self) -> PyTreeDef:
        """The structure of the cotangent."""
        return PyTreeDef(self.out_spec)

    @property
    def jaxpr(self) -> Jaxpr:
        """The linear program, of what is kept and the tangents."""
        return self._program().program.jaxpr

    @property
    def args_res(self) -> list[Any]:
        """Per argument, the values of it that are kept, and `NotNeeded()` for the others.

        The list may be written: what stands there when the pullback is called is what it uses.

        >>> y, pullback = primal.vjp(lambda x, y: x @ y, jnp.ones(2), jnp.ones(2))
        >>> pullback.args_res[1] = jnp.zeros(2)
        >>> pullback(1.0)[0]
        Array([0., 0.], dtype=float32)
        """
        return self._residuals()[0]

    @property
    def opaque_residuals(self) -> list[Any]:
        """The kept values that are no arguments."""
        return self._residuals()[1]

    def _at(self, lin: LinearProgram) -> tuple[tuple[int, int], ...]:
        """(flat argument, its place among the kept values), for the arguments that are kept."""
        if self._places is None:
            known = {id(c): j for j, c in enumerate(lin.consts)}
            self._places = tuple([(k, known[i]) for k, i in enumerate(self.given) if i in known])
        return self._places

    def _residuals(self) -> tuple[list[Any], list[Any]]:
        if self._kept is None:
            lin = super()._program()
            at = dict(self._at(lin))
            leaves = [
                lin.consts[at[k]] if k in at else NotNeeded() for k in range(len(lin.in_avals))
            ]
            rest = set(range(len(lin.consts))) - {*at.values()}
            args = list(unflatten(self.spec, leaves))
            self._kept = args, [lin.consts[j] for j in sorted(rest)]
        return self._kept

    def _program(self) -> LinearProgram:
        lin = super()._program()
        if self._kept is None:
            return lin
        args, opaque = self._kept
        at = [j for _, j in self._at(lin)]
        leaves, others = tree_leaves(args), iter(opaque)
        if len(leaves) != len(at) or len(opaque) != len(lin.consts) - len({*at}):
            raise ValueError(
                f"[vjp] expected {len(at)} values of arguments in args_res and "
                f"{len(lin.consts) - len({*at})} in opaque_residuals, got {len(leaves)} and "
                f"{len(opaque)}. Put back what was there before calling the pullback."
            )
        mine = dict(zip(at, leaves, strict=True))
        consts = [mine[j] if j in mine else next(others) for j in range(len(lin.consts))]
        return LinearProgram(
            lin.program, consts, lin.ins, lin.outs, lin.in_avals, lin.out_avals
        )

    def with_refs(self, *wishes: Any) -> VJP:
        """The same pullback, told per argument what becomes of its gradient.

        A `Ref`: it is added to what the reference holds, and GradRef() is returned; GradValue():
        it is returned; DontWant(): it is not computed, and DidntWant() is returned. One of these
        may stand for a whole tree of GradValue or DontWant. TypeError for anything else.

        >>> total = primal.new_ref(100.0)
        >>> y, pullback = primal.vjp(lambda r: r[...] ** 2, primal.new_ref(2.0))
        >>> pullback.with_refs(total)(1.0), total[...]
        ((GradRef(),), Array(104., dtype=float32, weak_type=True))
        """
        args = unflatten(self.spec, list(self.lin.in_avals))
        if len(wishes) != len(args):
            raise TypeError(
                f"[with_refs] expected one entry per argument, of which there are {len(args)}, got "
                f"{len(wishes)}."
            )
        leaves = tree_leaves(tree_broadcast(wishes, args))
        for w in leaves:
            if not isinstance(w, Ref | GradValue | DontWant):
                raise TypeError(
                    "[with_refs] expected a reference, ad.GradValue() or ad.DontWant() per "
                    f"argument, got {w!r}."
                )
        bound = VJP(self.lin, self.spec, self.out_spec, self.count)
        bound.given, bound._places, bound._kept = self.given, self._places, self._kept
        bound.ref_args, bound.wishes = self.ref_args, leaves
        return bound

    @api_boundary
    def __call__(self, ct: Any) -> Any:
        ct_leaves, ct_spec = flatten(ct)
        if ct_spec != self.out_spec:
            raise ValueError(
                "unexpected tree structure of argument to vjp function: got "
                f"{PyTreeDef(ct_spec)}, but expected to match {PyTreeDef(self.out_spec)}."
            )
        lin, count = self.lin if self._kept is None else self._program(), self.count
        avals = lin.out_avals[:count]
        cts = [cotangent_operand(c, a) for c, a in zip(ct_leaves, avals, strict=True)]
        cts += [ZERO] * (len(lin.out_avals) - count)
        wishes = self.wishes
        if wishes is None and not self.ref_args:
            results = [
                cotangent_of(c, a)
                for c, a in zip(lin.transposed(cts), lin.in_avals, strict=True)
            ]
            return unflatten(self.spec, results)
        wishes = [_VALUE] * len(lin.in_avals) if wishes is None else wishes
        for i in self.ref_args:
            if wishes[i] == _VALUE:
                raise ValueError(
                    "[vjp] expected a reference for the gradient of an argument that is one, got "
                    f"none: the gradient of {lin.in_avals[i]} must be accumulated into a ref. Bind "
                    "it with `with_refs`: pullback.with_refs(new_ref(zeros))(cotangent)."
                )
        wanted = [w != _NOTHING for w in wishes]
        found = self._program().transposed(cts, wanted)
        return unflatten(
            self.spec,
            [_granted(w, c, a) for w, c, a in zip(wishes, found, lin.in_avals, strict=True)],
        )

    def _flattened(self) -> tuple[Any, Any]:
        consts, aux = super()._flattened()
        aux = aux, self._at(self._program())
        at = tuple([i for i, w in enumerate(self.wishes or ()) if isinstance(w, Ref)])
        wishes = None if self.wishes is None else tuple(self.wishes)
        others = wishes and tuple([None if i in at else w for i, w in enumerate(wishes)])
        refs = tuple([wishes[i] for i in at]) if wishes else ()
        return (*consts, *refs), (aux, self.ref_args, others, at)

    @classmethod
    def _unflattened(cls, aux: Any, children: Any) -> Any:
        (inner, places), ref_args, wishes, at = aux
        end = len(children) - len(at)
        self = super()._unflattened(inner, children[:end])
        self.ref_args, self._places = ref_args, places
        if wishes is not None:
            self.wishes = list(wishes)
            for i, ref in zip(at, children[end:], strict=True):
                self.wishes[i] = ref
        return self


def _granted(wish: Any, ct: Any, aval: Any) -> Any:
    if isinstance(wish, Ref):
        if ct is not ZERO:
            addupdate(wish, ..., ct)
        return GradRef()
    return DidntWant() if wish == _NOTHING else cotangent_of(ct, aval)


class Pushforward(_LinearMap):
    """The function of tangents that `linearize` returns."""

    @api_boundary
    def __call__(self, *tangents: Any) -> Any:
        t_leaves, t_spec = flatten(tangents)
        if t_spec != self.spec:
            raise TypeError(
                "linearized function expected tangents of the structure of the primals, "
                f"{PyTreeDef(self.spec)}, got {PyTreeDef(t_spec)}."
            )
        lin = self.lin
        pairs = zip(t_leaves, lin.in_avals, strict=True)
        ts = [tangent_operand(t, a, ValueError) for t, a in pairs]
        results = lin.pushed(ts)[: self.count]
        return unflatten(
            self.out_spec,
            [tangent_of(t, a) for t, a in zip(results, lin.out_avals[: self.count], strict=True)],
        )


register_pytree_node(VJP, VJP._flattened, VJP._unflattened)
register_pytree_node(Pushforward, Pushforward._flattened, Pushforward._unflattened)

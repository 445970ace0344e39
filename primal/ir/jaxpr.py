"""Programs: variables, equations, jaxprs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from primal.base.source import format_location, names_of
from primal.ir.avals import Aval
from primal.ir.op import Effects, Op, no_effects
from primal.ir.trace import Literal


class Var:
    """A variable; its name exists only where a jaxpr is printed."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var:{self.aval.short()}"


Atom = Var | Literal


class SourceInfo:
    """Where an equation comes from: `name_stack` prints the scopes, `str` the line."""

    __slots__ = ("location",)

    def __init__(self, location: Any) -> None:
        self.location = location

    @property
    def name_stack(self) -> str:
        """The scopes, outermost first, as in `outer/inner`."""
        return "/".join(names_of(self.location))

    def __str__(self) -> str:
        return format_location(self.location, full_path=True)


class Eqn:
    """One equation: `outvars = op[params] invars`, with the user's location."""

    __slots__ = ("op", "invars", "outvars", "params", "source", "effects")

    def __init__(
        self,
        op: Op,
        invars: Sequence[Atom],
        outvars: Sequence[Var],
        params: dict[str, Any],
        source: Any = None,
        effects: Effects = no_effects,
    ) -> None:
        self.op = op
        self.invars = invars
        self.outvars = outvars
        self.params = params
        self.source = source
        self.effects = effects

    def replace(self, **changes: Any) -> Eqn:
        """A copy with some fields changed."""
        fields = {name: getattr(self, name) for name in Eqn.__slots__}
        return Eqn(**{**fields, **changes})

    @property
    def source_info(self) -> SourceInfo:
        """The user's line and the scopes around it, as third-party code asks for them."""
        return SourceInfo(self.source)

    @property
    def primitive(self) -> Op:
        """The op, under the name third-party code reads it by."""
        return self.op

    @property
    def title(self) -> str:
        """The operation by the name people know it by."""
        return self.op.title_of(self.params)

    def __repr__(self) -> str:
        return str(_eqn_printer(self))


class Jaxpr:
    """A program of equations over typed variables; `constvars` are bound by a ClosedJaxpr."""

    __slots__ = ("constvars", "invars", "outvars", "eqns", "effects", "debug", "__weakref__")

    def __init__(
        self,
        constvars: Sequence[Var],
        invars: Sequence[Var],
        outvars: Sequence[Atom],
        eqns: Sequence[Eqn],
        effects: Effects | None = None,
        debug: Any = None,
    ) -> None:
        self.constvars = list(constvars)
        self.invars = list(invars)
        self.outvars = list(outvars)
        self.eqns = list(eqns)
        self.effects = join_effects(self.eqns) if effects is None else effects
        self.debug = debug

    def replace(self, **changes: Any) -> Jaxpr:
        """A copy with some fields changed."""
        fields = {
            name: getattr(self, name)
            for name in ("constvars", "invars", "outvars", "eqns", "effects", "debug")
        }
        return Jaxpr(**{**fields, **changes})

    def pretty_print(
        self,
        *,
        source_info: bool = False,
        name_stack: bool = False,
        print_shapes: bool = True,
        use_color: bool | None = None,
        **options: Any,
    ) -> str:
        """The text, with the user's line and the scopes beside each equation if asked for.

        `use_color` and further options of JAX's change nothing here.
        """
        return str(_printer(self, source_info, name_stack, print_shapes))

    def __str__(self) -> str:
        return str(_printer(self))

    def __repr__(self) -> str:
        return str(_printer(self))


class ClosedJaxpr:
    """A jaxpr with the values of its constants."""

    __slots__ = ("jaxpr", "consts", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        self.jaxpr = jaxpr
        self.consts = list(consts)

    def replace(self, **changes: Any) -> ClosedJaxpr:
        """A copy with another jaxpr or other constants."""
        return ClosedJaxpr(**{"jaxpr": self.jaxpr, "consts": self.consts, **changes})

    @property
    def eqns(self) -> list[Eqn]:
        return self.jaxpr.eqns

    @property
    def effects(self) -> Effects:
        return self.jaxpr.effects

    @property
    def in_avals(self) -> list[Aval]:
        return [v.aval for v in self.jaxpr.invars]

    @property
    def out_avals(self) -> list[Aval]:
        return [v.aval for v in self.jaxpr.outvars]

    @property
    def literals(self) -> list[Any]:
        """The constants, by the name that older interpreters of programs call them."""
        return self.consts

    def pretty_print(self, **options: Any) -> str:
        """As of `Jaxpr`."""
        return self.jaxpr.pretty_print(**options)

    def __str__(self) -> str:
        return str(_printer(self.jaxpr))

    def __repr__(self) -> str:
        return str(_printer(self.jaxpr))


def join_effects(eqns: Iterable[Eqn]) -> Effects:
    """The union of the effects of equations."""
    effects: Effects = no_effects
    for eqn in eqns:
        if eqn.effects:
            effects = effects | eqn.effects
    return effects


def hoist_consts(closed: ClosedJaxpr) -> Jaxpr:
    """The jaxpr with its constants as leading inputs, so that nothing is bound."""
    jaxpr = closed.jaxpr
    if not jaxpr.constvars:
        return jaxpr
    return jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])


def subjaxprs(params: dict[str, Any]) -> list[ClosedJaxpr]:
    """The programs an equation carries in its parameters."""
    found: list[ClosedJaxpr] = []
    for value in params.values():
        if isinstance(value, ClosedJaxpr):
            found.append(value)
        elif isinstance(value, tuple):
            found.extend(v for v in value if isinstance(v, ClosedJaxpr))
    return found


def has_scopes(jaxpr: Jaxpr) -> bool:
    """Whether an equation, of carried programs too, is in a named scope."""
    for eqn in jaxpr.eqns:
        if names_of(eqn.source) or any(has_scopes(sub.jaxpr) for sub in subjaxprs(eqn.params)):
            return True
    return False


def count_eqns(jaxpr: Jaxpr) -> int:
    """The number of equations, those of carried programs included."""
    total = len(jaxpr.eqns)
    for eqn in jaxpr.eqns:
        for sub in subjaxprs(eqn.params):
            total += count_eqns(sub.jaxpr)
    return total


_printer: Any
_eqn_printer: Any


def install_printers(of_jaxprs: Any, of_equations: Any) -> None:
    """Set how programs print; `ir.show` does so once, as it needs the classes of this module."""
    global _printer, _eqn_printer
    _printer, _eqn_printer = of_jaxprs, of_equations

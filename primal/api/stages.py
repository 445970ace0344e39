"""Ahead-of-time stages of a jitted function: traced, lowered, compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

from primal.api.operands import argument_path, check_operands, operand, struct_of
from primal.base.pytree import PyTreeDef, flatten_args, flatten_with_path, unflatten
from primal.base.wrapping import P, R_co, Transformed
from primal.control.call import call
from primal.engines.protocol import Device
from primal.ir.avals import Aval
from primal.ir.jaxpr import ClosedJaxpr, hoist_consts
from primal.ir.trace import Tracer
from primal.runtime import devices
from primal.runtime.eager import placement_of
from primal.runtime.program_refs import check_distinct, settle_refs, values_of
from primal.runtime.programs import RULES, Program, default_placement
from primal.runtime.refs import Ref
from primal.runtime.sharding import SingleDeviceSharding, row_major
from primal.transforms.simplify import simplify


class Jitted(Transformed[P, R_co], Protocol[P, R_co]):
    """What `jit` makes of a function, to type checkers."""

    @property
    def __wrapped__(self) -> Callable[P, R_co]: ...
    def trace(self, *args: Any, **kwargs: Any) -> Traced: ...
    def lower(self, *args: Any, **kwargs: Any) -> Lowered: ...
    def eval_shape(self, *args: Any, **kwargs: Any) -> Any: ...
    def clear_cache(self) -> None: ...

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Jitted[P, R_co]: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> Jitted[..., R_co]: ...


class ArgInfo:
    """What a program knows of one argument: shape, dtype, and whether its memory is donated."""

    __slots__ = ("_aval", "donated")

    def __init__(self, _aval: Any, donated: bool) -> None:
        self._aval = _aval
        self.donated = donated

    @property
    def shape(self) -> tuple[int, ...]:
        """The argument's shape."""
        return tuple(self._aval.shape)

    @property
    def dtype(self) -> Any:
        """The argument's dtype."""
        return self._aval.dtype

    def __repr__(self) -> str:
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated})"

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, ArgInfo) and self._aval == other._aval
        return same and self.donated == getattr(other, "donated", None)

    def __hash__(self) -> int:
        return hash((self._aval, self.donated))


def through_refs(
    traced: Any, leaves: Sequence[Any], run: Callable[[list[Any]], Sequence[Any]]
) -> Sequence[Any]:
    """The own results of a program that takes and returns the values of mutable references."""
    mine = [(x, True) for x in leaves if isinstance(x, Ref)]
    check_distinct(traced.name, mine, traced.refs)
    results = run([*map(held, leaves), *values_of(traced.refs)])
    settle_refs([*mine, *traced.refs], results[traced.count :])
    return results[: traced.count]


def held(x: Any) -> Any:
    """What a reference holds; anything else is itself."""
    return x[...] if isinstance(x, Ref) else x


class Stage:
    """What is known of a function at every stage: the types and structures of its signature."""

    def __init__(self, traced: Any, in_spec: Any) -> None:
        self._traced = traced
        self._in_spec = in_spec
        # After the arguments and the results come values of references.
        self._ins: Sequence[Aval] = traced.closed.in_avals[: in_spec.num_leaves]
        self._outs: Sequence[Aval] = traced.closed.out_avals[: traced.count]

    @property
    def in_avals(self) -> Any:
        """The types of (args, kwargs), in that structure."""
        return unflatten(self._in_spec, list(self._ins))

    @property
    def in_tree(self) -> PyTreeDef:
        """The structure of (args, kwargs)."""
        return PyTreeDef(self._in_spec)

    @property
    def out_tree(self) -> PyTreeDef:
        """The structure of the result."""
        return PyTreeDef(self._traced.out_spec)

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each argument, in the structure (args, kwargs)."""
        donated = self._traced.donated or (False,) * len(self._ins)
        infos = [ArgInfo(a, bool(d)) for a, d in zip(self._ins, donated, strict=True)]
        return unflatten(self._in_spec, infos)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The leaves of (args, kwargs) whose memory is donated."""
        return tuple(i for i, donated in enumerate(self._traced.donated or ()) if donated)

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the results."""
        return unflatten(self._traced.out_spec, [struct_of(a) for a in self._outs])

    def _operands(self, args: Any, kwargs: Any) -> tuple[list[Any], list[Any], Sequence[Aval]]:
        """(leaves, their values, their types); TypeError for arguments of another structure."""
        name = self._traced.name
        leaves, spec = flatten_args(args, kwargs)
        if spec != self._in_spec:
            raise TypeError(
                f"[{name}] expected arguments of the structure it was compiled for, "
                f"{PyTreeDef(self._in_spec)}, got {PyTreeDef(spec)}: Function compiled with input "
                "pytree does not match the input pytree it was called with."
            )
        refs_at = tuple([i for i, x in enumerate(leaves) if isinstance(x, Ref)])
        if refs_at != self._traced.refs_at:
            raise TypeError(
                f"[{name}] expected mutable references where it was compiled for them, at the "
                f"leaves {self._traced.refs_at} of the arguments, got them at {refs_at}."
            )
        values = [held(x) for x in leaves]
        return leaves, values, check_operands(name, unflatten(spec, values), values)

    def _check(self, avals: Sequence[Aval]) -> None:
        """TypeError unless arguments have the types of this signature."""
        other = [
            i
            for i, (got, want) in enumerate(zip(avals, self._ins, strict=True))
            if got.shape != want.shape or got.dtype != want.dtype
        ]
        if other:
            paths = flatten_with_path(self.in_avals)[0]
            each = [
                f"Argument '{argument_path(paths[i][0])}' compiled with {self._ins[i].str_short()} "
                f"and called with {avals[i].str_short()}"
                for i in other
            ]
            raise TypeError(
                f"[{self._traced.name}] expected arguments of its signature, got others: Argument "
                "types differ from the types for which this computation was compiled. The "
                "mismatches are:\n" + "\n".join(each)
            )


class Traced(Stage):
    """A function traced for one signature."""

    def __init__(self, traced: Any, in_spec: Any, device: Device | None) -> None:
        super().__init__(traced, in_spec)
        self._device = device

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The program."""
        return self._traced.closed

    @property
    def out_avals(self) -> Any:
        """The types of the results, in their structure."""
        return unflatten(self._traced.out_spec, list(self._outs))

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self._traced.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The program on arguments of this signature, without tracing; transformations apply."""
        traced = self._traced

        def run(operands: Sequence[Any]) -> Any:
            return call(*traced.closed.consts, *operands, jaxpr=traced.hoisted, name=traced.name)

        leaves, _, avals = self._operands(args, kwargs)
        self._check(avals)
        return unflatten(traced.out_spec, through_refs(traced, leaves, run))

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """The program in the language of the engine that will compile it.

        NotImplementedError for `lowering_platforms` other than the device's own.
        """
        device = self._device if self._device is not None else devices.default()
        if lowering_platforms not in (None, (device.platform,), [device.platform]):
            raise NotImplementedError(
                f"[lower] expected lowering_platforms=({device.platform!r},), the platform of the "
                f"device it is lowered for, got {lowering_platforms!r}."
            )
        return Lowered(self._traced, self._in_spec, device)


class Lowered(Stage):
    """A program in the language of the engine that compiles it; StableHLO for XLA."""

    def __init__(self, traced: Any, in_spec: Any, device: Device) -> None:
        super().__init__(traced, in_spec)
        self._device = device
        self._engine = devices.compiling_engine(device)
        # What XLA has no operation for is refused here; our own engines refuse nothing, and their
        # text, which has every kernel in it, is made for who reads it.
        self._stablehlo = self._lower(self._engine) if self._engine.name == "xla" else None

    def _lower(self, engine: Any, locations: bool = False) -> str:
        simplified = simplify(self._traced.closed, RULES[engine.name])
        donated = self._traced.donated
        flags = (False,) * len(simplified.consts) + tuple(donated) if donated else ()
        program = ClosedJaxpr(hoist_consts(simplified))
        name = self._traced.name
        if locations:
            return str(engine.lowered(program, name=name, donated=flags, locations=True).text)
        return str(engine.lower(program, name=name, donated=flags))

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text: in 'stablehlo', in 'hlo', or in 'llvm' as our own compiler makes it.

        StableHLO, the default, is printed whichever engine compiles; with `debug_info` it names
        scopes and the user's lines. ValueError for other dialects.
        """
        if dialect == "hlo":
            hlo = self._xla().hlo(self.as_text(debug_info=debug_info))
            return str(hlo.get_hlo_module().to_string() if debug_info else hlo.as_hlo_text())
        if dialect == "llvm":
            if self._engine.name != "cpu":
                raise ValueError(
                    f"[as_text] expected dialect 'stablehlo': this program was lowered for the "
                    f"engine {self._engine.name!r}, which compiles no LLVM text. Set "
                    "config.cpu_engine to 'cpu'."
                )
            return self._lower(self._engine)
        if dialect not in (None, "stablehlo"):
            raise ValueError(
                f"[as_text] expected dialect 'stablehlo', 'hlo' or 'llvm', got {dialect!r}. "
                "compile().as_text() prints what the engine made of the program."
            )
        if self._stablehlo is not None and not debug_info:
            return self._stablehlo
        return self._lower(self._xla(), debug_info)

    def _xla(self) -> Any:
        return self._engine if self._engine.name == "xla" else devices.xla_engine("cpu")

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The program as the object that XLA's tools take, whichever engine compiles.

        For 'stablehlo', the default, a module of jaxlib's MLIR bindings, with str(module) its text;
        for 'hlo' an XlaComputation with `as_hlo_text()` and `as_serialized_hlo_module_proto()`.
        ValueError for other dialects.
        """
        if dialect not in (None, "stablehlo", "hlo"):
            raise ValueError(
                f"[compiler_ir] expected dialect 'stablehlo' or 'hlo', got {dialect!r}. "
                "as_text('llvm') prints what our own compiler makes."
            )
        engine = self._xla()
        return engine.hlo(self.as_text()) if dialect == "hlo" else engine.module(self.as_text())

    def cost_analysis(self) -> Any:
        """Estimated costs of the compiled program."""
        return self.compile().cost_analysis()

    def compile(
        self,
        compiler_options: dict[str, Any] | None = None,
        *,
        device_assignment: Sequence[Device] | None = None,
    ) -> Compiled:
        """The executable, for the device it was lowered for.

        NotImplementedError for options of XLA's compiler, ValueError for other devices.
        """
        no_options("compile", compiler_options)
        if device_assignment is not None and tuple(device_assignment) != (self._device,):
            raise ValueError(
                f"[compile] expected device_assignment=({self._device!r},), the device it was "
                f"lowered for, got {device_assignment!r}."
            )
        program = self._traced.program_on(self._device)
        return Compiled(self._traced, self._in_spec, program)


def no_options(name: str, compiler_options: dict[str, Any] | None) -> None:
    """NotImplementedError for options of XLA's compiler, which programs of other engines ignore."""
    if compiler_options:
        raise NotImplementedError(
            f"[{name}] expected no compiler options: set XLA's flags in XLA_FLAGS instead."
        )


class Compiled(Stage):
    """A compiled program; callable with arguments of the signature it was made for."""

    def __init__(self, traced: Any, in_spec: Any, program: Program) -> None:
        super().__init__(traced, in_spec)
        self._program = program

    @property
    def input_shardings(self) -> Any:
        """Where (args, kwargs) lie, in their structure; None for what the program does not read."""
        where = SingleDeviceSharding(self._program.device)
        kept = set(self._program.kept)
        return unflatten(
            self._in_spec, [where if i in kept else None for i in range(len(self._ins))]
        )

    @property
    def output_shardings(self) -> Any:
        """Where the results lie, in their structure."""
        where = SingleDeviceSharding(self._program.device)
        spec = self._traced.out_spec
        return unflatten(spec, [where] * spec.num_leaves)

    @property
    def input_formats(self) -> Any:
        """How (args, kwargs) lie in memory, in their structure; None for what is not read."""
        kept, device = set(self._program.kept), self._program.device
        return unflatten(
            self._in_spec,
            [row_major(a.ndim, device) if i in kept else None for i, a in enumerate(self._ins)],
        )

    @property
    def output_formats(self) -> Any:
        """How the results lie in memory, in their structure."""
        device = self._program.device
        return unflatten(self._traced.out_spec, [row_major(a.ndim, device) for a in self._outs])

    def as_text(self) -> str:
        """The compiled program as text."""
        return str(self._program.executable.as_text())

    def cost_analysis(self) -> Any:
        """Estimated costs: flops, bytes accessed."""
        return self._program.executable.cost_analysis()

    def memory_analysis(self) -> Any:
        """Sizes in bytes of arguments, outputs and temporaries."""
        return self._program.executable.memory_analysis()

    def runtime_executable(self) -> Any:
        """The engine's executable."""
        return self._program.executable

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = self._traced.name
        leaves, values, avals = self._operands(args, kwargs)
        tracer = next((x for x in (*values, *self._program.consts) if isinstance(x, Tracer)), None)
        if tracer is not None:
            raise TypeError(
                f"[{name}] expected arrays, got {tracer}: no transformation applies to a function "
                "lowered and compiled for a particular signature. Transform the function that was "
                "jitted, then lower and compile."
            )
        self._check(avals)
        results = through_refs(self._traced, leaves, self._run)
        return unflatten(self._traced.out_spec, results)

    def _run(self, operands: Sequence[Any]) -> Sequence[Any]:
        arrays = [operand(x) for x in operands]
        place = placement_of(self._traced.name, arrays)
        if place is None:
            place = default_placement(self._program.device)
        return self._program.run(arrays, place)

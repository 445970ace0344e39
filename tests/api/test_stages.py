"""The stages of a jitted function: traced, lowered, compiled; what it says of itself."""

import functools
import inspect

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import jit
from primal.base.config import cpu_engine
from primal.ops.elementwise import mul, sin


def arr(n):
    return jnp.arange(n, dtype=np.float32)


@cpu_engine("xla")
def test_stages():
    f = jit(lambda x, y: {"a": sin(mul(x, y["b"]))}, donate_argnums=(1,))
    x = primal.ShapeDtypeStruct((3,), np.float32)
    traced = f.trace(x, {"b": x})
    assert [e.op.name for e in traced.jaxpr.eqns] == ["mul", "sin"]
    assert traced.out_info == {"a": primal.ShapeDtypeStruct((3,), np.float32)}
    lowered = traced.lower()
    assert "stablehlo.sine" in lowered.as_text() and "@main" in lowered.as_text()
    compiled = lowered.compile()
    for stage in (traced, lowered, compiled):
        (first, second), kwargs = stage.in_avals
        assert first == second["b"] == primal.typeof(arr(3)) and not kwargs
        assert stage.donate_argnums == (1,) and stage.args_info[0][1]["b"].donated
        assert stage.out_info == traced.out_info and stage.out_tree == traced.out_tree
    assert traced.out_avals == {"a": primal.typeof(arr(3))}
    out = compiled(arr(3), {"b": arr(3)})
    where = arr(3).sharding
    assert compiled.input_shardings == ((where, {"b": where}), {})
    assert compiled.output_shardings == {"a": where}
    assert jit(lambda x, y: y).lower(x, y=x).compile().input_shardings == ((None,), {"y": where})
    np.testing.assert_allclose(out["a"], np.sin(np.arange(3.0) ** 2), rtol=1e-6)
    assert "HloModule" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] > 0
    assert compiled.memory_analysis() is not None
    with pytest.raises(TypeError, match="structure"):
        compiled(arr(3), arr(3))
    with pytest.raises(TypeError, match="types for which"):
        compiled(arr(4), {"b": arr(4)})
    for transformed in (jit(compiled), primal.vmap(compiled), primal.grad(compiled)):
        with pytest.raises(TypeError, match="lowered and compiled for a particular signature"):
            transformed(arr(3), {"b": arr(3)})
    assert f.eval_shape(x, {"b": x}) == traced.out_info


def test_jitted_functions_have_the_signature_of_the_function():
    def f(x, *, scale=2.0):
        return mul(x, scale)

    class Layer:
        apply = jit(lambda self, x: x, static_argnums=0)

    for follow in (True, False):
        assert inspect.signature(jit(f), follow_wrapped=follow) == inspect.signature(f)
    assert inspect.getfullargspec(jit(f)).kwonlydefaults == {"scale": 2.0}
    assert str(inspect.signature(functools.partial(jit(f), 1.0))) == "(*, scale=2.0)"
    assert str(inspect.signature(Layer().apply)) == "(x)"
    assert not hasattr(jit(max), "__signature__")


@pytest.mark.parametrize("engine", ["xla", "cpu"])
def test_lowered_programs_are_given_to_tools(engine):
    with cpu_engine(engine):
        lowered = jit(lambda x: sin(mul(x, x))).lower(arr(3))
        for dialect in (None, "stablehlo"):
            module = lowered.compiler_ir(dialect)
            (main,) = module.body.operations
            assert main.name.value == "main" and "stablehlo.sine" in str(module)
        hlo = lowered.compiler_ir(dialect="hlo")
        text = hlo.as_hlo_text()
        assert text.startswith("HloModule") and "sine(" in text and "fusion" not in text
        assert lowered.as_text("hlo") == text and hlo.as_serialized_hlo_module_proto()
        assert '/sin"' in lowered.as_text("hlo", debug_info=True)
        assert "op_name" not in text
        with pytest.raises(ValueError, match="expected dialect 'stablehlo' or 'hlo', got 'foo'"):
            lowered.compiler_ir("foo")


@cpu_engine("xla")
@pytest.mark.parametrize("keep", [False, True])
def test_unused_arguments_stay_only_if_asked(keep):
    compiled = jit(lambda x, y: sin(x), keep_unused=keep).lower(arr(3), arr(4)).compile()
    inputs = compiled.as_text().split("entry_computation_layout={(")[1].split(")->")[0]
    assert ("f32[3]" in inputs, "f32[4]" in inputs) == (True, keep)
    np.testing.assert_allclose(compiled(arr(3), arr(4)), np.sin(np.arange(3.0)), rtol=1e-6)


def test_numbers_and_names_complete_each_other_only_alone():
    def f(x, n, m=1):
        seen.append((type(n) is int, type(m) is int))
        return x

    for options, wanted in (
        ({"static_argnums": 1, "static_argnames": "m"}, (True, False)),
        ({"static_argnames": "m"}, (False, True)),
        ({"static_argnums": (), "static_argnames": "m"}, (False, False)),
    ):
        seen = []
        jit(f, **options)(1.0, 2, 3)
        assert seen == [wanted]


@pytest.mark.parametrize("engine", ["cpu", "xla", "reference"])
def test_stages_of_functions_of_references(engine):
    seen = primal.new_ref(jnp.zeros(3))

    def step(w, x):
        seen[...] += x
        w["w"][0] = x
        return {"s": w["w"][...].sum()}

    with cpu_engine(engine):
        ref = primal.new_ref(arr(3))
        traced = jit(step).trace({"w": ref}, 2.0)
        compiled = traced.lower().compile()
        for stage in (traced, compiled):
            assert stage.out_info == {"s": primal.ShapeDtypeStruct((), np.float32)}
            assert stage.in_avals[0][0]["w"].shape == (3,) and len(stage.in_avals[0]) == 2
        assert [float(compiled({"w": ref}, x)["s"]) for x in (2.0, 5.0)] == [5.0, 8.0]
        assert (float(seen[1]), float(ref[0])) == (7.0, 5.0)
        with pytest.raises(TypeError, match="mutable references where it was compiled"):
            compiled({"w": arr(3)}, 2.0)
        with pytest.raises(ValueError, match="both closed over and passed"):
            jit(step).lower({"w": ref}, 1.0).compile()({"w": seen}, 1.0)


def test_a_function_of_a_tracer_is_compiled_to_be_looked_at():
    def f(x):
        compiled = jit(lambda y: sin(y) * x).lower(2.0).compile()
        assert compiled.cost_analysis()["flops"] > 0
        with pytest.raises(TypeError, match="no transformation applies"):
            compiled(2.0)
        return x

    jit(f)(1.0)
    primal.grad(f)(1.0)


def test_a_traced_function_runs_and_transforms() -> None:
    traced = jit(lambda x, y: {"out": x * y}).trace(1.0, 2.0)
    assert float(traced(3.0, 4.0)["out"]) == 12.0
    assert float(primal.grad(lambda z: traced(z, 4.0)["out"])(3.0)) == 4.0
    with pytest.raises(TypeError, match=r"compiled with float32\[\] and called with float32\[2\]"):
        traced(jnp.ones(2), 4.0)
    assert "stablehlo.multiply" in traced.lower(lowering_platforms=("cpu",)).as_text()
    with pytest.raises(NotImplementedError, match="expected lowering_platforms"):
        traced.lower(lowering_platforms=("tpu",))


def test_all_arguments_of_other_types_are_named() -> None:
    one = primal.ShapeDtypeStruct((), "int32")
    compiled = jit(lambda x, d, y, k: x).lower(one, {"u": one}, one, k=one).compile()
    with pytest.raises(TypeError) as error:
        compiled(arr(3), {"u": np.float32(1)}, 2, k=1.5)
    assert str(error.value).splitlines()[1:4] == [
        "Argument 'args[0]' compiled with int32[] and called with float32[3]",
        "Argument 'args[1]['u']' compiled with int32[] and called with float32[]",
        "Argument 'kwargs['k']' compiled with int32[] and called with float32[]",
    ]

"""Named scopes and source lines in jaxprs, StableHLO and compiled programs."""

from __future__ import annotations

from typing import Any

import pytest

import primal
import primal.numpy as jnp
from primal import lax
from primal.base.config import cpu_engine


def f(x: Any) -> Any:
    with primal.named_scope("outer"):
        y = jnp.sin(x)
        with primal.named_scope("inner"):
            z = y * 2
    return z + 1


def scopes(g: Any, *args: Any) -> list[str]:
    return [str(e.source_info.name_stack) for e in primal.make_jaxpr(g)(*args).eqns]


def test_scopes_nest_and_end() -> None:
    assert scopes(f, 1.0) == ["outer", "outer/inner", ""]
    assert scopes(primal.vmap(f), jnp.ones(2)) == ["vmap(outer)", "vmap(outer)/inner", ""]
    assert scopes(primal.named_call(lambda x: x * 2, name="part"), 1.0) == ["part"]
    assert scopes(primal.named_call(f), 1.0) == ["f/outer", "f/outer/inner", "f"]
    assert scopes(primal.named_scope("deco")(lambda x: x + 1), 1.0) == ["deco"]
    with pytest.raises(ZeroDivisionError), primal.named_scope("a"):
        raise ZeroDivisionError
    assert scopes(lambda x: x * 2, 1.0) == [""]


def test_scopes_of_derivatives_and_carried_programs() -> None:
    forward, back = {"jvp(outer)", "jvp(outer)/inner", ""}, "transpose(jvp(outer))"
    assert set(scopes(lambda x: primal.jvp(f, (x,), (x,)), 1.0)) == forward
    assert set(scopes(primal.grad(f), 1.0)) == {*forward, back, f"{back}/inner"}
    both = primal.vmap(primal.grad(lambda x: jnp.sum(f(x) * x)))
    assert f"vmap({back})/inner" in scopes(both, jnp.ones((2, 3)))
    with primal.named_scope("around") as name:
        assert scopes(primal.vmap(f), jnp.ones(2))[0] == "vmap(outer)" and name == "around"
    backwards = primal.make_jaxpr(primal.grad(primal.jit(lambda x: f(x) * x)))(1.0)
    assert f"# [{back}/inner]" in backwards.pretty_print(name_stack=True)
    loop = primal.make_jaxpr(
        lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)
    )(1.0)
    text = loop.pretty_print(name_stack=True)
    assert "# [outer]" in text and "# [outer/inner]" in text


def test_names_are_strings() -> None:
    for wrong in (5, None, f):
        with pytest.raises(TypeError, match="must be a string"):
            primal.named_scope(wrong)


def test_lines_of_jaxprs() -> None:
    line = f.__code__.co_firstlineno
    closed = primal.make_jaxpr(f)(1.0)
    text = closed.pretty_print(source_info=True)
    assert f"b:f32[] = sin a # {__file__}:{line + 2}:12 (f)" in text
    assert f"c:f32[] = mul b 2.0 # {__file__}:{line + 4}:16 (f)" in text
    assert closed.pretty_print() == str(closed)
    assert "f32" not in closed.jaxpr.pretty_print(print_shapes=False)
    assert str(closed.eqns[0].source_info) == f"{__file__}:{line + 2}:12 (f)"


def test_stablehlo_and_profiles() -> None:
    with cpu_engine("xla"):
        lowered = primal.jit(f).lower(1.0)
        assert "loc(" not in lowered.as_text()
        text = lowered.as_text(debug_info=True)
        assert 'loc("jit(f)/outer/sin"' in text and "test_scopes.py" in text
        assert 'op_name="jit(f)/outer/inner/mul"' in lowered.compile().as_text()


def test_parts_of_control_flow_have_names_in_stablehlo_and_profiles() -> None:
    def g(x: Any) -> Any:
        with primal.named_scope("around"):
            x = lax.while_loop(lambda x: x.sum() < 1, f, x)
            return lax.switch(x.sum().astype(int), [jnp.exp, jnp.tan], x)

    def h(x: Any) -> Any:
        return lax.scan(lambda c, _: (primal.checkpoint(jnp.cos)(c), None), x, length=3)[0].sum()

    expected = {
        g: [
            "around/while/cond/lt", "around/while/body/outer/sin",
            "around/while/body/outer/inner/mul", "around/cond/branch_0_fun/exp",
            "around/cond/branch_1_fun/tan",
        ],
        primal.grad(h): ["while/body/cos", "while/body/checkpoint/rematted_computation/sin"],
    }  # fmt: skip
    for fun, names in expected.items():
        with cpu_engine("xla"):
            lowered = primal.jit(fun).lower(jnp.ones(3))
            text = lowered.as_text(debug_info=True)
            for name in names:
                assert f'/{name}"(' in text, name
            if fun is g:
                profile = lowered.compile().as_text()
                assert f'op_name="jit(g)/{names[2]}' in profile


def test_breakpoints(monkeypatch: Any, capsys: Any) -> None:
    import io

    def g(x: Any) -> Any:
        tree = {"double": x * 2, "name": "text"}
        primal.debug.breakpoint()
        return tree["double"]

    for wrap in (lambda g: g, primal.jit):
        commands = "p tree\nx + 1\nnope\nu\nw\nd\nl\nhelp p\nc\n"
        monkeypatch.setattr("sys.stdin", io.StringIO(commands))
        assert wrap(g)(jnp.float32(3)) == 6
        out = capsys.readouterr().out
        assert "'name': 'text'" in out and "Array(6., dtype=float32)" in out
        assert "Array(4., dtype=float32)" in out
        assert "NameError" in out and "primal.debug.breakpoint()" in out
        monkeypatch.setattr("sys.stdin", io.StringIO("q\n"))
        with pytest.raises(SystemExit):
            wrap(g)(jnp.float32(3))
    with pytest.raises(ValueError, match="backend"):
        primal.debug.breakpoint(backend="nonsense")


def test_pictures_of_shardings(capsys: Any) -> None:
    seen: list[Any] = []
    x = jnp.arange(24.0).reshape(4, 6)
    primal.debug.inspect_array_sharding({"a": x}, callback=seen.append)
    primal.jit(lambda x: primal.debug.inspect_array_sharding(x, callback=seen.append))(x)
    assert [s.device_set for s in seen] == [{primal.devices()[0]}] * 2
    primal.debug.visualize_array_sharding(x)
    primal.debug.visualize_sharding((8,), x.sharding, scale=2.0)
    lines = capsys.readouterr().out.splitlines()
    assert sum("CPU 0" in line for line in lines) == 2
    assert len({len(line) for line in lines[:9]}) == 1
    with pytest.raises(ValueError, match="1 and 2 dimensions"):
        primal.debug.visualize_array_sharding(jnp.ones((2, 2, 2)))

"""The printed form of jaxprs, as snapshots."""

import numpy as np

import primal
import primal.numpy as jnp
from primal import jit, lax, make_jaxpr
from primal.ir.show import letters, show_jaxpr


def test_names():
    found = [letters(i) for i in (0, 25, 26, 27, 51, 52)]
    assert found == ["a", "z", "ba", "bb", "bz", "ca"]
    assert len({letters(i) for i in range(2000)}) == 2000


def test_short_programs_stand_on_one_line():
    assert str(make_jaxpr(jnp.sin)(1.0)) == "{ lambda ; a:f32[]. let b:f32[] = sin a in (b,) }"
    assert str(make_jaxpr(lambda x: jnp.cos(jnp.sin(x)))(1.0)) == (
        "{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = cos b in (c,) }"
    )
    assert str(make_jaxpr(lambda x: x)(1.0)) == "{ lambda ; a:f32[]. let  in (a,) }"
    assert str(make_jaxpr(lambda: 1)()) == "{ lambda ; . let  in (1,) }"


def test_constants_come_before_the_semicolon():
    c = primal.device_put(np.arange(3.0))
    assert str(make_jaxpr(lambda x: x + c)(np.float32(1))) == (
        "{ lambda a:f32[3]; b:f32[]. let c:f32[3] = add b a in (c,) }"
    )


def test_what_is_not_used_is_a_line():
    text = str(make_jaxpr(lambda x: (jnp.sin(x), x)[1])(1.0))
    assert text == "{ lambda ; a:f32[]. let _:f32[] = sin a in (a,) }"


def test_parameters():
    assert str(make_jaxpr(lambda x: x[1])(jnp.arange(3.0))) == (
        "{ lambda ; a:f32[3]. let\n"
        "    b:f32[1] = slice[limit_indices=(2,) start_indices=(1,)] a\n"
        "    c:f32[] = squeeze[dimensions=(0,)] b\n"
        "  in (c,) }"
    )
    assert "dimension_numbers=(([1], [0]), ([], []))" in str(
        make_jaxpr(lambda x: x @ x)(jnp.eye(2))
    )
    assert "convert_element_type[new_dtype=int32 weak_type=False] a" in str(
        make_jaxpr(lambda x: x.astype(int))(jnp.arange(3.0))
    )


def test_programs_inside_programs():
    f = jit(lambda c, x: (c * x, c))
    f.__name__ = "f"
    text = str(make_jaxpr(lambda c, xs: lax.scan(f, c, xs))(np.float32(1), jnp.arange(3.0)))
    lines = text.splitlines()
    assert lines[0] == "{ lambda ; a:f32[] b:f32[3]. let"
    assert lines[1] == "    c:f32[] d:f32[3] = scan["
    assert any("jaxpr={ lambda ; e:f32[] f:f32[]. let" in line for line in lines)
    assert any("= jit[" in line for line in lines)
    assert "      length=3" in lines and lines[-1] == "  in (c, d) }"


def test_lines_of_the_source():
    text = show_jaxpr(make_jaxpr(lambda x: x * 2)(1.0).jaxpr, source_info=True)
    assert "test_show.py" in text

"""Error classes, their texts, tracebacks without the library's frames, and source locations."""

import inspect
import traceback
import warnings

import pytest

from primal.base import config as flags
from primal.base import errors, source

# Code that counts as the library's own because of its file name; `outer` calls back into user code.
LIBRARY = """
import warnings
from primal.base import errors, source

@errors.api_boundary
def outer(fun, *args):
    return middle(fun, *args)

def middle(fun, *args):
    return fun(*args)

@errors.api_boundary
def broken():
    return {}["key"]

@errors.api_boundary
def rejects():
    try:
        broken()
    except KeyError as error:
        raise ValueError("[rejects] expected b, got a.") from error

def here(depth):
    return here(depth - 1) if depth else source.current_location()

def skipping(depth):
    return source.current_location(skip=2)

def warn():
    inner_warn()

def inner_warn():
    warnings.warn("careful", UserWarning, stacklevel=source.user_stacklevel())
"""
lib: dict = {}
exec(compile(LIBRARY, source.package_root + "pretended.py", "exec"), lib)


def frames(error):
    return [entry.name for entry in traceback.extract_tb(error.__traceback__)]


def divide(x):
    return 1 / x


def user(x):
    return lib["outer"](divide, x)


def run():
    lib["outer"](user, 0)


def test_only_user_frames_are_left_however_calls_nest():
    with pytest.raises(ZeroDivisionError) as caught:
        run()
    name = inspect.currentframe().f_code.co_name
    assert frames(caught.value) == [name, "run", "user", "divide"]
    assert not hasattr(caught.value, "__notes__")


def test_frames_are_shown_on_request():
    for scope in (flags.traceback_filtering("off"), flags.show_internal_frames(True)):
        with pytest.raises(ZeroDivisionError) as caught, scope:
            run()
        assert frames(caught.value).count("middle") == 2


def test_frames_are_marked_for_tools_that_hide_them():
    with pytest.raises(ZeroDivisionError) as caught, flags.traceback_filtering("tracebackhide"):
        run()
    marks = []
    tb = caught.value.__traceback__
    while tb is not None:
        hidden = tb.tb_frame.f_locals.get("__tracebackhide__", False)
        marks.append((tb.tb_frame.f_code.co_name, hidden))
        tb = tb.tb_next
    assert ("middle", True) in marks and ("user", False) in marks


def test_an_error_inside_the_library_points_at_the_users_call():
    with pytest.raises(KeyError) as caught:
        lib["broken"]()
    assert frames(caught.value) == [inspect.currentframe().f_code.co_name]
    assert "traceback_filtering" in caught.value.__notes__[0]


def test_causes_are_filtered_too():
    with pytest.raises(ValueError) as caught:
        lib["rejects"]()
    assert frames(caught.value) == [inspect.currentframe().f_code.co_name]
    assert frames(caught.value.__cause__) == []
    assert not hasattr(caught.value, "__notes__")


def test_public_classes():
    parents = {
        errors.ConcretizationTypeError: TypeError,
        errors.TracerBoolConversionError: errors.ConcretizationTypeError,
        errors.TracerArrayConversionError: TypeError,
        errors.TracerIntegerConversionError: TypeError,
        errors.NonConcreteBooleanIndexError: IndexError,
        errors.UnexpectedTracerError: TypeError,
        errors.KeyReuseError: errors.PrimalTypeError,
        errors.JaxprTypeError: TypeError,
        errors.JaxRuntimeError: RuntimeError,
        errors.InconclusiveDimensionOperation: Exception,
    }
    assert all(issubclass(child, parent) for child, parent in parents.items())
    assert errors.JAXTypeError is errors.PrimalTypeError
    assert errors.JAXIndexError is errors.PrimalIndexError
    assert errors.PrimalRuntimeError is errors.JaxRuntimeError


def test_the_classes_of_the_peer_exist(peer):
    code = "import jax.errors as e; print(*[n for n in dir(e) if n[0].isupper()])"
    assert [n for n in peer(code).stdout.split() if not hasattr(errors, n)] == []


TEXTS = [name for name in dir(errors) if name.startswith("MSG_")]


@pytest.mark.parametrize("name", TEXTS)
def test_texts_say_what_where_whence_and_the_remedy(name):
    text = errors.explain(
        getattr(errors, name),
        "a traced array with shape float32[3]",
        where="model.py:12 (loss)",
        origin="argument x of loss",
        function="loss, by jit",
        what="float",
    )
    lines = text.splitlines()
    assert lines[0].startswith("[") and "expected" in lines[0]
    assert "got a traced array with shape float32[3]" in lines[0]
    assert lines[1:4] == [
        "  at:      model.py:12 (loss)",
        "  from:    argument x of loss",
        "  tracing: loss, by jit",
    ]
    assert "primal." in "".join(lines[4:])
    assert all(len(line) <= 100 for line in lines[1:])
    assert not any(brace in text for brace in "{}")


def test_the_text_for_truth_values():
    assert errors.explain(errors.MSG_BOOL, "a traced array with shape bool[]") == (
        "[bool] expected a concrete value, got a traced array with shape bool[]: its truth is "
        "unknown while the function is traced.\n"
        "Attempted boolean conversion of a traced array with shape bool[].\n"
        "`if`, `while`, `and`, `or`, `not` and `assert` ask a value for its truth. Choose between "
        "values with\n"
        "    y = primal.numpy.where(x > 0, x, -x)\n"
        "between computations with primal.lax.cond, and loop with primal.lax.while_loop; for masks "
        "write\n"
        "& | ~ in place of and, or, not. If only few values of an argument occur, make it static:\n"
        '    primal.jit(f, static_argnames="flag")'
    )


def test_locations_name_the_users_line_at_any_depth():
    for depth in (0, 1, 8):
        line = inspect.currentframe().f_lineno + 1
        location = lib["here"](depth)
        name = inspect.currentframe().f_code.co_name
        assert source.format_location(location) == f"test_errors.py:{line} ({name})"
        assert source.line_of(location) == line
    location = lib["skipping"](0)
    assert location[0] is inspect.currentframe().f_code


def test_locations_in_nested_functions_and_multi_line_calls():
    class Model:
        def loss(self):
            return (
                1,
                lib["here"](2),
            )[1]

    location = Model().loss()
    want = Model.loss.__code__.co_firstlineno + 3
    where = "test_locations_in_nested_functions_and_multi_line_calls.<locals>.Model.loss"
    assert source.format_location(location) == f"test_errors.py:{want} ({where})"
    assert source.format_location(location, full_path=True).startswith(__file__)
    assert source.format_location(None) == "<unknown>"


def test_the_innermost_user_frame_wins():
    location = lib["outer"](lambda: lib["here"](1))
    assert location[0].co_name == "<lambda>"


def test_further_folders_can_be_hidden(monkeypatch):
    monkeypatch.setattr(source, "_hidden_roots", source._hidden_roots)
    monkeypatch.setattr(source, "_internal", {})
    scope: dict = {"lib": lib}
    exec(compile("def call():\n    return lib['here'](0)\n", "/opt/other/m.py", "exec"), scope)
    assert scope["call"]()[0].co_name == "call"
    source.hide("/opt/other/")
    assert scope["call"]()[0] is inspect.currentframe().f_code


def test_warnings_name_the_users_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        lib["warn"]()
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)

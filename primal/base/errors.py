"""Public error classes, their teaching texts, and tracebacks without the library's frames.

Messages read `[what] expected ..., got ...`, then the user's line and the argument that the value
came from, then the remedy with a short right program. The classes take finished text: this layer
knows nothing of tracing, and `explain` joins the parts that the tracer knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from primal.base.config import settings
from primal.base.source import is_internal, without_internal_frames
from primal.base.wrapping import wraps

F = TypeVar("F", bound=Callable[..., Any])


class PrimalTypeError(TypeError):
    """A value of the wrong kind, or a use that a traced value cannot serve.

    >>> issubclass(TracerArrayConversionError, PrimalTypeError)
    True
    """


class PrimalIndexError(IndexError):
    """An index that cannot be used.

    >>> issubclass(NonConcreteBooleanIndexError, PrimalIndexError)
    True
    """


class ConcretizationTypeError(PrimalTypeError):
    """A traced value where Python needs a concrete one: `float(x)`, a shape, a static argument.

    >>> try:
    ...     primal.jit(lambda n: jnp.zeros(n))(3)
    ... except TypeError:
    ...     print("n must be static")
    n must be static
    """


class TracerBoolConversionError(ConcretizationTypeError):
    """`if`, `while`, `and`, `or`, `not` or `assert` on a traced value.

    >>> try:
    ...     primal.jit(lambda x: 1 if x > 0 else 2)(1.0)
    ... except TracerBoolConversionError:
    ...     print("lax.cond or jnp.where chooses")
    lax.cond or jnp.where chooses
    """


class TracerArrayConversionError(PrimalTypeError):
    """NumPy called on a traced value.

    >>> try:
    ...     primal.jit(np.sin)(1.0)
    ... except TracerArrayConversionError:
    ...     print("jnp.sin takes traced values")
    jnp.sin takes traced values
    """


class TracerIntegerConversionError(PrimalTypeError):
    """A traced value as a Python index: `a_list[i]`, `range(n)`.

    >>> try:
    ...     primal.jit(lambda i: [1, 2, 3][i])(0)
    ... except TracerIntegerConversionError:
    ...     print("jnp.array([1, 2, 3])[i] takes traced indices")
    jnp.array([1, 2, 3])[i] takes traced indices
    """


class NonConcreteBooleanIndexError(PrimalIndexError):
    """A traced boolean mask as an index: the shape of `x[mask]` depends on its values.

    >>> try:
    ...     primal.jit(lambda x: x[x > 0])(jnp.arange(3))
    ... except NonConcreteBooleanIndexError:
    ...     print("jnp.where(x > 0, x, 0) keeps the shape")
    jnp.where(x > 0, x, 0) keeps the shape
    """


class UnexpectedTracerError(PrimalTypeError):
    """A traced value used after its transformation ended: it leaked through a side effect.

    >>> kept = []
    >>> _ = primal.jit(lambda x: kept.append(x))(1.0)
    >>> try:
    ...     kept[0] + 1
    ... except UnexpectedTracerError:
    ...     print("return the value instead")
    return the value instead
    """


class KeyReuseError(PrimalTypeError):
    """A random key consumed twice.

    >>> with primal.debug_key_reuse(True):
    ...     key = primal.random.key(0)
    ...     x = primal.random.normal(key)
    ...     try:
    ...         primal.random.normal(key)
    ...     except KeyReuseError:
    ...         print("split the key first")
    split the key first
    """


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic dimensions whose answer depends on their values.

    >>> issubclass(InconclusiveDimensionOperation, Exception)
    True
    """


class UnhashableArgumentError(ValueError, PrimalTypeError):
    """A list, an array, … where a static argument is expected, which is part of programs' keys.

    Both the ValueError that JAX's `jit` makes of it, and of Python's class.

    >>> try:
    ...     jnp.sort(jnp.ones(2), axis=[0])
    ... except ValueError:
    ...     print("an axis is a whole number")
    an axis is a whole number
    """


class TracedArgumentError(
    UnhashableArgumentError, TracerBoolConversionError, TracerIntegerConversionError
):
    """A traced value where a static argument is expected: an axis, a count, a flag.

    All that JAX makes of it: the ValueError of its `jit`, or what using it in Python raises.

    >>> try:
    ...     primal.jit(lambda axis: jnp.sort(jnp.ones(2), axis=axis))(0)
    ... except ValueError:
    ...     print("an axis is known while tracing")
    an axis is known while tracing
    """


class JaxprTypeError(TypeError):
    """A jaxpr that breaks a rule of the language: the checker's verdict.

    >>> issubclass(JaxprTypeError, TypeError)
    True
    """


class PrimalRuntimeError(RuntimeError):
    """An engine failed while it compiled or ran a program.

    >>> issubclass(PrimalRuntimeError, RuntimeError)
    True
    """


class CallbackError(PrimalRuntimeError):
    """A Python function that a program called raised; its exception is the `__cause__`."""


# The names under which JAX's documentation knows them.
JAXTypeError = PrimalTypeError
JAXIndexError = PrimalIndexError
JaxRuntimeError = PrimalRuntimeError

# --- texts ----------------------------------------------------------------------------------------
# {value} is, for example, "a traced array with shape float32[3]".

MSG_BOOL = """\
[bool] expected a concrete value, got {value}: its truth is unknown while the function is traced.
{details}\
Attempted boolean conversion of {value}.
`if`, `while`, `and`, `or`, `not` and `assert` ask a value for its truth. Choose between values with
    y = primal.numpy.where(x > 0, x, -x)
between computations with primal.lax.cond, and loop with primal.lax.while_loop; for masks write
& | ~ in place of and, or, not. If only few values of an argument occur, make it static:
    primal.jit(f, static_argnames="flag")"""

MSG_CONCRETE = """\
[{what}] expected a concrete value, got {value}.
{details}\
A traced array stands for every array of its shape and dtype, so Python cannot have its value.
Convert dtypes with x.astype(dtype); take sizes from x.shape, which is concrete; or make the
argument static, so that each of its values is traced anew:
    primal.jit(f, static_argnums=0)"""

MSG_ARRAY = """\
[numpy.asarray] expected a concrete array, got {value}: NumPy functions cannot be traced.
{details}\
The numpy.ndarray conversion method __array__() was called on it.
Use the function of the same name in primal.numpy:
    import primal.numpy as jnp
    jnp.sin(x)
To call NumPy on the values while the program runs, use primal.pure_callback."""

# NumPy's words, which arrays that have values use.
NO_TRUTH = (
    "The truth value of an empty array is ambiguous. Use `array.size > 0` to check that an array "
    "is not empty."
)
NO_ONE_TRUTH = (
    "The truth value of an array with more than one element is ambiguous. Use a.any() or a.all()"
)

MSG_TANGENT = """\
[{what}] expected a value that is not being differentiated, got {value}.
{details}\
Converted to Python or NumPy it would be a constant, and its part of the derivative lost in silence.
Compute with primal.numpy, or say that it is a constant:
    float(primal.lax.stop_gradient(x))"""

MSG_INTEGER = """\
[index] expected a concrete integer, got {value}: it cannot index lists, tuples and ranges.
{details}\
The __index__() method was called on it.
Index an array in place of the list,
    primal.numpy.array(a_list)[i]
loop with primal.lax.fori_loop in place of range, or make the argument static:
    primal.jit(f, static_argnums=0)"""

MSG_MASK = """\
[index] expected a concrete boolean mask, got {value}: \
Array boolean indices must be concrete, as the shape of x[mask] depends on their values.
{details}\
Keep the shape and select values,
    primal.numpy.where(mask, x, 0)
assign with where or x.at[...], or state the number of results:
    primal.numpy.nonzero(mask, size=n)"""

MSG_LEAK = """\
[trace] expected a value of the running trace, got {value}, which outlived its transformation.
{details}\
The function saved it in a global, an attribute, a list or a closure, which is a side effect of
tracing and happens once. Return the value instead:
    def f(x):
        y = primal.numpy.sin(x)
        return y, y          # not: cache.append(y)
`with primal.checking_leaks():` raises at the place where the value leaks."""

MSG_LEAKED = """\
[checking_leaks] expected no value of a finished trace to be kept, got {value}.
{details}\
Leaked trace: a global, an attribute, a list or a closure still holds the value. Return it instead,
or copy it out with primal.debug.callback."""

MSG_KEY_REUSE = """\
[random] expected a key that was not used before, got {value}, which was.
{details}\
The same key gives the same numbers. Split it first:
    key, subkey = primal.random.split(key)
    x = primal.random.normal(subkey, (3,))"""


def explain(
    text: str, value: str, *, where: str = "", origin: str = "", function: str = "", what: str = ""
) -> str:
    """Return a teaching text with its placeholders filled.

    `where` is the user's line, `origin` what the value depends on, `function` the function that is
    traced; lines for parts that are not known are left out.

    >>> print(explain("[f] expected a, got {value}.\\n{details}Do b.", "c", where="m.py:3 (f)"))
    [f] expected a, got c.
      at:      m.py:3 (f)
    Do b.
    """
    parts = (("at", where), ("from", origin), ("tracing", function))
    details = "".join(f"  {name + ':':<8} {part}\n" for name, part in parts if part)
    return text.format(value=value, details=details, what=what)


# --- tracebacks -----------------------------------------------------------------------------------

# Errors that users seldom cause themselves: from inside the library they are probably its bugs.
_SURPRISES = (AssertionError, AttributeError, LookupError, NameError, RecursionError, SystemError)
_HIDDEN_NOTE = (
    "(Library frames are hidden; config.update('traceback_filtering', 'off') shows them.)"
)


def filter_traceback(error: BaseException) -> BaseException:
    """Remove the library's frames from an error's traceback and from those of its causes, in place.

    Call it in an `except` block that ends in a bare `raise`: that adds no entry for its own frame,
    so nothing of the library is left. Does nothing under `traceback_filtering='off'`.

    >>> filter_traceback(ValueError("x"))
    ValueError('x')
    """
    now = settings()
    mode = now.traceback_filtering
    if mode == "off" or now.show_internal_frames:
        return error
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        link = todo.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        todo += (link.__cause__, link.__context__)
        if mode == "tracebackhide":
            _mark_hidden(link)
            continue
        if isinstance(link, _SURPRISES) and not isinstance(link, PrimalIndexError):
            _note_hidden(link)
        link.__traceback__ = without_internal_frames(link.__traceback__)
    return error


def _mark_hidden(error: BaseException) -> None:
    # The convention of pytest and IPython, which then skip the frame themselves.
    tb = error.__traceback__
    while tb is not None:
        if is_internal(tb.tb_frame.f_code.co_filename):
            tb.tb_frame.f_locals["__tracebackhide__"] = True
        tb = tb.tb_next


def _note_hidden(error: BaseException) -> None:
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    raised_inside = tb is not None and is_internal(tb.tb_frame.f_code.co_filename)
    if raised_inside and _HIDDEN_NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_HIDDEN_NOTE)


def api_boundary(fun: F, like: Any = None, says: str = "") -> F:
    """Decorate a function that users call, so that errors leave it without the library's frames.

    It looks like itself, or `like` another one; `says` is that of `wraps`.
    """

    @wraps(fun if like is None else like, says)
    def boundary(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            filter_traceback(error)
            raise

    return boundary

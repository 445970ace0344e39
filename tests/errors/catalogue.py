"""The error classes: programs that raise them, and the right ones. docs/errors.md is made of it.

`python -m tests.errors.catalogue` writes the page.
"""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"


@dataclasses.dataclass(frozen=True)
class Row:
    """One way to an error. `name` is looked up in `where`; `says` is a part of its message."""

    name: str
    where: str
    title: str
    why: str
    wrong: str
    right: str
    says: str


def _row(name: str, where: str, title: str, why: str, wrong: str, right: str, says: str) -> Row:
    clean = [textwrap.dedent(t).strip() for t in (why, wrong, right)]
    return Row(name, where, title, " ".join(clean[0].split()), clean[1], clean[2], says)


ERRORS = "primal.errors"
ROWS = [
    _row(
        "TracerBoolConversionError", ERRORS, "A traced value decides about Python's control flow",
        """While a function is traced, an array stands for all arrays of its shape: `if` and `while`
        cannot know which way to go.""",
        """
        @primal.jit
        def relu(x):
            if x > 0:
                return x
            return 0.0

        relu(1.0)
        """,
        """
        @primal.jit
        def relu(x):
            return jnp.where(x > 0, x, 0.0)

        relu(1.0)
        """,
        "Attempted boolean conversion",
    ),
    _row(
        "ConcretizationTypeError", ERRORS, "A traced value where Python needs a number",
        """Shapes, axes and lengths are part of the program, so they must be known while it is
        traced. Make such arguments static.""",
        """
        @primal.jit
        def count(n):
            return jnp.arange(n)

        count(3)
        """,
        """
        import functools

        @functools.partial(primal.jit, static_argnums=0)
        def count(n):
            return jnp.arange(n)

        count(3)
        """,
        "concrete",
    ),
    _row(
        "TracerArrayConversionError", ERRORS, "NumPy called on a traced value",
        """NumPy computes at once, with values; a traced array has none. Use the function of the
        same name in `primal.numpy`.""",
        """
        primal.jit(lambda x: np.sin(x))(1.0)
        """,
        """
        primal.jit(lambda x: jnp.sin(x))(1.0)
        """,
        "NumPy functions cannot be traced",
    ),
    _row(
        "TracerIntegerConversionError", ERRORS, "A traced value indexes a list",
        """A Python list needs an integer now. Index an array instead.""",
        """
        names = [10, 20, 30]
        primal.jit(lambda i: names[i])(1)
        """,
        """
        table = jnp.array([10, 20, 30])
        primal.jit(lambda i: table[i])(1)
        """,
        "__index__",
    ),
    _row(
        "NonConcreteBooleanIndexError", ERRORS, "A traced mask as an index",
        """The shape of `x[mask]` is the number of True values, which is not known while tracing.
        Keep the shape, or state the number.""",
        """
        primal.jit(lambda x: x[x > 0].sum())(jnp.arange(3.0))
        """,
        """
        primal.jit(lambda x: jnp.where(x > 0, x, 0.0).sum())(jnp.arange(3.0))
        """,
        "mask",
    ),
    _row(
        "UnexpectedTracerError", ERRORS, "A traced value outlives its function",
        """A traced function should return what it computes. What it saves elsewhere is a
        placeholder, of no use once the function has been traced.""",
        """
        kept = []

        @primal.jit
        def f(x):
            kept.append(x * 2)
            return x

        f(1.0)
        kept[0] + 1
        """,
        """
        @primal.jit
        def f(x):
            return x, x * 2

        y, kept = f(1.0)
        kept + 1
        """,
        "outlived",
    ),
    _row(
        "KeyReuseError", ERRORS, "A random key used twice",
        """With `debug_key_reuse`, a typed key that was drawn from or split before is an error: it
        would give the same numbers again.""",
        """
        with primal.debug_key_reuse(True):
            key = primal.random.key(0)
            x = primal.random.normal(key)
            y = primal.random.normal(key)
        """,
        """
        with primal.debug_key_reuse(True):
            first, second = primal.random.split(primal.random.key(0))
            x = primal.random.normal(first)
            y = primal.random.normal(second)
        """,
        "not used before",
    ),
    _row(
        "JaxRuntimeError", ERRORS, "A program failed while it ran",
        """Here because a Python function that it called raised (a `CallbackError`, whose
        `__cause__` is what was raised). Under `transfer_guard('disallow')` an implicit transfer is
        one, too.""",
        """
        def inverse(x):
            return np.float32(1 / int(x))

        s = primal.ShapeDtypeStruct((), jnp.float32)
        primal.jit(lambda x: primal.pure_callback(inverse, s, x))(0)
        """,
        """
        def inverse(x):
            return np.float32(1 / int(x) if int(x) else 0)

        s = primal.ShapeDtypeStruct((), jnp.float32)
        primal.jit(lambda x: primal.pure_callback(inverse, s, x))(0)
        """,
        "ZeroDivisionError",
    ),
    _row(
        "CallbackError", ERRORS, "A callback returned something else than it declared",
        """`result_shape_dtypes` is what the program is compiled for.""",
        """
        s = primal.ShapeDtypeStruct((3,), jnp.float32)
        primal.pure_callback(lambda: np.zeros(4, np.float32), s)
        """,
        """
        s = primal.ShapeDtypeStruct((4,), jnp.float32)
        primal.pure_callback(lambda: np.zeros(4, np.float32), s)
        """,
        "f32[3]",
    ),
    _row(
        "JaxprTypeError", ERRORS, "A program that breaks a rule of the language",
        """Raised by the checker of jaxprs, which runs after every transformation under
        `enable_checks`. Users meet it when they build or change jaxprs by hand.""",
        """
        from primal.ir.check import check_closed

        closed = primal.make_jaxpr(lambda x: jnp.sin(x) + 1)(1.0)
        jaxpr = closed.jaxpr
        check_closed(type(closed)(jaxpr.replace(eqns=jaxpr.eqns[::-1])))
        """,
        """
        from primal.ir.check import check_closed

        closed = primal.make_jaxpr(lambda x: jnp.sin(x) + 1)(1.0)
        check_closed(closed)
        """,
        "",
    ),
    _row(
        "FloatingPointError", "builtins", "A NaN, under debug_nans",
        """The message names the operation, the line and, in loops, the iteration. `debug_infs`
        does the same for infinities.""",
        """
        with primal.debug_nans(True):
            primal.jit(lambda x: jnp.log(x) + 1)(-1.0)
        """,
        """
        with primal.debug_nans(True):
            primal.jit(lambda x: jnp.log(jnp.maximum(x, 1e-6)) + 1)(-1.0)
        """,
        "(nan) encountered in log",
    ),
    _row(
        "JaxRuntimeError", "primal.experimental.checkify", "An error that checkify found",
        """`checkify` returns the first error as a value; `throw` raises it.""",
        """
        from primal.experimental import checkify

        f = checkify.checkify(lambda x, i: x[i], checkify.index_checks)
        err, y = primal.jit(f)(jnp.arange(3), 5)
        err.throw()
        """,
        """
        from primal.experimental import checkify

        f = checkify.checkify(lambda x, i: x[i], checkify.index_checks)
        err, y = primal.jit(f)(jnp.arange(3), 2)
        err.throw()
        """,
        "index 5 is out of bounds",
    ),
    _row(
        "ValueError", "builtins", "A check outside of checkify, in a compiled program",
        """A `check` can only raise where values are known. `checkify` turns it into a result.""",
        """
        from primal.experimental import checkify

        def f(x):
            checkify.check(x > 0, "expected x > 0, got {x}", x=x)
            return jnp.log(x)

        with primal.base.config.cpu_engine("xla"):
            primal.jit(f)(1.0)
        """,
        """
        from primal.experimental import checkify

        def f(x):
            checkify.check(x > 0, "expected x > 0, got {x}", x=x)
            return jnp.log(x)

        err, y = primal.jit(checkify.checkify(f))(1.0)
        err.throw()
        """,
        "not functionalized",
    ),
    _row(
        "TypeError", "builtins", "A loop whose carry changes its type",
        """Every step takes what the step before returned, so structure, shapes and dtypes of the
        carry stay the same.""",
        """
        primal.lax.fori_loop(0, 3, lambda i, x: x * 1.5, jnp.int32(1))
        """,
        """
        primal.lax.fori_loop(0, 3, lambda i, x: x * 1.5, 1.0)
        """,
        "carry",
    ),
    _row(
        "TypeError", "builtins", "Branches that return different types",
        """One result stands for both branches.""",
        """
        primal.jit(lambda x: primal.lax.cond(x > 0, lambda x: x, lambda x: (x, x), x))(1.0)
        """,
        """
        primal.jit(lambda x: primal.lax.cond(x > 0, lambda x: (x, 0.0), lambda x: (x, x), x))(1.0)
        """,
        "",
    ),
    _row(
        "TypeError", "builtins", "The gradient of a function that is not scalar",
        """`grad` is for scalar-valued functions; `jacrev` gives all derivatives of others.""",
        """
        primal.grad(lambda x: x * 2)(jnp.arange(3.0))
        """,
        """
        primal.grad(lambda x: (x * 2).sum())(jnp.arange(3.0))
        """,
        "scalar",
    ),
    _row(
        "ValueError", "builtins", "The derivative of a Python function",
        """What a callback computes cannot be differentiated; a rule can say what its derivative
        is.""",
        """
        s = primal.ShapeDtypeStruct((), jnp.float32)
        primal.grad(lambda x: primal.pure_callback(np.sin, s, x))(1.0)
        """,
        """
        s = primal.ShapeDtypeStruct((), jnp.float32)

        @primal.custom_jvp
        def sin(x):
            return primal.pure_callback(np.sin, s, x)

        sin.defjvps(lambda t, y, x: jnp.cos(x) * t)
        primal.grad(sin)(1.0)
        """,
        "Pure callbacks do not support JVP",
    ),
    _row(
        "ValueError", "builtins", "Ordered effects of many examples",
        """Under vmap the examples have no order.""",
        """
        from primal.experimental import io_callback

        note = lambda x: io_callback(print, None, x, ordered=True)
        primal.vmap(note)(jnp.arange(2))
        """,
        """
        from primal.experimental import io_callback

        note = lambda x: io_callback(lambda x: None, None, x)
        primal.vmap(note)(jnp.arange(2))
        """,
        "Cannot `vmap` ordered",
    ),
    _row(
        "ValueError", "builtins", "Static arguments without a hash",
        """Each value of a static argument is a program of its own, found by its hash.""",
        """
        primal.jit(lambda x, shape: x.reshape(shape), static_argnums=1)(jnp.arange(4), [2, 2])
        """,
        """
        primal.jit(lambda x, shape: x.reshape(shape), static_argnums=1)(jnp.arange(4), (2, 2))
        """,
        "Non-hashable static arguments",
    ),
    _row(
        "RuntimeError", "builtins", "An array that was donated",
        """A donated argument's memory belongs to the result.""",
        """
        f = primal.jit(lambda x: x + 1, donate_argnums=0)
        x = jnp.arange(3.0)
        f(x)
        x + 1
        """,
        """
        f = primal.jit(lambda x: x + 1, donate_argnums=0)
        x = jnp.arange(3.0)
        x = f(x)
        x + 1
        """,
        "deleted",
    ),
    _row(
        "NameError", "builtins", "A collective over an axis that nobody named",
        """`psum` and its like work over an axis that a surrounding `vmap` names.""",
        """
        primal.vmap(lambda x: x / primal.lax.psum(x, "i"))(jnp.arange(1.0, 3.0))
        """,
        """
        primal.vmap(lambda x: x / primal.lax.psum(x, "i"), axis_name="i")(jnp.arange(1.0, 3.0))
        """,
        "unbound axis name",
    ),
    _row(
        "NotImplementedError", "builtins", "IO that derivatives would do a second time",
        """`checkpoint` computes inner values again when cotangents arrive; IO among them would
        happen twice. The same holds for branches that `vmap` runs for all examples.""",
        """
        from primal.experimental import io_callback

        def noted(x):
            io_callback(print, None, x)
            return jnp.sin(x)

        primal.grad(primal.checkpoint(noted))(1.0)
        """,
        """
        from primal.experimental import io_callback

        def noted(x):
            io_callback(print, None, x)
            return primal.checkpoint(jnp.sin)(x)

        primal.grad(noted)
        """,
        "IO effects",
    ),
    _row(
        "TypeError", "builtins", "A function that returns something else than arrays",
        """What is traced returns arrays, scalars, or trees of them (None is an empty tree).""",
        """
        primal.jit(lambda x: {"value": x, "unit": "m"})(1.0)
        """,
        """
        primal.jit(lambda x: {"value": x, "unit": None})(1.0)
        """,
        "which is not a valid array type",
    ),
    _row(
        "ValueError", "builtins", "A cotangent of another shape than the result",
        """A pullback takes a cotangent of the structure, shapes and dtypes of the function's
        result.""",
        """
        y, pullback = primal.vjp(jnp.sin, jnp.ones(3))
        pullback(1.0)
        """,
        """
        y, pullback = primal.vjp(jnp.sin, jnp.ones(3))
        pullback(jnp.ones_like(y))
        """,
        "must be the same as the shape",
    ),
    _row(
        "TypeError", "builtins", "A rule for cotangents that answers for too few arguments",
        """The backward rule of `custom_vjp` returns a tuple with one cotangent per argument, None
        for those that need none.""",
        """
        @primal.custom_vjp
        def scaled(x, by):
            return x * by

        scaled.defvjp(lambda x, by: (x * by, by), lambda by, ct: (ct * by,))
        primal.grad(scaled)(1.0, 2.0)
        """,
        """
        @primal.custom_vjp
        def scaled(x, by):
            return x * by

        scaled.defvjp(lambda x, by: (x * by, by), lambda by, ct: (ct * by, None))
        primal.grad(scaled)(1.0, 2.0)
        """,
        "one cotangent per argument",
    ),
    _row(
        "Exception", "builtins", "A reference from outside, written with a value per example",
        """A reference that `vmap` does not map holds one value. Give it to the mapped function as
        an argument, with an axis for the examples.""",
        """
        ref = primal.new_ref(jnp.zeros(()))

        def keep(x):
            ref[...] = x

        primal.vmap(keep)(jnp.arange(3.0))
        """,
        """
        ref = primal.new_ref(jnp.zeros(3))

        def keep(ref, x):
            ref[...] = x

        primal.vmap(keep)(ref, jnp.arange(3.0))
        """,
        "unbatched array reference",
    ),
]  # fmt: skip

# Classes that need no program of their own.
OTHERS = {
    "JAXTypeError": "The base of the errors about traced values that are TypeErrors.",
    "JAXIndexError": "The base of the errors about indices; an IndexError.",
    "PrimalTypeError": "The same class as JAXTypeError.",
    "PrimalIndexError": "The same class as JAXIndexError.",
    "PrimalRuntimeError": "The same class as JaxRuntimeError.",
    "InconclusiveDimensionOperation": "A comparison of symbolic dimensions without an answer.",
}

HEAD = """\
# Errors

Each error with a program that raises it and the program that is right. In the programs, `primal` is
imported with `import primal, primal.numpy as jnp`, and NumPy as `np`. Messages read
`[operation] expected …, got …`, then name your line where it is known, then the remedy.

This page is written by `python -m tests.errors.catalogue` from the tests that run its programs.
"""


def page() -> str:
    """The text of docs/errors.md."""
    parts = [HEAD]
    for r in ROWS:
        module = "" if r.where == "builtins" else f"{r.where}."
        parts.append(f"## {r.title}\n\n`{module}{r.name}`\n\n{r.why}\n")
        parts.append(f"Wrong:\n\n```python\n{r.wrong}\n```\n")
        parts.append(f"Right:\n\n```python\n{r.right}\n```\n")
    parts.append("## Other classes\n")
    parts.append("\n".join(f"* `primal.errors.{name}`: {text}" for name, text in OTHERS.items()))
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())

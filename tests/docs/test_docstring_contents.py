"""What docstrings of the namespaces of users hold beside a sentence and an example.

Errors: every class of error that a function raises itself is named in its docstring, whatever its
namespace. Shapes: a function says what its operands are or what comes out. Law: where the function
is mathematics, a formula. Source: where an algorithm is named, its author's work. What a machine
cannot see, whether these are true, the examples and the tests of the functions show.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.docs.test_public_docs import names, own_docstring

NAMESPACES = ("numpy", "scipy", "random", "nn", "image", "ops", "tree", "tree_util", "dtypes")
MATHEMATICS = ("numpy.linalg", "numpy.fft", "scipy.special", "scipy.stats", "random", "nn")

SHAPES = re.compile(
    r"\b(shapes?|ax[ei]s|dtypes?|elements?|arrays?|matri(x|ces)|vectors?|scalars?|dimensions?"
    r"|integers?|floats?|complex|booleans?|numbers?|keys?|rows?|columns?|trees?|operands?|lea(f|ves)"
    r"|images?|polynomials?|coefficients|broadcast|values?|sizes?)\b|n, n\)",
    re.IGNORECASE,
)
FORMULA = re.compile(r"[=Σ∫Π√≤≥<>∂·×±ψΓ|‖²³⁻^*/½]|\b(log|exp|max|min)\b")

# People who stand for algorithms, and what a source looks like: a year, or a work.
ALGORITHMS = re.compile(
    r"\b(Adam|Bartels|BFGS|Box-Muller|Brent|Chebyshev|Clenshaw|Cody|Cooley|Denman|Devroye|Dormand"
    r"|Euclid|Giles|GMRES|Gumbel-max|Halley|Hestenes|Higham|H[öo]rmann|Horner|Householder|Jacobi"
    r"|Kahan|Knuth|Lanczos|Lentz|Marsaglia|Miller|Nesterov|Newton|Padé|Philox|QDWH|Remez|Runge"
    r"|Schur|Simpson|Temme|[Tt]hreefry|Weniger|Welch|Wichura|Wolfe|Yates)('s)?\b"
)
SOURCE = re.compile(r"\b(1[89]|20)\d\d\b|Source:|DLMF|Elements|\bAS \d+")
# Name -> what it means by that word.
NO_ALGORITHM = {
    "primal.scipy.linalg.rsf2csf": "Schur's decomposition, not a method for it",
    "primal.scipy.linalg.funm": "Schur's decomposition, not a method for it",
    "primal.threefry_partitionable": "a setting of what primal.random.bits documents",
}

# Pattern of a name -> why it needs no formula.
NO_FORMULA = {
    "primal.random.*key*": "keys are no numbers",
    "primal.random.PRNGKey": "keys are no numbers",
    "primal.random.split": "keys are no numbers",
    "primal.random.fold_in": "keys are no numbers",
    "primal.random.clone": "keys are no numbers",
    "primal.nn.identity": "the sentence is the law",
    "primal.nn.initializers.zeros": "the sentence is the law",
    "primal.nn.initializers.ones": "the sentence is the law",
    "primal.nn.initializers.constant": "the sentence is the law",
    "primal.nn.get_scaled_dot_general_config": "a configuration",
    "primal.nn.scaled_dot_general": "its law is that of lax.dot_general",
}
# Pattern of a name -> why it takes and gives no arrays.
NO_ARRAYS = {
    "primal.numpy.from*": "not there, and the docstring says why",
    "primal.numpy.iterable": "a question about any value",
    "primal.tree*": "classes of nodes and structures",
}


def functions(*namespaces: str) -> Iterator[tuple[str, Any, str]]:
    """(name, function, docstring without examples) of the namespaces, or of all."""
    for name, value in names().items():
        inside = not namespaces or any(name.startswith(f"primal.{s}.") for s in namespaces)
        if inside and not isinstance(value, type):
            yield name, value, re.split(r"\n\s*>>>", own_docstring(value))[0]


def excused(name: str, excuses: dict[str, str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in excuses)


def raised(function: Any) -> set[str]:
    """The classes of errors that stand in raise statements of the function's own body."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (TypeError, OSError):  # an Op or a ufunc: its errors are those of its table
        return set()
    found = [
        node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
    ]
    return {e.id for e in found if isinstance(e, ast.Name) and e.id.endswith("Error")}


def test_errors_are_named() -> None:
    silent = [
        (name, error)
        for name, function, text in functions()
        for error in sorted(raised(function))
        if error not in text
    ]
    assert not silent


def test_shapes_or_dtypes_are_said() -> None:
    silent = [
        name
        for name, _, text in functions(*NAMESPACES)
        if not SHAPES.search(text) and not excused(name, NO_ARRAYS)
    ]
    assert not silent


def test_mathematics_has_a_formula() -> None:
    silent = [
        name
        for name, _, text in functions(*MATHEMATICS)
        if not FORMULA.search(text) and not excused(name, NO_FORMULA)
    ]
    assert not silent


def test_algorithms_have_a_source() -> None:
    named = {name: text for name, _, text in functions() if ALGORITHMS.search(text)}
    bare = {name for name, text in named.items() if not SOURCE.search(text)}
    assert bare == set(NO_ALGORITHM)
    assert len(named) > 15


@pytest.mark.parametrize("excuses", [NO_FORMULA, NO_ARRAYS])
def test_excuses_are_of_names_that_exist(excuses: dict[str, str]) -> None:
    present = list(names())
    assert not [p for p in excuses if not any(fnmatchcase(name, p) for name in present)]


def test_the_checks_can_fail() -> None:
    def refuses(x: object) -> None:
        """Nothing of use."""
        raise ValueError(x)

    assert raised(refuses) == {"ValueError"}
    assert not SHAPES.search("Nothing of use.") and not FORMULA.search("Nothing of use.")
    assert ALGORITHMS.search("By Newton's method.") and not SOURCE.search("By Newton's method.")

"""What the rows of the table leave out is counted: parameters, dtypes, axes, derivatives."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from primal.ir.op import Never, registry
from primal.transforms.stage import stage
from tests.cases import CASES, Case
from tests.cases.case import C64, F32
from tests.laws.compare import arrays, staged, width

NAMED = "of one named axis; two at once are in tests/api/test_vmap.py"
THREADED = "the other generators are in tests/random, as they have no keys of threefry's words"
COUNTED = "how many operands are constants; programs of every mixture are drawn in test_drawn"
CHAINED = "the other orders are derivatives of it, which the law of second order takes"
# op, parameter: why all rows have one value.
ONE_VALUE: dict[tuple[str, str], str] = {
    **{(op, "axes"): NAMED for op in ("all_gather", "all_to_all", "axis_index", "pmax", "pmin",
                                      "ppermute", "psum", "reduce_scatter")},
    **{(op, p): "follows from the shapes"
       for op, ps in {"all_gather": ("dim", "size"), "reduce_scatter": ("dim", "size"),
                      "all_to_all": ("split", "concat"), "ppermute": ("perm",)}.items()
       for p in ps},
    **{(op, "impl"): THREADED
       for op in ("random_fold_in", "random_seed", "random_split", "random_wrap")},
    **{(op, "name"): "a name that people are shown"
       for op in ("custom_jvp_call", "custom_lin", "custom_vjp_call", "custom_vmap_call", "jit",
                  "name")},
    **{(op, "num_consts"): COUNTED
       for op in ("custom_jvp_call", "custom_linear_solve", "custom_vjp_call", "custom_vmap_call",
                  "linear_call", "scan")},
    ("scan", "num_carry"): COUNTED,
    ("while", "cond_nconsts"): COUNTED,
    ("while", "body_nconsts"): COUNTED,
    ("linear_call", "num_res"): COUNTED,
    ("custom_lin", "num_residuals"): COUNTED,
    ("custom_lin", "active"): COUNTED,
    ("custom_lin", "differentiable"): COUNTED,
    ("custom_linear_solve", "num_aux"): "with results beside the solution: tests/control",
    ("custom_jvp_call", "symbolic_zeros"): "rules that ask for them are in tests/control",
    ("custom_vjp_call", "symbolic_zeros"): "rules that ask for them are in tests/control",
    ("jit", "inline"): "inlined calls leave no equation behind",
    ("remat2", "prevent_cse"): "for XLA on accelerators alone",
    **{(op, "callback"): "the user's function"
       for op in ("debug_callback", "debug_print", "io_callback")},
    **{(op, "partitioned"): "of several devices, which come later"
       for op in ("debug_callback", "debug_print")},
    **{(op, "sharding"): "of several devices, which come later" for op in ("io_callback",
                                                                     "pure_callback")},
    ("debug_print", "ordered"): "as of debug_callback, whose rows have both",
    ("debug_print", "fmt"): "what is printed is no result",
    ("check", "debug"): "whether a failure is shown, which rows have none of",
    ("random_split", "shape"): "other shapes are in tests/random",
    ("igamma_derivative", "order"): CHAINED,
    ("zeta_derivative", "order"): CHAINED,
    ("betainc_derivative", "orders"): CHAINED,
    ("select_and_scatter_add", "base_dilation"): "operands of pooling are not spread",
}  # fmt: skip


def values() -> dict[tuple[str, str], set[Any]]:
    """Of each parameter of each op: the values that it has in the rows."""
    found: dict[tuple[str, str], set[Any]] = collections.defaultdict(set)
    for case in CASES:
        for dtype in case.dtypes:
            for name, value in case.parameters(dtype).items():
                try:
                    found[case.op, name].add(value)
                except TypeError:
                    found[case.op, name].add(repr(value))
    return found


def test_every_parameter_varies() -> None:
    fixed = {place for place, seen in values().items() if len(seen) < 2}
    assert fixed == set(ONE_VALUE)


def test_flags_and_modes_have_every_value() -> None:
    wrong = []
    for (op, name), seen in values().items():
        kinds = {type(v) for v in seen}
        if kinds == {bool} and (op, name) not in ONE_VALUE and len(seen) < 2:
            wrong.append(f"{op} {name}: {seen}")
        for kind in kinds:
            members = set(getattr(kind, "__members__", {}).values())
            missing = members - seen
            if members and missing and (op, name) not in SOME_MEMBERS:
                wrong.append(f"{op} {name} is never {sorted(m.name for m in missing)}")
    assert not wrong, "\n".join(wrong)


SOME_MEMBERS = {
    ("dot_general", "precision"): "every algorithm is in tests/lax/test_recorded.py",
}


def test_smooth_ops_are_taken_to_order_two() -> None:
    """An op with a derivative has a row of second order, unless its derivative is constant."""
    best: dict[str, int] = {}
    for case in CASES:
        order = case.order if case.reverse else min(case.order, 1)
        best[case.op] = max(best.get(case.op, 0), order)
    lacking = {
        op for op, order in best.items()
        if order < 2 and op in registry and not isinstance(registry[op].jvp, Never)
    }  # fmt: skip
    assert lacking == set(ONCE)


ONCE = {
    "bitcast_convert_type": "its derivative is zero",
    "stop_gradient": "its derivative is zero",
    "reduce_precision": "its tangents are rounded as its values are",
    "custom_vjp_call": "it has no forward mode; tests/control takes its gradients' gradients",
    "while": "it has no reverse mode",
}


def test_complex_numbers_are_differentiated_where_they_are_taken() -> None:
    taken, known = set(), set()
    for case in CASES:
        if case.order and any(np.dtype(d).kind == "c" for d in case.dtypes):
            known.add(case.op)
        fixed = all(x.dtype is not None for x in case.operands)
        carries = case.record.higher is not None or "jaxpr" in case.parameters(F32)
        refused = isinstance(case.record.jvp, Never)
        if case.around is None and not (fixed or carries or refused):
            try:
                xs = case.draws(C64, also=False)[0]
                stage(case.function(C64), [a.aval for a in arrays(xs)], "taken")
            except (TypeError, ValueError):
                continue
            taken.add(case.op)
    assert taken - known == set(REAL_ONLY)


REAL_ONLY = {
    "reduce_window_max": "select_and_gather_add compares real numbers, as the reference's does",
    "reduce_window_min": "select_and_gather_add compares real numbers, as the reference's does",
    "check": "it has no results",
    "debug_print": "it has no results",
}


def test_what_is_not_batched() -> None:
    batched = {case.op for case in CASES if case.vmap}
    assert {case.op for case in CASES} - batched == set(ALONE)


ALONE = {"iota": "it has no operands", "check": "it has no results"}


def test_every_dtype_is_asked_for() -> None:
    """`law_of_all_dtypes` has a row of every op but those whose dtypes are not an operand's."""
    plain = {case.op for case in CASES if case.around is None and not callable(case.params)}
    carrying = {op for op in registry if registry[op].higher is not None}
    on_axes = {op for op in registry if registry[op].kind.collective}
    of_keys = {op for op in registry if op.startswith("random_") and op != "random_gamma_grad"}
    assert {c.op for c in CASES} - plain - carrying - on_axes - of_keys == set(NOT_ASKED)


NOT_ASKED = {
    "check": "it takes what its text shows, and has no results",
    "io_callback": "the user's function says what it gives",
    "pure_callback": "the user's function says what it gives",
}


def test_every_op_refuses_something() -> None:
    """Error inputs, whose texts are recorded in `test_error_texts`."""
    silent = {case.op for case in CASES} - {case.op for case in CASES if case.errors}
    assert silent == set(TAKE_ANYTHING)


UNBOUND = "an axis that nothing binds is a NameError, as in JAX: tests/errors"
TAKE_ANYTHING = {
    **dict.fromkeys(("all_gather", "axis_index", "pmax", "pmin"), UNBOUND),
    **dict.fromkeys(("copy", "name", "optimization_barrier", "stop_gradient"), "any array"),
    **dict.fromkeys(
        ("debug_callback", "debug_print", "io_callback", "pure_callback"),
        "any arrays: what the user's function refuses is in tests/effects/test_callbacks.py",
    ),
    "custom_lin": "made by transformations, of operands that fit",
    "jit": "called with what its program was traced for",
}


def test_small_shapes_are_asked_for() -> None:
    """Empty arrays and sizes of 1, of every op whose row does not fix its shapes."""
    seen: dict[str, set[str]] = {"empty": set(), "one": set()}
    for case in CASES:
        for xs in case.draws(case.dtypes[0]):
            with width([np.zeros(0, case.dtypes[0]), *xs]):
                outs = staged(case.function(case.dtypes[0]), xs).out_avals
            shapes = [x.shape for x in (*xs, *outs)]
            seen["empty"] |= {case.op} if any(0 in shape for shape in shapes) else set()
            seen["one"] |= {case.op} if any(1 in shape for shape in shapes) else set()
    every = {c.op for c in CASES if not _fixed(c)}
    assert every - seen["empty"] == set(NEVER_EMPTY)
    assert every <= seen["one"]


def _fixed(case: Case) -> bool:
    """Programs, axes, keys and callbacks have the shapes that they were made for."""
    carries = case.record.higher is not None or "jaxpr" in case.parameters(F32)
    named = case.record.kind.collective or case.record.kind.host
    return carries or named or case.op.startswith("random_") or case.op == "threefry2x32"


NEVER_EMPTY = {"select_and_scatter_add": "each window has an element"}

"""The promotion lattice: the dtype and weakness of expressions over mixed operands.

A partial order of dtypes and of three weak nodes i*, f*, c*, which stand for Python scalars; the
type of a mixed expression is the least upper bound of its operands' nodes:

    bool -> i* -> u8 i8 ...  -> f* -> bf16, f16 -> f32 -> f64
                                 |                  |      |
                                 c* -------------> c64 -> c128
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from primal.base import caches
from primal.base.config import config, settings
from primal.base.dtype_table import (
    KIND,
    NARROW,
    SMALL_FLOATS,
    DType,
    KeyType,
    all_dtypes,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float0,
    float16,
    float32,
    float64,
    int1,
    int2,
    int4,
    int8,
    int16,
    int32,
    int64,
    uint1,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
    unsupported,
)


class TypePromotionError(ValueError):
    """The operands' dtypes have no common type in the promotion lattice.

    >>> try:
    ...     with primal.numpy_dtype_promotion("strict"):
    ...         jnp.arange(2) + jnp.ones(2)
    ... except TypePromotionError:
    ...     print("one of them needs astype")
    one of them needs astype
    """


class KeyPromotionError(TypePromotionError, TypeError):
    """A random key met a number: a TypeError of arithmetic, too."""


_WEAK_INT, _WEAK_FLOAT, _WEAK_COMPLEX = "i*", "f*", "c*"
_STARS = {"i": _WEAK_INT, "u": _WEAK_INT, "f": _WEAK_FLOAT, "c": _WEAK_COMPLEX}
_TINY_INTS = (int1, int2, int4, uint1, uint2, uint4)

# Direct steps upward. The small floats and tiny integers lead nowhere: they must be cast by hand.
_STEPS: dict[Any, tuple[Any, ...]] = {
    bool_: (_WEAK_INT, *_TINY_INTS),
    _WEAK_INT: (uint8, int8, *_TINY_INTS),
    uint8: (int16, uint16),
    uint16: (int32, uint32),
    uint32: (int64, uint64),
    uint64: (_WEAK_FLOAT,),
    int8: (int16,),
    int16: (int32,),
    int32: (int64,),
    int64: (_WEAK_FLOAT,),
    _WEAK_FLOAT: (*SMALL_FLOATS, bfloat16, float16, _WEAK_COMPLEX),
    bfloat16: (float32,),
    float16: (float32,),
    float32: (float64, complex64),
    float64: (complex128,),
    _WEAK_COMPLEX: (complex64,),
    complex64: (complex128,),
}
# Strict mode keeps only the steps away from Python scalars.
_STRICT_STEPS: dict[Any, tuple[Any, ...]] = {
    _WEAK_INT: (_WEAK_FLOAT, *(d for d in all_dtypes if KIND[d] in "iu")),
    _WEAK_FLOAT: (_WEAK_COMPLEX, *(d for d in all_dtypes if KIND[d] == "f")),
    _WEAK_COMPLEX: (complex64, complex128),
}


def _above(node: Any, steps: dict[Any, tuple[Any, ...]]) -> frozenset[Any]:
    seen = {node}
    todo = [node]
    while todo:
        for up in steps.get(todo.pop(), ()):
            if up not in seen:
                seen.add(up)
                todo.append(up)
    return frozenset(seen)


@caches.memo
def _join(nodes: frozenset[Any], strict: bool) -> Any:
    steps = _STRICT_STEPS if strict else _STEPS
    above = {node: _above(node, steps) for node in nodes}
    common = frozenset.intersection(*above.values())
    for node in common:
        if common <= _above(node, steps):
            return node
    raise TypePromotionError(_no_join_message(nodes, strict))


def _no_join_message(nodes: Iterable[Any], strict: bool) -> str:
    words = {_WEAK_INT: "Python int", _WEAK_FLOAT: "Python float", _WEAK_COMPLEX: "Python complex"}
    names = sorted(words.get(node) or str(getattr(node, "name", node)) for node in nodes)
    head = f"[promotion] expected dtypes with a common type, got {', '.join(names)}."
    if strict:
        return (
            f"{head}\nnumpy_dtype_promotion='strict' leaves no available implicit dtype promotion "
            "path: cast the operands with x.astype(dtype), or set numpy_dtype_promotion='standard'."
        )
    if any(node in _TINY_INTS for node in nodes):
        return (
            f"{head}\n1-, 2- and 4-bit integers have no available implicit dtype promotion path: "
            "cast them, for example with x.astype('int32')."
        )
    if any(node in SMALL_FLOATS for node in nodes):
        return (
            f"{head}\nFloats of 4, 6 and 8 bits have no available implicit dtype promotion path: "
            "cast them, for example with x.astype('float32')."
        )
    return f"{head}\nCast the operands to one dtype with x.astype(dtype)."


def bound(pairs: Sequence[tuple[DType, bool]], x64: bool, strict: bool) -> tuple[DType, bool]:
    if not pairs:
        raise ValueError("[result_type] expected at least one array or dtype, got none.")
    operands: list[tuple[DType, bool]] = []
    for dtype, weak in pairs:
        if isinstance(dtype, KeyType):
            if all(other == dtype for other, _ in pairs):
                return dtype, False
            raise KeyPromotionError(
                "[promotion] expected dtypes with a common type, got "
                f"{', '.join(sorted(str(getattr(d, 'name', d)) for d, _ in pairs))}.\nRandom keys "
                "are no numbers and do not mix with them: primal.random.key_data(key) is an array "
                "of integers."
            )
        if dtype not in KIND or dtype == float0:
            raise TypeError(unsupported("result_type", dtype))
        if not x64:
            dtype = NARROW.get(dtype, dtype)
        operands.append((dtype, weak and dtype != bool_))
    dtypes = frozenset(dtype for dtype, _ in operands)
    all_weak = all(weak for _, weak in operands)
    if len(dtypes) == 1:
        return operands[0][0], all_weak
    if all_weak and not strict:
        # Python scalars only: the bound of their dtypes, and still weak.
        joined = _join(dtypes, strict)
        is_weak_result = True
    else:
        nodes = frozenset(_STARS[KIND[d]] if weak else d for d, weak in operands)
        joined = _join(nodes, strict)
        is_weak_result = isinstance(joined, str)
    if isinstance(joined, str):
        wide = {_WEAK_INT: int64, _WEAK_FLOAT: float64, _WEAK_COMPLEX: complex128}[joined]
        is_weak_result = True
        joined = wide
    return (joined if x64 else NARROW.get(joined, joined)), is_weak_result


@caches.memo
def wide_bound(a: tuple[DType, bool], b: tuple[DType, bool], x64: bool, strict: bool) -> DType:
    """The least upper bound of two (dtype, weak), which has 64 bits where one of them has."""
    found = bound((a, b), True, strict)[0]
    if x64 or a[0] in NARROW or b[0] in NARROW:
        return found
    return NARROW.get(found, found)


# One table per setting of the switch and of strictness. It holds two forms of key: tuples of pairs,
# and the flat (dtype, weak, dtype, weak) of `promote_pair`.
_results: dict[tuple[bool, bool], dict[Any, tuple[DType, bool]]] = {
    (x64, strict): {} for x64 in (False, True) for strict in (False, True)
}
for _found in _results.values():
    caches.register(_found.clear)
config.derive(
    "promotions",
    lambda now: _results[now["enable_x64"], now["numpy_dtype_promotion"] == "strict"],
)


def lattice_result(pairs: Iterable[tuple[DType, bool]]) -> tuple[DType, bool]:
    """Return (dtype, weak) of an expression over operands given as (dtype, weak).

    Answers are remembered per setting of the 64-bit switch and of strict promotion.

    >>> lattice_result([(float16, False), (float32, True)])
    (dtype('float16'), False)
    """
    key = tuple(pairs)
    now = settings()
    found = now.promotions.get(key)
    if found is None:
        found = bound(key, now.enable_x64, now.numpy_dtype_promotion == "strict")
        now.promotions[key] = found
    return found


def promote_pair(a: DType, a_weak: bool, b: DType, b_weak: bool) -> tuple[DType, bool]:
    """Return (dtype, weak) of a binary expression: `lattice_result` without the lists."""
    table = settings().promotions
    found = table.get((a, a_weak, b, b_weak))
    if found is None:
        found = table[a, a_weak, b, b_weak] = lattice_result(((a, a_weak), (b, b_weak)))
    return found

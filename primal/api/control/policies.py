"""What `checkpoint` keeps: policies, asked per equation `policy(op, *avals, **params)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from primal.control.remat import Offloadable, Recompute, Saveable, keeps
from primal.ops.barrier import name_op
from primal.ops.contract import dot_general
from primal.ops.window.convolution import conv_general_dilated

Policy = Callable[..., Any]

_PRODUCTS = frozenset({dot_general, conv_general_dilated})


def everything_saveable(*args: Any, **params: Any) -> bool:
    """Keep every value that derivatives need, as if `checkpoint` were not there."""
    return True


def nothing_saveable(*args: Any, **params: Any) -> bool:
    """Keep no inner value: the policy of `checkpoint` without one."""
    return False


def dots_saveable(prim: Any, *args: Any, **params: Any) -> bool:
    """Keep the results of matrix products and convolutions."""
    return prim in _PRODUCTS


def dots_with_no_batch_dims_saveable(prim: Any, *args: Any, **params: Any) -> bool:
    """Keep the results of matrix products without batch dimensions, as of layers' weights."""
    if prim is not dot_general:
        return False
    _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
    return not lhs_batch and not rhs_batch


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """`dots_with_no_batch_dims_saveable`, kept in the memory kind `offload_dst`.

    Devices here have one memory, so the values stay where they are.
    """

    def policy(prim: Any, *args: Any, **params: Any) -> Any:
        if dots_with_no_batch_dims_saveable(prim, *args, **params):
            return Offloadable(offload_src, offload_dst)
        return Recompute

    return policy


def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Keep every value but those `checkpoint_name` gave one of the names."""
    names = _names(names_not_to_save)

    def policy(prim: Any, *args: Any, **params: Any) -> bool:
        return not (prim is name_op and params["name"] in names)

    return policy


def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Keep the values that have a name, other than these."""
    names = _names(names_not_to_save)

    def policy(prim: Any, *args: Any, **params: Any) -> bool:
        return prim is name_op and params["name"] not in names

    return policy


def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Keep the values that `checkpoint_name` gave one of these names."""
    names = _names(names_which_can_be_saved)

    def policy(prim: Any, *args: Any, **params: Any) -> bool:
        return prim is name_op and params["name"] in names

    return policy


def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """Keep what either policy keeps."""

    def policy(prim: Any, *args: Any, **params: Any) -> bool:
        return any(keeps(p(prim, *args, **params)) for p in (policy_1, policy_2))

    return policy


def save_and_offload_only_these_names(
    *,
    names_which_can_be_saved: Sequence[str],
    names_which_can_be_offloaded: Sequence[str],
    offload_src: str,
    offload_dst: str,
) -> Policy:
    """Keep the values of some names, and those of others in the memory kind `offload_dst`.

    Devices here have one memory, so both stay where they are.

    ValueError for a name in both lists.
    """
    kept, moved = _names(names_which_can_be_saved), _names(names_which_can_be_offloaded)
    if kept & moved:
        raise ValueError(
            "[save_and_offload_only_these_names] expected names in one of the lists, got both "
            f"for {sorted(kept & moved)}."
        )

    def policy(prim: Any, *args: Any, **params: Any) -> Any:
        name = params.get("name") if prim is name_op else None
        if name in kept:
            return Saveable
        return Offloadable(offload_src, offload_dst) if name in moved else Recompute

    return policy


def _names(names: Sequence[str]) -> frozenset[str]:
    return frozenset(names)

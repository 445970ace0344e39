"""Products under the array API's signatures: operands are positional."""

from __future__ import annotations

from typing import Any

from primal.numpy import contraction


def matmul(
    x1: Any, x2: Any, /, *, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """The matrix product of the last two axes: `primal.numpy.matmul`.

    out[..., i, k] = Σⱼ x1[..., i, j] x2[..., j, k].

    >>> jnp.linalg.matmul(jnp.eye(2), jnp.array([1.0, 2.0]))
    Array([1., 2.], dtype=float32)
    """
    return contraction.matmul(
        x1, x2, precision=precision, preferred_element_type=preferred_element_type
    )


def tensordot(
    x1: Any,
    x2: Any,
    /,
    *,
    axes: Any = 2,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Any:
    """Σ over pairs of axes: `primal.numpy.tensordot`.

    >>> jnp.linalg.tensordot(jnp.eye(2), jnp.eye(2))
    Array(2., dtype=float32)
    """
    return contraction.tensordot(
        x1,
        x2,
        axes,
        precision=precision,
        preferred_element_type=preferred_element_type,
        out_sharding=out_sharding,
    )

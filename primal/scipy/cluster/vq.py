"""Vector quantization: which of a set of codes each observation is nearest to."""

from __future__ import annotations

import primal.numpy as jnp
from primal.ir.trace import Array
from primal.numpy.promotion import ArrayLike
from primal.runtime.refusals import in_words
from primal.scipy.operands import inexact

__all__ = ["vq"]


@in_words
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """For each observation the nearest code's index, and the distance to it.

    index_i = argmin_k ‖obs_i - code_k‖ (the first, where several are), of int32. `obs` has shape
    (n, d) and `code_book` (k, d), or (n,) and (k,). `check_finite` is ignored: values are not known
    under `jit`. ValueError for other ranks, or where the two differ in rank. Raises TypeError where
    the numbers of features differ.

    >>> vq(jnp.array([[1.0, 1.0], [5.0, 5.0]]), jnp.array([[1.0, 1.0], [5.0, 4.0]]))
    (Array([0, 1], dtype=int32), Array([0., 1.], dtype=float32))
    """
    obs, code_book = inexact("scipy.cluster.vq.vq", obs, code_book)
    if obs.ndim != code_book.ndim:
        raise ValueError(
            "[vq] expected observations and codes of one rank, got shapes "
            f"{obs.shape} and {code_book.shape}."
        )
    if obs.ndim not in (1, 2):
        raise ValueError(
            f"[vq] expected operands of one or two dimensions, got shape {obs.shape}. Reshape "
            "them to (count, features)."
        )
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    if obs.shape[1] != code_book.shape[1]:
        raise TypeError(
            "[vq] expected observations and codes of one number of features, got shapes "
            f"{obs.shape} and {code_book.shape}."
        )
    distances = jnp.linalg.norm(obs[:, None] - code_book[None], axis=-1)
    return jnp.argmin(distances, axis=-1), jnp.min(distances, axis=-1)

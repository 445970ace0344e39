"""One valid call of each function of `lax`: positional and named arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

import primal.numpy as jnp
from primal import lax

Call = tuple[tuple[Any, ...], dict[str, Any]]


def floats(*shape: int) -> Any:
    count = np.arange(np.prod(shape), dtype=np.float32)
    return jnp.asarray(count.reshape(shape) * 0.37 % 1.3 + 0.2)


X, I = floats(3, 4), jnp.asarray(np.arange(12, dtype=np.int32).reshape(3, 4) % 3)  # noqa: E741
C, S = X + 1j * X, floats(3, 3) + 3 * jnp.eye(3)
P = S @ S.T
STARTS = jnp.array([[0], [2]])
READ = lax.GatherDimensionNumbers((1,), (0,), (0,))
WRITE = lax.ScatterDimensionNumbers((1,), (0,), (0,))
IMAGE, KERNEL, NCHW = floats(1, 2, 5, 5), floats(3, 2, 2, 2), ("NCHW", "OIHW", "NCHW")
SHAPES = ((1, 2, 5, 5), (3, 2, 2, 2))
PRECISE = {"precision": None, "preferred_element_type": None}
WRITTEN = {"indices_are_sorted": False, "unique_indices": False, "mode": None}

ONE_OPERAND = """abs acos acosh asin asinh atan atanh bessel_i0e bessel_i1e cbrt ceil cos cosh
digamma erf erf_inv erfc exp exp2 expm1 floor is_finite lgamma log log1p logistic neg reciprocal
round rsqrt sign sin sinh sqrt square tan tanh stop_gradient optimization_barrier""".split()
TWO_OPERANDS = """add atan2 div eq ge gt igamma igamma_grad_a igammac le lt max min mul ne nextafter
pow rem sub zeta complex polygamma random_gamma_grad""".split()
TWO_INTEGERS = """bitwise_and bitwise_or bitwise_xor shift_left shift_right_arithmetic
shift_right_logical mulhi""".split()

CALLS: dict[str, Call] = {
    **{name: ((X,), {}) for name in ONE_OPERAND},
    **{name: ((C,), {}) for name in ("conj", "imag", "real")},
    **{name: ((X, X), {}) for name in TWO_OPERANDS},
    **{name: ((I, I), {}) for name in TWO_INTEGERS},
    **{name: ((I,), {}) for name in ("bitwise_not", "clz", "population_count")},
    **{f"reduce_{name}": ((X, (0,)), {}) for name in ("sum", "prod", "max", "min")},
    **{f"reduce_{name}": ((I, (0,)), {}) for name in ("and", "or", "xor")},
    **{f"cum{name}": ((X, 0, False), {}) for name in ("sum", "prod", "max", "min", "logsumexp")},
    **{f"scatter{name}": ((X, STARTS, X[:2], WRITE), WRITTEN)
       for name in ("", "_add", "_sub", "_mul", "_min", "_max")},
    "betainc": ((X, X, X / 2), {}),
    "integer_pow": ((X, 3), {}),
    "reduce_precision": ((X, 5, 10), {}),
    "clamp": ((0.1, X, 0.9), {}),
    "select": ((X > 0.5, X, X), {}),
    "select_n": ((X > 0.5, X, X), {}),
    "convert_element_type": ((X, "int32"), {}),
    "bitcast_convert_type": ((X, "int32"), {}),
    "broadcast": ((X, (2,)), {}),
    "broadcast_in_dim": ((X, (2, 3, 4), (1, 2)), {}),
    "broadcast_shapes": (((3, 1), (1, 4)), {}),
    "broadcast_to_rank": ((X, 3), {}),
    "broadcasted_iota": (("int32", (2, 3), 1), {}),
    "iota": (("int32", 4), {}),
    "collapse": ((X, 0, 2), {}),
    "concatenate": (([X, X], 0), {}),
    "expand_dims": ((X, (0,)), {}),
    "full": (((2, 3), 1.5), {}),
    "full_like": ((X, 1.5), {"dtype": "float32", "shape": (2,)}),
    "index_in_dim": ((X, 1, 0, True), {}),
    "pad": ((X, 0.0, ((1, 1, 0), (0, 0, 0))), {}),
    "reshape": ((X, (4, 3)), {"dimensions": None}),
    "rev": ((X, (0,)), {}),
    "slice": ((X, (0, 0), (2, 2), (1, 1)), {}),
    "slice_in_dim": ((X, 0, 2, 1, 0), {}),
    "split": ((X, (1, 2), 0), {}),
    "squeeze": ((X[None], (0,)), {}),
    "stack": (([X, X], 0), {}),
    "unstack": ((X, 0), {}),
    "tile": ((X, (2, 1)), {}),
    "transpose": ((X, (1, 0)), {}),
    "dynamic_slice": ((X, (0, 1), (2, 2)), {}),
    "dynamic_slice_in_dim": ((X, 1, 2, 0), {}),
    "dynamic_index_in_dim": ((X, 1, 0, True), {}),
    "dynamic_update_slice": ((X, X[:2, :2], (0, 1)), {}),
    "dynamic_update_slice_in_dim": ((X, X[:2], 1, 0), {}),
    "dynamic_update_index_in_dim": ((X, X[0], 1, 0), {}),
    "gather": ((X, STARTS, READ, (1, 4)), {**WRITTEN, "fill_value": None}),
    "scatter_apply": ((X, STARTS, jnp.sin, WRITE), {"update_shape": (2, 4)}),
    "index_take": ((X, (jnp.array([0, 2]),), (0,)), {}),
    "sort": ((X, 1), {"is_stable": True, "num_keys": 1}),
    "sort_key_val": ((X, X, 1, True), {}),
    "top_k": ((X, 2), {"axis": -1}),
    "argmax": ((X, 0, "int32"), {}),
    "argmin": ((X, 0, "int32"), {}),
    "approx_max_k": ((X, 2, -1, 0.95, -1, True), {}),
    "approx_min_k": ((X, 2, -1, 0.95, -1, True), {}),
    "reduce": ((X, 0.0, lax.add, (0,)), {}),
    "reduce_window": ((X, 0.0, lax.add, (2, 2), (1, 1), "VALID", (1, 1), (1, 1)), {}),
    "dot": ((X, X.T), PRECISE),
    "dot_general": ((X, X, (((1,), (1,)), ((), ()))), PRECISE),
    "batch_matmul": ((X[None], X.T[None], None), {}),
    "ragged_dot": ((X, floats(2, 4, 3), jnp.array([1, 2])), {**PRECISE, "group_offset": None}),
    "conv": ((IMAGE, KERNEL, (1, 1), "SAME"), PRECISE),
    "conv_with_general_padding": (
        (IMAGE, KERNEL, (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)), PRECISE),
    "conv_general_dilated": (
        (IMAGE, KERNEL, (1, 1), "SAME", (1, 1), (1, 1), NCHW, 1, 1), PRECISE),
    "conv_transpose": (
        (floats(1, 5, 5, 2), floats(2, 2, 2, 3), (1, 1), "SAME", (1, 1),
         ("NHWC", "HWIO", "NHWC"), False, None, None), {"use_consistent_padding": False}),
    "conv_general_dilated_patches": (
        (IMAGE, (2, 2), (1, 1), "VALID", (1, 1), (1, 1), NCHW, None, None), {}),
    "conv_general_dilated_local": (
        (floats(1, 2, 4, 4), floats(3, 8, 3, 3), (1, 1), "VALID", (2, 2), (1, 1), (1, 1), NCHW,
         None), {}),
    "conv_dimension_numbers": ((*SHAPES, NCHW), {}),
    "conv_general_permutations": ((NCHW,), {}),
    "conv_shape_tuple": ((*SHAPES, (1, 1), "SAME", 1), {}),
    "conv_general_shape_tuple": ((*SHAPES, (1, 1), "SAME", NCHW), {}),
    "conv_transpose_shape_tuple": ((*SHAPES, (1, 1), "SAME", NCHW), {}),
    "padtype_to_pads": (((5, 5), (2, 2), (1, 1), "SAME"), {}),
    "reduce_window_shape_tuple": (
        ((5, 5), (2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)), {}),
    "fft": ((C, "fft", (4,)), {}),
    "rng_bit_generator": ((jnp.zeros(4, "uint32"), (3,), "uint32"), {}),
    "rng_uniform": ((0.0, 1.0, (3,)), {}),
    "linalg.cholesky": ((P,), {"symmetrize_input": True}),
    "linalg.cholesky_update": ((P, floats(3)), {}),
    "linalg.eig": ((S,), {"compute_left_eigenvectors": True, "compute_right_eigenvectors": True}),
    "linalg.eigh": ((P,), {"lower": True, "symmetrize_input": True, "subset_by_index": None}),
    "linalg.geqrf": ((S,), {}),
    "linalg.hessenberg": ((S,), {}),
    "linalg.householder_product": ((S, floats(3)), {}),
    "linalg.lu": ((S,), {}),
    "linalg.lu_pivots_to_permutation": ((jnp.array([0, 2, 2]), 3), {}),
    "linalg.ormqr": ((S, floats(3), S), {"left": True, "transpose": False}),
    "linalg.qdwh": ((S,), {"is_hermitian": False, "max_iterations": None, "eps": None}),
    "linalg.qr": ((S,), {"pivoting": False, "full_matrices": True}),
    "linalg.schur": ((S,), {"compute_schur_vectors": True, "sort_eig_vals": False}),
    "linalg.svd": ((S,), {"full_matrices": True, "compute_uv": True, "subset_by_index": None,
                          "algorithm": None}),
    "linalg.symmetric_product": (
        (X, floats(3, 3)), {"alpha": 1.0, "beta": 0.0, "symmetrize_output": False}),
    "linalg.triangular_solve": (
        (S, S), {"left_side": True, "lower": False, "transpose_a": False, "conjugate_a": False,
                 "unit_diagonal": False}),
    "linalg.tridiagonal": ((P,), {"lower": True}),
    "linalg.tridiagonal_solve": ((floats(3), floats(3) + 2, floats(3), X), {}),
}  # fmt: skip
# Of functions that take the user's functions: the parameters that are asked about, by name.
OF_FUNCTIONS: dict[str, tuple[Call, tuple[str, ...]]] = {
    "associative_scan": (((lax.add, X), {}), ("reverse", "axis")),
    "scan": (((lambda c, x: (c + x, c), X[0], X), {}), ("reverse", "length", "unroll")),
    "map": (((jnp.sin, X), {}), ("batch_size",)),
    "fori_loop": (((0, 3, lambda i, x: x + 1, X), {}), ("unroll",)),
    "custom_root": (
        ((lambda x: x - 1.0, 0.5, lambda f, x: x, lambda g, y: y / g(1.0)), {}), ("has_aux",)),
    "custom_linear_solve": (
        ((lambda x: 2 * x, X, lambda matvec, b: b / 2), {"symmetric": True}),
        ("transpose_solve", "symmetric", "has_aux")),
}  # fmt: skip
OTHERS = {
    "no parameters to be wrong": "after_all create_token dce_sink dtype shape_as_value",
    "of named axes, in tests/cases/collective.py": "all_gather all_to_all axis_index axis_size"
    " pbroadcast pmax pmean pmin ppermute pshuffle pswapaxes psum psum_scatter",
    "functions and operands alone": "cond switch while_loop composite platform_dependent stage",
    "variants of another": "ragged_dot_general scaled_dot broadcast_like empty",
    "of placements, in tests/api/test_formats.py": "pcast with_sharding_constraint",
}

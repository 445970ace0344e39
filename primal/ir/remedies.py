"""What to do about errors of tracing: the texts that end the messages."""

REMEDIES = {
    "bool": (
        "Its value is not known while the function is traced, so Python cannot branch on it. Use "
        "primal.lax.cond or primal.numpy.where, or mark the argument static: "
        "jit(f, static_argnums=…) or static_argnames=…"
    ),
    "index": (
        "Its value is not known while the function is traced. Index a primal array with it "
        "(primal.numpy.asarray(x)[i]), or mark the argument static: jit(f, static_argnums=…)."
    ),
    "array": (
        "Its value is not known while the function is traced, so NumPy cannot have it. Use the "
        "function of that name in primal.numpy, or primal.pure_callback."
    ),
    "int": (
        "Its value is not known while the function is traced. Use x.astype(int), or mark the "
        "argument static: jit(f, static_argnums=…)."
    ),
    "float": (
        "Its value is not known while the function is traced. Use x.astype(float), or mark the "
        "argument static: jit(f, static_argnums=…)."
    ),
    "complex": (
        "Its value is not known while the function is traced. Use x.astype(complex), or mark the "
        "argument static: jit(f, static_argnums=…)."
    ),
    "item": (
        "Its value is not known while the function is traced. Return the array and call item() "
        "outside, or mark the argument static: jit(f, static_argnums=…)."
    ),
    "leak": (
        "A traced value was kept by a side effect: assigned to a global, an attribute or a list, "
        "or returned from a generator. Return it from the function instead."
    ),
}

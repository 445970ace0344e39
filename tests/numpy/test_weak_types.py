"""Weak types of comparisons."""

import primal
import primal.numpy as jnp
from primal import lax


def test_what_compares_weak_numbers_is_weak_but_no_python_bool():
    weak = jnp.asarray(1.0) < 2
    assert weak.weak_type and primal.jit(lambda x: x < 3)(2.0).weak_type
    assert not (jnp.float32(1) < 2).weak_type
    assert not lax.bitwise_not(True).weak_type and not lax.select(True, True, False).weak_type

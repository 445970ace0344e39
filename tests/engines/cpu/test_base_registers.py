"""Kernels leave x86's %rbp to the stack: the CPU fetches nothing ahead of what is read by it."""

from __future__ import annotations

import pytest

import primal
import primal.numpy as jnp


@pytest.mark.parametrize("f", [jnp.sum, lambda x: x.sum(1), lambda x: -x, jnp.tanh])
def test_kernels_keep_the_frame_pointer(f):
    text = primal.jit(f).lower(jnp.ones((40, 500))).compile().as_text()
    kernels = [line for line in text.splitlines() if line.startswith("define void @kernel")]
    assert kernels
    assert all('"frame-pointer"="all"' in line for line in kernels)

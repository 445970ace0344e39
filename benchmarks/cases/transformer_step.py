"""One compiled step of a 12-layer transformer: the loss and its gradient."""

import runpy
from pathlib import Path

import numpy as np

MODEL = runpy.run_path(str(Path(__file__).with_name("trace_transformer.py")))

NAME = "step of a 12-layer transformer"
UNIT = "ms"
TARGET = 0.4
ENV = {"PRIMAL_CPU_ENGINE": "cpu"}

WIDTH, HEADS = MODEL["WIDTH"], MODEL["HEADS"]


def setup(jax, jnp, lax):
    args = jax.device_put(MODEL["arguments"]())
    step = jax.jit(jax.value_and_grad(MODEL["make_loss"](jnp, lax)))
    return lambda: step(*args)


def setup_torch(torch):
    weights, tokens, targets = MODEL["arguments"]()
    leaves = []

    def tensors(tree):
        if isinstance(tree, dict):
            return {name: tensors(x) for name, x in tree.items()}
        if isinstance(tree, list):
            return [tensors(x) for x in tree]
        leaves.append(torch.tensor(tree, requires_grad=True))
        return leaves[-1]

    p = tensors(weights)
    tokens, targets = (torch.tensor(np.ascontiguousarray(x)).long() for x in (tokens, targets))
    functional = torch.nn.functional

    def normalise(p, x):
        return functional.layer_norm(x, (WIDTH,), p["scale"], p["shift"], 1e-5)

    def attention(p, x):
        batch, length, width = x.shape

        def heads(w):
            return (x @ w).view(batch, length, HEADS, width // HEADS).transpose(1, 2)

        mixed = functional.scaled_dot_product_attention(
            heads(p["query"]), heads(p["key"]), heads(p["value"]), is_causal=True
        )
        return mixed.transpose(1, 2).reshape(batch, length, width) @ p["out"]

    def step():
        x = p["embedding"][tokens] + p["position"]
        for layer in p["layers"]:
            x = x + attention(layer, normalise(layer["before_attention"], x))
            y = normalise(layer["before_mlp"], x) @ layer["up"] + layer["up_shift"]
            x = x + functional.gelu(y, approximate="tanh") @ layer["down"] + layer["down_shift"]
        logits = normalise(p["last"], x) @ p["embedding"].T
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        return loss, torch.autograd.grad(loss, leaves)

    return step

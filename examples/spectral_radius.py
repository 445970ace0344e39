"""Train a network to compute the spectral radius of complex 2x2 matrices.

The network: flatten, three times Dense(64) and Relu, Dense(1). Adam with step size 3e-4 on batches
of 64 matrices drawn on the fly. Prints the loss beside the figures of the literature, checks the
network on a matrix it has not seen, and writes a picture.

The text's loss subtracts targets of shape (64,) from predictions of shape (64, 1), so it compares
every prediction with every target, and the best such a network can do is to answer the median. That
is what it learns, in the text as here; `--paired` compares each prediction with its own target.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

import primal
import primal.numpy as jnp
from primal.example_libraries import optimizers, stax

INPUT_SHAPE = (2, 2)
BATCH_SIZE = 64
LOG_INTERVAL = 1000
# What the text that introduces this network prints for its own run, by step.
LITERATURE = {
    0: 1.6026156, 1000: 0.39599544, 2000: 0.38151193, 3000: 0.4386006, 4000: 0.3645811,
    5000: 0.38383436, 6000: 0.4037715, 7000: 0.3104779, 8000: 0.32223767, 9000: 0.40970623,
}  # fmt: skip
LITERATURE_CHECK = 1.4250930547714233


def spectral_radius(matrix):
    """The largest absolute value of an eigenvalue."""
    return jnp.max(jnp.abs(jnp.linalg.eigvals(matrix)))


batched_spectral_radius = primal.vmap(spectral_radius)


def flatten():
    """A layer that makes a vector of its whole input."""

    def init(key, input_shape):
        return (math.prod(input_shape),), ()

    def apply(params, inputs, **kwargs):
        return inputs.ravel()

    return init, apply


def build_model(key):
    """(key, parameters, model) where model maps (parameters, batch) to predictions."""
    init, apply = stax.serial(
        flatten(),
        stax.Dense(64),
        stax.Relu,
        stax.Dense(64),
        stax.Relu,
        stax.Dense(64),
        stax.Relu,
        stax.Dense(1),
    )
    key, subkey = primal.random.split(key)
    output_shape, params = init(subkey, INPUT_SHAPE)
    assert output_shape == (1,)
    return key, params, primal.vmap(apply, in_axes=(None, 0))


@primal.jit
def draw_batch(key):
    """(next key, batch of complex matrices)."""
    key, subkey = primal.random.split(key)
    return key, primal.random.normal(subkey, (BATCH_SIZE, *INPUT_SHAPE), dtype=complex)


def make_training(model, params, paired=False):
    """(state, step function, parameters of a state) for Adam with conjugated gradients."""
    init, update, get_params = optimizers.adam(3e-4)

    def batch_loss(params, batch):
        predictions = model(params, batch)
        if paired:
            predictions = predictions[:, 0]
        targets = batched_spectral_radius(batch)
        return jnp.mean(jnp.abs(predictions - targets))

    @primal.jit
    def train_batch(step, state, batch):
        loss, grads = primal.value_and_grad(batch_loss)(get_params(state), batch)
        # Steepest descent needs the conjugate where parameters are complex.
        grads = primal.tree.map(jnp.conj, grads)
        return update(step, grads, state), loss

    return init(params), train_batch, get_params


def train(steps, console, paired=False):
    """Train; returns (model, parameters, losses, seconds)."""
    # The text draws once from its key before it builds the network; so its losses come out.
    key, _ = primal.random.split(primal.random.PRNGKey(0))
    key, params, model = build_model(key)
    state, train_batch, get_params = make_training(model, params, paired)
    losses = []
    table = Table("step", "loss", "literature")
    columns = (
        TextColumn("training"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        TextColumn("loss {task.fields[loss]}"),
    )  # fmt: skip
    start = time.perf_counter()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("training", total=steps, loss="…")
        for step in range(steps):
            key, batch = draw_batch(key)
            state, loss = train_batch(step, state, batch)
            losses.append(loss)
            if step % LOG_INTERVAL == 0:
                known = None if paired else LITERATURE.get(step)
                table.add_row(str(step), f"{loss:.7f}", "" if known is None else f"{known:.7f}")
            if step % 100 == 0:
                progress.update(task, completed=step, loss=f"{loss:.4f}")
        primal.block_until_ready(state)
        progress.update(task, completed=steps)
    seconds = time.perf_counter() - start
    console.print(table)
    return model, get_params(state), np.array([float(x) for x in losses]), seconds


def draw_picture(path, losses, truth, predicted):
    """The loss curve, and predicted against true spectral radii."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    left.plot(losses, color="#9ecae1", linewidth=0.6, label="batch")
    width = max(1, len(losses) // 100)
    if width > 1:
        smooth = np.convolve(losses, np.ones(width) / width, "valid")
        left.plot(
            np.arange(width - 1, len(losses)), smooth, color="#08519c", label=f"mean of {width}"
        )
    left.set(xlabel="step", ylabel="mean absolute error", yscale="log", title="Loss")
    left.legend()
    right.scatter(truth, predicted, s=8, alpha=0.5, color="#08519c")
    top = float(max(truth.max(), predicted.max()))
    right.plot([0, top], [0, top], color="black", linewidth=0.8)
    right.set(
        xlabel="true spectral radius",
        ylabel="network",
        title="1024 matrices that were not trained on",
    )
    right.set_aspect("equal")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def positive_int(text):
    """An argument that is a positive integer."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a positive integer, got {text!r}")
    return value


def picture_path(text):
    """An argument that is a path a picture can be written to; a folder gets one of our name."""
    path = Path(text)
    if path.is_dir() or not path.suffix:
        path = path / "spectral_radius.png"
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise argparse.ArgumentTypeError(
            f"expected a folder or a .png, .pdf or .svg file, got {text!r}"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab"):
            pass
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"expected a file that can be written, got {text!r}: {error.strerror}"
        ) from None
    return path


def main(argv=None):
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=positive_int, default=10_000, help="training steps")
    parser.add_argument(
        "--out", type=picture_path, default="out", help="the picture's file, or a folder for it"
    )
    parser.add_argument(
        "--paired", action="store_true", help="compare each prediction with its own target only"
    )
    options = parser.parse_args(argv)
    console = Console()
    console.print(f"Training {options.steps} steps on {primal.devices()[0]}")
    model, params, losses, seconds = train(options.steps, console, options.paired)
    console.print(f"Training took {seconds:.2f} seconds (the literature's: 7.87).")

    matrix = jnp.array([[1.0, -1.0], [1.0, 1.0]])
    answer = primal.jit(model)(params, jnp.expand_dims(matrix, 0))[0].item()
    answer = answer.real if isinstance(answer, complex) else answer
    console.print(
        f"Spectral radius of [[1, -1], [1, 1]]: {spectral_radius(matrix).item():.7f}; "
        f"the network's answer: {answer:.7f} (the literature's network: {LITERATURE_CHECK:.7f})"
    )
    _, batch = draw_batch(primal.random.PRNGKey(1))
    batches = [batch]
    key = primal.random.PRNGKey(2)
    for _ in range(15):
        key, batch = draw_batch(key)
        batches.append(batch)
    unseen = jnp.concatenate(batches)
    truth = np.asarray(batched_spectral_radius(unseen))
    predicted = np.real(np.asarray(primal.jit(model)(params, unseen)))[:, 0]
    draw_picture(options.out, losses, truth, predicted)
    console.print(f"Picture: {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

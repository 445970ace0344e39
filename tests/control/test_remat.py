"""checkpoint: the same values and derivatives, with less kept and more computed again."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import primal
import primal.numpy as jnp
from primal import ad_checkpoint, checkpoint, checkpoint_policies, grad, jit, jvp, lax, vmap
from primal.ad_checkpoint import checkpoint_name, saved_residuals
from primal.base.config import config
from primal.ir.jaxpr import subjaxprs
from primal.runtime.programs import RULES
from primal.transforms.simplify import simplify
from tests.control.lab import draw

W, X = draw(3, 3), draw(3)
WS, XS = draw(2, 3, 3), draw(2, 3)


def layer(w: Any, x: Any) -> Any:
    y = checkpoint_name(jnp.sin(w @ x), "sine")
    return checkpoint_name(jnp.tanh(y * x), "tanh")


def network(w: Any, x: Any) -> Any:
    return jnp.sum(layer(w, layer(w, x)) ** 2)


def in_scan(w: Any, x: Any) -> Any:
    def body(c: Any, _: Any) -> Any:
        return layer(w, c), c * 2.0

    c, ys = lax.scan(body, x, None, length=3)
    return jnp.sum(c) + jnp.sum(ys**2)


def in_cond(w: Any, x: Any) -> Any:
    return jnp.sum(lax.cond(x.sum() > 0, lambda x: layer(w, x), lambda x: jnp.cos(w @ x), x))


def called(w: Any, x: Any) -> Any:
    return network(w, jit(layer)(w, x))


def with_rule(w: Any, x: Any) -> Any:
    f = primal.custom_vjp(lambda x: jnp.sin(x) ** 2)
    f.defvjp(lambda x: (jnp.sin(x) ** 2, jnp.cos(x)), lambda c, ct: (3.0 * c * ct,))
    return jnp.sum(f(layer(w, x)))


FUNCTIONS = [network, in_scan, in_cond, called, with_rule]
POLICIES = {
    "none": None,
    "everything": checkpoint_policies.everything_saveable,
    "nothing": checkpoint_policies.nothing_saveable,
    "dots": checkpoint_policies.dots_saveable,
    "dots without batch": checkpoint_policies.dots_with_no_batch_dims_saveable,
    "names": checkpoint_policies.save_only_these_names("sine"),
    "other names": checkpoint_policies.save_any_names_but_these("sine"),
    "but names": checkpoint_policies.save_anything_except_these_names("sine", "tanh"),
    "both": checkpoint_policies.save_from_both_policies(
        checkpoint_policies.dots_saveable, checkpoint_policies.save_only_these_names("tanh")
    ),
    "offload dots": checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
    "offload names": checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["sine"],
        names_which_can_be_offloaded=["tanh"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
}


@contextlib.contextmanager
def on_engine(name: str) -> Iterator[None]:
    before = config.cpu_engine
    config.update("cpu_engine", name)
    try:
        yield
    finally:
        config.update("cpu_engine", before)


def same(a: Any, b: Any) -> None:
    for x, y in zip(primal.tree.leaves(a), primal.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-5, atol=1e-5)


@functools.cache
def wanted(f: Any) -> dict[str, Any]:
    """What the function gives, and its derivatives and examples, without a checkpoint."""
    return {
        "values": f(W, X),
        "slopes": grad(f, (0, 1))(W, X),
        "along x": vmap(grad(f), (None, 0))(W, XS),
        "along w": vmap(grad(f), (0, None))(WS, X),
        "below": grad(lambda w, x: f(w, layer(w, x)))(W, X),
        # A custom rule of reverse mode has no forward mode.
        "tangents": None if f is with_rule else jvp(f, (W, X), (W, X)),
        "second": None if f is with_rule else grad(lambda w: jnp.sum(grad(f)(w, X) ** 2))(W),
    }


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_same_values_and_derivatives(f: Any, policy: str) -> None:
    g = checkpoint(f, policy=POLICIES[policy])
    want = wanted(f)
    same(g(W, X), want["values"])
    same(grad(g, (0, 1))(W, X), want["slopes"])
    for engine in ("reference", "cpu", "xla") if policy in ("none", "names") else ("xla",):
        with on_engine(engine):
            same(jit(grad(g, (0, 1)))(W, X), want["slopes"])
    same(vmap(grad(g), (None, 0))(W, XS), want["along x"])
    same(jit(vmap(grad(g), (0, None)))(WS, X), want["along w"])
    if f is not with_rule:
        same(jvp(g, (W, X), (W, X)), want["tangents"])
        same(grad(lambda w: jnp.sum(grad(g)(w, X) ** 2))(W), want["second"])
    if policy not in ("none", "names", "dots"):
        return
    nested = checkpoint(lambda w, x: g(w, checkpoint(layer)(w, x)))
    same(jit(grad(nested))(W, X), want["below"])


# What is kept, in bytes.


def kept(f: Any, *args: Any) -> int:
    return sum(aval.size * aval.dtype.itemsize for aval, _ in saved_residuals(f, *args))


def test_residual_bytes_of_policies() -> None:
    inputs = W.nbytes + X.nbytes
    vector = X.nbytes
    sizes = {name: kept(checkpoint(network, policy=p), W, X) for name, p in POLICIES.items()}
    assert sizes["none"] == sizes["nothing"] == inputs
    assert sizes["dots"] == sizes["dots without batch"] == inputs + 2 * vector
    assert sizes["dots"] == sizes["offload dots"]
    assert sizes["names"] == inputs + 2 * vector
    assert sizes["other names"] == inputs + 2 * vector
    assert sizes["offload names"] == inputs + 4 * vector
    assert sizes["everything"] == kept(network, W, X)


def test_what_policies_offload_is_marked(capsys: Any) -> None:
    for name, rows in (("offload names", 4), ("offload dots", 2)):
        ad_checkpoint.print_saved_residuals(checkpoint(network, policy=POLICIES[name]), W, X)
        text = capsys.readouterr().out
        assert text.count("<host>[3] output of device_put") == 2
        assert text.count("\n") == 2 + rows

    def chain(x: Any) -> Any:
        step = checkpoint(lambda c: jnp.sin(W @ c), policy=POLICIES["offload dots"])
        return jnp.sum(lax.scan(lambda c, _: (step(c), None), x, None, length=5)[0])

    ad_checkpoint.print_saved_residuals(chain, X)
    assert "f32<host>[5,3] output of scan" in capsys.readouterr().out
    ad_checkpoint.print_saved_residuals(jit(jnp.sin), X)
    assert "f32[3] output of jitted function 'sin' from" in capsys.readouterr().out
    with pytest.raises(TypeError, match="expected a policy to return a bool"):
        grad(checkpoint(lambda x: jnp.sin(jnp.sin(x)), policy=lambda *a, **k: 3))(1.0)


@pytest.mark.parametrize("engine", ["cpu", "xla"])
def test_memory_that_compiled_programs_need(engine: str) -> None:
    w = jnp.asarray(draw(64, 64))

    def deep(x: Any) -> Any:
        for _ in range(4):
            x = jnp.sin(x @ w)
        return x

    def arrays(f: Any) -> float:
        def network(x: Any) -> Any:
            for _ in range(8):
                x = f(x)
            return jnp.sum(x)

        lowered = jit(grad(network)).lower(w)
        return lowered.compile().memory_analysis().temp_size_in_bytes / w.nbytes  # type: ignore[no-any-return]

    with on_engine(engine):
        # The inputs of eight layers and what one of them needs, instead of what all do.
        assert arrays(deep) > 30
        assert arrays(checkpoint(deep)) < 13


def test_residual_bytes_of_scan_grow_with_what_is_kept_per_step() -> None:
    def chain(f: Any, n: int) -> Any:
        return lambda w, x: jnp.sum(lax.scan(lambda c, _: (f(w, c), None), x, None, length=n)[0])

    plain = [kept(chain(layer, n), W, X) for n in (10, 20)]
    again = [kept(chain(checkpoint(layer), n), W, X) for n in (10, 20)]
    # The carry, sine and its cosine, tanh and 1 - tanh, as in JAX.
    assert plain[1] - plain[0] == 10 * 5 * X.nbytes
    assert again[1] - again[0] == 10 * X.nbytes  # the carry of every step
    whole = [kept(checkpoint(chain(layer, n)), W, X) for n in (10, 20)]
    assert whole[0] == whole[1] == W.nbytes + X.nbytes
    names = checkpoint_policies.save_only_these_names("sine")
    stacked = [kept(checkpoint(chain(layer, n), policy=names), W, X) for n in (10, 20)]
    assert stacked[1] - stacked[0] == 10 * X.nbytes


def test_reverse_mode_of_scan_keeps_what_one_step_needs_and_no_copies() -> None:
    def rnn(w: Any, x: Any, xs: Any) -> Any:
        return jnp.sum(lax.scan(lambda h, x: (jnp.tanh(w @ h + x), None), x, xs)[0])

    xs = draw(8, 3)
    # Per step the carry, tanh and 1 - tanh; the weights once.
    assert kept(rnn, W, X, xs) == W.nbytes + 3 * xs.nbytes


def test_policies_look_into_branches() -> None:
    names = checkpoint_policies.save_only_these_names("sine", "tanh")
    inputs = W.nbytes + X.nbytes
    # The branch without names leaves both places empty.
    assert kept(checkpoint(in_cond), W, X) == inputs
    assert kept(checkpoint(in_cond, policy=names), W, X) == inputs + X.nbytes
    f = checkpoint(in_cond, policy=names)
    for x in (X, -X):
        same(grad(f, (0, 1))(W, x), grad(in_cond, (0, 1))(W, x))
        same(jit(grad(f, (0, 1)))(W, x), grad(in_cond, (0, 1))(W, x))


def test_recursive_halving_keeps_logarithmically_many() -> None:
    def recursive(funs: Any) -> Any:
        if len(funs) == 1:
            return funs[0]
        half = len(funs) // 2
        f1, f2 = recursive(funs[:half]), recursive(funs[half:])
        return lambda x: f1(checkpoint(f2)(x))

    def chain(funs: Any) -> Any:
        def f(x: Any) -> Any:
            for g in funs:
                x = g(x)
            return jnp.sum(x)

        return f

    funs = [jnp.sin] * 16
    halved = kept(lambda x: jnp.sum(recursive(funs)(x)), X)
    assert halved == 5 * X.nbytes < kept(chain(funs), X)
    same(grad(lambda x: jnp.sum(recursive(funs)(x)))(X), grad(chain(funs))(X))


def test_saved_residuals_name_their_origin(capsys: Any) -> None:
    f = checkpoint(network, policy=checkpoint_policies.save_only_these_names("sine"))
    lines = [s for _, s in saved_residuals(f, W, X)]
    assert lines[:2] == ["from the argument w", "from the argument x"]
    assert all(s.startswith("named 'sine' from ") and s.endswith("(layer)") for s in lines[2:])
    ad_checkpoint.print_saved_residuals(lambda d: jnp.sin(d["a"]) * d["b"][0], {"a": X, "b": [X]})
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "f32[3] from the argument d['b'][0]"
    assert [s.split(" from ")[0] for s in printed[1:]] == [
        "f32[3] output of sin", "f32[3] output of cos",
    ]  # fmt: skip


# Computing again must survive what engines do.


def sines(closed: Any) -> int:
    total = sum(e.op.name == "sin" for e in closed.jaxpr.eqns)
    return total + sum(sines(s) for e in closed.jaxpr.eqns for s in subjaxprs(e.params))


@pytest.mark.parametrize("engine", ["cpu", "xla"])
@pytest.mark.parametrize("prevent", [True, False, (True,)])
def test_what_is_computed_again_is_not_shared(engine: str, prevent: Any) -> None:
    def f(x: Any) -> Any:
        return jnp.sin(jnp.sin(jnp.sin(x)))

    program = primal.make_jaxpr(primal.value_and_grad(checkpoint(f, prevent_cse=prevent)))(1.0)
    found = simplify(program, RULES[engine])
    assert sines(found) == (5 if prevent else 3)
    text = jit(primal.value_and_grad(checkpoint(f, prevent_cse=prevent))).lower(1.0).as_text()
    assert ("optimization_barrier" in text) == bool(prevent)


# Arguments.


def test_static_arguments_are_python_values() -> None:
    def f(x: Any, flag: bool, *, scale: Any, mode: str = "a") -> Any:
        return jnp.sin(x) * scale if flag and mode == "a" else x

    g = checkpoint(f, static_argnums=1, static_argnames="mode")
    same(grad(g)(2.0, True, scale=3.0, mode="a"), 3 * np.cos(2.0))
    same(grad(g)(2.0, True, scale=3.0, mode="b"), 1.0)
    same(grad(checkpoint(f, static_argnums=(-1,)))(2.0, False, scale=3.0), 1.0)
    unhashable = checkpoint(lambda x, n: x * len(n), static_argnums=(1,))
    same(grad(unhashable)(2.0, [1, 2]), 2.0)


def test_the_function_is_traced_once() -> None:
    calls = []

    @checkpoint
    def f(x: Any) -> Any:
        calls.append(x)
        return jnp.sin(x)

    for _ in range(3):
        grad(f)(2.0)
        f(3.0)
    assert len(calls) == 1


def test_trees_in_and_out() -> None:
    def f(d: Any, none: Any) -> Any:
        return {"y": (jnp.sin(d["a"]), none), "n": d["n"] + 1}

    got = checkpoint(f)({"a": X, "n": 3}, None)
    same(got, f({"a": X, "n": 3}, None))
    assert got["y"][1] is None
    _, pull = primal.vjp(checkpoint(f), {"a": X, "n": 3}, None)
    (ct, _) = pull({"y": (X, None), "n": np.zeros((), primal.float0)})
    assert ct["n"].dtype == primal.float0


def test_barriers_take_trees() -> None:
    assert lax.optimization_barrier({"a": X, "b": None})["b"] is None


def test_errors() -> None:
    with pytest.raises(primal.errors.TracerBoolConversionError, match="bool"):
        checkpoint(lambda x: x if x > 0 else -x)(1.0)
    with pytest.raises(ValueError, match="static_argnums"):
        checkpoint(lambda x: x, static_argnums=3)(1.0)
    with pytest.raises(NotImplementedError, match="static_argnums"):
        checkpoint(lambda x: x, concrete=True)
    with pytest.raises(TypeError, match="expected fun to be callable"):
        checkpoint(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="returned a value of type <class 'str'>"):
        checkpoint(lambda x: "a")(1.0)
    with pytest.raises(TypeError, match="policy"):
        checkpoint(lambda x: x, policy="dots")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="both"):
        checkpoint_policies.save_and_offload_only_these_names(
            names_which_can_be_saved=["a"],
            names_which_can_be_offloaded=["a"],
            offload_src="device",
            offload_dst="pinned_host",
        )


def all_but(*names: str) -> Any:
    """Everything is kept, but not what bears one of these names."""

    def policy(op: Any, *_: Any, **params: Any) -> bool:
        return params.get("name") not in names if str(op) == "name" else True

    return policy


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    "policy, times",
    [
        (checkpoint_policies.everything_saveable, 1),
        (checkpoint_policies.nothing_saveable, 2),
        (checkpoint_policies.save_any_names_but_these("z"), 2),
        (all_but("y"), 1),
        (all_but("y", "z"), 2),
    ],
    ids=["all", "none", "any but z", "all but y", "all but y and z"],
)
def test_what_is_printed_is_printed_again_as_the_policy_says(
    policy: Any, times: int, ordered: bool, capsys: Any
) -> None:
    """Once more, unless the policy keeps effects and something that this one reads."""

    def f(x: Any) -> Any:
        y = checkpoint_name(x + 1.0, "y")
        z = checkpoint_name(y * 2.0, "z")
        primal.debug.print("{} {}", y, z, ordered=ordered)
        return checkpoint_name(jnp.exp(z), "w")

    grad(checkpoint(f, policy=policy))(2.0)
    primal.effects_barrier()
    assert capsys.readouterr().out == "3.0 6.0\n" * times

"""Buffers and executables: what goes in comes out, and misuse raises instead of crashing."""


import numpy as np
import pytest

from primal.base import dtype_table, dtypes
from primal.base.errors import JaxRuntimeError
from primal.engines.xla.client import Client, Executable, Signature
from primal.ir.avals import Aval
from tests.engines.xla.lab import aval_of, client, text_of

F4, I4 = np.dtype("f4"), np.dtype("i4")
ABSENT = (dtypes.int1, dtypes.uint1, dtypes.float6_e2m3fn, dtypes.float6_e3m2fn)
HELD = [d for d in dtype_table.all_dtypes if d not in ABSENT]
V8 = Aval((8,), F4)


def aligned(n: int, dtype: str = "f4", offset: int = 0) -> np.ndarray:
    """n items at an address that is `offset` bytes past a multiple of 64."""
    size = np.dtype(dtype).itemsize
    raw = np.zeros(n * size + 192, "u1")
    at = -raw.ctypes.data % 64 + offset
    return raw[at : at + n * size].view(dtype)


def compiled(build, *avals: Aval, donated=(), device=None, c: Client | None = None) -> Executable:
    """The executable of what `build(b, *values)` wrote; donated inputs alias output 0, 1, …"""
    c = c or client()
    text, outs, b = text_of(build, *avals)
    for i, flag in enumerate(donated):
        if flag:
            head = f"%arg{i}: {outs[i].type}"
            text = text.replace(head, f"{head} {{tf.aliasing_output = {i} : i32}}", 1)
    signature = Signature(
        avals,
        tuple([v.aval for v in outs]),
        tuple(donated) or (False,) * len(avals),
        frozenset(b.custom_targets),
    )
    return c.compile(text, signature, device or c.devices[0], callbacks=b.callbacks)


def put(x, **kwargs):
    return client().put(x, client().devices[0], **kwargs)


def get(buffer) -> np.ndarray:
    return client().get(buffer)


@pytest.mark.parametrize("dtype", HELD, ids=str)
@pytest.mark.parametrize("immutable", [False, True])
def test_round_trip_of_every_dtype(dtype, immutable) -> None:
    x = np.array([[1, 0, 1], [0, 1, 1]]).astype(dtype)
    for value in (x, x[0, 0], x[:0], np.asfortranarray(x), x[:, ::2]):
        back = get(put(value, immutable=immutable))
        assert back.dtype == dtype
        assert back.shape == value.shape
        np.testing.assert_array_equal(back.astype("c16"), value.astype("c16"))
        assert not back.flags.writeable


@pytest.mark.parametrize("dtype", HELD, ids=str)
def test_every_dtype_through_a_program(dtype) -> None:
    x = np.array([1, 0, 1, 1]).astype(dtype)
    exe = compiled(lambda b, v: (b.reverse(v, (0,)), b.reshape(v, (2, 2))), aval_of(x))
    back, square = exe.execute([put(x)])
    assert get(back).dtype == dtype
    np.testing.assert_array_equal(get(back).astype("c16"), x[::-1].astype("c16"))
    np.testing.assert_array_equal(get(square).astype("c16"), x.reshape(2, 2).astype("c16"))


def test_put_converts_what_xla_would_misread() -> None:
    assert get(put(np.arange(3, dtype=">f4"))).tolist() == [0, 1, 2]
    assert get(put(np.float32(2.5))).dtype == F4
    assert get(put([1.0, 2.0])).tolist() == [1, 2]
    assert get(put(np.ma.masked_array([1.0, 2.0], [True, False]))).tolist() == [1, 2]
    nothing = np.zeros((2, 3), dtypes.float0)
    assert get(put(nothing)).dtype == np.dtype(bool)
    for bad in (np.array(["a"]), np.array([None]), np.zeros(2, "M8[s]"), np.zeros(2, "f8,i4")):
        with pytest.raises(TypeError, match=r"\[put\] expected a boolean, integer, float"):
            put(bad)


def test_put_copies_unless_memory_is_promised_immutable() -> None:
    x = aligned(16)
    copied, borrowed = put(x), put(x, immutable=True)
    x[3] = 7
    assert get(copied)[3] == 0
    assert get(borrowed)[3] == 7
    assert client().pointer(borrowed) == x.ctypes.data
    y = aligned(16, offset=16)
    assert client().pointer(put(y, immutable=True)) != y.ctypes.data


def test_get_is_a_view_that_outlives_the_buffer() -> None:
    buffer = put(np.arange(4.0))
    view = get(buffer)
    assert view.ctypes.data == client().pointer(buffer)
    buffer.delete()
    assert view.tolist() == [0, 1, 2, 3]


def test_execute() -> None:
    exe = compiled(lambda b, x, y: (b.add(x, y), b.multiply(x, y)), V8, V8)
    x = np.arange(8, dtype="f4")
    total, product = exe.execute([put(x), put(x)])
    np.testing.assert_array_equal(get(total), 2 * x)
    np.testing.assert_array_equal(get(product), x * x)
    assert total.aval is V8
    again = exe.execute([total, product])[0]
    np.testing.assert_array_equal(get(again), 2 * x + x * x)


def test_programs_without_inputs_or_outputs() -> None:
    assert get(compiled(lambda b: b.constant(3.0, F4)).execute([])[0]) == 3
    assert compiled(lambda b, x: [], V8).execute([put(np.zeros(8, F4))]) == []


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], "expected 1 arguments, got 0"),
        ([np.zeros(8, "f4")] * 2, "expected 1 arguments, got 2"),
        ([np.zeros(8, "i4")], r"expected argument 0 to be float32\[8\], got int32\[8\]"),
        ([np.zeros((2, 4), "f4")], r"expected argument 0 to be float32\[8\], got float32\[2,4\]"),
        ([np.zeros(4, "f8")], r"expected argument 0 to be float32\[8\], got float64\[4\]"),
    ],
)
def test_arguments_that_do_not_fit(arrays, message) -> None:
    exe = compiled(lambda b, x: b.negate(x), V8)
    with pytest.raises(TypeError, match=r"\[execute\] " + message):
        exe.execute([put(a) for a in arrays])


def test_donation_reuses_the_memory() -> None:
    exe = compiled(lambda b, x: b.negate(x), V8, donated=(True,))
    x = put(np.arange(8, dtype="f4"))
    where = client().pointer(x)
    (y,) = exe.execute([x])
    assert x.is_deleted()
    assert client().pointer(y) == where
    assert get(y)[3] == -3
    with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[8\]"):
        exe.execute([x])


def test_donation_of_borrowed_memory_leaves_the_owner_alone() -> None:
    exe = compiled(lambda b, x: b.negate(x), V8, donated=(True,))
    mine = aligned(8)
    mine[:] = np.arange(8)
    x = put(mine, immutable=True)
    (y,) = exe.execute([x])
    assert mine.tolist() == list(range(8))
    assert get(y)[7] == -7


def test_donating_an_argument_that_is_also_passed_plainly_is_refused() -> None:
    exe = compiled(lambda b, x, y: b.add(x, y), V8, V8, donated=(True, False))
    x = put(np.arange(8, dtype="f4"))
    with pytest.raises(JaxRuntimeError, match="donate"):
        exe.execute([x, x])


def test_a_deleted_buffer_raises_everywhere() -> None:
    c, exe = client(), compiled(lambda b, x: b.negate(x), V8)
    x = put(np.zeros(8, "f4"))
    x.delete()
    x.delete()
    uses = [
        lambda: c.get(x), lambda: c.copy(x, c.devices[0]), lambda: c.block_until_ready([x]),
        lambda: c.is_ready(x), lambda: c.pointer(x), lambda: c.to_dlpack(x),
        lambda: exe.execute([x]),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[8\]"):
            use()


def test_readiness() -> None:
    x = put(np.zeros(8, "f4"))
    client().block_until_ready([x, x])
    client().block_until_ready([])
    assert client().is_ready(x)


def test_compile_errors_carry_xlas_text() -> None:
    with pytest.raises(JaxRuntimeError, match="nonsense"):
        client().compile("nonsense", Signature((), ()), client().devices[0])
    with pytest.raises(JaxRuntimeError, match="xla_nope"):
        client().compile(
            text_of(lambda b: b.scalar(1.0, F4))[0],
            Signature((), (Aval((), F4),)),
            client().devices[0],
            flags=[("xla_nope", 1)],
        )
    with pytest.raises(JaxRuntimeError, match="nowhere"):
        compiled(lambda b, x: b.custom_call("nowhere", [x], [x.aval]), V8)


def test_texts_and_analyses() -> None:
    exe = compiled(lambda b, x: b.tanh(b.add(x, x)), V8)
    assert "stablehlo.tanh" in exe.stablehlo
    assert exe.as_text().startswith("HloModule lab")
    assert exe.cost_analysis()["flops"] == 8
    assert exe.memory_analysis().argument_size_in_bytes == 32


def test_a_flag_reaches_xla() -> None:
    text, outs, _ = text_of(lambda b, x: b.add(b.tanh(x), b.negate(x)), V8)
    signature = Signature((V8,), (outs[0].aval,))
    plain, unfused = (
        client().compile(text, signature, client().devices[0], flags).as_text()
        for flags in ((), [("xla_disable_hlo_passes", "fusion,cpu-fusion")])
    )
    assert "fusion" in plain
    assert plain != unfused


def test_serialize_and_load() -> None:
    exe = compiled(lambda b, x: (b.negate(x), b.constant(np.arange(5))), V8, donated=(True,))
    data = exe.serialize()
    loaded = client().load(data, client().devices[0])
    assert loaded.signature == exe.signature
    assert loaded.stablehlo == exe.stablehlo
    x = put(np.arange(8, dtype="f4"))
    y, numbers = loaded.execute([x])
    assert get(y)[2] == -2
    assert get(numbers).tolist() == [0, 1, 2, 3, 4]
    assert x.is_deleted()
    with pytest.raises(TypeError, match=r"\[execute\] expected argument 0"):
        loaded.execute([put(np.arange(8))])


def test_serialized_lapack_programs_register_their_kernels(fresh_process) -> None:
    text = """
        import base64, sys, numpy as np
        from primal.engines.xla.client import Client
        c = Client("cpu")
        (w, info) = [c.get(r) for r in c.load(base64.b64decode({data!r}), c.devices[0]).execute(
            [c.put(np.diag([3.0, 1.0, 2.0]), c.devices[0])])][1:]
        print(w.tolist(), info)
    """
    import base64
    import textwrap

    matrix = Aval((3, 3), np.dtype("f8"))
    exe = compiled(
        lambda b, m: b.lapack(
            "syevd", [m], [m.aval, Aval((3,), np.dtype("f8")), Aval((), I4)],
            attributes={"mode": "V", "uplo": "L"}, aliases={0: 0},
        ),
        matrix,
    )  # fmt: skip
    data = base64.b64encode(exe.serialize()).decode()
    done = fresh_process(textwrap.dedent(text).format(data=data))
    assert done.stdout.strip() == "[1.0, 2.0, 3.0] 0"


def test_damaged_or_foreign_bytes_are_refused(monkeypatch) -> None:
    data = compiled(lambda b, x: b.negate(x), V8).serialize()
    device = client().devices[0]
    for bad in (b"", b"rubbish" * 50, data[:-3], data[:200] + b"x" + data[201:]):
        with pytest.raises(ValueError, match=r"\[xla\] expected the bytes of a serialised exec"):
            client().load(bad, device)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    with pytest.raises(ValueError, match="got one of another set-up"):
        client().load(data, device)


class Exporter:
    """An object that offers a buffer through DLPack, as arrays do."""

    def __init__(self, buffer) -> None:
        self.buffer = buffer

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        return client().to_dlpack(self.buffer, stream, max_version)


def test_dlpack_out_shares_memory() -> None:
    buffer = put(np.arange(6, dtype="f4").reshape(2, 3))
    view = np.from_dlpack(Exporter(buffer))
    assert view.ctypes.data == client().pointer(buffer)
    assert view.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_dlpack_in_shares_memory_or_copies() -> None:
    c, device = client(), client().devices[0]
    x = aligned(16)
    x[:] = np.arange(16)
    shared = c.from_dlpack(x, device)
    assert c.pointer(shared) == x.ctypes.data
    assert shared.aval is Aval((16,), F4)
    (y,) = compiled(lambda b, v: b.negate(v), Aval((16,), F4)).execute([shared])
    assert get(y)[5] == -5
    assert c.pointer(c.from_dlpack(x, device, copy=True)) != x.ctypes.data
    square = x.reshape(4, 4)
    for awkward in (square.T, square[:, ::2]):
        np.testing.assert_array_equal(get(c.from_dlpack(awkward, device)), awkward)
        with pytest.raises(ValueError, match=r"\[dlpack\] expected"):
            c.from_dlpack(awkward, device, copy=False)
    with pytest.raises(ValueError, match=r"\[dlpack\] expected memory usable without a copy"):
        c.from_dlpack(aligned(16, offset=16), device, copy=False)


def test_an_exception_in_a_callback_is_the_cause() -> None:
    class MineError(Exception):
        pass

    def bad(x):
        raise MineError("no")

    exe = compiled(lambda b, x: b.host_call(bad, [x], [x.aval]), V8)
    with pytest.raises(JaxRuntimeError) as caught:
        get(exe.execute([put(np.zeros(8, "f4"))])[0])
    assert isinstance(caught.value.__cause__, MineError)
    with pytest.raises(ValueError, match=r"\[serialize\] expected a program without host callb"):
        exe.serialize()


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda x: x[:3], r"expected result 0 to be float32\[8\], got float32\[3\]"),
        (lambda x: x.astype("f8"), r"expected result 0 to be float32\[8\], got float64\[8\]"),
        (lambda x: (x, x), "expected 1 results, got 2"),
    ],
)
def test_callback_results_are_checked(answer, message) -> None:
    exe = compiled(lambda b, x: b.host_call(answer, [x], [x.aval]), V8)
    with pytest.raises(JaxRuntimeError, match=message):
        get(exe.execute([put(np.zeros(8, "f4"))])[0])
    # The next run is not blamed for the last one's failure.
    assert not exe._failures


def test_unknown_platforms_and_missing_plugins_say_what_to_do() -> None:
    with pytest.raises(RuntimeError, match=r"\[xla\] expected a platform out of cpu, cuda, gpu"):
        Client("abacus")
    for platform, package in (("cuda", "jax-cuda13-plugin"), ("tpu", "libtpu")):
        try:
            Client(platform)
        except RuntimeError as e:
            if "expected" in str(e):
                assert f"pip install '{package}" in str(e) or f"pip install {package}" in str(e)

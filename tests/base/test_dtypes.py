"""Dtypes and promotion, against figures recorded from JAX (tests/data/record_dtypes.py)."""

import itertools
import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

from primal.base import config as flags
from primal.base import dtypes
from primal.base.dtypes import KeyType
from primal.base.limits import finfo, iinfo

RECORD = json.loads((Path(__file__).parent.parent / "data" / "dtypes.json").read_text())
SCALARS = {"i*": 1, "f*": 1.0, "c*": 1j}
NAMES = list(RECORD["canonical"])
KEY = KeyType("threefry2x32")


def operand(node):
    return SCALARS[node] if node in SCALARS else np.dtype(node)


def joined(nodes):
    try:
        dtype, weak = dtypes.result_type(*map(operand, nodes), return_weak_type_flag=True)
    except dtypes.TypePromotionError:
        return "TypePromotionError"
    return [dtype.name, weak]


def differences(table):
    ours = {nodes: joined(nodes.split(",")) for nodes in table}
    return {nodes: (want, ours[nodes]) for nodes, want in table.items() if ours[nodes] != want}


@pytest.mark.parametrize("x64", [False, True])
def test_every_pair_and_many_triples_promote_as_recorded(x64):
    with flags.enable_x64(x64):
        assert differences(RECORD["x64" if x64 else "x32"]) == {}


def test_every_pair_in_strict_mode_as_recorded():
    with flags.numpy_dtype_promotion("strict"):
        assert differences(RECORD["strict"]) == {}


@pytest.mark.parametrize("x64", [False, True])
def test_promotion_is_commutative_idempotent_and_associative(x64):
    nodes = [n for n in NAMES if not n.startswith(("float4", "float6", "float8"))]
    nodes = [n for n in nodes if n not in ("int1", "int2", "int4", "uint1", "uint2", "uint4")]
    operands = [(np.dtype(n), False) for n in nodes]
    operands += [(dtypes.python_scalar_dtype(s), True) for s in SCALARS.values()]
    join = dtypes.lattice_result
    with flags.enable_x64(x64):
        for a, b in itertools.product(operands, repeat=2):
            assert join([a, b]) == join([b, a]) == dtypes.promote_pair(*a, *b)
            assert join([a, b, a]) == join([a, b])
        for abc in itertools.combinations(operands[:16:2] + operands[16:], 3):
            assert len({join(order) for order in itertools.permutations(abc)}) == 1


def test_promote_types_has_64_bits_where_an_operand_or_the_switch_has():
    assert dtypes.promote_types("int32", "uint32") == np.int32
    assert dtypes.promote_types("int8", "uint64") == np.float64
    with flags.enable_x64(True):
        assert dtypes.promote_types("int32", "uint32") == np.int64
    assert dtypes.promote_types("float64", "float32") == np.float64
    assert dtypes.promote_types("float32", int) == np.float32
    assert dtypes.promote_types(int, float) == np.float64
    assert dtypes.promote_types("int8", "uint8") == np.int16


@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    dtype, want = np.dtype(name), RECORD["names"][name]
    got = {
        "short": dtypes.short_name(dtype),
        "mlir": dtypes.mlir_name(dtype),
        "bits": dtypes.itemsize_bits(dtype),
    }
    assert got == want


def test_hierarchy_as_recorded():
    parents = {"bool": np.bool_}
    got = {}
    for row in RECORD["issubdtype"]:
        name, parent = row.split(",")
        cls = parents.get(parent) or getattr(np, parent)
        got[row] = dtypes.issubdtype(np.dtype(name), cls)
        assert dtypes.issubdtype(np.dtype(name).type, cls) == got[row]
        assert dtypes.issubdtype(name, cls) == got[row]
    assert got == RECORD["issubdtype"]
    assert {r: dtypes.isdtype(*r.split(",")) for r in RECORD["isdtype"]} == RECORD["isdtype"]
    assert {r: dtypes.can_cast(*r.split(",")) for r in RECORD["can_cast"]} == RECORD["can_cast"]


def test_hierarchy_of_abstract_types():
    assert dtypes.issubdtype(np.floating, np.inexact)
    assert not dtypes.issubdtype(np.inexact, np.floating)
    assert dtypes.issubdtype(float, np.floating)
    assert not dtypes.issubdtype(np.float32, np.float64)
    assert dtypes.issubdtype(dtypes.bfloat16, dtypes.bfloat16)
    assert not dtypes.issubdtype(dtypes.bfloat16, dtypes.float8_e5m2)


def test_canonical_dtypes():
    assert {n: dtypes.canonicalize_dtype(n).name for n in NAMES} == RECORD["canonical"]
    for python, narrow, wide in [(int, "int32", "int64"), (float, "float32", "float64")]:
        assert dtypes.canonicalize_dtype(python).name == narrow
        with flags.enable_x64(True):
            assert dtypes.canonicalize_dtype(python).name == wide
    assert dtypes.canonicalize_dtype(None) == np.float32
    assert dtypes.canonicalize_dtype(np.dtype(">f4")) == np.dtype("float32")
    with flags.enable_x64(True):
        assert all(dtypes.canonicalize_dtype(n) == np.dtype(n) for n in NAMES)
    with pytest.raises(TypeError, match="foo"):
        dtypes.canonicalize_dtype("foo")


def test_scalars_and_weakness():
    assert [dtypes.is_weak(x) for x in (1, 1.0, 1j, True, np.float64(1), np.ones(2))] == [
        True, True, True, False, False, False,
    ]  # fmt: skip
    assert dtypes.dtype_of(True) == np.bool_ and dtypes.dtype_of(2**40) == np.int32
    assert dtypes.dtype_of(np.ones(2, np.int64)) == np.int32
    assert [dtypes.scalar_type_of(x) for x in (True, 3, np.int8(1), 2.0, 1j)] == [
        bool, int, int, float, complex,
    ]  # fmt: skip
    with flags.enable_x64(True):
        assert dtypes.python_scalar_dtype(complex) == np.complex128
        assert dtypes.dtype_of(np.ones(2)) == np.float64


def test_weak_operands_of_one_dtype_stay_weak():
    weak, strong = (dtypes.float16, True), (dtypes.float16, False)
    assert dtypes.lattice_result([weak, weak]) == weak
    assert dtypes.lattice_result([weak, strong]) == strong
    assert dtypes.lattice_result([(dtypes.bool_, True)]) == (dtypes.bool_, False)


def test_tangent_dtypes():
    for name in NAMES:
        dtype = np.dtype(name)
        want = dtype if dtypes.kind_of(dtype) in "fc" else dtypes.float0
        assert dtypes.to_tangent_dtype(dtype) == want
    assert dtypes.to_tangent_dtype(KEY) == dtypes.float0
    assert dtypes.short_name(dtypes.float0) == "float0"
    assert dtypes.to_real_dtype(dtypes.complex128) == np.float64
    assert dtypes.to_complex_dtype(dtypes.float32) == np.complex64
    for name in ("bool", "int4", "uint8", "int32"):
        with flags.enable_x64(True):
            assert dtypes.to_inexact_dtype(np.dtype(name)) == np.float32
    for name in ("int64", "uint64"):
        assert dtypes.to_inexact_dtype(np.dtype(name)) == np.float32
        with flags.enable_x64(True):
            assert dtypes.to_inexact_dtype(np.dtype(name)) == np.float64


def test_limits():
    assert finfo("bfloat16").bits == 16
    assert finfo(np.complex64).dtype == np.float32
    assert (iinfo("int4").min, iinfo("uint2").max) == (-8, 3)
    with pytest.raises(ValueError, match=r"\[finfo\] expected a float"):
        finfo("int32")
    with pytest.raises(ValueError, match=r"\[iinfo\] expected an integer"):
        iinfo(bool)


def test_key_types():
    assert (KEY.name, KEY.itemsize, KEY.physical, KEY.impl) == (
        "key<fry>", 8, np.uint64, "threefry2x32",
    )  # fmt: skip
    assert KeyType("threefry2x32") == KEY and hash(KeyType("threefry2x32")) == hash(KEY)
    assert KeyType("rbg") != KEY and KEY != np.uint64
    assert pickle.loads(pickle.dumps(KEY)) == KEY
    assert dtypes.issubdtype(KEY, dtypes.prng_key) and dtypes.issubdtype(KEY, dtypes.extended)
    assert dtypes.issubdtype(KEY, np.generic) and not dtypes.issubdtype(KEY, np.number)
    assert not dtypes.issubdtype(np.uint32, dtypes.prng_key)
    assert dtypes.mlir_name(KEY) == "ui64" and dtypes.itemsize_bits(KEY) == 64
    assert dtypes.result_type(KEY) == dtypes.result_type(KEY, KEY) == KEY
    assert dtypes.canonicalize_dtype(KEY, allow_extended_dtype=True) == KEY
    with pytest.raises(ValueError, match="allow_extended_dtype"):
        dtypes.canonicalize_dtype(KEY)
    with pytest.raises(ValueError, match="key<fry>"):
        dtypes.result_type(KEY, np.float32)


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        (("int4", "int32"), dtypes.TypePromotionError, "1-, 2- and 4-bit integers"),
        (("float8_e4m3fn", "float32"), dtypes.TypePromotionError, "4, 6 and 8 bits"),
        ((), ValueError, "at least|expected at least one"),
        (([1, 2],), TypeError, r"numpy.array\(...\)"),
        ((np.dtype("S3"),), TypeError, "numbers and booleans only"),
    ],
)
def test_promotion_errors(args, error, text):
    with pytest.raises(error, match=text):
        dtypes.result_type(*args)


def test_strict_promotion_error_names_the_remedy():
    with flags.numpy_dtype_promotion("strict"):
        with pytest.raises(dtypes.TypePromotionError, match="got float32, int32") as caught:
            dtypes.result_type("float32", "int32")
        assert "x.astype(dtype)" in str(caught.value)
        with pytest.raises(dtypes.TypePromotionError, match="Python float, int32"):
            dtypes.result_type("int32", 1.0)


def test_requested_wide_dtypes_warn_where_they_narrow():
    for wide, narrow in [("float64", "float32"), ("int64", "int32"), ("complex128", "complex64")]:
        with pytest.warns(UserWarning) as caught:
            assert dtypes.check_user_dtype_supported(wide, "zeros") == np.dtype(narrow)
        text = str(caught[0].message)
        assert text.startswith(
            f"Explicitly requested dtype {wide} requested in zeros is not available, and will be "
            f"truncated to dtype {narrow}."
        )
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for quiet in (int, float, complex, "float32", np.bool_, KEY):
            dtypes.check_user_dtype_supported(quiet, "zeros")
        with flags.enable_x64(True):
            assert dtypes.check_user_dtype_supported("float64", "zeros") == np.float64
    for bad in ("S3", object, "datetime64[s]", np.longdouble):
        with pytest.raises(TypeError, match=r"\[zeros\] expected a boolean, integer"):
            dtypes.check_user_dtype_supported(bad, "zeros")


def test_kinds_and_casts_reject_bad_arguments():
    with pytest.raises(ValueError, match="kind='foo'"):
        dtypes.isdtype("float32", "foo")
    with pytest.raises(TypeError, match="kind=3"):
        dtypes.isdtype("float32", 3)
    with pytest.raises(TypeError, match="Python scalar 1.0"):
        dtypes.can_cast(1.0, "float32")
    with pytest.raises(ValueError, match="'foo'"):
        dtypes.can_cast("int32", "float32", casting="foo")
    assert dtypes.isdtype(KEY, KEY) and not dtypes.isdtype(KEY, "numeric")


def test_record_is_current(peer):
    """The recipe, run again, gives the recorded table."""
    path = Path(__file__).parent.parent / "data" / "record_dtypes.py"
    done = peer(path.read_text())
    assert json.loads(done.stdout) == RECORD


def test_requests_of_64_bits_are_errors_by_the_setting() -> None:
    flags.config.update("explicit_x64_dtypes", "error")
    try:
        for asked in ("float64", np.int64, "complex128"):
            with pytest.raises(ValueError, match="zeros. expected a dtype of at most 32 bits"):
                dtypes.check_user_dtype_supported(asked, "zeros")
        assert dtypes.check_user_dtype_supported(float, "zeros") == "float32"
    finally:
        flags.config.update("explicit_x64_dtypes", "warn")
    with pytest.raises(ValueError, match="explicit_x64_dtypes"):
        flags.config.update("explicit_x64_dtypes", "allow")

"""Settings: spellings, scopes, threads, environment, errors."""

import threading

import pytest

from primal.base import config as flags
from primal.base.accepted import ACCEPTED
from primal.base.config import Flag, config, settings


def test_three_spellings_of_a_name():
    for name in ("enable_x64", "primal_enable_x64", "jax_enable_x64"):
        config.update(name, True)
        assert config.enable_x64 and config.jax_enable_x64 and config.read(name)
        config.update(name, False)
        assert not settings().enable_x64
    config.enable_x64 = True
    assert config.values["jax_enable_x64"] is True
    config.enable_x64 = False


def test_scopes_nest_and_restore():
    with flags.enable_x64(True) as value:
        assert value is True and config.enable_x64
        with flags.enable_x64(False), flags.default_matmul_precision("float32"):
            assert not config.enable_x64 and config.default_matmul_precision == "float32"
        assert config.enable_x64 and config.default_matmul_precision is None
    assert not config.enable_x64


def test_scopes_restore_after_errors():
    with pytest.raises(KeyError), flags.debug_nans(True):
        raise KeyError
    assert not config.debug_nans


def test_a_scope_can_be_entered_again_while_active_and_used_as_decorator():
    scope = flags.debug_infs(True)
    with scope:
        with scope:
            assert config.debug_infs
        assert config.debug_infs
    assert not config.debug_infs

    @flags.debug_infs(True)
    def read():
        return config.debug_infs

    assert read() and not config.debug_infs


def test_scopes_may_end_out_of_order():
    first, second = flags.debug_infs(True), flags.debug_nans(True)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert (config.debug_infs, config.debug_nans) == (False, True)
    second.__exit__(None, None, None)
    assert not config.debug_nans


def test_bare_calls_mean_true_for_switches_and_nothing_for_others():
    with flags.disable_jit(), flags.check_tracer_leaks():
        assert config.disable_jit and config.check_tracer_leaks
    with flags.default_matmul_precision("float32"), flags.default_matmul_precision(None):
        assert config.default_matmul_precision is None
    for name in ("numpy_rank_promotion", "default_matmul_precision", "default_device"):
        with pytest.raises(TypeError, match=f"expected a value for '{name}'"):
            getattr(flags, name)()


def test_scopes_belong_to_their_thread():
    seen, entered, leave = {}, threading.Event(), threading.Event()

    def other():
        seen["start"] = config.enable_x64
        with flags.debug_nans(True):
            entered.set()
            leave.wait(10)
            seen["scoped"] = (config.debug_nans, config.numpy_rank_promotion)
        seen["end"] = config.debug_nans

    with flags.enable_x64(True):
        thread = threading.Thread(target=other)
        thread.start()
        entered.wait(10)
        # A process-wide change reaches a thread that is inside a scope of another flag.
        config.update("numpy_rank_promotion", "warn")
        assert not config.debug_nans and config.enable_x64
        leave.set()
        thread.join()
    config.update("numpy_rank_promotion", "allow")
    assert seen == {"start": False, "scoped": (True, "warn"), "end": False}


def test_many_threads_see_only_their_own_scopes():
    wrong = []

    def work(i):
        for k in range(100):
            name = ("bfloat16", "float32", "highest")[(i + k) % 3]
            with flags.default_matmul_precision(name), flags.enable_x64(bool(i % 2)):
                if (config.default_matmul_precision, config.enable_x64) != (name, bool(i % 2)):
                    wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_update_does_not_overrule_an_active_scope():
    with flags.enable_x64(True):
        config.update("enable_x64", False)
        assert config.enable_x64
    assert not config.enable_x64


def test_trace_key_changes_with_the_flags_that_matter():
    before = config.trace_key()
    assert config.trace_key() is before
    keyed = {name for name, flag in config.flags().items() if flag.key}
    assert {"enable_x64", "cpu_engine", "default_matmul_precision", "debug_nans"} <= keyed
    assert "log_compiles" not in keyed
    with flags.log_compiles(True):
        assert config.trace_key() == before
    with flags.enable_x64(True):
        assert config.trace_key() != before
        inside = config.trace_key()
    with flags.enable_x64(True):
        assert config.trace_key() == inside and hash(inside) == hash(config.trace_key())
    assert config.trace_key() == before


def test_listeners_hear_of_updates():
    heard = []
    config.on_update("num_cpu_devices", heard.append)
    config.update("num_cpu_devices", 4)
    with flags.num_cpu_devices(2):
        config.update("num_cpu_devices", 3)
    config.update("num_cpu_devices", -1)
    assert heard == [4, 2, 2, 3, -1]


def test_flags_can_be_added_and_derived():
    config.define(Flag("a_flag_for_this_test", 3, int, "Only a test.", key=True))
    config.derive("twice_the_flag", lambda now: 2 * now["a_flag_for_this_test"])
    assert config.a_flag_for_this_test == 3 and settings().twice_the_flag == 6
    with config.flag("a_flag_for_this_test")(5):
        assert config.a_flag_for_this_test == 5 and settings().twice_the_flag == 10
        assert 5 in config.trace_key()
    with pytest.raises(ValueError, match="exists"):
        config.define(Flag("a_flag_for_this_test", 3, int, "Again."))


@pytest.mark.parametrize(
    ("name", "value", "error", "text"),
    [
        ("enable_x65", True, AttributeError, "Did you mean 'enable_x64'"),
        ("jax_nothing_like_it", 1, AttributeError, "The flags are: .*check_tracer_leaks, "),
        ("enable_x64", "yes", ValueError, "expected True or False for 'enable_x64', got 'yes'"),
        ("enable_x64", 2, ValueError, "got 2"),
        (
            "numpy_rank_promotion",
            "foo",
            ValueError,
            "one of 'allow', 'warn', 'raise' for .* got 'foo'",
        ),
        (
            "default_matmul_precision",
            "foo",
            ValueError,
            "'tensorfloat32'.* or None for .* got 'foo'",
        ),
        ("num_cpu_devices", "a", ValueError, "a value of type int"),
        ("num_cpu_devices", True, ValueError, "a value of type int"),
        ("cpu_engine", None, ValueError, "'xla', 'cpu', 'reference' for .* got None"),
    ],
)
def test_bad_names_and_values(name, value, error, text):
    before = config.values
    with pytest.raises(error, match=text):
        config.update(name, value)
    assert config.values == before


def test_unknown_attributes():
    with pytest.raises(AttributeError, match="The flags are"):
        _ = config.foo
    with pytest.raises(AttributeError, match="Did you mean 'debug_nans'"):
        _ = settings().debug_nan
    assert not hasattr(config, "__array__")
    assert "debug_nans" in dir(config)


def test_environment(fresh_process):
    code = "from primal.base.config import config; print(config.enable_x64, config.cpu_engine)"
    env = {"PRIMAL_ENABLE_X64": "on", "PRIMAL_CPU_ENGINE": "reference"}
    assert fresh_process(code, env=env).stdout.split() == ["True", "reference"]
    bad = fresh_process(code, check=False, env={"PRIMAL_ENABLE_X64": "maybe"})
    assert bad.returncode and "PRIMAL_ENABLE_X64, got 'maybe'" in bad.stderr
    bad = fresh_process(code, check=False, env={"PRIMAL_NUM_CPU_DEVICES": "two"})
    assert bad.returncode and "PRIMAL_NUM_CPU_DEVICES, got 'two'" in bad.stderr


def test_disable_jit_takes_its_argument_by_name():
    with flags.disable_jit(disable=True):
        assert config.disable_jit is True
        with flags.disable_jit(False):
            assert config.disable_jit is False
    assert config.disable_jit is False


def test_x64_enabled_is_enable_x64_of_the_thread() -> None:
    for value in (True, False):
        with flags.enable_x64(value):
            assert config.x64_enabled is value


def test_settings_of_jax_without_meaning_here_are_kept():
    for name, default in ACCEPTED.items():
        assert config.read(f"jax_{name}") == default
    try:
        config.update("jax_persistent_cache_min_compile_time_secs", 1)
        assert config.values["jax_persistent_cache_min_compile_time_secs"] == 1
        with pytest.raises(ValueError, match="a value of type float"):
            config.update("jax_persistent_cache_min_compile_time_secs", "1")
    finally:
        config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@pytest.mark.parametrize("wrong", [3, ["cpu"], 1.5, object()])
def test_default_device_is_a_device_or_a_platform(wrong):
    with pytest.raises(ValueError, match="a device or the name of a platform"):
        flags.default_device(wrong)
    with flags.default_device("cpu"):
        assert config.default_device == "cpu"
    with flags.default_device(None):
        assert config.default_device is None

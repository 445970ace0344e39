"""The one file that knows `jaxlib`, which serves as XLA's binary distribution.

Its Python surface is private and changes: what differs between versions is found by looking at
signatures and attributes, never at version numbers. Nothing is imported before `load()`.

Rules that crashes taught (each holds on 0.10.2, most on later versions too):

* `TF_CPP_MIN_LOG_LEVEL` acts only when set before the import.
* `array_result_handler` without `_skip_checks=True` calls a method that the package `jax` defines.
* Shardings must derive from `GSPMDSharding`, and there must be one object per device: dispatch
  compares them by identity.
* Results are taken with prepared handlers. `disassemble_into_single_device_arrays` costs 40 us.
* `is_ready`, `_pjrt_layout`, `clone` and `platform` of a deleted array end the process.
* `np.asarray` of an array silently makes an object scalar out of bfloat16, int4, float8.
* `execute_sharded` checks the number, the byte size and the device of arguments, nothing else; with
  several devices it does not survive what it finds. We compare avals first.
* LAPACK targets crash unless `_lapack.initialize()` ran, which imports scipy.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from primal.base import errors, forks
from primal.base.patience import unbroken
from primal.ir.avals import Aval

_lock = forks.rlock()


class Bindings:
    """The modules, the classes made from theirs, and which features this version has."""

    def __init__(self) -> None:
        # Level 1 hides notices about CPU features; a user's own setting wins.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
        from jaxlib import version, xla_client

        raw: Any = importlib.import_module("jaxlib._jax")
        self.raw = raw
        self.xc: Any = xla_client
        self.version: str = version.__version__
        self.Error: type[RuntimeError] = raw.JaxRuntimeError
        self.Array: type = raw.ArrayImpl
        handler = raw.array_result_handler
        # The last argument says: take the arrays as they are (absent where that is the rule).
        self.handler_extra = (True,) if "_skip_checks" in _signature(handler) else ()
        export = raw.buffer_to_dlpack_managed_tensor
        self.versioned_dlpack = "max_version" in _signature(export)
        self.copy_on_put = raw.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
        self.borrow_on_put = raw.HostBufferSemantics.ZERO_COPY
        # A Python traceback per array and run costs 0.3 us, and nobody reads it.
        raw.set_tracebacks_enabled(False)

        class Placement(raw.GSPMDSharding):
            """A sharding as C++ asks for it; one object per device, compared by identity."""

            memory_kind = None

            def _to_xla_hlo_sharding(self, ndim: int) -> Any:
                return self._hlo_sharding

        self.Placement = Placement

    def placement(self, device: Any) -> Any:
        """A new placement on one device."""
        return self.Placement(self.raw.DeviceList((device,)), self.xc.HloSharding.replicate())

    def handler(self, aval: Aval, placement: Any) -> Any:
        """What turns one result of a run into an array with that aval."""
        return self.raw.array_result_handler(aval, placement, True, *self.handler_extra)

    def put(self, x: Any, aval: Aval, placement: Any, device: Any, borrow: bool) -> Any:
        """A NumPy array or an array of another device, on this device."""
        how = self.borrow_on_put if borrow else self.copy_on_put
        return self.raw.batched_device_put(aval, placement, [x], [device], True, False, how, True)

    def compile_options(self, device: Any, flags: Sequence[tuple[str, Any]] = ()) -> Any:
        """Options for one device. The result must be kept alive while parts of it are read."""
        options = self.xc.CompileOptions()
        grid = np.array([[device.id]], np.int32)
        options.device_assignment = self.xc.DeviceAssignment.create(grid)
        if flags:
            options.env_option_overrides = list(flags)
        return options

    def device_list(self, devices: Sequence[Any]) -> Any:
        """Devices as C++ takes them."""
        return self.raw.DeviceList(tuple(devices))

    def export_dlpack(self, buffer: Any, stream: Any, max_version: Any) -> Any:
        """A DLPack capsule that shares the buffer's memory."""
        if self.versioned_dlpack:
            return self.raw.buffer_to_dlpack_managed_tensor(
                buffer, stream=stream, max_version=max_version, copied=False
            )
        return self.raw.buffer_to_dlpack_managed_tensor(buffer, stream=stream)

    def import_dlpack(self, source: Any, device: Any, stream: Any, copy: bool | None) -> Any:
        """The array behind an object's `__dlpack__`, sharing memory where alignment allows."""
        if self.versioned_dlpack:
            try:
                capsule = source.__dlpack__(max_version=(1, 0))
            except TypeError:  # A producer from before versions existed.
                capsule = source.__dlpack__()
        else:
            capsule = source.__dlpack__()
        return self.raw.dlpack_managed_tensor_to_buffer(capsule, device, stream, copy)

    @functools.cached_property
    def mlir(self) -> tuple[ModuleType, Any]:
        """(module of MLIR classes, a context that knows the dialects)."""
        from jaxlib.mlir import ir
        from jaxlib.mlir._mlir_libs import _jax_mlir_ext
        from jaxlib.mlir.dialects import chlo, sdy, stablehlo

        registry = ir.DialectRegistry()
        _jax_mlir_ext.register_dialects(registry)
        context = ir.Context()
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        for dialect in (stablehlo, chlo, sdy):
            dialect.register_dialect(context)
        return ir, context

    def parse(self, text: str) -> Any:
        """The text as an MLIR module, which programs with host callbacks must be."""
        ir, context = self.mlir
        return ir.Module.parse(text, context)

    def hlo(self, text: str) -> Any:
        """The text of a StableHLO module as XLA's own computation, before any of its passes."""
        try:
            return self.raw.mlir.mlir_module_to_xla_computation(text)
        except self.Error as e:
            raise wrapped(e) from None

    @functools.cached_property
    def profiler(self) -> Any:
        """The module that records what XLA and annotated Python do."""
        return importlib.import_module("jaxlib._profiler")

    @functools.cached_property
    def profile_data(self) -> Any:
        """The module that reads recordings."""
        return importlib.import_module("jaxlib._profile_data")

    @functools.cached_property
    def lapack(self) -> bool:
        """Registers the LAPACK kernels, once; reading it is asking for them."""
        from jaxlib import lapack
        from jaxlib.cpu import _lapack

        _lapack.initialize()
        for name, capsule, api_version in lapack.registrations()["cpu"]:
            self.xc.register_custom_call_target(
                name, capsule, platform="cpu", api_version=api_version
            )
        return True


_bindings: Bindings | None = None


def load() -> Bindings:
    """`jaxlib`, imported on the first call.

    Raises ImportError with the remedy when the wheel is missing.
    """
    global _bindings
    if _bindings is None:
        with _lock:
            if _bindings is None:
                try:
                    _bindings = unbroken(Bindings)
                except ModuleNotFoundError as e:
                    raise ImportError(
                        f"[xla] expected the package jaxlib, got {e}. Install it with "
                        "`pip install jaxlib`, or set config.cpu_engine to another engine."
                    ) from e
    return _bindings


def loaded() -> Bindings | None:
    """`jaxlib`, if somebody needed it already."""
    return _bindings


def _signature(function: Any) -> str:
    return str(function.__nb_signature__[0][0])


def make_client(platform: str, num_devices: int | None = None, **options: Any) -> Any:
    """A PJRT client of a platform: 'cpu', 'cuda' (or 'gpu'), 'tpu'.

    `num_devices` virtual devices on the CPU; None leaves it to XLA_FLAGS, else one. Further options
    go to the client's constructor. Raises RuntimeError naming the package to install.
    """
    makers: dict[str, Callable[..., Any]] = {
        "cpu": _make_cpu, "cuda": _make_cuda, "gpu": _make_cuda, "tpu": _make_tpu
    }  # fmt: skip
    if platform not in makers:
        raise RuntimeError(
            f"[xla] expected a platform out of {', '.join(makers)}, got {platform!r}."
        )
    with _lock:
        try:
            return makers[platform](num_devices, **options)
        except load().Error as e:
            raise errors.JaxRuntimeError(
                f"[xla] expected to start platform {platform!r}, got from XLA: {e}\nChoose another "
                "platform, as in config.update('platforms', 'cpu')."
            ) from None


def _make_cpu(num_devices: int | None, **options: Any) -> Any:
    xc = load().xc
    # Inline execution: queueing a small program costs 5 us and a thread switch, and what is long
    # enough to be worth hiding is parallel inside anyway.
    options.setdefault("asynchronous", False)
    count = _forced_host_devices() if num_devices is None else num_devices
    with _room_for_collectives(count):
        return xc.make_cpu_client(num_devices=num_devices, **options)


def _forced_host_devices() -> int:
    found = re.findall(
        r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", "")
    )
    return int(found[-1]) if found else 1


@contextmanager
def _room_for_collectives(devices: int) -> Iterator[None]:
    """Size the thread pools, read from NPROC when the client is made.

    With fewer than two threads per device, queued runs with collectives wait for each other for
    ever and XLA aborts after 40 s. Four per device leaves room for the host's own work.
    """
    if devices <= 1 or "NPROC" in os.environ:
        yield
        return
    os.environ["NPROC"] = str(max(os.cpu_count() or 1, 4 * devices))
    try:
        yield
    finally:
        del os.environ["NPROC"]


_NVIDIA = (
    ("cuda_runtime", ("libcudart.so.12",)),
    ("cu13", ("libcudart.so.13", "libnvrtc.so.13", "libcublas.so.13", "libcublasLt.so.13",
              "libcupti.so.13", "libcusparse.so.12", "libcusolver.so.12", "libcufft.so.12")),
    ("cuda_nvrtc", ("libnvrtc.so.12",)),
    ("cublas", ("libcublas.so.12", "libcublasLt.so.12")),
    ("cuda_cupti", ("libcupti.so.12",)),
    ("cusparse", ("libcusparse.so.12",)),
    ("cusolver", ("libcusolver.so.11",)),
    ("cufft", ("libcufft.so.11",)),
    ("nccl", ("libnccl.so.2",)),
    ("cudnn", ("libcudnn.so.9",)),
    ("nvshmem", ("libnvshmem_host.so.3",)),
)  # fmt: skip
_CUDA_KERNELS = ("_linalg", "_prng", "_rnn", "_solver", "_hybrid", "_sparse", "_triton")


def find_cuda_plugin() -> tuple[str, str] | None:
    """('cuda13', path of the plugin's library), or None where no plugin wheel is installed."""
    from importlib import metadata  # 10 ms, which `import primal` must not spend.

    for entry in metadata.entry_points(group="jax_plugins"):
        if "cuda" not in entry.name:
            continue
        # The module that the entry point names imports the package jax: its folder is enough.
        spec = importlib.util.find_spec("jax_plugins")
        for root in spec.submodule_search_locations or () if spec else ():
            folder = entry.value.rsplit(".", 1)[-1]
            library = os.path.join(root, folder, "xla_cuda_plugin.so")
            if os.path.exists(library):
                return entry.name.replace("xla_", ""), library
    return None


def _make_cuda(num_devices: int | None, **options: Any) -> Any:
    xc = load().xc
    plugin = find_cuda_plugin()
    if plugin is None:
        version = load().version
        raise RuntimeError(
            "[xla] expected XLA's CUDA plugin, got none installed: Unknown backend cuda. Install "
            f"the one that fits with `pip install 'jax-cuda13-plugin[with-cuda]=={version}' "
            f"'jax-cuda13-pjrt=={version}'` (or cuda12)."
        )
    name, library = plugin
    api = _load_plugin("cuda", library, _preload_nvidia)
    _register_cuda(name, api)
    settings = {**xc.generate_pjrt_gpu_plugin_options(), **options}
    return xc.make_c_api_client("cuda", settings, None)


def _load_plugin(name: str, library: str, before: Callable[[], None] = lambda: None) -> Any:
    xc = load().xc
    api = None
    if not xc.pjrt_plugin_loaded(name):
        before()
        api = _apis[name] = xc.load_pjrt_plugin_dynamically(name, library)
    if not xc.pjrt_plugin_initialized(name):
        xc.initialize_pjrt_plugin(name)
    return api if api is not None else _apis.get(name)


_apis: dict[str, Any] = {}


def _preload_nvidia() -> None:
    """Load CUDA's libraries out of the nvidia wheels, so that the plugin's lookups find them.

    A library that is not there may come from the system instead, so a failure is no error yet.
    """
    import ctypes

    if importlib.util.find_spec("nvidia") is None:
        return
    for package, names in _NVIDIA:
        spec = importlib.util.find_spec(f"nvidia.{package}")
        for root in spec.submodule_search_locations or () if spec else ():
            for name in names:
                path = os.path.join(root, "lib", name)
                if os.path.exists(path):
                    ctypes.CDLL(path)


def _register_cuda(name: str, api: Any) -> None:
    """Hand the plugin's own kernels (solvers, sorting keys, Triton, callbacks) to XLA."""
    xc = load().xc
    extension = importlib.import_module(f"jax_{name}_plugin.cuda_plugin_extension")
    xc.register_custom_type_handler("CUDA", functools.partial(extension.register_custom_type, api))
    xc.register_custom_call_handler(
        "CUDA", functools.partial(extension.register_custom_call_target, api)
    )
    for type_name, value in extension.ffi_types().items():
        xc.register_custom_type(type_name, value, platform="CUDA")
    targets = dict(extension.ffi_handlers())
    for part in _CUDA_KERNELS:
        targets.update(importlib.import_module(f"jax_{name}_plugin.{part}").registrations())
    for target, value in targets.items():
        xc.register_custom_call_target(target, value, platform="CUDA", api_version=1)


def _make_tpu(num_devices: int | None, **options: Any) -> Any:
    if importlib.util.find_spec("libtpu") is None:
        raise RuntimeError(
            "[xla] expected the package libtpu, got none installed: Unknown backend tpu. On a TPU "
            "machine, install it with `pip install libtpu`."
        )
    library = importlib.import_module("libtpu").get_library_path()
    _load_plugin("tpu", library)
    return load().xc.make_c_api_client("tpu", options, None)


def wrapped(error: RuntimeError) -> errors.JaxRuntimeError:
    """XLA's error as ours."""
    return errors.JaxRuntimeError(str(error))

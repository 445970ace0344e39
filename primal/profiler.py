"""Recordings of what programs do, by XLA's profiler, for TensorBoard, XProf and Perfetto.

A recording holds the programs that the cpu and xla engines ran, their operations with the names of
`named_scope`, and the annotated blocks of Python. Of the reference engine it has annotations only.
"""

from __future__ import annotations

import functools
import glob
import gzip
import os
import shutil
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from primal.base import forks
from primal.engines.cpu.run import events
from primal.engines.xla import _jaxlib, recordings
from primal.runtime import devices

F = TypeVar("F", bound=Callable[..., Any])

_lock = forks.lock()
_session: Any = None
_folder: str = ""
_perfetto = False
_server: Any = None
_LINK = (
    "[profiler] expected create_perfetto_link=False: a link needs a web server that fetches the "
    "recording. Pass create_perfetto_trace=True and open the file in ui.perfetto.dev."
)


def start_trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> None:
    """Start to record; `stop_trace` writes `log_dir/plugins/profile/…`.

    With `create_perfetto_trace`, `perfetto_trace.json.gz` is written there too. RuntimeError if a
    recording is under way. NotImplementedError for create_perfetto_link, which needs a server.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     start_trace(folder)
    ...     x = jnp.arange(3.0) + 1
    ...     stop_trace()
    ...     os.listdir(folder)
    ['plugins']
    """
    global _session, _folder, _perfetto
    if create_perfetto_link:
        raise NotImplementedError(_LINK)
    with _lock:
        if _session is not None:
            raise RuntimeError(
                "[profiler] expected no recording under way, got one: Profile has already been "
                "started. Only one profile may be run at a time. Call stop_trace first."
            )
        profiler = _jaxlib.load().profiler
        options = profiler.ProfileOptions() if profiler_options is None else profiler_options
        _session = profiler.ProfilerSession(options)
        events.start()
        _folder, _perfetto = os.fspath(log_dir), create_perfetto_trace


def stop_trace() -> None:
    """Stop the recording and write it. RuntimeError if there is none.

    >>> try:
    ...     stop_trace()
    ... except RuntimeError:
    ...     print("nothing was being recorded")
    nothing was being recorded
    """
    global _session
    with _lock:
        if _session is None:
            raise RuntimeError(
                "[profiler] expected a recording under way, got none: No profile started. Call "
                "start_trace first, or use `with trace(log_dir):`."
            )
        session, _session = _session, None
        lines = events.stop()
        session.export(_with_events(session.stop(), lines), _folder)
        if _perfetto:
            found = glob.glob(os.path.join(_folder, "plugins", "profile", "*", "*.trace.json.gz"))
            newest = max(found, key=os.path.getmtime)
            where = os.path.join(os.path.dirname(newest), "perfetto_trace.json.gz")
            shutil.copyfile(newest, where)


def _with_events(recorded: bytes, found: list[events.Event]) -> bytes:
    """The recording, with what the cpu engine did in each thread."""
    with warnings.catch_warnings():
        # Making its types warns under Python 3.12; where that is an error, jaxlib ends the process.
        warnings.simplefilter("ignore", DeprecationWarning)
        data = _jaxlib.load().profile_data.ProfileData.from_serialized_xspace(recorded)
        stats = dict(data.find_plane_with_name("Task Environment").stats)
    start = int(stats["profile_start_time"])
    names = {t.ident: t.name for t in threading.enumerate()}
    lines: dict[str, list[recordings.Event]] = {}
    for program, step, begin, end, thread in found:
        line = lines.setdefault(f"cpu engine, {names.get(thread, thread)}", [])
        module = {"hlo_module": program, "tf_op": f"jit({program})/{step}"} if step else {}
        line.append(recordings.Event(step or f"jit({program})", begin - start, end - begin, module))
    return recordings.with_lines(recorded, lines)


@contextmanager
def trace(
    log_dir: os.PathLike[str] | str,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> Iterator[None]:
    """Record what happens in the block; as `start_trace` and `stop_trace`.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with trace(folder):
    ...         x = jnp.arange(3.0) + 1
    ...     os.listdir(folder)
    ['plugins']
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation:
    """A block of Python with a name in recordings; further arguments are shown with it.

    >>> with TraceAnnotation("load data", batch=3):
    ...     pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self.name = name
        self.kwargs = kwargs
        self._entered: list[Any] = []

    def __enter__(self) -> TraceAnnotation:
        bindings = _jaxlib.loaded()  # nothing records before it is
        found = None if bindings is None else bindings.profiler.TraceMe(self.name, **self.kwargs)
        if found is not None:
            found.__enter__()
        self._entered.append(found)
        return self

    def __exit__(self, *exc: Any) -> None:
        found = self._entered.pop()
        if found is not None:
            found.__exit__(*exc)

    def set_metadata(self, **kwargs: Any) -> None:
        """Further arguments to be shown, known only inside of the block.

        RuntimeError outside of it.

        >>> with TraceAnnotation("load data") as block:
        ...     block.set_metadata(rows=3)
        """
        if not self._entered:
            raise RuntimeError("[set_metadata] expected a call inside of the annotated block.")
        if self._entered[-1] is not None:
            self._entered[-1].set_metadata(**kwargs)

    @staticmethod
    def is_enabled() -> bool:
        """Whether something records, so that annotations are seen.

        >>> TraceAnnotation.is_enabled()
        False
        """
        bindings = _jaxlib.loaded()
        return bindings is not None and bool(bindings.profiler.TraceMe.is_enabled())


class StepTraceAnnotation(TraceAnnotation):
    """A step of a training loop: `with StepTraceAnnotation("train", step_num=i):`.

    >>> with StepTraceAnnotation("train", step_num=0):
    ...     pass
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, _r=1, **kwargs)


def annotate_function(func: F, name: str | None = None, **decorator_kwargs: Any) -> F:
    """The function with each call annotated by its name.

    >>> annotate_function(abs)(-1)
    1
    """
    label = name or getattr(func, "__qualname__", None) or func.__class__.__name__

    @functools.wraps(func)
    def annotated(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(label, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated  # type: ignore[return-value]


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Let TensorBoard record on demand over that port. ValueError if a server runs already.

    >>> import socket
    >>> with socket.socket() as free:
    ...     free.bind(("", 0))
    ...     port = free.getsockname()[1]
    >>> server = start_server(port)
    >>> stop_server()
    """
    global _server
    with _lock:
        if _server is not None:
            raise ValueError("Only one profiler server can be active at a time.")
        _server = _jaxlib.load().profiler.start_server(port)
        return _server


def stop_server() -> None:
    """Stop the server. ValueError if there is none.

    >>> try:
    ...     stop_server()
    ... except ValueError as error:
    ...     print(error)
    No active profiler server.
    """
    global _server
    with _lock:
        if _server is None:
            raise ValueError("No active profiler server.")
        _server = None


def device_memory_profile(backend: str | None = None) -> bytes:
    """What the xla engine's buffers hold, as a gzipped pprof file.

    Arrays that never left host memory, as most on the CPU, are not in it. NotImplementedError where
    jaxlib does not report it.

    >>> device_memory_profile()[:2] == bytes([31, 139])
    True
    """
    platform = devices.devices(backend)[0].platform
    engine = devices.xla_engine("cuda" if platform == "gpu" else platform)
    raw = engine.client.raw
    if not hasattr(raw, "heap_profile"):
        raise NotImplementedError(
            "[profiler] expected a jaxlib that reports its memory, got one that does not. Use "
            "device.memory_stats() for totals."
        )
    return gzip.compress(bytes(raw.heap_profile()))


def save_device_memory_profile(
    filename: os.PathLike[str] | str, backend: str | None = None
) -> None:
    """Write `device_memory_profile` to a file, for `pprof -web filename`.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_device_memory_profile(os.path.join(folder, "memory.prof"))
    ...     os.listdir(folder)
    ['memory.prof']
    """
    with open(filename, "wb") as f:
        f.write(device_memory_profile(backend))


_READERS = ("ProfileData", "ProfileEvent", "ProfilePlane")


def __getattr__(name: str) -> Any:
    # XLA's own records, for those who read them: loaded with it.
    if name == "ProfileOptions":
        return _jaxlib.load().profiler.ProfileOptions
    if name in _READERS:
        return getattr(_jaxlib.load().profile_data, name)
    raise AttributeError(f"module 'primal.profiler' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_READERS, "ProfileOptions"})


__all__ = [
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]

"""Events of the library and of programs: whoever listens is told.

Primal records no events of its own so far; user code and tools may.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_Listeners = list[Callable[..., Any]]
_events: _Listeners = []
_durations: _Listeners = []
_spans: _Listeners = []
_scalars: _Listeners = []


def record_event(event: str, **kwargs: Any) -> None:
    """Tell the listeners of events that one happened.

    >>> seen = []
    >>> register_event_listener(lambda event, **kwargs: seen.append(event))
    >>> record_event("/compile/start")
    >>> seen
    ['/compile/start']
    >>> clear_event_listeners()
    """
    for listener in tuple(_events):
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: Any) -> None:
    """Tell the listeners of durations how many seconds something took."""
    for listener in tuple(_durations):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: Any) -> None:
    """Tell the listeners of time spans when something began and ended, in seconds."""
    for listener in tuple(_spans):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: Any) -> None:
    """Tell the listeners of scalars a number."""
    for listener in tuple(_scalars):
        listener(event, value, **kwargs)


def register_event_listener(callback: Callable[..., Any]) -> None:
    """Call callback(event, **kwargs) for every event."""
    _events.append(callback)


def register_event_duration_secs_listener(callback: Callable[..., Any]) -> None:
    """Call callback(event, duration, **kwargs) for every duration."""
    _durations.append(callback)


def register_event_time_span_listener(callback: Callable[..., Any]) -> None:
    """Call callback(event, start_time, end_time, **kwargs) for every time span."""
    _spans.append(callback)


def register_scalar_listener(callback: Callable[..., Any]) -> None:
    """Call callback(event, value, **kwargs) for every scalar."""
    _scalars.append(callback)


def _removed(listeners: _Listeners, callback: Callable[..., Any]) -> None:
    if callback not in listeners:
        raise ValueError(f"[monitoring] expected a listener that is registered, got {callback!r}.")
    listeners.remove(callback)


def unregister_event_listener(callback: Callable[..., Any]) -> None:
    """Stop calling a listener of events; ValueError if it is none."""
    _removed(_events, callback)


def unregister_event_duration_listener(callback: Callable[..., Any]) -> None:
    """Stop calling a listener of durations; ValueError if it is none."""
    _removed(_durations, callback)


def unregister_event_time_span_listener(callback: Callable[..., Any]) -> None:
    """Stop calling a listener of time spans; ValueError if it is none."""
    _removed(_spans, callback)


def unregister_scalar_listener(callback: Callable[..., Any]) -> None:
    """Stop calling a listener of scalars; ValueError if it is none."""
    _removed(_scalars, callback)


def clear_event_listeners() -> None:
    """Stop calling every listener."""
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()

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
    """Tell the listeners of durations how many seconds something took.

    >>> seen = []
    >>> register_event_duration_secs_listener(lambda event, s, **kwargs: seen.append((event, s)))
    >>> record_event_duration_secs("/mine/load", 0.5)
    >>> clear_event_listeners()
    >>> seen
    [('/mine/load', 0.5)]
    """
    for listener in tuple(_durations):
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: Any) -> None:
    """Tell the listeners of time spans when something began and ended, in seconds.

    >>> seen = []
    >>> register_event_time_span_listener(
    ...     lambda event, start, end, **kwargs: seen.append(end - start)
    ... )
    >>> record_event_time_span("/mine/load", 1.0, 1.5)
    >>> clear_event_listeners()
    >>> seen
    [0.5]
    """
    for listener in tuple(_spans):
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float | int, **kwargs: Any) -> None:
    """Tell the listeners of scalars a number.

    >>> seen = []
    >>> register_scalar_listener(lambda event, value, **kwargs: seen.append(value))
    >>> record_scalar("/mine/size", 3)
    >>> clear_event_listeners()
    >>> seen
    [3]
    """
    for listener in tuple(_scalars):
        listener(event, value, **kwargs)


def register_event_listener(callback: Callable[..., Any]) -> None:
    """Call callback(event, **kwargs) for every event.

    >>> seen = []
    >>> register_event_listener(lambda event, **kwargs: seen.append(event))
    >>> record_event("/mine/start")
    >>> clear_event_listeners()
    >>> seen
    ['/mine/start']
    """
    _events.append(callback)


def register_event_duration_secs_listener(callback: Callable[..., Any]) -> None:
    """Call callback(event, duration, **kwargs) for every duration.

    >>> seen = []
    >>> register_event_duration_secs_listener(lambda event, seconds, **kwargs: seen.append(seconds))
    >>> record_event_duration_secs("/mine/load", 0.5)
    >>> clear_event_listeners()
    >>> seen
    [0.5]
    """
    _durations.append(callback)


def register_event_time_span_listener(callback: Callable[..., Any]) -> None:
    """Call callback(event, start_time, end_time, **kwargs) for every time span.

    >>> seen = []
    >>> register_event_time_span_listener(
    ...     lambda event, start, end, **kwargs: seen.append((start, end))
    ... )
    >>> record_event_time_span("/mine/load", 1.0, 1.5)
    >>> clear_event_listeners()
    >>> seen
    [(1.0, 1.5)]
    """
    _spans.append(callback)


def register_scalar_listener(callback: Callable[..., Any]) -> None:
    """Call callback(event, value, **kwargs) for every scalar.

    >>> seen = []
    >>> register_scalar_listener(lambda event, value, **kwargs: seen.append(value))
    >>> record_scalar("/mine/size", 3)
    >>> clear_event_listeners()
    >>> seen
    [3]
    """
    _scalars.append(callback)


def _removed(listeners: _Listeners, callback: Callable[..., Any]) -> None:
    if callback not in listeners:
        raise ValueError(f"[monitoring] expected a listener that is registered, got {callback!r}.")
    listeners.remove(callback)


def unregister_event_listener(callback: Callable[..., Any]) -> None:
    """Stop calling a listener of events; ValueError if it is none.

    >>> seen = []
    >>> def hear(event, **kwargs):
    ...     seen.append(event)
    >>> register_event_listener(hear)
    >>> unregister_event_listener(hear)
    >>> record_event("/mine/start")
    >>> seen
    []
    """
    _removed(_events, callback)


def unregister_event_duration_listener(callback: Callable[..., Any]) -> None:
    """Stop calling a listener of durations; ValueError if it is none.

    >>> seen = []
    >>> def hear(event, seconds, **kwargs):
    ...     seen.append(event)
    >>> register_event_duration_secs_listener(hear)
    >>> unregister_event_duration_listener(hear)
    >>> record_event_duration_secs("/mine/load", 0.5)
    >>> seen
    []
    """
    _removed(_durations, callback)


def unregister_event_time_span_listener(callback: Callable[..., Any]) -> None:
    """Stop calling a listener of time spans; ValueError if it is none.

    >>> seen = []
    >>> def hear(event, start, end, **kwargs):
    ...     seen.append(event)
    >>> register_event_time_span_listener(hear)
    >>> unregister_event_time_span_listener(hear)
    >>> record_event_time_span("/mine/load", 1.0, 1.5)
    >>> seen
    []
    """
    _removed(_spans, callback)


def unregister_scalar_listener(callback: Callable[..., Any]) -> None:
    """Stop calling a listener of scalars; ValueError if it is none.

    >>> seen = []
    >>> def hear(event, value, **kwargs):
    ...     seen.append(value)
    >>> register_scalar_listener(hear)
    >>> unregister_scalar_listener(hear)
    >>> record_scalar("/mine/size", 3)
    >>> seen
    []
    """
    _removed(_scalars, callback)


def clear_event_listeners() -> None:
    """Stop calling every listener.

    >>> seen = []
    >>> register_event_listener(lambda event, **kwargs: seen.append(event))
    >>> clear_event_listeners()
    >>> record_event("/mine/start")
    >>> seen
    []
    """
    for listeners in (_events, _durations, _spans, _scalars):
        listeners.clear()

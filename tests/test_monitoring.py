"""Listeners of events: each kind is told of its own, until it is taken away."""

from __future__ import annotations

from typing import Any

import pytest

from primal import monitoring

KINDS = [
    ("register_event_listener", "record_event", "unregister_event_listener", ()),
    (
        "register_event_duration_secs_listener",
        "record_event_duration_secs",
        "unregister_event_duration_listener",
        (0.5,),
    ),
    (
        "register_event_time_span_listener",
        "record_event_time_span",
        "unregister_event_time_span_listener",
        (1.0, 2.0),
    ),
    ("register_scalar_listener", "record_scalar", "unregister_scalar_listener", (3,)),
]


@pytest.mark.parametrize(("register", "record", "unregister", "values"), KINDS)
def test_listeners(register: str, record: str, unregister: str, values: tuple[Any, ...]) -> None:
    seen: list[Any] = []

    def listen(event: str, *values: Any, **kwargs: Any) -> None:
        seen.append((event, values, kwargs))

    getattr(monitoring, register)(listen)
    for _, other, _, theirs in KINDS:
        getattr(monitoring, other)("/a", *theirs, device="cpu")
    assert seen == [("/a", values, {"device": "cpu"})]
    getattr(monitoring, unregister)(listen)
    getattr(monitoring, record)("/b", *values)
    assert len(seen) == 1
    with pytest.raises(ValueError, match="registered"):
        getattr(monitoring, unregister)(listen)
    getattr(monitoring, register)(listen)
    monitoring.clear_event_listeners()
    getattr(monitoring, record)("/c", *values)
    assert len(seen) == 1

"""The application of a web process that ignores changes made elsewhere: the hunt for stale reads must find it."""

from __future__ import annotations

from dashboard.response_cache.epoch import Generation


def ignore(*_arguments: object) -> None:
    """Do nothing."""


Generation.bump = ignore  # type: ignore[method-assign]

from dashboard.asgi import application  # noqa: E402, F401

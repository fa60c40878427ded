"""The id of a request: in its log lines and, if it fails, in its response and on its error page, to match the two."""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final

from django.http import HttpRequest, HttpResponse

HEADER: Final = "X-Request-ID"
#: in the request's environment and in its span: the id
TELEMETRY: Final = "schemadesk.request_id"
#: what a proxy may send; anything else could forge lines of the log
_ACCEPTED: Final = re.compile(r"[A-Za-z0-9_.:/+=-]{8,128}")
#: what could end a line or steer a terminal
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
_CURRENT: Final[ContextVar[str]] = ContextVar("request_id", default="")


def request_id() -> str:
    """Return the id of the request that this thread answers; "" outside of one."""
    return _CURRENT.get()


class RequestIdMiddleware:
    """Gives each request an id: the one that a proxy sent, else a random one."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request. Only failures carry the id: other responses are kept for further requests."""
        sent = request.META.get("HTTP_X_REQUEST_ID", "")
        number = sent if sent and _ACCEPTED.fullmatch(sent) else secrets.token_hex(8)
        request.META[TELEMETRY] = number
        token = _CURRENT.set(number)
        try:
            response = self.get_response(request)
        finally:
            _CURRENT.reset(token)
        if response.status_code >= 500:
            response[HEADER] = number
        return response


class LineFormatter(logging.Formatter):
    """A line for people: time (UTC), level, logger, message, and the request's id if there is one."""

    converter = staticmethod(time.gmtime)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class's name
        """Return the line; a text of a caller can't begin another one."""
        record.during = f" [request {number}]" if (number := _number(record)) else ""
        record.message = _CONTROLS.sub(_escaped, record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the base class's name
        """Return the traceback, indented, so that no line of it looks like one of the log."""
        return "\n".join(f"  {_CONTROLS.sub(_escaped, line)}" for line in super().formatException(ei).split("\n"))


def _number(record: logging.LogRecord) -> str:
    """Return the id of the record's request. Django logs a refused request after the middlewares."""
    request = getattr(record, "request", None)
    return request_id() or str(getattr(request, "META", {}).get(TELEMETRY, ""))


def _escaped(match: re.Match[str]) -> str:
    return repr(match[0])[1:-1]


class JsonFormatter(logging.Formatter):
    """An object in a line for programs: time, level, logger, message, request_id, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object."""
        values = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": _number(record) or None,
            "exception": self.formatException(record.exc_info) if record.exc_info else None,
        }
        text = json.dumps({name: value for name, value in values.items() if value is not None}, ensure_ascii=False)
        return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)

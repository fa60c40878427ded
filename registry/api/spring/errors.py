"""Spring's errors: `{timestamp, status, error, message, path}`, one row per error.

If our error has more information than Spring's released server returns, the body has another member: `details`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.core.exceptions import RequestDataTooBig
from django.db import OperationalError
from django.http.request import UnreadablePostError
from django.utils import timezone
from rest_framework import exceptions
from rest_framework.response import Response

from registry import errors
from registry.api.outage import DatabaseAway, WriteRefused, set_retry_after, unavailable_error

logger = logging.getLogger(__name__)

NOT_FOUND = "Schema not found"
NO_MAPPING = "No message available"


@dataclass(frozen=True)
class Row:
    """The status of an error, and the released server's message if it has one; otherwise the error's own."""

    status: int
    message: str = ""


#: the nearest class in an error's ancestry decides
ANSWERS: dict[type[Exception], Row] = {
    errors.SubjectNotFound: Row(404, NOT_FOUND),
    errors.VersionNotFound: Row(404, NOT_FOUND),
    errors.SchemaNotFound: Row(404, NOT_FOUND),
    errors.VersionSoftDeleted: Row(404, NOT_FOUND),
    errors.NotFound: Row(404),
    errors.SchemaTooLarge: Row(413, "The schema is too large"),
    errors.InvalidSchema: Row(400, "Invalid schema"),
    errors.InvalidInput: Row(400),
    errors.IncompatibleSchema: Row(409),
    errors.Conflict: Row(409),
    errors.NotSignedIn: Row(401),
    errors.Forbidden: Row(403),
    errors.Unavailable: Row(503),
    DatabaseAway: Row(503, "The database did not answer"),
    WriteRefused: Row(503, "The database can't save anything"),
    RequestDataTooBig: Row(413, "The request body is too large"),
    UnreadablePostError: Row(400, "The request body could not be read"),
    OperationalError: Row(503, "The database did not answer"),
}


class Refusal(Exception):
    """An error of the web layer, with the released server's message; `allow` are the supported methods."""

    def __init__(self, status: int, message: str, *, details: str = "", allow: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.details = details
        self.allow = tuple(allow)


def no_mapping() -> Refusal:
    """Return the error for an unknown path."""
    return Refusal(404, NO_MAPPING)


def deletion_refused() -> Refusal:
    """Return the error for disabled deletion."""
    return Refusal(405, "Schema deletion is not permitted")


def format_refused(names: Sequence[str]) -> Refusal:
    """Return the error for an unknown format."""
    return Refusal(400, "Format not supported", details=f"/format takes one of: {', '.join(names)}.")


def not_a_number(text: str) -> Refusal:
    """Return the error for a path segment that isn't a number."""
    return Refusal(
        400,
        "Failed to convert value of type 'java.lang.String' to required type 'java.lang.Integer'; nested exception is"
        f' java.lang.NumberFormatException: For input string: "{text[:100]}"',
    )


def handle(error: Exception, context: dict[str, Any]) -> Response:
    """Return the answer for any exception; an unexpected one is logged with its traceback, and answered 500."""
    path = context["request"].path
    if isinstance(error, Refusal):
        response = _error_response(error.status, error.message, path, error.details)
        if error.allow:
            response["Allow"] = ", ".join(error.allow)
        return response
    if isinstance(error, exceptions.APIException):
        return _error_response(error.status_code, str(error.detail), path)
    error = unavailable_error(error) or error
    row = row_of(error)
    if row is None:
        logger.error("unforeseen error", exc_info=error)
        return _error_response(500, "Internal Server Error", path)
    if isinstance(error, OperationalError):
        logger.error("the database failed", exc_info=error)
    response = _error_response(row.status, row.message or describe(error), path, describe(error) if row.message else "")
    if row.status == 401:
        response["WWW-Authenticate"] = 'Basic realm="Schemadesk"'
    return set_retry_after(response, error)


def refusal(status: int, message: str) -> dict[str, Any]:
    """Return the body of a refusal before any view is reached, such as 413 for a body that is too long."""
    return _body(status, message)


def row_of(error: Exception) -> Row | None:
    """Return the row of an error, or None if it has no row."""
    return next((ANSWERS[kind] for kind in type(error).__mro__ if kind in ANSWERS), None)


def describe(error: Exception) -> str:
    """Return the message of our error, with line and column if the schema has one; "" for other errors."""
    if not isinstance(error, errors.SchemadeskError):
        return ""
    return error.placed


def _error_response(status: int, message: str, path: str, details: str = "") -> Response:
    if status == 406:  # nothing acceptable to the caller can be sent
        return Response(None, status=status)
    body = {**_body(status, message), "path": path}
    if details:
        body["details"] = details
    return Response(body, status=status)


def _body(status: int, message: str) -> dict[str, Any]:
    return {
        "timestamp": timezone.now().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "+0000",
        "status": status,
        "error": HTTPStatus(status).phrase,
        "message": message,
    }

"""Spring's refusals: `{timestamp, status, error, message, path}`, one row an error.

Where an error of ours knows more than the released server says, the body has one member more: `details`.
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
from registry.api.outage import DatabaseAway, WriteRefused, away_of, tell_when

logger = logging.getLogger(__name__)

NOT_FOUND = "Schema not found"
NO_MAPPING = "No message available"


@dataclass(frozen=True)
class Row:
    """The status of an error, and its message where the released server has one of its own; else the error's."""

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
    """A refusal of the web layer, in the released server's words; `allow` are the methods that the address takes."""

    def __init__(self, status: int, message: str, *, details: str = "", allow: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.details = details
        self.allow = tuple(allow)


def no_mapping() -> Refusal:
    """Nothing is at that address."""
    return Refusal(404, NO_MAPPING)


def deletion_refused() -> Refusal:
    """Deletion is off."""
    return Refusal(405, "Schema deletion is not permitted")


def format_refused(names: Sequence[str]) -> Refusal:
    """A format that isn't known."""
    return Refusal(400, "Format not supported", details=f"/format takes one of: {', '.join(names)}.")


def not_a_number(text: str) -> Refusal:
    """A path segment that should be a number and isn't."""
    return Refusal(
        400,
        "Failed to convert value of type 'java.lang.String' to required type 'java.lang.Integer'; nested exception is"
        f' java.lang.NumberFormatException: For input string: "{text[:100]}"',
    )


def handle(error: Exception, context: dict[str, Any]) -> Response:
    """The answer for any exception; one that isn't foreseen is logged with its trace and answered 500 without details."""
    path = context["request"].path
    if isinstance(error, Refusal):
        response = _error_response(error.status, error.message, path, error.details)
        if error.allow:
            response["Allow"] = ", ".join(error.allow)
        return response
    if isinstance(error, exceptions.APIException):
        return _error_response(error.status_code, str(error.detail), path)
    error = away_of(error) or error
    row = row_of(error)
    if row is None:
        logger.error("unforeseen error", exc_info=error)
        return _error_response(500, "Internal Server Error", path)
    if isinstance(error, OperationalError):
        logger.error("the database failed", exc_info=error)
    response = _error_response(row.status, row.message or describe(error), path, describe(error) if row.message else "")
    if row.status == 401:
        response["WWW-Authenticate"] = 'Basic realm="Schemadesk"'
    return tell_when(response, error)


def refusal(status: int, message: str) -> dict[str, Any]:
    """The body of a refusal that comes before any view is reached, such as 413 for a body that is too long."""
    return _body(status, message)


def row_of(error: Exception) -> Row | None:
    """The row of an error, or None for one that no row foresees."""
    return next((ANSWERS[kind] for kind in type(error).__mro__ if kind in ANSWERS), None)


def describe(error: Exception) -> str:
    """What an error of ours says, with line and column where the schema has one; nothing of any other's."""
    if not isinstance(error, errors.SchemadeskError):
        return ""
    return error.placed


def _error_response(status: int, message: str, path: str, details: str = "") -> Response:
    if status == 406:  # nothing could be written that the caller accepts
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

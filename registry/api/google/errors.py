"""Google's errors: `{"error": {"code", "message", "status", "details"}}`, one row an error.

`status` is a name of google.rpc.Code, and `code` the HTTP status that goes with that name (google/rpc/code.proto).
"""

from __future__ import annotations

import logging
import re
from typing import Any

from django.db import IntegrityError, OperationalError
from rest_framework import exceptions
from rest_framework.response import Response

from registry import errors
from registry.api.outage import away_of, tell_when

logger = logging.getLogger(__name__)

#: google.rpc.Code → HTTP status
HTTP_CODES = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
}
#: the nearest class in an error's ancestry decides
STATUSES: dict[type[Exception], str] = {
    errors.InvalidInput: "INVALID_ARGUMENT",
    errors.NotFound: "NOT_FOUND",
    errors.Conflict: "FAILED_PRECONDITION",
    errors.PlanChanged: "ABORTED",
    errors.Forbidden: "PERMISSION_DENIED",
    errors.NotSignedIn: "UNAUTHENTICATED",
    errors.Unavailable: "UNAVAILABLE",
    OperationalError: "UNAVAILABLE",
    IntegrityError: "ABORTED",
}
#: what the framework itself refuses: HTTP status → google.rpc.Code
FRAMEWORK = {
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    409: "ALREADY_EXISTS",
    413: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
}
#: what the database refuses
DATABASE_MESSAGES = {
    "UNAVAILABLE": "The service is currently unavailable.",
    "ABORTED": "What the call builds on was removed in the same moment; try again.",
}
DOMAIN = "schemadesk"
MAX_METADATA = 1000  # characters of one value


class AlreadyExists(exceptions.APIException):
    """There is one of that name."""

    status_code = 409


def handle(error: Exception, context: dict[str, Any]) -> Response:
    """The answer for any exception; one that isn't foreseen is logged with its trace and answered 500 without details."""
    if isinstance(error, exceptions.APIException):
        return _answer(error.status_code, FRAMEWORK.get(error.status_code, "UNKNOWN"), _framework_message(error))
    error = away_of(error) or error
    status = status_of(error)
    if status is None:
        logger.error("unforeseen error", exc_info=error)
        return _answer(500, "INTERNAL", "Internal error encountered.")
    if not isinstance(error, errors.SchemadeskError):
        logger.error("the database failed", exc_info=error)
        return _answer(HTTP_CODES[status], status, DATABASE_MESSAGES[status])
    response = _answer(HTTP_CODES[status], status, _message(error), details=_details(error))
    if status == "UNAUTHENTICATED":
        response["WWW-Authenticate"] = 'Bearer realm="Schemadesk"'
    return tell_when(response, error)


def refusal(status: int, message: str) -> dict[str, Any]:
    """The body of a refusal that comes before any view is reached, such as 413 for a body that is too long."""
    return _body(status, FRAMEWORK.get(status, "UNKNOWN"), message)


def status_of(error: Exception) -> str | None:
    """The google.rpc.Code of an error, or None for one that no row foresees."""
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), None)


def _framework_message(error: exceptions.APIException) -> str:
    if isinstance(error, exceptions.NotFound):
        return "The requested URL was not found on this server."
    return str(error.detail)


def _message(error: errors.SchemadeskError) -> str:
    return error.placed


def _details(error: errors.SchemadeskError) -> list[dict[str, Any]]:
    """What went wrong for programs: google.rpc.ErrorInfo, and google.rpc.BadRequest where a property is to blame."""
    values = dict(error.details)
    field = values.pop("field", None)
    if isinstance(error, errors.InvalidSchema) and error.line is not None:
        values |= {"line": error.line, "column": error.column}
    found: list[dict[str, Any]] = [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).upper(),
            "domain": DOMAIN,
            "metadata": {name: str(value)[:MAX_METADATA] for name, value in values.items() if value is not None},
        }
    ]
    if field is not None:
        violation = {"field": field, "description": error.message}
        found.append({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]})
    return found


def _answer(code: int, status: str, message: str, *, details: list[dict[str, Any]] | None = None) -> Response:
    return Response(_body(code, status, message, details=details), status=code)


def _body(code: int, status: str, message: str, *, details: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": details or []}}

"""The product's own API: errors as `{"error", "message", "details"}`, one row a class."""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler

from registry import errors
from registry.api.outage import away_of, tell_when
from registry.api.product.refusals import refusal

logger = logging.getLogger(__name__)

#: the nearest class in an error's ancestry decides
STATUSES: dict[type[Exception], int] = {
    errors.InvalidInput: 422,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.NoteChanged: 412,
    errors.PlanHashRequired: 428,
    errors.NotSignedIn: 401,
    errors.Forbidden: 403,
    errors.Unavailable: 503,
}


def status_of(error: Exception) -> int | None:
    """The HTTP status of a domain error, or None for any other exception."""
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), None)


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """The answer for any exception; what isn't foreseen is logged and answered 500 without details."""
    if isinstance(error, exceptions.APIException):
        response = exception_handler(error, context)
        if response is not None:
            response.data = refusal(error.status_code, str(error.detail))
        return response
    if isinstance(error, RequestDataTooBig):
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        return Response(refusal(413, f"A request's body may have up to {most} bytes."), status=413)
    error = away_of(error) or error
    status = status_of(error)
    if status is None or not isinstance(error, errors.SchemadeskError):
        logger.error("unforeseen error", exc_info=error)
        return Response({"error": "InternalError", "message": "Internal Server Error"}, status=500)
    body: dict[str, Any] = {"error": type(error).__name__, "message": error.placed, "details": error.details}
    if isinstance(error, errors.InvalidSchema) and error.line is not None:
        body |= {"line": error.line, "column": error.column}
    return tell_when(Response(body, status=status), error)

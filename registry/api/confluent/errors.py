"""Confluent's error codes: one row per error. A five-digit code starts with the HTTP status."""

from __future__ import annotations

import logging
from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.db import OperationalError
from rest_framework import exceptions

from registry import errors
from registry.api.confluent.http import Response
from registry.api.outage import DatabaseAway, WriteRefused, set_retry_after, unavailable_error
from registry.subjects.associations import requests

logger = logging.getLogger(__name__)

#: the nearest class in an error's ancestry decides
CODES: dict[type[Exception], int] = {
    errors.SubjectNotFound: 40401,
    errors.VersionNotFound: 40402,
    errors.SchemaNotFound: 40403,
    errors.SubjectSoftDeleted: 40404,
    errors.SubjectNotSoftDeleted: 40405,
    errors.VersionSoftDeleted: 40406,
    errors.VersionNotSoftDeleted: 40407,
    errors.SubjectConfigNotFound: 40408,
    errors.SubjectModeNotFound: 40409,
    requests.AssociationNotFound: 40410,
    errors.RegistryNotFound: 404,
    errors.NotFound: 404,
    errors.InvalidSchema: 42201,
    errors.SchemaTooLarge: 42209,
    errors.InvalidReference: 42201,
    errors.InvalidVersion: 42202,
    errors.InvalidCompatibility: 42203,
    errors.InvalidMode: 42204,
    errors.OperationNotPermitted: 42205,
    errors.ReferenceExists: 42206,
    errors.InvalidName: 42208,
    errors.InvalidRuleSet: 42210,
    errors.ContextNotEmpty: 42211,
    requests.AssociationForResourceExists: 40903,
    requests.AssociationForSubjectExists: 40904,
    requests.StrongAssociationExists: 40905,
    requests.NoActiveVersion: 40907,
    requests.AssociationFrozen: 40908,
    requests.InvalidAssociation: 42212,
    errors.InvalidInput: 422,
    errors.Conflict: 409,
    errors.NotSignedIn: 401,
    errors.Forbidden: 403,
    errors.Unavailable: 50002,
    DatabaseAway: 50001,
    WriteRefused: 50001,
    OperationalError: 50001,
}
#: statuses that aren't the code's first three digits: clients retry a 503, or use another server
STATUSES: dict[type[Exception], int] = {DatabaseAway: 503, WriteRefused: 503}
#: errors of the framework, with Confluent's messages
FRAMEWORK_MESSAGES = {
    404: "HTTP 404 Not Found",
    405: "HTTP 405 Method Not Allowed",
    406: "HTTP 406 Not Acceptable",
    415: "HTTP 415 Unsupported Media Type",
}


def handle(error: Exception, context: dict[str, Any]) -> Response:
    """Return the answer for any exception; an unexpected one is logged with its traceback, and answered 500."""
    if isinstance(error, exceptions.APIException):
        message = FRAMEWORK_MESSAGES.get(error.status_code, str(error.detail))
        return _error_response(error.status_code, error.status_code, message)
    if isinstance(error, SuspiciousOperation):
        return _error_response(400, 400, "HTTP 400 Bad Request")
    error = unavailable_error(error) or error
    code = code_of(error)
    if code is None:
        logger.error("unforeseen error", exc_info=error)
        return _error_response(500, 500, "Internal Server Error")
    if code == 50001 and not isinstance(error, DatabaseAway):
        logger.error("the database failed", exc_info=error)
        return _error_response(500, code, "Error in the backend data store")
    response = _error_response(status_of(type(error), code), code, describe(error))
    if code == 401:
        response["WWW-Authenticate"] = 'Basic realm="Schemadesk"'
    return set_retry_after(response, error)


def status_of(kind: type[Exception], code: int) -> int:
    """Return the HTTP status of an error with that class and code."""
    return STATUSES.get(kind, int(str(code)[:3]))


def code_of(error: Exception) -> int | None:
    """Return the code of an error, or None if it has no row."""
    if isinstance(error, errors.IncompatibleSchema | errors.PolicyViolated):
        return int(settings.INCOMPATIBLE_ERROR_CODE)
    return next((CODES[kind] for kind in type(error).__mro__ if kind in CODES), None)


def describe(error: Exception) -> str:
    """Return the message, with line and column if the schema has an error."""
    if not isinstance(error, errors.SchemadeskError):
        return str(error)
    return error.placed


def _error_response(status: int, code: int, message: str) -> Response:
    return Response({"error_code": code, "message": message}, status=status)

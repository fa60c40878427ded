"""The base class of this dialect's views, and Google's errors: one row per error."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from typing import Any

from django.db import IntegrityError, OperationalError
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry import errors
from registry.access.permission_filters import READ, require_extent
from registry.access.roles import Actor, require
from registry.api.authentication import TokenAuthentication
from registry.api.google.serializers import PARSERS, RENDERERS, AlwaysJson, parse_context
from registry.api.outage import set_retry_after, unavailable_error
from registry.errors import InvalidName, RegistryNotFound
from registry.subjects.permissions import Visible
from registry.subjects.versions.lookup import Registry, RegistryResource, find_registry, resolve_alias
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, parse_subject

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
#: errors of the framework: HTTP status → google.rpc.Code
FRAMEWORK = {
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    409: "ALREADY_EXISTS",
    413: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
}
#: errors of the database
DATABASE_MESSAGES = {
    "UNAVAILABLE": "The service is currently unavailable.",
    "ABORTED": "What the call builds on was removed in the same moment; try again.",
}
DOMAIN = "schemadesk"
MAX_METADATA = 1000  # characters of one value


class AlreadyExists(exceptions.APIException):
    """A registry with that name exists."""

    status_code = 409


def handle(error: Exception, context: dict[str, Any]) -> Response:
    """Return the answer for any exception; an unexpected one is logged with its traceback, and answered 500."""
    if isinstance(error, exceptions.APIException):
        return _error_response(
            error.status_code, FRAMEWORK.get(error.status_code, "UNKNOWN"), _framework_message(error)
        )
    error = unavailable_error(error) or error
    status = status_of(error)
    if status is None:
        logger.error("unforeseen error", exc_info=error)
        return _error_response(500, "INTERNAL", "Internal error encountered.")
    if not isinstance(error, errors.SchemadeskError):
        logger.error("the database failed", exc_info=error)
        return _error_response(HTTP_CODES[status], status, DATABASE_MESSAGES[status])
    response = _error_response(HTTP_CODES[status], status, _message(error), details=_details(error))
    if status == "UNAUTHENTICATED":
        response["WWW-Authenticate"] = 'Bearer realm="Schemadesk"'
    return set_retry_after(response, error)


def refusal(status: int, message: str) -> dict[str, Any]:
    """Return the body of a refusal before any view is reached, such as 413 for a body that is too long."""
    return _body(status, FRAMEWORK.get(status, "UNKNOWN"), message)


def status_of(error: Exception) -> str | None:
    """Return the google.rpc.Code of an error, or None if it has no row."""
    return next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), None)


def _framework_message(error: exceptions.APIException) -> str:
    if isinstance(error, exceptions.NotFound):
        return "The requested URL was not found on this server."
    return str(error.detail)


def _message(error: errors.SchemadeskError) -> str:
    return error.placed


def _details(error: errors.SchemadeskError) -> list[dict[str, Any]]:
    """Return details for programs: google.rpc.ErrorInfo, and google.rpc.BadRequest if a property caused the error."""
    values = dict(error.details)
    field = values.pop("field", None)
    if isinstance(error, errors.InvalidSchema) and error.line is not None:
        values |= {"line": error.line, "column": error.column}
    details: list[dict[str, Any]] = [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": re.sub(r"(?<!^)(?=[A-Z])", "_", error.public_name).upper(),
            "domain": DOMAIN,
            "metadata": {name: str(value)[:MAX_METADATA] for name, value in values.items() if value is not None},
        }
    ]
    if field is not None:
        violation = {"field": field, "description": error.message}
        details.append({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]})
    return details


def _error_response(code: int, status: str, message: str, *, details: list[dict[str, Any]] | None = None) -> Response:
    return Response(_body(code, status, message, details=details), status=code)


def _body(code: int, status: str, message: str, *, details: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": details or []}}


class GoogleView(APIView):
    """A call below `/v1/projects/`; `self.actor` is the caller."""

    channel = "google"
    schema = None  # the OpenAPI page describes only our own API
    authentication_classes = (TokenAuthentication,)
    content_negotiation_class = AlwaysJson
    renderer_classes = RENDERERS
    parser_classes = PARSERS

    def get_exception_handler(self) -> Any:
        """Return this dialect's error handler."""
        return handle

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate; refuse callers without any permission before reading anything.

        Raises NotSignedIn, NotAllowed, and InvalidName for a URL with U+0000, which PostgreSQL can't store.
        """
        super().initial(request, *args, **kwargs)
        if not self.actor.grants:
            require(self.actor, "schema.read")
        for part, name in kwargs.items():
            if "\0" in name:
                raise InvalidName(f"The address has a control character in its {part}.", field=part)

    @property
    def actor(self) -> Actor:
        """The caller."""
        return self.request.user  # type: ignore[return-value]


class RegistryView(GoogleView):
    """Reads the registry, context and subject from the URL; `self.actor` has the permissions that apply there."""

    #: whether a subject's alias is followed
    follows_alias = True
    #: whether callers who can read only some subjects may call it; the view answers with what they may read
    reads_parts = False
    registry: Registry
    resource: RegistryResource
    context: str
    subject: SubjectName | None
    visible: Visible

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, then read the URL. Raises NotSignedIn, RegistryNotFound, InvalidName, NotAllowed."""
        super().initial(request, *args, **kwargs)
        parent = {name: kwargs[name] for name in ("project", "location")}
        self.resource = RegistryResource(**parent, name=kwargs["registry"])
        request.user = actor_at(request.user, self.resource)  # type: ignore[arg-type, assignment]
        self.context = parse_context(kwargs["context"]) if "context" in kwargs else DEFAULT_CONTEXT
        self.subject = parse_subject(kwargs["subject"], context=self.context) if kwargs.get("subject") else None
        if not self.reads_parts:
            self._require_name()
        require_extent(self.actor, READ, registry=self.resource.name)
        try:
            self.registry = find_registry(**parent, name=kwargs["registry"])
        except RegistryNotFound:
            self._require_name()
            raise
        self.visible = Visible(self.registry, self.actor)
        if self.subject and self.follows_alias:
            subject = resolve_alias(self.registry, self.subject)
            if subject != self.subject:
                self._require_name()
            self.subject = subject
        self.authorize()

    def authorize(self) -> None:
        """Refuse callers who may not read what the URL names. Raises NotSignedIn, NotAllowed."""
        if self.subject is not None or not self.reads_parts:
            self._require_name()

    def _require_name(self) -> None:
        name = self.subject.qualified if self.subject else ""
        require(self.actor, READ, registry=self.resource.name, subject=name)

    @property
    def named_subject(self) -> SubjectName:
        """The subject in the URL, which the route guarantees."""
        assert self.subject is not None
        return self.subject

    @property
    def scope(self) -> SubjectName | None:
        """The scope of a config or mode: a subject, (empty subject) the URL's context, or None for the registry."""
        if self.subject is None and "context" in self.kwargs:
            return SubjectName(self.context, "")
        return self.subject


def actor_at(actor: Actor, resource: RegistryResource) -> Actor:
    """Return the actor with the grants that apply to a registry.

    A grant names a registry of the configured project and location by its plain name, any other by its resource name.
    Services know only the plain name, so grants are selected here.
    """
    grants = tuple(
        replace(grant, registry=resource.name) if grant.registry else grant
        for grant in actor.grants
        if grant.registry in ("", resource.key)
    )
    limit = actor.limit
    if limit and limit.registry:  # a token's registry is compared in the same way
        grants = grants if limit.registry == resource.key else ()
        limit = replace(limit, registry=resource.name)
    return replace(actor, grants=grants, limit=limit)

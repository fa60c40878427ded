"""Spring's schema server: register, read, and if allowed delete; its URLs below the path in SPRING_PATH."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest
from django.urls import URLPattern, URLResolver, include, path, re_path
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.access.roles import Actor, require
from registry.api.authentication import TokenAuthentication
from registry.api.response_marks import marked
from registry.api.spring import serializers
from registry.api.spring.errors import Refusal, deletion_refused, handle, no_mapping
from registry.errors import SchemaNotFound, VersionNotFound
from registry.subjects.lifecycle.deletion import remove_subject, remove_version
from registry.subjects.permissions import require_visible
from registry.subjects.services import register_version
from registry.subjects.versions import parsed_schemas
from registry.subjects.versions.lookup import Registry, get_registry, resolve_alias
from registry.subjects.versions.qualified_names import SubjectName, parse_subject
from registry.subjects.versions.versions import VersionInfo

MEDIA_TYPE = "application/json;charset=UTF-8"
METHODS = ("DELETE", "GET", "POST")


class SpringRenderer(JSONRenderer):
    """A renderer of JSON with the released server's content type."""

    media_type = MEDIA_TYPE
    charset = None


class OneRenderer(BaseContentNegotiation):
    """Always selects the only renderer; `initial` refuses callers who don't accept it."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Return the only renderer."""
        (renderer,) = renderers
        return renderer, MEDIA_TYPE

    def select_parser(self, request: Request, parsers: Iterable[Any]) -> Any:
        """Return None: `requests` reads the body itself."""
        return None


class SpringView(APIView):
    """Reads the registry and subject from the URL; `self.actor` is the caller."""

    channel = "spring"
    schema = None  # the OpenAPI page describes only our own API
    authentication_classes = (TokenAuthentication,)
    renderer_classes = (SpringRenderer,)
    content_negotiation_class = OneRenderer

    registry: Registry
    subject: SubjectName | None

    def get_exception_handler(self) -> Any:
        """Return this dialect's error handler."""
        return handle

    @property
    def actor(self) -> Actor:
        """The caller."""
        return self.request.user  # type: ignore[return-value]

    @property
    def mapped(self) -> list[str]:
        """The methods that the path supports."""
        return [method for method in METHODS if hasattr(self, method.lower())]

    @property
    def named_subject(self) -> SubjectName:
        """The subject in the URL, which the route guarantees."""
        assert self.subject is not None
        return self.subject

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, then refuse in the released server's order, then read the URL.

        Raises NotSignedIn, Refusal, RegistryNotFound, InvalidName, NotAllowed.
        """
        super().initial(request, *args, **kwargs)
        method = "GET" if request.method == "HEAD" else request.method
        if method != "OPTIONS":
            if method not in self.mapped:
                raise Refusal(405, f"Request method '{request.method}' not supported", allow=self.mapped)
            if method == "POST":
                serializers.check_content_type(request)
            if method != "DELETE":
                serializers.check_accept(request)
        self.registry = get_registry(kwargs.get("registry", ""))
        self.subject = self.meant(kwargs["subject"]) if "subject" in kwargs else None

    def meant(self, name: str) -> SubjectName:
        """Resolve a subject's alias, as in the other dialects. Raises InvalidName, NotAllowed."""
        name_in_address = parse_subject(name)
        require(self.actor, "schema.read", registry=self.registry.name, subject=name_in_address.qualified)
        subject = resolve_alias(self.registry, name_in_address)
        if subject != name_in_address:
            require(self.actor, "schema.read", registry=self.registry.name, subject=subject.qualified)
        return subject

    def options(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Response:
        """Return the methods that the path supports."""
        methods = [*self.mapped, *(["HEAD"] if "GET" in self.mapped else []), "OPTIONS"]
        return Response(None, headers={"Allow": ",".join(methods)})

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Response:
        """Keep the header Allow only where an answer sets it, not everywhere as in the framework."""
        allow = response.headers.get("Allow")
        response = super().finalize_response(request, response, *args, **kwargs)
        if allow is None:
            response.headers.pop("Allow", None)
        else:
            response["Allow"] = allow
        return response


class Root(SpringView):
    """`/`."""

    def post(self, request: Request, **address: Any) -> Response:
        """Register a schema; 201 with its version, which is an existing one if the subject has the schema."""
        submitted = serializers.registration(request)
        subject = self.meant(submitted.subject)
        require(self.actor, "version.register", registry=self.registry.name, subject=subject.qualified)
        number = self._registered_version(subject, submitted)
        if number is None:
            number = register_version(
                registry=self.registry.name,
                subject=subject,
                text=submitted.definition,
                by=self.actor,
                schema_type=submitted.schema_type,
            ).version
        versions = parsed_schemas.versions_of_format(self.registry, subject, submitted.schema_type, version=number)
        if not versions:
            raise VersionNotFound(f"Version {number} was deleted just now.", version=number)
        body = answers(versions)[0]
        headers = {"Location": self._location(request, body)}
        return marked(Response(body, status=201, headers=headers), versions[0].status)

    def _registered_version(self, subject: SubjectName, submitted: serializers.Registration) -> int | None:
        """Return the first version that Spring's server would treat as the same schema. Raises InvalidSchema."""
        schema = parsed_schemas.parse_schema(submitted.schema_type, submitted.definition)
        canonical = parsed_schemas.canonical_texts(self.registry, subject, submitted.schema_type)
        if submitted.schema_type != "AVRO":
            return next((number for number, text in canonical if schema.is_stored_as(text)), None)
        key = serializers.equality_key(schema.canonical)
        return next((number for number, text in canonical if serializers.equality_key(text) == key), None)

    def _location(self, request: Request, body: dict[str, Any]) -> str:
        root = request.build_absolute_uri(request.path.rstrip("/") or "/").rstrip("/")
        return f"{root}/{quote(body['subject'], safe='')}/{body['format']}/v{body['version']}"


class SchemaOfId(SpringView):
    """`/schemas/{id}`; the id is the version's own."""

    def get(self, request: Request, schema_id: str, **address: Any) -> Response:
        """Return the version with the id."""
        info = self._version(schema_id)
        return marked(Response(answers([info])[0]), info.status)

    def delete(self, request: Request, schema_id: str, **address: Any) -> Response:
        """Delete the version with the id."""
        serializers.integer(schema_id)
        refuse_deletion()
        info = self._version(schema_id)
        remove_version(registry=self.registry.name, subject=info.subject, version=info.version, by=self.actor)
        return Response(None)

    def _version(self, text: str) -> VersionInfo:
        number = serializers.integer(text)
        if number is None:
            raise SchemaNotFound("Schema not found")
        visible = require_visible(self.registry, self.actor)
        info = parsed_schemas.version_by_id(self.registry, number)
        if not visible.has_subject(info.subject):
            raise SchemaNotFound(f"Schema {number} not found", schema_id=number)  # as if it didn't exist
        return info


class SpringVersions(SpringView):
    """`/{subject}/{format}`."""

    def get(self, request: Request, schema_format: str, **address: Any) -> Response:
        """Return the versions in that format, ascending; 404 if there are none."""
        versions = parsed_schemas.versions_of_format(
            self.registry, self.named_subject, serializers.formats().get(schema_format, "")
        )
        if not versions:
            raise SchemaNotFound(f"No schemas found for subject {self.named_subject.qualified} in that format")
        return Response(answers(versions))


class SpringVersion(SpringView):
    """`/{subject}/{format}/v{version}`, and without the `v`."""

    def get(self, request: Request, schema_format: str, version: str, **address: Any) -> Response:
        """Return one version."""
        info = self._version(schema_format, version)
        return marked(Response(answers([info])[0]), info.status)

    def delete(self, request: Request, schema_format: str, version: str, **address: Any) -> Response:
        """Delete one version."""
        serializers.version_number(version)
        refuse_deletion()
        info = self._version(schema_format, version)
        remove_version(registry=self.registry.name, subject=info.subject, version=info.version, by=self.actor)
        return Response(None)

    def _version(self, schema_format: str, text: str) -> VersionInfo:
        number = serializers.version_number(text)
        versions = (
            parsed_schemas.versions_of_format(
                self.registry, self.named_subject, serializers.formats().get(schema_format, ""), version=number
            )
            if number is not None and number > 0
            else []
        )
        if not versions:
            raise VersionNotFound(f"Version {text[:40]} not found.", version=number)
        return versions[0]


class Subject(SpringView):
    """`/{subject}`."""

    def delete(self, request: Request, **address: Any) -> Response:
        """Delete all versions; a missing subject isn't an error."""
        refuse_deletion()
        remove_subject(registry=self.registry.name, subject=self.named_subject, by=self.actor)
        return Response(None)


class Nothing(SpringView):
    """Every other path."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise Refusal for every method."""
        raise no_mapping()


def refuse_deletion() -> None:
    """Raise Refusal unless the operator allows deletion."""
    if not settings.SPRING_ALLOW_DELETION:
        raise deletion_refused()


def answers(versions: list[VersionInfo]) -> list[dict[str, Any]]:
    """Return the versions as the released server writes them, with a constant number of queries."""
    texts = parsed_schemas.standalone_texts(versions)
    return [
        {
            "id": info.id,
            "version": info.version,
            "subject": info.subject.qualified,
            "format": info.schema.schema_type.lower(),
            "definition": texts[info.id],
        }
        for info in versions
    ]


calls = {
    "schemas/<segment:schema_id>": SchemaOfId,
    "<segment:subject>": Subject,
    "<segment:subject>/<segment:schema_format>": SpringVersions,
    "<segment:subject>/<segment:schema_format>/<segment:version>": SpringVersion,
}
urlpatterns = [
    path("", Root.as_view()),
    *(path(f"{address}{end}", view.as_view()) for address, view in calls.items() for end in ("", "/")),
    re_path("", Nothing.as_view()),
]

#: first segments that are used by others
TAKEN = frozenset(
    {"api", "compatibility", "config", "contexts", "healthz", "metrics", "mode", "readyz"}
    | {"registries", "schemas", "subjects", "ui", "v1"}
)
_SEGMENTS = re.compile(r"[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*", re.ASCII)


def problem_of(root: str) -> str:
    """Return what is wrong with a root path, as a sentence; "" if nothing is."""
    bare = root.strip("/")
    if not bare:
        return "The Spring dialect can't hang at the root of the site: Confluent's API is there."
    if not _SEGMENTS.fullmatch(bare) or {".", ".."} & set(bare.split("/")):
        return f"{root!r} is not a path of plain segments (letters, digits and . _ ~ -)."
    if bare.partition("/")[0] in TAKEN:
        return f"The address /{bare.partition('/')[0]} is taken."
    return ""


def spring_addresses(root: str) -> list[URLPattern | URLResolver]:
    """Return the dialect's URLs below the path, with and without a trailing slash; none for an invalid path."""
    if problem_of(root):
        return []
    bare = root.strip("/")
    return [
        address
        for prefix in (bare, f"registries/<segment:registry>/{bare}")
        for address in (path(prefix, Root.as_view()), path(f"{prefix}/", include("registry.api.spring.views")))
    ]

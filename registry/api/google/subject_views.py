"""Google's API: subjects, versions, schemas, compatibility. Each call is one service or selector."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.google.base import RegistryView
from registry.api.google.serializers import (
    CHECK,
    JSON,
    LOOK_UP,
    VERSION,
    check_subject,
    flag,
    http_body,
    parse_context,
    read_schema,
    schema_answer,
    schema_id,
    subject_label,
    version_answer,
)
from registry.api.response_marks import marked
from registry.errors import InvalidName, SchemaNotFound
from registry.formats import FORMATS, format_of
from registry.subjects import selectors
from registry.subjects.permissions import require_references, visible_schema, visible_versions_of_schema
from registry.subjects.policy.registries import create_version
from registry.subjects.registration.registration import submission_identity
from registry.subjects.services import delete_subject, delete_version
from registry.subjects.versions.qualified_names import SubjectName, parse_subject
from registry.subjects.versions.versions import SchemaInfo, StatusInfo

TEXT = "text/plain; charset=utf-8"


class GoogleSubjects(RegistryView):
    """`…/subjects`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Any:
        """Return sorted names: of the URL's context, or (`subjectPrefix`) of one; otherwise of all contexts."""
        context: str | None = self.context if "context" in address else None
        prefix = request.query_params.get("subjectPrefix")
        if prefix is not None and prefix.startswith(":."):
            name, _, prefix = prefix[1:].partition(":")
            context = parse_context(name)
        elif prefix is not None:
            context = self.context
        parse_subject(prefix or "")  # a prefix is a whole name or its start
        names = selectors.list_subjects(
            self.registry, context=context, prefix=prefix or "", deleted=flag(request, "deleted"), visible=self.visible
        )
        return http_body(request, [subject_label(parse_subject(text), self.context) for text in names])


class SubjectByName(RegistryView):
    """`…/subjects/{subject}`."""

    def post(self, request: Request, **address: Any) -> Response:
        """Look up a schema; not found if the subject doesn't exist or doesn't have the schema."""
        body = read_schema(request, LOOK_UP)
        deleted = body.pop("deleted", False)
        selectors.list_versions(self.registry, self.named_subject, deleted=deleted)
        normalize = _normalize(request, body)
        require_references(self.visible, body.get("references", ()), context=self.named_subject.context)
        for way in (normalize, False):
            identities = submission_identity(self.registry, self.named_subject, **{**body, "normalize": way})
            info = selectors.find_version(self.registry, self.named_subject, identities, deleted=deleted)
            if info is not None:
                return marked(Response(version_answer(request, info, self.context)), info.status)
        raise SchemaNotFound(f"Subject '{self.named_subject.qualified}' has no such schema.")

    def delete(self, request: Request, **address: Any) -> Any:
        """Soft-delete, or with `permanent` delete permanently; returns the version numbers."""
        numbers = delete_subject(
            registry=self.resource.key,
            subject=self.named_subject,
            by=self.actor,
            permanent=flag(request, "permanent"),
        )
        return http_body(request, numbers)


def _normalize(request: Request, body: dict[str, Any]) -> bool | None:
    """Return the option; Confluent's clients send it in the query. False inherits: a call can't turn it off."""
    return body.pop("normalize", False) or flag(request, "normalize") or None


class GoogleVersions(RegistryView):
    """`…/subjects/{subject}/versions`."""

    def get(self, request: Request, **address: Any) -> Any:
        """Return version numbers, ascending."""
        deleted = flag(request, "deleted")
        return http_body(request, selectors.list_versions(self.registry, self.named_subject, deleted=deleted))

    def post(self, request: Request, **address: Any) -> Response:
        """Register a schema; it keeps the subject's existing version, or the context's existing id."""
        body = read_schema(request, VERSION)
        done = create_version(
            registry=self.resource.key,
            subject=check_subject(self.named_subject),
            text=body["text"],
            by=self.actor,
            schema_type=body["schema_type"],
            references=body["references"],
            normalize=_normalize(request, body),
            version=body.get("version", 0),
            schema_id=body.get("id") or None,
        )
        return marked(Response({"id": done.schema_id}), done.status)


class VersionView(RegistryView):
    """A version of a subject; it can also be read by number if a readable version refers to it."""

    reads_parts = True

    def authorize(self) -> None:
        """Refuse callers who may read the version neither by its subject nor by a reference."""
        number = str(self.kwargs["version"])
        is_read = self.request.method in ("GET", "HEAD") and number.isascii() and number.isdigit() and len(number) < 10
        if not is_read or not self.visible.has_version(self.named_subject, int(number)):
            super().authorize()


class GoogleVersion(VersionView):
    """`…/subjects/{subject}/versions/{version}`."""

    def get(self, request: Request, version: str, **address: Any) -> Response:
        """Return the version with its schema."""
        info = selectors.get_version(self.registry, self.named_subject, version, deleted=flag(request, "deleted"))
        return marked(Response(version_answer(request, info, self.context)), info.status)

    def delete(self, request: Request, version: str, **address: Any) -> Any:
        """Soft-delete, or with `permanent` delete permanently; returns the version number."""
        number = delete_version(
            registry=self.resource.key,
            subject=self.named_subject,
            version=version,
            by=self.actor,
            permanent=flag(request, "permanent"),
        )
        return http_body(request, number)


class VersionText(VersionView):
    """`…/subjects/{subject}/versions/{version}/schema`."""

    def get(self, request: Request, version: str, **address: Any) -> Any:
        """Return only the schema's text."""
        info = selectors.get_version(self.registry, self.named_subject, version, deleted=flag(request, "deleted"))
        return _text(request, info.schema, info.status)


class ReferencedBy(RegistryView):
    """`…/subjects/{subject}/versions/{version}/referencedby`."""

    def get(self, request: Request, version: str, **address: Any) -> Any:
        """Return the ids of the schemas that refer to it."""
        ids = selectors.referenced_by(self.registry, self.named_subject, version, visible=self.visible)
        return http_body(request, ids)


class SchemaTypes(RegistryView):
    """`…/schemas/types`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Any:
        """Return the formats that can be registered."""
        return http_body(request, sorted(FORMATS))


class SchemaView(RegistryView):
    """A call for a schema id, which belongs to the context of the URL or of the parameter `subject`."""

    reads_parts = True
    scope_subject: SubjectName

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Read the URL and the parameter."""
        super().initial(request, *args, **kwargs)
        self.scope_subject = parse_subject(request.query_params.get("subject", ""), context=self.context)

    def versions_of(self, schema: str, *, deleted: bool) -> list[tuple[SubjectName, int]]:
        """Return the versions with the schema, only the given subject's if there is one. Raises SchemaNotFound."""
        versions = visible_versions_of_schema(
            self.visible, schema_id(schema), context=self.scope_subject.context, deleted=deleted
        )
        return [found for found in versions if self.scope_subject.subject in ("", found[0].subject)]

    def info(self, schema: str) -> SchemaInfo:
        """Return the definition. Raises SchemaNotFound, InvalidInput."""
        if not self.scope_subject.subject:
            return visible_schema(self.visible, schema_id(schema), context=self.scope_subject.context)
        number, is_readable = schema_id(schema), self.visible.has_subject(self.scope_subject)
        version = selectors.get_version_of_schema(self.registry, number, self.scope_subject) if is_readable else None
        if version is None:
            raise SchemaNotFound(f"Subject '{self.scope_subject.qualified}' has no schema {schema}.", schema_id=schema)
        return replace(version.schema, status=version.status)


class SchemaById(SchemaView):
    """`…/schemas/ids/{id}`."""

    def get(self, request: Request, schema: str, **address: Any) -> Response:
        """Return the definition."""
        info = self.info(schema)
        return marked(Response(schema_answer(request, info)), info.status)


class SchemaText(SchemaView):
    """`…/schemas/ids/{id}/schema`."""

    def get(self, request: Request, schema: str, **address: Any) -> Any:
        """Return only the schema's text."""
        info = self.info(schema)
        return _text(request, info, info.status)


class SubjectsOfSchema(SchemaView):
    """`…/schemas/ids/{id}/subjects`."""

    def get(self, request: Request, schema: str, **address: Any) -> Any:
        """Return the names of the subjects that have it."""
        versions = self.versions_of(schema, deleted=flag(request, "deleted"))
        return http_body(request, sorted({subject_label(subject, self.context) for subject, _ in versions}))


class VersionsOfSchema(SchemaView):
    """`…/schemas/ids/{id}/versions`."""

    def get(self, request: Request, schema: str, **address: Any) -> Any:
        """Return the subjects and versions that have it."""
        versions = self.versions_of(schema, deleted=flag(request, "deleted"))
        pairs = [{"subject": subject_label(subject, self.context), "version": number} for subject, number in versions]
        return http_body(request, pairs)


def _text(request: Request, info: SchemaInfo, status: StatusInfo | None) -> Any:
    response = http_body(request, info.text, content_type=JSON if format_of(info.schema_type).is_json else TEXT)
    return marked(response, status)


class Compatibility(RegistryView):
    """`…/compatibility/subjects/{subject}/versions[/{version}]`."""

    def post(self, request: Request, version: str | None = None, **address: Any) -> Response:
        """Check whether the schema could be registered: against one version, or those that the level requires."""
        body = read_schema(request, CHECK)
        if not self.named_subject.subject:
            raise InvalidName("The address has no subject.", field="name")
        verbose = body.pop("verbose", False) or flag(request, "verbose")
        require_references(self.visible, body.get("references", ()), context=self.named_subject.context)
        verdict = selectors.check_proposal(self.registry, self.named_subject, version=version, **body)
        result: dict[str, Any] = {"is_compatible": verdict.is_compatible}
        return Response({**result, "messages": verdict.messages} if verbose else result)

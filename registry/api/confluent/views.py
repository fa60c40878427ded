"""Confluent's registry API: subjects, versions, schemas, compatibility. Each call is one service or selector."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.confluent.answers import schema_answer, version_answer
from registry.api.confluent.base import ConfluentView
from registry.api.confluent.negotiation import RENDERERS, TextRenderer
from registry.api.confluent.requests import SchemaBody, flag, page, schema_body
from registry.errors import InvalidSchema, SchemaNotFound, SubjectNotFound
from registry.formats import FORMATS
from registry.subjects import selectors
from registry.subjects.names import DEFAULT_CONTEXT, check_context
from registry.subjects.selectors.listing import ALL_CONTEXTS
from registry.subjects.selectors.versions import get_version, list_versions
from registry.subjects.services import delete_subject, delete_version, register_version
from registry.subjects.services.registration import submission_identity


class Root(ConfluentView):
    """`GET /`."""

    def get(self, request: Request, **address: Any) -> Response:
        """An empty object, by which clients see that the server is there."""
        return Response({})

    def post(self, request: Request, **address: Any) -> Response:
        """The same."""
        return Response({})


class SchemaTypes(ConfluentView):
    """`GET /schemas/types`."""

    def get(self, request: Request, **address: Any) -> Response:
        """The formats that can be registered."""
        return Response(sorted(FORMATS))


class Contexts(ConfluentView):
    """`GET /contexts`."""

    def get(self, request: Request, **address: Any) -> Response:
        """The contexts' names, `.` among them."""
        return Response(page(request, selectors.list_contexts(self.registry)))


class Subjects(ConfluentView):
    """`GET /subjects`."""

    def get(self, request: Request, **address: Any) -> Response:
        """Qualified names, of every context unless the address or `subjectPrefix` names one."""
        prefix = request.query_params.get("subjectPrefix", "")
        context: str | None = self.context if "context" in address else None
        if prefix.startswith(ALL_CONTEXTS):
            context, prefix = None, prefix.removeprefix(ALL_CONTEXTS)
        elif prefix.startswith(":."):
            name, _, prefix = prefix[1:].partition(":")
            context = check_context(name)
        elif prefix and context is None:
            context = DEFAULT_CONTEXT
        names = selectors.list_subjects(
            self.registry,
            context=context,
            prefix=prefix,
            deleted=flag(request, "deleted"),
            deleted_only=flag(request, "deletedOnly"),
        )
        return Response(page(request, names))


class SubjectView(ConfluentView):
    """`/subjects/{subject}`."""

    def post(self, request: Request, **address: Any) -> Response:
        """Look up a schema. 40401 without such a subject, 40403 where it has no such schema."""
        body = schema_body(request)
        deleted = flag(request, "deleted") or flag(request, "lookupDeletedSchema")
        selectors.list_versions(self.registry, self.named_subject, deleted=deleted)
        for normalize in (flag(request, "normalize") or None, False):
            identity = _identity(self, body, normalize)
            found = selectors.find_version(self.registry, self.named_subject, identity, deleted=deleted)
            if found is not None:
                return Response(version_answer(found))
        raise SchemaNotFound("Schema not found")

    def delete(self, request: Request, **address: Any) -> Response:
        """Soft-delete, or remove with `permanent`."""
        numbers = delete_subject(
            registry=self.registry.name,
            subject=self.named_subject,
            by=self.actor,
            permanent=flag(request, "permanent"),
        )
        return Response(numbers)


def _identity(view: ConfluentView, body: SchemaBody, normalize: bool | None) -> str:
    return submission_identity(
        view.registry,
        view.named_subject,
        text=body.text,
        schema_type=body.schema_type,
        references=body.references,
        normalize=normalize,
        metadata=body.metadata,
        rule_set=body.rule_set,
    )


class Versions(ConfluentView):
    """`/subjects/{subject}/versions`."""

    def get(self, request: Request, **address: Any) -> Response:
        """Version numbers, ascending."""
        live = list_versions(self.registry, self.named_subject, deleted=_any_deleted(request))
        if flag(request, "deletedOnly"):
            try:
                kept = set(list_versions(self.registry, self.named_subject))
            except SubjectNotFound:
                kept = set()
            live = [number for number in live if number not in kept]
        return Response(page(request, live))

    def post(self, request: Request, **address: Any) -> Response:
        """Register a schema; one that the subject has already keeps its id and version."""
        body = schema_body(request)
        done = register_version(
            registry=self.registry.name,
            subject=self.named_subject,
            text=body.text,
            by=self.actor,
            schema_type=body.schema_type,
            references=body.references,
            normalize=flag(request, "normalize") or None,
            metadata=body.metadata,
            rule_set=body.rule_set,
            force="asked for by the client" if flag(request, "force") else "",
        )
        stored = get_version(self.registry, self.named_subject, done.version)
        return Response({**version_answer(stored), "id": done.schema_id})


def _any_deleted(request: Request) -> bool:
    return flag(request, "deleted") or flag(request, "deletedOnly")


class Version(ConfluentView):
    """`/subjects/{subject}/versions/{version}`."""

    def get(self, request: Request, version: str, **address: Any) -> Response:
        """The version, its schema included."""
        info = get_version(self.registry, self.named_subject, version, deleted=flag(request, "deleted"))
        return Response(version_answer(info))

    def delete(self, request: Request, version: str, **address: Any) -> Response:
        """Soft-delete, or remove with `permanent`."""
        number = delete_version(
            registry=self.registry.name,
            subject=self.named_subject,
            version=version,
            by=self.actor,
            permanent=flag(request, "permanent"),
        )
        return Response(number)


class VersionText(ConfluentView):
    """`/subjects/{subject}/versions/{version}/schema`."""

    renderer_classes = (*RENDERERS, TextRenderer)

    def get(self, request: Request, version: str, **address: Any) -> Response:
        """The schema's text alone."""
        info = get_version(self.registry, self.named_subject, version, deleted=flag(request, "deleted"))
        return _text(info.schema.text, request)


class ReferencedBy(ConfluentView):
    """`/subjects/{subject}/versions/{version}/referencedby`."""

    def get(self, request: Request, version: str, **address: Any) -> Response:
        """Ids of the schemas that refer to it."""
        ids = selectors.referenced_by(self.registry, self.named_subject, version, deleted=flag(request, "deleted"))
        return Response(page(request, ids))


class SchemaById(ConfluentView):
    """`/schemas/ids/{id}`."""

    def get(self, request: Request, schema_id: int, **address: Any) -> Response:
        """The definition."""
        return Response(schema_answer(selectors.get_schema(self.registry, schema_id, context=_context(self, request))))


class SchemaTextById(ConfluentView):
    """`/schemas/ids/{id}/schema`."""

    renderer_classes = (*RENDERERS, TextRenderer)

    def get(self, request: Request, schema_id: int, **address: Any) -> Response:
        """The schema's text alone."""
        info = selectors.get_schema(self.registry, schema_id, context=_context(self, request))
        return _text(info.text, request)


class SubjectsOfSchema(ConfluentView):
    """`/schemas/ids/{id}/subjects`."""

    def get(self, request: Request, schema_id: int, **address: Any) -> Response:
        """Names of the subjects that have it."""
        return Response(page(request, sorted({info.subject.qualified for info in _versions(self, request, schema_id)})))


class VersionsOfSchema(ConfluentView):
    """`/schemas/ids/{id}/versions`."""

    def get(self, request: Request, schema_id: int, **address: Any) -> Response:
        """Subjects and versions that have it."""
        infos = _versions(self, request, schema_id)
        pairs = [{"subject": info.subject.qualified, "version": info.version} for info in infos]
        return Response(page(request, pairs))


def _versions(view: ConfluentView, request: Request, schema_id: int) -> list[selectors.VersionInfo]:
    return selectors.versions_of_schema(
        view.registry, schema_id, context=_context(view, request), deleted=flag(request, "deleted")
    )


def _context(view: ConfluentView, request: Request) -> str:
    """Ids belong to a context; `subject=:.ctx:` names another than the address does."""
    subject = request.query_params.get("subject", "")
    return check_context(subject[1:].partition(":")[0]) if subject.startswith(":.") else view.context


def _text(text: str, request: Request) -> Response:
    """The raw text as it stands; a JSON renderer would quote it."""
    accepted = request.accepted_renderer.media_type
    response = Response(text, content_type=accepted)
    request.accepted_renderer = TextRenderer()
    return response


class Compatibility(ConfluentView):
    """`/compatibility/subjects/{subject}/versions[/{version}]`."""

    def post(self, request: Request, version: str | None = None, **address: Any) -> Response:
        """Whether the schema could be registered: against one version, or those that the level names."""
        verbose = flag(request, "verbose")
        body = schema_body(request)
        try:
            verdict = selectors.check_proposal(
                self.registry,
                self.named_subject,
                text=body.text,
                schema_type=body.schema_type,
                references=body.references,
                version=version,
            )
        except InvalidSchema as error:
            if not verbose:
                raise
            return Response({"is_compatible": False, "messages": [error.message]})
        answer: dict[str, Any] = {"is_compatible": verdict.is_compatible}
        if verbose:
            answer["messages"] = verdict.messages
        return Response(answer)

"""Confluent's registry API: schemas by id and by GUID, and the server's formats, contexts and metadata."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings

from registry.api.confluent.associations import NONE, search_filters
from registry.api.confluent.base import ConfluentView
from registry.api.confluent.http import JSON, TEXT, Request, Response
from registry.api.confluent.serializers import (
    association_answer,
    flag,
    page,
    references_answer,
    schema_answer,
    subject_prefix,
    tags_answer,
    version_answer,
    window,
)
from registry.api.response_marks import depend_on, marked
from registry.errors import SchemaNotFound
from registry.formats import FORMATS
from registry.subjects import selectors
from registry.subjects.permissions import visible_schema, visible_schemas_of_guid, visible_versions_of_schema
from registry.subjects.services import delete_context
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, parse_subject
from registry.subjects.versions.versions import SchemaInfo, VersionInfo

#: the most versions on a page of `GET /schemas`, and its default size
MOST_SCHEMAS = 1000


class Schemas(ConfluentView):
    """`GET /schemas`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """Return versions by prefix of their subjects' names."""
        context, prefix = subject_prefix(request, self.context if "context" in address else None)
        offset, limit = window(request, most=MOST_SCHEMAS)
        chosen_filters = search_filters(request)
        if chosen_filters is None:
            association_filter = None
        else:
            by, lifecycles = chosen_filters
            association_filter = selectors.AssociationFilter(
                by.resource_type, by.types, lifecycles - {NONE}, NONE in lifecycles
            )
        versions = selectors.search_versions(
            self.registry,
            context=context,
            prefix=prefix,
            deleted=flag(request, "deleted"),
            latest_only=flag(request, "latestOnly"),
            rule_type=request.query_params.get("ruleType", ""),
            aliases=flag(request, "aliases"),
            associations=association_filter,
            offset=offset,
            limit=limit,
            visible=self.visible,
        )
        return Response(
            [
                version_answer(
                    item.info,
                    aliases=list(item.aliases),
                    associations=[association_answer(user) for user in item.associations],
                )
                for item in versions
            ]
        )


#: the value of the parameter `text` for a version's text as it was sent
SUBMITTED: Final = "submitted"


class SchemaIdView(ConfluentView):
    """A call for an id, in the context or the subject of the parameter `subject`.

    An unreadable subject is treated as one that doesn't exist.
    """

    reads_parts = True
    scope_subject: SubjectName | None

    def read_address(self, **kwargs: Any) -> None:
        """Read the URL; the parameter names a subject, a context, or both."""
        super().read_address(**kwargs)
        text = self.request.query_params.get("subject", "")
        self.scope = parse_subject(text, context=self.context) if text else SubjectName(self.context, "")
        self.context = self.scope.context
        self.scope_subject = self.scope if self.scope.subject else None

    def sought(self) -> SubjectName | None:
        """Return the parameter's subject."""
        return self.scope_subject

    def take(self, subject: SubjectName) -> None:
        """Use that subject as the scope."""
        self.scope_subject = subject

    @property
    def schema_id(self) -> int:
        """The id in the URL. Raises SchemaNotFound for one that no schema can have."""
        text = str(self.kwargs["schema_id"])
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()) or text.startswith("-") or len(digits) > 10:
            raise SchemaNotFound(f"Schema {text[:40]} not found")
        return int(text)

    def definition(self) -> tuple[SchemaInfo, VersionInfo | None]:
        """Return the definition, and the version of the given subject. Raises SchemaNotFound.

        If a subject without a context doesn't have the id, the other contexts are searched, then the id without the
        subject.
        """
        if self.scope_subject is None:
            return visible_schema(self.visible, self.schema_id, context=self.context), None
        for name in self.and_elsewhere(self.scope_subject):
            if not self.visible.has_subject(name):
                continue
            version = selectors.get_version_of_schema(self.registry, self.schema_id, name)
            if version is not None:
                return version.schema, version
        if self.scope_subject.context != DEFAULT_CONTEXT:
            raise SchemaNotFound(f"Schema {self.schema_id} not found")
        return visible_schema(self.visible, self.schema_id), None

    def found(self) -> tuple[SchemaInfo, VersionInfo | None]:
        """Return `definition`; declares that only registrations under these subject names can change the answer."""
        schema, version = self.definition()
        if self.scope_subject is not None and version is not None:
            depend_on(self.request.META, (self.scope, self.scope_subject))
        elif self.scope_subject is None and schema.status is None:  # a status depends on all its versions
            depend_on(self.request.META, ())
        return schema, version

    def versions(self) -> list[tuple[SubjectName, int]]:
        """Return the subjects and numbers of the versions that have the definition. Raises SchemaNotFound."""
        schema, _ = self.definition() if self.scope_subject else (None, None)
        context = schema.context if schema else self.context
        return visible_versions_of_schema(
            self.visible, self.schema_id, context=context, deleted=flag(self.request, "deleted")
        )


class SchemaById(SchemaIdView):
    """`/schemas/ids/{id}`."""

    has_etag = True

    def get(self, request: Request, **address: Any) -> Response:
        """Return the definition; with the version if a subject was given."""
        schema, version = self.found()
        more = in_form(self, schema, version) | found_tags(self, schema)
        if version is not None:
            more |= {"subject": version.subject.qualified, "version": version.version}
        if flag(request, "fetchMaxId") and self.visible.is_whole:  # it reveals how many other schemas exist
            depend_on(request.META, None)
            more["maxId"] = selectors.last_schema_id(self.registry, schema.context)
        return marked(Response(schema_answer(schema, **more)), version.status if version else schema.status)


class SchemaTextById(SchemaIdView):
    """`/schemas/ids/{id}/schema`."""

    media_types = (*JSON, TEXT)
    has_etag = True

    def get(self, request: Request, **address: Any) -> Response:
        """Return only the schema's text."""
        schema, version = self.found()
        text = in_form(self, schema, version).get("schema", schema.text)
        return marked(Response(text, is_raw=True), version.status if version else schema.status)


class SubjectsOfSchema(SchemaIdView):
    """`/schemas/ids/{id}/subjects`."""

    def get(self, request: Request, **address: Any) -> Response:
        """Return the names of the subjects that have it."""
        return Response(page(request, sorted({subject.qualified for subject, _ in self.versions()})))


class VersionsOfSchema(SchemaIdView):
    """`/schemas/ids/{id}/versions`."""

    def get(self, request: Request, **address: Any) -> Response:
        """Return the subjects and versions that have it."""
        pairs = [{"subject": subject.qualified, "version": number} for subject, number in self.versions()]
        return Response(page(request, pairs))


class SchemaByGuid(ConfluentView):
    """`/schemas/guids/{guid}`."""

    has_etag = True
    reads_parts = True

    def get(self, request: Request, guid: str, **address: Any) -> Response:
        """Return the definition, which is the same in every context that has it."""
        schema = visible_schemas_of_guid(self.visible, guid)[0]
        return marked(Response(schema_answer(schema, **in_form(self, schema))), schema.status)


class IdsOfGuid(ConfluentView):
    """`/schemas/guids/{guid}/ids`."""

    reads_parts = True

    def get(self, request: Request, guid: str, **address: Any) -> Response:
        """Return its ids by context."""
        schemas = visible_schemas_of_guid(self.visible, guid)
        return Response([{"context": schema.context, "id": schema.schema_id} for schema in schemas])


def in_form(view: ConfluentView, schema: SchemaInfo, version: VersionInfo | None = None) -> dict[str, Any]:
    """Return what the parameters `text`, `format` and `referenceFormat` change in a definition's answer.

    `text=submitted` is a version's text as it was sent, with comments; an id alone has no submitted text.
    """
    parameters = view.request.query_params
    changed: dict[str, Any] = {}
    if parameters.get("text") == SUBMITTED and version is not None:
        changed["schema"] = version.submitted
    if (form := parameters.get("format", "")).strip():
        changed["schema"] = selectors.text_in_form(view.registry, schema, form)
    if parameters.get("referenceFormat") == "qualified":
        changed["references"] = references_answer(schema.references, context=schema.context)
    return changed


def found_tags(view: ConfluentView, schema: SchemaInfo) -> dict[str, Any]:
    """Return what the parameter `findTags` adds: records and fields with one of those tags (`*`: any)."""
    tags = [text for text in view.request.query_params.getlist("findTags") if text]
    if not tags:
        return {}
    return {"schemaTags": tags_answer(selectors.find_tags(view.registry, schema, tags))}


class Root(ConfluentView):
    """`GET /`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """Return an empty object, which clients use to check that the server runs."""
        return Response({})

    def post(self, request: Request, **address: Any) -> Response:
        """Return an empty object."""
        return Response({})


class SchemaTypes(ConfluentView):
    """`GET /schemas/types`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """Return the formats that can be registered."""
        return Response(sorted(FORMATS))


class Contexts(ConfluentView):
    """`GET /contexts`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """Return the contexts' names, including `.`."""
        prefix = request.query_params.get("contextPrefix", "")
        names = [name for name in selectors.list_contexts(self.registry, self.visible) if name.startswith(prefix)]
        return Response(page(request, names))


class ContextView(ConfluentView):
    """`/contexts/{context}`."""

    def delete(self, request: Request, **address: Any) -> Response:
        """Delete a context without subjects; 42211 if it has any."""
        delete_context(registry=self.registry.name, context=self.context, by=self.actor)
        return Response(status=204)


class ClusterId(ConfluentView):
    """`GET /v1/metadata/id`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """Return the registry's identity, by which clients distinguish servers."""
        clusters = {
            "kafka-cluster": f"{self.registry.project}.{self.registry.location}",
            "schema-registry-cluster": self.registry.name,
        }
        return Response({"scope": {"path": [], "clusters": clusters}})


class ServerVersion(ConfluentView):
    """`GET /v1/metadata/version`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """Return the product's version."""
        return Response({"version": settings.PRODUCT_VERSION, "commitId": settings.COMMIT_ID})


class Deployment(ConfluentView):
    """`GET /v1/metadata/deployment`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """Return no attributes: the deployment isn't disclosed."""
        return Response({"attributes": {}})

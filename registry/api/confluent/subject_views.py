"""Confluent's registry API: subjects, versions, compatibility, and changes of only tags and metadata."""

from __future__ import annotations

from typing import Any

from registry.api.confluent.base import ConfluentView
from registry.api.confluent.http import JSON, TEXT, Request, Response
from registry.api.confluent.schema_views import found_tags, in_form
from registry.api.confluent.serializers import (
    flag,
    number_between,
    object_body,
    page,
    read_tags,
    registered_answer,
    subject_prefix,
    takes_more_than_the_id,
    typed,
    version_answer,
    window,
)
from registry.api.response_marks import marked
from registry.errors import (
    InvalidInput,
    InvalidRuleSet,
    InvalidSchema,
    SchemaNotFound,
    SubjectNotFound,
    VersionNotFound,
)
from registry.formats import format_of
from registry.subjects import selectors
from registry.subjects.listing.listing import ALL_CONTEXTS
from registry.subjects.permissions import require_references, require_visible
from registry.subjects.policy import data_contracts
from registry.subjects.registration.submission import look_up, prepare
from registry.subjects.services import RegisteredVersion, delete_subject, delete_version, register_version
from registry.subjects.usage.evidence import in_use_header
from registry.subjects.versions.lookup import get_subject
from registry.subjects.versions.one_version import get_version
from registry.subjects.versions.versions import SchemaInfo, VersionInfo, list_versions


class ConfluentSubjects(ConfluentView):
    """`GET /subjects`."""

    reads_parts = True

    def get(self, request: Request, **address: Any) -> Response:
        """Return qualified names, of every context unless the URL or `subjectPrefix` names one."""
        inner = self.context if "context" in address else None
        context, prefix = subject_prefix(request, inner, default=ALL_CONTEXTS)
        offset, limit = window(request)
        names = selectors.list_subjects(
            self.registry,
            context=context,
            prefix=prefix,
            deleted=flag(request, "deleted"),
            deleted_only=flag(request, "deletedOnly"),
            offset=offset,
            limit=limit,
            visible=self.visible,
        )
        return Response(names)


class SubjectView(ConfluentView):
    """`/subjects/{subject}`."""

    def post(self, request: Request, **address: Any) -> Response:
        """Look up a schema. 40401 if the subject doesn't exist, 40403 if it doesn't have the schema."""
        body = self.schema_body()
        normalize = flag(request, "normalize") or None
        deleted = flag(request, "deleted") or flag(request, "lookupDeletedSchema")
        for name in self.and_elsewhere(self.named_subject) if body.text.strip() else ():
            require_references(self.visible, body.references, context=name.context)
            submission = prepare(
                self.registry,
                name,
                body.text,
                body.schema_type,
                body.references,
                body.metadata,
                body.rule_set,
                is_new=False,
            )
            info = look_up(self.registry, name, submission, normalize=normalize, deleted=deleted)
            if info is not None:
                registered = version_answer(info, **in_submitted_form(self, info.schema, body.text))
                return marked(Response(registered), info.status)
        get_subject(self.registry, self.named_subject, deleted=deleted)
        raise SchemaNotFound("Schema not found")

    def delete(self, request: Request, **address: Any) -> Response:
        """Soft-delete, or with `permanent` delete permanently."""
        used = in_use_header(self.registry, self.named_subject)
        numbers = delete_subject(
            registry=self.registry.name, subject=self.named_subject, by=self.actor, permanent=flag(request, "permanent")
        )
        return Response(numbers, headers=used)


class SubjectMetadata(ConfluentView):
    """`/subjects/{subject}/metadata`."""

    reads_its_subject = True

    def get(self, request: Request, **address: Any) -> Response:
        """Return the newest version whose metadata has every property given by the pairs of `key` and `value`."""
        keys, values = (request.query_params.getlist(name) for name in ("key", "value"))
        pairs = dict(zip(keys, values, strict=False))
        info = selectors.latest_with_metadata(
            self.registry, self.named_subject, pairs, deleted=flag(request, "deleted")
        )
        return marked(Response(version_answer(info, **in_form(self, info.schema, info))), info.status)


class ConfluentVersions(ConfluentView):
    """`/subjects/{subject}/versions`."""

    reads_its_subject = True

    def get(self, request: Request, **address: Any) -> Response:
        """Return version numbers, ascending; with `deletedAsNegative` the soft-deleted ones are negative."""
        negative, only = flag(request, "deletedAsNegative"), flag(request, "deletedOnly")
        deleted = flag(request, "deleted") or only
        numbers = list_versions(self.registry, self.named_subject, deleted=deleted)
        if negative or only:
            live, every = self._live_and_all()
            numbers = [n if n in live else -n for n in every] if negative else [n for n in every if n not in live]
        return Response(page(request, numbers))

    def _live_and_all(self) -> tuple[set[int], list[int]]:
        every = list_versions(self.registry, self.named_subject, deleted=True)
        try:
            return set(list_versions(self.registry, self.named_subject)), every
        except SubjectNotFound:
            return set(), every

    def post(self, request: Request, **address: Any) -> Response:
        """Register a schema; if the subject has it already, id and version stay the same."""
        body, whole = self.schema_body(), takes_more_than_the_id(request)
        done = register_version(
            registry=self.registry,
            subject=self.named_subject,
            text=body.text,
            by=self.actor,
            schema_type=body.schema_type,
            references=body.references,
            normalize=flag(request, "normalize") or None,
            metadata=body.metadata,
            rule_set=body.rule_set,
            schema_id=body.schema_id,
            version=body.version,
            force="asked for by the client" if flag(request, "force") else "",
            tags_to_add=body.tags_to_add,
            tags_to_remove=body.tags_to_remove,
            propagate_tags=body.propagate_tags,
        )
        return registered(self, done, whole=whole, submitted=body.text)


def registered(view: ConfluentView, done: RegisteredVersion, *, whole: bool, submitted: str = "") -> Response:
    """Return the answer to a registration: the `whole` version, in the `submitted` form, or only the id."""
    info = done.info or get_version(view.registry, view.named_subject, done.version)
    if not whole:
        return marked(Response({"id": done.schema_id}), info.status)
    changed = in_submitted_form(view, info.schema, submitted)
    return marked(Response(registered_answer(info, **changed, id=done.schema_id)), info.status)


def in_submitted_form(view: ConfluentView, schema: SchemaInfo, submitted: str) -> dict[str, Any]:
    """Return what `in_form` changes; without `format`, a Protobuf schema sent as base64 is returned as base64.

    A client that sends descriptors keeps the answer's schema, and reads it as a descriptor when it decodes with the
    same object (docs/how-to/clients.md).
    """
    changed = in_form(view, schema)
    if "schema" not in changed and format_of(schema.schema_type).is_encoded(submitted):
        changed["schema"] = selectors.text_in_form(view.registry, schema, "serialized")
    return changed


class VersionView(ConfluentView):
    """A version of a subject; a subject without a context is searched in the other contexts too."""

    def authorize(self) -> None:
        """Allow reading a version by number also if a readable version refers to it."""
        number = str(self.kwargs["version"])
        is_read = self.request.method in ("GET", "HEAD") and number.isascii() and number.isdigit()
        if is_read and not self.visible.is_whole and len(number) < 10:
            require_visible(self.registry, self.actor)
            if all(self.visible.has_version(name, int(number)) for name in self.subjects):
                return
        super().authorize()

    def version(self, version: str) -> VersionInfo:
        """Return the version. Raises InvalidVersion, SubjectNotFound, VersionNotFound."""
        missing: SubjectNotFound | VersionNotFound | None = None
        for name in self.and_elsewhere(self.named_subject):
            try:
                return get_version(self.registry, name, version, deleted=flag(self.request, "deleted"))
            except (SubjectNotFound, VersionNotFound) as error:
                missing = missing or error
        assert missing is not None
        raise missing


class ConfluentVersion(VersionView):
    """`/subjects/{subject}/versions/{version}`."""

    reads_its_subject = True
    has_etag = True

    def get(self, request: Request, version: str, **address: Any) -> Response:
        """Return the version with its schema."""
        info = self.version(version)
        body = version_answer(info, **in_form(self, info.schema, info), **found_tags(self, info.schema))
        return marked(Response(body), info.status)

    def delete(self, request: Request, version: str, **address: Any) -> Response:
        """Soft-delete, or with `permanent` delete permanently."""
        used = in_use_header(self.registry, self.named_subject, version)
        number = delete_version(
            registry=self.registry.name,
            subject=self.named_subject,
            version=version,
            by=self.actor,
            permanent=flag(request, "permanent"),
        )
        return Response(number, headers=used)


class VersionText(VersionView):
    """`/subjects/{subject}/versions/{version}/schema`."""

    reads_its_subject = True
    media_types = (*JSON, TEXT)
    has_etag = True

    def get(self, request: Request, version: str, **address: Any) -> Response:
        """Return only the schema's text."""
        info = self.version(version)
        text = in_form(self, info.schema, info).get("schema", info.schema.text)
        return marked(Response(text, is_raw=True), info.status)


class ReferencedBy(ConfluentView):
    """`/subjects/{subject}/versions/{version}/referencedby`."""

    def get(self, request: Request, version: str, **address: Any) -> Response:
        """Return the ids of the schemas that refer to it."""
        ids = selectors.referenced_by(
            self.registry, self.named_subject, version, deleted=flag(request, "deleted"), visible=self.visible
        )
        return Response(page(request, ids))


class Compatibility(ConfluentView):
    """`/compatibility/subjects/{subject}/versions[/{version}]`."""

    def post(self, request: Request, version: str | None = None, **address: Any) -> Response:
        """Check whether the schema could be registered: against one version, or those that the level requires."""
        verbose = flag(request, "verbose")
        flag(request, "normalize")  # only validated: it changes no verdict
        body = self.schema_body()
        try:
            if not body.text.strip():
                raise InvalidSchema("Empty schema")
            require_references(self.visible, body.references, context=self.named_subject.context)
            verdict = selectors.check_proposal(
                self.registry,
                self.named_subject,
                text=body.text,
                schema_type=body.schema_type,
                references=body.references,
                version=version,
                metadata=body.metadata,
            )
        except InvalidSchema as error:
            if not verbose:
                raise
            return Response({"is_compatible": False, "messages": [error.message]})
        result: dict[str, Any] = {"is_compatible": verdict.is_compatible}
        if verbose:
            result["messages"] = verdict.messages
        return Response(result)


LATEST = -1


class Tags(VersionView):
    """`/subjects/{subject}/versions/{version}/tags`."""

    def post(self, request: Request, version: str, **address: Any) -> Response:
        """Register the version's schema again with other tags and another contract."""
        body, whole = object_body(request), takes_more_than_the_id(request)
        following = number_between(body, "newVersion", 0)
        metadata, rules = data_contracts.read_metadata(body.get("metadata")), self._rules(body, following)
        schema = self.version(version).schema
        done = register_version(
            registry=self.registry.name,
            subject=self.named_subject,
            text=schema.text,
            by=self.actor,
            schema_type=schema.schema_type,
            references=schema.references,
            metadata=data_contracts.with_version(schema.metadata if metadata is None else metadata, following),
            rule_set=rules,
            version=following,
            tags_to_add=read_tags(body, "tagsToAdd"),
            tags_to_remove=read_tags(body, "tagsToRemove"),
        )
        return registered(self, done, whole=whole)

    def _rules(self, body: dict[str, Any], following: int) -> data_contracts.Contract | None:
        """Return the requested rule set: complete, or as changes of the previous version's. Raises InvalidRuleSet."""
        whole = data_contracts.read_rule_set(body.get("ruleSet"))
        merged = data_contracts.read_rule_set(body.get("rulesToMerge"), "rulesToMerge")
        removed = typed(body, "rulesToRemove", list, None)
        if merged is None and removed is None:
            return whole
        if whole is not None:
            raise InvalidRuleSet("ruleSet should be omitted if specifying rulesToMerge or rulesToRemove")
        if not all(isinstance(name, str) for name in removed or ()):
            raise InvalidInput("/rulesToRemove must be an array of strings.")
        before = get_version(self.registry, self.named_subject, following - 1 if following > 1 else LATEST)
        return data_contracts.without_rules(
            data_contracts.merge_rule_sets(before.schema.rule_set, merged), removed or ()
        )

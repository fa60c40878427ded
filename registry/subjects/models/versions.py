"""Schemas, versions, their references and their status; and archived copies of permanently deleted versions."""

from __future__ import annotations

from typing import Self

from django.db import models

from registry.access.permission_filters import Extent, SubjectScopedQuerySet
from registry.subjects.models.registries import Context, Registry, Subject, SubjectLinkedQuerySet


class Schema(models.Model):
    """A definition with its id, which belongs to a context and is never reused.

    `identity` is the SHA-256 of type, canonical text, references, metadata and rule set: equal identities have the same
    id, unless an import assigned other ids.
    """

    context = models.ForeignKey(Context, on_delete=models.CASCADE, related_name="schemas", db_index=False)
    schema_id = models.PositiveIntegerField()
    schema_type = models.CharField(max_length=16)
    canonical = models.TextField()
    identity = models.CharField(max_length=64)
    fingerprint = models.CharField(max_length=64, help_text="equal in every registry that has the schema")
    guid = models.UUIDField(db_index=True)
    metadata = models.JSONField(null=True, blank=True)
    rule_set = models.JSONField(null=True, blank=True)
    imported = models.BooleanField(default=False, help_text="its id was given by an import")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["context", "schema_id"], name="one_schema_id"),
            models.UniqueConstraint(
                fields=["context", "identity"], condition=models.Q(imported=False), name="one_id_a_definition"
            ),
            # the available formats depend on the installation: `registry.formats.FORMATS`
            models.CheckConstraint(
                condition=models.Q(schema_type__regex="^[A-Z][A-Z0-9_]*$"), name="schema_type_is_a_name"
            ),
            models.CheckConstraint(condition=models.Q(schema_id__gte=1), name="schema_id_from_one"),
        ]
        indexes = [
            models.Index(fields=["identity"], name="schema_by_identity"),
            models.Index(fields=["fingerprint"], name="schema_by_fingerprint"),
            # for comparing thousands of schemas without reading their texts
            models.Index(fields=["id"], include=["fingerprint", "schema_id"], name="schema_without_text"),
            # few have their version's number in their metadata
            models.Index(
                fields=["id"],
                condition=models.Q(metadata__properties__has_key="confluent:version"),
                name="schema_with_its_number",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.schema_type} {self.schema_id}"


class SchemaVersionQuerySet(SubjectLinkedQuerySet["SchemaVersion"]):
    """Versions."""

    subject = "subject__"


class SchemaVersion(models.Model):
    """A version of a subject, with the submitted text and its own id.

    Spring's dialect uses that id as the schema id. `deleted_at` marks a soft-deleted version.
    """

    subject = models.ForeignKey(Subject, on_delete=models.CASCADE, related_name="versions", db_index=False)
    version = models.PositiveIntegerField()
    schema = models.ForeignKey(Schema, on_delete=models.PROTECT, related_name="versions")
    submitted = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.TextField()
    channel = models.CharField(max_length=16, db_column="door")
    deleted_at = models.DateTimeField(null=True, blank=True)
    imported = models.BooleanField(default=False, db_default=False, help_text="its number was given by an import")

    objects = SchemaVersionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["subject", "version"], name="one_version"),
            models.UniqueConstraint(
                fields=["subject", "schema"],
                condition=models.Q(deleted_at=None, imported=False),
                name="one_live_version_a_schema",
            ),
            models.CheckConstraint(condition=models.Q(version__gte=1), name="versions_from_one"),
        ]
        indexes = [
            models.Index(
                fields=["subject", "-version"],
                include=["schema", "id"],
                condition=models.Q(deleted_at=None),
                name="newest_live_version",
            )
        ]

    def __str__(self) -> str:
        return f"{self.subject_id} v{self.version}"


class SchemaReference(models.Model):
    """A `name` in a schema's text that points to a version. A referenced version can't be deleted."""

    schema = models.ForeignKey(Schema, on_delete=models.CASCADE, related_name="references", db_index=False)
    position = models.PositiveSmallIntegerField()
    name = models.TextField()
    subject_name = models.TextField(help_text="as it was written, which may name another context")
    target = models.ForeignKey(SchemaVersion, on_delete=models.PROTECT, related_name="referrers")

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["schema", "position"], name="one_reference_a_position")]

    def __str__(self) -> str:
        return f"{self.name} → {self.subject_name}"


class VersionStatus(models.Model):
    """A version that shouldn't be used any more; an active version has no row.

    Deprecated: use another one, by `ends_at` if given. Retired: not for new data, but still readable. Quarantined:
    added without a request and not trusted; it is neither promoted nor suggested as the latest.
    """

    DEPRECATED, RETIRED, QUARANTINED = "deprecated", "retired", "quarantined"
    STATUSES = (DEPRECATED, RETIRED, QUARANTINED)

    version = models.OneToOneField(SchemaVersion, on_delete=models.CASCADE, related_name="status")
    status = models.CharField(max_length=16, db_column="standing")
    message = models.TextField()
    ends_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.TextField()
    decided_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "subjects_versionstanding"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status__in=("deprecated", "retired", "quarantined")), name="known_standing"
            ),
            models.CheckConstraint(condition=~models.Q(message=""), name="standing_says_why"),
        ]

    def __str__(self) -> str:
        return f"{self.version_id}: {self.status}"


class ArchivedCopyQuerySet(SubjectScopedQuerySet["ArchivedCopy"]):
    """Copies of subjects; a file's name isn't a subject."""

    subject_name = "name"

    def covered_by(self, extent: Extent) -> Self:
        """Return the copies of subjects in the extent."""
        return super().covered_by(extent).filter(kind=ArchivedCopy.DELETED)


class ArchivedCopy(models.Model):
    """Versions outside any subject: permanently deleted ones, or those of an uploaded file.

    `content` is JSON for the former (registry/subjects/archive/archive.py) and an export file for the latter. A row is
    deleted at `until`, on request, and when a file has been imported.
    """

    DELETED, SENT = "deleted", "sent"

    registry = models.ForeignKey(Registry, on_delete=models.CASCADE, related_name="archived_copies", db_index=False)
    kind = models.CharField(max_length=7, choices=[(kind, kind) for kind in (DELETED, SENT)])
    name = models.TextField(help_text="the subject's qualified name, or what the file was called")
    versions = models.PositiveIntegerField()
    content = models.TextField()
    made_at = models.DateTimeField()
    made_by = models.TextField()
    until = models.DateTimeField(db_index=True)

    objects = ArchivedCopyQuerySet.as_manager()

    class Meta:
        db_table = "subjects_keptcopy"
        constraints = [
            models.CheckConstraint(condition=models.Q(kind__in=("deleted", "sent")), name="known_kind_of_copy"),
            models.CheckConstraint(condition=~models.Q(name=""), name="copy_has_a_name"),
            models.CheckConstraint(condition=models.Q(until__gt=models.F("made_at")), name="copy_is_kept_for_a_while"),
        ]
        indexes = [models.Index(fields=["registry", "kind", "-id"], name="copies_newest_first")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} of {self.registry_id}"

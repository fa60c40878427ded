"""What is kept under a subject: versions, each of one schema, with the references of that schema.

A foreign key without an index of its own is the first column of a unique one: each index costs every registration.
"""

from __future__ import annotations

from django.db import models

from registry.subjects.models.places import Context, Subject

SCHEMA_TYPES = ("AVRO", "PROTOBUF", "JSON")


class Schema(models.Model):
    """A definition with its id, which belongs to a context and is given once.

    `identity` is the SHA-256 of type, canonical text, references, metadata and rule set: equal means
    the same id, but where an import brought ids of its own.
    """

    context = models.ForeignKey(Context, on_delete=models.CASCADE, related_name="schemas", db_index=False)
    schema_id = models.PositiveIntegerField()
    schema_type = models.CharField(max_length=8, choices=[(kind, kind) for kind in SCHEMA_TYPES])
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
            models.CheckConstraint(condition=models.Q(schema_type__in=SCHEMA_TYPES), name="known_schema_type"),
            models.CheckConstraint(condition=models.Q(schema_id__gte=1), name="schema_id_from_one"),
        ]
        indexes = [
            models.Index(fields=["identity"], name="schema_by_identity"),
            models.Index(fields=["fingerprint"], name="schema_by_fingerprint"),
            # thousands are compared at once by these, without their texts
            models.Index(fields=["id"], include=["fingerprint", "schema_id"], name="schema_without_text"),
        ]

    def __str__(self) -> str:
        return f"{self.schema_type} {self.schema_id}"


class SchemaVersion(models.Model):
    """A version of a subject, with the text as it was submitted and an id of its own.

    That id is what Spring's dialect calls a schema's id. A version is soft-deleted by `deleted_at`.
    """

    subject = models.ForeignKey(Subject, on_delete=models.CASCADE, related_name="versions", db_index=False)
    version = models.PositiveIntegerField()
    schema = models.ForeignKey(Schema, on_delete=models.PROTECT, related_name="versions")
    submitted = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.TextField()
    door = models.CharField(max_length=16)
    deleted_at = models.DateTimeField(null=True, blank=True)
    imported = models.BooleanField(default=False, db_default=False, help_text="its number was given by an import")

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
    """`name` in a schema's text means that version. A version that is referred to can't be removed."""

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

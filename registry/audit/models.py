"""The table of all changes, which only triggers write, and the end of its chain."""

from __future__ import annotations

from django.contrib.postgres.indexes import HashIndex
from django.db import models
from django.db.models.fields.json import KeyTextTransform

from registry.audit.time_travel import CREATED


class AuditEvent(models.Model):
    """A row that was inserted, updated or deleted: by whom, through which channel, and why."""

    at = models.DateTimeField(db_index=True)
    transaction_id = models.BigIntegerField(help_text="PostgreSQL's number of the transaction that changed the row")
    actor = models.TextField()
    channel = models.TextField(db_column="door")
    origin = models.TextField(blank=True, help_text="from where: the caller's address, and its token's name")
    why = models.TextField(blank=True)
    operation = models.CharField(max_length=6, choices=[(op, op) for op in ("INSERT", "UPDATE", "DELETE")])
    table = models.TextField()
    row_id = models.TextField()
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    position = models.BigIntegerField(null=True, unique=True, help_text="place in the chain of seals; null: not sealed")
    seal = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the seal before it and of this event")

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["table", "row_id"], name="audit_of_a_row"),
            models.Index(fields=["id"], condition=models.Q(position=None), name="audit_not_sealed"),
            models.Index(fields=["actor", "id"], name="audit_of_an_actor"),
            models.Index(fields=["channel", "id"], name="audit_of_a_door"),
            # the past is read from later changes; most events are inserts, which this index leaves out
            models.Index(fields=["table", "at"], condition=~models.Q(operation="INSERT"), name="audit_of_changes"),
            # the rows of the other tables have a column with their time of insertion
            models.Index(
                fields=["table", "at"],
                condition=models.Q(operation="INSERT") & ~models.Q(table__in=sorted(CREATED)),
                name="audit_of_arrivals",
            ),
            # a name may be too long for a B-tree
            HashIndex(
                KeyTextTransform("name", "before"),
                condition=models.Q(table="subjects_subject", operation="DELETE"),
                name="audit_of_gone_subjects",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.at:%Y-%m-%d %H:%M} {self.actor} {self.operation} {self.table} {self.row_id}"


class ChainHead(models.Model):
    """The single row with the end of the chain of seals; only the sealing function writes it.

    A chain whose last events were deleted still verifies link by link. This row shows that it was longer.
    """

    position = models.BigIntegerField()
    seal = models.CharField(max_length=64)
    sealed_at = models.DateTimeField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(pk=1), name="one_head_of_the_chain")]

    def __str__(self) -> str:
        return f"{self.position}:{self.seal}"

"""Which subjects a resource outside of the registry uses: a topic, for its keys or its values."""

from __future__ import annotations

from django.db import models

from registry.subjects.associations import ASSOCIATION_TYPES, LIFECYCLES, RESOURCE_TYPES, STRONG
from registry.subjects.models.places import Registry, Subject


class Association(models.Model):
    """A resource's use of a subject. STRONG: the resource owns the subject, WEAK: others may use it too.

    A STRONG one is frozen: it goes with its resource, and the subject with both.
    """

    registry = models.ForeignKey(Registry, on_delete=models.CASCADE, related_name="associations")
    subject = models.ForeignKey(Subject, on_delete=models.RESTRICT, related_name="associations")
    guid = models.UUIDField(unique=True)
    resource_namespace = models.CharField(max_length=256, db_collation="C")
    resource_name = models.CharField(max_length=256, db_collation="C")
    resource_id = models.CharField(max_length=1024, db_collation="C")
    resource_type = models.CharField(max_length=16, choices=[(kind, kind) for kind in RESOURCE_TYPES])
    association_type = models.CharField(max_length=8, choices=[(kind, kind) for kind in ASSOCIATION_TYPES])
    lifecycle = models.CharField(max_length=6, choices=[(kind, kind) for kind in LIFECYCLES])
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["registry", "resource_id", "resource_type", "association_type"],
                name="one_association_a_resource_id",
            ),
            models.UniqueConstraint(
                fields=[
                    "registry",
                    "resource_namespace",
                    "resource_name",
                    "resource_type",
                    "association_type",
                    "subject",
                ],
                name="one_association_a_name",
            ),
            models.UniqueConstraint(
                fields=["subject"], condition=models.Q(lifecycle=STRONG), name="one_owner_a_subject"
            ),
            models.CheckConstraint(condition=models.Q(lifecycle__in=LIFECYCLES), name="known_lifecycle"),
            models.CheckConstraint(
                condition=models.Q(association_type__in=ASSOCIATION_TYPES), name="known_association_type"
            ),
            models.CheckConstraint(condition=~models.Q(resource_id=""), name="association_has_resource_id"),
        ]

    def __str__(self) -> str:
        return f"{self.resource_name} {self.association_type} → {self.subject_id}"

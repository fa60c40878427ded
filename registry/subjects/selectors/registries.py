"""All registries with what is in them, and how the mirrors among them are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Sum

from registry.access.roles import Actor, may
from registry.subjects.models import Registry, SubjectActivity
from registry.subjects.selectors.remotes import MirrorState, mirror_of


@dataclass(frozen=True)
class RegistryEntry:
    """A registry, its live subjects and versions, and where it is mirrored from; `mirror` None for one of ours."""

    name: str
    kind: str
    subjects: int
    versions: int
    created_at: datetime
    mirror: MirrorState | None


def registries_for(actor: Actor) -> list[RegistryEntry]:
    """Those of the server's own place that the person may read something of, the default first. Two queries."""
    counts = {
        number: (subjects, versions)
        for number, subjects, versions in SubjectActivity.objects.order_by()
        .values_list("registry_id")
        .annotate(subjects=Count("*"), versions=Sum("live_versions"))
    }
    rows = Registry.objects.filter(project=settings.DEFAULT_PROJECT, location=settings.DEFAULT_LOCATION).order_by("pk")
    found = [row for row in rows if may(actor, "schema.read", registry=row.name)]
    found.sort(key=lambda row: row.name != settings.DEFAULT_REGISTRY)
    return [
        RegistryEntry(row.name, row.kind, *counts.get(row.pk, (0, 0)), row.created_at, mirror_of(row)) for row in found
    ]


def amounts_of(registry: Registry) -> tuple[int, int]:
    """How many live subjects and versions a registry has; one query."""
    found = SubjectActivity.objects.filter(registry_id=registry.pk).aggregate(
        subjects=Count("*"), versions=Sum("live_versions")
    )
    return found["subjects"], found["versions"] or 0

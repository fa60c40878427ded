"""Making registries."""

from __future__ import annotations

from django.conf import settings
from django.db import transaction

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.subjects.models import Context, Registry
from registry.subjects.names import DEFAULT_CONTEXT


@transaction.atomic
def ensure_registry(*, name: str, by: Actor, project: str = "", location: str = "") -> bool:
    """Make a registry of ours with its default context; False where it is there already. Raises NotAllowed."""
    require(by, "registry.manage", registry=name)
    record(by=by, why=f"make registry {name}")
    row, created = Registry.objects.get_or_create(
        project=project or settings.DEFAULT_PROJECT, location=location or settings.DEFAULT_LOCATION, name=name
    )
    Context.objects.get_or_create(registry=row, name=DEFAULT_CONTEXT)
    return created

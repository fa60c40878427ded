"""Making and removing registries, and the changes that obey a rule of the registry as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence

from django.conf import settings
from django.db import transaction

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.errors import InvalidName, OperationNotPermitted
from registry.formats.base import Reference
from registry.subjects import gate
from registry.subjects.models import (
    Association,
    Config,
    Context,
    Mode,
    Registry,
    Schema,
    SchemaReference,
    SchemaVersion,
    Subject,
)
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName
from registry.subjects.selectors.effective import effective_mode
from registry.subjects.selectors.places import get_registry
from registry.subjects.services.locks import lock_policy, retried
from registry.subjects.services.registration import RegisteredVersion, register_version

_REGISTRY_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
_PLACE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]{0,62}")


@transaction.atomic
def ensure_registry(*, name: str, by: Actor, project: str = "", location: str = "") -> bool:
    """Make a registry of ours with its default context; False where it is there already.

    Raises NotAllowed, and InvalidName for a name of registry, project or location that can't stand in an address.
    """
    require(by, "registry.manage", registry=name)
    _check(_REGISTRY_NAME, name, "registry", "1 to 63 letters, digits, _ and -, the first of them no digit and no -")
    for kind, value in (("project", project), ("location", location)):
        if value:
            _check(_PLACE_NAME, value, kind, "1 to 63 letters, digits and . : _ -, the first a letter or digit")
    record(by=by, why=f"make registry {name}")
    row, created = Registry.objects.get_or_create(
        project=project or settings.DEFAULT_PROJECT, location=location or settings.DEFAULT_LOCATION, name=name
    )
    Context.objects.get_or_create(registry=row, name=DEFAULT_CONTEXT)
    return created


def _check(pattern: re.Pattern[str], name: str, kind: str, wanted: str) -> None:
    if not pattern.fullmatch(name):
        raise InvalidName(f"{name[:80]!r} is not a {kind} name: it takes {wanted}.", name=name[:80], field=kind)


@retried
def delete_registry(*, name: str, by: Actor, project: str = "", location: str = "", is_mirror: bool = False) -> None:
    """Remove a registry with all that is registered in it; a mirror, which is READONLY, only where that is said.

    Raises RegistryNotFound, NotAllowed, ReleaseRequired, and OperationNotPermitted for a registry that is READONLY, that
    the other dialects answer with by default, or that promotions or scans are about.
    """
    place = get_registry(name, project=project, location=location)
    require(by, "registry.manage", registry=place.name)
    record(by=by, why=f"delete registry {place.name}")
    lock_policy(place, exclusive=True)
    gate.ask("registry.manage", place, "", by)  # READONLY isn't passed: all of it goes, so the mode is set first
    if not (is_mirror and place.kind == Registry.REMOTE):
        _refuse_readonly(place)
    _refuse_in_use(place)
    Association.objects.filter(registry=place).delete()
    SchemaReference.objects.filter(schema__context__registry=place).delete()
    SchemaVersion.objects.filter(subject__context__registry=place).delete()
    Schema.objects.filter(context__registry=place).delete()
    for model in (Config, Mode):
        model.objects.filter(registry=place).delete()
    Subject.objects.filter(context__registry=place).delete()
    Context.objects.filter(registry=place).delete()
    place.delete()


def _refuse_readonly(place: Registry) -> None:
    if effective_mode(place).mode.startswith("READONLY"):
        raise OperationNotPermitted(f"Registry {place.name} is in read-only mode; set it to READWRITE first.")


def _refuse_in_use(place: Registry) -> None:
    default = (settings.DEFAULT_PROJECT, settings.DEFAULT_LOCATION, settings.DEFAULT_REGISTRY)
    if (place.project, place.location, place.name) == default:
        raise OperationNotPermitted(f"Registry {place.name} is the server's default one and stays.")
    for relation in Registry._meta.related_objects:
        model = relation.related_model
        outside = model._meta.app_label != Registry._meta.app_label
        if outside and model._default_manager.filter(**{relation.field.name: place}).exists():
            raise OperationNotPermitted(
                f"Registry {place.name} is used by {model._meta.verbose_name_plural}; remove those first."
            )


@retried
def create_version(
    *,
    registry: str,
    subject: SubjectName,
    text: str,
    by: Actor,
    schema_type: str = "AVRO",
    references: Sequence[Reference] = (),
    normalize: bool | None = None,
    version: int = 0,
    schema_id: int | None = None,
) -> RegisteredVersion:
    """`register_version`, under the rule that a READONLY registry takes no new subject, whatever mode that one has.

    Raises as `register_version` does.
    """
    done = register_version(
        registry=registry,
        subject=subject,
        text=text,
        by=by,
        schema_type=schema_type,
        references=references,
        normalize=normalize,
        version=version,
        schema_id=schema_id,
    )
    # Looked at afterwards, under the locks that the registration holds; raising undoes it.
    place = get_registry(registry)
    mode = effective_mode(place, SubjectName(subject.context, "")).mode
    if done.created and mode.startswith(gate.READONLY) and _is_only_version(done):
        passes = gate.ask("version.register", place, subject.qualified, by)
        if not gate.stops(mode, passes=passes):
            return done
        raise OperationNotPermitted(
            f"Registry {place.name} is in read-only mode: the new subject {subject.qualified} can't be created.",
            mode=mode,
        )
    return done


def _is_only_version(done: RegisteredVersion) -> bool:
    others = SchemaVersion.objects.filter(subject__versions=done.version_id, deleted_at=None).exclude(
        pk=done.version_id
    )
    return not others.exists()

"""Requests for associations, with defaults filled in, and the errors they can raise. No database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from registry.errors import Conflict, InvalidInput, NotFound
from registry.formats import DEFAULT_FORMAT
from registry.formats.base import Reference
from registry.formats.tags import EntityTags
from registry.subjects.policy.data_contracts import Contract


class InvalidAssociation(InvalidInput):
    """An invalid property in a request for associations; the message names it."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(
            f"The association specified an invalid value for property: '{name}', detail: {detail}", property=name
        )


class AssociationNotFound(NotFound):
    """The resource doesn't have this association."""

    def __init__(self, resource: str) -> None:
        super().__init__(f"Association for '{resource}' not found.", resource=resource)


class AssociationForResourceExists(Conflict):
    """The resource has another association of that type."""

    def __init__(self, association_type: str, resource: str) -> None:
        super().__init__(f"An association of type '{association_type}' already exists for resource '{resource}'")


class AssociationForSubjectExists(Conflict):
    """The subject is in use, so it can't be owned or deleted."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"An association already exists for subject '{subject}'", subject=subject)


class StrongAssociationExists(Conflict):
    """The subject is owned by a resource, so no other resource can use it."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"A strong association already exists for subject '{subject}'", subject=subject)


class NoActiveVersion(Conflict):
    """A subject in use needs at least one live version."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"No active (non-deleted) version exists for subject '{subject}'", subject=subject)


class AssociationFrozen(Conflict):
    """A STRONG association can't be changed; it is deleted together with its resource's subjects."""

    def __init__(self, association_type: str, subject: str) -> None:
        # Confluent's message has two spaces after "type" too
        super().__init__(f"The association of type  '{association_type}' is frozen for subject '{subject}'")


RESOURCE_TYPES: Final = ("topic",)
ASSOCIATION_TYPES: Final = ("key", "value")
STRONG, WEAK = "STRONG", "WEAK"
LIFECYCLES: Final = (STRONG, WEAK)
MAX_NAME: Final = 256
MAX_ID: Final = 1024
MAX_ID_BYTES: Final = 2500  # indexed, and an index row has at most 2,704 bytes
TOPIC: Final = RESOURCE_TYPES[0]
#: matches every name or namespace in a lookup
ANY: Final = "-"


@dataclass(frozen=True)
class Resource:
    """What uses a subject. The id may be missing in a dry run, because a topic has no id before it is created."""

    name: str
    namespace: str
    id: str | None
    type: str = TOPIC

    def default_subject(self, association_type: str) -> str:
        """Return the qualified name of the subject that the resource would own."""
        return f":.{self.namespace}:{self.name}-{association_type}"


@dataclass(frozen=True)
class SchemaSpec:
    """The schema in a request, with the parts of a registration."""

    text: str
    schema_type: str = DEFAULT_FORMAT
    references: tuple[Reference, ...] = ()
    metadata: Contract | None = None
    rule_set: Contract | None = None
    version: int = 0
    schema_id: int | None = None
    tags_to_add: tuple[EntityTags, ...] = ()
    tags_to_remove: tuple[EntityTags, ...] = ()
    propagate_tags: bool = False


@dataclass(frozen=True)
class AssociationSpec:
    """A requested association; None means that the request didn't set it."""

    association_type: str = ""
    subject: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: SchemaSpec | None = None
    normalize: bool = False


def check_resource(resource: Resource, *, dry_run: bool) -> Resource:
    """Return the resource with its type. Raises InvalidAssociation."""
    for value, name in ((resource.name, "resourceName"), (resource.namespace, "resourceNamespace")):
        _check_name(value, name)
    if not resource.id and not dry_run:
        raise InvalidAssociation("resourceId", "cannot be null or empty")
    if resource.id and len(resource.id) > MAX_ID:
        raise InvalidAssociation("resourceId", f"exceeds max length of {MAX_ID}")
    if resource.id and len(resource.id.encode(errors="replace")) > MAX_ID_BYTES:
        raise InvalidAssociation("resourceId", f"exceeds max length of {MAX_ID_BYTES} bytes in UTF-8")
    if resource.type and resource.type not in RESOURCE_TYPES:
        raise InvalidAssociation("resourceType", f"must be '{TOPIC}'")
    return replace(resource, type=resource.type or TOPIC)


def check_specs(specs: Sequence[AssociationSpec], resource: Resource, *, create: bool) -> tuple[AssociationSpec, ...]:
    """Return the associations with their defaults, one per type. Raises InvalidAssociation."""
    if not specs:
        raise InvalidAssociation("associations", "cannot be null or empty")
    checked = tuple(_checked(item, resource, create=create) for item in specs)
    types = [item.association_type for item in checked]
    twice = next((kind for kind in types if types.count(kind) > 1), None)
    if twice is not None:
        raise InvalidAssociation(
            "associationType", f"may only appear once per request, but '{twice}' appears more than once"
        )
    return checked


def check_type(text: str) -> str:
    """Return the type of an association, `value` for an empty text. Raises InvalidAssociation."""
    if text and text not in ASSOCIATION_TYPES:
        raise InvalidAssociation("associationType", "must be either 'key' or 'value'")
    return text or "value"


def with_defaults(spec: AssociationSpec, *, create: bool) -> AssociationSpec:
    """Fill in defaults: STRONG if it has a schema, else WEAK; frozen if STRONG. Raises InvalidAssociation."""
    if spec.schema is not None and not create:
        raise InvalidAssociation(
            "schema",
            "cannot be provided when adding an association to an existing topic;"
            " an association with a schema must be created with the topic",
        )
    if spec.schema is not None and spec.lifecycle == WEAK:
        raise InvalidAssociation("lifecycle", "cannot be WEAK when schema is provided")
    if spec.schema is not None and spec.frozen is False:
        raise InvalidAssociation("frozen", "cannot be false when a schema is provided")
    lifecycle = STRONG if spec.schema is not None else spec.lifecycle or WEAK
    refuse_other_frozen(lifecycle, spec.frozen)
    return replace(spec, lifecycle=lifecycle, frozen=lifecycle == STRONG)


def refuse_other_frozen(lifecycle: str, frozen: bool | None) -> None:
    """Raise InvalidAssociation unless `frozen` is unset or equals whether the lifecycle is STRONG."""
    if frozen is not None and frozen != (lifecycle == STRONG):
        raise InvalidAssociation(
            "frozen", f"association with lifecycle of {lifecycle} cannot be frozen={str(frozen).lower()}"
        )


def refuse_default_subject(resource: Resource, spec: AssociationSpec) -> None:
    """Raise InvalidAssociation for a WEAK association to the subject that the resource would own."""
    default = resource.default_subject(spec.association_type)
    if spec.lifecycle == WEAK and spec.subject == default:
        raise InvalidAssociation("subject", f"WEAK associations cannot use subject '{default}'")


def refuse_other_subject(resource: Resource, spec: AssociationSpec, *, frozen: bool) -> None:
    """Raise InvalidAssociation for a frozen association to any other subject."""
    default = resource.default_subject(spec.association_type)
    if frozen and spec.subject != default:
        raise InvalidAssociation("subject", f"frozen associations must use subject '{default}'")


def _checked(spec: AssociationSpec, resource: Resource, *, create: bool) -> AssociationSpec:
    if spec.subject == "":
        raise InvalidAssociation("subject", "must not be empty")
    if create:
        spec = with_defaults(spec, create=True)
    spec = replace(spec, association_type=check_type(spec.association_type))
    if spec.lifecycle == WEAK:
        if spec.schema is not None:
            raise InvalidAssociation("lifecycle", "cannot be WEAK when schema is provided")
        if spec.frozen:
            raise InvalidAssociation("frozen", "association with lifecycle of WEAK cannot be frozen")
        if create and spec.subject is None:
            raise InvalidAssociation("subject", "must be provided for WEAK associations")
    if create:
        spec = replace(spec, subject=spec.subject or resource.default_subject(spec.association_type))
        refuse_other_subject(resource, spec, frozen=bool(spec.frozen))
        refuse_default_subject(resource, spec)
    return spec


def _check_name(text: str, name: str) -> None:
    if not text:
        raise InvalidAssociation(name, "cannot be null or empty")
    if len(text) > MAX_NAME:
        raise InvalidAssociation(name, f"exceeds max length of {MAX_NAME}")
    for char in text:
        if not (char.isalpha() or char.isdecimal() or char in "_-"):
            raise InvalidAssociation(name, f"illegal character '{char}'")

"""What the tests of imports share: a registry with one of everything, and imports and restores one version at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from django.db import DataError, IntegrityError, transaction
from django.utils import timezone

from registry.access.roles import Actor
from registry.errors import InvalidInput, OperationNotPermitted, SchemadeskError
from registry.formats import FORMATS
from registry.formats.base import Reference
from registry.subjects.import_export.import_versions import ImportResult
from registry.subjects.import_export.registry_import import hold
from registry.subjects.import_export.snapshot import Problem, VersionRecord
from registry.subjects.lifecycle.retirement import RESTORE, retire
from registry.subjects.models import Registry, SchemaVersion, Subject
from registry.subjects.registration.locks import lock_context, lock_subject
from registry.subjects.registration.registration_state import schema_with_id
from registry.subjects.registration.submission import Submission, refuse_too_large
from registry.subjects.services import delete_subject, delete_version, register_version, set_config, set_mode
from registry.subjects.versions.parsed_schemas import parse_schema, resolve_references
from registry.subjects.versions.qualified_names import SubjectName, check_context, parse_subject


def record(name: str, *fields: str) -> str:
    """An Avro record of optional longs."""
    return json.dumps(
        {
            "type": "record",
            "name": name,
            "fields": [{"name": field, "type": ["null", "long"], "default": None} for field in fields],
        }
    )


def furnish(registry: str, by: Actor) -> None:
    """Contexts, references across subjects and contexts, deletions of each kind, contracts, configs, modes, formats."""

    def add(subject: str, text: str, *references: Reference, context: str = ".", **more: Any) -> None:
        name = SubjectName(context, subject)
        register_version(registry=registry, subject=name, text=text, references=references, by=by, **more)

    add("zz-money", '{"type": "enum", "name": "Money", "symbols": ["EUR", "USD"] }')
    for fields in (("a",), ("a", "b"), ("a", "b", "c")):
        add("aa-order", record("Order", *fields))
    uses = '{"type": "record", "name": "Price", "fields": [{"name": "unit", "type": "Money"}]}'
    add("mm-price", uses, Reference("Money", "zz-money", 1))
    add("team/a", record("InTeam", "x"), context=".team")
    add("gone", record("Gone", "x"))
    add("removed", record("Removed", "x"))
    add("rules", record("Ruled", "x"), metadata={"properties": {"owner": "sales"}, "sensitive": ["owner"]})
    if "PROTOBUF" in FORMATS:
        add("proto", 'syntax = "proto3";\nmessage  P { int64 a = 1; } // note\n', schema_type="PROTOBUF")
    if "JSON" in FORMATS:
        add("json", '{"type": "object", "properties": {"b": {"type": "integer"}}}', schema_type="JSON")
    add("normal", '{"type": "record", "name": "N", "fields": [], "doc": "d", "aliases": []}', normalize=True)
    delete_version(registry=registry, subject=SubjectName(".", "aa-order"), version=2, by=by)
    delete_subject(registry=registry, subject=SubjectName(".", "gone"), by=by)
    for permanent in (False, True):
        delete_subject(registry=registry, subject=SubjectName(".", "removed"), by=by, permanent=permanent)
    settle(registry, by)


def settle(registry: str, by: Actor) -> None:
    """Configs and modes of each scope."""
    order, team = SubjectName(".", "aa-order"), SubjectName(".team", "")
    set_config(registry=registry, subject=None, by=by, level="FULL")
    set_config(registry=registry, subject=team, by=by, level="NONE", normalize=True)
    settings = {"level": "FORWARD", "compatibility_group": "major", "default_metadata": {"properties": {"k": "v"}}}
    set_config(registry=registry, subject=order, by=by, **settings)
    set_config(registry=registry, subject=SubjectName(".", "mm-price"), by=by, alias="aa-order", level="NONE")
    set_mode(registry=registry, subject=order, by=by, mode="READONLY")


def bring_one_by_one(*, registry: Registry, records: Iterable[VersionRecord], by: Actor, why: str) -> ImportResult:
    """Each in a savepoint of its own."""
    hold(registry, by=by, why=why)
    done = ImportResult()
    for item in records:
        try:
            with transaction.atomic():
                done += _bring(registry, _subject(registry, item), item, by)
        except SchemadeskError as error:
            done += ImportResult(problems=(Problem(item.title, error.message),))
        except (IntegrityError, DataError) as error:
            reason = str(error).partition("\n")[0][:200]
            done += ImportResult(problems=(Problem(item.title, f"the database rejects it: {reason}"),))
    return done


def restore_one_by_one(*, registry: str, subject: SubjectName, versions: Sequence[int], by: Actor) -> dict[int, str]:
    """Each as a person would; gives what hinders the others."""
    errors = {}
    for version in sorted(versions):
        try:
            with transaction.atomic():
                retire(registry=registry, subject=subject, choice=RESTORE, version=version, by=by)
        except SchemadeskError as error:
            errors[version] = error.message
    return errors


def _subject(registry: Registry, item: VersionRecord) -> Subject:
    check_context(item.subject.context)
    if parse_subject(item.subject.qualified) != item.subject:
        raise InvalidInput("its name would refer to another subject.")
    return lock_subject(lock_context(registry, item.subject.context), item.subject.subject)


def _bring(registry: Registry, subject: Subject, item: VersionRecord, by: Actor) -> ImportResult:
    submission = _submission(registry, item)
    there = next((row for row in subject.versions.select_related("schema") if row.version == item.version), None)
    if there is not None:
        return _settle(there, item, submission)
    try:
        schema = schema_with_id(subject.context, submission, item.schema_id)
    except OperationNotPermitted as error:
        raise OperationNotPermitted(f"schema id {item.schema_id} is used by {_holder(subject, item)} here.") from error
    row = SchemaVersion.objects.create(
        subject=subject,
        version=item.version,
        schema=schema,
        submitted=submission.submitted,
        created_by=item.created_by or by.name,
        channel=item.channel or by.channel,
        deleted_at=(item.deleted_at or timezone.now()) if item.deleted else None,
        imported=True,
    )
    if item.created_at:
        SchemaVersion.objects.filter(pk=row.pk).update(created_at=item.created_at)
    return ImportResult(added=1)


def _submission(registry: Registry, item: VersionRecord) -> Submission:
    refuse_too_large(item.text)
    found = resolve_references(registry, item.references, context=item.subject.context, deleted=True)
    resolved = tuple(reference for reference, _ in found)
    schema = parse_schema(item.schema_type, item.text, resolved, is_new=False)
    if item.submitted:
        schema = replace(schema, canonical=item.text)
    targets = tuple(target for _, target in found)
    return Submission(schema, resolved, targets, item.submitted or item.text, item.metadata, item.rule_set)


def _settle(there: SchemaVersion, item: VersionRecord, submission: Submission) -> ImportResult:
    if there.schema.schema_id != item.schema_id:
        raise OperationNotPermitted(f"it has schema id {there.schema.schema_id} here and {item.schema_id} there.")
    if there.schema.identity != submission.identity(submission.canonical(normalize=False)).digest:
        raise OperationNotPermitted(f"it is another schema here with the same id {item.schema_id}.")
    if (there.deleted_at is not None) == item.deleted:
        return ImportResult(same=1)
    deleted_at = (item.deleted_at or timezone.now()) if item.deleted else None
    SchemaVersion.objects.filter(pk=there.pk).update(deleted_at=deleted_at, imported=True)
    return ImportResult(changed=1)


def _holder(subject: Subject, item: VersionRecord) -> str:
    rows = SchemaVersion.objects.filter(schema__context=subject.context, schema__schema_id=item.schema_id)
    first = rows.order_by("subject__name", "version").values_list("subject__name", "version").first()
    return f"another schema ({first[0]} version {first[1]})" if first else "another schema"

"""Bringing what another registry holds into one of ours, with its ids, numbers and deletions.

What arrives is checked as an import is: it parses, its references are there, its id stands for nothing else. Levels and
policies are not asked: it was registered elsewhere. The whole registry is held for a batch at a time, so a run that is
killed leaves whole versions, and the next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db import DataError, IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from registry.access.roles import Actor
from registry.audit.services import record as record_audit
from registry.errors import InvalidInput, OperationNotPermitted, SchemadeskError
from registry.subjects import gate
from registry.subjects.models import Config, Mode, Registry, Schema, SchemaReference, SchemaVersion, Subject
from registry.subjects.names import SubjectName, check_context, parse_subject
from registry.subjects.selectors.effective import COLUMNS
from registry.subjects.selectors.parsed import parse_schema, resolve_references
from registry.subjects.selectors.submission import Submission, refuse_too_large
from registry.subjects.selectors.versions import MAX_VERSION
from registry.subjects.services.locks import lock_context, lock_ids, lock_policy, lock_subject, pass_schema_id, retried
from registry.subjects.services.notes import bring_note
from registry.subjects.services.policy import bring_config
from registry.subjects.services.storing import schema_with_id
from registry.subjects.snapshot import NoteRecord, Problem, Scope, VersionRecord, scope_title

BATCH = 100


@dataclass(frozen=True)
class Brought:
    """What became of a batch: versions that were new, whose deletion changed, that were there; and the problems."""

    added: int = 0
    changed: int = 0
    same: int = 0
    problems: tuple[Problem, ...] = ()

    def __add__(self, other: Brought) -> Brought:
        return Brought(
            self.added + other.added,
            self.changed + other.changed,
            self.same + other.same,
            self.problems + other.problems,
        )


def batches(records: Sequence[VersionRecord]) -> Iterator[Sequence[VersionRecord]]:
    """The versions in the pieces in which they are brought."""
    for begin in range(0, len(records), BATCH):
        yield records[begin : begin + BATCH]


@retried
def bring_versions(*, registry: Registry, records: Iterable[VersionRecord], by: Actor, why: str) -> Brought:
    """Bring versions, each after those that it refers to. What can't be brought is told and changes nothing."""
    hold(registry, by=by, why=why)
    done, subjects = Brought(), dict[SubjectName, Subject]()
    for item in records:
        try:
            with transaction.atomic():
                subject = subjects.get(item.subject) or _subject(registry, item)
                done += _bring(registry, subject, item, by)
            subjects[item.subject] = subject  # not before: what a problem undoes isn't there
        except SchemadeskError as error:
            done += Brought(problems=(Problem(item.title, error.message),))
        except (IntegrityError, DataError) as error:
            reason = str(error).partition("\n")[0][:200]
            done += Brought(problems=(Problem(item.title, f"the database refuses it: {reason}"),))
    return done


def hold(registry: Registry, *, by: Actor, why: str) -> None:
    """Begin a change of many parts: alone in the registry until the transaction ends. Raises ReleaseRequired."""
    record_audit(by=by, why=why)
    lock_policy(registry, exclusive=True)
    gate.ask("version.register", registry, "", by)


def _subject(registry: Registry, item: VersionRecord) -> Subject:
    check_context(item.subject.context)
    if parse_subject(item.subject.qualified) != item.subject:
        raise InvalidInput("its name would mean another subject.")
    return lock_subject(lock_context(registry, item.subject.context), item.subject.subject)


def _bring(registry: Registry, subject: Subject, item: VersionRecord, by: Actor) -> Brought:
    submission = _submission(registry, item)
    rows = list(
        subject.versions.select_related("schema").filter(Q(version=item.version) | Q(schema__schema_id=item.schema_id))
    )
    there = next((row for row in rows if row.version == item.version), None)
    if there is not None:
        return _settle(there, item, submission)
    try:
        schema = schema_with_id(subject.context, submission, item.schema_id)
    except OperationNotPermitted as error:
        held = _holder(subject.context_id, item)
        raise OperationNotPermitted(f"schema id {item.schema_id} stands for {held} here.") from error
    row = SchemaVersion.objects.create(
        subject=subject,
        version=item.version,
        schema=schema,
        submitted=submission.submitted,
        created_by=item.created_by or by.name,
        door=item.door or by.door,
        deleted_at=_deleted_at(item),
        imported=True,
    )
    if item.created_at:
        SchemaVersion.objects.filter(pk=row.pk).update(created_at=item.created_at)
    return Brought(added=1)


def _submission(registry: Registry, item: VersionRecord) -> Submission:
    refuse_too_large(item.text)
    context = item.subject.context
    found = resolve_references(registry, item.references, context=context, deleted=True) if item.references else ()
    resolved = tuple(reference for reference, _ in found)
    schema = parse_schema(item.schema_type, item.text, resolved, is_new=False)
    if item.submitted:  # then the text is what was kept, which may be the normalized one
        schema = replace(schema, canonical=item.text)
    return Submission(
        schema=schema,
        resolved=resolved,
        targets=tuple(target for _, target in found),
        submitted=item.submitted or item.text,
        metadata=item.metadata,
        rule_set=item.rule_set,
    )


def _settle(there: SchemaVersion, item: VersionRecord, submission: Submission) -> Brought:
    """What a version that is there already needs: nothing, or its deletion as it is elsewhere."""
    identity = submission.identity(submission.canonical(normalize=False)).digest
    if there.schema.schema_id != item.schema_id:
        raise OperationNotPermitted(f"here it has schema id {there.schema.schema_id}, there {item.schema_id}.")
    if there.schema.identity != identity:
        raise OperationNotPermitted(f"here it is another schema under the same id {item.schema_id}.")
    if (there.deleted_at is not None) == item.deleted:
        return Brought(same=1)
    SchemaVersion.objects.filter(pk=there.pk).update(deleted_at=_deleted_at(item), imported=True)
    return Brought(changed=1)


def _holder(context_pk: int, item: VersionRecord) -> str:
    row = (
        SchemaVersion.objects.filter(schema__context=context_pk, schema__schema_id=item.schema_id)
        .order_by("subject__name", "version")
        .values_list("subject__name", "version")
        .first()
    )
    return f"another schema ({row[0]} version {row[1]})" if row else "another schema"


def _deleted_at(item: VersionRecord) -> Any:
    return (item.deleted_at or timezone.now()) if item.deleted else None


@retried
def mark_deleted(*, registry: Registry, records: Iterable[VersionRecord], by: Actor, why: str) -> int:
    """Soft-delete the versions that are live; gives how many those were."""
    hold(registry, by=by, why=why)
    count = 0
    for item in records:
        rows = SchemaVersion.objects.filter(
            subject__context__registry=registry,
            subject__context__name=item.subject.context,
            subject__name=item.subject.subject,
            version=item.version,
            deleted_at=None,
        )
        count += rows.update(deleted_at=timezone.now())
    return count


@retried
def bring_contexts(*, registry: Registry, contexts: Mapping[str, int], by: Actor, why: str) -> tuple[Problem, ...]:
    """Make the contexts, and let their counters stand above every id that was ever given elsewhere."""
    hold(registry, by=by, why=why)
    problems = []
    for name, following in sorted(contexts.items()):
        try:
            context = lock_context(registry, check_context(name))
        except SchemadeskError as error:
            problems.append(Problem(f"context {name[:80]}", error.message))
            continue
        lock_ids(context)
        if following > 1:
            pass_schema_id(context, min(following, MAX_VERSION) - 1)
    return tuple(problems)


@retried
def bring_configs(
    *,
    registry: Registry,
    configs: Mapping[Scope, tuple[Mapping[str, Any], Mapping[str, Any]]],
    by: Actor,
    why: str,
) -> tuple[Problem, ...]:
    """Set each scope's settings to what they are elsewhere; what isn't set there is inherited here too."""
    hold(registry, by=by, why=why)
    problems = []
    for scope, (mine, theirs) in configs.items():
        try:
            with transaction.atomic():
                _set(registry, scope, mine, theirs)
        except SchemadeskError as error:
            problems.append(Problem(f"config of {scope_title(scope)}", error.message))
    return tuple(problems)


def _set(registry: Registry, scope: Scope, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    unknown = sorted(theirs.keys() - COLUMNS.keys())
    if unknown:
        raise InvalidInput(f"{', '.join(unknown)[:200]}: no such setting.")
    unset = [name for name in mine if name not in theirs]
    bring_config(registry, scope, unset=unset, **theirs)


@retried
def bring_notes(
    *, registry: Registry, notes: Mapping[SubjectName, NoteRecord], by: Actor, why: str
) -> tuple[Problem, ...]:
    """Write what is written about subjects elsewhere, in place of what is written here."""
    hold(registry, by=by, why=why)
    problems = []
    names = {subject.subject for subject in notes}
    rows = Subject.objects.filter(context__registry=registry, name__in=names).select_related("context")
    known = {SubjectName(row.context.name, row.name): row for row in rows}
    for subject, note in notes.items():
        row = known.get(subject)
        try:
            if row is None:
                raise InvalidInput("there is no such subject here.")
            bring_note(row, tags=note.tags, doc=note.doc, by=by)
        except SchemadeskError as error:
            problems.append(Problem(f"note of {subject.qualified[:200]}", error.message))
    return tuple(problems)


@retried
def bring_modes(*, registry: Registry, modes: Mapping[Scope, str], by: Actor, why: str) -> None:
    """Set each scope's mode; an empty one is inherited."""
    hold(registry, by=by, why=why)
    for scope, mode in modes.items():
        context = None if scope is None else lock_context(registry, scope.context)
        where: dict[str, Any] = {
            "registry": registry,
            "context": context,
            "subject_name": (scope.subject or None) if scope else None,
        }
        if mode:
            Mode.objects.update_or_create(**where, defaults={"mode": mode})
        else:
            Mode.objects.filter(**where).delete()


def empty_registry(registry: Registry) -> None:
    """Remove all versions and schemas of a mirror, inside the caller's transaction; configs and modes stay."""
    SchemaReference.objects.filter(schema__context__registry=registry).delete()
    SchemaVersion.objects.filter(subject__context__registry=registry).delete()
    Schema.objects.filter(context__registry=registry).delete()
    Subject.objects.filter(context__registry=registry).delete()


@retried
def drop_configs(*, registry: Registry, scopes: Iterable[Scope], by: Actor, why: str) -> None:
    """Remove the settings of scopes that set nothing any more."""
    hold(registry, by=by, why=why)
    for scope in scopes:
        Config.objects.filter(
            registry=registry,
            context__name=scope.context if scope else None,
            subject_name=(scope.subject or None) if scope else None,
        ).delete()

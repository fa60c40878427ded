"""Bringing what another registry holds into one of ours, with its ids, numbers and deletions.

What arrives is checked as an import is: it parses, its references are there, its id stands for nothing else. Levels and
policies are not asked: it was registered elsewhere. The whole registry is held for a batch at a time, so a run that is
killed leaves whole versions, and the next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db import DataError, IntegrityError, transaction
from django.utils import timezone

from registry.access.roles import Actor
from registry.audit.services import record as record_audit
from registry.errors import InvalidInput, SchemadeskError
from registry.subjects import gate
from registry.subjects.models import Config, Mode, Registry, Schema, SchemaReference, SchemaVersion, Subject
from registry.subjects.names import SubjectName, check_context
from registry.subjects.selectors.effective import COLUMNS
from registry.subjects.selectors.versions import MAX_VERSION
from registry.subjects.services.incoming_versions import Brought, bring_together
from registry.subjects.services.locks import lock_context, lock_ids, lock_policy, pass_schema_id, retried
from registry.subjects.services.notes import bring_note
from registry.subjects.services.policy import bring_config
from registry.subjects.snapshot import NoteRecord, Place, Problem, Scope, VersionRecord, scope_title

BATCH = 100
#: versions that are written at once, and the characters of their texts
AT_ONCE, CHARACTERS = 500, 8_000_000


def batches(records: Sequence[VersionRecord]) -> Iterator[Sequence[VersionRecord]]:
    """The versions in the pieces in which they are brought."""
    for begin in range(0, len(records), BATCH):
        yield records[begin : begin + BATCH]


@retried
def bring_versions(*, registry: Registry, records: Iterable[VersionRecord], by: Actor, why: str) -> Brought:
    """Bring versions, each after those that it refers to. What can't be brought is told and changes nothing."""
    hold(registry, by=by, why=why)
    done = Brought()
    for piece in _pieces(records):
        done += _bring(registry, piece, by)
    return done


def _bring(registry: Registry, records: Sequence[VersionRecord], by: Actor) -> Brought:
    """All of them at once; where the database refuses that, in halves, down to the one that it refuses."""
    try:
        with transaction.atomic():
            return bring_together(registry, records, by)
    except (IntegrityError, DataError) as error:
        if len(records) == 1:
            reason = str(error).partition("\n")[0][:200]
            return Brought(problems=(Problem(records[0].title, f"the database refuses it: {reason}"),))
    half = len(records) // 2
    return _bring(registry, records[:half], by) + _bring(registry, records[half:], by)


def _pieces(records: Iterable[VersionRecord]) -> Iterator[Sequence[VersionRecord]]:
    """What is brought at once: of each place one, and not more text than is well sent in one statement."""
    piece, places, characters = list[VersionRecord](), set[Place](), 0
    for item in records:
        is_full = len(piece) == AT_ONCE or characters + len(item.text) > CHARACTERS
        if piece and (is_full or item.place in places):
            yield piece
            piece, places, characters = [], set(), 0
        piece.append(item)
        places.add(item.place)
        characters += len(item.text)
    if piece:
        yield piece


def hold(registry: Registry, *, by: Actor, why: str) -> None:
    """Begin a change of many parts: alone in the registry until the transaction ends. Raises ReleaseRequired."""
    record_audit(by=by, why=why)
    lock_policy(registry, exclusive=True)
    gate.ask("version.register", registry, "", by)


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

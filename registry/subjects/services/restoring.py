"""Soft-deleted versions live again, where the rules of a new version let them: all of them or none, or each for itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from django.db import transaction

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.errors import InvalidInput, InvalidReference, OperationNotPermitted, SchemadeskError
from registry.formats.base import ParsedSchema
from registry.subjects import engines, gate
from registry.subjects.models import Registry, SchemaReference, SchemaVersion, Subject
from registry.subjects.names import SubjectName
from registry.subjects.selectors.comparison import LENIENT_POLICY, live_rows, of_group, parsed_history
from registry.subjects.selectors.effective import EffectiveConfig, OwnConfig, config_and_settings, effective_mode
from registry.subjects.selectors.parsed import parser_of
from registry.subjects.services.locks import lock_referenced
from registry.subjects.telling import tell_of_restoring


def restore(subject: Subject, rows: Sequence[SchemaVersion], name: SubjectName, *, by: Actor, force: str) -> None:
    """Soft-deleted versions live again, with their numbers and ids, where the rules of a new version let them.

    What was registered since is held against them as well. Raises OperationNotPermitted, ReleaseRequired,
    InvalidReference, InvalidInput, NotAllowed.
    """
    place = subject.context.registry
    _begin(place, name, by, force)
    live = dict(subject.versions.filter(deleted_at=None).order_by("version").values_list("schema_id", "version"))
    for row in rows:
        _refuse_twice(row, live)
    _refuse_lost(rows)
    if force.strip():
        require(by, "version.force", registry=place.name, subject=name.qualified)
    SchemaVersion.objects.filter(pk__in=[row.pk for row in rows]).update(deleted_at=None)
    if not force.strip():
        _refuse_broken(subject, name, {row.version for row in rows})
    tell_of_restoring(place, name, versions=[row.version for row in rows], by=by)


def _begin(place: Registry, name: SubjectName, by: Actor, force: str = "") -> None:
    """Record what is done. Raises ReleaseRequired, OperationNotPermitted."""
    forced = f", forced: {force}" if force else ""
    record(by=by, why=f"restore {name.qualified} in {place.name}{forced}")
    passes = gate.ask("version.delete", place, name.qualified, by)
    mode = effective_mode(place, name).mode
    if gate.stops(mode, passes=passes):
        raise OperationNotPermitted(f"{name.qualified} is in mode {mode}: nothing about it changes.", mode=mode)


def _refuse_twice(row: SchemaVersion, live: Mapping[int, int]) -> None:
    """A schema that was registered again since has one live version, not two; `live` has those by schemas."""
    if row.schema_id in live:
        raise InvalidInput(
            f"Version {row.version} has the schema of version {live[row.schema_id]}, which is there: nothing is lost.",
            field="version",
        )


def _refuse_lost(rows: Sequence[SchemaVersion]) -> None:
    """What they refer to is there; it is held until they are."""
    links = _links(rows)
    coming = {row.pk for row in rows}
    held = lock_referenced([link.target for link in links if link.target_id not in coming])
    _refuse_missing(links, coming | held.keys())


def _links(rows: Sequence[SchemaVersion]) -> list[SchemaReference]:
    schemas = {row.schema_id for row in rows}
    return list(SchemaReference.objects.filter(schema__in=schemas).select_related("target__subject__context"))


def _refuse_missing(links: Sequence[SchemaReference], there: Collection[int]) -> None:
    lost = next((link.target for link in links if link.target_id not in there), None)
    if lost is not None:
        name = SubjectName(lost.subject.context.name, lost.subject.name).qualified
        raise InvalidReference(
            f"It refers to version {lost.version} of {name}, which is deleted: restore that first.",
        )


def _refuse_broken(subject: Subject, name: SubjectName, restored: set[int]) -> None:
    """The level between the restored versions and the others, as if each had come in its turn. Raises InvalidInput."""
    rows = live_rows(subject)
    settings = config_and_settings(subject.context.registry, name)
    _refuse_breaks(rows, dict(parsed_history(rows)), settings, restored)


def _refuse_breaks(
    rows: list[SchemaVersion],
    schemas: Mapping[int, ParsedSchema],
    settings: tuple[EffectiveConfig, OwnConfig],
    restored: set[int],
) -> None:
    """The same of live versions that are at hand, ascending; those below all that was restored are as they were."""
    config, scope = settings
    lenient = scope.compatibility_policy == LENIENT_POLICY
    first = next(place for place, row in enumerate(rows) if row.version in restored)
    for place, row in enumerate(rows[first:], start=first):
        before = of_group(rows[:place], group=scope.compatibility_group, like=row.schema.metadata)
        history = [(each.version, schemas[each.version]) for each in before]
        if not history or (row.version not in restored and restored.isdisjoint(each.version for each in before)):
            continue
        report = engines.check(schemas[row.version], history, config.level, profile=config.profile, lenient=lenient)
        broken = [item for item in report.breaks if row.version in restored or item.against_version in restored]
        if broken:
            raise InvalidInput(
                f"Restored, version {row.version} would break {config.level} against version"
                f" {broken[0].against_version}: {broken[0].message} Register what is needed anew, or force it with a"
                " reason.",
                field="version",
            )


# -- each for itself ----------------------------------------------------------------------------------------------------


def restore_each(
    subject: Subject, rows: Sequence[SchemaVersion], name: SubjectName, *, by: Actor
) -> dict[int, SchemadeskError]:
    """Restore what can be restored of soft-deleted versions, ascending, as if one after another was; and tell of it once.

    Gives what hinders the others, by their numbers. What they need is read once for all of them.
    """
    errors: dict[int, SchemadeskError] = {}
    try:
        with transaction.atomic():
            _begin(subject.context.registry, name, by)
            done = _Restoring(subject, rows, name)
            for row in rows:
                try:
                    done.add(row)
                except SchemadeskError as error:
                    errors[row.version] = error
            if len(errors) == len(rows):
                transaction.set_rollback(True)  # nor was anything recorded
                return errors
            coming = [row for row in rows if row.version not in errors]
            SchemaVersion.objects.filter(pk__in=[row.pk for row in coming]).update(deleted_at=None)
            tell_of_restoring(subject.context.registry, name, versions=[row.version for row in coming], by=by)
    except SchemadeskError as error:
        return {row.version: error for row in rows}
    return errors


class _Restoring:
    """The live versions of a subject, to which others are added."""

    def __init__(self, subject: Subject, rows: Sequence[SchemaVersion], name: SubjectName) -> None:
        self._live = live_rows(subject)
        self._numbers = {row.schema_id: row.version for row in self._live}
        self._settings = config_and_settings(subject.context.registry, name)
        self._parse = parser_of([row.schema for row in (*self._live, *rows)])
        self._schemas = {row.version: self._parse(row.schema) for row in self._live}
        links = _links(rows)
        self._links: dict[int, list[SchemaReference]] = {}
        for link in links:
            self._links.setdefault(link.schema_id, []).append(link)
        self._there = set(lock_referenced([link.target for link in links]))

    def add(self, row: SchemaVersion) -> None:
        """Count a version among the live ones. Raises InvalidInput, InvalidReference, and what parsing it raises."""
        _refuse_twice(row, self._numbers)
        _refuse_missing(self._links.get(row.schema_id, ()), self._there | {row.pk})
        schemas = {**self._schemas, row.version: self._parse(row.schema)}
        live = sorted([*self._live, row], key=lambda each: each.version)
        _refuse_breaks(live, schemas, self._settings, {row.version})
        self._live, self._schemas = live, schemas
        self._numbers[row.schema_id] = row.version
        self._there.add(row.pk)

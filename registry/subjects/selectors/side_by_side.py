"""Any two versions side by side with all that proves it: of one subject or two, of one registry or two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from registry.errors import InvalidReference, InvalidSchema
from registry.formats.assessment import Assessment, Parting, Rename
from registry.formats.base import OutlineField, ParsedSchema
from registry.formats.report import DECISIVE, Direction, Profile, Report
from registry.subjects import engines
from registry.subjects.models import Registry, SchemaVersion
from registry.subjects.names import SubjectName
from registry.subjects.selectors.comparison import Comparison
from registry.subjects.selectors.parsed import parse_stored
from registry.subjects.selectors.places import get_subject
from registry.subjects.selectors.versions import parse_version, version_infos, version_row

#: the level that asks both directions of the one version that a comparison has
_BOTH_DIRECTIONS = "FULL"


@dataclass(frozen=True)
class Side:
    """A version (a number or `latest`) of a subject of a registry; soft-deleted ones can be compared too."""

    registry: Registry
    subject: SubjectName
    version: int | str


@dataclass(frozen=True)
class ProvedComparison(Comparison):
    """A comparison whose findings carry a witness, with what the data say beside the rules.

    `unchanged` are the fields that both sides have alike. `problem` says why a side can't be read; the formats are
    then the same and `differences` is None all the same.
    """

    partings: tuple[Parting, ...] = ()
    renames: tuple[Rename, ...] = ()
    unchanged: tuple[OutlineField, ...] = ()
    new_text: str = ""
    problem: str = ""


def compare_sides(old: Side, new: Side, *, profile: Profile = "confluent") -> ProvedComparison:
    """Two versions with their differences, both directions' reports, a witness each, and suspected renames.

    Raises SubjectNotFound, VersionNotFound, InvalidVersion.
    """
    rows = [_row(old), _row(new)]
    infos = version_infos(rows)
    bare = ProvedComparison(infos[0], infos[1], None, same_meaning=False, backward=None, forward=None)
    if infos[0].schema.schema_type != infos[1].schema.schema_type:
        return bare
    try:
        schemas = parse_stored([row.schema for row in rows])
        return _proved(bare, schemas, rows[0].version, profile)
    except (InvalidSchema, InvalidReference) as error:
        return replace(bare, problem=error.message)


def _row(side: Side) -> SchemaVersion:
    return version_row(get_subject(side.registry, side.subject, deleted=True), parse_version(side.version), deleted=True)


def _proved(bare: ProvedComparison, schemas: Sequence[ParsedSchema], version: int, profile: Profile) -> ProvedComparison:
    old, new = schemas
    found = engines.assess(new, [(version, old)], _BOTH_DIRECTIONS, profile=profile)
    return replace(
        bare,
        differences=engines.diff(old, new),
        same_meaning=old.fingerprint == new.fingerprint,
        backward=_of_direction(found, "BACKWARD"),
        forward=_of_direction(found, "FORWARD"),
        partings=found.partings,
        renames=found.renames,
        unchanged=_unchanged(engines.outline(old), engines.outline(new)),
        new_text=new.text,
    )


def _of_direction(found: Assessment, direction: Direction) -> Report:
    items = tuple(item for item in found.report.items if item.direction == direction)
    decisive = DECISIVE[found.report.profile]
    return replace(
        found.report,
        level=direction,
        items=items,
        is_compatible=not any(item.severity in decisive for item in items),
        upgrade_order="",
    )


def _unchanged(old: Sequence[OutlineField], new: Sequence[OutlineField]) -> tuple[OutlineField, ...]:
    """The fields that are equal on both sides, in the new one's order; a field whose inside changed is none."""
    before = {item.path: item for item in old}
    after = {item.path: item for item in new}
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    touched = changed | {holder for path in changed for holder in _holders(path)}
    return tuple(item for item in new if item.path not in touched)


def _holders(path: str) -> Iterator[str]:
    return (path[:at] for at, char in enumerate(path) if char in ".[{<")

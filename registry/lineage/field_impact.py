"""What breaks if a field is removed, renamed or changed in type, with its path through the lineage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from registry.access.permission_filters import READ, extent_of
from registry.access.roles import Actor, require
from registry.formats.base import FieldEdit, OutlineField
from registry.lineage.field_edits import EditedField, ImpactRow, direction_rows, edited_field, level_rows
from registry.lineage.field_users import FieldUsers
from registry.subjects.models import Registry
from registry.subjects.versions.qualified_names import SubjectName

#: a client that reads and writes is two nodes
_SIDES = ("producer", "consumer")


@dataclass(frozen=True)
class FieldImpact:
    """What edits of a field of the newest version do. `level` is the effective one, `edits` has their titles.

    `also` are other paths with the same declaration. `hidden` counts what the reader may not see, `unchecked` says what
    wasn't looked at.
    """

    registry: str
    subject: str
    version: int
    path: str
    level: str
    edits: Mapping[FieldEdit, str]
    rows: tuple[ImpactRow, ...]
    also: tuple[str, ...] = ()
    hidden: int = 0
    unchecked: tuple[str, ...] = ()

    @property
    def nodes(self) -> frozenset[str]:
        """The nodes of the lineage on the field's path."""
        both = {f"{side}:{self.registry}:{row.name}" for row in self.rows if row.kind in _SIDES for side in _SIDES}
        sinks = {f"sink:{row.key}" for row in self.rows if row.kind == "query"}
        return frozenset({row.node for row in self.rows if row.node} | both | sinks)


def field_impact(registry: Registry, subject: SubjectName, path: str, *, by: Actor) -> FieldImpact:
    """Return what edits of the field do, in a constant number of queries.

    Raises NotAllowed, SubjectNotFound, NotFound, InvalidSchema, InvalidReference, Unavailable.
    """
    require(by, READ, registry=registry.name, subject=subject.qualified)
    edited = edited_field(registry, subject, path)
    users = FieldUsers(registry, subject, edited, by, extent_of(by, READ).has_all_of(registry.name))
    rows = (*direction_rows(edited), *level_rows(edited), *users.rows())
    also = tuple(dict.fromkeys(item.path for item in edited.outline if _is_same(item, edited.row)))
    return FieldImpact(
        registry=registry.name,
        subject=subject.qualified,
        version=edited.history[-1][0],
        path=path,
        level=edited.config.level,
        edits={item.edit: item.title for item in edited.edits},
        rows=rows,
        also=also,
        hidden=users.hidden,
        unchecked=(*_unread(edited), *users.unchecked),
    )


def _is_same(other: OutlineField, row: OutlineField) -> bool:
    return bool(row.entity) and other.entity == row.entity and other.path != row.path


def _unread(edited: EditedField) -> Iterator[str]:
    if edited.unread:
        listed = ", ".join(map(str, edited.unread[:8])) + (" …" if len(edited.unread) > 8 else "")
        yield f"Versions that were not checked: {listed}."

"""All versions of a registry, by prefix of their subjects' names."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.expressions import Combinable

from registry.subjects.associations.rules import AssociationInfo, associations_by_subject
from registry.subjects.models import Association, Config, Registry, SchemaVersion, Subject
from registry.subjects.models.versions import SchemaVersionQuerySet
from registry.subjects.permissions import Visible, by_qualified_name
from registry.subjects.policy.data_contracts import PHASES
from registry.subjects.versions.qualified_names import SubjectName, parse_subject
from registry.subjects.versions.versions import JOINED, VersionInfo, infos_of, live

MOST_READS: Final = 5


@dataclass(frozen=True)
class VersionMatch:
    """A version with the qualified names that are aliases of its subject."""

    info: VersionInfo
    aliases: tuple[str, ...]
    associations: tuple[AssociationInfo, ...] = ()


@dataclass(frozen=True)
class AssociationFilter:
    """A filter for subjects with matching associations; empty parts match all.

    `or_unused` also matches subjects without an association; without lifecycles, only those.
    """

    resource_type: str = ""
    types: tuple[str, ...] = ()
    lifecycles: frozenset[str] = frozenset()
    or_unused: bool = False


def search_versions(
    registry: Registry,
    *,
    context: str | None = None,
    prefix: str = "",
    deleted: bool = False,
    latest_only: bool = False,
    rule_type: str = "",
    aliases: bool = False,
    associations: AssociationFilter | None = None,
    offset: int = 0,
    limit: int,
    visible: Visible | None = None,
) -> list[VersionMatch]:
    """Return the versions, ordered by qualified subject and number; a constant number of queries.

    `context` None means every context. With `aliases`, also those of subjects that a matching name is an alias for.
    `rule_type` matches rule sets with a rule of that type. With `associations`, each version has its subject's matching
    associations. `visible` keeps the readable ones.
    """
    names = _aliases(registry, context, prefix, visible) if aliases else {}
    path = "" if latest_only else "subject__"
    here, order = by_qualified_name(registry, None if names else context, path)
    condition = here & _named(context if names else None, prefix, names, path)
    if associations is not None:
        condition &= _used(registry, associations, f"{path}pk")
    ordered = _newest if latest_only else _all
    infos = _infos(ordered(condition, order, rule_type, visible, deleted=deleted)[offset : offset + limit])
    used = _associations(registry, infos, associations) if associations is not None else {}
    return [VersionMatch(info, tuple(names.get(info.subject, ())), tuple(used.get(info.subject, ()))) for info in infos]


def _named(context: str | None, prefix: str, names: Collection[SubjectName], path: str) -> Q:
    """Return the condition for subjects with that prefix (and context, if given), or with one of the names."""
    condition = Q(**{f"{path}name__startswith": prefix})
    if context is not None:
        condition &= Q(**{f"{path}context__name": context})
    for target in names:
        condition |= Q(**{f"{path}context__name": target.context, f"{path}name": target.subject})
    return condition


def _all(
    condition: Q, order: Combinable, rule_type: str, visible: Visible | None, *, deleted: bool
) -> QuerySet[Any, int]:
    """Return the primary keys of all versions."""
    rows = _with_rules(live(SchemaVersion.objects.filter(condition), deleted=deleted), rule_type)
    if visible is not None:
        rows = visible.narrowed(rows)
    return rows.order_by(order, "version").values_list("pk", flat=True)


def _newest(
    condition: Q, order: Combinable, rule_type: str, visible: Visible | None, *, deleted: bool
) -> QuerySet[Any, int]:
    """Return the primary keys of newest versions with a rule of the type; the condition is on subjects."""
    rows = live(SchemaVersion.objects.filter(subject=OuterRef("pk")), deleted=deleted)
    newest: Any = Subquery(rows.order_by("-version").values("pk")[:1])
    subjects = Subject.objects.filter(condition).annotate(newest=newest)
    subjects = subjects.filter(newest__isnull=False)
    if visible is not None:
        subjects = visible.narrowed(subjects)
    if rule_type:
        of_type = _with_rules(SchemaVersion.objects.filter(pk=OuterRef("newest")), rule_type)
        subjects = subjects.filter(Exists(of_type))
    return subjects.order_by(order).values_list("newest", flat=True)


def _infos(keys: QuerySet[Any, int]) -> list[VersionInfo]:
    """Return the versions with these keys, in their order: so the sort handles keys and not whole schemas.

    A registration deletes the soft-deleted version that it replaces. If one of the keys is gone, they are read again, so
    that a subject isn't missing that was there before and after.
    """
    for _ in range(MOST_READS):
        numbers = list(keys.all())
        rows = SchemaVersion.objects.select_related(*JOINED).in_bulk(numbers)
        if len(rows) == len(numbers):
            break
    return infos_of([rows[number] for number in numbers if number in rows])


def _used(registry: Registry, association_filter: AssociationFilter, subject: str) -> Q:
    """Return the condition of a filter of associations; `subject` is the lookup path to a row's subject."""
    users = Association.objects.filter(registry=registry, subject=OuterRef(subject))
    if association_filter.resource_type:
        users = users.filter(resource_type=association_filter.resource_type)
    if association_filter.types:
        users = users.filter(association_type__in=association_filter.types)
    unused = Q(~Exists(users))
    if not association_filter.lifecycles:
        return unused if association_filter.or_unused else Q(Exists(users))
    used = Q(Exists(users.filter(lifecycle__in=association_filter.lifecycles)))
    return used | unused if association_filter.or_unused else used


def _associations(
    registry: Registry, infos: list[VersionInfo], association_filter: AssociationFilter
) -> dict[SubjectName, list[AssociationInfo]]:
    by_subject = associations_by_subject(
        registry,
        {info.subject for info in infos},
        resource_type=association_filter.resource_type,
        types=association_filter.types,
    )
    return {
        subject: [
            user
            for user in users
            if not association_filter.lifecycles or user.lifecycle in association_filter.lifecycles
        ]
        for subject, users in by_subject.items()
    }


def _with_rules(rows: SchemaVersionQuerySet, rule_type: str) -> SchemaVersionQuerySet:
    if not rule_type:
        return rows
    has_rule = Q()
    for phase in PHASES:
        has_rule |= Q(schema__rule_set__contains={phase: [{"type": rule_type}]})
    return rows.filter(has_rule)


def _aliases(
    registry: Registry, context: str | None, prefix: str, visible: Visible | None
) -> dict[SubjectName, list[str]]:
    """Return subject → the qualified names that are aliases for it."""
    rows = Config.objects.filter(registry=registry, subject_name__startswith=prefix, alias__gt="")
    if context is not None:
        rows = rows.filter(context__name=context)
    aliases: dict[SubjectName, list[str]] = {}
    for context_name, name, alias in rows.order_by("subject_name").values_list(
        "context__name", "subject_name", "alias"
    ):
        target, alias_name = (
            parse_subject(str(alias), context=str(context_name)),
            SubjectName(str(context_name), str(name)),
        )
        if visible is None or visible.has_subject(alias_name):
            aliases.setdefault(target, []).append(alias_name.qualified)
    return aliases

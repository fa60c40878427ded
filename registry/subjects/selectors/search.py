"""All versions of a registry, by the beginning of their subjects' names."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Collate, Concat

from registry.subjects.contracts import PHASES
from registry.subjects.models import Association, Config, Registry, SchemaVersion
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName, parse_subject
from registry.subjects.selectors.associations import AssociationInfo, associations_by_subject
from registry.subjects.selectors.versions import JOINED, VersionInfo, infos_of, live

#: the name as `SubjectName.qualified` writes it, for sorting by bytes
_QUALIFIED = Collate(
    Case(
        When(subject__context__name=DEFAULT_CONTEXT, then=F("subject__name")),
        default=Concat(Value(":"), F("subject__context__name"), Value(":"), F("subject__name")),
        output_field=TextField(),
    ),
    "C",
)


@dataclass(frozen=True)
class FoundVersion:
    """A version with the qualified names of the subjects whose alias its subject is."""

    info: VersionInfo
    aliases: tuple[str, ...]
    associations: tuple[AssociationInfo, ...] = ()


@dataclass(frozen=True)
class AssociationFilter:
    """Keeps the subjects that resources use in this way; empty parts take all.

    `or_unused` keeps those that no resource uses so too; with no lifecycle, those alone.
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
) -> list[FoundVersion]:
    """The versions in the order of qualified subject and number; a constant number of queries.

    `context` None means every context. With `aliases` also those of subjects that an alias of a found name leads to.
    `rule_type` keeps those alone whose rule set has a rule of that type. With `associations` each version comes with
    the associations of its subject that made it stay.
    """
    names = _aliases(registry, context, prefix) if aliases else {}
    wanted = Q(subject__name__startswith=prefix)
    if context is not None:
        wanted &= Q(subject__context__name=context)
    for target in names:
        wanted |= Q(subject__context__name=target.context, subject__name=target.subject)
    rows = live(SchemaVersion.objects.filter(wanted, subject__context__registry=registry), deleted=deleted)
    if latest_only:
        newest = rows.order_by("subject_id", "-version").distinct("subject_id")
        rows = SchemaVersion.objects.filter(pk__in=newest.values("pk"))
    rows = _with_rules(rows, rule_type).select_related(*JOINED)
    if associations is not None:
        rows = rows.filter(_used(registry, associations))
    page = rows.order_by(_QUALIFIED, "version")[offset : offset + limit]
    infos = infos_of(list(page))
    used = _associations(registry, infos, associations) if associations is not None else {}
    return [FoundVersion(info, tuple(names.get(info.subject, ())), tuple(used.get(info.subject, ()))) for info in infos]


def _used(registry: Registry, wanted: AssociationFilter) -> Q:
    """The condition on versions that a filter of associations means."""
    users = Association.objects.filter(registry=registry, subject=OuterRef("subject"))
    if wanted.resource_type:
        users = users.filter(resource_type=wanted.resource_type)
    if wanted.types:
        users = users.filter(association_type__in=wanted.types)
    unused = Q(~Exists(users))
    if not wanted.lifecycles:
        return unused if wanted.or_unused else Q(Exists(users))
    used = Q(Exists(users.filter(lifecycle__in=wanted.lifecycles)))
    return used | unused if wanted.or_unused else used


def _associations(
    registry: Registry, infos: list[VersionInfo], wanted: AssociationFilter
) -> dict[SubjectName, list[AssociationInfo]]:
    found = associations_by_subject(
        registry, {info.subject for info in infos}, resource_type=wanted.resource_type, types=wanted.types
    )
    return {
        subject: [user for user in users if not wanted.lifecycles or user.lifecycle in wanted.lifecycles]
        for subject, users in found.items()
    }


def _with_rules(rows: QuerySet[SchemaVersion], rule_type: str) -> QuerySet[SchemaVersion]:
    if not rule_type:
        return rows
    has_rule = Q()
    for phase in PHASES:
        has_rule |= Q(schema__rule_set__contains={phase: [{"type": rule_type}]})
    return rows.filter(has_rule)


def _aliases(registry: Registry, context: str | None, prefix: str) -> dict[SubjectName, list[str]]:
    """Subject → the qualified names whose alias it is."""
    rows = Config.objects.filter(registry=registry, subject_name__startswith=prefix, alias__gt="")
    if context is not None:
        rows = rows.filter(context__name=context)
    found: dict[SubjectName, list[str]] = {}
    for place, name, alias in rows.order_by("subject_name").values_list("context__name", "subject_name", "alias"):
        target = parse_subject(str(alias), context=str(place))
        found.setdefault(target, []).append(SubjectName(str(place), str(name)).qualified)
    return found

"""The filters of the subject list as conditions of the database."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from django.db.models import BooleanField, Exists, F, Func, OuterRef, Q, QuerySet, TextField, Value

from registry.access.permission_filters import Extent
from registry.subjects.models import (
    Config,
    Context,
    Mode,
    Registry,
    SchemaReference,
    SchemaVersion,
    Subject,
    SubjectNote,
    VersionStatus,
)
from registry.subjects.policy.effective_policy import DEFAULT_LEVEL, DEFAULT_MODE, MIRROR_MODE
from registry.subjects.versions.lookup import among, fits
from registry.subjects.versions.qualified_names import SubjectName

#: words that a name is searched for separately; the rest is one more term
MOST_WORDS: Final = 16
Rows = TypeVar("Rows", bound=QuerySet[Any])
#: the ids of subjects whose versions are referred to by live versions of other subjects
REFERRED: Final = """
SELECT target.subject_id FROM subjects_schemareference r
JOIN subjects_schemaversion target ON target.id = r.target_id
JOIN subjects_schemaversion referrer ON referrer.schema_id = r.schema_id AND referrer.deleted_at IS NULL
WHERE referrer.subject_id <> target.subject_id"""
#: called with the lookup path to the subject, "" for subjects themselves
Condition = Callable[[str], Q]


@dataclass(frozen=True)
class SubjectNarrowing:
    """The filters of the list; empty means all.

    `schema_type` is that of the newest live version, or for deleted subjects of any version. `tag` is a tag of the
    subject's note, ignoring case; `owned` are an owner's name patterns, `unowned` those of all owners, none of which
    may match; `status` is the status of a live version; `among` are names, `keys` ids of subjects. `also` are further
    conditions by the name of their filter; `is_sought` means that these are best evaluated once.
    """

    text: str = ""
    schema_type: str = ""
    level: str = ""
    tag: str = ""
    owned: Collection[str] | None = None
    unowned: Collection[str] | None = None
    status: str = ""
    among: Collection[SubjectName] | None = None
    keys: Collection[int] | None = None
    also: Mapping[str, Condition] = field(default_factory=dict)
    is_sought: bool = False

    @property
    def names_matter(self) -> bool:
        """Whether the filter needs the subjects' names."""
        return bool(self.text or self.owned or self.unowned)

    @property
    def is_expensive(self) -> bool:
        """Whether filtering has to read all subjects."""
        return self.names_matter or self.is_sought or bool(self.level)


ALL: Final = SubjectNarrowing()


def narrowed(rows: Rows, registry: Registry, narrowing: SubjectNarrowing, *, at: str, deleted: bool = False) -> Rows:
    """Filter the rows; `at` is the lookup path to the subject, "" for subjects themselves."""
    key = at.removesuffix("__") or "pk"
    if narrowing.names_matter:  # so only these contexts' index entries are read
        rows = rows.filter(**{f"{at}context__in": list(_contexts(registry))})
    if terms := narrowing.text.split(maxsplit=MOST_WORDS - 1):
        rows = rows.filter(*(Q(**{f"{at}name__icontains": term}) for term in terms))
    if narrowing.schema_type:
        rows = rows.filter(_of_type(narrowing.schema_type, at, deleted=deleted))
    if narrowing.level:
        rows = rows.filter(of_level(registry, narrowing.level, at))
    if narrowing.tag:
        rows = rows.filter(Exists(tagged(narrowing.tag).filter(subject=OuterRef(key))))
    if narrowing.owned is not None:
        rows = rows.filter(fits(registry, narrowing.owned, at))
    if narrowing.unowned is not None:
        rows = rows.filter(~fits(registry, narrowing.unowned, at))
    if narrowing.status:
        statuses = VersionStatus.objects.filter(status=narrowing.status, version__deleted_at=None)
        rows = rows.filter(**{f"{key}__in": statuses.values("version__subject")})
    if narrowing.keys is not None:
        rows = rows.filter(numbered(f"{{{','.join(map(str, narrowing.keys))}}}", at))
    for condition in narrowing.also.values():
        rows = rows.filter(condition(at))
    return rows if narrowing.among is None else rows.filter(among(narrowing.among, at))


def readable(registry: Registry, extent: Extent, at: str) -> Q:
    """Return the condition for the subjects in an extent whose parts name no registry."""
    condition = Q(pk__in=())
    for part in extent.parts:
        fitting = ~Q(pk__in=())
        for pattern in part.patterns:
            fitting &= fits(registry, [pattern], at)
        condition |= fitting
    return condition


def numbered(keys: str, at: str) -> Q:
    """Return the condition for subject ids as one array: thousands of parameters cost more than the lookup."""
    template = f"(%(expressions)s = ANY ('{keys}'::bigint[]))"
    return Q(Func(F(at.removesuffix("__") or "pk"), template=template, output_field=BooleanField()))


def tagged(tag: str) -> QuerySet[SubjectNote]:
    """Return the notes that have a tag, ignoring case."""
    tag_text = Func(F("tags"), Value(" "), function="array_to_string", output_field=TextField())
    if not tag.isascii() or not tag.isprintable() or " " in tag:
        return SubjectNote.objects.none()
    return SubjectNote.objects.annotate(tag_text=tag_text).filter(tag_text__iregex=rf"(^| ){re.escape(tag)}( |$)")


def _of_type(schema_type: str, at: str, *, deleted: bool) -> Q:
    if deleted:
        of_type = SchemaVersion.objects.filter(subject=OuterRef("pk"), schema__schema_type=schema_type)
        return Q(Exists(of_type))
    return Q(**{"schema_type" if at else "activity__schema_type": schema_type})


def _contexts(registry: Registry) -> QuerySet[Context, int]:
    return Context.objects.filter(registry=registry).values_list("pk", flat=True)


def of_level(registry: Registry, level: str, at: str) -> Q:
    """Return the condition for an effective level: the subject's own, else its context's, else the registry's."""
    return _that_counts(Config.objects.filter(registry=registry), "compatibility_level", level, DEFAULT_LEVEL, at)


def of_mode(registry: Registry, mode: str, at: str) -> Q:
    """Return the condition for an effective mode: as for levels, except that an outer override wins."""
    wider = Mode.objects.filter(registry=registry, subject_name=None, mode=MIRROR_MODE)
    forced = list(wider.values_list("context", flat=True))
    if registry.kind == Registry.REMOTE or None in forced:
        return ~Q(pk__in=()) if mode == MIRROR_MODE else Q(pk__in=())
    counts = _that_counts(Mode.objects.filter(registry=registry), "mode", mode, DEFAULT_MODE, at)
    if not forced:
        return counts
    overridden = Q(**{f"{at}context__in": forced})
    return counts | overridden if mode == MIRROR_MODE else counts & ~overridden


def has_own_level(registry: Registry, at: str) -> Q:
    """Return the condition that the subject itself has a level."""
    own = _own(Config.objects.filter(registry=registry, compatibility_level__isnull=False))
    return Q(**{f"{at.removesuffix('__') or 'pk'}__in": _with(own)})


def refers(at: str) -> Q:
    """Return the condition that a live version of the subject refers to another schema."""
    referring = SchemaVersion.objects.filter(deleted_at=None, schema__in=SchemaReference.objects.values("schema"))
    return Q(**{f"{at.removesuffix('__') or 'pk'}__in": referring.values("subject")})


def is_referred_to(at: str) -> Q:
    """Return the condition that a live version of another subject refers to the subject."""
    return Q(
        Func(
            F(at.removesuffix("__") or "pk"), template=f"(%(expressions)s IN ({REFERRED}))", output_field=BooleanField()
        )
    )


def _that_counts(rows: QuerySet[Any], column: str, value: str, default: str, at: str) -> Q:
    """Return the condition for an effective value: own, else the context's, else the registry's, else the default."""
    key = at.removesuffix("__") or "pk"
    wider = rows.filter(subject_name=None).values_list("context", column)
    wider_values = {context: own_value for context, own_value in wider if own_value}
    base = next((own_value for context, own_value in wider_values.items() if context is None), default)
    values = {context: own_value for context, own_value in wider_values.items() if context is not None}
    is_own = Q(**{f"{key}__in": _with(_own(rows).filter(**{column: value}))})
    is_other = Q(**{f"{key}__in": _with(_own(rows).exclude(**{column: value}).filter(**{f"{column}__isnull": False}))})
    inherits = Q(**{f"{at}context__in": [context for context, own_value in values.items() if own_value == value]})
    if base == value:
        differing = [context for context, own_value in values.items() if own_value != value]
        if not differing:
            return ~is_other
        inherits = ~Q(**{f"{at}context__in": differing})
    elif value not in values.values():
        return is_own
    return is_own | (inherits & ~is_other)


def _own(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Return the rows of the outer query's subject."""
    return rows.filter(context=OuterRef("context"), subject_name=OuterRef("name"))


def _with(own: QuerySet[Any]) -> QuerySet[Subject, int]:
    return Subject.objects.filter(Exists(own)).values_list("pk", flat=True)

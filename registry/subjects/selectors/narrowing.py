"""Which subjects a list has: what its filters mean, as conditions of the database."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from django.db.models import (
    BooleanField,
    Exists,
    F,
    Func,
    OuterRef,
    Q,
    QuerySet,
    TextField,
    Value,
)

from registry.subjects.models import Config, Context, Registry, SchemaVersion, Subject, SubjectNote, VersionStanding
from registry.subjects.names import SubjectName
from registry.subjects.selectors.effective import DEFAULT_LEVEL
from registry.subjects.selectors.fitting import among, fits

#: words that a name is searched for one by one; what follows them is one more as it is written
MOST_WORDS: Final = 16
Rows = TypeVar("Rows", bound=QuerySet[Any])
#: told how rows get to the subject, "" for subjects themselves
Condition = Callable[[str], Q]


@dataclass(frozen=True)
class Narrowing:
    """Which subjects: empty means all.

    `schema_type` is that of the newest live version, of one that is deleted of any. `tag` is one of the subjects' notes,
    in any case of letters; `owned` are the patterns of what an owner has, `unowned` those of what anybody has, none of
    which may fit; `standing` is that of a live version; `among` are names, `keys` the numbers of subjects. `also` are
    conditions that others make, by the filter they are of; `is_sought` where those leave what was found in an index.
    """

    text: str = ""
    schema_type: str = ""
    level: str = ""
    tag: str = ""
    owned: Collection[str] | None = None
    unowned: Collection[str] | None = None
    standing: str = ""
    among: Collection[SubjectName] | None = None
    keys: Collection[int] | None = None
    also: Mapping[str, Condition] = field(default_factory=dict)
    is_sought: bool = False

    @property
    def names_matter(self) -> bool:
        """Whether it takes the subjects' names to tell which they are."""
        return bool(self.text or self.owned or self.unowned)

    @property
    def is_dear(self) -> bool:
        """Whether all subjects are looked at to find those that match."""
        return self.names_matter or self.is_sought or bool(self.level)


ALL: Final = Narrowing()


def narrowed(rows: Rows, registry: Registry, given: Narrowing, *, at: str, deleted: bool = False) -> Rows:
    """The rows that the filters leave; `at` is how they get to the subject, "" for subjects themselves."""
    key = at.removesuffix("__") or "pk"
    if given.names_matter:  # the context's names are then read from their index alone, not those of all registries
        rows = rows.filter(**{f"{at}context__in": list(_contexts(registry))})
    if words := given.text.split(maxsplit=MOST_WORDS - 1):
        rows = rows.filter(*(Q(**{f"{at}name__icontains": word}) for word in words))
    if given.schema_type:
        rows = rows.filter(_of_type(given.schema_type, at, deleted=deleted))
    if given.level:
        rows = rows.filter(of_level(registry, given.level, at))
    if given.tag:
        rows = rows.filter(Exists(tagged(given.tag).filter(subject=OuterRef(key))))
    if given.owned is not None:
        rows = rows.filter(fits(registry, given.owned, at))
    if given.unowned is not None:
        rows = rows.filter(~fits(registry, given.unowned, at))
    if given.standing:
        stands = VersionStanding.objects.filter(standing=given.standing, version__deleted_at=None)
        rows = rows.filter(**{f"{key}__in": stands.values("version__subject")})
    if given.keys is not None:
        rows = rows.filter(numbered(f"{{{','.join(map(str, given.keys))}}}", at))
    for condition in given.also.values():
        rows = rows.filter(condition(at))
    return rows if given.among is None else rows.filter(among(given.among, at))


def numbered(keys: str, at: str) -> Q:
    """The subjects of numbers, as PostgreSQL writes a list of them: thousands one by one take longer to write than to find."""
    template = f"(%(expressions)s = ANY ('{keys}'::bigint[]))"
    return Q(Func(F(at.removesuffix("__") or "pk"), template=template, output_field=BooleanField()))


def tagged(tag: str) -> QuerySet[SubjectNote]:
    """The notes that have a tag, however its letters are written."""
    words = Func(F("tags"), Value(" "), function="array_to_string", output_field=TextField())
    if not tag.isascii() or not tag.isprintable() or " " in tag:
        return SubjectNote.objects.none()
    return SubjectNote.objects.annotate(words=words).filter(words__iregex=rf"(^| ){re.escape(tag)}( |$)")


def _of_type(schema_type: str, at: str, *, deleted: bool) -> Q:
    if deleted:
        of_type = SchemaVersion.objects.filter(subject=OuterRef("pk"), schema__schema_type=schema_type)
        return Q(Exists(of_type))
    return Q(**{"schema_type" if at else "activity__schema_type": schema_type})


def registry_level(registry: Registry) -> str:
    """The level of what has none of its own, in a context without one; one query."""
    wide = Config.objects.filter(registry=registry, context=None)
    return wide.values_list("compatibility_level", flat=True).first() or DEFAULT_LEVEL


def _contexts(registry: Registry) -> QuerySet[Context, int]:
    return Context.objects.filter(registry=registry).values_list("pk", flat=True)


def of_level(registry: Registry, level: str, at: str) -> Q:
    """By the subject's own level, else its context's, else the registry's."""
    key = at.removesuffix("__") or "pk"
    wider = Config.objects.filter(registry=registry, subject_name=None)
    said = {context: found for context, found in wider.values_list("context", "compatibility_level") if found}
    base = next((found for context, found in said.items() if context is None), DEFAULT_LEVEL)
    levels = {context: found for context, found in said.items() if context is not None}
    own = Config.objects.filter(registry=registry, context=OuterRef("context"), subject_name=OuterRef("name"))
    is_own = Q(**{f"{key}__in": _with(own.filter(compatibility_level=level))})
    is_other = Q(
        **{f"{key}__in": _with(own.exclude(compatibility_level=level).filter(compatibility_level__isnull=False))}
    )
    inherits = Q(**{f"{at}context__in": [context for context, found in levels.items() if found == level]})
    if base == level:
        differing = [context for context, found in levels.items() if found != level]
        if not differing:
            return ~is_other
        inherits = ~Q(**{f"{at}context__in": differing})
    elif level not in levels.values():
        return is_own
    return is_own | (inherits & ~is_other)


def _with(own: QuerySet[Config]) -> QuerySet[Subject, int]:
    return Subject.objects.filter(Exists(own)).values_list("pk", flat=True)

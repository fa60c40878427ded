"""What another compatibility level would have refused: past registrations and open requests, checked again."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db.models import Count, Exists, F, Func, IntegerField, OuterRef, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from registry.errors import InvalidReference, InvalidSchema, SchemaTooCostly, SubjectNotFound, Unavailable
from registry.formats.base import ParsedSchema
from registry.formats.compatibility import Level, level_named
from registry.formats.report import Report
from registry.subjects.comparison.comparison import LENIENT_POLICY, of_group
from registry.subjects.engine import schema_engine
from registry.subjects.models import Config, Registry, Schema, SchemaVersion, Subject
from registry.subjects.policy.effective_policy import EffectiveConfig, OwnConfig, scope_settings_for_many
from registry.subjects.versions.parsed_schemas import parser_of
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: the most subjects in one answer
MAX_SUBJECTS: Final = 200
#: the most versions of a subject that are read, the newest ones
MAX_VERSIONS: Final = 100
#: the time limit of an answer
SECONDS: Final = 4.0
#: the most bytes of texts in memory at a time
_BYTES_AT_ONCE: Final = 8_000_000


@dataclass(frozen=True)
class FailingVersion:
    """A version that would have been refused; `against` are the versions that it breaks, newest first.

    `fails_now`: the level in force would refuse it too, so it was added in another way, or before that level.
    """

    version: int
    against: tuple[int, ...]
    sentence: str
    fails_now: bool


@dataclass(frozen=True)
class Unjudged:
    """A version that can't be checked, and why."""

    version: int
    sentence: str


@dataclass(frozen=True)
class SubjectTrial:
    """The result of the level for one subject; `level` is its current one.

    `transitions` is the number of its live versions except the first. `judged` of them were checked, newest first;
    `left_out` older versions weren't read.
    """

    subject: SubjectName
    level: str
    transitions: int
    judged: int = 0
    failing: tuple[FailingVersion, ...] = ()
    unjudged: tuple[Unjudged, ...] = ()
    left_out: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether every transition was checked."""
        return not self.left_out and not self.unjudged and self.judged == self.transitions

    @property
    def says_something(self) -> bool:
        """Whether there is more to say than that everything would pass."""
        return bool(self.failing) or not self.is_whole


@dataclass(frozen=True)
class WhatIf:
    """The effect that a level would have had in the past.

    `subjects` are those of this answer for which not everything would pass. `looked_at` of `total` subjects are done,
    including this answer's; `keeping` more have a level of their own at a nearer scope. The numbers of transitions are
    those of this answer. `cursor` continues, "" at the end; `stopped` says why the answer ended early.
    """

    level: str
    scope: SubjectName | None
    subjects: tuple[SubjectTrial, ...]
    looked_at: int
    total: int
    keeping: int
    transitions: int
    failing: int
    cursor: str = ""
    stopped: str = ""


def what_if(
    registry: Registry,
    level: str,
    scope: SubjectName | None = None,
    *,
    cursor: str = "",
    limit: int = MAX_SUBJECTS,
    seconds: float = SECONDS,
) -> WhatIf:
    """Return which versions of the subjects below a scope (None: the registry) a level would have refused.

    `cursor` is that of the previous answer. The number of queries is constant except for many megabytes of texts.
    Raises InvalidCompatibility, InvalidName, SubjectNotFound.
    """
    chosen, after = level_named(level.upper()), parse_subject(cursor) if cursor else None
    inside = _inside(registry, scope)
    affected = inheriting(inside, registry, scope)
    total = affected.count()
    if scope is not None and scope.subject and not total:
        message = f"Subject '{scope.qualified}' not found."
        raise SubjectNotFound(message, registry=registry.name, subject=scope.qualified)
    rows = list(_after(affected, after).select_related("context").order_by("context__name", "name")[: limit + 1])
    page, has_more = rows[:limit], len(rows) > limit
    trying = _LevelTrial(registry, chosen, time.monotonic() + seconds)
    trials = trying.subjects(page)
    last = trials[-1].subject if trials else after
    is_over = not has_more and len(trials) == len(page)
    passed = total if is_over else total - _after(affected, last).count()
    return WhatIf(
        level=chosen.name,
        scope=scope,
        subjects=tuple(item for item in trials if item.says_something),
        looked_at=passed,
        total=total,
        keeping=inside.count() - total,
        transitions=sum(item.judged for item in trials),
        failing=sum(len(item.failing) for item in trials),
        cursor="" if is_over or last is None else f":{last.context}:{last.subject}",
        stopped=trying.stopped,
    )


def _inside(registry: Registry, scope: SubjectName | None) -> QuerySet[Subject]:
    """Return the subjects below a scope that have a live version."""
    rows = Subject.objects.filter(
        Exists(SchemaVersion.objects.filter(subject=OuterRef("pk"), deleted_at=None)), context__registry=registry
    )
    if scope is not None:
        rows = rows.filter(context__name=scope.context)
    return rows.filter(name=scope.subject) if scope is not None and scope.subject else rows


def inheriting(rows: QuerySet[Subject], registry: Registry, scope: SubjectName | None) -> QuerySet[Subject]:
    """Return the subjects that a level set at the scope applies to, because no nearer scope sets one."""
    setting = Config.objects.filter(registry=registry, context=OuterRef("context"), compatibility_level__isnull=False)
    if scope is None:
        rows = rows.filter(~Exists(setting.filter(subject_name=None)))
    return (
        rows
        if scope is not None and scope.subject
        else rows.filter(~Exists(setting.filter(subject_name=OuterRef("name"))))
    )


def _after(rows: QuerySet[Subject], subject: SubjectName | None) -> QuerySet[Subject]:
    """Return the subjects after a subject, by context and name."""
    if subject is None:
        return rows
    return rows.filter(
        Q(context__name__gt=subject.context) | Q(context__name=subject.context, name__gt=subject.subject)
    )


@dataclass(frozen=True)
class NewestVersions:
    """The newest live versions of a subject, by primary key; `size` is their bytes, `many` the number of all."""

    versions: tuple[int, ...]
    size: int
    many: int


@dataclass
class _LevelTrial:
    """Checks a level on one subject after the other, until the time is over or the engines refuse."""

    registry: Registry
    level: Level
    until: float
    stopped: str = ""
    judged: int = field(default=0)

    def subjects(self, rows: Sequence[Subject]) -> list[SubjectTrial]:
        """Return as many trials as possible; at least one, so that the next answer begins further on."""
        names = {row.pk: SubjectName(row.context.name, row.name) for row in rows}
        spoken = scope_settings_for_many(self.registry, names.values())
        newest, trials = newest_versions(names), list[SubjectTrial]()
        for batch in _batches(rows, newest):
            texts, parse = read_versions([pk for row in batch for pk in newest[row.pk].versions])
            for row in batch:
                if trials and self._must_stop():
                    return trials
                config, settings = spoken[names[row.pk]].config(), spoken[names[row.pk]].settings()
                history = texts.get(row.pk, [])
                many = newest[row.pk].many
                trials.append(self._subject(names[row.pk], history, many, config, settings, parse))
        return trials

    def _must_stop(self) -> bool:
        if not self.stopped and self.judged and time.monotonic() >= self.until:
            self.stopped = "The time limit for one answer was reached."
        return bool(self.stopped)

    def _subject(
        self,
        name: SubjectName,
        rows: list[SchemaVersion],
        many: int,
        config: EffectiveConfig,
        settings: OwnConfig,
        parse: Callable[[Schema], ParsedSchema],
    ) -> SubjectTrial:
        failing: list[FailingVersion] = []
        unjudged: list[Unjudged] = []
        judged = 0
        for position in range(len(rows) - 1, 0, -1):
            if self._must_stop():
                break
            new = rows[position]
            before = of_group(rows[:position], group=settings.compatibility_group, like=new.schema.metadata)
            try:
                report = _checked(new, before, self.level, config, settings, parse)
                if not report.is_compatible:
                    now = _checked(new, before, level_named(config.level), config, settings, parse)
                    failing.append(_failing(new.version, report, fails_now=not now.is_compatible))
                judged += 1
            except (InvalidSchema, InvalidReference) as error:
                unjudged.append(Unjudged(new.version, error.placed))
                self._stop_if_exhausted(error)
            except Unavailable as error:
                unjudged.append(Unjudged(new.version, error.message))
                self.stopped = error.message
            self.judged += 1
        left_out = many - len(rows)
        return SubjectTrial(name, config.level, max(0, many - 1), judged, tuple(failing), tuple(unjudged), left_out)

    def _stop_if_exhausted(self, error: InvalidSchema | InvalidReference) -> None:
        """Stop if the request's whole allowance is used up; a single schema over its own limit stops nothing."""
        if isinstance(error, SchemaTooCostly) and "limit" not in error.details:
            self.stopped = error.message


def _checked(
    new: SchemaVersion,
    before: Sequence[SchemaVersion],
    level: Level,
    config: EffectiveConfig,
    settings: OwnConfig,
    parse: Callable[[Schema], ParsedSchema],
) -> Report:
    """Return the report that a version's registration would have had under a level."""
    named = {"none": (), "latest": before[-1:], "all": before}[level.scope]
    if not named:
        return Report(level=level.name, is_compatible=True)
    history = [(row.version, parse(row.schema)) for row in named]
    lenient = settings.compatibility_policy == LENIENT_POLICY
    return schema_engine.check(parse(new.schema), history, level.name, profile=config.profile, lenient=lenient)


def _failing(version: int, report: Report, *, fails_now: bool) -> FailingVersion:
    against = tuple(dict.fromkeys(item.against_version for item in report.breaks))
    first, more = report.breaks[0], len(report.breaks) - 1
    sentence = first.message if first.named_path in first.message else f"{first.message} at {first.named_path}"
    if more:
        sentence += f", and {more} more"
    return FailingVersion(version, against, f"{sentence}.", fails_now)


class TextBytes(Func):
    """The size of a text in bytes, without reading it."""

    function = "octet_length"
    output_field = IntegerField()


def newest_versions(subject_pks: Collection[int]) -> dict[int, NewestVersions]:
    """Return the newest live versions of each subject; one query, without any text."""
    rows = (
        SchemaVersion.objects.filter(subject_id__in=list(subject_pks), deleted_at=None)
        .annotate(
            rank=Window(RowNumber(), partition_by=F("subject_id"), order_by=F("version").desc()),
            many=Window(Count("pk"), partition_by=F("subject_id")),
            size=TextBytes(F("schema__canonical")),
        )
        .filter(rank__lte=MAX_VERSIONS)
    )
    sizes: dict[int, tuple[list[int], int, int]] = {}
    for subject, pk, many, size in rows.values_list("subject_id", "pk", "many", "size"):
        versions, whole, _ = sizes.get(subject, ([], 0, 0))
        versions.append(pk)
        sizes[subject] = versions, whole + size, many
    empty = NewestVersions((), 0, 0)
    newest = {subject: NewestVersions(tuple(versions), size, many) for subject, (versions, size, many) in sizes.items()}
    return {subject: newest.get(subject, empty) for subject in subject_pks}


def _batches(rows: Sequence[Subject], newest: dict[int, NewestVersions]) -> Iterator[list[Subject]]:
    """Yield the subjects in order, as many at a time as the limit on texts allows."""
    batch: list[Subject] = []
    size = 0
    for row in rows:
        if batch and size + newest[row.pk].size > _BYTES_AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += newest[row.pk].size
    if batch:
        yield batch


def read_versions(
    version_pks: Sequence[int],
) -> tuple[dict[int, list[SchemaVersion]], Callable[[Schema], ParsedSchema]]:
    """Return the versions of each subject with their texts, ascending, and their parser."""
    versions_by_subject: dict[int, list[SchemaVersion]] = {}
    rows = SchemaVersion.objects.filter(pk__in=version_pks).select_related("schema").defer("submitted")
    for row in rows.order_by("version"):
        versions_by_subject.setdefault(row.subject_id, []).append(row)
    return versions_by_subject, parser_of([row.schema for versions in versions_by_subject.values() for row in versions])

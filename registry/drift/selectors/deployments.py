"""Deployments that programs reported, those that may have caused a finding, and the gate that may stop a rollout."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.models import Exists, OuterRef, Q

from registry.access.name_patterns import name_pattern
from registry.access.permission_filters import READ, Extent, extent_of
from registry.access.roles import Actor
from registry.drift.models import SEVERITIES, SIDES, Deployment, Topic
from registry.drift.scan.aggregation import SEVERITY_RANK
from registry.drift.selectors.findings import WORST_FIRST, FindingInfo, finding_infos, open_findings, why_left_out
from registry.drift.selectors.sources import SourceInfo, list_sources
from registry.drift.usage.subject_topics import own_topics
from registry.drift.usage.unused_subjects import context_name
from registry.errors import InvalidInput, SourceNotFound, SubjectNotFound
from registry.frozen_rows import row_info
from registry.subjects.models import Client, Registry, SchemaReference, SchemaVersion, Subject
from registry.subjects.versions.lookup import among, get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: deployments read per time span, newest first
MAX_LOOKED_AT: Final = 1_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
#: maximum of digits in a cursor's numbers
_DIGITS: Final = 18


@dataclass(frozen=True)
class DeploymentInfo:
    """A deployment: its label, when it began, its address, and whose messages it may have changed."""

    id: int
    registry: str
    label: str
    at: datetime
    url: str
    subjects: str
    topics: str
    client: str
    told_at: datetime
    told_by: str


@dataclass(frozen=True)
class DeploymentPage:
    """Deployments, newest first; `before` is the cursor of the next page, "" on the last."""

    rows: tuple[DeploymentInfo, ...]
    before: str


@dataclass(frozen=True)
class DeploymentTarget:
    """The subject and topic of a finding, to match with deployments."""

    registry: str
    subject: str
    topic: str


def list_deployments(*, registry: str = "", label: str = "", before: str = "", limit: int = 100) -> DeploymentPage:
    """Return deployments by when they began, newest first; one query per page. Raises InvalidInput."""
    condition = Q(registry__name=registry) if registry else Q()
    if label:
        condition &= Q(label=label)
    if before:
        at, number = _cursor(before)
        condition &= Q(at__lte=at) & (Q(at__lt=at) | Q(pk__lt=number))
    rows = Deployment.objects.filter(condition).select_related("registry").order_by("-at", "-pk")
    infos = [_info(row) for row in rows[: limit + 1]]
    page = tuple(infos[:limit])
    return DeploymentPage(page, _cursor_of(page[-1]) if len(infos) > limit else "")


def deployments_about(concerned: DeploymentTarget, since: datetime, until: datetime) -> tuple[DeploymentInfo, ...]:
    """Return matching deployments that began after `since` and until `until`, newest first; one or two queries."""
    rows = Deployment.objects.filter(registry__name=concerned.registry, at__gt=since, at__lte=until)
    infos = [_info(row) for row in rows.select_related("registry").order_by("-at", "-pk")[:MAX_LOOKED_AT]]
    fitting = [info for info in infos if _fits(info, concerned)]
    clients = _clients(concerned, {info.client for info in fitting} - {""})
    return tuple(info for info in fitting if not info.client or info.client in clients)


def _fits(info: DeploymentInfo, concerned: DeploymentTarget) -> bool:
    """Return whether the patterns match; a pattern for something that the finding lacks matches nothing."""
    pairs = ((info.subjects, concerned.subject), (info.topics, concerned.topic))
    return all(not pattern or (bool(name) and name_pattern(pattern).allows(name)) for pattern, name in pairs)


def _clients(concerned: DeploymentTarget, names: Iterable[str]) -> frozenset[str]:
    """Return which of these clients are declared for the finding's subject."""
    if not names or not concerned.subject:
        return frozenset()
    name = parse_subject(concerned.subject)
    rows = Client.objects.filter(
        subject__context__registry__name=concerned.registry,
        subject__context__name=name.context,
        subject__name=name.subject,
        name__in=names,
    )
    return frozenset(rows.values_list("name", flat=True))


def _info(row: Deployment) -> DeploymentInfo:
    return row_info(DeploymentInfo, row, registry=row.registry.name)


def _cursor_of(info: DeploymentInfo) -> str:
    return f"{(info.at - _EPOCH) // _MICROSECOND}-{info.id}"


def _cursor(text: str) -> tuple[datetime, int]:
    moment, _, number = text.partition("-")
    if not all(part.isascii() and part.isdecimal() and len(part) <= _DIGITS for part in (moment, number)):
        raise InvalidInput("The cursor is invalid: use one returned with a page.", field="before")
    try:
        return _EPOCH + int(moment) * _MICROSECOND, int(number)
    except OverflowError as error:
        raise InvalidInput("The cursor is invalid: use one returned with a page.", field="before") from error


#: the name of a source for people who may not read it
OUT_OF_SIGHT: Final = "a source of the registry"
#: unscanned subjects that are named; the others are counted
MAX_NAMED: Final = 20


@dataclass(frozen=True)
class Gate:
    """Whether a rollout may continue: no open finding of that severity or worse, and everything in scope was read.

    `unscanned` lists what wasn't read, and why: registries without a source; sources whose last scan failed, read
    nothing or never finished; topics that the last scan couldn't read; and subjects without a scanned topic, unless
    other subjects refer to them. `more_findings` counts findings beyond the limit.
    """

    passed: bool
    fail_on: str
    findings: tuple[FindingInfo, ...]
    unscanned: tuple[str, ...]
    more_findings: int = 0


@dataclass(frozen=True)
class _Scope:
    """The scope of a rollout: these registries and sources, and one subject or all of them (None)."""

    registries: Sequence[Registry]
    sources: Sequence[SourceInfo]
    subject: SubjectName | None


def check_rollout_gate(
    *,
    fail_on: str,
    registry: str = "",
    subject: str = "",
    source_id: int | None = None,
    limit: int = 200,
    by: Actor | None = None,
) -> Gate:
    """Return whether drift in a scope holds a rollout; acknowledged and muted findings don't.

    Unscanned data proves nothing, so it holds the rollout too, whether or not `by` may read its source. Raises
    InvalidInput for an unknown severity, InvalidName, RegistryNotFound, SourceNotFound, SubjectNotFound.
    """
    if fail_on not in SEVERITY_RANK:
        raise InvalidInput(f"fail_on must be one of {', '.join(SEVERITIES)}, not {fail_on[:40]!r}.")
    scope = _scope(registry, subject, source_id)
    worse = SEVERITIES[: SEVERITY_RANK[fail_on] + 1]
    rows = open_findings().filter(severity__in=worse, source__in=[source.id for source in scope.sources])
    if scope.subject is not None:
        rows = rows.filter(subject_name=scope.subject.qualified)
    ordered = rows.select_related("source__registry", "topic").order_by(WORST_FIRST, "-last_seen", "-id")[:limit]
    findings = tuple(finding_infos(ordered, by))
    more = rows.count() - len(findings) if len(findings) == limit else 0
    unscanned = tuple(dict.fromkeys(_unscanned(scope, source_id, extent_of(by, READ) if by else None)))
    return Gate(not findings and not unscanned, fail_on, findings, unscanned, more)


def _scope(registry: str, subject: str, source_id: int | None) -> _Scope:
    row = get_registry(registry) if registry else None
    sources = [source for source in list_sources(registry=registry) if source_id is None or source.id == source_id]
    if source_id is not None and not sources:
        of = f" of {registry}" if registry else ""
        raise SourceNotFound(f"There is no source {source_id}{of}.", source=source_id)
    name = parse_subject(subject) if subject else None
    versions = SchemaVersion.objects.filter(subject__context__registry=OuterRef("pk"), deleted_at=None)
    if name is not None:
        versions = versions.filter(among([name], "subject__"))
    used = Registry.objects.filter(Exists(versions)).order_by("name")
    registries = list(used.filter(pk=row.pk) if row else used)
    if name is not None and not registries:
        named = open_findings().filter(subject_name=name.qualified, source__in=[source.id for source in sources])
        if not named.exists():
            raise SubjectNotFound(f"Subject '{name.qualified}' not found.", subject=name.qualified)
    return _Scope([row] if row and name is None else registries, sources, name)


def _unscanned(scope: _Scope, source_id: int | None, extent: Extent | None) -> Iterator[str]:
    """Yield what no scan has read, with the reason."""
    yield from _unscanned_sources(scope.sources, extent)
    having = {source.registry for source in scope.sources}
    if source_id is None:
        bare = [registry.name for registry in scope.registries if registry.name not in having]
        yield from (f"{name} (no source)" for name in bare or ([] if having else ["all registries"]))
    last = {source.id: source.last_ended for source in scope.sources}
    rows = Topic.objects.filter(source__in=list(last), gone_at=None).select_related("source").order_by("name", "pk")
    topics = [row for row in rows if not why_left_out(row.source, row, last[row.source_id])]
    if scope.subject is None:
        yield from _unread(topics)
        for registry in scope.registries:
            if source_id is None and registry.name in having:
                yield from _unread_subjects(registry, topics)
        return
    for registry in scope.registries:
        numbers = {topic.pk for topic in own_topics(registry, scope.subject)}
        own = [topic for topic in topics if topic.pk in numbers]
        yield from _unread(own)
        if not any(topic.read_at for topic in own):
            yield f"{scope.subject.qualified} in {registry.name} (no scan reads a topic of it)"


def _unread(topics: Iterable[Topic]) -> Iterator[str]:
    """Yield the topics that the last scan couldn't read."""
    yield from (f"{topic.name} (not read: {topic.problem})" for topic in topics if topic.problem)


def _unread_subjects(registry: Registry, topics: Iterable[Topic]) -> Iterator[str]:
    """Yield the subjects without a scanned topic; subjects that others refer to may have no messages of their own."""
    read = {
        parse_subject(name, context=context_name(topic.source.context))
        for topic in topics
        if topic.read_at and topic.source.registry_id == registry.pk
        for side in SIDES
        for name in topic.subjects.get(side) or (f"{topic.name}-{side}",)
    }
    live = SchemaVersion.objects.filter(subject=OuterRef("pk"), deleted_at=None)
    referrers = SchemaReference.objects.filter(target__subject=OuterRef("pk"), schema__versions__deleted_at=None)
    rows = Subject.objects.filter(Exists(live), ~Exists(referrers.exclude(schema__versions=None)))
    names = rows.filter(context__registry=registry).values_list("context__name", "name")
    unread = sorted({SubjectName(*parts).qualified for parts in names if SubjectName(*parts) not in read})
    yield from (f"{name} in {registry.name} (no scan reads a topic of it)" for name in unread[:MAX_NAMED])
    if len(unread) > MAX_NAMED:
        yield f"{len(unread) - MAX_NAMED:,} more subjects in {registry.name} (no scan reads a topic of them)"


def _unscanned_sources(sources: Sequence[SourceInfo], extent: Extent | None) -> Iterator[str]:
    """Yield the sources whose newest finished scan proves nothing; sources that the reader may not see stay unnamed."""
    for source in sources:
        scan = source.last_ended
        if scan is None or scan.verdict != "scanned":
            name = source.name if extent is None or extent.has_all_of(source.registry) else OUT_OF_SIGHT
            yield f"{name} ({f'last scan: {scan.verdict}' if scan else 'never scanned'})"

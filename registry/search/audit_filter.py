"""Which audit events are about a subject or a registry, and which of them an actor may read, as SQL conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final

from django.db.models import (
    BigIntegerField,
    Exists,
    F,
    FilteredRelation,
    Model,
    OuterRef,
    Q,
    QuerySet,
    TextField,
    Value,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce
from django.db.models.lookups import Exact

from registry.access.name_patterns import NOTHING
from registry.access.permission_filters import Extent, require_extent
from registry.access.roles import Actor
from registry.audit.models import AuditEvent
from registry.drift.findings.redaction import NAMING_RULES
from registry.drift.models import Connector, Deployment, Finding, MinimumVersion, Mute, Source
from registry.promotions.models import (
    Acknowledgement,
    ApplyStep,
    BreakGlass,
    Comment,
    Environment,
    FreezeWindow,
    PromotionRequest,
    RecurringFreeze,
    Release,
    RenameDecision,
    RequestItem,
    Review,
    ReviewRule,
    Thread,
)
from registry.subjects.models import (
    ArchivedCopy,
    Association,
    Client,
    Config,
    Context,
    FieldTerm,
    Mode,
    Registry,
    Schema,
    SchemaReference,
    SchemaVersion,
    Subject,
    SubjectNote,
    VersionStatus,
)
from registry.subjects.models.registries import qualified
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: rows of each model whose events belong to a subject, newest first: a bound for what anybody can ask for
MOST: Final = 2_000
_PARTS: Final[tuple[type[Model], ...]] = (RequestItem, Review, Acknowledgement, Thread, ApplyStep, Release)
_PARTS_OF_SUBJECT: Final[tuple[type[Model], ...]] = (SchemaVersion, SubjectNote, FieldTerm, Association, Client)


def events_about(*, registry: str = "", subject: str = "") -> Q | None:
    """Return the condition of a subject's (qualified name) or registry's events, or a subject's in a registry.

    None means all events. A subject's events are those of its row, its versions and their statuses, its description,
    its compatibility and mode, its associations, its declared clients, its minimum version, its findings, and its
    requests with all that was said and decided there. What was deleted permanently is found by the events of its
    deletion: versions by their subject, a subject by its name. A constant number of queries. Raises RegistryNotFound,
    InvalidName.
    """
    registry_row = get_registry(registry) if registry else None
    if subject:
        return _of_subject(registry_row, parse_subject(subject))
    return None if registry_row is None else _of_registry(registry_row)


def _of_subject(registry: Registry | None, name: SubjectName) -> Q:
    there = {} if registry is None else {"registry": registry}
    named = FilteredRelation("subjects", condition=Q(subjects__name=name.subject))
    rows = Context.objects.filter(**there, name=name.context).annotate(named=named).values_list("pk", "named__pk")
    contexts, there_now = [pk for pk, _ in rows], [pk for _, pk in rows if pk is not None]
    subjects = [*there_now, *_gone_subjects(contexts, name.subject)]
    of_subject = [model._default_manager.filter(subject__in=there_now) for model in _PARTS_OF_SUBJECT]
    row_ids: dict[type[Model], list[int]] = {Subject: subjects}
    row_ids |= _newest([*of_subject, _findings(registry, name)]) | _requests(registry, name)
    versions = row_ids[SchemaVersion] = [*row_ids[SchemaVersion], *_gone_versions(subjects)]
    events = Q(pk__in=())
    for model, numbers in row_ids.items():
        events |= rows_of(model, numbers)
    for model in (Config, Mode):  # removing a setting deletes its row, which is found by its former values
        events |= Q(table=table_of(model)) & holds("context_id", contexts) & holds("subject_name", [name.subject])
    copies = Q(table=table_of(ArchivedCopy)) & holds("name", [name.qualified])
    events |= copies if registry is None else copies & holds("registry_id", [registry.pk])
    for gone in (RenameDecision, MinimumVersion):  # withdrawing one deletes its row
        events |= Q(table=table_of(gone)) & holds("subject_id", subjects)
    return events | Q(table=table_of(VersionStatus)) & holds("version_id", versions)


def _gone_subjects(contexts: Collection[int], name: str) -> list[int]:
    """Return permanently deleted subjects of the name, latest first: a name can be used again."""
    events = AuditEvent.objects.alias(name=KeyTextTransform("name", "before"))
    gone = events.filter(table=table_of(Subject), operation="DELETE", name=name, before__context_id__in=list(contexts))
    return [int(number) for number in gone.order_by("-pk").values_list("row_id", flat=True)[:MOST]]


def _gone_versions(subjects: Collection[int]) -> list[int]:
    """Return permanently deleted versions of the subjects, latest first."""
    events = AuditEvent.objects.alias(subject=KeyTextTransform("subject_id", "before"))
    gone = events.filter(
        ~Q(operation="INSERT"), table=table_of(SchemaVersion), subject__in=[str(pk) for pk in subjects]
    )
    removed = gone.filter(operation="DELETE").order_by("-pk")
    return [int(number) for number in removed.values_list("row_id", flat=True)[:MOST]]


def _findings(registry: Registry | None, name: SubjectName) -> QuerySet[Finding]:
    rows = Finding.objects.filter(subject_name=name.qualified)
    return rows if registry is None else rows.filter(source__registry=registry)


def _requests(registry: Registry | None, name: SubjectName) -> dict[type[Model], list[int]]:
    """Return the requests with the subject, from or to the registry, and the rows of all their parts."""
    items = RequestItem.objects.filter(context_name=name.context, subject_name=name.subject)
    if registry is not None:
        items = items.filter(Q(request__source__registry=registry) | Q(request__target__registry=registry))
    requests = list(items.order_by("-request_id").values_list("request_id", flat=True)[:MOST])
    parts = [model._default_manager.filter(request_id__in=requests) for model in _PARTS]
    return {PromotionRequest: requests, **_newest([*parts, Comment.objects.filter(thread__request_id__in=requests)])}


def _of_registry(registry: Registry) -> Q:
    """Return the condition of everything in a registry, by what a row refers to."""
    contexts = list(Context.objects.filter(registry=registry).values_list("pk", flat=True))
    environments = list(Environment.objects.filter(registry=registry).values_list("pk", flat=True))
    sources = list(Source.objects.filter(registry=registry).values_list("pk", flat=True))
    requests = PromotionRequest.objects.filter(Q(source__in=environments) | Q(target__in=environments))
    subjects = Subject.objects.filter(context__registry=registry)
    versions = SchemaVersion.objects.filter(subject__context__registry=registry)
    events = rows_of(Registry, [registry.pk]) | holds("registry_id", [registry.pk]) | holds("registry", [registry.name])
    events |= holds("context_id", contexts) | holds("environment_id", environments)
    ends = holds("source_id", environments) | holds("target_id", environments)
    events |= Q(table=table_of(PromotionRequest)) & ends
    events |= Q(table=table_of(Finding)) & holds("source_id", sources)
    for model in (SchemaVersion, SubjectNote, FieldTerm, Client, RenameDecision, MinimumVersion):
        events |= Q(table=table_of(model)) & refers("subject_id", subjects)
    events |= Q(table=table_of(VersionStatus)) & refers("version_id", versions)
    return events | Q(table__in=[table_of(model) for model in _PARTS]) & refers("request_id", requests)


def rows_of(model: type[Model], numbers: Iterable[int]) -> Q:
    """Return the condition of events of a model's rows with these ids."""
    return Q(table=table_of(model), row_id__in=[str(number) for number in numbers])


def holds(column: str, values: Collection[Any]) -> Q:
    """Return the condition of events whose row has one of the values in the column.

    The row is that after the event, or before a deletion.
    """
    return Q(**{f"after__{column}__in": list(values)}) | Q(
        after__isnull=True, **{f"before__{column}__in": list(values)}
    )


def refers(column: str, rows: QuerySet[Any]) -> Q:
    """Return the condition of events whose row refers to one of these; only for tables whose column is a number."""
    number = Cast(KeyTextTransform(column, Coalesce(OuterRef("after"), OuterRef("before"))), BigIntegerField())
    return Q(Exists(rows.filter(pk=number)))


def _newest(querysets: Sequence[QuerySet[Any]]) -> dict[type[Model], list[int]]:
    """Map each model to the ids of its newest rows; one query."""
    first, *others = (
        rows.order_by("-pk").annotate(of=Value(position)).values_list("of", "pk")[:MOST]
        for position, rows in enumerate(querysets)
    )
    row_ids: dict[type[Model], list[int]] = {rows.model: [] for rows in querysets}
    for position, number in first.union(*others, all=True):
        row_ids[querysets[position].model].append(number)
    return row_ids


def table_of(model: type[Model]) -> str:
    """Return a model's table, as events name it."""
    return model._meta.db_table


READ: Final = "audit.read"
#: tables by the column that says what their rows belong to
_OF_REGISTRY: Final = (Context, Config, Mode, Association, ArchivedCopy, Environment, Source, Deployment, Mute)
_OF_CONTEXT: Final = (Subject, Schema)
_OF_ENVIRONMENT: Final = (ReviewRule, FreezeWindow, RecurringFreeze, BreakGlass)
_OF_SOURCE: Final = (Connector, Finding)
_OF_SUBJECT: Final = (SchemaVersion, SubjectNote, FieldTerm, Association, Client, RenameDecision, MinimumVersion)
_OF_REQUEST: Final = (RequestItem, Review, Acknowledgement, Thread, ApplyStep, Release)
#: belongs to a source too; named here because this app may not import the table's
_STORES: Final = "streams_checkpointstore"
#: the tables that people can choose on the audit's page if they may not read all of it
TABLES: Final = tuple(
    sorted(
        {
            _STORES,
            *map(table_of, (Registry, PromotionRequest, Comment, SchemaReference, VersionStatus)),
            *map(table_of, (*_OF_REGISTRY, *_OF_CONTEXT, *_OF_ENVIRONMENT, *_OF_SOURCE, *_OF_SUBJECT, *_OF_REQUEST)),
        }
    )
)


def events_shown(by: Actor, *, registry: str = "", subject: str = "") -> Q | None:
    """Return the condition of the readable events about a subject or a registry, as in `events_about`; None for all.

    Raises NotSignedIn, NotAllowed, RegistryNotFound, InvalidName.
    """
    mine, about = events_for(by, registry=registry), events_about(registry=registry, subject=subject)
    return about if mine is None else mine if about is None else mine & about


def events_for(by: Actor, *, registry: str = "") -> Q | None:
    """Return the condition of the events that the actor may read, None for all; a constant number of queries.

    Raises NotSignedIn or NotAllowed if there are none, in the `registry` if one is named.
    """
    require_extent(by, READ, registry=registry)
    extent = require_extent(by, READ)
    if extent.is_whole:
        return None
    return _of_registries(extent) | _of_subjects(extent) | _of_requests(by)


def _of_registries(extent: Extent) -> Q:
    readable = extent.registries("name")
    registry_ids = [] if readable == NOTHING else list(Registry.objects.filter(readable).values_list("pk", flat=True))
    if not registry_ids:
        return NOTHING
    contexts = Context.objects.filter(registry__in=registry_ids)
    environments = list(Environment.objects.filter(registry__in=registry_ids).values_list("pk", flat=True))
    sources = list(Source.objects.filter(registry__in=registry_ids).values_list("pk", flat=True))
    there = list(contexts.values_list("pk", flat=True))
    subjects = Subject.objects.filter(context__in=there)
    events = rows_of(Registry, registry_ids)
    events |= _in(*_OF_REGISTRY) & holds("registry_id", registry_ids)
    events |= _in(*_OF_CONTEXT) & holds("context_id", there)
    events |= _in(*_OF_ENVIRONMENT) & holds("environment_id", environments)
    events |= (_in(*_OF_SOURCE) | Q(table=_STORES)) & holds("source_id", sources)
    events |= _in(*_OF_SUBJECT) & refers("subject_id", subjects)
    events |= _in(SchemaReference) & refers("schema_id", Schema.objects.filter(context__in=there))
    versions = SchemaVersion.objects.filter(subject__in=subjects)
    return events | _in(VersionStatus) & refers("version_id", versions)


def _of_subjects(extent: Extent) -> Q:
    """Return the condition of single subjects; those of whole registries are covered already."""
    some = Extent(tuple(part for part in extent.parts if part.patterns))
    if not some.parts:
        return NOTHING
    subjects = Subject.objects.covered_by(some)
    findings = Source.objects.alias(text=_text("subject_name")).filter(some.subjects("registry__name", "text"))
    return (
        _in(Subject) & refers("context_id", _contexts(some, "name"))
        | _in(Config, Mode) & refers("context_id", _contexts(some, "subject_name")) & ~_names_aliases()
        | _in(*_OF_SUBJECT) & refers("subject_id", subjects)
        | _in(VersionStatus) & refers("version_id", SchemaVersion.objects.filter(subject__in=subjects))
        | _in(Finding) & refers("source_id", findings) & ~_names_versions()
    )


def _contexts(some: Extent, column: str) -> Any:
    """Return the contexts in which the extent covers the subject that a column of the event's row names."""
    named = Context.objects.alias(text=_text(column)).filter(text__isnull=False)
    return named.alias(qualified=qualified(F("name"), F("text"))).filter(some.subjects("registry__name", "qualified"))


def _of_requests(by: Actor) -> Q:
    requests = PromotionRequest.objects.visible_to(by).order_by()
    return (
        _in(PromotionRequest) & refers("id", requests)
        | _in(*_OF_REQUEST) & refers("request_id", requests)
        | _in(Comment) & refers("thread_id", Thread.objects.filter(request__in=requests))
    )


def _names_versions() -> Q:
    """Return the condition of findings whose sentence or cause may name other subjects.

    The audit shows rows unchanged, so these stay hidden.
    """
    return (
        Q(after__rule__in=NAMING_RULES) | Q(before__rule__in=NAMING_RULES) | _has_cause("before") | _has_cause("after")
    )


def _has_cause(side: str) -> Q:
    """Return the condition that a finding's cause is of another subject; an old event names it in its cause alone."""
    nothing = Value("", TextField())
    cause = Coalesce(KeyTextTransform("cause_subject", side), KeyTextTransform("cause", side), nothing)
    own = Coalesce(KeyTextTransform("subject_name", side), nothing)
    return ~Q(Exact(cause, nothing)) & ~Q(Exact(cause, own))


def _names_aliases() -> Q:
    """Return the condition of configs that name another subject."""
    texts = [Q(**{f"{side}__{name}__gt": ""}) for side in ("before", "after") for name in ("alias", "alias_for_deks")]
    return reduce(or_, texts)


def _text(column: str) -> Any:
    """Return a column of the event's row, as text."""
    return KeyTextTransform(column, Coalesce(OuterRef("after"), OuterRef("before")))


def _in(*models: type[Model]) -> Q:
    return Q(table__in=[table_of(model) for model in models])

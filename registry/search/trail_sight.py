"""Which events of the audit somebody may read whose role isn't for everything, as a condition of SQL.

What isn't known to be theirs is nobody's: events of people, roles, tokens, clusters, subscriptions and webhooks are of no
registry, so that only whoever may read the whole audit reads them. A table that isn't named here is such a one too.

With a registry comes all that belongs to it, and the requests for it as an environment that they may read. With some
subjects of one come the events of these: their own rows, versions, standings, settings, notes, clients and findings.
A schema's row isn't among them, since it may have come with another subject of the same text.
"""

from __future__ import annotations

from typing import Any, Final

from django.db.models import F, Model, OuterRef, Q
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce

from registry.access.extent import NOTHING, Extent, require_extent
from registry.access.roles import Actor
from registry.drift.models import Connector, Deployment, Finding, LeastVersion, Mute, Source
from registry.drift.redaction import NAMING_RULES
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
from registry.promotions.selectors.sight import in_sight
from registry.search.trail import events_about, holds, refers, rows_of, table_of
from registry.subjects.models import (
    Association,
    Client,
    Config,
    Context,
    KeptCopy,
    Mode,
    Registry,
    Schema,
    SchemaReference,
    SchemaVersion,
    Subject,
    SubjectNote,
    VersionStanding,
)
from registry.subjects.selectors.naming import qualified

READ: Final = "audit.read"
#: tables by the column that says whose their rows are
_OF_REGISTRY: Final = (Context, Config, Mode, Association, KeptCopy, Environment, Source, Deployment, Mute)
_OF_CONTEXT: Final = (Subject, Schema)
_OF_ENVIRONMENT: Final = (ReviewRule, FreezeWindow, RecurringFreeze, BreakGlass)
_OF_SOURCE: Final = (Connector, Finding)
_OF_SUBJECT: Final = (SchemaVersion, SubjectNote, Association, Client, RenameDecision, LeastVersion)
_OF_REQUEST: Final = (RequestItem, Review, Acknowledgement, Thread, ApplyStep, Release)
#: of a source too; the app that has it isn't one that is asked from here
_STORES: Final = "streams_checkpointstore"
#: tables that the audit's page lets somebody choose from who may not read all of it
TABLES: Final = tuple(
    sorted(
        {
            _STORES,
            *map(table_of, (Registry, PromotionRequest, Comment, SchemaReference, VersionStanding)),
            *map(table_of, (*_OF_REGISTRY, *_OF_CONTEXT, *_OF_ENVIRONMENT, *_OF_SOURCE, *_OF_SUBJECT, *_OF_REQUEST)),
        }
    )
)


def events_shown(by: Actor, *, registry: str = "", subject: str = "") -> Q | None:
    """What somebody may read of the events about a subject or a registry, as `events_about` has them; None for all.

    Raises NotSignedIn, NotAllowed, RegistryNotFound, InvalidName.
    """
    mine, about = events_for(by, registry=registry), events_about(registry=registry, subject=subject)
    return about if mine is None else mine if about is None else mine & about


def events_for(by: Actor, *, registry: str = "") -> Q | None:
    """The events that somebody may read, None for all; a constant number of queries.

    Raises NotSignedIn, NotAllowed where there are none, in the `registry` where one is named.
    """
    require_extent(by, READ, registry=registry)
    extent = require_extent(by, READ)
    if extent.is_whole:
        return None
    return _of_registries(extent) | _of_subjects(extent) | _of_requests(by)


def _of_registries(extent: Extent) -> Q:
    readable = extent.registries("name")
    places = [] if readable == NOTHING else list(Registry.objects.filter(readable).values_list("pk", flat=True))
    if not places:
        return NOTHING
    contexts = Context.objects.filter(registry__in=places)
    environments = list(Environment.objects.filter(registry__in=places).values_list("pk", flat=True))
    sources = list(Source.objects.filter(registry__in=places).values_list("pk", flat=True))
    there = list(contexts.values_list("pk", flat=True))
    subjects = Subject.objects.filter(context__in=there)
    wanted = rows_of(Registry, places)
    wanted |= _in(*_OF_REGISTRY) & holds("registry_id", places)
    wanted |= _in(*_OF_CONTEXT) & holds("context_id", there)
    wanted |= _in(*_OF_ENVIRONMENT) & holds("environment_id", environments)
    wanted |= (_in(*_OF_SOURCE) | Q(table=_STORES)) & holds("source_id", sources)
    wanted |= _in(*_OF_SUBJECT) & refers("subject_id", subjects)
    wanted |= _in(SchemaReference) & refers("schema_id", Schema.objects.filter(context__in=there))
    versions = SchemaVersion.objects.filter(subject__in=subjects)
    return wanted | _in(VersionStanding) & refers("version_id", versions)


def _of_subjects(extent: Extent) -> Q:
    """Of subjects alone; those of whole registries are there already."""
    some = Extent(tuple(part for part in extent.parts if part.patterns))
    if not some.parts:
        return NOTHING
    name = qualified(F("context__name"), F("name"))
    subjects = Subject.objects.alias(qualified=name).filter(some.subjects("context__registry__name", "qualified"))
    findings = Source.objects.alias(said=_said("subject_name")).filter(some.subjects("registry__name", "said"))
    return (
        _in(Subject) & refers("context_id", _contexts(some, "name"))
        | _in(Config, Mode) & refers("context_id", _contexts(some, "subject_name"))
        | _in(*_OF_SUBJECT) & refers("subject_id", subjects)
        | _in(VersionStanding) & refers("version_id", SchemaVersion.objects.filter(subject__in=subjects))
        | _in(Finding) & refers("source_id", findings) & ~_names_versions()
    )


def _contexts(some: Extent, column: str) -> Any:
    """The contexts in which the subject that the event's row names in a column is one of these."""
    named = Context.objects.alias(said=_said(column)).filter(said__isnull=False)
    return named.alias(qualified=qualified(F("name"), F("said"))).filter(some.subjects("registry__name", "qualified"))


def _of_requests(by: Actor) -> Q:
    requests = in_sight(PromotionRequest.objects.order_by(), by)
    return (
        _in(PromotionRequest) & refers("id", requests)
        | _in(*_OF_REQUEST) & refers("request_id", requests)
        | _in(Comment) & refers("thread_id", Thread.objects.filter(request__in=requests))
    )


def _names_versions() -> Q:
    """Findings whose sentence may name other subjects: the audit shows a row as it is, so these stay out of sight."""
    return Q(after__rule__in=NAMING_RULES) | Q(before__rule__in=NAMING_RULES)


def _said(column: str) -> Any:
    """What the event's row has in a column, as a text."""
    return KeyTextTransform(column, Coalesce(OuterRef("after"), OuterRef("before")))


def _in(*models: type[Model]) -> Q:
    return Q(table__in=[table_of(model) for model in models])

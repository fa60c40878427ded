"""Links from audit events to the pages of their objects, if these still exist."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db.models import Q
from django.urls import reverse

from dashboard.components.links import subject_url
from registry.access.roles import Actor, may_somewhere
from registry.audit.selectors import AuditEntry, columns_of_rows
from registry.drift.models import Cluster, Finding, Source
from registry.notifications.models import Webhook
from registry.promotions.models import Environment, PromotionRequest, Thread
from registry.streams.models import StateCheck, StreamQuery
from registry.subjects.models import Context, Registry, SchemaVersion, Subject
from registry.subjects.versions.qualified_names import SubjectName

#: table → kind of object, and the column with its key ("" for the row's own key)
_ABOUT: Final[Mapping[str, tuple[str, str]]] = {
    "subjects_registry": ("registry", ""),
    "subjects_context": ("registry", "registry_id"),
    "subjects_keptcopy": ("registry", "registry_id"),
    "subjects_subject": ("subject", ""),
    "subjects_subjectnote": ("subject", "subject_id"),
    "subjects_fieldterm": ("subject", "subject_id"),
    "subjects_association": ("subject", "subject_id"),
    "subjects_client": ("subject", "subject_id"),
    "subjects_schema": ("schema", ""),
    "subjects_schemareference": ("schema", "schema_id"),
    "subjects_schemaversion": ("version", ""),
    "subjects_versionstanding": ("version", "version_id"),
    "promotions_environment": ("environment", ""),
    "promotions_reviewrule": ("environment", "environment_id"),
    "promotions_freezewindow": ("environment", "environment_id"),
    "promotions_recurringfreeze": ("environment", "environment_id"),
    "promotions_breakglass": ("environment", "environment_id"),
    "promotions_promotionrequest": ("request", ""),
    "promotions_requestitem": ("request", "request_id"),
    "promotions_review": ("request", "request_id"),
    "promotions_acknowledgement": ("request", "request_id"),
    "promotions_thread": ("request", "request_id"),
    "promotions_applystep": ("request", "request_id"),
    "promotions_release": ("request", "request_id"),
    "promotions_renamedecision": ("subject", "subject_id"),
    "promotions_comment": ("thread", "thread_id"),
    "drift_source": ("source", ""),
    "drift_connector": ("source", "source_id"),
    "streams_checkpointstore": ("source", "source_id"),
    "drift_deployment": ("registry", "registry_id"),
    "drift_finding": ("finding", ""),
    "drift_leastversion": ("subject", "subject_id"),
    "drift_cluster": ("cluster", ""),
    "streams_statecheck": ("check", ""),
    "streams_runningdescription": ("query", "query_id"),
    "notifications_webhook": ("webhook", ""),
}
#: tables whose rows share one page
_PAGES: Final = {
    "drift_mute": "mutes",
    "access_user": "people",
    "access_user_groups": "people",
    "auth_group": "people",
    "access_rolegrant": "people",
    "access_groupgrant": "people",
    "access_groupchannel": "people",
    "access_ownership": "people",
    "promotions_sameperson": "people",
    "access_apitoken": "tokens",
}
#: permission for such a page if reading isn't enough
_NEEDS: Final = {"people": "people.manage"}
_SETTINGS: Final = ("subjects_config", "subjects_mode")
_COLUMNS: Final = (
    "registry_id", "context_id", "subject_name", "subject_id", "schema_id", "version_id", "environment_id", "request_id",
    "thread_id", "source_id",
)  # fmt: skip


@dataclass
class _Targets:
    """The keys of the objects of a page's events, by kind."""

    numbers: dict[str, set[int]] = field(default_factory=dict)

    def add(self, kind: str, number: int) -> None:
        self.numbers.setdefault(kind, set()).add(number)

    def of(self, kind: str) -> Collection[int]:
        return self.numbers.get(kind, set())


def links_of(entries: Sequence[AuditEntry], actor: Actor) -> dict[int, str]:
    """Return the URL of each event's object; events without one are omitted. A bounded number of queries."""
    columns = columns_of_rows([entry.id for entry in entries if entry.table not in _PAGES], _COLUMNS)
    about, targets = {}, _Targets()
    for entry in entries:
        kind, column = _ABOUT.get(entry.table, ("", ""))
        number = columns.get(entry.id, {}).get(column) if column else entry.row_id
        if kind and number:
            about[entry.id] = (kind, int(number))
            targets.add(*about[entry.id])
    addresses = _addresses(targets, actor)
    settings = [entry.id for entry in entries if entry.table in _SETTINGS]
    return {
        **{
            entry.id: reverse(f"ui:{page}")
            for entry in entries
            if (page := _PAGES.get(entry.table)) and may_somewhere(actor, _NEEDS.get(page, "schema.read"))
        },
        **{event: addresses[what] for event, what in about.items() if what in addresses},
        **_of_settings({event: columns[event] for event in settings if event in columns}),
    }


def _addresses(targets: _Targets, actor: Actor) -> dict[tuple[str, int], str]:
    """Return the URL of each existing target by (kind, key); no query for an unused kind."""
    addresses = {
        **_environments_and_registries(targets),
        **_subjects(targets.of("subject")),
        **_versions(targets),
        **_requests(targets, actor),
    }
    for kind, model, page in _ONE_PAGE:
        if targets.of(kind):
            there = model._default_manager.filter(pk__in=targets.of(kind)).values_list("pk", flat=True)
            addresses |= {(kind, number): reverse(f"ui:{page}", args=[number]) for number in there}
    if targets.of("webhook"):
        hooks = Webhook.objects.filter(pk__in=targets.of("webhook"), owner_id=actor.user_id)
        addresses |= {
            ("webhook", number): reverse("ui:webhook", args=[name])
            for number, name in hooks.values_list("pk", "public_id")
        }
    return addresses


_ONE_PAGE: Final = (
    ("source", Source, "source"),
    ("finding", Finding, "finding"),
    ("cluster", Cluster, "cluster_edit"),
    ("check", StateCheck, "state_check"),
    ("query", StreamQuery, "query"),
)


def _environments_and_registries(targets: _Targets) -> dict[tuple[str, int], str]:
    addresses = {}
    if targets.of("registry"):
        names = Registry.objects.filter(pk__in=targets.of("registry")).values_list("pk", "name")
        addresses = {("registry", number): reverse("ui:subjects", args=[name]) for number, name in names}
    if targets.of("environment"):
        environments = Environment.objects.filter(pk__in=targets.of("environment")).values_list("pk", "registry__name")
        addresses |= {("environment", number): reverse("ui:environment", args=[name]) for number, name in environments}
    return addresses


def _subjects(numbers: Collection[int]) -> dict[tuple[str, int], str]:
    """Return the URLs of subjects with any version, including deleted ones, because these have a page."""
    if not numbers:
        return {}
    rows = Subject.objects.filter(pk__in=numbers, versions__isnull=False).distinct()
    names = rows.values_list("pk", "context__registry__name", "context__name", "name")
    return {
        ("subject", number): subject_url(registry, SubjectName(context, name).qualified)
        for number, registry, context, name in names
    }


def _versions(targets: _Targets) -> dict[tuple[str, int], str]:
    """Return the URLs of versions, and of schemas by their first version."""
    if not targets.of("version") and not targets.of("schema"):
        return {}
    rows = SchemaVersion.objects.filter(Q(pk__in=targets.of("version")) | Q(schema__in=targets.of("schema")))
    addresses: dict[tuple[str, int], str] = {}
    for pk, schema, version, registry, context, name in rows.order_by("pk").values_list(
        "pk", "schema_id", "version", "subject__context__registry__name", "subject__context__name", "subject__name"
    ):
        url = subject_url(registry, SubjectName(context, name).qualified, version=version)
        addresses[("version", pk)] = url
        addresses.setdefault(("schema", schema), url)
    return addresses


def _requests(targets: _Targets, actor: Actor) -> dict[tuple[str, int], str]:
    """Return the URLs of requests, and of discussions by their request; only its requester sees a draft."""
    threads = dict(_threads(targets.of("thread")))
    numbers = {*targets.of("request"), *threads.values()}
    if not numbers:
        return {}
    draft = Q(state=PromotionRequest.DRAFT) & ~Q(requested_by=actor.user_id)
    there = set(PromotionRequest.objects.filter(pk__in=numbers).exclude(draft).values_list("pk", flat=True))
    addresses = {("request", number): reverse("ui:promotion", args=[number]) for number in there}
    return addresses | {
        ("thread", thread): addresses[("request", request)] for thread, request in threads.items() if request in there
    }


def _threads(numbers: Collection[int]) -> Iterable[tuple[int, int]]:
    return Thread.objects.filter(pk__in=numbers).values_list("pk", "request_id") if numbers else ()


def _of_settings(events: Mapping[int, Mapping[str, str | None]]) -> dict[int, str]:
    """Return the settings page of each config's or mode's subject if it exists, else the registry's policy page."""
    if not events:
        return {}
    registries = dict(Registry.objects.filter(pk__in=_numbers(events, "registry_id")).values_list("pk", "name"))
    contexts = dict(Context.objects.filter(pk__in=_numbers(events, "context_id")).values_list("pk", "name"))
    names = {row["subject_name"] for row in events.values() if row["subject_name"]}
    rows = Subject.objects.filter(context__in=contexts, name__in=names, versions__isnull=False)
    there = set(rows.values_list("context_id", "name"))
    addresses = {}
    for event, row in events.items():
        registry, context = registries.get(int(row["registry_id"] or 0), ""), int(row["context_id"] or 0)
        if registry and (context, row["subject_name"]) in there:
            name = SubjectName(contexts[context], row["subject_name"] or "")
            addresses[event] = subject_url(registry, name.qualified, tab="settings")
        elif registry:
            addresses[event] = reverse("ui:policy", args=[registry])
    return addresses


def _numbers(events: Mapping[int, Mapping[str, str | None]], column: str) -> set[int]:
    return {int(row[column] or 0) for row in events.values()}

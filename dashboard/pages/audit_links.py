"""Where an event of the audit leads: to the page of what it is about, as long as that is there.

An event holds the number of its row and the numbers that the row refers to. The numbers of one kind are looked up at
once, so that a page of events takes the same queries whatever is on it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db.models import Q
from django.urls import reverse

from dashboard.links import subject_url
from registry.access.roles import Actor, may_somewhere
from registry.audit.selectors import AuditEntry, columns_of_rows
from registry.drift.models import Cluster, Finding, Source
from registry.notifications.models import Webhook
from registry.promotions.models import Environment, PromotionRequest, Thread
from registry.streams.models import StateCheck
from registry.subjects.models import Context, Registry, SchemaVersion, Subject
from registry.subjects.names import SubjectName

#: table → what its rows are about, and the column with the number of that ("" for the row's own)
_ABOUT: Final[Mapping[str, tuple[str, str]]] = {
    "subjects_registry": ("registry", ""),
    "subjects_context": ("registry", "registry_id"),
    "subjects_keptcopy": ("registry", "registry_id"),
    "subjects_subject": ("subject", ""),
    "subjects_subjectnote": ("subject", "subject_id"),
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
    "notifications_webhook": ("webhook", ""),
}
#: tables whose rows stand on one page for all
_PAGES: Final = {
    "drift_mute": "mutes",
    "access_user": "people",
    "access_user_groups": "people",
    "auth_group": "people",
    "access_rolegrant": "people",
    "access_groupgrant": "people",
    "access_ownership": "people",
    "promotions_sameperson": "people",
    "access_apitoken": "tokens",
}
#: of these, what a page takes beyond reading
_NEEDS: Final = {"people": "people.manage"}
_SETTINGS: Final = ("subjects_config", "subjects_mode")
_COLUMNS: Final = (
    "registry_id", "context_id", "subject_name", "subject_id", "schema_id", "version_id", "environment_id", "request_id",
    "thread_id", "source_id",
)  # fmt: skip


@dataclass
class _Wanted:
    """The numbers of each kind that events of one page are about."""

    numbers: dict[str, set[int]] = field(default_factory=dict)

    def add(self, kind: str, number: int) -> None:
        self.numbers.setdefault(kind, set()).add(number)

    def of(self, kind: str) -> Collection[int]:
        return self.numbers.get(kind, set())


def links_of(entries: Sequence[AuditEntry], actor: Actor) -> dict[int, str]:
    """Event → the address of what it is about; those without one aren't in it. A bounded number of queries."""
    columns = columns_of_rows([entry.id for entry in entries if entry.table not in _PAGES], _COLUMNS)
    about, wanted = {}, _Wanted()
    for entry in entries:
        kind, column = _ABOUT.get(entry.table, ("", ""))
        number = columns.get(entry.id, {}).get(column) if column else entry.row_id
        if kind and number:
            about[entry.id] = (kind, int(number))
            wanted.add(*about[entry.id])
    found = _addresses(wanted, actor)
    settings = [entry.id for entry in entries if entry.table in _SETTINGS]
    return {
        **{
            entry.id: reverse(f"ui:{page}")
            for entry in entries
            if (page := _PAGES.get(entry.table)) and may_somewhere(actor, _NEEDS.get(page, "schema.read"))
        },
        **{event: found[what] for event, what in about.items() if what in found},
        **_of_settings({event: columns[event] for event in settings if event in columns}),
    }


def _addresses(wanted: _Wanted, actor: Actor) -> dict[tuple[str, int], str]:
    """What is wanted and still there → its address; no query for a kind that nothing is of."""
    found = {**_places(wanted), **_subjects(wanted.of("subject")), **_versions(wanted), **_requests(wanted, actor)}
    for kind, model, page in _ONE_PAGE:
        if wanted.of(kind):
            there = model._default_manager.filter(pk__in=wanted.of(kind)).values_list("pk", flat=True)
            found |= {(kind, number): reverse(f"ui:{page}", args=[number]) for number in there}
    if wanted.of("webhook"):
        hooks = Webhook.objects.filter(pk__in=wanted.of("webhook"), owner_id=actor.user_id)
        found |= {
            ("webhook", number): reverse("ui:webhook", args=[name])
            for number, name in hooks.values_list("pk", "public_id")
        }
    return found


_ONE_PAGE: Final = (
    ("source", Source, "source"),
    ("finding", Finding, "finding"),
    ("cluster", Cluster, "cluster_edit"),
    ("check", StateCheck, "state_check"),
)


def _places(wanted: _Wanted) -> dict[tuple[str, int], str]:
    found = {}
    if wanted.of("registry"):
        names = Registry.objects.filter(pk__in=wanted.of("registry")).values_list("pk", "name")
        found = {("registry", number): reverse("ui:subjects", args=[name]) for number, name in names}
    if wanted.of("environment"):
        places = Environment.objects.filter(pk__in=wanted.of("environment")).values_list("pk", "registry__name")
        found |= {("environment", number): reverse("ui:environment", args=[name]) for number, name in places}
    return found


def _subjects(numbers: Collection[int]) -> dict[tuple[str, int], str]:
    """Subjects with a version of any kind, deleted ones too: those have a page."""
    if not numbers:
        return {}
    rows = Subject.objects.filter(pk__in=numbers, versions__isnull=False).distinct()
    names = rows.values_list("pk", "context__registry__name", "context__name", "name")
    return {
        ("subject", number): subject_url(registry, SubjectName(context, name).qualified)
        for number, registry, context, name in names
    }


def _versions(wanted: _Wanted) -> dict[tuple[str, int], str]:
    """Versions, and schemas by the first version that has them."""
    if not wanted.of("version") and not wanted.of("schema"):
        return {}
    rows = SchemaVersion.objects.filter(Q(pk__in=wanted.of("version")) | Q(schema__in=wanted.of("schema")))
    found: dict[tuple[str, int], str] = {}
    for pk, schema, version, registry, context, name in rows.order_by("pk").values_list(
        "pk", "schema_id", "version", "subject__context__registry__name", "subject__context__name", "subject__name"
    ):
        url = subject_url(registry, SubjectName(context, name).qualified, version=version)
        found[("version", pk)] = url
        found.setdefault(("schema", schema), url)
    return found


def _requests(wanted: _Wanted, actor: Actor) -> dict[tuple[str, int], str]:
    """Requests, and discussions by the request that they are of; a draft is its requester's alone."""
    threads = dict(_threads(wanted.of("thread")))
    numbers = {*wanted.of("request"), *threads.values()}
    if not numbers:
        return {}
    draft = Q(state=PromotionRequest.DRAFT) & ~Q(requested_by=actor.user_id)
    there = set(PromotionRequest.objects.filter(pk__in=numbers).exclude(draft).values_list("pk", flat=True))
    found = {("request", number): reverse("ui:promotion", args=[number]) for number in there}
    return found | {
        ("thread", thread): found[("request", request)] for thread, request in threads.items() if request in there
    }


def _threads(numbers: Collection[int]) -> Iterable[tuple[int, int]]:
    return Thread.objects.filter(pk__in=numbers).values_list("pk", "request_id") if numbers else ()


def _of_settings(events: Mapping[int, Mapping[str, str | None]]) -> dict[int, str]:
    """Compatibility and modes: to the settings of the subject that is there, else to the registry's policy."""
    if not events:
        return {}
    places = dict(Registry.objects.filter(pk__in=_numbers(events, "registry_id")).values_list("pk", "name"))
    contexts = dict(Context.objects.filter(pk__in=_numbers(events, "context_id")).values_list("pk", "name"))
    names = {row["subject_name"] for row in events.values() if row["subject_name"]}
    rows = Subject.objects.filter(context__in=contexts, name__in=names, versions__isnull=False)
    there = set(rows.values_list("context_id", "name"))
    found = {}
    for event, row in events.items():
        registry, context = places.get(int(row["registry_id"] or 0), ""), int(row["context_id"] or 0)
        if registry and (context, row["subject_name"]) in there:
            name = SubjectName(contexts[context], row["subject_name"] or "")
            found[event] = subject_url(registry, name.qualified, tab="settings")
        elif registry:
            found[event] = reverse("ui:policy", args=[registry])
    return found


def _numbers(events: Mapping[int, Mapping[str, str | None]], column: str) -> set[int]:
    return {int(row[column] or 0) for row in events.values()}

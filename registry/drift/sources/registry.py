"""The registry itself as a source: its versions, settings and accounts, compared with promotions and production advice.

The facts come from its own tables in a fixed number of queries, and from the audit log (changes of levels and modes).
The only outside data are the configurations of connectors that are also sources: four settings of each from Kafka
Connect, never a secret.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from urllib.parse import quote

from django.conf import settings
from django.db.models import Exists, F, Max, Min, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext_noop, ngettext

from registry.access.egress import parse_connection
from registry.access.http_client import HttpLimits, OutgoingClient
from registry.access.models import ApiToken, RoleGrant
from registry.access.roles import ACTIONS
from registry.audit.models import AuditEvent
from registry.drift.judge import in_order
from registry.drift.judge.model import RegisteredVersion
from registry.drift.judge.registries import REST_CHANNELS, judge_registry
from registry.drift.judge.registry_advice import (
    ConnectorSettings,
    LiveVersions,
    RegistryFacts,
    Relaxation,
    ScopedSetting,
    checklist,
    is_more_open,
    is_weaker,
)
from registry.drift.judge.topic_observations import milliseconds
from registry.drift.models import Connector, SchemaUse, Source, Topic
from registry.drift.rules.registries import REGISTRY_RULES
from registry.drift.scan.db_retry import retry_while_database_away
from registry.drift.scan_context.versions import VersionRow, environment_before, is_last, is_target, version_rows
from registry.drift.sources.base import WHAT_TO_READ, FieldSet, OnProgress, ScanResult, SourceDraft, SourceKind
from registry.errors import InvalidSource, RemoteUnavailable, SchemadeskError
from registry.subjects.models import Config, Context, Mode, Registry, SchemaVersion
from registry.subjects.policy.change_guard import unrequested
from registry.subjects.policy.effective_policy import DEFAULT_LEVEL, DEFAULT_MODE
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName

LIMITS: Final = HttpLimits(connect_seconds=3, read_seconds=5, total_seconds=10, max_bytes=2 * 1024 * 1024)
MAX_CONNECTORS: Final = 50
_OF_CONNECTORS: Final = frozenset({"CONNECTOR_AUTO_REGISTERS", "CONNECTOR_NOT_ON_LATEST"})
#: converters with a registry register automatically unless configured otherwise (Confluent's serializers)
_DEFAULTS: Final = {"auto.register.schemas": "true", "use.latest.version": "false"}
_REGISTERING: Final = ("avro", "protobuf", "jsonschema")


def connector_settings(registry: Registry) -> tuple[tuple[ConnectorSettings, ...], tuple[str, ...]]:
    """Return the settings of connectors that are sources of the registry, and the names of unreadable connectors."""
    settings, unknown = [], []
    rows = list(Connector.objects.filter(source__registry=registry).order_by("name"))
    for row in rows[:MAX_CONNECTORS]:
        try:
            settings.append(ConnectorSettings(row.name, settings_of(_config(row))))
        except SchemadeskError:  # the checklist reports it as unknown; the connector's own source reports why
            unknown.append(row.name)
    return tuple(settings), (*unknown, *(row.name for row in rows[MAX_CONNECTORS:]))


def settings_of(config: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the settings by name; None if the worker sets the side's converter or it doesn't use a registry."""
    settings: dict[str, str | None] = {}
    for side in ("key", "value"):
        converter = str(config.get(f"{side}.converter", "")).lower()
        speaks = any(part in converter for part in _REGISTERING)
        for name, default in _DEFAULTS.items():
            setting = f"{side}.converter.{name}"
            settings[setting] = str(config.get(setting, default))[:100] if speaks else None
    return settings


def _config(row: Connector) -> Mapping[str, Any]:
    connection = parse_connection(row.connect_url, user=row.connect_user, secret=row.connect_secret)
    with OutgoingClient(connection, limits=LIMITS) as client:
        response = client.call("GET", f"/connectors/{quote(row.name, safe='')}/config")
    config = response.json(f"The configuration of {row.name[:80]!r}") if response.status == 200 else None
    if not isinstance(config, dict):
        raise RemoteUnavailable(
            f"Kafka Connect at {connection.netloc} answered {response.status} for the configuration of "
            f"{row.name[:80]!r}.",
            status=response.status,
        )
    return config


Setting = Literal["level", "mode"]
#: table → what it sets, and its column
_TABLES: Final[Mapping[str, tuple[Setting, str]]] = {
    "subjects_config": ("level", "compatibility_level"),
    "subjects_mode": ("mode", "mode"),
}


@dataclass(frozen=True)
class SettingChange:
    """A level or mode that was set, changed or removed (None: inherited); `subject` is empty for a wider scope.

    `scope` is text: `the registry`, `context .eu`, `subject orders-value`.
    """

    at: int
    setting: Setting
    context: str | None
    subject: str
    before: str | None
    after: str | None
    by: str
    channel: str

    @property
    def scope(self) -> str:
        """Return its scope as text."""
        return scope_words(self.context, self.subject)

    @property
    def qualified(self) -> str:
        """Return the qualified subject, empty for a wider scope."""
        return SubjectName(self.context or DEFAULT_CONTEXT, self.subject).qualified if self.subject else ""


def scope_words(context: str | None, subject: str) -> str:
    """Return a scope as text."""
    if subject:
        return f"subject {SubjectName(context or DEFAULT_CONTEXT, subject).qualified}"
    return f"context {context}" if context is not None else "the registry"


def setting_changes(registry: Registry, since: datetime) -> list[SettingChange]:
    """Return all changes of levels and modes since then, oldest first; two queries."""
    contexts = dict(Context.objects.filter(registry=registry).values_list("pk", "name"))
    of_registry = Q(before__registry_id=registry.pk) | Q(after__registry_id=registry.pk)
    rows = AuditEvent.objects.filter(of_registry, table__in=_TABLES, at__gte=since).order_by("id")
    changes = [_change(row, contexts) for row in rows.values("at", "actor", "channel", "table", "before", "after")]
    return [change for change in changes if change is not None]


def _change(row: Mapping[str, Any], contexts: Mapping[int, str]) -> SettingChange | None:
    setting, column = _TABLES[row["table"]]
    before, after = row["before"] or {}, row["after"] or {}
    scope = after or before
    if before.get(column) == after.get(column):
        return None
    return SettingChange(
        at=milliseconds(row["at"]),
        setting=setting,
        context=contexts.get(scope.get("context_id") or 0),
        subject=scope.get("subject_name") or "",
        before=before.get(column),
        after=after.get(column),
        by=row["actor"],
        channel=row["channel"],
    )


HISTORY: Final = timedelta(days=90)
LATELY: Final = timedelta(days=30)

#: (context, subject) → its own setting; None for a wider scope
_Settings = Mapping[tuple[str | None, str | None], str]


def facts_of(registry: Registry) -> RegistryFacts:
    """Return the facts except those of connectors, which aren't in the database; about fifteen queries."""
    now, target, unapproved = timezone.now(), is_target(registry), unrequested(registry)
    levels = _own(Config.objects.filter(registry=registry, compatibility_level__isnull=False), "compatibility_level")
    modes = _own(Mode.objects.filter(registry=registry), "mode")
    changes = setting_changes(registry, now - HISTORY)
    return RegistryFacts(
        registry=registry.name,
        is_target=target,
        is_last=is_last(registry),
        unreleased=_unreleased(registry, unapproved) if unapproved is not None else (),
        differing=_differing(registry) if target else (),
        registered=_registered(registry, now, unapproved),
        relaxed_levels=tuple(_relaxations(changes, "level", levels, DEFAULT_LEVEL)),
        relaxed_modes=tuple(_relaxations(changes, "mode", modes, DEFAULT_MODE)),
        levels=_scoped(levels, DEFAULT_LEVEL),
        modes=_scoped(modes, DEFAULT_MODE),
        may_register=_may_register(registry),
        live=_live(registry, levels, now),
        scanned=Topic.objects.filter(source__registry=registry, read_at__isnull=False).exists(),
    )


# ---- promotions ---------------------------------------------------------------------------------------------------


def _unreleased(registry: Registry, unapproved: Q) -> tuple[RegisteredVersion, ...]:
    """Return live versions that were added without the request that they needed, newest first."""
    rows = version_rows(registry, unapproved & Q(deleted_at=None), unapproved=unapproved)
    newest = sorted(rows, key=lambda row: (-row.version.registered_at, row.version.subject, row.version.version))
    return tuple(row.version for row in newest)


def _differing(registry: Registry) -> tuple[tuple[RegisteredVersion, str], ...]:
    """Return versions with a different schema in the previous environment; a release explains its own number."""
    previous = environment_before(registry)
    if previous is None:
        return ()
    others = SchemaVersion.objects.filter(
        subject__context__registry=previous,
        subject__context__name=OuterRef("subject__context__name"),
        subject__name=OuterRef("subject__name"),
        version=OuterRef("version"),
        deleted_at=None,
    ).exclude(schema__fingerprint=OuterRef("schema__fingerprint"))
    condition = Q(Exists(others), deleted_at=None, releases__isnull=True)
    return tuple((row.version, previous.name) for row in version_rows(registry, condition, unapproved=None))


def _registered(
    registry: Registry, now: datetime, unapproved: Q | None
) -> tuple[tuple[RegisteredVersion, int | None], ...]:
    """Return versions recently registered through REST, with the time of the first message with their schema."""
    condition = Q(deleted_at=None, created_at__gte=now - LATELY, channel__in=sorted(REST_CHANNELS), imported=False)
    rows = sorted(version_rows(registry, condition, unapproved=unapproved), key=lambda row: -row.version.registered_at)
    first = _first_messages(registry, rows)
    return tuple((row.version, first.get((row.context, row.version.schema_id))) for row in rows)


def _first_messages(registry: Registry, rows: Iterable[VersionRow]) -> dict[tuple[str, int], int]:
    uses = (
        SchemaUse.objects.filter(
            topic__source__registry=registry, schema_id__in={row.version.schema_id for row in rows}
        )
        .values("topic__source__context", "schema_id")
        .annotate(first=Min("first_time"))
        .order_by()
    )
    first_times: dict[tuple[str, int], int] = {}
    for use in uses:
        key = use["topic__source__context"] or DEFAULT_CONTEXT, int(use["schema_id"] or 0)
        first_times[key] = min(milliseconds(use["first"]), first_times.get(key, milliseconds(use["first"])))
    return first_times


# ---- levels and modes ---------------------------------------------------------------------------------------------


def _own(rows: object, column: str) -> dict[tuple[str | None, str | None], str]:
    values = rows.values_list("context__name", "subject_name", column)  # type: ignore[attr-defined]  # of two models
    return {(context, subject or None): value for context, subject, value in values}


def _scoped(own: _Settings, default: str) -> tuple[ScopedSetting, ...]:
    """Return every scope with its own setting, and the registry as a whole."""
    whole = {(None, None): default, **own}
    return tuple(
        ScopedSetting(scope_words(context, subject or ""), whole[context, subject], _qualified(context, subject))
        for context, subject in sorted(whole, key=lambda scope: (scope[0] or "", scope[1] or ""))
    )


def _qualified(context: str | None, subject: str | None) -> str:
    return SubjectName(context or DEFAULT_CONTEXT, subject).qualified if subject else ""


def _effective(own: _Settings, default: str, scope: tuple[str | None, str | None]) -> str:
    """Return the setting in effect at a scope: its own, or that of the next wider one."""
    context, _ = scope
    return own.get(scope) or own.get((context, None)) or own.get((None, None)) or default


def _relaxations(changes: Sequence[SettingChange], setting: str, own: _Settings, default: str) -> Iterable[Relaxation]:
    """Yield the last relaxation of each scope, with the setting in effect now.

    An inherited setting counts as its wider scope's current value: that scope's own changes are reported separately.
    """
    last: dict[tuple[str | None, str | None], Relaxation] = {}
    for change in changes:
        if change.setting != setting:
            continue
        scope = change.context, change.subject or None
        without = {key: value for key, value in own.items() if key != scope}
        inherited = _effective(without, default, scope)
        before, after = change.before or inherited, change.after or inherited
        relaxes = is_weaker(before, after) if setting == "level" else is_more_open(before, after)
        if relaxes:
            last[scope] = Relaxation(change.scope, change.qualified, before, after, now="", by=change.by, at=change.at)
    for scope, relaxation in sorted(last.items(), key=lambda pair: (pair[0][0] or "", pair[0][1] or "")):
        yield replace(relaxation, now=_effective(own, default, scope))


# ---- people and data ----------------------------------------------------------------------------------------------


def _may_register(registry: Registry) -> tuple[str, ...]:
    """Return accounts with a valid API token and a role that may create versions there."""
    now = timezone.now()
    tokens = ApiToken.objects.filter(user=OuterRef("user"), revoked_at=None).filter(
        Q(expires_at=None) | Q(expires_at__gt=now)
    )
    grants = RoleGrant.objects.filter(
        Exists(tokens),
        role__in=sorted(ACTIONS["version.register"]),
        registry__in=("", registry.name),
        user__is_active=True,
    )
    names = set(grants.values_list("user__username", flat=True))
    if settings.ANONYMOUS_ROLE in ACTIONS["version.register"]:
        names.add("anonymous")
    return tuple(sorted(names))


def _live(registry: Registry, levels: _Settings, now: datetime) -> tuple[LiveVersions, ...]:
    """Return the versions of each subject whose schema is in messages that their topic still retains."""
    is_retained = Q(topic__compacted=True) | Q(topic__retention_ms=None) | Q(topic__retention_ms__lt=0)
    rows = (
        SchemaUse.objects.filter(topic__source__registry=registry, schema_id__isnull=False, topic__gone_at=None)
        .values("topic__source__context", "schema_id", retention=F("topic__retention_ms"))
        .annotate(last=Max("last_time"), always=Max("messages", filter=is_retained))
        .order_by()
    )
    ids: dict[str, set[int]] = {}
    for row in rows:
        context = row["topic__source__context"] or DEFAULT_CONTEXT
        if row["always"] or row["last"] >= now - timedelta(milliseconds=row["retention"] or 0):
            ids.setdefault(context, set()).add(int(row["schema_id"] or 0))
    if not ids:
        return ()
    condition = Q()
    for context, numbers in ids.items():
        condition |= Q(subject__context__name=context, schema__schema_id__in=numbers)
    numbers_by_subject: dict[tuple[str, str], set[int]] = {}
    for version in version_rows(registry, condition & Q(deleted_at=None), unapproved=None):
        numbers_by_subject.setdefault((version.context, version.name), set()).add(version.version.version)
    return tuple(
        LiveVersions(
            subject=SubjectName(context, name).qualified,
            level=_effective(levels, DEFAULT_LEVEL, (context, name)),
            versions=tuple(sorted(numbers)),
        )
        for (context, name), numbers in sorted(numbers_by_subject.items())
    )


class RegistryRules(SourceKind):
    """A registry's own tables."""

    name = "registry"
    label = gettext_noop("Registry settings")
    list_title = gettext_noop("Registries")
    rules = REGISTRY_RULES
    is_registry = True
    form = (
        FieldSet(
            WHAT_TO_READ,
            ("registry", "every_seconds"),
            gettext_noop("The registry’s settings, roles and versions are compared with the production advice."),
        ),
    )

    def amount(self, read: Mapping[str, Any]) -> str:
        """Return the number of advice items, and of those not followed, as text."""
        lines = read.get("advice", ())
        text = ngettext(
            "%(n)s piece of advice checked, %(broken)s not followed",
            "%(n)s pieces of advice checked, %(broken)s not followed",
            len(lines),
        )
        return text % {"n": f"{len(lines):,}", "broken": sum(line.get("followed") == "no" for line in lines)}

    def check(self, draft: SourceDraft) -> str:
        """Return the source's name, by default the registry's. Raises InvalidSource for a cluster or patterns."""
        if draft.cluster is not None or draft.include or draft.exclude:
            raise InvalidSource("A source of kind registry has no cluster and no patterns: it reads its own tables.")
        return draft.name.strip() or draft.registry.name

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Read the tables and judge them."""
        started = time.monotonic()
        on_progress(0, 2, "reading the registry's tables")
        facts = retry_while_database_away(lambda: facts_of(source.registry))
        on_progress(1, 2, "reading connector configurations")
        connectors, unknown = retry_while_database_away(lambda: connector_settings(source.registry))
        facts = replace(facts, connectors=connectors, connectors_unknown=unknown)
        findings = in_order(judge_registry(facts))
        return ScanResult(
            findings=tuple(findings),
            read=_read(facts, findings, time.monotonic() - started),
            complete=True,
            # Problems of a connector aren't gone because it can't be read.
            out_of_reach=_OF_CONNECTORS if unknown else frozenset(),
        )


def _read(facts: RegistryFacts, findings: Any, seconds: float) -> dict[str, Any]:
    """Return what the page shows: the advice and whether it is followed, and what was checked."""
    return {
        "nothing": False,
        "seconds": round(seconds, 2),
        "advice": checklist(facts, findings),
        "looked_at": {
            "settings": len(facts.levels) + len(facts.modes),
            "versions_registered_lately": len(facts.registered),
            "subjects_in_data": len(facts.live),
            "connectors": len(facts.connectors),
            "connectors_not_read": list(facts.connectors_unknown),
        },
    }

"""What a registry's own tables say of how it is run, in a number of queries that doesn't grow with what is there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Exists, F, Max, Min, OuterRef, Q
from django.utils import timezone

from registry.access.models import ApiToken, RoleGrant
from registry.access.roles import ACTIONS
from registry.drift.config_history import SettingChange, scope_words, setting_changes
from registry.drift.judge.model import RegisteredVersion
from registry.drift.judge.reading import milliseconds
from registry.drift.judge.registries import REST_DOORS
from registry.drift.judge.registry_facts import (
    LiveVersions,
    RegistryFacts,
    Relaxation,
    ScopedSetting,
    is_more_open,
    is_weaker,
)
from registry.drift.known_versions import VersionRow, environment_before, is_last, is_target, version_rows
from registry.drift.models import SchemaUse, Topic
from registry.subjects.arrivals import unrequested
from registry.subjects.models import Config, Mode, Registry, SchemaVersion
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName
from registry.subjects.selectors.effective import DEFAULT_LEVEL, DEFAULT_MODE

HISTORY: Final = timedelta(days=90)
LATELY: Final = timedelta(days=30)
MAX_ROWS: Final = 2_000

#: scope → its own setting; the scope is (context, subject), each None where it is wider
_Settings = Mapping[tuple[str | None, str | None], str]


def facts_of(registry: Registry) -> RegistryFacts:
    """The facts without those of connectors, which aren't in the database; some fifteen queries."""
    now, target, ghosts = timezone.now(), is_target(registry), unrequested(registry)
    levels = _own(Config.objects.filter(registry=registry, compatibility_level__isnull=False), "compatibility_level")
    modes = _own(Mode.objects.filter(registry=registry), "mode")
    changes = setting_changes(registry, now - HISTORY)
    return RegistryFacts(
        registry=registry.name,
        is_target=target,
        is_last=is_last(registry),
        unreleased=_unreleased(registry, ghosts) if ghosts is not None else (),
        differing=_differing(registry) if target else (),
        registered=_registered(registry, now, ghosts),
        relaxed_levels=tuple(_relaxations(changes, "level", levels, DEFAULT_LEVEL)),
        relaxed_modes=tuple(_relaxations(changes, "mode", modes, DEFAULT_MODE)),
        levels=_scoped(levels, DEFAULT_LEVEL),
        modes=_scoped(modes, DEFAULT_MODE),
        may_register=_may_register(registry),
        live=_live(registry, levels, now),
        scanned=Topic.objects.filter(source__registry=registry, read_at__isnull=False).exists(),
    )


# ---- promotions ---------------------------------------------------------------------------------------------------


def _unreleased(registry: Registry, ghosts: Q) -> tuple[RegisteredVersion, ...]:
    """Live versions that came without the request that they needed, the newest first."""
    rows = version_rows(registry, ghosts & Q(deleted_at=None), ghosts=ghosts)
    newest = sorted(rows, key=lambda row: (-row.version.registered_at, row.version.subject, row.version.version))
    return tuple(row.version for row in newest)[:MAX_ROWS]


def _differing(registry: Registry) -> tuple[tuple[RegisteredVersion, str], ...]:
    """Versions that the environment before has as another schema; a release explains its own number."""
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
    wanted = Q(Exists(others), deleted_at=None, releases__isnull=True)
    return tuple((row.version, previous.name) for row in version_rows(registry, wanted, ghosts=None)[:MAX_ROWS])


def _registered(
    registry: Registry, now: datetime, ghosts: Q | None
) -> tuple[tuple[RegisteredVersion, int | None], ...]:
    """Versions that came through REST lately, with the time of the first message that carries their schema."""
    wanted = Q(deleted_at=None, created_at__gte=now - LATELY, door__in=sorted(REST_DOORS), imported=False)
    rows = sorted(version_rows(registry, wanted, ghosts=ghosts), key=lambda row: -row.version.registered_at)[:MAX_ROWS]
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
    found: dict[tuple[str, int], int] = {}
    for use in uses:
        key = use["topic__source__context"] or DEFAULT_CONTEXT, int(use["schema_id"] or 0)
        found[key] = min(milliseconds(use["first"]), found.get(key, milliseconds(use["first"])))
    return found


# ---- levels and modes ---------------------------------------------------------------------------------------------


def _own(rows: object, column: str) -> dict[tuple[str | None, str | None], str]:
    values = rows.values_list("context__name", "subject_name", column)  # type: ignore[attr-defined]  # of two models
    return {(context, subject or None): value for context, subject, value in values}


def _scoped(own: _Settings, default: str) -> tuple[ScopedSetting, ...]:
    """Every scope with a setting of its own, and the registry as a whole."""
    whole = {(None, None): default, **own}
    return tuple(
        ScopedSetting(scope_words(context, subject or ""), whole[context, subject], _qualified(context, subject))
        for context, subject in sorted(whole, key=lambda scope: (scope[0] or "", scope[1] or ""))
    )


def _qualified(context: str | None, subject: str | None) -> str:
    return SubjectName(context or DEFAULT_CONTEXT, subject).qualified if subject else ""


def _effective(own: _Settings, default: str, scope: tuple[str | None, str | None]) -> str:
    """What counts at a scope: its own setting, or that of the next wider one."""
    context, _ = scope
    return own.get(scope) or own.get((context, None)) or own.get((None, None)) or default


def _relaxations(changes: Sequence[SettingChange], setting: str, own: _Settings, default: str) -> Iterable[Relaxation]:
    """The last change of each scope that let in more, as it was then, with what counts there now.

    A setting that is inherited counts as what its wider scope says now: that scope's own changes are told by itself.
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
            last[scope] = Relaxation(
                scope=change.scope,
                subject=change.qualified,
                before=before,
                after=after,
                now="",
                by=change.by,
                at=change.at,
            )
    for scope, relaxation in sorted(last.items(), key=lambda pair: (pair[0][0] or "", pair[0][1] or "")):
        yield replace(relaxation, now=_effective(own, default, scope))


# ---- people and data ----------------------------------------------------------------------------------------------


def _may_register(registry: Registry) -> tuple[str, ...]:
    """Accounts with a valid API token and a role that may create versions there."""
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
    """The versions of each subject whose schema stands in messages that their topic still keeps."""
    kept = Q(topic__compacted=True) | Q(topic__retention_ms=None) | Q(topic__retention_ms__lt=0)
    rows = (
        SchemaUse.objects.filter(topic__source__registry=registry, schema_id__isnull=False, topic__gone_at=None)
        .values("topic__source__context", "schema_id", retention=F("topic__retention_ms"))
        .annotate(last=Max("last_time"), always=Max("messages", filter=kept))
        .order_by()
    )
    ids: dict[str, set[int]] = {}
    for row in rows:
        context = row["topic__source__context"] or DEFAULT_CONTEXT
        if row["always"] or row["last"] >= now - timedelta(milliseconds=row["retention"] or 0):
            ids.setdefault(context, set()).add(int(row["schema_id"] or 0))
    if not ids:
        return ()
    wanted = Q()
    for context, numbers in ids.items():
        wanted |= Q(subject__context__name=context, schema__schema_id__in=numbers)
    found: dict[tuple[str, str], set[int]] = {}
    for version in version_rows(registry, wanted & Q(deleted_at=None), ghosts=None):
        found.setdefault((version.context, version.name), set()).add(version.version.version)
    return tuple(
        LiveVersions(
            subject=SubjectName(context, name).qualified,
            level=_effective(levels, DEFAULT_LEVEL, (context, name)),
            versions=tuple(sorted(numbers)),
        )
        for (context, name), numbers in sorted(found.items())
    )

"""Suspected causes of a finding: changes in the audit log shortly before it began. None is proved.

The judge's `cause` is the last change of the registry before the first message. This is all of them: releases,
registrations, deletions, levels and modes, declared clients, the source's own settings, and deployments that pipelines
reported. Message headers aren't stored, so unreported deployments are missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from django.db.models import Q

from registry.audit.models import AuditEvent
from registry.drift.evidence import read_evidence
from registry.drift.models import Finding
from registry.drift.scan_context.versions import environment_of
from registry.drift.selectors.deployments import DeploymentTarget, deployments_about
from registry.errors import FindingNotFound
from registry.subjects.models import Registry, SchemaVersion, Subject
from registry.subjects.policy.change_guard import unrequested
from registry.subjects.versions.qualified_names import parse_subject

Kind = Literal[
    "released", "registered", "unapproved", "deleted", "restored", "level", "mode", "client", "client_changed", "source",
    "deployed",
]  # fmt: skip
#: earlier changes are unlikely causes
WINDOW: Final = timedelta(hours=1)
#: events that are read, and suspicions that are returned, nearest first
MAX_LOOKED_AT: Final = 2_000
MAX_TOLD: Final = 6
_TABLES: Final = (
    "promotions_release",
    "subjects_schemaversion",
    "subjects_config",
    "subjects_mode",
    "subjects_client",
    "drift_source",
)
#: earlier message times aren't plausible: a producer may write any
_EARLIEST: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Suspicion:
    """A change, and how many seconds before the finding it happened.

    `version` and `request` are numbers; `name` is a client's name, a deployment's label, or the new level or mode (""
    if inherited); `subject` is the qualified name, "" for the whole registry or source. `url` is a deployment's
    address.
    """

    kind: Kind
    at: datetime
    seconds_before: int
    subject: str = ""
    version: int | None = None
    request: int | None = None
    name: str = ""
    url: str = ""


@dataclass(frozen=True)
class Suspicions:
    """The start of a finding, as far as known, and the changes in the hour before, nearest first."""

    began: datetime
    found: tuple[Suspicion, ...]


@dataclass(frozen=True)
class _FindingScope:
    """The rows that relate an event to the finding; `subject` is empty if the finding has none."""

    registry: Registry
    source: int
    subject: str
    subject_pk: int | None
    context_pk: int | None
    environment: int | None


def suspicions_of(finding_id: int) -> Suspicions:
    """Return the suspicions of a finding.

    Three queries, one of them over an hour of audit events, and some more if there are any. Raises FindingNotFound.
    """
    row = Finding.objects.select_related("source__registry__environment", "topic").filter(pk=finding_id).first()
    if row is None:
        raise FindingNotFound(f"There is no finding {finding_id}.", finding=finding_id)
    began = began_at(row.first_seen, read_evidence(row.rule, row.evidence))
    events = AuditEvent.objects.filter(table__in=_TABLES, at__gt=began - WINDOW, at__lte=began).order_by("-at", "-pk")
    columns = ("at", "operation", "table", "row_id", "before", "after")
    listed = list(events.values(*columns)[:MAX_LOOKED_AT])
    suspicions = [*_deployed(row, began), *(_changed(listed, _scope_of(row), began) if listed else ())]
    return Suspicions(began, tuple(sorted(suspicions, key=lambda item: item.seconds_before)[:MAX_TOLD]))


def concerned_by(row: Finding) -> DeploymentTarget:
    """Return what a finding is about, for deployments; expects its source's registry and its topic loaded."""
    return DeploymentTarget(row.source.registry.name, row.subject_name, row.topic.name if row.topic else "")


def _deployed(row: Finding, began: datetime) -> list[Suspicion]:
    """Return the newest deployments, few enough to leave room for changes that the audit log proves."""
    return [
        Suspicion(
            kind="deployed",
            at=info.at,
            seconds_before=round((began - info.at).total_seconds()),
            name=info.label,
            url=info.url,
        )
        for info in deployments_about(concerned_by(row), began - WINDOW, began)[: MAX_TOLD // 2]
    ]


def _changed(events: list[dict[str, Any]], scope: _FindingScope, began: datetime) -> tuple[Suspicion, ...]:
    """Return the suspicions from events about the finding."""
    kinds = ((event, _kind(event, scope)) for event in events)
    matches = [(event, kind) for event, kind in kinds if kind is not None]
    return _suspicions(matches[: MAX_TOLD * 2], scope, began)


def began_at(first_seen: datetime, evidence: Mapping[str, Any]) -> datetime:
    """Return the time of the first message in the evidence, or of the first scan that saw it, whichever is earlier."""
    times = [
        part["first_time"]
        for part in evidence.get("partitions", ())
        if isinstance(part, Mapping) and isinstance(part.get("first_time"), int)
    ]
    try:
        first = datetime.fromtimestamp(min(times) / 1000, tz=UTC) if times else first_seen
    except (OverflowError, OSError, ValueError):
        return first_seen
    return first if _EARLIEST < first < first_seen else first_seen


def _scope_of(row: Finding) -> _FindingScope:
    registry = row.source.registry
    subject_pk = context_pk = None
    if row.subject_name:
        name = parse_subject(row.subject_name)
        condition = Q(context__registry=registry, context__name=name.context, name=name.subject)
        subject_pk, context_pk = Subject.objects.filter(condition).values_list("pk", "context_id").first() or (
            None,
            None,
        )
    environment = environment_of(registry)
    return _FindingScope(
        registry, row.source_id, row.subject_name, subject_pk, context_pk, environment.pk if environment else None
    )


def _kind(event: Mapping[str, Any], scope: _FindingScope) -> Kind | None:
    """Return the kind of an event about the finding's subject or about all subjects; None for other events."""
    before, after = event["before"] or {}, event["after"] or {}
    row = after or before
    match event["table"]:
        case "drift_source" if event["row_id"] == str(scope.source) and event["operation"] == "UPDATE":
            return "source"
        case "subjects_config" | "subjects_mode" if _is_of_scope(row, scope):
            column = "compatibility_level" if event["table"] == "subjects_config" else "mode"
            if before.get(column) == after.get(column):
                return None
            return "level" if event["table"] == "subjects_config" else "mode"
        case "subjects_schemaversion" if scope.subject_pk and row.get("subject_id") == scope.subject_pk:
            return _version_kind(event["operation"], before, after)
        case "subjects_client" if scope.subject_pk and row.get("subject_id") == scope.subject_pk:
            if event["operation"] == "INSERT":
                return "client"
            return "client_changed" if before.get("version") != after.get("version") and after else None
        case "promotions_release" if event["operation"] == "INSERT" and scope.subject:
            is_here = row.get("environment_id") == scope.environment
            name = parse_subject(scope.subject)
            is_it = (row.get("context_name"), row.get("subject_name")) == (name.context, name.subject)
            return "released" if is_here and is_it else None
    return None


def _version_kind(operation: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Kind | None:
    if operation == "INSERT":
        return "registered"
    if operation == "DELETE" or (not before.get("deleted_at") and after.get("deleted_at")):
        return "deleted"
    return "restored" if before.get("deleted_at") and not after.get("deleted_at") else None


def _is_of_scope(row: Mapping[str, Any], scope: _FindingScope) -> bool:
    """Return whether a level or mode applies to the finding's subject: its own, its context's or the registry's."""
    if row.get("registry_id") != scope.registry.pk:
        return False
    name = row.get("subject_name") or ""
    if name:
        is_here = row.get("context_id") in (None, scope.context_pk)
        return bool(scope.subject) and name == parse_subject(scope.subject).subject and is_here
    return row.get("context_id") in (None, scope.context_pk)


def _suspicions(
    matches: Sequence[tuple[Mapping[str, Any], Kind]], scope: _FindingScope, began: datetime
) -> tuple[Suspicion, ...]:
    """Return each change once: a release without its own registration; unrequested versions become `unapproved`."""
    released = {event["after"].get("version_number") for event, kind in matches if kind == "released"}
    unapproved = _unapproved([event["row_id"] for event, kind in matches if kind == "registered"], scope.registry)
    suspicions = []
    for event, kind in matches:
        row = event["after"] or event["before"] or {}
        version = row.get("version_number", row.get("version")) if event["table"] != "subjects_config" else None
        if kind == "registered" and version in released:
            continue
        suspicions.append(
            Suspicion(
                kind="unapproved" if kind == "registered" and event["row_id"] in unapproved else kind,
                at=event["at"],
                seconds_before=round((began - event["at"]).total_seconds()),
                subject=scope.subject if kind not in ("level", "mode", "source") or row.get("subject_name") else "",
                version=version if isinstance(version, int) else None,
                request=row.get("request_id"),
                name=_name(kind, event["after"] or {}),
            )
        )
    return tuple(suspicions)


def _unapproved(rows: list[str], registry: Registry) -> set[str]:
    """Return the versions that were added without the request that they needed."""
    condition = unrequested(registry) if rows else None
    if condition is None:
        return set()
    return {str(pk) for pk in SchemaVersion.objects.filter(condition, pk__in=rows).values_list("pk", flat=True)}


def _name(kind: Kind, after: Mapping[str, Any]) -> str:
    column = {"level": "compatibility_level", "mode": "mode", "client": "name", "client_changed": "name"}.get(kind, "")
    return str(after.get(column) or "") if column else ""

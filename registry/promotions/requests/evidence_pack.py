"""Everything an auditor needs about one request, as one JSON value: changes, approvals, and proof of the result.

The proof has two parts. What is registered now is compared with what was approved. And the audit events of the request
come with their seals, each with its text and the previous seal, so that a reader can compute the seals again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from django.db.models import F, Model, QuerySet, Value
from django.utils import timezone

from registry.access.roles import Actor, may, refusal
from registry.audit import hash_chain
from registry.audit.selectors import AuditEntry, events_of_rows
from registry.errors import SchemadeskError
from registry.promotions.hook_points import origin_of, readable_findings
from registry.promotions.models import (
    Acknowledgement,
    ApplyStep,
    Comment,
    PromotionRequest,
    Release,
    RequestItem,
    Review,
    Thread,
)
from registry.promotions.plan.types import ADOPT, PlanStep, step_from
from registry.promotions.requests.schema_changes import compare_step, new_schema, places_of, state_before
from registry.promotions.requests.selectors import readable_request
from registry.promotions.selectors import RequestInfo
from registry.subjects.models import SchemaVersion
from registry.subjects.versions.lookup import get_registries
from registry.subjects.versions.versions import version_infos

FORMAT: Final = 1
#: the most schemas whose differences are in a pack; beyond that only the texts
MAX_COMPARED: Final = 50
MAX_EVENTS: Final = 2_000
#: codes of the checks with evidence from data, Spark state, dependants and clients at the target
EVIDENCE: Final = ("evidence.data", "evidence.state", "drift", "referrers", "clients", "acknowledged")
_PARTS: Final[tuple[type[Model], ...]] = (RequestItem, Review, Acknowledgement, Thread, ApplyStep, Release)
_SEAL: Final = "SHA-256 of the seal before it with the event's text behind it, in UTF-8, as hexadecimal digits"


def evidence_of(request_id: int, by: Actor) -> dict[str, Any]:
    """Return the pack of a request that the actor may read. Raises NotSignedIn, NotAllowed, RequestNotFound."""
    info = readable_request(request_id, by)
    steps = [step_from(stored) for stored in info.plan["steps"] if "kind" in stored]
    return {
        "format": FORMAT,
        "made_at": timezone.now(),
        "made_by": by.name,
        "request": _request(info, by),
        "plan": {
            "hash": info.plan_hash,
            "made_at": info.planned_at,
            "breaking": info.is_breaking,
            "target": info.plan.get("target", {}),
            "steps": [step.to_dict() for step in steps],
        },
        "changes": _changes(info, steps, by),
        "checks": info.checks,
        "evidence": [check for check in info.checks if check.get("code") in EVIDENCE],
        "reviews": [asdict(review) for review in info.reviews],
        "acknowledgements": [asdict(acknowledgement) for acknowledgement in info.acknowledgements],
        "rules": [
            {"rule": rule.sentence, "needed": rule.needed, "given": rule.given, "given_by": list(rule.given_by)}
            for rule in info.needed.rules
        ],
        "discussions": [asdict(thread) for thread in info.threads],
        "applied": [asdict(step) for step in info.steps],
        "read_back": _read_back(info),
        "audit": _audit(info, by),
    }


def _request(info: RequestInfo, by: Actor) -> dict[str, Any]:
    return {
        "number": info.id,
        "kind": info.kind,
        "state": info.state,
        "source": info.source,
        "target": info.target,
        "items": [
            {"subject": item.subject.qualified, "version": item.version, "fingerprint": item.fingerprint}
            for item in info.items
        ],
        "with_config": info.with_config,
        "reason": info.reason,
        "origin": origin_of(readable_findings([info.finding], by).get(info.finding or 0)),
        "requested_by": info.requested_by,
        "requested_at": info.requested_at,
        "applied_by": info.applied_by,
        "closed_at": info.closed_at,
        "failure": info.failure,
        "voided": info.moved,
    }


def _changes(info: RequestInfo, steps: Iterable[PlanStep], by: Actor) -> list[dict[str, Any]]:
    """Return, for each written schema, the differences from the target's former version, and findings both ways."""
    adding = [step for step in steps if step.adds or step.kind == ADOPT]
    return [
        {
            "subject": step.subject,
            "from_version": step.source_version,
            "to_version": step.target_version,
            "fingerprint": step.fingerprint,
            "level": state_before(info, step).get("level", ""),
            **(
                _compared(info, step, by)
                if number < MAX_COMPARED
                else _not_compared("Left out, because there are too many.")
            ),
        }
        for number, step in enumerate(adding)
    ]


def _not_compared(why: str) -> dict[str, Any]:
    return {"against_version": None, "note": why, "differences": [], "findings": []}


def _compared(info: RequestInfo, step: PlanStep, by: Actor) -> dict[str, Any]:
    secret = next((name for name in places_of(info, step) if not _may_read(by, name, step.subject)), "")
    if secret:
        return _not_compared(f"{by.name} doesn't have permission to read it in {secret}.")
    try:
        comparison = compare_step(info, step, get_registries((info.source, info.target)))
    except SchemadeskError as error:
        return _not_compared(error.message)
    if comparison is None:
        whole = new_schema(info, step)
        return {
            **_not_compared(f"{info.target} had no version of it, so all of it is new."),
            "schema": {
                "text": whole.text,
                "schema_type": whole.schema_type,
                "references": [asdict(reference) for reference in whole.references],
                "fields": [
                    {"path": row.path, "type": row.type, "required": row.required, "default": row.default}
                    for row in whole.fields
                ],
            },
        }
    if comparison.differences is None:
        return _not_compared(comparison.problem or "Its format differs from the version before.")
    reports = [report for report in (comparison.backward, comparison.forward) if report is not None]
    return {
        "against_version": comparison.old.version,
        "note": "",
        "differences": [item.to_dict() for item in comparison.differences],
        "findings": [item.to_dict() for report in reports for item in report.items],
    }


def _may_read(by: Actor, registry: str, subject: str) -> bool:
    return may(by, "schema.read", registry=registry, subject=subject)


def _read_back(info: RequestInfo) -> list[dict[str, Any]]:
    """Return each release compared with what is registered now, by fingerprint."""
    rows = list(Release.objects.filter(request_id=info.id).select_related("released_by").order_by("pk"))
    ids = [row.version_id for row in rows if row.version_id is not None]
    versions = list(SchemaVersion.objects.filter(pk__in=ids))
    there = {version.id: version for version in version_infos(versions)} if versions else {}
    return [_proof(row, there.get(row.version_id or 0)) for row in rows]


def _proof(row: Release, now: Any) -> dict[str, Any]:
    name = f":{row.context_name}:{row.subject_name}" if row.context_name != "." else row.subject_name
    return {
        "subject": name,
        "version": row.version_number,
        "schema_id": row.schema_id,
        "approved_fingerprint": row.fingerprint,
        "released_by": row.released_by.get_username(),
        "released_at": row.released_at,
        "registered_fingerprint": now.schema.fingerprint if now else None,
        "registered_id": now.schema.schema_id if now else None,
        "is_deleted": now is None or now.deleted,
        "is_equal": now is not None and now.schema.fingerprint == row.fingerprint,
    }


def _audit(info: RequestInfo, by: Actor) -> dict[str, Any]:
    """Return the audit events of the request and its parts, with the inputs of their seals, and the chain's head."""
    withheld = refusal(by, "audit.read")
    if withheld:
        return {"withheld": withheld, "events": [], "head": None, "seal": _SEAL}
    events = events_of_rows(_rows(info.id), limit=MAX_EVENTS)
    links = hash_chain.links_of([event.id for event in events])
    return {
        "withheld": "",
        "events": [_event(event, links.get(event.id)) for event in events],
        "head": asdict(hash_chain.head()),
        "seal": _SEAL,
    }


def _rows(request_id: int) -> Mapping[str, list[int]]:
    """Return the keys of the request, its parts and released versions, by table; one query."""
    parts = [_keys(model, model._default_manager.filter(request_id=request_id)) for model in _PARTS]
    comments = _keys(Comment, Comment.objects.filter(thread__request_id=request_id))
    released = Release.objects.filter(request_id=request_id, version__isnull=False)
    keys = {PromotionRequest._meta.db_table: [request_id]}
    for table, key in comments.union(*parts, _keys(SchemaVersion, released, "version_id"), all=True):
        keys.setdefault(table, []).append(key)
    return keys


def _keys(model: type[Model], rows: QuerySet[Any], key: str = "pk") -> QuerySet[Any, tuple[str, int]]:
    """Return the name of the model's table with each key."""
    keys: QuerySet[Any, tuple[str, int]] = (
        rows.order_by().annotate(table=Value(model._meta.db_table), key=F(key)).values_list("table", "key")
    )
    return keys


def _event(event: AuditEntry, link: hash_chain.Link | None) -> dict[str, Any]:
    return {**asdict(event), "sealed_text": link.text if link else None, "seal_before": link.before if link else None}

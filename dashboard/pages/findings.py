"""The findings, and one of them."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from dashboard.links import subject_url
from dashboard.pages.evidence import evidence_facts, evidence_tables
from dashboard.pages.finding_row import finding_row
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.sources import coverage_of, plural
from dashboard.presenters.drift import (
    FindingList,
    FindingPage,
)
from dashboard.presenters.frame import (
    Action,
    ActiveFilter,
    Choice,
    Crumb,
    Field,
    Filter,
    Link,
    Paging,
    Search,
    Section,
)
from dashboard.presenters.looks import Severity, SourceKind
from registry.access.roles import refusal
from registry.drift import selectors
from registry.promotions.selectors import list_environments

SHOWN = 200


def finding_list(request: HttpRequest) -> FindingList:
    """Findings, filtered by the query; open ones unless told otherwise."""
    query = request.GET.get("q", "").strip()
    state = request.GET.get("state", "open")
    severity, kind, source = (request.GET.get(name, "") for name in ("severity", "kind", "source"))
    found = selectors.list_findings(
        state="" if state == "all" else state,
        severity=severity,
        kind=kind,
        source_id=whole_number(source),
        text=query,
        limit=SHOWN,
    )
    order, sources = list_environments(), selectors.list_sources()
    scanned = [s.last_scan for s in sources if s.last_scan and s.last_scan.verdict == "scanned"]
    newest = max((scan.finished_at for scan in scanned if scan.finished_at), default=None)
    return FindingList(
        frame=make_frame(request, title="Findings", section=Section.FINDINGS),
        search=_finding_search(query, state, severity, kind),
        rows=tuple(finding_row(info, order) for info in found),
        paging=Paging(first=1 if found else 0, last=len(found), total=len(found)),
        clean=f"No drift in what {plural(len(scanned), 'source')} held at the last scan." if scanned else "",
        clean_at=newest,
        coverage=coverage_of(sources),
    )


def _finding_search(query: str, state: str, severity: str, kind: str) -> Search:
    base = reverse("ui:findings")
    chosen = {"q": query, "state": state if state != "open" else "", "severity": severity, "kind": kind}

    def choices(values: dict[str, str], selected: str) -> tuple[Choice, ...]:
        return tuple(Choice(value=key, label=label, selected=key == selected) for key, label in values.items())

    states = {"": "Open", "acknowledged": "Acknowledged", "resolved": "Resolved", "all": "All"}
    severities = {"": "Any severity"} | {each.code: each.look.word for each in Severity}
    kinds = {"": "Any source"} | {each.code: each.look.word for each in SourceKind}
    active = tuple(
        ActiveFilter(
            label=f"{name}: {value}",
            url=f"{base}?{urlencode({k: v for k, v in chosen.items() if v and k != name})}",
        )
        for name, value in chosen.items()
        if value
    )
    return Search(
        url=base,
        query=query,
        label="Search findings",
        placeholder="orders",
        filters=(
            Filter(name="state", label="State", choices=choices(states, chosen["state"])),
            Filter(name="severity", label="Severity", choices=choices(severities, severity)),
            Filter(name="kind", label="Source", choices=choices(kinds, kind)),
        ),
        active=active,
    )


def finding_page(request: HttpRequest, finding_id: int) -> FindingPage:
    """One finding. Raises FindingNotFound."""
    info = selectors.get_finding(finding_id)
    reason = refusal(page_actor(request), "finding.decide", registry=info.registry)
    related = [Link(label=f"Source {info.source_name}", url=reverse("ui:source", args=[info.source_id]))]
    if info.subject:
        related.append(Link(label=f"Subject {info.subject}", url=subject_url(info.registry, info.subject)))
    return FindingPage(
        frame=make_frame(
            request,
            title=info.rule.replace("_", " ").capitalize(),
            section=Section.FINDINGS,
            crumbs=(Crumb(label="Findings", url=reverse("ui:findings")),),
        ),
        finding=finding_row(info, list_environments()),
        what_it_means=info.sentence,
        remedies=tuple(part.strip() for part in info.remedy.split("\n") if part.strip()),
        evidence=evidence_tables(info.evidence),
        facts=evidence_facts(info.evidence),
        related=tuple(related),
        acknowledge=Action(
            label="Acknowledge",
            url=reverse("ui:finding_acknowledge", args=[info.id]),
            method="post",
            allowed=not reason,
            reason=reason,
            tone="primary",
        )
        if info.state == "open"
        else None,
        reason=Field(name="reason", label="Why it can stay for now", required=True, kind="textarea", rows=2)
        if info.state == "open"
        else None,
        acknowledged_by=info.acknowledged_by,
        acknowledged_reason=info.acknowledged_reason,
        resolved_at=info.resolved_at,
    )

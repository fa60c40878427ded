"""The findings that need a decision."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.finding_row import finding_row
from dashboard.pages.findings_filters import Chosen, finding_search, tallies
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.numbers import whole_number
from dashboard.pages.scanned import clean_of
from dashboard.pages.sources_coverage import coverage_of, unreadable_of
from dashboard.presenters.drift import Bulk, FindingList
from dashboard.presenters.frame import Paging, Section
from dashboard.presenters.looks import Severity, SourceKind
from registry.access.extent import refusal_in_any, require_extent
from registry.drift import selectors
from registry.promotions.selectors import list_environments, resolving

PAGE: Final = 50
MOST: Final = 1000


def finding_list(request: HttpRequest) -> FindingList:
    """Findings that the reader may read, filtered by the query; open ones that aren't muted unless told otherwise.

    Raises NotAllowed.
    """
    chosen = Chosen.of(request)
    registry, actor = chosen.get("registry"), page_actor(request)
    require_extent(actor, "schema.read", registry=registry)
    offset = min(whole_number(request.GET.get("offset", "")) or 0, MOST - PAGE) // PAGE * PAGE
    asked = chosen.arguments()
    if chosen.is_resolving:
        asked["unresolved_of"] = resolving(actor)
    found = selectors.list_findings(**asked, limit=offset + PAGE + 1, by=actor)
    page = found[offset : offset + PAGE]
    requests = resolving(actor, [info.id for info in page])
    counts = selectors.open_counts(registry, by=actor)
    order, sources = list_environments(), selectors.list_sources(registry=registry, by=actor)
    topics = selectors.topic_coverage([source.id for source in sources])
    scanned = [each.last_scan for each in sources if each.last_scan and each.last_scan.verdict == "scanned"]
    newest = max((scan.finished_at for scan in scanned if scan.finished_at), default=None)
    reason = refusal_in_any(actor, "finding.decide", registry=registry)
    return FindingList(
        frame=make_frame(request, title=gettext("Findings"), section=Section.FINDINGS),
        search=finding_search(chosen, counts),
        rows=tuple(finding_row(info, order, requests.get(info.id, ())) for info in page),
        paging=Paging(
            first=offset + 1 if page else 0,
            last=offset + len(page),
            total=None if len(found) > offset + PAGE else offset + len(page),
            previous_url=chosen.url(offset=str(offset - PAGE) if offset > PAGE else "") if offset else "",
            next_url=chosen.url(offset=str(offset + PAGE))
            if len(found) > offset + PAGE and offset + PAGE < MOST
            else "",
        ),
        clean=clean_of(scanned),
        clean_at=newest,
        next_scan_at=min((each.next_scan_at for each in sources if each.next_scan_at), default=None),
        coverage=coverage_of(sources, topics),
        unreadable=unreadable_of(sources, topics),
        by_severity=tallies(chosen, "severity", Severity, counts.by(0)),
        by_kind=tallies(chosen, "kind", SourceKind, counts.by(1)),
        muted=counts.muted,
        muted_url=chosen.url(muted="only"),
        mutes_url=reverse("ui:mutes"),
        bulk=Bulk(
            url=reverse("ui:findings_decide"),
            allowed=not reason,
            reason=reason,
            back=chosen.url(offset=str(offset) if offset else ""),
        ),
    )

"""One finding: its evidence, what to do, and what people decided."""

from __future__ import annotations

import shlex
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compare.sides import OBSERVED
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import subject_url
from dashboard.components.translation import later
from dashboard.components.widgets import Action, Crumb, Fact, Field, Link, Section
from dashboard.findings.evidence import evidence_facts, evidence_tables
from dashboard.findings.evidence_tables import bar_tables
from dashboard.findings.finding_list import finding_row
from dashboard.findings.mutes import still_blocking
from dashboard.findings.presenters import Command, FindingPage, HistoryRow
from dashboard.findings.related import affected, before_after, deployed_by_hour, observed, state_links, suspected
from dashboard.promotions.request_list import request_row
from dashboard.sources.labels import scan_refusal
from registry.access.roles import Actor, may, may_somewhere, refusal
from registry.audit.selectors import AuditEntry, AuditFilter, list_events
from registry.drift import selectors
from registry.drift.proposals.observed_schema import can_propose
from registry.drift.selectors import FindingInfo, SourceInfo
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors import FindingRequests, RequestInfo, list_environments, requests_for_finding

SHOWN_EVENTS: Final = 15
READ_EVENTS: Final = 100
SHOWN_COMMANDS: Final = 3
MOST_MESSAGES: Final = 100
#: columns of a finding whose change is worth a line → what is said
TOLD: Final = {
    "state": later("state: %(value)s"),
    "severity": later("severity: %(value)s"),
    "assigned_to": later("assigned to %(value)s"),
    "acknowledged_reason": later("reason: %(value)s"),
    "acknowledged_until": later("until %(value)s"),
    "muted": later("muted: %(value)s"),
}


def finding_page(request: HttpRequest, finding_id: int) -> FindingPage:
    """One finding. Raises FindingNotFound, NotSignedIn, NotAllowed."""
    actor = page_actor(request)
    info = selectors.get_finding(finding_id, by=actor)
    sees_source = may(actor, "schema.read", registry=info.registry)
    source = selectors.get_source(info.source_id)
    decide = refusal(actor, "finding.decide", registry=info.registry)
    is_open = info.state == "open"
    order, answers = list_environments(), requests_for_finding(info.id, actor)
    is_whole = request.GET.get("all") == "1"
    comparison, observed_note = observed(info, actor, is_whole=is_whole)
    return FindingPage(
        frame=make_frame(
            request,
            title=info.rule.replace("_", " ").capitalize(),
            section=Section.FINDINGS,
            crumbs=(Crumb(label=gettext("Findings"), url=reverse("ui:findings")),),
        ),
        finding=finding_row(info, order, (one.id for one in answers.requests if _is_under_way(one))),
        remedies=tuple(part.strip() for part in info.remedy.split("\n") if part.strip()),
        evidence=evidence_tables(info.rule, info.evidence),
        facts=(*evidence_facts(info.rule, info.evidence), *_hidden(actor, info)),
        related=_related(info, source, actor, sees_source=sees_source, is_comparable=comparison is not None),
        acknowledge=_post(gettext("Acknowledge"), "finding_acknowledge", info, decide, tone="primary")
        if is_open
        else None,
        reason=Field(
            name="reason",
            label=gettext("Reason to acknowledge it"),
            required=True,
            kind="textarea",
            rows=2,
            help=still_blocking(info.registry) if info.severity == "break" else "",
        ),
        until=Field(
            name="until",
            label=gettext("Until"),
            kind="date",
            help=gettext("The finding reopens after that day (UTC). Empty: acknowledged as long as it is seen."),
        ),
        acknowledged_by=info.acknowledged_by,
        acknowledged_reason=info.acknowledged_reason,
        acknowledged_until=info.acknowledged_until,
        resolved_at=info.resolved_at,
        cause=info.cause,
        suspected=suspected(info),
        commands=_commands(info, source) if sees_source else (),
        bars=bar_tables(info.evidence, deployed_by_hour(info)),
        reopen=None if is_open else _post(gettext("Reopen finding"), "finding_reopen", info, decide),
        assign=_post(gettext("Assign"), "finding_assign", info, decide),
        assignee=Field(
            name="to",
            label=gettext("Assigned to"),
            value=info.assigned_to or (actor.name if actor.user_id else ""),
            help=gettext("Account name. Empty: nobody.")
            if info.assigned_to
            else gettext("Account name. Empty: nobody. Not assigned yet."),
        ),
        mute=_mute(actor, info),
        scan=_scan(actor, source),
        history=_history(actor, info),
        propose=_propose(actor, info, "" if comparison else observed_note) if can_propose(info) else None,
        drafts=tuple(answers.drafts),
        requests=tuple(request_row(one, order) for one in answers.requests),
        released=_released(answers),
        reopened=info.reopened,
        detector=info.detector,
        observed=comparison,
        observed_all_url="" if is_whole else f"{reverse('ui:finding', args=[info.id])}?all=1",
        observed_note=observed_note,
        affected=affected(info, sees_queries=sees_source),
        before_after=before_after(info),
        clean_scans=gettext("%(seen)s of %(needed)s") % {"seen": info.clean_scans, "needed": source.clean_scans}
        if info.state != "resolved"
        else "",
    )


def _is_under_way(request: RequestInfo) -> bool:
    return request.is_open and request.state != PromotionRequest.DRAFT


def _post(label: str, name: str, info: FindingInfo, reason: str, tone: str = "plain") -> Action:
    url = reverse(f"ui:{name}", args=[info.id])
    return Action(label=label, url=url, method="post", allowed=not reason, reason=reason, tone=tone)


def _scan(actor: Actor, source: SourceInfo) -> Action:
    refused = scan_refusal(actor, source)
    return Action(
        label=gettext("Scan source again"),
        url=reverse("ui:source_scan", args=[source.id]),
        method="post",
        allowed=not refused,
        reason=refused,
        tone="primary",
        icon="scan-search",
    )


def _hidden(actor: Actor, info: FindingInfo) -> tuple[Fact, ...]:
    """Why samples that are there aren't shown."""
    if not info.samples_hidden:
        return ()
    return (
        Fact(
            label=gettext("Samples"), value=refusal(actor, "sample.read", registry=info.registry, subject=info.subject)
        ),
    )


def _propose(actor: Actor, info: FindingInfo, problem: str) -> Action:
    """The editor with a schema that has what was seen; it is the reader's to correct and to submit.

    `problem` says why none can be made, where that is known.
    """
    reason = (
        problem if problem else "" if may_somewhere(actor, "promotion.request") else refusal(actor, "promotion.request")
    )
    url = f"{reverse('ui:propose')}?{urlencode({'from': f'finding:{info.id}'})}"
    return Action(label=gettext("Propose schema"), url=url, allowed=not reason, reason=reason, icon="pencil")


def _released(answers: FindingRequests) -> tuple[Link, ...]:
    """The versions that came of the requests."""
    return tuple(
        Link(
            label=gettext("%(subject)s version %(version)s in %(target)s")
            % {"subject": info.subject.qualified, "version": info.release.version, "target": info.target},
            url=subject_url(info.target, info.subject.qualified, version=info.release.version),
        )
        for info in answers.requests
        if info.release
    )


def _mute(actor: Actor, info: FindingInfo) -> Action:
    reason = refusal(actor, "finding.mute", registry=info.registry)
    patterns = {"registry": info.registry, "rule": info.rule, "subject": info.subject, "location": _pattern(info)}
    url = f"{reverse('ui:mutes')}?{urlencode({name: value for name, value in patterns.items() if value})}"
    return Action(label=gettext("Mute similar findings"), url=url, allowed=not reason, reason=reason)


def _pattern(info: FindingInfo) -> str:
    """Where findings like it are: its topic, with any partition and offset."""
    return f"{info.topic}:*" if info.topic and info.location.startswith(f"{info.topic}:") else ""


def _related(
    info: FindingInfo, source: SourceInfo, actor: Actor, *, sees_source: bool, is_comparable: bool
) -> tuple[Link, ...]:
    links = []
    if sees_source:
        label = gettext("Source %(source_name)s") % {"source_name": info.source_name}
        links.append(Link(label=label, url=reverse("ui:source", args=[info.source_id])))
        links += state_links(info, actor)
    if info.subject:
        links.append(
            Link(
                label=gettext("Subject %(subject)s") % {"subject": info.subject},
                url=subject_url(info.registry, info.subject),
            )
        )
        links.append(Link(label=gettext("View version usage"), url=subject_url(info.registry, info.subject, "usage")))
        pair = _versions(info.evidence)
        if pair:
            url = subject_url(info.registry, info.subject, "compare", from_=pair[0], to=pair[1])
            links.append(
                Link(
                    label=gettext("Compare versions %(old)s and %(new)s") % {"old": pair[0], "new": pair[1]},
                    url=url,
                )
            )
        if is_comparable:
            compare_url = subject_url(info.registry, info.subject, "compare", to=f"{OBSERVED}-{info.id}")
            links.append(Link(label=gettext("Compare observed data with another version"), url=compare_url))
    if source.cluster and sees_source:
        links.append(
            Link(
                label=gettext("Decode a message"),
                url=f"{reverse('ui:decode')}?{urlencode({'registry': info.registry})}",
            )
        )
    return tuple(links)


def _versions(evidence: dict[str, Any]) -> tuple[int, int] | None:
    """The version that was seen and the one it should be, where both are schemas of the subject."""
    observed, newer = evidence.get("version"), evidence.get("newer") or evidence.get("latest_in_use")
    return (observed, newer) if isinstance(observed, int) and isinstance(newer, int) and observed != newer else None


def _commands(info: FindingInfo, source: SourceInfo) -> tuple[Command, ...]:
    """kcat's command for the first messages of each partition in the last scan; only for topics."""
    topic = str(info.evidence.get("topic") or info.topic)
    if not source.cluster or not topic:
        return ()
    commands = []
    examples = [
        {"partition": row["partition"], "first_offset": row["offset"], "last_offset": row["offset"]}
        for row in info.evidence.get("example", ())
    ]
    for number, row in enumerate([*examples, *info.evidence.get("partitions", ())][:SHOWN_COMMANDS]):
        count = min(MOST_MESSAGES, row["last_offset"] - row["first_offset"] + 1)
        arguments = ["kcat", "-C", "-b", source.bootstrap, *_security(source), "-t", topic, "-p", str(row["partition"])]
        arguments += ["-o", str(row["first_offset"]), "-c", str(count), "-e", "-f", "%p@%o %T %k %s\\n"]
        label = gettext("Partition %(partition)s, from offset %(offset)s") % {
            "partition": row["partition"],
            "offset": row["first_offset"],
        }
        commands.append(Command(label=label, text=shlex.join(arguments), anchor=f"command-{number}"))
    return tuple(commands)


def _security(source: SourceInfo) -> list[str]:
    """How kcat signs in; the password is the reader's to fill in."""
    info = selectors.get_cluster(source.cluster)
    if info.security_protocol == "PLAINTEXT":
        return []
    options = ["-X", f"security.protocol={info.security_protocol}"]
    if info.sasl_mechanism:
        options += ["-X", f"sasl.mechanism={info.sasl_mechanism}", "-X", f"sasl.username={info.username}"]
        options += ["-X", "sasl.password=…"]
    return [*options, "-X", "ssl.ca.location=ca.pem"] if info.ca_pem else options


def _history(actor: Actor, info: FindingInfo) -> tuple[HistoryRow, ...]:
    """Decisions and turns of a finding, newest first; that a scan saw it once more is none."""
    if not may(actor, "audit.read", registry=info.registry, subject=info.subject):
        return ()
    chosen = AuditFilter(table="drift_finding", row_id=str(info.id))
    rows = []
    for entry in list_events(chosen=chosen, limit=READ_EVENTS):
        what = _what(entry)
        if what:
            rows.append(HistoryRow(at=entry.at, who=entry.actor, what=what, why=entry.why))
    return tuple(rows[:SHOWN_EVENTS])


def _what(entry: AuditEntry) -> tuple[str, ...]:
    if entry.operation == "INSERT":
        return (gettext("found"),)
    changed = ((name, entry.after.get(name)) for name in TOLD if name in entry.after and entry.operation == "UPDATE")
    return tuple(
        TOLD[name] % {"value": _value(value)}
        for name, value in changed
        if value not in (None, "") or name == "assigned_to"
    )


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    return str(value) if value not in (None, "") else gettext("nobody")

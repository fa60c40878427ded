"""The page of a finding: its evidence, remedies, and decisions."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compare.comparison import VersionComparison
from dashboard.compare.sides import OBSERVED
from dashboard.components.forms import ServiceForm
from dashboard.components.frame import page_actor
from dashboard.components.links import map_url, subject_url, with_query
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Fact, Frame, Link, Problem
from dashboard.findings.decisions import AcknowledgeForm, AssignForm, finding_frame
from dashboard.findings.evidence import TITLES, evidence_facts, evidence_tables
from dashboard.findings.evidence_tables import SHOWN_ROWS, BarTable, EvidenceTable, bar_tables, offset_table
from dashboard.findings.finding_list import FindingRow, finding_row
from dashboard.findings.related import (
    Affected,
    BeforeAfter,
    SuspectedList,
    affected,
    before_after,
    deployed_by_hour,
    observed,
    state_links,
    suspected,
)
from dashboard.promotions.plan import RequestRow
from dashboard.promotions.request_list import request_row
from dashboard.sources.labels import scan_refusal
from registry.access.roles import Actor, may, may_somewhere, refusal
from registry.audit.selectors import AuditEntry, AuditFilter, list_events
from registry.drift import selectors
from registry.drift.proposals.observed_schema import can_propose
from registry.drift.selectors import FindingInfo, FindingOffsets, SourceInfo
from registry.lineage.graph import subject_node, topic_node
from registry.promotions.models import PromotionRequest
from registry.promotions.selectors import (
    DraftInfo,
    FindingRequests,
    RequestInfo,
    list_environments,
    requests_for_finding,
)

SHOWN_EVENTS: Final = 15
READ_EVENTS: Final = 100
SHOWN_COMMANDS: Final = 3
MOST_MESSAGES: Final = 100
#: columns of a finding whose changes are shown in the history → text
TOLD: Final = {
    "state": _("state: %(value)s"),
    "severity": _("severity: %(value)s"),
    "assigned_to": _("assigned to %(value)s"),
    "acknowledged_reason": _("reason: %(value)s"),
    "acknowledged_until": _("until %(value)s"),
    "muted": _("muted: %(value)s"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRow:
    """A decision on a finding, or a scan's change of it, from the audit."""

    event: AuditEntry
    what: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command to copy."""

    label: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingPage:
    """A finding with its evidence, and the forms of decisions; each `…_refused` says why the reader may not.

    `remedies` are one sentence each; `related` are links (the subject, the schema id's owner, the compare page).
    `commands` fetch the messages. `propose_refused` is None if no schema can be proposed for the finding. The reader's
    `drafts` and `requests` were started from it; `released` are the resulting versions. `affected` are clients and
    queries; `before_after` is a state variable's value, for findings in state. `observed` compares the data's shape
    with the declared schema, `observed_note` is a note on it, and `observed_all_url` the page with all of it.
    """

    frame: Frame
    finding: FindingRow
    acknowledge: AcknowledgeForm
    assign: AssignForm
    decide_refused: str
    mute_refused: str
    scan_refused: str
    needed_scans: int
    mute_url: str
    evidence: tuple[EvidenceTable, ...]
    facts: tuple[Fact, ...] = ()
    related: tuple[Link, ...] = ()
    problem: Problem | None = None
    suspected: SuspectedList | None = None
    commands: tuple[Command, ...] = ()
    bars: tuple[BarTable, ...] = ()
    propose_refused: str | None = None
    drafts: tuple[DraftInfo, ...] = ()
    requests: tuple[RequestRow, ...] = ()
    released: tuple[Link, ...] = ()
    history: tuple[HistoryRow, ...] = ()
    observed: VersionComparison | None = None
    observed_note: str = ""
    observed_all_url: str = ""
    affected: Affected | None = None
    before_after: BeforeAfter | None = None

    @property
    def propose_url(self) -> str:
        """The URL of the editor with a schema that fits the data, which the reader can correct and submit."""
        return f"{reverse('ui:propose')}?{urlencode({'from': f'finding:{self.finding.info.id}'})}"

    @property
    def remedies(self) -> list[str]:
        """The remedies."""
        return [part.strip() for part in self.finding.info.remedy.split("\n") if part.strip()]


def finding_page(request: HttpRequest, finding_id: int, sent: ServiceForm | None = None) -> FindingPage:
    """Return the page of a finding; `sent` is a refused form. Raises FindingNotFound, NotSignedIn, NotAllowed."""
    actor = page_actor(request)
    info = selectors.get_finding(finding_id, by=actor)
    sees_source = may(actor, "schema.read", registry=info.registry)
    source = selectors.get_source(info.source_id)
    order, answers = list_environments(), requests_for_finding(info.id, actor)
    is_whole = request.GET.get("all") == "1"
    comparison, observed_note = observed(info, actor, is_whole=is_whole)
    offsets = selectors.offsets_of(info, request.GET.get("after", ""), SHOWN_ROWS)
    return FindingPage(
        frame=finding_frame(request, info.rule.replace("_", " ").capitalize(), order),
        finding=finding_row(info, order, (one.id for one in answers.requests if _is_under_way(one))),
        acknowledge=sent if isinstance(sent, AcknowledgeForm) else AcknowledgeForm.of(info),
        assign=sent if isinstance(sent, AssignForm) else AssignForm.of(info, actor),
        decide_refused=refusal(actor, "finding.decide", registry=info.registry, subject=info.subject),
        mute_refused=refusal(actor, "finding.mute", registry=info.registry),
        scan_refused=scan_refusal(actor, source),
        needed_scans=source.clean_scans,
        mute_url=_mute_url(info),
        problem=sent.problem if sent else None,
        evidence=_evidence(request, info, offsets),
        facts=(
            *evidence_facts(info.rule, info.evidence),
            *_hidden(actor, info),
            *(_uncollected(offsets) if info.evidence else ()),
        ),
        related=_related(info, source, actor, sees_source=sees_source, is_comparable=comparison is not None),
        suspected=suspected(info),
        commands=_commands(info, source) if sees_source else (),
        bars=bar_tables(info.evidence, deployed_by_hour(info)),
        history=_history(actor, info),
        propose_refused=_propose_refused(actor, "" if comparison else observed_note) if can_propose(info) else None,
        drafts=tuple(answers.drafts),
        requests=tuple(request_row(one, order) for one in answers.requests),
        released=_released(answers),
        observed=comparison,
        observed_all_url="" if is_whole else f"{reverse('ui:finding', args=[info.id])}?all=1",
        observed_note=observed_note,
        affected=affected(info, sees_queries=sees_source),
        before_after=before_after(info),
    )


def _evidence(request: HttpRequest, info: FindingInfo, offsets: FindingOffsets) -> tuple[EvidenceTable, ...]:
    """Return the tables; the one of offsets only if it says more than where the last scan saw the messages."""
    tables = evidence_tables(info.rule, info.evidence)
    if not offsets.listed:
        return tables
    url, file_url = (reverse(f"ui:{name}", args=[offsets.finding]) for name in ("finding", "finding_offsets"))
    listed = offset_table(offsets, url, file_url, request.GET.get("after", ""))
    ranges = [(item.partition, item.first_offset, item.last_offset) for item in offsets.ranges]
    seen = [(row["partition"], row["first_offset"], row["last_offset"]) for row in info.evidence.get("partitions", ())]
    if offsets.listed != offsets.messages or ranges != seen:
        return (*tables, listed)
    return tuple(replace(one, files=listed.files) if one.title == TITLES["partitions"] else one for one in tables)


def _uncollected(offsets: FindingOffsets) -> tuple[Fact, ...]:
    """Say that a finding has messages although none is listed."""
    if offsets.collected:
        return ()
    text = gettext("Not collected: scans count these messages without listing them.")
    return (Fact(label=gettext("Messages by offset"), value=text),)


def _is_under_way(request: RequestInfo) -> bool:
    return request.is_open and request.state != PromotionRequest.DRAFT


def _hidden(actor: Actor, info: FindingInfo) -> tuple[Fact, ...]:
    """Say why existing samples aren't shown."""
    if not info.samples_hidden:
        return ()
    reason = refusal(actor, "sample.read", registry=info.registry, subject=info.subject)
    return (Fact(label=gettext("Samples"), value=reason or gettext("You can’t read the schema of these messages.")),)


def _propose_refused(actor: Actor, problem: str) -> str:
    """Say why the reader can't open the editor with a schema for the data; `problem` says why none can be made."""
    return problem or ("" if may_somewhere(actor, "promotion.request") else refusal(actor, "promotion.request"))


def _released(answers: FindingRequests) -> tuple[Link, ...]:
    """Return the versions that resulted from the requests."""
    return tuple(
        Link(
            label=gettext("%(subject)s version %(version)s in %(target)s")
            % {"subject": info.subject.qualified, "version": info.release.version, "target": info.target},
            url=subject_url(info.target, info.subject.qualified, version=info.release.version),
        )
        for info in answers.requests
        if info.release
    )


def _mute_url(info: FindingInfo) -> str:
    """Return the URL of the form that mutes similar findings."""
    patterns = {"registry": info.registry, "rule": info.rule, "subject": info.subject, "location": _pattern(info)}
    return with_query(reverse("ui:mutes"), patterns)


def _pattern(info: FindingInfo) -> str:
    """Return the location pattern of similar findings: the topic with any partition and offset."""
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
                Link(label=gettext("Compare versions %(old)s and %(new)s") % {"old": pair[0], "new": pair[1]}, url=url)
            )
        if is_comparable:
            compare_url = subject_url(info.registry, info.subject, "compare", to=f"{OBSERVED}-{info.id}")
            links.append(Link(label=gettext("Compare observed data with another version"), url=compare_url))
    node = subject_node(info.registry, info.subject) if info.subject else topic_node(info.registry, info.topic)
    if info.subject or info.topic:
        links.append(Link(label=gettext("Show on map"), url=map_url(node)))
    if source.cluster and sees_source:
        links.append(
            Link(
                label=gettext("Decode a message"),
                url=f"{reverse('ui:decode')}?{urlencode({'registry': info.registry})}",
            )
        )
    return tuple(links)


def _versions(evidence: dict[str, Any]) -> tuple[int, int] | None:
    """Return the observed and the expected version, if both are schemas of the subject."""
    observed, newer = evidence.get("version"), evidence.get("newer") or evidence.get("latest_in_use")
    return (observed, newer) if isinstance(observed, int) and isinstance(newer, int) and observed != newer else None


def _commands(info: FindingInfo, source: SourceInfo) -> tuple[Command, ...]:
    """Return kcat commands for the first messages of each partition in the last scan; only for topics."""
    topic = str(info.evidence.get("topic") or info.topic)
    if not source.cluster or not topic:
        return ()
    commands = []
    examples = [
        {"partition": row["partition"], "first_offset": row["offset"], "last_offset": row["offset"]}
        for row in info.evidence.get("example", ())
    ]
    for row in [*examples, *info.evidence.get("partitions", ())][:SHOWN_COMMANDS]:
        count = min(MOST_MESSAGES, row["last_offset"] - row["first_offset"] + 1)
        arguments = ["kcat", "-C", "-b", source.bootstrap, *_security(source), "-t", topic, "-p", str(row["partition"])]
        arguments += ["-o", str(row["first_offset"]), "-c", str(count), "-e", "-f", "%p@%o %T %k %s\\n"]
        label = gettext("Partition %(partition)s, from offset %(offset)s") % {
            "partition": row["partition"],
            "offset": row["first_offset"],
        }
        commands.append(Command(label=label, text=shlex.join(arguments)))
    return tuple(commands)


def _security(source: SourceInfo) -> list[str]:
    """Return kcat's options to authenticate; the reader fills in the password."""
    info = selectors.get_cluster(source.cluster)
    if info.security_protocol == "PLAINTEXT":
        return []
    options = ["-X", f"security.protocol={info.security_protocol}"]
    if info.sasl_mechanism:
        options += ["-X", f"sasl.mechanism={info.sasl_mechanism}", "-X", f"sasl.username={info.username}"]
        options += ["-X", "sasl.password=…"]
    return [*options, "-X", "ssl.ca.location=ca.pem"] if info.ca_pem else options


def _history(actor: Actor, info: FindingInfo) -> tuple[HistoryRow, ...]:
    """Return decisions and changes of state, newest first, without mere repetitions by scans."""
    if not may(actor, "audit.read", registry=info.registry, subject=info.subject):
        return ()
    chosen = AuditFilter(table="drift_finding", row_id=str(info.id))
    rows = (HistoryRow(event=entry, what=_what(entry)) for entry in list_events(chosen=chosen, limit=READ_EVENTS))
    return tuple([row for row in rows if row.what][:SHOWN_EVENTS])


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

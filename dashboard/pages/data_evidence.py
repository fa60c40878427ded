"""What real data say of a proposed schema: of the scans of the last weeks, and of a replay of messages."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.pages.frame import page_actor
from dashboard.presenters.frame import Problem
from dashboard.presenters.looks import Evidence
from dashboard.presenters.proof import EvidenceNote
from dashboard.presenters.report import DataEvidence, ReplayResult, ReplayRow
from dashboard.texts import counted, listing
from registry.access.roles import Actor, refusal
from registry.drift.data_evidence import WeighedReplay, evidence_lines, lines_of_items
from registry.drift.replay import ReplayReport, WriterReplay, replay_proposal
from registry.drift.weighing import EvidenceLine
from registry.errors import SchemadeskError
from registry.formats.assessment import Assessment
from registry.formats.base import Reference
from registry.subjects.names import SubjectName
from registry.subjects.selectors import Comparison
from registry.subjects.selectors.places import Registry

LOOKS = {look.code: look for look in Evidence}


def comparison_notes(
    registry: Registry, subject: SubjectName, found: Comparison, *, by: Actor
) -> dict[tuple[str, str], tuple[EvidenceNote, ...]]:
    """What the last weeks' data say of a comparison's findings; `registry` is where the data are.

    Four queries, none where nothing was found. Raises NotAllowed.
    """
    items = [item for report in (found.backward, found.forward) if report for item in report.items]
    return by_finding(note_of(line) for line in lines_of_items(registry, subject, items, by=by)) if items else {}


def by_finding(notes: Iterable[EvidenceNote]) -> dict[tuple[str, str], tuple[EvidenceNote, ...]]:
    """The notes by the rule and the path that they are of."""
    found: dict[tuple[str, str], tuple[EvidenceNote, ...]] = {}
    for note in notes:
        key = (note.rule, note.path)
        found[key] = (*found.get(key, ()), note)
    return found


def note_of(line: EvidenceLine) -> EvidenceNote:
    """A line of evidence for people."""
    return EvidenceNote(weight=LOOKS[line.weight], sentence=line.sentence, path=line.path, rule=line.rule)


def data_evidence(
    request: HttpRequest,
    registry: Registry,
    subject: SubjectName,
    assessment: Assessment,
    *,
    text: str,
    schema_type: str,
    references: list[Reference],
) -> DataEvidence:
    """What is known already; with `replay` in the form also what the newest messages read as under the text."""
    actor = page_actor(request)
    found, problem = None, None
    if request.POST.get("replay"):
        try:
            found = replay_proposal(
                registry, subject, by=actor, text=text, schema_type=schema_type, references=references
            )
        except SchemadeskError as error:
            problem = Problem(what=error.message)
    lines = evidence_lines(registry, subject, assessment, found, by=actor)
    return DataEvidence(
        notes=tuple(map(note_of, lines)),
        refusal=refusal(actor, "source.scan", registry=registry.name, subject=subject.qualified),
        replay=_replay(found) if found else None,
        problem=problem,
    )


def weighed_evidence(found: WeighedReplay) -> DataEvidence:
    """A replay and all that data say beside the rules."""
    return DataEvidence(notes=tuple(map(note_of, found.evidence)), replay=_replay(found.replay))


def _replay(report: ReplayReport) -> ReplayResult:
    left = (
        (report.no_value, counted(report.no_value, "%(n)s without a value", "%(n)s without a value")),
        (report.unframed, counted(report.unframed, "%(n)s not framed", "%(n)s not framed")),
        (report.unknown, counted(report.unknown, "%(n)s of an unknown writer", "%(n)s of an unknown writer")),
        (report.too_large, counted(report.too_large, "%(n)s too large", "%(n)s too large")),
        (report.not_tried, counted(report.not_tried, "%(n)s not tried in time", "%(n)s not tried in time")),
    )
    apart = listing(said for count, said in left if count)
    said = gettext("%(looked_at)s of the newest messages were looked at in %(seconds)s s") % {
        "looked_at": f"{report.looked_at:,}",
        "seconds": f"{report.seconds:.1f}",
    }
    return ReplayResult(
        topic=report.topic,
        sentence=gettext("%(said)s: %(apart)s.") % {"said": said, "apart": apart} if apart else f"{said}.",
        rows=tuple(_row(writer) for writer in report.writers),
    )


def _row(writer: WriterReplay) -> ReplayRow:
    versions = ", ".join(map(str, writer.versions))
    first = next(iter(writer.failures), None)
    return ReplayRow(
        writer=gettext("version %(versions)s") % {"versions": versions}
        if versions
        else f"{writer.framing} {writer.mark}",
        messages=writer.messages,
        read=writer.read,
        failed=writer.failed,
        foreign=writer.unreadable,
        first_failure=gettext("partition %(partition)s, offset %(offset)s: %(reason)s")
        % {"partition": first.partition, "offset": f"{first.offset:,}", "reason": first.reason}
        if first
        else "",
    )

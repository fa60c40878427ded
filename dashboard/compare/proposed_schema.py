"""A schema that isn't registered: compared with the newest version of its subject, and tried on real data.

The data are those of the scans of the last weeks, and of a replay of messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.compare.change_cards import MAX_CARDS, Notes, present_comparison
from dashboard.compare.comparison import VersionComparison
from dashboard.compare.proof import EvidenceNote
from dashboard.compatibility.presenters import DataEvidence, ReplayResult, ReplayRow
from dashboard.components.badges import EvidenceKind
from dashboard.components.frame import page_actor
from dashboard.components.translation import counted, listing
from dashboard.components.widgets import Problem
from registry.access.roles import Actor, refusal, require
from registry.drift.replay.evidence import EvidenceLine, WeighedReplay, evidence_lines, lines_of_items
from registry.drift.replay.schema_replay import ReplayReport, WriterReplay, replay_proposal
from registry.errors import NotFound, SchemadeskError
from registry.formats.assessment import Assessment
from registry.formats.base import Reference
from registry.subjects import selectors
from registry.subjects.selectors import Comparison as SchemaComparison
from registry.subjects.versions.lookup import Registry
from registry.subjects.versions.qualified_names import SubjectName

LOOKS = {look.code: look for look in EvidenceKind}


def comparison_notes(
    registry: Registry, subject: SubjectName, comparison: SchemaComparison, *, by: Actor
) -> dict[tuple[str, str], tuple[EvidenceNote, ...]]:
    """What the last weeks' data say of a comparison's findings; `registry` is where the data are.

    Four queries, none where nothing was found. Raises NotAllowed.
    """
    items = [item for report in (comparison.backward, comparison.forward) if report for item in report.items]
    return by_finding(note_of(line) for line in lines_of_items(registry, subject, items, by=by)) if items else {}


def by_finding(notes: Iterable[EvidenceNote]) -> dict[tuple[str, str], tuple[EvidenceNote, ...]]:
    """The notes by the rule and the path that they are of."""
    notes_by_finding: dict[tuple[str, str], tuple[EvidenceNote, ...]] = {}
    for note in notes:
        key = (note.rule, note.path)
        notes_by_finding[key] = (*notes_by_finding.get(key, ()), note)
    return notes_by_finding


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
    replay, problem = None, None
    if request.POST.get("replay"):
        try:
            replay = replay_proposal(
                registry, subject, by=actor, text=text, schema_type=schema_type, references=references
            )
        except SchemadeskError as error:
            problem = Problem(what=error.message)
    lines = evidence_lines(registry, subject, assessment, replay, by=actor)
    return DataEvidence(
        notes=tuple(map(note_of, lines)),
        refusal=refusal(actor, "source.scan", registry=registry.name, subject=subject.qualified),
        replay=_replay(replay) if replay else None,
        problem=problem,
    )


def weighed_evidence(weighed: WeighedReplay) -> DataEvidence:
    """A replay and all that data say beside the rules."""
    return DataEvidence(notes=tuple(map(note_of, weighed.evidence)), replay=_replay(weighed.replay))


def _replay(report: ReplayReport) -> ReplayResult:
    left = (
        (report.unreadable, counted(report.unreadable, "%(n)s not decodable", "%(n)s not decodable")),
        (report.no_value, counted(report.no_value, "%(n)s without a value", "%(n)s without a value")),
        (report.unframed, counted(report.unframed, "%(n)s without a schema id", "%(n)s without a schema id")),
        (
            report.unknown,
            counted(report.unknown, "%(n)s with an unknown writer schema", "%(n)s with an unknown writer schema"),
        ),
        (report.too_large, counted(report.too_large, "%(n)s too large", "%(n)s too large")),
        (report.not_tried, counted(report.not_tried, "%(n)s not tested in time", "%(n)s not tested in time")),
    )
    apart = listing(sentence for count, sentence in left if count)
    sentence = gettext("Read the newest messages: %(looked_at)s in %(seconds)s s") % {
        "looked_at": f"{report.looked_at:,}",
        "seconds": f"{report.seconds:.1f}",
    }
    return ReplayResult(
        topic=report.topic,
        sentence=gettext("%(said)s: %(apart)s.") % {"said": sentence, "apart": apart} if apart else f"{sentence}.",
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


def against_latest(
    registry: Registry,
    subject: SubjectName,
    *,
    by: Actor,
    text: str,
    schema_type: str,
    references: Sequence[Reference] = (),
    level: str = "",
    notes: Notes | None = None,
    limit: int | None = None,
    is_whole: bool = False,
    newest: int | None = None,
    order: list[str] | None = None,
) -> VersionComparison | None:
    """What the text changes of the newest live version, under a level or ("") the one in force; None without a version.

    `newest` is the number of that version (0: none) and `order` the environments' names, where they are read already.
    A text that can't be parsed is a comparison with a problem. `notes` are what data say, None where that isn't known
    yet; at most `limit` cards are made, None for as many as on other pages; all
    if `is_whole`. Raises NotAllowed.
    """
    require(by, "schema.read", registry=registry.name, subject=subject.qualified)
    try:
        number = selectors.list_versions(registry, subject)[-1] if newest is None else newest
    except NotFound:
        return None
    if not number:
        return None
    comparison = selectors.compare_text(selectors.Side(registry, subject, number), text, schema_type, references)
    return present_comparison(
        comparison,
        registry.name,
        registry.name,
        level=level or selectors.effective_config(registry, subject).level,
        notes=comparison_notes(registry, subject, comparison, by=by) if notes is None else notes,
        by=by,
        limit=None if is_whole else limit or MAX_CARDS,
        order=order,
    )

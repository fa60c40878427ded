"""An unregistered schema: compared with the newest version of its subject, and tested on real data.

The data come from recent scans and from a replay of messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.http import HttpRequest

from dashboard.compare.change_cards import MAX_CARDS, Notes, present_comparison
from dashboard.compare.comparison import VersionComparison
from dashboard.compatibility.presenters import DataEvidence
from dashboard.components.frame import page_actor
from dashboard.components.widgets import Problem
from registry.access.roles import Actor, refusal, require
from registry.drift.replay.evidence import EvidenceLine, evidence_lines, lines_of_items
from registry.drift.replay.schema_replay import replay_proposal
from registry.errors import NotFound, SchemadeskError
from registry.formats.assessment import Assessment
from registry.formats.base import Reference
from registry.subjects import selectors
from registry.subjects.selectors import Comparison as SchemaComparison
from registry.subjects.versions.lookup import Registry
from registry.subjects.versions.qualified_names import SubjectName


def comparison_notes(
    registry: Registry, subject: SubjectName, comparison: SchemaComparison, *, by: Actor
) -> dict[tuple[str, str], tuple[EvidenceLine, ...]]:
    """Return evidence from recent data on a comparison's findings; `registry` is where the data are.

    Four queries, none without findings. Raises NotAllowed.
    """
    items = [item for report in (comparison.backward, comparison.forward) if report for item in report.items]
    return by_finding(lines_of_items(registry, subject, items, by=by)) if items else {}


def by_finding(notes: Iterable[EvidenceLine]) -> dict[tuple[str, str], tuple[EvidenceLine, ...]]:
    """Group the notes by rule and path."""
    notes_by_finding: dict[tuple[str, str], tuple[EvidenceLine, ...]] = {}
    for note in notes:
        key = (note.rule, note.path)
        notes_by_finding[key] = (*notes_by_finding.get(key, ()), note)
    return notes_by_finding


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
    """Return existing evidence; with `replay` in the form, also how the newest messages are read with the text."""
    actor = page_actor(request)
    replay, problem = None, None
    if request.POST.get("replay"):
        try:
            replay = replay_proposal(
                registry, subject, by=actor, text=text, schema_type=schema_type, references=references
            )
        except SchemadeskError as error:
            problem = Problem(what=error.message)
    return DataEvidence(
        notes=tuple(evidence_lines(registry, subject, assessment, replay, by=actor)),
        refusal=refusal(actor, "source.scan", registry=registry.name, subject=subject.qualified),
        replay=replay,
        problem=problem,
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
    """Compare the text with the newest live version, under a level or ("") the one in force; None without a version.

    `newest` is that version's number (0: none) and `order` the environments' names, if already read. An invalid text
    gives a comparison with a problem. `notes` is evidence from data, None if not known yet; at most `limit` cards are
    made, None for the usual number; all if `is_whole`. Raises NotAllowed.
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

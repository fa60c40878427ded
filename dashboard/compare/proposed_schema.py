"""A schema that isn't registered: compared with the newest version of its subject, and tried on real data.

The data are those of the scans of the last weeks, and of a replay of messages.
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
    """What the last weeks' data say of a comparison's findings; `registry` is where the data are.

    Four queries, none where nothing was found. Raises NotAllowed.
    """
    items = [item for report in (comparison.backward, comparison.forward) if report for item in report.items]
    return by_finding(lines_of_items(registry, subject, items, by=by)) if items else {}


def by_finding(notes: Iterable[EvidenceLine]) -> dict[tuple[str, str], tuple[EvidenceLine, ...]]:
    """The notes by the rule and the path that they are of."""
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

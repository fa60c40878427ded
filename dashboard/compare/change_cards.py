"""A comparison of two versions as cards, groups and text, for the compare page and a promotion request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.utils.translation import gettext

from dashboard.compare.change_details import ChangeLocation, extras_of, places_of, shown_value
from dashboard.compare.comparison import (
    ChangeCard,
    ChangeGroup,
    ComparedSide,
    DirectionSummary,
    ExtraChange,
    UnchangedField,
    VersionComparison,
)
from dashboard.compare.proof import DIRECTIONS, MAX_RENAMES, RenameView, disagreement_note, proof_of, rename_views
from dashboard.components.badges import ChangeKind, Verdict, format_name
from dashboard.components.diff import MAX_ROWS, TextDiff, laid_out, laid_out_diff, text_diff
from dashboard.components.frame import environment_of
from dashboard.components.links import subject_url
from dashboard.components.translation import counted, listing
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Problem
from dashboard.subjects.page import pretty
from dashboard.templatetags.desk import below_path
from registry.access.roles import Actor
from registry.drift.replay.evidence import EvidenceLine
from registry.formats import format_of
from registry.formats.base import Difference
from registry.formats.compatibility import LEVELS
from registry.formats.report import DECISIVE, Profile, Report, ReportItem
from registry.promotions.selectors import list_environments
from registry.sandbox import WeighedCache
from registry.subjects import selectors

WORST_FIRST = (Verdict.BREAKS, Verdict.CARE, Verdict.UNKNOWN, Verdict.OK)
HEADLINES = {
    (True, True): _("Deploy in any order"),
    (True, False): _("Deploy consumers first"),
    (False, True): _("Deploy producers first"),
    (False, False): _("Needs a new topic, or deploy both sides at once"),
}
KINDS = {
    "added": ChangeKind.ADDED,
    "removed": ChangeKind.REMOVED,
    "changed": ChangeKind.CHANGED,
    "renamed": ChangeKind.RENAMED,
    "moved": ChangeKind.MOVED,
}
_LOSS = _("the established rules accept this, but data changes.")
_NO_PROOF = _("the established rules reject this, but no breaking data was found.")
#: changes and text rows on a page unless all are requested: more would make it too large
MAX_CARDS: Final = 50
MAX_TEXT: Final = 250
#: evidence from data, by a finding's rule and path
Notes = Mapping[tuple[str, str], Sequence[EvidenceLine]]
NO_NOTES: Final[Notes] = {}
#: unchanged fields listed on a page
MAX_UNCHANGED: Final = 2_000


def verdict_of(item: ReportItem, profile: Profile) -> Verdict:
    """Return the verdict of a finding in its direction under a profile."""
    return Verdict.BREAKS if item.severity in DECISIVE[profile] else Verdict.CARE


def present_comparison(
    comparison: selectors.Comparison,
    old_registry: str,
    new_registry: str,
    *,
    level: str,
    submitted: bool = False,
    limit: int | None = MAX_CARDS,
    notes: Notes = NO_NOTES,
    skipped: str = "",
    by: Actor | None = None,
    order: list[str] | None = None,
) -> VersionComparison:
    """Convert a comparison for display, with at most `limit` cards, worst first, and as many text rows and renames.

    `submitted` compares the texts as submitted, including formatting. `notes` is evidence from data, `skipped` a
    sentence about the versions in between, `by` who may decide suspected renames, `order` the environments' names, if
    already read. A failing direction breaks if the level requires that direction; otherwise it needs care, because the
    deployment order matters.
    """
    directions = LEVELS[level].directions
    order = list_environments() if order is None else order
    sides = tuple(
        _side(info, registry, order, named=comparison.old.subject != comparison.new.subject)
        for info, registry in ((comparison.old, old_registry), (comparison.new, new_registry))
    )
    if comparison.differences is None or comparison.backward is None or comparison.forward is None:
        texts = [info.submitted if submitted else pretty(info) for info in (comparison.old, comparison.new)]
        return _texts_alone(comparison, sides[0], sides[1], texts)
    proved = comparison if isinstance(comparison, selectors.ProvedComparison) else None
    renames = (
        rename_views(
            proved.renames,
            proved.new_text,
            (old_registry, new_registry),
            comparison.new.subject,
            by=by,
            limit=limit and MAX_RENAMES,
        )
        if proved
        else ()
    )
    weighing = _weigh(comparison, comparison.differences, comparison.backward, comparison.forward, directions)
    lossy = _lossy_paths(renames)
    weighed, count = _with_care(weighing, lossy) if lossy else (weighing.worst_first, weighing.count)
    extras = extras_of(comparison.old, comparison.new)
    drawn = [_card(item, notes) for item in weighed[:limit]]
    return VersionComparison(
        old=sides[0],
        new=sides[1],
        verdict=next((verdict for verdict in WORST_FIRST if count[verdict]), Verdict.OK),
        headline=_headline(comparison.backward, comparison.forward, any_change=bool(weighed), any_extra=bool(extras)),
        sentence=_sentence(comparison, count, extras, skipped),
        directions=_directions(comparison.backward, comparison.forward, is_lossy=bool(lossy)),
        groups=_groups(drawn),
        hidden_changes=len(weighed) - len(drawn),
        breaking=count[Verdict.BREAKS],
        care=count[Verdict.CARE] + count[Verdict.UNKNOWN],
        safe=count[Verdict.OK],
        text=_text(comparison, submitted=submitted, limit=MAX_TEXT if limit else MAX_ROWS),
        unproved=proved.unproved if proved else "",
        formatting_differs=comparison.old.submitted != comparison.new.submitted,
        same_meaning=comparison.same_meaning,
        disagreements=tuple(disagreement_note(item, f"disagreement-{n}") for n, item in enumerate(proved.disagreements))
        if proved
        else (),
        renames=renames,
        hidden_renames=len(proved.renames) - len(renames) if proved else 0,
        extras=extras,
        unchanged=tuple(UnchangedField(item.path, item.type) for item in proved.unchanged[:MAX_UNCHANGED])
        if proved
        else (),
    )


def _text(comparison: selectors.Comparison, *, submitted: bool, limit: int) -> TextDiff:
    """Compare the texts of two schemas with the same format."""
    old, new = comparison.old, comparison.new
    if submitted:
        return laid_out_diff(old.submitted, new.submitted, str, limit=limit)
    lay_out = laid_out if format_of(new.schema.schema_type).is_json else str
    return laid_out_diff(old.schema.text, new.schema.text, lay_out, limit=limit)


def _texts_alone(
    comparison: selectors.Comparison, old: ComparedSide, new: ComparedSide, texts: Sequence[str]
) -> VersionComparison:
    """Return a comparison of only the texts, for different formats or an unreadable side."""
    kinds = comparison.old.schema.schema_type, comparison.new.schema.schema_type
    problem = comparison.problem if isinstance(comparison, selectors.ProvedComparison) else ""
    differ = kinds[0] != kinds[1]
    return VersionComparison(
        old=old,
        new=new,
        verdict=Verdict.BREAKS if differ else Verdict.UNKNOWN,
        headline=HEADLINES[False, False] if differ else gettext("Compared as text only"),
        sentence=gettext("The format changed from %(old)s to %(new)s.")
        % {"old": format_name(kinds[0]), "new": format_name(kinds[1])}
        if differ
        else gettext("It is unknown whether the meaning differs."),
        text=text_diff(*texts),
        extras=extras_of(comparison.old, comparison.new),
        problem=Problem(
            what=gettext("Schemas in two formats can’t be compared field by field.") if differ else problem,
            cure=gettext("Data in one format can’t be read as the other. The texts are below.") if differ else "",
        ),
    )


def _side(info: selectors.VersionInfo, registry: str, order: list[str], *, named: bool) -> ComparedSide:
    return ComparedSide(
        environment=environment_of(registry, order, current=True),
        version=info.version,
        url=subject_url(registry, info.subject.qualified, version=info.version or None),
        subject=info.subject.qualified if named else "",
        format=info.schema.schema_type,
        schema_id=info.schema.schema_id,
        registered_at=info.created_at,
        registered_by=info.created_by,
    )


def _headline(backward: Report, forward: Report, *, any_change: bool, any_extra: bool) -> str:
    if any_change:
        headline = str(HEADLINES[backward.is_compatible, forward.is_compatible])
        return with_changes(headline, (backward, forward))
    return gettext("Same schema, other differences") if any_extra else gettext("Same meaning")


def with_changes(headline: str, reports: Iterable[Report]) -> str:
    """Add to the headline that readers get changed values, if they do."""
    read = [item for report in reports if report.is_compatible for item in report.items]
    changes = any(item.severity == "value loss" for item in read)
    return gettext("%(headline)s, but values change") % {"headline": headline} if changes else headline


def _sentence(
    comparison: selectors.Comparison, count: Mapping[Verdict, int], extras: Sequence[ExtraChange], skipped: str
) -> str:
    total = sum(count.values())
    if not total:
        differs = (
            gettext("only formatting differs")
            if comparison.old.submitted != comparison.new.submitted
            else gettext("the texts are identical")
        )
        sentence = gettext("No effect on readers or writers: %(differs)s.") % {"differs": differs}
    else:
        sentence = _verdict_sentence(count, total)
    if extras:
        beside = counted(len(extras), "%(n)s change outside the schema.", "%(n)s changes outside the schema.")
        sentence = f"{sentence} {beside}"
    return f"{sentence} {skipped}" if skipped else sentence


def _verdict_sentence(count: Mapping[Verdict, int], total: int) -> str:
    """Return the number of changes, in total and by verdict."""
    labels = {
        Verdict.BREAKS: counted(count[Verdict.BREAKS], "%(n)s breaking", "%(n)s breaking"),
        Verdict.CARE: counted(count[Verdict.CARE], "%(n)s to review", "%(n)s to review"),
        Verdict.UNKNOWN: counted(count[Verdict.UNKNOWN], "%(n)s not checked", "%(n)s not checked"),
        Verdict.OK: counted(count[Verdict.OK], "%(n)s safe", "%(n)s safe"),
    }
    parts = listing(label for verdict, label in labels.items() if count[verdict])
    return counted(total, "%(n)s change: %(parts)s.", "%(n)s changes: %(parts)s.", parts=parts)


def _lossy_paths(renames: Sequence[RenameView]) -> frozenset[str]:
    """Return the fields of likely renames that lose values, except pairs decided not to be renames."""
    likely = [view for view in renames if view.info.effect and (view.decided is None or view.decided.is_rename)]
    return frozenset(path for view in likely for path in (view.info.from_path, view.info.path))


def _with_care(weighing: _RankedChanges, lossy: frozenset[str]) -> tuple[tuple[_Weighed, ...], Mapping[Verdict, int]]:
    """Return the changes and their count, where a change that loses values isn't safe even if readers decode it."""
    weighed = [
        replace(item, verdict=Verdict.CARE) if item.verdict is Verdict.OK and item.location.path in lossy else item
        for item in weighing.worst_first
    ]
    counted_by = Counter(item.verdict for item in weighed)
    count = {verdict: counted_by[verdict] for verdict in Verdict}
    return tuple(sorted(weighed, key=lambda item: WORST_FIRST.index(item.verdict))), count


def _directions(backward: Report, forward: Report, *, is_lossy: bool) -> tuple[DirectionSummary, ...]:
    rows = (
        (gettext("New reader, old data"), gettext("a consumer upgraded first"), backward),
        (gettext("Old reader, new data"), gettext("a producer upgraded first"), forward),
    )
    return tuple(
        DirectionSummary(label=label, who=who, verdict=_overall(report, is_lossy=is_lossy), failing=len(report.breaks))
        for label, who, report in rows
    )


def _overall(report: Report, *, is_lossy: bool) -> Verdict:
    if not report.is_compatible:
        return Verdict.BREAKS
    return Verdict.CARE if report.hazards or is_lossy else Verdict.OK


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A change with its verdicts: counted and sorted before cards are made of the worst ones."""

    number: int
    location: ChangeLocation
    backward: Verdict
    forward: Verdict
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class _RankedChanges:
    """All changes, worst first, and the count of each verdict; `of` are the compared objects."""

    worst_first: tuple[_Weighed, ...]
    count: Mapping[Verdict, int]
    of: tuple[object, ...]


#: keyed by the ids of a comparison's parts; `of` keeps these alive, so that no id is reused
_weighings = WeighedCache[_RankedChanges](30_000, lambda weighing: len(weighing.worst_first) + 1)


def _weigh(
    comparison: selectors.Comparison,
    differences: Sequence[Difference],
    backward: Report,
    forward: Report,
    directions: Sequence[str],
) -> _RankedChanges:
    of = (
        differences,
        backward,
        forward,
        comparison.renames if isinstance(comparison, selectors.ProvedComparison) else (),
    )

    def make() -> _RankedChanges:
        change_places = places_of(comparison, differences, backward, forward)
        weighed = [
            _weighed(number, change_place, backward.profile, directions)
            for number, change_place in enumerate(change_places, start=1)
        ]
        counted_by = Counter(item.verdict for item in weighed)
        return _RankedChanges(
            tuple(sorted(weighed, key=lambda item: WORST_FIRST.index(item.verdict))),
            {verdict: counted_by[verdict] for verdict in Verdict},
            of,
        )

    return _weighings.get((*map(id, of), *directions), make)


def _weighed(number: int, change_place: ChangeLocation, profile: Profile, directions: Sequence[str]) -> _Weighed:
    backward, forward = _worst(change_place.backward, profile), _worst(change_place.forward, profile)
    return _Weighed(number, change_place, backward, forward, _judged(backward, forward, directions))


def _card(weighed: _Weighed, notes: Notes) -> ChangeCard:
    number, change_place = weighed.number, weighed.location
    items = [*change_place.backward, *change_place.forward]
    first_item = next(iter(sorted(items, key=lambda entry: entry.severity != "break")), None)
    difference = change_place.difference
    message = difference.message if difference else first_item.message if first_item else ""
    score = difference.score if difference else None
    sentence = below_path(message, change_place.path)
    if score is not None:
        sentence = gettext("%(sentence)s (suspected, %(score)s)") % {"sentence": sentence, "score": f"{score:.0%}"}
    shown = difference or first_item
    return ChangeCard(
        anchor=f"change-{number}",
        rule=shown.rule if shown else "",
        kind=KINDS[difference.kind] if difference else ChangeKind.CHANGED,
        path=change_place.path or gettext("the whole schema"),
        sentence=sentence,
        verdict=weighed.verdict,
        new_reads_old=weighed.backward,
        old_reads_new=weighed.forward,
        before=shown_value(shown.before) if shown else None,
        after=shown_value(shown.after) if shown else None,
        why="; ".join(difference.reasons if difference else ()) or (first_item.why if first_item else ""),
        remedy=first_item.remedy if first_item else "",
        evidence=tuple(dict.fromkeys(note for item in items for note in notes.get((item.rule, item.named_path), ()))),
        example=next((item.example for item in items if item.example), ""),
        disagreement=finding_disagreement(items),
        proofs=tuple(
            proof
            for index, item in enumerate(items)
            if (proof := proof_of(item.witness, item.direction, f"bytes-{number}-{index}"))
        ),
    )


def finding_disagreement(items: Sequence[ReportItem]) -> str:
    """Say where the rules judge a change differently than its data; a sentence per direction."""
    sentences = []
    for direction, label in DIRECTIONS.items():
        of_direction = [item for item in items if item.direction == direction]
        breaks = [item for item in of_direction if item.severity == "break"]
        if not breaks and any(item.severity == "value loss" for item in of_direction):
            sentences.append(f"{label}: {_LOSS}")
        elif breaks and all(item.witness is not None and not item.witness.found for item in breaks):
            sentences.append(f"{label}: {_NO_PROOF}")
    return " ".join(sentences)


def _judged(backward: Verdict, forward: Verdict, directions: Sequence[str]) -> Verdict:
    """Return the verdict of a change from its two directions, given the directions that the level requires."""
    if backward is forward is Verdict.OK:
        return Verdict.OK
    pairs = (("BACKWARD", backward), ("FORWARD", forward))
    weighed = [
        Verdict.CARE if verdict is Verdict.BREAKS and name not in directions else verdict for name, verdict in pairs
    ]
    return min(weighed, key=WORST_FIRST.index)


def _worst(items: Sequence[ReportItem], profile: Profile) -> Verdict:
    if not items:  # most changes have findings in one direction only
        return Verdict.OK
    return Verdict.BREAKS if any(verdict_of(item, profile) is Verdict.BREAKS for item in items) else Verdict.CARE


def _groups(cards: Sequence[ChangeCard]) -> tuple[ChangeGroup, ...]:
    """Group the cards by the record that contains the field; the group with the worst card comes first."""
    groups: dict[str, list[ChangeCard]] = {}
    for card in cards:
        groups.setdefault(card.path.rpartition(".")[0] or card.path, []).append(card)
    return tuple(ChangeGroup(name=name, cards=tuple(inside)) for name, inside in groups.items())

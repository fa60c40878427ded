"""A comparison of two versions as cards, groups and text: for the compare page and inside a promotion request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.change_extras import extras_of
from dashboard.pages.change_places import Place, places_of
from dashboard.pages.frame import environment_of
from dashboard.pages.proofs import DIRECTIONS, MAX_RENAMES, parting_note, proof_of, rename_views
from dashboard.pages.renames import with_decisions
from dashboard.pages.subjects import pretty
from dashboard.pages.values import shown_value
from dashboard.presenters.comparison import (
    ChangeCard,
    ChangeGroup,
    Comparison,
    DirectionSummary,
    ExtraChange,
    Side,
    UnchangedField,
)
from dashboard.presenters.frame import Problem
from dashboard.presenters.json_layout import laid_out
from dashboard.presenters.looks import ChangeKind, Verdict, format_name
from dashboard.presenters.proof import EvidenceNote
from dashboard.presenters.text_diff import MAX_ROWS, TextDiff, laid_out_diff, text_diff
from dashboard.texts import counted, later, listing
from registry.access.roles import Actor
from registry.formats.base import Difference
from registry.formats.compatibility import LEVELS
from registry.formats.report import DECISIVE, Profile, Report, ReportItem
from registry.promotions.selectors import list_environments
from registry.sandbox.cache import WeighedCache
from registry.subjects import selectors

WORST_FIRST = (Verdict.BREAKS, Verdict.CARE, Verdict.UNKNOWN, Verdict.OK)
HEADLINES = {
    (True, True): later("Deploy in any order"),
    (True, False): later("Deploy consumers first"),
    (False, True): later("Deploy producers first"),
    (False, False): later("Needs a new topic, or both sides at once"),
}
KINDS = {
    "added": ChangeKind.ADDED,
    "removed": ChangeKind.REMOVED,
    "changed": ChangeKind.CHANGED,
    "renamed": ChangeKind.RENAMED,
    "moved": ChangeKind.MOVED,
}
_LOSS = later("the established rules accept this, the data come out changed.")
_NO_PROOF = later("the established rules refuse this, no datum was found that breaks.")
#: changes, and rows of the text, that a page draws unless all are asked for: more would be too heavy for it
MAX_CARDS: Final = 50
MAX_TEXT: Final = 250
#: what data say of findings, by rule and path
Notes = Mapping[tuple[str, str], Sequence[EvidenceNote]]
NO_NOTES: Final[Notes] = {}
#: unchanged fields that a page lists
MAX_UNCHANGED: Final = 2_000


def verdict_of(item: ReportItem, profile: Profile) -> Verdict:
    """What a finding comes to in its direction under a profile."""
    return Verdict.BREAKS if item.severity in DECISIVE[profile] else Verdict.CARE


def present_comparison(
    found: selectors.Comparison,
    old_registry: str,
    new_registry: str,
    *,
    level: str,
    submitted: bool = False,
    limit: int | None = MAX_CARDS,
    notes: Notes = NO_NOTES,
    skipped: str = "",
    by: Actor | None = None,
) -> Comparison:
    """A comparison for people, at most `limit` cards of it, the worst ones, and of text and renames the first.

    `submitted` compares the texts as they were submitted, formatting included. `notes` are what data say of findings,
    `skipped` a sentence on the versions between the two, `by` who may decide of what looks renamed.

    A direction that fails breaks where the level in force asks for it; elsewhere it needs care: the order
    of the upgrade matters.
    """
    asked = LEVELS[level].directions
    order = list_environments()
    sides = tuple(
        _side(info, registry, order, named=found.old.subject != found.new.subject)
        for info, registry in ((found.old, old_registry), (found.new, new_registry))
    )
    if found.differences is None or found.backward is None or found.forward is None:
        texts = [info.submitted if submitted else pretty(info) for info in (found.old, found.new)]
        return _texts_alone(found, sides[0], sides[1], texts)
    proved = found if isinstance(found, selectors.ProvedComparison) else None
    suspected = rename_views(proved.renames, proved.new_text, limit and MAX_RENAMES) if proved else ()
    renames = with_decisions(suspected, (old_registry, new_registry), found.new.subject, by=by)
    weighing = _weigh(found, found.differences, found.backward, found.forward, asked)
    weighed, count = weighing.worst_first, weighing.count
    extras = extras_of(found.old, found.new)
    drawn = [_card(item, notes) for item in weighed[:limit]]
    return Comparison(
        old=sides[0],
        new=sides[1],
        verdict=next((verdict for verdict in WORST_FIRST if count[verdict]), Verdict.OK),
        headline=_headline(found.backward, found.forward, any_change=bool(weighed), any_extra=bool(extras)),
        sentence=_sentence(found, count, extras, skipped),
        directions=_directions(found.backward, found.forward),
        groups=_groups(drawn),
        hidden_changes=len(weighed) - len(drawn),
        breaking=count[Verdict.BREAKS],
        care=count[Verdict.CARE] + count[Verdict.UNKNOWN],
        safe=count[Verdict.OK],
        text=_text(found, submitted=submitted, limit=MAX_TEXT if limit else MAX_ROWS),
        unproved=proved.unproved if proved else "",
        formatting_differs=found.old.submitted != found.new.submitted,
        same_meaning=found.same_meaning,
        partings=tuple(parting_note(item, f"parting-{n}") for n, item in enumerate(proved.partings)) if proved else (),
        renames=renames,
        hidden_renames=len(proved.renames) - len(renames) if proved else 0,
        extras=extras,
        unchanged=tuple(UnchangedField(item.path, item.type) for item in proved.unchanged[:MAX_UNCHANGED])
        if proved
        else (),
    )


def _text(found: selectors.Comparison, *, submitted: bool, limit: int) -> TextDiff:
    """The texts compared, of one format."""
    old, new = found.old, found.new
    if submitted:
        return laid_out_diff(old.submitted, new.submitted, str, limit=limit)
    lay_out = str if new.schema.schema_type == "PROTOBUF" else laid_out
    return laid_out_diff(old.schema.text, new.schema.text, lay_out, limit=limit)


def _texts_alone(found: selectors.Comparison, old: Side, new: Side, texts: Sequence[str]) -> Comparison:
    """What is left where the formats differ or a side can't be read."""
    kinds = found.old.schema.schema_type, found.new.schema.schema_type
    said = found.problem if isinstance(found, selectors.ProvedComparison) else ""
    differ = kinds[0] != kinds[1]
    return Comparison(
        old=old,
        new=new,
        verdict=Verdict.BREAKS if differ else Verdict.UNKNOWN,
        headline=HEADLINES[False, False] if differ else gettext("Compared as texts alone"),
        sentence=gettext("%(old)s became %(new)s.") % {"old": format_name(kinds[0]), "new": format_name(kinds[1])}
        if differ
        else gettext("What differs in meaning isn’t known."),
        text=text_diff(*texts),
        extras=extras_of(found.old, found.new),
        problem=Problem(
            what=gettext("Schemas of two formats can't be compared field by field.") if differ else said,
            cure=gettext("Data of one format can't be read as the other. The texts are below.") if differ else "",
        ),
    )


def _side(info: selectors.VersionInfo, registry: str, order: list[str], *, named: bool) -> Side:
    return Side(
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
        return HEADLINES[backward.is_compatible, forward.is_compatible]
    return gettext("Same schema, but not all beside it") if any_extra else gettext("Same meaning")


def _sentence(
    found: selectors.Comparison, count: Mapping[Verdict, int], extras: Sequence[ExtraChange], skipped: str
) -> str:
    total = sum(count.values())
    if not total:
        differs = (
            gettext("only formatting differs")
            if found.old.submitted != found.new.submitted
            else gettext("the texts are equal too")
        )
        said = gettext("No reader and no writer notices a difference: %(differs)s.") % {"differs": differs}
    else:
        said = _told(count, total)
    if extras:
        beside = counted(len(extras), "%(n)s change beside the schema.", "%(n)s changes beside the schema.")
        said = f"{said} {beside}"
    return f"{said} {skipped}" if skipped else said


def _told(count: Mapping[Verdict, int], total: int) -> str:
    """How many changes there are, of each verdict."""
    told = {
        Verdict.BREAKS: counted(count[Verdict.BREAKS], "%(n)s breaking", "%(n)s breaking"),
        Verdict.CARE: counted(count[Verdict.CARE], "%(n)s to look at", "%(n)s to look at"),
        Verdict.UNKNOWN: counted(count[Verdict.UNKNOWN], "%(n)s not checked", "%(n)s not checked"),
        Verdict.OK: counted(count[Verdict.OK], "%(n)s safe", "%(n)s safe"),
    }
    parts = listing(said for verdict, said in told.items() if count[verdict])
    return counted(total, "%(n)s change: %(parts)s.", "%(n)s changes: %(parts)s.", parts=parts)


def _directions(backward: Report, forward: Report) -> tuple[DirectionSummary, ...]:
    rows = (
        (gettext("New reader, old data"), gettext("a consumer upgraded first"), backward),
        (gettext("Old reader, new data"), gettext("a producer upgraded first"), forward),
    )
    return tuple(
        DirectionSummary(label=label, who=who, verdict=_overall(report), failing=len(report.breaks))
        for label, who, report in rows
    )


def _overall(report: Report) -> Verdict:
    if not report.is_compatible:
        return Verdict.BREAKS
    return Verdict.CARE if report.hazards else Verdict.OK


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A place with its verdicts: what is counted and sorted by, before cards are made of the worst ones."""

    number: int
    place: Place
    backward: Verdict
    forward: Verdict
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class _Weighing:
    """All places, worst first, and how many have each verdict; `of` are the parts of the comparison that they are of."""

    worst_first: tuple[_Weighed, ...]
    count: Mapping[Verdict, int]
    of: tuple[object, ...]


#: by what a comparison consists of, which is the same for as long as that is kept; what is held here can't be another's
_weighings = WeighedCache[_Weighing](30_000, lambda found: len(found.worst_first) + 1)


def _weigh(
    found: selectors.Comparison,
    differences: Sequence[Difference],
    backward: Report,
    forward: Report,
    asked: Sequence[str],
) -> _Weighing:
    of = differences, backward, forward, found.renames if isinstance(found, selectors.ProvedComparison) else ()

    def make() -> _Weighing:
        places = places_of(found, differences, backward, forward)
        weighed = [_weighed(number, place, backward.profile, asked) for number, place in enumerate(places, start=1)]
        counted_by = Counter(item.verdict for item in weighed)
        return _Weighing(
            tuple(sorted(weighed, key=lambda item: WORST_FIRST.index(item.verdict))),
            {verdict: counted_by[verdict] for verdict in Verdict},
            of,
        )

    return _weighings.get((*map(id, of), *asked), make)


def _weighed(number: int, place: Place, profile: Profile, asked: Sequence[str]) -> _Weighed:
    backward, forward = _worst(place.backward, profile), _worst(place.forward, profile)
    return _Weighed(number, place, backward, forward, _judged(backward, forward, asked))


def _card(weighed: _Weighed, notes: Notes) -> ChangeCard:
    number, place = weighed.number, weighed.place
    items = [*place.backward, *place.forward]
    said = next(iter(sorted(items, key=lambda entry: entry.severity != "break")), None)
    difference = place.difference
    message = difference.message if difference else said.message if said else ""
    score = difference.score if difference else None
    sentence = sentence_of(message, place.path)
    if score is not None:
        sentence = gettext("%(sentence)s (suspected, %(score)s)") % {"sentence": sentence, "score": f"{score:.0%}"}
    shown = difference or said
    return ChangeCard(
        anchor=f"change-{number}",
        rule=shown.rule if shown else "",
        kind=KINDS[difference.kind] if difference else ChangeKind.CHANGED,
        path=place.path or gettext("the whole schema"),
        sentence=sentence,
        verdict=weighed.verdict,
        new_reads_old=weighed.backward,
        old_reads_new=weighed.forward,
        before=shown_value(shown.before) if shown else None,
        after=shown_value(shown.after) if shown else None,
        why="; ".join(difference.reasons if difference else ()) or (said.why if said else ""),
        remedy=said.remedy if said else "",
        evidence=tuple(dict.fromkeys(note for item in items for note in notes.get((item.rule, item.named_path), ()))),
        example=next((item.example for item in items if item.example), ""),
        parting=finding_parting(items),
        proofs=tuple(
            proof
            for index, item in enumerate(items)
            if (proof := proof_of(item.witness, item.direction, f"bytes-{number}-{index}"))
        ),
    )


def finding_parting(items: Sequence[ReportItem]) -> str:
    """What to say where the established rules judge a place otherwise than its data; a sentence a direction."""
    said = []
    for direction, label in DIRECTIONS.items():
        found = [item for item in items if item.direction == direction]
        breaks = [item for item in found if item.severity == "break"]
        if not breaks and any(item.severity == "value loss" for item in found):
            said.append(f"{label}: {_LOSS}")
        elif breaks and all(item.witness is not None and not item.witness.found for item in breaks):
            said.append(f"{label}: {_NO_PROOF}")
    return " ".join(said)


def sentence_of(message: str, path: str) -> str:
    """A message as a sentence below its path, which it needn't repeat."""
    text = message.removeprefix(f"{path}: ")
    # A keyword at the beginning (maxLength) keeps its spelling.
    return f"{text[:1].upper()}{text[1:]}" if text.split(" ", 1)[0].islower() else text


def _judged(backward: Verdict, forward: Verdict, asked: Sequence[str]) -> Verdict:
    """The verdict of a change from its two directions, under the directions that the level asks for."""
    if backward is forward is Verdict.OK:
        return Verdict.OK
    pairs = (("BACKWARD", backward), ("FORWARD", forward))
    weighed = [Verdict.CARE if each is Verdict.BREAKS and name not in asked else each for name, each in pairs]
    return min(weighed, key=WORST_FIRST.index)


def _worst(items: Sequence[ReportItem], profile: Profile) -> Verdict:
    if not items:  # of most places one direction says nothing
        return Verdict.OK
    return Verdict.BREAKS if any(verdict_of(item, profile) is Verdict.BREAKS for item in items) else Verdict.CARE


def _groups(cards: Sequence[ChangeCard]) -> tuple[ChangeGroup, ...]:
    """By the record that the changed field is in; cards come worst first, so the group with the worst one does too."""
    groups: dict[str, list[ChangeCard]] = {}
    for card in cards:
        groups.setdefault(card.path.rpartition(".")[0] or card.path, []).append(card)
    return tuple(ChangeGroup(name=name, cards=tuple(inside)) for name, inside in groups.items())

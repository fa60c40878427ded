"""A comparison of two versions as cards, groups and text: for the compare page and inside a promotion request."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dashboard.pages.frame import environment_of
from dashboard.pages.proofs import parting_note, proof_of, rename_views
from dashboard.pages.subjects import pretty
from dashboard.links import subject_url
from dashboard.presenters.comparison import (
    ChangeCard,
    ChangeGroup,
    Comparison,
    DirectionSummary,
    Side,
    UnchangedField,
)
from dashboard.presenters.frame import Problem
from dashboard.presenters.looks import ChangeKind, Verdict
from dashboard.presenters.text_diff import text_diff
from registry.formats.base import Difference
from registry.formats.compatibility import LEVELS
from registry.formats.report import DECISIVE, Profile, Report, ReportItem
from registry.promotions.selectors import list_environments
from registry.subjects import selectors

WORST_FIRST = (Verdict.BREAKS, Verdict.CARE, Verdict.UNKNOWN, Verdict.OK)
HEADLINES = {
    (True, True): "Deploy in any order",
    (True, False): "Deploy consumers first",
    (False, True): "Deploy producers first",
    (False, False): "Needs a new topic, or both sides at once",
}
KINDS = {
    "added": ChangeKind.ADDED,
    "removed": ChangeKind.REMOVED,
    "changed": ChangeKind.CHANGED,
    "renamed": ChangeKind.RENAMED,
    "moved": ChangeKind.MOVED,
}
_LOSS = "The established rules accept this; the data come out changed."
_NO_PROOF = "The established rules refuse this; no datum was found that breaks."
#: changes of which all are proved on the page; beyond, the first ones are
MAX_UNCHANGED: Final = 2_000


@dataclass
class _Place:
    """A card in the making: a difference (None: only reported) with what each direction says of it."""

    difference: Difference | None
    path: str
    backward: list[ReportItem] = field(default_factory=list)
    forward: list[ReportItem] = field(default_factory=list)


def verdict_of(item: ReportItem, profile: Profile) -> Verdict:
    """What a finding comes to in its direction under a profile."""
    return Verdict.BREAKS if item.severity in DECISIVE[profile] else Verdict.CARE


def present_comparison(
    found: selectors.Comparison, old_registry: str, new_registry: str, *, level: str, submitted: bool = False
) -> Comparison:
    """A comparison for people; `submitted` compares the texts as they were submitted, formatting included.

    A direction that fails breaks where the level in force asks for it; elsewhere it needs care: the order
    of the upgrade matters.
    """
    asked = LEVELS[level].directions
    order = list_environments()
    sides = tuple(
        _side(info, registry, order, named=found.old.subject != found.new.subject)
        for info, registry in ((found.old, old_registry), (found.new, new_registry))
    )
    texts = [info.submitted if submitted else pretty(info) for info in (found.old, found.new)]
    if found.differences is None or found.backward is None or found.forward is None:
        return _texts_alone(found, sides[0], sides[1], texts)
    proved = found if isinstance(found, selectors.ProvedComparison) else None
    cards = [
        _card(number, place, found.backward.profile, asked)
        for number, place in enumerate(_places(found, found.differences, found.backward, found.forward), start=1)
    ]
    count = {verdict: sum(card.verdict is verdict for card in cards) for verdict in Verdict}
    return Comparison(
        old=sides[0],
        new=sides[1],
        verdict=next((verdict for verdict in WORST_FIRST if count[verdict]), Verdict.OK),
        headline=HEADLINES[found.backward.is_compatible, found.forward.is_compatible],
        sentence=_sentence(found, count, same_place=old_registry == new_registry),
        directions=_directions(found.backward, found.forward),
        groups=_groups(cards),
        breaking=count[Verdict.BREAKS],
        care=count[Verdict.CARE] + count[Verdict.UNKNOWN],
        safe=count[Verdict.OK],
        text=text_diff(*texts),
        same_meaning=found.same_meaning,
        partings=tuple(parting_note(item, f"parting-{n}") for n, item in enumerate(proved.partings)) if proved else (),
        renames=rename_views(proved.renames, proved.new_text) if proved else (),
        unchanged=tuple(UnchangedField(item.path, item.type) for item in proved.unchanged[:MAX_UNCHANGED])
        if proved
        else (),
    )


def _texts_alone(found: selectors.Comparison, old: Side, new: Side, texts: Sequence[str]) -> Comparison:
    """What is left where the formats differ or a side can't be read."""
    kinds = found.old.schema.schema_type, found.new.schema.schema_type
    said = found.problem if isinstance(found, selectors.ProvedComparison) else ""
    differ = kinds[0] != kinds[1]
    return Comparison(
        old=old,
        new=new,
        verdict=Verdict.BREAKS if differ else Verdict.UNKNOWN,
        headline=HEADLINES[False, False] if differ else "Compared as texts alone",
        sentence=f"{kinds[0]} became {kinds[1]}." if differ else "What differs in meaning isn’t known.",
        text=text_diff(*texts),
        problem=Problem(
            what="Schemas of two formats can't be compared field by field." if differ else said,
            cure="Data of one format can't be read as the other. The texts are below." if differ else "",
        ),
    )


def _side(info: selectors.VersionInfo, registry: str, order: list[str], *, named: bool) -> Side:
    return Side(
        environment=environment_of(registry, order, current=True),
        version=info.version,
        url=subject_url(registry, info.subject.qualified, version=info.version),
        subject=info.subject.qualified if named else "",
        format=info.schema.schema_type,
        schema_id=info.schema.schema_id,
        registered_at=info.created_at,
        registered_by=info.created_by,
    )


def _sentence(found: selectors.Comparison, count: dict[Verdict, int], *, same_place: bool) -> str:
    total = sum(count.values())
    if not total:
        return "Nothing differs in meaning."
    words = {Verdict.BREAKS: "breaking", Verdict.CARE: "to look at", Verdict.UNKNOWN: "not checked", Verdict.OK: "safe"}
    parts = ", ".join(f"{count[verdict]} {word}" for verdict, word in words.items() if count[verdict])
    skipped = found.new.version - found.old.version - 1
    is_line = same_place and found.old.subject == found.new.subject
    over = f" It skips {skipped} version{'s' if skipped > 1 else ''}." if is_line and skipped > 0 else ""
    return f"{total} change{'s' if total != 1 else ''}: {parts}.{over}"


def _directions(backward: Report, forward: Report) -> tuple[DirectionSummary, ...]:
    rows = (
        ("New reader, old data", "a consumer upgraded first", backward),
        ("Old reader, new data", "a producer upgraded first", forward),
    )
    return tuple(
        DirectionSummary(label=label, who=who, verdict=_overall(report), failing=len(report.breaks))
        for label, who, report in rows
    )


def _overall(report: Report) -> Verdict:
    if not report.is_compatible:
        return Verdict.BREAKS
    return Verdict.CARE if report.hazards else Verdict.OK


def _places(
    found: selectors.Comparison, differences: Sequence[Difference], backward: Report, forward: Report
) -> list[_Place]:
    """One place a difference, and one a reported problem that no difference stands for: none may stay unseen."""
    has_renames = isinstance(found, selectors.ProvedComparison) and bool(found.renames)
    shown = [item for item in differences if item.score is None or not has_renames]
    places = [_Place(item, item.path) for item in shown]
    for report, side in ((backward, "backward"), (forward, "forward")):
        for item in report.items:
            fitting = _fitting(places, item)
            if not fitting:
                fitting = [_Place(None, item.named_path)]
                places.extend(fitting)
            for place in fitting:
                getattr(place, side).append(item)
    return places


def _fitting(places: Sequence[_Place], item: ReportItem) -> list[_Place]:
    """The places that a finding is of: of several on one path, those whose pointer is nearest to the finding's."""
    near = [place for place in places if _same_place(item.named_path, place.path)]
    if len(near) < 2:
        return near
    marks = [_nearness(place, item) for place in near]
    return [place for place, mark in zip(near, marks, strict=True) if mark == max(marks)]


def _nearness(place: _Place, item: ReportItem) -> tuple[int, int]:
    """How many steps of the pointers are common, and minus those that are only the difference's."""
    if place.difference is None:
        return (0, 0)
    best = (0, 0)
    pairs = (
        (place.difference.pointer_new, item.json_pointer_new),
        (place.difference.pointer_old, item.json_pointer_old),
    )
    for ours, theirs in pairs:
        if ours is None or theirs is None:
            continue
        left, right = ours.split("/"), theirs.split("/")
        common = 0
        while common < min(len(left), len(right)) and left[common] == right[common]:
            common += 1
        best = max(best, (common, common - len(left)))
    return best


def _same_place(reported: str, path: str) -> bool:
    return reported == path or reported.startswith((f"{path}[", f"{path}{{", f"{path}<"))


def _card(number: int, place: _Place, profile: Profile, asked: Sequence[str]) -> ChangeCard:
    backward, forward = _worst(place.backward, profile), _worst(place.forward, profile)
    items = [*place.backward, *place.forward]
    said = next(iter(sorted(items, key=lambda entry: entry.severity != "break")), None)
    difference = place.difference
    message = difference.message if difference else said.message if said else ""
    suspected = f" (suspected, {difference.score:.0%})" if difference and difference.score is not None else ""
    shown = difference or said
    return ChangeCard(
        anchor=f"change-{number}",
        rule=shown.rule if shown else "",
        kind=KINDS[difference.kind] if difference else ChangeKind.CHANGED,
        path=place.path or "the whole schema",
        sentence=f"{message[:1].upper()}{message[1:]}{suspected}",
        verdict=_judged(backward, forward, asked),
        new_reads_old=backward,
        old_reads_new=forward,
        before=_value(shown.before) if shown else None,
        after=_value(shown.after) if shown else None,
        why="; ".join(difference.reasons if difference else ()) or (said.why if said else ""),
        remedy=said.remedy if said else "",
        evidence=said.example if said else "",
        parting=_parting(items),
        proofs=tuple(
            proof
            for index, item in enumerate(items)
            if (proof := proof_of(item.witness, item.direction, f"bytes-{number}-{index}"))
        ),
    )


def _parting(items: Sequence[ReportItem]) -> str:
    """What to say where the established rules judge a place otherwise than its data."""
    losses = any(item.severity == "value loss" for item in items)
    breaks = [item for item in items if item.severity == "break"]
    if losses and not breaks:
        return _LOSS
    is_unproved = bool(breaks) and all(item.witness is not None and not item.witness.found for item in breaks)
    return _NO_PROOF if is_unproved else ""


def _judged(backward: Verdict, forward: Verdict, asked: Sequence[str]) -> Verdict:
    """The verdict of a change from its two directions, under the directions that the level asks for."""
    pairs = (("BACKWARD", backward), ("FORWARD", forward))
    weighed = [Verdict.CARE if each is Verdict.BREAKS and name not in asked else each for name, each in pairs]
    return min(weighed, key=WORST_FIRST.index)


def _worst(items: Sequence[ReportItem], profile: Profile) -> Verdict:
    return min((verdict_of(item, profile) for item in items), key=WORST_FIRST.index, default=Verdict.OK)


def _groups(cards: Sequence[ChangeCard]) -> tuple[ChangeGroup, ...]:
    """By the record that the changed field is in, the group with the worst change first."""
    groups: dict[str, list[ChangeCard]] = {}
    for card in sorted(cards, key=lambda card: WORST_FIRST.index(card.verdict)):
        groups.setdefault(card.path.rpartition(".")[0] or card.path, []).append(card)
    return tuple(ChangeGroup(name=name, cards=tuple(inside)) for name, inside in groups.items())


def _value(value: Any) -> str | None:
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

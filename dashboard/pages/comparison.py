"""The compare page: cards worst first, both directions, then the text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest

from dashboard.links import subject_url
from dashboard.pages.frame import environment_of, make_frame, subjects_url
from dashboard.pages.numbers import whole_number
from dashboard.pages.subjects import pretty
from dashboard.presenters.comparison import ChangeCard, ChangeGroup, ComparePage, Comparison, DirectionSummary, Side
from dashboard.presenters.frame import Choice, Crumb, Problem, Section
from dashboard.presenters.looks import ChangeKind, Verdict
from dashboard.presenters.text_diff import text_diff
from registry.errors import NotFound, SchemadeskError
from registry.formats.base import Difference
from registry.formats.compatibility import LEVELS
from registry.formats.report import Report, ReportItem
from registry.promotions.selectors import list_environments
from registry.subjects import selectors
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.places import get_registry

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
    "renamed": ChangeKind.CHANGED,
    "moved": ChangeKind.MOVED,
}
SEVERITIES = {"break": Verdict.BREAKS, "value loss": Verdict.CARE, "warning": Verdict.CARE}


def compare_page(request: HttpRequest, registry: str, subject: str) -> ComparePage:
    """The page of `?from=3&to=4`; without them the newest version and the one before it."""
    place, name = get_registry(registry), parse_subject(subject)
    numbers = selectors.list_versions(place, name, deleted=True)
    new = request.GET.get("to") or str(numbers[-1])
    old = request.GET.get("from") or str(_before(numbers, new))
    url = subject_url(registry, name.qualified, "compare")
    comparison, problem = None, None
    try:
        found = selectors.compare_versions(place, name, old=old, new=new)
        level = selectors.effective_config(place, name).level
        comparison = present_comparison(found, registry, registry, level=level)
    except SchemadeskError as error:
        problem = Problem(what=error.message, cure="Choose two versions that the subject has.")
    view = "split" if request.GET.get("view") == "split" else "unified"

    def at(**query: object) -> str:
        return subject_url(registry, name.qualified, "compare", **{"from": old, "to": new, "view": view} | query)

    return ComparePage(
        frame=make_frame(
            request,
            title=f"Compare versions {old} and {new}",
            section=Section.SUBJECTS,
            registry=registry,
            crumbs=(
                Crumb(label="Subjects", url=subjects_url(registry)),
                Crumb(label=name.qualified, url=subject_url(registry, name.qualified), code=True),
            ),
            url_in=lambda other: subject_url(other, name.qualified),
        ),
        registry=registry,
        subject=name.qualified,
        subject_url=subject_url(registry, name.qualified),
        compare_url=url,
        from_choices=_choices(numbers, old),
        to_choices=_choices(numbers, new),
        swap_url=at(**{"from": new, "to": old}),
        view=view,
        unified_url=at(view="unified"),
        split_url=at(view="split"),
        comparison=comparison,
        problem=problem,
    )


def _before(numbers: Sequence[int], new: str) -> int:
    """The version before the new one: never the same on both sides where there are two."""
    limit = whole_number(new, digits=10)
    earlier = [number for number in numbers if limit is not None and number < limit]
    return earlier[-1] if earlier else numbers[0]


def _choices(numbers: Sequence[int], chosen: str) -> tuple[Choice, ...]:
    return tuple(
        Choice(value=str(number), label=f"Version {number}", selected=str(number) == chosen)
        for number in reversed(numbers)
    )


def present_comparison(found: selectors.Comparison, old_registry: str, new_registry: str, *, level: str) -> Comparison:
    """A comparison of two versions as cards, groups and text; also inside a promotion request.

    A direction that fails breaks where the level in force asks for it; elsewhere it needs care: the order
    of the upgrade matters.
    """
    asked = LEVELS[level].directions
    sides = _side(found.old, old_registry), _side(found.new, new_registry)
    text = text_diff(pretty(found.old), pretty(found.new))
    if found.differences is None or found.backward is None or found.forward is None:
        return Comparison(
            old=sides[0],
            new=sides[1],
            verdict=Verdict.BREAKS,
            headline=HEADLINES[False, False],
            sentence=f"{found.old.schema.schema_type} became {found.new.schema.schema_type}.",
            text=text,
            problem=Problem(
                what="Schemas of two formats can't be compared field by field.", cure="Read the texts below."
            ),
        )
    cards = [_card(number, item, found, asked) for number, item in enumerate(found.differences, start=1)]
    cards = [*cards, *_cards_without_difference(found, cards, asked)]
    count = {verdict: sum(card.verdict is verdict for card in cards) for verdict in Verdict}
    verdict = next((verdict for verdict in WORST_FIRST if count[verdict]), Verdict.OK)
    return Comparison(
        old=sides[0],
        new=sides[1],
        verdict=verdict,
        headline=HEADLINES[found.backward.is_compatible, found.forward.is_compatible],
        sentence=_sentence(found, count),
        directions=_directions(found),
        groups=_groups(cards),
        breaking=count[Verdict.BREAKS],
        care=count[Verdict.CARE] + count[Verdict.UNKNOWN],
        safe=count[Verdict.OK],
        text=text,
        same_meaning=found.same_meaning,
    )


def _side(info: selectors.VersionInfo, registry: str) -> Side:
    return Side(
        environment=environment_of(registry, list_environments(), current=True),
        version=info.version,
        url=subject_url(registry, info.subject.qualified, version=info.version),
        schema_id=info.schema.schema_id,
        registered_at=info.created_at,
        registered_by=info.created_by,
    )


def _sentence(found: selectors.Comparison, count: dict[Verdict, int]) -> str:
    total = sum(count.values())
    if not total:
        return "Nothing differs in meaning."
    skipped = found.new.version - found.old.version - 1
    parts = [f"{count[v]} {words}" for v, words in ((Verdict.BREAKS, "breaking"), (Verdict.CARE, "to look at"), (Verdict.OK, "safe")) if count[v]]  # fmt: skip
    over = f" It skips {skipped} version{'s' if skipped > 1 else ''}." if skipped > 0 else ""
    return f"{total} change{'s' if total != 1 else ''}: {', '.join(parts)}.{over}"


def _directions(found: selectors.Comparison) -> tuple[DirectionSummary, ...]:
    rows = (
        ("New reader, old data", "a consumer upgraded first", found.backward),
        ("Old reader, new data", "a producer upgraded first", found.forward),
    )
    return tuple(
        DirectionSummary(label=label, who=who, verdict=_overall(report), failing=len(report.breaks))
        for label, who, report in rows
        if report is not None
    )


def _overall(report: Report) -> Verdict:
    if not report.is_compatible:
        return Verdict.BREAKS
    return Verdict.CARE if report.hazards else Verdict.OK


def _judged(backward: Verdict, forward: Verdict, asked: Sequence[str]) -> Verdict:
    """The verdict of a change from its two directions, under the directions that the level asks for."""
    pairs = (("BACKWARD", backward), ("FORWARD", forward))
    weighed = [Verdict.CARE if each is Verdict.BREAKS and name not in asked else each for name, each in pairs]
    return min(weighed, key=WORST_FIRST.index)


def _card(number: int, item: Difference, found: selectors.Comparison, asked: Sequence[str]) -> ChangeCard:
    backward, forward = (_items_at(report, item) for report in (found.backward, found.forward))
    verdicts = _worst(backward), _worst(forward)
    said = next(iter(sorted([*backward, *forward], key=lambda entry: entry.severity != "break")), None)
    suspected = f" (suspected, {item.score:.0%})" if item.score is not None else ""
    return ChangeCard(
        anchor=f"change-{number}",
        rule=item.rule,
        kind=KINDS[item.kind],
        path=item.path,
        sentence=f"{item.message[:1].upper()}{item.message[1:]}{suspected}",
        verdict=_judged(*verdicts, asked),
        new_reads_old=verdicts[0],
        old_reads_new=verdicts[1],
        before=_value(item.before),
        after=_value(item.after),
        why="; ".join(item.reasons) or (said.why if said else ""),
        remedy=said.remedy if said else "",
    )


def _items_at(report: Report | None, item: Difference) -> list[ReportItem]:
    """What a direction's report says of the place of a difference, or of a place inside it."""
    if report is None:
        return []
    return [entry for entry in report.items if _same_place(entry.named_path, item.path)]


def _same_place(reported: str, path: str) -> bool:
    return reported == path or reported.startswith((f"{path}[", f"{path}{{", f"{path}<"))


def _worst(items: Sequence[ReportItem]) -> Verdict:
    return min((SEVERITIES[item.severity] for item in items), key=WORST_FIRST.index, default=Verdict.OK)


def _cards_without_difference(
    found: selectors.Comparison, cards: Sequence[ChangeCard], asked: Sequence[str]
) -> list[ChangeCard]:
    """Reported problems at places that no difference stands for: none may stay unseen."""
    extra: list[ChangeCard] = []
    for backward, report in ((True, found.backward), (False, found.forward)):
        for item in report.items if report else ():
            if any(_same_place(item.named_path, card.path) for card in [*cards, *extra]):
                continue
            verdict = SEVERITIES[item.severity]
            directions = (verdict, Verdict.OK) if backward else (Verdict.OK, verdict)
            extra.append(
                ChangeCard(
                    anchor=f"change-{len(cards) + len(extra) + 1}",
                    rule=item.rule,
                    kind=ChangeKind.CHANGED,
                    path=item.named_path,
                    sentence=item.message,
                    verdict=_judged(*directions, asked),
                    new_reads_old=directions[0],
                    old_reads_new=directions[1],
                    before=_value(item.before),
                    after=_value(item.after),
                    why=item.why,
                    remedy=item.remedy,
                )
            )
    return extra


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


def compare_with_target(source: str, target: str, subject: SubjectName, version: int) -> Comparison | None:
    """The promoted version against the target's latest; None where the target has none."""
    goal = get_registry(target)
    try:
        latest = selectors.list_versions(goal, subject)[-1]
        found = selectors.compare_versions(goal, subject, old=latest, new=version, new_registry=get_registry(source))
    except NotFound:  # the target has no such subject yet, or the source's version has been deleted since
        return None
    return present_comparison(found, target, source, level=selectors.effective_config(goal, subject).level)

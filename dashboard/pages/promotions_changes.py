"""What a request would change, schema by schema: one at a time against what the target has, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.change_cards import MAX_CARDS, present_comparison
from dashboard.pages.data_evidence import comparison_notes
from dashboard.pages.notes import facts_of
from dashboard.pages.promotions_plan import steps_of_plan, worst
from dashboard.pages.skipped import skipped_between
from dashboard.presenters.business_words import Fact
from dashboard.presenters.business_words import in_business_words as told
from dashboard.presenters.comparison import ChangeCard, Comparison
from dashboard.presenters.frame import Link
from dashboard.presenters.promotions_page import ItemLink, NewField, NewReference, NewSchemaView
from dashboard.texts import later
from registry.access.roles import Actor, may
from registry.errors import NotFound, SchemadeskError
from registry.promotions.plan import ADOPT, Step
from registry.promotions.selectors import RequestInfo, ThreadInfo
from registry.promotions.selectors.changes import compare_step, new_schema, places_of, state_before, versions_before
from registry.subjects.names import parse_subject
from registry.subjects.selectors import ProvedComparison, presence_of
from registry.subjects.selectors.places import get_registry

MAX_ITEMS: Final = 50
#: fields of a schema that is all new; its text has the rest
MAX_FIELDS: Final = 200
#: how a page names the place of a change that is of no field
WHOLE: Final = later("the whole schema")


@dataclass(frozen=True)
class Changes:
    """The schemas that would be written, the one whose changes are shown, and its comparison or why there is none."""

    items: tuple[ItemLink, ...]
    hidden: int
    chosen: Step | None
    comparison: Comparison | None
    note: str
    new: NewSchemaView | None = None


@dataclass(frozen=True)
class Drawing:
    """How changes are drawn: every one of them and not the worst alone, in business words, the texts as submitted."""

    is_whole: bool = False
    in_business_words: bool = False
    as_submitted: bool = False


def changes_of(
    info: RequestInfo, actor: Actor, asked: str, url: Callable[..., str], drawing: Drawing = Drawing()
) -> Changes:
    """The changes of the schema that is `asked` for by its subject; else of the worst one. `url` addresses the page."""
    steps, chosen = _bringing(info), chosen_step(info, asked)
    if chosen is None:
        return Changes((), 0, None, None, _nothing_written(info))
    comparison, note = compared(info, actor, chosen, drawing)
    if comparison and drawing.in_business_words:
        comparison = told(comparison, _facts(info, chosen), comparison.new.format)
    new = _new(info, actor, chosen) if comparison is None else None
    items = tuple(_item(info, step, url, is_chosen=step is chosen) for step in steps[:MAX_ITEMS])
    return Changes(
        items=items if len(steps) > 1 else (),
        hidden=max(0, len(steps) - MAX_ITEMS),
        chosen=chosen,
        comparison=_discussed(comparison, info.threads, chosen.subject, url) if comparison else None,
        note=note,
        new=new,
    )


def _new(info: RequestInfo, actor: Actor, step: Step) -> NewSchemaView | None:
    """The whole schema where the target had no version, for whoever may read it at both places."""
    if versions_before(info, step) or not all(_may_read(actor, name, step.subject) for name in places_of(info, step)):
        return None
    found, place = new_schema(info, step), places_of(info, step)[1]
    return NewSchemaView(
        text=found.text,
        format=found.schema_type,
        references=tuple(
            NewReference(
                name=reference.name,
                subject=reference.subject,
                version=reference.version,
                url=subject_url(place, qualified, version=reference.version)
                if _may_read(actor, place, qualified)
                else "",
            )
            for reference in found.references
            for qualified in [parse_subject(reference.subject, context=parse_subject(step.subject).context).qualified]
        ),
        fields=tuple(
            NewField(path=row.path, type=row.type, required=row.required, default=row.default or "", doc=row.doc)
            for row in found.fields[:MAX_FIELDS]
        ),
        fields_hidden=max(0, len(found.fields) - MAX_FIELDS),
    )


def chosen_step(info: RequestInfo, asked: str) -> Step | None:
    """The step of the subject that is `asked` for, else the worst; None where no version is written or adopted."""
    steps = _bringing(info)
    by_subject = {step.subject: step for step in steps}
    return by_subject.get(asked) or min(steps, key=lambda step: _rank(info, step), default=None)


def _bringing(info: RequestInfo) -> list[Step]:
    return [step for step in steps_of_plan(info.plan) if step.adds or step.kind == ADOPT]


def _nothing_written(info: RequestInfo) -> str:
    return gettext("%(target)s has these schemas already, so no version is written.") % {"target": info.target}


def _rank(info: RequestInfo, step: Step) -> tuple[int, bool]:
    """What breaks first; then what was asked for by name."""
    verdict = worst(_checks_of(info, step))
    return ("breaks", "care", "unknown", "ok").index(verdict.code), step.subject != info.subject.qualified


def _checks_of(info: RequestInfo, step: Step) -> list[Mapping[str, object]]:
    return [check for check in info.checks if check.get("subject") == step.subject]


def _item(info: RequestInfo, step: Step, url: Callable[..., str], *, is_chosen: bool) -> ItemLink:
    what = (
        gettext("version %(source_version)s") % {"source_version": step.source_version}
        if step.source_version
        else gettext("the proposed text")
    )
    becomes = (
        gettext("is to be adopted")
        if step.kind == ADOPT
        else gettext("becomes version %(target_version)s of %(target)s")
        % {"target_version": step.target_version, "target": info.target}
    )
    return ItemLink(
        subject=step.subject,
        what=f"{what} {becomes}",
        url=url(item=step.subject, all=None, unchanged=None),
        verdict=worst(_checks_of(info, step)),
        chosen=is_chosen,
        open_threads=sum(thread.is_open and thread.subject == step.subject for thread in info.threads),
    )


def compared(
    info: RequestInfo, actor: Actor, step: Step, drawing: Drawing = Drawing()
) -> tuple[Comparison | None, str]:
    """What the target had of the subject when the plan was made, against what would come; or why that can't be told."""
    secret = next((name for name in places_of(info, step) if not _may_read(actor, name, step.subject)), "")
    if secret:
        return None, gettext("You may not read %(subject)s in %(secret)s, so its changes aren’t shown.") % {
            "subject": step.subject,
            "secret": secret,
        }
    try:
        found = compare_step(info, step)
    except NotFound as error:  # it was deleted since
        return None, gettext("It can’t be compared any more: %(message)s") % {"message": error.message}
    except SchemadeskError as error:
        return None, gettext("It can’t be compared: %(message)s") % {"message": error.message}
    if found is None:
        has = gettext("has no version of {} yet") if info.is_open else gettext("had no version of {}")
        return None, gettext("%(target)s %(subject)s: everything is new there.") % {
            "target": info.target,
            "subject": has.format(step.subject),
        }
    old, new = places_of(info, step)
    level = str(state_before(info, step).get("level", "BACKWARD"))
    notes = comparison_notes(get_registry(old), parse_subject(step.subject), found, by=actor)
    found = _as_written(found, step)
    skipped = _skipped(found, old, new, step) if step.source_version else ""
    shown = present_comparison(
        found,
        old,
        new,
        level=level,
        submitted=drawing.as_submitted,
        limit=None if drawing.is_whole else MAX_CARDS,
        notes=notes,
        skipped=skipped,
        by=actor,
    )
    return shown, ""


def _as_written(found: ProvedComparison, step: Step) -> ProvedComparison:
    """The comparison with the references, metadata and rules that the target will get, not those of the source."""
    if step.kind == ADOPT:
        return found
    before = found.old.schema
    schema = replace(
        found.new.schema,
        references=step.references,
        metadata=before.metadata if step.metadata is None else step.metadata,
        rule_set=before.rule_set if step.rule_set is None else step.rule_set,
    )
    return replace(found, new=replace(found.new, schema=schema))


def _skipped(found: ProvedComparison, old: str, new: str, step: Step) -> str:
    if old == new:
        return ""
    presence = presence_of(get_registry(new), parse_subject(step.subject))
    return skipped_between(presence, (old, found.old), (new, found.new))


def _facts(info: RequestInfo, step: Step) -> dict[str, Fact]:
    """What the versions at the two places say of their fields, those that come first: of a proposed text the target's."""
    name, found = parse_subject(step.subject), dict[str, Fact]()
    old, new = places_of(info, step)
    for place, version in ((old, "latest"), (new, str(step.source_version or "latest"))):
        try:
            found |= facts_of(get_registry(place), name, version)
        except NotFound:
            continue  # it is new at the target, or was deleted at the source since
    return found


def _may_read(actor: Actor, registry: str, subject: str) -> bool:
    return may(actor, "schema.read", registry=registry, subject=subject)


def _discussed(
    comparison: Comparison, threads: Sequence[ThreadInfo], subject: str, url: Callable[..., str]
) -> Comparison:
    """The same with a link on each card that opens a discussion of its field, and links to those that there are."""

    def card_with(card: ChangeCard) -> ChangeCard:
        path = "" if card.path == WHOLE else card.path
        found = [thread for thread in threads if thread.subject == subject and thread.path == path]
        about = {"item": subject, "about": path or None, "of": subject}
        return replace(
            card,
            comment_url=f"{url(**about)}#comment",
            threads=tuple(
                Link(
                    label=gettext("discussion") if thread.is_open else gettext("discussion, resolved"),
                    url=f"#thread-{thread.id}",
                )
                for thread in found
            ),
        )

    return replace(
        comparison,
        groups=tuple(replace(group, cards=tuple(map(card_with, group.cards))) for group in comparison.groups),
    )


def place_of(thread: ThreadInfo, changes: Changes, url: Callable[..., str]) -> str:
    """Where in the page the field is that a discussion hangs at; "" where the plan no longer has its subject."""
    if not thread.subject or changes.chosen is None:
        return ""
    subjects = {changes.chosen.subject, *(item.subject for item in changes.items)}
    if thread.subject not in subjects:
        return ""
    if thread.subject == changes.chosen.subject and changes.comparison:
        cards = [card for group in changes.comparison.groups for card in group.cards]
        found = next((card.anchor for card in cards if card.path == (thread.path or WHOLE)), "")
        if found or not changes.comparison.hidden_changes:
            return f"#{found or 'changes'}"
        return f"{url(item=thread.subject, all='1')}#changes"
    return f"{url(item=thread.subject, all=None, unchanged=None)}#changes"


def page_url(base: str, drawn: Mapping[str, str | None]) -> Callable[..., str]:
    """Addresses of the request's page: with what is drawn now, but for what is given."""

    def address(**changed: str | None) -> str:
        given = {name: value for name, value in {**drawn, **changed}.items() if value}
        return f"{base}?{urlencode(given)}" if given else base

    return address

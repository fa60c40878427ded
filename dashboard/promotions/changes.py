"""The changes of a request: each schema compared with the target's, with its discussions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlencode

from django.utils.translation import gettext

from dashboard.compare.business_terms import Fact, facts_of
from dashboard.compare.business_terms import in_business_words as in_business_words_of
from dashboard.compare.change_cards import MAX_CARDS, present_comparison
from dashboard.compare.change_details import skipped_between
from dashboard.compare.comparison import ChangeCard, VersionComparison
from dashboard.compare.proposed_schema import comparison_notes
from dashboard.components.links import subject_url
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Link
from dashboard.promotions.plan import failure_word, steps_of_plan, worst
from dashboard.promotions.presenters import Changes, ItemLink, NewSchemaView
from registry.access.roles import Actor, may
from registry.errors import NotFound, SchemadeskError
from registry.formats.base import Reference
from registry.promotions.plan.types import ADOPT, PlanStep
from registry.promotions.requests.schema_changes import (
    compare_step,
    new_schema,
    places_of,
    state_before,
    versions_before,
)
from registry.promotions.selectors import RequestInfo, ThreadInfo
from registry.subjects.selectors import ProvedComparison, presence_of
from registry.subjects.versions.lookup import Registry, get_registry
from registry.subjects.versions.qualified_names import parse_subject

MAX_ITEMS: Final = 50
#: listed fields of a new schema; its text has the rest
MAX_FIELDS: Final = 200
#: label of a change without a field
WHOLE: Final = _("the whole schema")


@dataclass(frozen=True)
class Drawing:
    """Display options: all changes instead of only the worst, business words, texts as submitted."""

    is_whole: bool = False
    in_business_words: bool = False
    as_submitted: bool = False


def changes_of(
    info: RequestInfo,
    actor: Actor,
    subject: str,
    url: Callable[..., str],
    registries: Mapping[str, Registry],
    drawing: Drawing = Drawing(),
) -> Changes:
    """Return the changes of the subject's schema, or of the worst one; `url` builds URLs of the page.

    `registries` are those of the environments, in promotion order.
    """
    steps, chosen = _bringing(info), chosen_step(info, subject)
    if chosen is None:
        return Changes(note=_nothing_written(info))
    comparison, note = compared(info, actor, chosen, registries, drawing)
    if comparison and drawing.in_business_words:
        comparison = in_business_words_of(comparison, _facts(info, chosen), comparison.new.format)
    new = _new(info, actor, chosen) if comparison is None else None
    items = tuple(_item(info, step, url, is_chosen=step is chosen) for step in steps[:MAX_ITEMS])
    return Changes(
        items=items if len(steps) > 1 else (),
        hidden=max(0, len(steps) - MAX_ITEMS),
        chosen=chosen,
        comparison=_with_threads(comparison, info.threads, chosen.subject, url) if comparison else None,
        note=note,
        new=new,
    )


def _new(info: RequestInfo, actor: Actor, step: PlanStep) -> NewSchemaView | None:
    """Return the whole schema if the target had no version and the reader may read it in both registries."""
    if versions_before(info, step) or not all(_may_read(actor, name, step.subject) for name in places_of(info, step)):
        return None
    schema, source = new_schema(info, step), places_of(info, step)[1]
    return NewSchemaView(
        schema=schema,
        references=tuple(
            (reference, _reference_url(actor, source, step, reference)) for reference in schema.references
        ),
        fields_hidden=max(0, len(schema.fields) - MAX_FIELDS),
    )


def _reference_url(actor: Actor, source: str, step: PlanStep, reference: Reference) -> str:
    """Return the URL of a new schema's reference; "" if the reader may not read it."""
    qualified = parse_subject(reference.subject, context=parse_subject(step.subject).context).qualified
    is_readable = _may_read(actor, source, qualified)
    return subject_url(source, qualified, version=reference.version) if is_readable else ""


def chosen_step(info: RequestInfo, subject: str) -> PlanStep | None:
    """Return the step of the subject, else the worst one; None if no version is written or adopted."""
    steps = _bringing(info)
    by_subject = {step.subject: step for step in steps}
    return by_subject.get(subject) or min(steps, key=lambda step: _rank(info, step), default=None)


def _bringing(info: RequestInfo) -> list[PlanStep]:
    return [step for step in steps_of_plan(info.plan) if step.adds or step.kind == ADOPT]


def _nothing_written(info: RequestInfo) -> str:
    return gettext("%(target)s already has these schemas, so no version is written.") % {"target": info.target}


def _rank(info: RequestInfo, step: PlanStep) -> tuple[int, bool]:
    """Return a sort key: breaking steps first, then the request's first subject."""
    verdict = worst(_checks_of(info, step))
    return ("breaks", "care", "unknown", "ok").index(verdict.code), step.subject != info.subject.qualified


def _checks_of(info: RequestInfo, step: PlanStep) -> list[Mapping[str, object]]:
    return [check for check in info.checks if check.get("subject") == step.subject]


def _item(info: RequestInfo, step: PlanStep, url: Callable[..., str], *, is_chosen: bool) -> ItemLink:
    what = (
        gettext("version %(source_version)s") % {"source_version": step.source_version}
        if step.source_version
        else gettext("the proposed text")
    )
    becomes = (
        gettext("will be adopted")
        if step.kind == ADOPT
        else gettext("becomes version %(target_version)s of %(target)s")
        % {"target_version": step.target_version, "target": info.target}
    )
    return ItemLink(
        subject=step.subject,
        what=f"{what} {becomes}",
        url=url(item=step.subject, all=None, unchanged=None),
        verdict=worst(_checks_of(info, step)),
        word=failure_word(_checks_of(info, step)),
        chosen=is_chosen,
        open_threads=sum(thread.is_open and thread.subject == step.subject for thread in info.threads),
    )


def compared(
    info: RequestInfo, actor: Actor, step: PlanStep, registries: Mapping[str, Registry], drawing: Drawing = Drawing()
) -> tuple[VersionComparison | None, str]:
    """Compare the new version with the target's at the time of the plan, or say why that is impossible."""
    secret = next((name for name in places_of(info, step) if not _may_read(actor, name, step.subject)), "")
    if secret:
        return None, gettext(
            "You don’t have permission to read %(subject)s in %(secret)s, so its changes are not shown."
        ) % {"subject": step.subject, "secret": secret}
    try:
        result = compare_step(info, step, registries)
    except NotFound as error:  # one was deleted after the plan was made
        return None, gettext("Can’t be compared any more: %(message)s") % {"message": error.message}
    except SchemadeskError as error:
        return None, gettext("Can’t be compared: %(message)s") % {"message": error.message}
    if result is None:
        has = gettext("has no version of {} yet") if info.is_open else gettext("had no version of {}")
        return None, gettext("%(target)s %(subject)s, so everything is new.") % {
            "target": info.target,
            "subject": has.format(step.subject),
        }
    old, new = places_of(info, step)
    level = str(state_before(info, step).get("level", "BACKWARD"))
    registry, name, order = registries[old], parse_subject(step.subject), list(registries)
    notes = comparison_notes(registry, name, result, by=actor)
    result = _as_written(result, step)
    skipped = ""
    if step.source_version and old != new:
        skipped = skipped_between(presence_of(registry, name), (old, result.old), (new, result.new), order=order)
    shown = present_comparison(
        result,
        old,
        new,
        level=level,
        submitted=drawing.as_submitted,
        limit=None if drawing.is_whole else MAX_CARDS,
        notes=notes,
        skipped=skipped,
        by=actor,
        order=order,
    )
    return shown, ""


def _as_written(comparison: ProvedComparison, step: PlanStep) -> ProvedComparison:
    """Return the comparison with the references, metadata and rules for the target, not those of the source."""
    if step.kind == ADOPT:
        return comparison
    before = comparison.old.schema
    schema = replace(
        comparison.new.schema,
        references=step.references,
        metadata=before.metadata if step.metadata is None else step.metadata,
        rule_set=before.rule_set if step.rule_set is None else step.rule_set,
    )
    return replace(comparison, new=replace(comparison.new, schema=schema))


def _facts(info: RequestInfo, step: PlanStep) -> dict[str, Fact]:
    """Return the field descriptions of the versions in both registries; for a proposed text, only the target's."""
    name, facts = parse_subject(step.subject), dict[str, Fact]()
    old, new = places_of(info, step)
    for registry, version in ((old, "latest"), (new, str(step.source_version or "latest"))):
        try:
            facts |= facts_of(get_registry(registry), name, version)
        except NotFound:
            continue  # new at the target, or deleted at the source meanwhile
    return facts


def _may_read(actor: Actor, registry: str, subject: str) -> bool:
    return may(actor, "schema.read", registry=registry, subject=subject)


def _with_threads(
    comparison: VersionComparison, threads: Sequence[ThreadInfo], subject: str, url: Callable[..., str]
) -> VersionComparison:
    """Add links to each card: to start a discussion of its field, and to existing ones."""

    def card_with(card: ChangeCard) -> ChangeCard:
        path = "" if card.path == WHOLE else card.path
        own_threads = [thread for thread in threads if thread.subject == subject and thread.path == path]
        about = {"item": subject, "about": path or None, "of": subject}
        return replace(
            card,
            comment_url=f"{url(**about)}#comment",
            threads=tuple(
                Link(
                    label=gettext("discussion") if thread.is_open else gettext("discussion, resolved"),
                    url=f"#thread-{thread.id}",
                )
                for thread in own_threads
            ),
        )

    return replace(
        comparison,
        groups=tuple(replace(group, cards=tuple(map(card_with, group.cards))) for group in comparison.groups),
    )


def place_of(thread: ThreadInfo, changes: Changes, url: Callable[..., str]) -> str:
    """Return the URL of a discussion's field on the page; "" if the plan no longer has its subject."""
    if not thread.subject or changes.chosen is None:
        return ""
    subjects = {changes.chosen.subject, *(item.subject for item in changes.items)}
    if thread.subject not in subjects:
        return ""
    if thread.subject == changes.chosen.subject and changes.comparison:
        cards = [card for group in changes.comparison.groups for card in group.cards]
        anchor = next((card.anchor for card in cards if card.path == (thread.path or WHOLE)), "")
        if anchor or not changes.comparison.hidden_changes:
            return f"#{anchor or 'changes'}"
        return f"{url(item=thread.subject, all='1')}#changes"
    return f"{url(item=thread.subject, all=None, unchanged=None)}#changes"


def page_url(base: str, drawn: Mapping[str, str | None]) -> Callable[..., str]:
    """Return a function that builds URLs of the request's page: the present parameters with some changed."""

    def address(**changed: str | None) -> str:
        query = {name: value for name, value in {**drawn, **changed}.items() if value}
        return f"{base}?{urlencode(query)}" if query else base

    return address

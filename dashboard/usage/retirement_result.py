"""The result of a step of the retirement wizard, and the list of unused subjects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext

from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import cursor_paging, form_text, subject_url, subjects_crumb, subjects_url, whole_number
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Frame, Paging, Section
from dashboard.registries.archive import copy_url, newest_copy, restore_label
from dashboard.usage.forms import LABELS
from dashboard.usage.retirement import ICONS, SHOWN, ReadBack, RetireChoice, RetirePage, retire_frame
from registry.access.roles import may_somewhere, refusal
from registry.drift.usage.unused_subjects import UnusedSubject, UnusedSubjectPage, find_unused_subjects
from registry.errors import InvalidInput, NotFound
from registry.subjects.lifecycle.retirement import CHOICES, DEPRECATE, HARD, RESTORE, RIGHTS, SOFT, Retired
from registry.subjects.models import Registry
from registry.subjects.selectors import get_schema
from registry.subjects.versions.lookup import get_registry, get_subject
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

#: choice → what was done, and the expected state of a version
DONE: Final = {
    DEPRECATE: ("deprecated", _("is deprecated")),
    SOFT: (_("soft-deleted"), _("is soft-deleted")),
    HARD: (_("permanently deleted"), _("doesn’t exist")),
    RESTORE: ("restored", _("exists")),
}
PAGE_SIZE: Final = 50


def done_url(registry: Registry, name: SubjectName, done: Retired) -> str:
    """Return the URL of the result; it names only the first of many versions."""
    versions, ids = (",".join(map(str, numbers[:SHOWN])) for numbers in (done.versions, done.schema_ids))
    base = subject_url(registry.name, name.qualified, "retire", did=done.choice, versions=versions, ids=ids)
    return base.replace("/retire?", "/retire/done?", 1)


def done_page(request: HttpRequest, registry: str, subject: str) -> RetirePage:
    """Return the present state of the versions and ids in the URL. Raises InvalidInput, RegistryNotFound."""
    registry_row, name = get_registry(registry), parse_subject(subject)
    choice = form_text(request.GET, "did")
    numbers, ids = (_numbers(form_text(request.GET, field)) for field in ("versions", "ids"))
    if choice not in CHOICES or not numbers:
        raise InvalidInput(gettext("This address doesn’t match a completed action."), field="did")
    states = _states(registry_row, name)
    states_by_number = {number: states.get(number, gettext("doesn’t exist")) for number in numbers}
    word, expected = DONE[choice]
    good = all(state == expected for state in states_by_number.values())
    lines = [
        gettext("Version %(number)s %(state)s.") % {"number": number, "state": state}
        for number, state in states_by_number.items()
    ]
    lines += [_of_id(registry_row, name, number) for number in ids] if choice == HARD else []
    return RetirePage(
        frame=retire_frame(request, registry_row, name),
        registry=registry_row.name,
        subject=name.qualified,
        what=counted(len(numbers), "%(n)s version of it", "%(n)s versions of it"),
        back_url=subject_url(registry_row.name, name.qualified) if states else subjects_url(registry_row.name),
        read_back=ReadBack(
            headline=gettext("Verified: %(word)s") % {"word": word}
            if good
            else gettext("Incomplete: not everything is %(word)s") % {"word": word},
            good=good,
            lines=tuple(lines),
            at=timezone.now(),
            restore=_restore(request, registry_row, name, numbers)
            if choice == SOFT and good
            else _restore_copy(request, registry_row, name)
            if choice == HARD
            else None,
        ),
    )


def _numbers(text: str) -> list[int]:
    parsed = [whole_number(part, digits=10) for part in text.split(",")[:SHOWN]]
    return [number for number in parsed if number is not None]


def _states(registry: Registry, name: SubjectName) -> dict[int, str]:
    """Return the present states of the subject's versions."""
    try:
        rows = get_subject(registry, name, deleted=True).versions.values_list("version", "deleted_at", "status__status")
    except NotFound:
        return {}
    return {
        number: gettext("is soft-deleted")
        if deleted
        else gettext("is %(status)s") % {"status": status}
        if status
        else gettext("exists")
        for number, deleted, status in rows
    }


def _of_id(registry: Registry, name: SubjectName, number: int) -> str:
    try:
        get_schema(registry, number, context=name.context)
    except NotFound:
        return gettext("Schema id %(number)s doesn’t exist: messages with it can’t be read.") % {"number": number}
    return gettext(
        "Schema id %(number)s still exists because another version uses it: messages with it can be read."
    ) % {"number": number}


def _restore(request: HttpRequest, registry: Registry, name: SubjectName, numbers: Sequence[int]) -> RetireChoice:
    version = numbers[0] if len(numbers) == 1 else None
    url = subject_url(registry.name, name.qualified, "retire", version=version, do=RESTORE)
    return RetireChoice(
        button=f"{LABELS[RESTORE]} …",
        icon=ICONS[RESTORE],
        url=url.replace("/retire?", "/retire/confirm?", 1),
        refused=refusal(page_actor(request), RIGHTS[RESTORE], registry=registry.name, subject=name.qualified),
    )


def _restore_copy(request: HttpRequest, registry: Registry, name: SubjectName) -> RetireChoice | None:
    """Return the link to the subject's newest copy, if the reader may open it."""
    copy = newest_copy(registry, name, page_actor(request))
    if copy is None:
        return None
    url = copy_url(registry.name, copy.number)
    return RetireChoice(button=restore_label(copy), icon=ICONS[RESTORE], url=url)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedSubjectsPage:
    """The unused subjects of a registry, and the basis of that conclusion."""

    frame: Frame
    registry: str
    sentence: str
    is_known: bool
    rows: tuple[UnusedSubject, ...]
    paging: Paging
    may_deprecate: bool = False


def unused_subjects_page(request: HttpRequest, registry: Registry) -> UnusedSubjectsPage:
    """Return a page of unused subjects that the reader may read. Raises NotAllowed."""
    after = form_text(request.GET, "after")
    unused = find_unused_subjects(registry, by=page_actor(request), after=after, limit=PAGE_SIZE)
    base = reverse("ui:unused_subjects", args=[registry.name])
    return UnusedSubjectsPage(
        frame=make_frame(
            request,
            title=gettext("Unused subjects"),
            section=Section.SUBJECTS,
            registry=registry.name,
            crumbs=(subjects_crumb(registry.name),),
            url_in=lambda other: reverse("ui:unused_subjects", args=[other]),
        ),
        registry=registry.name,
        sentence=_rests_on(unused),
        is_known=unused.read > 0,
        rows=unused.rows,
        paging=cursor_paging(
            unused.rows, base, {}, is_first=not after, total=None if after else unused.total, after=unused.after
        ),
        may_deprecate=may_somewhere(page_actor(request), RIGHTS[DEPRECATE]),
    )


def _rests_on(unused: UnusedSubjectPage) -> str:
    if not unused.topics:
        return gettext(
            "No topic of this registry’s sources has ever been scanned, so it is unknown which subjects are in use."
        )
    return counted(
        unused.topics,
        "Based on %(n)s topic; messages were read from %(read)s. The content of all other topics is unknown.",
        "Based on %(n)s topics; messages were read from %(read)s of them. The content of all other topics is unknown.",
        read=f"{unused.read:,}",
    )

"""The deprecation of several subjects, from the list or from those that nothing needs."""

from __future__ import annotations

from collections.abc import Sequence

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.links import subject_url, subjects_url
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.notes import chosen_subjects
from dashboard.pages.sources_words import given_text
from dashboard.pages.subject_parts import subjects_crumb
from dashboard.presenters.frame import Action, Field, Frame, Problem, Section
from dashboard.presenters.notes import SeveralPage, SeveralRow
from dashboard.texts import counted
from registry.access.roles import may_somewhere, refusal, require
from registry.subjects.models import SubjectActivity
from registry.subjects.names import SubjectName
from registry.subjects.selectors.fitting import among
from registry.subjects.selectors.places import Registry, get_registry
from registry.subjects.services.notes import MOST
from registry.subjects.services.retiring import DEPRECATE, RIGHTS
from registry.subjects.services.several import Outcome


def deprecate_page(request: HttpRequest, registry: str, *, error: str = "") -> SeveralPage:
    """The chosen subjects with what would become of each. Raises NotAllowed, RegistryNotFound, InvalidName."""
    actor, post = page_actor(request), request.POST
    require(actor, "schema.read", registry=registry)
    if not may_somewhere(actor, RIGHTS[DEPRECATE]):
        require(actor, RIGHTS[DEPRECATE], registry=registry)
    place, names = get_registry(registry), chosen_subjects(post.getlist("subject"))
    if not 1 <= len(names) <= MOST:
        said = gettext("Choose 1 to %(most)s subjects in the list, not %(count)s.")
        return SeveralPage(
            frame=_frame(request, registry),
            rows=(),
            back_url=subjects_url(registry),
            problem=Problem(
                what=said % {"most": MOST, "count": len(names)}, cure=gettext("Go back to the list and choose again.")
            ),
        )
    live = _live(place, names)
    rows = tuple(
        SeveralRow(
            name=name.qualified,
            url=subject_url(registry, name.qualified),
            what=counted(live.get(name, 0), "%(n)s version", "%(n)s versions"),
            why_not=refusal(actor, RIGHTS[DEPRECATE], registry=registry, subject=name.qualified)
            or ("" if name in live else gettext("It has no live version.")),
        )
        for name in names
    )
    can = sum(not row.why_not for row in rows)
    return SeveralPage(
        frame=_frame(request, registry),
        rows=rows,
        hidden=(("confirmed", "yes"), *(("subject", name.qualified) for name in names)),
        fields=_fields(request, error),
        submit=Action(
            label=counted(can, "Deprecate %(n)s subject", "Deprecate %(n)s subjects"),
            url=reverse("ui:subjects_deprecate", args=[registry]),
            method="post",
            allowed=can > 0,
            reason="" if can else gettext("None of these can be deprecated by you."),
            tone="primary",
        ),
        sentence=gettext("Look-ups go on; readers get the reason in a header, people on pages."),
        back_url=subjects_url(registry),
    )


def done_page(request: HttpRequest, registry: str, done: Sequence[Outcome]) -> SeveralPage:
    """What became of each."""
    rows = tuple(
        SeveralRow(
            name=each.subject.qualified,
            url=subject_url(registry, each.subject.qualified),
            what=counted(len(each.versions), "%(n)s version", "%(n)s versions"),
            why_not=each.refusal,
        )
        for each in done
    )
    good = sum(not row.why_not for row in rows)
    return SeveralPage(
        frame=_frame(request, registry),
        rows=rows,
        done=True,
        sentence=gettext("%(good)s of %(all)s are deprecated now.") % {"good": good, "all": len(rows)},
        back_url=subjects_url(registry),
    )


def _fields(request: HttpRequest, error: str) -> tuple[Field, ...]:
    return (
        Field(
            name="message",
            label=gettext("Why, and what to use instead"),
            kind="textarea",
            rows=2,
            value=given_text(request.POST, "message"),
            required=True,
            errors=(error,) if error else (),
        ),
        Field(
            name="ends_at",
            label=gettext("To be used until"),
            kind="date",
            value=given_text(request.POST, "ends_at"),
            help=gettext("At most; empty for no end."),
        ),
    )


def _live(place: Registry, names: Sequence[SubjectName]) -> dict[SubjectName, int]:
    """How many live versions each has, of those that have any; one query."""
    rows = SubjectActivity.objects.filter(among(names, "subject__"), registry_id=place.pk)
    found = rows.values_list("subject__context__name", "subject__name", "live_versions")
    return {SubjectName(context, name): number for context, name, number in found}


def _frame(request: HttpRequest, registry: str) -> Frame:
    return make_frame(
        request,
        title=gettext("Deprecate several subjects"),
        section=Section.SUBJECTS,
        registry=registry,
        crumbs=(subjects_crumb(registry),),
    )

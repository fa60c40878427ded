"""Describing subjects: one on its page, several from the list."""

from __future__ import annotations

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from dashboard.links import subject_url, subjects_url
from dashboard.pages import notes as pages
from dashboard.pages.frame import page_actor
from dashboard.pages.sources_words import given_text
from dashboard.pages.subjects import subject_page
from dashboard.texts import counted
from registry.access.patterns import pattern_of
from registry.access.roles import Actor, require
from registry.access.services import add_owner
from registry.errors import Conflict, InvalidInput, NotFound
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.notes import Note
from registry.subjects.services.notes import change_tags, set_note


@require_POST
def describe(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Replace the tags and the text of a subject; what is refused stays in the form."""
    name, actor = parse_subject(subject), page_actor(request)
    require(actor, "subject.describe", registry=registry, subject=name.qualified)
    tags, doc = given_text(request.POST, "tags").replace(",", " ").split(), request.POST.get("doc", "")
    try:
        set_note(
            registry=registry,
            subject=name,
            tags=tags,
            doc=doc,
            by=actor,
            expected=given_text(request.POST, "state"),
            reason=given_text(request.POST, "reason"),
        )
    except (Conflict, InvalidInput) as error:
        messages.error(request, error.message)
        page = subject_page(request, registry, subject, given=Note(tuple(tags), doc))
        return render(request, "subjects/subject.html", {"page": page}, status=422)
    messages.success(request, gettext("The description is saved."))
    return redirect(subject_url(registry, name.qualified) + "#note")


@require_POST
def describe_several(request: HttpRequest, registry: str) -> HttpResponse:
    """Show what would become of the chosen subjects; confirmed, do it."""
    page, actor, post = pages.bulk_page(request, registry), page_actor(request), request.POST
    if post.get("confirmed") == "yes" and page.problem is None:
        try:
            _apply(request, registry, actor)
        except (Conflict, InvalidInput, NotFound) as error:
            page = pages.bulk_page(request, registry, error=error.message)
        else:
            done = counted(
                len(page.rows), "%(n)s subject: %(change)s.", "%(n)s subjects: %(change)s.", change=page.sentence
            )
            messages.success(request, done)
            return redirect(subjects_url(registry))
    return render(request, "subjects/describe.html", {"page": page}, status=422 if page.problem else 200)


def _apply(request: HttpRequest, registry: str, actor: Actor) -> None:
    post = request.POST
    change, value, reason = given_text(post, "change"), given_text(post, "value"), given_text(post, "reason")
    names = pages.chosen_subjects(post.getlist("subject"))
    if change in (pages.ADD, pages.REMOVE):
        given = {"add": [value]} if change == pages.ADD else {"remove": [value]}
        change_tags(registry=registry, subjects=names, by=actor, reason=reason, **given)
    else:
        _own(registry, names, actor, **{"username" if change == pages.OWN_USER else "group": value})


@transaction.atomic
def _own(registry: str, names: list[SubjectName], actor: Actor, **owner: str) -> None:
    """One rule a subject, with what patterns mean by a sign taken literally; all or none."""
    for name in names:
        add_owner(subject_pattern=pattern_of(name.qualified), registry=registry, by=actor, **owner)

"""Changes from the pages of subjects: descriptions, the status of versions, renames, and several subjects at once."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Final

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from dashboard.components.frame import page_actor
from dashboard.components.links import subject_url, subjects_url, whole_number
from dashboard.components.translation import counted
from dashboard.sources.forms import end_of_day
from dashboard.sources.labels import given_text
from dashboard.subjects import descriptions, subject_list
from dashboard.subjects.descriptions import chosen_subjects
from dashboard.subjects.lifecycle import GOOD
from dashboard.subjects.page import subject_page
from registry.access.name_patterns import pattern_of
from registry.access.roles import Actor, require
from registry.access.services import add_owner
from registry.drift.services.minimum_version import ACTION as MINIMUM_VERSION
from registry.drift.services.minimum_version import clear_least_version, set_least_version
from registry.errors import Conflict, InvalidInput, NotFound, SubjectNotFound
from registry.promotions.requests.schema_changes import ACTION as RENAME
from registry.promotions.requests.schema_changes import decide_rename, undecide_rename
from registry.promotions.services import request_adoption, request_roll_back
from registry.subjects.lifecycle.bulk import deprecate_several, export_subjects
from registry.subjects.lifecycle.notes import Note, change_tags, set_note
from registry.subjects.lifecycle.retirement import clear_standing, set_standing
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

MINIMUM_ANCHOR: Final = "#least"


@require_POST
def least_version(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Set the least version, or (`clear`) let any be written again."""
    name, actor = parse_subject(subject), page_actor(request)
    require(actor, MINIMUM_VERSION, registry=registry, subject=name.qualified)
    try:
        if given_text(request.POST, "clear"):
            clear_least_version(registry=registry, subject=name, by=actor)
            messages.success(request, gettext("Producers may write any version again."))
        else:
            number = whole_number(request.POST.get("version", ""), digits=9) or 0
            reason = given_text(request.POST, "reason")
            info = set_least_version(registry=registry, subject=name, version=number, reason=reason, by=actor)
            message = gettext("From now on, scans report producers that write versions older than %(version)s.")
            messages.success(request, message % {"version": info.version})
    except SubjectNotFound:
        raise
    except (InvalidInput, NotFound) as error:
        messages.error(request, error.message)
    return redirect(subject_url(registry, name.qualified, tab="settings") + MINIMUM_ANCHOR)


STATUS_ANCHOR: Final = "#standing"


@require_POST
def standing(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Set the standing of the version that the form names, or bring it back into good standing."""
    name, version, actor = parse_subject(subject), given_text(request.POST, "version"), page_actor(request)
    require(actor, "version.standing", registry=registry, subject=name.qualified)
    status = given_text(request.POST, "standing")
    try:
        if status == GOOD:
            clear_standing(registry=registry, subject=name, version=version, by=actor)
            messages.success(request, gettext("Version %(version)s is active again.") % {"version": version})
        else:
            set_standing(
                registry=registry,
                subject=name,
                version=version,
                standing=status,
                message=given_text(request.POST, "message"),
                ends_at=end_of_day(request.POST.get("ends_at", "")),
                by=actor,
            )
            messages.success(
                request,
                gettext("Version %(version)s is %(wanted)s. Readers see this in a header.")
                % {"version": version, "wanted": status},
            )
    except (Conflict, InvalidInput) as error:
        messages.error(request, error.message)
    back = given_text(request.POST, "next")
    if url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}):
        return redirect(back)
    return redirect(_back_to_versions(registry, name, version))


@require_POST
def adopt(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Ask for the review of a version that came without a request."""
    message = gettext("Created request %(number)s to adopt version %(version)s.")
    return _ask(request, registry, subject, request_adoption, message)


@require_POST
def roll_back(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """Ask for an earlier version to be current again."""
    message = gettext("Created request %(number)s to roll back to version %(version)s.")
    return _ask(request, registry, subject, request_roll_back, message)


def _ask(request: HttpRequest, registry: str, subject: str, service: Callable[..., int], message: str) -> HttpResponse:
    """Make a request about the version of the form, and lead to it; `message` names its number and the version."""
    name, version, actor = parse_subject(subject), given_text(request.POST, "version"), page_actor(request)
    require(actor, "promotion.request", registry=registry, subject=name.qualified)
    try:
        number = service(
            environment=registry,
            subject=name,
            version=version,
            reason=given_text(request.POST, "reason"),
            by=actor,
        )
    except (Conflict, InvalidInput) as error:
        messages.error(request, error.message)
        return redirect(_back_to_versions(registry, name, version))
    messages.success(request, message % {"number": number, "version": version})
    return redirect("ui:promotion", number)


def _back_to_versions(registry: str, name: SubjectName, version: str) -> str:
    return subject_url(registry, name.qualified, version=version or None) + STATUS_ANCHOR


@require_POST
def decide(request: HttpRequest, registry: str, subject: str) -> HttpResponse:
    """`decision` is yes, no, or back; the page that asked is shown again."""
    name, actor = parse_subject(subject), page_actor(request)
    require(actor, RENAME, registry=registry, subject=name.qualified)
    decision = given_text(request.POST, "decision")
    pair = {"from_path": given_text(request.POST, "from"), "to_path": given_text(request.POST, "to")}
    try:
        if decision == "back":
            undecide_rename(registry=registry, subject=name, by=actor, **pair)
            messages.success(request, gettext("The decision was removed."))
        elif decision in ("yes", "no"):
            why = given_text(request.POST, "why")
            decide_rename(registry=registry, subject=name, by=actor, is_rename=decision == "yes", reason=why, **pair)
            messages.success(
                request, gettext("The decision was saved. It applies wherever this pair of fields appears.")
            )
        else:
            raise InvalidInput(gettext("Choose whether this is a rename."))
    except (Conflict, InvalidInput) as error:
        messages.error(request, error.message)
    return redirect(_back_to_page(request) or subject_url(registry, name.qualified))


def _back_to_page(request: HttpRequest) -> str:
    """The page that the form names, if it is one of this site."""
    back = request.POST.get("next", "")
    return f"{back}#renames-title" if back and url_has_allowed_host_and_scheme(back, allowed_hosts=None) else ""


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
        page = subject_page(request, registry, subject, refused_note=Note(tuple(tags), doc))
        return render(request, "subjects/subject.html", {"page": page}, status=422)
    messages.success(request, gettext("Description saved."))
    return redirect(subject_url(registry, name.qualified) + "#note")


@require_POST
def describe_several(request: HttpRequest, registry: str) -> HttpResponse:
    """Show what would become of the chosen subjects; confirmed, do it."""
    page, actor, post = descriptions.bulk_page(request, registry), page_actor(request), request.POST
    if post.get("confirmed") == "yes" and page.problem is None:
        try:
            _apply(request, registry, actor)
        except (Conflict, InvalidInput, NotFound) as error:
            page = descriptions.bulk_page(request, registry, error=error.message)
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
    names = descriptions.chosen_subjects(post.getlist("subject"))
    if change in (descriptions.ADD, descriptions.REMOVE):
        changes = {"add": [value]} if change == descriptions.ADD else {"remove": [value]}
        change_tags(registry=registry, subjects=names, by=actor, reason=reason, **changes)
    else:
        _own(registry, names, actor, **{"username" if change == descriptions.OWN_USER else "group": value})


@transaction.atomic
def _own(registry: str, names: list[SubjectName], actor: Actor, **owner: str) -> None:
    """One rule a subject, with what patterns mean by a sign taken literally; all or none."""
    for name in names:
        add_owner(subject_pattern=pattern_of(name.qualified), registry=registry, by=actor, **owner)


TEMPLATE = "subjects/deprecate.html"


@require_POST
def export(request: HttpRequest, registry: str) -> HttpResponse:
    """The chosen subjects as a zip."""
    actor = page_actor(request)
    require(actor, "schema.read", registry=registry)
    file = io.BytesIO()
    export_subjects(registry=registry, subjects=chosen_subjects(request.POST.getlist("subject")), file=file, by=actor)
    headers = {"Content-Disposition": 'attachment; filename="subjects.zip"'}
    return HttpResponse(file.getvalue(), content_type="application/zip", headers=headers)


@require_POST
def deprecate(request: HttpRequest, registry: str) -> HttpResponse:
    """Show what would become of the chosen subjects; confirmed, do it and say what became of each."""
    page, post = subject_list.deprecate_page(request, registry), request.POST
    if page.problem is not None or post.get("confirmed") != "yes":
        return render(request, TEMPLATE, {"page": page}, status=422 if page.problem else 200)
    try:
        done = deprecate_several(
            registry=registry,
            subjects=chosen_subjects(post.getlist("subject")),
            message=given_text(post, "message"),
            ends_at=end_of_day(post.get("ends_at", "")),
            by=page_actor(request),
        )
    except InvalidInput as error:
        page = subject_list.deprecate_page(request, registry, error=error.message)
        return render(request, TEMPLATE, {"page": page}, status=422)
    return render(request, TEMPLATE, {"page": subject_list.done_page(request, registry, done)})

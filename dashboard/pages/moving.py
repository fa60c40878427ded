"""The page from which the contents of a registry are taken along, and others brought in."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.pages.copies import copy_row
from dashboard.pages.frame import make_frame, page_actor
from dashboard.pages.subject_parts import subjects_crumb
from dashboard.presenters.frame import Action, Problem, Section
from dashboard.presenters.moving import MovingPage
from dashboard.texts import counted
from registry.access.roles import Actor, may_in, refusal
from registry.subjects.models import KeptCopy, Registry
from registry.subjects.selectors.copies import waiting_files
from registry.subjects.selectors.places import get_registry
from registry.subjects.selectors.registries import amounts_of
from registry.subjects.sent_file import MAX_SENT
from registry.subjects.services.bringing import MOST
from registry.subjects.services.keeping import RIGHTS


def moving_page(request: HttpRequest, registry: str, *, error: str = "") -> MovingPage:
    """The page, with what was wrong with a file that was sent. Raises RegistryNotFound."""
    place, actor = get_registry(registry), page_actor(request)
    subjects, versions = amounts_of(place)
    unread = refusal(actor, "schema.read", registry=registry)
    return MovingPage(
        frame=make_frame(
            request,
            title=gettext("Export and import"),
            section=Section.POLICY,
            registry=registry,
            crumbs=(subjects_crumb(registry),),
            url_in=lambda other: reverse("ui:moving", args=[other]),
        ),
        registry=registry,
        holds=gettext("%(subjects)s with %(versions)s now")
        % {
            "subjects": counted(subjects, "%(n)s subject", "%(n)s subjects"),
            "versions": counted(versions, "%(n)s live version", "%(n)s live versions"),
        },
        export=Action(
            label=gettext("Export all of it"),
            url=reverse("ui:registry_export", args=[registry]),
            method="post",
            allowed=not unread,
            reason=unread,
            tone="primary",
            icon="file-text",
        ),
        upload=_upload(place, actor),
        limits=gettext(
            "At most %(sent)s MiB, and %(versions)s versions to bring in; larger ones by the command %(command)s."
        )
        % {"sent": MAX_SENT // 2**20, "versions": f"{MOST:,}", "command": "import_registry"},
        waiting=tuple(copy_row(registry, each, is_deleted=False) for each in waiting_files(place, by=actor)),
        deleted_url=reverse("ui:deleted", args=[registry]) if may_in(actor, RIGHTS[KeptCopy.DELETED], registry) else "",
        problem=Problem(what=error, cure=gettext("Nothing was changed. Choose another file.")) if error else None,
    )


def _upload(place: Registry, actor: Actor) -> Action:
    reason = refusal(actor, RIGHTS[KeptCopy.SENT], registry=place.name)
    if not reason and place.kind == Registry.REMOTE:
        reason = gettext("It is a mirror: nothing is brought in here.")
    return Action(
        label=gettext("Read the file and plan"),
        url=reverse("ui:registry_import", args=[place.name]),
        method="post",
        allowed=not reason,
        reason=reason,
        tone="primary",
        icon="arrow-right",
    )

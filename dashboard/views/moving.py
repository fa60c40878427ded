"""What a registry holds, as a file and out of one, and the copies of what was deleted for good."""

from __future__ import annotations

import io
import re

from django.contrib import messages
from django.http import FileResponse, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from dashboard.links import subject_url, subjects_url
from dashboard.pages import copies
from dashboard.pages import moving as pages
from dashboard.pages.frame import page_actor
from dashboard.pages.sources_words import given_text
from dashboard.texts import counted
from registry.access.extent import require_extent
from registry.access.roles import require
from registry.errors import Conflict, InvalidInput
from registry.subjects.export_file import MEDIA_TYPE
from registry.subjects.models import KeptCopy
from registry.subjects.services.bringing import bring_copy, send_file, write_copy
from registry.subjects.services.keeping import RIGHTS, forget
from registry.subjects.services.moving_in import spooled_export


@require_safe
def moving(request: HttpRequest, registry: str) -> HttpResponse:
    """The ways out of a registry and into it."""
    require(page_actor(request), "schema.read", registry=registry)
    return render(request, "registries/moving.html", {"page": pages.moving_page(request, registry)})


@require_POST
def export(request: HttpRequest, registry: str) -> FileResponse:
    """All that the registry holds, to be saved."""
    require(page_actor(request), "schema.read", registry=registry)
    file = spooled_export(registry=registry, by=page_actor(request))
    return FileResponse(file, as_attachment=True, filename=f"{registry}.jsonl", content_type=MEDIA_TYPE)


@require_POST
def send(request: HttpRequest, registry: str) -> HttpResponse:
    """Take a file and lead to its plan; nothing is brought in yet."""
    actor, file = page_actor(request), request.FILES.get("file")
    require(actor, RIGHTS[KeptCopy.SENT], registry=registry)
    try:
        if file is None:
            raise InvalidInput(gettext("Choose a file first."), field="file")
        number = send_file(registry=registry, data=file.read(), size=file.size or 0, name=file.name or "", by=actor)
    except (Conflict, InvalidInput) as error:
        page = pages.moving_page(request, registry, error=error.placed)
        return render(request, "registries/moving.html", {"page": page}, status=422)
    return redirect(copies.copy_url(registry, number))


@require_safe
def deleted(request: HttpRequest, registry: str) -> HttpResponse:
    """What was deleted for good and is kept still."""
    require_extent(page_actor(request), RIGHTS[KeptCopy.DELETED], registry=registry)
    return render(request, "registries/deleted.html", {"page": copies.deleted_page(request, registry)})


@require_safe
def copy(request: HttpRequest, registry: str, copy_id: int) -> HttpResponse:
    """A copy, and what bringing it in would do."""
    return render(request, "registries/copy.html", {"page": copies.copy_page(request, registry, copy_id)})


@require_safe
def copy_file(request: HttpRequest, registry: str, copy_id: int) -> FileResponse:
    """A copy as an export file, to be saved."""
    file = io.BytesIO()
    name = write_copy(registry=registry, number=copy_id, file=file, by=page_actor(request))
    file.seek(0)
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", name)[:80].strip("._").removesuffix(".jsonl") or "copy"
    return FileResponse(file, as_attachment=True, filename=f"{plain}.jsonl", content_type=MEDIA_TYPE)


@require_POST
def copy_bring(request: HttpRequest, registry: str, copy_id: int) -> HttpResponse:
    """Do what the plan said that was confirmed."""
    ways = copies.asked_ways(request)
    try:
        done = bring_copy(
            registry=registry,
            number=copy_id,
            ways=ways,
            digest=given_text(request.POST, "plan"),
            by=page_actor(request),
        )
    except (Conflict, InvalidInput) as error:
        messages.error(request, error.placed)
        query = {"only": "missing"} if ways.only_missing else {"as": "deleted"} if not ways.live else {}
        return redirect(copies.copy_url(registry, copy_id, **query))
    said = counted(done.count("created"), "%(n)s version came", "%(n)s versions came")
    messages.success(request, gettext("Done: %(said)s. The copy is kept no longer.") % {"said": said})
    names = {line.subject.qualified for line in done.lines}
    return redirect(subject_url(registry, names.pop()) if len(names) == 1 else subjects_url(registry))


@require_POST
def copy_forget(request: HttpRequest, registry: str, copy_id: int) -> HttpResponse:
    """Remove a copy now."""
    name = forget(registry=registry, number=copy_id, by=page_actor(request))
    messages.success(request, gettext("The copy of %(name)s is gone.") % {"name": name[:200]})
    return redirect("ui:moving", registry)

"""The page of people, groups and owners; for admins."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from dashboard.pages.environment_changes import loosening_of
from dashboard.pages.environments import environment_page
from dashboard.pages.frame import page_actor
from dashboard.pages.people import people_page
from dashboard.pages.people_forms import CHANGES, make_change
from registry.access.roles import require
from registry.errors import Conflict, InvalidInput, NotFound, SecondPersonRequired


@require_safe
def people(request: HttpRequest) -> HttpResponse:
    """Everybody with their roles, the groups, and the owners."""
    require(page_actor(request), "people.manage")
    return render(request, "people/people.html", {"page": people_page(request)})


@never_cache
@require_POST
def change(request: HttpRequest) -> HttpResponse:
    """Do what one of the page's forms asks for; a new person's password is shown this one time."""
    actor = page_actor(request)
    require(actor, "people.manage")
    do = request.POST.get("do", "")
    try:
        given = make_change(do, request.POST.dict(), by=actor)
    except SecondPersonRequired as error:
        place = str(error.details["environment"])
        page = environment_page(request, place, loosening=loosening_of(error, place))
        return render(request, "environments/environment.html", {"page": page}, status=409)
    except (Conflict, InvalidInput, NotFound) as error:
        return render(request, "people/people.html", {"page": people_page(request, problem=error)}, status=422)
    if do == "add":
        made = (request.POST.get("username", "").strip(), given)
        return render(request, "people/people.html", {"page": people_page(request, made=made)}, status=201)
    messages.success(request, CHANGES[do].said)
    return redirect("ui:people")

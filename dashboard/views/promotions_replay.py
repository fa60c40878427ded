"""The replay of a request's schema on real messages: a POST, because it takes the brokers' and Spark's time."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from dashboard.pages.promotions_replay import replay_page


@require_POST
def replay(request: HttpRequest, request_id: int) -> HttpResponse:
    """The newest messages of the target, read with what the request would bring; nothing is written."""
    page = replay_page(request, request_id)
    return render(request, "promotions/replay.html", {"page": page}, status=422 if page.problem else 200)

"""The page of the search."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from dashboard.pages.search import search_page


@sensitive_post_parameters("pasted")
@require_http_methods(["GET", "HEAD", "POST"])
def search(request: HttpRequest) -> HttpResponse:
    """What a query finds; by POST what a pasted schema or message is, of which nothing is kept."""
    page = search_page(request)
    return render(request, "search/search.html", {"page": page}, status=422 if page.problem else 200)

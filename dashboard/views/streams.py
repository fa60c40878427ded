"""Pages of streaming queries and their state."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.pages import streams, streams_compare, streams_variable


@require_safe
def query_list(request: HttpRequest) -> HttpResponse:
    """All queries, budgets at a glance."""
    return render(request, "streams/queries.html", {"page": streams.query_list(request)})


@require_safe
def query_page(request: HttpRequest, query_id: int) -> HttpResponse:
    """One query with its operators and state variables."""
    return render(request, "streams/query.html", {"page": streams.query_page(request, query_id)})


@require_safe
def variable_page(request: HttpRequest, query_id: int, variable_id: int) -> HttpResponse:
    """A state variable with its timeline."""
    page = streams_variable.variable_page(request, query_id, variable_id)
    return render(request, "streams/variable.html", {"page": page})


@require_safe
def variable_compare(request: HttpRequest, query_id: int, variable_id: int) -> HttpResponse:
    """Two versions of a state variable's schema."""
    page = streams_compare.compare_page(request, query_id, variable_id)
    return render(request, "streams/compare.html", {"page": page})

"""The way from a list of the pages to the same in an API."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.context import Context

from dashboard import copy_as as lists

register = template.Library()


@register.inclusion_tag("components/copy_as.html", takes_context=True)
def copy_as(context: Context, name: str, **places: str) -> dict[str, Any]:
    """Unfolded, where programs get this list: see dashboard.copy_as."""
    request = context.get("request")
    return {"copy": None if request is None else lists.copy_as(request, name, **places)}

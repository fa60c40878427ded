"""What a template may offer: only what its reader may open."""

from __future__ import annotations

from django import template
from django.template import Context

from registry.access.roles import may, may_somewhere

register = template.Library()


@register.simple_tag(takes_context=True)
def reader_may_somewhere(context: Context, action: str) -> bool:
    """Whether the page's reader may in any registry or for any subject; False where nobody has asked who that is."""
    actor = getattr(context.get("request"), "page_actor", None)
    return actor is not None and may_somewhere(actor, action)


@register.simple_tag(takes_context=True)
def reader_may(context: Context, action: str) -> bool:
    """Whether the page's reader may; False where nobody has asked yet who that is, as on a page of an error: no query."""
    actor = getattr(context.get("request"), "page_actor", None)
    return actor is not None and may(actor, action)

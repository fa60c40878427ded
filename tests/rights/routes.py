"""Every address of the product with its methods, read from Django's resolver."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver
from django.utils.regex_helper import normalize

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@dataclass(frozen=True, order=True)
class Route:
    """One address: its template with `%(name)s` for what varies, those names, and the methods that it may take."""

    template: str
    names: tuple[str, ...]
    methods: tuple[str, ...]


def all_routes() -> list[Route]:
    """All addresses below the root, each template once with the methods of the view that answers it."""
    found: dict[str, Route] = {}
    for pattern, view in _walk(get_resolver(), ""):
        for template, names in normalize(pattern):
            path = re.sub(r"/+", "/", f"/{template}")
            found.setdefault(path, Route(path, tuple(names), _methods(view)))
    return sorted(found.values())


def _walk(resolver: URLResolver, prefix: str) -> Iterator[tuple[str, Any]]:
    for item in resolver.url_patterns:
        own = item.pattern.regex.pattern.removeprefix("^").replace(r"\Z", "").removesuffix("$")
        if isinstance(item, URLPattern):
            yield prefix + own, item.callback
        else:
            yield from _walk(item, prefix + own)


def _methods(view: Any) -> tuple[str, ...]:
    """Those that a class handles; a function may take any, so it is asked with each."""
    handler = getattr(view, "cls", None) or getattr(view, "view_class", None)
    if handler is None:
        return METHODS
    return tuple(method for method in METHODS if hasattr(handler, method.lower()))

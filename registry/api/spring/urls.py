"""Spring's URLs, below the root path in the setting SPRING_PATH.

The converter `segment` is one path segment, decoded after the split. As in the released server, a trailing slash makes
no difference.
"""

from __future__ import annotations

import re

from django.urls import URLPattern, URLResolver, include, path, re_path

from registry.api.spring import views

calls = {
    "schemas/<segment:schema_id>": views.SchemaOfId,
    "<segment:subject>": views.Subject,
    "<segment:subject>/<segment:schema_format>": views.SpringVersions,
    "<segment:subject>/<segment:schema_format>/<segment:version>": views.SpringVersion,
}
urlpatterns = [
    path("", views.Root.as_view()),
    *(path(f"{address}{end}", view.as_view()) for address, view in calls.items() for end in ("", "/")),
    re_path("", views.Nothing.as_view()),
]

#: first segments that are used by others
TAKEN = frozenset(
    {"api", "compatibility", "config", "contexts", "healthz", "metrics", "mode", "readyz"}
    | {"registries", "schemas", "subjects", "ui", "v1"}
)
_SEGMENTS = re.compile(r"[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*", re.ASCII)


def problem_of(root: str) -> str:
    """Return what is wrong with a root path, as a sentence; "" if nothing is."""
    bare = root.strip("/")
    if not bare:
        return "The Spring dialect can't hang at the root of the site: Confluent's API is there."
    if not _SEGMENTS.fullmatch(bare) or {".", ".."} & set(bare.split("/")):
        return f"{root!r} is not a path of plain segments (letters, digits and . _ ~ -)."
    if bare.partition("/")[0] in TAKEN:
        return f"The address /{bare.partition('/')[0]} is taken."
    return ""


def spring_addresses(root: str) -> list[URLPattern | URLResolver]:
    """Return the dialect's URLs below the path, with and without a trailing slash; none for an invalid path."""
    if problem_of(root):
        return []
    bare = root.strip("/")
    return [
        address
        for prefix in (bare, f"registries/<segment:registry>/{bare}")
        for address in (path(prefix, views.Root.as_view()), path(f"{prefix}/", include("registry.api.spring.urls")))
    ]

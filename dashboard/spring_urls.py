"""Where the Spring dialect hangs: below one path of its own, once for the default registry and once for each other."""

from __future__ import annotations

import re

from django.urls import URLPattern, URLResolver, include, path

from registry.api.spring.views import Root

#: first segments that are somebody else's
TAKEN = frozenset(
    {"api", "compatibility", "config", "contexts", "healthz", "metrics", "mode", "readyz"}
    | {"registries", "schemas", "subjects", "ui", "v1"}
)
_SEGMENTS = re.compile(r"[A-Za-z0-9._~-]+(?:/[A-Za-z0-9._~-]+)*", re.ASCII)


def problem_of(root: str) -> str:
    """What is wrong with a root path, as a sentence; empty where nothing is."""
    bare = root.strip("/")
    if not bare:
        return "The Spring dialect can't hang at the root of the site: Confluent's API is there."
    if not _SEGMENTS.fullmatch(bare) or {".", ".."} & set(bare.split("/")):
        return f"{root!r} is not a path of plain segments (letters, digits and . _ ~ -)."
    if bare.partition("/")[0] in TAKEN:
        return f"The address /{bare.partition('/')[0]} is taken."
    return ""


def spring_addresses(root: str) -> list[URLPattern | URLResolver]:
    """The dialect's addresses below the path, with and without a slash at its end; none for a path that can't be."""
    if problem_of(root):
        return []
    bare = root.strip("/")
    return [
        address
        for prefix in (bare, f"registries/<segment:registry>/{bare}")
        for address in (path(prefix, Root.as_view()), path(f"{prefix}/", include("registry.api.spring.urls")))
    ]

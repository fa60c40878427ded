"""What a page says while a part that it needs is away."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AwayPage:
    """`again_url` is empty where the request changed something: that is sent again by who sent it."""

    title: str
    cure: str
    again_url: str = ""

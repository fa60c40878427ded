"""How a web process collects garbage: seldom, and never what it began with.

As Python begins, it looks for cycles whenever there are 700 objects more, and so every few pages of a large schema at all
that there is: for a fifth of a second nobody is answered. What is loaded at the start stays to the end, so it is left out;
and a page's objects are gone before they are looked at.
"""

from __future__ import annotations

import gc
from typing import Final

from django.urls import get_resolver

#: new objects before the young ones are looked at; how often those, before the older ones; and these, before all
THRESHOLDS: Final = (10_000, 20, 20)


def settle() -> None:
    """Once, at the start: loads what the first pages would, and leaves all that is there to itself."""
    _ = get_resolver().url_patterns
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)

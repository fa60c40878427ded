"""Reading pages in tests whatever white space their templates lay them out with."""

from __future__ import annotations

import re


def compact(page: str) -> str:
    """The markup of a page with one space between attributes and none between tags and texts."""
    page = re.sub(r"\s+", " ", page)
    page = re.sub(r" ?/?>(?: |$)?", ">", page)
    return re.sub(r" <", "<", page)

"""The address of Valkey in the spellings of its clients."""

from __future__ import annotations


def celery_form(url: str) -> str:
    """Celery's spelling of an address in redis-py's: they differ for Unix sockets alone."""
    if not url.startswith("unix://"):
        return url
    return "redis+socket://" + url.removeprefix("unix://").replace("db=", "virtual_host=")

"""A cache of one minute for what everybody may see: in Valkey, and without Valkey it is computed each time."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from typing import Final, TypeVar

from django.core.cache import cache
from django.utils import timezone
from redis.exceptions import RedisError

from registry.audit.time_travel import moment

T = TypeVar("T")
KEPT_SECONDS: Final = 60


def cached(what: str, read: Callable[[], T]) -> tuple[T, datetime]:
    """What `read` gives, and when it was read. `what` names it with all that it depends on; of the past, beside the moment.

    Plain values alone: another release may read what this one wrote.
    """
    key = f"kept:{sha256(f'{moment()} {what}'.encode()).hexdigest()}"
    try:
        cached: tuple[T, datetime] | None = cache.get(key)
    except (RedisError, OSError):
        return read(), timezone.now()
    if cached is None:
        cached = read(), timezone.now()
        try:
            cache.set(key, cached, KEPT_SECONDS)
        except (RedisError, OSError):
            return cached
    return cached

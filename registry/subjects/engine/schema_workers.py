"""The worker processes that read and compare costly schemas: their limits, and each request's allowance."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from django.conf import settings
from django.core.signals import request_finished, request_started
from django.dispatch import receiver

from registry.errors import SchemaTooCostly
from registry.formats import format_of
from registry.sandbox.pool import Pool
from registry.sandbox.process import MIB, Allowance, Limits

#: with less than this left of a request's allowance, no child is used
_LEAST_SECONDS: Final = 0.05


@lru_cache(maxsize=1)
def pool() -> Pool:
    """Return the children of this process, with the limits of the settings; starts none."""
    return Pool(
        Limits(
            children=settings.SCHEMA_CHILDREN, seconds=settings.SCHEMA_SECONDS, memory=settings.SCHEMA_MEMORY_MIB * MIB
        )
    )


def prestart() -> None:
    """Begin to start the children, so that the first costly schema doesn't wait for them."""
    pool().start()


def run_in_child(verb: str, sent: Sequence[Any], options: Mapping[str, Any], about: str) -> Any:
    """Run a job in a child, within what is left of the current request's allowance."""
    left = _request.allowance
    if left is not None and left.processor < _LEAST_SECONDS:
        raise SchemaTooCostly(
            f"Reading and comparing the schemas of one request exceeds the limit of {pool().limits.seconds:.2g} s of "
            f"processor time before it reaches {about}. Use smaller schemas, or compare with fewer versions."
        )
    return pool().run(verb, sent, options, about=about, allowance=left)


class _Request(threading.local):
    """What this thread's current request may still use of the children; None outside of a request."""

    allowance: Allowance | None = None


_request = _Request()


@receiver(request_started, dispatch_uid="schema allowance begins")
def _begin_allowance(**signal: Any) -> None:
    _request.allowance = pool().allowance()


@receiver(request_finished, dispatch_uid="schema allowance ends")
def _end_allowance(**signal: Any) -> None:
    _request.allowance = None


def label_of(schema_type: str, text: str) -> str:
    """Describe the schema by its name, or by how its text begins."""
    pattern = format_of(schema_type).name_pattern
    match = pattern.search(text, 0, 10_000) if pattern else None
    description = f'"{match[1]}"' if match else f"that starts with {text[:40]!r}"
    return f"the {schema_type} schema {description}"

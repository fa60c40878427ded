"""What the tests of plans share: small parts of a plan, made by hand."""

from __future__ import annotations

import json
from typing import Any

from registry.formats.avro import AVRO
from registry.formats.base import ParsedSchema, Reference, ResolvedReference
from registry.promotions.plan import Held, TargetState, Wanted
from registry.subjects import engines


def record(**fields: str) -> str:
    """An Avro record; a type that ends in `?` is a union with null, with null as its default."""
    made = [
        {"name": name, "type": ["null", kind[:-1]], "default": None}
        if kind.endswith("?")
        else {"name": name, "type": kind}
        for name, kind in fields.items()
    ]
    return json.dumps({"type": "record", "name": "Order", "fields": made})


def parsed(text: str, references: tuple[ResolvedReference, ...] = ()) -> ParsedSchema:
    """The text as the product reads it."""
    return engines.parse(AVRO.name, text, references)


def wanted(subject: str, version: int = 1, text: str = "", **more: Any) -> Wanted:
    """A version that is wanted, without metadata or rules."""
    text = text or record(id="long")
    given: dict[str, Any] = {"metadata": {}, "rule_set": {}, "source_id": version, **more}
    return Wanted(subject, version, parsed(text), text, "AVRO", **given)


def using(subject: str, version: int, *needs: tuple[str, int]) -> Wanted:
    """A version that refers to others, which the pure parts never look into."""
    references = tuple(Reference(f"N{place}", name, number) for place, (name, number) in enumerate(needs))
    return wanted(subject, version, references=references, needs=tuple(needs))


def state(*texts: str, level: str = "BACKWARD", mode: str = "READWRITE", **more: Any) -> TargetState:
    """A subject of the target with these versions, from 1 on."""
    held = tuple(
        Held(number, parsed(text).fingerprint, parsed(text), f"identity {number}", number)
        for number, text in enumerate(texts, start=1)
    )
    return TargetState(level, mode, held, len(held) + 1, **more)

"""What makes two submitted schemas the same schema of a context. Pure."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from registry.formats.base import Reference


@dataclass(frozen=True)
class Identity:
    """The SHA-256 that equal schemas share within a context, and the GUID that they share everywhere."""

    digest: str
    guid: uuid.UUID


def identify(
    schema_type: str,
    canonical: str,
    references: Sequence[Reference] = (),
    metadata: dict[str, Any] | None = None,
    rule_set: dict[str, Any] | None = None,
) -> Identity:
    """The identity of a schema: its type, canonical text, references with their versions, metadata and rule set."""
    content = [
        schema_type,
        canonical,
        [[r.name, r.subject, r.version] for r in references],
        metadata or None,
        rule_set or None,
    ]
    data = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
    return Identity(
        digest=hashlib.sha256(data).hexdigest(),
        guid=uuid.UUID(bytes=hashlib.md5(data, usedforsecurity=False).digest()),
    )

"""The identity of schemas in a context: which submitted schemas are the same. Pure."""

from __future__ import annotations

import hashlib
import json
import struct
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from registry.formats.base import Reference

#: the parts of a rule in hashing order; `disabled` follows them
_RULE_PARTS = ("name", "doc", "kind", "mode", "type", "tags", "params", "expr", "onSuccess", "onFailure")


@dataclass(frozen=True)
class Identity:
    """The SHA-256 shared by equal schemas of a context, and the GUID shared by equal schemas everywhere."""

    digest: str
    guid: uuid.UUID


def identify(
    schema_type: str,
    canonical: str,
    references: Sequence[Reference] = (),
    metadata: dict[str, Any] | None = None,
    rule_set: dict[str, Any] | None = None,
) -> Identity:
    """Return the identity of a schema: its type, canonical text, references with versions, metadata and rule set."""
    return Identity(
        digest=digest_of(schema_type, canonical, references, metadata, rule_set),
        guid=guid_of(canonical, references, metadata, rule_set),
    )


def digest_of(
    schema_type: str,
    canonical: str,
    references: Sequence[Reference],
    metadata: Mapping[str, Any] | None,
    rule_set: Mapping[str, Any] | None,
) -> str:
    """Return the digest of `identify`."""
    content = [
        schema_type,
        canonical,
        [[r.name, r.subject, r.version] for r in references],
        metadata or None,
        rule_set or None,
    ]
    data = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(_bytes(data)).hexdigest()


def guid_of(
    canonical: str,
    references: Sequence[Reference],
    metadata: Mapping[str, Any] | None,
    rule_set: Mapping[str, Any] | None,
) -> uuid.UUID:
    """Return the MD5 of the parts, computed as Confluent does: messages that carry its GUIDs are found here too."""
    hashed = hashlib.md5(_bytes(canonical), usedforsecurity=False)
    for reference in references:
        hashed.update(_bytes(reference.name + reference.subject) + struct.pack(">i", reference.version))
    for part in (*_metadata_parts(metadata or {}), *_rule_set_parts(rule_set or {})):
        hashed.update(_bytes(part))
    return uuid.UUID(bytes=hashed.digest())


def _metadata_parts(metadata: Mapping[str, Any]) -> Iterator[str]:
    for path, tags in sorted(metadata.get("tags", {}).items()):
        yield from (path, *sorted(tags))
    for name, value in sorted(metadata.get("properties", {}).items()):
        yield from (name, value)
    yield from sorted(metadata.get("sensitive", []))


def _rule_set_parts(rule_set: Mapping[str, Any]) -> Iterator[str]:
    for phase in ("migrationRules", "domainRules", "encodingRules"):
        for rule in rule_set.get(phase, []):
            yield from _rule_parts(rule)
    yield rule_set.get("enableAt", "")


def _rule_parts(rule: Mapping[str, Any]) -> Iterator[str]:
    for name in _RULE_PARTS:
        part = rule.get(name, "")
        if isinstance(part, dict):
            yield from (text for pair in sorted(part.items()) for text in pair)
        elif isinstance(part, list):
            yield from sorted(part)
        else:
            yield part
    if rule.get("disabled"):
        yield "\x01"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")

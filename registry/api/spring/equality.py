"""When Spring's server calls two Avro schemas the same. Pure.

It compares them as Avro 1.8's `Schema.equals` does: documentation and aliases don't count, the order of other
attributes neither; names, types, defaults, the order of fields and every other attribute do.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import Any

IGNORED = frozenset({"doc", "aliases"})
#: how many keys are remembered, of texts up to which length: together at most some 32 MB
CACHED, CACHED_LENGTH = 2048, 16_384


def equality_key(canonical: str) -> str:
    """Equal for two canonical Avro texts that Spring's server takes for the same schema."""
    return _remembered(canonical) if len(canonical) <= CACHED_LENGTH else _key(canonical)


def _key(canonical: str) -> str:
    stripped = _type(json.loads(canonical))
    # as text, because 1, 1.0 and true are equal in Python and different defaults in Avro
    return hashlib.sha256(json.dumps(stripped, sort_keys=True).encode()).hexdigest()


_remembered = lru_cache(maxsize=CACHED)(_key)


def _type(value: Any) -> Any:
    if isinstance(value, list):
        return [_type(branch) for branch in value]
    if not isinstance(value, dict):
        return value
    kept = {name: item for name, item in value.items() if name not in IGNORED}
    for name in ("type", "items", "values"):
        if isinstance(kept.get(name), list | dict):
            kept[name] = _type(kept[name])
    if isinstance(kept.get("fields"), list):
        kept["fields"] = [_type(field) for field in kept["fields"]]
    return kept

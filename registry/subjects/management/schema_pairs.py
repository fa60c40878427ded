"""Many pairs of schemas, one a line of JSON: thousands in one start of the command."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from registry.errors import InvalidInput, SchemadeskError
from registry.formats.compatibility import level_named
from registry.formats.report import PROFILES
from registry.subjects.engine import schema_engine


def check_pairs(lines: Iterable[str], defaults: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The answer to each line: its number, `is_compatible` and the items, or `is_compatible` null and the error.

    A line is {"new": TEXT, "old": TEXT or [TEXT, …], oldest first} with `type`, `level` and `profile` where they
    aren't the defaults. A schema may stand as a JSON object instead of text; `old` as a list is always several. Blank lines are left out.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield {"line": number, **_answer(line, defaults)}
        except SchemadeskError as error:
            yield {"line": number, "is_compatible": None, "error": error.placed}


def _answer(line: str, defaults: Mapping[str, str]) -> dict[str, Any]:
    pair = _pair(line)
    kind, level, profile = (str(pair.get(name, defaults[name])) for name in ("type", "level", "profile"))
    if profile not in PROFILES:
        raise InvalidInput(f"{profile[:40]!r} is not a profile: use one of {', '.join(PROFILES)}.")
    level_named(level)
    old = pair["old"] if isinstance(pair["old"], list) else [pair["old"]]
    history = [(version, schema_engine.parse(kind, _text(text))) for version, text in enumerate(old, start=1)]
    new = schema_engine.parse(kind, _text(pair["new"]))
    return schema_engine.check(new, history, level, profile=profile).to_dict()


def _pair(line: str) -> dict[str, Any]:
    try:
        pair = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The line is not JSON: {error}.") from error
    if not isinstance(pair, dict) or "new" not in pair or "old" not in pair:
        raise InvalidInput('A line is an object with "new" and "old".')
    return pair


def _text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema)

"""Which parts of `up` don't run although the others do: left in the data folder, for the web process to say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from dashboard.runtime.layout import write_private

MISSING = "missing.json"


def write_missing(data: Path, parts: Mapping[str, str]) -> None:
    """Leaves word of each part that doesn't run, with the reason."""
    if parts:
        write_private(data / MISSING, json.dumps(dict(parts)))
    else:
        (data / MISSING).unlink(missing_ok=True)


def missing_parts(data: Path) -> dict[str, str]:
    """The parts that don't run, by name, each with the reason; none where no `up` has left word."""
    try:
        text = (data / MISSING).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    return {str(name): str(reason) for name, reason in json.loads(text).items()}

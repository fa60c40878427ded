"""Paths for people: `Order.items[].price`. The root is the schema's title, `$` where it has none that is a name."""

from __future__ import annotations

import re
from typing import Final

from registry.formats.json_schema.model import Model

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def root_path(model: Model) -> str:
    """How paths into the schema begin: its title if that is one word, else `$`."""
    title = model.root.get("title") if isinstance(model.root, dict) else None
    return title if isinstance(title, str) and _NAME.fullmatch(title) else "$"

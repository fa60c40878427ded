"""The two sides of a change as text."""

from __future__ import annotations

import json
from typing import Any


def shown_value(value: Any) -> str | None:
    """A side of a change as text: JSON but for plain strings, None where there is nothing."""
    if value is None:
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

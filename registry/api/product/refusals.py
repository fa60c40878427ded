"""What the product's own API answers where the web layer refuses, before any view or in one."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any


def refusal(status: int, message: str) -> dict[str, Any]:
    """The body of a refusal, such as 413 for a body that is too long; its name is the status's phrase."""
    name = "".join(word.capitalize() for word in HTTPStatus(status).phrase.replace("-", " ").split())
    return {"error": name, "message": message, "details": {}}

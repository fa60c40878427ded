"""Where a role, a token or an owner counts: a registry (empty: all) and a pattern of subjects."""

from __future__ import annotations

from registry.access.roles import ROLES
from registry.errors import InvalidInput

MAX_LENGTH = 255


def checked_place(registry: str, subject_pattern: str) -> tuple[str, str]:
    """Registry and pattern without blanks around them. Raises InvalidInput.

    The pattern is one of a shell (`orders-*`, `?`, `[ab]`) and is held against the qualified name of the subject.
    """
    registry, subject_pattern = registry.strip(), subject_pattern.strip() or "*"
    for what, text in (("registry", registry), ("subject pattern", subject_pattern)):
        if len(text) > MAX_LENGTH or not text.isprintable():
            raise InvalidInput(f"The {what} has at most {MAX_LENGTH} characters, and none that doesn't show.")
    return registry, subject_pattern


def checked_role(role: str) -> str:
    """The role. Raises InvalidInput for one that doesn't exist."""
    if role not in ROLES:
        raise InvalidInput(f"There is no role {role[:40]!r}; the roles are {', '.join(ROLES)}.")
    return role


def place_words(registry: str, subject_pattern: str) -> str:
    """A place as the audit and the pages say it."""
    subjects = "all subjects" if subject_pattern == "*" else f"subjects {subject_pattern}"
    return f"{subjects} in {registry or 'all registries'}"

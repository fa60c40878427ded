"""Where a role, a token or an owner counts: a registry (empty: all) and a pattern of subjects."""

from __future__ import annotations

from registry.access.patterns import MAX_LENGTH, checked_pattern
from registry.access.roles import ROLES
from registry.errors import InvalidInput


def checked_place(registry: str, subject_pattern: str) -> tuple[str, str]:
    """Registry and pattern without blanks around them. Raises InvalidInput.

    The pattern is one of a shell (`orders-*`, `?`, `[ab]`) and is held against the qualified name of the subject.
    """
    registry = registry.strip()
    if len(registry) > MAX_LENGTH or not registry.isprintable():
        raise InvalidInput(f"The registry has at most {MAX_LENGTH} characters, and none that doesn't show.")
    return registry, checked_pattern(subject_pattern, "subject")


def checked_role(role: str) -> str:
    """The role. Raises InvalidInput for one that doesn't exist."""
    if role not in ROLES:
        raise InvalidInput(f"There is no role {role[:40]!r}; the roles are {', '.join(ROLES)}.")
    return role


def place_words(registry: str, subject_pattern: str) -> str:
    """A place as the audit and the pages say it."""
    subjects = "all subjects" if subject_pattern == "*" else f"subjects {subject_pattern}"
    return f"{subjects} in {registry or 'all registries'}"

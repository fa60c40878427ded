"""Reserved fields: names that a schema's metadata keeps free.

Source: the established registry's setting `validateFields`. The names stand in the metadata under
`confluent:reserved`, separated by commas; once reserved, a name stays so, and no field of the schema itself has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

PROPERTY: Final = "confluent:reserved"


@dataclass(frozen=True, slots=True)
class ReservedReport:
    """What a schema does to reserved fields; empty where nothing is wrong."""

    problems: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict in a word."""
        return "refused" if self.problems else "accepted"

    def is_accepted(self, *, force: bool = False) -> bool:
        """Whether nothing is wrong, or it is forced."""
        return force or not self.problems

    def messages(self) -> list[str]:
        """The problems as sentences."""
        return list(self.problems)


def reserved_in(metadata: Mapping[str, Any] | None) -> frozenset[str]:
    """The names that metadata reserve."""
    text = (metadata or {}).get("properties", {}).get(PROPERTY, "")
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def check_reserved(
    metadata: Mapping[str, Any] | None, previous: Mapping[str, Any] | None, has_field: Callable[[str], bool]
) -> ReservedReport:
    """The report of a schema with that metadata after a version with those; `has_field` asks for its own fields."""
    reserved, before = reserved_in(metadata), reserved_in(previous)
    gone = [
        f"The new schema has reserved field {name} removed from its metadata which is present in the old schema's metadata."
        for name in sorted(before - reserved)
    ]
    used = [
        f"The new schema has field that conflicts with the reserved field {name}."
        for name in sorted(reserved)
        if has_field(name)
    ]
    return ReservedReport((*gone, *used))

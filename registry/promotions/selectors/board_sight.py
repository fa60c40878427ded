"""What somebody may read of the environments of the board, as a condition of its queries: no list of names is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.db.models import F

from registry.access.extent import Extent, Part
from registry.promotions.models import Environment
from registry.subjects.models import Subject
from registry.subjects.selectors.naming import qualified

EVERYTHING: Final = Extent((Part(),))
_PLACE: Final = "context__registry__name"


@dataclass(frozen=True)
class Readable:
    """What somebody may read of some environments: all of some, and of the others the subjects that the patterns fit."""

    environments: Sequence[Environment]
    extent: Extent

    @property
    def is_everything(self) -> bool:
        """Whether nothing of these environments is kept from them."""
        return all(self.extent.has_all_of(row.registry.name) for row in self.environments)

    @property
    def condition(self) -> str:
        """SQL that says of the subject `s` whether it may be read in a registry that isn't wholly open to them."""
        return f"s.id IN ({self._subjects[0]})" if self._subjects[0] else "false"

    def parameters(self) -> dict[str, Any]:
        """As the queries take it."""
        return {
            "n": list(range(len(self.environments))),
            "last": len(self.environments) - 1,
            "registries": [row.registry_id for row in self.environments],
            "open": sorted(row.registry_id for row in self.environments if self.extent.has_all_of(row.registry.name)),
            **self._subjects[1],
        }

    @cached_property
    def _subjects(self) -> tuple[str, dict[str, Any]]:
        """A query for the numbers of those subjects, with named parameters; "" where there is no such registry."""
        partly = {row.registry.name for row in self.environments if not self.extent.has_all_of(row.registry.name)}
        parts = tuple(
            part for part in self.extent.parts if part.patterns and (part.registry in partly or not part.registry)
        )
        if not partly or not parts:
            return "", {}
        name = qualified(F("context__name"), F("name"))
        rows = Subject.objects.alias(qualified=name).filter(Extent(parts).subjects(_PLACE, "qualified"))
        numbers = rows.filter(context__registry__name__in=partly).order_by().values("pk")
        sql, given = numbers.query.sql_with_params()
        names = [f"readable_{number}" for number in range(len(given))]
        # doubled, a percent sign stays one when the whole query is given its own parameters
        return sql.replace("%%", "%%%%") % tuple(f"%({name})s" for name in names), dict(zip(names, given, strict=True))

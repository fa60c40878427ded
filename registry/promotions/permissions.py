"""What an actor may read of the board's environments, as an SQL condition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from registry.access.permission_filters import Extent, ExtentPart
from registry.promotions.models import Environment
from registry.subjects.models import Subject

EVERYTHING: Final = Extent((ExtentPart(),))


@dataclass(frozen=True)
class ReadableSubjects:
    """What an actor may read in some environments: some of them whole, in the others the subjects that match patterns."""

    environments: Sequence[Environment]
    extent: Extent

    @property
    def is_everything(self) -> bool:
        """Whether the actor may read all of these environments."""
        return all(self.extent.has_all_of(row.registry.name) for row in self.environments)

    @property
    def condition(self) -> str:
        """SQL that tells whether the actor may read the subject `s` in a registry that they may not read whole."""
        return f"s.id IN ({self._subjects[0]})" if self._subjects[0] else "false"

    def parameters(self) -> dict[str, Any]:
        """The parameters of the queries."""
        return {
            "n": list(range(len(self.environments))),
            "last": len(self.environments) - 1,
            "registries": [row.registry_id for row in self.environments],
            "open": sorted(row.registry_id for row in self.environments if self.extent.has_all_of(row.registry.name)),
            **self._subjects[1],
        }

    @cached_property
    def _subjects(self) -> tuple[str, dict[str, Any]]:
        """A query for the keys of those subjects, with named parameters; "" if there is no such registry."""
        partly = {row.registry.name for row in self.environments if not self.extent.has_all_of(row.registry.name)}
        parts = tuple(
            part for part in self.extent.parts if part.patterns and (part.registry in partly or not part.registry)
        )
        if not partly or not parts:
            return "", {}
        rows = Subject.objects.covered_by(Extent(parts))
        numbers = rows.filter(context__registry__name__in=partly).order_by().values("pk")
        sql, values = numbers.query.sql_with_params()
        names = [f"readable_{number}" for number in range(len(values))]
        # doubled, a percent sign stays one when the whole query is given its own parameters
        return sql.replace("%%", "%%%%") % tuple(f"%({name})s" for name in names), dict(zip(names, values, strict=True))

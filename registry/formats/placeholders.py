"""A generated message whose personal fields hold placeholders: nobody takes made-up values for real ones. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.formats.effective_tags import MASK, SchemaTags


@dataclass
class Placeholders:
    """Puts placeholders into a datum in a format's JSON form; `put` counts them.

    `is_union_wrapped` says that a union's value is an object of one entry named after its branch, as in Avro's JSON
    encoding: such an entry is no step of the path.
    """

    tags: SchemaTags
    is_union_wrapped: bool = False
    put: int = 0
    _paths: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._paths = frozenset(item.data_path for item in self.tags.fields)

    def of(self, value: Any) -> Any:
        """The datum with a placeholder for every personal value; nulls stay."""
        return self._of(value, "") if self.tags.has_personal else value

    def _of(self, value: Any, path: str) -> Any:
        if isinstance(value, dict):
            return {name: self._of(inner, self._step(path, str(name), value)) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._of(inner, f"{path}[]") for inner in value]
        if value is None or not self.tags.covers(path):
            return value
        self.put += 1
        return _instead_of(value)

    def _step(self, path: str, name: str, around: Mapping[str, Any]) -> str:
        below = f"{path}.{name}" if path else name
        if below in self._paths:
            return below
        # the name of a union's branch, or the key of a map whose values are declared
        if f"{path}{{}}" in self._paths or any(known.startswith(f"{path}{{}}.") for known in self._paths):
            return f"{path}{{}}"
        if self._is_below_known(path):
            return path
        return path if self.is_union_wrapped and len(around) == 1 else below

    def _is_below_known(self, path: str) -> bool:
        """Whether the path is a declared field without declared parts: all inside of it is that field's value."""
        bare = path.removesuffix("[]")
        return bare in self._paths and not any(known.startswith(f"{bare}.") for known in self._paths)


def _instead_of(value: Any) -> Any:
    """Of the same kind, so that it passes wherever the kind alone is asked for."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return 0
    text = str(value)
    return "0" if text.lstrip("-").isdigit() else MASK

"""What a pair of schemas says and no value shows: presence, names, members of oneofs that are gone.

The data decide without it, and people want to know: the truth carries it as warnings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from registry.formats.base import Incompatibility, Truth
from registry.formats.protobuf.model import Schema
from registry.formats.protobuf.verdict import judge

# Breaks of the established check that stay true of the meaning where all values survive.
_OF_MEANING: Final = frozenset({"PACKAGE_CHANGED", "FIELD_NAMED_TYPE_CHANGED", "ONEOF_FIELD_REMOVED"})


def warnings(reader: Schema, writer: Schema, truth: Truth) -> tuple[Incompatibility, ...]:
    """The warnings of a pair; of a break none where the data say more of the same place."""
    judgement = judge(reader, writer)
    shown = {_position_key(item) for item in truth.findings}
    breaks = (item for item in judgement.breaks if item.rule in _OF_MEANING and _position_key(item) not in shown)
    hazards = (item for item in judgement.hazards if item.severity == "warning")
    return (*(replace(item, severity="warning") for item in breaks), *hazards)


def _position_key(item: Incompatibility) -> tuple[str | None, ...]:
    return item.reader_pointer, item.reader_source, item.writer_pointer, item.writer_source

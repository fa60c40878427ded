"""What a pair of schemas says and no value shows: presence, names, members of oneofs that are gone.

The data decide without it, and people want to know: the truth carries it as warnings.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from registry.formats.base import Incompatibility, Truth
from registry.formats.protobuf.judgement import judge
from registry.formats.protobuf.model import Schema

# Breaks of the established check that stay true of the meaning where all values survive.
_OF_MEANING: Final = frozenset({"PACKAGE_CHANGED", "FIELD_NAMED_TYPE_CHANGED", "ONEOF_FIELD_REMOVED"})


def warnings(reader: Schema, writer: Schema, found: Truth) -> tuple[Incompatibility, ...]:
    """The warnings of a pair; of a break none where the data say more of the same place."""
    judgement = judge(reader, writer)
    told = {_place(item) for item in found.findings}
    breaks = (item for item in judgement.breaks if item.rule in _OF_MEANING and _place(item) not in told)
    hazards = (item for item in judgement.hazards if item.severity == "warning")
    return (*(replace(item, severity="warning") for item in breaks), *hazards)


def _place(item: Incompatibility) -> tuple[str | None, ...]:
    return item.reader_pointer, item.reader_source, item.writer_pointer, item.writer_source

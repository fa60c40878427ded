"""Stored schemas as what a scan needs of them: declared fields, record names, and texts to decode with."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from registry.drift.judge.declared import Declared, declared_fields, record_name
from registry.errors import SchemadeskError
from registry.formats.base import ParsedSchema
from registry.subjects import engines
from registry.subjects.models import Schema
from registry.subjects.selectors.parsed import parse_stored

MAX_PARSED: Final = 400  # schemas that one scan reads


@dataclass(frozen=True)
class ReadSchema:
    """A stored schema as it was read; `text` is self-contained, None where it can't be made so."""

    row: Schema
    parsed: ParsedSchema

    @property
    def declared(self) -> Declared | None:
        """Its fields, None where they aren't known."""
        return declared_fields(self.parsed)

    @property
    def record(self) -> str:
        """The full name of its record or message."""
        return record_name(self.parsed)

    def text(self) -> str | None:
        """What `registry.observations.WriterSchema` asks for; None for a schema that can't be read here."""
        if self.parsed.schema_type == "PROTOBUF":
            return None if self.parsed.model is None else descriptor_set(self.parsed.model.protos)
        try:
            return engines.self_contained(self.parsed)
        except SchemadeskError:  # too costly: its bodies aren't decoded, and are counted by their id alone
            return None


def read_schemas(rows: Iterable[Schema]) -> dict[int, ReadSchema]:
    """Schemas by row, MAX_PARSED of them at most; those that can't be read are left out.

    One query for each depth of references; where a schema of the lot is refused, the others are read one by one.
    """
    wanted = list({row.pk: row for row in rows}.values())[:MAX_PARSED]
    try:
        return {row.pk: ReadSchema(row, parsed) for row, parsed in zip(wanted, parse_stored(wanted), strict=True)}
    except SchemadeskError:
        found = [(row, _read_one(row)) for row in wanted]
        return {row.pk: ReadSchema(row, parsed) for row, parsed in found if parsed is not None}


def _read_one(row: Schema) -> ParsedSchema | None:
    try:
        return parse_stored([row])[0]
    except SchemadeskError:  # stored under other limits than today's; the scan goes on without it
        return None


def descriptor_set(protos: Sequence[Any]) -> str:
    """A FileDescriptorSet of those descriptors in their order, without source information, in base64.

    The set is its only field (number 1, length-delimited) once for each file: Protobuf's encoding guide.
    """
    parts = []
    for proto in protos:
        bare = type(proto)()
        bare.CopyFrom(proto)
        bare.ClearField("source_code_info")
        body = bare.SerializeToString(deterministic=True)
        parts.append(b"\x0a" + _varint(len(body)) + body)
    return base64.b64encode(b"".join(parts)).decode("ascii")


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def declared_of(read: Mapping[int, ReadSchema], pks: Iterable[int]) -> dict[int, Declared]:
    """The declared fields of those schemas that are known."""
    found = {pk: read[pk].declared for pk in pks if pk in read}
    return {pk: declared for pk, declared in found.items() if declared is not None}

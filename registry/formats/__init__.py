"""Schema formats: pure functions from texts to reports, without Django, network or files.

`FORMATS` maps the registry's names to formats. `_BUILT_IN` lists the formats that come with the product; an
installation can add more (docs/how-to/add-a-format.md).
"""

from __future__ import annotations

from typing import Final

from registry.formats.avro import AVRO
from registry.formats.json_schema import JSON_SCHEMA
from registry.formats.protobuf import PROTOBUF
from registry.formats.schema_format import DEFAULT_FORMAT, FORMATS, SchemaFormat, format_of, format_of_suffix, register

_BUILT_IN: Final = (AVRO, PROTOBUF, JSON_SCHEMA)
for _format in _BUILT_IN:
    register(_format)

__all__ = ["DEFAULT_FORMAT", "FORMATS", "SchemaFormat", "format_of", "format_of_suffix"]

"""Schema formats: text in, reports out; no Django, no network, no files.

`FORMATS` holds the engines by the registry's name of the format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from registry.formats.avro import AVRO
from registry.formats.base import SchemaFormat

FORMATS: Final[Mapping[str, SchemaFormat]] = {AVRO.name: AVRO}

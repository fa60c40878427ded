"""A registration through Spring's dialect, and the schemas that the tests send."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
BREAKING = {**V1, "fields": [*V1["fields"], {"name": "total", "type": "double"}]}


def register(client: Client, subject: str, schema: Any, *, root: str = "/spring", schema_format: str = "avro") -> Any:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    body = {"subject": subject, "format": schema_format, "definition": text}
    return client.post(f"{root}/", json.dumps(body), content_type="application/json")

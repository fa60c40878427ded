"""Schemas of megabytes: each dialect refuses them by their length, before they cost seconds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
from django.test import Client

pytestmark = pytest.mark.requirement("GOO-4")

MEGABYTES = 6
GOOGLE = "/v1/projects/local/locations/local/schemaRegistries/dev"
#: a schema that is costly by its length alone: a plain text, and records of many fields in three formats
FIELDS = ", ".join(f'{{"name": "f{number}", "type": "long"}}' for number in range(MEGABYTES * 1_000_000 // 36))
TEXTS = {
    "one string": ("AVRO", '"' + "x" * MEGABYTES * 1_000_000 + '"'),
    "one doc": ("AVRO", '{"type": "record", "name": "R", "fields": [], "doc": "' + "x" * MEGABYTES * 1_000_000 + '"}'),
    "many fields": ("AVRO", f'{{"type": "record", "name": "R", "fields": [{FIELDS}]}}'),
    "not latin": ("AVRO", '"' + "é" * (MEGABYTES * 500_000) + '"'),
    "json": ("JSON", '{"const": "' + "x" * MEGABYTES * 1_000_000 + '"}'),
    "protobuf": ("PROTOBUF", 'syntax = "proto3"; // ' + "x" * MEGABYTES * 1_000_000),
}
#: dialect → address, the body of a text, and the status that means that it is too large
DIALECTS: dict[str, tuple[str, Callable[[str, str], dict[str, Any]], int]] = {
    "spring": (
        "/spring/",
        lambda kind, text: {"subject": "large", "format": kind.lower(), "definition": text},
        413,
    ),
    "report": (
        "/api/v1/compatibility-reports",
        lambda kind, text: {"registry": "dev", "subject": "large", "schema": text, "schemaType": kind},
        422,
    ),
    "confluent": ("/subjects/large/versions", lambda kind, text: {"schema": text, "schemaType": kind}, 422),
    "confluent compatibility": (
        "/compatibility/subjects/large/versions",
        lambda kind, text: {"schema": text, "schemaType": kind},
        422,
    ),
    "google": (f"{GOOGLE}/subjects/large/versions", lambda kind, text: {"schema": text, "schemaType": kind}, 400),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_schema_of_megabytes_is_refused_by_its_length(
    registries: None, api: Callable[[str], Client], dialect: str
) -> None:
    (path, body_of, status), client = DIALECTS[dialect], api("steward")
    client.get("/subjects")
    for kind, text in TEXTS.values():
        body = json.dumps(body_of(kind, text), ensure_ascii=False)
        start = time.process_time()
        with mock.patch("registry.subjects.engine.schema_engine.parse", side_effect=AssertionError("it was read")):
            response = client.post(path, body, content_type="application/json")
        assert time.process_time() - start < 1
        is_named = "schema is too large" in response.content.decode()
        assert (response.status_code, is_named) == (status, True), response.content

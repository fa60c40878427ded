"""Protobuf through Confluent's API: the text that is stored and answered, and what is taken where imports are missing."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from registry.formats.protobuf import PROTOBUF
from registry.subjects.models import Schema
from registry.subjects.versions.schema_identity import identify

CONTENT = "application/vnd.schemaregistry.v1+json"
P3 = 'syntax = "proto3";\n'
SENT = (
    P3
    + "package a;\n\n// A thing.\nmessage M {\n  // another one\n  M m = 1 [deprecated=true];\n\n  string s = 2;\n}\n"
)
STORED = P3 + "package a;\n\nmessage M {\n  M m = 1 [deprecated = true];\n  string s = 2;\n}\n"
NORMAL = STORED.replace("  M m", "  .a.M m")


@pytest.fixture
def steward(api: Callable[[str], Client]) -> Client:
    return api("steward")


@pytest.fixture
def importing(api: Callable[[str], Client]) -> Client:
    client = api("admin")
    answer = client.put("/mode?force=true", json.dumps({"mode": "IMPORT"}), content_type=CONTENT)
    assert answer.status_code == 200, answer.content
    return client


def send(client: Client, path: str, text: str, **body: Any) -> Any:
    data = json.dumps({"schemaType": "PROTOBUF", "schema": text, **body})
    return client.post(path, data, content_type=CONTENT)


def text_of(client: Client, path: str) -> str:
    return str(client.get(path).json()["schema"])


@pytest.mark.requirement("GOO-1")
def test_the_text_is_stored_with_names_as_they_were_written(steward: Client) -> None:
    assert send(steward, "/subjects/s/versions", SENT).json()["id"] == 1
    assert text_of(steward, "/subjects/s/versions/1") == STORED
    assert text_of(steward, "/schemas/ids/1") == STORED
    assert steward.get("/subjects/s/versions/1/schema").content.decode() == STORED
    assert send(steward, "/subjects/s", SENT.replace("\n\n", "\n")).json()["version"] == 1
    assert send(steward, "/subjects/s", NORMAL).status_code == 404
    assert send(steward, "/subjects/s/versions?normalize=true", SENT).json()["id"] == 2
    assert text_of(steward, "/schemas/ids/2") == NORMAL
    assert send(steward, "/subjects/s?normalize=true", SENT).json()["version"] == 2


def test_the_text_that_was_sent_is_beside_it(steward: Client) -> None:
    send(steward, "/subjects/s/versions", SENT)
    assert text_of(steward, "/subjects/s/versions/1?text=submitted") == SENT
    assert text_of(steward, "/subjects/s/versions/latest?text=submitted") == SENT
    assert steward.get("/subjects/s/versions/1/schema?text=submitted").content.decode() == SENT
    assert text_of(steward, "/schemas/ids/1?subject=s&text=submitted") == SENT
    assert text_of(steward, "/schemas/ids/1?text=submitted") == STORED
    assert text_of(steward, "/subjects/s/versions/1?text=other") == STORED


def test_the_forms_of_a_text(steward: Client) -> None:
    text = P3 + 'import "v/v.proto";\nmessage A {\n  string s = 1 [(v.rules).x = 1, deprecated = true];\n}\n'
    send(steward, "/subjects/s/versions", text)
    bare = P3 + '\nimport "v/v.proto";\n\nmessage A {\n  string s = 1 [deprecated = true];\n}\n'
    assert text_of(steward, "/schemas/ids/1?format=ignore_extensions") == bare
    found = FileDescriptorProto.FromString(base64.b64decode(text_of(steward, "/schemas/ids/1?format=serialized")))
    assert found.name == "default"
    assert [field.name for field in found.message_type[0].field] == ["s"]
    assert not found.message_type[0].field[0].options.uninterpreted_option


@pytest.mark.requirement("GOO-1")
def test_a_descriptor_with_a_map_is_stored_as_the_established_server_does(steward: Client) -> None:
    proto = PROTOBUF.parse(P3 + "package a; message M { map<string, M> m = 1; }").model.proto
    copy = FileDescriptorProto()
    copy.CopyFrom(proto)
    copy.ClearField("source_code_info")
    encoded = base64.b64encode(copy.SerializeToString()).decode()
    assert send(steward, "/subjects/s/versions", encoded).json()["id"] == 1
    stored = text_of(steward, "/schemas/ids/1")
    assert "option map_entry = true;" in stored
    assert send(steward, "/subjects/s", stored).json()["version"] == 1
    assert send(steward, "/subjects/s", encoded).json()["version"] == 1
    send(steward, "/subjects/t/versions?normalize=true", encoded)
    assert "map<string, .a.M> m = 1" in text_of(steward, "/subjects/t/versions/1")


@pytest.mark.requirement("GOO-1")
def test_what_an_earlier_release_stored_is_found_and_kept(steward: Client) -> None:
    send(steward, "/subjects/s/versions", SENT)
    earlier = PROTOBUF.parse(SENT).earlier_canonical
    assert earlier is not None
    identity = identify("PROTOBUF", earlier)
    Schema.objects.filter(schema_id=1).update(canonical=earlier, identity=identity.digest, guid=identity.guid)
    assert send(steward, "/subjects/s/versions", SENT).json()["id"] == 1
    assert send(steward, "/subjects/s", SENT).json()["version"] == 1
    assert send(steward, "/subjects/t/versions", SENT).json()["id"] == 1
    assert steward.get("/subjects/s/versions").json() == [1]
    assert text_of(steward, "/schemas/ids/1") == earlier
    assert send(steward, "/subjects/s", earlier).json()["version"] == 1


@pytest.mark.requirement("GOO-1")
def test_an_import_keeps_the_text(importing: Client) -> None:
    answer = send(importing, "/subjects/s/versions", STORED, id=7, version=3)
    assert answer.status_code == 200, answer.content
    assert text_of(importing, "/schemas/ids/7") == STORED
    assert send(importing, "/subjects/s/versions", STORED, id=7, version=3).status_code == 200


@pytest.mark.requirement("GOO-1")
def test_a_type_that_nothing_declares_is_for_imports_alone(importing: Client) -> None:
    text = P3 + '\nimport "x.proto";\n\nmessage A {\n  x.Y y = 1;\n}\n'
    assert send(importing, "/subjects/s/versions", text, id=7, version=1).status_code == 200
    assert text_of(importing, "/subjects/s/versions/1") == text
    importing.put("/mode?force=true", json.dumps({"mode": "READWRITE"}), content_type=CONTENT)
    refused = send(importing, "/subjects/s/versions", text.replace("x.Y y = 1;", "x.Y y = 1;\n  int32 n = 2;"))
    assert refused.status_code == 422
    assert '"x.Y" is not defined' in refused.json()["message"]
    importing.put("/config/s", json.dumps({"validateNewSchemas": False}), content_type=CONTENT)
    refused = send(importing, "/subjects/s/versions", text.replace("x.Y y = 1;", "x.Y y = 1;\n  int32 n = 2;"))
    assert refused.status_code == 422
    assert "Could not resolve type: x.Y" in refused.json()["message"]


@pytest.mark.requirement("GOO-1")
def test_custom_options_need_no_declaration(steward: Client) -> None:
    own = (
        P3
        + "package io.confluent.shop;\n"
        + (
            '\nimport "confluent/meta.proto";\n\nmessage A {\n  string s = 1 [(confluent.field_meta) = {\n    doc: "x"\n  }];\n}\n'
        )
    )
    assert send(steward, "/subjects/own/versions", own).status_code == 200
    assert text_of(steward, "/subjects/own/versions/1") == own
    text = (
        P3
        + '\nimport "buf/validate/validate.proto";\n\nmessage A {\n  string s = 1 [(buf.validate.field).string.min_len = 1];\n}\n'
    )
    assert send(steward, "/subjects/checked/versions", text).status_code == 200
    assert text_of(steward, "/subjects/checked/versions/1") == text

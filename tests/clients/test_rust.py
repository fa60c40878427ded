"""What the Rust client can do besides: lists, and the schema's GUID in a header in place of an id in the message."""

from __future__ import annotations

import pytest

from tests.clients.expected import CUSTOMERS, FORMATS, VALUE, is_refused
from tests.clients.serving import Program
from tests.clients.test_round_trip import TYPES, stored

pytestmark = [pytest.mark.clients, pytest.mark.slow, pytest.mark.requirement("GOO-1")]


@pytest.mark.parametrize("schema_type", TYPES)
def test_a_header_carries_the_guid(rust: Program, schema_type: str) -> None:
    found = rust.steps("headers", schema_type)["header"]
    guid = bytes.fromhex(stored(CUSTOMERS, 1).schema.guid.replace("-", ""))
    index = b"\0" if schema_type == "PROTOBUF" else b""
    assert found["name"] == "__value_schema_id"
    assert bytes.fromhex(found["header"]) == b"\x01" + guid + index
    assert found["value"] == VALUE
    if schema_type != "JSON":
        assert bytes.fromhex(found["message"]) == FORMATS[schema_type].payload


@pytest.mark.parametrize("schema_type", TYPES)
def test_lists_and_refusals(rust: Program, schema_type: str) -> None:
    written = rust.steps("write", schema_type)
    is_refused(written, "broken")
    assert written["register customer"]["given"]["guid"] == stored(CUSTOMERS, 1).schema.guid
    steps = rust.steps("read", schema_type, written["encode"]["message"])
    assert steps["subjects"]["given"] == sorted([FORMATS[schema_type].subject, CUSTOMERS])
    assert steps["versions"]["given"] == [1, 2]
    for step in ("unknown subject", "unknown version", "unknown id", "unknown guid"):
        is_refused(steps, step)
        assert steps[step]["retriable"] is False


def test_a_slash_in_a_subject_is_not_escaped_in_a_check(rust: Program) -> None:
    is_refused(rust.steps("check", "AVRO"), "compatible with a slash")
    assert "POST /compatibility/subjects/shop/address/versions" in rust.server.asked, "the client's own flaw is gone"

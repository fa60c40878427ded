"""The examples of the service's page on the life of schemas: each test says what the page says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.managedkafka_schemaregistry_v1.types import Schema, SchemaConfig, SchemaMode, SchemaVersion

from tests.api.google.conftest import DEV, Google, body

Level = SchemaConfig.CompatibilityType
Modes = SchemaMode.ModeType
Types = Schema.SchemaType

ADDRESS_AVRO = """\
{
  "type": "record",
  "name": "Address",
  "namespace": "com.example.common",
  "fields": [
    {"name": "street", "type": "string"},
    {"name": "city", "type": "string"},
    {"name": "zipCode", "type": "string"},
    {"name": "country", "type": "string", "default": "USA"}
  ]
}
"""
CUSTOMER_AVRO = """\
{
  "type": "record",
  "name": "Customer",
  "namespace": "com.example.crm",
  "fields": [
    {"name": "customerId", "type": "long"},
    {"name": "customerName", "type": "string"},
    // This field's type refers to the Address schema
    {"name": "billingAddress", "type": "com.example.common.Address"}
  ]
}
"""
SUPPLIER_AVRO = """\
{
  "type": "record",
  "name": "Supplier",
  "namespace": "com.example.crm",
  "fields": [
    {"name": "supplierId", "type": "long"},
    // This field's type refers to the Address schema
    {"name": "address", "type": "com.example.common.Address"}
  ]
}
"""
ADDRESS_PROTO = """\
syntax = "proto3";

package com.example.common;

message Address {
  string street = 1;
  string city = 2;
  string zip_code = 3;
  string country = 4;
}
"""
CUSTOMER_PROTO = """\
syntax = "proto3";
package com.example.crm;
import "address.proto";

message Customer {
  int64 customer_id = 1;
  string customer_name = 2;
  // This field's type refers to the imported Address message
  com.example.common.Address billing_address = 3;
}
"""
SUPPLIER_PROTO = """\
syntax = "proto3";
package com.example.crm;
import "address.proto";

message Supplier {
  int64 supplier_id = 1;
  com.example.common.Address address = 2;
}
"""


def fields(*names: str, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """A record; optional fields have a default."""
    return {
        "type": "record",
        "name": "R",
        "fields": [
            *({"name": name, "type": "string"} for name in names),
            *({"name": name, "type": "string", "default": ""} for name in optional),
        ],
    }


V1 = fields("id", "note")
#: what each may do to a subject that has V1
ADDED_OPTIONAL = fields("id", "note", optional=("extra",))  # fits in both directions
REMOVED = fields("id")  # new readers read old data; old readers miss `note`
ADDED_REQUIRED = fields("id", "note", "total")  # old readers read new data; new readers miss `total`


def refused(client: Google, subject: str, schema: Any) -> bool:
    try:
        client.register(f"subjects/{subject}", schema)
    except exceptions.BadRequest as error:
        assert "incompatible" in error.message or "read-only" in error.message, error.message
        return True
    return False


@pytest.mark.requirement("GOO-5")
@pytest.mark.parametrize(
    ("kind", "name", "address", "customer", "supplier"),
    [
        ("avro", "com.example.common.Address", ADDRESS_AVRO, CUSTOMER_AVRO, SUPPLIER_AVRO),
        ("proto", "address.proto", ADDRESS_PROTO, CUSTOMER_PROTO, SUPPLIER_PROTO),
    ],
    ids=["avro", "protobuf"],
)
def test_address_customer_supplier(
    client: Google, kind: str, name: str, address: str, customer: str, supplier: str
) -> None:
    schema_type = {"avro": Types.AVRO, "proto": Types.PROTOBUF}[kind]
    references = [{"name": name, "subject": f"address_schema_{kind}", "version": 1}]

    def register(subject: str, text: str, **more: Any) -> int:
        return client.register(f"subjects/{subject}_schema_{kind}", text, schema_type=schema_type, **more)

    def version(subject: str, number: int = 1) -> SchemaVersion:
        return client.calls.get_version(name=f"{DEV}/subjects/{subject}_schema_{kind}/versions/{number}")

    with pytest.raises(exceptions.BadRequest):
        register("customer", customer)  # without its reference it doesn't parse
    with pytest.raises(exceptions.BadRequest, match=f"address_schema_{kind}"):
        register("customer", customer, references=references)  # which has to be there
    made = {
        "address": register("address", address),
        "customer": register("customer", customer, references=references),
        "supplier": register("supplier", supplier, references=references),
    }
    assert list(made.values()) == [1, 2, 3]
    for subject in ("customer", "supplier"):
        got = version(subject)
        assert (got.version_id, got.schema_id, got.schema_type) == (1, made[subject], schema_type)
        assert [(r.name, r.subject, r.version) for r in got.references] == [(name, f"address_schema_{kind}", 1)]
        assert client.calls.get_schema(name=f"{DEV}/schemas/ids/{made[subject]}").references == got.references
    assert list(version("address").references) == []
    users = client.calls.list_referenced_schemas(parent=f"{DEV}/subjects/address_schema_{kind}/versions/1")
    assert body(users) == [made["customer"], made["supplier"]], "the dependency in the other direction"
    with pytest.raises(exceptions.BadRequest, match="references exist"):
        client.calls.delete_subject(name=f"{DEV}/subjects/address_schema_{kind}")
    # The text that a look-up is asked with has its comment too.
    found = client.calls.lookup_version(
        request={
            "parent": f"{DEV}/subjects/customer_schema_{kind}",
            "schema": customer,
            "schema_type": schema_type,
            "references": references,
        }
    )
    assert found == version("customer")
    raw = client.calls.get_raw_schema_version(name=f"{DEV}/subjects/customer_schema_{kind}/versions/1")
    assert raw.content_type.startswith("application/json" if kind == "avro" else "text/plain")
    assert name.encode() in raw.data


@pytest.mark.requirement("GOO-2", "GOO-3")
def test_user_events_is_full_under_a_registry_that_moves_to_forward(client: Google) -> None:
    for subject in ("user-events", "orders", "payments"):
        client.register(f"subjects/{subject}", V1)
    # The registry is BACKWARD and its subjects inherit that; user-events is set to FULL.
    assert client.http("GET", f"{DEV}/config").json()["compatibility"] == "BACKWARD"
    name = f"{DEV}/config/user-events"
    client.calls.update_schema_config(request={"name": name, "compatibility": Level.FULL})
    # Its new versions have to fit backward and forward with the one before …
    assert refused(client, "user-events", REMOVED)
    assert refused(client, "user-events", ADDED_REQUIRED)
    assert not refused(client, "user-events", ADDED_OPTIONAL)
    # … and the other subjects follow the registry's BACKWARD.
    assert refused(client, "orders", ADDED_REQUIRED)
    assert not refused(client, "orders", REMOVED)
    # The registry moves to FORWARD: that is the default of the others from now on, of new subjects too.
    assert client.http("PUT", f"{DEV}/config", json={"compatibility": "FORWARD"}).status_code == 200
    client.register("subjects/created-later", V1)
    for subject in ("payments", "created-later"):
        assert refused(client, subject, REMOVED)
        assert not refused(client, subject, ADDED_REQUIRED)
    # user-events keeps the FULL that it was explicitly given.
    assert client.calls.get_schema_config(name=name).compatibility == Level.FULL
    assert refused(client, "user-events", fields("id", "note", "total", optional=("extra",)))
    assert not refused(client, "user-events", fields("id", "note", optional=("extra", "more")))


@pytest.mark.requirement("GOO-2")
@pytest.mark.parametrize(
    ("level", "removed", "added_required", "added_optional"),
    [
        ("NONE", True, True, True),
        ("BACKWARD", True, False, True),
        ("BACKWARD_TRANSITIVE", True, False, True),
        ("FORWARD", False, True, True),
        ("FORWARD_TRANSITIVE", False, True, True),
        ("FULL", False, False, True),
        ("FULL_TRANSITIVE", False, False, True),
    ],
)
def test_what_each_type_accepts(
    client: Google, level: str, removed: bool, added_required: bool, added_optional: bool
) -> None:
    cases = {"removed": (REMOVED, removed), "required": (ADDED_REQUIRED, added_required)}
    for subject, (schema, accepted) in {**cases, "optional": (ADDED_OPTIONAL, added_optional)}.items():
        client.register(f"subjects/{subject}", V1)
        client.calls.update_schema_config(request={"name": f"{DEV}/config/{subject}", "compatibility": level})
        assert refused(client, subject, schema) is not accepted, subject


@pytest.mark.requirement("GOO-6")
def test_production_config_and_staging_config(client: Google) -> None:
    def config(subject: str) -> bool:
        """Whether the subject's compatibility could be updated."""
        name = f"{DEV}/config/{subject}"
        try:
            client.calls.update_schema_config(request={"name": name, "compatibility": "NONE"})
        except exceptions.BadRequest as error:
            assert "read-only" in error.message
            return False
        return True

    def mode(subject: str) -> SchemaMode.ModeType:
        return client.calls.get_schema_mode(name=f"{DEV}/mode/{subject}").mode

    # A registry that is READWRITE takes new subjects, and new versions of existing ones.
    assert client.http("GET", f"{DEV}/mode").json() == {"mode": "READWRITE"}
    for subject in ("production-config", "staging-config", "another"):
        client.register(f"subjects/{subject}", V1)
    # production-config is set to READONLY: no new versions, no update of its configuration.
    client.calls.update_schema_mode(request={"name": f"{DEV}/mode/production-config", "mode": Modes.READONLY})
    assert refused(client, "production-config", ADDED_OPTIONAL)
    assert not config("production-config")
    # Subjects without a mode of their own stay READWRITE, and the registry takes new ones.
    assert not refused(client, "another", ADDED_OPTIONAL)
    assert config("another")
    assert not refused(client, "brand-new", V1)
    # The registry is set to READONLY, staging-config to READWRITE.
    assert client.http("PUT", f"{DEV}/mode", json={"mode": "READONLY"}).json() == {"mode": "READONLY"}
    client.calls.update_schema_mode(request={"name": f"{DEV}/mode/staging-config", "mode": Modes.READWRITE})
    # No new subjects can be created, one with a READWRITE of its own neither.
    assert refused(client, "newer-still", V1)
    client.calls.update_schema_mode(request={"name": f"{DEV}/mode/newer-still", "mode": Modes.READWRITE})
    assert refused(client, "newer-still", V1)
    # Most existing subjects are READONLY by inheritance: no new versions, no update of their configuration.
    assert refused(client, "another", fields("id", "note", optional=("extra", "more")))
    assert not config("another")
    # production-config stays READONLY as it was set.
    assert mode("production-config") == Modes.READONLY
    assert refused(client, "production-config", ADDED_OPTIONAL)
    # staging-config stays READWRITE: new versions and updates of its configuration go on.
    assert mode("staging-config") == Modes.READWRITE
    assert not refused(client, "staging-config", ADDED_OPTIONAL)
    assert config("staging-config")
    # The registry's own configuration is closed as well.
    assert client.http("PUT", f"{DEV}/config", json={"compatibility": "FULL"}).status_code == 400
    # A refused creation left nothing behind, and used up no id.
    assert "newer-still" not in body(client.calls.list_subjects(request={"parent": DEV, "deleted": True}))
    client.calls.delete_schema_mode(name=f"{DEV}/mode//")
    assert client.register("subjects/newer-still", json.dumps("string")) == 3


@pytest.mark.requirement("GOO-7")
def test_the_recommended_settings_of_production_hold(client: Google) -> None:
    """READONLY stops the registration that a client with `auto.register.schemas` makes; look-ups go on."""
    client.register("subjects/orders-value", V1)
    client.http("PUT", f"{DEV}/mode", json={"mode": "READONLY"})
    assert refused(client, "orders-value", ADDED_OPTIONAL)
    assert refused(client, "orders-key", json.dumps("string"))
    found = client.calls.lookup_version(request={"parent": f"{DEV}/subjects/orders-value", "schema": json.dumps(V1)})
    assert found.version_id == 1
    assert client.calls.get_version(name=f"{DEV}/subjects/orders-value/versions/latest") == found

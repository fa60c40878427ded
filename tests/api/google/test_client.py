"""Every method of the service's Python client."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import google.cloud.managedkafka_schemaregistry_v1
import pytest
from google.api_core import exceptions
from google.auth.exceptions import InvalidOperation
from google.cloud.managedkafka_schemaregistry_v1.types import Schema, SchemaConfig, SchemaMode

from tests.api.google.conftest import DEV, PLACE, Google, body

Level = SchemaConfig.CompatibilityType
Modes = SchemaMode.ModeType
V1 = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": ["null", "string"], "default": None}]}
BREAKING = {**V1, "fields": [*V1["fields"], {"name": "total", "type": "double"}]}
#: directly under the registry, and under a context
BASES = pytest.mark.parametrize("base", [DEV, f"{DEV}/contexts/lab"], ids=["registry", "context"])


def create(client: Google, name: str) -> Any:
    return client.calls.create_schema_registry(
        request={"parent": PLACE, "schema_registry_id": name, "schema_registry": {}}
    )


@pytest.mark.requirement("GOO-4")
def test_registries(client: Google) -> None:
    made = create(client, "lab_1")
    assert (made.name, list(made.contexts)) == (f"{PLACE}/schemaRegistries/lab_1", ["default"])
    assert client.calls.get_schema_registry(name=made.name) == made
    with pytest.raises(exceptions.Conflict, match="already exists"):
        create(client, "lab_1")
    client.register("contexts/x/subjects/s", V1, registry=made.name)
    listed = {
        item.name: list(item.contexts) for item in client.calls.list_schema_registries(parent=PLACE).schema_registries
    }
    assert listed.keys() == {f"{PLACE}/schemaRegistries/{name}" for name in ("dev", "lab_1", "prod", "staging")}
    assert listed[made.name] == ["default", "x"]
    assert client.calls.delete_schema_registry(name=made.name) is None
    with pytest.raises(exceptions.NotFound, match="lab_1"):
        client.calls.get_schema_registry(name=made.name)
    with pytest.raises(exceptions.NotFound, match="lab_1"):
        client.calls.delete_schema_registry(name=made.name)
    assert list(create(client, "lab_1").contexts) == ["default"], "something of the deleted registry was left"


@pytest.mark.requirement("GOO-4")
def test_registries_that_stay(client: Google) -> None:
    with pytest.raises(exceptions.BadRequest, match="default"):
        client.calls.delete_schema_registry(name=DEV)
    with pytest.raises(exceptions.BadRequest, match="environment"):
        client.calls.delete_schema_registry(name=f"{PLACE}/schemaRegistries/staging")
    with pytest.raises(exceptions.BadRequest, match="closed environment"):
        client.calls.delete_schema_registry(name=f"{PLACE}/schemaRegistries/prod")


@pytest.mark.requirement("GOO-4")
def test_contexts(client: Google) -> None:
    client.register("contexts/lab/subjects/orders-value", V1)
    assert body(client.calls.list_contexts(parent=DEV)) == ["default", "lab"]
    lab = client.calls.get_context(name=f"{DEV}/contexts/lab")
    assert (lab.name, list(lab.subjects)) == (f"{DEV}/contexts/lab", ["orders-value"])
    assert list(client.calls.get_context(name=f"{DEV}/contexts/default").subjects) == []
    with pytest.raises(exceptions.NotFound, match="contexts/none"):
        client.calls.get_context(name=f"{DEV}/contexts/none")


@pytest.mark.requirement("GOO-4")
def test_subjects_are_listed_by_context_and_prefix(client: Google) -> None:
    client.register("subjects/orders-value", V1)
    client.register("subjects/users-value", V1)
    client.register("contexts/lab/subjects/orders-value", V1)

    def listed(base: str = DEV, **fields: Any) -> list[str]:
        return body(client.calls.list_subjects(request={"parent": base, **fields}))

    assert listed() == [":.lab:orders-value", "orders-value", "users-value"]
    assert listed(subject_prefix="") == ["orders-value", "users-value"]
    assert listed(subject_prefix="users") == ["users-value"]
    assert listed(subject_prefix=":.lab:") == [":.lab:orders-value"]
    assert listed(f"{DEV}/contexts/lab") == ["orders-value"]
    assert listed(f"{DEV}/contexts/none") == []
    client.calls.delete_subject(name=f"{DEV}/subjects/users-value")
    assert listed(subject_prefix="") == ["orders-value"]
    assert listed(subject_prefix="", deleted=True) == ["orders-value", "users-value"]


@BASES
@pytest.mark.requirement("GOO-1", "GOO-4")
def test_versions(client: Google, base: str) -> None:
    subject = f"{base}/subjects/orders-value"
    assert client.register("subjects/orders-value", V1, registry=base) == 1
    assert client.register("subjects/orders-value", V2, registry=base, schema_type="AVRO", normalize=True) == 2
    assert client.register("subjects/orders-value", V1, registry=base) == 1, "a known definition keeps its id"
    assert client.register("subjects/other", V2, registry=base) == 2
    with pytest.raises(exceptions.BadRequest, match="READER_FIELD_MISSING_DEFAULT_VALUE"):
        client.register("subjects/orders-value", BREAKING, registry=base)
    assert body(client.calls.list_versions(parent=subject)) == [1, 2]

    got = client.calls.get_version(name=f"{subject}/versions/2")
    assert (got.subject, got.version_id, got.schema_id) == ("orders-value", 2, 2)
    assert (got.schema_type, json.loads(got.schema_payload)) == (Schema.SchemaType.AVRO, V2)
    assert client.calls.get_version(name=f"{subject}/versions/latest") == got
    assert body(client.calls.get_raw_schema_version(name=f"{subject}/versions/1")) == V1

    assert body(client.calls.delete_version(name=f"{subject}/versions/1")) == 1
    assert body(client.calls.list_versions(parent=subject)) == [2]
    assert body(client.calls.list_versions(request={"parent": subject, "deleted": True})) == [1, 2]
    with pytest.raises(exceptions.NotFound, match="Version 1 not found"):
        client.calls.get_version(name=f"{subject}/versions/1")
    assert client.calls.get_version(request={"name": f"{subject}/versions/1", "deleted": True}).version_id == 1
    with pytest.raises(exceptions.BadRequest, match="soft deleted"):
        client.calls.delete_version(name=f"{subject}/versions/1")
    assert body(client.calls.delete_version(request={"name": f"{subject}/versions/1", "permanent": True})) == 1
    with pytest.raises(exceptions.NotFound):
        client.calls.get_version(request={"name": f"{subject}/versions/1", "deleted": True})


@BASES
@pytest.mark.requirement("GOO-4")
def test_look_up_and_deletion_of_a_subject(client: Google, base: str) -> None:
    subject = f"{base}/subjects/orders-value"
    client.register("subjects/orders-value", V1, registry=base)

    def look_up(schema: object, **fields: Any) -> Any:
        return client.calls.lookup_version(request={"parent": subject, "schema": json.dumps(schema), **fields})

    found = look_up(V1, schema_type=Schema.SchemaType.AVRO)
    assert (found.subject, found.version_id, found.schema_id) == ("orders-value", 1, 1)
    with pytest.raises(exceptions.NotFound, match="no such schema"):
        look_up(V2)
    with pytest.raises(exceptions.BadRequest, match="not deleted first"):
        client.calls.delete_subject(request={"name": subject, "permanent": True})
    assert body(client.calls.delete_subject(name=subject)) == [1]
    with pytest.raises(exceptions.NotFound, match="orders-value"):
        look_up(V1)
    assert look_up(V1, deleted=True).version_id == 1
    assert body(client.calls.delete_subject(request={"name": subject, "permanent": True})) == [1]
    with pytest.raises(exceptions.NotFound):
        look_up(V1, deleted=True)


@BASES
@pytest.mark.requirement("GOO-4")
def test_schemas(client: Google, base: str) -> None:
    for subject in ("orders-value", "copy"):
        client.register(f"subjects/{subject}", V1, registry=base)
    schema = f"{base}/schemas/ids/1"
    got = client.calls.get_schema(name=schema)
    assert (got.schema_type, json.loads(got.schema_payload)) == (Schema.SchemaType.AVRO, V1)
    assert body(client.calls.get_raw_schema(name=schema)) == V1
    assert body(client.calls.list_subjects_by_schema_id(parent=schema)) == ["copy", "orders-value"]
    assert body(client.calls.list_schema_versions(parent=schema)) == [
        {"subject": "copy", "version": 1},
        {"subject": "orders-value", "version": 1},
    ]
    assert body(client.calls.list_schema_versions(request={"parent": schema, "subject": "copy"})) == [
        {"subject": "copy", "version": 1}
    ]
    client.calls.delete_subject(name=f"{base}/subjects/copy")
    assert body(client.calls.list_subjects_by_schema_id(parent=schema)) == ["orders-value"]
    both = client.calls.list_subjects_by_schema_id(request={"parent": schema, "deleted": True})
    assert body(both) == ["copy", "orders-value"]
    assert "AVRO" in body(client.calls.list_schema_types(parent=base))
    assert client.calls.get_schema(request={"name": schema, "subject": "orders-value"}) == got
    with pytest.raises(exceptions.NotFound, match="nobody"):
        client.calls.get_schema(request={"name": schema, "subject": "nobody"})
    with pytest.raises(exceptions.NotFound, match="Schema 7 not found"):
        client.calls.get_schema(name=f"{base}/schemas/ids/7")


@pytest.mark.requirement("GOO-4")
def test_ids_belong_to_their_context(client: Google) -> None:
    assert client.register("subjects/s", V1) == 1
    assert client.register("contexts/lab/subjects/s", V2) == 1
    assert body(client.calls.get_raw_schema(name=f"{DEV}/schemas/ids/1")) == V1
    assert body(client.calls.get_raw_schema(name=f"{DEV}/contexts/lab/schemas/ids/1")) == V2


@BASES
@pytest.mark.requirement("GOO-2", "GOO-4")
def test_compatibility(client: Google, base: str) -> None:
    client.register("subjects/orders-value", V1, registry=base)

    def check(schema: object, where: str, **fields: Any) -> Any:
        name = f"{base}/compatibility/subjects/{where}"
        return client.calls.check_compatibility(request={"name": name, "schema": json.dumps(schema), **fields})

    for where in ("orders-value/versions", "orders-value/versions/1", "orders-value/versions/latest"):
        assert check(V2, where).is_compatible
        refused = check(BREAKING, where, verbose=True)
        assert not refused.is_compatible
        assert "total" in refused.messages[0]
        assert list(check(BREAKING, where).messages) == []
    assert check(BREAKING, "nobody/versions").is_compatible
    with pytest.raises(exceptions.NotFound, match="Version 9"):
        check(V2, "orders-value/versions/9")


@BASES
@pytest.mark.requirement("GOO-3", "GOO-4")
def test_config_of_a_subject(client: Google, base: str) -> None:
    name = f"{base}/config/orders-value"
    with pytest.raises(exceptions.NotFound, match="compatibility"):
        client.calls.get_schema_config(name=name)
    inherited = client.calls.get_schema_config(request={"name": name, "default_to_global": True})
    assert (inherited.compatibility, inherited.normalize) == (Level.BACKWARD, False)

    put = client.calls.update_schema_config(request={"name": name, "compatibility": "FULL", "normalize": True})
    assert put == client.calls.get_schema_config(name=name)
    assert (put.compatibility, put.normalize) == (Level.FULL, True)
    put = client.calls.update_schema_config(request={"name": name, "compatibility": "NONE"})
    assert (put.compatibility, "normalize" in put) == (Level.NONE, False), "what is left out is unset"
    assert client.calls.delete_schema_config(name=name).compatibility == Level.NONE
    with pytest.raises(exceptions.NotFound):
        client.calls.get_schema_config(name=name)
    with pytest.raises(exceptions.NotFound):
        client.calls.delete_schema_config(name=name)


@pytest.mark.requirement("GOO-3", "GOO-4")
@pytest.mark.parametrize("ending", ["", "/", "//"])
def test_config_of_the_registry(client: Google, ending: str) -> None:
    path = f"{DEV}/config{ending}"
    assert client.http("GET", path).json() == {"compatibility": "BACKWARD", "normalize": False}
    assert client.http("PUT", path, json={"compatibility": "FORWARD"}).json()["compatibility"] == "FORWARD"
    assert client.http("PUT", path, json={"normalize": True}).json() == {"compatibility": "FORWARD", "normalize": True}
    assert client.http("PUT", path, json={}).json()["error"]["status"] == "INVALID_ARGUMENT"
    scope = {"name": f"{DEV}/config/orders-value", "default_to_global": True}
    assert client.calls.get_schema_config(request=scope).compatibility == Level.FORWARD
    assert client.http("DELETE", path).json() == {"compatibility": "FORWARD", "normalize": True}
    assert client.http("GET", path).json() == {"compatibility": "BACKWARD", "normalize": False}


@pytest.mark.requirement("GOO-4", "GOO-6")
def test_the_client_reaches_the_registry_s_own_config_and_mode(client: Google) -> None:
    """Its pattern wants something behind `config/` and `mode/`; a second slash is what it lets through."""
    config, mode = f"{DEV}/config//", f"{DEV}/mode//"
    assert (
        client.calls.update_schema_config(request={"name": config, "compatibility": "FULL"}).compatibility == Level.FULL
    )
    assert client.calls.get_schema_config(name=config).compatibility == Level.FULL
    assert client.calls.delete_schema_config(name=config).compatibility == Level.FULL
    assert client.calls.get_schema_mode(name=mode).mode == Modes.READWRITE
    assert client.calls.update_schema_mode(request={"name": mode, "mode": "READONLY"}).mode == Modes.READONLY
    assert client.calls.get_schema_mode(name=mode).mode == Modes.READONLY
    assert client.calls.delete_schema_mode(name=mode).mode == Modes.READONLY
    assert client.http("GET", f"{DEV}/mode").json() == {"mode": "READWRITE"}


@BASES
@pytest.mark.requirement("GOO-4", "GOO-6")
def test_mode_of_a_subject(client: Google, base: str) -> None:
    name = f"{base}/mode/orders-value"
    with pytest.raises(exceptions.NotFound, match="mode"):
        client.calls.get_schema_mode(name=name)
    assert client.calls.update_schema_mode(request={"name": name, "mode": "READONLY"}).mode == Modes.READONLY
    assert client.calls.get_schema_mode(name=name).mode == Modes.READONLY
    with pytest.raises(exceptions.BadRequest, match="read-only"):
        client.register("subjects/orders-value", V1, registry=base)
    assert client.calls.delete_schema_mode(name=name).mode == Modes.READONLY
    assert client.register("subjects/orders-value", V1, registry=base) == 1, "deleting the mode did not reset it"
    with pytest.raises(exceptions.BadRequest, match="delete the mode"):
        client.calls.update_schema_mode(request={"name": name, "mode": "NONE"})


@pytest.mark.requirement("GOO-4")
def test_locations_and_operations(client: Google) -> None:
    assert [item.location_id for item in client.calls.list_locations({"name": "projects/local"}).locations] == ["local"]
    assert client.calls.get_location({"name": PLACE}).name == PLACE
    with pytest.raises(exceptions.NotFound, match="mars"):
        client.calls.get_location({"name": "projects/local/locations/mars"})
    assert list(client.calls.list_operations({"name": PLACE}).operations) == []
    for call in (client.calls.get_operation, client.calls.delete_operation, client.calls.cancel_operation):
        with pytest.raises(exceptions.NotFound, match="operations/o-1"):
            call({"name": f"{PLACE}/operations/o-1"})


@pytest.mark.requirement("GOO-4")
def test_given_versions_and_ids(client: Google) -> None:
    assert client.register("subjects/s", V1, version=1) == 1
    with pytest.raises(exceptions.BadRequest, match="ersion"):
        client.register("subjects/s", V2, version=7)
    with pytest.raises(exceptions.BadRequest, match="import mode"):
        client.register("subjects/s", V2, id=9)
    assert body(client.calls.list_versions(parent=f"{DEV}/subjects/s")) == [1]
    assert client.register("subjects/s", V2, version=2) == 2, "a refusal used up an id"
    mode = client.calls.update_schema_mode(request={"name": f"{DEV}/mode/moved", "mode": "IMPORT"})
    assert mode.mode == Modes.IMPORT
    assert client.register("subjects/moved", BREAKING, version=7, id=90) == 90
    assert client.calls.get_version(name=f"{DEV}/subjects/moved/versions/7").schema_id == 90


@pytest.mark.requirement("GOO-4")
@pytest.mark.parametrize("name", ["a.b-c_d+e%f~g", "a%2Fversions%2F1", "x" * 255, "..."])
def test_names_with_all_that_is_allowed(client: Google, name: str) -> None:
    client.register(f"contexts/{name}/subjects/{name}", V1)
    assert client.calls.get_version(name=f"{DEV}/contexts/{name}/subjects/{name}/versions/1").subject == name
    client.calls.update_schema_config(request={"name": f"{DEV}/contexts/{name}/config/{name}", "compatibility": "FULL"})
    assert list(client.calls.get_context(name=f"{DEV}/contexts/{name}").subjects) == [name]
    assert body(client.calls.delete_subject(name=f"{DEV}/contexts/{name}/subjects/{name}")) == [1]


@pytest.mark.requirement("GOO-4")
def test_with_a_token(client_with_token: Callable[[str], Google]) -> None:
    reader, steward = client_with_token("reader"), client_with_token("steward")
    assert steward.register("subjects/s", V1) == 1
    assert reader.calls.get_version(name=f"{DEV}/subjects/s/versions/1").schema_id == 1
    with pytest.raises(exceptions.Forbidden, match="register versions"):
        reader.register("subjects/s", V2)
    with pytest.raises(exceptions.Forbidden, match="manage registries"):
        create(steward, "mine")


@pytest.mark.requirement("GOO-4")
def test_anonymous_calls_work_only_where_they_are_allowed(client: Google, settings: Any) -> None:
    settings.ANONYMOUS_ROLE = ""
    for path in (
        f"{PLACE}/schemaRegistries",
        DEV,
        f"{DEV}/subjects",
        "projects/local/locations",
        f"{PLACE}/operations",
    ):
        refused = client.http("GET", path)
        assert (refused.status_code, refused.json()["error"]["status"]) == (401, "UNAUTHENTICATED"), path
        assert "Sign in" in refused.json()["error"]["message"]
    with pytest.raises(InvalidOperation, match="refresh"):  # what the client makes of 401 without credentials
        client.calls.get_schema_registry(name=DEV)
    settings.ANONYMOUS_ROLE = "reader"
    assert client.calls.get_schema_registry(name=DEV).name == DEV
    refused = client.http("POST", f"{DEV}/subjects/s/versions", json={"schema": json.dumps(V1)})
    assert refused.status_code == 401


@pytest.mark.requirement("GOO-4")
def test_every_method_of_the_client_is_called_here() -> None:
    texts = [path.read_text() for path in Path(__file__).parent.glob("*.py")]
    called = {name for text in texts for name in re.findall(r"(?:client|self|reader|steward)\.calls\.(\w+)", text)}
    package = Path(google.cloud.managedkafka_schemaregistry_v1.__file__).parent
    described = json.loads((package / "gapic_metadata.json").read_text())
    methods = described["services"]["ManagedSchemaRegistry"]["clients"]["rest"]["rpcs"].values()
    names = {name for entry in methods for name in entry["methods"]}
    assert len(names) > 20
    beside = {
        "list_locations",
        "get_location",
        "list_operations",
        "get_operation",
        "delete_operation",
        "cancel_operation",
    }
    assert names | beside == called

"""Unmodified clients do their whole round trip against the running server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka.schema_registry import (
    Metadata,
    MetadataProperties,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.common.schema_registry_client import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
)
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from django.core.servers.basehttp import WSGIRequestHandler
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from httpx import BasicAuth
from schema_registry.client import SchemaRegistryClient as OtherClient
from schema_registry.client import schema as other
from schema_registry.serializers import AvroMessageSerializer

from registry.formats import FORMATS

pytestmark = [pytest.mark.usefixtures("transactional_db"), pytest.mark.slow, pytest.mark.requirement("GOO-1")]

ORDER = '{"type":"record","name":"Order","namespace":"demo","fields":[{"name":"id","type":"long"}]}'
ORDER_NOTE = (
    '{"type":"record","name":"Order","namespace":"demo","fields":[{"name":"id","type":"long"},'
    '{"name":"note","type":["null","string"],"default":null}]}'
)
ORDER_TOTAL = ORDER.replace('"long"}]', '"long"},{"name":"total","type":"double"}]')
VALUE = SerializationContext("orders", MessageField.VALUE)
BY_LATEST = {"auto.register.schemas": False, "use.latest.version": True}


@pytest.fixture
def raw_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Django's test server hands over the raw target as a production server does."""
    environ = WSGIRequestHandler.get_environ

    def with_target(self: WSGIRequestHandler) -> dict[str, Any]:
        return {**environ(self), "RAW_URI": self.path}

    monkeypatch.setattr(WSGIRequestHandler, "get_environ", with_target)


@pytest.fixture
def connect(raw_targets: None, live_server: Any, token: Callable[[str], str]) -> Callable[[], SchemaRegistryClient]:
    """A fresh client of an admin, with empty caches."""
    login = f"admin:{token('admin')}"
    return lambda: SchemaRegistryClient({"url": live_server.url, "basic.auth.user.info": login})


@pytest.fixture
def client(connect: Callable[[], SchemaRegistryClient]) -> Iterator[SchemaRegistryClient]:
    yield connect()


def test_avro_with_automatic_registration(connect: Callable[[], SchemaRegistryClient]) -> None:
    first, second = connect(), connect()
    old = AvroSerializer(first, ORDER)({"id": 7}, VALUE)
    new = AvroSerializer(second, ORDER_NOTE)({"id": 8, "note": "n"}, VALUE)
    assert first.get_versions("orders-value") == [1, 2]
    decode = AvroDeserializer(connect(), ORDER_NOTE)
    assert decode(old, VALUE) == {"id": 7, "note": None}
    assert decode(new, VALUE) == {"id": 8, "note": "n"}
    with pytest.raises(SchemaRegistryError) as refused:
        AvroSerializer(connect(), ORDER_TOTAL)({"id": 9, "total": 1.0}, VALUE)
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 409)


def test_avro_without_automatic_registration(connect: Callable[[], SchemaRegistryClient]) -> None:
    serializer = AvroSerializer(connect(), ORDER, conf={"auto.register.schemas": False})
    with pytest.raises(SchemaRegistryError) as refused:
        serializer({"id": 7}, VALUE)
    assert refused.value.error_code == 40401
    connect().register_schema("orders-value", Schema(ORDER, "AVRO"))
    written = AvroSerializer(connect(), ORDER, conf={"auto.register.schemas": False})({"id": 7}, VALUE)
    assert AvroDeserializer(connect())(written, VALUE) == {"id": 7}
    with pytest.raises(SchemaRegistryError) as refused:
        AvroSerializer(connect(), ORDER_NOTE, conf={"auto.register.schemas": False})({"id": 7}, VALUE)
    assert refused.value.error_code == 40403


@pytest.mark.requirement("GOO-7")
def test_avro_with_the_latest_version(connect: Callable[[], SchemaRegistryClient]) -> None:
    for text in (ORDER, ORDER_NOTE):
        connect().register_schema("orders-value", Schema(text, "AVRO"))
    written = AvroSerializer(connect(), None, conf=BY_LATEST)({"id": 7, "note": "n"}, VALUE)
    assert int.from_bytes(written[1:5], "big") == 2
    assert AvroDeserializer(connect(), conf={"use.latest.version": True})(written, VALUE) == {"id": 7, "note": "n"}


def test_avro_by_metadata(connect: Callable[[], SchemaRegistryClient]) -> None:
    client = connect()
    for text, major in ((ORDER, "1"), (ORDER_NOTE, "2")):
        metadata = Metadata(None, MetadataProperties({"major": major}), None)
        client.register_schema("orders-value", Schema(text, "AVRO", metadata=metadata))
    conf = {"auto.register.schemas": False, "use.latest.with.metadata": {"major": "1"}}
    written = AvroSerializer(connect(), None, conf=conf)({"id": 7}, VALUE)
    assert int.from_bytes(written[1:5], "big") == 1
    found = client.get_latest_with_metadata("orders-value", {"major": "2"})
    assert (found.version, found.schema.metadata.properties.properties) == (2, {"major": "2"})


def test_avro_normalized_and_by_guid(connect: Callable[[], SchemaRegistryClient]) -> None:
    conf = {"normalize.schemas": True}
    for text in (ORDER[:-1] + ',"z":1,"a":2}', ORDER[:-1] + ',"a":2,"z":1}'):
        AvroSerializer(connect(), text, conf=conf)({"id": 7}, VALUE)
    assert connect().get_versions("orders-value") == [1]
    headers: list[tuple[str, bytes]] = []
    context = SerializationContext("orders", MessageField.VALUE, headers)
    by_guid = AvroSerializer(connect(), ORDER_NOTE, conf={"schema.id.serializer": header_schema_id_serializer})
    written = by_guid({"id": 7, "note": "without an id"}, context)
    assert [name for name, _ in headers] == ["__value_schema_id"]
    assert AvroDeserializer(connect())(written, context) == {"id": 7, "note": "without an id"}


@pytest.mark.requirement("GOO-5")
def test_avro_with_references(connect: Callable[[], SchemaRegistryClient]) -> None:
    client = connect()
    address = '{"type":"record","name":"Address","namespace":"demo","fields":[{"name":"city","type":"string"}]}'
    customer = '{"type":"record","name":"Customer","namespace":"demo","fields":[{"name":"home","type":"demo.Address"}]}'
    client.register_schema("address", Schema(address, "AVRO"))
    references = [SchemaReference("demo.Address", "address", 1)]
    for conf in ({}, BY_LATEST):
        written = AvroSerializer(connect(), Schema(customer, "AVRO", references), conf=conf)(
            {"home": {"city": "Wien"}}, VALUE
        )
        assert AvroDeserializer(connect())(written, VALUE) == {"home": {"city": "Wien"}}
    assert client.get_referenced_by("address", 1) == [2]


def test_the_client_calls_everything(client: SchemaRegistryClient) -> None:
    schema = Schema(ORDER, "AVRO")
    done = client.register_schema_full_response("a/b", schema)
    assert (done.schema_id, done.version) == (1, 1)
    assert client.lookup_schema("a/b", schema, deleted=True).version == 1
    assert client.get_schema(1, "a/b").schema_str == ORDER
    assert client.get_schema_by_guid(done.guid).schema_str == ORDER
    assert set(client.get_schema_types()) == set(FORMATS)
    assert client.get_subjects_by_schema_id(1) == ["a/b"]
    assert [(item.subject, item.version) for item in client.get_schema_versions(1)] == [("a/b", 1)]
    assert client.get_subjects() == ["a/b"]
    assert client.get_latest_version("a/b").version == 1
    assert client.get_version("a/b", 1).guid == done.guid
    assert client.test_compatibility("a/b", Schema(ORDER_TOTAL, "AVRO")) is False
    assert client.test_compatibility_all_versions("a/b", Schema(ORDER_NOTE, "AVRO")) is True
    assert client.set_compatibility("a/b", "FULL") == {"compatibility": "FULL"}
    assert client.get_compatibility("a/b") == "FULL"
    assert client.set_config("a/b", ServerConfig(compatibility_group="major")) == {"compatibilityGroup": "major"}
    config = client.get_config("a/b")
    assert (config.compatibility_group, str(config.compatibility_level)) == ("major", "FULL")
    assert client.delete_config("a/b").compatibility_group == "major"
    assert client.get_global_mode() == "READWRITE"
    assert client.update_mode("a/b", "READONLY") == "READONLY"
    assert client.get_mode("a/b") == "READONLY"
    assert client.delete_mode("a/b") == "READONLY"
    assert client.get_contexts() == ["."]
    assert client.delete_version("a/b", 1) == 1
    assert client.get_subjects(deleted=True) == ["a/b"]
    assert client.delete_version("a/b", 1, permanent=True) == 1
    assert client.get_subjects(deleted=True) == []


def test_the_other_python_client(live_server: Any, raw_targets: None, token: Callable[[str], str]) -> None:
    login = {"url": live_server.url, "auth": BasicAuth("admin", token("admin"))}
    client = OtherClient(**login)
    old, new = other.AvroSchema(ORDER), other.AvroSchema(ORDER_NOTE)
    serializer = AvroMessageSerializer(client)
    written = serializer.encode_record_with_schema("orders-value", old, {"id": 7})
    assert AvroMessageSerializer(OtherClient(**login)).decode_message(written) == {"id": 7}
    assert client.test_compatibility("orders-value", new)
    assert client.register("orders-value", new) == 2
    assert client.get_subjects() == ["orders-value"]
    assert client.get_versions("orders-value") == [1, 2]
    assert client.get_schema("orders-value").version == 2
    assert client.check_version("orders-value", old).version == 1
    assert client.check_version("orders-value", other.AvroSchema(ORDER_TOTAL)) is None
    assert [(item.subject, item.version) for item in client.get_schema_subject_versions(1)] == [("orders-value", 1)]
    assert client.update_compatibility("FULL", "orders-value") is True
    assert client.get_compatibility("orders-value") == "FULL"
    assert client.delete_version("orders-value", 1) == 1
    assert client.delete_subject("orders-value") == [2]


ORDER_JSON = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


@pytest.mark.parametrize(
    "conf", [{}, {"auto.register.schemas": False}, BY_LATEST, {"normalize.schemas": True}], ids=str
)
def test_json_schema(connect: Callable[[], SchemaRegistryClient], conf: dict[str, Any]) -> None:
    text = json.dumps(ORDER_JSON)
    if not conf.get("auto.register.schemas", True):
        connect().register_schema("orders-value", Schema(text, "JSON"))
    written = JSONSerializer(text, connect(), conf=conf)({"id": 7}, VALUE)
    assert JSONDeserializer(text)(written, VALUE) == {"id": 7}
    assert JSONDeserializer(None, schema_registry_client=connect())(written, VALUE) == {"id": 7}
    assert connect().get_latest_version("orders-value").schema.schema_type == "JSON"


@pytest.mark.requirement("GOO-5")
def test_json_schema_with_references(connect: Callable[[], SchemaRegistryClient]) -> None:
    address = {"type": "object", "properties": {"city": {"type": "string"}}}
    connect().register_schema("address", Schema(json.dumps(address), "JSON"))
    customer = json.dumps({"type": "object", "properties": {"home": {"$ref": "address.json"}}})
    schema = Schema(customer, "JSON", [SchemaReference("address.json", "address", 1)])
    written = JSONSerializer(schema, connect())({"home": {"city": "Wien"}}, VALUE)
    read = JSONDeserializer(None, schema_registry_client=connect())(written, VALUE)
    assert read == {"home": {"city": "Wien"}}


def messages() -> tuple[Any, Any]:
    """The message classes Address and Customer, of two files, the second of which imports the first."""
    text, message = descriptor_pb2.FieldDescriptorProto.TYPE_STRING, descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
    one = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
    address = descriptor_pb2.FileDescriptorProto(name="demo/address.proto", package="demo", syntax="proto3")
    address.message_type.add(name="Address").field.add(name="city", number=1, type=text, label=one, json_name="city")
    customer = descriptor_pb2.FileDescriptorProto(
        name="demo/customer.proto", package="demo", syntax="proto3", dependency=["demo/address.proto"]
    )
    customer.message_type.add(name="Customer").field.add(
        name="home", number=1, type=message, type_name=".demo.Address", label=one, json_name="home"
    )
    pool = descriptor_pool.DescriptorPool()
    for file in (address, customer):
        pool.Add(file)
    found = [pool.FindMessageTypeByName(f"demo.{name}") for name in ("Address", "Customer")]
    return tuple(message_factory.GetMessageClass(item) for item in found)  # type: ignore[return-value]


@pytest.mark.requirement("GOO-5")
@pytest.mark.parametrize("conf", [{}, {"normalize.schemas": True}], ids=str)
def test_protobuf_with_references(connect: Callable[[], SchemaRegistryClient], conf: dict[str, Any]) -> None:
    address, customer = messages()
    sent = customer(home=address(city="Wien"))
    written = ProtobufSerializer(customer, connect(), conf={"use.deprecated.format": False, **conf})(sent, VALUE)
    client = connect()
    assert client.get_subjects() == ["demo/address.proto", "orders-value"]
    stored = client.get_latest_version("orders-value")
    assert stored.schema.schema_type == "PROTOBUF"
    assert "message Customer" in stored.schema.schema_str
    read = ProtobufDeserializer(customer, {"use.deprecated.format": False}, client)(written, VALUE)
    assert read.home.city == "Wien"
    without = {"auto.register.schemas": False, "use.deprecated.format": False, **conf}
    again = ProtobufSerializer(customer, connect(), conf=without)(sent, VALUE)
    assert again == written
    latest = {**BY_LATEST, "use.deprecated.format": False}
    assert ProtobufSerializer(customer, connect(), conf=latest)(sent, VALUE) == written


def test_topics_use_subjects(connect: Callable[[], SchemaRegistryClient]) -> None:
    """The client's own strategy finds the subject that its topic owns, or that it shares with others."""
    client, other = connect(), connect()
    made = client.create_association(
        AssociationCreateOrUpdateRequest(
            resource_name="orders",
            resource_namespace="lkc-1",
            resource_id="id-1",
            associations=[AssociationCreateOrUpdateInfo(association_type="value", schema=Schema(ORDER, "AVRO"))],
        )
    )
    assert made.associations is not None
    (info,) = made.associations
    assert (info.subject, info.lifecycle, info.schema.schema_str) == (":.lkc-1:orders-value", "STRONG", ORDER)
    (found,) = other.get_associations_by_resource_name("orders", "-", "topic", ["value"])
    assert (found.subject, found.resource_id, found.guid is not None) == (":.lkc-1:orders-value", "id-1", True)
    options = {"auto.register.schemas": False, "use.latest.version": True, "subject.name.strategy.type": "ASSOCIATED"}
    message = AvroSerializer(other, conf=options)({"id": 7}, VALUE)
    assert AvroDeserializer(connect())(message, VALUE) is not None
    assert other.get_latest_version(":.lkc-1:orders-value").version == 1
    with pytest.raises(SchemaRegistryError) as refused:
        client.delete_subject(":.lkc-1:orders-value")
    assert (refused.value.http_status_code, refused.value.error_code) == (409, 40904)
    with pytest.raises(SchemaRegistryError) as refused:
        client.delete_associations("id-1")
    assert refused.value.error_code == 40908
    client.delete_associations("id-1", cascade_lifecycle=True)
    assert connect().get_associations_by_resource_name("orders", "-") == []
    assert client.get_subjects(deleted=True) == []


def test_without_associations_the_clients_take_the_topics_name(connect: Callable[[], SchemaRegistryClient]) -> None:
    client = connect()
    AvroSerializer(client, ORDER, conf={"subject.name.strategy.type": "ASSOCIATED"})({"id": 7}, VALUE)
    assert client.get_subjects() == ["orders-value"]
    client.create_association(
        AssociationCreateOrUpdateRequest(
            resource_name="orders",
            resource_namespace="lkc-1",
            resource_id="id-1",
            associations=[AssociationCreateOrUpdateInfo(subject="orders-value", association_type="value")],
        )
    )
    (found,) = client.get_associations_by_resource_name("orders", "lkc-1")
    assert (found.subject, found.resource_type, found.frozen) == ("orders-value", "topic", False)


def round_trip(client: SchemaRegistryClient, schema_type: str, conf: dict[str, Any]) -> Any:
    """What one object that both serializes and deserializes gets back of `{"id": 7}`, or of the city of a customer."""
    if schema_type == "AVRO":
        return AvroDeserializer(client)(AvroSerializer(client, ORDER, conf=conf)({"id": 7}, VALUE), VALUE)
    if schema_type == "JSON":
        text = json.dumps(ORDER_JSON)
        written = JSONSerializer(text, client, conf=conf)({"id": 7}, VALUE)
        return JSONDeserializer(None, schema_registry_client=client)(written, VALUE)
    address, customer = messages()
    old_format = {"use.deprecated.format": False}
    written = ProtobufSerializer(customer, client, conf={**old_format, **conf})(
        customer(home=address(city="Wien")), VALUE
    )
    return ProtobufDeserializer(customer, old_format, client)(written, VALUE).home.city


@pytest.mark.parametrize("conf", [{}, {"normalize.schemas": True}, {"auto.register.schemas": False}], ids=str)
@pytest.mark.parametrize("schema_type", ["AVRO", "JSON", "PROTOBUF"])
def test_one_object_serializes_and_deserializes(
    connect: Callable[[], SchemaRegistryClient], schema_type: str, conf: dict[str, Any]
) -> None:
    client = connect()
    if not conf.get("auto.register.schemas", True):
        round_trip(connect(), schema_type, {})
    expected = "Wien" if schema_type == "PROTOBUF" else {"id": 7}
    assert round_trip(client, schema_type, conf) == expected
    assert round_trip(client, schema_type, conf) == expected

"""Drives one release of confluent-kafka against a server: one object both serializes and deserializes.

    python main.py AVRO|JSON|PROTOBUF [NAME=VALUE ...]

PYTHONPATH names the release, REGISTRY_URL and REGISTRY_TOKEN say where and who, further words are settings of the
serializer. It prints one JSON line: the release, what was read the first and the second time, and the schema's GUID
where the release knows one.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from typing import Any

import confluent_kafka
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

AVRO = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
JSON = '{"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}'
VALUE = SerializationContext("orders", MessageField.VALUE)
NEW_FORMAT = {"use.deprecated.format": False}


def both_ways(client: SchemaRegistryClient, schema_type: str, settings: dict[str, Any]) -> Any:
    """What the client reads of the message that it wrote."""
    if schema_type == "AVRO":
        written = AvroSerializer(client, AVRO, conf=settings)({"id": 7}, VALUE)
        return AvroDeserializer(client)(written, VALUE)
    if schema_type == "JSON":
        written = JSONSerializer(JSON, client, conf=settings)({"id": 7}, VALUE)
        return JSONDeserializer(JSON)(written, VALUE)
    order = order_message()
    written = ProtobufSerializer(order, client, {**NEW_FORMAT, **settings})(order(id=7), VALUE)
    return {"id": ProtobufDeserializer(order, NEW_FORMAT, client)(written, VALUE).id}


@cache
def order_message() -> Any:
    """The class of a message with one number."""
    number, one = descriptor_pb2.FieldDescriptorProto.TYPE_INT64, descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
    file = descriptor_pb2.FileDescriptorProto(name="demo/order.proto", package="demo", syntax="proto3")
    file.message_type.add(name="Order").field.add(name="id", number=1, type=number, label=one, json_name="id")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("demo.Order"))


def main() -> None:
    """Writes and reads twice, with one object."""
    settings = {name: value == "true" for name, _, value in (word.partition("=") for word in sys.argv[2:])}
    login = f"tests:{os.environ['REGISTRY_TOKEN']}"
    client = SchemaRegistryClient({"url": os.environ["REGISTRY_URL"], "basic.auth.user.info": login})
    reads = [both_ways(client, sys.argv[1], settings) for _ in range(2)]
    guid = getattr(client.get_latest_version("orders-value"), "guid", None)
    print(json.dumps({"release": confluent_kafka.version()[0], "reads": reads, "guid": guid}))


main()

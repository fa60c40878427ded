"""Checkpoints to measure with: the metadata of a query that has evolved many times, as Spark 4.2 writes it."""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

_SPARK: Final = "org.apache.spark.sql.execution.streaming.state"
_CONF: Final = {
    "spark.sql.streaming.stateStore.providerClass": f"{_SPARK}.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.encodingFormat": "avro",
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.streaming.multipleWatermarkPolicy": "min",
    "spark.sql.streaming.aggregation.stateFormatVersion": "2",
    "spark.sql.streaming.join.stateFormatVersion": "2",
}
_TYPES: Final = ("string", "long", "double", "timestamp", "boolean")
_ENCODER: Final = '{"keyStateEncoderType":"NoPrefixKeyStateEncoderSpec"}'
RETAINED: Final = 100  # batches that Spark keeps unless told otherwise


def write_checkpoint(folder: Path, *, schema_files: int, variables: int, fields: int = 10) -> Path:
    """A checkpoint of one transformWithState operator: each schema file adds a field to one variable after another."""
    batches = [number * 10 for number in range(schema_files)]
    schemas = folder / "state" / "0" / "_stateSchema" / "default"
    metadata = folder / "state" / "0" / "_metadata" / "v2"
    for place in (schemas, metadata, folder / "offsets", folder / "commits"):
        place.mkdir(parents=True)
    (folder / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    written = []
    for batch, content in zip(batches, _schema_files(schema_files, variables, fields), strict=True):
        path = schemas / f"{batch}_{uuid.uuid4()}"
        path.write_bytes(content)
        written.append(f"file:{path}")
        if batch >= batches[-1] - RETAINED:
            (metadata / str(batch)).write_text(f"v2\n{json.dumps(_operator(written, variables))}")
    for batch in range(max(0, batches[-1] - RETAINED), batches[-1] + 1):
        write_batch(folder, batch)
    return folder


def write_batch(folder: Path, batch: int) -> None:
    """Plan and commit a batch of one Kafka source with 16 partitions."""
    described = {"batchWatermarkMs": 0, "batchTimestampMs": 1_790_000_000_000 + batch * 10_000, "conf": _CONF}
    offsets = {"orders": {str(partition): batch * 100 for partition in range(16)}}
    (folder / "offsets" / str(batch)).write_text(f"v1\n{json.dumps(described)}\n{json.dumps(offsets)}")
    (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


def _schema_files(count: int, variables: int, fields: int) -> Iterator[bytes]:
    added = [0] * variables
    for number in range(count):
        if number:
            added[number % variables] += 1
        families = [_family(f"variable_{at:03d}", fields + more, more) for at, more in enumerate(added)]
        yield _text("v3") + struct.pack(">i", len(families)) + b"".join(families)


def _family(name: str, fields: int, value_id: int) -> bytes:
    value = _struct({f"field_{number}": _TYPES[number % len(_TYPES)] for number in range(fields)})
    key = _struct({"customer_id": "string"})
    parts = (_text(name), struct.pack(">h", 0), _chunked(key), struct.pack(">h", value_id), _chunked(value))
    return b"".join(parts) + _chunked(_ENCODER) + _chunked("{    }")


def _struct(columns: dict[str, str]) -> str:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"))


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")


def _chunked(text: str) -> bytes:
    return struct.pack(">i", 1) + _text(text)


def _operator(files: list[str], variables: int) -> dict[str, Any]:
    names = [f"variable_{number:03d}" for number in range(variables)]
    listed = [{"stateName": name, "stateVariableType": "ValueState", "ttlEnabled": False} for name in names]
    store = {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": 200, "stateSchemaFilePaths": files}
    return {
        "operatorInfo": {"operatorId": 0, "operatorName": "transformWithStateExec"},
        "stateStoreInfo": [store],
        "operatorPropertiesJson": json.dumps({"timeMode": "NoTime", "outputMode": "Update", "stateVariables": listed}),
    }

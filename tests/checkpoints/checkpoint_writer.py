"""Writing schema files and checkpoints as Spark does, to make those that no fixture can show."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

ENCODER = '{"keyStateEncoderType":"NoPrefixKeyStateEncoderSpec"}'
CONF = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.encodingFormat": "avro",
}


def utf(text: str) -> bytes:
    """`DataOutputStream.writeUTF`, for characters whose modified UTF-8 is plain UTF-8."""
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded


def chunked(text: str, size: int = 65_535) -> bytes:
    """A long text as Spark cuts it."""
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return struct.pack(">i", len(pieces)) + b"".join(utf(piece) for piece in pieces)


def struct_type(**fields: str) -> str:
    """A StructType in JSON with fields of simple types."""
    listed = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields.items()]
    return json.dumps({"type": "struct", "fields": listed}, separators=(",", ":"))


def family(name: str, value: str, value_id: int = 0, key: str | None = None) -> bytes:
    """One column family of a v3 file."""
    key_schema = key or struct_type(id="long")
    parts = (utf(name), struct.pack(">h", 0), chunked(key_schema), struct.pack(">h", value_id), chunked(value))
    return b"".join(parts) + chunked(ENCODER) + chunked("{    }")


def v3(*families: bytes) -> bytes:
    """A v3 schema file."""
    return utf("v3") + struct.pack(">i", len(families)) + b"".join(families)


def write_state(folder: Path) -> Path:
    """Put the changes of every committed batch into each store of a checkpoint that has no file of state, in as many
    partitions as its metadata has; they hold no rows.
    """
    last = max((int(path.name) for path in (folder / "commits").glob("[0-9]*")), default=None)
    for operator in (folder / "state").glob("[0-9]*") if last is not None else ():
        numbers = {path.name for path in operator.glob("[0-9]*") if path.is_dir()} | set(
            map(str, _partitions(operator))
        )
        stores = sorted({path.name for path in operator.glob("[0-9]*/[a-z]*") if path.is_dir()}) or [""]
        for store in (operator / number / name for number in numbers for name in stores):
            store.mkdir(parents=True, exist_ok=True)
            if not any(path.suffix in (".snapshot", ".zip", ".delta", ".changelog") for path in store.iterdir()):
                for version in range(1, last + 2):
                    (store / f"{version}.delta").write_bytes(b"none")
    return folder


def _partitions(operator: Path) -> range:
    texts = [path.read_text("utf-8", "replace") for path in (operator / "_metadata").rglob("*") if path.is_file()]
    return range(max([1, *(int(number) for text in texts for number in re.findall(r'"numPartitions":\s*(\d+)', text))]))


def write_checkpoint(folder: Path, files: Iterable[tuple[int, bytes]], variables: Iterable[str] = ("totals",)) -> Path:
    """A checkpoint of one transformWithState operator with the given schema files, each (batch, content)."""
    written = list(files)
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"00000000-0000-4000-8000-000000000001"}')
    last = max((batch for batch, _ in written), default=0)
    described = {"batchWatermarkMs": 0, "batchTimestampMs": 1_780_000_000_000, "conf": CONF}
    for batch in range(max(0, last - 1), last + 1):  # Spark starts only with the one before the newest, too
        timed = described | {"batchTimestampMs": 1_780_000_000_000 - last + batch}
        (folder / "offsets" / str(batch)).write_text(f"v1\n{json.dumps(timed)}\n{{}}")
        (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    schemas = folder / "state" / "0" / "_stateSchema" / "default"
    schemas.mkdir(parents=True)
    paths = []
    for batch, content in written:
        path = schemas / f"{batch}_00000000-0000-4000-8000-{batch:012d}"
        path.write_bytes(content)
        paths.append(f"file:{path}")
    operator = {
        "operatorInfo": {"operatorId": 0, "operatorName": "transformWithStateExec"},
        "stateStoreInfo": [
            {"storeName": "default", "numColsPrefixKey": 0, "numPartitions": 2, "stateSchemaFilePaths": paths}
        ],
        "operatorPropertiesJson": json.dumps(
            {
                "timeMode": "NoTime",
                "stateVariables": [
                    {"stateName": name, "stateVariableType": "ValueState", "ttlEnabled": False} for name in variables
                ],
            }
        ),
    }
    metadata = folder / "state" / "0" / "_metadata" / "v2"
    metadata.mkdir(parents=True)
    (metadata / str(last)).write_text(f"v2\n{json.dumps(operator)}")
    return write_state(folder)


def write_built_in(
    folder: Path,
    stores: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]],
    *,
    schema: int,
    operator: str = "",
    settings: Mapping[str, str] | None = None,
) -> Path:
    """A checkpoint of one built-in operator with one partition, as Sparks before 4.2 leave it; `stores` maps a name to
    the columns of key and value. With a name the operator has metadata of format 1, without one it has none.
    """
    for name in ("offsets", "commits", "state/0/0"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"00000000-0000-4000-8000-000000000002"}')
    described = {"batchWatermarkMs": 0, "batchTimestampMs": 1_700_000_000_000, "conf": dict(settings or {})}
    (folder / "offsets/0").write_text(f'v1\n{json.dumps(described)}\n{{"clicks":{{"0":12}}}}')
    (folder / "commits/0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    for name, (key, value) in stores.items():
        place = folder / "state/0/0" / ("" if name == "default" else name) / "_metadata"
        place.mkdir(parents=True)
        texts = [struct_type(**key), struct_type(**value)]
        written = utf("v1") + b"".join(map(utf, texts)) if schema == 1 else utf("v2") + b"".join(map(chunked, texts))
        (place / "schema").write_bytes(written)
    if operator:
        listed = [{"storeName": name, "numColsPrefixKey": 0, "numPartitions": 1} for name in stores]
        metadata = {"operatorInfo": {"operatorId": 0, "operatorName": operator}, "stateStoreInfo": listed}
        (folder / "state/0/_metadata").mkdir()
        (folder / "state/0/_metadata/metadata").write_text(f"v1\n{json.dumps(metadata)}")
    return write_state(folder)

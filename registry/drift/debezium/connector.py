"""A connector's configuration as typed input, from Kafka Connect's REST API.

Only the properties read here are kept, as a configuration also has passwords. Single message transforms are understood,
or reported as "not understood: …".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from registry.drift.debezium.filters import (
    ColumnFilter,
    KeyColumns,
    Pattern,
    PatternNotUnderstood,
    TableFilter,
    compile_pattern,
)
from registry.drift.debezium.tables import Mode
from registry.errors import InvalidSource

MAX_TRANSFORMS: Final = 50
Effect = Literal["unwrap", "route", "logical_table", "none", "unknown"]

#: a transform's class → its effect on topics, keys and values
EFFECTS: Final[dict[str, Effect]] = {
    "io.debezium.transforms.ExtractNewRecordState": "unwrap",
    "io.debezium.transforms.UnwrapFromEnvelope": "unwrap",
    "io.debezium.transforms.ByLogicalTableRouter": "logical_table",
    "org.apache.kafka.connect.transforms.RegexRouter": "route",
    "org.apache.kafka.connect.transforms.InsertHeader": "none",
    "org.apache.kafka.connect.transforms.DropHeaders": "none",
}
_ROUTE_PROPERTIES: Final = {"route": ("regex", "replacement"), "logical_table": ("topic.regex", "topic.replacement")}


@dataclass(frozen=True)
class Transform:
    """One transform. `added_key_field` is added to a logical table's key, `added_fields` to unwrapped rows."""

    alias: str
    kind: str
    effect: Effect
    regex: Pattern | None = None
    replacement: str = ""
    added_key_field: str = ""
    added_fields: tuple[str, ...] = ()
    keeps_tombstones: bool = True

    @property
    def understood(self) -> bool:
        """Return whether its effect is known."""
        return self.effect != "unknown"

    @property
    def unwraps(self) -> bool:
        """Return whether it extracts the row from the envelope."""
        return self.effect == "unwrap"

    @property
    def merges(self) -> bool:
        """Return whether its purpose is to route several tables to one topic."""
        return self.effect in ("route", "logical_table")

    def route(self, topic: str) -> str | None:
        """Return the topic it routes to, or the same topic; None if its pattern can't be matched."""
        if self.regex is None:
            return topic
        try:
            if not self.regex.matches(topic):
                return topic
            return self.regex.replace_first(topic, self.replacement) or topic
        except PatternNotUnderstood:
            return None


def read_transforms(config: Mapping[str, str]) -> tuple[tuple[Transform, ...], list[str]]:
    """Return the transforms in order, and a description of what isn't understood."""
    aliases = [alias.strip() for alias in config.get("transforms", "").split(",") if alias.strip()]
    doubts: list[str] = []
    if len(aliases) > MAX_TRANSFORMS:
        doubts.append(f"transforms: more than {MAX_TRANSFORMS}")
    return tuple(_read(alias, config, doubts) for alias in aliases[:MAX_TRANSFORMS]), doubts


def _read(alias: str, config: Mapping[str, str], doubts: list[str]) -> Transform:
    own = {name.removeprefix(f"transforms.{alias}."): value for name, value in config.items()
           if name.startswith(f"transforms.{alias}.")}  # fmt: skip
    kind = own.get("type", "").partition("$")[0].strip()
    effect = EFFECTS.get(kind, "unknown")
    if effect == "unknown":
        doubts.append(f"transforms.{alias[:60]} ({kind[:120] or 'no type'})")
        return Transform(alias, kind, "unknown")
    if own.get("predicate") and effect not in ("none", "unwrap"):
        doubts.append(f"transforms.{alias[:60]}: it depends on the predicate {own['predicate'][:60]}")
        return Transform(alias, kind, "unknown")
    if effect == "unwrap":
        return _unwrap(alias, kind, own)
    if effect == "none":
        return Transform(alias, kind, effect)
    regex, replacement = (own.get(name, "") for name in _ROUTE_PROPERTIES[effect])
    try:
        pattern = compile_pattern(regex)
    except PatternNotUnderstood as error:
        doubts.append(f"transforms.{alias[:60]}: its pattern {regex[:80]} ({error})")
        return Transform(alias, kind, "unknown")
    unique = effect == "logical_table" and own.get("key.enforce.uniqueness", "true").lower() != "false"
    added = own.get("key.field.name", "__dbz__physicalTableIdentifier") if unique else ""
    return Transform(alias, kind, effect, pattern, replacement, added_key_field=added)


def _unwrap(alias: str, kind: str, own: Mapping[str, str]) -> Transform:
    """Read ExtractNewRecordState: `add.fields` (`op`, `source.ts_ms`, `name:alias`) and the handling of deletes."""
    prefix = own.get("add.fields.prefix", "__")
    added = []
    for part in own.get("add.fields", "").split(","):
        name, _, renamed = part.strip().partition(":")
        if name:
            added.append(prefix + (renamed or name.replace(".", "_")))
    handling = own.get("delete.tombstone.handling.mode") or own.get("delete.handling.mode", "tombstone")
    if handling.startswith("rewrite"):
        added.append("__deleted")
    keeps = handling in ("tombstone", "rewrite-with-tombstone") or own.get("drop.tombstones") == "false"
    return Transform(alias, kind, "unwrap", added_fields=tuple(added), keeps_tombstones=keeps)


CONNECTOR_CLASS: Final = "io.debezium.connector.postgresql.PostgresConnector"
MAX_CONFIG: Final = 2_000  # properties
MAX_TRACE: Final = 4_000

Decimals = Literal["precise", "double", "string"]
Times = Literal[
    "adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds", "structured"
]
Binaries = Literal["bytes", "base64", "base64-url-safe", "hex"]
Converter = Literal["json_with_schema", "json", "avro", "json_schema", "protobuf", "other", "worker"]
_OPERATIONS: Final = frozenset("cudt")


@dataclass(frozen=True)
class ConnectorConfig:
    """What determines a connector's events; defaults are Debezium's.

    `not_understood` describes the parts of the configuration that can't be taken into account.
    """

    name: str
    prefix: str
    delimiter: str = "."
    database: str = ""
    tables: TableFilter = field(default_factory=TableFilter)
    columns: ColumnFilter = field(default_factory=ColumnFilter)
    key_columns: KeyColumns = field(default_factory=KeyColumns)
    transforms: tuple[Transform, ...] = ()
    key_converter: Converter = "worker"
    value_converter: Converter = "worker"
    decimals: Decimals = "precise"
    times: Times = "adaptive"
    binaries: Binaries = "bytes"
    hstore: Literal["json", "map"] = "json"
    intervals: Literal["numeric", "string"] = "numeric"
    money_digits: int = 2
    unknown_types: bool = False
    skipped: frozenset[str] = frozenset("t")
    tombstones: bool = True
    snapshot_mode: str = "initial"
    schema_names: Mode = "none"
    field_names: Mode = "none"
    slot: str = "debezium"
    publication: str = "dbz_publication"
    plugin: str = "decoderbufs"
    not_understood: tuple[str, ...] = ()

    @property
    def unwrapped(self) -> bool:
        """Return whether values are rows instead of envelopes."""
        return any(transform.unwraps for transform in self.transforms)

    def topic_after(self, topic: str) -> str | None:
        """Return the topic after the transforms; None if one of them isn't understood."""
        for transform in self.transforms:
            if not transform.understood:
                return None
            routed = transform.route(topic)
            if routed is None:
                return None
            topic = routed
        return topic


@dataclass(frozen=True)
class TaskStatus:
    """A task of the connector: its state, and the trace of a failed one (truncated)."""

    number: int
    state: str
    worker: str = ""
    trace: str = ""


@dataclass(frozen=True)
class ConnectorStatus:
    """The state of the connector and of its tasks: a RUNNING connector may have a FAILED task."""

    state: str
    worker: str = ""
    trace: str = ""
    tasks: tuple[TaskStatus, ...] = ()

    @property
    def failed_tasks(self) -> tuple[TaskStatus, ...]:
        """Return the tasks in state FAILED."""
        return tuple(task for task in self.tasks if task.state == "FAILED")


def read_config(properties: Mapping[str, object]) -> ConnectorConfig:
    """Read the configuration. Raises InvalidSource for another type of connector, or one without a topic prefix."""
    if len(properties) > MAX_CONFIG:
        raise InvalidSource(f"The connector's configuration has more than {MAX_CONFIG} properties.")
    config = {name: value for name, value in properties.items() if isinstance(value, str)}
    connector_class = config.get("connector.class", "")
    if connector_class not in (CONNECTOR_CLASS, "PostgresConnector", "Postgres", "PostgreSql"):
        raise InvalidSource(
            f"The connector {config.get('name', '')[:80]!r} is a {connector_class[:120]!r}; only Debezium's PostgreSQL"
            f" connector ({CONNECTOR_CLASS}) can be read."
        )
    prefix = config.get("topic.prefix") or config.get("database.server.name", "")
    if not prefix:
        raise InvalidSource("The connector's configuration has no topic.prefix.")
    tables, columns, keys = TableFilter.read(config), ColumnFilter.read(config), KeyColumns.read(config)
    transforms, doubts = read_transforms(config)
    reader = _ChoiceReader(config)
    return ConnectorConfig(
        name=config.get("name", ""),
        prefix=prefix,
        delimiter=config.get("topic.delimiter", "."),
        database=config.get("database.dbname", ""),
        tables=tables,
        columns=columns,
        key_columns=keys,
        transforms=transforms,
        key_converter=converter_of(config, "key"),
        value_converter=converter_of(config, "value"),
        decimals=reader.one("decimal.handling.mode", ("precise", "double", "string")),
        times=reader.one("time.precision.mode", _TIMES),
        binaries=reader.one("binary.handling.mode", ("bytes", "base64", "base64-url-safe", "hex")),
        hstore=reader.one("hstore.handling.mode", ("json", "map")),
        intervals=reader.one("interval.handling.mode", ("numeric", "string")),
        money_digits=reader.number("money.fraction.digits", 2),
        unknown_types=config.get("include.unknown.datatypes", "false").strip().lower() == "true",
        skipped=_operations(config.get("skipped.operations", "t")),
        tombstones=config.get("tombstones.on.delete", "true").strip().lower() != "false",
        snapshot_mode=config.get("snapshot.mode", "initial"),
        schema_names=reader.one("schema.name.adjustment.mode", ("none", "avro", "avro_unicode")),
        field_names=reader.one("field.name.adjustment.mode", ("none", "avro", "avro_unicode")),
        slot=config.get("slot.name", "debezium"),
        publication=config.get("publication.name", "dbz_publication"),
        plugin=config.get("plugin.name", "decoderbufs"),
        not_understood=(
            *tables.doubts,
            *columns.doubts,
            *keys.doubts,
            *doubts,
            *reader.doubts,
            *_unsupported_properties(config),
        ),
    )


_TIMES: Final[tuple[Times, ...]] = (
    "adaptive",
    "adaptive_time_microseconds",
    "connect",
    "isostring",
    "microseconds",
    "nanoseconds",
    "structured",
)
#: properties that change names or columns in a way that isn't supported here → their effect
_UNSUPPORTED: Final = {
    "topic.naming.strategy": "a custom topic naming strategy",
    "converters": "custom converters change column types",
    "post.processors": "post-processors change the events",
}
_KNOWN_STRATEGIES: Final = ("io.debezium.schema.SchemaTopicNamingStrategy",)


def _unsupported_properties(config: Mapping[str, str]) -> list[str]:
    values = ((name, config.get(name, "").strip(), why) for name, why in _UNSUPPORTED.items())
    return [f"{name}={value[:80]}: {why}" for name, value, why in values if value and value not in _KNOWN_STRATEGIES]


class _ChoiceReader:
    """Reads properties with a fixed set of values; any other value is a doubt, and the default is used."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self.config = config
        self.doubts: list[str] = []

    def one(self, name: str, choices: Sequence[str]) -> Any:
        value = self.config.get(name, choices[0]).strip().lower()
        if value in choices:
            return value
        self.doubts.append(f"{name}={value[:60]}: unknown value")
        return choices[0]

    def number(self, name: str, default: int) -> int:
        text = self.config.get(name, str(default)).strip()
        if text.isascii() and text.isdigit() and len(text) < 4:
            return int(text)
        self.doubts.append(f"{name}={text[:60]}: not a number")
        return default


def _operations(text: str) -> frozenset[str]:
    """Return the operations of `skipped.operations`; `none` skips nothing."""
    return frozenset(part.strip() for part in text.lower().split(",")) & _OPERATIONS


#: part of a converter's class → what it writes; the first match counts
_CONVERTERS: Final[tuple[tuple[str, Converter], ...]] = (
    ("jsonschema", "json_schema"),
    ("protobuf", "protobuf"),
    ("avro", "avro"),
    ("connect.json.jsonconverter", "json"),
)


def converter_of(config: Mapping[str, str], side: Literal["key", "value"]) -> Converter:
    """Return what a side's converter writes; `worker` if the worker's own setting decides, which can't be read."""
    name = config.get(f"{side}.converter", "").strip()
    if not name:
        return "worker"
    lowered = name.lower()
    converter: Converter = next((kind for part, kind in _CONVERTERS if part in lowered), "other")
    with_schema = config.get(f"{side}.converter.schemas.enable", "true").strip().lower() != "false"
    return "json_with_schema" if converter == "json" and with_schema else converter


#: text that looks like a secret in a trace, which may quote a configuration or an address
_SECRET: Final = re.compile(
    r"(?i)\b(\w{0,40}(?:password|passwd|secret|token|api[._-]?key))(\s{0,3}[=:]\s{0,3})[^\s,;&]{1,500}"
)
_LOGIN: Final = re.compile(r"//[^\s/@]{1,200}@")


def _trace(trace: object) -> str:
    """Return a trace that may be stored: truncated, and without text that looks like a secret."""
    return _LOGIN.sub("//…@", _SECRET.sub(r"\1\2…", str(trace or "")[:MAX_TRACE]))


def read_status(document: Mapping[str, object]) -> ConnectorStatus:
    """Read the status; missing parts are empty."""
    connector = document.get("connector")
    own = connector if isinstance(connector, Mapping) else {}
    listed = document.get("tasks")
    tasks = [task for task in listed if isinstance(task, Mapping)] if isinstance(listed, list) else []
    return ConnectorStatus(
        state=str(own.get("state", ""))[:40],
        worker=str(own.get("worker_id", ""))[:200],
        trace=_trace(own.get("trace")),
        tasks=tuple(
            TaskStatus(
                number=task["id"] if isinstance(task.get("id"), int) else index,
                state=str(task.get("state", ""))[:40],
                worker=str(task.get("worker_id", ""))[:200],
                trace=_trace(task.get("trace")),
            )
            for index, task in enumerate(tasks[:100])
        ),
    )

"""The connector's single message transforms: understood, or said "not understood: …"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from registry.drift.debezium.patterns import Pattern, PatternNotUnderstood, compile_pattern

MAX_TRANSFORMS: Final = 50
Effect = Literal["unwrap", "route", "logical_table", "none", "unknown"]

#: a transform's class → what it does to topics, keys and values
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
    """One transform. `added_key_field` is what a logical table's key gets, `added_fields` what unwrapped rows get."""

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
        """Whether what it does is known."""
        return self.effect != "unknown"

    @property
    def unwraps(self) -> bool:
        """Whether it takes the row out of the envelope."""
        return self.effect == "unwrap"

    @property
    def merges(self) -> bool:
        """Whether it is there to put several tables onto one topic."""
        return self.effect in ("route", "logical_table")

    def route(self, topic: str) -> str | None:
        """The topic that it routes to, the same where it doesn't; None where its pattern can't be matched."""
        if self.regex is None:
            return topic
        try:
            if not self.regex.matches(topic):
                return topic
            return self.regex.replace_first(topic, self.replacement) or topic
        except PatternNotUnderstood:
            return None


def read_transforms(config: Mapping[str, str]) -> tuple[tuple[Transform, ...], list[str]]:
    """The transforms in their order, and what of them isn't understood, in words."""
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
        doubts.append(f"transforms.{alias[:60]} ({kind[:120] or 'without a type'})")
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
    """ExtractNewRecordState: `add.fields` (`op`, `source.ts_ms`, `name:alias`) and the mark of deleted rows."""
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

"""The fields of the forms of sources, in groups by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings

from dashboard.pages.numbers import whole_number
from dashboard.pages.sources_words import MODES, lasting
from dashboard.presenters.drift_parts import FieldGroup
from dashboard.presenters.frame import Choice, Field
from dashboard.presenters.looks import SourceKind
from registry.checkpoints.locations import FILE_SYSTEMS
from registry.drift import selectors
from registry.subjects.selectors import list_registries

INTERVALS: Final = ("", "60", "300", "900", "3600", "21600", "86400")
NEVER: Final = "only when somebody asks"
#: numbers of a source with what they say; those of topics alone are in _OF_TOPICS
NUMBERS: Final[Mapping[str, tuple[str, str]]] = {
    "tail_messages": ("Newest messages of each partition", "For the mode that reads the newest messages."),
    "window_seconds": ("Window, in seconds", "For the mode that reads a window of time."),
    "max_messages": ("Messages a scan, at most", ""),
    "max_bytes": ("Bytes a scan, at most", ""),
    "max_seconds": ("Seconds a scan, at most", "When a bound is reached the page says so, and the next scan goes on."),
    "clean_scans": (
        "Clean scans that resolve a finding",
        "So many scans in a row that could have seen it and did not.",
    ),
}
DEFAULTS: Final = {
    "tail_messages": 10_000,
    "window_seconds": 86_400,
    "max_messages": 1_000_000,
    "max_bytes": 2 * 1024**3,
    "max_seconds": 300,
    "clean_scans": 2,
}


def groups_of(kind: SourceKind, given: Mapping[str, str]) -> tuple[FieldGroup, ...]:
    """The fields of a new source of that kind, as far as they were filled in."""
    held, schedule = _registry(given), schedule_field(given)
    context = Field(
        name="context",
        label="Context",
        value=given.get("context", ""),
        code=True,
        placeholder=".",
        help="Whose schema ids the messages carry; empty: the default one.",
    )
    if kind is SourceKind.KAFKA_TOPIC:
        what = (
            _cluster(given),
            _servers(given),
            *patterns_fields(given),
            _name(given, "Name", "How people call it, for example orders."),
        )
        how = (held, context, mode_field(given), schedule)
        return (
            FieldGroup(title="What is read", fields=what),
            FieldGroup(title="How", fields=how),
            bounds_fields(given),
        )
    if kind is SourceKind.DEBEZIUM:
        return (
            FieldGroup(
                title="What is read",
                fields=(_name(given, "Name", "How people call it here."), _cluster(given), held, schedule),
            ),
            _connect(given),
            _database(given),
            bounds_fields(given),
        )
    if kind is SourceKind.STATE_STORE:
        note = f"{checkpoint_places()}. Its rows are read where the Spark server can open it too."
        folder = _name(given, "Checkpoint folder or address", note)
        return (FieldGroup(title="What is read", fields=(folder, held, schedule)), *store_groups(given))
    return (
        FieldGroup(
            title="What is read",
            fields=(held, schedule),
            note="The registry’s own settings, roles and versions are held against the advice for production.",
        ),
    )


def discover_groups(given: Mapping[str, str]) -> tuple[FieldGroup, ...]:
    """The fields of the search for checkpoints."""
    path = Field(
        name="path",
        label="Folder or address",
        value=given.get("path", ""),
        required=True,
        code=True,
        help=f"Where the checkpoints of your queries lie: {checkpoint_places()}.",
    )
    fields = (path, _registry(given), schedule_field(given))
    return (FieldGroup(title="Where", fields=fields), *store_groups(given))


def checkpoint_places() -> str:
    """Where checkpoints may lie, in words."""
    roots = [str(root) for root in settings.CHECKPOINT_ROOTS]
    roots += settings.CHECKPOINT_ADDRESSES if stores_allowed() else ()
    return f"Below {', '.join(roots) or 'no folder: none is allowed'}"


def stores_allowed() -> bool:
    """Whether the deployment reads checkpoints in object stores."""
    return any(FILE_SYSTEMS.get(each) == "s3" for each in settings.CHECKPOINT_PROTOCOLS)


def store_groups(given: Mapping[str, str]) -> tuple[FieldGroup, ...]:
    """How an object store is reached, folded; nothing where the deployment reads none."""
    if not stores_allowed():
        return ()
    return (
        FieldGroup(
            title="Object store",
            note="For an address such as s3://bucket/checkpoints/query. The secret is named here and kept by who runs"
            " this service; without an access key the bucket is one that anybody may read.",
            fields=(
                text_field(given, "endpoint", "Endpoint", placeholder="https://s3.eu-central-1.amazonaws.com"),
                text_field(given, "region", "Region", placeholder="us-east-1"),
                text_field(given, "access_key_id", "Access key’s id"),
                text_field(given, "store_secret", "Secret’s name"),
            ),
            folded=not given.get("endpoint"),
        ),
    )


def _name(given: Mapping[str, str], label: str, note: str) -> Field:
    return Field(name="name", label=label, value=given.get("name", ""), required=True, code=True, help=note)


def _registry(given: Mapping[str, str]) -> Field:
    choices = tuple(
        Choice(value=info.name, label=info.name, selected=info.name == given.get("registry"))
        for info in list_registries()
    )
    return Field(name="registry", label="Held against", kind="select", choices=choices, required=True)


def _cluster(given: Mapping[str, str]) -> Field:
    names = [info.name for info in selectors.list_clusters()]
    chosen = given.get("cluster", names[0] if names and not given.get("bootstrap") else "")
    return Field(
        name="cluster",
        label="Cluster",
        kind="select",
        choices=(
            *(Choice(value=name, label=name, selected=name == chosen) for name in names),
            Choice(value="", label="one that isn’t connected yet, without TLS and sign-in", selected=not chosen),
        ),
        help="With TLS or a user, connect the cluster first.",
    )


def _servers(given: Mapping[str, str]) -> Field:
    return Field(
        name="bootstrap",
        label="Bootstrap servers",
        value=given.get("bootstrap", ""),
        code=True,
        placeholder="broker-1:9092,broker-2:9092",
        help="Only for a cluster that isn’t connected yet.",
    )


def patterns_fields(given: Mapping[str, str]) -> tuple[Field, Field]:
    """Which topics, and which not."""
    return (
        Field(
            name="include",
            label="Topics",
            kind="textarea",
            rows=3,
            value=given.get("include", ""),
            code=True,
            placeholder="orders\npayments-*",
            help="A name or pattern a line; empty: all but internal ones. Subjects are found from the data.",
        ),
        Field(
            name="exclude",
            label="Without",
            kind="textarea",
            rows=2,
            value=given.get("exclude", ""),
            code=True,
            placeholder="*-changelog",
        ),
    )


def mode_field(given: Mapping[str, str]) -> Field:
    """What of the topics a scan reads."""
    chosen = given.get("mode", "since_last")
    return Field(
        name="mode",
        label="Each scan reads",
        kind="select",
        required=True,
        choices=tuple(
            Choice(value=mode, label=f"{words[:1].upper()}{words[1:]}", selected=mode == chosen)
            for mode, words in MODES.items()
        ),
    )


def schedule_field(given: Mapping[str, str]) -> Field:
    """How often it is scanned."""
    chosen = given.get("every_seconds", "300")
    values = INTERVALS if chosen in INTERVALS else (*INTERVALS, chosen)
    return Field(
        name="every_seconds",
        label="Scan",
        kind="select",
        choices=tuple(Choice(value=value, label=_interval(value), selected=value == chosen) for value in values),
    )


def _interval(value: str) -> str:
    seconds = whole_number(value)
    return f"every {lasting(seconds)}" if seconds else (NEVER if not value else value[:20])


def bounds_fields(given: Mapping[str, str]) -> FieldGroup:
    """How much a scan may do, folded."""
    numbers = tuple(
        Field(name=name, label=label, kind="number", value=str(given.get(name, DEFAULTS[name])), help=note)
        for name, (label, note) in NUMBERS.items()
    )
    kept = given.get("keep_samples", "yes")
    samples = Field(
        name="keep_samples",
        label="Samples",
        kind="select",
        choices=(
            Choice(value="yes", label="keep some, masked", selected=kept != "no"),
            Choice(value="no", label="keep none", selected=kept == "no"),
        ),
    )
    return FieldGroup(title="Bounds", fields=(*numbers, samples), folded=True)


def _connect(given: Mapping[str, str]) -> FieldGroup:
    return FieldGroup(
        title="Kafka Connect",
        fields=(
            text_field(given, "connect_url", "Address", required=True, placeholder="https://connect.example.com:8083"),
            text_field(given, "connector", "Connector", required=True),
            text_field(given, "connect_user", "User"),
            text_field(given, "connect_secret", "Secret’s name"),
        ),
    )


def _database(given: Mapping[str, str]) -> FieldGroup:
    tls = given.get("database_tls", "yes")
    return FieldGroup(
        title="Database",
        note="Optional: with it tables, registered schemas and events are held against each other.",
        fields=(
            text_field(given, "database_host", "Host"),
            Field(name="database_port", label="Port", kind="number", value=given.get("database_port", "5432")),
            text_field(given, "database_name", "Database"),
            text_field(given, "database_user", "User"),
            text_field(given, "database_secret", "Secret’s name"),
            Field(
                name="database_tls",
                label="TLS",
                kind="select",
                choices=(
                    Choice(value="yes", label="yes", selected=tls != "no"),
                    Choice(value="no", label="no", selected=tls == "no"),
                ),
            ),
        ),
    )


def text_field(given: Mapping[str, str], name: str, label: str, **more: Any) -> Field:
    """A line of text in monospace."""
    return Field(name=name, label=label, value=given.get(name, ""), code=True, **more)

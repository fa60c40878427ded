"""The fields of the forms of sources, in groups by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext

from dashboard.components.badges import SourceKind
from dashboard.components.links import whole_number
from dashboard.components.translation import later
from dashboard.components.widgets import Choice, Field
from dashboard.sources.labels import MODES, lasting
from dashboard.sources.presenters import FieldGroup
from registry.access.roles import Actor
from registry.checkpoints.filesystem import FILE_SYSTEMS
from registry.drift import selectors
from registry.subjects.selectors import registry_names

INTERVALS: Final = ("", "60", "300", "900", "3600", "21600", "86400")
NEVER: Final = later("only on demand")
#: numbers of a source with what they say; those of topics alone are in _OF_TOPICS
NUMBERS: Final[Mapping[str, tuple[str, str]]] = {
    "tail_messages": (
        later("Newest messages per partition"),
        later("For the mode that reads the newest messages."),
    ),
    "window_seconds": (later("Time window in seconds"), later("For the mode that reads a time window.")),
    "max_messages": (later("Maximum messages per scan"), ""),
    "max_bytes": (later("Maximum bytes per scan"), ""),
    "max_seconds": (
        later("Maximum seconds per scan"),
        later("When a scan reaches a limit, the page says so and the next scan continues from there."),
    ),
    "clean_scans": (
        later("Clean scans to resolve a finding"),
        later("Consecutive scans that could have seen the finding but did not."),
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


def groups_of(kind: SourceKind, values: Mapping[str, str], by: Actor) -> tuple[FieldGroup, ...]:
    """The fields of a new source of that kind, as far as they were filled in."""
    registry_field, schedule = _registry(values, by), schedule_field(values)
    context = Field(
        name="context",
        label=gettext("Context"),
        value=values.get("context", ""),
        code=True,
        placeholder=".",
        help=gettext("The context of the messages’ schema ids. Empty: the default context."),
    )
    if kind is SourceKind.KAFKA_TOPIC:
        what = (
            _cluster(values, by),
            _servers(values),
            *patterns_fields(values),
            _name(values, gettext("Name"), gettext("The name shown here, for example orders.")),
        )
        how = (registry_field, context, mode_field(values), schedule)
        return (
            FieldGroup(title=gettext("What to read"), fields=what),
            FieldGroup(title=gettext("How"), fields=how),
            bounds_fields(values),
        )
    if kind is SourceKind.DEBEZIUM:
        return (
            FieldGroup(
                title=gettext("What to read"),
                fields=(
                    _name(values, gettext("Name"), gettext("The name shown here.")),
                    _cluster(values, by),
                    registry_field,
                    schedule,
                ),
            ),
            _connect(values),
            _database(values),
            bounds_fields(values),
        )
    if kind is SourceKind.STATE_STORE:
        note = gettext("%(checkpoint_places)s. Rows are read if the Spark server can open the checkpoint too.") % {
            "checkpoint_places": checkpoint_places()
        }
        folder = _name(values, gettext("Checkpoint folder or address"), note)
        return (
            FieldGroup(title=gettext("What to read"), fields=(folder, registry_field, schedule)),
            *store_groups(values),
        )
    return (
        FieldGroup(
            title=gettext("What to read"),
            fields=(registry_field, schedule),
            note=gettext("The registry’s settings, roles and versions are compared with the production advice."),
        ),
    )


def discover_groups(values: Mapping[str, str], by: Actor) -> tuple[FieldGroup, ...]:
    """The fields of the search for checkpoints."""
    path = Field(
        name="path",
        label=gettext("Folder or address"),
        value=values.get("path", ""),
        required=True,
        code=True,
        help=gettext("The folder that contains your queries’ checkpoints: %(checkpoint_places)s.")
        % {"checkpoint_places": checkpoint_places()},
    )
    fields = (path, _registry(values, by), schedule_field(values))
    return (FieldGroup(title=gettext("Where"), fields=fields), *store_groups(values))


def checkpoint_places() -> str:
    """Where checkpoints may lie, in words."""
    roots = [str(root) for root in settings.CHECKPOINT_ROOTS]
    roots += settings.CHECKPOINT_ADDRESSES if stores_allowed() else ()
    return gettext("Below %(places)s") % {"places": ", ".join(roots) or gettext("none: no folder is allowed")}


def stores_allowed() -> bool:
    """Whether the deployment reads checkpoints in object stores."""
    return any(FILE_SYSTEMS.get(protocol) == "s3" for protocol in settings.CHECKPOINT_PROTOCOLS)


def store_groups(values: Mapping[str, str]) -> tuple[FieldGroup, ...]:
    """How an object store is reached, folded; nothing where the deployment reads none."""
    if not stores_allowed():
        return ()
    return (
        FieldGroup(
            title=gettext("Object store"),
            note=gettext(
                "For an address such as s3://bucket/checkpoints/query. Give the name of the secret; the operator "
                "stores the secret itself. Without an access key, the bucket must be public."
            ),
            fields=(
                text_field(
                    values, "endpoint", gettext("Endpoint"), placeholder="https://s3.eu-central-1.amazonaws.com"
                ),
                text_field(values, "region", gettext("Region"), placeholder="us-east-1"),
                text_field(values, "access_key_id", gettext("Access key id")),
                text_field(values, "store_secret", gettext("Secret name")),
            ),
            folded=not values.get("endpoint"),
        ),
    )


def _name(values: Mapping[str, str], label: str, note: str) -> Field:
    return Field(name="name", label=label, value=values.get("name", ""), required=True, code=True, help=note)


def _registry(values: Mapping[str, str], by: Actor) -> Field:
    chosen = values.get("registry")
    choices = tuple(Choice(value=name, label=name, selected=name == chosen) for name in registry_names(by))
    return Field(name="registry", label=gettext("Compared with"), kind="select", choices=choices, required=True)


def _cluster(values: Mapping[str, str], by: Actor) -> Field:
    names = [info.name for info in selectors.list_clusters(by)]
    chosen = values.get("cluster", names[0] if names and not values.get("bootstrap") else "")
    return Field(
        name="cluster",
        label=gettext("Cluster"),
        kind="select",
        choices=(
            *(Choice(value=name, label=name, selected=name == chosen) for name in names),
            Choice(value="", label=gettext("a new cluster without TLS and authentication"), selected=not chosen),
        ),
        help=gettext("If the cluster uses TLS or a user, connect it first."),
    )


def _servers(values: Mapping[str, str]) -> Field:
    return Field(
        name="bootstrap",
        label=gettext("Bootstrap servers"),
        value=values.get("bootstrap", ""),
        code=True,
        placeholder="broker-1:9092,broker-2:9092",
        help=gettext("Only for a new cluster."),
    )


def patterns_fields(values: Mapping[str, str]) -> tuple[Field, Field]:
    """Which topics, and which not."""
    return (
        Field(
            name="include",
            label=gettext("Topics"),
            kind="textarea",
            rows=3,
            value=values.get("include", ""),
            code=True,
            placeholder="orders\npayments-*",
            help=gettext(
                "One name or pattern per line. Empty: all except internal topics. Subjects are detected from the data."
            ),
        ),
        Field(
            name="exclude",
            label=gettext("Exclude"),
            kind="textarea",
            rows=2,
            value=values.get("exclude", ""),
            code=True,
            placeholder="*-changelog",
        ),
    )


def mode_field(values: Mapping[str, str]) -> Field:
    """What of the topics a scan reads."""
    chosen = values.get("mode", "since_last")
    return Field(
        name="mode",
        label=gettext("Each scan reads"),
        kind="select",
        required=True,
        choices=tuple(
            Choice(value=mode, label=f"{text[:1].upper()}{text[1:]}", selected=mode == chosen)
            for mode, text in MODES.items()
        ),
    )


def schedule_field(form: Mapping[str, str]) -> Field:
    """How often it is scanned."""
    chosen = form.get("every_seconds", "300")
    values = INTERVALS if chosen in INTERVALS else (*INTERVALS, chosen)
    return Field(
        name="every_seconds",
        label=gettext("Scan"),
        kind="select",
        choices=tuple(Choice(value=value, label=_interval(value), selected=value == chosen) for value in values),
    )


def _interval(value: str) -> str:
    seconds = whole_number(value)
    return (
        gettext("every %(lasting)s") % {"lasting": lasting(seconds)}
        if seconds
        else (NEVER if not value else value[:20])
    )


def bounds_fields(values: Mapping[str, str]) -> FieldGroup:
    """How much a scan may do, folded."""
    numbers = tuple(
        Field(name=name, label=label, kind="number", value=str(values.get(name, DEFAULTS[name])), help=note)
        for name, (label, note) in NUMBERS.items()
    )
    keep_samples = values.get("keep_samples", "yes")
    samples = Field(
        name="keep_samples",
        label=gettext("Samples"),
        kind="select",
        choices=(
            Choice(value="yes", label=gettext("store some, masked"), selected=keep_samples != "no"),
            Choice(value="no", label=gettext("store none"), selected=keep_samples == "no"),
        ),
    )
    return FieldGroup(title=gettext("Bounds"), fields=(*numbers, samples), folded=True)


def _connect(values: Mapping[str, str]) -> FieldGroup:
    return FieldGroup(
        title=gettext("Kafka Connect"),
        fields=(
            text_field(
                values, "connect_url", gettext("Address"), required=True, placeholder="https://connect.example.com:8083"
            ),
            text_field(values, "connector", gettext("Connector"), required=True),
            text_field(values, "connect_user", gettext("User")),
            text_field(values, "connect_secret", gettext("Secret name")),
        ),
    )


def _database(values: Mapping[str, str]) -> FieldGroup:
    tls = values.get("database_tls", "yes")
    return FieldGroup(
        title=gettext("Database"),
        note=gettext("Optional. With the database, Schemadesk compares tables, registered schemas and events."),
        fields=(
            text_field(values, "database_host", gettext("Host")),
            Field(
                name="database_port", label=gettext("Port"), kind="number", value=values.get("database_port", "5432")
            ),
            text_field(values, "database_name", gettext("Database")),
            text_field(values, "database_user", gettext("User")),
            text_field(values, "database_secret", gettext("Secret name")),
            Field(
                name="database_tls",
                label="TLS",
                kind="select",
                choices=(
                    Choice(value="yes", label=gettext("yes"), selected=tls != "no"),
                    Choice(value="no", label=gettext("no"), selected=tls == "no"),
                ),
            ),
        ),
    )


def text_field(values: Mapping[str, str], name: str, label: str, **more: Any) -> Field:
    """A line of text in monospace."""
    return Field(name=name, label=label, value=values.get(name, ""), code=True, **more)

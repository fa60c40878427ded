"""The fields of the forms of sources, in groups by kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from django.utils.translation import gettext

from dashboard.components.links import whole_number
from dashboard.components.translation import later
from dashboard.components.widgets import Choice, Field
from dashboard.sources.labels import MODES, lasting
from dashboard.sources.presenters import FieldGroup
from registry.access.roles import Actor
from registry.drift import selectors
from registry.drift.sources import SOURCES, FieldSet, SourceField, SourceKind
from registry.drift.sources.state_store import checkpoint_places
from registry.subjects.selectors import registry_names

INTERVALS: Final = ("", "60", "300", "900", "3600", "21600", "86400")
NEVER: Final = later("only on demand")
#: numbers of a source with what they say; those of topics alone are in _OF_TOPICS
NUMBERS: Final[Mapping[str, tuple[str, str]]] = {
    "tail_messages": (later("Newest messages per partition"), later("For the mode that reads the newest messages.")),
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
    common: dict[str, Callable[[], tuple[Field, ...]]] = {
        "name": lambda: (_name(values, gettext(kind.name_label), kind.describe_name()),),
        "registry": lambda: (_registry(values, by),),
        "every_seconds": lambda: (schedule_field(values),),
        "context": lambda: (_context(values),),
        "cluster": lambda: (_cluster(values, by),),
        "bootstrap": lambda: (_servers(values),),
        "include": lambda: patterns_fields(values)[:1],
        "exclude": lambda: patterns_fields(values)[1:],
        "mode": lambda: (mode_field(values),),
        "bounds": lambda: bounds_fields(values),
    }
    return tuple(_group(kind, part, values, common) for part in kind.form_sets)


def own_groups(kind: SourceKind, values: Mapping[str, str]) -> tuple[FieldGroup, ...]:
    """The fields that the kind declares, without those that every form may have."""
    parts = (replace(part, fields=tuple(f for f in part.fields if not isinstance(f, str))) for part in kind.form_sets)
    return tuple(_group(kind, part, values, {}) for part in parts if part.fields)


def _group(
    kind: SourceKind, part: FieldSet, values: Mapping[str, str], common: Mapping[str, Callable[[], tuple[Field, ...]]]
) -> FieldGroup:
    fields: list[Field] = []
    for item in part.fields:
        fields += common[item]() if isinstance(item, str) else (_own_field(kind, item, values),)
    is_filled = any(values.get(item.in_form) for item in part.fields if not isinstance(item, str))
    return FieldGroup(
        title=gettext(part.title),
        fields=tuple(fields),
        note=gettext(part.note) if part.note else "",
        folded=part.is_folded and not is_filled,
    )


def _own_field(kind: SourceKind, item: SourceField, values: Mapping[str, str]) -> Field:
    """A field that the kind declares, by the type of its value."""
    value = values.get(item.in_form, form_text(item.default))
    more: dict[str, Any] = {"name": item.in_form, "label": gettext(item.label)}
    more["help"] = gettext(item.help) if item.help else ""
    if isinstance(item.default, bool):
        return Field(kind="select", choices=_yes_or_no(gettext("yes"), gettext("no"), value), **more)
    if isinstance(item.default, int):
        return Field(kind="number", value=value, **more)
    required = item.required and not kind.is_config_optional
    return Field(value=value, code=True, required=required, placeholder=item.placeholder, **more)


def form_text(value: object) -> str:
    """A value as forms send it."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _yes_or_no(yes: str, no: str, value: str) -> tuple[Choice, ...]:
    return (
        Choice(value="yes", label=yes, selected=value != "no"),
        Choice(value="no", label=no, selected=value == "no"),
    )


def _context(values: Mapping[str, str]) -> Field:
    return Field(
        name="context",
        label=gettext("Context"),
        value=values.get("context", ""),
        code=True,
        placeholder=".",
        help=gettext("The context of the messages’ schema ids. Empty: the default context."),
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
    return (FieldGroup(title=gettext("Where"), fields=fields), *own_groups(SOURCES["state_store"], values))


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


def bounds_fields(values: Mapping[str, str]) -> tuple[Field, ...]:
    """How much a scan may do."""
    numbers = tuple(
        Field(name=name, label=label, kind="number", value=str(values.get(name, DEFAULTS[name])), help=note)
        for name, (label, note) in NUMBERS.items()
    )
    keep_samples = values.get("keep_samples", "yes")
    samples = Field(
        name="keep_samples",
        label=gettext("Samples"),
        kind="select",
        choices=_yes_or_no(gettext("store some, masked"), gettext("store none"), keep_samples),
    )
    return (*numbers, samples)


def text_field(values: Mapping[str, str], name: str, label: str, **more: Any) -> Field:
    """A line of text in monospace."""
    return Field(name=name, label=label, value=values.get(name, ""), code=True, **more)

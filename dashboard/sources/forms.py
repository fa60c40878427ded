"""The forms that add, edit and remove sources, and that search for checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from django import forms
from django.utils.functional import lazy
from django.utils.translation import gettext

from dashboard.components.forms import (
    NOT_OF_RIGHTS,
    CodeField,
    FormSection,
    LongTextField,
    NameChoiceField,
    ServiceForm,
)
from dashboard.components.links import whole_number
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.translation import lazy_format
from dashboard.components.widgets import readable
from dashboard.sources.labels import MODES, format_duration
from registry.access.roles import Actor
from registry.drift import services
from registry.drift.selectors import SourceInfo
from registry.drift.sources import SOURCES, FieldSet, SourceField, SourceKind, kind_of
from registry.drift.sources.state_store import checkpoint_places
from registry.errors import Conflict
from registry.streams.services import discover

INTERVALS: Final = ("", "60", "300", "900", "3600", "21600", "86400")
#: the fields of FieldSet `bounds`
BOUNDS: Final = (
    *("tail_messages", "window_seconds", "max_messages", "max_bytes", "max_seconds", "clean_scans"),
    "keep_samples",
)


class PatternsField(LongTextField):
    """Names or patterns of topics, one per line."""

    def to_python(self, value: Any) -> Any:
        """Return the non-empty lines."""
        return [line.strip() for line in str(super().to_python(value)).splitlines() if line.strip()]

    def prepare_value(self, value: Any) -> Any:
        """Join the lines."""
        return value if isinstance(value, str) else "\n".join(value or ())


class ScheduleField(forms.IntegerField):
    """The scan interval of a source, in seconds; None for on demand."""

    def __init__(self, **options: Any) -> None:
        super().__init__(label=_("Scan"), required=False, initial=300, widget=forms.Select, **options)

    def get_bound_field(self, form: forms.BaseForm, field_name: str) -> forms.BoundField:
        """Return the field, with its value among the choices."""
        bound = super().get_bound_field(form, field_name)
        chosen = str(bound.value() or "")
        values = INTERVALS if chosen in INTERVALS else (*INTERVALS, chosen)
        self.widget.choices = [(value, lazy(_interval, str)(value)) for value in values]  # type: ignore[attr-defined]
        return bound


def _interval(value: str) -> str:
    if seconds := whole_number(value):
        return gettext("every %(lasting)s") % {"lasting": format_duration(seconds)}
    return readable(value[:20]) if value else gettext("only on demand")


class YesNoField(forms.TypedChoiceField):
    """A choice of two words, the first for True."""

    def __init__(self, *, yes: str = _("yes"), no: str = _("no"), **options: Any) -> None:
        super().__init__(
            choices=(("yes", yes), ("no", no)),
            coerce=lambda text: text != "no",
            required=False,
            empty_value=True,  # type: ignore[arg-type]
            **options,
        )

    def prepare_value(self, value: Any) -> Any:
        """Return the choice for a value."""
        return {True: "yes", False: "no"}.get(value, value)


def _number(label: str, initial: int, help_text: str = "") -> forms.IntegerField:
    return forms.IntegerField(label=label, initial=initial, help_text=help_text, required=False)


def _add(*, kind: str, name: str = "", cluster: str = "", bootstrap: str = "", by: Actor, **values: Any) -> int:
    """Add a source; without patterns, its name is the topic, and an unknown cluster is connected."""
    if kind_of(kind).connects:
        values.setdefault("include", [name])
        cluster = cluster or services.cluster_at(bootstrap=bootstrap, by=by)
    return services.add_source(kind=kind, name=name, cluster=cluster, by=by, **values)


class SourceForm(ServiceForm):
    """A form that adds a source; its kind determines the fields, and has fields of its own."""

    service: ClassVar[Callable[..., object]] = staticmethod(_add)
    label = _("Add and scan")
    refusals = NOT_OF_RIGHTS

    name = CodeField()
    registry = NameChoiceField(label=_("Compared with"))
    context = CodeField(
        label=_("Context"),
        required=False,
        placeholder=".",
        help_text=_("The context of the messages’ schema ids. Empty: the default context."),
    )
    cluster = NameChoiceField(
        label=_("Cluster"),
        empty_label=_("a new cluster without TLS and authentication"),
        is_first_usual=True,
        help_text=_("If the cluster uses TLS or a user, connect it first."),
    )
    bootstrap = CodeField(
        label=_("Bootstrap servers"),
        required=False,
        placeholder="broker-1:9092,broker-2:9092",
        help_text=_("Only for a new cluster."),
    )
    include = PatternsField(
        label=_("Topics"),
        required=False,
        code=True,
        placeholder="orders\npayments-*",
        help_text=_(
            "One name or pattern per line. Empty: all except internal topics. Subjects are detected from the data."
        ),
    )
    exclude = PatternsField(label=_("Exclude"), required=False, rows=2, code=True, placeholder="*-changelog")
    mode = forms.ChoiceField(
        label=_("Each scan reads"),
        choices=[(mode, lazy(lambda text: f"{text[:1].upper()}{text[1:]}", str)(text)) for mode, text in MODES.items()],
        required=False,
        initial="since_last",
    )
    every_seconds = ScheduleField()
    tail_messages = _number(
        _("Newest messages per partition"), 10_000, _("For the mode that reads the newest messages.")
    )
    window_seconds = _number(_("Time window in seconds"), 86_400, _("For the mode that reads a time window."))
    max_messages = _number(_("Maximum messages per scan"), 1_000_000)
    max_bytes = _number(_("Maximum bytes per scan"), 2 * 1024**3)
    max_seconds = _number(
        _("Maximum seconds per scan"),
        300,
        _("When a scan reaches a limit, the page says so and the next scan continues from there."),
    )
    clean_scans = _number(
        _("Clean scans to resolve a finding"), 2, _("Consecutive scans that could have seen the finding but did not.")
    )
    keep_samples = YesNoField(label=_("Samples"), yes=_("store some, masked"), no=_("store none"), initial=True)

    def __init__(self, data: Any = None, *, kind: SourceKind, **options: Any) -> None:
        super().__init__(data, **options)
        self.kind = kind
        common = {**self.fields}
        own = {item.in_form: _own_field(kind, item) for item in kind.fields}
        self.sections = list(self.parts())
        names = [name for section in self.sections for name in section.names]
        self.fields = {name: own.get(name) or common[name] for name in names}
        if "name" in self.fields:
            self.fields["name"].label = _(kind.name_label)
            self.fields["name"].help_text = lazy(kind.describe_name, str)()
        if self.initial.get("bootstrap"):
            self.initial.setdefault("cluster", "")

    def parts(self) -> Iterable[FormSection]:
        """Return the form's sections."""
        return map(self._part, self.kind.form_sets)

    def own_parts(self) -> Iterable[FormSection]:
        """Yield the sections with the kind's own fields."""
        for part in self.kind.form_sets:
            if own := tuple(item for item in part.fields if isinstance(item, SourceField)):
                yield self._part(replace(part, fields=own))

    def _part(self, part: FieldSet) -> FormSection:
        own = {item.in_form for item in part.fields if isinstance(item, SourceField)}
        given = self.data if self.is_bound else self.initial
        names: list[str] = []
        for item in part.fields:
            names += BOUNDS if item == "bounds" else [item if isinstance(item, str) else item.in_form]
        is_folded = part.is_folded and not any(given.get(name) for name in own)
        return FormSection(_(part.title), names, _(part.note) if part.note else "", is_folded)

    def arguments(self) -> dict[str, Any]:
        """Return the service's arguments: submitted values without empty limits."""
        own = {item.in_form for item in self.kind.fields}
        sent = {name: value for name, value in self.cleaned_data.items() if name in self.data and name not in own}
        values = {name: value for name, value in sent.items() if value is not None or name == "every_seconds"}
        return values | self.config() | self.kind_argument()

    def kind_argument(self) -> dict[str, str]:
        """Return the kind as sent, which may be unknown."""
        return {"kind": self.data.get("kind", "")}

    def config(self) -> dict[str, Any]:
        """Return the values of the kind's own fields under its config name; empty if none was filled in."""
        fields = [item for item in self.kind.fields if item.in_form in self.fields]
        if not any(str(self.data.get(item.in_form, "")).strip() for item in fields):
            return {}
        values = {item.name: self.cleaned_data[item.in_form] for item in fields}
        defaults = {item.name: item.default for item in fields}
        return {
            self.kind.config_name: {name: defaults[name] if value is None else value for name, value in values.items()}
        }


def _own_field(kind: SourceKind, item: SourceField) -> forms.Field:
    """Return a form field for a field that the kind declares, by the type of its value."""
    shown: dict[str, Any] = {"label": _(item.label), "help_text": _(item.help) if item.help else ""}
    if isinstance(item.default, bool):
        return YesNoField(initial=item.default, **shown)
    if isinstance(item.default, int):
        return forms.IntegerField(initial=item.default, required=False, **shown)
    required = item.required and not kind.is_config_optional
    return CodeField(initial=item.default, required=required, placeholder=item.placeholder, **shown)


class SourceEditForm(SourceForm):
    """A form that edits how a source is scanned."""

    service = staticmethod(services.update_source)
    label = _("Save")
    success = _("Saved.")

    def __init__(self, data: Any = None, *, source: SourceInfo) -> None:
        self.source = source
        super().__init__(data, kind=kind_of(source.kind), initial=_stored(source))

    def parts(self) -> Iterable[FormSection]:
        """Yield the topics to read, if any, and the kind's editable fields."""
        if self.source.cluster:
            yield FormSection(_("What to read"), ("include", "exclude"))
            yield FormSection(_("How"), ("context", "mode", "every_seconds"))
            yield FormSection(_("Bounds"), BOUNDS, is_folded=True)
        else:
            yield FormSection(_("Schedule"), ("every_seconds",))
        if self.source.store or self.source.config:
            yield from self.own_parts()

    def kind_argument(self) -> dict[str, str]:
        """Return nothing: the kind can't change."""
        return {}


def _stored(source: SourceInfo) -> dict[str, Any]:
    """Return a source's settings by the names of the form's fields."""
    names = ("context", "include", "exclude", "mode", "every_seconds", *BOUNDS)
    own = {
        item.in_form: source.config.get(item.name, getattr(source.store, item.name, item.default))
        for item in kind_of(source.kind).fields
    }
    return {name: getattr(source, name) for name in names} | own


class StoreForm(SourceForm):
    """A form with the object store of a checkpoint."""

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, kind=SOURCES["state_store"], **options)

    def parts(self) -> Iterable[FormSection]:
        """Return the store's fields."""
        return self.own_parts()

    def store(self) -> dict[str, Any] | None:
        """Return the store that was entered, or None."""
        store: dict[str, Any] | None = self.config().get("store")
        return store


class DiscoverForm(StoreForm):
    """A form that searches for checkpoints."""

    service = staticmethod(discover)
    label = _("Search")

    path = CodeField(label=_("Folder or address"))

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, **options)
        text = _("The folder that contains your queries’ checkpoints: %(checkpoint_places)s.")
        self.fields["path"].help_text = lazy_format(text, checkpoint_places=checkpoint_places())

    def parts(self) -> Iterable[FormSection]:
        """Return the section with the place and the values for new sources, and the store's fields."""
        return (FormSection(_("Where"), ("path", "registry", "every_seconds")), *self.own_parts())

    def arguments(self) -> dict[str, Any]:
        """Return the place to search."""
        return {name: self.cleaned_data[name] for name in ("path", "registry")} | {"store": self.store()}

    @property
    def kept(self) -> Mapping[str, str]:
        """The values for adding each checkpoint."""
        return {name: self.data[name] for name in self.fields if name in self.data and name != "path"}


class RemoveSourceForm(ServiceForm):
    """A form that removes a source."""

    service = staticmethod(services.remove_source)
    label = _("Remove source")
    success = _("Source removed.")
    refusals = (Conflict,)

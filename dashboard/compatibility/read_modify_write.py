"""A read-modify-write in the simulator: the form, the three steps, and the outcome for each field."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast
from urllib.parse import urlencode

from django import forms
from django.utils.translation import gettext

from dashboard.compare.proof import Bytes, bytes_view, json_text, short_json
from dashboard.components.badges import VersionOutcome
from dashboard.components.forms import CodeField, LongTextField, NameChoiceField, ServiceForm, field_value
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.translation import lazy_format
from dashboard.components.widgets import LONGEST_CHOICE, Frame, Problem, readable
from registry.access.roles import Actor
from registry.errors import InvalidDatum, SchemadeskError
from registry.formats.base import FieldOutcome, Resolution
from registry.formats.json_change import Change, scalar_places
from registry.formats.json_pointer import unescape
from registry.formats.read_modify_write import FieldReset, Remedy, Simulation
from registry.subjects.comparison.simulation import MAX_VERSIONS_TOGETHER
from registry.subjects.selectors import TrialVersions


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFate:
    """The outcome for a field: the values as JSON text, None if that side doesn't have the field."""

    path: str
    fate: VersionOutcome
    before: str | None
    after: str | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FateTable:
    """The fields of one read, without the `hidden` omitted ones."""

    rows: tuple[FieldFate, ...]
    before_label: str = _("Written")
    after_label: str = _("Read")
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DatumReading:
    """A datum written by one version and read by another. `error` says why the reader failed."""

    sentence: str
    written: str
    encoded: Bytes
    read: str = ""
    error: str = ""
    fates: FateTable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPart:
    """The simulated read: the two versions, the form with the datum, and the result (None after an error)."""

    writer: int
    reader: int
    form: ReadForm
    reading: DatumReading | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HazardRow:
    """A field that clients on version `lost_in` reset for those on `known_in`; `example` is the version in the
    example.
    """

    path: str
    known_in: tuple[int, ...]
    lost_in: int
    example: int
    before: str
    after: str
    is_default: bool
    selected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One of the three steps: who does what; `value` is the record that the client then has."""

    number: int
    who: str
    what: str
    value: str
    encoded: Bytes
    fates: FateTable | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip:
    """The three steps of a read-modify-write, and the fields that it resets."""

    steps: tuple[StepView, ...]
    resets: tuple[FieldFate, ...]
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyPart:
    """The simulated read-modify-write: the versions in use, their hazards, and the three steps for one pair.

    Without hazards, `stops` says which versions can't even read another's data. `round` is None after an error in the
    form.
    """

    in_use: tuple[int, ...]
    hazards: tuple[HazardRow, ...]
    hazards_hidden: int
    written_by: int
    modified_by: int
    form: ModifyForm
    stops: tuple[str, ...] = ()
    remedies: tuple[Remedy, ...] = ()
    round: RoundTrip | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorPage:
    """The page `…/simulate?part=read|modify`; it has one of the two parts unless `problem` or `too_few`.

    `offered` are the versions to choose from, at most `limit` together.
    """

    frame: Frame
    registry: str
    subject: str
    url: str
    post_url: str
    part: str
    offered: tuple[int, ...]
    limit: int = MAX_VERSIONS_TOGETHER
    read: ReadPart | None = None
    modify: ModifyPart | None = None
    too_few: str = ""
    problem: Problem | None = None

    @property
    def modify_url(self) -> str:
        """The URL of the second part with the versions in use."""
        in_use = self.modify.in_use if self.modify else ()
        return f"{self.url}?{urlencode({'part': 'modify', 'use': in_use}, doseq=True)}"

    @property
    def has_errors(self) -> bool:
        """Whether some input was invalid."""
        part = self.read or self.modify
        return self.problem is not None or (part is not None and bool(part.form.errors))


MAX_DATUM: Final = 200_000
MAX_FATES: Final = 100
MAX_PLACES: Final = 200
#: bytes per row where the three steps are side by side
_NARROW: Final = 8


def read_json(text: str) -> Any:
    """Parse a datum. Raises InvalidDatum with the position of the JSON error."""
    if len(text) > MAX_DATUM:
        raise InvalidDatum(
            gettext("The record has %(n)s characters. At most %(max_datum)s are allowed here.")
            % {"n": f"{len(text):,}", "max_datum": f"{MAX_DATUM:,}"}
        )
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidDatum(
            gettext("Invalid JSON in line %(lineno)s, column %(colno)s: %(msg)s.")
            % {"lineno": error.lineno, "colno": error.colno, "msg": error.msg}
        ) from None
    except (RecursionError, ValueError) as error:  # nested too deeply, or a number with thousands of digits
        raise InvalidDatum(gettext("This JSON can’t be read: %(error)s.") % {"error": str(error)[:200]}) from None


def _loose(text: str) -> Any:
    """Parse a JSON value; other text is returned as a string."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _resolve(*, by: Actor, versions: TrialVersions, reader: int, writer: int, datum: Any) -> Resolution:
    return versions.resolve(reader=reader, writer=writer, datum=datum)


class ReadForm(ServiceForm):
    """A form with a record of the writer's version; the result is what the reader gets."""

    service: ClassVar[Callable[..., object]] = staticmethod(_resolve)
    conditional = ("datum", "value")

    datum = LongTextField(
        code=True, required=False, strip=False, help_text=_("As JSON. Missing fields get their default.")
    )

    def __init__(self, data: Mapping[str, str], *, writer: int) -> None:
        super().__init__(data)
        field = self.fields["datum"]
        field.label = lazy_format(_("Record of version %(version)s"), version=writer)
        rows = max(5, min(16, data["datum"].count("\n") + 2))
        field.widget.attrs |= {"rows": rows, "required": True}

    def clean_datum(self) -> Any:
        """Parse the record."""
        return field_value(read_json, self.cleaned_data["datum"])

    def add_service_error(self, error: SchemadeskError) -> None:
        """Add the error to the record."""
        self.add_error("datum", error.message)


def _simulate(
    *, by: Actor, versions: TrialVersions, written_by: int, modified_by: int, datum: Any, pointer: str, value: str
) -> Simulation:
    change = Change(pointer, _loose(value)) if pointer else None
    return versions.simulate(written_by=written_by, modified_by=modified_by, datum=datum, change=change)


class ModifyForm(ReadForm):
    """A form with a record and one change of it; the result has the three steps."""

    service = staticmethod(_simulate)

    pointer = NameChoiceField(
        label=_("Field to change"),
        empty_label=_("none: write it back unchanged"),
        strip=False,
        help_text=_("As seen by the client in the middle."),
    )
    value = CodeField(
        label=_("New value"), required=False, strip=False, help_text=_("JSON. Anything else is used as text.")
    )

    def __init__(self, data: Mapping[str, str], *, writer: int) -> None:
        super().__init__(data, writer=writer)
        self.read_as(None)

    def read_as(self, datum: Any) -> None:
        """Offer the scalar values of the datum as the client in the middle reads it; the first choice is no change."""
        chosen = self.data.get("pointer", "")
        pointers = [pointer for pointer, _ in scalar_places(datum) if pointer][:MAX_PLACES]
        if chosen and chosen not in pointers:
            pointers.append(chosen)
        field = cast(NameChoiceField, self.fields["pointer"])
        choices = [(pointer, readable(place_label(pointer))[:LONGEST_CHOICE]) for pointer in pointers]
        cast(forms.Select, field.widget).choices = [("", field.empty_label), *choices]

    def add_service_error(self, error: SchemadeskError) -> None:
        """Add the error to the field to change, or to the value."""
        is_pointer = error.details.get("pointer") == self.data.get("pointer", "")
        self.add_error("pointer" if is_pointer else "value", error.message)


def round_of(simulation: Simulation, written_by: int, modified_by: int) -> RoundTrip:
    """Return the three steps and the fields that they reset."""
    steps = simulation.steps
    did = (
        gettext("changes %(place_label)s to %(short_json)s")
        % {"place_label": place_label(simulation.change.pointer), "short_json": short_json(simulation.change.value, 80)}
        if simulation.change
        else ""
    )
    titles = (
        (gettext("Client on version %(written_by)s") % {"written_by": written_by}, gettext("writes the record")),
        (
            gettext("Client on version %(modified_by)s") % {"modified_by": modified_by},
            gettext("reads it, %(did)s and writes it back") % {"did": did}
            if did
            else gettext("reads it and writes it back"),
        ),
        (gettext("Client on version %(written_by)s") % {"written_by": written_by}, gettext("reads the record again")),
    )
    labels = (
        ("", ""),
        (gettext("Stored"), gettext("Read by version %(modified_by)s") % {"modified_by": modified_by}),
        (gettext("Stored"), gettext("Read by version %(written_by)s") % {"written_by": written_by}),
    )
    views = []
    for number, (step, (who, what), (before, after)) in enumerate(zip(steps, titles, labels, strict=False), start=1):
        resets = simulation.resets if number == 3 else ()
        views.append(
            StepView(
                number=number,
                who=who,
                what=what,
                value="" if step.error else json_text(step.value),
                encoded=bytes_view(step.encoded, f"bytes-step-{number}", width=_NARROW),
                fates=fates_of(step.fields, before, after, resets) if number > 1 and not step.error else None,
                error=step.error,
            )
        )
    return RoundTrip(steps=tuple(views), resets=tuple(map(_reset_fate, simulation.resets)), error=simulation.error)


def fates_of(
    outcomes: Sequence[FieldOutcome], before: str, after: str, resets: Sequence[FieldReset] = ()
) -> FateTable | None:
    """Return a row per field; a reset field has a note and its original value."""
    lost = {item.path: item for item in resets}
    fates: list[FieldOutcome | FieldReset] = [lost.pop(item.path, item) for item in outcomes]
    fates += lost.values()
    if not fates:
        return None
    if len(fates) > MAX_FATES:
        fates.sort(
            key=lambda item: isinstance(item, FieldOutcome) and VersionOutcome.of(item.outcome) is VersionOutcome.KEPT
        )
    return FateTable(
        rows=tuple(
            _reset_fate(item) if isinstance(item, FieldReset) else _outcome_fate(item) for item in fates[:MAX_FATES]
        ),
        before_label=before,
        after_label=after,
        hidden=max(0, len(fates) - MAX_FATES),
    )


def _outcome_fate(item: FieldOutcome) -> FieldFate:
    return FieldFate(
        path=item.path,
        fate=VersionOutcome.of(item.outcome),
        before=None if item.outcome == "filled" else short_json(item.written),
        after=None if item.outcome == "dropped" else short_json(item.read),
        # the outcome's label already says that it is a default
        note="" if item.outcome == "filled" and "default" in item.note else item.note,
    )


def _reset_fate(item: FieldReset) -> FieldFate:
    note = gettext("reset to the default") if item.is_default else ""
    return FieldFate(
        path=item.path,
        fate=VersionOutcome.RESET,
        before=short_json(item.before),
        after=short_json(item.after),
        note=note,
    )


def place_label(pointer: str) -> str:
    """Format a JSON Pointer as a path: `lines.0.sku`."""
    return ".".join(unescape(part) for part in pointer.split("/")[1:])

"""A read-modify-write in the simulator: what the form sent, the three steps, and what became of each field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.compare.proof import Bytes, bytes_view, json_text, short_json
from dashboard.components.badges import Fate
from dashboard.components.translation import later
from dashboard.components.widgets import Choice, Field, Frame, Problem
from registry.errors import InvalidDatum
from registry.formats.base import FieldOutcome
from registry.formats.json_change import Change
from registry.formats.json_pointer import unescape
from registry.formats.read_modify_write import FieldReset, Reset, Simulation
from registry.subjects.selectors import TrialVersions


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFate:
    """What became of one field: the values as JSON text, None where that side doesn't have the field."""

    path: str
    fate: Fate
    before: str | None
    after: str | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FateTable:
    """The fields of one reading; `hidden` are not drawn."""

    rows: tuple[FieldFate, ...]
    before_label: str = later("Written")
    after_label: str = later("Read")
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DatumReading:
    """A datum written by one version and read by another. Where the reader stops, `error` says why."""

    sentence: str
    written: str
    encoded: Bytes
    read: str = ""
    error: str = ""
    fates: FateTable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPart:
    """What a reader gets: the two versions, the datum, and what came of it (None after an error in the form)."""

    writer: int
    reader: int
    writer_choices: tuple[Choice, ...]
    reader_choices: tuple[Choice, ...]
    datum: Field
    example_url: str
    swap_url: str
    compare_url: str
    reading: DatumReading | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HazardRow:
    """A field that clients on version `lost_in` reset for those on the versions `known_in`."""

    path: str
    known_in: tuple[int, ...]
    lost_in: int
    before: str
    after: str
    is_default: bool
    url: str
    selected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One of the three steps: who does what; `value` is the record as that client has it afterwards."""

    number: int
    who: str
    what: str
    value: str
    encoded: Bytes
    fates: FateTable | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetLine:
    """A field that nobody changed and that has another value at the end."""

    path: str
    before: str
    after: str
    is_default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyLine:
    """One way to avoid it."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip:
    """The three steps of one read-modify-write, and what they reset."""

    steps: tuple[StepView, ...]
    resets: tuple[ResetLine, ...]
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyPart:
    """Read, modify, write back: the versions in use, all their hazards, and the three steps for one pair.

    `boxes` are the versions that can be in use together; `limit` is how many at once. Where there is no hazard,
    `stops` says which versions can't even read another's data. `round` is None after an error in the form.
    """

    boxes: tuple[Choice, ...]
    in_use: tuple[int, ...]
    limit: int
    hazards: tuple[HazardRow, ...]
    hazards_hidden: int
    written_by: int
    modified_by: int
    written_choices: tuple[Choice, ...]
    modified_choices: tuple[Choice, ...]
    datum: Field
    pointer: Field
    value: Field
    example_url: str
    stops: tuple[str, ...] = ()
    remedies: tuple[RemedyLine, ...] = ()
    round: RoundTrip | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorPage:
    """`…/simulate?part=read|modify`: one of the two parts is there; neither where `problem` or `too_few` says why."""

    frame: Frame
    registry: str
    subject: str
    subject_url: str
    url: str
    post_url: str
    part: str
    part_urls: tuple[tuple[str, str, str], ...]
    format: str = ""
    read: ReadPart | None = None
    modify: ModifyPart | None = None
    too_few: str = ""
    problem: Problem | None = None

    @property
    def has_errors(self) -> bool:
        """Whether something that was sent couldn't be used."""
        read, modify = self.read, self.modify
        fields = [read.datum] if read else [modify.datum, modify.pointer, modify.value] if modify else []
        return self.problem is not None or any(item.errors for item in fields)


MAX_DATUM: Final = 200_000
MAX_FATES: Final = 100
#: bytes in a row where three steps stand side by side
_NARROW: Final = 8


def read_json(text: str) -> Any:
    """A datum that somebody typed. Raises InvalidDatum, which says where it stops being JSON."""
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
    except (RecursionError, ValueError) as error:  # nested too deep, or a number of thousands of digits
        raise InvalidDatum(gettext("This JSON can’t be read: %(error)s.") % {"error": str(error)[:200]}) from None


@dataclass
class Trial:
    """The form of the second part: what was sent, or an example that shows the hazard, and what came of it."""

    request: HttpRequest
    versions: TrialVersions
    written_by: int
    modified_by: int
    resets: Sequence[Reset]
    text: str = ""
    pointer: str = ""
    value: str = ""
    datum: Any = None
    datum_errors: tuple[str, ...] = ()
    pointer_errors: tuple[str, ...] = ()
    value_errors: tuple[str, ...] = ()
    simulation: Simulation | None = None

    def __post_init__(self) -> None:
        if "datum" in self.request.POST:
            self._sent()
        else:
            self._shown()

    def _shown(self) -> None:
        """An example: the one that was found to show a reset, else the version's own, written back unchanged."""
        try:
            if self.resets:
                simulation = self.resets[0].simulation
            else:
                simulation = self._simulate(self.versions.example(self.written_by), None)
        except InvalidDatum as error:
            self.datum_errors = (error.message,)
            return
        self.simulation = simulation
        self.text = json_text(simulation.steps[0].value, limit=MAX_DATUM)
        self.datum = simulation.steps[1].value
        if simulation.change:
            self.pointer, self.value = simulation.change.pointer, short_json(simulation.change.value, MAX_DATUM)

    def _sent(self) -> None:
        posted = self.request.POST
        self.text, self.pointer, self.value = posted["datum"], posted.get("pointer", ""), posted.get("value", "")
        try:
            datum = read_json(self.text)
            resolution = self.versions.resolve(reader=self.modified_by, writer=self.written_by, datum=datum)
        except InvalidDatum as error:
            self.datum_errors = (error.message,)
            return
        self.datum = resolution.value
        try:
            self.simulation = self._simulate(datum, Change(self.pointer, _loose(self.value)) if self.pointer else None)
        except InvalidDatum as error:
            if error.details.get("pointer") == self.pointer:
                self.pointer_errors = (error.message,)
            else:
                self.value_errors = (error.message,)

    def _simulate(self, datum: Any, change: Change | None) -> Simulation:
        return self.versions.simulate(
            written_by=self.written_by, modified_by=self.modified_by, datum=datum, change=change
        )


def _loose(text: str) -> Any:
    """A JSON value; a text that isn't JSON is taken as a string."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def round_of(simulation: Simulation, written_by: int, modified_by: int) -> RoundTrip:
    """The three steps with what they reset."""
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
    lines = tuple(
        ResetLine(
            path=item.path, before=short_json(item.before), after=short_json(item.after), is_default=item.is_default
        )
        for item in simulation.resets
    )
    return RoundTrip(steps=tuple(views), resets=lines, error=simulation.error)


def fates_of(
    outcomes: Sequence[FieldOutcome], before: str, after: str, resets: Sequence[FieldReset] = ()
) -> FateTable | None:
    """A row a field; a field that was reset says so, with the value that it had at first."""
    lost = {item.path: item for item in resets}
    fates: list[FieldOutcome | FieldReset] = [lost.pop(item.path, item) for item in outcomes]
    fates += lost.values()
    if not fates:
        return None
    if len(fates) > MAX_FATES:
        fates.sort(key=lambda item: isinstance(item, FieldOutcome) and Fate.of(item.outcome) is Fate.KEPT)
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
        fate=Fate.of(item.outcome),
        before=None if item.outcome == "filled" else short_json(item.written),
        after=None if item.outcome == "dropped" else short_json(item.read),
        # that it is a default, the outcome's own word says
        note="" if item.outcome == "filled" and "default" in item.note else item.note,
    )


def _reset_fate(item: FieldReset) -> FieldFate:
    note = gettext("reset to the default") if item.is_default else ""
    return FieldFate(
        path=item.path, fate=Fate.RESET, before=short_json(item.before), after=short_json(item.after), note=note
    )


def place_label(pointer: str) -> str:
    """A JSON Pointer for people: `lines.0.sku`."""
    return ".".join(unescape(part) for part in pointer.split("/")[1:])

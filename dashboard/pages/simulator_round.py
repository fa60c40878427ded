"""A read-modify-write as the simulator shows it: what the form sent, the three steps, what became of each field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.presenters.looks import Fate
from dashboard.presenters.proof import bytes_view, json_text, short_json
from dashboard.presenters.simulator import FateTable, FieldFate, ResetLine, Round, StepView
from registry.errors import InvalidDatum
from registry.formats.base import FieldOutcome
from registry.formats.hazard import FieldReset, Reset, Simulation
from registry.formats.json_change import Change
from registry.formats.pointer import unescape
from registry.subjects.selectors import TrialVersions

MAX_DATUM: Final = 200_000
MAX_FATES: Final = 100
#: bytes in a row where three steps stand side by side
_NARROW: Final = 8


def read_json(text: str) -> Any:
    """A datum that somebody typed. Raises InvalidDatum, which says where it stops being JSON."""
    if len(text) > MAX_DATUM:
        raise InvalidDatum(
            gettext("The datum has %(n)s characters; %(max_datum)s are tried here.")
            % {"n": f"{len(text):,}", "max_datum": f"{MAX_DATUM:,}"}
        )
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidDatum(
            gettext("This isn’t JSON: line %(lineno)s, column %(colno)s: %(msg)s.")
            % {"lineno": error.lineno, "colno": error.colno, "msg": error.msg}
        ) from None
    except (RecursionError, ValueError) as error:  # nested too deep, or a number of thousands of digits
        raise InvalidDatum(gettext("This JSON can't be read: %(error)s.") % {"error": str(error)[:200]}) from None


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
    seen: Any = None
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
                found = self.resets[0].simulation
            else:
                found = self._simulate(self.versions.example(self.written_by), None)
        except InvalidDatum as error:
            self.datum_errors = (error.message,)
            return
        self.simulation = found
        self.text = json_text(found.steps[0].value, limit=MAX_DATUM)
        self.seen = found.steps[1].value
        if found.change:
            self.pointer, self.value = found.change.pointer, short_json(found.change.value, MAX_DATUM)

    def _sent(self) -> None:
        posted = self.request.POST
        self.text, self.pointer, self.value = posted["datum"], posted.get("pointer", ""), posted.get("value", "")
        try:
            datum = read_json(self.text)
            found = self.versions.resolve(reader=self.modified_by, writer=self.written_by, datum=datum)
        except InvalidDatum as error:
            self.datum_errors = (error.message,)
            return
        self.seen = found.value
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


def round_of(found: Simulation, written_by: int, modified_by: int) -> Round:
    """The three steps with what they reset."""
    steps = found.steps
    did = (
        gettext("changes %(place_label)s to %(short_json)s")
        % {"place_label": place_label(found.change.pointer), "short_json": short_json(found.change.value, 80)}
        if found.change
        else ""
    )
    titles = (
        (gettext("Client on version %(written_by)s") % {"written_by": written_by}, gettext("writes the record")),
        (
            gettext("Client on version %(modified_by)s") % {"modified_by": modified_by},
            gettext("reads it, %(did)s, writes it back") % {"did": did}
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
        resets = found.resets if number == 3 else ()
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
        for item in found.resets
    )
    return Round(steps=tuple(views), resets=lines, error=found.error)


def fates_of(
    outcomes: Sequence[FieldOutcome], before: str, after: str, resets: Sequence[FieldReset] = ()
) -> FateTable | None:
    """A row a field; a field that was reset says so, with the value that it had at first."""
    lost = {item.path: item for item in resets}
    told: list[FieldOutcome | FieldReset] = [lost.pop(item.path, item) for item in outcomes]
    told += lost.values()
    if not told:
        return None
    if len(told) > MAX_FATES:
        told.sort(key=lambda item: isinstance(item, FieldOutcome) and Fate.of(item.outcome) is Fate.KEPT)
    return FateTable(
        rows=tuple(
            _reset_fate(item) if isinstance(item, FieldReset) else _outcome_fate(item) for item in told[:MAX_FATES]
        ),
        before_label=before,
        after_label=after,
        hidden=max(0, len(told) - MAX_FATES),
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
    note = gettext("back to its default") if item.is_default else ""
    return FieldFate(
        path=item.path, fate=Fate.RESET, before=short_json(item.before), after=short_json(item.after), note=note
    )


def place_label(pointer: str) -> str:
    """A JSON Pointer for people: `lines.0.sku`."""
    return ".".join(unescape(part) for part in pointer.split("/")[1:])

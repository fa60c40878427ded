"""The two parts of the simulator: one reading, and a read-modify-write with all hazards of the versions in use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext, ngettext

from dashboard.pages.simulator_round import MAX_DATUM, Trial, fates_of, place_label, read_json, round_of
from dashboard.presenters.frame import Choice, Field
from dashboard.presenters.looks import Fate
from dashboard.presenters.proof import bytes_view, json_text, short_json
from dashboard.presenters.simulator import (
    HazardRow,
    ModifyPart,
    Reading,
    ReadPart,
    RemedyLine,
)
from dashboard.texts import counted, later, listing
from registry.errors import InvalidDatum
from registry.formats.base import Resolution
from registry.formats.hazard import Reset
from registry.formats.json_change import scalar_places
from registry.subjects.selectors import TrialVersions
from registry.subjects.selectors.resolution import MAX_VERSIONS_TOGETHER

#: the address of a page of the subject: (page, **query)
Address = Callable[..., str]

MAX_HAZARDS: Final = 60
MAX_PLACES: Final = 200


def read_part(
    request: HttpRequest, versions: TrialVersions, offered: Sequence[int], *, reader: int, writer: int, address: Address
) -> ReadPart:
    """What version `reader` gets from a datum of version `writer`; the datum is the form's, or an example."""
    errors: tuple[str, ...] = ()
    reading = None
    try:
        datum, text = _datum(request, versions, writer)
        reading = _reading(versions.resolve(reader=reader, writer=writer, datum=datum), writer, reader)
    except InvalidDatum as error:
        errors, text = (error.message,), request.POST.get("datum", "")
    return ReadPart(
        writer=writer,
        reader=reader,
        writer_choices=_choices(offered, writer),
        reader_choices=_choices(offered, reader),
        datum=_datum_field(text, writer, errors),
        example_url=address("simulate", part="read", writer=writer, reader=reader),
        swap_url=address("simulate", part="read", writer=reader, reader=writer),
        compare_url=address("compare", from_=writer, to=reader) if writer != reader else "",
        reading=reading,
    )


def modify_part(
    request: HttpRequest,
    versions: TrialVersions,
    offered: Sequence[int],
    *,
    in_use: Sequence[int],
    pair: Sequence[int],
    address: Address,
) -> ModifyPart:
    """All hazards of the versions in use, and the three steps for one pair of them."""
    resets = versions.resets()
    written_by, modified_by = _pair(resets, pair, in_use)
    of_pair = [item for item in resets if (item.known_in, item.lost_in) == (written_by, modified_by)]
    trial = Trial(request, versions, written_by, modified_by, of_pair)
    query = {"part": "modify", "use": list(in_use), "written_by": written_by, "modified_by": modified_by}
    groups = _hazard_groups(resets)
    return ModifyPart(
        boxes=tuple(
            Choice(value=str(n), label=gettext("Version %(n)s") % {"n": n}, selected=n in in_use) for n in offered
        ),
        in_use=tuple(in_use),
        limit=MAX_VERSIONS_TOGETHER,
        hazards=tuple(_hazard_row(group, (written_by, modified_by), in_use, address) for group in groups[:MAX_HAZARDS]),
        hazards_hidden=max(0, len(groups) - MAX_HAZARDS),
        written_by=written_by,
        modified_by=modified_by,
        written_choices=_choices(sorted(in_use, reverse=True), written_by),
        modified_choices=_choices(sorted(in_use, reverse=True), modified_by),
        datum=_datum_field(trial.text, written_by, trial.datum_errors),
        pointer=replace(
            _POINTER, choices=_places(trial.seen, trial.pointer), errors=trial.pointer_errors, value=trial.pointer
        ),
        value=replace(_VALUE, value=trial.value, errors=trial.value_errors),
        example_url=address("simulate", **query),
        stops=() if resets else _stops(versions, in_use),
        remedies=tuple(RemedyLine(title=item.title, text=item.text) for item in versions.remedies(of_pair)),
        round=round_of(trial.simulation, written_by, modified_by) if trial.simulation else None,
    )


_POINTER: Final = Field(
    name="pointer", label=later("Field that is changed"), kind="select", required=True, help=later("As the client in the middle sees it.")
)  # fmt: skip
_VALUE: Final = Field(
    name="value",
    label=later("Its new value"),
    code=True,
    required=True,
    help=later("JSON; a word that is none is taken as text."),
)


def _datum_field(text: str, version: int, errors: tuple[str, ...]) -> Field:
    return Field(
        name="datum",
        label=gettext("Datum of version %(version)s") % {"version": version},
        value=text,
        kind="textarea",
        rows=max(5, min(16, text.count("\n") + 2)),
        code=True,
        required=True,
        errors=errors,
        help=gettext("As JSON. Fields that are left out have their default."),
    )


def _choices(numbers: Sequence[int], chosen: int) -> tuple[Choice, ...]:
    return tuple(Choice(value=str(n), label=gettext("Version %(n)s") % {"n": n}, selected=n == chosen) for n in numbers)


def _datum(request: HttpRequest, versions: TrialVersions, writer: int) -> tuple[Any, str]:
    """The form's datum, or the version's example, as a value and as text. Raises InvalidDatum."""
    if "datum" in request.POST:
        text = request.POST["datum"]
        return read_json(text), text
    datum = versions.example(writer)
    return datum, json_text(datum, limit=MAX_DATUM)


# -- one reading ------------------------------------------------------------------------------------------------------


def _reading(found: Resolution, writer: int, reader: int) -> Reading:
    fates = (
        None
        if found.error
        else fates_of(
            found.fields,
            gettext("Written by version %(writer)s") % {"writer": writer},
            gettext("Read by version %(reader)s") % {"reader": reader},
        )
    )
    counts = Counter[str](item.outcome for item in found.fields)
    kept, filled, dropped, converted = (
        counts[fate.code] for fate in (Fate.KEPT, Fate.FILLED, Fate.DROPPED, Fate.CONVERTED)
    )
    parts = (
        (kept, counted(kept, "%(n)s kept", "%(n)s kept")),
        (filled, counted(filled, "%(n)s filled from the default", "%(n)s filled from the default")),
        (dropped, counted(dropped, "%(n)s dropped", "%(n)s dropped")),
        (converted, counted(converted, "%(n)s converted", "%(n)s converted")),
    )
    told = listing(said for count, said in parts if count)
    sentence = (
        counted(sum(counts.values()), "%(n)s field: %(told)s.", "%(n)s fields: %(told)s.", told=told)
        if told
        else gettext("The whole datum is one value.")
    )
    return Reading(
        sentence=gettext("The reader stops.") if found.error else sentence,
        written=json_text(found.datum),
        encoded=bytes_view(found.encoded, "bytes-written"),
        read="" if found.error else json_text(found.value),
        error=found.error,
        fates=fates,
    )


# -- read, modify, write back -----------------------------------------------------------------------------------------


def _pair(resets: Sequence[Reset], asked: Sequence[int], in_use: Sequence[int]) -> tuple[int, int]:
    """(written by, modified by): what was asked for, else a pair with a reset, else the newest two."""
    if len(asked) == 2:
        return asked[0], asked[1]
    if resets:
        worst = max(resets, key=lambda item: (item.is_default, item.known_in, item.lost_in))
        return worst.known_in, worst.lost_in
    return in_use[-1], in_use[-2]


def _hazard_groups(resets: Sequence[Reset]) -> list[list[Reset]]:
    """The resets of one field by one version, a row each."""
    groups: dict[tuple[str, int, bool], list[Reset]] = {}
    for item in resets:
        groups.setdefault((item.path, item.lost_in, item.is_default), []).append(item)
    return [sorted(group, key=lambda item: -item.known_in) for _, group in sorted(groups.items())]


def _hazard_row(group: Sequence[Reset], pair: tuple[int, int], in_use: Sequence[int], address: Address) -> HazardRow:
    shown = next((item for item in group if (item.known_in, item.lost_in) == pair), group[0])
    return HazardRow(
        path=shown.path,
        known_in=tuple(item.known_in for item in group),
        lost_in=shown.lost_in,
        before=short_json(shown.before, 80),
        after=short_json(shown.after, 80),
        is_default=shown.is_default,
        url=address("simulate", part="modify", use=list(in_use), written_by=shown.known_in, modified_by=shown.lost_in),
        selected=(shown.known_in, shown.lost_in) == pair,
    )


def _stops(versions: TrialVersions, in_use: Sequence[int]) -> tuple[str, ...]:
    """Which versions can't read an example of another: without that, no reset doesn't mean that all is well."""
    found = []
    for writer in in_use:
        try:
            datum = versions.example(writer)
            stopped = [
                other
                for other in in_use
                if other != writer and versions.resolve(reader=other, writer=writer, datum=datum).error
            ]
        except InvalidDatum as error:
            found.append(gettext("Version %(version)s: %(error)s.") % {"version": writer, "error": error.message})
            continue
        if stopped:
            found.append(
                ngettext(
                    "Data of version %(writer)s can’t be read by version %(readers)s.",
                    "Data of version %(writer)s can’t be read by versions %(readers)s.",
                    len(stopped),
                )
                % {"writer": writer, "readers": ", ".join(map(str, stopped))}
            )
    return tuple(found)


def _places(seen: Any, chosen: str) -> tuple[Choice, ...]:
    """The single values of the datum as the client in the middle sees it; the first choice changes nothing."""
    pointers = [(pointer, value) for pointer, value in scalar_places(seen) if pointer][:MAX_PLACES]
    if chosen and chosen not in {pointer for pointer, _ in pointers}:
        pointers.append((chosen, None))
    rows = [Choice(value="", label=gettext("nothing: it is written back as it was read"), selected=not chosen)]
    rows += [Choice(value=pointer, label=place_label(pointer), selected=pointer == chosen) for pointer, _ in pointers]
    return tuple(rows)

"""The simulator of a subject: data encoded with one version and decoded with another.

Its two parts are a single read, and a read-modify-write with all hazards of the versions in use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from django.http import HttpRequest
from django.utils.translation import gettext, ngettext

from dashboard.compare.proof import bytes_view, json_text, short_json
from dashboard.compatibility.read_modify_write import (
    MAX_DATUM,
    DatumReading,
    HazardRow,
    ModifyPart,
    ReadPart,
    RemedyLine,
    SimulatorPage,
    Trial,
    fates_of,
    place_label,
    read_json,
    round_of,
)
from dashboard.components.badges import Fate, format_name
from dashboard.components.frame import make_frame
from dashboard.components.links import subject_crumbs, subject_parts, subject_url, switch_url, whole_number
from dashboard.components.translation import counted, later, listing
from dashboard.components.widgets import Choice, Field, Problem, Section
from registry.errors import InvalidDatum, InvalidVersion, NotFound, SchemadeskError, VersionNotFound
from registry.formats.base import Resolution
from registry.formats.json_change import scalar_places
from registry.formats.read_modify_write import Reset
from registry.subjects import selectors
from registry.subjects.comparison.simulation import MAX_VERSIONS_TOGETHER
from registry.subjects.selectors import TrialVersions
from registry.subjects.versions.lookup import Registry, get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

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
            _POINTER, choices=_pointers(trial.datum, trial.pointer), errors=trial.pointer_errors, value=trial.pointer
        ),
        value=replace(_VALUE, value=trial.value, errors=trial.value_errors),
        example_url=address("simulate", **query),
        stops=() if resets else _stops(versions, in_use),
        remedies=tuple(RemedyLine(title=item.title, text=item.text) for item in versions.remedies(of_pair)),
        round=round_of(trial.simulation, written_by, modified_by) if trial.simulation else None,
    )


_POINTER: Final = Field(
    name="pointer", label=later("Field to change"), kind="select", required=True,
    help=later("As seen by the client in the middle."),
)  # fmt: skip
_VALUE: Final = Field(
    name="value",
    label=later("New value"),
    code=True,
    required=True,
    help=later("JSON. Anything else is used as text."),
)


def _datum_field(text: str, version: int, errors: tuple[str, ...]) -> Field:
    return Field(
        name="datum",
        label=gettext("Record of version %(version)s") % {"version": version},
        value=text,
        kind="textarea",
        rows=max(5, min(16, text.count("\n") + 2)),
        code=True,
        required=True,
        errors=errors,
        help=gettext("As JSON. Missing fields get their default."),
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


def _reading(resolution: Resolution, writer: int, reader: int) -> DatumReading:
    fates = (
        None
        if resolution.error
        else fates_of(
            resolution.fields,
            gettext("Written by version %(writer)s") % {"writer": writer},
            gettext("Read by version %(reader)s") % {"reader": reader},
        )
    )
    counts = Counter[str](item.outcome for item in resolution.fields)
    kept_count, filled, dropped, converted = (
        counts[fate.code] for fate in (Fate.KEPT, Fate.FILLED, Fate.DROPPED, Fate.CONVERTED)
    )
    parts = (
        (kept_count, counted(kept_count, "%(n)s kept", "%(n)s kept")),
        (filled, counted(filled, "%(n)s filled from the default", "%(n)s filled from the default")),
        (dropped, counted(dropped, "%(n)s dropped", "%(n)s dropped")),
        (converted, counted(converted, "%(n)s converted", "%(n)s converted")),
    )
    counts_text = listing(text for count, text in parts if count)
    sentence = (
        counted(sum(counts.values()), "%(n)s field: %(told)s.", "%(n)s fields: %(told)s.", told=counts_text)
        if counts_text
        else gettext("The record is a single value.")
    )
    return DatumReading(
        sentence=gettext("Decoding fails.") if resolution.error else sentence,
        written=json_text(resolution.datum),
        encoded=bytes_view(resolution.encoded, "bytes-written"),
        read="" if resolution.error else json_text(resolution.value),
        error=resolution.error,
        fates=fates,
    )


# -- read, modify, write back -----------------------------------------------------------------------------------------


def _pair(resets: Sequence[Reset], pair: Sequence[int], in_use: Sequence[int]) -> tuple[int, int]:
    """(written by, modified by): what was asked for, else a pair with a reset, else the newest two."""
    if len(pair) == 2:
        return pair[0], pair[1]
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
    sentences = []
    for writer in in_use:
        try:
            datum = versions.example(writer)
            stopped = [
                other
                for other in in_use
                if other != writer and versions.resolve(reader=other, writer=writer, datum=datum).error
            ]
        except InvalidDatum as error:
            sentences.append(gettext("Version %(version)s: %(error)s.") % {"version": writer, "error": error.message})
            continue
        if stopped:
            sentences.append(
                ngettext(
                    "Data of version %(writer)s can’t be read by version %(readers)s.",
                    "Data of version %(writer)s can’t be read by versions %(readers)s.",
                    len(stopped),
                )
                % {"writer": writer, "readers": ", ".join(map(str, stopped))}
            )
    return tuple(sentences)


def _pointers(datum: Any, chosen: str) -> tuple[Choice, ...]:
    """The single values of the datum as the client in the middle sees it; the first choice changes nothing."""
    pointers = [(pointer, value) for pointer, value in scalar_places(datum) if pointer][:MAX_PLACES]
    if chosen and chosen not in {pointer for pointer, _ in pointers}:
        pointers.append((chosen, None))
    rows = [Choice(value="", label=gettext("none: write it back unchanged"), selected=not chosen)]
    rows += [Choice(value=pointer, label=place_label(pointer), selected=pointer == chosen) for pointer, _ in pointers]
    return tuple(rows)


PARTS = (("read", later("What a reader gets")), ("modify", later("Read, modify, write back")))
#: versions that count as in use until somebody chooses
USUAL_IN_USE = 4


def simulator_page(request: HttpRequest, registry: str, subject: str) -> SimulatorPage:
    """The page of `?part=read&writer=1&reader=2` or `?part=modify&use=1&use=2`; data come with a POST.

    Raises SubjectNotFound, VersionNotFound, InvalidVersion.
    """
    registry_row, name = get_registry(registry), parse_subject(subject)
    formats = selectors.version_formats(registry_row, name)
    kind = formats[0][1]
    offered = [number for number, other in formats if other == kind]
    part = "modify" if request.GET.get("part") == "modify" else "read"
    page = _empty(request, registry, name, part, kind)
    if part == "modify" and len(offered) < 2:
        return replace(
            page,
            too_few=gettext(
                "Version %(offered)s is the only version in %(kind)s, so no other version can reset its fields."
            )
            % {"offered": offered[0], "kind": format_name(kind)},
        )
    try:
        if part == "read":
            return replace(page, read=_read(request, registry_row, name, offered))
        return replace(page, modify=_modify(request, registry_row, name, offered))
    except (NotFound, InvalidVersion):
        raise
    except SchemadeskError as error:  # a schema that is too costly to try, or versions without data in common
        return replace(page, problem=Problem(what=error.message))


def _empty(request: HttpRequest, registry: str, name: SubjectName, part: str, kind: str) -> SimulatorPage:
    url = subject_url(registry, name.qualified, "simulate")
    return SimulatorPage(
        frame=make_frame(
            request,
            title=gettext("Simulate with data"),
            section=Section.SUBJECTS,
            registry=registry,
            crumbs=subject_crumbs(registry, name),
            parts=subject_parts(registry, name, "simulate"),
            url_in=lambda other: switch_url(other, name.qualified, "simulate"),
        ),
        registry=registry,
        subject=name.qualified,
        subject_url=subject_url(registry, name.qualified),
        url=url,
        post_url=request.get_full_path(),
        part=part,
        part_urls=tuple((code, label, f"{url}?part={code}") for code, label in PARTS),
        format=kind,
    )


def _read(request: HttpRequest, registry: Registry, name: SubjectName, offered: Sequence[int]) -> ReadPart:
    reader = _version(request, "reader", offered, offered[0])
    older = next((number for number in offered if number < reader), offered[0])
    writer = _version(request, "writer", offered, older)
    versions = selectors.load_for_trial(registry, name, [reader, writer])
    return read_part(request, versions, offered, reader=reader, writer=writer, address=_address(registry, name))


def _modify(request: HttpRequest, registry: Registry, name: SubjectName, offered: Sequence[int]) -> ModifyPart:
    numbers = [_number(text, offered) for text in request.GET.getlist("use")[: MAX_VERSIONS_TOGETHER + 1]]
    pair = [_number(request.GET[key], offered) for key in ("written_by", "modified_by") if request.GET.get(key)]
    in_use = sorted({*(numbers or offered[:USUAL_IN_USE]), *pair})[-MAX_VERSIONS_TOGETHER:]
    if len(in_use) < 2:
        in_use = sorted({*in_use, *offered[:2]})
    versions = selectors.load_for_trial(registry, name, sorted({*in_use, *pair}))
    return modify_part(request, versions, offered, in_use=in_use, pair=pair, address=_address(registry, name))


def _address(registry: Registry, name: SubjectName) -> Callable[..., str]:
    def at(page: str, **query: object) -> str:
        return subject_url(registry.name, name.qualified, page, **query)

    return at


def _version(request: HttpRequest, key: str, offered: Sequence[int], usual: int) -> int:
    text = request.GET.get(key, "")
    return _number(text, offered) if text else usual


def _number(text: str, offered: Sequence[int]) -> int:
    if text.lower() == "latest":
        return offered[0]
    number = whole_number(text, digits=10)
    if number is None:
        raise InvalidVersion(
            gettext("The specified version '%(text)s' is not a valid version id.") % {"text": text[:40]},
            version=text[:40],
        )
    if number not in offered:
        raise VersionNotFound(
            gettext("Version %(number)s is not among the live versions in the newest format.") % {"number": number},
            version=number,
        )
    return number

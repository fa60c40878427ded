"""The simulator of a subject: data encoded with one version and decoded with another.

Its two parts are a single read, and a read-modify-write with all hazards of the versions in use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from django.http import HttpRequest
from django.utils.translation import gettext, ngettext

from dashboard.compare.proof import bytes_view, json_text, short_json
from dashboard.compatibility.read_modify_write import (
    MAX_DATUM,
    DatumReading,
    HazardRow,
    ModifyForm,
    ModifyPart,
    ReadForm,
    ReadPart,
    SimulatorPage,
    fates_of,
    round_of,
)
from dashboard.components.badges import VersionOutcome, format_name
from dashboard.components.frame import page_actor, subject_frame
from dashboard.components.links import subject_url, whole_number
from dashboard.components.translation import counted, listing
from dashboard.components.widgets import Problem
from registry.errors import InvalidDatum, InvalidVersion, NotFound, SchemadeskError, VersionNotFound
from registry.formats.base import Resolution
from registry.formats.read_modify_write import Reset, Simulation
from registry.subjects import selectors
from registry.subjects.comparison.simulation import MAX_VERSIONS_TOGETHER
from registry.subjects.selectors import TrialVersions
from registry.subjects.versions.lookup import Registry, get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

MAX_HAZARDS: Final = 60


def read_part(request: HttpRequest, versions: TrialVersions, *, reader: int, writer: int) -> ReadPart:
    """Return what version `reader` gets from a datum of version `writer`; the datum is the form's, or an example."""
    data, problem = _sent_or_example(request, versions, writer)
    form = ReadForm(data, writer=writer)
    if problem:
        form.add_service_error(problem)
    else:
        form.run(page_actor(request), versions=versions, reader=reader, writer=writer)
    reading = _reading(form.result, writer, reader) if form.result else None
    return ReadPart(writer=writer, reader=reader, form=form, reading=reading)


def _sent_or_example(
    request: HttpRequest, versions: TrialVersions, version: int
) -> tuple[dict[str, str], InvalidDatum | None]:
    """Return the form's data, else an example of the version, or the reason why there is none."""
    if "datum" in request.POST:
        return request.POST.dict(), None
    try:
        return {"datum": json_text(versions.example(version), limit=MAX_DATUM)}, None
    except InvalidDatum as error:
        return {"datum": ""}, error


def modify_part(
    request: HttpRequest, versions: TrialVersions, *, in_use: Sequence[int], pair: Sequence[int]
) -> ModifyPart:
    """Return all hazards of the versions in use, and the three steps for one pair of them."""
    resets = versions.resets()
    written_by, modified_by = _pair(resets, pair, in_use)
    of_pair = [item for item in resets if (item.known_in, item.lost_in) == (written_by, modified_by)]
    is_sent = "datum" in request.POST
    form = (
        _shown_form(of_pair[0].simulation, written_by)
        if of_pair and not is_sent
        else _tried_form(request, versions, written_by, modified_by)
    )
    groups = _hazard_groups(resets)
    return ModifyPart(
        in_use=tuple(in_use),
        hazards=tuple(_hazard_row(group, (written_by, modified_by)) for group in groups[:MAX_HAZARDS]),
        hazards_hidden=max(0, len(groups) - MAX_HAZARDS),
        written_by=written_by,
        modified_by=modified_by,
        form=form,
        stops=() if resets else _stops(versions, in_use),
        remedies=versions.remedies(of_pair),
        round=round_of(form.result, written_by, modified_by) if form.result else None,
    )


def _shown_form(simulation: Simulation, written_by: int) -> ModifyForm:
    """Return the form with an example that shows a reset."""
    data = {"datum": json_text(simulation.steps[0].value, limit=MAX_DATUM)}
    if simulation.change:
        data |= {"pointer": simulation.change.pointer, "value": short_json(simulation.change.value, MAX_DATUM)}
    form = ModifyForm(data, writer=written_by)
    form.read_as(simulation.steps[1].value)
    form.result = simulation
    return form


def _tried_form(request: HttpRequest, versions: TrialVersions, written_by: int, modified_by: int) -> ModifyForm:
    """Return the submitted form, else the version's example without a change."""
    data, problem = _sent_or_example(request, versions, written_by)
    form = ModifyForm(data, writer=written_by)
    try:
        if problem:
            raise problem
        if form.is_valid():
            datum = form.cleaned_data["datum"]
            form.read_as(versions.resolve(reader=modified_by, writer=written_by, datum=datum).value)
    except InvalidDatum as error:
        form.add_error("datum", error.message)
    form.run(page_actor(request), versions=versions, written_by=written_by, modified_by=modified_by)
    return form


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
        counts[fate.code]
        for fate in (VersionOutcome.KEPT, VersionOutcome.FILLED, VersionOutcome.DROPPED, VersionOutcome.CONVERTED)
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
    """Return the versions that write and modify: the requested ones, else a pair with a reset, else the newest two."""
    if len(pair) == 2:
        return pair[0], pair[1]
    if resets:
        worst = max(resets, key=lambda item: (item.is_default, item.known_in, item.lost_in))
        return worst.known_in, worst.lost_in
    return in_use[-1], in_use[-2]


def _hazard_groups(resets: Sequence[Reset]) -> list[list[Reset]]:
    """Group the resets by field and version; each group is a row."""
    groups: dict[tuple[str, int, bool], list[Reset]] = {}
    for item in resets:
        groups.setdefault((item.path, item.lost_in, item.is_default), []).append(item)
    return [sorted(group, key=lambda item: -item.known_in) for _, group in sorted(groups.items())]


def _hazard_row(group: Sequence[Reset], pair: tuple[int, int]) -> HazardRow:
    shown = next((item for item in group if (item.known_in, item.lost_in) == pair), group[0])
    return HazardRow(
        path=shown.path,
        known_in=tuple(item.known_in for item in group),
        lost_in=shown.lost_in,
        example=shown.known_in,
        before=short_json(shown.before, 80),
        after=short_json(shown.after, 80),
        is_default=shown.is_default,
        selected=(shown.known_in, shown.lost_in) == pair,
    )


def _stops(versions: TrialVersions, in_use: Sequence[int]) -> tuple[str, ...]:
    """Say which versions can't read another's example; otherwise the absence of resets would suggest safety."""
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


#: number of versions considered in use by default
USUAL_IN_USE = 4


def simulator_page(request: HttpRequest, registry: str, subject: str) -> SimulatorPage:
    """Return the page of `?part=read&writer=1&reader=2` or `?part=modify&use=1&use=2`; POST sends data.

    Raises SubjectNotFound, VersionNotFound, InvalidVersion.
    """
    registry_row, name = get_registry(registry), parse_subject(subject)
    formats = selectors.version_formats(registry_row, name)
    kind = formats[0][1]
    offered = [number for number, other in formats if other == kind]
    part = "modify" if request.GET.get("part") == "modify" else "read"
    page = _empty(request, registry, name, part, offered)
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
    except SchemadeskError as error:  # a schema that is too costly to test, or versions without common data
        return replace(page, problem=Problem(what=error.message))


def _empty(request: HttpRequest, registry: str, name: SubjectName, part: str, offered: Sequence[int]) -> SimulatorPage:
    return SimulatorPage(
        frame=subject_frame(request, registry, name, "simulate", title=gettext("Simulate with data")),
        registry=registry,
        subject=name.qualified,
        url=subject_url(registry, name.qualified, "simulate"),
        post_url=request.get_full_path(),
        part=part,
        offered=tuple(offered),
    )


def _read(request: HttpRequest, registry: Registry, name: SubjectName, offered: Sequence[int]) -> ReadPart:
    reader = _version(request, "reader", offered, offered[0])
    older = next((number for number in offered if number < reader), offered[0])
    writer = _version(request, "writer", offered, older)
    versions = selectors.load_for_trial(registry, name, [reader, writer])
    return read_part(request, versions, reader=reader, writer=writer)


def _modify(request: HttpRequest, registry: Registry, name: SubjectName, offered: Sequence[int]) -> ModifyPart:
    numbers = [_number(text, offered) for text in request.GET.getlist("use")[: MAX_VERSIONS_TOGETHER + 1]]
    pair = [_number(request.GET[key], offered) for key in ("written_by", "modified_by") if request.GET.get(key)]
    in_use = sorted({*(numbers or offered[:USUAL_IN_USE]), *pair})[-MAX_VERSIONS_TOGETHER:]
    if len(in_use) < 2:
        in_use = sorted({*in_use, *offered[:2]})
    versions = selectors.load_for_trial(registry, name, sorted({*in_use, *pair}))
    return modify_part(request, versions, in_use=in_use, pair=pair)


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

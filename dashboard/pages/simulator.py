"""The simulator of a subject: data really encoded with one version and decoded with another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.links import subject_url, switch_url
from dashboard.pages.frame import make_frame
from dashboard.pages.numbers import whole_number
from dashboard.pages.simulator_parts import modify_part, read_part
from dashboard.pages.subject_parts import subject_crumbs, subject_parts
from dashboard.presenters.frame import Problem, Section
from dashboard.presenters.looks import format_name
from dashboard.presenters.simulator import ModifyPart, ReadPart, SimulatorPage
from dashboard.texts import later
from registry.errors import InvalidVersion, NotFound, SchemadeskError, VersionNotFound
from registry.subjects import selectors
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.places import Registry, get_registry
from registry.subjects.selectors.resolution import MAX_VERSIONS_TOGETHER

PARTS = (("read", later("What a reader gets")), ("modify", later("Read, modify, write back")))
#: versions that count as in use until somebody chooses
USUAL_IN_USE = 4


def simulator_page(request: HttpRequest, registry: str, subject: str) -> SimulatorPage:
    """The page of `?part=read&writer=1&reader=2` or `?part=modify&use=1&use=2`; data come with a POST.

    Raises SubjectNotFound, VersionNotFound, InvalidVersion.
    """
    place, name = get_registry(registry), parse_subject(subject)
    found = selectors.version_formats(place, name)
    kind = found[0][1]
    offered = [number for number, other in found if other == kind]
    part = "modify" if request.GET.get("part") == "modify" else "read"
    page = _empty(request, registry, name, part, kind)
    if part == "modify" and len(offered) < 2:
        return replace(
            page,
            too_few=gettext("Version %(offered)s is the only one in %(kind)s: nothing can lose its fields.")
            % {"offered": offered[0], "kind": format_name(kind)},
        )
    try:
        if part == "read":
            return replace(page, read=_read(request, place, name, offered))
        return replace(page, modify=_modify(request, place, name, offered))
    except (NotFound, InvalidVersion):
        raise
    except SchemadeskError as error:  # a schema that is too costly to try, or versions without data in common
        return replace(page, problem=Problem(what=error.message))


def _empty(request: HttpRequest, registry: str, name: SubjectName, part: str, kind: str) -> SimulatorPage:
    url = subject_url(registry, name.qualified, "simulate")
    return SimulatorPage(
        frame=make_frame(
            request,
            title=gettext("Simulate on data"),
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


def _read(request: HttpRequest, place: Registry, name: SubjectName, offered: Sequence[int]) -> ReadPart:
    reader = _version(request, "reader", offered, offered[0])
    older = next((number for number in offered if number < reader), offered[0])
    writer = _version(request, "writer", offered, older)
    versions = selectors.load_for_trial(place, name, [reader, writer])
    return read_part(request, versions, offered, reader=reader, writer=writer, address=_address(place, name))


def _modify(request: HttpRequest, place: Registry, name: SubjectName, offered: Sequence[int]) -> ModifyPart:
    asked = [_number(text, offered) for text in request.GET.getlist("use")[: MAX_VERSIONS_TOGETHER + 1]]
    pair = [_number(request.GET[key], offered) for key in ("written_by", "modified_by") if request.GET.get(key)]
    in_use = sorted({*(asked or offered[:USUAL_IN_USE]), *pair})[-MAX_VERSIONS_TOGETHER:]
    if len(in_use) < 2:
        in_use = sorted({*in_use, *offered[:2]})
    versions = selectors.load_for_trial(place, name, sorted({*in_use, *pair}))
    return modify_part(request, versions, offered, in_use=in_use, pair=pair, address=_address(place, name))


def _address(place: Registry, name: SubjectName) -> Callable[..., str]:
    def at(page: str, **query: object) -> str:
        return subject_url(place.name, name.qualified, page, **query)

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
            gettext("Version %(number)s not found among the live ones of the newest format.") % {"number": number},
            version=number,
        )
    return number

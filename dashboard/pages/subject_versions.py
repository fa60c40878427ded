"""The versions of a subject on its page: the table, and the strip of environments above it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.frame import environment_of
from dashboard.pages.subject_life import marks_of
from dashboard.pages.subject_words import DOORS
from dashboard.presenters.looks import Verdict
from dashboard.presenters.subjects import LivePlace, VersionRow
from dashboard.texts import later
from registry.promotions.selectors import VersionLife
from registry.subjects.names import SubjectName
from registry.subjects.selectors import SubjectPresence, VersionInfo, VersionSummary
from registry.subjects.selectors.presence import FIRST_OF_GROUP, NOT_ASKED, NOT_READ

#: why a version isn't judged → how its row says it
_UNJUDGED: Final = {
    NOT_ASKED: later("not asked"),
    FIRST_OF_GROUP: later("first of its group"),
    NOT_READ: later("can’t be judged"),
}

Releases = Mapping[tuple[str, int], int]


def version_rows(
    registry: str,
    name: SubjectName,
    infos: Sequence[VersionInfo],
    summaries: Mapping[int, VersionSummary],
    presence: SubjectPresence,
    releases: Releases,
    lives: Mapping[int, VersionLife],
    order: list[str],
    selected: int,
) -> tuple[VersionRow, ...]:
    """A row a version, in the order of `infos`."""
    return tuple(
        VersionRow(
            version=info.version,
            schema_id=info.schema.schema_id,
            fingerprint=info.schema.fingerprint,
            url=subject_url(registry, name.qualified, version=info.version),
            **_against(registry, name, info, summaries.get(info.version)),
            registered_at=info.created_at,
            registered_by=info.created_by,
            via=gettext("request %(request)s") % {"request": releases[registry, info.version]}
            if (registry, info.version) in releases
            else DOORS.get(info.door, info.door),
            live_in=_live_in(name, presence, info.schema.fingerprint, order),
            selected=info.version == selected,
            deleted=info.deleted,
            marks=marks_of(lives[info.version]) if info.version in lives else (),
        )
        for info in infos
    )


def _against(registry: str, name: SubjectName, info: VersionInfo, summary: VersionSummary | None) -> dict[str, Any]:
    """What a row says of the version before: nothing of a deleted version, which has none."""
    if summary is None:
        if info.deleted:
            return {"summary": gettext("soft-deleted"), "verdict_note": gettext("not judged")}
        return {"summary": gettext("first version")}
    verdict = None
    if summary.is_compatible is not None:
        verdict = Verdict.OK if summary.is_compatible else Verdict.BREAKS
    elif summary.unjudged == NOT_READ:
        verdict = Verdict.UNKNOWN
    note = _UNJUDGED.get(summary.unjudged, "")
    if summary.against not in (None, summary.previous):
        note = gettext("against version %(version)s of its group") % {"version": summary.against}
    return {
        "summary": summary.sentence or gettext("what changed can’t be told"),
        "problem": summary.problem,
        "verdict": verdict,
        "verdict_note": note,
        "compare_url": subject_url(registry, name.qualified, "compare", from_=summary.previous, to=info.version),
    }


def _live_in(name: SubjectName, presence: SubjectPresence, fingerprint: str, order: list[str]) -> tuple[LivePlace, ...]:
    """The environments that have the version's content, with the number, the id and the time that it has there."""
    found = []
    for place in order:
        version = presence.version_with(place, fingerprint)
        if version is not None:
            arrival = presence.arrivals[place, version]
            found.append(
                LivePlace(
                    environment=environment_of(place, order),
                    version=version,
                    schema_id=arrival.schema_id,
                    since=arrival.since,
                    url=subject_url(place, name.qualified, version=version),
                )
            )
    return tuple(found)

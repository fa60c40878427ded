"""The history of a field over all versions of a subject.

It has the changes in each version, the field's values in scanned data, and fields with the same name elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import subject_crumbs, subject_url
from dashboard.components.translation import counted
from dashboard.components.widgets import Fact, Frame, Link, Section
from dashboard.sources.labels import listed
from dashboard.subjects.page import CHANNELS
from dashboard.subjects.structure import is_of
from registry.drift.replay.field_evidence import MAX_DAYS, FieldOnDay, field_on_days
from registry.search.selectors.similar_names import Namesake, OtherType, namesakes_of_other_types
from registry.subjects.history.field_history import (
    CHANGED,
    INTRODUCED,
    REMOVED,
    RETURNED,
    THERE,
    Chapter,
    FieldHistory,
    field_history,
)
from registry.subjects.policy.registries import mirror_of
from registry.subjects.usage.clients import ClientInfo, clients_of
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLine:
    """One change; `url` links to the history of the field's earlier name."""

    icon: str
    sentence: str
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChapterRow:
    """A version that changed the field."""

    version: int
    url: str
    at: datetime
    by: str
    via: str
    changes: tuple[ChangeLine, ...]
    compare_url: str = ""
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DayRow:
    """A day's messages, and the shares without the field or with null, in words."""

    day: date
    messages: int
    missing: str
    nulls: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """A share over days as a line: `points` in a box of 100 by 24, oldest first; `text` says the same in words."""

    points: tuple[tuple[float, float], ...]
    text: str

    @property
    def drawn(self) -> str:
        """The points in SVG's number format, in every language."""
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherTypeRow:
    """Another type of fields with this name, and the fields; `more` counts those that aren't listed."""

    type: str
    fields: tuple[Link, ...]
    more: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPage:
    """The page; `now` has facts about the field in the newest version, and is empty if the field was removed.

    `needed` names the declared clients that need the field; `usage_url` is their page. `problem` says that no version
    has the field, with similar paths in `nearest`. `bounds` says what wasn't searched.
    """

    frame: Frame
    path: str
    subject: str
    subject_url: str
    summary: str
    now: tuple[Fact, ...]
    tags: tuple[str, ...]
    chapters: tuple[ChapterRow, ...]
    in_data: str
    days: tuple[DayRow, ...]
    others: tuple[OtherTypeRow, ...]
    others_said: str
    needed: str
    usage_url: str
    bounds: tuple[str, ...] = ()
    sparkline: Sparkline | None = None
    problem: str = ""
    nearest: tuple[Link, ...] = ()


ICONS: Final = {INTRODUCED: "plus", THERE: "circle-dashed", REMOVED: "minus", RETURNED: "undo-2", CHANGED: "pencil"}


def field_page(request: HttpRequest, registry: str, subject: str, path: str) -> FieldPage:
    """Return the page of a field. Raises RegistryNotFound, SubjectNotFound, InvalidName."""
    registry_row, name = get_registry(registry), parse_subject(subject)
    history = field_history(registry_row, name, path)
    actor = page_actor(request)
    days = field_on_days(registry_row, name, path) if history.chapters else ()
    others = namesakes_of_other_types(history.field.name, history.field.type, by=actor) if history.field else ()
    url = subject_url(registry, name.qualified)
    return FieldPage(
        frame=make_frame(
            request,
            title=path,
            section=Section.SUBJECTS,
            registry=registry,
            code=True,
            crumbs=subject_crumbs(registry, name),
            url_in=lambda other: field_url(other, name, path),
            mirror=mirror_of(registry_row),
        ),
        path=path,
        subject=name.qualified,
        subject_url=url,
        summary=_summary(history),
        now=_now(history),
        tags=history.field.tags if history.field else (),
        chapters=_chapters(registry, name, history),
        # the past has neither field counts nor an index of fields
        in_data="" if actor.past else _data_sentence(days),
        days=tuple(_day(item) for item in days),
        sparkline=_sparkline(days),
        others=tuple(_other(item) for item in others),
        needed=_needed(clients_of(registry_row, name), path) if history.chapters and not actor.past else "",
        usage_url=subject_url(registry, name.qualified, "usage"),
        others_said="" if actor.past else _others_said(history, others),
        bounds=_bounds(history),
        problem=""
        if history.chapters
        else gettext("No checked version of %(qualified)s has a field %(path)s.")
        % {"qualified": name.qualified, "path": path},
        nearest=tuple(Link(label=other, url=field_url(registry, name, other)) for other in history.nearest),
    )


def field_url(registry: str, subject: SubjectName, path: str) -> str:
    """Return the URL of a field's history."""
    query = urlencode({"registry": registry, "subject": subject.qualified, "path": path})
    return f"{reverse('ui:field')}?{query}"


def _summary(history: FieldHistory) -> str:
    if not history.chapters:
        return ""
    first, changes = history.chapters[0], sum(len(item.changes) for item in history.chapters) - 1
    kind = first.changes[0].kind
    began = (
        gettext("Already in version %(version)s") % {"version": first.version}
        if kind == THERE
        else gettext("Added in version %(version)s") % {"version": first.version}
    )
    sentence = (
        counted(changes, "%(began)s. %(n)s change since.", "%(began)s. %(n)s changes since.", began=began)
        if changes
        else gettext("%(began)s. Unchanged since.") % {"began": began}
    )
    if history.field:
        return sentence
    return f"{sentence} {gettext('The newest version, %(version)s, doesn’t have it.') % {'version': history.newest}}"


def _now(history: FieldHistory) -> tuple[Fact, ...]:
    if history.field is None:
        return ()
    item = history.field
    default = (
        item.default if item.default is not None else (gettext("none (required)") if item.required else gettext("none"))
    )
    facts = [
        Fact(label=gettext("Type"), value=item.type, code=True),
        Fact(label=gettext("Default"), value=default, code=item.default is not None),
    ]
    if item.doc:
        facts.append(Fact(label=gettext("Meaning"), value=item.doc))
    if item.aliases:
        facts.append(Fact(label=gettext("Also known as"), value=", ".join(item.aliases), code=True))
    return tuple(facts)


def _needed(clients: Sequence[ClientInfo], path: str) -> str:
    """Say which declared clients need the field, a part of it, or a parent of it."""
    if not clients:
        return gettext("No clients are declared, so it is unknown who uses this field.")
    need = [client.name for client in clients if any(is_of(path, field) for field in client.fields)]
    silent = sum(not client.fields for client in clients)
    sentence = (
        gettext("Declared users: %(clients)s.") % {"clients": listed(need)}
        if need
        else gettext("No client declares that it uses this field.")
    )
    if not silent:
        return sentence
    rest = counted(silent, "%(n)s more client doesn’t list its fields.", "%(n)s more clients don’t list their fields.")
    return f"{sentence} {rest}"


def _chapters(registry: str, name: SubjectName, history: FieldHistory) -> tuple[ChapterRow, ...]:
    numbers = [item.version for item in history.chapters]
    return tuple(_chapter(registry, name, item, is_first=item.version == numbers[0]) for item in history.chapters)


def _chapter(registry: str, name: SubjectName, chapter: Chapter, *, is_first: bool) -> ChapterRow:
    return ChapterRow(
        version=chapter.version,
        url=subject_url(registry, name.qualified, version=chapter.version),
        at=chapter.at,
        by=chapter.by,
        via=CHANNELS.get(chapter.channel, chapter.channel),
        changes=tuple(
            ChangeLine(
                icon=ICONS[change.kind],
                sentence=change.sentence,
                url=field_url(registry, name, change.renamed_from) if change.renamed_from else "",
            )
            for change in chapter.changes
        ),
        compare_url="" if is_first else subject_url(registry, name.qualified, "compare", to=chapter.version),
        deleted=chapter.deleted,
    )


def _data_sentence(days: Sequence[FieldOnDay]) -> str:
    messages = sum(item.messages for item in days)
    if not messages:
        return gettext("No scan in the last %(max_days)s days has seen messages with this field.") % {
            "max_days": MAX_DAYS
        }
    missing, nulls = sum(item.messages - item.present for item in days), sum(item.nulls for item in days)
    return gettext(
        "Scans in the last %(max_days)s days read %(messages)s messages: this field is null in %(null)s and "
        "missing in %(missing)s."
    ) % {
        "messages": f"{messages:,}",
        "max_days": MAX_DAYS,
        "null": _share(nulls, messages),
        "missing": _share(missing, messages),
    }


def _day(item: FieldOnDay) -> DayRow:
    return DayRow(
        day=item.day,
        messages=item.messages,
        missing=_share(item.messages - item.present, item.messages),
        nulls=_share(item.nulls, item.messages),
    )


def _sparkline(days: Sequence[FieldOnDay]) -> Sparkline | None:
    """Return the daily share of messages where the field was null or missing; None for fewer than two days."""
    read = sorted((item for item in days if item.messages), key=lambda item: item.day)
    if len(read) < 2:
        return None
    begin, whole = read[0].day, (read[-1].day - read[0].day).days
    shares = [min(1.0, (item.messages - item.present + item.nulls) / item.messages) for item in read]
    at = tuple(
        (98 * (item.day - begin).days / whole + 1, 22 - 20 * share) for item, share in zip(read, shares, strict=True)
    )
    text = gettext(
        "Share without a value per day, %(first)s to %(last)s: %(begin)s on the first day, %(end)s on the last "
        "day, minimum %(least)s, maximum %(most)s."
    ) % {
        "first": read[0].day.isoformat(),
        "last": read[-1].day.isoformat(),
        "begin": _percent(shares[0]),
        "end": _percent(shares[-1]),
        "least": _percent(min(shares)),
        "most": _percent(max(shares)),
    }
    return Sparkline(points=at, text=text)


def _percent(share: float) -> str:
    """Format a share; rounding never gives 0 % or 100 %."""
    return f"{100 * share:.0f} %" if share in (0, 1) else f"{min(max(100 * share, 0.1), 99.9):.1f} %"


def _share(part: int, whole: int) -> str:
    if not part or not whole:
        return gettext("none")
    if part == whole:
        return gettext("all")
    share = 100 * part / whole
    return f"{share:.1f} %" if share >= 0.1 else gettext("less than 0.1 %")


def _namesake_label(item: Namesake) -> str:
    values = {"subject": item.subject, "registry": item.registry, "parent": item.parent}
    return (
        gettext("%(subject)s (%(registry)s), in %(parent)s") if item.parent else "%(subject)s (%(registry)s)"
    ) % values


def _other(other: OtherType) -> OtherTypeRow:
    more = other.many - len(other.fields)
    return OtherTypeRow(
        type=other.type,
        fields=tuple(
            Link(
                label=_namesake_label(item),
                url=subject_url(item.registry, item.subject, version=item.version),
            )
            for item in other.fields
        ),
        more=gettext("and %(n)s more") % {"n": f"{more:,}"} if more else "",
    )


def _others_said(history: FieldHistory, others: Sequence[OtherType]) -> str:
    if history.field is None:
        return ""
    if not others:
        return gettext("In all subjects that you can read, fields called %(field)s have this type, %(type)s.") % {
            "field": history.field.name,
            "type": history.field.type,
        }
    count = sum(item.many for item in others)
    return counted(
        count,
        "Type here: %(type)s. %(n)s field with the same name elsewhere has another type.",
        "Type here: %(type)s. %(n)s fields with the same name elsewhere have another type.",
        type=history.field.type,
    )


def _bounds(history: FieldHistory) -> tuple[str, ...]:
    sentences = [
        gettext("Version %(version)s can’t be read: %(sentence)s") % {"version": version, "sentence": sentence}
        for version, sentence in history.unread
    ]
    left_out = history.versions - history.looked_at - len({version for version, _ in history.unread})
    if left_out > 0:
        sentences.append(
            counted(left_out, "%(n)s older version was not checked.", "%(n)s older versions were not checked.")
        )
    return tuple(sentences)

"""The history of a field over all versions of a subject.

It has the changes in each version, the field's values in scanned data, and fields with the same name elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.components.frame import page_actor, subject_frame
from dashboard.components.links import subject_url
from dashboard.components.translation import counted
from dashboard.components.widgets import Fact, Frame, Link
from dashboard.lineage.field_impact import ImpactPanel, impact_panel
from dashboard.subjects.glossary import FieldTermForm
from registry.access.roles import refusal
from registry.drift.replay.field_evidence import MAX_DAYS, FieldOnDay, field_on_days
from registry.search.selectors.similar_names import Namesake, OtherType, namesakes_of_other_types
from registry.subjects.history.field_history import (
    CHANGED,
    INTRODUCED,
    REMOVED,
    RETURNED,
    THERE,
    Chapter,
    FieldChange,
    FieldHistory,
    field_history,
)
from registry.subjects.lifecycle.glossary import TermInfo, term_of_field
from registry.subjects.lifecycle.notes import ACTION
from registry.subjects.models import Registry
from registry.subjects.policy.registries import mirror_of
from registry.subjects.versions.lookup import get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Sparkline:
    """A share over days as a line: `points` in a box of 100 by 24, oldest first; `text` says the same in words."""

    points: tuple[tuple[float, float], ...]
    text: str

    @property
    def drawn(self) -> str:
        """The points in SVG's number format, in every language."""
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in self.points)


ICONS: Final = {INTRODUCED: "plus", THERE: "circle-dashed", REMOVED: "minus", RETURNED: "undo-2", CHANGED: "pencil"}


#: characters of a schema whose changes are checked with each view of a field
LONGEST_CHECKED: Final = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPage:
    """The page of a field; `others` are fields with this name and another type elsewhere.

    `in_data`, `others_said` and `impact` are empty in the past, which has neither field counts nor an index of fields.
    """

    frame: Frame
    registry: str
    subject: SubjectName
    history: FieldHistory
    days: tuple[FieldOnDay, ...] = ()
    others: tuple[OtherType, ...] = ()
    in_data: str = ""
    others_said: str = ""
    impact: ImpactPanel | None = None
    term: TermInfo | None = None
    term_form: FieldTermForm | None = None
    term_refused: str = ""

    @property
    def url(self) -> str:
        """The page's URL."""
        return field_url(self.registry, self.subject, self.history.path)

    @property
    def qualified(self) -> str:
        """The subject's qualified name."""
        return self.subject.qualified

    @property
    def summary(self) -> str:
        """The version that added the field, and the number of changes since."""
        return _summary(self.history)

    @property
    def now(self) -> tuple[Fact, ...]:
        """Facts about the field in the newest version; empty if it was removed."""
        return _now(self.history)

    @property
    def changes(self) -> list[tuple[Chapter, list[tuple[str, FieldChange]]]]:
        """The versions that changed the field, with icons for the changes."""
        return [(one, [(ICONS[change.kind], change) for change in one.changes]) for one in self.history.chapters]

    @property
    def shares(self) -> list[tuple[FieldOnDay, str, str]]:
        """The days, with the shares of messages with null and without the field, in words."""
        return [
            (day, _share(day.nulls, day.messages), _share(day.messages - day.present, day.messages))
            for day in self.days
        ]

    @property
    def sparkline(self) -> Sparkline | None:
        """The share without a value by day."""
        return _sparkline(self.days)

    @property
    def other_types(self) -> list[tuple[OtherType, list[Link], str]]:
        """The other types, with links to their fields, and the number of fields that aren't listed."""
        return [(other, [_namesake_link(item) for item in other.fields], _more(other)) for other in self.others]

    @property
    def bounds(self) -> tuple[str, ...]:
        """Sentences on what wasn't searched."""
        return _bounds(self.history)

    @property
    def nearest(self) -> list[Link]:
        """Similar paths if no version has the field."""
        return [Link(label=path, url=field_url(self.registry, self.subject, path)) for path in self.history.nearest]


def field_page(request: HttpRequest, registry: str, subject: str, path: str) -> FieldPage:
    """Return the page of a field. Raises RegistryNotFound, SubjectNotFound, InvalidName."""
    registry_row, name = get_registry(registry), parse_subject(subject)
    history = field_history(registry_row, name, path)
    actor = page_actor(request)
    days = field_on_days(registry_row, name, path) if history.chapters else ()
    term = term_of_field(registry_row, name, path) if history.field else None
    others = namesakes_of_other_types(history.field.name, history.field.type, by=actor) if history.field else ()
    return FieldPage(
        frame=subject_frame(
            request,
            registry,
            name,
            title=path,
            code=True,
            url_in=lambda other: field_url(other, name, path),
            mirror=mirror_of(registry_row),
        ),
        registry=registry,
        subject=name,
        history=history,
        days=days,
        in_data="" if actor.past else _data_sentence(days),
        others=others,
        impact=_impact(request, registry_row, name, history) if history.field and not actor.past else None,
        term=term,
        term_form=FieldTermForm(initial={"path": path, "term": term.name if term else ""}) if history.field else None,
        term_refused=refusal(actor, ACTION, registry=registry_row.name, subject=name.qualified),
        others_said="" if actor.past else _others_said(history, others),
    )


def _impact(request: HttpRequest, registry: Registry, name: SubjectName, history: FieldHistory) -> ImpactPanel | None:
    """Return what breaks if the field changes; for a large schema only on request, because it takes seconds."""
    if history.characters > LONGEST_CHECKED and "impact" not in request.GET:
        return ImpactPanel(later_url=f"{field_url(registry.name, name, history.path)}&impact=1#impact-title")
    return impact_panel(registry, name, history.path, by=page_actor(request))


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
    gone = gettext("The newest version, %(version)s, doesn’t have it.") % {"version": history.newest}
    return f"{sentence} {gone}"


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


def _namesake_link(item: Namesake) -> Link:
    values = {"subject": item.subject, "registry": item.registry, "parent": item.parent}
    in_parent = gettext("%(subject)s (%(registry)s), in %(parent)s")
    label = (in_parent if item.parent else "%(subject)s (%(registry)s)") % values
    return Link(label=label, url=subject_url(item.registry, item.subject, version=item.version))


def _more(other: OtherType) -> str:
    more = other.many - len(other.fields)
    return gettext("and %(n)s more") % {"n": f"{more:,}"} if more else ""


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

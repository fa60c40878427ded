"""The columns of the list of subjects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import urlencode

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from dashboard.components.badges import SubjectHealth, format_name
from dashboard.components.links import subject_url
from dashboard.components.tables import ListColumn, nothing
from dashboard.components.time_travel import with_moment
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import Environment, readable
from dashboard.subjects.descriptions import OwnerChip, TagChip
from dashboard.templatetags.desk import badge, name, time_ago, time_by, visible
from registry.drift.usage.subject_topics import NOTHING, SubjectCarriers
from registry.search.subject_list import BY_CHANGE, BY_NAME, DRIFT, REQUEST, UNCHECKED, UNOWNED
from registry.subjects.selectors import SubjectRow
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT

#: problem → its sentence
_WHY: Final = {
    DRIFT: _("Open drift findings: its data doesn’t match what was approved."),
    REQUEST: _("An open request for it is breaking, or a check has failed."),
    UNCHECKED: _("In production with compatibility NONE: nothing is checked."),
    UNOWNED: _("No owner."),
}
_GOOD: Final = _("Nothing needs attention.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectLine:
    """A subject of the list with its state elsewhere, as of `now`.

    `signs` are its problems, worst first; `has_request` says whether it has an open request, and `request` is that
    request if the reader may read it.
    """

    registry: str
    info: SubjectRow
    now: datetime
    signs: tuple[str, ...] = ()
    findings: int = 0
    request: int | None = None
    has_request: bool = False
    tags: tuple[TagChip, ...] = ()
    owners: tuple[OwnerChip, ...] = ()
    carriers: SubjectCarriers = NOTHING

    @property
    def qualified(self) -> str:
        """The subject's qualified name."""
        return self.info.subject.qualified

    @property
    def health(self) -> SubjectHealth:
        """The worst problem."""
        return SubjectHealth.of(self.signs[0]) if self.signs else SubjectHealth.GOOD


def columns(environments: Sequence[Environment]) -> tuple[ListColumn, ...]:
    """Return the columns, including one per environment."""
    return (
        ListColumn(name="health", sort="", label=gettext("Health"), cell=_health, has_label=False),
        ListColumn(name="name", sort=BY_NAME, is_up=True, label=gettext("Subject"), cell=_subject, is_heading=True),
        *(
            _version_column(environment, [earlier.name for earlier in environments[:number]])
            for number, environment in enumerate(environments)
        ),
        ListColumn(label=gettext("Compatibility"), cell=_level, css="nowrap"),
        ListColumn(label=gettext("Format"), cell=lambda row: visible(format_name(row.info.schema_type))),
        ListColumn(label=gettext("In data"), cell=_in_data),
        ListColumn(name="changed", sort=BY_CHANGE, label=gettext("Last change"), cell=_changed, css="nowrap"),
    )


def _health(row: SubjectLine) -> SafeString:
    if row.info.deleted:
        return nothing(gettext("no status"))
    why = " ".join(str(_WHY[sign]) for sign in row.signs) or str(_GOOD)
    state = badge(row.health, quiet=True)
    html = '<span title="{}">{}<span class="visually-hidden"> {}</span></span>{}'
    return format_html(html, readable(why), state, visible(why), _open_problems(row))


def _open_problems(row: SubjectLine) -> SafeString:
    """Return the open findings and the open request, linked if the reader may read them."""
    parts = []
    if row.findings:
        query = urlencode({"subject": row.qualified, "registry": row.registry})
        findings = counted(row.findings, "%(n)s finding", "%(n)s findings")
        parts.append(format_html('<a href="{}?{}">{}</a>', reverse("ui:findings"), query, findings))
    if row.request:
        text = gettext("request %(request)s") % {"request": row.request}
        url = with_moment(reverse("ui:promotion", args=[row.request]))
        parts.append(format_html('<a href="{}">{}</a>', url, text))
    elif row.has_request:
        parts.append(visible(gettext("open request")))
    shown = format_html_join(" · ", "{}", ((part,) for part in parts))
    return format_html('<span class="sub">{}</span>', shown) if parts else shown


def _subject(row: SubjectLine) -> SafeString:
    subject = row.info.subject
    context = subject.context if subject.context != DEFAULT_CONTEXT else ""
    before = format_html('<span class="muted mono">{} / </span>', name(context, 40)) if context else ""
    url = with_moment(subject_url(row.registry, subject.qualified))
    after = format_html(' <span class="chip">{}</span>', gettext("soft-deleted")) if row.info.deleted else ""
    html = '{}<a class="primary mono" href="{}">{}</a>{}{}'
    return format_html(html, before, url, name(subject.subject, 110), after, _chips(row))


def _chips(row: SubjectLine) -> SafeString | str:
    if not (row.tags or row.owners):
        return ""
    tags = render_to_string("components/tags.html", {"tags": row.tags})
    owners = render_to_string("components/owners.html", {"owners": row.owners})
    return format_html('<span class="sub">{} {}</span>', tags, owners)


def _version_column(environment: Environment, earlier: Sequence[str]) -> ListColumn:
    """Return a column with an environment's version and its difference from the previous environment."""

    def cell(row: SubjectLine) -> SafeString:
        version = row.info.versions.get(environment.name)
        if version is None:
            return nothing(gettext("not there"))
        url = with_moment(subject_url(environment.name, row.qualified))
        link = format_html('<a class="version-number" href="{}">{}</a>', url, version)
        sign, words = _difference(row.info, environment.name, earlier)
        if not sign:
            return link
        html = (
            '<span class="behind" title="{words}"><span aria-hidden="true">{sign}</span>'
            '<span class="visually-hidden">{words},</span></span> {link}'
        )
        return format_html(html, words=words, sign=sign, link=link)

    return ListColumn(label=environment.short, cell=cell, css="right nowrap tight", head_css="right")


def _difference(info: SubjectRow, here: str, earlier: Sequence[str]) -> tuple[str, str]:
    """Return a sign and its words if the newest schema differs from the previous environment's, else "".

    The previous environment is the nearest that has the subject. It compares schemas, because versions can be skipped
    or rolled back.
    """
    before = next((name for name in reversed(earlier) if name in info.versions), None)
    if before is None or info.schemas.get(before) == info.schemas.get(here):
        return "", ""
    number = info.versions[before] - info.versions[here]
    if number > 0:
        return f"−{number}", gettext("%(behind)s behind %(before)s") % {"behind": number, "before": before}
    return "≠", gettext("another schema than the newest of %(before)s") % {"before": before}


def _level(row: SubjectLine) -> SafeString:
    level = visible(row.info.level)
    if row.info.level_is_own:
        return format_html('<span class="mono">{}</span> <span class="chip">{}</span>', level, gettext("own"))
    html = '<span class="mono muted">{}</span><span class="visually-hidden"> {}</span>'
    return format_html(html, level, gettext("inherited"))


def _in_data(row: SubjectLine) -> SafeString:
    """Return the number of topics and queries that carry the subject, and the time of its last message."""
    topics, queries = row.carriers.topics, row.carriers.queries
    texts = (
        counted(topics, "%(n)s topic", "%(n)s topics") if topics else "",
        counted(queries, "%(n)s query", "%(n)s queries") if queries else "",
    )
    if not (topics or queries):
        return nothing(gettext("no known topics"))
    seen = row.carriers.last_seen
    last = (
        format_html(gettext("last seen {last_seen}"), last_seen=time_ago(seen, row.now))
        if seen
        else gettext("never seen")
    )
    html = '<a href="{}">{}</a><span class="sub nowrap">{}</span>'
    return format_html(html, subject_url(row.registry, row.qualified, "usage"), ", ".join(filter(None, texts)), last)


def _changed(row: SubjectLine) -> SafeString:
    return time_by(row.info.changed_at, row.info.changed_by, row.now, limit=24)

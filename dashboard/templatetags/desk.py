"""Template tags and filters: icons, badges, relative times, safe display of names, URLs of subjects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from django import template
from django.conf import settings
from django.forms import BoundField
from django.template.context import Context
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.dateformat import format as date_format
from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from dashboard.components import badges, links, markdown
from dashboard.components.time_travel import moment_field, with_moment
from dashboard.components.translation import counted
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.widgets import HIDDEN as _HIDDEN
from dashboard.components.widgets import Action, Environment, Link, readable
from registry.access.http_client import PREFIX
from registry.access.roles import may, may_somewhere
from registry.promotions.plan.types import WARN, warnings_of

register = template.Library()
register.filter(badges.format_name)
register.filter("channel", badges.channel_name)
register.filter(readable)
register.filter("link", with_moment)
register.filter(moment_field)

THEMES = ("light", "dark")
"""Values of the cookie `theme`; anything else follows the system."""
LONGEST_NAME = 160
"""Characters of a name that are drawn; the middle of a longer one is left out, and is there on hover."""
LONGEST_TITLE = 1_000
"""Characters of a name that are there on hover; below a heading all of them can be unfolded."""
LONGEST_HEADING = 400
"""Characters of a name that a heading draws."""

LONGEST_WORD = 40
"""Characters of a word from which it may be broken anywhere."""

_LONG = re.compile(rf"(\S{{{LONGEST_WORD},}})")
_STATES: dict[str, type[badges.BadgeState]] = {
    "answer": badges.AnswerState,
    "evidence": badges.EvidenceKind,
    "lint": badges.LintWeight,
    "policy": badges.Weight,
    "check": badges.Check,
    "request": badges.RequestState,
    "review": badges.ReviewState,
    "retirement": badges.Retire,
    "use": badges.InUse,
    "verdict": badges.Verdict,
}
_STEPS = (
    (60, 1, _("%(n)s s ago"), _("in %(n)s s")),
    (3600, 60, _("%(n)s min ago"), _("in %(n)s min")),
    (86_400, 3600, _("%(n)s h ago"), _("in %(n)s h")),
    (30 * 86_400, 86_400, _("%(n)s d ago"), _("in %(n)s d")),
)


@register.simple_tag
@lru_cache(maxsize=1_000)
def icon(name: str, css: str = "") -> SafeString:
    """Render a decorative icon of the sprite; the text beside it has the meaning.

    Cached: a page has hundreds, of few kinds.
    """
    return format_html(
        '<svg class="icon {}" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        css,
        static("icons.svg"),
        name,
    )


@register.simple_tag
def direction(verdict: badges.Verdict) -> SafeString:
    """Render the verdict of one direction: works, fails, with care, not checked."""
    return badge(verdict, verdict.direction_word, quiet=True)


@register.simple_tag
def impact(verdict: badges.Verdict) -> SafeString:
    """Render the verdict of one change: breaking, needs care, safe."""
    return badge(verdict, verdict.change_word)


@register.simple_tag
def badge(
    state: badges.BadgeState | badges.SourceBadge | badges.Look, word: str = "", quiet: bool = False
) -> SafeString:
    """Render a state as icon, word and colour; `word` replaces the state's own, `quiet` omits the filled background."""
    look = state if isinstance(state, badges.Look) else state.look
    return _badge(look.tone, look.icon, str(word or look.word), quiet)


@register.filter
def as_state(code: str, kind: str) -> badges.BadgeState:
    """Return the state of a kind by its name in data, for a badge: `info.state|as_state:"request"`."""
    return _STATES[kind].of(code)


@register.filter
def check_state(check: Mapping[str, Any]) -> badges.Check:
    """Return the state of a stored check for its badge: a warning that is usual is a note."""
    is_note = check["verdict"] == WARN and not warnings_of([check])
    return badges.Check.NOTED if is_note else badges.Check.of(check["verdict"])


@lru_cache(maxsize=1_000)
def _badge(tone: str, icon_name: str, word: str, quiet: bool) -> SafeString:
    return format_html(
        '<span class="badge tone-{}{}">{}<span>{}</span></span>',
        tone,
        " badge-quiet" if quiet else "",
        icon(icon_name),
        visible(word),
    )


def relative(moment: datetime, now: datetime) -> str:
    """Format a moment relative to `now`: "just now", "4 min ago", "in 2 h"; beyond 30 days the date."""
    seconds = (now - moment).total_seconds()
    distance = abs(seconds)
    if distance < 5:
        return gettext("just now")
    for limit, unit, past, future in _STEPS:
        if distance < limit:
            return (past if seconds > 0 else future) % {"n": int(distance // unit)}
    return date_format(timezone.localtime(moment), "j M Y")


@register.simple_tag
def product_version() -> str:
    """Render the version of Schemadesk."""
    return str(settings.PRODUCT_VERSION)


@register.simple_tag(takes_context=True)
def ago(context: Context, moment: datetime | None, none: str = "") -> SafeString | str:
    """Render a moment relative to the page's `now`, with the exact time in `title` and `datetime` (see `at`)."""
    if moment is None:
        return none or gettext("never")
    return time_ago(moment, _now(context))


def _now(context: Context) -> datetime:
    """Return the moment that the page's relative times count from."""
    frame = getattr(context.get("page"), "frame", None)
    return getattr(frame, "now", None) or timezone.now()


def time_ago(moment: datetime, now: datetime) -> SafeString:
    """Render a moment relative to `now`, with the exact time in `title` and `datetime`."""
    exact = moment.astimezone(UTC)
    there = "" if _in_utc() else f"{timezone.localtime(moment):%Y-%m-%d %H:%M:%S %Z} · "
    return format_html(
        '<time datetime="{}" title="{}{} UTC">{}</time>',
        exact.strftime("%Y-%m-%dT%H:%M:%SZ"),
        there,
        exact.strftime("%Y-%m-%d %H:%M:%S"),
        relative(moment, now),
    )


@register.simple_tag(takes_context=True)
def done_by(context: Context, moment: datetime | None, who: str, limit: int = 30, none: str = "") -> SafeString | str:
    """Render when something was done and by whom: "4 min ago by steward"; without a name only the time."""
    return time_by(moment, who, _now(context), limit) if moment else none or gettext("never")


def time_by(moment: datetime, who: str, now: datetime, limit: int = 30) -> SafeString:
    """Render a moment relative to `now`, followed by the person, if known."""
    when = time_ago(moment, now)
    if not who:
        return when
    return format_html(gettext('{when} <span class="second">by {who}</span>'), when=when, who=name(who, limit))


def _in_utc() -> bool:
    return timezone.get_current_timezone_name() == "UTC"


@register.simple_tag
def zone() -> str:
    """Return the time zone of exact times: the viewer's, as reported by the browser, else UTC."""
    return timezone.get_current_timezone_name()


@register.simple_tag
def at(moment: datetime | None, none: str = "—") -> SafeString | str:
    """Render a moment to the second in the viewer's time zone, with UTC in `title` and `datetime`."""
    if moment is None or _in_utc():
        return utc(moment, none)
    exact, there = moment.astimezone(UTC), timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{} UTC">{} <span class="zone">{}</span></time>',
        exact.strftime("%Y-%m-%dT%H:%M:%SZ"),
        exact.strftime("%Y-%m-%d %H:%M:%S"),
        there.strftime("%Y-%m-%d %H:%M:%S"),
        there.strftime("%Z"),
    )


@register.simple_tag
def utc(moment: datetime | None, none: str = "—") -> SafeString | str:
    """Render a moment in UTC, for files that must be the same for everybody."""
    if moment is None:
        return none
    exact = moment.astimezone(UTC)
    return format_html(
        '<time datetime="{}">{} <span class="zone">UTC</span></time>',
        exact.strftime("%Y-%m-%dT%H:%M:%SZ"),
        exact.strftime("%Y-%m-%d %H:%M:%S"),
    )


@register.simple_tag
def name(value: str, limit: int = LONGEST_NAME) -> SafeString:
    """Render an untrusted name: isolated from the text direction, with control characters as code points."""
    text = str(value)
    if not text:
        return format_html('<bdi class="name"><span class="codepoint">{}</span></bdi>', gettext("empty name"))
    if len(text) <= limit:
        return format_html('<bdi class="name">{}</bdi>', visible(text))
    shown = f"{text[: limit * 2 // 3]}…{text[-(limit // 3) :]}"
    return format_html('<bdi class="name" title="{}">{}</bdi>', readable(text[:LONGEST_TITLE]), visible(shown))


@register.simple_tag
def names(values: Sequence[Any], limit: int = LONGEST_NAME, css: str = "mono") -> SafeString:
    """Render names or people as one list, so that its sentence can be translated as a whole; set `css` for people."""
    words = (getattr(value, "username", value) for value in values)
    return format_html_join(", ", '<span class="{}">{}</span>', ((css, name(word, limit)) for word in words))


@register.simple_tag
def linked(links: Sequence[Link], limit: int = LONGEST_NAME, css: str = "") -> SafeString:
    """Render links as one list, for the same reason."""
    shown = ((css, with_moment(link.url), name(link.label, limit)) for link in links)
    return format_html_join(", ", '<a class="{}" href="{}">{}</a>', shown)


@register.inclusion_tag("components/whole_name.html")
def whole_name(value: str) -> dict[str, Any]:
    """Render the whole name below a heading that `{% name value 400 %}` shortened, collapsed."""
    return {"name": value, "is_cut": len(value) > LONGEST_HEADING}


@register.filter
def visible(value: object) -> SafeString:
    """Render an untrusted text: escaped, with bidi controls and other hidden characters shown as code points.

    A word longer than any line may be broken anywhere, so that it stays in its box.
    """
    text = str(value)
    if text.isprintable() and not (len(text) >= LONGEST_WORD and _LONG.search(text)):
        return conditional_escape(text)
    pieces = _HIDDEN.split(text)
    shown = (
        (format_html('<span class="codepoint">U+{}</span>', f"{ord(piece):04X}") if index % 2 else _breakable(piece),)
        for index, piece in enumerate(pieces)
    )
    return format_html_join("", "{}", shown)


@register.filter
def markdown_blocks(text: str) -> SafeString:
    """Render an untrusted text as Markdown."""
    return markdown.markdown_blocks(text, visible)


@register.filter
def markdown_line(text: str) -> SafeString:
    """Render an untrusted text as a line of Markdown."""
    return markdown.markdown_line(text, visible)


def _breakable(text: str) -> SafeString:
    if len(text) < LONGEST_WORD or not _LONG.search(text):
        return conditional_escape(text)
    pieces = ((part, index % 2) for index, part in enumerate(_LONG.split(text)))
    shown = ((format_html('<span class="long">{}</span>', part) if long else part,) for part, long in pieces)
    return format_html_join("", "{}", shown)


@register.simple_tag
def term_url(name: str) -> str:
    """Return the URL of the page of a business term, with the moment that is shown."""
    return with_moment(links.term_url(name))


@register.simple_tag
def subject_url(registry: str, subject: str, page: str = "", **query: object) -> str:
    """Return the URL of a subject's page for a link; see dashboard.components.links."""
    return with_moment(links.subject_url(registry, subject, page, **query))


@register.simple_tag
def link(page: str, *arguments: object, **query: object) -> str:
    """Return the URL of a page for a link, like `url` but with a query (`from_` is "from") and this page's moment."""
    address = reverse(page, args=arguments)
    parameters = {name.rstrip("_"): value for name, value in query.items()}
    return with_moment(f"{address}?{urlencode(parameters)}" if parameters else address)


@register.simple_tag(takes_context=True)
def theme(context: Context) -> str:
    """Return the reader's theme: "light", "dark", or "" for the system's."""
    request = context.get("request")
    chosen = request.COOKIES.get("theme", "") if request is not None else ""
    return chosen if chosen in THEMES else ""


@register.filter
def below_path(message: str, path: str) -> str:
    """Return a message as a sentence below its path, without the path."""
    text = message.removeprefix(f"{path}: ")
    # A keyword at the start (maxLength) keeps its spelling.
    return f"{text[:1].upper()}{text[1:]}" if text.split(" ", 1)[0].islower() else text


@register.filter
def access(does: str) -> str:
    """Return the label of a client's access."""
    return str(badges.ACCESS.get(does, does))


@register.filter
def position(item: Any) -> str:
    """Return the `line` and `column` of a finding in words; "" if unknown."""
    if item.line is None:
        return ""
    return gettext("line %(line)s, column %(column)s") % {"line": item.line, "column": item.column}


@register.filter
def thousands(value: int | None) -> str:
    """Format an integer with thousands separators; "—" for None."""
    return "—" if value is None else f"{value:,}"


@register.filter
def pairs(columns: Sequence[Any], row: Sequence[str]) -> list[tuple[Any, str]]:
    """Return each column of a table with the row's text."""
    return list(zip(columns, row, strict=True))


@register.simple_tag
def plural(count: int, one: str, many: str) -> str:
    """Return a count with its noun: "1 change", "1,204 changes". Both are in the catalogue with `%(n)s` before them."""
    return counted(count, f"%(n)s {one}", f"%(n)s {many}")


@register.inclusion_tag("components/action.html", takes_context=True)
def action(context: Context, what: Any, small: bool = False, anchor: str = "") -> dict[str, Any]:
    """Render a button or link; if not allowed, it is disabled with the reason beside it.

    The `anchor` keeps the focus when htmx replaces it.
    """
    return {"action": what, "small": small, "anchor": anchor, "csrf_token": context.get("csrf_token")}


@register.inclusion_tag("components/actions.html", takes_context=True)
def actions(context: Context, what: Sequence[Any]) -> dict[str, Any]:
    """Render buttons in a row; a reason shared by all disabled ones is shown once below."""
    reasons = [action.reason for action in what if not action.allowed]
    shared = reasons[0] if len(reasons) > 1 and len(set(reasons)) == 1 else ""
    return {"actions": what, "shared": shared, "csrf_token": context.get("csrf_token")}


@register.inclusion_tag("components/environment.html", takes_context=True)
def environment(context: Context, chip: Environment | str, version: int | None = None) -> dict[str, Any]:
    """Render an environment's chip, with a version if given; a name is looked up in the page's frame."""
    if isinstance(chip, str):
        known = getattr(getattr(context.get("page"), "frame", None), "environments", ())
        kind = next((item.kind for item in known if item.name == chip), badges.EnvironmentKind.OTHER)
        chip = Environment(name=chip, kind=kind)
    return {"place": chip, "version": version}


@register.inclusion_tag("components/problem.html", takes_context=True)
def problem(context: Context, what: Any) -> dict[str, Any]:
    """Render an error: what, where, cure."""
    return {"problem": what, "page": context.get("page")}


@register.inclusion_tag("components/form_field.html")
def field(what: BoundField) -> dict[str, Any]:
    """Render a form field with label, help and errors."""
    return {"field": what}


@register.inclusion_tag("components/action.html", takes_context=True)
def button(
    context: Context,
    label: str,
    url: str,
    refused: str = "",
    icon: str = "",
    tone: str = "plain",
    small: bool = True,
    anchor: str = "",
) -> dict[str, Any]:
    """Render a button that posts to the URL; if refused, it is disabled with the reason beside it."""
    action = Action(label=label, url=url, method="post", reason=refused, icon=icon, tone=tone)
    return {"action": action, "small": small, "anchor": anchor, "csrf_token": context.get("csrf_token")}


@register.inclusion_tag("components/submit.html")
def submit(label: str, refused: str = "", icon: str = "", tone: str = "primary", do: str = "") -> dict[str, Any]:
    """Render a form's submit button with its `do`; if refused, it is disabled with the reason beside it."""
    return {"label": label, "refused": refused, "icon": icon, "tone": tone, "do": do}


@register.inclusion_tag("components/action.html")
def link_button(
    label: str, url: str, refused: str = "", icon: str = "", tone: str = "plain", small: bool = False
) -> dict[str, Any]:
    """Render a link that looks like a button; if refused, it is disabled with the reason beside it."""
    action = Action(label=label, url=url, reason=refused, icon=icon, tone=tone)
    return {"action": action, "small": small}


@register.inclusion_tag("components/folded_form.html", takes_context=True)
def folded_form(
    context: Context,
    form: Any,
    url: str,
    refused: str = "",
    icon: str = "plus",
    tone: str = "plain",
    fold: str = "",
    about: str = "",
    small: bool = False,
    **values: object,
) -> dict[str, Any]:
    """Render a collapsed form, expanded if it has errors; if refused, a disabled button with the reason.

    `fold` is the label to expand it if different from the button's, `about` the object for screen readers; `values` are
    hidden.
    """
    refusal = Action(label=form.label, url=url, reason=refused, icon=icon) if refused else None
    shown = {"form": form, "url": url, "refusal": refusal, "icon": icon, "tone": tone, "fold": fold or form.label}
    token = context.get("csrf_token")
    return {**shown, "about": about, "small": small, "values": values.items(), "csrf_token": token}


@register.inclusion_tag("components/row_form.html", takes_context=True)
def row_form(context: Context, form: Any, url: str, about: str, **values: object) -> dict[str, Any]:
    """Render a form with one button and hidden values in the row of `about`; if it removes something, it asks first."""
    token = context.get("csrf_token")
    return {"form": form, "url": url, "about": about, "values": values.items(), "csrf_token": token}


@register.inclusion_tag("components/secret_places.html")
def secret_places() -> dict[str, Any]:
    """Render the places where an operator puts secrets."""
    return {"folder": settings.SECRETS_DIR, "prefix": PREFIX}


@register.inclusion_tag("components/paging.html")
def paging(what: Any) -> dict[str, Any]:
    """Render the range of rows, and links to the previous and next page."""
    return {"paging": what}


@register.inclusion_tag("components/search.html")
def search_form(what: Any, target: str = "") -> dict[str, Any]:
    """Render a list's search box and filters; `target` is the id that htmx replaces."""
    return {"search": what, "target": target}


@register.inclusion_tag("components/copy_as.html", takes_context=True)
def copy_as(context: Context, name: str, **parameters: str) -> dict[str, Any]:
    """Render the collapsed command that requests this list from the API: see dashboard.components.links."""
    request = context.get("request")
    return {"copy": None if request is None else links.copy_as(request, name, **parameters)}


@register.simple_tag(takes_context=True)
def reader_may_somewhere(context: Context, action: str) -> bool:
    """Return whether the reader has the permission anywhere; False if the request has no actor yet."""
    actor = getattr(context.get("request"), "page_actor", None)
    return actor is not None and may_somewhere(actor, action)


@register.simple_tag(takes_context=True)
def reader_may(context: Context, action: str) -> bool:
    """Return whether the reader has the permission.

    Without a query: False if the request has no actor yet, as on an error page.
    """
    actor = getattr(context.get("request"), "page_actor", None)
    return actor is not None and may(actor, action)

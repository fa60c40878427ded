"""What templates are given to show: times, names, badges, places in a text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.http import HttpRequest, HttpResponse
from django.template import Context
from django.test import RequestFactory
from django.utils import timezone

from dashboard.compatibility.presenters import snippet
from dashboard.components import badges
from dashboard.components.widgets import Action, Frame, Section
from dashboard.middleware import ViewerZoneMiddleware, zone_named
from dashboard.templatetags import desk

NOW = datetime(2026, 11, 21, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        (0, "just now"), (4, "just now"), (-4, "just now"), (5, "5 s ago"), (59, "59 s ago"), (60, "1 min ago"), (3599, "59 min ago"),
        (3600, "1 h ago"), (86_399, "23 h ago"), (86_400, "1 d ago"), (29 * 86_400, "29 d ago"), (30 * 86_400, "22 Oct 2026"),
        (-300, "in 5 min"), (-90_000, "in 1 d"),
    ],
)  # fmt: skip
def test_relative(before: int, sentence: str) -> None:
    assert desk.relative(NOW - timedelta(seconds=before), NOW) == sentence


def test_ago_carries_the_exact_time_in_utc() -> None:
    class Page:
        frame = Frame(title="", now=NOW, section=Section.HOME)

    from datetime import timezone

    moment = datetime(2026, 11, 21, 16, 26, 1, tzinfo=timezone(timedelta(hours=2)))
    html = desk.ago(Context({"page": Page()}), moment)
    assert html == '<time datetime="2026-11-21T14:26:01Z" title="2026-11-21 14:26:01 UTC">3 min ago</time>'
    assert desk.ago(Context(), None) == "never"


@pytest.mark.requirement("CARD-4")
def test_in_the_viewers_zone_utc_stays_at_hand() -> None:
    moment = datetime(2026, 10, 1, 23, 30, tzinfo=UTC)
    with timezone.override(zone_named("Europe/Berlin")):
        assert desk.zone() == "Europe/Berlin"
        assert desk.at(moment) == (
            '<time datetime="2026-10-01T23:30:00Z" title="2026-10-01 23:30:00 UTC">'
            '2026-10-02 01:30:00 <span class="zone">CEST</span></time>'
        )
        ago = desk.ago(Context(), moment)
        assert 'datetime="2026-10-01T23:30:00Z" title="2026-10-02 01:30:00 CEST · 2026-10-01 23:30:00 UTC"' in ago
        assert desk.relative(moment, NOW) == "2 Oct 2026"
        assert "23:30:00" in desk.utc(moment), "what is taken away reads alike everywhere"
    assert desk.at(moment) == desk.utc(moment)
    assert desk.at(None) == "—"


@pytest.mark.requirement("CARD-4")
@pytest.mark.parametrize(
    ("path", "cookie", "zone"),
    [
        ("/ui/", "Asia/Tokyo", "Asia/Tokyo"),
        ("/ui/audit", "Etc/GMT+3", "-03"),
        ("/api/v1/audit", "Asia/Tokyo", "UTC"),
        ("/ui/", "", "UTC"),
        ("/ui/", "Mars/Olympus", "UTC"),
        ("/ui/", "Europe", "UTC"),
        ("/ui/", "../../etc/passwd", "UTC"),
        ("/ui/", "/etc/localtime", "UTC"),
        ("/ui/", "a" * 5_000, "UTC"),
        ("/ui/", "<script>\x00", "UTC"),
    ],
)
def test_the_zone_is_the_one_that_the_browser_reported(path: str, cookie: str, zone: str) -> None:
    request = RequestFactory().get(path)
    request.COOKIES["zone"] = cookie
    zones: list[str] = []

    def page(request: HttpRequest) -> HttpResponse:
        zones.append(desk.zone())
        return HttpResponse()

    ViewerZoneMiddleware(page)(request)
    assert zones == [zone]
    assert desk.zone() == "UTC", "the next request begins in UTC"


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("orders", '<bdi class="name">orders</bdi>'),
        ("<b>", '<bdi class="name">&lt;b&gt;</bdi>'),
        ("a\u202eb", '<bdi class="name">a<span class="codepoint">U+202E</span>b</bdi>'),
        ("\x00", '<bdi class="name"><span class="codepoint">U+0000</span></bdi>'),
        ("", '<bdi class="name"><span class="codepoint">empty name</span></bdi>'),
        ("طلب", '<bdi class="name">طلب</bdi>'),
    ],
)
def test_name(text: str, html: str) -> None:
    assert desk.name(text) == html


def test_a_long_name_loses_its_middle_and_is_there_on_hover() -> None:
    shown = desk.name("a" * 300 + "\u202e" + "z" * 300)
    drawn = re.sub(r' title="[^"]*"', "", shown)
    assert len(drawn) < 250
    assert "aaa…zzz" in drawn
    assert "a" * 300 + "\ufffd" + "z" * 300 in shown
    assert len(desk.name("a" * 10_000)) < 1_300
    assert desk.whole_name("a" * 401) == {"name": "a" * 401, "is_cut": True}
    assert not desk.whole_name("a" * 400)["is_cut"]


def test_visible_keeps_lines_and_tabs_and_escapes() -> None:
    assert desk.visible("a\n\t<b>\u2066") == 'a\n\t&lt;b&gt;<span class="codepoint">U+2066</span>'


@pytest.mark.parametrize(
    "kind", [kind for kind in vars(badges).values() if isinstance(kind, type) and issubclass(kind, badges.BadgeState)]
)
def test_every_state_has_a_word_and_an_icon(kind: type[badges.BadgeState]) -> None:
    for state in kind:
        assert state.look.word and state.look.icon and state.look.tone
        assert kind(state.value) is state


def test_unknown_and_not_scanned_are_not_green() -> None:
    assert (
        badges.Verdict.UNKNOWN.look.tone
        == badges.ScanState.EMPTY.look.tone
        == badges.ScanState.NEVER.look.tone
        == "unknown"
    )


def test_badge_escapes_its_word() -> None:
    assert "&lt;b&gt;" in desk.badge(badges.Verdict.OK, "<b>")


def test_thousands_and_plural() -> None:
    assert (desk.thousands(None), desk.thousands(1_204_331)) == ("—", "1,204,331")
    assert (desk.plural(1, "change", "changes"), desk.plural(1204, "change", "changes")) == (
        "1 change",
        "1,204 changes",
    )


@pytest.mark.parametrize(("line", "column", "pointer"), [(2, 3, "\t ^"), (2, None, ""), (1, 1, "^")])
def test_snippet_points_at_the_column(line: int, column: int | None, pointer: str) -> None:
    shown = snippet("{\n\tab\n}\n", line, column, around=1)
    assert [item.pointer for item in shown if item.number == line] == [pointer]
    assert [item.pointer for item in shown if item.number != line] == [""] * (len(shown) - 1)


def test_snippet_of_a_long_line_shows_the_place() -> None:
    text = "x" * 5_000 + "!" + "y" * 5_000
    (shown,) = snippet(text, 1, 5_001)
    assert len(shown.text) == 160
    assert shown.caret is not None
    assert shown.text[shown.caret - 1] == "!"


def test_action_defaults() -> None:
    action = Action(label="Go", url="/")
    assert action.allowed and action.method == "get" and not action.reason

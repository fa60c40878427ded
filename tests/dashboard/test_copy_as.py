"""Below the main lists: the same in an API, as a link and as a line for a shell."""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Callable

import pytest
from django.test import Client, RequestFactory

from dashboard.copy_as import copy_as
from registry.access.roles import Actor
from registry.subjects.names import SubjectName
from registry.subjects.services import register_version
from tests.conftest import RawClient
from tests.dashboard.test_pages import browser, content  # noqa: F401 - fixtures

pytestmark = [pytest.mark.django_db, pytest.mark.requirement("CARD-2")]

NASTY = "a/b%2F'\"$(id)<b>"
#: page → the address of the same in an API
PAGES = {
    "/ui/registries/dev/subjects": "/registries/dev/subjects",
    "/ui/registries/dev/subjects/orders-value/": "/api/v1/registries/dev/subjects/orders-value/life",
    "/ui/registries/dev/policy": "/api/v1/registries/dev/policy",
    "/ui/registries/dev/what-if?level=FULL": "/api/v1/registries/dev/what-if?level=FULL",
    "/ui/promotions?state=open&target=prod": "/api/v1/promotions?state=open&target=prod",
    "/ui/findings?state=all&severity=break&q=orders": "/api/v1/findings?text=orders&state=&severity=break",
    "/ui/sources": "/api/v1/sources",
    "/ui/audit?q=version": "/api/v1/audit?text=version",
}


def unfolded(page: str) -> tuple[str, str]:
    """The link, and the line for a shell, which is there without JavaScript."""
    found = re.search(r'<details class="copy-as.*?</details>', page, flags=re.DOTALL)
    assert found is not None
    (link,) = re.findall(r'<a href="([^"]*)"', found[0])
    (line,) = re.findall(r'<code class="command">(.*?)</code>', found[0], flags=re.DOTALL)
    return html.unescape(link), html.unescape(re.sub(r"<[^>]*>", "", line))


@pytest.mark.parametrize("page", PAGES)
def test_the_api_gives_the_same_list_to_the_line_of_the_page(
    browser: Callable[[str], Client],  # noqa: F811
    content: dict[str, int],  # noqa: F811
    token: Callable[[str], str],
    page: str,
) -> None:
    link, line = unfolded(browser("reader").get(page).content.decode())
    assert link == PAGES[page]
    words = shlex.split(line)
    assert words[:3] == ["curl", "-H", "Authorization: Bearer $TOKEN"]
    assert words[3] == f"http://testserver{link}"
    answer = RawClient(headers={"authorization": f"Bearer {token('reader')}"}).get(link)
    assert answer.status_code == 200


def test_a_hostile_name_stays_one_word_of_the_shell(
    browser: Callable[[str], Client],  # noqa: F811
    person: Callable[[str], Actor],
    token: Callable[[str], str],
) -> None:
    register_version(registry="dev", subject=SubjectName(".", NASTY), text='"int"', by=person("steward"))
    address = "/ui/registries/dev/subjects/a%2Fb%252F'%22%24(id)%3Cb%3E/"
    link, line = unfolded(browser("reader").get(address).content.decode())
    assert len(shlex.split(line)) == 4
    answer = RawClient(headers={"authorization": f"Bearer {token('reader')}"}).get(link)
    assert answer.status_code == 200


def test_no_secret_is_in_it() -> None:
    request = RequestFactory().get("/ui/audit?q=x", headers={"authorization": "Bearer abc", "cookie": "sessionid=abc"})
    found = copy_as(request, "audit")
    assert "abc" not in found.command + found.url


def test_a_filter_that_is_no_text_at_all_breaks_nothing() -> None:
    request = RequestFactory().get("/ui/audit", {"q": "\u202e\0'\n" + "x" * 5000})
    found = copy_as(request, "audit")
    assert len(shlex.split(found.command)) == 4
    assert len(found.url) < 5000

"""Opening every link of every page, from the home page on, as a browser without scripts would find them.

Filters and views can be combined without end: of addresses with parameters each kind (the path with its numbers and
names left out, and the names of its parameters) is opened twice.
"""

from __future__ import annotations

import http.cookiejar
import re
import urllib.error
import urllib.parse
import urllib.request
from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

#: addresses that end the session, or that are another program's
LEAVES = re.compile(r"^/ui/accounts/logout|^/static/|^/api/v1/schema")

#: addresses with parameters that are opened of one kind
COMBINED = 2


class Links(HTMLParser):
    """The addresses that a page links to, in its order; those that only a script follows too."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if value and (name == "hx-get" or (tag, name) == ("a", "href"))]


def links_of(page: str, base: str) -> Iterator[str]:
    """The links of a page to the same site, without fragments; absolute in their path."""
    parser = Links()
    parser.feed(page)
    for link in parser.found:
        parts = urllib.parse.urlsplit(urllib.parse.urljoin(base, link))
        if parts.scheme in ("", "http", "https") and parts.netloc in ("", urllib.parse.urlsplit(base).netloc):
            yield urllib.parse.urlunsplit(("", "", parts.path, parts.query, ""))


def kind_of(address: str) -> tuple[str, tuple[str, ...]]:
    """A path without the numbers and names in it, and the names of its parameters."""
    parts = urllib.parse.urlsplit(address)
    path = re.sub(r"/\d+(?=/|$)", "/N", re.sub(r"/(registries|subjects)/[^/]+(?=/|$)", r"/\1/NAME", parts.path))
    return path, tuple(sorted({name for name, _ in urllib.parse.parse_qsl(parts.query, keep_blank_values=True)}))


@dataclass
class Crawl:
    """What was opened: how many addresses, and those that didn't answer with a page (address, status, linked from)."""

    opened: int = 0
    broken: list[tuple[str, int, str]] = field(default_factory=list)


def crawl(
    get: Callable[[str], tuple[int, str]], start: str = "/ui/", *, of_a_kind: int | None = None, most: int = 3_000
) -> Crawl:
    """Opens all that is linked, by `get` (address → status, text of a page or empty).

    `of_a_kind` bounds how many paths of one kind are opened, where not all are to be.
    """
    done, kinds, result = {start}, Counter[tuple[str, tuple[str, ...]]](), Crawl()
    queue = deque([(start, "")])
    while queue:
        address, linked_from = queue.popleft()
        status, page = get(address)
        result.opened += 1
        assert result.opened <= most, f"more than {most} addresses, the last one {address}"
        # What the API says of a person alone takes a token of theirs: a session isn't one.
        if status >= 400 and not (status == 401 and address.startswith("/api/")):
            result.broken.append((address, status, linked_from))
        for link in links_of(page, address):
            kind = kind_of(link)
            bound = COMBINED if kind[1] else of_a_kind
            if link in done or LEAVES.match(link) or (bound is not None and kinds[kind] >= bound):
                continue
            done.add(link)
            kinds[kind] += 1
            queue.append((link, address))
    return result


class Visitor:
    """A browser's session at a server, without a browser: it keeps cookies and follows redirects."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def get(self, address: str) -> tuple[int, str]:
        """The status and the text of a page; empty of what is no page."""
        try:
            with self.opener.open(self.url + address, timeout=60) as answer:
                is_page = answer.headers.get_content_type() == "text/html"
                return answer.status, answer.read().decode() if is_page else ""
        except urllib.error.HTTPError as error:
            with error:
                return error.code, ""

    def sign_in(self, name: str, password: str) -> None:
        """Sign in by the form."""
        address = f"{self.url}/ui/accounts/login/"
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', self.get("/ui/accounts/login/")[1])
        assert token is not None
        form = {"login": name, "password": password, "csrfmiddlewaretoken": token[1]}
        request = urllib.request.Request(address, urllib.parse.urlencode(form).encode(), {"Referer": address})
        with self.opener.open(request, timeout=60) as answer:
            assert not answer.url.endswith("/login/"), f"{name} couldn't sign in"

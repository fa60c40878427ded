"""Markdown in texts that people write, as safe HTML: CommonMark with tables, without HTML, images and definitions of links.

What isn't Markdown here is shown as it was written, unsafe links too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.token import Token

#: characters of a text, and those that mark something up; one with more is shown as it was written
MAX_TEXT: Final = 20_000
MAX_MARKS: Final = 2_000
#: elements within each other; a text with deeper blocks is shown as it was written
MAX_DEPTH: Final = 20
_RULES: Final = (
    "blockquote", "fence", "heading", "hr", "list", "table",
    "autolink", "backticks", "emphasis", "escape", "link", "newline",
)  # fmt: skip
#: the web, addresses of mail, and pages of this site, but no address of another host without a scheme, and no way up
_SAFE_LINK: Final = re.compile(r"(?:https?://|mailto:)[!-~]{1,2000}|/(?!/)(?!.*(?:\.|%2[eE]){2}(?:/|$))[!-~]{0,2000}")
#: what can begin an element: a text without any is a line of text
_MARKS: Final = re.compile(r"[`*_\[<>|\\\n]")

#: renders a plain text as HTML
Plain = Callable[[object], SafeString]


class _Parser(MarkdownIt):
    """Reads blocks and lines, with links to safe addresses only."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802  the library's name
        """Return the address in ASCII; "" if it has a hidden character, or one that browsers read as a slash."""
        return super().normalizeLink(url) if url.isprintable() and "\\" not in url else ""

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802
        """Return the text of an address in angle brackets as it was written."""
        return link

    def validateLink(self, url: str) -> bool:  # noqa: N802
        """Return whether the address may be a link."""
        return bool(_SAFE_LINK.fullmatch(url))


_PARSER: Final = _Parser("zero", {"maxNesting": MAX_DEPTH}).enable(_RULES)
#: element → how it begins and ends, if not as itself
_TAGS: Final = {
    "p": ('<p class="whitespace-pre-line">', "</p>"),
    "ul": ('<ul class="dashes">', "</ul>"),
    "th": ('<th scope="col">', "</th>"),
    "table": ('<div class="table-wrap" tabindex="0"><table class="data-table">', "</table></div>"),
    # a heading would come between those of the page
    **{f"h{level}": ('<p class="font-semibold">', "</p>") for level in range(1, 7)},
}


def markdown_blocks(text: str, plain: Plain) -> SafeString:
    """Return the paragraphs, lists and other blocks of a text."""
    tokens = None if _is_too_long(text) else _PARSER.parse(text)
    # the parser leaves out what is deeper
    if tokens is None or any(token.level >= MAX_DEPTH - 1 for token in tokens):
        return format_html('<p class="whitespace-pre-line">{}</p>', plain(text))
    return _joined(_html(tokens, plain))


def markdown_line(text: str, plain: Plain) -> SafeString:
    """Return a text without blocks, for a cell or a line."""
    if not _MARKS.search(text) or _is_too_long(text):
        return plain(text)
    return _joined(_html(_PARSER.parseInline(text), plain))


def _is_too_long(text: str) -> bool:
    """Return whether reading the text could take long: the time grows faster than the number of marks."""
    return len(text) > MAX_TEXT or len(_MARKS.findall(text)) > MAX_MARKS


def _html(tokens: Sequence[Token], plain: Plain) -> Iterator[SafeString]:
    depth = 0
    for token in _visible(tokens):
        depth += token.nesting == 1
        if not token.nesting:
            yield _leaf(token, plain)
        elif depth <= MAX_DEPTH:
            yield _begin(token) if token.nesting == 1 else SafeString(_TAGS.get(token.tag, ("", f"</{token.tag}>"))[1])
        depth -= token.nesting == -1


def _visible(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens with those of each line; paragraphs of short lists are hidden."""
    for token in tokens:
        if token.type == "inline":
            yield from token.children or ()
        elif not token.hidden:
            yield token


def _begin(token: Token) -> SafeString:
    if token.tag == "a":
        return format_html('<a href="{}" rel="noopener nofollow">', token.attrGet("href") or "")
    if token.tag == "ol":
        return format_html('<ol class="dashes" start="{}">', token.attrGet("start") or 1)
    return SafeString(_TAGS.get(token.tag, (f"<{token.tag}>", ""))[0])


def _leaf(token: Token, plain: Plain) -> SafeString:
    match token.type:
        case "code_inline":
            return format_html("<code>{}</code>", plain(token.content))
        case "fence":
            return format_html('<pre class="quoted"><code>{}</code></pre>', plain(token.content.removesuffix("\n")))
        case "hardbreak" | "hr":
            return SafeString(f"<{token.tag}>")
        case "softbreak":
            return SafeString("\n")
    return plain(token.content)


def _joined(parts: Iterable[SafeString]) -> SafeString:
    return format_html_join("", "{}", ((part,) for part in parts))

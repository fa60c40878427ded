"""Markdown in texts that people write, as safe HTML: paragraphs, lists, bold, italic, code and links to the web.

Everything else, HTML above all, is shown as it was written. An unsafe link stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

#: the lengths are bounded, so that the time grows with the text alone
_INLINE: Final = re.compile(
    r"`(?P<code>[^`\n]{1,500})`"
    r"|\*\*(?P<strong>[^*\n]{1,500})\*\*"
    r"|\*(?P<em>[^*\s][^*\n]{0,500})\*"
    r"|\[(?P<label>[^\[\]\n]{1,200})\]\((?P<url>https?://[^\s()<>\"']{1,500})\)"
)
_BLOCKS: Final = re.compile(r"\n[ \t]*\n")
_ITEM: Final = re.compile(r"[-*] +")

#: renders a plain text as HTML
Plain = Callable[[object], SafeString]


def markdown_blocks(text: str, plain: Plain) -> SafeString:
    """Return the paragraphs and lists of a text."""
    blocks = (block.strip() for block in _BLOCKS.split(text))
    return _joined(_block(block.split("\n"), plain) for block in blocks if block)


def markdown_line(text: str, plain: Plain) -> SafeString:
    """Return a text without paragraphs and lists, for a cell or a line."""
    parts, end = list[SafeString](), 0
    for match in _INLINE.finditer(text):
        parts += [plain(text[end : match.start()]), _marked(match, plain)]
        end = match.end()
    return _joined([*parts, plain(text[end:])])


def _block(lines: list[str], plain: Plain) -> SafeString:
    items = [_ITEM.sub("", line.strip(), count=1) for line in lines if _ITEM.match(line.strip())]
    if len(items) == len(lines):
        return format_html(
            '<ul class="dashes">{}</ul>',
            format_html_join("", "<li>{}</li>", ((markdown_line(item, plain),) for item in items)),
        )
    return format_html('<p class="whitespace-pre-line">{}</p>', markdown_line("\n".join(lines), plain))


def _marked(match: re.Match[str], plain: Plain) -> SafeString:
    kind, url = match.lastgroup or "", match["url"]
    if kind != "url":
        return format_html(f"<{kind}>{{}}</{kind}>", plain(match[kind]))
    if not url.isprintable():
        return plain(match[0])
    return format_html('<a href="{}" rel="noopener nofollow">{}</a>', url, plain(match["label"]))


def _joined(parts: Iterable[SafeString]) -> SafeString:
    return format_html_join("", "{}", ((part,) for part in parts))

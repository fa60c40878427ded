"""Markdown in texts that people write: what it makes of them, and what hostile texts can't do."""

from __future__ import annotations

import time
from html.parser import HTMLParser

import pytest
from django.utils.safestring import SafeString

from dashboard.components.markdown import _MARKS, MAX_DEPTH, MAX_MARKS, MAX_TEXT, markdown_blocks, markdown_line
from dashboard.templatetags.desk import visible

pytestmark = pytest.mark.requirement("CARD-4")
LINES = {
    "a **b** *c* `d`": "a <strong>b</strong> <em>c</em> <code>d</code>",
    "[x](https://example.com/?a=1&b=2)": '<a href="https://example.com/?a=1&amp;b=2" rel="noopener nofollow">x</a>',
    "[x](javascript:alert(1))": "[x](javascript:alert(1))",
    "[x](https://a\" onclick=\"b)": "[x](https://a&quot; onclick=&quot;b)",
    "`<script>`": "<code>&lt;script&gt;</code>",
    "**<img src=x onerror=y>**": "<strong>&lt;img src=x onerror=y&gt;</strong>",
    "2 * 3 * 4": "2 * 3 * 4",
    "order_line_id": "order_line_id",
    "[a\u202eb](https://example.com)": '<a href="https://example.com" rel="noopener nofollow">a<span class="codepoint">U+202E</span>b</a>',
    "[x](https://a\u202eb)": '[x](https://a<span class="codepoint">U+202E</span>b)',
    "[x](https://a&#x202e;b)": "[x](https://a&amp;#x202e;b)",
    "[x](/ui/subjects)": '<a href="/ui/subjects" rel="noopener nofollow">x</a>',
    "<a@example.com>": '<a href="mailto:a@example.com" rel="noopener nofollow">a@example.com</a>',
    "&lt;b&gt; &#x202e;": "&amp;lt;b&amp;gt; &amp;#x202e;",
    "![x](https://a/b.png)": '!<a href="https://a/b.png" rel="noopener nofollow">x</a>',
    "[x]: https://example.com": "[x]: https://example.com",
    "[x](https://a \"<b>\")": '<a href="https://a" rel="noopener nofollow">x</a>',
}  # fmt: skip
UNSAFE = (
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", "&#106;avascript:alert(1)", "javascript&colon;alert(1)",
    "java&#10;script:alert(1)", "java&Tab;script:alert(1)", "&#1;javascript:alert(1)", "<java\tscript:alert(1)>",
    "\\javascript:alert(1)", "%6Aavascript:alert(1)", "data:text/html;base64,PHN2Zz4=", "data:image/png;base64,AAAA",
    "vbscript:x", "file:///etc/passwd", "//evil.example", "/\\evil.example", "/&#92;evil.example", "\\\\evil.example",
    "ftp://a", "x", "../logout", "/ui/../api/v1", "/ui/%2E./x", "/..", "#note", "?q=1", "http:evil.example", "blob:https://a/b",
)  # fmt: skip
BLOCKS = {
    "One\ntwo\n\n- a\n- **b**\n\n\n": '<p class="whitespace-pre-line">One\ntwo</p><ul class="dashes"><li>a</li><li><strong>b</strong></li></ul>',
    "3. a\n   - b": '<ol class="dashes" start="3"><li>a<ul class="dashes"><li>b</li></ul></li></ol>',
    "# T\n> q": '<p class="font-semibold">T</p><blockquote><p class="whitespace-pre-line">q</p></blockquote>',
    "```html\n<b>\n```": '<pre class="quoted"><code>&lt;b&gt;</code></pre>',
    "<div onclick=a>\n\n<!-- b": '<p class="whitespace-pre-line">&lt;div onclick=a&gt;</p><p class="whitespace-pre-line">&lt;!-- b</p>',
    "| a | b |\n|:--|--|\n| **c** | <i> |": (
        '<div class="table-wrap" tabindex="0"><table class="data-table"><thead><tr><th scope="col">a</th><th scope="col">b</th></tr>'
        "</thead><tbody><tr><td><strong>c</strong></td><td>&lt;i&gt;</td></tr></tbody></table></div>"
    ),
}  # fmt: skip
PARTS = (
    "**a", "*a", "`a", "[a](", "[", "](https://a", "*a **a ", "_a __a ", "> ", "- ", "1. ", "![", "<", "<a@", "\\", "|", "```\n",
    "|a", "a\n|-|\n", "[a](<b", "&#1;", "# ", "`" + "``" * 40 + " ", "\n- ", "(", "[a][b]", "~~~\n> ",
)  # fmt: skip


class Depth(HTMLParser):
    """Counts how deep elements are within each other."""

    most = depth = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("br", "hr"):
            self.depth += 1
            self.most = max(self.most, self.depth)

    def handle_endtag(self, tag: str) -> None:
        self.depth -= 1


def depth_of(html: str) -> int:
    """The most elements within each other, all of which have an end."""
    parser = Depth()
    parser.feed(html)
    parser.close()
    assert parser.depth == 0
    return parser.most


@pytest.mark.parametrize("text", LINES)
def test_markdown_is_harmless(text: str) -> None:
    html = markdown_line(text, visible)
    assert isinstance(html, SafeString)
    assert html == LINES[text]


@pytest.mark.parametrize("address", UNSAFE)
def test_an_unsafe_link_is_no_link(address: str) -> None:
    for text in (
        f"[x]({address})",
        f"[x](<{address}>)",
        f"<{address}>",
        f'[x]({address} "t")',
        f"[x][y]\n\n[y]: {address}",
    ):
        html = markdown_blocks(text, visible)
        assert "<a " not in html, text


@pytest.mark.parametrize("text", BLOCKS)
def test_blocks_become_elements(text: str) -> None:
    assert markdown_blocks(text, visible) == BLOCKS[text]


@pytest.mark.parametrize("part", PARTS)
def test_a_long_hostile_text_takes_little_time_and_no_deep_page(part: str) -> None:
    most = min(MAX_TEXT // len(part), MAX_MARKS // max(1, len(_MARKS.findall(part))))
    for number in (most, 100_000 // len(part)):
        text, began = part * number, time.process_time()
        for html in (markdown_line(text, visible), markdown_blocks(text, visible)):
            assert depth_of(html) <= MAX_DEPTH + 3
        assert time.process_time() - began < 2


@pytest.mark.parametrize("text", ["> " * 60 + "the end", "- " * 60 + "the end", "1. " * 60 + "the end"])
def test_what_is_nested_too_deep_is_shown_as_it_was_written(text: str) -> None:
    assert markdown_blocks(text, visible) == f'<p class="whitespace-pre-line">{visible(text)}</p>'


def test_emphasis_has_an_end_and_its_text_stays() -> None:
    html = markdown_line("*a **b " * 200 + "c" + "***" * 200, visible)
    assert depth_of(html) <= MAX_DEPTH
    assert (html.count("a "), html.count("b "), html.count("<strong>") > 5) == (200, 200, True)

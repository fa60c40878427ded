"""Renders the rows of a text diff in Python, because a template is too slow for thousands of lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django import template
from django.utils.html import conditional_escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from dashboard.components.diff import Line, Row, Segment, TextDiff
from dashboard.components.translation import counted
from dashboard.templatetags.desk import visible

register = template.Library()

_VOID = '<td class="is-void{}" colspan="3"></td>'
_SIGN = '<td class="sign"></td>'


@register.simple_tag
def unified_rows(diff: TextDiff) -> SafeString:
    """Render the unified rows, removed lines before added ones."""
    removed, added = _sign("removed"), _sign("added")
    return _whole(_unified(row, removed, added) for row in diff.unified)


@register.simple_tag
def split_rows(diff: TextDiff) -> SafeString:
    """Render the rows side by side."""
    removed, added = _sign("removed"), _sign("added")
    return _whole(_split(row, removed, added) for row in diff.rows)


def _whole(rows: Iterator[str]) -> SafeString:
    # each part is markup of this module, a number, or a text escaped by `visible`
    return mark_safe("".join(rows))  # noqa: S308


def _unified(row: Row, removed: str, added: str) -> str:
    if row.old is not None and row.new is not None:
        numbers = f'<td class="ln">{row.old.number}</td><td class="ln">{row.new.number}</td>'
        return f"<tr>{numbers}{_SIGN}<td>{_marked(row.new.segments, 'ins')}</td></tr>"
    if row.old is not None:
        numbers = f'<td class="ln is-removed">{row.old.number}</td><td class="ln is-removed"></td>'
        return f'<tr>{numbers}{removed}<td class="is-removed">{_marked(row.old.segments, "del")}</td></tr>'
    if row.new is not None:
        numbers = f'<td class="ln is-added"></td><td class="ln is-added">{row.new.number}</td>'
        return f'<tr>{numbers}{added}<td class="is-added">{_marked(row.new.segments, "ins")}</td></tr>'
    return _skipped(row, 4)


def _split(row: Row, removed: str, added: str) -> str:
    if row.kind == "skip":
        return _skipped(row, 6)
    is_same = row.kind == "same"
    left = _VOID.format("") if row.old is None else _half(row.old, "" if is_same else "removed", removed, "del", "")
    right = (
        _VOID.format(" half") if row.new is None else _half(row.new, "" if is_same else "added", added, "ins", " half")
    )
    return f"<tr>{left}{right}</tr>"


def _half(line: Line, mark: str, sign: str, tag: str, half: str) -> str:
    """Render the three cells of one side."""
    if not mark:
        return f'<td class="ln{half}">{line.number}</td>{_SIGN}<td>{_marked(line.segments, tag)}</td>'
    text = f'<td class="is-{mark}">{_marked(line.segments, tag)}</td>'
    return f'<td class="ln{half} is-{mark}">{line.number}</td>{sign}{text}'


def _skipped(row: Row, columns: int) -> str:
    text = counted(row.skipped, "%(n)s unchanged line", "%(n)s unchanged lines")
    return f'<tr class="skip-row"><td colspan="{columns}">{conditional_escape(text)}</td></tr>'


def _sign(mark: str) -> str:
    """Render the cell with the sign, so that colour isn't the only mark."""
    word, sign = (gettext("removed"), "−") if mark == "removed" else (gettext("added"), "+")
    return f'<td class="sign is-{mark}" aria-label="{conditional_escape(word)}">{sign}</td>'


def _marked(segments: Sequence[Segment], tag: str) -> str:
    """Render a line with its changes marked."""
    return "".join(
        f"<{tag}>{visible(piece.text)}</{tag}>" if piece.changed else visible(piece.text) for piece in segments
    )

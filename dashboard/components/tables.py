"""Declarative lists: columns with headings, sorting and cells; filters with names and values.

Cells are rendered in Python, because a template takes several times as long, and a page has hundreds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from dashboard.components.links import chosen_value, form_text
from dashboard.components.widgets import ActiveFilter, Choice, Filter, readable
from dashboard.templatetags.desk import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOrder:
    """The sorting by a column: `url` sorts by it, `is_on` if the list is sorted by it, `is_up` if ascending."""

    url: str
    is_on: bool = False
    is_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListColumn:
    """A column; `cell` renders it for a row. It is sortable if the table has an order for its `name`.

    `sort` is the value of the filter "sort" for this column, None if there is none; `is_up` means ascending.
    `is_heading`: the cell is the row's heading. `has_label`: on a narrow page the cell shows the label.
    """

    label: str
    cell: Callable[[Any], SafeString]
    name: str = ""
    sort: str | None = None
    is_up: bool = False
    css: str = ""
    head_css: str = ""
    is_heading: bool = False
    has_label: bool = True

    def draw(self, row: Any) -> SafeString:
        """Render the cell as HTML."""
        if self.is_heading:
            return format_html('<th scope="row"><span>{}</span></th>', self.cell(row))
        label = format_html(' data-label="{}"', readable(self.label)) if self.has_label else ""
        css = format_html(' class="{}"', self.css) if self.css else ""
        return format_html("<td{}{}><span>{}</span></td>", label, css, self.cell(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTable:
    """Rows under columns.

    `pick` is the name of the checkboxes that select rows by `value_of`, in the form `pick_form`.
    """

    caption: str
    columns: Sequence[ListColumn]
    rows: Sequence[Any]
    orders: Mapping[str, ColumnOrder]
    pick: str = ""
    pick_form: str = ""
    value_of: Callable[[Any], str] = str

    @property
    def heads(self) -> list[tuple[ListColumn, ColumnOrder | None]]:
        """Return the columns with their orders."""
        return [(column, self.orders.get(column.name)) for column in self.columns]

    @property
    def body(self) -> SafeString:
        """Render the rows as HTML."""
        lines = (self._picked(row) + "".join(column.draw(row) for column in self.columns) for row in self.rows)
        return mark_safe("".join(f"<tr>{line}</tr>\n" for line in lines))  # noqa: S308 - all parts are escaped

    def _picked(self, row: Any) -> str:
        if not self.pick:
            return ""
        value = self.value_of(row)
        return format_html(
            '<td class="pick"><label><input type="checkbox" form="{}" name="{}" value="{}">'
            '<span class="visually-hidden">{}</span></label></td>',
            self.pick_form,
            self.pick,
            value,
            visible(gettext("Choose %(qualified)s") % {"qualified": value}),
        )


def nothing(words: str) -> SafeString:
    """Render a cell without a value: a dash, and the words for screen readers."""
    dash = '<span class="muted"><span aria-hidden="true">–</span><span class="visually-hidden">{}</span></span>'
    return format_html(dash, words)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFilter:
    """A filter of a list: its `name` in the URL, the `label` of its select, and the text of its `chip`.

    `values` maps values to labels, the empty choice first. A filter whose values the page looks up has only that one,
    and accepts any text of up to `longest` characters, as does a text filter.
    """

    name: str
    chip: str
    label: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    longest: int = 300

    def value_in(self, form: Mapping[str, str]) -> str:
        """Return the value in a URL. Raises InvalidInput for an invalid one."""
        if len(self.values) > 1:
            return chosen_value(form, self.name, self.values)
        return form_text(form, self.name)[: self.longest]

    def select(
        self,
        chosen: str,
        found: Mapping[str, str] | None = None,
        count: Callable[[str], int | None] = lambda value: None,
    ) -> Filter:
        """Return the filter as a select, with the values that the page `found`, and the count of rows for each."""
        choices = (
            Choice(value=value, label=str(word), selected=value == chosen, count=count(value))
            for value, word in {**self.values, **(found or {})}.items()
        )
        return Filter(name=self.name, label=self.label, choices=tuple(choices))


def read_filters(filters: Iterable[ListFilter], form: Mapping[str, str]) -> dict[str, str]:
    """Return the values in a URL by the filters' names. Raises InvalidInput."""
    return {item.name: item.value_in(form) for item in filters}


def active_filters(
    filters: Iterable[ListFilter], chosen: Mapping[str, str], url: Callable[[dict[str, str]], str]
) -> tuple[ActiveFilter, ...]:
    """Return the active filters as chips; `url` builds the URL of the list with the remaining values."""
    return tuple(
        ActiveFilter(label=f"{item.chip}: {item.values.get(value, value)}", url=url({**chosen, item.name: ""}))
        for item in filters
        if (value := chosen.get(item.name))
    )

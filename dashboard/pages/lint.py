"""Advice on a schema, for people: grouped by its rule, the weightier first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from django.utils.translation import gettext

from dashboard.pages.change_cards import sentence_of
from dashboard.presenters.looks import LintWeight
from dashboard.presenters.report import LintGroup, LintPlace
from registry.formats.lint import LintFinding


def lint_groups(found: Sequence[LintFinding]) -> tuple[LintGroup, ...]:
    """The advice by rule, in the order in which it is given."""
    return tuple(_group(list(same)) for _, same in groupby(found, key=lambda item: item.rule))


def _group(same: Sequence[LintFinding]) -> LintGroup:
    cures = {item.cure for item in same}
    shared = cures.pop() if len(cures) == 1 else ""
    return LintGroup(
        rule=same[0].rule,
        weight=LintWeight.of(same[0].weight),
        why=same[0].why,
        cure=shared,
        places=tuple(_place(item, "" if shared else item.cure) for item in same),
        more=sum(item.more for item in same),
    )


def _place(item: LintFinding, cure: str) -> LintPlace:
    return LintPlace(
        path=item.path or gettext("the whole schema"),
        sentence=sentence_of(item.message, item.path),
        place=gettext("line %(line)s, column %(column)s") % {"line": item.line, "column": item.column}
        if item.line is not None
        else "",
        cure=cure,
    )

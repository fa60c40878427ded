"""Which declared clients don't go on with what a request brings, as its checks found them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.utils.translation import gettext

from dashboard.presenters.frame import Fact
from dashboard.texts import counted, joined, listing
from registry.promotions.clients import CODE

#: clients that are named where one line is all there is
_NAMED: Final = 3
Checks = Iterable[Mapping[str, Any]]


def clients_fact(checks: Checks) -> Fact | None:
    """How many of the declared clients don't go on, and which, with the way to what they meet; None where none is known."""
    names, asked = _affected(checks)
    if not asked:
        return None
    value = (
        gettext("%(n)s of %(asked)s: %(names)s") % {"n": len(names), "asked": asked, "names": _listed(names)}
        if names
        else gettext("none of %(asked)s") % {"asked": asked}
    )
    return Fact(label=gettext("Declared clients that don’t go on"), value=value, url="#impact")


def clients_sentence(checks: Checks) -> str:
    """The same as a part of a sentence; "" where all go on."""
    names, _ = _affected(checks)
    if not names:
        return ""
    return counted(
        len(names),
        "%(n)s declared client doesn’t go on (%(names)s)",
        "%(n)s declared clients don’t go on (%(names)s)",
        names=_listed(names),
    )


def _affected(checks: Checks) -> tuple[list[str], int]:
    """The clients that don't go on, each once, and how many were asked; a client of two subjects is asked for each."""
    found = [check for check in checks if check.get("code") == CODE]
    names = dict.fromkeys(str(name) for check in found for name in check.get("concerned") or ())
    return list(names), sum(int(check.get("asked") or 0) for check in found)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    if more <= 0:
        return joined(names)
    return gettext("%(names)s and %(n)s more") % {"names": listing(names[:_NAMED]), "n": more}

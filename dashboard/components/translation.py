"""Marking texts for translation: written in English, shown in the viewer's language (docs/how-to/translate.md)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, cast

from django.conf import settings
from django.utils import translation
from django.utils.functional import lazy
from django.utils.translation import gettext, gettext_lazy, ngettext


def later(text: str) -> str:
    """A text that is translated each time it is shown, for tables that stand in modules and classes.

    It acts like the text it stands for in templates, in formats and comparisons, and is typed as one; `str.join`,
    regular expressions and JSON want `str(…)` of it.
    """
    return cast(str, gettext_lazy(text))


def later_filled(text: str, **values: object) -> str:
    """A text of `later` with its placeholders, filled each time it is shown."""
    return lazy(lambda: str(text) % values, str)()


def counted(number: int, one: str, many: str, **values: Any) -> str:
    """The form of a sentence that goes with a number, which is `%(n)s` in both; `values` are its other placeholders."""
    return ngettext(one, many, number) % {"n": f"{number:,}", **values}


def for_everybody() -> AbstractContextManager[None]:
    """While it lasts texts are in English: for what is taken away and has to read alike, whoever fetched it."""
    return translation.override(settings.LANGUAGE_CODE)


def listing(parts: Iterable[str]) -> str:
    """Texts one after the other, with commas."""
    return ", ".join(map(str, parts))


def joined(parts: Iterable[str]) -> str:
    """Texts one after the other, with "and" between them."""
    text = ""
    for part in parts:
        text = gettext("%(before)s and %(last)s") % {"before": text, "last": part} if text else str(part)
    return text

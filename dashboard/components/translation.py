"""Marks texts for translation: written in English, shown in the viewer's language (docs/how-to/translate.md)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, cast

from django.conf import settings
from django.utils import translation
from django.utils.functional import lazy
from django.utils.translation import gettext, ngettext


def gettext_lazy(text: str) -> str:
    """Return a lazily translated text, for constants in modules and classes.

    It acts like a str in templates, formats and comparisons, and is typed as one; `str.join`, regular expressions and
    JSON need `str(…)` of it.
    """
    return cast(str, translation.gettext_lazy(text))


def lazy_format(text: str, **values: object) -> str:
    """Return a lazily translated text with its placeholders filled."""
    return lazy(lambda: str(text) % values, str)()


def counted(number: int, one: str, many: str, **values: Any) -> str:
    """Return the singular or plural for a number, which is `%(n)s` in both; `values` fill the other placeholders."""
    return ngettext(one, many, number) % {"n": f"{number:,}", **values}


def for_everybody() -> AbstractContextManager[None]:
    """Switch texts to English within the context, for files that must be the same for everybody."""
    return translation.override(settings.LANGUAGE_CODE)


def listing(parts: Iterable[str]) -> str:
    """Join texts with commas."""
    return ", ".join(map(str, parts))


def joined(parts: Iterable[str]) -> str:
    """Join texts with "and"."""
    text = ""
    for part in parts:
        text = gettext("%(before)s and %(last)s") % {"before": text, "last": part} if text else str(part)
    return text

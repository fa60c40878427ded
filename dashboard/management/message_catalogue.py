"""The translatable texts in code and templates, and their catalogues, for `manage.py messages`.

Babel reads and writes the catalogues, because GNU gettext may be missing. It is a development dependency; the server
needs only the compiled files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from babel.messages.catalog import Catalog
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.utils.translation.template import templatize

ROOT: Final = Path(settings.BASE_DIR)
FOLDER: Final = ROOT / "locale"
TEMPLATE: Final = FOLDER / "django.pot"
"""Every text, once, with the files that contain it: what a translation starts from."""

KEYWORDS: Final[dict[str, Any]] = {
    "_": None,
    "gettext": None,
    "gettext_lazy": None,
    "gettext_noop": None,
    "ngettext": (1, 2),
    "counted": (2, 3),
    "pgettext": ((1, "c"), 2),
    "npgettext": ((1, "c"), 2, 3),
}
"""Which arguments of which function are texts."""

HEADER: Final = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'

_COUNTED = re.compile(r"""\{% plural (\S+) "([^"]+)" "([^"]+)" %\}""")
"""The tag `plural` of desk.py, which Django doesn't know."""
_BRACES: Final = re.compile(r"\{\w*\}")


def collected() -> Catalog:
    """Return the texts of the whole site, each with its files."""
    catalogue = Catalog(fuzzy=False)
    code = (*(ROOT / "dashboard").rglob("*.py"), *(ROOT / "registry" / "drift" / "sources").glob("*.py"))
    for path in sorted([*(ROOT / "templates").rglob("*.html"), *code]):
        for message in texts_of(path):
            catalogue.add(message, locations=[(path.relative_to(ROOT).as_posix(), 0)])
    return catalogue


def texts_of(path: Path) -> Iterator[str | tuple[str, ...]]:
    """Yield the texts of a file; a pair for singular and plural."""
    source = path.read_text()
    if path.suffix == ".html":
        source = f"({templatize(_COUNTED.sub(_as_block, source), origin=str(path))})"  # parentheses: any indentation
    for _, message, _, _ in extract("python", BytesIO(source.encode()), keywords=KEYWORDS):
        yield message


def _as_block(tag: re.Match[str]) -> str:
    number, one, many = tag.groups()
    return (
        f"{{% blocktranslate count counter={number} with n={number} %}}{{{{ n }}}} {one}"
        f"{{% plural %}}{{{{ n }}}} {many}{{% endblocktranslate %}}"
    )


def template_text() -> str:
    """Return the text of the template catalogue, sorted and without line numbers and dates."""
    out = BytesIO()
    write_po(out, collected(), omit_header=True, include_lineno=False, sort_output=True, width=120)
    return HEADER + out.getvalue().decode()


def catalogues() -> list[Path]:
    """Return the catalogue of each language."""
    return sorted(FOLDER.glob("*/LC_MESSAGES/django.po"))


def begin(language: str) -> Path:
    """Create an empty catalogue for a language named like in Babel ("de", "pt_BR"). Raises UnknownLocaleError."""
    path = FOLDER / language / "LC_MESSAGES" / "django.po"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, Catalog(locale=language, project="Schemadesk", fuzzy=False))
    return path


def bring_up_to_date(path: Path) -> None:
    """Add new texts to a catalogue, remove obsolete ones, and mark translations of similar texts as fuzzy."""
    catalogue = _read(path)
    catalogue.update(collected(), no_fuzzy_matching=False)
    catalogue.obsolete.clear()
    _write(path, catalogue)


def problems(path: Path) -> list[str]:
    """Return the errors in a catalogue's translations: different placeholders, missing plural forms."""
    errors = []
    for message in _read(path):
        ids = (message.id,) if isinstance(message.id, str) else tuple(message.id)
        texts = (message.string,) if isinstance(message.string, str) else tuple(message.string or ())
        if not any(ids) or not any(texts) or message.fuzzy:
            continue
        errors += [f"{ids[0]!r}: {error}" for error in message.check()]
        errors += [
            f"{ids[0]!r}: {text!r} has other placeholders in braces"
            for text in texts
            if text and sorted(_BRACES.findall(text)) not in [sorted(_BRACES.findall(one)) for one in ids]
        ]
        if not all(texts):
            errors.append(f"{ids[0]!r}: {len(texts)} plural forms, of which some are empty")
    return errors


def compiled(path: Path) -> bytes:
    """Return a compiled catalogue."""
    out = BytesIO()
    write_mo(out, _read(path))
    return out.getvalue()


def stale() -> list[str]:
    """Return what `manage.py messages` would change or refuse: the template, compiled files, invalid translations."""
    paths = []
    if not TEMPLATE.exists() or TEMPLATE.read_text() != template_text():
        paths.append(TEMPLATE.relative_to(ROOT).as_posix())
    for path in catalogues():
        binary = path.with_suffix(".mo")
        if not binary.exists() or binary.read_bytes() != compiled(path):
            paths.append(binary.relative_to(ROOT).as_posix())
        paths += problems(path)
    return paths


def _read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=path.parent.parent.name)


def _write(path: Path, catalogue: Catalog) -> None:
    with path.open("wb") as file:
        write_po(file, catalogue, include_lineno=False, sort_output=True, width=120)

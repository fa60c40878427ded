"""A language that shows what isn't marked for translation: each text is in brackets and has accents.

`written` makes its catalogue; `outside` finds what of a page isn't in brackets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from dashboard.management import message_catalogue

#: how Django and Babel call it
CODE, LOCALE = "en-xa", "en_XA"
OPEN, CLOSE = "⟦", "⟧"
#: attributes that people read or hear
ATTRIBUTES = ("title", "aria-label", "placeholder", "alt", "data-label", "data-copied", "data-copy-refused")
#: elements whose text is a datum, a command, or drawn by a machine
DATA = {"script", "style", "code", "kbd", "pre", "bdi", "time", "textarea"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}

_KEPT = re.compile(r"(%\(\w+\)[sd]|%%|<[^>]*>|&\w+;|\{\w*\})")
_ACCENTS = str.maketrans("aeiouyAEIOUYcnsz", "äëïöüÿÄËÏÖÜŸçñšž")


def said(text: str) -> str:
    """A text as this language has it: placeholders, markup and entities stay."""
    pieces = _KEPT.split(text)
    return (
        OPEN
        + "".join(piece if number % 2 else piece.translate(_ACCENTS) for number, piece in enumerate(pieces))
        + CLOSE
    )


def written(folder: Path) -> None:
    """The compiled catalogue of this language, below a folder for LOCALE_PATHS."""
    pseudo = Catalog(locale="en", fuzzy=False)
    for message in message_catalogue.collected():
        if message.id:
            forms = (message.id,) if isinstance(message.id, str) else tuple(message.id)
            texts = tuple(map(said, forms))
            pseudo.add(message.id, texts[0] if isinstance(message.id, str) else texts)
    path = folder / LOCALE / "LC_MESSAGES" / "django.mo"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        write_mo(file, pseudo)


class Outside(HTMLParser):
    """The texts of a page that stand in no brackets, which may begin in one element and end in another."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self.depth = 0
        self.above: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if not self.depth:
            named = [*ATTRIBUTES, "label"] if tag == "optgroup" else ATTRIBUTES
            self.found += [text for name, value in attrs if name in named for text in bare(value or "")]
        if tag not in VOID:
            self.above.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.above:
            while self.above.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        for piece in re.split(f"([{OPEN}{CLOSE}])", data):
            if piece == OPEN:
                self.depth += 1
            elif piece == CLOSE:
                self.depth -= 1
            elif not self.depth and not DATA & set(self.above) and spoken(piece):
                self.found.append(" ".join(piece.split()))


def bare(text: str) -> Iterator[str]:
    """What of a text stands in no brackets."""
    depth = 0
    for piece in re.split(f"([{OPEN}{CLOSE}])", text):
        depth += {OPEN: 1, CLOSE: -1}.get(piece, 0)
        if not depth and piece != CLOSE and spoken(piece):
            yield " ".join(piece.split())


def spoken(text: str) -> bool:
    """Whether it says something: two letters, beside what only joins."""
    return re.search(r"[^\W\d_]{2}", text) is not None

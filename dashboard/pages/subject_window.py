"""Which versions the page of a subject draws and reads: some rows of all of them, the selected one and the newest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from django.utils.translation import gettext

from dashboard.links import subject_url
from dashboard.pages.numbers import whole_number
from dashboard.presenters.frame import Paging
from registry.errors import VersionNotFound
from registry.subjects.names import SubjectName

#: versions that a page draws
ROWS: Final = 50


@dataclass(frozen=True)
class Window:
    """The versions of a subject, newest first, each with whether it is soft-deleted; the rows from `begin` are drawn."""

    numbers: Sequence[tuple[int, bool]]
    selected: int
    begin: int = 0

    @cached_property
    def live(self) -> list[int]:
        """The live versions, newest first."""
        return [number for number, is_deleted in self.numbers if not is_deleted]

    @property
    def newest(self) -> int:
        """The newest live version, the newest of all where none lives."""
        return self.live[0] if self.live else self.numbers[0][0]

    @cached_property
    def rows(self) -> list[int]:
        """The versions that are drawn, newest first."""
        return [number for number, _ in self.numbers[self.begin : self.begin + ROWS]]

    @cached_property
    def run(self) -> list[int]:
        """The live versions that are drawn and the live one before them, newest first: none between two is left out."""
        oldest = self.rows[-1]
        before = next((number for number in self.live if number < oldest), None)
        drawn = [number for number, is_deleted in self.numbers[self.begin : self.begin + ROWS] if not is_deleted]
        return drawn if before is None else [*drawn, before]

    @property
    def chain(self) -> list[int]:
        """The live versions that lead to the selected one, as far as they are read; newest first."""
        is_drawn = self.selected in self.rows
        return [number for number in self.run if number <= self.selected] if is_drawn else [self.selected]

    @property
    def is_whole_chain(self) -> bool:
        """Whether the chain begins with the subject's first live version."""
        return self.chain[-1:] == self.live[-1:]

    @property
    def read(self) -> set[int]:
        """All versions that the page reads."""
        return {*self.rows, *self.run, self.selected, self.newest}

    def paging(self, registry: str, name: SubjectName) -> Paging | None:
        """The way to newer and older rows; None where all are drawn."""
        total = len(self.numbers)
        if total <= ROWS:
            return None

        def url(begin: int) -> str:
            before = self.numbers[begin][0] + 1
            return subject_url(registry, name.qualified, version=self.selected, before=before) + "#versions-title"

        end = self.begin + len(self.rows)
        return Paging(
            first=self.begin + 1,
            last=end,
            total=total,
            previous_url=url(max(0, self.begin - ROWS)) if self.begin else "",
            next_url=url(end) if end < total else "",
        )


def window_of(numbers: Sequence[tuple[int, bool]], asked: str, before: str, name: SubjectName) -> Window:
    """The window with the version that is asked for ("": the newest), or with the rows before a version.

    Raises VersionNotFound.
    """
    places = {str(number): place for place, (number, _) in enumerate(numbers)}
    if asked and asked not in places:
        raise VersionNotFound(
            gettext("Subject %(subject)s has no version %(version)s.")
            % {"subject": name.qualified, "version": asked[:40]},
            version=asked[:40],
        )
    window = Window(numbers, int(asked)) if asked else Window(numbers, Window(numbers, 0).newest)
    limit = whole_number(before, digits=10)
    begin = next((place for place, (number, _) in enumerate(numbers) if limit is not None and number < limit), None)
    if begin is None:
        begin = places[str(window.selected)] // ROWS * ROWS
    return Window(numbers, window.selected, begin)

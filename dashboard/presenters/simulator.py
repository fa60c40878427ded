"""The simulator: what a version makes of another's datum, and what a read-modify-write silently resets."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.presenters.frame import Choice, Field, Frame, Problem
from dashboard.presenters.looks import Fate
from dashboard.presenters.proof import Bytes
from dashboard.texts import later


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFate:
    """What became of one field: the values as JSON text, None where that side doesn't have the field."""

    path: str
    fate: Fate
    before: str | None
    after: str | None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FateTable:
    """The fields of one reading; `hidden` are not drawn."""

    rows: tuple[FieldFate, ...]
    before_label: str = later("Written")
    after_label: str = later("Read")
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A datum written by one version and read by another. Where the reader stops, `error` says why."""

    sentence: str
    written: str
    encoded: Bytes
    read: str = ""
    error: str = ""
    fates: FateTable | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPart:
    """What a reader gets: the two versions, the datum, and what came of it (None after an error in the form)."""

    writer: int
    reader: int
    writer_choices: tuple[Choice, ...]
    reader_choices: tuple[Choice, ...]
    datum: Field
    example_url: str
    swap_url: str
    compare_url: str
    reading: Reading | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HazardRow:
    """A field that clients on version `lost_in` reset for those on the versions `known_in`."""

    path: str
    known_in: tuple[int, ...]
    lost_in: int
    before: str
    after: str
    is_default: bool
    url: str
    selected: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One of the three steps: who does what; `value` is the record as that client has it afterwards."""

    number: int
    who: str
    what: str
    value: str
    encoded: Bytes
    fates: FateTable | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetLine:
    """A field that nobody changed and that has another value at the end."""

    path: str
    before: str
    after: str
    is_default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyLine:
    """One way to avoid it."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The three steps of one read-modify-write, and what they reset."""

    steps: tuple[StepView, ...]
    resets: tuple[ResetLine, ...]
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModifyPart:
    """Read, modify, write back: the versions in use, all their hazards, and the three steps for one pair.

    `boxes` are the versions that can be in use together; `limit` is how many at once. Where there is no hazard,
    `stops` says which versions can't even read another's data. `round` is None after an error in the form.
    """

    boxes: tuple[Choice, ...]
    in_use: tuple[int, ...]
    limit: int
    hazards: tuple[HazardRow, ...]
    hazards_hidden: int
    written_by: int
    modified_by: int
    written_choices: tuple[Choice, ...]
    modified_choices: tuple[Choice, ...]
    datum: Field
    pointer: Field
    value: Field
    example_url: str
    stops: tuple[str, ...] = ()
    remedies: tuple[RemedyLine, ...] = ()
    round: Round | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorPage:
    """`…/simulate?part=read|modify`: one of the two parts is there; neither where `problem` or `too_few` says why."""

    frame: Frame
    registry: str
    subject: str
    subject_url: str
    url: str
    post_url: str
    part: str
    part_urls: tuple[tuple[str, str, str], ...]
    format: str = ""
    read: ReadPart | None = None
    modify: ModifyPart | None = None
    too_few: str = ""
    problem: Problem | None = None

    @property
    def has_errors(self) -> bool:
        """Whether something that was sent couldn't be used."""
        read, modify = self.read, self.modify
        fields = [read.datum] if read else [modify.datum, modify.pointer, modify.value] if modify else []
        return self.problem is not None or any(item.errors for item in fields)

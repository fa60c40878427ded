"""Tags, owners and descriptions of subjects, and the change of several subjects at once, as pages show them."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.components.forms import ServiceForm
from dashboard.components.widgets import Action, Choice, Field, Frame, Problem
from registry.subjects.lifecycle.notes import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class TagChip:
    """A tag; `url` lists the subjects that have it, `personal` says that it hides values."""

    word: str
    url: str = ""
    personal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerChip:
    """An owner: a person or, with `group`, a group; `url` lists what it owns."""

    name: str
    url: str
    group: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePart:
    """What is written about a subject, and the form that changes it; `refused` is why the reader may not.

    `tags` are its own, `inherited` those that every field of its newest version has.
    """

    note: Note
    tags: tuple[TagChip, ...]
    inherited: tuple[TagChip, ...]
    in_fields: tuple[TagChip, ...]
    owners: tuple[OwnerChip, ...]
    form: ServiceForm
    refused: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nobody has said anything of the subject."""
        return not (self.tags or self.inherited or self.owners or self.note.paragraphs)


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkForm:
    """What can be done to the subjects that are chosen in the list; an address is "" for what somebody may not do."""

    url: str = ""
    choices: tuple[Choice, ...] = ()
    export_url: str = ""
    deprecate_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRow:
    """A subject of a change of several: the tags that it has now, and those that it would have."""

    name: str
    url: str
    before: tuple[TagChip, ...] = ()
    after: tuple[TagChip, ...] = ()
    owners: tuple[OwnerChip, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPage:
    """The change of several subjects, to be confirmed: `sentence` says it, `hidden` are the form's fields."""

    frame: Frame
    sentence: str
    rows: tuple[BulkRow, ...]
    hidden: tuple[tuple[str, str], ...]
    submit: Action
    back_url: str
    reason: Field
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralRow:
    """A chosen subject: what would be deprecated, or was; `why_not` where it can't be, or wasn't."""

    name: str
    url: str
    what: str = ""
    why_not: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralPage:
    """The deprecation of several subjects: to be confirmed, or with `done` what became of each."""

    frame: Frame
    rows: tuple[SeveralRow, ...]
    hidden: tuple[tuple[str, str], ...] = ()
    fields: tuple[Field, ...] = ()
    submit: Action | None = None
    done: bool = False
    sentence: str = ""
    back_url: str = ""
    problem: Problem | None = None

"""Notes, owners and contact channels of subjects, on a subject's page and in the filters of the list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import urlencode

from django import forms
from django.utils.translation import gettext

from dashboard.components.forms import LongTextField, ServiceForm
from dashboard.components.links import subjects_url
from dashboard.components.translation import gettext_lazy as _
from dashboard.components.translation import lazy_format
from dashboard.components.widgets import Choice, Link
from dashboard.subjects.lifecycle import SubjectForm
from registry.access.contact_channels import MAX_CHANNEL, channel_url
from registry.access.roles import Actor, refusal
from registry.access.selectors import Owners, owners_of
from registry.formats.personal_data import SchemaTags
from registry.subjects.comparison.parsed_versions import is_personal_tag
from registry.subjects.lifecycle.notes import ACTION, Note, channels_of, set_note
from registry.subjects.models.registries import MAX_DOC, MAX_TAGS
from registry.subjects.versions.lookup import Registry
from registry.subjects.versions.qualified_names import SubjectName

MOST_CHOICES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TagChip:
    """A tag; `url` lists the subjects that have it, `personal` marks a tag for personal data."""

    word: str
    url: str = ""
    personal: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerChip:
    """An owner: a person, or a group if `group`; `url` lists the subjects that it owns."""

    name: str
    url: str
    group: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePart:
    """A subject's note and the form that changes it; `refused` says why the reader may not.

    `channels` are where to ask: its own, or those of its owners. `tags` are the subject's own, `inherited` those that every field of its newest version has.
    """

    note: Note
    tags: tuple[TagChip, ...]
    inherited: tuple[TagChip, ...]
    in_fields: tuple[TagChip, ...]
    owners: tuple[OwnerChip, ...]
    form: ServiceForm
    channels: tuple[Link, ...] = ()
    refused: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether the subject has no note, owners, channels or tags."""
        return not (self.tags or self.inherited or self.owners or self.channels or self.note.doc)


class NoteForm(SubjectForm):
    """A form that replaces a subject's note; `expected` is the state of the note that was read."""

    anchor = "#note"
    service = staticmethod(set_note)
    label = _("Save description")
    success = _("Description saved.")
    permission = ACTION

    expected = forms.CharField(widget=forms.HiddenInput, required=False)
    tags = forms.CharField(
        label=_("Tags"),
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "PII sales"}),
        help_text=lazy_format(
            _("Separate tags with spaces, at most %(max_tags)s. Values of fields with a personal-data tag are hidden."),
            max_tags=MAX_TAGS,
        ),
    )
    doc = LongTextField(
        label=_("Description"),
        rows=6,
        required=False,
        strip=False,
        help_text=lazy_format(
            _(
                "Markdown: **bold**, *italic*, `code`, [links](https://example.com) and lists with “-”. An empty line starts a "
                "new paragraph. At most %(max_doc)s characters."
            ),
            max_doc=f"{MAX_DOC:,}",
        ),
    )
    channel = forms.CharField(
        label=_("Channel"),
        required=False,
        max_length=2 * MAX_CHANNEL,
        help_text=_(
            "Where its people talk: a URL, an email address or a name such as #orders. Empty: that of the owners."
        ),
    )
    reason = LongTextField(label=_("Reason"), rows=2, required=False, help_text=_("For the audit log."))

    def clean_tags(self) -> list[str]:
        """Split the tags at spaces and commas."""
        text: str = self.cleaned_data["tags"]
        return text.replace(",", " ").split()

    @classmethod
    def of(cls, note: Note) -> NoteForm:
        """Return the form with the current note."""
        values = {"tags": " ".join(note.tags), "doc": note.doc, "channel": note.channel, "expected": note.state}
        return cls(initial=values)


def note_part(
    actor: Actor,
    registry: Registry,
    name: SubjectName,
    note: Note,
    tags: SchemaTags,
    *,
    sent: ServiceForm | None = None,
) -> NotePart:
    """Return a subject's note; `sent` is a refused form, shown again so that no input is lost."""
    owners = owners_of(registry.name, name.qualified)
    return NotePart(
        note=note,
        tags=tag_chips(registry.name, note.tags),
        inherited=tag_chips("", [tag for tag in tags.everywhere if tag not in note.tags]),
        in_fields=tag_chips("", [tag for tag in tags.somewhere if tag not in tags.everywhere]),
        owners=owner_chips(registry.name, owners),
        channels=channel_links(channels_of(note, owners)),
        form=sent or NoteForm.of(note),
        refused=refusal(actor, ACTION, registry=registry.name, subject=name.qualified),
    )


def tag_chips(registry: str, tags: Iterable[str]) -> tuple[TagChip, ...]:
    """Return the tags; with a registry, each links to the subjects that have it."""
    base = subjects_url(registry) if registry else ""
    return tuple(
        TagChip(
            word=tag, url=f"{base}?{urlencode({'tag': tag.lower()})}" if registry else "", personal=is_personal_tag(tag)
        )
        for tag in tags
    )


def channel_links(channels: Iterable[str]) -> tuple[Link, ...]:
    """Return the channels; the URL of one that is only a name is empty."""
    return tuple(Link(label=channel, url=channel_url(channel)) for channel in channels)


def owner_chips(registry: str, owners: Owners) -> tuple[OwnerChip, ...]:
    """Return the owning groups, and the people named individually."""
    base = subjects_url(registry)
    named = [("group", name) for name in owners.groups]
    named += [("user", owner.username) for owner in owners.people if not owner.groups]
    return tuple(
        OwnerChip(name=name, url=f"{base}?{urlencode({'owner': f'{kind}:{name}'})}", group=kind == "group")
        for kind, name in named
    )


# -- the list -------------------------------------------------------------------------------------------------------


def tag_choices(tags: Iterable[str], counts: Mapping[str, int] | None, chosen: str) -> tuple[Choice, ...]:
    """Return the most used tags and the selected one, with their counts if these are known."""
    chosen, listed = chosen.lower(), list(islice(tags, MOST_CHOICES))
    if chosen and chosen not in listed:
        listed.append(chosen)
    return (
        Choice(value="", label=gettext("Any tag"), selected=not chosen),
        *(
            Choice(value=tag, label=tag, selected=tag == chosen, count=None if counts is None else counts.get(tag, 0))
            for tag in sorted(listed)
        ),
    )


def owner_choices(
    owners: Sequence[tuple[str, str]], counts: Mapping[str, int] | None, chosen: str
) -> tuple[Choice, ...]:
    """Return the owners of subjects and the selected one, with their counts if these are known."""
    listed = [f"{kind}:{name}" for kind, name in owners[:MOST_CHOICES]]
    if chosen and chosen not in listed:
        listed.append(chosen)
    return (
        Choice(value="", label=gettext("Any owner"), selected=not chosen),
        *(
            Choice(
                value=value,
                label=_owner_word(value),
                selected=value == chosen,
                count=None if counts is None else counts.get(value, 0),
            )
            for value in listed
        ),
    )


def _owner_word(value: str) -> str:
    kind, _, name = value.partition(":")
    return gettext("%(name)s (group)") % {"name": name} if kind == "group" else name

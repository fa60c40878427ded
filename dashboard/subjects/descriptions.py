"""Descriptions of subjects, tags and owners: on a subject's page, and changed for several subjects from the list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Final
from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext

from dashboard.compare.business_terms import Fact
from dashboard.components.forms import LongTextField, ServiceForm
from dashboard.components.frame import make_frame, page_actor
from dashboard.components.links import subject_url, subjects_crumb, subjects_url
from dashboard.components.translation import later, later_filled
from dashboard.components.widgets import Action, Choice, Field, Problem, Section
from dashboard.sources.labels import given_text
from dashboard.subjects.annotations import BulkForm, BulkPage, BulkRow, NotePart, OwnerChip, TagChip
from dashboard.subjects.lifecycle import SubjectForm
from registry.access.roles import Actor, may_somewhere, refusal, require
from registry.access.selectors import Owners, owners_of, owners_of_many
from registry.errors import SchemadeskError
from registry.formats.personal_data import SchemaTags
from registry.subjects import selectors
from registry.subjects.comparison.parsed_versions import is_personal_tag, tags_of_outline
from registry.subjects.lifecycle.notes import ACTION, MOST, Note, clean_tags, note_of, notes_of, set_note
from registry.subjects.lifecycle.retirement import DEPRECATE, RIGHTS
from registry.subjects.models.registries import MAX_DOC, MAX_TAGS
from registry.subjects.versions.lookup import Registry, get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject

ADD, REMOVE, OWN_USER, OWN_GROUP = "add", "remove", "own_user", "own_group"
#: what is done to several subjects → its choice in the form, and the right that it takes
CHANGES: Final = {
    ADD: (later("Add tag"), "subject.describe"),
    REMOVE: (later("Remove tag"), "subject.describe"),
    OWN_USER: (later("Add person as owner"), "people.manage"),
    OWN_GROUP: (later("Add group as owner"), "people.manage"),
}
MOST_CHOICES: Final = 100
_REASON: Final = Field(name="reason", label=later("Reason"), kind="textarea", rows=2, help=later("For the audit log."))


class NoteForm(SubjectForm):
    """Replaces the tags and the text of a subject; `expected` is the state of the note that was read."""

    anchor = "#note"
    service = staticmethod(set_note)
    label = later("Save description")
    success = later("Description saved.")
    permission = ACTION

    expected = forms.CharField(widget=forms.HiddenInput, required=False)
    tags = forms.CharField(
        label=later("Tags"),
        required=False,
        widget=forms.TextInput(attrs={"placeholder": "PII sales"}),
        help_text=later_filled(
            "Separate tags with spaces, at most %(max_tags)s. Values of fields with a personal-data tag are hidden.",
            max_tags=MAX_TAGS,
        ),
    )
    doc = LongTextField(
        label=later("Description"),
        rows=6,
        required=False,
        strip=False,
        help_text=later_filled(
            "Plain text. An empty line starts a new paragraph. At most %(max_doc)s characters.", max_doc=f"{MAX_DOC:,}"
        ),
    )
    reason = LongTextField(label=later("Reason"), rows=2, required=False, help_text=later("For the audit log."))

    def clean_tags(self) -> list[str]:
        """The tags, which commas may separate too."""
        text: str = self.cleaned_data["tags"]
        return text.replace(",", " ").split()

    @classmethod
    def of(cls, note: Note) -> NoteForm:
        """The form with what is written now."""
        return cls(initial={"tags": " ".join(note.tags), "doc": note.doc, "expected": note.state})


def note_part(
    actor: Actor,
    registry: Registry,
    name: SubjectName,
    note: Note,
    tags: SchemaTags,
    *,
    sent: ServiceForm | None = None,
) -> NotePart:
    """What is written about a subject; `sent` is a form that was refused, so that nothing typed is lost."""
    return NotePart(
        note=note,
        tags=tag_chips(registry.name, note.tags),
        inherited=tag_chips("", [tag for tag in tags.everywhere if tag not in note.tags]),
        in_fields=tag_chips("", [tag for tag in tags.somewhere if tag not in tags.everywhere]),
        owners=owner_chips(registry.name, owners_of(registry.name, name.qualified)),
        form=sent or NoteForm.of(note),
        refused=refusal(actor, ACTION, registry=registry.name, subject=name.qualified),
    )


def tag_chips(registry: str, tags: Iterable[str]) -> tuple[TagChip, ...]:
    """The tags; with a registry each leads to the subjects that have it."""
    base = subjects_url(registry) if registry else ""
    return tuple(
        TagChip(
            word=tag,
            url=f"{base}?{urlencode({'tag': tag.lower()})}" if registry else "",
            personal=is_personal_tag(tag),
        )
        for tag in tags
    )


def owner_chips(registry: str, owners: Owners) -> tuple[OwnerChip, ...]:
    """The groups and the people who are named themselves."""
    base = subjects_url(registry)
    named = [("group", name) for name in owners.groups]
    named += [("user", owner.username) for owner in owners.people if not owner.groups]
    return tuple(
        OwnerChip(name=name, url=f"{base}?{urlencode({'owner': f'{kind}:{name}'})}", group=kind == "group")
        for kind, name in named
    )


def facts_of(registry: Registry, name: SubjectName, version: str) -> dict[str, Fact]:
    """The docs and tags of a version's fields, by path. Raises SubjectNotFound, VersionNotFound."""
    info = selectors.get_version(registry, name, version, deleted=True)
    outline = selectors.outline_of(registry, name, info.version)
    tags = tags_of_outline(info.schema.schema_type, outline, info.schema.metadata, note_of(registry, name)).fields
    return {
        row.path: Fact(doc=row.doc, tags=tag_chips("", tags_of_field.tags))
        for row, tags_of_field in zip(outline, tags, strict=True)
    }


# -- the list -------------------------------------------------------------------------------------------------------


def tag_choices(tags: Iterable[str], counts: Mapping[str, int] | None, chosen: str) -> tuple[Choice, ...]:
    """The first of the tags, most used first, with how many have each where that was counted, and the chosen one."""
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
    """Who owns subjects there, with how many of the list each has where that was counted, and the chosen one."""
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


def bulk_form(actor: Actor, registry: str) -> BulkForm | None:
    """The form below the list, with what somebody may do anywhere; who reads the list may export of it.

    None in the past, of which nothing is chosen: what would be exported is of now.
    """
    if actor.past:
        return None
    allowed = [code for code, (_, action) in CHANGES.items() if may_somewhere(actor, action)]
    may_deprecate = may_somewhere(actor, RIGHTS[DEPRECATE])
    return BulkForm(
        url=reverse("ui:subjects_describe", args=[registry]) if allowed else "",
        choices=tuple(Choice(value=code, label=CHANGES[code][0], selected=code == ADD) for code in allowed),
        export_url=reverse("ui:subjects_export", args=[registry]),
        deprecate_url=reverse("ui:subjects_deprecate", args=[registry]) if may_deprecate else "",
    )


# -- several at once ------------------------------------------------------------------------------------------------


def bulk_page(request: HttpRequest, registry: str, *, error: str = "") -> BulkPage:
    """The chosen subjects with what would become of each. Raises NotAllowed, RegistryNotFound."""
    actor, post = page_actor(request), request.POST
    require(actor, "schema.read", registry=registry)
    registry_row = get_registry(registry)
    change, value = given_text(post, "change"), given_text(post, "value")
    names, problem = chosen_subjects(post.getlist("subject")), error
    action = CHANGES.get(change, ("", "subject.describe"))[1]
    for name in names:
        require(actor, action, registry="" if action == "people.manage" else registry, subject=name.qualified)
    if not problem:
        problem = _problem(change, value, names)
    notes, owners = notes_of(registry_row, names), owners_of_many(registry, [name.qualified for name in names])
    rows = tuple(
        BulkRow(
            name=name.qualified,
            url=subject_url(registry, name.qualified),
            before=tag_chips(registry, notes.get(name, Note()).tags),
            after=tag_chips("", _after(change, value, notes.get(name, Note()).tags)),
            owners=owner_chips(registry, owners[name.qualified]),
        )
        for name in names
    )
    return BulkPage(
        frame=make_frame(
            request,
            title=gettext("Change several subjects"),
            section=Section.SUBJECTS,
            registry=registry,
            crumbs=(subjects_crumb(registry),),
        ),
        sentence=f"{CHANGES[change][0]} “{value}”" if change in CHANGES else "",
        rows=rows,
        hidden=(
            ("change", change),
            ("value", value),
            ("confirmed", "yes"),
            *(("subject", name.qualified) for name in names),
        ),
        submit=Action(
            label=gettext("Apply"),
            url=reverse("ui:subjects_describe", args=[registry]),
            method="post",
            allowed=not problem,
            reason=problem,
            tone="primary",
        ),
        back_url=subjects_url(registry),
        reason=_REASON,
        problem=Problem(what=problem, cure=gettext("Go back to the list and select again.")) if problem else None,
    )


def chosen_subjects(texts: Sequence[str]) -> list[SubjectName]:
    """The subjects of a form, each once, in its order. Raises InvalidName."""
    return list(dict.fromkeys(parse_subject(text) for text in texts))


def _problem(change: str, value: str, names: Sequence[SubjectName]) -> str:
    """Why nothing can be done, as a sentence; empty where it can."""
    if change not in CHANGES:
        return gettext("Choose an action.")
    if not 1 <= len(names) <= MOST:
        return gettext("Select 1 to %(most)s subjects in the list. You selected %(count)s.") % {
            "most": MOST,
            "count": len(names),
        }
    if change in (ADD, REMOVE):
        try:
            clean_tags([value])
        except SchemadeskError as error:
            return error.message
    return "" if value else gettext("Enter the name of the owner.")


def _after(change: str, value: str, tags: tuple[str, ...]) -> tuple[str, ...]:
    if change == REMOVE:
        return tuple(tag for tag in tags if tag.lower() != value.lower())
    if change == ADD and value.lower() not in {tag.lower() for tag in tags}:
        return tuple(sorted((*tags, value)))
    return tags

"""What is written about the subjects of a plan, which goes along with their versions.

A description goes where there is none. In place of another one it goes with the subjects' own settings, if these are
asked for; else the target's stays. It is no step: no client gets anything else by it, so it is no part of what is
approved, and it is written as it is when the plan is applied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from registry.access.roles import Actor
from registry.audit.services import record
from registry.promotions.models import PromotionRequest
from registry.promotions.plan import PASS, WARN, Check, Plan, Step, Wish
from registry.subjects.models import Registry, Subject
from registry.subjects.names import SubjectName, parse_subject
from registry.subjects.selectors.notes import Note, notes_of
from registry.subjects.selectors.tags import is_personal_tag
from registry.subjects.services.notes import bring_note

PROMOTE: Final = "promote"


def checks_of_notes(wish: Wish, plan: Plan) -> list[Check]:
    """What becomes of the descriptions; nothing where the source has none, or the target has the same. Two queries."""
    if wish.kind != PROMOTE or wish.source is None:
        return []
    pairs = _pairs(wish.source.registry, wish.target.registry, plan.steps)
    elsewhere = wish.target.registry.kind == Registry.REMOTE
    return [_check(name, here, there, wish, elsewhere=elsewhere) for name, (here, there) in pairs.items()]


def _check(name: SubjectName, here: Note, there: Note, wish: Wish, *, elsewhere: bool) -> Check:
    title, target = f"description of {name.qualified}", wish.target.registry.name
    hidden = [
        tag for tag in here.tags if is_personal_tag(tag) and tag.lower() not in {each.lower() for each in there.tags}
    ]
    what = f"tagged {', '.join(here.tags)}" if here.tags else "without tags"
    if elsewhere:
        said = f"It stays here: {target} is another server, which has no descriptions."
        return Check("notes", title, PASS, said, subject=name.qualified)
    if not there.tags and not there.doc:
        return Check("notes", title, PASS, f"It goes along to {target}, {what}.", subject=name.qualified)
    if wish.with_config:
        return Check(
            "notes", title, PASS, f"It takes the place of the one of {target}, {what}.", subject=name.qualified
        )
    said = f"{target} has another one, which stays."
    cure = "Bring the subjects' own settings along, or change it on the subject's page there."
    if hidden:
        said += f" It lacks {', '.join(hidden)}, which hides values of personal data."
    return Check("notes", title, WARN if hidden else PASS, said, cure, subject=name.qualified)


def carry_notes(request: PromotionRequest, steps: Iterable[Step], by: Actor) -> None:
    """Write the descriptions that go along, in the transaction of the applying."""
    if request.kind != PROMOTE or request.source is None:
        return
    target = request.target.registry
    pairs = _pairs(request.source.registry, target, steps)
    wanted = {
        name: here
        for name, (here, there) in pairs.items()
        if request.config is not None or not (there.tags or there.doc)
    }
    rows = Subject.objects.filter(context__registry=target, name__in={name.subject for name in wanted})
    for row in rows.select_related("context").select_for_update(of=("self",)):
        note = wanted.get(SubjectName(row.context.name, row.name))
        if note is not None:
            record(by=by, why=f"apply request {request.pk}: the description of {row.name} goes along")
            bring_note(row, tags=note.tags, doc=note.doc, by=by)


def _pairs(source: Registry, target: Registry, steps: Iterable[Step]) -> dict[SubjectName, tuple[Note, Note]]:
    """The subjects whose description differs, with both; the target's may be empty, the source's isn't."""
    names = sorted({parse_subject(step.subject) for step in steps}, key=lambda name: name.qualified)
    here, there = notes_of(source, names), notes_of(target, names)
    found = {name: (here[name], there.get(name, Note())) for name in names if name in here}
    return {
        name: (one, other) for name, (one, other) in found.items() if (one.tags, one.doc) != (other.tags, other.doc)
    }

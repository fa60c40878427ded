"""What a reviewer may want seen to: advice on the schemas, somebody who owns the subjects, and a description.

None of it stops anything, voids an approval, or keeps a request from being approved with others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from registry.access.selectors import owners_of_many
from registry.errors import SchemaTooCostly
from registry.formats.base import ParsedSchema
from registry.promotions.plan import PASS, SKIPPED, WARN, Check, Wish
from registry.subjects import engines
from registry.subjects.models import Registry
from registry.subjects.names import parse_subject
from registry.subjects.selectors.notes import notes_of

#: subjects that a sentence names
_NAMED: Final = 5
_INFO: Final = "info"


def checks_of_care(wish: Wish, subjects: Sequence[str], schemas: Mapping[str, ParsedSchema]) -> list[Check]:
    """A check each of the linter, of owners and of descriptions, for all of these subjects; four queries."""
    return [_linted(subjects, schemas), _owned(wish.target.registry, subjects), _described(wish, subjects)]


def _linted(subjects: Sequence[str], schemas: Mapping[str, ParsedSchema]) -> Check:
    name, told, remarks = "advice on the schemas", list[str](), 0
    try:
        for subject in subjects:
            found = engines.lint(schemas[subject]) if subject in schemas else ()
            warnings = [item for item in found if item.weight != _INFO]
            remarks += len(found) - len(warnings)
            if warnings:
                first, more = warnings[0], len(warnings) - 1
                rest = f", and {more} more" if more else ""
                told.append(f"{subject}: {first.message}{f' ({first.path})' if first.path else ''}{rest}")
    except SchemaTooCostly as error:
        return Check("lint", name, SKIPPED, error.message)
    if told:
        cure = "Check the text as a new version: the report names each place, with its cure."
        return Check("lint", name, WARN, f"{_listed(told, '; ')}.", cure)
    small = f" {remarks} small remark{'s' if remarks != 1 else ''} in their reports." if remarks else ""
    return Check("lint", name, PASS, f"The linter warns of nothing.{small}")


def _owned(registry: Registry, subjects: Sequence[str]) -> Check:
    owners = owners_of_many(registry.name, subjects)
    without = [subject for subject in subjects if not owners[subject].people]
    if not without:
        return Check("owners", "owners", PASS, f"Each subject has an owner in {registry.name}.")
    cure = "Name an owner, so that somebody is told of drift and asked before it is retired."
    return Check("owners", "owners", WARN, f"Nobody owns {_listed(without)} in {registry.name}.", cure)


def _described(wish: Wish, subjects: Sequence[str]) -> Check:
    names = {parse_subject(subject): subject for subject in subjects}
    places = [wish.target.registry, *([wish.source.registry] if wish.source else [])]
    told = {name for place in places for name, note in notes_of(place, names.keys()).items() if note.doc.strip()}
    without = [subject for name, subject in names.items() if name not in told]
    title = "descriptions"
    if not without:
        return Check("descriptions", title, PASS, "Each subject says what it is for.")
    cure = "Describe it on the subject's page; what is written at the source goes along."
    return Check("descriptions", title, WARN, f"Nothing says what {_listed(without)} is for.", cure)


def _listed(parts: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(parts) - _NAMED} more" if len(parts) > _NAMED else ""
    return between.join(parts[:_NAMED]) + more

"""Suggested edits of a new schema: those that declare likely renames, and those that make a level pass."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final, Literal

from registry.errors import InvalidSchema
from registry.formats.base import Difference, Edit, Incompatibility, ParsedSchema
from registry.formats.compatibility import Checker, History, level_named
from registry.formats.report import DECISIVE, Profile, Report, ReportItem
from registry.formats.schema_format import SchemaFormat

#: parses an edited text with the new schema's references
Parse = Callable[[str], ParsedSchema]

MAX_EDITS: Final = 20
#: the most findings of a text that is being written that get their own edits
MAX_REPAIRED: Final = 10
#: the most characters that are read and compared again, because each edit reads the whole schema again
MAX_CHARACTERS_EDITED: Final = 100_000
#: the most further edits of the new field after a rename
MAX_EDITS_OF_RENAME: Final = 6
#: the most fields that are compared again for edits of suspected renames; each edit compares all fields of the schema
MAX_FIELDS_EDITED: Final = 2_000
#: the most (version, direction) pairs that are judged to test whether edits of suspected renames pass
MAX_PAIRS_OF_RENAMES: Final = 100
#: differences that mean that a field is gone
_REMOVALS: Final = frozenset({"FIELD_REMOVED", "PROPERTY_REMOVED"})
#: how safe an edit is for the data, safest first
Safety = Literal["rename", "kept", "invented"]


@dataclass(frozen=True, slots=True)
class SuspectedRename:
    """A removed and an added field that look like one renamed field, and the edit that would declare the rename.

    `effect` says what readers get from the schema as it is, and `cure` what to do in this format. `is_edit_tried` is
    False if no edit was looked for because there are too many renames. `passes` says whether the schema with only this
    edit passes the level; None if there is no level or edit, or too many.
    """

    path: str
    message: str
    score: float
    reasons: tuple[str, ...]
    edit: Edit | None
    is_edit_tried: bool = True
    before: str = ""
    after: str = ""
    effect: str = ""
    cure: str = ""
    passes: bool | None = None
    pointer: str = ""

    @property
    def from_path(self) -> str:
        """The path of the removed field: that of the added field with the old name."""
        return self.path.removesuffix(self.after) + self.before

    def to_dict(self) -> dict[str, Any]:
        """Return the suspected rename as JSON values."""
        return {
            "path": self.path,
            "message": self.message,
            "effect": self.effect,
            "cure": self.cure,
            "score": self.score,
            "reasons": list(self.reasons),
            "edit": None
            if self.edit is None
            else {"title": self.edit.title, "text": self.edit.text, "passes": self.passes},
        }


@dataclass(frozen=True, slots=True)
class PatchStep:
    """The edits of a patch that have one effect: the first title with its number of edits, and the other titles."""

    title: str
    effect: str = ""
    count: int = 1
    others: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Patch:
    """Successive edits of the new schema: the final text, and whether it would pass the level.

    `effects` has for each title what the edit does to old data and old readers.
    """

    titles: tuple[str, ...]
    text: str
    diff: str
    passes: bool
    effects: tuple[str, ...] = ()

    @property
    def steps(self) -> tuple[PatchStep, ...]:
        """The edits in their order; those with the same effect are one step."""
        steps: dict[str, Counter[str]] = {}
        for title, effect in zip_longest(self.titles, self.effects, fillvalue=""):
            steps.setdefault(effect or title, Counter())[title] += 1
        grouped = ((effect if effect in self.effects else "", list(titles.items())) for effect, titles in steps.items())
        return tuple(PatchStep(first, effect, count, tuple(others)) for effect, ((first, count), *others) in grouped)

    def to_dict(self) -> dict[str, Any]:
        """Return the patch as JSON values; `diff` is unified."""
        lists = {"titles": list(self.titles), "effects": list(self.effects)}
        return lists | {"text": self.text, "diff": self.diff, "passes": self.passes}


@dataclass(frozen=True, slots=True)
class FindingRepairs:
    """The edits that each remove one finding, the safest first; none of them depends on another.

    `question` names a likely rename, because only people know whether the field was renamed or removed. `passes` has
    for each edit whether the level then passes.
    """

    item: ReportItem
    edits: tuple[Edit, ...] = ()
    passes: tuple[bool, ...] = ()
    question: str = ""


def suspected_renames(format: SchemaFormat, new: ParsedSchema, history: History) -> tuple[SuspectedRename, ...]:
    """Return the suspected renames against the latest version; none if that has another format."""
    if not history or history[-1][1].schema_type != new.schema_type:
        return ()
    old = history[-1][1]
    return renames_of(
        format.diff(old, new), lambda item: format.accept_rename(old, new, item), lambda: len(format.outline(new))
    )


def renames_of(
    differences: Sequence[Difference], accept: Callable[[Difference], Edit | None], fields: Callable[[], int]
) -> tuple[SuspectedRename, ...]:
    """Return the suspected renames, likeliest first; in large schemas only the first ones get an edit.

    `accept` makes an edit, which reads the whole new schema again; `fields` returns the schema's number of fields.
    """
    suspected = [(item.score, item) for item in differences if item.score is not None]
    if not suspected:
        return ()
    suspected.sort(key=lambda pair: -pair[0])
    tries = max(1, MAX_FIELDS_EDITED // max(1, fields()))
    return tuple(
        SuspectedRename(
            item.path,
            item.message,
            score,
            item.reasons,
            accept(item) if index < tries else None,
            is_edit_tried=index < tries,
            before=str(item.before),
            after=str(item.after),
            effect=item.effect,
            cure=item.cure,
            pointer=item.pointer_new or "",
        )
        for index, (score, item) in enumerate(suspected)
    )


def measured_renames(
    format: SchemaFormat, renames: Sequence[SuspectedRename], history: History, report: Report, parse: Parse
) -> tuple[SuspectedRename, ...]:
    """Return the renames; for the first ones, `passes` says whether the edited schema passes the report's level."""
    level = level_named(report.level)
    count = max(1, MAX_PAIRS_OF_RENAMES // max(1, len(report.versions) * len(level.directions)))
    patcher = _Patcher(format, history, report, parse)
    measured = []
    for index, rename in enumerate(renames):
        after = patcher.edited((), rename.edit) if rename.edit and index < count else None
        measured.append(rename if after is None else replace(rename, passes=after.report.is_compatible))
    return tuple(measured)


def patch_of(
    format: SchemaFormat, new: ParsedSchema, history: History, report: Report, checker: Checker, parse: Parse
) -> Patch | None:
    """Return edits until the level passes or no edit is known; None without any edit, or with too many places to edit.

    The safest come first: edits that declare a likely rename, then those that keep all data, then those that invent a
    value.
    """
    most = _affordable(MAX_EDITS, new, report)
    if len({(item.rule, item.named_path) for item in report.breaks}) > most:
        return None
    patcher = _Patcher(format, history, report, parse)
    current = _EditedSchema((), new, checker, report)
    texts, safety = {new.text}, list[Safety](("rename", "kept", "invented"))
    while len(current.edits) < most and not current.report.is_compatible and safety:
        following = (
            patcher.next_rename(current, texts)
            if safety[0] == "rename"
            else patcher.next_edit(current, texts, may_invent=safety[0] == "invented")
        )
        if following is None:
            safety.pop(0)
            continue
        texts.add(following.schema.text)
        current = following
    if not current.edits:
        return None
    text = current.schema.text
    titles, effects = (tuple(getattr(edit, name) for edit in current.edits) for name in ("title", "effect"))
    return Patch(titles, text, _unified(new.text, text), current.report.is_compatible, effects)


def repairs_of(
    format: SchemaFormat, new: ParsedSchema, history: History, level: str, *, parse: Parse, profile: Profile
) -> tuple[FindingRepairs, ...]:
    """Return the repairs of the first findings under a level that break readers or lose values, worst version first.

    A rename that is likely comes before an edit that keeps all data, and that before one that invents a value.
    """
    checker = Checker(format, new, history, profile)
    report = checker.report(level_named(level))
    patcher, renames = _Patcher(format, history, report, parse), suspected_renames(format, new, history)
    repairs: dict[tuple[str, str, str], FindingRepairs] = {}
    most = _affordable(MAX_REPAIRED, new, report)
    for item, finding in zip(report.items, checker.findings_of(report), strict=True):
        if len(repairs) == most:
            break
        key = (item.rule, item.named_path, item.direction)
        is_repairable = item.severity in DECISIVE["semantic"] and finding.kind != "SCHEMA_TYPE_CHANGED"
        if is_repairable and key not in repairs:
            repairs[key] = _repairs_of_item(patcher, _EditedSchema((), new, checker, report), item, finding, renames)
    return tuple(repairs.values())


def _affordable(most: int, new: ParsedSchema, report: Report) -> int:
    """Return how many edits are tried: fewer than `most` in a large schema, or with many versions to compare."""
    return max(1, min(most, MAX_CHARACTERS_EDITED // max(1, len(new.text) * len(report.versions))))


def _repairs_of_item(
    patcher: _Patcher,
    current: _EditedSchema,
    item: ReportItem,
    finding: Incompatibility,
    renames: Sequence[SuspectedRename],
) -> FindingRepairs:
    about = [rename for rename in renames if _is_about(item, rename.after) or _is_about(item, rename.before)]
    tried = [patcher.declared(rename, item) for rename in about]
    own = patcher.repair(current, item, finding)
    if own and not any(edited and edited.schema.text == own.text for edited in tried):
        tried.append(patcher.edited((), own))
    mended = [edited for edited in tried if edited and not any(_is_same(item, other) for other in edited.report.items)]
    return FindingRepairs(
        item,
        tuple(_joined(edited.edits) for edited in mended),
        tuple(edited.report.is_compatible for edited in mended),
        about[0].message if about else "",
    )


def _joined(edits: Sequence[Edit]) -> Edit:
    """Return successive edits as one."""
    titles, effects = (dict.fromkeys(getattr(edit, name) for edit in edits) for name in ("title", "effect"))
    return replace(edits[-1], title="; ".join(titles), effect=" ".join(effects))


def _is_same(item: ReportItem, other: ReportItem) -> bool:
    return (item.rule, item.named_path, item.direction) == (other.rule, other.named_path, other.direction)


@dataclass(frozen=True, slots=True)
class _EditedSchema:
    """The schema after some edits, with its checker and report."""

    edits: tuple[Edit, ...]
    schema: ParsedSchema
    checker: Checker
    report: Report


@dataclass(frozen=True, slots=True)
class _Patcher:
    """What stays the same between edits; `first` is the report of the unedited schema."""

    format: SchemaFormat
    history: History
    first: Report
    parse: Parse

    def next_rename(self, current: _EditedSchema, texts: set[str]) -> _EditedSchema | None:
        """Return the schema after the likeliest rename that leaves fewer problems, alone or with edits of the new
        field.

        If readers still need the old name, the rename is skipped: that field must come back, which would duplicate its
        data.
        """
        for rename in suspected_renames(self.format, current.schema, self.history):
            if rename.edit is None or rename.edit.text in texts:
                continue
            renamed = self.edited(current.edits, rename.edit)
            if renamed is None or any(_last_name(item) == rename.before for item in renamed.report.breaks):
                continue
            following = self._with_edits_of_field(renamed, rename, texts | {rename.edit.text})
            if following is not None and len(following.report.breaks) < len(current.report.breaks):
                return following
        return None

    def next_edit(
        self,
        current: _EditedSchema,
        texts: set[str],
        *,
        may_invent: bool,
        is_meant: Callable[[ReportItem], bool] = lambda _: True,
    ) -> _EditedSchema | None:
        """Return the schema after the first edit for a decisive finding; only `may_invent` allows invented values."""
        findings = current.checker.findings_of(current.report)
        for item, finding in zip(current.report.items, findings, strict=True):
            if item.severity not in DECISIVE[current.report.profile] or finding.kind == "SCHEMA_TYPE_CHANGED":
                continue
            if not is_meant(item):
                continue
            edit = self.repair(current, item, finding)
            if edit is None or edit.text in texts or (edit.is_invented and not may_invent):
                continue
            following = self.edited(current.edits, edit)
            if following is not None:
                return following
        return None

    def declared(self, rename: SuspectedRename, item: ReportItem) -> _EditedSchema | None:
        """Return the schema with the rename declared, and with the edits of the new field that a finding needs."""
        renamed = self.edited((), rename.edit) if rename.edit else None
        if renamed is None or not any(_is_same(item, other) for other in renamed.report.items):
            return renamed
        return self._with_edits_of_field(renamed, rename, {renamed.schema.text})

    def _with_edits_of_field(
        self, renamed: _EditedSchema, rename: SuspectedRename, texts: set[str]
    ) -> _EditedSchema | None:
        """Return the schema after the further edits that the new field needs; None if those remove the field."""
        current, texts = renamed, set(texts)
        for _ in range(MAX_EDITS_OF_RENAME):
            following = self.next_edit(
                current, texts, may_invent=False, is_meant=lambda item: _is_about(item, rename.after)
            )
            if following is None:
                break
            current = following
            texts.add(current.schema.text)
        differences = self.format.diff(renamed.schema, current.schema) if current is not renamed else ()
        is_removed = any(item.rule in _REMOVALS and item.path == rename.path for item in differences)
        return None if is_removed else current

    def repair(self, current: _EditedSchema, item: ReportItem, finding: Incompatibility) -> Edit | None:
        """Return the format's edit of the current schema that removes a finding."""
        reader, writer = current.checker.sides(item.against_version, item.direction)
        is_reader = item.direction == "BACKWARD"
        return self.format.repair(current.schema, writer if is_reader else reader, finding, is_reader=is_reader)

    def edited(self, before: tuple[Edit, ...], edit: Edit) -> _EditedSchema | None:
        """Return the schema after one more edit, checked; None if its text doesn't parse (say, a name clash)."""
        try:
            schema = self.parse(edit.text)
        except InvalidSchema:
            return None
        checker = Checker(self.format, schema, self.history, self.first.profile)
        return _EditedSchema((*before, edit), schema, checker, checker.report(level_named(self.first.level)))


def _last_name(item: ReportItem) -> str:
    return item.named_path.rpartition(".")[2]


def _is_about(item: ReportItem, name: str) -> bool:
    """Return whether a finding concerns a field of that name, or its container because of that field."""
    is_named = _last_name(item) == name or f'"{name}"' in item.message or f"'{name}'" in item.message
    return is_named or any(_is_about(cause, name) for cause in item.causes)


def _unified(old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), "proposed", "patched", lineterm="")
    return "\n".join(lines)

"""Two versions side by side: the changes, then the text; as values for a page and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from dashboard.compare.proof import DisagreementNote, Proof, RenameView
from dashboard.components.badges import ChangeKind, Verdict
from dashboard.components.diff import TextDiff
from dashboard.components.translation import counted, listing
from dashboard.components.widgets import Choice, Environment, Frame, Link, Problem
from dashboard.subjects.descriptions import TagChip
from registry.drift.replay.evidence import EvidenceLine
from registry.formats.rendering import code, fenced, plain


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One side of a comparison; `subject` is its name if the sides have different subjects, else "".

    An unregistered text has version 0 and a `label` that describes it.
    """

    environment: Environment
    version: int
    url: str
    subject: str = ""
    format: str = ""
    schema_id: int | None = None
    registered_at: datetime | None = None
    registered_by: str = ""
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCard:
    """One difference.

    `sentence` describes it; `before` and `after` are the old and new value as text, None if absent. `new_reads_old` and
    `old_reads_new` are the verdicts of both directions, `verdict` the worse one. `why` and `remedy` are the rule's
    sentences, or "". `example` is a made-up value that shows the problem, `evidence` comes from real data; most changes
    have neither. `proofs` are data that show it; `disagreement` says where rules and data disagree. In a request,
    `comment_url` opens a discussion of the path, and `threads` links to existing ones. `business` is the sentence in
    business words, "" if not requested; `meaning` is the field's doc.
    """

    anchor: str
    rule: str
    kind: ChangeKind
    path: str
    sentence: str
    verdict: Verdict
    new_reads_old: Verdict
    old_reads_new: Verdict
    before: str | None = None
    after: str | None = None
    why: str = ""
    remedy: str = ""
    example: str = ""
    evidence: tuple[EvidenceLine, ...] = ()
    disagreement: str = ""
    proofs: tuple[Proof, ...] = ()
    comment_url: str = ""
    threads: tuple[Link, ...] = ()
    business: str = ""
    meaning: str = ""
    tags: tuple[TagChip, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeGroup:
    """The changes of a record (or enum), worst first; `name` is its full name."""

    name: str
    cards: tuple[ChangeCard, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionSummary:
    """One direction over all changes: "New reader, old data", who it affects, its verdict, its failing changes."""

    label: str
    who: str
    verdict: Verdict
    failing: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraChange:
    """A change outside the schema text: `part` is its kind (metadata, rules, a reference), `name` which one.

    `before` and `after` are None if absent.
    """

    part: str
    name: str
    kind: ChangeKind
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, slots=True)
class UnchangedField:
    """A field that is the same on both sides."""

    path: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionComparison:
    """The changes between two versions, for the compare page and a promotion request.

    `sentence` is the summary, `headline` the verdict as a deployment order ("Deploy consumers first", "Any order"),
    `verdict` the overall one. `same_meaning` says that only formatting or docs differ. `problem` says that a side is
    invalid or the formats differ; the text is still shown. `disagreements` say where rules and data disagree over the whole
    pair, `renames` are suspected ones, `unchanged` the fields that are the same. `formatting_differs` says that the
    submitted texts differ, `formatting_hidden` the number of further lines that differ in them, `unproved` why there
    are no proofs, `hidden_changes` and `hidden_renames` the number of omitted ones. `extras` are changes of metadata,
    rules, references, and of the settings that apply to each side.
    """

    old: ComparedSide
    new: ComparedSide
    verdict: Verdict
    headline: str
    sentence: str
    directions: tuple[DirectionSummary, ...] = ()
    groups: tuple[ChangeGroup, ...] = ()
    breaking: int = 0
    care: int = 0
    safe: int = 0
    text: TextDiff | None = None
    same_meaning: bool = False
    problem: Problem | None = None
    disagreements: tuple[DisagreementNote, ...] = ()
    renames: tuple[RenameView, ...] = ()
    unchanged: tuple[UnchangedField, ...] = ()
    formatting_differs: bool = False
    formatting_hidden: int = 0
    unproved: str = ""
    hidden_changes: int = 0
    hidden_renames: int = 0
    extras: tuple[ExtraChange, ...] = ()

    @property
    def total(self) -> int:
        """The number of changes."""
        return self.breaking + self.care + self.safe

    @property
    def tally(self) -> str:
        """The number of changes per verdict, worst first, without zeros."""
        return listing(
            label
            for count, label in (
                (self.breaking, counted(self.breaking, "%(n)s breaking", "%(n)s breaking")),
                (self.care, counted(self.care, "%(n)s with care", "%(n)s with care")),
                (self.safe, counted(self.safe, "%(n)s safe", "%(n)s safe")),
            )
            if count
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceGroup:
    """The choices of an environment in a select."""

    label: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSwitch:
    """The two ways to compare texts: formatted, or as submitted; the URLs choose one."""

    as_submitted: bool
    laid_out_url: str
    submitted_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTools:
    """Tools for the two texts: wrapping lines, and copying each text."""

    is_wrapped: bool
    wrapped_url: str
    unwrapped_url: str
    old_url: str
    new_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparePage:
    """The page `…/compare?from=3&to=prod:4&view=split`; `view` is "unified" or "split".

    URLs choose the other view and swap sides. The choices are versions by registry, the reader's drafts and shapes seen
    in data. `drawn` are the display options in the URL. `other_subject` is the old side's subject if different,
    `other_places` the registries where another subject can be chosen. `unchanged_shown` says whether unchanged fields
    are listed; `unchanged_url` toggles that; `all_url` shows every card; `words_url` toggles business words. If a side
    is missing, `problem` says so, and `other_text` is the text of the `other_side`.
    """

    frame: Frame
    registry: str
    subject: str
    subject_url: str
    compare_url: str
    from_groups: tuple[ChoiceGroup, ...]
    to_groups: tuple[ChoiceGroup, ...]
    swap_url: str
    view: str = "unified"
    unified_url: str = ""
    split_url: str = ""
    text_switch: TextSwitch | None = None
    text_tools: TextTools | None = None
    drawn: tuple[tuple[str, str], ...] = ()
    other_places: tuple[Choice, ...] = ()
    other_subject: str = ""
    other_error: str = ""
    same_subject_url: str = ""
    markdown_url: str = ""
    simulate_url: str = ""
    unchanged_shown: bool = False
    unchanged_url: str = ""
    all_url: str = ""
    words_url: str = ""
    in_business_words: bool = False
    comparison: VersionComparison | None = None
    problem: Problem | None = None
    other_side: ComparedSide | None = None
    other_text: str = ""


_SHOWN = 300


def comparison_markdown(subject: str, comparison: VersionComparison) -> str:
    """Return the whole comparison as Markdown: verdict, both directions, every change with its proof, the text."""
    parts = [
        f"# {plain(subject)}: {_side(comparison.old)} → {_side(comparison.new)}",
        f"**{plain(comparison.headline)}.** {plain(comparison.sentence)}",
    ]
    if comparison.directions:
        rows = [f"| {way.label} | {way.verdict.direction_word} |" for way in comparison.directions]
        parts.append("\n".join(["| direction | verdict |", "|---|---|", *rows]))
    if comparison.problem:
        parts.append(plain(comparison.problem.what))
    parts += [f"> {plain(note.title)}. {plain(note.sentence)}" for note in comparison.disagreements]
    for group in comparison.groups:
        parts.append(f"## {code(group.name)}")
        parts += ["\n".join(_card(card)) for card in group.cards]
    if comparison.renames:
        parts += ["## Renamed?", "\n".join(_rename(item) for item in comparison.renames)]
    if comparison.extras:
        rows = [
            f"- {plain(item.part)} {code(item.name)}: {_value(item.before)} → {_value(item.after)}"
            for item in comparison.extras
        ]
        parts += ["## Outside the schema", "\n".join(rows)]
    if comparison.same_meaning and comparison.text and not comparison.text.identical:
        parts.append("Same meaning: only formatting, attribute order or documentation differs.")
    if comparison.text and not comparison.text.identical:
        parts += ["## Text", fenced("\n".join(_lines(comparison.text)), "diff")]
    return "\n\n".join(parts) + "\n"


def _side(side: ComparedSide) -> str:
    subject = f" of {plain(side.subject)}" if side.subject else ""
    called = plain(side.label) if side.label else f"version {side.version}"
    return f"{plain(side.environment.name)} {called}{subject}"


def _card(card: ChangeCard) -> Iterator[str]:
    yield f"- **{card.verdict.change_word}: {card.kind.look.word.lower()} {code(card.path)}** ({card.rule})  "
    yield f"  {plain(card.sentence)}  "
    yield (
        f"  New reader / old data: {card.new_reads_old.direction_word}. "
        f"Old reader / new data: {card.old_reads_new.direction_word}.  "
    )
    if card.before is not None or card.after is not None:
        yield f"  {_value(card.before)} → {_value(card.after)}  "
    details = [
        ("Rules and data disagree", card.disagreement),
        ("Why", card.why),
        ("Repair", card.remedy),
        ("For example", card.example),
    ]
    details += [("In the data", note.sentence) for note in card.evidence]
    yield from (f"  {label}: {plain(text)}  " for label, text in details if text)
    yield from (f"  Proof ({proof.direction}): {_proof(proof)}  " for proof in card.proofs)


def _value(value: str | None) -> str:
    return "missing" if value is None else code(value[:_SHOWN])


def _proof(proof: Proof) -> str:
    if not proof.is_found:
        return f"none found: {plain(proof.reason)}"
    encoded = proof.encoded.hexadecimal[:_SHOWN] if proof.encoded else ""
    outcome = plain(proof.error) if proof.error else f"is read as {code(proof.read or '')}"
    return f"{code(proof.datum[:_SHOWN])}, bytes {code(encoded) if encoded else 'none'}: {outcome}"


def _rename(item: RenameView) -> str:
    edit = f" To accept it: {plain(item.edit.title)}." if item.edit else ""
    effect = f" {plain(item.info.effect)}" if item.info.effect else ""
    cure = f" {plain(item.info.cure)}" if item.info.cure else ""
    return f"- {plain(item.sentence)} {item.percent} %: {plain(', '.join(item.info.reasons))}.{effect}{cure}{edit}"


def _lines(text: TextDiff) -> Iterator[str]:
    for row in text.unified:
        if row.kind == "skip":
            yield f"@@ {row.skipped} unchanged lines @@"
            continue
        line, sign = (row.old, "-") if row.kind == "removed" else (row.new, "+" if row.kind == "added" else " ")
        yield sign + "".join(piece.text for piece in line.segments) if line else sign

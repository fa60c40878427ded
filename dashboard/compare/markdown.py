"""A comparison as GitHub-flavoured Markdown, for a merge request or a ticket."""

from __future__ import annotations

from collections.abc import Iterator

from dashboard.compare.comparison import ChangeCard, ComparedSide, VersionComparison
from dashboard.compare.proof import Proof, RenameView
from dashboard.components.diff import TextDiff
from registry.formats.rendering import code, fenced, plain

_SHOWN = 300


def comparison_markdown(subject: str, comparison: VersionComparison) -> str:
    """The whole comparison: verdict, both directions, every change with its proof, the text."""
    parts = [
        f"# {plain(subject)}: {_side(comparison.old)} → {_side(comparison.new)}",
        f"**{plain(comparison.headline)}.** {plain(comparison.sentence)}",
    ]
    if comparison.directions:
        rows = [f"| {way.label} | {way.verdict.direction_word} |" for way in comparison.directions]
        parts.append("\n".join(["| direction | verdict |", "|---|---|", *rows]))
    if comparison.problem:
        parts.append(plain(comparison.problem.what))
    parts += [f"> {plain(note.title)}. {plain(note.sentence)}" for note in comparison.partings]
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
        ("Rules and data disagree", card.parting),
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
    effect = f" {plain(item.effect)}" if item.effect else ""
    cure = f" {plain(item.cure)}" if item.cure else ""
    return f"- {plain(item.sentence)} {item.percent} %: {plain(', '.join(item.reasons))}.{effect}{cure}{edit}"


def _lines(text: TextDiff) -> Iterator[str]:
    for row in text.unified:
        if row.kind == "skip":
            yield f"@@ {row.skipped} unchanged lines @@"
            continue
        line, sign = (row.old, "-") if row.kind == "removed" else (row.new, "+" if row.kind == "added" else " ")
        yield sign + "".join(piece.text for piece in line.segments) if line else sign

"""Proof of one finding of the judgement, from what the data do; or why there is none."""

from __future__ import annotations

from typing import Final

from registry.formats.base import Incompatibility, Truth, Witness
from registry.formats.protobuf.rules import RULES

# Told of a oneof as a whole: the data show it in the same oneof of the reader.
_ONEOFS: Final = frozenset({"MULTIPLE_FIELDS_MOVED_TO_ONEOF", "FIELD_MOVED_TO_EXISTING_ONEOF"})


def find_witness(truth: Truth, found: Incompatibility | None) -> Witness:
    """The witness of a finding, or (None) of any break; one that isn't found says why."""
    if found is None:
        first = next((item.witness for item in truth.findings if item.witness is not None), None)
        return first or Witness(False, reason=f"the reader gets all data unchanged: {truth.how}")
    proofs = [item for item in truth.findings if item.witness is not None and _is_same(item, found)]
    proofs.sort(key=lambda item: item.rule != found.rule)
    if proofs and proofs[0].witness is not None:
        return proofs[0].witness
    if truth.answer == "unknown":
        return Witness(False, reason=truth.how)
    rule = RULES.get(found.rule)
    reason = rule.no_proof if rule is not None and rule.no_proof else "the data don't show it: no value changes"
    return Witness(False, reason=f"{reason}; {truth.how}")


def _is_same(told: Incompatibility, found: Incompatibility) -> bool:
    """Whether what the data show is what the finding says: in the same place, or inside of it."""
    same_writer = (told.writer_pointer, told.writer_source) == (found.writer_pointer, found.writer_source)
    same_reader = (told.reader_pointer, told.reader_source) == (found.reader_pointer, found.reader_source)
    if found.rule == "REFERENCED_TYPE_CHANGED":
        steps = [step.rstrip("[]{}") for step in told.path.split(".")[:-1]]
        return told.writer_source is not None and found.path.rpartition(".")[2] in steps
    if found.rule in _ONEOFS:
        return told.rule in _ONEOFS and same_reader
    if found.rule == "MESSAGE_REMOVED":
        return told.rule == found.rule and same_writer
    return same_writer and (same_reader or told.rule == "FIELD_RENUMBERED")

"""What a row of a format's tables of rules is: one shape for all formats, so that one page can print them."""

from __future__ import annotations

from dataclasses import dataclass

from registry.formats.base import DifferenceKind, Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """A problem of reading: what is said, why it matters, and the cure in the side that can still be edited.

    `kind` is the reference implementation's name of the case, empty where it has none. `sentence` and the cures are
    templates over the values of a finding. `no_proof` says why data may survive what the established check refuses;
    `is_lenient` that JSON Schema's LENIENT policy accepts it.
    """

    id: str
    kind: str
    severity: Severity
    sentence: str
    why: str
    in_reader: str
    in_writer: str
    no_proof: str = ""
    is_lenient: bool = False


@dataclass(frozen=True, slots=True)
class DifferenceRule:
    """A change that is told to people; the sentence is a template over `name`, `before` and `after`."""

    id: str
    kind: DifferenceKind
    sentence: str

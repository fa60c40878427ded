"""Whether a reader accepts every value of a writer: a proof, otherwise a witness, otherwise "unknown" with the reason.

1. A proof keyword by keyword (`proof`), which is cheap and can handle recursion.
2. A search for a witness among generated instances (`instances`), each validated under both schemas.
3. Containment by jsonschema_rs, if its estimated cost is within the limit: "yes" is a proof; otherwise instances of the
   remainder are generated and validated.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import Any, Final

import jsonschema_rs
from jsonschema_rs import canonical as canonical_module

from registry.formats.base import Incompatibility, Truth, Witness
from registry.formats.json_schema.data import distinct, finding_of, validation_failures, witness_of
from registry.formats.json_schema.drafts import ASSERTIONS, NEWEST_DRAFT
from registry.formats.json_schema.instances import Instances
from registry.formats.json_schema.model import Bundle, Model
from registry.formats.json_schema.proof import Proof
from registry.formats.json_schema.validators import (
    bundle_with_formats,
    canonicalized,
    compiled,
    keeps_formats,
    modern_bundle,
    plain,
    validator_of,
)
from registry.formats.json_schema.value_facts import DEFAULT_COST_LIMIT, MAX_UNFOLDED, Schema, cost_of, unfolded

MAX_CANDIDATES: Final = 3_000
MAX_FINDINGS: Final = 40
_CANDIDATES_AFTER: Final = 400
#: rejected members of unions that cost as much as a candidate: the validator lists all of them for each datum
_MEMBERS_OF_A_CANDIDATE: Final = 50
_UNIONS: Final = frozenset({"anyOf", "oneOf"})
_MAX_BUNDLE_VALIDATORS: Final = 4_000


def cost(model: Model) -> int:
    """Return the estimated cost of comparing a schema; see `cost_of`."""
    if "cost" not in model.cache:
        model.cache["cost"] = cost_of(modern_bundle(model).value)
    estimate: int = model.cache["cost"]
    return estimate


def truth_of(reader: Model, writer: Model, cost_limit: int = DEFAULT_COST_LIMIT) -> Truth:
    """Return the truth of a pair; every "no" has findings with witnesses that were validated under both schemas."""
    pair = _pair(reader, writer)
    if pair.hindrance:
        return Truth("unknown", how=pair.hindrance)
    if pair.is_proved():
        return Truth(
            "yes", how="proved keyword by keyword: the reader schema allows everything that the writer schema allows"
        )
    findings = distinct(pair.found())
    if findings:
        return _no(findings)
    return pair.contained(cost_limit)


def find_witness(reader: Model, writer: Model, target: Incompatibility | None = None) -> Witness:
    """Return a datum that is valid under the writer and not under the reader; if there is none, the reason.

    With a finding, only a datum that the reader rejects at the finding's place counts.
    """
    pair = _pair(reader, writer)
    if pair.hindrance:
        return Witness(False, reason=pair.hindrance)
    if pair.is_proved():
        return Witness(False, reason="all data of the writer is proved to be valid under the reader schema")
    others = 0
    for finding in pair.found():
        if finding.witness is not None and (target is None or _is_meant(finding, target)):
            return finding.witness
        others += 1
    if others:
        reason = f"no breaking value was found at {target.path if target else ''}; {others} break elsewhere"
        return Witness(False, reason=reason)
    limited = pair.contained(DEFAULT_COST_LIMIT)
    if limited.findings and limited.findings[0].witness is not None:
        return limited.findings[0].witness
    return Witness(False, reason=limited.how)


def _is_meant(finding: Incompatibility, target: Incompatibility) -> bool:
    """Return whether a datum shows a finding: the same place in the data, and the same keyword if it names one."""
    ours, theirs = _plain_path(finding.path), _plain_path(target.path)
    holder, _, name = theirs.rpartition(".")
    if finding.detail in _OF_PARENT:
        return ours == holder and (f'"{name}"' in finding.message or f"'{name}'" in finding.message)
    if ours != theirs and not ours.startswith((f"{theirs}.", f"{theirs}[")):
        return False
    keyword = "type" if target.kind == "TYPE_NARROWED" else target.location.rpartition("/")[2]
    return finding.detail == keyword or keyword not in ASSERTIONS[NEWEST_DRAFT.number]


def _plain_path(path: str) -> str:
    return _INDEX.sub("[]", path)


_INDEX: Final = re.compile(r"\[\d+\]")
_OF_PARENT: Final = frozenset({"required", "additionalProperties", "unevaluatedProperties"})


_NO_FORMAT: Final = (
    "one of its strings doesn't match its format, which is only an annotation unless a validator checks it"
)


def _no(findings: tuple[Incompatibility, ...]) -> Truth:
    return Truth(
        "no", findings, "counterexamples were found: valid under the writer schema, invalid under the reader schema"
    )


@dataclass(eq=False)
class _Pair:
    """A reader and a writer with their validators."""

    reader: Model
    writer: Model
    hindrance: str = ""
    _takes: jsonschema_rs.Validator = field(init=False)
    _gives: jsonschema_rs.Validator = field(init=False)
    _reader_modern: Bundle = field(init=False)
    _writer_modern: Bundle = field(init=False)
    _parts: dict[tuple[int, bool, bool], tuple[Schema, jsonschema_rs.Validator | None]] = field(default_factory=dict)
    _is_proved: bool | None = None
    _found: list[Incompatibility] = field(default_factory=list)
    _rest: Iterator[Incompatibility] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._reader_modern, self._writer_modern = modern_bundle(self.reader), modern_bundle(self.writer)
        for model, side in ((self.reader, "reader"), (self.writer, "writer")):
            if model.bundle.inexact:
                self.hindrance = f"the {side} schema can't be combined into one document: {model.bundle.inexact}"
                return
            if unfolded(modern_bundle(model).value) > MAX_UNFOLDED:
                self.hindrance = (
                    f"validating one value under the {side} schema may take more than {MAX_UNFOLDED:,} steps"
                )
                return
        try:
            self._takes, self._gives = validator_of(self.reader), validator_of(self.writer)
        except ValueError as error:
            self.hindrance = f"the validator rejects one of the schemas: {plain(error)}"

    def is_proved(self) -> bool:
        """Return whether it is proved that the reader accepts everything."""
        if self._is_proved is None:
            if self._reader_modern.inexact or self._writer_modern.inexact:
                is_exact = self.reader.draft.number == self.writer.draft.number
            else:
                is_exact = True
            proof = Proof(self._reader_modern.value, self._writer_modern.value, self._part_takes, self._part_gives)
            self._is_proved = is_exact and proof.holds()
        return self._is_proved

    def searches(self) -> Iterator[Iterator[Incompatibility]]:
        """Yield searches for breaking data: if it has formats, first among data that matches them, then in all data."""
        reported: set[tuple[str, str]] = set()
        if self._has_formats:
            yield self.findings(self.candidates(with_formats=True), reported)
        yield self.findings(self.candidates(), reported)

    def found(self) -> Iterator[Incompatibility]:
        """Yield the results of all searches, each once; cached, because a report needs many witnesses of a pair."""
        position = 0
        while True:
            with self._lock:
                if self._rest is None:
                    self._rest = chain.from_iterable(self.searches())
                if position == len(self._found):
                    following = next(self._rest, None)
                    if following is None:
                        return
                    self._found.append(following)
            yield self._found[position]
            position += 1

    def candidates(self, schema: Schema | None = None, *, with_formats: bool = False) -> Iterator[Any]:
        """Return instances to try, of the writer's or a given schema; `with_formats` only those that match formats."""
        start = self._writer_modern.value if schema is None else schema
        if with_formats:
            start = bundle_with_formats(self.writer).value
        gives = self._part_gives_with_formats if with_formats else self._part_gives
        instances = Instances(start, self._reader_modern.value, gives, self._part_refuses)
        values = islice(instances.candidates(), MAX_CANDIDATES)
        return (value for value in values if keeps_formats(self.writer, value)) if with_formats else values

    @cached_property
    def _has_formats(self) -> bool:
        return "'format'" in str(bundle_with_formats(self.writer).value)

    def findings(
        self, candidates: Iterable[Any], reported: set[tuple[str, str]] | None = None
    ) -> Iterator[Incompatibility]:
        """Yield one finding for each place of the reader that rejects a writer's datum, unless reported before."""
        reported = set() if reported is None else reported
        left = MAX_CANDIDATES
        for value in candidates:
            left -= 1
            if left < 0:
                return
            try:
                if self._takes.is_valid(value) or not self._gives.is_valid(value):
                    continue
                failures = validation_failures(self._takes, value)
            except (ValueError, RecursionError):
                continue
            left -= sum(len(failure.expected) for failure in failures if failure.keyword in _UNIONS) // (
                _MEMBERS_OF_A_CANDIDATE
            )
            for failure in failures:
                if failure.key not in reported:
                    reported.add(failure.key)
                    left = min(left, _CANDIDATES_AFTER)
                    reason = _NO_FORMAT if self._has_formats and not keeps_formats(self.writer, value) else ""
                    yield finding_of(failure, self.reader, self.writer, witness_of(value, failure.message, reason))
            if len(reported) >= MAX_FINDINGS:
                return

    def contained(self, cost_limit: int) -> Truth:
        """Return the containment result of jsonschema_rs, within a cost limit."""
        why = self._why_not_comparable(cost_limit)
        if why:
            return Truth("unknown", how=f"neither a proof nor a counterexample was found; {why}")
        reader, writer = self._comparable()
        try:
            ours, theirs = canonicalized(writer), canonicalized(reader)
            containment = theirs.covers(ours)
            if containment == canonical_module.Containment.YES:
                return Truth("yes", how="proved by containment: the reader schema includes the whole writer schema")
            rest = ours.subtract(theirs).to_json_schema()
        except ValueError as error:
            return Truth(
                "unknown",
                how=f"neither a proof nor a counterexample was found, and containment is undecided: {plain(error)}",
            )
        findings = distinct(self.findings(self.candidates(rest))) if writer.draft is NEWEST_DRAFT else ()
        if findings:
            return _no(findings)
        verdict = "says that some data breaks" if containment == canonical_module.Containment.NO else "is undecided"
        return Truth(
            "unknown", how=f"neither a proof nor a counterexample was found, and containment {verdict}; {self._guess()}"
        )

    def _comparable(self) -> tuple[Bundle, Bundle]:
        """Return both in the newest draft, which the generator reads, or in their own if conversion isn't exact."""
        if self._reader_modern.inexact or self._writer_modern.inexact:
            return self.reader.bundle, self.writer.bundle
        return self._reader_modern, self._writer_modern

    def _why_not_comparable(self, cost_limit: int) -> str:
        total = cost(self.reader) + cost(self.writer)
        if total > cost_limit:
            return f"the estimated cost of comparing the schemas ({total:,}) is above the limit of {cost_limit:,}"
        if self.reader.bundle.draft is not self.writer.bundle.draft:
            inexact = self._reader_modern.inexact or self._writer_modern.inexact
            if inexact:
                return f"the schemas have different drafts, and {inexact}"
        return ""

    def _guess(self) -> str:
        """Return what seems to make the question hard."""
        text = str(self._reader_modern.value)
        reasons = [
            feature
            for mark, feature in (("'$ref'", "recursion or references"), ("'pattern", "patterns"), ("'not'", "negations"),
                                ("'if'", "conditions"), ("unevaluated", "unevaluated keywords"), ("'oneOf'", "oneOf"))
            if mark in text
        ]  # fmt: skip
        return f"the reader schema has {', '.join(reasons)}" if reasons else "there are too many cases"

    def _part_takes(self, value: Any, schema: Schema) -> bool:
        return self._check(value, schema, is_reader=True) is True

    def _part_gives(self, value: Any, schema: Schema) -> bool:
        return self._check(value, schema, is_reader=False) is not False

    def _part_gives_with_formats(self, value: Any, schema: Schema) -> bool:
        return self._check(value, schema, is_reader=False, with_formats=True) is not False

    def _part_refuses(self, value: Any, schema: Schema) -> bool:
        return self._check(value, schema, is_reader=True) is False

    def _check(self, value: Any, schema: Schema, *, is_reader: bool, with_formats: bool = False) -> bool | None:
        """Return whether a part of a bundle accepts a value; None if unknown."""
        if isinstance(schema, bool):
            return schema
        bundle = self._reader_modern if is_reader else self._writer_modern
        if with_formats:
            bundle = bundle_with_formats(self.writer)
        if (self.reader if is_reader else self.writer).draft.number == 4 and _has_decimal(value):
            return None
        key = (id(schema), is_reader, with_formats)
        if key not in self._parts:
            self._parts[key] = (schema, self._compiled(bundle, schema, with_formats=with_formats))
        validator = self._parts[key][1]
        try:
            return None if validator is None else validator.is_valid(value)
        except ValueError:
            return None

    def _compiled(self, bundle: Bundle, schema: Schema, *, with_formats: bool) -> jsonschema_rs.Validator | None:
        if len(self._parts) > _MAX_BUNDLE_VALIDATORS:
            return None
        definitions = bundle.value.get("$defs", {}) if isinstance(bundle.value, dict) else {}
        part = {**schema, "$defs": definitions} if definitions and _refers(schema) else schema
        try:
            return compiled(Bundle(part, NEWEST_DRAFT, {}), with_formats=with_formats)
        except ValueError:
            return None


def _pair(reader: Model, writer: Model) -> _Pair:
    """Return the pair; each reader caches its last one."""
    pair: _Pair | None = reader.cache.get("pair")
    if pair is None or pair.writer is not writer:
        pair = reader.cache["pair"] = _Pair(reader, writer)
    return pair


def _refers(schema: Schema) -> bool:
    todo = [schema]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            if "$ref" in item:
                return True
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
    return False


def _has_decimal(value: Any) -> bool:
    return "Decimal" in repr(value)

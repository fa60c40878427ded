"""Proof by data: the truth of a pair, and the witness of one finding, from the examination of covering data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from registry.formats.avro.datum import codec, datum_to_json, plain_error, skips_resolution
from registry.formats.avro.empirical_check import FASTAVRO, JAVA, Examination, Key, examination, key_of
from registry.formats.avro.model import AvroSchema
from registry.formats.avro.sample_data import Coverage, TooMuchData
from registry.formats.base import Incompatibility, Truth, Witness

_NAMES: Final[Mapping[str, str]] = {FASTAVRO: "fastavro", JAVA: "Java's decoder"}
# Avro's decoders keep these values, but consumers may reject them; reported as warnings.
_AFTER_DECODING: Final = frozenset({"STRING_READ_AS_UUID", "BYTES_READ_AS_DECIMAL", "DECIMAL_PRECISION_NARROWED"})
# Why a finding of the rule may have no datum that breaks or changes.
_NO_WITNESS: Final[Mapping[str, str]] = {
    "LOGICAL_TYPE_CHANGED": "the value is unchanged; only its logical type changes",
    "STRING_READ_AS_UUID": "Avro decodes any string; one that isn't a UUID is rejected only after decoding",
    "DECIMAL_PRECISION_NARROWED": "Avro decodes a decimal of any precision; it is rejected only after decoding",
    "FIELD_ALIAS_ACROSS_NAMESPACES": "fastavro applies a field's alias to a record in another namespace, Java's decoder doesn't",
    "ALIAS_AMBIGUOUS": "the reference implementation fails on the two schemas before it reads any data; fastavro decodes all "
    "covering data",
    "BYTES_READ_AS_DECIMAL": "Avro decodes any bytes; some are rejected as a decimal only after decoding",
    "UNION_BRANCH_AMBIGUOUS": "both decoders use the intended branch for all covering data",
    "NAME_CHANGED": "fastavro decodes all covering data despite the name",
}


def truth_of(reader: AvroSchema, writer: AvroSchema) -> Truth:
    """Check the writer's covering data: every break and every loss, each with its witness."""
    check = examination(reader, writer)
    findings = tuple(_of_decoders(item, check) for item in _decisive(check))
    warnings = tuple(item for item in check.judgement.hazards if item.rule in _AFTER_DECODING)
    if findings:
        # A decoder that keeps the checked data may still change the unchecked data.
        differs = any(check.is_kept.values()) and not check.hindrance
        return Truth("differs" if differs else "no", findings, _how(check), warnings)
    return Truth("unknown" if check.hindrance else "yes", (), _how(check), warnings)


def _decisive(check: Examination) -> Iterator[Incompatibility]:
    """Yield what breaks or changes data in any decoder, each once."""
    reported: set[Key] = set()
    for key, item in (*check.found.items(), *check.disagreements.items(), *check.java.items()):
        if key not in reported and item.witness is not None:
            reported.add(key)
            yield replace(item, severity="break" if item.witness.error else "value loss")


def _of_decoders(finding: Incompatibility, check: Examination) -> Incompatibility:
    """Return the finding, with a note if it concerns only one decoder."""
    decoders = check.decoders.get(key_of(finding), set())
    if len(decoders) != 1:
        return finding
    (alone,) = decoders
    if check.is_refused and (alone == JAVA or (finding.rule == "SCHEMA_REFUSED" and not check.is_kept[JAVA])):
        return replace(finding, decoders=(alone,))
    other = next(name for name in check.is_kept if name != alone)
    message = f"{finding.message} (only {_NAMES[alone]}: {_NAMES[other]} reads the same data unchanged)"
    return replace(finding, message=message, decoders=(alone,))


def _how(check: Examination) -> str:
    """Describe in a few sentences what was checked, what hindered it, and where Java's rules differ."""
    parts = [
        f"{check.count:,} covering records were encoded with the writer schema, decoded with the reader schema by "
        "fastavro, and checked against the rules of Java's decoder (Avro 1.12)."
    ]
    if check.hindrance:
        parts.append(f"Not everything was checked: {check.hindrance}.")
    unchanged = [name for name, is_kept in check.is_kept.items() if is_kept]
    if len(unchanged) == 1 and check.count:
        other = next(name for name in check.is_kept if name not in unchanged)
        alone = [item for item in _decisive(check) if other in check.decoders.get(key_of(item), ())]
        paths = ", ".join(sorted({item.path for item in alone})[:10])
        parts.append(
            f"Decoders differ at {paths}: {_NAMES[unchanged[0]]} reads all of it unchanged, {_NAMES[other]} doesn't."
        )
    unproved = _rules(
        item for item in check.judgement.breaks if key_of(item) not in (check.found.keys() | check.java.keys())
    )
    if unproved and not check.hindrance:
        reading = "both decoders read" if all(check.is_kept.values()) else "fastavro reads"
        parts.append(f"Java's rules also reject {unproved}, which {reading}.")
    return " ".join(parts)


def _rules(findings: Iterable[Incompatibility]) -> str:
    return ", ".join(sorted({item.rule for item in findings}))


def witness_of(reader: AvroSchema, writer: AvroSchema, finding: Incompatibility) -> Witness:
    """Return the datum that shows one finding, of the rules or of the data check; if not found, the reason."""
    check = examination(reader, writer)
    key = key_of(finding)
    proved = check.found.get(key) or check.inner.get(key) or check.disagreements.get(key) or check.java.get(key)
    if proved is None and finding.rule == "UNION_BRANCH_AMBIGUOUS":
        proved = check.disagreements.get(("UNION_BRANCH_ORDER", *key[1:]))
    if proved is not None and proved.witness is not None:
        return proved.witness
    if check.hindrance:
        return Witness(False, reason=check.hindrance)
    reason = _NO_WITNESS.get(finding.rule, f"fastavro decodes all covering data despite {finding.rule}")
    return Witness(False, reason=reason)


def any_witness(reader: AvroSchema, writer: AvroSchema) -> Witness:
    """Return a datum of the writer that the reader can't decode; if not found, the reason.

    The reason may be that the data can't be made, or that fastavro rejects one of the schemas.
    """
    try:
        write, read = codec(writer), codec(reader)
    except Exception as error:  # noqa: BLE001 - fastavro rejects schemas with errors of many types
        return Witness(False, reason=f"fastavro rejects one of the schemas: {plain_error(error)}")
    count, is_one = 0, skips_resolution(reader, writer)
    try:
        coverage = Coverage(writer.root)
        if coverage.is_empty:
            return Witness(False, reason="the writer schema has no finite value")
        for datum in coverage.data():
            count += 1
            encoded = write.encode(datum)
            try:
                write.decode(encoded, None if is_one else read)
            except Exception as error:  # noqa: BLE001 - any failure of the decoder is the proof
                return Witness(True, datum_to_json(datum), encoded.hex(), plain_error(error))
    except TooMuchData as limit:
        return Witness(False, reason=str(limit))
    except RecursionError:
        return Witness(False, reason="the covering data is nested too deeply")
    return Witness(False, reason=f"fastavro decodes all {count:,} covering records")

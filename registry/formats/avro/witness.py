"""Proof by data: the truth of a pair, and the witness of one finding, from the examination of its covering data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from registry.formats.avro.codec import codec, plain_error
from registry.formats.avro.covering import Coverage, TooMuchData
from registry.formats.avro.datum import datum_to_json
from registry.formats.avro.examination import Examination, examination, key_of
from registry.formats.avro.model import Schema
from registry.formats.base import Incompatibility, Truth, Witness

# Why a finding of the rule may have no datum that breaks or changes.
_NO_WITNESS: Final[Mapping[str, str]] = {
    "LOGICAL_TYPE_CHANGED": "the value stays what it is; only its logical type is another",
    "STRING_READ_AS_UUID": "Avro decodes any text; what refuses one that is no UUID comes after the decoder",
    "DECIMAL_PRECISION_NARROWED": "Avro decodes a decimal whatever its precision; what refuses it comes after the decoder",
    "FIELD_ALIAS_ACROSS_NAMESPACES": "fastavro applies a field's alias to a record of another namespace, Java's decoder "
    "doesn't",
    "ALIAS_AMBIGUOUS": "the reference implementation fails on the two schemas, before any datum; fastavro decodes all "
    "covering data",
    "UNION_BRANCH_AMBIGUOUS": "fastavro takes the branch that fits in all covering data",
    "NAME_CHANGED": "fastavro decodes all covering data in spite of the name",
}


def truth_of(reader: Schema, writer: Schema) -> Truth:
    """What the covering data of the writer say: every break and every loss, each with its witness."""
    seen = examination(reader, writer)
    findings = tuple(seen.found.values())
    if findings:
        return Truth("no", findings, _how(seen))
    return Truth("unknown" if seen.hindrance else "yes", (), _how(seen))


def _how(seen: Examination) -> str:
    """In a few sentences what was looked at, what hindered it, and where the rules of Java say something else."""
    parts = [f"{seen.count:,} covering data were encoded with the writer and decoded with the reader by fastavro."]
    if seen.hindrance:
        parts.append(f"Not all were looked at: {seen.hindrance}.")
    if seen.parted:
        places = ", ".join(sorted({item.path for item in seen.parted.values()})[:10])
        parts.append(
            f"Decoders part at {places}: the specification and fastavro take the first branch that matches, "
            "Java's decoder the one of the same type."
        )
    unproved = _rules(item for item in seen.judgement.breaks if key_of(item) not in seen.found)
    if unproved and not seen.hindrance:
        parts.append(f"Java's rules also refuse {unproved}, which fastavro reads.")
    return " ".join(parts)


def _rules(found: Iterable[Incompatibility]) -> str:
    return ", ".join(sorted({item.rule for item in found}))


def witness_of(reader: Schema, writer: Schema, found: Incompatibility) -> Witness:
    """The datum that shows one finding, of the established rules or of the data; why there is none otherwise."""
    seen = examination(reader, writer)
    key = key_of(found)
    proved = seen.found.get(key) or seen.inner.get(key) or seen.parted.get(key)
    if proved is None and found.rule == "UNION_BRANCH_AMBIGUOUS":
        proved = seen.parted.get(("UNION_BRANCH_ORDER", *key[1:]))
    if proved is not None and proved.witness is not None:
        return proved.witness
    if seen.hindrance:
        return Witness(False, reason=seen.hindrance)
    reason = _NO_WITNESS.get(found.rule, f"fastavro decodes all covering data in spite of {found.rule}")
    return Witness(False, reason=reason)


def any_witness(reader: Schema, writer: Schema) -> Witness:
    """A datum of the writer that the reader can't decode; one that isn't found says why.

    Where the data can't be made, or the codec doesn't take one of the schemas, that is the reason.
    """
    try:
        write, read = codec(writer), codec(reader)
    except Exception as error:  # noqa: BLE001 - fastavro refuses schemas with errors of many types
        return Witness(False, reason=f"fastavro doesn't take one of the schemas: {plain_error(error)}")
    count = 0
    try:
        coverage = Coverage(writer.root)
        if coverage.is_empty:
            return Witness(False, reason="no finite datum of the writer's schema exists")
        for datum in coverage.data():
            count += 1
            encoded = write.encode(datum)
            try:
                write.decode(encoded, read)
            except Exception as error:  # noqa: BLE001 - whatever stops the decoder is the proof
                return Witness(True, datum_to_json(datum), encoded.hex(), plain_error(error))
    except TooMuchData as limit:
        return Witness(False, reason=str(limit))
    except RecursionError:
        return Witness(False, reason="the covering data are nested too deep")
    return Witness(False, reason=f"fastavro decodes all {count:,} covering data")

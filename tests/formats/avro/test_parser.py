"""Reading Avro schemas: errors with their place, canonical and normalized texts, fingerprints, references, limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.errors import InvalidSchema
from registry.formats import FORMATS
from registry.formats.avro import AVRO
from registry.formats.avro.canonical import java_double
from registry.formats.base import ParsedSchema, ResolvedReference
from registry.formats.json_pointer import MAX_DEPTH, MAX_TEXT_LENGTH
from tests.waiting import costs_little

CASES = Path(__file__).parents[1] / "cases"
INVALID = yaml.safe_load((CASES / "avro_invalid.yaml").read_text())
CANONICAL = yaml.safe_load((CASES / "avro_canonical.yaml").read_text())

ADDRESS = """{
  "type": "record",
  "name": "Address",
  "namespace": "com.example.common",
  "fields": [
    {"name": "street", "type": "string"},
    {"name": "city", "type": "string"},
    {"name": "zipCode", "type": "string"},
    {"name": "country", "type": "string", "default": "USA"}
  ]
}"""
CUSTOMER = """{
  "type": "record",
  "name": "Customer",
  "namespace": "com.example.crm",
  "fields": [
    {"name": "customerId", "type": "long"},
    {"name": "customerName", "type": "string"},
    // This field's type refers to the Address schema
    {"name": "billingAddress", "type": "com.example.common.Address"}
  ]
}"""
SUPPLIER = CUSTOMER.replace("Customer", "Supplier").replace("customer", "supplier").replace("crm", "supply")


def address(subject: str = "address_schema_avro", version: int = 1, text: str = ADDRESS) -> ResolvedReference:
    return ResolvedReference("com.example.common.Address", subject, version, text)


@pytest.mark.parametrize("case", INVALID, ids=[case["name"] for case in INVALID])
def test_what_is_wrong_and_where(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidSchema) as caught:
        AVRO.parse(case["text"])
    assert case["says"] in caught.value.message
    if "at" in case:
        assert [caught.value.line, caught.value.column] == case["at"]


@pytest.mark.parametrize("case", CANONICAL, ids=[case["canonical"][:60] for case in CANONICAL])
def test_canonical_and_normalized_text(case: dict[str, Any]) -> None:
    parsed = AVRO.parse(case["text"])
    assert parsed.canonical == case["canonical"]
    assert parsed.text == case["text"]
    assert AVRO.normalize(parsed) == case.get("normalized", case["canonical"])
    again = AVRO.parse(parsed.canonical)
    assert again.canonical == parsed.canonical
    assert again == AVRO.parse(parsed.canonical + " ")


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "5.0E-324"),
        (-12345678.9, "-1.23456789E7"),
        (1e-5, "1.0E-5"),
    ],
)
def test_numbers_are_written_as_java_writes_them(number: float, text: str) -> None:
    assert java_double(number) == text.replace("5.0E-324", "5.0E-324")
    assert float(text) == number


def test_order_of_keys_and_white_space_make_no_other_schema() -> None:
    one = AVRO.parse('{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"int"}}]}')
    other = AVRO.parse('{ "fields": [ {"type":"int", "name":"a"} ], "namespace":"n", "name":"R", "type":"record" }')
    assert one == other
    assert one.fingerprint == other.fingerprint
    documented = AVRO.parse('{"type":"record","name":"n.R","doc":"x","fields":[{"name":"a","type":"int"}]}')
    assert documented != one
    assert documented.fingerprint != one.fingerprint


@pytest.mark.requirement("GOO-5")
@pytest.mark.parametrize("text", [CUSTOMER, SUPPLIER], ids=["Customer", "Supplier"])
def test_the_address_example_with_its_comment(text: str) -> None:
    parsed = AVRO.parse(text, [address()])
    assert [(r.name, r.subject, r.version) for r in parsed.references] == [
        ("com.example.common.Address", "address_schema_avro", 1)
    ]
    assert '"type":"com.example.common.Address"' in parsed.canonical
    assert "This field" not in parsed.canonical
    with pytest.raises(InvalidSchema, match=r'com\.example\.common\.Address" is unknown') as caught:
        AVRO.parse(text)
    assert (caught.value.line, caught.value.column) == (9, 40)


@pytest.mark.requirement("GOO-5")
def test_a_change_in_a_referenced_schema_is_seen_through_the_reference() -> None:
    narrower = ADDRESS.replace('"zipCode", "type": "string"', '"zipCode", "type": "int"')
    old, new = AVRO.parse(CUSTOMER, [address()]), AVRO.parse(CUSTOMER, [address(version=2, text=narrower)])
    assert old.canonical == new.canonical
    assert old.fingerprint != new.fingerprint
    found = AVRO.incompatibilities(new, old)
    assert [(item.rule, item.path) for item in found] == [("TYPE_CHANGED", "Customer.billingAddress.zipCode")]
    assert found[0].reader_source == "com.example.common.Address"
    assert found[0].reader_pointer == "/fields/2/type"
    assert [item.rule for item in AVRO.diff(old, new)] == ["TYPE_CHANGED"]
    witness = AVRO.witness(new, old)
    assert witness.found


def test_equal_content_has_an_equal_fingerprint_wherever_the_reference_is_kept() -> None:
    here, there = AVRO.parse(CUSTOMER, [address()]), AVRO.parse(CUSTOMER, [address("address", 7, ADDRESS + " ")])
    assert here.fingerprint == there.fingerprint
    assert here.identity != there.identity


def test_references_of_references_and_the_same_one_twice() -> None:
    city = ResolvedReference("n.City", "city", 1, '{"type":"record","name":"n.City","fields":[]}')
    home = '{"type":"record","name":"n.%s","fields":[{"name":"city","type":"City"}]}'
    house = ResolvedReference("n.House", "house", 1, home % "House", (city,))
    shop = ResolvedReference("n.Shop", "shop", 1, home % "Shop", (city,))
    parsed = AVRO.parse(
        '{"type":"record","name":"n.Town","fields":[{"name":"a","type":["House","Shop"]}]}', [house, shop]
    )
    assert not AVRO.witness(parsed, parsed).found
    assert parsed.canonical.endswith('"type":["House","Shop"]}]}')


def test_a_type_that_text_and_reference_define_must_be_equal() -> None:
    inline = '{"type":"record","name":"R","fields":[{"name":"a","type":%s}]}'
    assert AVRO.parse(inline % ADDRESS, [address()]).canonical
    with pytest.raises(InvalidSchema, match="differently, by the reference"):
        AVRO.parse(inline % ADDRESS.replace("USA", "FR"), [address()])


def test_an_error_in_a_reference_names_it() -> None:
    with pytest.raises(InvalidSchema, match=r'in the reference "com.example.common.Address" \(subject .*, version 1\)'):
        AVRO.parse(CUSTOMER, [address(text=ADDRESS.replace('"street", "type"', '"street", "typ"'))])


def test_many_paths_to_one_reference_cost_no_more_than_one() -> None:
    reference = ResolvedReference("n.T0", "t0", 1, '{"type":"record","name":"n.T0","fields":[]}')
    for number in range(1, 40):
        field = {"name": "a", "type": f"T{number - 1}"}
        text = json.dumps({"type": "record", "name": f"n.T{number}", "fields": [field]})
        reference = ResolvedReference(f"n.T{number}", f"t{number}", 1, text, (reference, reference))
    parsed = AVRO.parse('{"type":"array","items":"n.T39"}', [reference])
    assert len(parsed.model.documents) == 40
    assert parsed.fingerprint


def test_defaults_of_old_schemas_may_be_taken_as_they_are() -> None:
    text = '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}'
    with pytest.raises(InvalidSchema):
        AVRO.parse(text)
    assert AVRO.parse(text, is_new=False).canonical == text


@pytest.mark.parametrize(
    "text",
    [
        '"' + "x" * MAX_TEXT_LENGTH + '"',
        "[" * 100_000,
        "[" * 5_000 + "]" * 5_000,
        '{"type":"array","items":' * (MAX_DEPTH + 1) + '"int"' + "}" * (MAX_DEPTH + 1),
        '{"type":"int","x":' + "[" * 400 + "]" * 400 + "}",
        '{"type":"fixed","name":"F","size":' + "9" * 5_000 + "}",
        '{"type":"record","name":"R","fields":[{"name":"a","type":"R","default":{}}]}'.replace(
            '"R","default":{}', '"R"},{"name":"b","type":"R","default":{}'
        ),
    ],
    ids=["long", "open", "deep", "deep arrays", "deep property", "long number", "endless default"],
)
def test_hostile_texts_end_in_a_clear_error_soon(text: str) -> None:
    with costs_little():  # below one; the endless default has no end
        with pytest.raises(InvalidSchema):
            AVRO.parse(text)


def test_a_schema_as_deep_as_allowed_goes_through_everything() -> None:
    depth = MAX_DEPTH - 1
    parsed: list[ParsedSchema] = [
        AVRO.parse('{"type":"array","items":' * depth + f'"{kind}"' + "}" * depth) for kind in ("int", "long")
    ]
    assert AVRO.normalize(parsed[0]) == parsed[0].canonical
    assert len(AVRO.diff(*parsed)) == 1
    assert len(AVRO.incompatibilities(*parsed)) == 1
    assert AVRO.witness(*parsed).found
    assert AVRO.truth(*parsed).answer == "no"
    assert AVRO.truth(*parsed[::-1]).answer == "unknown"


def test_unknown_formats_are_not_there() -> None:
    assert "AVRO" in FORMATS
    assert "XML" not in FORMATS

"""Each rule of Oracle NoSQL Database's policy by its cases, in both variants."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.formats.avro import AVRO
from registry.formats.base import Incompatibility, ParsedSchema, ResolvedReference
from registry.formats.policies import POLICIES, PolicyReport
from registry.formats.policies.oracle_nosql.rules import EVOLVE_RULES
from tests.toolchains import JAVA, require_tools

FOLDER = Path(__file__).parent / "cases" / "oracle_nosql"
VARIANTS = {"document": POLICIES["oracle_nosql"], "product": POLICIES["oracle_nosql_lenient"]}


def load_cases() -> list[Any]:
    return [
        pytest.param(
            case,
            id=f"{path.stem}: {case['name']}",
            marks=[pytest.mark.requirement(case["requirement"])] if "requirement" in case else [],
        )
        for path in sorted(FOLDER.glob("*.yaml"))
        for case in yaml.safe_load(path.read_text())
    ]


CASES = load_cases()


def parse(value: Any) -> ParsedSchema:
    return AVRO.parse(json.dumps(value), is_new=False)


def report(case: dict[str, Any], variant: str) -> PolicyReport:
    history = [(number, parse(old)) for number, old in enumerate(case["versions"], 1)]
    return VARIANTS[variant].check(parse(case["new"]), history)


def told(found: Incompatibility) -> list[Any]:
    return [found.rule, found.severity, found.path, found.writer_pointer, found.reader_pointer]


@pytest.mark.parametrize("variant", list(VARIANTS))
@pytest.mark.parametrize("case", CASES)
def test_verdict_and_all_items(case: dict[str, Any], variant: str) -> None:
    given = report(case, variant)
    verdict, items = case[variant]
    found = [[item.version, *told(item.finding)] for item in given.items]
    assert found == items
    assert given.verdict == verdict
    assert [item.score for item in given.items if item.score is not None] == (
        [case["score"]] if "score" in case else []
    )
    assert given.versions == tuple(range(len(case["versions"]), 0, -1))


@pytest.mark.parametrize("case", CASES)
def test_every_sentence_has_its_values(case: dict[str, Any]) -> None:
    for variant in VARIANTS:
        given = report(case, variant)
        json.dumps(given.to_dict(), allow_nan=False)
        for item in given.items:
            for text in (item.finding.message, item.finding.why, item.finding.remedy_in_reader):
                assert text
                assert "{" not in text.replace("{}", "")
                assert "None" not in text


def test_every_rule_has_a_case() -> None:
    shown = {
        variant: {item[1] for case in (param.values[0] for param in CASES) for item in case[variant][1]}
        for variant in VARIANTS
    }
    assert {variant: set(policy.rules) for variant, policy in VARIANTS.items()} == shown
    assert shown["document"] | shown["product"] == set(EVOLVE_RULES)


@pytest.mark.requirement("ORA-1")
def test_force_overrides_what_stored_data_survive_and_nothing_else() -> None:
    deleted = report({"versions": [record(a="int")], "new": record()}, "document")
    assert not deleted.is_accepted()
    assert deleted.is_accepted(force=True)
    added = report({"versions": [record()], "new": record(a="int")}, "document")
    assert not added.is_accepted(force=True)
    assert report({"versions": [record()], "new": record()}, "document").is_accepted()


def record(**fields: str) -> dict[str, Any]:
    return {"type": "record", "name": "U", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


@pytest.mark.requirement("ORA-2")
def test_a_field_without_default_is_warned_of_at_first_and_refused_when_it_goes() -> None:
    first = report({"versions": [], "new": record(a="int")}, "document")
    assert first.verdict == "accepted"
    assert [(item.finding.rule, item.finding.path) for item in first.items] == [("FIELD_WITHOUT_DEFAULT", "U.a")]
    gone = report({"versions": [record(a="int")], "new": record()}, "document")
    assert gone.verdict != "accepted"
    assert "FIELD_DELETED_WITHOUT_DEFAULT" in {item.finding.rule for item in gone.items}


@pytest.mark.requirement("ORA-4")
def test_a_field_is_added_with_a_default_or_not_at_all() -> None:
    bare = report({"versions": [record()], "new": record(a="int")}, "document")
    assert bare.verdict == "rejected"
    assert [item.finding.rule for item in bare.items if item.version] == ["FIELD_ADDED_WITHOUT_DEFAULT"]
    field = {"name": "a", "type": "int", "default": 0}
    given = report({"versions": [record()], "new": {**record(), "fields": [field]}}, "document")
    assert given.verdict == "accepted"


@pytest.mark.requirement("ORA-3")
def test_the_document_is_never_more_lenient_than_the_product_once_versions_exist() -> None:
    order = ["accepted", "accepted only with force", "rejected"]
    for param in CASES:
        case = param.values[0]
        document, product = report(case, "document"), report(case, "product")
        changes = [item for item in product.items if item.version is not None]
        heaviest = max((["advice", "force", "refusal"].index(item.weight) for item in changes), default=0)
        assert order.index(document.verdict) >= heaviest, case["name"]


@pytest.mark.requirement("ORA-5")
def test_a_rename_names_the_alias_as_the_way() -> None:
    (item,) = report(
        {
            "versions": [
                {"type": "record", "name": "U", "fields": [{"name": "old_price", "type": "int", "default": 0}]}
            ],
            "new": {"type": "record", "name": "U", "fields": [{"name": "price", "type": "int", "default": 0}]},
        },
        "document",
    ).items
    assert 'keep the name "old_price" and give the field the alias "price"' in item.finding.remedy_in_reader
    assert item.score is not None
    assert str(item.score) in item.finding.message
    assert item.reasons


def test_names_with_braces_are_no_templates() -> None:
    old = parse({"type": "record", "name": "U", "fields": [{"name": "a", "type": "int", "default": {"{x}": 1}}]})
    new = parse({"type": "record", "name": "U", "fields": [{"name": "a", "type": "int"}]})
    items = POLICIES["oracle_nosql"].check(new, [(1, old)]).items
    assert [item.finding.before for item in items] == [{"{x}": 1}]


def test_a_place_in_a_referenced_schema_names_the_reference() -> None:
    def parsed(kind: str) -> ParsedSchema:
        place = {"type": "record", "name": "Place", "fields": [{"name": "code", "type": kind, "default": 0}]}
        person = {"type": "record", "name": "Person", "fields": [{"name": "at", "type": "Place", "default": {}}]}
        reference = ResolvedReference("Place", "place-value", 1, json.dumps(place))
        return AVRO.parse(json.dumps(person), [reference], is_new=False)

    (item,) = POLICIES["oracle_nosql"].check(parsed("long"), [(1, parsed("int"))]).items
    found = item.finding
    assert (found.rule, found.path, found.reader_pointer) == ("TYPE_WIDENED", "Person.at.code", "/fields/0/type")
    assert (found.reader_source, found.writer_source) == ("Place", "Place")


def test_a_schema_of_another_format_is_refused_in_words() -> None:
    given = POLICIES["oracle_nosql"].check(ParsedSchema("JSON", "{}", "{}", "0"), [])
    assert [item.finding.message for item in given.items] == ["the schema is of the format JSON, not an Avro record"]
    assert given.verdict == "rejected"


def test_depth_and_recursion_cost_no_more_than_their_size() -> None:
    def nested(kind: str) -> ParsedSchema:
        inner: Any = kind
        for _ in range(150):
            inner = {"type": "array", "items": inner}
        names = [f"R{number}" for number in range(60)]
        links = [{"name": f"f{number}", "type": ["null", name], "default": None} for number, name in enumerate(names)]
        head = {"type": "record", "name": "R0", "fields": [*links[:1], {"name": "deep", "type": inner, "default": []}]}
        for name in names[1:]:
            head["fields"].append({"name": f"to{name}", "type": {"type": "record", "name": name, "fields": links[:1]}})
        return parse(head)

    items = POLICIES["oracle_nosql"].check(nested("string"), [(1, nested("int"))]).items
    assert [item.finding.rule for item in items] == ["TYPE_CHANGED"]
    assert items[0].finding.path == "R0.deep" + "[]" * 150


@pytest.mark.slow
def test_the_lenient_variant_equals_the_products_checker(capsys: pytest.CaptureFixture[str]) -> None:
    require_tools("the comparison with Oracle NoSQL's checker", JAVA)
    from tests.formats.policies import oracle_comparison

    try:
        oracle_comparison.fetched(oracle_comparison.JARS)
    except SystemExit as error:
        pytest.skip(f"the product's client can't be had: {error}")
    code = oracle_comparison.main(300, 4_000_000)
    assert code == 0, capsys.readouterr().out

"""From what is wanted and what the target holds to a plan, without a database."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import SchemaTooCostly
from registry.promotions.plan.steps import in_order, plan_steps
from registry.promotions.plan.target_state import what_moved
from registry.promotions.plan.types import Check, Ids, IncomingVersion, Plan, Target, TargetState, step_from, steps_of
from registry.subjects.engine import schema_engine
from registry.subjects.policy.effective_policy import OwnConfig
from registry.subjects.versions.schema_identity import identify
from tests.promotions.factories import parsed, record, state, using, wanted

pytestmark = pytest.mark.requirement("CARD-4")

V1, V2 = record(id="long"), record(id="long", note="string?")
BROKEN = record(id="long", must="string")
ORDERS = "orders-value"


def plan(item: IncomingVersion, there: TargetState, kind: str = "promote", **target: Any) -> Plan:
    return plan_steps(kind, [item], Target({item.subject: there}, **target))


def verdicts(made: Plan) -> dict[str, str]:
    return {check.code: check.verdict for check in made.checks}


@pytest.mark.parametrize(
    ("text", "there", "kind", "expected_step", "fails"),
    [
        (V1, state(), "promote", ("register", 1), set()),
        (V2, state(V1), "promote", ("register", 2), set()),
        (V1, state(V1), "promote", ("none", 1), {"something-to-do"}),
        (V1, state(V1, V2), "promote", ("none", 1), {"something-to-do"}),
        (BROKEN, state(V1), "promote", ("register", 2), {"compatibility"}),
        (BROKEN, state(V1, level="NONE"), "promote", ("register", 2), set()),
        (BROKEN, state(V1, level="FORWARD"), "promote", ("register", 2), set()),
        (V2, state(V1, mode="READONLY"), "promote", ("register", 2), set()),
        (V2, state(V1, mode="READONLY_OVERRIDE"), "promote", ("register", 2), {"mode"}),
        (V2, state(V1, mode="IMPORT"), "promote", ("register", 2), set()),
        (V1, state(V1, V2), "roll back", ("repeat", 3), set()),
        (V1, state(V1, mode="READONLY"), "roll back", ("none", 1), {"something-to-do"}),
        (V1, state(V1, V2, mode="IMPORT"), "roll back", ("repeat", 3), {"mode"}),
        (V1, state(V1, V2, mode="READONLY_OVERRIDE"), "adopt", ("adopt", 1), set()),
    ],
)
def test_a_step_and_what_stops_it(
    text: str, there: TargetState, kind: str, expected_step: tuple[str, int], fails: set[str]
) -> None:
    made = plan(wanted(ORDERS, 1, text), there, kind)
    (step,) = made.steps
    assert (step.kind, step.target_version) == expected_step
    assert {check.code for check in made.failing} == fails
    assert made.can_run == (not fails)
    assert all(check.cure for check in made.failing), "a check that fails says what would change it"


def test_every_version_that_the_level_names_is_compared_though_the_target_is_behind() -> None:
    there = state(record(id="long", a="string"), record(id="long"), level="BACKWARD_TRANSITIVE")
    made = plan(wanted(ORDERS, 9, record(id="long", a="int?")), there)
    (check,) = [check for check in made.checks if check.code == "compatibility"]
    assert (check.verdict, check.overridable) == ("fail", True)
    assert "compared with version 1" in check.sentence
    assert made.reports[ORDERS].versions == (2, 1)
    newest_alone = plan(wanted(ORDERS, 9, record(id="long", a="int?")), replace(there, level="BACKWARD"))
    assert newest_alone.can_run


@pytest.mark.parametrize(
    ("text", "level", "breaking"),
    [(V2, "BACKWARD", False), (BROKEN, "BACKWARD", True), (BROKEN, "NONE", True), (BROKEN, "FORWARD", False)],
)
def test_breaking_is_by_the_level_or_by_backward_where_there_is_none(text: str, level: str, breaking: bool) -> None:
    assert plan(wanted(ORDERS, 2, text), state(V1, level=level)).breaking is breaking


@pytest.mark.parametrize("status", ["deprecated", "retired", "quarantined", "deleted"])
def test_a_version_that_should_not_be_used_is_not_promoted(status: str) -> None:
    made = plan(wanted(ORDERS, 1, V1, status=status), state())
    (check,) = made.failing
    assert (check.code, check.overridable) == ("status", False)
    assert status in check.sentence
    assert not {"status"} & {check.code for check in plan(wanted(ORDERS, 1, V1, status=status), state(V1)).failing}


IDENTITY = identify("AVRO", parsed(V2).canonical, (), {}, {}).digest


@pytest.mark.parametrize(
    ("mode", "ids", "expected", "outlook", "fails"),
    [
        ("READWRITE", Ids(7), 7, "same", False),
        ("READONLY", Ids(7), 7, "same", False),
        ("READWRITE", Ids(9), 9, "different", False),
        ("READWRITE", Ids(9, {IDENTITY: 7}, {7: IDENTITY}), 7, "same", False),
        ("READWRITE", Ids(9, {IDENTITY: 4}, {4: IDENTITY}), 4, "different", False),
        ("IMPORT", Ids(2), 7, "given by IMPORT", False),
        ("IMPORT", Ids(9, {IDENTITY: 7}, {7: IDENTITY}), 7, "given by IMPORT", False),
        ("IMPORT", Ids(9, {}, {7: "another definition"}), None, "unknown", True),
    ],
)
def test_the_id_that_the_target_will_give(mode: str, ids: Ids, expected: int | None, outlook: str, fails: bool) -> None:
    made = plan(wanted(ORDERS, 2, V2, source_id=7), state(V1, mode=mode), ids={".": ids})
    (step,) = made.steps
    assert (step.expected_id, step.id_outlook) == (expected, outlook)
    assert ("mode" in {check.code for check in made.failing}) is fails
    assert verdicts(made).get("ids") == {"different": "warn", "unknown": "skipped"}.get(outlook, "pass")


def test_a_remote_registry_does_not_tell_its_next_id_and_two_steps_take_two_ids() -> None:
    assert plan(wanted(ORDERS, 2, V2), state(V1), is_mirror=True).steps[0].id_outlook == "unknown"
    items = [wanted("a", 1, V1, source_id=1), wanted("b", 1, V2, source_id=2), wanted("c", 1, V1, source_id=1)]
    there = Target({"a": state(), "b": state(), "c": state()}, {".": Ids(5)})
    assert [step.expected_id for step in plan_steps("promote", items, there).steps] == [5, 6, 5]


def test_two_versions_of_a_referenced_subject_get_two_numbers_and_the_references_follow_them() -> None:
    items = [using("z", 4, ("money", 8), ("money", 3)), wanted("money", 3, V1), wanted("money", 8, V2)]
    made = plan_steps("promote", items, Target({"z": state(), "money": state()}))
    assert [(step.subject, step.target_version) for step in made.steps] == [("money", 1), ("money", 2), ("z", 1)]
    assert [ref.version for ref in made.steps[2].references] == [2, 1]


def test_a_contract_counts_what_differs_in_it_alone_is_registered() -> None:
    there = state(V1)
    told = replace(there.history[0], metadata={"properties": {"owner": "ann"}})
    bare = wanted(ORDERS, 1, V1)
    assert plan(bare, replace(there, history=(told,))).steps[0].kind == "register"
    same = replace(bare, metadata={"properties": {"owner": "ann", "confluent:version": "1"}})
    assert plan(same, replace(there, history=(told,))).steps[0].kind == "none", "the number in it is no difference"
    proposed = replace(bare, version=0, metadata=None, rule_set=None)
    assert plan(proposed, replace(there, history=(told,)), "propose").steps[0].kind == "none"


def test_config_comes_last_and_says_where_it_promises_less() -> None:
    item = wanted(ORDERS, 2, V2, config=OwnConfig(level="NONE", normalize=True))
    made = plan(item, state(V1, level="FULL_TRANSITIVE", own=OwnConfig(normalize=True)))
    assert [step.kind for step in made.steps] == ["register", "config"]
    assert made.steps[1].config == {"level": "NONE"}
    (check,) = [check for check in made.checks if check.code == "config"]
    assert check.verdict == "warn"
    assert "FULL_TRANSITIVE to NONE" in check.sentence
    alone = plan(wanted(ORDERS, 1, V1, config=OwnConfig(level="FULL")), state(V1))
    assert [step.kind for step in alone.steps] == ["none", "config"]
    assert alone.can_run
    assert not plan(replace(item, text=V1, schema=parsed(V1), config=OwnConfig(normalize=True)),
                    state(V1, own=OwnConfig(normalize=True))).has_work  # fmt: skip


def test_an_incompatible_version_is_not_let_in_by_the_level_that_comes_along() -> None:
    made = plan(wanted(ORDERS, 2, BROKEN, config=OwnConfig(level="NONE")), state(V1))
    assert verdicts(made)["compatibility"] == "fail"


def test_a_roll_back_says_what_is_not_undone() -> None:
    made = plan(wanted(ORDERS, 1, V1), state(V1, V2), "roll back")
    (check,) = [check for check in made.checks if check.code == "roll-back"]
    assert "version 2" in check.sentence
    assert "messages" in check.sentence


def test_a_subject_that_a_resource_owns_is_not_referred_to() -> None:
    items = [using("z", 1, ("money", 1)), wanted("money", 1)]
    made = plan_steps("promote", items, Target({"z": state(), "money": state(V1)}, owned=frozenset({"money"})))
    assert [(check.code, check.subject, check.overridable) for check in made.failing] == [("references", "z", False)]


def test_a_comparison_that_is_too_costly_fails_its_check_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise SchemaTooCostly("It takes more than 5 s.")

    monkeypatch.setattr(schema_engine, "check", refuse)
    (check,) = plan(wanted(ORDERS, 2, V2), state(V1)).failing
    assert (check.code, check.sentence) == ("compatibility", "It takes more than 5 s.")


# -- order and hash ----------------------------------------------------------------------------------------------------

NAMES = "abcde"


@st.composite
def graphs(draw: st.DrawFn) -> list[IncomingVersion]:
    """Versions that refer to versions that came before them, as in a registry."""
    count = draw(st.integers(1, 9))
    made: list[tuple[str, int]] = []
    items = []
    for _ in range(count):
        name = draw(st.sampled_from(NAMES))
        key = (name, 1 + sum(other == name for other, _ in made))
        needs = draw(st.lists(st.sampled_from(made), unique=True, max_size=3)) if made else []
        items.append(using(*key, *needs))
        made.append(key)
    return items


def target_for(items: list[IncomingVersion]) -> Target:
    return Target({item.subject: state() for item in items}, {".": Ids(1)})


@given(items=graphs(), seed=st.integers(0, 1000))
def test_the_order_of_the_items_is_no_part_of_the_plan_and_each_comes_after_what_it_needs(
    items: list[IncomingVersion], seed: int
) -> None:
    shuffled = list(items)
    random.Random(seed).shuffle(shuffled)
    ordered = in_order(shuffled)
    assert ordered == in_order(items)
    places = {item.key: place for place, item in enumerate(ordered)}
    assert len(places) == len(items)
    for item in items:
        assert all(places[need] < places[item.key] for need in item.needs)
        later = [key for key in places if key[0] == item.subject and key[1] > item.version]
        assert all(places[key] > places[item.key] for key in later), "versions of a subject ascend"
    one, other = (plan_steps("promote", given, target_for(items)) for given in (items, shuffled))
    assert one.hash == other.hash
    assert one.steps == other.steps


def test_imported_numbers_that_run_against_the_references_still_have_an_order() -> None:
    items = [using("a", 2), using("b", 1, ("a", 2)), using("a", 1, ("b", 1))]
    assert [item.key for item in in_order(items)] == [("a", 2), ("b", 1), ("a", 1)]


STATE = state(V1, V1)
MOVEMENTS: dict[str, Callable[[TargetState], TargetState]] = {
    "level": lambda there: replace(there, level="FULL"),
    "mode": lambda there: replace(there, mode="READONLY"),
    "policy": lambda there: replace(there, policy="oracle_nosql"),
    "profile": lambda there: replace(there, profile="semantic"),
    "settings": lambda there: replace(there, settings=OwnConfig(compatibility_group="major")),
    "a version more": lambda there: replace(there, history=(*there.history, replace(there.history[0], version=3))),
    "a version less": lambda there: replace(there, history=there.history[:1]),
    "another schema": lambda there: replace(there, history=(replace(there.history[0], identity="x"), there.history[1])),
    "another number": lambda there: replace(there, history=(replace(there.history[0], version=7), there.history[1])),
    "next version": lambda there: replace(there, next_version=9),
}


@pytest.mark.parametrize("movement", list(MOVEMENTS))
def test_whatever_moves_at_the_target_moves_the_hash_and_is_reported(movement: str) -> None:
    before = plan(wanted(ORDERS, 3, V2), STATE)
    after = plan(wanted(ORDERS, 3, V2), MOVEMENTS[movement](STATE))
    assert before.hash != after.hash
    assert ORDERS in what_moved(before.target, after.target)
    assert what_moved(before.target, before.target) == ""


@pytest.mark.parametrize(
    "other",
    [
        wanted(ORDERS, 3, record(id="long", note="int?")),
        wanted(ORDERS, 4, V2),
        wanted(ORDERS, 3, V2 + " "),
        wanted(ORDERS, 3, V2, metadata={"properties": {"owner": "ann"}}),
        wanted(ORDERS, 3, V2, rule_set={"domainRules": [{"name": "r"}]}),
        wanted(ORDERS, 3, V2, config=OwnConfig(level="FULL")),
        wanted(ORDERS, 3, V2, status="retired"),
    ],
    ids=["schema", "version", "text", "metadata", "rules", "config", "status"],
)
def test_whatever_moves_in_what_is_brought_moves_the_hash(other: IncomingVersion) -> None:
    assert plan(wanted(ORDERS, 3, V2), STATE).hash != plan(other, STATE).hash


def test_ids_are_no_part_of_the_hash() -> None:
    hashes = {plan(wanted(ORDERS, 3, V2), STATE, ids={".": Ids(number)}).hash for number in (3, 4, 900)}
    assert len(hashes) == 1


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_what_is_only_said_is_no_part_of_the_hash(name: str, sentence: str, cure: str) -> None:
    made = plan(wanted(ORDERS, 3, V2), STATE)
    said = tuple(replace(check, name=name, sentence=sentence, cure=cure) for check in made.checks)
    assert replace(made, checks=said).hash == made.hash
    assert replace(made, checks=tuple(reversed(made.checks))).hash == made.hash


@pytest.mark.parametrize(
    ("code", "verdict", "moves"),
    [
        ("evidence.data", "warn", False),
        ("evidence.data", "skipped", False),
        ("evidence.data", "fail", True),
        ("evidence.state", "warn", False),
        ("drift", "warn", False),
        ("drift", "fail", True),
        ("freeze", "fail", False),
        ("threads", "warn", False),
        ("reviewers", "warn", False),
        ("referrers", "warn", False),
    ],
)
def test_evidence_voids_an_approval_only_where_it_fails(code: str, verdict: Any, moves: bool) -> None:
    made = plan(wanted(ORDERS, 3, V2), STATE)
    more = replace(made, checks=(*made.checks, Check(code, code, verdict, "said", subject=ORDERS)))
    assert (more.hash != made.hash) is moves


def test_a_verdict_of_the_registrys_own_checks_is_part_of_the_hash() -> None:
    made = plan(wanted(ORDERS, 3, V2), STATE)
    for place, check in enumerate(made.checks):
        if check.code == "ids":
            continue
        turned = replace(check, verdict="warn")
        assert replace(made, checks=(*made.checks[:place], turned, *made.checks[place + 1 :])).hash != made.hash


def test_what_is_stored_is_read_again() -> None:
    items = [using("z", 4, ("money", 3)), wanted("money", 3, V1, config=OwnConfig(level="FULL"))]
    made = plan_steps("promote", items, Target({"z": state(), "money": state()}, {".": Ids(5)}))
    assert steps_of(made.to_dict()) == made.steps
    assert step_from({**made.steps[0].to_dict(), "a later key": 1}) == made.steps[0]

"""Why bodies can't be read: of each offset that is told its own reason, and all others counted by reason. Without Spark."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import jsonschema_rs
import pytest

from registry.observations import SchemaNotUsed, Span, UndecodableMessages
from registry.pipeline import body_decoding
from registry.pipeline.body_decoding import BodySelection
from registry.pipeline.profile_result import (
    LONGEST_REASON,
    MOST_OFFSETS,
    MOST_REASONS,
    BadBodies,
    Owner,
    Profiles,
    owner_of,
)
from registry.pipeline.session import Control
from registry.pipeline.workers.bodies import MOST_ERRORS, JsonSchemaBodies
from registry.pipeline.workers.message_reader import MOST_REASONS as MOST_OF_A_TASK
from registry.pipeline.workers.message_reader import DecodingPlan, Reader

pytestmark = pytest.mark.requirement("CARD-3")
OWNER: Owner = ("orders", "value", "id", "7")
SAYS = "the value isn't valid by its schema, at"


def span(first: int, last: int) -> Span:
    return Span(last - first + 1, 9, first, last, 0, 1)


def observed(bad: BadBodies) -> UndecodableMessages:
    profiles = Profiles()
    profiles.bad[OWNER, 0, "malformed"] = bad
    (observation,) = profiles.observations({})
    assert isinstance(observation, UndecodableMessages)
    return observation


def test_the_first_offsets_keep_their_reasons_in_whatever_order_they_come() -> None:
    for order in (1, -1):
        bad = BadBodies()
        parts: list[tuple[Span, dict[int, str], dict[str, int]]] = [
            (span(1, 40), {1: "a", 5: "b", 9: "a"}, {"a": 30, "b": 10}),
            (span(2, 44), {2: "c", 3: "a", 44: "d"}, {"a": 1, "c": 1, "d": 41}),
        ]
        for part in parts[::order]:
            bad.add(*part)
        observation = observed(bad)
        assert (observation.offsets, observation.reasons) == ((1, 2, 3, 5, 9), ("a", "c", "a", "b", "a"))
        assert observation.by_reason == {"a": 31, "b": 10, "c": 1, "d": 41}


def test_what_spark_refused_has_a_reason_where_one_was_given() -> None:
    bad = BadBodies()
    bad.add_unexplained(span(10, 90), (10, 20, 30, 40, 50))
    bad.explain({20: "ends early", 40: "too deep", 60: "of one that isn't kept"})
    bad.add(span(5, 5), {5: "bytes are left over"}, {"bytes are left over": 1})
    observation = observed(bad)
    assert len(observation.offsets) == MOST_OFFSETS
    assert (observation.offsets, observation.reasons) == (
        (5, 10, 20, 30, 40),
        ("bytes are left over", "", "ends early", "", "too deep"),
    )
    assert observation.by_reason == {"bytes are left over": 1, "ends early": 1, "too deep": 1}
    assert observation.span.messages == 82, "of the others no reason is known"


def test_reasons_are_bounded_in_length_and_number() -> None:
    bad = BadBodies()
    names = [f"{number:03} " + "x" * 5_000 for number in range(500)]
    bad.add(span(0, 499), dict(enumerate(names[:9])), {name: 500 - number for number, name in enumerate(names)})
    observation = observed(bad)
    assert max(map(len, (*observation.reasons, *observation.by_reason))) == LONGEST_REASON
    assert all(reason.endswith("…") for reason in observation.reasons)
    assert len(observation.by_reason) == MOST_REASONS
    assert min(observation.by_reason.values()) == 500 - MOST_REASONS + 1, "the most frequent ones stay"


def test_a_task_tells_each_offset_and_counts_all_by_reason() -> None:
    schema = json.dumps({"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": False})
    reader = Reader(DecodingPlan({("id", b"\0\0\0\7"): ("JSON", schema)}))
    bodies = [b'{"id":"a"}', b'{"x":1}', b'{"x":1,"id":"a"}', b'{"id":1}', *[b'{"y":1}'] * 20, b"no"]
    for offset, body in enumerate(bodies):
        reader._side("orders", "value", (0, offset, 1, 1, False, False), "id", b"\0\0\0\7", body)
    groups = {key[5]: group for key, group in reader.counts.undecodable.items()}
    beside = f"{SAYS} additionalProperties"
    several = groups["violates"]["offsets"][2][1]
    assert {*several.removeprefix(f"{SAYS} ").split(" and at ")} == {"additionalProperties", "properties/id/type"}
    assert [reason for _, reason in groups["violates"]["offsets"]] == [
        f"{SAYS} properties/id/type", beside, several, beside, beside,
    ]  # fmt: skip
    assert groups["violates"]["reasons"] == {f"{SAYS} properties/id/type": 1, beside: 21, several: 1}
    assert groups["malformed"]["reasons"] == {"the text isn't JSON": 1}


def test_a_task_tells_so_many_reasons_apart() -> None:
    reader = Reader(DecodingPlan({}))
    for offset in range(100):
        reader._undecodable(("t", "value", "id", "00"), (0, offset, 1, 1), "malformed", f"{offset} bytes are left over")
    ((_, group),) = reader.counts.undecodable.items()
    assert len(group["reasons"]) == MOST_OF_A_TASK
    assert group["span"][0] == 100


NAMES = [f"p{number}" for number in range(9)]


@pytest.mark.parametrize(
    ("schema", "value", "ends"),
    [
        ({"properties": {name: {"type": "null"} for name in NAMES}}, dict.fromkeys(NAMES[:3], 1), "p2/type"),
        ({"properties": {name: {"type": "null"} for name in NAMES}}, dict.fromkeys(NAMES, 1), " and elsewhere"),
        ({"items": {"type": "null"}}, [1] * 5, "at items/type"),
        ({"items": {"type": "null"}}, [1] * (MOST_ERRORS + 1), "at items/type and perhaps elsewhere"),
        ({"properties": {"x" * 500: {"additionalProperties": False}}}, {"x" * 500: {"a": 1}}, "…"),
    ],
)
def test_a_value_is_reported_with_all_that_it_is_against_or_that_there_is_more(
    schema: Any, value: Any, ends: str
) -> None:
    decoded = JsonSchemaBodies(json.dumps(schema)).decode(json.dumps(value).encode())
    assert decoded.violation.startswith(SAYS)
    assert decoded.violation.endswith(ends)
    assert len(decoded.violation) < LONGEST_REASON


def test_a_keyword_that_gave_up_beside_another_one_is_said_to_be_unknown() -> None:
    properties = {"slow": {"type": "null"}, "n": {"minimum": 5}}
    bodies = JsonSchemaBodies(json.dumps({"properties": properties}))
    kinds: Any = jsonschema_rs.ValidationErrorKind
    bodies._gave_up = (kinds.Type,)  # as a pattern does that takes too long
    alone = bodies.decode(b'{"slow": "a"}')
    assert (alone.violation, bool(alone.unchecked)) == ("", True)
    assert bodies.decode(b'{"slow": "a", "n": 1}').violation == f"{SAYS} properties/n/minimum and perhaps elsewhere"


def test_a_schema_that_is_given_up_on_one_side_of_a_topic_is_not_called_unused_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        {"topic": "orders", "partition": 0, "offset": offset, "time": 1, "size": 9, "value_mark": b"\0\0\0\7", "value_class": "id"}
        for offset in range(body_decoding.MOST_DEATHS)
    ]  # fmt: skip
    collected = [type("Row", (dict,), {"__getattr__": dict.__getitem__})(row) for row in rows]
    monkeypatch.setattr(body_decoding, "read_marks", lambda *_: SimpleNamespace(collect=lambda: collected))
    control = cast("Control", SimpleNamespace(run=lambda _, work: work()))
    spec: Any = SimpleNamespace(connection=None)
    lines = list(body_decoding.Decoding(cast("Any", None), spec, control, {}, {})._blamed(BodySelection(()), "value"))
    profiles = Profiles()
    for name, key, value in lines:
        if name == "given_up":
            profiles.given_up[owner_of(*key)] = value
    assert list(profiles.observations({})) == [SchemaNotUsed("id", "7", body_decoding.GIVEN_UP, "orders", "value")]
    assert [value["reasons"] for name, _, value in lines if name == "undecodable"] == [{body_decoding.ENDED: 1}] * 3
    profiles.forget("orders")
    assert list(profiles.observations({})) == []

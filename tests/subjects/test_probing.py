"""The test of a connection: each step says what it met, and what the server can is read from its answers alone."""

from __future__ import annotations

from typing import Any

import pytest

from registry.access.egress import EgressPolicy
from registry.subjects.remote_probe import Probe, probe
from tests.access.fake_server import Call, Told, serving

POLICY = EgressPolicy(allow=("127.0.0.1",))
MODERN = {
    "/subjects": ["a", "b"],
    "/contexts": [".", ".x"],
    "/mode": {"mode": "READWRITE"},
    "/schemas": [{"subject": "a", "version": 1, "deleted": False}],
    "/schemas/types": ["AVRO", "JSON"],
    "/subjects/schemadesk-connection-test/versions/1/referencedby": Told(
        404, b'{"error_code": 40401, "message": "no"}'
    ),
}


def tried(answers: dict[str, Any], *, policy: EgressPolicy = POLICY, secret: str = "") -> tuple[Probe, list[Call]]:
    with serving(lambda call: answers.get(call.path)) as server:
        return probe(f"http://127.0.0.1:{server.port}", policy=policy, secret=secret), server.calls


def outcome(found: Probe) -> list[bool | None]:
    return [step.ok for step in found.steps]


def known(found: Probe) -> dict[str, bool | None]:
    return {each.name: each.known for each in found.capabilities}


def test_a_server_of_today_passes_and_only_reading_calls_are_made() -> None:
    found, calls = tried(MODERN)
    assert found.ok and outcome(found) == [True] * 4
    assert known(found) == {
        "contexts": True, "import_mode": None, "references": True, "deleted": True,
        "format:AVRO": True, "format:PROTOBUF": False, "format:JSON": True,
    }  # fmt: skip
    assert calls and "2 subjects" in found.steps[3].said


def test_a_server_of_the_first_years_lacks_what_it_lacks() -> None:
    found, _ = tried({"/subjects": []})
    assert found.ok
    assert known(found) == {
        "contexts": False, "import_mode": False, "references": False, "deleted": None,
        "format:AVRO": True, "format:PROTOBUF": None, "format:JSON": None,
    }  # fmt: skip
    assert all(each.said for each in found.capabilities if not each.known)


def test_the_mode_import_and_deleted_subjects_are_seen() -> None:
    found, _ = tried({**MODERN, "/mode": {"mode": "IMPORT"}})
    assert known(found)["import_mode"] is True
    with serving(
        lambda call: ["a", "b"] if "deleted" in call.query else ["a"] if call.path == "/subjects" else None
    ) as it:
        assert known(probe(f"http://127.0.0.1:{it.port}", policy=POLICY))["deleted"] is True


@pytest.mark.parametrize(
    ("answers", "outcomes", "said"),
    [
        ({"/subjects": Told(401, b"")}, [True, True, False, None], "refuses the sign-in"),
        ({"/subjects": Told(200, b"<html>")}, [True, True, True, False], "no schema registry"),
        ({"/subjects": Told(302, b"", {"Location": "http://elsewhere"})}, [True, True, None, False], "redirect"),
    ],
)
def test_a_step_that_fails_says_why_and_stops_the_rest(answers: Any, outcomes: list[bool | None], said: str) -> None:
    found, _ = tried(answers)
    assert (outcome(found), found.ok, found.capabilities) == (outcomes, False, ())
    assert said in next(step.said for step in found.steps if step.ok is False)


def test_what_the_policy_refuses_is_never_called() -> None:
    found, calls = tried(MODERN, policy=EgressPolicy())
    assert outcome(found) == [False, None, None, None]
    assert not calls and "SCHEMADESK_EGRESS_ALLOW" in found.steps[0].said


def test_a_secret_that_is_not_there_is_no_call() -> None:
    found, calls = tried(MODERN, secret="nowhere")
    assert outcome(found) == [True, None, False, None]
    assert not calls and "no secret" in found.steps[2].said


def test_nobody_answers() -> None:
    with serving(lambda call: None) as server:
        port = server.port
    found = probe(f"http://127.0.0.1:{port}", policy=POLICY)
    assert outcome(found)[:2] == [True, False]
    assert "can't be reached" in found.steps[1].said

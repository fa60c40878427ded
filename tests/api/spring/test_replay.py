"""Our Spring dialect against what the released server answered (recorded.json, written by record.py)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from tests.api.spring.spring_calls import RECORDED, Answer, Ask, Send, answer_of, ask_all, scenarios

ROOT = "/spring"
HOST = "http://testserver"
TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+0000")


def through(client: Client, root: str = ROOT) -> Send:
    """Sends to our views below a root path."""

    def send(method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Answer:
        rest = {name: value for name, value in headers.items() if name != "Content-Type"}
        kind = headers.get("Content-Type", "")
        response = client.generic(method, root + path, data or b"", headers=rest, CONTENT_TYPE=kind)
        return answer_of(response.status_code, dict(response.headers), response.content, HOST + root)

    return send


class Ids:
    """Which of our ids stands for which recorded one; each for one, in the same order."""

    def __init__(self) -> None:
        self.ours: dict[int, int] = {}

    def same(self, recorded: Any, ours: Any) -> bool:
        """Whether two bodies are equal when ids are put for ids."""
        if isinstance(recorded, list):
            return len(recorded) == len(ours) and all(map(self.same, recorded, ours))
        if not isinstance(recorded, dict) or "id" not in recorded:
            return recorded == ours
        if list(recorded) != list(ours) or self.ours.setdefault(recorded["id"], ours["id"]) != ours["id"]:
            return False
        return {**recorded, "id": 0} == {**ours, "id": 0}

    def in_order(self) -> bool:
        """Whether a later recorded id has a later one of ours."""
        ordered = [self.ours[recorded] for recorded in sorted(self.ours)]
        return ordered == sorted(set(ordered))


def differences(ask: Ask, recorded: dict[str, Any], ours: Answer, ids: Ids) -> list[str]:
    """In words, where an answer of ours is not the released server's."""
    found = []
    if ours.status != recorded["status"]:
        found.append(f"status {ours.status} for {recorded['status']}")
    for name, value in recorded["headers"].items():
        given = ours.headers.get(name, "")
        same = (
            sorted(re.split(r",\s*", given)) == sorted(re.split(r",\s*", value)) if name == "Allow" else given == value
        )
        if not same:
            found.append(f"{name} {given} for {value}")
    found += [f"{name} beyond" for name in ours.headers.keys() - recorded["headers"].keys()]
    theirs, mine = recorded["body"], ours.body
    if isinstance(theirs, dict) and "error" in theirs:
        mine = {name: value for name, value in mine.items() if name != "details"}
        if ask.begins and theirs["message"].startswith(ask.begins) and mine["message"].startswith(ask.begins):
            theirs, mine = {**theirs, "message": ""}, {**mine, "message": ""}
        if not TIMESTAMP.fullmatch(ours.timestamp):
            found.append(f"timestamp {ours.timestamp!r}")
    if not ids.same(theirs, mine):
        found.append(f"body {mine} for {theirs}")
    return found


@pytest.mark.requirement("SCS-1", "SCS-2")
@pytest.mark.parametrize("scenario", list(scenarios()))
def test_the_same_requests_get_the_same_answers(
    scenario: str, api: Callable[[str], Client], settings: Any, subtests: Any
) -> None:
    settings.SPRING_ALLOW_DELETION = scenario == "deletion allowed"
    recorded = json.loads(RECORDED.read_text())["scenarios"][scenario]
    asks, ids = scenarios()[scenario], Ids()
    assert [ask.what for ask in asks] == [answer["what"] for answer in recorded], "record anew"
    for (ask, ours), theirs in zip(ask_all(asks, through(api("admin"))), recorded, strict=True):
        with subtests.test(ask.what):
            found = differences(ask, theirs, ours, ids)
            if ask.ours:
                assert found, "it is no difference any more"
                assert ours.status == ask.ours["status"]
                if "message" in ask.ours:
                    assert ours.body["message"] == ask.ours["message"]
                if "begins" in ask.ours:
                    assert ours.body["message"].startswith(ask.ours["begins"])
            else:
                assert not found
    assert ids.in_order()


def test_there_are_enough_cases_and_few_differences() -> None:
    asks = [ask for scenario in scenarios().values() for ask in scenario]
    different = [ask for ask in asks if ask.ours]
    assert len(asks) >= 120
    assert len(different) <= 10
    assert all(ask.ours["why"] for ask in different)
    assert all(len({ask.what for ask in scenario}) == len(scenario) for scenario in scenarios().values())

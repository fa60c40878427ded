"""The contract of Confluent's API as data: each case is a story of calls with what they answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client

CONTENT = "application/vnd.schemaregistry.v1+json"
FOLDER = Path(__file__).parent / "cases" / "confluent"
SCHEMAS: dict[str, str] = yaml.safe_load((FOLDER / "schemas.yaml").read_text())
KEYS = {
    "call", "by", "send", "status", "code", "says", "gives", "has", "lacks", "list", "gives_text", "any",
    "says_schema", "says_text",
}  # fmt: skip


def cases() -> Iterator[Any]:
    """Every story, marked with the requirements that it shows."""
    for path in sorted(FOLDER.glob("*.yaml")):
        for case in () if path.stem == "schemas" else yaml.safe_load(path.read_text()):
            marks = [pytest.mark.requirement(*case["requirements"])] if "requirements" in case else []
            yield pytest.param(case, id=f"{path.stem}: {case['name']}", marks=marks)


def filled(value: Any) -> Any:
    """The value with the schemas that it names in it."""
    if isinstance(value, str) and value.startswith("$") and value[1:]:
        return SCHEMAS[value[1:]]
    if isinstance(value, dict):
        return {key: filled(item) for key, item in value.items()}
    return [filled(item) for item in value] if isinstance(value, list) else value


class Wanted:
    """Equal to a value like it, in which ANY stands for anything."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, found: object) -> bool:
        wanted = self.value
        if isinstance(wanted, dict) and isinstance(found, dict):
            return wanted.keys() == found.keys() and all(found[key] == Wanted(wanted[key]) for key in wanted)
        if isinstance(wanted, list) and isinstance(found, list):
            return len(wanted) == len(found) and all(map(lambda a, b: a == Wanted(b), found, wanted))
        return bool(wanted == "ANY" or wanted == found)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.value)


@pytest.mark.parametrize("case", list(cases()))
def test_the_story_goes_as_told(case: dict[str, Any], api: Callable[[str], Client]) -> None:
    clients: dict[str, Client] = {}
    for number, step in enumerate(case["steps"], start=1):
        who = step.get("by", "admin")
        clients[who] = clients.get(who) or api(who)
        tell(clients[who], step, f"step {number}: {step['call']}")


def tell(client: Client, step: dict[str, Any], where: str) -> None:
    """Make the call and hold its answer against what the step says of it."""
    assert not step.keys() - KEYS, f"{where}: unknown keys"
    method, _, path = step["call"].partition(" ")
    body = json.dumps(filled(step["send"])) if "send" in step else ""
    answer = client.generic(method, path, body, content_type=CONTENT)
    text = answer.content.decode()
    expected = step.get("any") or [step.get("status") or int(str(step.get("code", 200))[:3])]
    assert answer.status_code in expected, f"{where}: {answer.status_code} {text}"
    if answer.status_code == 204:
        assert not text, where
        return
    if "gives_text" in step:
        assert text == filled(step["gives_text"]), where
        return
    if "says_text" in step:
        assert step["says_text"] in text, where
        return
    assert answer["Content-Type"] in (CONTENT, "application/json"), where
    found = answer.json()
    if answer.status_code >= 400:
        assert found.keys() == {"error_code", "message"}, where
        assert found["error_code"] == step.get("code", found["error_code"]), f"{where}: {text}"
        assert step.get("says", "") in found["message"], f"{where}: {text}"
        return
    if "gives" in step:
        assert found == Wanted(filled(step["gives"])), f"{where}: {text}"
    for name, value in filled(step.get("has", {})).items():
        assert found.get(name) == Wanted(value), f"{where}: {name} of {text}"
    assert not set(step.get("lacks", ())) & found.keys() if isinstance(found, dict) else True, f"{where}: {text}"
    if "says_schema" in step:
        assert step["says_schema"] in found["schema"], where
    if "list" in step:
        assert len(found) == len(step["list"]), f"{where}: {text}"
        for item, wanted in zip(found, step["list"], strict=True):
            assert wanted.items() <= item.items(), f"{where}: {item}"


def test_every_case_is_told_apart() -> None:
    names = [case.id for case in cases()]
    assert len(names) == len(set(names))
    assert len(names) > 20

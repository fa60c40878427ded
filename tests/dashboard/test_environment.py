"""The environment's variables: what is read, what is refused and in which words, and the page that lists them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from dashboard import environment
from dashboard.apps import addresses_can_work
from dashboard.environment import VARIABLES, decimal, secret, switch, text, whole, words

ROOT = Path(__file__).resolve().parents[2]
NAME = "SCHEMADESK_OF_A_TEST"


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "VARIABLES", {})


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (lambda: text(NAME, "a", "it"), None, "a"),
        (lambda: text(NAME, "a", "it"), "", ""),
        (lambda: text(NAME, "a", "it", choices=("a", "b")), "b", "b"),
        (lambda: words(NAME, "a,b", "it"), None, ("a", "b")),
        (lambda: words(NAME, "a,b", "it"), " c, ,d ", ("c", "d")),
        (lambda: words(NAME, "a,b", "it"), "", ()),
        (lambda: words(NAME, "", "it", separator=":"), "/c:/d", ("/c", "/d")),
        (lambda: whole(NAME, 2, "it"), None, 2),
        (lambda: whole(NAME, 2, "it"), "", 2),
        (lambda: whole(NAME, 2, "it"), "3", 3),
        (lambda: decimal(NAME, 2, "it"), "0.5", 0.5),
        (lambda: switch(NAME, "it"), None, False),
        (lambda: switch(NAME, "it", default=True), None, True),
        (lambda: switch(NAME, "it", default=True), "", False),
        (lambda: switch(NAME, "it"), "1", True),
        (lambda: secret(NAME, "it"), None, ""),
        (lambda: secret(NAME, "it"), "key", "key"),
    ],
)
def test_values(
    read: Callable[[], object], value: str | None, expected: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(NAME, raising=False)
    if value is not None:
        monkeypatch.setenv(NAME, value)
    assert read() == expected


@pytest.mark.parametrize(
    ("read", "value", "problem"),
    [
        (
            lambda: text(NAME, "a", "the mode", choices=("a", "b")),
            "c",
            "Must be one of: a, b. Values: a, b; default: a.",
        ),
        (lambda: whole(NAME, 2, "the mode"), "two", "Not a valid integer. Values: whole number; default: 2."),
        (lambda: whole(NAME, 2, "the mode"), "-1", "Must be greater than or equal to 0."),
        (lambda: decimal(NAME, 2, "the mode"), "two", "Not a valid number."),
        (lambda: switch(NAME, "the mode"), "perhaps", "Not a valid boolean. Values: 1 or 0; default: 0."),
    ],
)
def test_a_value_that_is_refused(
    read: Callable[[], object], value: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(NAME, value)
    with pytest.raises(ImproperlyConfigured, match=re.escape(f"{NAME} can't be used. {problem}")) as raised:
        read()
    assert str(raised.value).endswith("It sets the mode.")


def test_the_file_of_a_secret_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("of the file\n")
    monkeypatch.setenv(NAME, "of the variable")
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "key"))
    assert secret(NAME, "the key") == "of the file"
    monkeypatch.setenv(f"{NAME}_FILE", str(tmp_path / "none"))
    with pytest.raises(ImproperlyConfigured, match=f"{NAME}_FILE must be a readable file") as raised:
        secret(NAME, "the key")
    assert "of the variable" not in str(raised.value)


def test_the_settings_read_the_environment_through_declarations_alone() -> None:
    source = (ROOT / "dashboard" / "settings.py").read_text()
    assert not re.search(r"os\.environ|getenv", source)
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    declared = set(re.findall(r'environment\.[a-z]+\(\s*"([A-Z_]+)"', source))
    assert len(declared) == len(re.findall(r"environment\.[a-z]+\(", source))
    assert {name for name in declared if f"| `{name}` |" not in page} == set()
    assert declared <= VARIABLES.keys()


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("ALLOWED_HOSTS", ["https://schemas.example.com"], "SCHEMADESK_HOSTS has a URL"),
        ("REDIS_URL", "http://127.0.0.1:6379", "REDIS_URL begins with none of redis://"),
        ("SITE_URL", "schemas.example.com", "SCHEMADESK_URL begins with none of https://"),
        ("SPARK_REMOTE", "http://spark:15002", "SPARK_REMOTE begins with none of sc://"),
    ],
)
def test_addresses_that_cannot_work_are_named(settings: Any, setting: str, value: Any, said: str) -> None:
    assert addresses_can_work() == []
    setattr(settings, setting, value)
    (warning,) = addresses_can_work()
    assert warning.id == "schemadesk.W004" and warning.msg.startswith(said)

"""Checkpoints in which anything was changed: read, or refused by the one documented error."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from registry.checkpoints import read_checkpoint
from registry.checkpoints.model import observe_schemas, rows_to_read
from registry.errors import InvalidCheckpoint

FIXTURES = Path(__file__).parent / "fixtures"
pytestmark = pytest.mark.slow
NAMES = ("customer_totals", "timers_and_ttl", "join_rocksdb", "named_source", "session_windows")
VALUES: tuple[Any, ...] = (None, True, -1, 2**70, "..", [1], {"a": {}}, {"0": 1})


def read(folder: Path) -> None:
    """Everything that is made of a checkpoint without Spark; any other error than the documented one is a failure."""
    try:
        checkpoint = read_checkpoint(str(folder), [folder])
    except InvalidCheckpoint as error:
        assert len(error.message) < 2_000
        return
    observe_schemas(checkpoint)
    rows_to_read(checkpoint)
    assert all(budget.left >= 0 for budget in checkpoint.budgets)


@pytest.mark.parametrize("name", NAMES)
def test_any_bytes_in_any_file(tmp_path: Path, name: str) -> None:
    shutil.copytree(FIXTURES / name, tmp_path / "c")
    files = sorted(path for path in (tmp_path / "c").rglob("*") if path.is_file())
    dice = random.Random(name)
    for _ in range(250):
        path = dice.choice(files)
        good = path.read_bytes()
        at, length = dice.randrange(len(good) + 1), dice.choice((0, 1, 2, 40))
        new = dice.choice((b"", b"\xff", b"\0\0", b'"', b"}", b"9" * 25, bytes(dice.randrange(256) for _ in range(4))))
        path.write_bytes(good[:at] + new + good[at + length :])
        read(tmp_path / "c")
        path.write_bytes(good)


@pytest.mark.parametrize("name", NAMES)
def test_any_value_in_any_place_of_the_json(tmp_path: Path, name: str) -> None:
    shutil.copytree(FIXTURES / name, tmp_path / "c")
    tried = 0
    for path in sorted((tmp_path / "c").rglob("*")):
        if not path.is_file() or "_stateSchema" in path.parts or path.name == "schema":
            continue
        lines = path.read_text().split("\n")
        for number, line in enumerate(lines):
            if line.startswith("{"):
                for changed in _changed(json.loads(line)):
                    path.write_text("\n".join([*lines[:number], json.dumps(changed), *lines[number + 1 :]]))
                    read(tmp_path / "c")
                    tried += 1
        path.write_text("\n".join(lines))
    assert tried > 50


@pytest.mark.parametrize("name", NAMES)
def test_any_value_in_a_schema(tmp_path: Path, name: str) -> None:
    """A schema's text is replaced by one of the same length, so that the file around it stays right."""
    shutil.copytree(FIXTURES / name, tmp_path / "c")
    tried = 0
    for path in sorted((tmp_path / "c").rglob("*")):
        if not path.is_file() or not ("_stateSchema" in path.parts or path.name == "schema"):
            continue
        good = path.read_bytes()
        at = good.find(b'{"type":"struct"')
        length = int.from_bytes(good[at - 2 : at], "big")
        for changed in _changed(json.loads(good[at : at + length])):
            text = json.dumps(changed, separators=(",", ":")).encode()
            if len(text) <= length:
                path.write_bytes(good[:at] + text.ljust(length) + good[at + length :])
                read(tmp_path / "c")
                tried += 1
        path.write_bytes(good)
    assert tried > 20


def _changed(value: Any) -> list[Any]:
    """A JSON value with each of its places, one at a time, replaced by each of VALUES or left out."""
    found = list(VALUES)
    if isinstance(value, dict):
        for key, inner in list(value.items())[:12]:
            found += [{**value, key: each} for each in _changed(inner)]
            found.append({name: kept for name, kept in value.items() if name != key})
    elif isinstance(value, list):
        for at, inner in enumerate(value[:3]):
            found += [[*value[:at], each, *value[at + 1 :]] for each in _changed(inner)]
    elif isinstance(value, str) and value.startswith("{"):
        found += [json.dumps(each) for each in _changed(json.loads(value))]
    return found

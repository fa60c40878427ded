"""Checkpoints of older Sparks and of later ones: read, or refused with the reason; and folders that are none."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.checkpoints import read_checkpoint
from registry.errors import InvalidCheckpoint
from tests.checkpoints.writing import utf, write_built_in

HERE = Path(__file__).parent
FIXTURES = HERE / "fixtures"
OLDER: list[dict[str, Any]] = yaml.safe_load((HERE / "older_forms.yaml").read_text())


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(FIXTURES / "customer_totals", tmp_path / "c")
    return tmp_path / "c"


def refused(path: Path) -> str:
    with pytest.raises(InvalidCheckpoint) as caught:
        read_checkpoint(str(path), [path.parent])
    return caught.value.message


@pytest.mark.requirement("DBX-1")
@pytest.mark.parametrize("case", OLDER, ids=lambda case: case["name"])
def test_a_form_built_by_hand_is_read(tmp_path: Path, case: dict[str, Any]) -> None:
    given = {name: case[name] for name in ("schema", "operator", "settings") if name in case}
    folder = write_built_in(tmp_path / "c", case["stores"], **given)
    checkpoint = read_checkpoint(str(folder), [tmp_path])
    (operator,) = checkpoint.operators
    assert (operator.description, checkpoint.written_by) == (case["description"], case["written_by"])
    assert [variable.name for variable in operator.variables] == case["variables"]
    assert (operator.why_fixed or "").startswith("no evolution possible here: ")
    assert checkpoint.topics == ("clicks",)
    told = "operator 0 has no metadata: its kind is told by its state's form"
    assert checkpoint.problems == (() if "operator" in case else (told,))
    assert not any(each.limit == "value_schemas" for each in checkpoint.budgets)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("offsets/4", "v3\n{}\n", "begins with 'v3', not with v1 or v2; a later Spark may have written it"),
        ("offsets/4", "", "is empty: it was written in part only, or is being written now"),
        ("state/0/_metadata/v2/1", "v7\n{}", "a later Spark may have written it"),
        ("state/0/_metadata/v2/1", "", "is empty"),
        ("state/0/_metadata/v3/0", "v3\n{}", "of a format that isn't known here (v1 and v2 are): a later Spark"),
        ("state/0/_stateSchema/default/2_a", utf("v4").decode() + "x", "a later Spark may have written it"),
    ],
)
def test_a_later_form_is_refused_with_the_file_and_the_reason(
    copied: Path, file: str, content: str, words: str
) -> None:
    (copied / file).parent.mkdir(exist_ok=True)
    (copied / file).write_text(content)
    message = refused(copied)
    assert message.startswith(file.rpartition("/0")[0] if "v3" in file else file)
    assert words in message


@pytest.mark.parametrize(
    ("removed", "words"),
    [
        (["offsets"], "its query has planned no batch yet, or the folder was copied in part"),
        (["metadata"], "starting just now, or it was copied in part: the file metadata"),
        (["metadata", "offsets", "commits"], "found sources, state; name the folder that the query has"),
    ],
)
def test_a_checkpoint_in_part_says_what_is_missing(copied: Path, removed: list[str], words: str) -> None:
    for name in removed:
        path = copied / name
        path.unlink() if path.is_file() else shutil.rmtree(path)
    assert words in refused(copied)


def test_the_folder_of_one_operator_is_no_checkpoint(copied: Path) -> None:
    assert "this is one operator's state" in refused(copied / "state/0")


def test_a_checkpoint_that_was_moved_is_read_by_the_names_of_its_files(copied: Path, tmp_path: Path) -> None:
    before = read_checkpoint(str(copied), [tmp_path])
    (tmp_path / "elsewhere").mkdir()
    moved = copied.rename(tmp_path / "elsewhere/query")
    after = read_checkpoint(str(moved), [tmp_path])
    assert after.path == str(moved)
    assert (after.operators, after.problems) == (before.operators, ())


def test_what_was_copied_without_its_schema_files_says_so(copied: Path) -> None:
    shutil.rmtree(copied / "state/0/_stateSchema")
    problems = read_checkpoint(str(copied), [copied.parent]).problems
    assert len([each for each in problems if "is missing" in each]) == 2
    assert "operator 0 has no schema file" in problems


def test_a_foreign_file_among_a_checkpoints_own_is_left_alone(copied: Path) -> None:
    for name in ("offsets/notes.txt", "commits/README", "state/backup", "state/0/_stateSchema/default/notes"):
        (copied / name).write_text("not Spark's")
    checkpoint = read_checkpoint(str(copied), [copied.parent])
    assert (checkpoint.last_committed_batch, len(checkpoint.operators)) == (4, 1)
    assert checkpoint.problems == ()

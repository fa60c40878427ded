"""Real checkpoints read as a whole, histories that only a long-lived query has, and forms of older and later Sparks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from registry.checkpoints import Checkpoint, StateVariable, read_checkpoint
from registry.checkpoints.model import observe_schemas, rows_to_read
from registry.checkpoints.schema_files import MAX_PARTITIONS
from registry.errors import InvalidCheckpoint
from registry.observations import StateLimit, StateSchemaVersion, StateVariableRead
from tests.checkpoints.checkpoint_writer import family, struct_type, utf, v3, write_built_in, write_checkpoint

FIXTURES = Path(__file__).parent / "fixtures"
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((Path(__file__).parent / "expected.yaml").read_text())


def read(name: str) -> Checkpoint:
    return read_checkpoint(str(FIXTURES / name), [FIXTURES])


def columns(schema: str) -> list[str]:
    return [field["name"] for field in json.loads(schema)["fields"]]


def summary(variable: StateVariable) -> list[Any]:
    ids = [version.schema_id for version in variable.versions]
    return [variable.kind, variable.ttl, ids, columns(variable.newest.value_schema)]


@pytest.mark.requirement("DBX-1", "DBX-6")
@pytest.mark.parametrize("name", EXPECTED)
def test_a_real_checkpoint_says_what_its_query_keeps(name: str) -> None:
    expected, checkpoint = EXPECTED[name], read(name)
    (operator,) = checkpoint.operators
    assert operator.description == expected["description"]
    assert operator.evolvable is expected["evolvable"]
    assert expected.get("why_fixed", "") in (operator.why_fixed or "")
    assert {variable.name: summary(variable) for variable in operator.variables} == expected["variables"]
    assert sorted(family.meaning for family in operator.internal) == sorted(expected["internal"])
    assert operator.schema_files == expected["schema_files"]
    assert (checkpoint.settings[-1].provider, checkpoint.settings[-1].encoding) == (
        expected["provider"],
        expected["encoding"],
    )
    assert checkpoint.last_committed_batch == checkpoint.last_planned_batch == expected["last_batch"]
    assert checkpoint.problems == ()
    assert checkpoint.written_by == "Spark 4.2 or later"
    recorded = {version.encoding for variable in operator.variables for version in variable.versions}
    assert recorded == ({expected["encoding"]} if operator.schema_files and name != "join_v3" else {None})


def test_every_fixture_is_expected() -> None:
    assert {path.name for path in FIXTURES.iterdir()} == set(EXPECTED)


@pytest.mark.requirement("DBX-6")
def test_a_variables_history_has_batches_and_the_users_own_schemas() -> None:
    (operator,) = read("customer_totals").operators
    totals = next(variable for variable in operator.variables if variable.name == "totals")
    assert [(version.version, version.batch) for version in totals.versions] == [(1, 0), (2, 1)]
    assert columns(totals.versions[0].value_schema) == ["orders", "amount_cents", "last_status"]
    assert columns(totals.newest.key_schema) == ["customer_id"]
    by_status = next(variable for variable in operator.variables if variable.name == "by_status")
    assert columns(by_status.newest.key_schema) == ["customer_id"]
    assert columns(by_status.newest.map_key_schema or "{}") == ["status"]


@pytest.mark.requirement("DBX-5")
def test_limits_are_observed_as_spark_counts_them() -> None:
    observed = observe_schemas(read("customer_totals"))
    limits = {
        (seen.limit, seen.variable): (seen.used, seen.allowed) for seen in observed if isinstance(seen, StateLimit)
    }
    assert limits == {
        ("value_schemas", "by_status"): (1, 16),
        ("value_schemas", "last_orders"): (2, 16),
        ("value_schemas", "totals"): (2, 16),
        ("schema_files", None): (2, 128),
    }


def test_state_that_cannot_evolve_has_no_limit_on_evolutions() -> None:
    observed = observe_schemas(read("timers_unsaferow"))
    assert [seen.limit for seen in observed if isinstance(seen, StateLimit)] == ["schema_files"]
    assert {seen.encoding for seen in observed if isinstance(seen, StateSchemaVersion)} == {"unsaferow"}


def test_recorded_limits_win_over_sparks_defaults(tmp_path: Path) -> None:
    checkpoint = write_checkpoint(tmp_path / "c", [(0, v3(family("totals", struct_type(a="long"))))])
    offsets = checkpoint / "offsets" / "0"
    version, described, rest = offsets.read_text().split("\n")
    recorded = json.loads(described)
    recorded["conf"]["spark.sql.streaming.stateStore.valueStateSchemaEvolutionThreshold"] = "40"
    offsets.write_text("\n".join([version, json.dumps(recorded), rest]))
    limits = read_checkpoint(str(checkpoint), [tmp_path]).limits
    assert (limits.value_schemas, limits.schema_files) == (40, 128)


def test_rows_are_read_as_of_the_last_batch_and_as_of_the_one_before_an_evolution() -> None:
    reads = rows_to_read(read("customer_totals"))
    assert StateVariableRead(0, "totals", "value", 4) in reads
    assert StateVariableRead(0, "totals", "value", 0) in reads
    assert StateVariableRead(0, "by_status", "map", 0) not in reads
    assert {read.join_side for read in rows_to_read(read("join_rocksdb"))} == {"left", "right"}


@pytest.mark.requirement("DBX-2")
def test_variables_that_go_and_come_back(tmp_path: Path) -> None:
    kept, other = family("kept", struct_type(a="long")), family("other", struct_type(b="string"))
    files = [(0, v3(kept, other)), (3, v3(kept)), (7, v3(kept, family("other", struct_type(b="binary"), 0)))]
    (operator,) = read_checkpoint(str(write_checkpoint(tmp_path / "c", files)), [tmp_path]).operators
    by_name = {variable.name: variable for variable in operator.variables}
    assert [version.batch for version in by_name["kept"].versions] == [0]
    assert [version.batch for version in by_name["other"].versions] == [0, 7]
    assert by_name["other"].removed_at is None

    written = write_checkpoint(tmp_path / "d", files[:2], variables=["kept"])
    before = (written / "state/0/_metadata/v2/3").read_text()
    other_too = json.loads(before.split("\n")[1])
    listed = [{"stateName": "other", "stateVariableType": "ListState", "ttlEnabled": False}]
    other_too["operatorPropertiesJson"] = json.dumps({"stateVariables": listed})
    (written / "state/0/_metadata/v2/0").write_text(f"v2\n{json.dumps(other_too)}")
    (operator,) = read_checkpoint(str(written), [tmp_path]).operators
    assert {variable.name: variable.kind for variable in operator.variables} == {"kept": "value", "other": "list"}
    assert {variable.name: variable.removed_at for variable in operator.variables} == {"kept": None, "other": 3}


def test_files_are_ordered_by_batch_as_a_number_not_as_text(tmp_path: Path) -> None:
    files = [
        (batch, v3(family("totals", struct_type(**{f"f{batch}": "long"}), index)))
        for index, batch in enumerate((2, 10, 9))
    ]
    (operator,) = read_checkpoint(str(write_checkpoint(tmp_path / "c", files)), [tmp_path]).operators
    assert [version.batch for version in operator.variables[0].versions] == [2, 9, 10]


def test_a_moved_checkpoint_reads_the_same(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "customer_totals", tmp_path / "elsewhere")
    moved = read_checkpoint(f"file://{tmp_path}/elsewhere", [tmp_path])
    assert moved.problems == ()
    assert [variable.name for variable in moved.operators[0].variables] == ["by_status", "last_orders", "totals"]


def test_a_missing_schema_file_is_a_problem_that_hides_nothing_else(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "customer_totals", tmp_path / "c")
    (lost,) = (tmp_path / "c/state/0/_stateSchema/default").glob("1_*")
    lost.unlink()
    checkpoint = read_checkpoint(str(tmp_path / "c"), [tmp_path])
    assert checkpoint.problems == (f"operator 0: the schema file {lost.name} is missing",)
    assert len(checkpoint.operators[0].variables) == 3


def test_temporary_and_hidden_files_of_a_running_query_are_left_alone(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "customer_totals", tmp_path / "c")
    schemas = tmp_path / "c/state/0/_stateSchema/default"
    (schemas / ".2_abc.tmp").write_bytes(b"half")
    (schemas / "2_abc.tmp").write_bytes(b"half")
    (tmp_path / "c/offsets/.5.tmp").write_text("v1")
    assert read_checkpoint(str(tmp_path / "c"), [tmp_path]).operators[0].schema_files == 2


def test_reading_changes_nothing(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "customer_totals", tmp_path / "c")

    def state() -> list[tuple[str, int, bytes]]:
        paths = sorted((tmp_path / "c").rglob("*"))
        return [(str(p), p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"") for p in paths]

    before = state()
    read_checkpoint(str(tmp_path / "c"), [tmp_path])
    assert state() == before


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("metadata", "{}", 'no text "id"'),
        ("metadata", "not json", "invalid JSON"),
        ("offsets/4", "v9\n{}", "starts with 'v9'"),
        ("offsets/4", "v1", "invalid JSON"),
        ("offsets/4", "v1\n[]", "no JSON object"),
        ("state/0/_metadata/v2/1", "v2\n{}", "is incomplete operator metadata"),
        ("state/0/_metadata/v2/1", 'v2\n{"operatorInfo":3,"stateStoreInfo":[1]}', "is incomplete operator metadata"),
        ("state/0/_metadata/v2/1", "v2\n" + "[" * 100_000, "invalid JSON"),
    ],
)
def test_a_damaged_log_is_named_with_what_is_wrong(tmp_path: Path, file: str, content: str, words: str) -> None:
    shutil.copytree(FIXTURES / "customer_totals", tmp_path / "c")
    (tmp_path / "c" / file).write_text(content)
    with pytest.raises(InvalidCheckpoint) as caught:
        read_checkpoint(str(tmp_path / "c"), [tmp_path])
    assert caught.value.message.startswith(file)
    assert words in caught.value.message


HERE = Path(__file__).parent
CHECKPOINTS = HERE / "fixtures"
OLDER: list[dict[str, Any]] = yaml.safe_load((HERE / "older_forms.yaml").read_text())


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(CHECKPOINTS / "customer_totals", tmp_path / "c")
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
    assert "can evolve" in (operator.why_fixed or "")
    assert checkpoint.topics == ("clicks",)
    told = "operator 0 has no metadata: its kind is derived from the form of its state"
    assert checkpoint.problems == (() if "operator" in case else (told,))
    assert not any(each.limit == "value_schemas" for each in checkpoint.budgets)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("offsets/4", "v3\n{}\n", "starts with 'v3' instead of v1 or v2; a later Spark may have written it"),
        ("offsets/4", "", "is empty: it was only partly written, or is being written now"),
        ("state/0/_metadata/v2/1", "v7\n{}", "a later Spark may have written it"),
        ("state/0/_metadata/v2/1", "", "is empty"),
        ("state/0/_metadata/v3/0", "v3\n{}", "in an unknown format (v1 and v2 are known): a later Spark"),
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
        (["offsets"], "its query has not planned a batch yet, or the folder was copied only in part"),
        (["metadata"], "just starting, or it was copied only in part: the file metadata"),
        (["metadata", "offsets", "commits"], "found sources, state; give the folder that the query uses"),
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
    for number in range(MAX_PARTITIONS + 5):
        (copied / f"state/0/{number}").mkdir(exist_ok=True)
    problems = read_checkpoint(str(copied), [copied.parent]).problems
    assert "operator 0 has no schema file in the first 20 of its 25 partitions" in problems


def test_a_foreign_file_among_a_checkpoints_own_is_left_alone(copied: Path) -> None:
    for name in ("offsets/notes.txt", "commits/README", "state/backup", "state/0/_stateSchema/default/notes"):
        (copied / name).write_text("not Spark's")
    checkpoint = read_checkpoint(str(copied), [copied.parent])
    assert (checkpoint.last_committed_batch, len(checkpoint.operators)) == (4, 1)
    assert checkpoint.problems == ()

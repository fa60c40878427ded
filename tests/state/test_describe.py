"""The description of streaming queries: expressions without a session's ids, and the plans of the installed Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dashboard.runtime.parts import spark_connect
from registry.checkpoints import read_checkpoint
from schemadesk_spark.expressions import Columns, shorten
from schemadesk_spark.functions import parts_of
from tests.toolchains import require_tools

ROOT = Path(__file__).parents[2]
#: queries of the streams `s` and `w` (with a watermark), each with what its description has
QUERIES: dict[str, tuple[str, dict[str, Any]]] = {
    "aggregation": (
        "w.withColumn('d', F.col('v') * 2).where('w > 3').groupBy(F.window('t', '5 minutes'), 'k')"
        ".agg(F.sum('d').alias('total'), F.avg('w'))",
        {
            "name": "stateStoreSave",
            "keys": ["window(t, length 300000000, slide 300000000, start 0)", "k"],
            "values": [["sum((v * 2))", 1], ["avg(w)", 2]],
            "input": ["filter (isnotnull(w) AND (w > 3))", "filter isnotnull(t)"],
        },
    ),
    "aggregates of some rows": (
        "s.groupBy('k').agg(F.expr('sum(v) filter (where w > 3)'), F.expr('sum(v) filter (where w < 3)'), F.sum('v'))",
        {
            "name": "stateStoreSave",
            "values": [["sum(v) where (w > 3)", 1], ["sum(v) where (w < 3)", 1], ["sum(v)", 1]],
        },
    ),
    "session of some rows": (
        "w.groupBy(F.session_window('t', '5 minutes'), 'k').agg(F.expr('count(1) filter (where v = 1)'))",
        {"name": "sessionWindowStateStoreSaveExec", "values": [["count(1) where (v = 1)", 1]]},
    ),
    "session": (
        "w.groupBy(F.session_window('t', '5 minutes'), 'k').count()",
        {
            "name": "sessionWindowStateStoreSaveExec",
            "keys": ["k"],
            "values": [["count(1)", 1]],
            "properties": {"session": "session_window(t, 5 minutes)"},
        },
    ),
    "join": (
        "w.alias('a').join(w.alias('b'), F.expr('a.k = b.k AND a.t > b.t'), 'leftOuter')",
        {
            "name": "symmetricHashJoin",
            "keys": ["0.k = 1.k"],
            "properties": {"join": "LeftOuter", "condition": "(0.t > 1.t)"},
        },
    ),
    "join by expressions": (
        "w.alias('a').join(w.alias('b'), F.expr('lower(a.k) = upper(b.k)'))",
        {"name": "symmetricHashJoin", "keys": ["lower(0.k) = upper(1.k)"]},
    ),
    "long expression": (
        "s.groupBy('k').agg(F.max(F.array(*[F.col('v') + n for n in range(1, 31)])))",
        {"values": [[f"max(array({', '.join(f'(v + {n})' for n in range(1, 31))}))", 1]]},
    ),
    "static files": (
        "w.join(spark.read.schema('k STRING, z STRING').json(folder), 'k').groupBy('z').count()",
        {"name": "stateStoreSave", "keys": ["1.z"], "properties": {"static data": "file:FOLDER"}},
    ),
    "static rows": (
        "w.join(spark.createDataFrame([('a', 'b')], 'k STRING, z STRING'), 'k').groupBy('z').count()",
        {"properties": {"static data": "rows that aren't described"}},
    ),
    "dedup": ("s.dropDuplicates(['v', 'k'])", {"name": "dedupe", "keys": ["v", "k"], "values": []}),
    "limit": ("s.limit(3)", {"name": "globalLimit", "properties": {"limit": "3"}}),
    "in pandas": (
        "w.groupBy('k').applyInPandasWithState(f, 'k STRING', 'a INT, b STRING', 'update', 'NoTimeout')",
        {
            "name": "applyInPandasWithState",
            "keys": ["k"],
            "values": [["a", 1], ["b", 1]],
            "properties": {"timeout": "NoTimeout", "output": "Update"},
        },
    ),
}
PROGRAM = """
import json, sys
from pyspark.sql import SparkSession, functions as F
from schemadesk_spark import describe
folder, queries, server = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
builder = (SparkSession.builder.remote(server) if server else
           SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false"))
spark = builder.getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "1")
spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
s = spark.readStream.schema("k STRING, v INT, w INT, t TIMESTAMP").json(folder)
w = s.withWatermark("t", "1 minute")
def f(key, frames, state):
    yield from ()
print("\\n" + json.dumps({name: describe(eval(query), output_mode="update") for name, query in queries.items()}))
"""


class Attribute:
    """What an expression needs of Catalyst's attribute."""

    def __init__(self, number: int, name: str) -> None:
        self._number, self._name = number, name

    def exprId(self) -> Attribute:  # noqa: N802 - Catalyst's name
        return self

    def id(self) -> int:
        return self._number

    def name(self) -> str:
        return self._name


@pytest.mark.requirement("DBX-4")
def test_an_expression_has_no_ids_and_no_delays() -> None:
    columns = Columns()
    columns.define(Attribute(1, "v"), "v")
    columns.define(Attribute(2, "t"), "t")
    columns.define(Attribute(3, "twice"), "(v * 2)")
    assert columns.expand("(sum(twice#3L) > t#2-T60000ms)") == "(sum((v * 2)) > t)"
    assert columns.expand("concat(v#1, a#12)") == "concat(v, a)"


def test_what_is_no_window_stays() -> None:
    assert shorten("named_struct(start, 1)") == "named_struct(start, 1)"


def test_a_window_of_windows_is_a_window_of_their_last_moments() -> None:
    inner = "window(t, length 300000000, slide 300000000, start 0)"
    conversion = "precisetimestampconversion"
    last = f"{conversion}(({conversion}({inner}.end, TimestampType, LongType) - 1), LongType, TimestampType)"
    moment = f"{conversion}({last}, TimestampType, LongType)"
    start = f"(({moment} - (({moment} - 0) % 1800000000)) - 0)"
    text = (
        f"named_struct(start, knownnullable({conversion}({start}, LongType, TimestampType)), "
        f"end, knownnullable({conversion}(({start} + 1800000000), LongType, TimestampType)))"
    )
    assert shorten(text) == f"window({inner}.last, length 1800000000, slide 1800000000, start 0)"


def test_a_digest_of_a_function_depends_on_what_it_does_alone() -> None:
    def times(factor: int) -> Any:
        return lambda value: value * factor

    def plus(factor: int) -> Any:
        return lambda value: value + factor

    def calls(function: Any) -> Any:
        def call(value: int) -> Any:
            return function(value)

        return call

    digest = "\n".join
    assert digest(parts_of(times(2))) == digest(parts_of(times(2)))
    for other in (times(3), plus(2)):
        assert digest(parts_of(times(2))) != digest(parts_of(other))
        assert digest(parts_of(calls(times(2)))) != digest(parts_of(calls(other)))


def descriptions(folder: Path, names: Sequence[str], server: str = "") -> dict[str, Any]:
    """What a process of its own describes; with a server, as its client of Spark Connect."""
    asked = json.dumps({name: QUERIES[name][0] for name in names})
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), asked, server],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    described: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return described


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.requirement("DBX-4")
def test_spark_connect_gives_the_same_description(tmp_path: Path) -> None:
    require_tools("plans of Spark", ("java",))
    names = ("aggregation", "join", "in pandas")
    (tmp_path / "server").mkdir()
    with spark_connect(tmp_path / "server") as server:
        remote = descriptions(tmp_path, names, server)
    classic = descriptions(tmp_path, names)
    for name in names:
        settings = remote[name].pop("settings")
        assert settings["spark.sql.session.timeZone"] == "Asia/Tokyo"
        assert settings.keys() == classic[name].pop("settings").keys()
        assert remote[name] == classic[name]


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.requirement("DBX-4")
def test_a_description_has_what_the_plan_of_spark_has(tmp_path: Path) -> None:
    require_tools("plans of Spark", ("java",))
    described = descriptions(tmp_path, list(QUERIES))
    for name, (_, expected) in QUERIES.items():
        (operator,) = described[name]["operators"]
        found = {
            **operator,
            "keys": [key["expression"] for key in operator["keys"]],
            "values": [[value["expression"], value["fields"]] for value in operator["values"]],
            "properties": {key: value for key, value in operator["properties"].items() if key != "functions"},
        }
        assert bool(operator["properties"].get("functions")) is (name == "in pandas")
        assert (
            json.loads(json.dumps({key: found[key] for key in expected}).replace(str(tmp_path), "FOLDER")) == expected
        )
        assert len(described[name]["sources"]) == (2 if "join" in name else 1)
    (source,) = described["dedup"]["sources"]
    assert source == {"provider": "json", "options": {}, "path": str(tmp_path)}
    stored = read_checkpoint(str(FIXTURE), [FIXTURE]).operators[0].variables[0].newest
    store = described["in pandas"]["operators"][0]["stores"]["default"]
    assert json.loads(stored.value_schema)["fields"][0]["name"] == store["value"]["fields"][0]["name"]


FIXTURE = ROOT / "tests" / "checkpoints" / "fixtures" / "pandas_state"

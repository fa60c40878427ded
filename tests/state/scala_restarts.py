"""Restart real queries of Scala applications with changed case classes, and record what Spark did.

    python -m tests.state.scala_restarts FOLDER [text in a row's name …]

A row of `scala_restarts.yaml` becomes an object of Scala a step, compiled with the compiler of PySpark's own jars, and
all rows are done in one Spark process. The record, `scala_recorded.json`, has the date, Spark's version and a row each:
the error class that the last start stopped with, what its variables read as before anything new was written, the
schemas that Spark's encoders make of them, and the checkpoint as it was before that start, without its rows. The test
beside it holds what the check says of that checkpoint against it. With texts only those rows are done and put into the
record. Needs Java 17; one process, up to 1.5 GB.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyspark
import yaml
from pyspark.sql import SparkSession

from tests.scala_classes import compiled
from tests.state.restarts import BATCH_TIMEOUT, PREFIX, error_class, session_in, shortened

HERE: Final = Path(__file__).parent
ROWS: Final[list[dict[str, Any]]] = yaml.safe_load((HERE / "scala_restarts.yaml").read_text())
RECORD: Final = HERE / "scala_recorded.json"
_STATES: Final = {"value": "ValueState[{type}]", "list": "ListState[{type}]", "map": "MapState[{key}, {type}]"}
_READS: Final = {
    "value": "if ({name}.exists()) {name}.get() else null",
    "list": "if ({name}.exists()) {name}.get().toList else null",
    "map": "if ({name}.exists()) {name}.iterator().map { case (k, v) => Seq[Any](k, v) }.toList else null",
}
_WRITES: Final = {
    "value": "{name}.update({row})",
    "list": "{name}.put(Array({row}))",
    "map": "{name}.updateValue({at}, {row})",
}
_PRIMITIVES: Final = {"Int": "scalaInt", "Long": "scalaLong", "Double": "scalaDouble", "Boolean": "scalaBoolean"}


def source_of(step: dict[str, Any], name: str) -> str:
    """A step as an object of Scala with its case classes, its application, and what starts it."""
    classes = "\n".join(f"  case class {each}({fields})" for each, fields in step.get("classes", {}).items())
    variables = {name: {"kind": "value", **each} for name, each in step["variables"].items()}
    fields, declared, read, written, schemas = [], [], [], [], []
    for variable, each in variables.items():
        kind = each["kind"]
        encoders = [_encoder(each[part]) for part in ("key", "type") if part in each]
        given = ", ".join([f'"{variable}"', *encoders, "TTLConfig.NONE"])
        fields.append(f"    @transient private var {variable}: {_filled(_STATES[kind], each)} = _")
        declared.append(f"      {variable} = getHandle.get{kind.capitalize()}State({given})")
        read.append(f'"{variable}" -> {{ {_filled(_READS[kind], {"name": variable})} }}')
        if "row" in each:
            written.append(f"      {_filled(_WRITES[kind], {**each, 'name': variable})}")
        schemas += [f'"{part} {variable}" -> {_encoder(each[part])}.schema' for part in ("key", "type") if part in each]
    return "\n".join(
        [
            f"object {name} {{",
            classes,
            "  class App(report: String) extends Application(report) {",
            *fields,
            "    protected def declare(): Unit = {",
            *declared,
            "    }",
            f"    protected def read(): Seq[(String, Any)] = Seq({', '.join(read)})",
            "    protected def write(): Unit = {",
            *written,
            "    }",
            "  }",
            "  def run(session: SparkSession, report: String, checkpoint: String, seconds: Int): Boolean =",
            "    Running.run(session, new App(report), checkpoint, seconds)",
            f"  def schemas(): java.util.Map[String, String] = Running.schemas({', '.join(schemas)})",
            "}",
        ]
    )


def _filled(template: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template


def _encoder(scala_type: str) -> str:
    """What Spark encodes a type with; whatever is no primitive here is a case class of the step."""
    primitive = _PRIMITIVES.get(scala_type)
    return f"Encoders.{primitive}" if primitive else f"Encoders.product[{scala_type}]"


def object_of(row: int, step: int) -> str:
    """The name of a step's object."""
    return f"Row{row}Step{step}"


def generated(numbers: list[int]) -> str:
    """The Scala source of all steps of these rows."""
    steps = [
        source_of(step, object_of(row, number)) for row in numbers for number, step in enumerate(ROWS[row]["steps"])
    ]
    imports = (
        "org.apache.spark.sql.{Encoders, SparkSession}",
        "org.apache.spark.sql.streaming.{ListState, MapState, TTLConfig, ValueState}",
    )
    return "\n".join(["package schemadesk.restarts", *(f"import {each}" for each in imports), *steps, ""])


def started(folder: Path, numbers: list[int]) -> SparkSession:
    """A session with the compiled rows on its class path."""
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "Rows.scala"
    source.write_text(generated(numbers))
    classes = compiled([HERE / "scala" / "Running.scala", source], folder / "classes")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-memory 1200m --driver-class-path {classes} pyspark-shell"
    return session_in(folder)


def run_row(session: SparkSession, number: int, folder: Path) -> dict[str, Any]:
    """All steps of a row; gives what the last one did, and the checkpoint before it."""
    row = ROWS[number]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    session.conf.set(f"{PREFIX}encodingFormat", row.get("encoding", "avro"))
    *earlier, _ = row["steps"]
    before: dict[str, str] = {}
    for step in range(len(row["steps"])):
        (folder / "report").unlink(missing_ok=True)
        if step == len(earlier):
            before = described(folder / "checkpoint")
        made = getattr(session._jvm.schemadesk.restarts, object_of(number, step))
        error = text = ""
        try:
            if not made.run(session._jsparkSession, str(folder / "report"), str(folder / "checkpoint"), BATCH_TIMEOUT):
                error = "TIMEOUT"
        except Exception as problem:  # noqa: BLE001 - whatever Spark throws is what is asked for
            error, text = error_class(str(problem)), shortened(str(problem))
        if error and step < len(earlier):
            raise RuntimeError(f"{row['name']}: an earlier step stopped: {error} {text}")
    lines = (folder / "report").read_text().splitlines() if (folder / "report").exists() else []
    reads = {each["variable"]: each["read"] for each in map(json.loads, lines)}
    schemas = {name: json.loads(schema) for name, schema in made.schemas().items()}
    if error:
        print(f"{row['name']}: {text}")
    return {"name": row["name"], "error": error, "reads": reads, "schemas": schemas, "before": before}


def described(checkpoint: Path) -> dict[str, str]:
    """The files of a checkpoint that hold no rows, as text where they are text, else in Base64."""
    found = {}
    for path in sorted(checkpoint.rglob("*")):
        relative = path.relative_to(checkpoint)
        if relative.parts[0] == "state" and not {"_metadata", "_stateSchema"} & set(relative.parts):
            continue
        if path.is_file() and path.suffix != ".crc":
            is_schema = "_stateSchema" in relative.parts
            content = path.read_bytes()
            found[str(relative)] = base64.b64encode(content).decode() if is_schema else content.decode()
    return found


def main(folder: Path, wanted: list[str]) -> None:
    """Run the rows whose names hold one of the texts, all without texts, and write the record."""
    numbers = [at for at, row in enumerate(ROWS) if not wanted or any(text in row["name"] for text in wanted)]
    known = json.loads(RECORD.read_text())["rows"] if RECORD.exists() and wanted else []
    rows = {each["name"]: each for each in known}
    session = started(folder.resolve(), numbers)
    for number in numbers:
        answer = run_row(session, number, folder.resolve() / str(number))
        rows[answer["name"]] = answer
        write(rows)
        print(json.dumps({key: answer[key] for key in ("name", "error", "reads")}), flush=True)
    session.stop()


def write(rows: dict[str, dict[str, Any]]) -> None:
    """Write the record."""
    head = json.dumps({"date": datetime.now(UTC).strftime("%Y-%m-%d"), "spark": pyspark.__version__})
    lines = ",\n".join(json.dumps(rows[row["name"]]) for row in ROWS if row["name"] in rows)
    RECORD.write_text(f'{head[:-1]}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

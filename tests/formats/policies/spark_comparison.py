"""Compares the policy `spark_state` with Spark's own classes, on random state schemas and on all pairs of plain types.

    python -m tests.formats.policies.spark_comparison [restarts] [first seed]

Needs `java` (17 or later) on the PATH; Spark's jars are those of the installed pyspark, which is pinned. Three things
are asked: what becomes of a restart (StateSchemaCompatibilityChecker on real schema files: its error class, or the ids
it gives), the Avro form of every schema (SchemaConverters), and for each pair of plain types what an old row reads as
(AvroSerializer, Avro's decoder, AvroDeserializer). Prints how many agree and the first that don't; exits with 1 if any
doesn't.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

from registry.formats.policies.spark_state import (
    PlannedVariable,
    RestartSettings,
    StoredVariable,
    StoredVersion,
    parse_struct,
    plan_restart,
    to_avro,
    why_no_avro,
)
from tests.formats.policies.random_structs import a_restart
from tests.java_words import SHORT_LIVED

PLAIN: Final = (
    *("boolean", "byte", "short", "integer", "long", "float", "double", "string", "binary", "date"),
    *("timestamp", "timestamp_ntz", "decimal(10,2)", "decimal(11,2)", "decimal(11,3)", "decimal(20,2)"),
)
# What reading an old row stops with, by the policy's word.
READ_ERRORS: Final = {"refused": "AvroTypeException", "accepted but fails later": "IncompatibleSchemaException"}


def ask_spark(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Spark's answers, in order."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars" / "*"
    oracle = Path(__file__).with_name("SparkOracle.java")
    with tempfile.TemporaryDirectory(prefix="spark-oracle-") as folder:
        done = subprocess.run(
            ["java", *SHORT_LIVED, "-cp", str(jars), str(oracle), folder],
            input="\n".join(map(json.dumps, questions)),
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
    if done.returncode:
        raise SystemExit(done.stderr[-4000:])
    return [json.loads(line) for line in done.stdout.splitlines()]


def ask_policy(question: dict[str, Any]) -> dict[str, Any]:
    """The policy's answer in the shape of Spark's."""
    if "avro" in question:
        struct = parse_struct(question["avro"])
        reason = why_no_avro(struct)
        return {"error": reason.error} if reason else {"avro": shortened(to_avro(struct), set())}
    if "read" in question:
        return _read(*question["read"])
    plan = plan_restart(
        stored_variables(question["stored"]),
        [PlannedVariable(each["name"], each["key"], each["value"]) for each in question["planned"]],
        RestartSettings(question["evolution"]),
        len(question["stored"]),
    )
    if plan.error:
        return {"error": plan.error}
    is_written = bool(plan.files and plan.files.after > plan.files.before)
    ids = {each.name: each.schema_id for each in plan.variables if each.status != "removed"}
    return {"changed": True, "ids": ids} if is_written else {"changed": False}


def _read(stored: dict[str, Any], planned: dict[str, Any]) -> dict[str, Any]:
    key = {"type": "struct", "fields": []}
    plan = plan_restart(
        [StoredVariable("v", (StoredVersion(0, key, stored),))],
        [PlannedVariable("v", key, planned)],
        RestartSettings(has_evolution=True),
    )
    (variable,) = plan.variables
    if any(each.rule == "DECIMAL_NARROWED" for each in variable.changes):
        return {"status": "evolves"}  # 1.5, the value that is asked for, has few digits
    error = READ_ERRORS.get(variable.status)
    return {"error": error} if error else {"status": variable.status}


def stored_variables(files: list[list[dict[str, Any]]]) -> list[StoredVariable]:
    """The variables of schema files, as the policy takes them."""
    versions: dict[str, list[StoredVersion]] = {}
    for file in files:
        for each in file:
            versions.setdefault(each["name"], []).append(StoredVersion(each["id"], each["key"], each["value"]))
    newest = {each["name"] for each in files[-1]} if files else set()
    return [StoredVariable(name, tuple(listed), name in newest) for name, listed in versions.items()]


def shortened(value: Any, names: set[str]) -> Any:
    """An Avro schema as Java writes it: once a name was defined it stands alone, even where another type has it."""
    if isinstance(value, list):
        return [shortened(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") in ("record", "fixed"):
        full_name = ".".join(filter(None, (value.get("namespace"), value["name"])))
        if full_name in names:
            return full_name
        names.add(full_name)
    return {key: shortened(each, names) for key, each in value.items()}


def agreement(question: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """In a few words how far both agree; capitals where they don't."""
    kind = "avro" if "avro" in question else "read" if "read" in question else "restart"
    if "error" in ours or "error" in theirs:
        same = ours.get("error") == theirs.get("error")
        return f"same {kind}: {ours['error']}" if same else f"OTHER {kind.upper()}: ERROR"
    if kind == "read":
        return _agreement_of_read(question, ours, theirs)
    if kind == "avro":
        theirs = {"avro": json.loads(theirs["avro"])}
    return f"same {kind}" if ours == theirs else f"OTHER {kind.upper()}"


def _agreement_of_read(question: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """A value that comes back as another number must be one of the policy's losses: 1.5 as a decimal of another scale."""
    before, after = (struct["fields"][0]["type"] for struct in question["read"])
    if before.startswith("decimal"):
        is_lost = ours["status"] == "accepted but loses data"
        is_rescaled = before.partition(",")[2] != after.partition(",")[2]
        if (float(theirs["read"]) != 1.5) is not (is_lost and is_rescaled):
            return "OTHER READ"
    return f"same read: {ours['status']}"


def questions_of(restarts: int, seed: int) -> list[dict[str, Any]]:
    """Restarts, the Avro form of each value in them, and all pairs of plain types."""
    asked: list[dict[str, Any]] = []
    for number in range(seed, seed + restarts):
        restart = a_restart(number)
        asked += [restart, *({"avro": each["value"]} for each in restart["planned"])]
    asked += [{"read": [_one(before), _one(after)]} for before in PLAIN for after in PLAIN]
    return asked


def _one(kind: str) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": "a", "type": kind, "nullable": True, "metadata": {}}]}


def main(restarts: int, seed: int) -> int:
    """Compares and prints; gives the exit code."""
    questions = questions_of(restarts, seed)
    counts: Counter[str] = Counter()
    for question, theirs in zip(questions, ask_spark(questions), strict=True):
        ours = ask_policy(question)
        word = agreement(question, ours, theirs)
        counts[word] += 1
        if word.isupper() and counts[word] <= int(os.environ.get("SHOW", "3")):
            print(word, json.dumps(question), "policy", ours, "spark ", theirs, sep="\n")
    for word, count in sorted(counts.items()):
        print(f"{count:7,}  {word}")
    return 1 if any(word.isupper() for word in counts) else 0


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*(arguments + [300, 1][len(arguments) :])))

"""The plans of a streaming query: the physical one that `explain` makes, and the analysed one of a Spark Connect client.

`explain` checks that the query was started, which isn't wanted here. Spark 4.2 has a method without the check. Earlier
versions make the same `IncrementalExecution` in the middle of `explain`, so it is made here from its class.

A client of Spark Connect has no plan with types: a local Spark analyses the plan again. It runs in a process of its
own, because a process has either Spark Connect or classic sessions. It needs the whole `pyspark` with Java, in the
server's version, and the jars of the sources (`PYSPARK_SUBMIT_ARGS`).
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError

_STREAMING: Final = "org.apache.spark.sql.execution.streaming."
_PACKAGES: Final = (f"{_STREAMING}runtime.", f"{_STREAMING}checkpointing.", _STREAMING)
#: what makes a process a client of Spark Connect
_REMOTE: Final = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE")


def physical_plan(session: Any, logical: Any) -> Any:
    """Return the physical plan of an analysed streaming plan. Nothing is run."""
    execution = executed(session, logical)
    has_method = any(method.getName() == "queryExecutionForExplain" for method in execution.getClass().getMethods())
    streaming = execution.queryExecutionForExplain() if has_method else _incremental(session, logical)
    return streaming.executedPlan()


def executed(session: Any, logical: Any) -> Any:
    """Return the QueryExecution of a logical plan. Nothing is run."""
    mode = _module(session, "org.apache.spark.sql.execution.CommandExecutionMode").SKIP()
    return session._jsparkSession.sessionState().executePlan(logical, mode)


def _class(session: Any, name: str) -> Any:
    loader = session._jvm.java.lang.Thread.currentThread().getContextClassLoader()
    return session._jvm.java.lang.Class.forName(name, True, loader)


def _found(session: Any, name: str) -> str:
    """Return the full name of a class of streaming queries, in the packages of Spark 4.1 or else of 4.0."""
    for package in _PACKAGES:
        try:
            _class(session, package + name)
        except Py4JJavaError:
            continue
        return package + name
    raise ValueError(f"this version of Spark has no {name}")


def _module(session: Any, name: str) -> Any:
    """Return a Scala object."""
    return _class(session, f"{name}$").getField("MODULE$").get(None)


def _incremental(session: Any, logical: Any) -> Any:
    """Return an IncrementalExecution of batch 0, by the types of its constructor's parameters."""
    java = session._jvm
    values = {
        "SparkSession": session._jsparkSession,
        "LogicalPlan": logical,
        "OutputMode": java.org.apache.spark.sql.streaming.OutputMode.Append(),
        "String": "<unknown>",
        "UUID": java.java.util.UUID.randomUUID(),
        "long": 0,
        "Option": java.scala.Option.empty(),
        "OffsetSeqMetadata": _module(session, _found(session, "OffsetSeqMetadata")).apply('{"batchWatermarkMs":0}'),
        "WatermarkPropagator": _module(session, _found(session, "WatermarkPropagator")).noop(),
        "boolean": False,
    }
    name = _found(session, "IncrementalExecution")
    constructor = _class(session, name).getConstructors()[0]
    types = [kind.getSimpleName() for kind in constructor.getParameterTypes()]
    arguments = session._sc._gateway.new_array(java.java.lang.Object, len(types))
    defaults = {method.getName(): method for method in _class(session, f"{name}$").getMethods()}
    for position, kind in enumerate(types):
        default = defaults.get(f"$lessinit$greater$default${position + 1}")
        arguments[position] = default.invoke(_module(session, name), None) if default else values[kind]
    return constructor.newInstance(arguments)


def describe_remote(frame: Any, settings: Mapping[str, str], start: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a DataFrame of Spark Connect, with the session's `settings`. Raises ValueError."""
    session = frame.sparkSession
    request = {
        "plan": base64.b64encode(frame._plan.to_proto(session.client).root.SerializeToString()).decode(),
        "spark": session.version,
        "session": dict(settings),
        "start": dict(start),
    }
    folders = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))
    environment = {name: value for name, value in os.environ.items() if name not in _REMOTE}
    done = subprocess.run(
        [sys.executable, "-m", "schemadesk_spark.planning"],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
        env={**environment, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ValueError(f"a local Spark can't analyse the plan of this Spark Connect DataFrame: {reason[:1000]}")
    described: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return described


def _analysed(session: Any, plan: bytes) -> Any:
    """Return a plan of Spark Connect as the server's planner makes it, analysed."""
    relation = session._jvm.org.apache.spark.connect.proto.Relation.parseFrom(plan)
    holder = session._jvm.org.apache.spark.sql.connect.service.SessionHolder("describe", "", session._jsparkSession)
    none = session._jvm.scala.Option.empty()
    planner = session._jvm.org.apache.spark.sql.connect.planner.SparkConnectPlanner(holder, none)
    return executed(session, planner.transformRelation(relation)).analyzed()


def main() -> None:
    """Describe the plan on stdin, in a classic session."""
    import pyspark
    from pyspark.sql import SparkSession

    from schemadesk_spark.describe import described

    request = json.load(sys.stdin)
    if pyspark.__version__ != request["spark"]:
        sys.exit(f"the server has Spark {request['spark']}, and this is {pyspark.__version__}")
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for name, value in {**request["session"], "spark.api.mode": "classic"}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    logical = _analysed(session, base64.b64decode(request["plan"]))
    sys.stdout.write("\n" + json.dumps(described(session, logical, **request["start"])))


if __name__ == "__main__":
    main()

"""The analysed plan of a Spark Connect DataFrame, whose client has no types: a local Spark analyses the plan again.

That Spark runs in a process of its own, because a process has either Spark Connect or classic sessions. It needs the
whole `pyspark` with Java, in the server's version, and the jars of the sources (`PYSPARK_SUBMIT_ARGS`).
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

#: what makes a process a client of Spark Connect
_REMOTE: Final = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "SPARK_API_MODE")
_SERVER: Final = "org.apache.spark.sql.connect."


def describe_remote(frame: Any, known: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a DataFrame of Spark Connect, with the session's `known` settings. Raises ValueError."""
    session = frame.sparkSession
    request = {
        "plan": base64.b64encode(frame._plan.to_proto(session.client).root.SerializeToString()).decode(),
        "spark": session.version,
        "session": dict(known),
        "given": dict(given),
    }
    folders = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))
    kept = {name: value for name, value in os.environ.items() if name not in _REMOTE}
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        check=False,
        env={**kept, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ValueError(f"a local Spark can't analyse the plan of this Spark Connect DataFrame: {reason[:1000]}")
    described: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return described


def _analysed(session: Any, plan: bytes) -> Any:
    """Return a plan of Spark Connect as the server's planner makes it, analysed."""
    from schemadesk_spark.planning import executed

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
    sys.stdout.write("\n" + json.dumps(described(session, logical, **request["given"])))


if __name__ == "__main__":
    main()

"""The physical plan that Spark's `explain` makes of a streaming query, without its check that the query was started.

Spark 4.2 has a method for it. Earlier versions make the same `IncrementalExecution` in the middle of
`explain`, so it is made here from its class.
"""

from __future__ import annotations

from typing import Any, Final

from py4j.protocol import Py4JJavaError

_STREAMING: Final = "org.apache.spark.sql.execution.streaming."
_PACKAGES: Final = (f"{_STREAMING}runtime.", f"{_STREAMING}checkpointing.", _STREAMING)


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

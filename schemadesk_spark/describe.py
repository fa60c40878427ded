"""The description of a streaming query: JSON values with its stateful operators, sources, sink and settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from schemadesk_spark.clock import without_clock
from schemadesk_spark.expressions import items
from schemadesk_spark.plan import Plan, children, name_of, walk
from schemadesk_spark.planning import describe_remote, physical_plan

#: the version of the document's form
FORMAT: Final = 1
PREFIX: Final = "spark.sql.streaming."
#: the settings that decide what a restart does
SETTINGS: Final = (
    *(
        f"{PREFIX}stateStore.{name}"
        for name in (
            "providerClass",
            "encodingFormat",
            "checkpointFormatVersion",
            "stateSchemaCheck",
            "valueStateSchemaEvolutionThreshold",
            "maxNumStateSchemaFiles",
        )
    ),
    f"{PREFIX}aggregation.stateFormatVersion",
    f"{PREFIX}join.stateFormatVersion",
    f"{PREFIX}flatMapGroupsWithState.stateFormatVersion",
    f"{PREFIX}multipleWatermarkPolicy",
    "spark.sql.shuffle.partitions",
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.caseSensitive",
)
#: the options of sources that are described; never credentials
OPTIONS: Final = (
    *("path", "subscribe", "subscribepattern", "assign", "startingoffsets", "failondataloss"),
    *("pathglobfilter", "recursivefilelookup", "modifiedafter", "modifiedbefore", "filenameonly", "latestfirst"),
    *("mode", "header", "sep", "delimiter", "multiline", "encoding", "nullvalue", "dateformat", "timestampformat"),
    *("timezone", "locale", "charset", "linesep", "quote", "escape", "comment", "wholetext", "rowtag", "emptyvalue"),
)
#: the options of a sink that are described
SINK_OPTIONS: Final = ("asyncProgressTrackingEnabled",)
_MAX_FIELDS: Final = "spark.sql.debug.maxToStringFields"
_KAFKA_WAIT: Final = 15_000  # milliseconds


def describe(
    query: Any,
    *,
    output_mode: str | None = None,
    settings: Mapping[str, Any] | None = None,
    sink: str | None = None,
    options: Mapping[str, Any] | None = None,
    trigger: Mapping[str, Any] | None = None,
    topic_ids: bool = False,
) -> dict[str, Any]:
    """Return the description of a streaming DataFrame or of a running StreamingQuery; reads no data, starts nothing.

    `settings` are those of the query's start that the session doesn't have yet; `options` those of its sink, and
    `trigger` what the writer's `trigger` is given. A query knows its output mode and its sink; for a DataFrame, give
    them here. With `topic_ids`, Kafka is asked for the ids of the topics: a topic that is deleted and created again has
    another. A DataFrame of Spark Connect is analysed by a local Spark. Raises ValueError for anything else.
    """
    start: dict[str, Any] = {
        "output_mode": output_mode,
        "sink": sink,
        "settings": {name: str(value) for name, value in (settings or {}).items()},
        "options": {name: str(value) for name, value in (options or {}).items() if name in SINK_OPTIONS},
        "trigger": next(iter(trigger or {}), None),
        "topic_ids": topic_ids,
    }
    own = getattr(query, "__dict__", {})  # a DataFrame also has its columns as attributes
    if "_jsq" in own:
        return _of_running(query, start)
    if "_jdf" not in own and "_plan" not in own:
        raise ValueError(
            "describe needs a DataFrame or a StreamingQuery; with Spark Connect, describe the DataFrame before its start"
        )
    if not query.isStreaming:
        raise ValueError("the DataFrame isn't streaming: it has no source that was read with readStream")
    if "_jdf" in own:
        return described(query.sparkSession, query._jdf.queryExecution().analyzed(), **start)
    return describe_remote(query, _settings(query.sparkSession), start)


def _of_running(query: Any, start: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a StreamingQuery, with Spark's ids of it."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    stream = query._jsq.streamingQuery()
    mode = start["output_mode"] or stream.outputMode().toString()
    sink = start["sink"] or _sink(stream.sink().toString())
    values = described(session, stream.analyzedPlan(), **{**start, "output_mode": mode, "sink": sink})
    return {**values, "query_id": str(query.id), "run_id": str(query.runId)}


def described(
    session: Any,
    logical: Any,
    *,
    output_mode: str | None,
    sink: str | None,
    settings: Mapping[str, str],
    options: Mapping[str, str],
    trigger: str | None,
    topic_ids: bool,
) -> dict[str, Any]:
    """Return the description of an analysed plan of a classic session."""
    return {
        "schemadesk_spark": FORMAT,
        "spark": session.version,
        "output_mode": output_mode.capitalize() if output_mode else None,
        "operators": _operators(session, logical),
        "watermarks": list(_watermarks(logical)),
        "sources": list(_sources(session if topic_ids else None, logical)),
        "sink": sink,
        "sink_options": dict(options),
        "columns": str(logical.schema().toDDL()),
        "trigger": trigger,
        "refused": _refused(session, logical, output_mode, is_continuous=trigger == "continuous"),
        "settings": {**_settings(session), **settings},
    }


def _operators(session: Any, logical: Any) -> list[dict[str, Any]]:
    """Return the stateful operators, with their expressions in full: Spark leaves out arguments after the 25th."""
    length = session.conf.get(_MAX_FIELDS)
    session.conf.set(_MAX_FIELDS, str(2**31 - 1))
    try:
        described: list[dict[str, Any]] = without_clock(
            session, logical, lambda: Plan(session, physical_plan(session, logical)).operators()
        )
        return described
    finally:
        session.conf.set(_MAX_FIELDS, length)


def _settings(session: Any) -> dict[str, str]:
    """Return the described settings, with their defaults, that this version of Spark has."""
    values = {name: _setting(session, name) for name in SETTINGS}
    return {name: value for name, value in values.items() if value is not None}


def _setting(session: Any, name: str) -> str | None:
    """Return a setting, or its default; None if this version of Spark doesn't have it."""
    try:
        return str(session.conf.get(name))
    except PySparkException:
        return None


def _sink(text: str) -> str:
    """Return a sink's text; its class alone if it has no text of its own."""
    name, sign, _ = text.partition("@")
    return name.rpartition(".")[2].rstrip("$") if sign else text


def _watermarks(logical: Any) -> Iterator[dict[str, str]]:
    for node in walk(logical):
        if name_of(node) == "EventTimeWatermark":
            yield {"column": node.eventTime().name(), "delay": node.delay().toString()}


def _refused(session: Any, logical: Any, output_mode: str | None, *, is_continuous: bool) -> str | None:
    """Return why Spark doesn't start such a query with this output mode, whatever its checkpoint; None if it does."""
    if not output_mode:
        return None
    mode = getattr(session._jvm.org.apache.spark.sql.streaming.OutputMode, output_mode.capitalize())()
    checker = session._jvm.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    try:
        checker.checkForStreaming(logical, mode)
        if is_continuous:
            checker.checkForContinuous(logical, mode)
    except PySparkException as error:
        return str(error).partition("\n")[0]
    return None


def _sources(session: Any, logical: Any) -> Iterator[dict[str, Any]]:
    """Yield the streaming sources in the order of their numbers in a checkpoint."""
    seen = set()
    for node in walk(logical):
        if children(node) or not name_of(node).startswith("StreamingRelation"):
            continue
        columns = node.output().toString()  # with their ids: the same stream twice has them twice
        if columns in seen:
            continue
        seen.add(columns)
        if name_of(node) == "StreamingRelation":
            source = node.dataSource()
            yield _source(source.className(), _options(source.options()), list(items(source.paths())))
        else:
            described = _source(node.sourceName(), _options(node.extraOptions()), [])
            ids = _topic_ids(session, node.extraOptions()) if session and described["provider"] == "kafka" else None
            yield {**described, **({"topic_ids": ids} if ids is not None else {})}


def _options(options: Any) -> dict[str, str]:
    """Return the described options of a Scala or a Java map, with their names in lower case."""
    if hasattr(options, "toSeq") and name_of(options) != "CaseInsensitiveStringMap":
        values = {str(pair._1()).lower(): str(pair._2()) for pair in items(options.toSeq())}
    else:
        values = {name: options.get(name) for name in OPTIONS}
    return {name: values[name] for name in OPTIONS if values.get(name)}


def _source(provider: str, options: dict[str, str], paths: list[str]) -> dict[str, Any]:
    path = options.pop("path", "") or (paths[0] if paths else "")
    topics = options.get("subscribe", "")
    described: dict[str, Any] = {"provider": provider.rpartition(".")[2], "options": options}
    if path:
        described["path"] = path if "://" in path or path.startswith("file:") else str(Path(path).absolute())
    if topics:
        described["topics"] = sorted(topic.strip() for topic in topics.split(","))
    return described


def _topic_ids(session: Any, options: Any) -> dict[str, str] | None:
    """Return the ids of the topics that a source reads now, by name; None without an answer."""
    java = session._jvm
    settings = java.java.util.HashMap()
    for name in options.keySet().toArray():
        if name.lower().startswith("kafka."):
            settings.put(name[len("kafka.") :], options.get(name))
    for name in ("default.api.timeout.ms", "request.timeout.ms"):
        settings.put(name, str(_KAFKA_WAIT))
    try:
        client = java.org.apache.kafka.clients.admin.Admin.create(settings)
    except (Py4JError, PySparkException, TypeError):
        return None
    try:
        names = client.listTopics().names().get()
        read = [name for name in names.toArray() if _is_read(name, options)]
        wanted = java.java.util.ArrayList()
        for name in read:
            wanted.add(name)
        found = client.describeTopics(wanted).allTopicNames().get()
        return {name: str(found.get(name).topicId().toString()) for name in sorted(read)}
    except (Py4JError, PySparkException):
        return None
    finally:
        client.close()


def _is_read(topic: str, options: Any) -> bool:
    """Return whether a source with these options reads a topic."""
    if options.get("subscribe"):
        return topic in [name.strip() for name in options.get("subscribe").split(",")]
    if options.get("subscribePattern"):
        return re.fullmatch(options.get("subscribePattern"), topic) is not None
    return topic in json.loads(options.get("assign") or "{}")

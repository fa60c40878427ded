"""A query's sources before and after a restart: their number, their kinds, and the folders and topics that they read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from registry.checkpoints.files import CheckpointFiles, Missing
from registry.checkpoints.log_checks import SOURCE_LOG
from registry.checkpoints.logs import START_LIMIT, last_offsets
from registry.checkpoints.model import Checkpoint, QuerySource
from registry.checkpoints.plans.source_rules import SOURCE_RULES
from registry.formats.json_schema.value_facts import matches_whole
from registry.formats.policies.spark_state import StateChange
from registry.formats.policies.spark_state.schema_changes import change

_GLOB: Final = frozenset("*?[{")
#: kinds before and after → the error of a source that reads another one's offsets
_OTHER_KIND: Final[Mapping[tuple[str, str], str]] = {
    ("kafka", "files"): "MALFORMED_LOG_FILE",
    ("files", "kafka"): "IllegalArgumentException",
    ("files", "rate-micro-batch"): "MappingException",
    ("kafka", "rate-micro-batch"): "MappingException",
}


@dataclass(frozen=True, slots=True)
class PlannedSource:
    """A source of the next version: its kind, as in `QuerySource`, and its folder or its topics if they are known.

    `pattern` is that of Kafka's topics; `provider` is the format, and `options` are those that decide which rows it
    reads. `topic_ids` are what Kafka says of the topics now.
    """

    kind: str
    path: str = ""
    topics: tuple[str, ...] = ()
    pattern: str = ""
    provider: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def fails_on_loss(self) -> bool:
        """Return whether Kafka's source stops when offsets or partitions are gone."""
        return self.options.get("failondataloss", "true").lower() != "false"


def with_folders(files: CheckpointFiles, checkpoint: Checkpoint) -> Checkpoint:
    """Return the checkpoint with the folder of a file that each source of files has read, and whether the last batch
    had files of it.
    """
    try:
        newest = last_offsets(files)
    except Missing:  # removed by the running query
        newest = []
    sources = (
        replace(source, folder=_folder(files, source.name), had_rows=_had_rows(source.name, newest))
        if source.kind == "files"
        else source
        for source in checkpoint.sources
    )
    return replace(checkpoint, sources=tuple(sources))


def _had_rows(source: str, newest: Sequence[Mapping[str, str]]) -> bool:
    return len(newest) < 2 or newest[0].get(source) != newest[1].get(source)


def _folder(files: CheckpointFiles, source: str) -> str:
    """Return the folder of the first file in the source's newest log; empty if the log names none."""
    names = [entry.name for entry in files.entries("sources", source) if SOURCE_LOG.fullmatch(entry.name)]
    for name in sorted(names, key=lambda name: -int(name.split(".")[0]))[:1]:
        try:
            lines = files.read("sources", source, name, limit=START_LIMIT).decode("utf-8", "replace").splitlines()
            return str(json.loads(lines[1])["path"]).rpartition("/")[0]
        except (Missing, ValueError, LookupError, TypeError, RecursionError):
            return ""
    return ""


def source_changes(
    stored: Sequence[QuerySource], planned: Sequence[PlannedSource], running: Sequence[PlannedSource] = ()
) -> Iterable[StateChange]:
    """Yield what stops Spark at the start, and what it reads otherwise. `running` are the described ones of before."""
    if len(stored) != len(planned):
        yield change(SOURCE_RULES["SOURCES_ADDED_OR_REMOVED"], "", str(len(stored)), str(len(planned)))
        return
    for number, (before, after) in enumerate(zip(stored, planned, strict=True)):
        if before.kind != after.kind:
            yield from _kind_change(before, after, number)
        elif before.kind == "files" and before.folder and _is_folder(after.path):
            yield from _folder_change(before, after, number)
        elif before.kind == "kafka":
            yield from _topic_change(before, after, number)
            yield from _recreated_topics(running[number : number + 1], after)


def _kind_change(before: QuerySource, after: PlannedSource, number: int) -> Iterable[StateChange]:
    error = _OTHER_KIND.get((before.kind, after.provider if after.kind == "rate" else after.kind))
    if error:
        kinds = (before.description, after.provider or after.kind)
        yield change(SOURCE_RULES["SOURCE_KIND_CHANGED"], "", *kinds, detail=str(number), error=error)


def _folder_change(before: QuerySource, after: PlannedSource, number: int) -> Iterable[StateChange]:
    if not _reads(after.path, before.folder):
        rule = "SOURCE_FOLDER_CHANGED" if before.had_rows else "SOURCE_FOLDER_READ_AGAIN"
        yield change(SOURCE_RULES[rule], "", before.folder, after.path, detail=str(number))


def _topic_change(before: QuerySource, after: PlannedSource, number: int) -> Iterable[StateChange]:
    gone = [topic for topic in before.topics if _has_topic(after, topic) is False]
    if gone and after.provider and (after.topics or after.pattern):
        rule = "TOPICS_REMOVED" if after.fails_on_loss else "TOPICS_REMOVED_SILENTLY"
        yield change(SOURCE_RULES[rule], "", ", ".join(gone)[:300], detail=str(number))


def _has_topic(source: PlannedSource, topic: str) -> bool | None:
    """Return whether a source reads a topic; None if its pattern is one of Java's own."""
    return matches_whole(source.pattern, topic) if source.pattern else topic in source.topics


def _recreated_topics(running: Sequence[PlannedSource], after: PlannedSource) -> Iterable[StateChange]:
    for before in running:
        for topic, number in before.topic_ids.items():
            if topic in after.topic_ids and after.topic_ids[topic] != number:
                yield change(SOURCE_RULES["TOPIC_RECREATED"], "", topic)


def source_doubts(
    stored: Sequence[QuerySource], planned: Sequence[PlannedSource], running: Sequence[PlannedSource] = ()
) -> Iterable[str]:
    """Describe the sources for which it isn't known what Spark does."""
    if len(stored) != len(planned):
        return
    for number, (before, after) in enumerate(zip(stored, planned, strict=True)):
        if before.kind != after.kind:
            if not list(_kind_change(before, after, number)):
                yield f"source {before.name} ({before.description} becomes {after.kind})"
        elif before.kind == "files" and after.path not in {each.path for each in running[number : number + 1]}:
            yield from _file_doubts(before, after)
        elif before.kind == "kafka" and not (after.topics or after.pattern):
            yield f"source {before.name} (whether it still reads the same topics)"
        elif before.kind == "kafka" and not (after.provider or set(before.topics) <= set(after.topics)):
            yield f"source {before.name} (it no longer reads the same topics)"
        elif before.kind == "kafka" and any(_has_topic(after, topic) is None for topic in before.topics):
            yield f"source {before.name} (the topics of the pattern {after.pattern[:200]})"
        for described in running[number : number + 1]:
            yield from _option_doubts(before.name, described, after)
    if any(not source.name.isdigit() for source in stored):
        yield "sources that have names"


def _file_doubts(before: QuerySource, after: PlannedSource) -> Iterable[str]:
    if bool(before.folder) is not _is_folder(after.path):
        yield f"source {before.name} (whether it still reads the same folder)"
    elif before.folder and _reads(after.path, before.folder):
        below = _plain(before.folder).removeprefix(_plain(after.path)).strip("/")
        if not all("=" in part for part in below.split("/") if part):  # of a partition
            yield f"source {before.name} (which files {after.path[:200]} has besides {before.folder[:200]})"


#: options without which the same rows are read
_SAME_ROWS: Final = ("startingoffsets", "failondataloss", "latestfirst", "filenameonly", "path")
_OF_TOPICS: Final = ("subscribe", "subscribepattern", "assign")


def _option_doubts(name: str, before: PlannedSource, after: PlannedSource) -> Iterable[str]:
    """Describe changes of what a source reads of the same files or topics."""
    if before.kind != after.kind:
        return
    if before.provider != after.provider:
        yield f"source {name} (the format {before.provider} becomes {after.provider})"
    for option in sorted({*before.options, *after.options} - {*_SAME_ROWS, *_OF_TOPICS}):
        one, other = before.options.get(option), after.options.get(option)
        if one != other:
            yield f"source {name} (its option {option}: {one or 'none'} becomes {other or 'none'})"


def _is_folder(path: str) -> bool:
    return bool(path) and _GLOB.isdisjoint(path)


def _reads(path: str, folder: str) -> bool:
    """Return whether the folder is the path or below it."""
    path, folder = (_plain(text) for text in (path, folder))
    return f"{folder}/".startswith(f"{path}/")


def _plain(path: str) -> str:
    scheme, sign, rest = path.rstrip("/").partition(":")
    if not sign:
        return path.rstrip("/")
    return "/" + rest.lstrip("/") if scheme == "file" else f"{scheme}:{rest}"

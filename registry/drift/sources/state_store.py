"""A Spark checkpoint as a source: schema files read without Spark, rows through Spark, judged together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext, gettext_noop, ngettext

from registry.checkpoints import Checkpoint, Operator, StateVariable, read_checkpoint
from registry.checkpoints.filesystem import FILE_SYSTEMS
from registry.checkpoints.model import observe_schemas, rows_to_read
from registry.drift.judge import in_order, judge, nothing_read
from registry.drift.judge.streaming_queries import QueryFacts, judge_query
from registry.drift.judge.topic_observations import milliseconds
from registry.drift.models import Scan, Source
from registry.drift.rules.registries import STATE_RULES
from registry.drift.scan.db_retry import retry_while_database_away
from registry.drift.sources.base import (
    MAX_NAME,
    WHAT_TO_READ,
    FieldSet,
    OnProgress,
    ScanResult,
    SourceDraft,
    SourceField,
    SourceKind,
    deadline_seconds,
    session_of,
    spark_remote,
)
from registry.errors import InvalidCheckpoint, InvalidSource, SparkUnavailable
from registry.observations import (
    Bounds,
    Observation,
    StateExpiry,
    StateFieldNulls,
    StateFieldRange,
    StateKeys,
    StateLimit,
    StateRows,
    StateScan,
    StateSchemaVersion,
    StateTimers,
    StateTotals,
    StateUnreadable,
    StateVariableRead,
)
from registry.streams.models import CheckpointStore
from registry.streams.scan_result import ScannedRows, scanned_query
from registry.streams.services import FIELDS, checked_store, checkpoint_location, spark_path, why_rows_are_not_readable

NO_ROWS = "Rows not read: "


def timers_to_read(checkpoint: Checkpoint) -> tuple[StateVariableRead, ...]:
    """Return the reads of registered timers for operators that have timers."""
    return tuple(
        StateVariableRead(operator.number, None, "timers", checkpoint.last_committed_batch)
        for operator in checkpoint.operators
        if any("Timers_" in family.name for family in operator.internal)
    )


def rows_by_variable(
    checkpoint: Checkpoint, observations: Sequence[Observation], problem: str = ""
) -> dict[tuple[int, str], ScannedRows]:
    """Return the newest rows of each existing variable; `problem` is why none were read."""
    result = {}
    for operator in checkpoint.operators:
        for variable in operator.variables:
            if variable.removed_at is None:
                rows = ScannedRows(problem=problem) if problem else _state_rows(operator, variable, observations)
                if rows is not None:
                    result[operator.number, variable.name] = rows
    return result


def timers_by_operator(observations: Iterable[Observation]) -> dict[int, dict[str, Any]]:
    """Return the registered timers of operators whose timers were read; times are milliseconds since 1970."""
    return {
        timers.operator: {"timers": timers.timers, "earliest": timers.earliest, "latest": timers.latest}
        for timers in observations
        if isinstance(timers, StateTimers)
    }


def _state_rows(operator: Operator, variable: StateVariable, observations: Sequence[Observation]) -> ScannedRows | None:
    mine = [observation for observation in observations if _is_of(observation, operator, variable)]
    counts = [observation for observation in mine if isinstance(observation, StateRows)]
    if not counts:
        failures = [observation for observation in mine if isinstance(observation, StateUnreadable)]
        reason = "; ".join(dict.fromkeys(failure.reason for failure in failures))
        return ScannedRows(problem=f"{NO_ROWS}{reason}") if reason else None
    newest = max(counts, key=lambda observation: observation.batch)
    at = [observation for observation in mine if getattr(observation, "batch", None) == newest.batch]
    keys = next((observation for observation in at if isinstance(observation, StateKeys)), None)
    expiry = next((observation for observation in at if isinstance(observation, StateExpiry)), None)
    ranges = {observation.path: observation for observation in at if isinstance(observation, StateFieldRange)}
    fields = []
    for item in at:
        if isinstance(item, StateFieldNulls):
            value_range = ranges.get(item.path)
            ends = {name: getattr(value_range, name, None) for name in ("minimum", "maximum", "bytes")}
            kind = value_range.kind if value_range else ""
            fields.append({"path": item.path, "type": kind, "rows": item.rows, "nulls": item.nulls, **ends})
    return ScannedRows(
        batch=newest.batch,
        rows=newest.rows,
        keys=keys.keys if keys else None,
        bytes=keys.bytes if keys else None,
        fields=tuple(fields),
        expiry={"without": expiry.without, "earliest": expiry.earliest, "latest": expiry.latest} if expiry else {},
    )


def _is_of(observation: Observation, operator: Operator, variable: StateVariable) -> bool:
    if getattr(observation, "operator", None) != operator.number or isinstance(observation, StateTimers):
        return False
    named = getattr(observation, "variable", None)
    # Built-in operators have one store, which Spark reads without a name; a join's two stores are read by side.
    return named == variable.name or (named is None and len(operator.variables) == 1)


NO_ROWS_HERE: Final = "rows not readable on this server"  # the start of what why_rows_are_not_readable returns
#: rules of findings that only rows show
_DROPPED: Final = frozenset({"STATE_FIELD_DROPPED"})
OF_ROWS: Final = _DROPPED | {"STATE_UNREADABLE"}
MAX_ROWS: Final = 10**10  # no real limit: Spark counts them in place, and the deadline applies


def checkpoint_places() -> str:
    """Return the allowed places of checkpoints as text."""
    roots = [str(root) for root in settings.CHECKPOINT_ROOTS]
    roots += settings.CHECKPOINT_ADDRESSES if stores_allowed() else ()
    return gettext("Below %(places)s") % {"places": ", ".join(roots) or gettext("none: no folder is allowed")}


def stores_allowed() -> bool:
    """Return whether the deployment reads checkpoints in object stores."""
    return any(FILE_SYSTEMS.get(protocol) == "s3" for protocol in settings.CHECKPOINT_PROTOCOLS)


class StateStore(SourceKind):
    """The state of one streaming query."""

    name = "state_store"
    label = gettext_noop("Spark state store")
    list_title = gettext_noop("State of Spark queries")
    name_label = gettext_noop("Checkpoint folder or address")
    name_help = gettext_noop("%(checkpoint_places)s. Rows are read if the Spark server can open the checkpoint too.")
    rules = STATE_RULES
    fields = (
        SourceField(
            "endpoint", gettext_noop("Endpoint"), required=True, longest=2048,
            placeholder="https://s3.eu-central-1.amazonaws.com",
        ),
        SourceField("region", gettext_noop("Region"), longest=40, placeholder="us-east-1"),
        SourceField("access_key_id", gettext_noop("Access key id"), longest=128),
        SourceField("secret", gettext_noop("Secret name"), longest=64, form_name="store_secret"),
    )  # fmt: skip
    config_name = "store"
    config_noun = "object store"
    is_config_optional = True
    keeps_state = True

    @property
    def form_sets(self) -> tuple[FieldSet, ...]:
        """Return the form, with an object store if the deployment reads any."""
        note = gettext_noop(
            "For an address such as s3://bucket/checkpoints/query. Give the name of the secret; the operator "
            "stores the secret itself. Without an access key, the bucket must be public."
        )
        store = FieldSet(gettext_noop("Object store"), self.fields, note, is_folded=True)
        return (FieldSet(WHAT_TO_READ, ("name", "registry", "every_seconds")), *((store,) if stores_allowed() else ()))

    def describe_name(self) -> str:
        """Return the help text with the allowed places of checkpoints."""
        return gettext(self.name_help) % {"checkpoint_places": checkpoint_places()}

    def checked_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Validate the store's fields; empty without any. Raises InvalidInput, InvalidSecret."""
        return {name: getattr(checked_store(config), name) for name in FIELDS} if config else {}

    def columns(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return nothing: the fields have their own table."""
        return {}

    def keep_config(self, source: Source, config: Mapping[str, Any]) -> None:
        """Store the row of an object store."""
        if config:
            CheckpointStore.objects.update_or_create(source=source, defaults=config)

    def amount(self, read: Mapping[str, Any]) -> str:
        """Return the number of variables and rows as text."""
        count = len(read.get("variables", ()))
        text = ngettext("%(n)s state variable, %(rows)s rows", "%(n)s state variables, %(rows)s rows", count)
        return text % {"n": f"{count:,}", "rows": f"{read.get('rows', 0):,}"}

    def check(self, draft: SourceDraft) -> str:
        """Check that the path or address is a checkpoint below an allowed root.

        Raises InvalidCheckpoint, InvalidSource, and for an object store InvalidInput, InvalidSecret, AddressRefused and
        RemoteUnavailable.
        """
        if not draft.name or len(draft.name) > MAX_NAME:
            raise InvalidSource(
                f"Give the path or address of the query's checkpoint folder: 1 to {MAX_NAME} characters."
            )
        if draft.include or draft.exclude:
            raise InvalidSource("A checkpoint has no topics to include or exclude.")
        location = checkpoint_location(draft.name, CheckpointStore(**draft.config) if draft.config else None)
        read_checkpoint(location.path, location.roots, store=location.store)
        return location.path.rstrip("/")

    def scan(self, source: Source, *, tag: str, on_progress: OnProgress) -> ScanResult:
        """Read the schema files, then the rows, and judge both. Without Spark, the result says that rows are unread."""
        from registry.drift.scan_context.streaming_queries import facts_of, inputs_of
        from registry.drift.scan_context.topics import memory_of, registered_for  # imported late: it loads all formats

        on_progress(0, 0, "reading checkpoint files")
        location = checkpoint_location(
            source.name, retry_while_database_away(lambda: CheckpointStore.objects.filter(source=source).first())
        )
        try:
            checkpoint = read_checkpoint(location.path, location.roots, store=location.store, cache=location.cache)
        except InvalidCheckpoint as error:
            if "file" not in error.details:
                raise  # it doesn't exist or can't be read: nothing is known about it
            return _damaged(source, error.message)
        since = retry_while_database_away(lambda: _unread_since(source))
        never = why_rows_are_not_readable(checkpoint.path)
        if never and since:
            never = never.replace(NO_ROWS_HERE, f"{NO_ROWS_HERE} since {since[:10]}", 1)
        rows, problem, waits = (
            ([], never, False) if never else _rows(source, checkpoint, tag=tag, on_progress=on_progress)
        )
        observations = [*observe_schemas(checkpoint), *rows]
        totals = next((observation for observation in rows if isinstance(observation, StateTotals)), None)
        registered, memory = retry_while_database_away(
            lambda: (registered_for(source, observations), memory_of(source, ()))
        )
        inputs = retry_while_database_away(lambda: inputs_of(source, checkpoint.topics))
        facts = retry_while_database_away(lambda: facts_of(source, checkpoint, inputs, milliseconds(timezone.now())))
        read = _what_was_read(checkpoint, observations, totals) | {"rows_problem": problem}
        read["rows_unread_since"] = since if problem else ""
        return ScanResult(
            findings=tuple(in_order([*judge(observations, registered, memory), *judge_query(facts)])),
            read=read,
            # Rows that Spark can't open here aren't part of a scan: it could only see what the files show.
            complete=(not problem or bool(never)) and (totals is None or totals.bound_reached is None),
            # But findings from rows that were once read aren't gone because the rows are no longer read.
            out_of_reach=OF_ROWS
            if never
            else _DROPPED
            if any(isinstance(row, StateUnreadable) for row in rows)
            else frozenset(),
            query=scanned_query(
                checkpoint, inputs, rows_by_variable(checkpoint, rows, problem), timers_by_operator(rows)
            ),
            waits=problem if waits else "",
        )


def _unread_since(source: Source) -> str:
    """Return since when rows can't be read if this scan doesn't read them: from now on if the last scan read them.

    Empty if no scan is known to have read them.
    """
    scans = Scan.objects.filter(source=source, state="done").order_by("-pk")
    before: dict[str, Any] | None = scans.values_list("read", flat=True).first()
    if not before:
        return ""
    if before.get("rows_problem"):
        return str(before.get("rows_unread_since", ""))
    return timezone.now().isoformat(timespec="minutes")


def _damaged(source: Source, problem: str) -> ScanResult:
    """Return a result with one finding for an unreadable checkpoint file; the stored query is unchanged."""
    facts = QueryFacts(path=source.name, observed_at=milliseconds(timezone.now()), problems=(problem,))
    read = {"nothing": False, "rows": 0, "seconds": 0, "bound_reached": None, "last_batch": None}
    empty: dict[str, Any] = {"rows_problem": problem, "variables": [], "limits": [], "unreadable": []}
    return ScanResult(findings=tuple(judge_query(facts)), read=read | empty, complete=False)


def _rows(
    source: Source, checkpoint: Checkpoint, *, tag: str, on_progress: OnProgress
) -> tuple[list[Observation], str, bool]:
    """Read rows through Spark; without Spark, also return the reason as a sentence, and whether Spark may be back."""
    from registry.pipeline.run import run  # imported late: only a scan needs PySpark

    reads = (*rows_to_read(checkpoint), *timers_to_read(checkpoint))
    if not reads:
        return [], "", False
    spec = StateScan(
        path=spark_path(source.name),
        variables=reads,
        bounds=Bounds(max_messages=MAX_ROWS, deadline_seconds=deadline_seconds(source)),
    )
    try:
        return run(spec, remote=spark_remote(), on_progress=on_progress, tag=tag, session_id=session_of(tag)), "", False
    except SparkUnavailable as error:
        return [], f"Rows not read: {error.message}", not error.details.get("is_lasting")


def _what_was_read(
    checkpoint: Checkpoint, observations: Sequence[Observation], totals: StateTotals | None
) -> dict[str, Any]:
    """Return what the page shows: variables with versions, rows and limits."""
    versions: dict[tuple[int, str], StateSchemaVersion] = {}
    for observation in observations:
        if isinstance(observation, StateSchemaVersion):
            newest = versions.get((observation.operator, observation.variable))
            versions[observation.operator, observation.variable] = max(
                newest or observation, observation, key=lambda version: version.version
            )
    counts = {
        (observation.operator, observation.variable): observation.rows
        for observation in observations
        if isinstance(observation, StateRows)
    }
    return {
        "nothing": nothing_read(observations),
        "rows": totals.rows if totals else 0,
        "seconds": round(totals.seconds, 2) if totals else 0,
        "bound_reached": totals.bound_reached if totals else None,
        "last_batch": checkpoint.last_committed_batch,
        "variables": [
            {
                "operator": operator,
                "variable": variable,
                "kind": newest.kind,
                "encoding": newest.encoding,
                "version": newest.version,
                "batch": newest.batch,
                "rows": counts.get((operator, variable)),
            }
            for (operator, variable), newest in sorted(versions.items())
        ],
        "limits": _rows_of(StateLimit, observations, "limit", "operator", "variable", "used", "allowed"),
        "unreadable": _rows_of(StateUnreadable, observations, "operator", "variable", "reason"),
    }


def _rows_of(kind: type[Observation], observations: Sequence[Observation], *names: str) -> list[dict[str, Any]]:
    """Return the observations of a kind as JSON, with these fields."""
    return [{name: getattr(item, name) for name in names} for item in observations if isinstance(item, kind)]

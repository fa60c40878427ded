"""What to do about a restart that isn't safe: one table, by the kind of operator and by what changed.

The rule of a change implies its verdict, and has the change's own remedy. A row here is a way to release all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from registry.checkpoints.model import EVOLVING, OPERATORS, Checkpoint
from registry.checkpoints.plans.migration import STARTS_NOWHERE, Migration
from registry.checkpoints.plans.model import StateCheck, Way, WayOut
from registry.errors import first_few
from registry.formats.policies.spark_state import StateChange
from registry.formats.policies.spark_state.rules import NO_ACTION

_GROUPS: Final = ("flatMapGroupsWithState", "applyInPandasWithState", "groupsWithState")
_NEW_CHECKPOINT: Final = "use a new checkpoint"
_SINK: Final = "Give the sink a new place, or keep out what is already written."


@dataclass(frozen=True, slots=True)
class Remedy:
    """A row: for these operators, as Spark names them, and these rules; empty means any."""

    way: Way
    operators: tuple[str, ...]
    rules: tuple[str, ...]
    text: str


_TABLE: Final = (
    Remedy(
        "two-step release",
        tuple(EVOLVING),
        ("RENAME_SUSPECTED", "FIELD_REPLACED", "FILLED_FIELD_REMOVED"),
        "Release 1 keeps the old field beside the new one, and writes both. Release 2 leaves out the old field, once "
        "release 1 has written every row again.",
    ),
    Remedy(
        "two-step release",
        tuple(EVOLVING),
        (
            "TYPE_NARROWED",
            "TYPE_CHANGED",
            "TYPE_WIDENED_INEXACTLY",
            "MEANING_CHANGED",
            "DECIMAL_RESCALED",
            "DECIMAL_NARROWED",
        ),
        "Release 1 adds a field with the new type under another name, and fills it from the old field. Release 2 "
        "leaves out the old field, once release 1 has written every row again.",
    ),
    Remedy(
        "two-step release",
        tuple(EVOLVING),
        (
            "VARIABLE_REPLACED",
            "VALUE_CHANGED",
            "POSITIONS_SWAPPED",
            "KIND_CHANGED",
            "CAME_BACK_AS_OTHER_KIND",
            "TTL_TURNED_ON",
            "TTL_TURNED_ON_HIDES",
            "TTL_TURNED_OFF",
        ),
        "Release 1 declares the old variable as it is and a new one under another name. Where the new one is empty, it "
        "fills it from the old one. Release 2 deletes the old one with deleteIfExists.",
    ),
    Remedy(
        "initial state",
        tuple(EVOLVING),
        (),
        "Start the next release on a new checkpoint with initialState, and write each variable in handleInitialState. "
        'Read the old state with spark.read.format("statestore"), the options operatorId and stateVarName, and '
        "readRegisteredTimers for timers. Start the sources at the offsets of the last committed batch.",
    ),
    Remedy(
        "new checkpoint",
        ("stateStoreSave",),
        (),
        "Read the sources from the first row that counts; with windows and a watermark, from the start of the oldest "
        f"open window. Otherwise every aggregate starts from nothing. {_SINK}",
    ),
    Remedy(
        "new checkpoint",
        ("sessionWindowStateStoreSaveExec",),
        (),
        "Read the sources from the start of the oldest open session. Otherwise sessions that are open lose their rows "
        f"so far. {_SINK}",
    ),
    Remedy(
        "new checkpoint",
        ("dedupe",),
        (),
        "Read the sources from the first row. Otherwise rows that repeat rows from before the restart pass as new. "
        f"{_SINK}",
    ),
    Remedy(
        "new checkpoint",
        ("dedupeWithinWatermark",),
        (),
        "Read the sources from as far back as the watermark's delay. Otherwise rows that repeat rows from before the "
        f"restart pass as new. {_SINK}",
    ),
    Remedy(
        "new checkpoint",
        ("symmetricHashJoin",),
        (),
        "Read both sides from as far back as a row waits for its partner: the join's time bound, or the first row "
        f"without one. Otherwise rows that wait lose their partners. {_SINK}",
    ),
    Remedy(
        "new checkpoint",
        ("globalLimit",),
        (),
        "The limit counts from zero again: lower it by the rows that are already written, and start the sources at the "
        "offsets of the last committed batch.",
    ),
    Remedy(
        "new checkpoint",
        (*EVOLVING, *_GROUPS),
        (),
        "Read the sources from the first row that the state depends on. Otherwise every key starts with empty state, "
        f"and without its timers. {_SINK}",
    ),
    Remedy(
        "new checkpoint",
        ("",),
        (),
        "No state is lost: start the sources at the offsets of the last committed batch (the newest file of the "
        f"checkpoint's folder offsets that has one of the same name in commits). {_SINK}",
    ),
)
#: what a person can find out where a restart isn't checked
_UNKNOWN: Final = (
    "Give what is missing (the description of the running release, a scan of the rows), or start the next release on a "
    "copy of the job with other rows and a checkpoint of its own."
)
#: a damaged file is restored; the state in it can still be right
_DAMAGE: Final = frozenset({"CHECKPOINT_DAMAGED", "SCHEMA_FILE_MISSING"})


def ways_out(report: StateCheck, checkpoint: Checkpoint, migration: Migration) -> tuple[WayOut, ...]:
    """Return what can be done instead of the restart, best first; nothing if it is safe."""
    if report.is_safe:
        return ()
    return tuple(_ways(report, checkpoint, migration))


def bad_changes(report: StateCheck) -> list[StateChange]:
    """Return the changes because of which a restart isn't safe."""
    return [change for change in report.all_changes if change.effect != "note"]


def _ways(report: StateCheck, checkpoint: Checkpoint, migration: Migration) -> Iterator[WayOut]:
    bad = bad_changes(report)
    rules = {item.rule for item in bad}
    operators = {operator.name for operator in checkpoint.operators} or {""}
    if report.verdict == "not checked":
        yield WayOut("check again", _UNKNOWN)
    if bad:
        remedies = [text for text in dict.fromkeys(map(_without_checkpoint, bad)) if text]
        text = "Restore the files" if rules <= _DAMAGE else "Change the next release"
        if remedies:
            yield WayOut("undo", f"{text}: {first_few(remedies, 3, '; ')}.")
    if rules & STARTS_NOWHERE:
        return
    yield from _rows("two-step release", operators, rules)
    if bad:
        yield _migration_way(migration)
    if not migration.script:
        yield from _rows("initial state", operators, rules)
    yield from _rows("new checkpoint", operators, rules)


def _without_checkpoint(item: StateChange) -> str:
    """Return a change's remedy without the new checkpoint, which is a way of its own; empty if nothing else helps."""
    if item.remedy == NO_ACTION or item.remedy.startswith(_NEW_CHECKPOINT):
        return ""
    return item.remedy.partition(f", or {_NEW_CHECKPOINT}")[0]


def _rows(way: Way, operators: set[str], rules: set[str]) -> Iterator[WayOut]:
    rows = [row for row in _TABLE if row.way == way and operators & {*row.operators}]
    for row in rows:
        if not row.rules or rules & {*row.rules}:
            names = sorted({OPERATORS.get(name, name) for name in operators & {*row.operators}})
            yield WayOut(way, f"{', '.join(names)}: {row.text}" if len(operators) > 1 else row.text)


def _migration_way(migration: Migration) -> WayOut:
    if not migration.script:
        return WayOut("state migration", f"The state can't be carried over by a script: {migration.why_not}.")
    text = (
        "Stop the query and run the generated script. It reads the old state, writes a new checkpoint in the form of "
        "the next release, and gives it the old offsets and watermark. The next release continues from there."
    )
    return WayOut("state migration", text + _loss(migration.lost), has_script=True)


def _loss(lost: Sequence[str]) -> str:
    if not lost:
        return ""
    return f" The old state doesn't have {first_few(lost)}: there, rows from before the migration don't count."

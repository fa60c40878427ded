"""The words of the filters of the list of subjects, and the names they have in the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dashboard.texts import later
from registry.search.subject_list import (
    BY_CHANGE,
    BY_NAME,
    BY_VERSIONS,
    DELETED,
    DRIFT,
    INHERITED,
    OWN,
    PENDING,
    REFERRED,
    REFERS,
    UNOWNED,
    UNUSED,
)
from registry.subjects.models import MODES

STATES: Final = {
    "": later("Any state"),
    "deprecated": later("Deprecated"),
    "retired": later("Retired"),
    "quarantined": later("Quarantined"),
    DELETED: later("Soft-deleted"),
}
ATTENTION: Final = {
    "": later("Any attention"),
    DRIFT: later("With open drift"),
    PENDING: later("With an open request"),
    UNOWNED: later("Without an owner"),
}
MODES_BY_NAME: Final = {"": later("Any mode"), **{mode: mode for mode in MODES}}
LEVELS_FROM: Final = {
    "": later("Own or inherited level"),
    OWN: later("Level set here"),
    INHERITED: later("Level inherited"),
}
REFERENCES: Final = {
    "": later("With or without references"),
    REFERS: later("Refers to others"),
    REFERRED: later("Others refer to it"),
}
USES: Final = {"": later("Needed or not"), UNUSED: later("Nothing needs it")}
ORDERS: Final = {
    "": later("Needs attention first"),
    BY_CHANGE: later("Last change first"),
    BY_NAME: later("By name"),
    BY_VERSIONS: later("Most versions first"),
}
#: filters that have no other values
KNOWN: Final[Mapping[str, Mapping[str, str]]] = {
    "level_from": LEVELS_FROM,
    "mode": MODES_BY_NAME,
    "state": STATES,
    "attention": ATTENTION,
    "references": REFERENCES,
    "use": USES,
    "sort": ORDERS,
}
#: name in the address → the name that a chip shows
NAMES: Final = {
    "q": later("text"),
    "format": later("format"),
    "level": later("level"),
    "level_from": later("level"),
    "mode": later("mode"),
    "state": later("state"),
    "attention": later("attention"),
    "references": later("references"),
    "use": later("need"),
    "tag": later("tag"),
    "owner": later("owner"),
    "sort": later("order"),
}
#: characters of a filter that an address may have, as the API takes them: each word costs the database
LONGEST: Final[Mapping[str, int]] = {"q": 1_300, "tag": 64, "owner": 160}
MAX_VALUE: Final = 40

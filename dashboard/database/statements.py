"""The effect of SQL statements, and the tables that cached responses depend on.

Every table of the product is in one of the lists. A statement that isn't known to read, or to write only tables that no
cached response depends on, counts as a change.
"""

from __future__ import annotations

import re
import threading
from enum import Enum
from functools import lru_cache
from typing import Any, Final


def _tables(**names: str) -> frozenset[str]:
    """Return the tables of each app, with its prefix."""
    return frozenset(f"{app}_{name}" for app, text in names.items() for name in text.split())


#: what is registered, who may read it, and what decides the response to a repeated registration
ANSWERS: Final = _tables(
    access="apitoken groupgrant rolegrant user user_groups",
    auth="group",
    promotions="breakglass environment",
    subjects=("association config context mode registry schema schemareference schemaversion subject versionstanding"),
)

#: columns of these tables whose UPDATE changes no response
BOOKKEEPING: Final = {
    "access_apitoken": frozenset({"last_used_at", "last_used_from"}),
    "access_user": frozenset({"last_login"}),
    "subjects_registry": frozenset(
        {"failing_since", "next_sync_at", "sync_error", "sync_lease_until", "sync_tag", "synced_at"}
    ),
}

#: tables that no cached response reads
BESIDE: Final = _tables(
    access="groupchannel ownership user_user_permissions",
    account="emailaddress emailconfirmation",
    audit="auditevent chainhead",
    auth="group_permissions permission",
    django="content_type session",
    drift="cluster connector deployment fieldstatistic finding findingrange leastversion mute scan schemause source topic",
    notifications="attempt delivery digest digestwish inboxentry jobrun notice subscription webhook",
    promotions=(
        "acknowledgement applystep boardchange boardstate boardsubject comment draft environmentchange "
        "freezewindow promotionoutlook promotionrequest recurringfreeze release renamedecision requestitem "
        "review reviewrule sameperson thread"
    ),
    search="indexedfield indexedsubject searchterm stalesubject teamfigure",
    socialaccount="socialaccount socialapp socialtoken",
    streams="carriedversion checkpointstore progresspoint queryinput queryrun runningdescription statecheck stateschema statevariable streamquery",
    subjects="businessterm client fieldterm keptcopy subjectactivity subjectnote",
)

#: tables that only triggers write → the table of the first list that they follow in the same transaction
FOLLOWING: Final = {"subjects_subjectactivity": "subjects_schemaversion"}

#: our functions that write although a SELECT calls them → the table
WRITING_FUNCTIONS: Final = {"audit_seal": "audit_auditevent"}


LONGEST_KEPT: Final = 8_192
_READING: Final = re.compile(
    r"[\s(]*(SELECT|VALUES|SHOW|SET|RESET|SAVEPOINT|RELEASE|ROLLBACK\s+TO|DECLARE|FETCH|CLOSE|LOCK|LISTEN|UNLISTEN|NOTIFY|EXPLAIN|"
    r"WITH|TABLE|BEGIN|START)\b",
    re.IGNORECASE,
)
_CHANGING: Final = re.compile(
    r"\b(INSERT|DELETE|MERGE|TRUNCATE|COPY|CALL|DO|INTO|CREATE|ALTER|DROP|UPDATE)\b", re.IGNORECASE
)
#: row locks in a SELECT
_LOCKING: Final = re.compile(r"\bFOR\s+(NO\s+KEY\s+)?UPDATE\b", re.IGNORECASE)
#: used only before a change: a response computed that way must not be cached
_ABOUT_TO: Final = re.compile(r"\bset_config\s*\(|\bpg_(try_)?advisory|\bFOR\s+(NO\s+KEY\s+)?UPDATE\b", re.IGNORECASE)
_COMMENTS: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_QUOTED: Final = re.compile(r"'(?:[^']|'')*'")
_DOLLARS: Final = re.compile(r"\$\w*\$")
#: the tables that a statement writes
_WRITES: Final = re.compile(
    r'\b(?:(?:INSERT|MERGE)\s+INTO|(?<!\bDO\s)UPDATE|DELETE\s+FROM)\s+(?:ONLY\s+)?(?:"?public"?\.)?"?(\w+)"?',
    re.IGNORECASE,
)
_ROWS: Final = re.compile(r"(WITH|INSERT|UPDATE|DELETE|MERGE)\b", re.IGNORECASE)
_ROWS_ALONE: Final = frozenset({"INSERT", "INTO", "UPDATE", "DELETE", "MERGE", "DO"})
_SET: Final = re.compile(r'\bSET\s+((?:"?\w+"?\s*=\s*(?:%s|%\(\w+\)s|NULL)\s*,?\s*)+)WHERE\b', re.IGNORECASE)
_COLUMN: Final = re.compile(r'"?(\w+)"?\s*=')


class Kind(Enum):
    """The effect of a statement."""

    READ = 0
    #: notes that no response contains, such as when a token was used
    BOOKKEEPING = 1
    #: changes only tables that no cached response reads
    BESIDE = 2
    CHANGE = 3
    #: a change of rows of one table, whose effect the triggers report if it touched a row
    COUNTED = 4
    #: the same for several tables
    TOLD = 5


def kind_of(statement: Any) -> Kind:
    """Return the kind of a statement, given as text or composed by psycopg."""
    text = statement if isinstance(statement, str) else _text(statement)
    return _cached_kind(text) if len(text) <= LONGEST_KEPT else _kind(text)


def _text(statement: Any) -> str:
    if isinstance(statement, bytes):
        return statement.decode(errors="replace")
    compose = getattr(statement, "as_string", None)
    return str(compose(None)) if compose is not None else str(statement)


def _bare(text: str) -> str:
    """Remove comments and quoted texts if they can be told apart; otherwise a word in them may count as a change."""
    has_comments = "--" in text or "/*" in text
    if (has_comments and "'" in text) or "\\" in text:
        return text
    return _COMMENTS.sub(" ", text) if has_comments else _QUOTED.sub("''", text)


def _kind(whole: str) -> Kind:
    text = _bare(whole).strip().rstrip(";").rstrip()
    if ";" in text or _DOLLARS.search(text):
        return Kind.CHANGE
    unlocked = _LOCKING.sub(" ", text)
    changing = _CHANGING.findall(unlocked)
    if _READING.match(text) and not changing:
        return Kind.BESIDE if _ABOUT_TO.search(text) else Kind.READ
    tables = {table.lower() for table in _WRITES.findall(unlocked)}
    if not _ROWS.match(text) or not {word.upper() for word in changing} <= _ROWS_ALONE or not tables:
        return Kind.CHANGE
    if tables <= BESIDE:
        return Kind.BESIDE
    if not tables <= ANSWERS | BESIDE:
        return Kind.CHANGE
    if text[:4].upper() == "WITH":
        return Kind.TOLD
    return Kind.BOOKKEEPING if _is_bookkeeping(text, *tables) else Kind.COUNTED


_cached_kind = lru_cache(maxsize=2_048)(_kind)


def _is_bookkeeping(text: str, table: str) -> bool:
    match = _SET.search(text) if table in BOOKKEEPING and text[:6].upper() == "UPDATE" else None
    return match is not None and {name.lower() for name in _COLUMN.findall(match[1])} <= BOOKKEEPING[table]


class _Written(threading.local):
    count = 0


_WRITTEN = _Written()


def note_written() -> None:
    """Note that this thread has written something anywhere."""
    _WRITTEN.count += 1


def written() -> int:
    """Return how often this thread has written."""
    return _WRITTEN.count

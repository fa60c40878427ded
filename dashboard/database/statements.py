"""What a SQL statement may change, and which tables the cached answers depend on.

Every table of the product is in one of the lists. Whatever isn't known to be a read, or to write only to tables that
no answer depends on, counts as a change.
"""

from __future__ import annotations

import re
import threading
from enum import Enum
from functools import lru_cache
from typing import Any, Final


def _tables(**names: str) -> frozenset[str]:
    """The tables of each app, which have its name before their own."""
    return frozenset(f"{app}_{name}" for app, text in names.items() for name in text.split())


#: what is registered, who may see it, and what stands between a repeated registration and its answer
ANSWERS: Final = _tables(
    access="apitoken groupgrant rolegrant user user_groups",
    auth="group",
    promotions="breakglass environment",
    subjects=("association config context mode registry schema schemareference schemaversion subject versionstanding"),
)

#: of the tables above, columns that are bookkeeping: an UPDATE of nothing else changes no answer
BOOKKEEPING: Final = {
    "access_apitoken": frozenset({"last_used_at", "last_used_from"}),
    "access_user": frozenset({"last_login"}),
    "subjects_registry": frozenset(
        {"failing_since", "next_sync_at", "sync_error", "sync_lease_until", "sync_tag", "synced_at"}
    ),
}

#: what no answer reads that is given before Django
BESIDE: Final = _tables(
    access="ownership user_user_permissions",
    account="emailaddress emailconfirmation",
    audit="auditevent chainhead",
    auth="group_permissions permission",
    django="content_type session",
    drift="cluster connector deployment fieldstatistic finding leastversion mute scan schemause source topic",
    notifications="attempt delivery digest digestwish inboxentry jobrun notice subscription webhook",
    promotions=(
        "acknowledgement applystep boardchange boardstate boardsubject comment draft environmentchange "
        "freezewindow promotionoutlook promotionrequest recurringfreeze release renamedecision requestitem "
        "review reviewrule sameperson thread"
    ),
    search="indexedfield indexedsubject searchterm stalesubject",
    socialaccount="socialaccount socialapp socialtoken",
    streams="carriedversion checkpointstore queryinput statecheck stateschema statevariable streamquery",
    subjects="client keptcopy subjectactivity subjectnote",
)

#: what triggers alone write, in the transaction of the first list's table that they follow: with that it is known
FOLLOWING: Final = {"subjects_subjectactivity": "subjects_schemaversion"}

#: functions of ours that a SELECT may call although they write: to which tables
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
#: locks that a reader takes
_LOCKING: Final = re.compile(r"\bFOR\s+(NO\s+KEY\s+)?UPDATE\b", re.IGNORECASE)
#: what only those ask for who are about to change something: an answer given on that way isn't one to be given again
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
    """What comes of a statement."""

    READ = 0
    #: notes that are told nowhere, as when a token was used
    BOOKKEEPING = 1
    #: changes what no answer reads that is given before Django
    BESIDE = 2
    CHANGE = 3
    #: a change of rows, of which triggers tell what it touches, if it touched a row of the one table that it names
    COUNTED = 4
    #: the same of several tables
    TOLD = 5


def kind_of(statement: Any) -> Kind:
    """The kind of a statement, as text or as psycopg composes it."""
    text = statement if isinstance(statement, str) else _text(statement)
    return _cached_kind(text) if len(text) <= LONGEST_KEPT else _kind(text)


def _text(statement: Any) -> str:
    if isinstance(statement, bytes):
        return statement.decode(errors="replace")
    compose = getattr(statement, "as_string", None)
    return str(compose(None)) if compose is not None else str(statement)


def _bare(text: str) -> str:
    """Without comments or quoted texts, where it is sure which is which; else a word in them may count as a change."""
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
    """This thread has written something, wherever that was."""
    _WRITTEN.count += 1


def written() -> int:
    """How often this thread has."""
    return _WRITTEN.count

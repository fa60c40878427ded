"""What a statement may change. Whatever isn't known to be a read, or to go to tables beside, counts as a change."""

from __future__ import annotations

import re
import threading
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from dashboard.database.tables import BESIDE, BOOKKEEPING

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
#: a statement that changes one table, and is nothing else
_SIMPLE: Final = re.compile(
    r'(INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+(?:ONLY\s+)?(?:"?public"?\.)?"?(\w+)"?', re.IGNORECASE
)
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
    #: a change if it touched a row
    COUNTED = 4


def kind_of(statement: Any) -> Kind:
    """The kind of a statement, as text or as psycopg composes it."""
    text = statement if isinstance(statement, str) else _text(statement)
    return _known(text) if len(text) <= LONGEST_KEPT else _kind(text)


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
    changing = _CHANGING.findall(_LOCKING.sub(" ", text))
    if _READING.match(text) and not changing:
        return Kind.BESIDE if _ABOUT_TO.search(text) else Kind.READ
    simple = _SIMPLE.match(text)
    if simple is None:
        return Kind.CHANGE
    table = simple[2].lower()
    # An upsert says UPDATE too; any other second word of these may go to another table.
    alone = [word.upper() for word in changing] in (
        ["INSERT", "INTO"],
        ["INSERT", "INTO", "DO", "UPDATE"],
        ["INSERT", "INTO", "DO"],
        ["UPDATE"],
        ["DELETE"],
    )
    if not alone:
        return Kind.CHANGE
    if table in BESIDE:
        return Kind.BESIDE
    return Kind.BOOKKEEPING if _is_bookkeeping(text, table) else Kind.COUNTED


_known = lru_cache(maxsize=2_048)(_kind)


def _is_bookkeeping(text: str, table: str) -> bool:
    found = _SET.search(text) if table in BOOKKEEPING and text[:6].upper() == "UPDATE" else None
    return found is not None and {name.lower() for name in _COLUMN.findall(found[1])} <= BOOKKEEPING[table]


class _Written(threading.local):
    count = 0


_WRITTEN = _Written()


def note_written() -> None:
    """This thread has written something, wherever that was."""
    _WRITTEN.count += 1


def written() -> int:
    """How often this thread has."""
    return _WRITTEN.count

"""What programs rely on in a database, and which differences could break those of the last release.

Adding is harmless: a table, a column that may be left out, a plain index, a wider list of words. What is gone, narrower or
different is a `difference`; `exceptions.yaml` lists those that are known to be harmless, with their reasons.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
import yaml

HERE: Final = Path(__file__).parent
EXCEPTIONS: Final = HERE / "exceptions.yaml"
#: what the last release's tables, functions and rows are
RECORDING: Final = HERE / "last_release.sql.gz"
OURS: Final = "n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'"
OF_EXTENSION: Final = "EXISTS (SELECT FROM pg_depend d WHERE d.objid = {} AND d.deptype = 'e')"

#: kind → (table, name within the table, definition); a function has no table
QUERIES: Final = {
    "column": f"""
        SELECT c.oid::regclass::text, a.attname, format_type(a.atttypid, a.atttypmod)
            || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
            || CASE WHEN a.attidentity <> '' OR d.oid IS NOT NULL THEN ' DEFAULT' ELSE '' END
            || coalesce(' ' || pg_get_expr(d.adbin, d.adrelid), '')
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        LEFT JOIN pg_attrdef d ON (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
        WHERE c.relkind IN ('r', 'p', 'v', 'm') AND a.attnum > 0 AND NOT a.attisdropped AND {OURS}
        AND NOT {OF_EXTENSION.format("c.oid")}""",
    "constraint": f"""
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(k.oid)
        FROM pg_constraint k JOIN pg_namespace n ON n.oid = k.connamespace
        WHERE contype IN ('c', 'f', 'x') AND conrelid <> 0 AND {OURS}""",
    "unique": f"""
        SELECT i.indrelid::regclass::text, regexp_replace(pg_get_indexdef(i.indexrelid), '^.* USING ', ''), ''
        FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE i.indisunique AND {OURS}""",
    "trigger": f"""
        SELECT t.tgrelid::regclass::text, t.tgname, pg_get_triggerdef(t.oid)
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE NOT t.tgisinternal AND {OURS}""",
    "function": f"""
        SELECT '', p.oid::regprocedure::text, pg_get_functiondef(p.oid)
        FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
        WHERE p.prokind = 'f' AND {OURS} AND NOT {OF_EXTENSION.format("p.oid")}""",
}
Definitions = Mapping[tuple[str, str, str], str]
WORD: Final = re.compile(r"'((?:[^']|'')*)'")
WORDS: Final = re.compile(r"'(?:[^']|'')*'(?:,'(?:[^']|'')*')*")
#: an expression that was dumped and loaded has other casts and brackets
CASTS: Final = re.compile(r"::[a-z][a-z ]*(\(\d+\))?(\[\])?|[()]")
AUDITED: Final = re.compile(r"UPDATE OF ([\w, ]+?) ON ")


def definitions(connection: psycopg.Connection) -> Definitions:
    """Everything that programs rely on, by kind, table and name."""
    connection.execute("SET search_path = public")
    return {
        (kind, table, _plain(kind, name)): _plain(kind, text)
        for kind, query in QUERIES.items()
        for table, name, text in connection.execute(query).fetchall()
    }


def _plain(kind: str, text: str) -> str:
    if kind == "column":
        head, default, expression = text.partition(" DEFAULT")
        return head + default + CASTS.sub("", expression)
    if kind == "function":
        return " ".join(text.split())
    return re.sub(r" ?([],[]) ?", r"\1", " ".join(CASTS.sub(" ", text).split()))


@dataclass(frozen=True)
class Column:
    """A column as programs see it."""

    type: str
    required: bool
    default: bool

    @classmethod
    def of(cls, text: str) -> Column:
        """Reads a definition."""
        kind = re.split(r" (?:NOT NULL|DEFAULT)\b", text)[0]
        return cls(kind, " NOT NULL" in text, " DEFAULT" in text)


def differences(last: Definitions, now: Definitions) -> Iterator[str]:
    """What could break the last release, one line each: "column subjects_subject.name is gone"."""
    tables = {table for _, table, _ in last}
    for key in sorted(last.keys() | now.keys()):
        kind, table, name = key
        label = f"{kind} {table}.{name}".replace(" .", " ")
        if key not in now:
            if kind != "constraint":  # a removed one refuses less
                yield f"{label} is gone"
        elif key not in last:
            if table in tables and (said := ADDED[kind](now[key])):
                yield f"{label} {said}"
        elif last[key] != now[key] and (said := CHANGED[kind](last[key], now[key])):
            yield f"{label} {said}"


def _added_column(text: str) -> str:
    column = Column.of(text)
    return "is new and must be given" if column.required and not column.default else ""


def _changed_column(before: str, after: str) -> str:
    old, new = Column.of(before), Column.of(after)
    if old.type != new.type and not _is_longer_text(old.type, new.type):
        return f"was {old.type} and is {new.type}"
    if new.required != old.required:
        return "must have a value" if new.required else "can be without a value"
    if old.default and not new.default:
        return "has no default any more"
    return "has another default" if old.default else ""


def _is_longer_text(before: str, after: str) -> bool:
    lengths = [re.fullmatch(r"character varying\((\d+)\)", kind) for kind in (before, after)]
    return bool(lengths[0]) and (after == "text" or bool(lengths[1] and int(lengths[1][1]) >= int(lengths[0][1])))


def _changed_constraint(before: str, after: str) -> str:
    if WORDS.sub("words", before).replace("ANY ARRAY[words]", "words") != WORDS.sub("words", after).replace(
        "ANY ARRAY[words]", "words"
    ):
        return "is different"
    lost = set(WORD.findall(before)) - set(WORD.findall(after))
    return f"lost the words {', '.join(sorted(lost))}" if lost else ""


def _changed_trigger(before: str, after: str) -> str:
    old, new = (set(found[1].split(",")) if (found := AUDITED.search(text)) else set() for text in (before, after))
    return "is different" if AUDITED.sub("", before) != AUDITED.sub("", after) or not old <= new else ""


ADDED: Final[Mapping[str, Callable[[str], str]]] = {
    "column": _added_column,
    "constraint": lambda _: "is new",
    "unique": lambda _: "is new",
    "trigger": lambda _: "is new",
    "function": lambda _: "",
}
CHANGED: Final[Mapping[str, Callable[[str, str], str]]] = {
    "column": _changed_column,
    "constraint": _changed_constraint,
    "unique": lambda *_: "",
    "trigger": _changed_trigger,
    "function": lambda *_: "is different",
}


def exceptions() -> dict[str, str]:
    """Difference → why the last release doesn't mind."""
    return dict(yaml.safe_load(EXCEPTIONS.read_text()) or {})

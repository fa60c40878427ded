"""Record what Spark's own parser makes of schemas in DDL: `python -m tests.state.record_ddl`.

A local session of the installed PySpark reads every text below and some hundred random ones with
`StructType.fromDDL`; texts and answers go to `ddl_recorded.json`, with Spark's version. A text that Spark refuses, or
that is no struct to it, has the answer null. Needs Java 17.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from random import Random
from typing import Any, Final

RECORDED: Final = Path(__file__).with_name("ddl_recorded.json")
RANDOM_TEXTS: Final = 400
SEED: Final = 42
TEXTS: Final = (
    "a INT, b STRUCT<x: BIGINT, y: STRING NOT NULL> NOT NULL COMMENT 'hi'",
    "`a b` DECIMAL, c DEC(5), d NUMERIC(7,2), e DECIMAL(38,38), f DECIMAL(1, 0)",
    "a DECIMAL(39)", "a DECIMAL(5,6)", "a DECIMAL(0)", "a DECIMAL()", "a DECIMAL(5,2,1)", "a DECIMAL(5,-2)",
    "a struct<x int, y int>", "a ARRAY<INT>, m MAP<STRING, ARRAY<STRUCT<z:INT>>>",
    "a ARRAY", "a MAP<INT>", "a ARRAY<INT, INT>", "a ARRAY<INT NOT NULL>", "a STRUCT<>", "a STRUCT", "a STRUCT<b>",
    "a TIMESTAMP_NTZ, b TIMESTAMP_LTZ, c VOID, d VARCHAR(10), e CHAR(3), f CHARACTER(4)",
    "a VARCHAR", "a CHAR", "a VARCHAR(1,2)", "a STRING(5)", "a INT(5)",
    "a INTERVAL YEAR TO MONTH, b INTERVAL DAY TO SECOND, c INTERVAL DAY, d INTERVAL, e INTERVAL HOUR TO MINUTE",
    "a INTERVAL YEAR TO DAY", "a INTERVAL MONTH TO YEAR", "a INTERVAL SECOND TO SECOND", "a INTERVAL WEEK",
    "a VARIANT, t TIME, t2 TIME(3), t3 TIME(0)", "a TIME(7)", "a TIME(-1)",
    "a STRING COLLATE UTF8_LCASE, b ARRAY<STRING COLLATE UNICODE>, c STRING COLLATE utf8_binary",
    "a MAP<STRING COLLATE UNICODE_CI, STRUCT<b: STRING COLLATE UTF8_LCASE>>",
    "a: INT", "a : INT, b: STRING", "a INT DEFAULT 5", "a INT GENERATED ALWAYS AS (1)", "int", "",  "   ", "-- c\n",
    "struct<a:int>", "STRUCT<a INT, b: STRING>", "STRUCT < a INT >", "struct INT", "struct STRUCT<a: INT>, b INT",
    "a INT, A int, a STRING", "-- c\n a INT /* x */", "/* a */ a /* b */ INT -- end", "a INT /* open", "a /*/ INT */ INT",
    "a TINYINT, b BYTE, c SHORT, d LONG, e REAL, f BOOLEAN, g BINARY, h DATE, i FLOAT, j SMALLINT, k INTEGER",
    "1a INT", "1 INT", "12L INT", "1e5 INT", "1_a INT", "_a INT", "3bd INT", "4s INT", "5d INT, 6f INT", "7y INT",
    "a INT,", ",a INT", "a INT b INT", "a", "a INT,, b INT", "a-b INT", "a.b INT", "a$ INT", "é INT", "`` INT", "```` INT",
    "select INT, table STRING, from DATE", "date DATE, timestamp TIMESTAMP, interval INT, array INT, map INT",
    "a STRUCT<b: INT COMMENT 'x', c: INT NOT NULL>", "a STRUCT<`x``y`: INT>", "a STRUCT<b INT NOT NULL COMMENT \"q\">",
    "a INTEGER NOT NULL NOT NULL", "a INT COMMENT 'x' NOT NULL", "a INT NULL", "a INT NOT", "a INT COMMENT", "a INT COMMENT x",
    "a INT COMMENT \"dq\"", "a INT COMMENT 'it''s'", "a INT COMMENT 'a' 'b'", "a INT COMMENT 'a\\n\\'b\\t\\\\'",
    "a INT COMMENT R'a\\nb'", "a INT COMMENT '\\u0041\\101\\%\\_\\x'", "a INT COMMENT ''", "a INT COMMENT 'open",
    "a INT COMMENT 'line\nbreak'", "`a\nb` INT", "'a' INT", "\"a\" INT", "a `INT`", "a INT;", "a INT)", "a (INT)",
    "a ARRAY<ARRAY<ARRAY<INT>>>", "a ARRAY < ARRAY < INT > >", "a MAP<STRUCT<k: INT>, INT>", "a UNKNOWN", "a NULL", "a JSON",
    "a ROW<INT>", "a TEXT", "a UUID", "a UINT", "a DOUBLE PRECISION", "a TIMESTAMP WITHOUT TIME ZONE", "a TIMESTAMP WITH LOCAL TIME ZONE", "a TIMESTAMP WITH TIME ZONE",
    "time TIME WITHOUT TIME ZONE", "a INT -- c", "a\u00a0INT", "a\u3000INT", "a١ INT", "a DECIMAL(١,0)", "a INT64",
)  # fmt: skip
_NAMES: Final = ("a", "b", "user_id", "`x y`", "`q``t`", "order", "Zahl", "_1", "9lives", "`ärger`")
_PLAIN: Final = (
    *("int", "BIGINT", "String", "boolean", "double", "FLOAT", "date", "timestamp", "timestamp_ntz", "binary", "void"),
    *(
        "decimal(12,3)",
        "DECIMAL( 9 , 2 )",
        "smallint",
        "tinyint",
        "variant",
        "interval day to hour",
        "varchar(3)",
        "time",
    ),
)


def a_type(random: Random, depth: int) -> str:
    """A random type in DDL."""
    roll = random.random()
    if depth <= 0 or roll < 0.55:
        return random.choice(_PLAIN)
    if roll < 0.7:
        return f"ARRAY<{a_type(random, depth - 1)}>"
    if roll < 0.82:
        return f"map<{a_type(random, 0)} ,{a_type(random, depth - 1)}>"
    return f"STRUCT<{some_columns(random, depth - 1, ': ')}>"


def some_columns(random: Random, depth: int, separator: str) -> str:
    """Random columns in DDL."""
    listed = []
    for name in random.sample(_NAMES, random.randint(1, 4)):
        needed = random.choice(("", "", " NOT NULL", " not  null"))
        comment = random.choice(("", "", "", " COMMENT 'some, <text>'"))
        listed.append(f"{name}{random.choice((' ', separator))}{a_type(random, depth)}{needed}{comment}")
    return random.choice((", ", ",", ",\n  ")).join(listed)


def a_text(random: Random) -> str:
    """A random schema; one in four is damaged."""
    text = some_columns(random, 3, " ")
    if random.random() < 0.25:
        at = random.randrange(len(text))
        text = text[:at] + random.choice(("", "<", ">", ",", "(", "`", " NOT ", ":", "'")) + text[at + 1 :]
    return text


def main() -> None:
    """Ask Spark and write the answers."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    random = Random(SEED)
    rows: list[list[Any]] = []
    for text in (*TEXTS, *(a_text(random) for _ in range(RANDOM_TEXTS))):
        try:
            made = StructType.fromDDL(text)
            rows.append([text, made.jsonValue() if isinstance(made, StructType) else None])
        except (PySparkException, Py4JJavaError):
            rows.append([text, None])
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    RECORDED.write_text(f'{{"spark": {json.dumps(session.version)}, "texts": [\n{lines}\n]}}\n', encoding="utf-8")
    session.stop()


if __name__ == "__main__":
    main()

"""How much the tests go through that find the more the longer they look: enough for every run, or `SCHEMADESK_LONG=1`.

The long amounts are for a change of what such a test is about, and for a release. Everything else of these tests is the
same in both. Whole benchmarks run in long runs alone: their parts are tested in every run.
"""

from __future__ import annotations

import os
from typing import Final

import pytest

IS_LONG: Final = os.environ.get("SCHEMADESK_LONG") == "1"
long_run: Final = pytest.mark.skipif(not IS_LONG, reason="it takes long: set SCHEMADESK_LONG=1")
whole_benchmark: Final = pytest.mark.skipif(not IS_LONG, reason="a whole benchmark: set SCHEMADESK_LONG=1")
#: what is counted → of every run, of a long one
AMOUNTS: Final[dict[str, tuple[int, int]]] = {
    "pairs of random Avro schemas": (4_000, 20_000),
    "pairs of Avro schemas that Java decodes": (1_000, 8_000),
    "pairs of Protobuf schemas with oneofs": (250, 4_000),
    "requests to three servers at once": (2_000, 10_000),
    "versions that move in": (1_500, 10_000),
    "hostile schemas of the second round": (9, 99),
    "random patterns of names": (200, 5_000),
    "histories of registrations": (3, 200),
    "restarts of random Spark state": (30, 300),
    "rounds of racing requests": (3, 50),
    "generated calls of an address": (8, 100),
    "rounds of many clients": (2, 20),
    "restarts of transformWithState": (6, 20),
    "restarts of other operators": (4, 12),
    "scattered messages of a topic": (6_000, 25_000),
    "scans of healthy topics": (12, 30),
    "pages of a kind that a reader opens": (10, 30),
}


def how_many(what: str) -> int:
    """How many of it this run goes through."""
    usual, long = AMOUNTS[what]
    return long if IS_LONG else usual

"""Work in proportion to the input: twice as much input takes about twice the processor time, never four times."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import pytest

from registry.checkpoints.plans import parse_python
from registry.errors import InvalidSchema

#: by how much the work may grow from n to 4n: n log n gives less than 5, n² gives 16
MOST_GROWTH: Final = 9
#: measurements of which one has to show it, as other processes take their share of the caches
TRIES: Final = 4


@dataclass(frozen=True, slots=True)
class Case:
    """What is made of an input of size n, which isn't measured, and what is done with it."""

    name: str
    make: Callable[[int], Any]
    work: Callable[[Any], object]
    size: int


def streaming_query(declarations: str, *, before: str = "", after: str = "") -> str:
    return (
        f"from pyspark.sql.types import *\n{before}class P(StatefulProcessor):\n"
        f"    def init(self, handle):\n{declarations}{after}"
    )


def declared(count: int) -> str:
    return streaming_query(
        "".join(f"        self.v{i} = handle.getValueState('v{i}', 'a INT')\n" for i in range(count))
    )


def declared_with_kept_handle(count: int) -> str:
    uses = "".join(f"        self.v{i} = self.kept.getValueState('v{i}', 'a INT')\n" for i in range(count))
    return streaming_query(f"        self.kept = handle\n{uses}")


def aliased(count: int) -> str:
    """Names that stand for each other, the last first."""
    names = "".join(f"S{i + 1} = S{i}\n" for i in reversed(range(count)))
    first = "S0 = StructType([StructField('a', LongType())])\n"
    return streaming_query("        self.v = handle.getValueState('v', S0)\n", before=first + names)


def ending(count: int) -> str:
    """Functions that call each other, of which the last ends the run."""
    functions = "".join(f"def f{i}():\n    f{i + 1}()\n" for i in range(count)) + f"def f{count}():\n    exit()\n"
    return streaming_query("        self.v = handle.getValueState('v', 'a INT')\n", before=functions)


def operators(count: int) -> str:
    calls = "".join(f"df{i}.transformWithState(p, 'a INT', 'Update', 'None')\n" for i in range(count))
    return streaming_query("        self.v = handle.getValueState('v', 'a INT')\n", after=f"p = P()\n{calls}")


def read_plan(source: str) -> None:
    with suppress(InvalidSchema):
        parse_python(source, "P")


CASES: Final = (
    Case("declarations of state", declared, read_plan, 120),
    Case("declarations with a kept handle", declared_with_kept_handle, read_plan, 120),
    Case("names for each other", aliased, read_plan, 400),
    Case("functions that end the run", ending, read_plan, 400),
    Case("stateful operators", operators, read_plan, 200),
)


def growth(case: Case) -> float:
    """How many times as much work 4n is as n."""
    took = []
    for factor in (1, 4):
        made = case.make(case.size * factor)
        began = time.process_time()
        case.work(made)
        took.append(time.process_time() - began)
    return took[1] / took[0]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_four_times_the_input_takes_no_more_than_in_proportion(case: Case) -> None:
    grown = []
    while not grown or (min(grown) > MOST_GROWTH and len(grown) < TRIES):
        grown.append(growth(case))
    assert min(grown) <= MOST_GROWTH, f"from {case.size} to {4 * case.size}: {min(grown):.1f} times the work"

"""Plans out of Python files: what is read, what is refused with its place, and that nothing is executed."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.checkpoints.plans import parse_python
from registry.checkpoints.plans.ddl_text import to_ddl
from registry.errors import InvalidSchema
from tests.waiting import costs_little

APPLICATION = '''
    """An application; importing it would fail."""
    import pyspark.sql.types as T
    from pyspark.sql.types import *
    from somewhere.that_is_not import there

    raise SystemExit("this file is never executed")

    ID = StructField("id", LongType(), nullable=False)
    BASE: StructType = StructType([ID, StructField("price", T.DecimalType(10, 2), True, {"comment": "net"})])
    DAY = 24 * 3600 * 1000

    class Carts(StatefulProcessor):
        PAGE = "page " + "STRING"

        def __init__(self, size):
            self.size = size
            self._key = "k STRING"

        def init(self, handle):
            tags = ArrayType(MapType(StringType(), IntegerType()), containsNull=False)
            self.one = handle.getValueState("one", BASE)
            self.two = handle.getListState(stateName="two", schema=StructType(BASE.fields + [StructField("tags", tags)]))
            self.three = handle.getMapState("three", self._key, self.PAGE, ttlDurationMs=DAY)
            self.four = handle.getValueState("four", StructType().add("a", "long").add("b", DoubleType(), False), None)
            self.five = handle.getValueState("five", StructType.fromDDL("a INT, b STRUCT<c: DATE>"), DAY)
            with closing(handle):
                handle.deleteIfExists("old")

        def handleInputRows(self, key, rows, timers):
            self.one.get()
'''


@pytest.mark.requirement("DBX-4")
def test_what_an_application_declares_is_read() -> None:
    plan = parse_python(dedent(APPLICATION))
    found = {
        each.name: (each.kind, to_ddl(each.value), to_ddl(each.user_key) if each.user_key else None, each.has_ttl)
        for each in plan.variables
    }
    base = "id BIGINT NOT NULL, price DECIMAL(10,2) COMMENT 'net'"
    assert found == {
        "one": ("value", base, None, False),
        "two": ("list", f"{base}, tags ARRAY<MAP<STRING, INT>>", None, False),
        "three": ("map", "page STRING", "k STRING", True),
        "four": ("value", "a BIGINT, b DOUBLE NOT NULL", None, False),
        "five": ("value", "a INT, b STRUCT<c: DATE>", None, True),
    }
    assert (plan.removed, plan.language) == (("old",), "python")
    assert plan.variables[0].place == "line 22, column 20"


def in_init(*lines: str, before: str = "") -> str:
    body = "\n".join(f"        {line}" for line in lines)
    return f"{before}class App:\n    def init(self, handle):\n{body}\n"


OPERATOR = """
class P(StatefulProcessor):
    def init(self, handle):
        self.v = handle.getValueState("v", "a INT", {ttl})

MODE = "Append"
out = (rows.groupBy("id"){call})
"""


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ('.transformWithState(P(), "n INT", "Update", "None")', ("transformWithState", "Update", "None")),
        ('.transformWithStateInPandas(P(), outputStructType=T, outputMode=MODE, timeMode="processingtime")', ("transformWithStateInPandas", "Append", "ProcessingTime")),
        ('.transformWithState(P(), T, chosen(), mode)', ("transformWithState", None, None)),
        ('.transformWithState(P(), T, *modes)', ("transformWithState", None, None)),
        ('.transformWithState(A(), T, "Update", "None").transformWithState(B(), T, "Update", "None")', (None, None, None)),
        ("", (None, None, None)),
    ],
)  # fmt: skip
def test_the_call_that_makes_the_operator_says_its_api_and_modes(call: str, said: tuple[str | None, ...]) -> None:
    plan = parse_python(OPERATOR.format(call=call, ttl=None))
    assert (plan.api, plan.output_mode, plan.time_mode) == said


def test_a_time_to_live_of_zero_is_none_and_one_below_is_refused() -> None:
    (variable,) = parse_python(OPERATOR.format(call="", ttl=0)).variables
    assert variable.has_ttl is False
    with pytest.raises(InvalidSchema, match="the time to live is below zero"):
        parse_python(OPERATOR.format(call="", ttl=-5))


@pytest.mark.parametrize(
    ("source", "line", "column", "says"),
    [
        (in_init('handle.getValueState("v", SCHEMA)'), 3, 35, "SCHEMA isn't assigned in this file"),
        (in_init('handle.getValueState("v", SCHEMA)', before="from x import SCHEMA\n"), 4, 35, "has no one value here"),
        (in_init('handle.getValueState("v", handle)'), 3, 35, "has no one value here"),
        (in_init('handle.getValueState("v", make())'), 3, 35, r"what make\(…\) gives"),
        (in_init('handle.getValueState("v", f"a {kind}")'), 3, 35, "is no text, type or name"),
        (in_init('handle.getValueState("v", self.schema)'), 3, 35, "self.schema"),
        (in_init('handle.getValueState("v", "a INTT")'), 3, 35, 'its DDL can\'t be read: .*"INTT"'),
        (in_init('handle.getValueState("v", S)', before='S = "a INT"\nS = "b INT"\n'), 5, 35, "assigned twice"),
        (in_init('handle.getValueState("v", S)', before='if x:\n    S = "a INT"\n'), 5, 35, "no one value"),
        (in_init('handle.getValueState("v", S)', before="S = S\n"), 1, 5, "is defined by itself"),
        (in_init("handle.getValueState(*given)"), 3, 9, r"arguments with \*"),
        (in_init('handle.getValueState("v")'), 3, 9, "without a schema"),
        (in_init("handle.getValueState(7, 'a INT')"), 3, 30, "no text"),
        (in_init("for n in names:", "    handle.getValueState(n, 'a INT')"), 4, 13, "in a branch or a loop"),
        (in_init("if self.old:", "    handle.deleteIfExists('v')"), 4, 13, "in a branch or a loop"),
        (in_init("handle.getValueState('v', 'a INT')", "handle.getListState('v', 'a INT')"), 4, 9, "declared twice"),
        (in_init("handle.getValueState('v', StructType([1]))"), 3, 35, "a list of StructFields"),
        (in_init("handle.getValueState('v', StructType([StructField('a')]))"), 3, 47, "lacks an argument"),
        (in_init("handle.getValueState('v', 'a INT', hours(2))"), 3, 44, r"what hours\(…\) gives"),
        ("def x(:", 1, 7, "this is no Python"),
    ],
)
def test_what_only_running_it_would_tell_is_refused_with_its_place(
    source: str, line: int, column: int, says: str
) -> None:
    with pytest.raises(InvalidSchema, match=says) as caught:
        parse_python(source)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_all_problems_are_said_at_once() -> None:
    with pytest.raises(InvalidSchema, match=r"A isn't assigned.*line 4, column 35: B isn't assigned"):
        parse_python(in_init('handle.getValueState("v", A)', 'handle.getValueState("w", B)'))


def test_which_class_is_meant_must_be_clear() -> None:
    source = in_init("handle.getValueState('v', 'a INT')")
    two = source + source.replace("App", "Other").replace("'v'", "'w'")
    with pytest.raises(InvalidSchema, match="several classes declare state: App, Other"):
        parse_python(two)
    assert [each.name for each in parse_python(two, "Other").variables] == ["w"]
    with pytest.raises(InvalidSchema, match="the class None1 declares no state"):
        parse_python(two, "None1")
    with pytest.raises(InvalidSchema, match="the file declares no state"):
        parse_python("x = 1\n")


def test_nothing_is_executed(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    evil = f"__import__('pathlib').Path({str(mark)!r}).touch()"
    with pytest.raises(InvalidSchema):
        parse_python(f"{evil}\n" + in_init(f"handle.getValueState('v', {evil})"))
    assert not mark.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        "x" + " + x" * 100_000,
        "(" * 10_000,
        "[" * 90 + "]" * 90,
        "\0",
        "A0 = ['x']\n"
        + "".join(f"A{n} = A{n - 1} + A{n - 1}\n" for n in range(1, 60))
        + in_init("handle.getValueState('v', A59)"),
        "A0 = 'a INT'\n" + "".join(f"A{n} = A{n - 1}\n" for n in range(1, 5_000)) + in_init("handle.getValueState('v', A4999)"),
        in_init("handle.getValueState('v', StructType()" + ".add('a', 'long')" * 3_000 + ")"),
        "x = 1\n" * 400_000,
    ],
    ids=["sum", "brackets", "lists", "null", "doubling", "chain of names", "chain of calls", "long"],
)  # fmt: skip
def test_hostile_files_end_soon(source: str) -> None:
    with costs_little(40):  # the doubling one has no end if its text is made
        with pytest.raises(InvalidSchema):
            parse_python(source)


@settings(deadline=None)
@given(st.text(st.sampled_from("ab=()[]'\".,:\n handle.getValueState StructType"), max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        parse_python(text)

"""Plans out of Python files: what is read, what is refused with its place, and that nothing is executed."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry.checkpoints.plans import parse_python
from registry.checkpoints.plans.model import to_ddl
from registry.errors import InvalidSchema
from tests.waiting import costs_little

APPLICATION = '''
    """An application; importing it would fail."""
    import pyspark.sql.types as T
    from pyspark.sql.types import *
    from somewhere.that_is_not import there

    assert False, "this file is never executed"

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


THRESHOLD = "spark.sql.streaming.stateStore.valueStateSchemaEvolutionThreshold"
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
        ('.transformWithState(P(), T)', ("transformWithState", None, None)),
        ("", (None, None, None)),
    ],
)  # fmt: skip
def test_the_call_that_makes_the_operator_says_its_api_and_modes(call: str, said: tuple[str | None, ...]) -> None:
    plan = parse_python(OPERATOR.format(call=call, ttl=None))
    assert (plan.api, plan.output_mode, plan.time_mode) == said


@pytest.mark.requirement("DBX-4")
@pytest.mark.parametrize(
    ("call", "more", "reason"),
    [
        (".transformWithState(P(), T, chosen(), 'None')", "", "which output mode `chosen\\(\\)` gives"),
        (".transformWithState(P(), T, 'Update', sys.argv[1])", "", "which time mode `sys.argv\\[1\\]` gives"),
        (".transformWithState(P(), T, *modes)", "", "takes arguments with `\\*`"),
        (".transformWithState(P(), T, 'Update', 'None').dropDuplicates(['id'])", "", "`dropDuplicates` keeps state"),
        ("", "spark.conf.set(name, '2')", "can't tell what `spark.conf.set"),
        ("", "name = 'spark.x'\ndef start(name):\n    spark.conf.set(name, 2)\n", "can't tell what `spark.conf.set"),
        ("", f"spark.conf.set({THRESHOLD!r}, 1)\nspark.conf.set({THRESHOLD!r}, 2)", "to two values"),
    ],
)
def test_what_the_file_leaves_to_its_run_is_refused(call: str, more: str, reason: str) -> None:
    with pytest.raises(InvalidSchema, match=reason):
        parse_python(OPERATOR.format(call=call, ttl=None) + more)


@pytest.mark.requirement("DBX-4")
def test_streaming_settings_of_the_file_are_part_of_the_plan() -> None:
    more = f"spark.conf.set({THRESHOLD!r}, 2)\nspark.conf.set('spark.x', y)\n"
    assert parse_python(OPERATOR.format(call="", ttl=None) + more).settings == {THRESHOLD: "2"}


def test_a_time_to_live_of_zero_is_none_and_one_below_is_refused() -> None:
    (variable,) = parse_python(OPERATOR.format(call="", ttl=0)).variables
    assert variable.has_ttl is False
    with pytest.raises(InvalidSchema, match="The time to live is below zero"):
        parse_python(OPERATOR.format(call="", ttl=-5))


@pytest.mark.parametrize(
    ("source", "line", "column", "says"),
    [
        (
            in_init('handle.getValueState("v", SCHEMA)'),
            3,
            35,
            "The file doesn't assign `SCHEMA`",
        ),
        (
            in_init('handle.getValueState("v", SCHEMA)', before="from x import SCHEMA\n"),
            4,
            35,
            "has no single value here",
        ),
        (
            in_init("handle.getValuState('w', 'a INT')", "handle.getValueState('v', 'a INT')"),
            3,
            9,
            "`getValuState` is not known as a method of the handle",
        ),
        (
            in_init("self._h = handle", "handle.getValueState('v', 'a INT')")
            + "    def close(self):\n        self._h.delete('w')\n",
            6,
            9,
            "`delete` is not known as a method of the handle",
        ),
        (in_init("while True:", "    pass", "handle.deleteIfExists('v')"), 5, 9, "after the `while` loop in line 3"),
        (in_init("while self.a:", "    f()", "handle.deleteIfExists('v')"), 5, 9, "after the `while` loop in line 3"),
        (
            in_init("for n in itertools.count():", "    f()", "handle.deleteIfExists('v')"),
            5,
            9,
            "after the `for` loop in line 3",
        ),
        (
            "def wait():\n    while x:\n        pass\n" + in_init("wait()", "handle.deleteIfExists('v')"),
            7,
            9,
            "after the call of `wait` in line 6",
        ),
        (
            in_init("handle.deleteIfExists('v')", before="while True:\n    pass\n"),
            3,
            1,
            "after the `while` loop in line 1",
        ),
        (in_init('handle.getValueState("v", handle)'), 3, 35, "has no single value here"),
        (in_init('handle.getValueState("v", make())'), 3, 35, r"The check can't tell what `make\(…\)` returns"),
        (in_init('handle.getValueState("v", f"a {kind}")'), 3, 35, "this is none of them"),
        (in_init('handle.getValueState("v", self.schema)'), 3, 35, "self.schema"),
        (in_init('handle.getValueState("v", "a INTT")'), 3, 35, 'This is not a DDL text that Spark reads: .*"INTT"'),
        (in_init('handle.getValueState("v", S)', before='S = "a INT"\nS = "b INT"\n'), 5, 35, "assigned twice"),
        (in_init('handle.getValueState("v", S)', before='if x:\n    S = "a INT"\n'), 5, 35, "no single value"),
        (in_init('handle.getValueState("v", S)', before="S = S\n"), 1, 5, "is defined by itself"),
        (in_init("handle.getValueState(*given)"), 3, 9, r"arguments with `\*`"),
        (in_init('handle.getValueState("v")'), 3, 9, "without a schema"),
        (in_init("handle.getValueState(7, 'a INT')"), 3, 30, "not a text"),
        (
            in_init("for n in names:", "    handle.getValueState(n, 'a INT')"),
            4,
            13,
            r"`getValueState\(n\)` is inside a `for` loop, so the check can't tell",
        ),
        (
            in_init("if self.old:", "    handle.deleteIfExists('v')"),
            4,
            13,
            r'`deleteIfExists\("v"\)` is inside an `if`, so the check',
        ),
        (
            in_init("handle.getValueState('v', 'a INT')", "handle.getListState('v', 'a INT')"),
            4,
            9,
            "declares 'v' twice",
        ),
        (in_init("handle.getValueState('v', StructType([1]))"), 3, 35, "a list of StructFields"),
        (in_init("handle.getValueState('v', StructType([StructField('a')]))"), 3, 47, "lacks an argument"),
        (
            in_init("handle.getValueState('v', 'a INT', hours(2))"),
            3,
            44,
            r"The check can't tell what `hours\(…\)` returns",
        ),
        ("def x(:", 1, 7, "this is not Python"),
    ],
)
def test_what_only_running_it_would_tell_is_refused_with_its_place(
    source: str, line: int, column: int, says: str
) -> None:
    with pytest.raises(InvalidSchema, match=says) as caught:
        parse_python(source)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_all_problems_are_said_at_once() -> None:
    with pytest.raises(
        InvalidSchema,
        match=r"The file doesn't assign `A`\. Line 4, column 35: the file doesn't assign `B`\. Write the plan",
    ):
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


IMPORTS = """from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import *
"""
PROCESSOR = """class P(StatefulProcessor):
    def init(self, handle):
        {init}
        self.v = handle.getValueState("v", {schema})

    def handleInputRows(self, key, rows, timers):
        {rows}
"""


def processor(
    before: str = "", *, init: str = "pass", schema: str = "S", rows: str = "pass", after: str = "", body: str = ""
) -> str:
    """A file with one processor whose plan is read, but for what is given to it."""
    indented = {"init": init.replace("\n", "\n" + 8 * " "), "rows": rows.replace("\n", "\n" + 8 * " ")}
    made = PROCESSOR.format(schema=schema, **indented)
    return "\n".join((IMPORTS, before, made + "".join(f"    {line}\n" for line in body.splitlines()), after, ""))


STRUCT = 'S = StructType([StructField("a", LongType())])'
TEXT = 'S = "a INT"'
LIST = 'F = [StructField("a", LongType())]\nS = StructType(F)'
OVERRIDE = TEXT + "\n" + PROCESSOR.format(init="pass", schema="self.S", rows="pass") + '    S = "a INT"\n'
USE = 'out = rows.transformWithState({made}, "n INT", "Update", "None")'

REFUSED = {
    # a schema that is changed in place
    "add": (processor(STRUCT + '\nS.add("b", "long")'), "changes `S` in place"),
    "add in init": (processor(STRUCT, init='S.add("b", "long")'), "changes `S` in place"),
    "add in another value": (processor(STRUCT + '\nT = S.add("b", "long")'), "changes `S` in place"),
    "add under if": (processor(STRUCT + '\nif x:\n    S.add("b", "long")'), "changes `S` in place"),
    "add in a function": (processor(STRUCT + '\ndef grow():\n    S.add("b", "long")'), "changes `S` in place"),
    "add by a parameter": (processor(STRUCT + '\ndef f(s):\n    s.add("b", "long")\nf(S)'), "in place"),
    "add by another name": (processor(STRUCT + '\nT = S\nT.add("b", "long")'), "in place"),
    "add in the class": (processor(body=STRUCT + '\nS.add("b", "long")', schema="self.S"), "changes `S` in place"),
    "add on self": (processor(body=STRUCT, init='self.S.add("b", "long")', schema="self.S"), "changes `S` in place"),
    "fields.append": (processor(STRUCT + "\nS.fields.append(x)"), "changes `S` in place"),
    "list append": (processor(LIST + "\nF.append(x)"), "in place"),
    "list extend": (processor(LIST + "\nF.extend(x)"), "in place"),
    "list insert": (processor(LIST + "\nF.insert(0, x)"), "in place"),
    "shared list": (processor(LIST + '\nT = StructType(F).add("b", "long")'), "changes `F` in place"),
    "item of a list": (processor(LIST + "\nF[0] = x"), "in place"),
    "deleted item": (processor(LIST + "\ndel F[0]"), "in place"),
    "attribute of a schema": (processor(STRUCT + "\nS.fields = x"), "changes `S` in place"),
    "attribute of a field": (processor(STRUCT + "\nfor f in S.fields:\n    f.nullable = False"), "in place"),
    "augmented": (processor(LIST + "\nF += x"), "no single value"),
    # classes that build on each other
    "overridden": (OVERRIDE + 'class Q(P):\n    S = "a STRING"\n' + USE.format(made="Q()"), "`Q` inherits from `P`"),
    "maybe overridden": (OVERRIDE + 'class Q(P):\n    S = "a STRING"\n', "say which of them you mean"),
    "passed is not known": (OVERRIDE + USE.format(made="make()"), "`make` is not a class of this file"),
    "imported base": (processor(TEXT).replace("(StatefulProcessor)", "(Base)"), "inherits from `Base`"),
    "replaced base": (
        "from x import Other as StatefulProcessor\n" + processor(TEXT),
        "inherits from `StatefulProcessor`",
    ),
    "imported init": (
        processor(TEXT, init="super().init(handle)").replace("(StatefulProcessor)", "(x.Base)"),
        "inherits from `x.Base`",
    ),
    "on self and in the class": (processor(body=TEXT, init='self.S = "b INT"', schema="self.S"), "no single value"),
    "of another scope": (
        processor(body="def __init__(self, S):\n    self.s = S", init=TEXT, schema="self.s"),
        "`S` has no single value",
    ),
    "decorated": (processor(TEXT).replace("class P", "@made\nclass P"), "has a decorator"),
    # deleted and declared
    "deleted before": (processor(TEXT, init='handle.deleteIfExists("v")'), "both deletes and declares 'v'"),
    "deleted after": (
        processor(TEXT, init='handle.getListState("w", S)\nhandle.deleteIfExists("w")'),
        "both deletes and declares 'w'",
    ),
    # names that are there twice
    "init twice": (processor(TEXT, body="def init(self, handle):\n    pass"), "defines `init` twice"),
    "init assigned": (processor(TEXT, body="init = other"), "`init` is not a plain method"),
    "method twice": (processor(TEXT, body="def f(self):\n    pass\ndef f(self):\n    pass"), "defines `f` twice"),
    "class twice": (processor(TEXT, after="class P:\n    pass"), "assigns `P` more than once"),
    "class replaced": (processor(TEXT, after="P = other(P)"), "assigns `P` more than once"),
    # what may not run
    "return": (processor(TEXT, init="if self.old:\n    return"), "comes after the `return` in line 8, so"),
    "plain return": (processor(TEXT, init="return"), "comes after the `return`"),
    "raise": (processor(TEXT, init="if self.old:\n    raise ValueError"), "comes after the `raise`"),
    "raise in a method": (
        processor(TEXT, init="self.f()", body="def f(self):\n    raise ValueError"),
        "comes after the `raise`",
    ),
    **{
        f"behind {code}": (processor(TEXT, init=code), "is inside .*, so the check can't tell whether it runs")
        for code in (
            "C and handle.deleteIfExists('w')",
            "C or handle.deleteIfExists('w')",
            "handle.deleteIfExists('w') if C else None",
            "[handle.deleteIfExists('w') for each in C]",
            "a < b < handle.deleteIfExists('w')",
            "f = lambda: handle.deleteIfExists('w')",
            "try:\n    handle.deleteIfExists('w')\nexcept ValueError:\n    pass",
            "with suppress(ValueError):\n    handle.deleteIfExists('w')",
            "while C:\n    handle.deleteIfExists('w')",
            "match C:\n    case 1:\n        handle.deleteIfExists('w')",
            "def f():\n    handle.deleteIfExists('w')",
        )
    },
    # what ends before it comes to a declaration
    **{
        f"ends by {code}": (processor(TEXT, init=code), f"comes after {words} in line 7, so the check can't tell")
        for code, words in {
            "sys.exit()": "the call of `sys.exit`",
            "pass; exit(1)": "the call of `exit`",
            "os._exit(1)": "the call of `os._exit`",
            "x = 1 if C else sys.exit()": "the call of `sys.exit`",
            "assert C": "the `assert`",
            "raise SystemExit": "the `raise`",
        }.items()
    },
    "exit in a branch": (processor(TEXT, init="if C:\n    sys.exit()"), "comes after the call of `sys.exit` in line 8"),
    "exit in a method": (
        processor(TEXT, init="self.f()", body="def f(self):\n    sys.exit()"),
        "comes after the call of `sys.exit`",
    ),
    "exit in a function of the file": (
        processor(TEXT + "\ndef die():\n    sys.exit()\ndef fail():\n    die()", init="fail()"),
        "comes after the call of `fail`",
    ),
    "exit before the class": (processor(TEXT + "\nsys.exit(0)"), "The class `P` comes after the call of `sys.exit` in"),
    "raise before the class": (
        processor(TEXT + "\nraise SystemExit"),
        "The class `P` comes after the `raise` in line 5",
    ),
    "exit before the operator": (
        processor(TEXT, after="with x:\n    exit()\n" + USE.format(made="P()")),
        "`transformWithState` comes after the call of `exit` in line 14, so it never runs",
    ),
    "return before the operator": (
        processor(TEXT, after="def main():\n    return\n    " + USE.format(made="P()")),
        "`transformWithState` comes after the `return` in line 14, so it never runs",
    ),
    # schemas that functions of other files get
    **{
        f"given to {code}": (
            processor("from other import grow\n" + STRUCT + "\n" + code),
            "gets `.*` and isn't in this file",
        )
        for code in (
            "grow(S)",
            "other.grow(S)",
            "x = grow(schema=S)",
            "grow(S.fields)",
            "grow([S])",
            "grow(StructType(S.fields))",
            "T = S\ngrow(T)",
            "def f(s):\n    grow(s)\nf(S)",
            "for each in S:\n    grow(each)",
            "class Q(Base):\n    def f(self):\n        grow(S)",
        )
    },
    "given in init": (processor(STRUCT, init="grow(S)"), r"`grow\(…\)` gets `S` and isn't in this file"),
    "a namesake of PySpark's": (
        processor("from other import from_json\n" + STRUCT, after="from_json(S)"),
        "isn't in this file",
    ),
    "list given": (processor(LIST + "\ngrow(F)"), "gets `F` and isn't in this file"),
    "self given": (processor(body=STRUCT, schema="self.S", init="grow(self)"), "gets `self` and isn't in this file"),
    "generator": (processor(TEXT, init="yield 1"), "a generator"),
    "async": (processor(TEXT).replace("def init", "async def init"), "async"),
    # methods that init doesn't come to
    "another method": (
        processor(TEXT, body='def f(self, h):\n    h.getValueState("w", "a INT")'),
        "outside of what `init` calls",
    ),
    "method under if": (
        processor(TEXT, init="if C:\n    self.f(handle)", body='def f(self, h):\n    h.getValueState("w", "a INT")'),
        "passed on",
    ),
    "deleted elsewhere": (
        processor(TEXT, init="self.h = handle", rows="self.h.deleteIfExists('w')"),
        "outside of what `init` calls",
    ),
    # code that isn't in the file
    "helper": (processor(TEXT, init="helper(handle)"), "`handle` is passed on"),
    "helper's method": (processor(TEXT, init="self.x.f(handle)"), "is passed on"),
    "kept and passed": (processor(TEXT, init="self.h = handle\nhelper(self.h)"), "is passed on"),
    "self passed": (processor(TEXT, init="self.h = handle\nhelper(self)"), "is passed on and holds the handle"),
    "another name": (processor(TEXT, init="h = handle\nh.deleteIfExists('w')"), "is passed on"),
    "getattr": (processor(TEXT, init="getattr(handle, n)('w')"), "is passed on"),
    "bound method": (
        processor(TEXT, init="d = handle.deleteIfExists\nd('w')"),
        "outside of what `init` calls|passed on",
    ),
    "handle replaced": (processor(TEXT, init="handle = other"), "assigns another value to the handle"),
    # names that are replaced
    **{
        f"replaced by {code}": (processor(TEXT + "\n" + code), "`S` has no single value")
        for code in (
            "with x as S:\n    pass",
            "for S in x:\n    pass",
            "try:\n    pass\nexcept ValueError as S:\n    pass",
            "def S():\n    pass",
            "class S:\n    pass",
            "del S",
            "def f():\n    global S\n    S = 1",
            "(S := 1)",
            "[S := 1 for x in y]",
            "import S",
            "from x import S",
            "(a, (b, *S)) = x",
            "match x:\n    case S:\n        pass",
        )
    },
    "star": ("from x import *\n" + processor(TEXT), "imports everything of `x`"),
    "star of a package": ("from . import *\n" + processor(TEXT), "imports everything of `.`"),
    "class attribute from outside": (processor(body=TEXT, schema="self.S", after='P.S = "b INT"'), "assigns `P.S`"),
    "init from outside": (processor(TEXT, after="P.init = other"), "assigns `P.init`"),
    "setattr": (processor(TEXT, after='setattr(P, "init", other)'), r"what `setattr\(…\)` changes"),
    "exec": (processor(TEXT, after="exec(x)"), r"what `exec\(…\)` changes"),
    "type of another package": ("from x import StructType\n" + processor(STRUCT), "may not be PySpark's"),
    "type of this file": (processor("def LongType():\n    return StringType()\n" + STRUCT), "may not be PySpark's"),
    "type of an unknown module": (processor(schema="x.StructType([])"), "may not be PySpark's"),
    # several operators
    "two operators": (processor(TEXT, after=f"{USE.format(made='P()')}\n{USE.format(made='P()')}"), "more than once"),
    "another class": (processor(TEXT, after=USE.format(made="Imported()")), "`Imported` is not a class of this file"),
}


@pytest.mark.parametrize(("source", "says"), REFUSED.values(), ids=REFUSED)
def test_what_could_be_otherwise_when_it_runs_is_refused(source: str, says: str) -> None:
    with pytest.raises(InvalidSchema, match=says) as caught:
        parse_python(source)
    assert caught.value.line and caught.value.column
    assert "Write the plan as a JSON document instead." in caught.value.message


READ = {
    "text": processor(TEXT.replace("INT", "BIGINT")),
    "struct": processor(STRUCT),
    "chained": processor('S = StructType().add("a", "long")'),
    "chained on a field": processor('A = StructField("a", LongType())\nS = StructType([A])\nT = StructType([A]).add("b", "long")'),
    "passed by name": processor(STRUCT, after="p = P()\n" + USE.format(made="p")),
    "in the class": processor(body=STRUCT, schema="self.S"),
    "on self": processor(init='self.s = "a BIGINT"', schema="self.s"),
    "renamed type": "from pyspark.sql.types import LongType as IntegerType\n" + processor('S = StructType([StructField("a", IntegerType())])'),
    "local of a function": processor(STRUCT + "\ndef f():\n    S = 1"),
    "own methods": processor(init='self._rest(handle)', schema="'a BIGINT'", body="def _rest(self, h):\n    self.x = 1"),
    "kept handle": processor(STRUCT, init="self._handle = handle", rows="self._handle.registerTimer(1)"),
    "Spark's init": processor(STRUCT, init="super().init(handle)"),
    "other calls": processor(STRUCT, init="handle.listTimers()\nlog(self)\nif C:\n    print(1)", rows="return\nraise x"),
    "sets and lists": processor(STRUCT, rows="seen = set()\nseen.add(1)\nself.v.update((1,))\nrows.append(1)"),
    "text given": processor(TEXT.replace("INT", "BIGINT") + "\nprepare(S)"),
    "exit elsewhere": processor(STRUCT, after="def main():\n    if bad:\n        sys.exit(1)\n    " + USE.format(made="P()") + "\nif __name__ == '__main__':\n    sys.exit(main())"),
    "exit under a condition": processor("if len(sys.argv) < 2:\n    sys.exit(1)\n" + STRUCT, after=USE.format(made="P()")),
    "PySpark's functions": "from pyspark.sql import functions as F\n" + processor(STRUCT, after="x.select(F.from_json('v', S))\nspark.read.schema(S).load()\nprint(S)"),
    "used as a schema": processor(STRUCT, after="rows = x.select(from_json('v', S))\n" + USE.format(made="P()")),
}  # fmt: skip


@pytest.mark.parametrize("source", READ.values(), ids=READ)
def test_ordinary_files_are_read(source: str) -> None:
    (variable,) = parse_python(source).variables
    assert (variable.name, to_ddl(variable.value)) == ("v", "a BIGINT")


def test_own_methods_that_init_calls_are_followed_in_order() -> None:
    source = processor(TEXT, init="self._rest(h=handle)", body='def _rest(self, h):\n    h.getListState("w", S)')
    assert [(each.name, each.kind) for each in parse_python(source).variables] == [("w", "list"), ("v", "value")]


def test_of_several_operators_the_class_is_said_and_their_modes_are_one() -> None:
    both = processor(TEXT, after=USE.format(made="P()") + "\n" + USE.format(made="Other()"))
    assert parse_python(both, "P").output_mode == "Update"
    with pytest.raises(InvalidSchema, match="with different modes"):
        parse_python(both + USE.format(made="P()").replace("Update", "Append"), "P")
    with pytest.raises(InvalidSchema, match="The call takes Other, not P"):
        parse_python(processor(TEXT, after=USE.format(made="Other()")), "P")


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

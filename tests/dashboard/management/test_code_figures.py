"""The code's figures stay within their limits, and each figure counts what its name says."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from dashboard.management.commands.code_figures import LIMITS, Module, code_lines, import_cycle, measure

ROOT = Path(__file__).resolve().parents[3]


def test_no_figure_is_over_its_limit() -> None:
    over = {name: value for name, value in measure(ROOT).items() if value > LIMITS[name].limit}
    assert over == {}, "see manage.py code_figures; a limit may go down, not up"


def test_no_limit_is_below_its_goal() -> None:
    assert [name for name, limit in LIMITS.items() if limit.limit < limit.goal] == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", 0),
        ('"""A docstring\nof two lines."""\n', 0),
        ("# a comment\n\nx = 1  # another\n", 1),
        ("x = [\n    1,\n]\n", 3),
        ('def f():\n    """Docstring."""\n    return """text\n    of two lines"""\n', 3),
    ],
)
def test_lines_of_code_leave_out_blanks_comments_and_docstrings(text: str, lines: int) -> None:
    assert code_lines(text) == lines


def a_tree(folder: Path, files: dict[str, str]) -> Path:
    """Two packages with these modules, and no templates but one."""
    for name, text in {
        "registry/__init__.py": "",
        "dashboard/__init__.py": "",
        "templates/a.html": "",
        **files,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_each_figure_counts_what_its_name_says(tmp_path: Path) -> None:
    long_function = "def long(found):\n" + "    x = 1\n" * 21
    figures = measure(
        a_tree(
            tmp_path,
            {
                "registry/a.py": f"import os\nfrom registry import b\n{long_function}class Same: ...\n",
                "registry/b.py": "from registry import a\nclass Same: ...\n",
                "dashboard/home/views.py": "class Same: ...\n",
                "dashboard/runtime/parts.py": "y = 2\n",
                "dashboard/migrations/0001.py": "found = 1\n",
                "templates/b.html": "x" * 161 + "\n" + "x" * 160,
            },
        )
    )
    assert figures["modules"] == 6
    assert figures["lines of code"] == 25 + 2 + 1 + 1
    assert figures["lines of presentation"] == 1
    assert figures["import lines, %"] == pytest.approx(100 * 3 / 29, abs=0.01)
    assert figures["vague names, %"] == pytest.approx(100 / 23, abs=0.01)
    assert figures["class names with more than two homes"] == 1
    assert figures["modules in the largest folder"] == 3
    assert figures["import cycles"] == 1
    assert figures["functions over 20 lines, %"] == 100
    assert figures["template lines over 160 characters"] == 1


@pytest.mark.parametrize(
    ("imports", "is_cycle"),
    [
        ("from registry import a", True),
        ("import registry.a", True),
        ("try:\n    from registry import a\nexcept ImportError:\n    pass", True),
        ("if TYPE_CHECKING:\n    from registry import a", False),
        ("def f():\n    from registry import a", False),
        ("from registry import other", False),
    ],
)
def test_a_cycle_is_made_of_what_loads_with_a_module(imports: str, is_cycle: bool) -> None:
    texts = {"registry.a": "from registry import b", "registry.b": imports}
    modules = [Module(name, Path(name), text, ast.parse(text)) for name, text in texts.items()]
    assert (import_cycle(modules) is not None) == is_cycle

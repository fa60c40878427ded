"""Docs that are true: reference pages equal the tables, links lead somewhere, every requirement has its test."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from dashboard.management.commands.reference import PAGES, stale_pages

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#]+)(?:#[^)]*)?\)")
DOCS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])


def test_reference_pages_are_what_the_tables_say() -> None:
    assert stale_pages(write=False) == [], "run manage.py reference"
    assert PAGES


@pytest.mark.parametrize("page", DOCS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    broken = [target for target in LINK.findall(page.read_text()) if not (page.parent / target).exists()]
    assert broken == []


def test_commands_in_the_readme_exist() -> None:
    named = set(re.findall(r"manage\.py (\w+)", (ROOT / "README.md").read_text()))
    commands = {path.stem for path in ROOT.glob("*/**/management/commands/*.py")} | {"test"}
    assert named - commands == set()


def test_what_the_tree_in_the_docs_names_is_there() -> None:
    tree = (ROOT / "docs" / "architecture.md").read_text().split("```")[1]
    top = [line.split()[0] for line in tree.splitlines() if line and not line.startswith(" ")]
    missing = [name for name in top if not (ROOT / name).exists()]
    assert missing == []


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    listed = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    names = [re.split(r"[^a-z0-9-]", name)[0] for name in listed]
    reasons = (ROOT / "docs" / "decisions" / "0002-dependencies.md").read_text()
    assert [name for name in names if f"`{name}`" not in reasons and name not in reasons] == []


def test_every_requirement_has_a_test_or_is_listed() -> None:
    tested = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        for ids in re.findall(r"mark\.requirement\(([^)]*)\)", path.read_text()):
            tested |= set(re.findall(r"[A-Z]+-\d+", ids))
    page = (ROOT / "docs" / "requirements.md").read_text()
    every = set(re.findall(r"^\| ([A-Z]+-\d+) \|", page, re.MULTILINE))
    listed_open = set(re.findall(r"^\| ([A-Z]+-\d+) \|.*\| not yet \|$", page, re.MULTILINE))
    assert every - tested == listed_open, "docs/requirements.md must say `not yet` for exactly those without a test"
    assert tested <= every


def test_no_address_of_a_package_index_is_in_the_tree() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    hosts = ["pypi" + ".org", "pythonhosted" + ".org", "repo1." + "maven", "registry." + "npmjs", "crates" + ".io"]
    named = [
        name
        for name in tracked
        if (ROOT / name).is_file() and any(host in (ROOT / name).read_text(errors="ignore") for host in hosts)
    ]
    assert named == []


def test_each_point_of_the_security_standard_has_its_tests() -> None:
    points: list[str] = []
    for line in (ROOT / "docs/operations/security.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
        if not re.fullmatch(r"\d+\.\d+\.\d+(-\d+\.\d+\.\d+)?", cells[0]):
            continue
        number, _, state, shown = cells
        assert state in ("met", "partly", "not met", "n/a"), number
        assert shown, number
        for path, name in re.findall(r"`([\w/]+\.py)::(test_\w+)`", shown):
            assert re.search(rf"^ *(async )?def {name}\(", (ROOT / "tests" / path).read_text(), re.M), (number, name)
        points.append(number)
    # Levels 1 and 2 of the standard have 253 points. A range of points that don't apply is one row.
    assert len(points) == len(set(points)) == 219

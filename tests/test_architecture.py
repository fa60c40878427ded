"""Who may import whom, as docs/architecture.md has it."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from dashboard.management.commands.reference import import_table

ROOT = Path(__file__).resolve().parent.parent
HOOKS = ROOT / "registry" / "hooks.py"


@cache
def rules() -> dict[str, set[str]]:
    """Package → what it may import, from the table that people read."""
    return import_table(ROOT)


@cache
def imports_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    if path == HOOKS:  # it imports the types of hooks for mypy, and loads none of them
        tree.body = [node for node in tree.body if not isinstance(node, ast.If)]
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] not in sys.stdlib_module_names}


def allowed(name: str, package: str, may: set[str]) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in {package, *may})


@pytest.mark.parametrize("package", sorted(rules()))
def test_a_package_imports_what_the_table_allows(package: str) -> None:
    place = ROOT / package.replace(".", "/")
    files = [place.with_suffix(".py")] if place.with_suffix(".py").exists() else sorted(place.rglob("*.py"))
    assert files, f"{package} stands in the table but not in the tree"
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in sorted(imports_of(path))
        if not allowed(name, package, rules()[package])
    ]
    assert not wrong, "\n".join(wrong)


def test_every_package_is_in_the_table() -> None:
    packages = {f"registry.{path.stem}" for path in (ROOT / "registry").iterdir() if not path.name.startswith("_")}
    assert packages <= set(rules())


def test_nobody_imports_the_site() -> None:
    wrong = [
        str(path)
        for path in (ROOT / "registry").rglob("*.py")
        if any(name.split(".")[0] == "dashboard" for name in imports_of(path))
    ]
    assert not wrong


def test_the_product_imports_no_benchmark_and_no_test() -> None:
    modules = [path for package in ("registry", "dashboard") for path in (ROOT / package).rglob("*.py")]
    outside = {"benchmarks", "tests"}
    assert [str(path) for path in modules if any(name.split(".")[0] in outside for name in imports_of(path))] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    vague = {"utils", "helpers", "common", "manager", "misc"}
    assert not [path for path in ROOT.glob("[rdt]*/**/*.py") if path.stem in vague]


@pytest.mark.requirement("CARD-5")
def test_the_top_level_and_the_packages_are_those_asked_for() -> None:
    wanted = ("manage.py", "pyproject.toml", "README.md", "registry", "dashboard", "templates", "static", "tests")
    assert [name for name in wanted if not (ROOT / name).exists()] == []
    locked = (ROOT / "requirements.lock").read_text() + (ROOT / "requirements-dev.lock").read_text()
    packages = ("django", "djangorestframework", "fastavro", "celery", "redis", "psycopg", "pytest-django")
    assert [name for name in packages if not re.search(rf"^{name}==", locked, re.MULTILINE)] == []


@pytest.mark.slow
def test_the_web_process_loads_no_spark() -> None:
    """Scans run in workers; PySpark and what it brings would cost each web process a hundred megabytes."""
    loads = (
        "import django; django.setup(); import dashboard.urls, dashboard.asgi, sys;"
        "print([name for name in ('pyspark', 'pandas', 'pyarrow', 's3fs', 'botocore') if name in sys.modules])"
    )
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
        "SECRET_KEY": "tests",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", loads], env=environment, capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr[-2000:]

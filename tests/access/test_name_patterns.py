"""Name patterns: Python and PostgreSQL agree, no other module translates them, and stored sets of characters are replaced."""

from __future__ import annotations

import ast
import hashlib
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from django.apps import apps
from django.db.models import F
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from registry.access.models import Ownership, RoleGrant, User
from registry.access.name_patterns import any_allows, likes_any, name_pattern, pattern_of
from registry.promotions.models import Environment, ReviewRule
from tests.amounts import how_many

pytestmark = pytest.mark.requirement("CARD-4")

ROOT = Path(__file__).parents[2]
#: what LIKE, regular expressions, shells and case folding have of their own, and what is more than a byte or a UTF-16 unit
SIGNS = st.sampled_from(
    [*"aAbB*?%_\\[]!^-.+(){}|$'\"/:,\n\r\t \x01", "ß", "ẞ", "é", "\u0301", "İ", "日", "😀", "\u2028", "\ufffd"]
)
NAMES = st.text(SIGNS, max_size=8)


@pytest.fixture(scope="module")
def migration() -> ModuleType:
    return import_module("registry.access.migrations.0003_patterns_without_sets")


@pytest.mark.slow
@pytest.mark.django_db
@settings(
    max_examples=how_many("random patterns of names"),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(patterns=st.lists(NAMES, min_size=1, max_size=6), names=st.lists(NAMES, min_size=1, max_size=8))
@example(["a*", "*"], ["a\n", "\n", ""])
@example(["?", "a?b"], ["😀", "a\nb", "e\u0301"])
@example(["a\\*", "a\\%", "\\"], ["a\\", "a\\x", "a%", "\\"])
@example(["a[b]", "["], ["ab", "a[b]", "["])
def test_python_and_postgresql_agree(patterns: list[str], names: list[str]) -> None:
    names = sorted({*names, *(pattern.replace("*", "").replace("?", "b") for pattern in patterns)})
    for pattern in patterns:
        allowed = {name for name in names if name_pattern(pattern).allows(name)}
        assert allowed == _in_sql(names, pattern), pattern
        assert ("[" in pattern and not allowed) or allowed == {name for name in names if fnmatchcase(name, pattern)}
    rows = _rows(names).filter(likes_any(F("email"), [name_pattern(pattern) for pattern in patterns]))
    assert set(rows.values_list("email", flat=True)) == {name for name in names if any_allows(patterns, name)}


def _rows(names: list[str]):  # type: ignore[no-untyped-def]
    """The names as rows of a table."""
    User.objects.exclude(email__in=names).filter(username__startswith="row").delete()
    known = set(User.objects.filter(username__startswith="row").values_list("email", flat=True))
    User.objects.bulk_create(
        User(username=f"row {hashlib.sha256(name.encode()).hexdigest()}", email=name)
        for name in names
        if name not in known
    )
    return User.objects.filter(username__startswith="row").order_by()


def _in_sql(names: list[str], pattern: str) -> set[str]:
    return set(_rows(names).filter(name_pattern(pattern).as_q("email")).values_list("email", flat=True))


@given(NAMES)
def test_a_pattern_of_a_name_matches_it(name: str) -> None:
    assert name_pattern(pattern_of(name)).allows(name)


#: topics of a cluster aren't under permission: their patterns are matched by Python alone
OF_TOPICS = {"registry/drift/sources/kafka_cluster.py", "registry/drift/judge/versions.py"}


def test_no_other_module_translates_patterns() -> None:
    paths = [path for folder in ("registry", "dashboard") for path in (ROOT / folder).rglob("*.py")]
    paths = [path for path in paths if path.parent.name != "migrations"]
    translating = {path.relative_to(ROOT).as_posix() for path in paths if _translates(path)}
    assert translating == OF_TOPICS | {"registry/access/name_patterns.py"}


def _translates(path: Path) -> bool:
    """Whether a module imports a matcher of patterns, or maps a wildcard of patterns to one of another language."""
    text = path.read_text()
    if not any(word in text for word in ("fnmatch", "glob", '"*"', '"?"')):
        return False
    nodes = list(ast.walk(ast.parse(text)))
    imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    mapped = {ast.unparse(key) for node in nodes if isinstance(node, ast.Dict) for key in node.keys if key}
    calls = [node for node in nodes if isinstance(node, ast.Call) and node.args]
    replaced = {
        ast.unparse(node.args[0]) for node in calls if ast.unparse(node.func).endswith((".replace", ".maketrans"))
    }
    return bool({"fnmatch", "glob"} & imported or {"'*'", "'?'"} & (mapped | replaced))


SETS = {
    "orders-[ab]": ["orders-a", "orders-b"], "[a-c]*": ["a*", "b*", "c*"], "[ab]-[cd]": ["a-c", "a-d", "b-c", "b-d"], "[aa]": ["a"],
    "[!a]*": [], "[^a]": [], "[a-z][a-z]": [], "[*]": [], "[a-cx-z]": [], "[[]x": [], "[]a]": [], "a[": [], "[A-z]": [], "[a": [],
}  # fmt: skip


@pytest.mark.parametrize("before", SETS)
def test_a_set_becomes_patterns_of_the_same_names(migration: ModuleType, before: str) -> None:
    assert migration.without_sets(before) == SETS[before]


@given(
    pattern=st.text(st.sampled_from("abc[]!^-*?"), max_size=9), name=st.text(st.sampled_from("abc[]!^-*?"), max_size=4)
)
def test_the_new_patterns_never_match_more(migration: ModuleType, pattern: str, name: str) -> None:
    after = migration.without_sets(pattern) if "[" in pattern else [pattern]
    if after:
        assert any_allows(after, name) == fnmatchcase(name, pattern)
    if fnmatchcase(name, pattern):
        assert fnmatchcase(name, migration.ANY_SET.sub("?", pattern).replace("[", "?"))


def test_stored_rows_are_rewritten(migration: ModuleType, registries: None) -> None:
    ada = User.objects.create(username="ada")
    RoleGrant.objects.create(user=ada, role="reader", subject_pattern="orders-[ab]")
    RoleGrant.objects.create(user=ada, role="reader", subject_pattern="orders-a")
    RoleGrant.objects.create(user=ada, role="steward", subject_pattern="[!a]*")
    Ownership.objects.create(user=ada, subject_pattern="[xy]")
    for pattern in ("orders-[!a]", "orders-?"):
        rule = {"environment": Environment.objects.all()[0], "reviewers": "owners", "subject_pattern": pattern}
        ReviewRule.objects.create(**rule, count=2 if pattern.endswith("]") else 1)
    migration.replace_sets(apps, None)
    granted = set(ada.role_grants.values_list("role", "subject_pattern"))
    assert granted == {("reader", "orders-a"), ("reader", "orders-b"), ("steward", "[!a]*")}
    assert set(ada.ownerships.values_list("subject_pattern", flat=True)) == {"x", "y"}
    assert list(ReviewRule.objects.values_list("subject_pattern", "count")) == [("orders-?", 2)]

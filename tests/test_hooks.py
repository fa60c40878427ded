"""The points at which one app calls another: which there are, that each is filled, and what a point refuses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from registry import hooks
from registry.hooks import HookPoint
from registry.promotions.hook_points import CheckProvider
from registry.subjects.policy.change_guard import ChangeGuard
from registry.subjects.usage.evidence import EvidenceProvider

REGISTERED = {
    "derived_tables": ["subjects_subjectactivity"],
    "rights_guards": ["reviewers of closed environments"],
    "added_accounts": ["linked accounts"],
    "scope_catalogs": ["subjects"],
    "change_guards": ["closed environments"],
    "client_guards": ["closed environments"],
    "unrequested_versions": ["closed environments"],
    "version_evidence": ["declared clients", "state", "topic scans"],
    "promotion_checks": ["drift", "state"],
    "release_checks": ["state"],
    "open_breaks": ["drift"],
    "origin_findings": ["drift"],
}


def points() -> dict[str, HookPoint[object]]:
    return {name: value for name, value in vars(hooks).items() if isinstance(value, HookPoint)}


def app_of(hook: object) -> str:
    """The app that a hook's function is of."""
    if isinstance(hook, CheckProvider):
        hook = hook.checks
    elif isinstance(hook, ChangeGuard):
        hook = hook.decide
    elif isinstance(hook, EvidenceProvider):
        hook = hook.evidence
    elif not callable(hook):  # a value: the app that registers it is known by its name
        return "registry.subjects"
    return ".".join(hook.__module__.split(".")[:2])  # type: ignore[attr-defined]


def test_every_point_is_filled_after_the_start() -> None:
    assert {name: [hook for hook, _ in point.items()] for name, point in points().items()} == REGISTERED
    assert [name for name, point in points().items() if point.name != name] == []


def test_the_document_names_every_point_and_the_apps_that_register() -> None:
    text = (Path(__file__).resolve().parent.parent / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| `([a-z_]+)` \| `registry\.[a-z]+` \| [^|]+ \| ([^|]+) \|$", text, re.MULTILINE)
    assert {name: re.findall("`([^`]+)`", apps) for name, apps in rows} == {
        name: sorted({app_of(hook) for hook in point}) for name, point in points().items()
    }


def test_hooks_run_in_the_order_of_their_names() -> None:
    point: HookPoint[str] = HookPoint("point")
    for name in ("b", "c", "a"):
        point.register(name, f"hook {name}")
    in_order: Iterable[str] = point
    assert list(in_order) == ["hook a", "hook b", "hook c"]


def test_a_name_is_taken_once() -> None:
    point: HookPoint[str] = HookPoint("point")
    point.register("name", "hook")
    point.register("name", "hook")
    with pytest.raises(ValueError, match="point has a hook named 'name' already"):
        point.register("name", "another")
    assert list(point) == ["hook"]

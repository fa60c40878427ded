"""A version is in one place, everything shows it, and the changelog has its section."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from django.test import Client

from dashboard import command_line

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]


def test_the_changelog_has_the_version_and_the_kinds_of_keep_a_changelog() -> None:
    sections = re.findall(r"^## (.*)$", CHANGELOG, re.M)
    assert sections[0] == "[Unreleased]", "new entries go there"
    assert re.fullmatch(rf"\[{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d", sections[1])
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", section) for section in sections[1:])
    for text in re.split(r"^## ", CHANGELOG, flags=re.M)[1:]:
        kinds = re.findall(r"^### (.*)$", text, re.M)
        assert kinds == [kind for kind in KINDS if kind in kinds], "each kind once, in this order"


def test_the_chart_has_the_version() -> None:
    chart = yaml.safe_load((ROOT / "deploy/helm/Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


@pytest.mark.django_db
def test_pages_the_api_metrics_and_the_program_show_the_version(
    api: Callable[[str], Client], capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"Schemadesk {VERSION}" in Client().get("/ui/accounts/login/").content.decode()
    assert api("admin").get("/v1/metadata/version").json()["version"] == VERSION
    assert f'schemadesk_info{{version="{VERSION}"}} 1.0' in api("admin").get("/metrics").content.decode()
    assert command_line.main([sys.argv[0], "--version"]) == 0
    assert capsys.readouterr().out == f"Schemadesk {VERSION}\n"

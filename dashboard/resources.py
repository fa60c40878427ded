"""Where templates, static files and translations are: in the root of a checkout, or in the installed package."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parent
IS_CHECKOUT: Final = not (_PACKAGE / "package_data").is_dir()
ROOT: Final = _PACKAGE.parent if IS_CHECKOUT else _PACKAGE / "package_data"

"""Empty messages in the place of types that nothing declares, so that the rest of a schema can be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

#: names of references never begin like this
PREFIX: Final = "__missing"


def placeholders(texts: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The texts, each importing files that declare messages of those names."""
    by_package: dict[str, dict[str, None]] = {}
    for name in names:
        package, _, simple = name.removeprefix(".").rpartition(".")
        by_package.setdefault(package, {})[simple] = None
    files = {}
    for place, (package, messages) in enumerate(by_package.items()):
        head = f"package {package};" if package else ""
        bodies = " ".join(f"message {name} {{}}" for name in messages)
        files[f"{PREFIX}_{place}.proto"] = f'syntax = "proto3"; {head} {bodies}\n'
    imports = " ".join(f'import "{name}";' for name in files)
    return {**{name: f"{text}\n{imports}\n" for name, text in texts.items()}, **files}


def is_placeholder(source: str | None) -> bool:
    """Whether a file of that name declares placeholders."""
    return source is not None and source.startswith(PREFIX)

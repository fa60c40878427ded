"""Change files of a checkpoint as `damage.yaml` says: what a copy in part, a full disk or a hand does to one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final


def damage(checkpoint: Path, row: Mapping[str, Any]) -> None:
    """Do all changes of a row. Checksum files of what is changed go with it, unless the row says that they stay."""
    for each in row["changes"]:
        ((name, given),) = each.items()
        words = given if isinstance(given, list) else [given]
        touched = CHANGES[name](checkpoint, words)
        if not row.get("checksums_stay"):
            for path in touched:
                checksum_of(path).unlink(missing_ok=True)


def checksum_of(path: Path) -> Path:
    """The file beside it in which Hadoop's local file system keeps its checksums."""
    return path.with_name(f".{path.name}.crc")


def _found(checkpoint: Path, pattern: str) -> list[Path]:
    """The files of a pattern; an error where there is none, as the row would say nothing."""
    found = [path for path in sorted(checkpoint.glob(pattern)) if not path.name.endswith(".crc")]
    if not found:
        raise FileNotFoundError(f"no file is {pattern}")
    return found


def _empty(checkpoint: Path, words: Sequence[str]) -> list[Path]:
    found = _found(checkpoint, words[0])
    for path in found:
        path.write_bytes(b"")
    return found


def _delete(checkpoint: Path, words: Sequence[str]) -> list[Path]:
    found = _found(checkpoint, words[0])
    for path in found:
        path.unlink()
    return found


def _delete_folder(checkpoint: Path, words: Sequence[str]) -> list[Path]:
    shutil.rmtree(checkpoint / words[0])
    return []


def _write(checkpoint: Path, words: Sequence[str]) -> list[Path]:
    path = checkpoint / words[0]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(words[1])
    return [path]


def _copy(checkpoint: Path, words: Sequence[str]) -> list[Path]:
    shutil.copyfile(checkpoint / words[0], checkpoint / words[1])
    return [checkpoint / words[1]]


def _halve(checkpoint: Path, words: Sequence[str]) -> list[Path]:
    found = _found(checkpoint, words[0])
    for path in found:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return found


def _flip(checkpoint: Path, words: Sequence[str]) -> list[Path]:
    """All bits of the byte in the middle."""
    found = _found(checkpoint, words[0])
    for path in found:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
    return found


def _replace(checkpoint: Path, words: Sequence[str]) -> list[Path]:
    """The first of a text becomes another of the same length, so that the file around it stays right."""
    found = _found(checkpoint, words[0])
    old, new = words[1].encode(), words[2].encode()
    for path in found:
        content = path.read_bytes()
        if old not in content:
            raise ValueError(f"{path} has no {words[1]}")
        path.write_bytes(content.replace(old, new, 1))
    return found


def _retype(checkpoint: Path, words: Sequence[str]) -> list[Path]:
    """In a schema file, a text after the name of a column family becomes another of the same length."""
    found = _found(checkpoint, words[0])
    for path in found:
        content = path.read_bytes()
        at = content.index(words[1].encode())
        changed = content[at:].replace(words[2].encode(), words[3].encode(), 1)
        if changed == content[at:] or len(changed) != len(content[at:]):
            raise ValueError(f"{path} has no {words[2]} of that length behind {words[1]}")
        path.write_bytes(content[:at] + changed)
    return found


def _last_line(checkpoint: Path, words: Sequence[str]) -> list[Path]:
    """A log without its last line."""
    path = checkpoint / words[0]
    path.write_text("\n".join(path.read_text().split("\n")[:-1]))
    return [path]


CHANGES: Final[Mapping[str, Callable[[Path, Sequence[str]], list[Path]]]] = {
    "empty": _empty,
    "delete": _delete,
    "delete_folder": _delete_folder,
    "write": _write,
    "copy": _copy,
    "halve": _halve,
    "flip": _flip,
    "replace": _replace,
    "retype": _retype,
    "without_last_line": _last_line,
}

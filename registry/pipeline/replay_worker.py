"""The part of a replay that runs in Spark's Python workers.

It is sent by value with the query, with an archive of the format engines: workers without this package unpack it. They
need pyarrow and the libraries of the formats, like the rest of this package.
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

#: the files of the package that contain the engines
_SHIPPED = ("__init__.py", "errors.py", "formats")
_SUFFIXES = (".py", ".proto")


@lru_cache(maxsize=1)
def archive_of_engines() -> bytes:
    """Return the engines as a zip archive of about 0.4 MB."""
    root = Path(__file__).resolve().parent.parent
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _SHIPPED:
            source = root / name
            for path in [source] if source.is_file() else sorted(source.rglob("*")):
                if path.suffix in _SUFFIXES:
                    archive.write(path, f"registry/{path.relative_to(root)}")
    return buffer.getvalue()


def counting(
    archive: bytes,
    reader: tuple[str, str],
    writers: Mapping[tuple[str, bytes], tuple[str, str, str]],
    seconds: float,
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function for `mapInArrow`: batches of messages → one line per task.

    `reader` is (kind, text); `writers` maps (framing, raw mark) to (mark, kind, text).
    """

    def count(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow  # type: ignore[import-untyped]

        provide_engines(archive)
        from registry.formats.replay_tally import Replayer, ReplaySchema

        marks = {key: mark for key, (mark, _, _) in writers.items()}
        schemas = {(key[0], mark): ReplaySchema(kind, text) for key, (mark, kind, text) in writers.items()}
        replayer = Replayer(ReplaySchema(*reader), schemas, seconds)
        for batch in batches:
            for partition, offset, kind, raw, size, body, header in zip(
                *(column.to_pylist() for column in batch.columns), strict=True
            ):
                if kind == "null":
                    replayer.count_without_value()
                    continue
                mark = marks.get((kind, bytes(raw))) if raw is not None else None
                replayer.add(kind if raw is not None else None, mark or "", body, size, header, (partition, offset))
        yield pyarrow.RecordBatch.from_pydict({"tally": [replayer.tally.to_json()]})

    return count


def provide_engines(archive: bytes) -> None:
    """Make `registry.formats` importable: unpack the archive if it isn't installed."""
    import atexit
    import importlib.util
    import shutil
    import tempfile

    try:
        is_there = importlib.util.find_spec("registry.formats") is not None
    except ModuleNotFoundError:
        is_there = False
    if is_there:
        return
    folder = tempfile.mkdtemp(prefix="schemadesk-engines-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
        zipped.extractall(folder)
    sys.path.insert(0, folder)

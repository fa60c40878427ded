"""Why state couldn't be read, in words that say what to do."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from registry.pipeline.state import CLIENT_NEEDED, why_unreadable


@pytest.mark.requirement("CARD-3")
@pytest.mark.parametrize(
    ("said", "lacks_client"),
    [
        (
            "(java.lang.RuntimeException) java.lang.ClassNotFoundException: Class "
            "org.apache.hadoop.fs.s3a.S3AFileSystem not found",
            True,
        ),
        ('(org.apache.hadoop.fs.UnsupportedFileSystemException) No FileSystem for scheme "s3"', True),
        ("[STDS_COMMITTED_BATCH_UNAVAILABLE] No committed batch found", False),
    ],
)
def test_a_spark_without_a_client_for_the_address_is_said_to_lack_it(said: str, lacks_client: bool) -> None:
    reason = why_unreadable(PySparkException(said))
    assert reason == (f"{CLIENT_NEEDED} ({said})" if lacks_client else said)

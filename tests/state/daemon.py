"""PySpark's daemon with what its workers import already there: they are forked from it, one or more for each batch."""

from __future__ import annotations

import pandas  # noqa: F401
import pyarrow  # noqa: F401
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager
from pyspark.sql.streaming import stateful_processor_api_client  # noqa: F401

if __name__ == "__main__":
    manager()

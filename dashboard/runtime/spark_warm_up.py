"""Runs what every scan needs in a cold Spark Connect server, so that the first scan doesn't wait for it."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro


def main() -> None:
    """Load the classes of the planner, the shuffle and the Avro functions."""
    spark = SparkSession.builder.remote(os.environ["SPARK_REMOTE"]).create()
    try:
        decoded = from_avro(f.lit(bytearray(b"\x02")), '"long"', {"mode": "PERMISSIVE"})
        spark.range(1000).select(decoded.alias("x"), f.col("id") % 7).distinct().collect()
        # Reads of state stores fail in a server that hasn't used streaming yet.
        _ = spark.streams.active
    finally:
        spark.stop()


if __name__ == "__main__":
    main()

"""Describes a streaming query of Spark as data: what its checkpoint depends on. Needs pyspark only."""

from schemadesk_spark.describe import FORMAT, describe

__all__ = ["FORMAT", "describe"]

"""Describes a streaming query of Spark as data, and reports how it runs. Needs pyspark only."""

from schemadesk_spark.describe import FORMAT, describe
from schemadesk_spark.listener import Listener

__all__ = ["FORMAT", "Listener", "describe"]

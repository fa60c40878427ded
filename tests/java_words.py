"""How tests start a JVM of their own."""

from __future__ import annotations

#: One that lives for seconds, or is asked for many small things: the second compiler and a parallel collector take more
#: time than they give, a third of all.
SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

#: A Spark that reads plans instead of compiling each into classes, which takes most of the time of a query over a few
#: rows. That both say the same is shown by tests/pipeline/test_spark_cluster.py: its cluster compiles, as users' servers do.
PLANS_NOT_COMPILED = ("-Dspark.sql.codegen.wholeStage=false", "-Dspark.sql.codegen.factoryMode=NO_CODEGEN")

"""How tests start a JVM of their own."""

from __future__ import annotations

#: One that lives for seconds, or is asked for many small things: the second compiler and a parallel collector take more
#: time than they give, a third of all.
SHORT_LIVED = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

"""Spark jobs: they report observations, never a judgement.

`run` executes one scan specification on a Spark Connect server and returns its observations.
"""

from registry.pipeline.run import run
from registry.pipeline.session import USER_ID, interrupt, probe_remote

__all__ = ["USER_ID", "interrupt", "probe_remote", "run"]

"""A Spark checkpoint's own files, read without Spark: what its state looks like, and how it came to look so."""

from registry.checkpoints.model import (
    Checkpoint,
    InternalFamily,
    Limits,
    Operator,
    SchemaVersion,
    SettingsRun,
    StateVariable,
)
from registry.checkpoints.read import read_checkpoint

__all__ = [
    "Checkpoint",
    "InternalFamily",
    "Limits",
    "Operator",
    "SchemaVersion",
    "SettingsRun",
    "StateVariable",
    "read_checkpoint",
]

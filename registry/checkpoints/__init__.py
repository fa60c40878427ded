"""Reads a Spark checkpoint's files without Spark: the schemas of its state, and their history."""

from registry.checkpoints.discovery import Bounds, Discovery, Found, find_checkpoints
from registry.checkpoints.files import ReadCache
from registry.checkpoints.filesystem import Location, parse_location, why_rows_are_not_readable
from registry.checkpoints.model import (
    Budget,
    Checkpoint,
    InternalFamily,
    Limits,
    Operator,
    QuerySource,
    SchemaVersion,
    SettingsRun,
    StateVariable,
)
from registry.checkpoints.object_store import ObjectStore, S3Endpoint, s3_options
from registry.checkpoints.reader import read_checkpoint

__all__ = [
    "Bounds",
    "Budget",
    "Checkpoint",
    "Discovery",
    "Found",
    "InternalFamily",
    "Limits",
    "Location",
    "ObjectStore",
    "Operator",
    "QuerySource",
    "ReadCache",
    "S3Endpoint",
    "SchemaVersion",
    "SettingsRun",
    "StateVariable",
    "find_checkpoints",
    "parse_location",
    "read_checkpoint",
    "s3_options",
    "why_rows_are_not_readable",
]

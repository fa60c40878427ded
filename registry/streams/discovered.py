"""What a search for checkpoints found, as JSON values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from registry.checkpoints import Checkpoint, Discovery


def discovery_dict(done: Discovery, sources: Mapping[str, int]) -> dict[str, Any]:
    """A search as JSON values; `sources` has the numbers of those that are sources already, by path."""
    found = [
        {
            "path": each.path,
            "source": sources.get(each.path),
            "refused": each.refused,
            "checkpoint": _checkpoint_dict(each.checkpoint) if each.checkpoint else None,
        }
        for each in done.found
    ]
    return {
        "found": found,
        "folders": done.folders,
        "ended_early": done.ended_early,
        "passed_over": list(done.passed_over),
    }


def _checkpoint_dict(checkpoint: Checkpoint) -> dict[str, Any]:
    return {
        "operators": [
            {
                "operator": each.number,
                "name": each.name,
                "description": each.description,
                "variables": [variable.name for variable in each.variables],
            }
            for each in checkpoint.operators
        ],
        "last_committed_batch": checkpoint.last_committed_batch,
    }

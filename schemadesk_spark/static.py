"""Which data beside its streams a node of a plan reads: paths of files, digests of rows and of subqueries."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Final

from schemadesk_spark.expressions import items

#: ids of columns and nodes, which are others in every session
_IDS: Final = re.compile(r"#\d+L?|\b(?:plan_)?id=#?\d+")
_STREAMS: Final = ("StreamingRelationExec", "StreamingRelation")
#: what stands for rows that a description can't tell apart, such as those of createDataFrame
UNSEEN: Final = "rows that aren't described"


def static_data(node: Any) -> Iterator[str]:
    """Yield a text for each piece of data that a node itself reads, without what its children read."""
    for subquery in items(node.subqueries()):
        yield f"subquery {_digest(_IDS.sub('', subquery.canonicalized().toString()))}"
    kind = node.getClass().getSimpleName()
    if node.children().length() or kind in _STREAMS or kind == "AdaptiveSparkPlanExec":
        return
    if kind == "FileSourceScanExec":
        yield from (path.toString() for path in items(node.relation().location().rootPaths()))
    elif kind == "LocalTableScanExec":
        yield f"rows {_digest(node.rows().mkString(','))}"
    else:
        yield UNSEEN


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]

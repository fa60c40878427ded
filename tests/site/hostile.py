"""The gallery's samples as somebody would fill them who means harm: every text that comes from data is replaced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from itertools import cycle
from typing import Any, Final

from dashboard.components.widgets import Field

#: set by any script of these that runs
TRAP: Final = "stolen"
TEXTS: Final = (
    f"<script>window.{TRAP}=1</script></title></textarea></option>",
    f"\"'><img src=x onerror=window.{TRAP}=1><svg/onload=window.{TRAP}=1>",
    "a\u202egnp.evil\u202c\u2066\u200f",
    "zero\u200b\u200dwidth\ufeff\u2028line\x00",
    '{"/ %s {{ 7*7 }} {% now %} &amp;',
    "قيمة-الطلبات",
    "e\u0301" * 40,
    "x" * 10_000,
    "word " * 300,
)
LONG: Final = 100
#: kinds of a form's field that take no text
TYPED: Final = frozenset({"date", "datetime-local", "number", "time"})
#: what no person writes: addresses, anchors, names of fields and of looks
OURS: Final = frozenset({"anchor", "icon", "id", "kind", "method", "mood", "state", "tab", "tone", "view"})
#: texts that the product makes of short parts, so that a long one never stands there
SHORT: Final = frozenset(
    ("budget", "channel", "code", "format", "label", "level", "mode", "outlook", "pending", "reviews", "role", "rule", "share", "side", "took", "via", "word")
)  # fmt: skip
#: names in markup, by the class that has them
NAMES: Final = frozenset(
    {
        "Field.name",
        "Filter.name",
        "Change.do",
        "ChangeForm.do",
        "ReviewRuleInfo.reviewers",
        "ReviewRuleInfo.verdict",
        "ReportPage.level",
        "ReviewInfo.verdict",
        "dict.code",
        "dict.verdict",
        "ResultGroup.code",
        "ChangeForm.part",
        "GraphEdge.path",
        "LineageEdge.evidence",
        "LineageNode.health",
        "LineageNode.unknowns",
        "ListColumn.css",
        "ListColumn.head_css",
        "ListColumn.name",
        "ListColumn.sort",
        "SubjectLine.signs",
        "SourceInfo.mode",
        "FindingInfo.severity",
        "FindingInfo.source_kind",
        "Step.name",
        "dict.followed",
        "ListTable.pick",
        "ListTable.pick_form",
        "DecodedMessage.schema_type",
        "Evidence.in_use",
        "EvidenceLine.weight",
        "LintFinding.weight",
        "PolicyItem.weight",
        "ClientAnswer.answer",
        "ClientAnswer.does",
        "Dependant.answer",
        "EditEffect.answer",
        "EditEffect.edit",
        "EffectiveConfig.level",
        "EffectiveMode.mode",
        "WhatIf.level",
        "WhatIfForm.levels",
        "Line.fate",
        "Reason.answer",
        "Retirement.answer",
        "SubjectName.context",
    }
)


def hostile(page: Any) -> Any:
    """The sample with hostile texts in place of its own; what is not a text of data stays."""
    return _turned(page, cycle(TEXTS))


def _turned(value: Any, texts: Iterator[str]) -> Any:
    if isinstance(value, tuple):
        return tuple(_text(item, texts) if isinstance(item, str) else _turned(item, texts) for item in value)
    if isinstance(value, dict):
        return {key: _part("dict", str(key), part, texts) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, (type, Enum)):
        given = {item.name: getattr(value, item.name) for item in fields(value) if item.init}
        if isinstance(value, Field) and value.kind in TYPED:
            del given["value"]  # the browser itself lets nothing else in
        return replace(value, **{name: _part(type(value).__name__, name, part, texts) for name, part in given.items()})
    return value


def _part(owner: str, name: str, part: Any, texts: Iterator[str]) -> Any:
    if isinstance(part, (datetime, Enum)) or f"{owner}.{name}" in NAMES:
        return part
    if not isinstance(part, str):
        return _turned(part, texts)
    if name.endswith("url") or name in OURS or owner == "Look":
        return part
    return _text(part, (text for text in texts if name not in SHORT or len(text) < LONG))


def _text(part: str, texts: Iterator[str]) -> str:
    """What stands for a text: an empty one says that there is none, an address stays one."""
    return part if not part or part[0] in "/?#" else next(texts)

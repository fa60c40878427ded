"""The compatibility report as a file, in the forms that people and programs of CI take."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext

from registry.formats.assessment import Assessment
from registry.formats.junit import assessment_junit
from registry.formats.rendering import assessment_markdown
from registry.formats.sarif import assessment_sarif


@dataclass(frozen=True, slots=True)
class ReportFile:
    """One form: how it is made of a report, a registry's name and a subject's, and how it is sent."""

    render: Callable[[Assessment, str, str], str]
    content_type: str
    ending: str


def _markdown(found: Assessment, registry: str, subject: str) -> str:
    title = gettext("Compatibility of %(qualified)s in %(registry)s") % {"qualified": subject, "registry": registry}
    return assessment_markdown(found, title=title)


FILES: Final[Mapping[str, ReportFile]] = {
    "markdown": ReportFile(_markdown, "text/markdown; charset=utf-8", "md"),
    "json": ReportFile(
        lambda found, registry, subject: json.dumps(found.to_dict(), indent=2), "application/json", "json"
    ),
    "sarif": ReportFile(
        lambda found, registry, subject: assessment_sarif(found, subject=subject), "application/sarif+json", "sarif"
    ),
    "junit": ReportFile(
        lambda found, registry, subject: assessment_junit(found, subject=subject), "application/xml", "xml"
    ),
}

"""What pages about subjects say in the same words: doors, modes, where a setting comes from, and a stored text laid out."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext

from dashboard.presenters.json_layout import laid_out
from dashboard.texts import later
from registry.formats.compatibility import LEVELS
from registry.formats.protobuf.encoded import is_encoded
from registry.subjects import selectors

ORDER_WORDS: Final = {
    "consumers first": later("Deploy consumers first"),
    "producers first": later("Deploy producers first"),
    "any order": later("Deploy in any order"),
}
DOORS: Final = {
    "confluent": later("REST API"),
    "product": later("product API"),
    "ui": later("this site"),
    "task": later("a task"),
    "command": "command",
}
MODE_SENTENCES: Final = {
    "READWRITE": later("Versions can be registered."),
    "READONLY": later("Nothing can be registered here but by a release."),
    "READONLY_OVERRIDE": later("Nothing can be registered here, releases included."),
    "IMPORT": later("Only versions with given ids can be registered."),
    "FORWARD": later("Another registry writes here: only versions with given ids can be registered."),
}


def level_order(level: str) -> str:
    """The headline that a level implies."""
    return ORDER_WORDS.get(LEVELS[level].upgrade_order, gettext("No order is safe"))


def origin_words(origin: str) -> str:
    """Where a setting comes from."""
    return {
        "subject": gettext("set for this subject"),
        "context": gettext("inherited from the context"),
        "registry": gettext("inherited from the registry"),
    }.get(origin, gettext("nothing is set, this is the default"))


def for_people(info: selectors.VersionInfo) -> str:
    """The text that people read and change: of Protobuf the one that was sent, as what is stored has no comments."""
    if info.schema.schema_type == "PROTOBUF" and not is_encoded(info.submitted):
        return info.submitted
    return pretty(info)


def pretty(info: selectors.VersionInfo) -> str:
    """The canonical text, laid out where it is JSON; as it is where it isn't what its format says."""
    if info.schema.schema_type == "PROTOBUF":
        return info.schema.text
    try:
        return laid_out(info.schema.text)
    except (ValueError, RecursionError):
        return info.schema.text

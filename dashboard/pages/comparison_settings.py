"""What the places of two sides differ in: the settings that count for a subject where it is."""

from __future__ import annotations

from typing import Final

from dashboard.pages.policy import SAID
from dashboard.presenters.comparison import ExtraChange
from dashboard.presenters.looks import ChangeKind
from dashboard.texts import later
from registry.subjects import selectors
from registry.subjects.selectors.effective import spoken_for

SETTINGS: Final = later("Settings")
#: those that say how versions are judged and taken, with what they are called
_NAMES: Final = {
    "level": later("Compatibility"),
    "mode": later("Mode"),
    **{
        name: SAID[name][0]
        for name in ("normalize", "profile", "policy", "compatibility_policy", "compatibility_group")
    },
}


def settings_changes(
    old: selectors.Side | selectors.Text, new: selectors.Side | selectors.Text
) -> tuple[ExtraChange, ...]:
    """The compatibility level, mode and the like that differ; none of one subject in one registry. Two queries."""
    if (old.registry.pk, old.subject) == (new.registry.pk, new.subject):
        return ()
    before, after = _settings(old), _settings(new)
    return tuple(
        ExtraChange(
            part=SETTINGS,
            name=_NAMES[setting],
            kind=_kind(before[setting], after[setting]),
            before=before[setting],
            after=after[setting],
        )
        for setting in _NAMES
        if before[setting] != after[setting]
    )


def _kind(before: str | None, after: str | None) -> ChangeKind:
    if before is None:
        return ChangeKind.ADDED
    return ChangeKind.REMOVED if after is None else ChangeKind.CHANGED


def _settings(side: selectors.Side | selectors.Text) -> dict[str, str | None]:
    spoken = spoken_for(side.registry, side.subject)
    config, own = spoken.config(), spoken.settings()
    return {
        "level": config.level,
        "mode": spoken.mode(side.registry).mode,
        "normalize": SAID["normalize"][1][config.normalize],
        "profile": SAID["profile"][1][config.profile],
        "policy": config.policy,
        "compatibility_policy": own.compatibility_policy,
        "compatibility_group": own.compatibility_group,
    }

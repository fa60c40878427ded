"""The settings of a subject on its page: what counts, where it comes from, and where it is changed or taken back."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext

from dashboard.pages.subject_head import policy_url
from dashboard.pages.subject_words import MODE_SENTENCES, level_order, origin_words
from dashboard.presenters.frame import Action
from dashboard.presenters.policy import WhyNot
from dashboard.presenters.subjects import Setting
from registry.formats.compatibility import LEVELS
from registry.promotions.can_promote import Reason
from registry.promotions.changing import CONFIG, MODE, Changing
from registry.subjects.models import Registry
from registry.subjects.names import SubjectName
from registry.subjects.selectors.effective import ORIGINS, Spoken


def subject_settings(name: SubjectName, spoken: Spoken, held: Changing) -> tuple[Setting, ...]:
    """The level and the mode. Where a mirror's mode comes from is its own affair: it isn't changed here."""
    registry, wider = held.registry, spoken.inherited()
    config, mode = spoken.config(), spoken.mode(registry)
    url = policy_url(registry.name, name)
    own_level = next((own.level for origin, own in spoken.configs if origin == ORIGINS[0]), None)
    own_mode = next((own for origin, own in spoken.modes if origin == ORIGINS[0]), None)
    modes = () if registry.kind == Registry.REMOTE else held.reasons(MODE, name, mode.mode)
    return (
        _setting(
            gettext("Compatibility"), config.level, config.origin, url, held.reasons(CONFIG, name, mode.mode),
            sentence=f"{LEVELS[config.level].description} {level_order(config.level)}.",
            change=gettext("Change the level …"), own=own_level is not None, inherited=wider.config().level,
        ),
        _setting(
            gettext("Mode"), mode.mode, mode.origin, "" if registry.kind == Registry.REMOTE else url, modes,
            sentence=MODE_SENTENCES[mode.mode],
            change=gettext("Change the mode …"), own=own_mode is not None, inherited=wider.mode(registry).mode,
        ),
    )  # fmt: skip


def _setting(
    label: str, value: str, origin: str, url: str, reasons: Sequence[Reason], *,
    sentence: str, change: str, own: bool, inherited: str,
) -> Setting:  # fmt: skip
    why = tuple(WhyNot(code=item.code, sentence=item.sentence, cure=item.cure) for item in reasons)
    reason = why[0].sentence if why else ""

    def action(words: str, icon: str) -> Action:
        return Action(label=words, url=url, allowed=not why, reason=reason, icon=icon)

    return Setting(
        label=label,
        value=value,
        origin=origin_words(origin),
        sentence=sentence,
        own=origin == ORIGINS[0],
        inherited=inherited if own else "",
        change=action(change, "pencil") if url else None,
        reset=action(gettext("Reset to inherited …"), "undo-2") if url and own else None,
        why=why,
    )

"""Compares the registry's own tables with promotions, with their earlier state, and with production advice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from registry.drift.judge.finding_builder import CheckedPlace, at_most, counted, either, moment, span_of_time
from registry.drift.judge.model import Cause, JudgedFinding, RegisteredVersion, listing, make_finding
from registry.drift.judge.registry_advice import (
    GUARANTEES,
    OPENNESS,
    ConnectorSettings,
    RegistryFacts,
    Relaxation,
    is_more_open,
    is_weaker,
)
from registry.drift.rules import Severity

REST_CHANNELS: Final = frozenset({"confluent", "google", "spring"})
AT_ONCE: Final = 60_000  # a first message this soon after its version: the producer registered it itself
SHORT_ORDER: Final = 60_000
SEVERAL: Final = 3
MAX_FINDINGS: Final = 200  # per rule


def judge_registry(facts: RegistryFacts) -> list[JudgedFinding]:
    """Return the findings of a registry, unsorted: at most MAX_FINDINGS per rule, and the number of the others."""
    place = CheckedPlace(f"registry {facts.registry}")
    return [finding for rule in _JUDGES for finding in at_most(MAX_FINDINGS, rule(facts), place)]


def _finding(
    facts: RegistryFacts,
    rule: str,
    names: Mapping[str, Any],
    identity: tuple[str, ...],
    evidence: dict[str, Any],
    *,
    subject: str = "",
    severity: Severity | None = None,
    cause: Cause = Cause(),  # noqa: B008  # frozen
    count: int = 1,
) -> JudgedFinding:
    location = f"registry {facts.registry}" + (f", subject {subject}" if subject else "")
    return make_finding(
        rule,
        {"registry": facts.registry, **names},
        (facts.registry, *identity),
        location=location,
        count=count,
        evidence={"registry": facts.registry, **evidence},
        severity=severity,
        subject=subject,
        cause=cause,
    )


def _version(version: RegisteredVersion) -> dict[str, Any]:
    return {
        "subject": version.subject,
        "version": version.version,
        "schema_id": version.schema_id,
        "registered_at": version.registered_at,
        "registered_by": version.registered_by,
        "door": version.channel,
    }


def _without_promotion(facts: RegistryFacts) -> Iterator[JudgedFinding]:
    for version in facts.unreleased if facts.is_target else ():
        yield _finding(
            facts,
            "REGISTERED_WITHOUT_PROMOTION",
            {
                "version": version.version,
                "subject": version.subject,
                "by": version.registered_by,
                "door": _channel(version.channel),
            },
            (version.subject, str(version.version)),
            _version(version),
            subject=version.subject,
            cause=Cause(f"Registered by {version.registered_by} at {moment(version.registered_at)}."),
        )


def _channel(channel: str) -> str:
    names = {"ui": "a page", "product": "the product's API", "task": "a task", "command": "a command"}
    return names.get(channel, f"the {channel.capitalize()} API")


def _differing(facts: RegistryFacts) -> Iterator[JudgedFinding]:
    for version, other in facts.differing:
        yield _finding(
            facts,
            "ENVIRONMENTS_DIFFER",
            {"version": version.version, "subject": version.subject, "other": other},
            (other, version.subject, str(version.version)),
            {**_version(version), "other": other, "fingerprint": version.fingerprint},
            subject=version.subject,
        )


def _relaxed(facts: RegistryFacts, rule: str, relaxations: Iterable[Relaxation]) -> Iterator[JudgedFinding]:
    for relaxation in relaxations:
        names = {
            "scope": relaxation.scope,
            "before": relaxation.before,
            "after": relaxation.after,
            "by": relaxation.by,
            "at": moment(relaxation.at),
        }
        yield _finding(
            facts,
            rule,
            names,
            (relaxation.scope,),
            {"scope": relaxation.scope, "before": relaxation.before, "after": relaxation.after, "now": relaxation.now, "at": relaxation.at,
             "by": relaxation.by},
            subject=relaxation.subject,
            severity="risk" if facts.is_target else "notice",
        )  # fmt: skip


def _relaxed_levels(facts: RegistryFacts) -> Iterator[JudgedFinding]:
    yield from _relaxed(
        facts,
        "LEVEL_RELAXED",
        (relaxation for relaxation in facts.relaxed_levels if is_weaker(relaxation.before, relaxation.now)),
    )


def _relaxed_modes(facts: RegistryFacts) -> Iterator[JudgedFinding]:
    yield from _relaxed(
        facts,
        "MODE_RELAXED",
        (relaxation for relaxation in facts.relaxed_modes if is_more_open(relaxation.before, relaxation.now)),
    )


def _auto_registered(facts: RegistryFacts) -> Iterator[JudgedFinding]:
    """Yield, by account, versions whose first message followed immediately; in a target also bursts of versions."""
    by: dict[str, list[tuple[RegisteredVersion, int | None]]] = {}
    for version, first in facts.registered:
        if version.channel in REST_CHANNELS and not version.released:
            by.setdefault(version.registered_by, []).append((version, first))
    for name, versions in sorted(by.items()):
        at_once = [
            (version, first - version.registered_at)
            for version, first in versions
            if first is not None and 0 <= first - version.registered_at <= AT_ONCE
        ]
        burst = _burst([version for version, _ in versions]) if facts.is_target else []
        if at_once:
            evidence = _first_message_delay([after for _, after in at_once])
        elif burst:
            evidence = f"within {span_of_time(burst[-1].registered_at - burst[0].registered_at)}"
        else:
            continue
        reported = [version for version, _ in at_once] or burst
        yield _finding(
            facts,
            "AUTO_REGISTRATION",
            {"count": counted(len(reported), "version"), "by": name, "evidence": evidence},
            (name,),
            {
                "by": name,
                **listing("first_message_after_ms", [after for _, after in at_once]),
                **listing("versions", list(map(_version, reported))),
                "kind": "message at once" if at_once else "several in short order",
            },
            severity="risk" if facts.is_target else "notice",
            count=len(reported),
        )


def _first_message_delay(after: Sequence[int]) -> str:
    """Return how long after each version its first message came, as text."""
    shortest, longest = span_of_time(min(after)), span_of_time(max(after))
    if len(after) == 1:
        return f"with the first message {shortest} later"
    if shortest == longest:
        return f"with the first message of each {shortest} later"
    return f"with the first message of each {shortest} to {longest} later"


def _burst(versions: list[RegisteredVersion]) -> list[RegisteredVersion]:
    """Return the longest run of versions within SHORT_ORDER if it has at least SEVERAL; otherwise an empty list."""
    ordered = sorted(versions, key=lambda version: (version.registered_at, version.subject, version.version))
    best: list[RegisteredVersion] = []
    first = 0
    for last, version in enumerate(ordered):
        while version.registered_at - ordered[first].registered_at > SHORT_ORDER:
            first += 1
        if last - first + 1 > len(best):
            best = ordered[first : last + 1]
    return best if len(best) >= SEVERAL else []


def _none(facts: RegistryFacts) -> Iterator[JudgedFinding]:
    for setting in facts.levels:
        if setting.value == "NONE":
            yield _finding(
                facts,
                "LEVEL_NONE",
                {"scope": setting.scope, "have": "has"},
                (setting.scope,),
                {"scope": setting.scope, "level": setting.value},
                subject=setting.subject,
                severity="risk" if facts.is_target else "notice",
            )


def _writable(facts: RegistryFacts) -> Iterator[JudgedFinding]:
    for setting in facts.modes if facts.is_last else ():
        if OPENNESS.get(setting.value, 0):
            yield _finding(
                facts,
                "PRODUCTION_WRITABLE",
                {"scope": setting.scope, "have": "has", "mode": setting.value},
                (setting.scope,),
                {"scope": setting.scope, "mode": setting.value},
                subject=setting.subject,
            )


def _clients(facts: RegistryFacts) -> Iterator[JudgedFinding]:
    if facts.is_last and facts.may_register:
        number = len(facts.may_register)
        yield _finding(
            facts,
            "CLIENTS_MAY_REGISTER",
            {"count": counted(number, "account"), "names": either(facts.may_register).replace(" or ", " and ")},
            (),
            {**listing("accounts", facts.may_register), "number": number},
            count=number,
        )


def _connectors(facts: RegistryFacts) -> Iterator[JudgedFinding]:
    for connector in facts.connectors:
        for side in ("key", "value"):
            register = f"{side}.converter.auto.register.schemas"
            latest = f"{side}.converter.use.latest.version"
            if connector.settings.get(register) is None:
                continue
            is_on = str(connector.settings[register]).lower() != "false"
            takes_latest = str(connector.settings.get(latest) or "false").lower() == "true"
            if is_on:
                yield _connector(facts, "CONNECTOR_AUTO_REGISTERS", connector, register)
            elif not takes_latest:
                yield _connector(facts, "CONNECTOR_NOT_ON_LATEST", connector, latest)


def _connector(facts: RegistryFacts, rule: str, connector: ConnectorSettings, setting: str) -> JudgedFinding:
    value = connector.settings.get(setting) or "false"
    names = {"connector": connector.connector, "setting": setting, "value": value}
    return _finding(facts, rule, names, (connector.connector, setting), dict(names))


def _not_transitive(facts: RegistryFacts) -> Iterator[JudgedFinding]:
    for subject in facts.live:
        if len(subject.versions) > 1 and 1 in GUARANTEES.get(subject.level, (0, 0)):
            shown = ", ".join(str(version) for version in subject.versions[:10])
            yield _finding(
                facts,
                "LEVEL_NOT_TRANSITIVE",
                {
                    "count": len(subject.versions),
                    "subject": subject.subject,
                    "versions": shown + (", …" if len(subject.versions) > 10 else ""),
                    "level": subject.level,
                },
                (subject.subject,),
                {"subject": subject.subject, "level": subject.level, "versions": list(subject.versions)},
                subject=subject.subject,
            )


_JUDGES: Final[tuple[Callable[[RegistryFacts], Iterator[JudgedFinding]], ...]] = (
    _without_promotion,
    _differing,
    _relaxed_levels,
    _relaxed_modes,
    _auto_registered,
    _none,
    _writable,
    _clients,
    _connectors,
    _not_transitive,
)

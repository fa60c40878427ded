"""What is found in the registry's own tables, and the advice for production."""

from __future__ import annotations

from typing import Final

from registry.drift.rule import Rule

ROWS: Final = (
    Rule(
        "REGISTERED_WITHOUT_PROMOTION",
        "risk",
        "Version {version} of {subject} was registered in {registry} by {by} through {door}, without a promotion.",
        "Ask for its adoption, so that it is reviewed after the fact; or quarantine it, or delete it while nothing uses "
        "it. Keep {registry} closed.",
    ),
    Rule(
        "LEVEL_RELAXED",
        "risk",
        "The compatibility of {scope} in {registry} was relaxed from {before} to {after} by {by} at {at}.",
        "Set it back to {before} once the change that needed it is done; versions registered meanwhile were checked "
        "less.",
    ),
    Rule(
        "MODE_RELAXED",
        "risk",
        "The mode of {scope} in {registry} was opened from {before} to {after} by {by} at {at}.",
        "Set it back to {before} once the change that needed it is done.",
    ),
    Rule(
        "ENVIRONMENTS_DIFFER",
        "risk",
        "Version {version} of {subject} is one schema in {registry} and another one in {other}.",
        "Compare the two. Bring the newer one over as a new version by a promotion; a version's number can't be "
        "used again.",
    ),
    Rule(
        "AUTO_REGISTRATION",
        "notice",
        "Clients register versions by themselves in {registry}: {count} by {by}, {evidence}.",
        "Set auto.register.schemas=false in the producers, and register in the pipeline that ships them.",
    ),
    Rule(
        "LEVEL_NONE",
        "risk",
        "{scope} of {registry} {have} compatibility NONE: any schema is accepted.",
        "Set BACKWARD or stricter; use NONE for the time of one change only.",
    ),
    Rule(
        "PRODUCTION_WRITABLE",
        "risk",
        "{registry} is the last environment, and {scope} {have} mode {mode}: versions can be added without a "
        "promotion.",
        "Set {registry} READONLY; releases still get in.",
    ),
    Rule(
        "CLIENTS_MAY_REGISTER",
        "notice",
        "{count} with API tokens may create versions in {registry}: {names}.",
        "Give programs that only produce or consume the role reader; keep the right to register for the pipeline "
        "that ships them.",
    ),
    Rule(
        "CONNECTOR_AUTO_REGISTERS",
        "risk",
        "Connector {connector} registers schemas by itself: {setting} is {value}.",
        "Set {setting}=false, and register the schemas before the connector starts.",
    ),
    Rule(
        "CONNECTOR_NOT_ON_LATEST",
        "notice",
        "Connector {connector} doesn't register schemas and doesn't take the latest one either: {setting} is {value}.",
        "Set {setting}=true, so that it writes with the registered schema; otherwise it stops where its own one "
        "isn't registered.",
    ),
    Rule(
        "LEVEL_NOT_TRANSITIVE",
        "notice",
        "{count} versions of {subject} are live in data ({versions}), and its compatibility {level} asks the latest "
        "one only.",
        "Set {level}_TRANSITIVE, so that a new version is compared with every version whose data is still there.",
    ),
)

"""Everything that can go wrong, as a tree.

An error says what is wrong, where, and how to fix it. Each REST dialect and the pages map it to a status and a code in a
table of their own. Errors of associations are in registry/subjects/associations/requests.py.

    SchemadeskError
    ├── InvalidInput                 the request has an invalid value
    │   ├── InvalidSchema            a schema text that doesn't parse (line and column where known)
    │   │   ├── SchemaTooCostly      it ran into a limit of time or memory
    │   │   └── SchemaTooLarge       a schema or a body of more bytes than are allowed
    │   ├── InvalidDatum             a datum that isn't one of its schema
    │   ├── InvalidName              a subject, context or registry name
    │   ├── InvalidVersion           a version that is neither a number nor "latest"
    │   ├── InvalidCompatibility     a level that isn't one of the seven
    │   ├── InvalidMode              a mode that doesn't exist
    │   ├── InvalidReference         a reference that doesn't resolve
    │   ├── InvalidRuleSet           the rules of a data contract
    │   ├── InvalidSource            a scan source that can't be used as given
    │   ├── InvalidCheckpoint        a path that holds no readable checkpoint
    │   ├── InvalidSnapshot          invalid content of another registry or an export file
    │   ├── InvalidSecret            a secret that isn't there, or isn't for that host
    │   └── AddressRefused           an address that the egress policy blocks
    ├── NotFound
    │   ├── RegistryNotFound
    │   ├── SubjectNotFound
    │   ├── VersionNotFound
    │   ├── SchemaNotFound
    │   ├── SubjectConfigNotFound
    │   ├── SubjectModeNotFound
    │   ├── RequestNotFound
    │   ├── ThreadNotFound
    │   ├── DraftNotFound
    │   ├── ClientNotFound           a declared client of a subject
    │   ├── CopyNotFound             a copy of deleted data, which may be restored, deleted or expired
    │   ├── EnvironmentPartNotFound  a review rule, freeze or break-glass of an environment
    │   ├── ClusterNotFound
    │   ├── SourceNotFound
    │   ├── MuteNotFound
    │   ├── StateCheckNotFound
    │   └── FindingNotFound
    ├── Conflict                     the call conflicts with the current state
    │   ├── IncompatibleSchema       carries the whole compatibility report
    │   ├── PolicyViolated           carries the policy's report
    │   ├── SubjectSoftDeleted
    │   ├── SubjectNotSoftDeleted
    │   ├── VersionSoftDeleted
    │   ├── VersionNotSoftDeleted
    │   ├── ReferenceExists          others refer to what is to be deleted
    │   ├── ContextNotEmpty          a context that still has subjects
    │   ├── OperationNotPermitted    the mode forbids it
    │   │   └── ReleaseRequired      a closed environment, which changes by releases and break-glass only
    │   ├── VersionInUse             data, state or clients still need what should be deleted
    │   ├── PlanChanged              what was approved is not what would run now
    │   ├── SecondPersonRequired     it loosens a closed environment, so another person must approve it
    │   ├── PlanHashRequired         a decision that doesn't say which plan was read
    │   ├── NoteChanged              somebody else described the subject meanwhile
    │   └── WrongState               the request, scan or finding isn't in a state that allows it
    ├── Forbidden
    │   ├── NotSignedIn
    │   └── NotAllowed
    └── Unavailable                  a part outside this process doesn't answer
        ├── BrokerUnavailable
        ├── SparkUnavailable
        ├── RemoteUnavailable        another server that doesn't answer, or not as it should
        └── ScanInterrupted          a scan that ran into its deadline or was cancelled
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def first_few(names: Sequence[str], most: int = 5, between: str = ", ") -> str:
    """Return the first names and how many more there are, for a message."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(names[:most]) + more


class SchemadeskError(Exception):
    """Base of all errors of the product; `message` is written for people, `details` for programs."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    @property
    def public_name(self) -> str:
        """The name of its class for programs; of a private class, that of the nearest public one."""
        return next(kind.__name__ for kind in type(self).__mro__ if not kind.__name__.startswith("_"))

    @property
    def placed(self) -> str:
        """The message with the place in what was sent, where one is known."""
        return self.message


class InvalidInput(SchemadeskError):
    """The request has an invalid value."""


class InvalidSchema(InvalidInput):
    """A schema text that doesn't parse; `line` and `column` count from 1 and are None where unknown."""

    def __init__(self, message: str, *, line: int | None = None, column: int | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.line = line
        self.column = column

    @property
    def placed(self) -> str:
        """The message with line and column, where they are known."""
        return self.message if self.line is None else f"{self.message} (line {self.line}, column {self.column})"


class SchemaTooCostly(InvalidSchema):
    """Reading or comparing the schema ran into a limit of time or memory; the message names the limit."""


class SchemaTooLarge(InvalidSchema):
    """A schema, or the body that carries it, has more bytes than are allowed; the message names the limit."""


class InvalidDatum(InvalidInput):
    """A datum that isn't one of its schema; the message names the place."""


class InvalidName(InvalidInput):
    """A subject, context or registry name that isn't valid in every API."""


class InvalidVersion(InvalidInput):
    """A version that is neither a number from 1 to 2^31-1 nor "latest"."""


class InvalidCompatibility(InvalidInput):
    """A compatibility level that isn't one of the seven."""


class InvalidMode(InvalidInput):
    """A mode that doesn't exist."""


class InvalidReference(InvalidInput):
    """A reference that names a subject, version or name that isn't there."""


class InvalidRuleSet(InvalidInput):
    """An invalid rule set: a rule has no name or type, is listed twice, or is in a phase that doesn't match its mode."""


class InvalidSource(InvalidInput):
    """A scan source that can't be used as given."""


class InvalidCheckpoint(InvalidInput):
    """A path that holds no readable checkpoint; the message says what was looked for."""


class InvalidSnapshot(InvalidInput):
    """What another registry or an export file holds can't be taken as it is; the message names the place."""


class InvalidSecret(InvalidInput):
    """A secret that isn't there or isn't for that host; the message has its name, never its value."""


class AddressRefused(InvalidInput):
    """An address that the egress policy doesn't let us connect to; the message names the host and the cure."""


class NotFound(SchemadeskError):
    """Something named in the call doesn't exist, or the caller can't see it."""


class RegistryNotFound(NotFound):
    """No registry of that name."""


class SubjectNotFound(NotFound):
    """No live subject of that name; `registry` is the one that was searched, which not every API names."""

    def __init__(self, message: str, *, registry: str = "", **details: Any) -> None:
        super().__init__(message, **details)
        self.registry = registry


class VersionNotFound(NotFound):
    """The subject has no such live version."""


class SchemaNotFound(NotFound):
    """No schema with that id, or none equal to the given one."""


class ClientNotFound(NotFound):
    """The subject has no declared client of that name."""


class SubjectConfigNotFound(NotFound):
    """The subject has no compatibility level of its own."""


class SubjectModeNotFound(NotFound):
    """The subject has no mode of its own."""


class RequestNotFound(NotFound):
    """No promotion request of that number."""


class ThreadNotFound(NotFound):
    """No discussion of that number."""


class DraftNotFound(NotFound):
    """No draft of that number, or somebody else's."""


class EnvironmentPartNotFound(NotFound):
    """No review rule, freeze or break-glass of that number."""


class CopyNotFound(NotFound):
    """No such copy is kept: it was brought back or forgotten, or its time is over."""


class ClusterNotFound(NotFound):
    """No Kafka cluster of that name."""


class MuteNotFound(NotFound):
    """No mute of that number."""


class StateCheckNotFound(NotFound):
    """No check of planned state of that number."""


class SourceNotFound(NotFound):
    """No scan source of that number."""


class FindingNotFound(NotFound):
    """No finding of that number."""


class Conflict(SchemadeskError):
    """The call is well-formed, but it conflicts with the current state."""


class IncompatibleSchema(Conflict):
    """The schema breaks the subject's compatibility level; `report` holds every reason."""

    def __init__(self, message: str, *, report: Any, **details: Any) -> None:
        super().__init__(message, **details)
        self.report = report


class PolicyViolated(Conflict):
    """The schema breaks a policy that holds beside the level; `report` holds every item."""

    def __init__(self, message: str, *, report: Any, **details: Any) -> None:
        super().__init__(message, **details)
        self.report = report


class SubjectSoftDeleted(Conflict):
    """The subject is soft-deleted already."""


class SubjectNotSoftDeleted(Conflict):
    """A permanent delete needs a soft delete first."""


class VersionSoftDeleted(Conflict):
    """The version is soft-deleted already."""


class VersionNotSoftDeleted(Conflict):
    """A permanent delete needs a soft delete first."""


class ReferenceExists(Conflict):
    """Other schemas refer to what should be deleted."""


class ContextNotEmpty(Conflict):
    """A context that has subjects, soft-deleted ones included, can't be deleted."""


class OperationNotPermitted(Conflict):
    """The mode of the registry, context or subject forbids it."""


class ReleaseRequired(OperationNotPermitted):
    """The registry is a closed environment; the message names it and the two ways in: a promotion, or break-glass."""


class VersionInUse(Conflict):
    """Data, state or clients still need a version that should be deleted permanently."""


class PlanChanged(Conflict):
    """What was approved is not what would run now; the message says what moved."""


class SecondPersonRequired(Conflict):
    """It loosens a closed environment: `environment`, `action` and `values` are what to ask another person for."""


class PlanHashRequired(Conflict):
    """A decision on a plan that doesn't say which plan was read; `field` names the value that is missing."""


class NoteChanged(Conflict):
    """Somebody else changed the description since the caller read it; `state` is what it is in now."""


class DraftChanged(Conflict):
    """The draft was changed since the writer read it; `seen` is what it is in now."""


class WrongState(Conflict):
    """The request, scan or finding isn't in a state that allows this."""


class Forbidden(SchemadeskError):
    """The caller may not do this."""


class NotSignedIn(Forbidden):
    """The call needs a token or a session."""


class NotAllowed(Forbidden):
    """The caller is known and lacks the right; the message names it."""


class Unavailable(SchemadeskError):
    """A service that this process depends on doesn't answer."""


class BrokerUnavailable(Unavailable):
    """The Kafka cluster doesn't answer in time."""


class SparkUnavailable(Unavailable):
    """The Spark Connect server doesn't answer in time."""


class RemoteUnavailable(Unavailable):
    """Another server doesn't answer in time, or answers what can't be used; `status` is its HTTP status, if it gave one."""

    def __init__(self, message: str, *, status: int | None = None, **details: Any) -> None:
        super().__init__(message, **details)
        self.status = status


class ScanInterrupted(Unavailable):
    """The scan ran into its deadline or was cancelled."""

"""What can go wrong with associations, below the classes of the product's tree of errors.

InvalidInput
└── InvalidAssociation           a property of the request that can't be
NotFound
└── AssociationNotFound
Conflict
├── AssociationForResourceExists the resource uses another subject for this already
├── AssociationForSubjectExists  the subject is in use, so nobody can own or delete it
├── StrongAssociationExists      the subject is owned, so nobody else can use it
├── NoActiveVersion              a subject in use has at least one live version
└── AssociationFrozen            what a resource owns goes with the resource alone
"""

from __future__ import annotations

from registry.errors import Conflict, InvalidInput, NotFound


class InvalidAssociation(InvalidInput):
    """A property of a request for associations that can't be; the message names it."""

    def __init__(self, name: str, detail: str) -> None:
        super().__init__(
            f"The association specified an invalid value for property: '{name}', detail: {detail}", property=name
        )


class AssociationNotFound(NotFound):
    """The resource has no such association."""

    def __init__(self, resource: str) -> None:
        super().__init__(f"Association for '{resource}' not found.", resource=resource)


class AssociationForResourceExists(Conflict):
    """The resource has another association of that type."""

    def __init__(self, association_type: str, resource: str) -> None:
        super().__init__(f"An association of type '{association_type}' already exists for resource '{resource}'")


class AssociationForSubjectExists(Conflict):
    """The subject is in use: nobody can own it beside the others, and it can't be deleted."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"An association already exists for subject '{subject}'", subject=subject)


class StrongAssociationExists(Conflict):
    """The subject is owned by a resource, so no other one can use it."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"A strong association already exists for subject '{subject}'", subject=subject)


class NoActiveVersion(Conflict):
    """A subject that is in use keeps at least one live version."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"No active (non-deleted) version exists for subject '{subject}'", subject=subject)


class AssociationFrozen(Conflict):
    """A STRONG association changes no more; it is deleted together with what its resource owns."""

    def __init__(self, association_type: str, subject: str) -> None:
        # two spaces stand after "type" in the established server's message too
        super().__init__(f"The association of type  '{association_type}' is frozen for subject '{subject}'")

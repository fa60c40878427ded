"""Removal at once and for good: the soft and the permanent deletion in one transaction."""

from __future__ import annotations

from registry.access.roles import Actor, require
from registry.errors import SubjectNotFound, SubjectSoftDeleted
from registry.subjects.names import SubjectName
from registry.subjects.selectors.places import get_registry
from registry.subjects.services.deletion import delete_subject, delete_version
from registry.subjects.services.locks import lock_policy, retried


@retried
def remove_version(*, registry: str, subject: SubjectName, version: int, by: Actor) -> None:
    """Remove a live version for good; its number may be given again, its id may not.

    Raises NotSignedIn, NotAllowed, SubjectNotFound, VersionNotFound, VersionSoftDeleted, ReferenceExists and
    OperationNotPermitted; then nothing has changed.
    """
    _begin(registry, subject, by)
    delete_version(registry=registry, subject=subject, version=version, by=by, tell=False)
    delete_version(registry=registry, subject=subject, version=version, by=by, permanent=True)


@retried
def remove_subject(*, registry: str, subject: SubjectName, by: Actor) -> list[int]:
    """Remove a subject with all its versions for good; gives their numbers, none where it has no live version.

    Raises NotSignedIn, NotAllowed, ReferenceExists and OperationNotPermitted; then nothing has changed.
    """
    _begin(registry, subject, by)
    try:
        delete_subject(registry=registry, subject=subject, by=by, tell=False)
    except (SubjectNotFound, SubjectSoftDeleted):
        return []
    return delete_subject(registry=registry, subject=subject, by=by, permanent=True)


def _begin(registry: str, subject: SubjectName, by: Actor) -> None:
    """The right to it, and from the start the lock that a permanent deletion needs: to widen a shared one may deadlock."""
    place = get_registry(registry)
    require(by, "version.delete_permanently", registry=place.name, subject=subject.qualified)
    lock_policy(place, exclusive=True)

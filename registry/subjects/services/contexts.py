"""Removing contexts; they come by being used."""

from __future__ import annotations

from registry.access.roles import Actor, require
from registry.audit.services import record
from registry.errors import ContextNotEmpty, OperationNotPermitted
from registry.subjects import gate
from registry.subjects.models import Config, Context, Mode, Schema, Subject
from registry.subjects.names import DEFAULT_CONTEXT, SubjectName
from registry.subjects.selectors.effective import effective_mode
from registry.subjects.selectors.places import get_registry
from registry.subjects.services.locks import lock_policy, retried


@retried
def delete_context(*, registry: str, context: str, by: Actor) -> bool:
    """Remove a context without subjects, with its config and mode; False where there is none of that name.

    Raises NotAllowed, ContextNotEmpty, ReleaseRequired, and OperationNotPermitted for the default context and a
    read-only one.
    """
    place = get_registry(registry)
    require(by, "version.delete_permanently", registry=place.name)
    if context == DEFAULT_CONTEXT:
        raise OperationNotPermitted("The default context can't be deleted.")
    record(by=by, why=f"delete context {context} of {place.name}")
    lock_policy(place, exclusive=True)
    passes = gate.ask("version.delete_permanently", place, "", by)
    row = Context.objects.select_for_update().filter(registry=place, name=context).first()
    if row is None:
        return False
    if gate.stops(effective_mode(place, SubjectName(context, "")).mode, passes=passes):
        raise OperationNotPermitted(f"Context {context} is in read-only mode")
    if Subject.objects.filter(context=row).exists() or Schema.objects.filter(context=row).exists():
        raise ContextNotEmpty(f"The specified context '{context}' is not empty.", context=context)
    for model in (Config, Mode):
        model.objects.filter(registry=place, context=row).delete()
    row.delete()
    return True

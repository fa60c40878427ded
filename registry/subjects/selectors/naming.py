"""A subject's qualified name in SQL, as `registry.subjects.names` makes it."""

from __future__ import annotations

from typing import Any

from django.db.models import Case, TextField, Value, When
from django.db.models.functions import Cast, Concat
from django.db.models.lookups import Exact

from registry.subjects.names import DEFAULT_CONTEXT


def qualified(context: Any, subject: Any) -> Case:
    """The name of a subject in a context, both expressions; for rights and owners, whose patterns are of such names."""
    place, name = Cast(context, TextField()), Cast(subject, TextField())
    elsewhere = Concat(Value(":"), place, Value(":"), name, output_field=TextField())
    return Case(When(Exact(place, Value(DEFAULT_CONTEXT)), then=name), default=elsewhere, output_field=TextField())

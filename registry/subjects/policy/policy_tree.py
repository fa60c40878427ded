"""A registry's settings as a tree: the scopes with settings of their own, and how many inherit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from django.db import connection
from django.db.models import CharField, Count, Q, QuerySet, Value
from django.db.models.functions import Coalesce

from registry.subjects.models import Config, Context, Mode, Registry, Subject, SubjectActivity
from registry.subjects.policy import effective_policy
from registry.subjects.versions.qualified_names import DEFAULT_CONTEXT, SubjectName, check_context, parse_subject

#: the most nodes in an answer
MAX_NODES: Final = 100
REGISTRY, CONTEXT, SUBJECT = "registry", "context", "subject"
#: of no context, so that only the registry applies; and of the default context
_WHOLE, _DEFAULT = SubjectName("", ""), SubjectName(DEFAULT_CONTEXT, "")


@dataclass(frozen=True)
class PolicyNode:
    """A registry, a context or a subject: its own settings (None: none), and the effective ones with their origin.

    `subjects` are the live subjects below it, `inheriting` those of them without settings of their own; both are 0 for
    a subject. `exists` is False for a subject without a live version.
    """

    kind: str
    scope: SubjectName | None
    own: effective_policy.OwnConfig | None
    own_mode: str | None
    config: effective_policy.EffectiveConfig
    settings: effective_policy.OwnConfig
    mode: effective_policy.EffectiveMode
    subjects: int = 0
    inheriting: int = 0
    exists: bool = True

    @property
    def sets_something(self) -> bool:
        """Whether the scope has a config or a mode of its own."""
        return self.own is not None or self.own_mode is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the node as JSON values."""
        scope = self.scope or SubjectName("", "")
        return {
            "kind": self.kind,
            "context": scope.context,
            "subject": scope.qualified if scope.subject else "",
            "own": {name: value for name, value in asdict(self.own).items() if value is not None} if self.own else {},
            "own_mode": self.own_mode,
            "effective": {**asdict(self.config), "mode": self.mode.mode, "mode_origin": self.mode.origin},
            "subjects": self.subjects,
            "inheriting": self.inheriting,
            "exists": self.exists,
        }


@dataclass(frozen=True)
class PolicyTree:
    """The registry, and the contexts and subjects with settings of their own, by context and name.

    A context without settings is included if one of its subjects has some. `total` counts the scopes with settings;
    `cursor` continues, "" at the end.
    """

    root: PolicyNode
    nodes: tuple[PolicyNode, ...]
    total: int
    cursor: str = ""


def scope_of(context: str, subject: str) -> SubjectName | None:
    """Return the scope: a subject, a context (no subject), or None for the registry (neither).

    Raises InvalidName.
    """
    if subject:
        return parse_subject(subject, context=check_context(context) if context else DEFAULT_CONTEXT)
    return SubjectName(check_context(context), "") if context else None


def policy_tree(registry: Registry, *, cursor: str = "", limit: int = MAX_NODES) -> PolicyTree:
    """Return a page of the tree; a constant number of queries. Raises InvalidName for an invalid cursor."""
    after = parse_subject(cursor) if cursor else None
    keys = list(_exceptions(registry, after)[: limit + 1])
    scopes = [SubjectName(context, name) for context, name in keys[:limit]]
    reading = _Reading(registry, scopes)
    nodes: list[PolicyNode] = []
    shown = after.context if after else None
    for scope in scopes:
        if scope.subject and scope.context != shown:
            nodes.append(reading.node(SubjectName(scope.context, "")))
        shown = scope.context
        nodes.append(reading.node(scope))
    more = len(keys) > limit
    last = scopes[-1] if scopes else None
    return PolicyTree(
        root=reading.root(),
        nodes=tuple(nodes),
        total=_exceptions(registry, None).count(),
        cursor=f":{last.context}:{last.subject}" if more and last else "",
    )


def policy_node(registry: Registry, scope: SubjectName | None) -> PolicyNode:
    """Return one node, with or without settings; a constant number of queries."""
    reading = _Reading(registry, [scope] if scope else [])
    return reading.node(scope) if scope else reading.root()


def _exceptions(registry: Registry, after: SubjectName | None) -> QuerySet[Any]:
    """Return (context, subject or "") of every context and subject with a config or a mode, in order."""
    return _keys(Config, registry, after).union(_keys(Mode, registry, after)).order_by("context__name", "key")


def _keys(model: type[Config] | type[Mode], registry: Registry, after: SubjectName | None) -> QuerySet[Any]:
    key = Coalesce("subject_name", Value(""), output_field=CharField(db_collation="C"))
    rows = model.objects.filter(registry=registry, context__isnull=False).annotate(key=key)
    if after is not None:
        rows = rows.filter(Q(context__name__gt=after.context) | Q(context__name=after.context, key__gt=after.subject))
    return rows.order_by().values_list("context__name", "key")


@dataclass
class _Reading:
    """Everything that the nodes of a page need, read at the same time."""

    registry: Registry
    scopes: Sequence[SubjectName]
    spoken: dict[SubjectName, effective_policy.ScopeSettings] = field(init=False)
    subjects: dict[str, int] = field(init=False)
    setting: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        contexts = {scope.context for scope in self.scopes}
        names = {*self.scopes, *(SubjectName(context, "") for context in contexts), _WHOLE, _DEFAULT}
        self.spoken = effective_policy.scope_settings_for_many(self.registry, names)
        live = _live(self.registry)
        self.subjects = _by_context(self.registry)
        self.setting = _setting_by_context(self.registry)
        self.there = self._there(live, contexts)

    def root(self) -> PolicyNode:
        """Return the registry's node."""
        spoken = self.spoken[_WHOLE]
        whole = sum(self.subjects.values())
        return PolicyNode(
            kind=REGISTRY,
            scope=None,
            own=spoken.own(REGISTRY),
            own_mode=spoken.own_mode(REGISTRY),
            config=spoken.config(),
            settings=spoken.settings(),
            mode=self.spoken[_DEFAULT].mode(self.registry),
            subjects=whole,
            inheriting=whole - sum(self.setting.values()),
        )

    def node(self, scope: SubjectName) -> PolicyNode:
        """Return the node of a context or a subject."""
        spoken, kind = self.spoken[scope], SUBJECT if scope.subject else CONTEXT
        count = self.subjects.get(scope.context, 0)
        return PolicyNode(
            kind=kind,
            scope=scope,
            own=spoken.own(kind),
            own_mode=spoken.own_mode(kind),
            config=spoken.config(),
            settings=spoken.settings(),
            mode=spoken.mode(self.registry),
            subjects=0 if scope.subject else count,
            inheriting=0 if scope.subject else count - self.setting.get(scope.context, 0),
            exists=not scope.subject or scope in self.there,
        )

    def _there(self, live: QuerySet[Subject], contexts: Collection[str]) -> set[SubjectName]:
        names = {scope.subject for scope in self.scopes if scope.subject}
        rows = live.filter(context__name__in=contexts, name__in=names).values_list("context__name", "name")
        return {SubjectName(context, name) for context, name in rows}


def _live(registry: Registry) -> QuerySet[Subject]:
    return Subject.objects.filter(activity__registry_id=registry.pk)


#: subjects with a live version and a config or a mode, counted from the smaller side
_SETTING: Final = """
SELECT c.name, count(*) FROM (
    SELECT context_id, subject_name FROM subjects_config WHERE registry_id = %(registry)s::bigint
    UNION SELECT context_id, subject_name FROM subjects_mode WHERE registry_id = %(registry)s::bigint
) AS k
JOIN subjects_subject s ON s.context_id = k.context_id AND s.name = k.subject_name
JOIN subjects_subjectactivity a ON a.subject_id = s.id
JOIN subjects_context c ON c.id = k.context_id
GROUP BY c.name
"""


def _setting_by_context(registry: Registry) -> dict[str, int]:
    """Return context → how many of its live subjects have settings of their own."""
    with connection.cursor() as cursor:
        cursor.execute(_SETTING, {"registry": registry.pk})
        return dict(cursor.fetchall())


def _by_context(registry: Registry) -> dict[str, int]:
    """Return context → how many live subjects it has; with a single context an index-only scan counts them."""
    contexts = list(Context.objects.filter(registry=registry).values_list("name", flat=True)[:2])
    if len(contexts) == 1:
        number = SubjectActivity.objects.filter(registry_id=registry.pk).count()
        return {contexts[0]: number} if number else {}
    counted = _live(registry).order_by().values_list("context__name").annotate(count=Count("pk"))
    return dict(counted.values_list("context__name", "count"))

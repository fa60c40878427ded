"""The graph of references around a subject: as nested lists and as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.utils.translation import gettext

from dashboard.components.frame import page_actor, subject_frame
from dashboard.components.links import form_text, subject_url
from dashboard.components.widgets import Frame
from registry.access.roles import Actor
from registry.subjects import selectors
from registry.subjects.policy.registries import mirror_of
from registry.subjects.references.reference_graph import ReferenceGraph, ReferenceNode, reference_graph
from registry.subjects.versions.lookup import Registry, get_registry
from registry.subjects.versions.qualified_names import SubjectName, parse_subject


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceItem:
    """A subject in a list. `sentence` names the versions; `url` is "" if the reader may not read it.

    `behind` says that a newer version exists, `broken` that the referenced version was deleted; `more` counts unlisted
    neighbours.
    """

    name: str
    url: str
    sentence: str
    behind: str = ""
    broken: str = ""
    items: tuple[ReferenceItem, ...] = ()
    more: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceLists:
    """Both directions; each `more` counts unlisted ones."""

    references: tuple[ReferenceItem, ...]
    dependants: tuple[ReferenceItem, ...]
    more_references: str = ""
    more_dependants: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphBox:
    """A box of the picture; `kind` is "root", "broken", "more" or ""."""

    x: int
    y: int
    label: str
    small: str
    title: str
    url: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphEdge:
    """A line from a box to the one that it refers to, as an SVG path."""

    path: str
    broken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPicture:
    """The picture and its measures; `description` is the text alternative."""

    width: int
    height: int
    box_width: int
    box_height: int
    description: str
    boxes: tuple[GraphBox, ...]
    edges: tuple[GraphEdge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencesPage:
    """The graph around one version; `picture` is None without references."""

    frame: Frame
    subject: str
    version: int
    lists: ReferenceLists
    picture: GraphPicture | None
    versions: tuple[tuple[int, str, bool], ...]


#: boxes in a column; the rest is "+n"
MAX_BOXES: Final = 8
#: newest versions to choose from
MAX_VERSIONS: Final = 30
BOX_WIDTH, BOX_HEIGHT, GAP, SPACE = 196, 46, 44, 14
LONGEST_LABEL: Final = 24
LISTS: Final = {"references": "#refers-to", "dependants": "#referred-to-by"}


def references_page(request: HttpRequest, registry: str, subject: str) -> ReferencesPage:
    """Return the page of `?version=3`, else of the latest. Raises SubjectNotFound, VersionNotFound, InvalidVersion."""
    registry_row, name = get_registry(registry), parse_subject(subject)
    graph = reference_graph(registry_row, name, form_text(request.GET, "version") or "latest", by=page_actor(request))
    numbers = selectors.list_versions(registry_row, name, deleted=True)[::-1][:MAX_VERSIONS]
    return ReferencesPage(
        frame=subject_frame(
            request, registry, name, "references", title=gettext("References"), mirror=mirror_of(registry_row)
        ),
        subject=name.qualified,
        version=graph.version,
        lists=_lists(registry, graph),
        picture=_Drawing(registry, graph).picture() if graph.references or graph.dependants else None,
        versions=tuple(
            (number, subject_url(registry, name.qualified, "references", version=number), number == graph.version)
            for number in numbers
        ),
    )


def reference_lists(registry: Registry, name: SubjectName, version: int, by: Actor) -> ReferenceLists:
    """Return the direct references of a version and the direct dependants of its subject."""
    return _lists(registry.name, reference_graph(registry, name, version, by=by, steps=1))


def _lists(registry: str, graph: ReferenceGraph) -> ReferenceLists:
    return ReferenceLists(
        references=tuple(_referenced(registry, node) for node in graph.references),
        dependants=tuple(_dependant(registry, node, graph.latest) for node in graph.dependants),
        more_references=_more(graph.more_references),
        more_dependants=_more(graph.more_dependants),
    )


def _referenced(registry: str, node: ReferenceNode) -> ReferenceItem:
    return ReferenceItem(
        name=node.subject.qualified,
        url=_url(registry, node),
        sentence=gettext("version %(version)s, as %(node)s") % {"version": node.version, "node": node.name},
        behind=_behind(node.version, node.latest),
        broken=gettext("Version %(version)s was deleted.") % {"version": node.version} if node.broken else "",
        items=tuple(_referenced(registry, item) for item in node.nodes),
        more=_more(node.more),
    )


def _dependant(registry: str, node: ReferenceNode, latest: int | None) -> ReferenceItem:
    pins = ", ".join(map(str, node.pins))
    is_older = node.latest not in (None, node.version)
    gone = ", ".join(map(str, node.broken))
    return ReferenceItem(
        name=node.subject.qualified,
        url=_url(registry, node),
        sentence=(
            gettext("version %(version)s refers to version %(pins)s (latest is %(latest)s)")
            if is_older
            else gettext("version %(version)s refers to version %(pins)s")
        )
        % {"version": node.version, "latest": node.latest, "pins": pins},
        behind=_behind(max(node.pins, default=0), latest),
        broken=gettext("Version %(gone)s was deleted.") % {"gone": gone} if node.broken else "",
        items=tuple(_dependant(registry, item, node.latest) for item in node.nodes),
        more=_more(node.more),
    )


def _behind(version: int, latest: int | None) -> str:
    return (
        gettext("Version %(latest)s is available.") % {"latest": latest}
        if latest is not None and latest > version
        else ""
    )


def _more(count: int) -> str:
    return gettext("and %(n)s more") % {"n": f"{count:,}"} if count else ""


def _url(registry: str, node: ReferenceNode) -> str:
    return subject_url(registry, node.subject.qualified, version=node.version) if node.is_readable else ""


# -- the picture ------------------------------------------------------------------------------------------------------

_Key = tuple[SubjectName, int]


@dataclass
class _Column:
    """The boxes of one step in one direction without duplicates, and the number of omitted ones."""

    step: int
    nodes: dict[_Key, ReferenceNode]
    more: int

    @property
    def length(self) -> int:
        """The number of boxes, including the one that counts the rest."""
        return len(self.nodes) + bool(self.more)


@dataclass
class _Drawing:
    """The drawing; a dependant is to the left of what it refers to."""

    registry: str
    graph: ReferenceGraph

    def picture(self) -> GraphPicture:
        """Return the boxes and lines."""
        root: _Key = (self.graph.subject, self.graph.version)
        left, left_pairs = self._columns(root, self.graph.dependants, self.graph.more_dependants, -1)
        right, right_pairs = self._columns(root, self.graph.references, self.graph.more_references, 1)
        columns = [*reversed(left), _Column(0, {}, 0), *right]
        height = max(_height(column.length) for column in columns)
        positions: dict[tuple[int, _Key], tuple[int, int]] = {}
        boxes: list[GraphBox] = []
        for position, column in enumerate(columns):
            x = position * (BOX_WIDTH + GAP) + 2
            top = (height - _height(max(column.length, 1))) // 2 + 2
            if column.step == 0:
                positions[0, root] = x, top
                boxes.append(self._root(x, top))
            for line, (key, node) in enumerate(column.nodes.items()):
                positions[column.step, key] = x, top + line * (BOX_HEIGHT + SPACE)
                boxes.append(self._box(*positions[column.step, key], column.step, node))
            if column.more:
                boxes.append(self._rest(x, top + len(column.nodes) * (BOX_HEIGHT + SPACE), column))
        edges = [_edge(positions[-step - 1, far], positions[-step, near], node) for step, near, far, node in left_pairs]
        edges += [_edge(positions[step, near], positions[step + 1, far], node) for step, near, far, node in right_pairs]
        return GraphPicture(
            width=len(columns) * (BOX_WIDTH + GAP) - GAP + 4,
            height=height + 4,
            box_width=BOX_WIDTH,
            box_height=BOX_HEIGHT,
            description=self._description(),
            boxes=tuple(boxes),
            edges=tuple(edges),
        )

    def _columns(
        self, root: _Key, nodes: Sequence[ReferenceNode], more: int, direction: int
    ) -> tuple[list[_Column], list[tuple[int, _Key, _Key, ReferenceNode]]]:
        """Return up to two columns, and the pairs of a box and one a step farther from the root."""
        near = _unique(nodes)
        first = _Column(direction, dict(list(near.items())[:MAX_BOXES]), more + max(0, len(near) - MAX_BOXES))
        pairs = [(0, root, key, node) for key, node in first.nodes.items()]
        beyond = _unique(item for node in first.nodes.values() for item in node.nodes)
        hidden = sum(node.more for node in first.nodes.values())
        second = _Column(
            2 * direction, dict(list(beyond.items())[:MAX_BOXES]), hidden + max(0, len(beyond) - MAX_BOXES)
        )
        for key, node in first.nodes.items():
            pairs += [(1, key, _key(item), item) for item in node.nodes if _key(item) in second.nodes]
        return [column for column in (first, second) if column.length], pairs

    def _root(self, x: int, y: int) -> GraphBox:
        name = self.graph.subject.qualified
        latest = self.graph.latest
        small = f"v{self.graph.version}"
        if latest not in (None, self.graph.version):
            small = f"{small}, {gettext('latest is v%(latest)s') % {'latest': latest}}"
        url = subject_url(self.registry, name, version=self.graph.version)
        return GraphBox(x=x, y=y, label=_short(name), small=small, title=gettext("%(name)s version %(version)s") % {"name": name, "version": self.graph.version}, url=url, kind="root")  # fmt: skip

    def _box(self, x: int, y: int, step: int, node: ReferenceNode) -> GraphBox:
        beyond = f", +{node.more}" if abs(step) == len(_STEPS) and node.more else ""
        if step > 0:
            text = (
                gettext("deleted")
                if node.broken
                else (
                    gettext("latest is v%(latest)s") % {"latest": node.latest}
                    if _behind(node.version, node.latest)
                    else ""
                )
            )
            small = f"v{node.version}{f', {text}' if text else ''}{beyond}"
            item = _referenced(self.registry, node)
        else:
            pins = ", ".join(f"v{pin}" for pin in node.pins[:3])
            small = gettext("v%(version)s refers to v%(pins)s") % {"version": node.version, "pins": pins}
            small = f"{small}, {gettext('deleted')}{beyond}" if node.broken else f"{small}{beyond}"
            item = _dependant(self.registry, node, None)
        title = " ".join(filter(None, (f"{item.name}: {item.sentence}.", item.behind, item.broken)))
        kind = "broken" if node.broken else ""
        return GraphBox(x=x, y=y, label=_short(item.name), small=small, title=title, url=item.url, kind=kind)

    @staticmethod
    def _rest(x: int, y: int, column: _Column) -> GraphBox:
        what = "references" if column.step > 0 else "dependants"
        title = gettext("%(more)s more, some of them in the list below") % {"more": f"{column.more:,}"}
        return GraphBox(
            x=x,
            y=y,
            label=f"+{column.more:,}",
            small=gettext("see the list"),
            title=title,
            url=LISTS[what],
            kind="more",
        )

    def _description(self) -> str:
        out, into = len(self.graph.references) + self.graph.more_references, len(self.graph.dependants)
        into += self.graph.more_dependants
        return gettext(
            "%(qualified)s version %(version)s refers to %(out)s and is referred to by %(into)s. Each subject is to "
            "the left of what it refers to. The list below has the same content."
        ) % {
            "qualified": self.graph.subject.qualified,
            "version": self.graph.version,
            "out": f"{out:,}",
            "into": f"{into:,}",
        }


_STEPS: Final = (1, 2)


def _key(node: ReferenceNode) -> _Key:
    return node.subject, node.version


def _unique(nodes: Iterable[ReferenceNode]) -> dict[_Key, ReferenceNode]:
    unique: dict[_Key, ReferenceNode] = {}
    for node in nodes:
        unique.setdefault(_key(node), node)
    return unique


def _height(boxes: int) -> int:
    return boxes * (BOX_HEIGHT + SPACE) - SPACE if boxes else 0


def _edge(start: tuple[int, int], end: tuple[int, int], node: ReferenceNode) -> GraphEdge:
    """Return a curve from the right side of a box to the left side of another."""
    x1, y1 = start[0] + BOX_WIDTH, start[1] + BOX_HEIGHT // 2
    x2, y2 = end[0] - 6, end[1] + BOX_HEIGHT // 2
    middle = (x1 + x2) // 2
    return GraphEdge(path=f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}", broken=bool(node.broken))


def _short(name: str) -> str:
    if len(name) <= LONGEST_LABEL:
        return name
    return f"{name[: LONGEST_LABEL // 2]}…{name[-(LONGEST_LABEL // 2 - 1) :]}"

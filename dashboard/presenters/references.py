"""What refers to what: as a nested list, and as a picture of boxes in columns."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.presenters.frame import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceItem:
    """A subject in the list. `sentence` says which versions are meant; `url` is "" where the reader may not go.

    `behind` says in words that a newer version is there, `broken` that what is meant was deleted; `more` how many of its
    own neighbours aren't listed.
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
    """Both directions; the two `more` count what isn't listed."""

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
    """The picture with its measures; `description` says in words what is drawn."""

    width: int
    height: int
    box_width: int
    box_height: int
    description: str
    boxes: tuple[GraphBox, ...]
    edges: tuple[GraphEdge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencesPage:
    """The graph around one version; `picture` is None where nothing refers to anything."""

    frame: Frame
    subject: str
    version: int
    lists: ReferenceLists
    picture: GraphPicture | None
    versions: tuple[tuple[int, str, bool], ...]

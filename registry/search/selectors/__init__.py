"""What a search finds, group by group; `search` asks them all."""

from registry.search.selectors.everything import search, search_group
from registry.search.selectors.pasting import find_pasted, looks_pasted

__all__ = ["find_pasted", "looks_pasted", "search", "search_group"]

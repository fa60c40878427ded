"""What a search finds, group by group; `search` asks them all."""

from registry.search.selectors.all_groups import find_pasted, looks_pasted, search, search_group

__all__ = ["find_pasted", "looks_pasted", "search", "search_group"]

"""The results of a search, group by group; `search` combines them."""

from registry.search.selectors.all_groups import find_pasted, looks_pasted, search, search_group

__all__ = ["find_pasted", "looks_pasted", "search", "search_group"]

"""From what the selectors give to what the templates show: one module a page or a family of pages."""

"""Promotion requests: the list, the form, and the page on which one is decided."""

"""Comparisons of two versions: the page, the cards of changes, their proof, and Markdown."""

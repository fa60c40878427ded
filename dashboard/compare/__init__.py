"""Two versions compared: the page, the cards of changes, their proof, and the same as Markdown."""

"""The list of subjects: filters, order, pages, and the list as of an earlier moment."""

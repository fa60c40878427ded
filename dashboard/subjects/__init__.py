"""Subjects: the list, the page of one, its fields, references and life cycle, and changes to several."""

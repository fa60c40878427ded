"""Requests: submission, states, drafts, discussions, links, preconditions, and what a request changes."""
